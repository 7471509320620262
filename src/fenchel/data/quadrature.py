"""Quadrature weights for curves on a grid."""

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import host

__all__ = ["as_points", "interpolation", "trapezoid_weights"]


def trapezoid_weights(grid: ArrayLike) -> np.ndarray:
    r"""Return the weights of the trapezoid rule.

    .. math:: \int f \approx \sum_j w_j f(t_j), \qquad w_j = \frac{t_{j+1} - t_{j-1}}{2}, \quad
        w_1 = \frac{t_2 - t_1}{2}, \quad w_m = \frac{t_m - t_{m-1}}{2}.

    Parameters
    ----------
    grid : array-like of shape (m,)
        Increasing points, of any array library.

    Returns
    -------
    weights : NumPy array of shape (m,)
        Positive weights that sum to the length of the grid; a single point has weight 1.

    Examples
    --------
    >>> trapezoid_weights([0.0, 1.0, 3.0])
    array([0.5, 1.5, 1. ])
    """
    points = as_points(grid)
    if points.shape[0] == 1:
        return np.ones(1)
    halves = np.diff(points) / 2
    return np.concatenate([halves[:1], halves[:-1] + halves[1:], halves[-1:]])


def interpolation(known: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the matrix (known, points) of linear interpolation between increasing points.

    Parameters
    ----------
    known : array of shape (m,)
        Increasing points at which values are known; a single one means a constant.
    points : array of shape (k,)
        Points at which values are wanted; outside, the first and the last piece continue.

    Returns
    -------
    matrix : NumPy array of shape (m, k)
        ``values @ matrix`` are the interpolated values.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.data.quadrature import interpolation
    >>> np.array([0.0, 4.0]) @ interpolation(np.array([0.0, 2.0]), np.array([0.5, 3.0]))
    array([1., 6.])
    """
    if len(known) == 1:
        return np.ones((1, len(points)))
    right = np.clip(np.searchsorted(known, points), 1, len(known) - 1)
    share = (points - known[right - 1]) / (known[right] - known[right - 1])
    matrix = np.zeros((len(known), len(points)))
    places = np.arange(len(points))
    matrix[right - 1, places], matrix[right, places] = 1 - share, share
    return matrix


def as_points(grid: ArrayLike) -> np.ndarray:
    """Return the grid as an increasing float64 array, or raise."""
    points = host(grid)
    if points.ndim != 1 or points.shape[0] == 0:
        raise ValueError(f"The grid must be a vector of at least one point. Got shape {points.shape} instead.")
    if points.dtype.kind not in "iuf":
        raise TypeError(f"The grid must hold real numbers. Got dtype {points.dtype} instead.")
    points = points.astype(np.float64)
    infinite = int(np.sum(~np.isfinite(points)))
    if infinite:
        raise ValueError(f"The grid must hold finite points. {infinite} of its {len(points)} are NaN or infinite.")
    steps = np.diff(points)
    if np.any(steps <= 0):
        at = int(np.argmax(steps <= 0))
        advice = "drop the repeated point" if steps[at] == 0 else "sort the points, and the curves with them"
        raise ValueError(
            f"The grid must hold increasing points. Got {points[at + 1]:g} at index {at + 1} after {points[at]:g}; "
            f"{advice}."
        )
    return points
