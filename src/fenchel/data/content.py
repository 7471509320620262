"""The order of samples by what they contain, from which folds and subsamples are drawn."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from fenchel._array import Array, Outputs, as_objects, as_rows, has_shape, host, is_sparse
from fenchel.data.functional import Curves, as_curves, brings_points
from fenchel.data.pairs import is_pairs
from fenchel.data.parts import spread

__all__: list[str] = []

_ADDRESS = re.compile(r"at 0x[0-9a-f]+")  # in the default ``repr`` of an object, which says nothing of its content


def contents(*parts: Outputs, grams: Sequence[Array] = ()) -> np.ndarray:
    """Return the rank of each sample by what it contains, (n,); equal samples share the first of their ranks.

    Samples are compared by their columns, one after another, as words are by letters, in ascending order and with NaN
    last. Ranks therefore do not depend on the order of the samples, nor on the units of the columns. Later columns are
    read only as long as some samples are equal.

    Parameters
    ----------
    *parts : array, sparse array, frame, list, Curves, scikit-fda object or None
        What is known of the samples, such as inputs, outputs and weights; objects are compared by their ``repr``.
    grams : sequence of arrays of shape (n, m), default=()
        Gram matrices, whose columns have the order of samples: each row is compared with its numbers sorted.

    Returns
    -------
    ranks : ndarray of shape (n,)
        Integers from 0 to n - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.data.content import contents
    >>> contents(np.array([[3.0, 1.0], [2.0, 1.0], [3.0, 0.0], [2.0, 1.0]])).tolist()
    [3, 0, 2, 0]
    """
    given = [one for part in parts if part is not None for one in spread(part)]
    ranks = np.zeros(_length(given[0] if given else grams[0]), dtype=np.int64)
    rows = np.arange(len(ranks) if len(ranks) > 1 else 0)
    for part in (*map(_comparable, given), *map(_Gram, grams)):
        if not len(rows):
            break
        places, tied = np.arange(len(rows)), rows  # of the samples that are equal to another one
        for column in _columns(part, rows):
            if not len(tied):
                break
            is_tied = _refine(ranks, tied, column[places])
            places, tied = places[is_tied], tied[is_tied]
        rows = tied
    return ranks


def shuffled(ranks: np.ndarray, rng: np.random.Generator | int = 0) -> np.ndarray:
    """Return the places of the samples in a random order, which is that of the same contents in any given order."""
    return np.argsort(ranks, kind="stable")[np.random.default_rng(rng).permutation(len(ranks))]


def ranks_of_groups(ranks: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the rank of the group of each sample among the groups, (n,), by the sorted ranks of their samples."""
    codes = np.unique(labels, return_inverse=True)[1].ravel()
    order = np.lexsort((ranks, codes))
    members = np.split(ranks[order], np.cumsum(np.bincount(codes))[:-1])
    places = sorted(range(len(members)), key=lambda code: members[code].tolist())
    return np.argsort(places)[codes]


class _Gram:
    """A Gram matrix, whose rows are compared after sorting."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix


def _refine(ranks: np.ndarray, rows: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Refine the ranks of some samples by one column, and return which of them are still equal to another one."""
    before = ranks[rows]
    order = np.lexsort((column, before))
    values, ties = column[order], before[order]
    is_new = ties[1:] != ties[:-1]
    is_other = (values[1:] != values[:-1]) & ((values[1:] == values[1:]) | (values[:-1] == values[:-1]))
    starts = np.flatnonzero(np.append(True, is_new | is_other))
    sizes = np.diff(np.append(starts, len(rows)))
    blocks = np.maximum.accumulate(np.where(np.append(True, is_new), np.arange(len(rows)), 0))
    ranks[rows[order]] = np.repeat(ties[starts] + starts - blocks[starts], sizes)
    is_tied = np.empty(len(rows), dtype=bool)
    is_tied[order] = np.repeat(sizes > 1, sizes)
    return is_tied


def _comparable(part: Outputs) -> Outputs:
    """Return outputs as an array with one row for each sample."""
    if isinstance(part, list | tuple) and not is_pairs(part):
        try:
            return np.asarray(part)
        except ValueError:  # of different lengths
            return as_objects(part)
    if isinstance(part, Curves) or brings_points(part):
        part = as_curves(part).values
    return as_rows(part) if is_sparse(part) else host(part)


def _columns(part: Outputs, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield what the rows of a part are compared by: arrays of numbers or words, each with one entry for each row."""
    if isinstance(part, _Gram):
        yield from np.sort(host(part.matrix)[rows], axis=1).T
    elif is_sparse(part):
        yield from _of_sparse(part[rows])
    else:
        is_plain, is_whole = part.dtype.kind in "biufcmMUS", len(rows) == len(part)
        for place in np.ndindex(part.shape[1:]):  # no copy of several columns, for arrays on disk
            column = part[:, *place]
            column = column if is_whole else column[rows]
            yield column if is_plain else _words(column)


def _of_sparse(part: Array) -> Iterator[np.ndarray]:
    """Yield the places and the values of the first, the second and further numbers of each row that are not zero.

    Places are signed so that rows have the order that they have with their zeros: among rows that are equal so far, the
    earlier a negative number comes the smaller is its row, and the earlier another one comes the larger.
    """
    part.sum_duplicates()
    part.eliminate_zeros()
    counts, before = np.diff(part.indptr), part.indices - part.shape[1]
    signed = np.where(part.data < 0, before, -before)
    for k in range(int(counts.max(initial=0))):
        at = np.minimum(part.indptr[:-1] + k, part.nnz - 1)
        yield np.where(k < counts, signed[at], 0)
        yield np.where(k < counts, part.data[at], 0)


def _words(objects: np.ndarray) -> np.ndarray:
    """Return the numbers that objects are, or else words for them, with all digits of the numbers in them."""
    with suppress(TypeError, ValueError, OverflowError):
        return objects.astype(np.float64)
    with np.printoptions(threshold=10**9, floatmode="unique"):
        return np.array([_ADDRESS.sub("", repr(value)) for value in objects], dtype=object).astype(str)


def _length(part: Outputs) -> int:
    return int(part.shape[0]) if has_shape(part) else len(part)
