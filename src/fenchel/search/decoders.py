"""Choice of the decoder by the task loss of held-out samples."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._array import Array, Outputs, as_index, namespace
from fenchel._statistics import ROUND_OFF, ranked
from fenchel.decoders import Decoder

__all__ = ["DecoderChoice"]


@dataclass(frozen=True)
class DecoderChoice:
    """Decoders to choose from, compared by the task loss of decoded held-out predictions.

    As a measure of a search, it returns the losses of the best decoder for the predictions. The decoders of a fold are
    fitted without the outputs of that fold.
    """

    decoders: Sequence[Decoder]  # not fitted
    fitted: list[list[Decoder]]  # one per decoder and fold
    outputs: Outputs
    folds: list[np.ndarray]
    counts: np.ndarray  # sample weights
    coordinates: Callable[[np.ndarray], Array]  # maps predictions to the coordinates that are decoded
    task_loss: Callable[[Any, Any, np.ndarray], np.ndarray]  # function of outputs, decoded outputs and sample weights

    @classmethod
    def of(
        cls,
        decoders: Sequence[Decoder],
        space: Any,
        outputs: Outputs,
        folds: list[np.ndarray],
        counts: np.ndarray,
        coordinates: Callable[[np.ndarray], Array],
        task_loss: Callable[[Any, Any, np.ndarray], np.ndarray],
    ) -> "DecoderChoice":
        """Return the choice among decoders and all of their options."""
        everyone = np.arange(len(outputs))
        options = [option for decoder in decoders for option in decoder.options()]
        known = [_rows(outputs, np.setdiff1d(everyone, fold)) for fold in folds]
        fitted = [[copy(option).fit(part, space) for part in known] for option in options]
        return cls(options, fitted, outputs, folds, counts, coordinates, task_loss)

    def __call__(self, predictions: np.ndarray) -> np.ndarray:
        """Return the task losses (n,) of the best decoder; NaN for samples that no fold holds out."""
        losses = self._losses(predictions)
        return losses[self._best(losses)]

    def best(self, predictions: np.ndarray) -> Decoder:
        """Return the best decoder, not fitted."""
        return self.decoders[self._best(self._losses(predictions)) if len(self.decoders) > 1 else 0]

    def _best(self, losses: np.ndarray) -> int:
        """Return the index of the smallest mean loss, or 0 if the first is not worse by a standard error."""
        seen = ~np.isnan(losses[0])
        weights = self.counts[seen] / np.sum(self.counts[seen])
        gains = losses[0, seen] - losses[:, seen]
        best = int(ranked(losses[:, seen] @ weights)[0])
        gain = float(gains[best] @ weights)
        error = float(((gains[best] - gain) ** 2 @ weights) ** 0.5) / np.sum(seen) ** 0.5
        return best if gain > (1 + ROUND_OFF) * error else 0

    def _losses(self, predictions: np.ndarray) -> np.ndarray:
        losses = np.full((len(self.decoders), len(self.outputs)), np.nan)
        for place, fold in enumerate(self.folds):
            truth, coordinates = _rows(self.outputs, fold), self.coordinates(predictions[fold])
            for row, fitted in zip(losses, self.fitted, strict=True):
                decoded = fitted[place].decode(coordinates)
                row[fold] = np.asarray(self.task_loss(truth, decoded, self.counts[fold]), dtype=np.float64)
        return losses


def _rows(outputs: Outputs, places: np.ndarray) -> Any:
    return namespace(outputs).take(outputs, as_index(places, outputs), axis=0)
