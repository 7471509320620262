"""The centre of a sample of curves, estimated smoothly where points are scattered."""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator, make_smoothing_spline

from fenchel.data.functional import Curves

__all__ = ["Centre"]

_FEWEST = 5  # points that a smoothing spline needs


@dataclass(frozen=True)
class Centre:
    """A function known at the points of a grid: values (m, channels), between them a monotone cubic interpolation."""

    grid: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, curves: Curves, values: np.ndarray, weights: np.ndarray, kind: str) -> "Centre":
        """Return the mean or the median of curves (n, m, channels), NaN where they are not observed.

        Where nothing is missing this is the centre at each point. Else each point has curves of its own, and the
        pointwise centre jumps with them: it is smoothed by a cubic smoothing spline, the weight of a point being the
        number of curves seen there, the amount of smoothing chosen by generalised cross-validation.
        """
        seen = ~np.isnan(values)
        mass = np.sum(seen * weights[:, None, None], axis=0)
        if kind == "median":
            centre = _weighted_median(values, weights)
        else:
            total = np.sum(np.where(seen, values, 0.0) * weights[:, None, None], axis=0)
            centre = total / np.where(mass > 0, mass, 1.0)
        if not seen.all():
            columns = [_smoothed(curves.grid, centre[:, c], mass[:, c]) for c in range(centre.shape[1])]
            centre = np.stack(columns, axis=1)
        return cls(curves.grid, centre)

    def __call__(self, grid: np.ndarray, derivative: bool = False) -> np.ndarray:
        """Return the values (or the derivatives) at some points, (points, channels); constant beyond the ends."""
        if len(self.grid) == 1:
            return np.repeat(self.values * (0.0 if derivative else 1.0), len(grid), axis=0)
        inside = np.clip(grid, self.grid[0], self.grid[-1])
        if derivative:
            return PchipInterpolator(self.grid, self.values)(inside, 1) * (inside == grid)[:, None]
        exact = np.searchsorted(self.grid, inside).clip(max=len(self.grid) - 1)
        is_exact = self.grid[exact] == inside
        return np.where(is_exact[:, None], self.values[exact], PchipInterpolator(self.grid, self.values)(inside))


def _smoothed(grid: np.ndarray, values: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return a smoothing spline through the points that have mass, at every point of the grid."""
    some = mass > 0
    if not some.any():
        return np.zeros(len(grid))
    points, known = grid[some], values[some]
    if len(points) < _FEWEST or np.ptp(known) == 0:
        return np.interp(grid, points, known)
    span = points[-1] - points[0]
    fit = make_smoothing_spline((points - points[0]) / span, known, mass[some] / np.mean(mass[some]))
    return np.asarray(fit(np.clip((grid - points[0]) / span, 0.0, 1.0)))


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the median over the first axis of values that count so many times, NaN not counting; 0 where all are."""
    order = np.argsort(np.where(np.isnan(values), np.inf, values), axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    mass = np.cumsum(np.where(np.isnan(ordered), 0.0, weights[order]), axis=0)
    half = mass[-1:] / 2
    slack = 1e-12 * mass[-1:]
    low = np.argmax(mass >= half - slack, axis=0)[None]
    high = np.argmax(mass > half + slack, axis=0)[None]
    middle = (np.take_along_axis(ordered, low, axis=0) + np.take_along_axis(ordered, high, axis=0))[0] / 2
    return np.where(mass[-1] > 0, middle, 0.0)
