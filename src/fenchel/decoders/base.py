"""The protocol of a decoder."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from fenchel._array import Array, Outputs
from fenchel._component import Component
from fenchel.exceptions import IncompatibleError

__all__ = ["Decoder"]


class Space(Protocol):
    """What a decoder sees of the outputs: a representation, or the task loss of the loss trick and its outputs.

    A decoder asks for what it needs, and refuses a space that lacks it.
    """

    outputs_: Outputs  # those of the training sample
    is_pairwise: bool  # whether each prediction has candidates of its own
    has_points: bool  # whether coordinates are values of their own

    def weights(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the weights of the training outputs, (m, n)."""

    def distances(self, weights: np.ndarray, outputs: Outputs, norms: Array | None = None) -> np.ndarray:
        """Return how far candidates are from predictions, (m, C), up to a number for each prediction."""

    def distance_blocks(
        self, weights: np.ndarray, outputs: Outputs, norms: Array | None = None
    ) -> Iterator[np.ndarray]:
        """Yield the distances, some candidates at a time."""

    def paired_distances(
        self, weights: np.ndarray, sets: Sequence[Outputs], norms: Sequence[Array | None]
    ) -> list[np.ndarray]:
        """Return how far each prediction is from candidates of its own."""

    def magnitudes(self, weights: np.ndarray, outputs: Outputs) -> np.ndarray:
        """Return the size of the terms that make up each distance, for its round-off."""


class Decoder(Component, ABC):
    """Finds the object whose image in the output space is nearest to a prediction.

    The space is a representation of outputs, or the task loss and the training outputs of the loss trick; coordinates
    are then weights on the training outputs.
    """

    keeps_dtype: ClassVar[bool] = False  # whether decoded objects are values that the training outputs have too
    representation_: Space

    def options(self) -> "Sequence[Decoder]":
        """Return the decoders that a search chooses from; one with a parameter ``"auto"`` has several."""
        return (self,)

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Learn what is needed from the training outputs and their representation."""
        self.representation_ = representation
        return self

    @abstractmethod
    def decode(self, coordinates: Array) -> Outputs:
        """Return one object for each prediction, given in the coordinates of the representation, (m, p)."""

    def _task_loss(self, representation: Space, *methods: str, what: str) -> Any:
        """Return the task loss of the loss trick if it has one of these methods, else raise."""
        loss = getattr(representation, "task_loss", None)
        if not any(hasattr(loss, name) for name in methods):
            came = "no task loss" if loss is None else repr(loss)
            raise IncompatibleError(
                f"{type(self).__name__} is for LossTrickPredictor with a task loss of {what}. Got {came}."
            )
        return loss
