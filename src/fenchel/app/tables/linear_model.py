"""A linear model as a baseline."""

import numpy as np
from sklearn.linear_model import RidgeCV

from fenchel._statistics import weighted_median

__all__ = ["linear_model", "offset_of"]

_TINY = np.finfo(float).tiny  # weight of a target without values, whose mean is zero


def linear_model(X: np.ndarray, Y: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients (d, p) and the intercept (p,) of ridge regressions on the rows with each target.

    The penalty of each target is chosen by leave-one-out, so that a wrong value of one target does not affect others.
    """
    X = X.astype(np.float64)
    center, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    coef, intercept = np.zeros((X.shape[1], Y.shape[1])), mean.astype(np.float64)
    patterns, which = np.unique(~np.isnan(Y), axis=1, return_inverse=True)
    for k, seen in enumerate(patterns.T):  # targets of the same rows together
        columns = np.flatnonzero(which.ravel() == k)
        if np.sum(seen) < 2:
            continue
        model = RidgeCV(np.logspace(-4, 6, 21), alpha_per_target=True)
        model.fit((X[seen] - center) / scale, Y[np.ix_(seen, columns)].astype(np.float64))
        coef[:, columns] = np.reshape(model.coef_, (len(columns), -1)).T / scale[:, None]
        intercept[columns] = model.intercept_ - center @ coef[:, columns]
    return coef, intercept


def offset_of(Y: np.ndarray, center: str, weights: np.ndarray | None = None) -> np.ndarray:
    """Return what is subtracted from the targets: their mean, their median or zeros for "none"."""
    if center == "none":
        return np.zeros(Y.shape[1], dtype=Y.dtype)
    weights = np.ones(len(Y)) if weights is None else weights
    if center == "median":
        return weighted_median(Y, weights).astype(Y.dtype)
    seen = np.where(np.isnan(Y), 0.0, weights[:, None])
    return np.asarray(np.sum(seen * np.nan_to_num(Y), axis=0) / np.maximum(np.sum(seen, axis=0), _TINY)).astype(Y.dtype)
