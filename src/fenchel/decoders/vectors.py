"""Decoders of vectors predicted with the linear output kernel."""

from collections.abc import Sequence
from typing import ClassVar, Self

from fenchel._array import Array, Outputs, namespace
from fenchel._check import Interval, Options
from fenchel.decoders.decoder import Decoder, Space
from fenchel.decoders.products import needs_distances
from fenchel.exceptions import IncompatibleError

__all__ = ["Clamp", "Threshold"]

# Scores above which a label is set, from 0.1 to 0.9 in steps of 0.04; 0.5, halfway between the labels, is one of them.
_THRESHOLDS = tuple(sorted((k / 50 for k in range(5, 46, 2)), key=lambda threshold: abs(threshold - 0.5)))


def _needs_features(decoder: Decoder, representation: Space) -> None:
    needs_distances(decoder, representation)
    if not representation.has_points:
        raise IncompatibleError(
            f"{type(decoder).__name__} decodes vectors coordinate by coordinate, which requires "
            "output_kernel='linear'. Use Candidates() or TrainingSet()."
        )


class Threshold(Decoder):
    """0/1 label vectors: 1 where the prediction exceeds a threshold; 0.5 gives the nearest vector.

    Parameters
    ----------
    threshold : float or "auto", default=0.5
        The threshold. In a search that decodes held-out samples, such as ``StructuredPredictorCV``, ``"auto"`` chooses
        the one with the smallest task loss; elsewhere it means 0.5.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import StructuredPredictor
    >>> from fenchel.decoders import Threshold
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> Y = (np.hstack([X, 3 - X]) > 1.5).astype(int)
    >>> model = StructuredPredictor(output_kernel="linear", decoder=Threshold(), lam=1e-4).fit(X, Y)
    >>> model.predict(X[[0, -1]]).tolist()
    [[0, 1], [1, 0]]
    """

    keeps_dtype = True
    _limits: ClassVar[dict[str, Interval | Options]] = {
        "threshold": Interval(-float("inf"), float("inf"), also=("auto",))
    }

    def __init__(self, threshold: float | str = 0.5) -> None:
        self.threshold = threshold

    def options(self) -> Sequence[Decoder]:
        """Return decoders with thresholds around 0.5, nearest first."""
        return [Threshold(threshold) for threshold in _THRESHOLDS] if self.threshold == "auto" else (self,)

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Check that the coordinates are those of the vectors."""
        _needs_features(self, representation)
        return super().fit(Y, representation)

    def decode(self, coordinates: Array) -> Array:
        """Return 0/1 vectors in the dtype of the predictions."""
        threshold = 0.5 if isinstance(self.threshold, str) else self.threshold
        return namespace(coordinates).astype(coordinates > threshold, coordinates.dtype)


class Clamp(Decoder):
    """Vectors in a box: the prediction clipped to the bounds, which is the nearest point of the box.

    Parameters
    ----------
    low, high : float, default=0.0 and 1.0
        Bounds of every coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import StructuredPredictor
    >>> from fenchel.decoders import Clamp
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = StructuredPredictor(output_kernel="linear", decoder=Clamp(0.0, 1.0), lam=1e-4).fit(X, X / 3)
    >>> predicted = model.predict(np.linspace(-1, 4, 50)[:, None])
    >>> bool(predicted.min() >= 0), bool(predicted.max() <= 1)
    (True, True)
    """

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        self.low = low
        self.high = high

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Check that the coordinates are those of the vectors, and the bounds."""
        _needs_features(self, representation)
        if not self.low <= self.high:
            raise ValueError(f"Clamp needs low <= high. Got {self.low!r} and {self.high!r}.")
        return super().fit(Y, representation)

    def decode(self, coordinates: Array) -> Array:
        """Return the predictions clipped to the bounds."""
        return namespace(coordinates).clip(coordinates, self.low, self.high)
