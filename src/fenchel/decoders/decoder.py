"""Base class of decoders."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from fenchel._array import Array, Outputs
from fenchel._component import Component
from fenchel.exceptions import IncompatibleError

__all__ = ["Decoder"]


class Space(Protocol):
    """The output space of a decoder: a representation, or the task loss of the loss trick and its outputs.

    A decoder uses the parts that it needs and raises if the space lacks one.
    """

    outputs_: Outputs  # of the training sample
    is_pairwise: bool  # whether outputs are given by their Gram matrix
    has_points: bool  # whether coordinates are meaningful values

    def weights(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the weights of the training outputs, (m, n)."""

    def distances(self, weights: np.ndarray, outputs: Outputs, norms: Array | None = None) -> np.ndarray:
        """Return the distances of candidates from predictions, (m, C), up to a constant for each prediction."""

    def distance_blocks(
        self, weights: np.ndarray, outputs: Outputs, norms: Array | None = None
    ) -> Iterator[np.ndarray]:
        """Yield the distances for consecutive blocks of candidates."""

    def paired_distances(
        self, weights: np.ndarray, sets: Sequence[Outputs], norms: Sequence[Array | None]
    ) -> list[np.ndarray]:
        """Return the distances of each prediction from its own candidates."""

    def magnitudes(self, weights: np.ndarray, outputs: Outputs) -> np.ndarray:
        """Return the size of the terms that make up each distance, for its round-off."""


class Decoder(Component, ABC):
    """Find the object whose image in the output space is nearest to a prediction.

    The space is a representation of outputs, or the task loss and the training outputs of the loss trick; coordinates
    are then weights on the training outputs.
    """

    keeps_dtype: ClassVar[bool] = False  # whether decoded objects take values of the training outputs
    representation_: Space

    def options(self) -> "Sequence[Decoder]":
        """Return the decoders that a search chooses from; there are several if a parameter is ``"auto"``."""
        return (self,)

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Prepare the decoder from the training outputs and their representation."""
        self.representation_ = representation
        return self

    @abstractmethod
    def decode(self, coordinates: Array) -> Outputs:
        """Return one object for each prediction, given its coordinates in the representation, (m, p)."""

    def _task_loss(self, representation: Space, *methods: str, what: str) -> Any:
        """Return the task loss of the loss trick if it has one of these methods, else raise."""
        loss = getattr(representation, "task_loss", None)
        if not any(hasattr(loss, name) for name in methods):
            came = "no task loss" if loss is None else repr(loss)
            raise IncompatibleError(
                f"{type(self).__name__} is for LossTrickPredictor with a task loss of {what}. Got {came}."
            )
        return loss
