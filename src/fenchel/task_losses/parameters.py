"""What estimators ask of their ``task_loss`` parameter."""

import numpy as np
from sklearn.base import clone

from fenchel import task_losses
from fenchel._component import from_name
from fenchel.task_losses import Delta, LossMatrix, TaskLoss

__all__ = ["as_task_loss"]


def as_task_loss(value: object) -> TaskLoss:
    """Return a new task loss from an instance, a short name, a function of two outputs, or a matrix."""
    value = from_name(value, task_losses, "task_loss")
    if isinstance(value, TaskLoss):
        return clone(value)
    if callable(value):
        return Delta(value)
    if isinstance(value, list | tuple | np.ndarray):
        return LossMatrix(value)
    raise TypeError(
        "The 'task_loss' parameter must be a TaskLoss, a short name, a function delta(y, z) or a matrix of losses. "
        f"Got {value!r} instead."
    )
