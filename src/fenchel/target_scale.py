"""Outputs brought to one scale before a search, and predictions brought back."""

from dataclasses import dataclass

import numpy as np

from fenchel._array import Array, as_like, host
from fenchel._check import Options, check_array, check_parameter
from fenchel._statistics import weighted_median

__all__ = ["TargetScale", "standardized_targets"]

_NORMAL = 1.482602218505602  # standard deviation of a normal law over its median absolute deviation


@dataclass(frozen=True)
class TargetScale:
    """A centre and positive scales of vector outputs."""

    center: np.ndarray
    scale: np.ndarray

    def encode(self, Y: Array) -> Array:
        """Return the outputs less the centre, in units of the scales."""
        return (Y - as_like(self.center, Y)) / as_like(self.scale, Y)

    def decode(self, targets: Array) -> Array:
        """Return standardised outputs in their own units."""
        return targets * as_like(self.scale, targets) + as_like(self.center, targets)


def standardized_targets(
    Y: Array, weights: Array | None = None, by: str = "column", robust: bool = False
) -> TargetScale:
    """Return the centre and the scales of vector outputs.

    Parameters
    ----------
    Y : array of shape (n, p)
        Outputs.
    weights : array of shape (n,) or None, default=None
        How often each sample counts.
    by : {"column", "all"}, default="column"
        Whether every output has its own scale, or all have one, as the points of a curve do.
    robust : bool, default=False
        Median and median absolute deviation instead of mean and standard deviation. An output of which more than half
        is one number has a null median deviation: its standard deviation is taken.

    Returns
    -------
    scale : TargetScale
        What encodes outputs and decodes predictions; a constant output has scale 1.
    """
    check_parameter("standardized_targets", "by", by, Options(("column", "all")))
    values = host(check_array(Y, "Y")).astype(np.float64)
    counts = np.ones(len(values)) if weights is None else host(weights).astype(np.float64)
    center = weighted_median(values, counts) if robust else np.average(values, axis=0, weights=counts)
    deviations = np.sqrt(np.average((values - np.average(values, axis=0, weights=counts)) ** 2, axis=0, weights=counts))
    if robust:
        medians = _NORMAL * weighted_median(np.abs(values - center), counts)
        deviations = np.where(medians > 0, medians, deviations)
    if by == "all":
        deviations = np.full_like(deviations, np.sqrt(np.mean(deviations**2)))
    size = 64 * np.finfo(np.float64).eps * np.max(np.abs(values), axis=0)
    return TargetScale(center, np.where(deviations > size, deviations, 1.0))
