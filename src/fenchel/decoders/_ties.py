"""Tie-breaking: among losses that differ only by round-off, the first is taken."""

import numpy as np

__all__ = ["first_least", "first_of_each_row", "least_first", "round_off"]

_TIES = 64  # losses that differ by at most this many eps of the size of their terms are equal


def round_off(sizes: np.ndarray) -> np.ndarray:
    """Return the width of a tie between sums, given the total size of their terms, with the eps of their dtype."""
    return np.asarray(_TIES * np.finfo(sizes.dtype).eps * sizes)


def first_least(values: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Return the index of the first value in each row within ``slack`` of the minimum, (m,)."""
    return np.asarray(np.argmax(values <= np.min(values, axis=1, keepdims=True) + slack[:, None], axis=1))


def first_of_each_row(rows: np.ndarray, values: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Return the index of the first value within ``slack`` of the minimum of each row, for rows of unequal length.

    Parameters
    ----------
    rows : array of shape (count,)
        The row of each value.
    values, slack : array of shape (count,)
        The values, and how far each may be above the minimum of its row.
    """
    least = np.full(np.max(rows, initial=-1) + 1, np.inf)
    np.minimum.at(least, rows, values)
    near = np.flatnonzero(values <= least[rows] + slack)
    return np.asarray(near[np.unique(rows[near], return_index=True)[1]])


def least_first(values: np.ndarray, k: int, slack: np.ndarray, places: np.ndarray | None = None) -> np.ndarray:
    """Return the indices of the k smallest values of each row in increasing order, ties by place, (m, min(k, C)).

    Parameters
    ----------
    values : array of shape (m, C)
    k : int
    slack : array of shape (m,)
        Values within this distance of the smallest remaining value are equal to it.
    places : array of shape (m, C) or None
        The places by which equal values are ordered; ``None`` means their columns.
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
