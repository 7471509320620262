"""Base class of representations, which map outputs to orthonormal coordinates."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from fenchel._array import Array, Index, Outputs, namespace
from fenchel._component import Component
from fenchel.exceptions import IncompatibleError
from fenchel.kernels.scalar_kernel import OutputOperator
from fenchel.representations.coordinates import Coordinates

__all__ = ["Representation"]


class Representation(Component, ABC):
    """Representation of outputs by coordinates whose Euclidean product is the inner product of the output space.

    ``learn`` returns the coordinates of the training outputs; a fitted representation holds none of them, unless its
    basis is made of training outputs.
    """

    has_points: ClassVar[bool] = False  # whether coordinates are meaningful values, so the basis must not be rotated
    is_functional: ClassVar[bool] = False  # outputs are curves
    is_pairwise: ClassVar[bool] = False  # outputs are given by their Gram matrix

    @abstractmethod
    def encode(self, Y: Outputs) -> Coordinates:
        """Return outputs in coordinates."""

    @abstractmethod
    def decode(self, rows: Array) -> Outputs:
        """Return the elements of the output space with these coordinates, (n, p)."""

    def learn(self, Y: Outputs, weights: Array | None = None, operator: OutputOperator | None = None) -> Coordinates:
        """Learn the basis from the training outputs, and return them in coordinates.

        ``weights`` (n,) are sample weights; ``operator`` is the output operator, which may determine the basis.
        """
        return self.encode(Y)

    def fit(self, Y: Outputs, weights: Array | None = None, operator: OutputOperator | None = None) -> Self:
        """Learn the basis from the training outputs; see ``learn``."""
        self.learn(Y, weights, operator)
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

    @staticmethod
    def _on_columns(matrix: Array, count: int) -> Array:
        """Return a matrix, or a diagonal, that acts on columns of outputs; raise unless their number is right."""
        if matrix.shape[0] != count:
            raise ValueError(
                f"The operator must act on the {count} output columns of Y. Got one of shape {tuple(matrix.shape)} "
                "instead."
            )
        return matrix

    def congruence_diagonal(self, values: Array) -> Array:
        """Return the operator with this diagonal on the raw outputs in coordinates, (p,) or (p, p)."""
        return self.congruence(values)
