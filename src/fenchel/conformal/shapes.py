"""Shape of residuals of several outputs, and their sizes in its units, whatever part of a row was observed."""

import numpy as np
from scipy.special import gammaln
from sklearn.covariance import ledoit_wolf

__all__: list[str] = []

_STEPS, _ENOUGH_DIGITS = 100, 1e-3  # of expectation and maximisation
_FREEDOMS = (1000.0, 8.0, 4.0, 2.0, 1.0)  # of the law of residuals: nearly normal, to Cauchy's
_COVERED = 0.9  # of complete rows, the nominal coverage by default
_ROUND_OFF = 1e-12


def _patterns(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return which values were observed, (q,), and the indices of the rows of which this is so."""
    seen, which = np.unique(~np.isnan(rows), axis=0, return_inverse=True)
    return [(one, np.flatnonzero(which.ravel() == k)) for k, one in enumerate(seen) if one.any()]


def student_shape(rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the shape of rows, (q, q), and the degrees of freedom of Student's law that are most likely.

    By expectation and maximisation, for each number of degrees of freedom: a row counts less the farther out it is, and
    its gaps are what is expected of them. The shape is shrunk as Ledoit and Wolf's covariance is. Of complete rows it
    is the one whose ellipsoid around nine tenths of them is smallest, otherwise the most likely one.
    """
    known = np.nan_to_num(rows)
    directions = known / np.maximum(np.linalg.norm(known, axis=1, keepdims=True), _ROUND_OFF)
    shrinkage, patterns = ledoit_wolf(directions, assume_centered=True)[1], _patterns(rows)
    shape, everything = np.diag(np.maximum(np.nanmean(rows**2, axis=0), _ROUND_OFF)), np.ones(rows.shape[1], dtype=bool)
    found = list[tuple[float, float, np.ndarray, float]]()  # likelihood, minus log volume, shape, freedom
    for freedom in _FREEDOMS:
        for _ in range(_STEPS):
            before, (likelihood, total) = shape, _expected(rows, patterns, shape, freedom)
            ridge = shrinkage * np.trace(total) / len(total) + _ROUND_OFF
            shape = (1 - shrinkage) * total + ridge * np.eye(len(total))
            scales = np.sqrt(np.diag(shape))
            if np.max(np.abs(shape - before) / np.outer(scales, scales)) < _ENOUGH_DIGITS:
                break
        reach = np.quantile(_distances(known, shape, everything), _COVERED)
        volume = np.linalg.slogdet(shape)[1] + len(shape) * np.log(max(reach, _ROUND_OFF))
        found.append((likelihood, -volume, shape, freedom))
    likely = max(found, key=lambda one: one[0])
    return (likely if len(patterns) > 1 else max(found, key=lambda one: one[1]))[2], likely[3]


def _expected(
    rows: np.ndarray, patterns: list[tuple[np.ndarray, np.ndarray]], shape: np.ndarray, freedom: float
) -> tuple[float, np.ndarray]:
    """Return the log likelihood of rows, up to a constant, and their expected weighted mean squares, (q, q)."""
    likelihood, total, weight = 0.0, np.zeros_like(shape), 0.0
    for seen, index in patterns:
        part, known, count = shape[np.ix_(seen, seen)], rows[np.ix_(index, seen)], int(seen.sum())
        gains, squares = np.linalg.solve(part, shape[seen]), _distances(known, shape, seen)
        filled, weights = known @ gains, (freedom + count) / (freedom + squares)
        total += (filled * weights[:, None]).T @ filled + len(index) * (shape - shape[:, seen] @ gains)
        weight += float(weights.sum())
        logs = gammaln((freedom + count) / 2) - gammaln(freedom / 2) - count / 2 * np.log(freedom)
        likelihood += len(index) * (logs - np.linalg.slogdet(part)[1] / 2)
        likelihood -= (freedom + count) / 2 * np.sum(np.log1p(squares / freedom))
    return likelihood, total / weight


def _distances(known: np.ndarray, shape: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the squared sizes of the observed values of rows in whitened units, (n,)."""
    return np.sum(known * np.linalg.solve(shape[np.ix_(seen, seen)], known.T).T, axis=1)


def whole_sizes(rows: np.ndarray, whitening: np.ndarray, freedom: float) -> np.ndarray:
    """Return the sizes of rows in whitened units, (n,); NaN for rows without a value.

    Gaps of a row are drawn as Student's law has them given the values that were observed, so that its size is one that
    a whole row could have.
    """
    if not np.isnan(rows).any():
        return np.asarray(np.linalg.norm(rows @ whitening.T, axis=1))
    shape, rng, squares = np.linalg.inv(whitening.T @ whitening), np.random.default_rng(0), np.full(len(rows), np.nan)
    for seen, index in _patterns(rows):
        inner = _distances(rows[np.ix_(index, seen)], shape, seen)
        scales = (freedom + inner) / rng.chisquare(freedom + seen.sum(), len(index))
        squares[index] = inner + scales * rng.chisquare(np.sum(~seen), len(index)) if not seen.all() else inner
    return np.asarray(np.sqrt(squares))
