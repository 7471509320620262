"""A linear model as a baseline."""

import numpy as np
from sklearn.linear_model import RidgeCV

__all__ = ["linear_model", "offset_of"]


def linear_model(X: np.ndarray, Y: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients (d, p) and the intercept (p,) of a ridge regression.

    The penalty of each target is chosen by leave-one-out, so that a wrong value of one target does not affect others.
    """
    X = X.astype(np.float64)
    center, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    known = np.where(np.isnan(Y), mean, Y).astype(np.float64)
    model = RidgeCV(np.logspace(-4, 6, 21), alpha_per_target=True).fit((X - center) / scale, known)
    coef = np.reshape(model.coef_, (known.shape[1], -1)).T / scale[:, None]
    return coef, np.asarray(model.intercept_ - center @ coef)


def offset_of(Y: np.ndarray, center: str) -> np.ndarray:
    """Return what is subtracted from the targets: their mean, their median or zeros for "none"."""
    if center == "none":
        return np.zeros(Y.shape[1], dtype=Y.dtype)
    return np.asarray(np.mean(Y, axis=0) if center == "mean" else np.median(Y, axis=0))
