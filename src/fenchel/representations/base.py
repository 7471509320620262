"""Base class of representations, which map outputs to orthonormal coordinates."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from fenchel._array import Array, Index, Outputs, namespace
from fenchel._check import check_memory
from fenchel._component import Component
from fenchel.exceptions import IncompatibleError
from fenchel.kernels.base import OutputOperator

__all__ = ["Representation"]


class Representation(Component, ABC):
    """Representation of outputs by coordinates whose Euclidean product is the inner product of the output space.

    After ``fit`` the coordinates of the training outputs are ``targets_``, shape (n, p).
    """

    has_points: ClassVar[bool] = False  # whether coordinates are meaningful values, so the basis must not be rotated
    is_functional: ClassVar[bool] = False  # outputs are curves
    point_scale: Array | None = None  # square roots of the weights, if coordinates are values at weighted points
    observed_: Array | None = None  # (n, p), 0 for missing coordinates of the training outputs
    row_scale_: Array | None = None  # (n, 1), a factor of the coordinates of each training output

    targets_: Array
    weights_: Array | None

    @abstractmethod
    def encode(self, Y: Outputs) -> Array:
        """Return the coordinates of the outputs, shape (n, p)."""

    @abstractmethod
    def decode(self, coordinates: Array) -> Outputs:
        """Return the elements of the output space with these coordinates."""

    def fit(self, Y: Outputs, weights: Array | None = None, operator: OutputOperator | None = None) -> Self:
        """Learn the coordinates from the training outputs; ``weights`` (n,) are sample weights.

        ``operator`` is the output operator, which may determine the basis.
        """
        self.weights_ = weights
        self.targets_ = self.encode(Y)
        return self

    def take(self, Y: Outputs, index: Index) -> Outputs:
        """Return the raw outputs of the selected samples."""
        return namespace(Y).take(Y, index, axis=0)

    def congruence(self, matrix: Array) -> Array:
        """Return the operator with this matrix on the raw outputs in coordinates, (p, p)."""
        raise IncompatibleError(
            f"{type(self).__name__} has no raw coordinates on which a matrix could act. "
            "Use Identity() or Covariance() as the operator."
        )

    def congruence_diagonal(self, values: Array) -> Array:
        """Return the operator with this diagonal on the raw outputs in coordinates, (p,) or (p, p)."""
        return self.congruence(values)

    def covariance(self) -> Array:
        """Return the second moment of the training outputs in coordinates, (p, p)."""
        xp, p = namespace(self.targets_), self.targets_.shape[1]
        what, advice = f"The covariance of {p} outputs", "Use operator=None, or fewer outputs"
        check_memory(32 * p**2, what, advice, like=self.targets_)
        if self.weights_ is None:
            return self.targets_.T @ self.targets_ / self.targets_.shape[0]
        return (self.targets_ * self.weights_[:, None]).T @ self.targets_ / float(xp.sum(self.weights_))
