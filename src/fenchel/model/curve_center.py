"""Mean or median curve of a sample, smoothed if values are missing."""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator, make_smoothing_spline

from fenchel._statistics import weighted_median, weighted_quantile
from fenchel.data.functional import Curves

__all__ = ["CurveCenter", "channel_scales"]

_LEVEL, _NORMAL = 0.8, 1.2815515655446004  # quantile of absolute deviations, and its value for a normal variable
_FEWEST = 5  # minimum number of points for a smoothing spline
_LEAST = 1e-8  # weight of a point relative to the mean; below, the spline is ill-conditioned
_CLOSE = 1 / 200  # points closer than this fraction of the domain are merged


@dataclass(frozen=True)
class CurveCenter:
    """A curve with values (m, channels) on a grid and monotone cubic interpolation in between."""

    grid: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, curves: Curves, values: np.ndarray, weights: np.ndarray, kind: str) -> "CurveCenter":
        """Return the mean or median of curves (n, m, channels), ignoring NaN.

        Without missing values this is the pointwise centre. Otherwise different curves are observed at each point, and
        the pointwise centre is not smooth. It is smoothed by a cubic smoothing spline, which weights each point by the
        number of curves observed there; the amount of smoothing is chosen by generalised cross-validation.
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

    def __call__(self, grid: np.ndarray, derivative: int = 0) -> np.ndarray:
        """Return values, or first or second derivatives, at some points, (points, channels); constant beyond the ends.

        The second derivative is that of the cubic spline through the same values: that of the monotone interpolation
        jumps, and does not converge at the extrema.
        """
        if len(self.grid) == 1:
            return np.repeat(self.values * (0.0 if derivative else 1.0), len(grid), axis=0)
        inside = np.clip(grid, self.grid[0], self.grid[-1])
        if derivative:
            through = CubicSpline if derivative == 2 else PchipInterpolator
            return through(self.grid, self.values)(inside, int(derivative)) * (inside == grid)[:, None]
        exact = np.searchsorted(self.grid, inside).clip(max=len(self.grid) - 1)
        is_exact = self.grid[exact] == inside
        return np.where(is_exact[:, None], self.values[exact], PchipInterpolator(self.grid, self.values)(inside))


def channel_scales(values: np.ndarray, weights: np.ndarray, robust: bool) -> np.ndarray:
    """Return a positive scale for each channel of centred curves (n, m, channels), which may have NaN.

    The scale is the root mean square, or with ``robust`` a quantile of the absolute values; 1 for a channel of zeros.
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
    """Fit a smoothing spline to the points with positive weight, and evaluate it on the whole grid."""
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
    fit = make_smoothing_spline(t, known, np.maximum(counts / np.mean(counts), _LEAST))
    return np.asarray(fit(np.clip((grid - first) / span, t[0], t[-1])))


def _merged(t: np.ndarray, values: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merge nearby points of [0, 1] at their centre of mass, since near-equal knots are ill-conditioned."""
    group, start, current = np.zeros(len(t), dtype=int), t[0], 0
    for k, point in enumerate(t):
        if point - start > _CLOSE:
            start, current = point, current + 1
        group[k] = current
    total = np.bincount(group, mass)
    return np.bincount(group, mass * t) / total, np.bincount(group, mass * values) / total, total
