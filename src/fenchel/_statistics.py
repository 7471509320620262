"""Weighted statistics shared by several modules."""

import math

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["ROUND_OFF", "distinct_rows", "is_clearly_positive", "ranked", "repeats_of", "weight_unit"]
__all__ += ["weighted_median", "weighted_quantile"]

# Relative difference of two errors that is attributed to round-off: that of an eigenbasis whose eigenvalues reach down
# to the root of the precision. Errors of distinct models differ by their sampling error, which is larger by far.
ROUND_OFF = math.sqrt(float(np.finfo(np.float64).eps))


def ranked(errors: ArrayLike) -> np.ndarray:
    """Return the places of errors, the smallest first; those that agree to round-off keep their order, NaN is last.

    Which of two equal candidates is chosen then depends neither on units nor on the order of the samples. Errors below
    the precision of their median are equal, too: they are the round-off of a perfect fit.
    """
    values = np.asarray(errors, dtype=np.float64).ravel()
    values = np.where(np.isnan(values), np.inf, values)
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return np.arange(len(values))
    least, half = float(known[0]), len(known) // 2
    median = (float(known[half]) + float(known[-half - 1])) / 2  # np.median takes longer than all the rest
    unit = ROUND_OFF * (abs(least) + ROUND_OFF * abs(median)) or 1.0
    with np.errstate(over="ignore"):
        return np.argsort(np.floor((values - least) / unit + 0.5), kind="stable")


def is_clearly_positive(gains: np.ndarray, errors: float, weights: np.ndarray | None = None) -> bool:
    """Whether the weighted mean of gains exceeds so many of its standard errors, for weights in any unit."""
    counts = np.ones(len(gains)) if weights is None else weights
    mean = np.average(gains, weights=counts)
    return bool(mean > errors * np.linalg.norm(counts * (gains - mean)) / np.sum(counts))


def weight_unit(weights: np.ndarray) -> float:
    """Return the power of four by which weights are divided, without round-off, so that the largest is in [1, 4).

    The loss is a weighted mean: the unit of the weights has no effect, unless products of tiny or huge ones overflow.
    The square roots of the weights keep their digits as well.
    """
    return 2.0 ** (2 * ((math.frexp(float(np.max(weights, initial=0.0)))[1] - 1) // 2))


def distinct_rows(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of distinct rows (n, d), and their total weights, without those of weight zero.

    Where single samples are left out, a sample of weight 2 and one given twice are then the same.
    """
    kept = np.flatnonzero(weights)
    first, inverse = np.unique(rows[kept], axis=0, return_index=True, return_inverse=True)[1:]
    if len(first) == len(kept):
        return kept, weights[kept]
    return kept[first], np.bincount(inverse.ravel(), weights[kept])


def repeats_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the first place of each distinct row (n, d), in order, and for each row which of these it is.

    ``None`` if no row is repeated, bit for bit.
    """
    found: dict[bytes, int] = {}
    which = np.array([found.setdefault(row.tobytes(), len(found)) for row in rows])
    if len(found) == len(rows):
        return None
    return np.unique(which, return_index=True)[1], which


def weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted median over the first axis, ignoring NaN; zero where every value is NaN.

    Integer weights are repetition counts. ``weights`` has shape (n,).
    """
    order = np.argsort(np.where(np.isnan(values), np.inf, values), axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    mass = np.cumsum(np.where(np.isnan(ordered), 0.0, weights[order]), axis=0)
    half = mass[-1:] / 2
    slack = 1e-12 * mass[-1:]
    low = np.argmax(mass >= half - slack, axis=0)[None]
    high = np.argmax(mass > half + slack, axis=0)[None]
    middle = (np.take_along_axis(ordered, low, axis=0) + np.take_along_axis(ordered, high, axis=0))[0] / 2
    return np.asarray(np.where(mass[-1] > 0, middle, 0.0))


def weighted_quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    """Return the weighted quantile of a vector, where integer weights are repetition counts.

    For equal weights this is ``numpy.quantile`` with ``method="averaged_inverted_cdf"``.
    """
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    goal, slack = level * mass[-1], 1e-12 * mass[-1]
    low, high = np.searchsorted(mass, goal - slack), np.searchsorted(mass, goal + slack)
    return float((values[order][low] + values[order][min(high, len(values) - 1)]) / 2)
