"""The centre of a sample of curves, estimated smoothly where points are scattered."""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator, make_smoothing_spline

from fenchel._statistics import weighted_median, weighted_quantile
from fenchel.datasets.functional import Curves

__all__ = ["CurveCenter", "channel_scales"]

_LEVEL, _NORMAL = 0.8, 1.2815515655446004  # quantile of deviations, and that of the modulus of a normal variable
_FEWEST = 5  # points that a smoothing spline needs
_CLOSE = 1 / 200  # points nearer than this share of the domain are one knot


@dataclass(frozen=True)
class CurveCenter:
    """A function known at the points of a grid: values (m, channels), between them a monotone cubic interpolation."""

    grid: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, curves: Curves, values: np.ndarray, weights: np.ndarray, kind: str) -> "CurveCenter":
        """Return the mean or the median of curves (n, m, channels), NaN where they are not observed.

        Where nothing is missing this is the centre at each point. Else each point has curves of its own, and the
        pointwise centre jumps with them: it is smoothed by a cubic smoothing spline, the weight of a point being the
        number of curves seen there, the amount of smoothing chosen by generalised cross-validation.
        """
        seen = ~np.isnan(values)
        mass = np.sum(seen * weights[:, None, None], axis=0)
        if kind == "median":
            centre = weighted_median(values, weights)
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


def channel_scales(values: np.ndarray, weights: np.ndarray, robust: bool) -> np.ndarray:
    """Return one positive scale for each channel of centred curves (n, m, channels), NaN where not observed.

    It is the root mean square, or with ``robust`` a quantile of moduli in its place; 1 for a channel of zeros.
    """
    scales = []
    for c in range(values.shape[2]):
        seen = ~np.isnan(values[:, :, c])
        sizes, counts = np.abs(values[:, :, c][seen]), np.broadcast_to(weights[:, None], seen.shape)[seen]
        size = float(np.sqrt(np.average(sizes**2, weights=counts))) if len(sizes) else 0.0
        if robust and size > 0:
            size = weighted_quantile(sizes, counts, _LEVEL) / _NORMAL or size
        scales.append(size if size > 0 else 1.0)
    return np.array(scales)


def _smoothed(grid: np.ndarray, values: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return a smoothing spline through the points that have mass, at every point of the grid."""
    some = mass > 0
    if not some.any():
        return np.zeros(len(grid))
    points, known = grid[some], values[some]
    if len(points) < _FEWEST or np.ptp(known) == 0:
        return np.interp(grid, points, known)
    first, span = points[0], points[-1] - points[0]
    t, known, counts = _merged((points - first) / span, known, mass[some])
    if len(t) < _FEWEST:
        return np.interp((grid - first) / span, t, known)
    fit = make_smoothing_spline(t, known, counts / np.mean(counts))
    return np.asarray(fit(np.clip((grid - first) / span, t[0], t[-1])))


def _merged(t: np.ndarray, values: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points of [0, 1] with close ones made one, at their centre of mass: near-equal knots are ill-posed."""
    group, start, current = np.zeros(len(t), dtype=int), t[0], 0
    for k, point in enumerate(t):
        if point - start > _CLOSE:
            start, current = point, current + 1
        group[k] = current
    total = np.bincount(group, mass)
    return np.bincount(group, mass * t) / total, np.bincount(group, mass * values) / total, total
