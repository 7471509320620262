"""Ways from the errors of held-out samples to one number."""

from collections.abc import Callable

import numpy as np

from fenchel._statistics import weighted_median

__all__ = ["AGGREGATES", "clipped"]

_TRIM = 0.2  # fraction of the largest errors that a trimmed mean drops


def clipped(squares: np.ndarray, ceiling: float | np.ndarray) -> np.ndarray:
    """Return the sums of squared errors (..., p) over the outputs, each at most the ceiling.

    With a ceiling for each output (p,), the errors are clipped instead of their sums.
    """
    if np.ndim(ceiling):
        return np.asarray(np.sum(np.minimum(squares, ceiling), axis=-1))
    return np.minimum(np.sum(squares, axis=-1), ceiling)


def _trimmed_mean(errors: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted mean of the smallest four fifths of the errors, ignoring NaN."""
    seen = ~np.isnan(errors)
    order = np.argsort(errors[seen], kind="stable")
    mass = np.cumsum(weights[seen][order])
    below = np.clip(mass, None, (1 - _TRIM) * mass[-1])
    return float(np.average(errors[seen][order], weights=np.diff(below, prepend=0.0)))


# functions of the held-out errors, the sample weights, and the mean errors of the folds
AGGREGATES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "mean": lambda errors, weights, folds: float(np.mean(folds)),
    "median": lambda errors, weights, folds: float(weighted_median(errors, weights)),
    "trimmed_mean": lambda errors, weights, folds: _trimmed_mean(errors, weights),
    "fold_median": lambda errors, weights, folds: float(np.median(folds)),
}
