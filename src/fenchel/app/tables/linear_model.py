"""A linear model as a baseline."""

import numpy as np
from sklearn.linear_model import RidgeCV

__all__ = ["linear_model"]


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
