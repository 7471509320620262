"""What is known of the samples of a report: index, names of outputs, dual variables, and whether they suffice."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from fenchel._array import Inputs, Outputs, host
from fenchel.data.frames import column_names, index_of
from fenchel.resample.folds import weights_argument

__all__ = ["FEWEST"]

FEWEST = 10  # samples; fewer do not tell what the bulk is
_FEWEST_AT_A_POINT = 3  # curves; the median of fewer is one of them, or halfway


def index_of_sample(X: Inputs, y: Outputs) -> object:
    """Return the index of the outputs or of the inputs, ``None`` without a frame."""
    index = index_of(y)
    return index_of(X) if index is None else index


def output_names(y: Outputs, residuals: np.ndarray, grid: np.ndarray | None) -> list[str] | None:
    """Return the names of the columns of y, or numbers; ``None`` where a sample is a number or a curve."""
    if grid is not None or residuals.ndim != 2 or residuals.shape[1] < 2:
        return None
    columns = column_names(y)
    if columns is None or len(columns) != residuals.shape[1]:
        return [f"output {k}" for k in range(residuals.shape[1])]
    return [str(name) for name in columns]


def duals_of(model: BaseEstimator, is_fitted: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the norms and the saturation of the dual variables of the training samples of a model, NaN for others."""
    duals, scores = (getattr(model, name, None) for name in ("dual_coef_", "outlier_score_"))
    if duals is None or len(duals) != is_fitted.sum():
        return None, None
    norms, saturation = np.full((2, len(is_fitted)), np.nan)
    norms[is_fitted] = np.linalg.norm(host(duals).reshape(len(duals), -1), axis=1)
    if scores is None:
        return norms, None
    saturation[is_fitted] = host(scores)
    return norms, saturation


def weights_of(sample_weight: ArrayLike | None, n: int, *estimators: BaseEstimator) -> np.ndarray | None:
    """Return the weights of n samples, ``None`` if none are given; raise unless the estimators take such weights."""
    if sample_weight is None:
        return None
    for estimator in estimators:
        if weights_argument(estimator) is None:
            raise ValueError(
                f"{type(estimator).__name__} takes no sample_weight in its fit, so that its residuals cannot be those "
                "of a weighted fit. Use an estimator that does, or pass sample_weight=None."
            )
    weights = np.asarray(sample_weight, dtype=float)
    weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight for each sample. Got {weights.shape}.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must hold finite non-negative numbers. Got a negative, NaN or infinite one.")
    if not np.any(weights > 0):
        raise ValueError("sample_weight must have at least one positive entry. Got zeros only.")
    return weights


def check_points(rows: np.ndarray) -> None:
    """Raise if there are too few curves (n, m), NaN where unknown, or most values are at points that few share."""
    check_count(len(rows))
    counts = np.sum(~np.isnan(rows), axis=0)
    if np.sum(counts[counts < _FEWEST_AT_A_POINT]) > np.sum(counts) / 2:
        raise ValueError(
            f"Curves are compared at the points that at least {_FEWEST_AT_A_POINT} of them share, and most values here "
            "are at others. Bring the curves to common points first, as to_basis of scikit-fda does, or judge them by "
            "a model that predicts them: OutlierReport.of(FunctionalRegressorCV().fit(X, Y), X, Y)."
        )


def check_count(n: int) -> None:
    """Raise if there are too few samples."""
    if n < FEWEST:
        raise ValueError(f"Outlier detection needs at least {FEWEST} samples. Got n_samples = {n}.")
