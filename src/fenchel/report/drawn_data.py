"""Data of figures: attributes of models, arrays of any library and curves, as NumPy arrays."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Array, Outputs, host, is_host
from fenchel.data.functional import is_fdata
from fenchel.data.quadrature import trapezoid_weights

__all__ = ["attribute", "cell_edges", "on_host", "one_channel", "rows_of"]


def attribute(model: BaseEstimator, name: str) -> Any:
    """Return an attribute of a fitted model; data are returned unchanged."""
    if hasattr(model, name) or not hasattr(model, "get_params"):
        return getattr(model, name, model)
    raise ValueError(
        f"{type(model).__name__} has no {name}. Fit it first; only losses that bound the dual variables, such as "
        "Huber, give outlier scores, and those of order 1 give them for points."
    )


def on_host(values: Outputs) -> np.ndarray:
    """Return an array of any library as a NumPy array."""
    return np.asarray(values) if is_host(values) else host(values)


def rows_of(values: Outputs) -> Any:
    """Return curves as rows; a single curve becomes one row."""
    return values[None, :] if getattr(values, "ndim", 2) == 1 and not is_fdata(values) else values


def one_channel(values: Array, name: str) -> np.ndarray:
    """Return curves of one channel as rows (n, m); raise for several channels."""
    rows = host(values)
    if rows.ndim == 3 and rows.shape[2] == 1:
        rows = rows[:, :, 0]
    if rows.ndim != 2:
        raise ValueError(
            f"{name} must hold curves of one channel, shape (n, m). Got {rows.shape}; take one, as in {name}[:, :, 0]."
        )
    return rows


def cell_edges(points: np.ndarray) -> np.ndarray:
    """Return the edges of the cells around increasing points."""
    trapezoid_weights(points)  # checks them
    if len(points) == 1:
        return np.array([points[0] - 0.5, points[0] + 0.5])
    middles = (points[1:] + points[:-1]) / 2
    return np.concatenate([[2 * points[0] - middles[0]], middles, [2 * points[-1] - middles[-1]]])
