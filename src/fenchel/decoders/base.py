"""The protocol of a decoder."""

from abc import ABC, abstractmethod
from typing import Any, Self

from fenchel._array import Array
from fenchel._component import Component

__all__ = ["Decoder"]


class Decoder(Component, ABC):
    """Finds the object whose image in the output space is nearest to a prediction."""

    representation_: Any

    def fit(self, Y: Any, representation: Any) -> Self:
        """Learn what is needed from the training outputs and their representation."""
        self.representation_ = representation
        return self

    @abstractmethod
    def decode(self, coordinates: Array) -> Any:
        """Return one object for each prediction, given in the coordinates of the representation, (m, p)."""
