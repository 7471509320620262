"""The protocol of a decoder."""

from abc import ABC, abstractmethod
from typing import Any, Self

from fenchel._array import Array, Outputs
from fenchel._component import Component
from fenchel.exceptions import IncompatibleError

__all__ = ["Decoder"]


class Decoder(Component, ABC):
    """Finds the object whose image in the output space is nearest to a prediction.

    The space is a representation of outputs, or the task loss and the training outputs of the loss trick; coordinates
    are then weights on the training outputs.
    """

    representation_: Any

    def fit(self, Y: Outputs, representation: Any) -> Self:
        """Learn what is needed from the training outputs and their representation."""
        self.representation_ = representation
        return self

    @abstractmethod
    def decode(self, coordinates: Array) -> Outputs:
        """Return one object for each prediction, given in the coordinates of the representation, (m, p)."""

    def _task_loss(self, representation: Any, *methods: str, what: str) -> Any:
        """Return the task loss of the loss trick if it has one of these methods, else raise."""
        loss = getattr(representation, "task_loss", None)
        if not any(hasattr(loss, name) for name in methods):
            came = "no task loss" if loss is None else repr(loss)
            raise IncompatibleError(
                f"{type(self).__name__} is for LossTrickPredictor with a task loss of {what}. Got {came}."
            )
        return loss
