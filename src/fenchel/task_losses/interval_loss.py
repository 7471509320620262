"""Base classes of losses of numbers in an interval."""

import math
from abc import ABC, abstractmethod

import numpy as np

from fenchel._array import Outputs
from fenchel.decoders import Decoder, ScalarMinimum
from fenchel.task_losses.embedding import Embedding
from fenchel.task_losses.task_loss import TaskLoss, columns, numbers

__all__ = ["IntervalLoss", "PiecewiseLinear", "SmoothLoss"]

_GRID = 1001  # points at which slopes are evaluated: what lies between them adds a thousandth of L times the curvature


class IntervalLoss(TaskLoss, ABC):
    """Loss of numbers in an interval, summed over the entries of a row."""

    @abstractmethod
    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the losses of predictions y against z, elementwise, with broadcasting."""

    def check(self, Z: Outputs) -> Outputs:
        """Check that outputs are numbers."""
        return numbers(Z, type(self).__name__)

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the losses, summed over columns."""
        Y, Z = columns(Y), columns(Z)
        losses = np.zeros((len(Y), len(Z)))
        for y, z in zip(Y.T, Z.T, strict=True):
            losses += self.value(y[:, None], z[None, :])
        return losses

    def __call__(self, truth: Outputs, predicted: Outputs) -> np.ndarray:
        """Return the loss of each prediction, summed over columns."""
        truth, predicted = columns(self.check(truth)), columns(self.check(predicted))
        if len(truth) != len(predicted):
            raise ValueError(
                f"truth and predicted must have the same number of samples. Got {len(truth)} and {len(predicted)}."
            )
        if truth.shape != predicted.shape:
            raise ValueError(f"truth and predicted must have the same shape. Got {truth.shape} and {predicted.shape}.")
        return np.sum(self.value(predicted, truth), axis=1)

    def decoder(self) -> Decoder:
        """Return a global search on the interval of the training outputs."""
        return ScalarMinimum()

    @abstractmethod
    def steepest(self, low: float, high: float, z: np.ndarray) -> float:
        """Return a bound on the absolute slopes in y between ``low`` and ``high``, for all z."""

    def embedding(self, Z: Outputs) -> Embedding:
        r"""Return bounds for predictions between the smallest and the largest of all outputs, which are in Z.

        With m the middle of an interval of length L, :math:`\Delta(y, z) = \Delta(m, z) + \int_m^y \Delta'(t, z) \, dt`
        is a product of :math:`(u, \pm 1_{[m, y]})` and :math:`(\Delta(m, z) / u, \Delta'(\cdot, z))` for any u. For the
        best u the product of their norms is at most :math:`M + C L / \sqrt 2`, where M bounds the losses of m and C the
        slopes. Columns add.
        """
        total = 0.0
        for z in columns(self.check(Z)).T:
            low, high = float(np.min(z)), float(np.max(z))
            middle = float(np.max(np.abs(self.value(np.full(1, (low + high) / 2), z))))
            total += middle + self.steepest(low, high, z) * (high - low) / math.sqrt(2)
        return Embedding(1.0, math.sqrt(2 * total))


class SmoothLoss(IntervalLoss, ABC):
    """Smooth loss with a bounded second derivative, which makes a grid search global."""

    @abstractmethod
    def slope(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the derivatives with respect to y."""

    @abstractmethod
    def bend(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the second derivatives with respect to y."""

    @abstractmethod
    def bend_bounds(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a lower and an upper bound on the second derivative for each z, shape (n,) each."""

    def steepest(self, low: float, high: float, z: np.ndarray) -> float:
        """Return the largest slope on a grid, plus what the second derivative adds between its points."""
        points = np.linspace(low, high, _GRID)[:, None]
        slopes, bends = np.max(np.abs(self.slope(points, z)), axis=0), np.max(np.abs(self.bend_bounds(z)), axis=0)
        return float(np.max(slopes + bends * (high - low) / (2 * (_GRID - 1))))


class PiecewiseLinear(IntervalLoss, ABC):
    """Piecewise linear loss, whose weighted sums have a minimum at a knot or at an end."""

    @abstractmethod
    def knots(self, z: np.ndarray) -> np.ndarray:
        """Return the points at which the slope changes, of any shape."""

    def steepest(self, low: float, high: float, z: np.ndarray) -> float:
        """Return the largest slope between two neighbouring knots of each z, which is exact."""
        steepest = 0.0
        for number in np.unique(z):
            knots = self.knots(np.full(1, number))
            points = np.unique(np.clip(np.concatenate([[low, high], knots]), low, high))
            slopes = np.diff(self.value(points, np.full(1, number))) / np.diff(points)
            steepest = max(steepest, float(np.max(np.abs(slopes), initial=0.0)))
        return steepest
