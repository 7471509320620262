"""Which of several equal losses is taken: the first, where losses are equal that differ by round-off alone."""

import numpy as np

__all__ = ["first_least", "first_of_each_row", "least_first", "round_off"]

_TIES = 64  # losses that differ by no more than this many eps of the size of their terms are equal


def round_off(sizes: np.ndarray) -> np.ndarray:
    """Return the width of a tie between sums whose terms have these sizes in all, with the eps of their dtype."""
    return np.asarray(_TIES * np.finfo(sizes.dtype).eps * sizes)


def first_least(values: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Return the place of the first value of each row that is least but for the slack, (m,)."""
    return np.asarray(np.argmax(values <= np.min(values, axis=1, keepdims=True) + slack[:, None], axis=1))


def first_of_each_row(rows: np.ndarray, values: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Return the place of the first least value of each row, but for the slack, where rows have lists of their own.

    Parameters
    ----------
    rows : array of shape (count,)
        The row of each value.
    values, slack : array of shape (count,)
        The values, and how far each may be above the least one of its row.
    """
    least = np.full(np.max(rows, initial=-1) + 1, np.inf)
    np.minimum.at(least, rows, values)
    near = np.flatnonzero(values <= least[rows] + slack)
    return np.asarray(near[np.unique(rows[near], return_index=True)[1]])


def least_first(values: np.ndarray, k: int, slack: np.ndarray, places: np.ndarray | None = None) -> np.ndarray:
    """Return where the k least values of each row are, the least first and equal ones by place, (m, min(k, C)).

    Parameters
    ----------
    values : array of shape (m, C)
    k : int
    slack : array of shape (m,)
        Values that are above the least of those that are left by no more than this are equal to it.
    places : array of shape (m, C) or None
        The places by which equal values are put in order; ``None`` is that of their columns.
    """
    if places is None:
        if k == 1:
            return first_least(values, slack)[:, None]
        places = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    if k == 1:
        near = values <= np.min(values, axis=1, keepdims=True) + slack[:, None]
        return np.argmin(np.where(near, places, np.iinfo(np.int64).max), axis=1)[:, None]
    return np.stack([_row_least_first(*row) for row in zip(values, places, slack, [k] * len(values), strict=True)])


def _row_least_first(row: np.ndarray, places: np.ndarray, slack: float, k: int) -> np.ndarray:
    chosen = np.arange(len(row))
    if k < len(row):
        chosen = np.flatnonzero(row <= np.partition(row, k - 1)[k - 1] + slack)
    chosen = chosen[np.argsort(row[chosen], kind="stable")]
    ends, first = [], 0
    while first < min(k, len(chosen)):
        last = int(np.searchsorted(row[chosen], row[chosen[first]] + slack, side="right"))
        equal = chosen[first:last]
        ends.append(equal[np.argsort(places[equal], kind="stable")])
        first = last
    return np.concatenate(ends)[:k]
