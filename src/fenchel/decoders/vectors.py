"""Decoders of vectors that are predicted as such, with the linear output kernel."""

from typing import ClassVar, Self

from fenchel._array import Array, Outputs, namespace
from fenchel._check import Interval, Options
from fenchel.decoders.base import Decoder, Space
from fenchel.exceptions import IncompatibleError

__all__ = ["Clamp", "Threshold"]


def _needs_features(decoder: Decoder, representation: Space) -> None:
    if not representation.has_points:
        raise IncompatibleError(
            f"{type(decoder).__name__} decodes vectors coordinate by coordinate, which takes output_kernel='linear'. "
            "Use Candidates() or TrainingSet()."
        )


class Threshold(Decoder):
    """0/1 label vectors: 1 where the prediction is above a threshold; the nearest vector of all for 0.5.

    Parameters
    ----------
    threshold : float, default=0.5
        The threshold.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"threshold": Interval(-float("inf"), float("inf"))}

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Look whether the coordinates are those of the vectors."""
        _needs_features(self, representation)
        return super().fit(Y, representation)

    def decode(self, coordinates: Array) -> Array:
        """Return 0/1 vectors of the dtype of the predictions."""
        return namespace(coordinates).astype(coordinates > self.threshold, coordinates.dtype)


class Clamp(Decoder):
    """Vectors of a box: the prediction, cut to the bounds; the nearest point of the box.

    Parameters
    ----------
    low, high : float, default=0.0 and 1.0
        Bounds of every coordinate.
    """

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        self.low = low
        self.high = high

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Look whether the coordinates are those of the vectors."""
        _needs_features(self, representation)
        if not self.low <= self.high:
            raise ValueError(f"Clamp needs low <= high. Got {self.low!r} and {self.high!r}.")
        return super().fit(Y, representation)

    def decode(self, coordinates: Array) -> Array:
        """Return the predictions cut to the bounds."""
        return namespace(coordinates).clip(coordinates, self.low, self.high)
