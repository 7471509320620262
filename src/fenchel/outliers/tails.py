"""P-values from statistics, and flags at a false discovery rate."""

import numpy as np
from scipy.special import log_ndtr, ndtri
from scipy.stats import t as student

__all__ = ["QUARTILE", "adjusted", "conformal_p_values", "log_tails", "log_two_sided", "standardized"]

QUARTILE = 0.6744897501960817  # of the normal distribution
_LEVELS = np.array([0.25, 0.3])  # of probability, on either side of the median
_TINY = 1e-100
_FREEDOM = 10.0  # degrees of freedom of the tails of residuals; with normal tails .18 of the flags are false, not .05
_FAR = 3.0  # deviations beyond which values are excluded from the fit of the centre
_ROUNDS = 20
_ROUND_OFF = 1e-9  # smallest spread of the statistics, relative to their centre


def standardized(values: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Standardise values (n,) by a distribution fitted to the central part of a reference sample.

    If the reference is ``None``, the values themselves are used. The distribution is normal on either side of the
    median, with the largest deviation that a few quantiles of that side give, so that a tail which is heavy from there
    on is not taken for outliers. Values more than three deviations above the median are excluded; the fit and this
    selection are repeated until they agree.
    """
    known = values if reference is None else reference
    is_central = np.ones(len(known), dtype=bool)
    for _ in range(_ROUNDS):
        center = float(np.median(known[is_central]))
        least = max(_ROUND_OFF * abs(center), _TINY)
        sides = [np.quantile(known[is_central], 0.5 + sign * _LEVELS) - center for sign in (-1, 1)]
        below, above = (max(float(np.max(np.abs(side) / ndtri(0.5 + _LEVELS))), least) for side in sides)
        is_near = known - center < _FAR * above
        if np.array_equal(is_near, is_central):
            break
        is_central = is_near
    return np.asarray((values - center) / np.where(values < center, below, above))


def log_tails(deviates: np.ndarray, n_tests: int, is_heavy: bool) -> np.ndarray:
    """Return the log of Bonferroni's bound (n,) on the p-value of the largest of k deviates (n, k).

    Tails are normal, or those of Student's distribution if ``is_heavy``. The bound can exceed one.
    """
    largest = np.max(deviates, axis=1)
    tails = np.asarray(student.logsf(largest, _FREEDOM) if is_heavy else log_ndtr(-largest))
    return tails + np.log(n_tests)


def log_two_sided(deviates: np.ndarray) -> np.ndarray:
    """Return the two-sided log p-values of deviates under Student's distribution."""
    return np.asarray(student.logsf(np.abs(deviates), _FREEDOM) + np.log(2.0))


def conformal_p_values(scores: np.ndarray, calibration: np.ndarray | None = None) -> np.ndarray:
    """Return the fraction of samples that are at least as outlying as each sample, itself included.

    With ``calibration``, the scores are those of new samples and are compared with the calibration scores; otherwise
    they are compared with each other.
    """
    others = scores if calibration is None else calibration
    above = len(others) - np.searchsorted(np.sort(others), scores, side="left")
    if calibration is None:
        return above / len(others)
    return (above + 1) / (len(others) + 1)


def adjusted(p_values: np.ndarray) -> np.ndarray:
    """Return the smallest false discovery rate at which each hypothesis is rejected, by Benjamini and Hochberg."""
    order = np.argsort(p_values, kind="stable")
    raised = p_values[order] * len(p_values) / np.arange(1, len(p_values) + 1)
    rates = np.empty(len(p_values))
    rates[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    return rates
