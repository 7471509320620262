"""Standardisation of outputs before a search, and the inverse for predictions."""

from dataclasses import dataclass

import numpy as np

from fenchel._array import Array, as_like, host
from fenchel._check import Options, check_array, check_parameter
from fenchel._statistics import weighted_median, weighted_quantile
from fenchel.model.logarithms import Logarithms

__all__ = ["TargetScale", "standardized_targets"]

_LEVEL, _NORMAL = 0.8, 1.2815515655446004  # quantile level of deviations, and that quantile of |N(0, 1)|
_CLIP = 3.0  # deviations at which values are clipped to compute the centre


@dataclass(frozen=True)
class TargetScale:
    """Centre and positive scales of vector outputs, or of their logarithms."""

    center: np.ndarray
    scale: np.ndarray
    logarithms: Logarithms | None = None

    def encode(self, Y: Array) -> Array:
        """Return the centred outputs in units of the scales."""
        Y = Y if self.logarithms is None else self.logarithms.encode(Y)
        return (Y - as_like(self.center, Y)) / as_like(self.scale, Y)

    def decode(self, targets: Array) -> Array:
        """Return standardised outputs in their original units; of logarithms, the means of the outputs."""
        rows = self._rows(targets)
        return rows if self.logarithms is None else self.logarithms.decode(rows)

    def restored(self, targets: Array) -> Array:
        """Return the outputs that ``encode`` turns into these."""
        rows = self._rows(targets)
        return rows if self.logarithms is None else self.logarithms.restored(rows)

    def slopes(self, targets: Array) -> Array:
        """Return the derivatives of what ``decode`` returns, (n, p)."""
        scale = as_like(self.scale, targets)
        return 0 * targets + scale if self.logarithms is None else self.logarithms.slopes(self._rows(targets)) * scale

    def _rows(self, targets: Array) -> Array:
        return targets * as_like(self.scale, targets) + as_like(self.center, targets)


def standardized_targets(
    Y: Array, weights: Array | None = None, by: str = "column", robust: bool = False
) -> TargetScale:
    """Compute the centre and the scales of vector outputs.

    Parameters
    ----------
    Y : array of shape (n, p)
        Outputs; NaN means not observed.
    weights : array of shape (n,) or None, default=None
        Sample weights.
    by : {"column", "all"}, default="column"
        Whether every output has its own scale, or all share one, as the points of a curve do.
    robust : bool, default=False
        Whether to use the median and the median absolute deviation instead of mean and standard deviation. If more than
        half of the values of an output are equal, the median deviation is zero and the standard deviation is used.

    Returns
    -------
    scale : TargetScale
        Encodes outputs and decodes predictions; a constant output has scale 1.
    """
    check_parameter("standardized_targets", "by", by, Options(("column", "all")))
    values = host(Y).astype(np.float64)
    seen = ~np.isnan(values)
    check_array(np.where(seen, values, 0.0), "Y")
    counts = np.ones(len(values)) if weights is None else host(weights).astype(np.float64)
    if seen.all():
        center, deviations, size = _moments(values, counts, robust)
    else:
        columns = [
            _moments(column[known, None], counts[known], robust) for column, known in zip(values.T, seen.T, strict=True)
        ]
        center, deviations, size = np.hstack(columns)
    if by == "all":
        deviations = np.full_like(deviations, np.sqrt(np.mean(deviations**2)))
    return TargetScale(center, np.where(deviations > size, deviations, 1.0))


def _moments(values: np.ndarray, counts: np.ndarray, robust: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the centre, the deviations and the round-off of the columns of complete values, each (p,)."""
    center = np.average(values, axis=0, weights=counts)
    deviations = np.sqrt(np.average((values - center) ** 2, axis=0, weights=counts))
    if robust:
        center = weighted_median(values, counts)
        sizes = np.array([weighted_quantile(column, counts, _LEVEL) for column in np.abs(values - center).T]) / _NORMAL
        deviations = np.where(sizes > 0, sizes, deviations)
        kept = np.clip(values, center - _CLIP * deviations, center + _CLIP * deviations)
        center = np.average(kept, axis=0, weights=counts)
    return center, deviations, 64 * np.finfo(np.float64).eps * np.max(np.abs(values), axis=0)
