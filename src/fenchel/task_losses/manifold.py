"""Losses of a distance on a manifold, and the base class of manifolds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders import Decoder, RiemannianDescent
from fenchel.task_losses.task_loss import TaskLoss

__all__ = ["Manifold", "ManifoldLoss", "PowerLoss"]

NEAR = 1e-12  # distances below this have no direction


class Manifold(ABC):
    """Manifold whose points are array rows, with tangent vectors in coordinates in which lengths are Euclidean."""

    @abstractmethod
    def check(self, Z: Outputs, name: str) -> np.ndarray:
        """Return points as floating-point numbers, or raise with the name of the loss."""

    @abstractmethod
    def distance(self, Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the geodesic distances of points, broadcasting over all but the axes of a point."""

    @abstractmethod
    def view(self, Y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        r"""Return the distances from each y to Z, (m, n), and a function that combines the directions towards Z.

        The function takes :math:`c` of shape (m, n) and returns the tangent vectors :math:`\sum_i c_i u_i`, one for
        each y, where :math:`u_i` is the unit vector from y towards :math:`z_i`, or zero if there is none.
        """

    @abstractmethod
    def exp(self, Y: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the points reached from Y along the tangent vectors V."""

    @abstractmethod
    def guess(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return a point near the weighted mean of Z for each row of weights, as the start of a search."""

    def landmarks(self, Z: np.ndarray) -> np.ndarray:
        """Return the points at which a weighted sum of losses of Z may have a minimum without a gradient."""
        return Z

    def region(self, Z: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return the projection on the set of points that may be predicted."""
        return lambda Y: Y


class ManifoldLoss(TaskLoss, ABC):
    r"""Loss of the geodesic distance, :math:`\Delta(y, z) = \varphi(d(y, z))`, with :math:`\varphi` non-decreasing.

    A new loss implements ``value`` and ``slope`` and sets its ``manifold``.
    """

    manifold: ClassVar[Manifold]

    @abstractmethod
    def value(self, distances: np.ndarray, Z: np.ndarray) -> np.ndarray:
        r"""Return :math:`\varphi` at distances to points Z."""

    @abstractmethod
    def slope(self, distances: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return its derivatives."""

    def check(self, Z: Outputs) -> Outputs:
        """Check that outputs are points of the manifold."""
        return self.manifold.check(Z, type(self).__name__)

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the losses of all pairs."""
        Y, Z = np.asarray(Y, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        return self.value(self.manifold.distance(Y[:, None], Z[None]), Z)

    def descent(
        self, weights: np.ndarray, Y: np.ndarray, Z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        r"""Return the quantities for a descent step, at one point y for each row of weights.

        Returns
        -------
        values : array of shape (m,)
            :math:`\sum_i w_i \varphi(d_i)`.
        gradients : array of shape (m, ...)
            In the coordinates of the tangent space.
        steps : array of shape (m,)
            Initial step length as a factor of the gradient. It is the step of Weiszfeld, to the minimum of the squares
            :math:`|w_i| \varphi'(d_i) / d_i \cdot d^2 / 2`.
        sizes : array of shape (m,)
            :math:`\sum_i |w_i| \varphi(d_i)`, with which gains are compared.
        """
        distances, pull = self.manifold.view(Y, Z)
        losses, slopes = self.value(distances, Z), self.slope(distances, Z)
        values, sizes = np.sum(weights * losses, axis=1), np.sum(np.abs(weights) * losses, axis=1)
        far = distances > NEAR
        bends = np.where(far, slopes, 0.0) / np.where(far, distances, 1.0)
        total = np.sum(np.abs(weights) * bends, axis=1)
        return values, -pull(weights * slopes), 1 / np.where(total > 0, total, 1.0), sizes

    def decoder(self) -> Decoder:
        """Return a descent on the manifold from several starts."""
        return RiemannianDescent()


class PowerLoss(ManifoldLoss, ABC):
    """Power between 1 and 2 of the geodesic distance.

    Examples
    --------
    >>> from fenchel.task_losses import PowerLoss, SphereGeodesic
    >>> issubclass(SphereGeodesic, PowerLoss)
    True
    """

    power: float

    _limits: ClassVar[dict[str, Interval | Options]] = {"power": Interval(1, 2, "both")}

    def value(self, distances: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return powers of distances."""
        return np.asarray(distances**self.power)

    def slope(self, distances: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return their derivatives."""
        return np.asarray(self.power * distances ** (self.power - 1))
