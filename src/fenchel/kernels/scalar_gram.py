"""Gram matrices of scalar kernels as operators, n × n."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

from fenchel._array import Array, namespace, symmetric_eigh
from fenchel.kernels.spectrum import largest_eigenvalue

__all__ = ["DenseGram", "GramOperator"]


class GramOperator(ABC):
    """The Gram matrix of a scalar kernel: all that a solver may ask of it."""

    shape: tuple[int, int]

    @abstractmethod
    def matmul(self, A: Array) -> Array:
        """Return K A."""

    @abstractmethod
    def diag(self) -> Array:
        """Return the diagonal, shape (n,)."""

    @abstractmethod
    def rows(self, index: Any) -> Array:
        """Return some rows as an array."""

    @abstractmethod
    def norm(self) -> float:
        """Return an upper bound of the operator norm, tight to 0.1 %."""

    @abstractmethod
    def eigh(self) -> tuple[Array, Array]:
        """Return eigenvalues (non-negative) and eigenvectors."""

    @abstractmethod
    def scaled(self, root: Array) -> "GramOperator":
        """Return diag(root) K diag(root); ``root`` has shape (n, 1)."""


class DenseGram(GramOperator):
    """A Gram matrix held in memory; its eigendecomposition is computed once."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.shape = (matrix.shape[0], matrix.shape[1])

    def matmul(self, A: Array) -> Array:
        """Return K A."""
        return self.matrix @ A

    def diag(self) -> Array:
        """Return the diagonal."""
        return namespace(self.matrix).linalg.diagonal(self.matrix)

    def rows(self, index: Any) -> Array:
        """Return some rows."""
        return self.matrix[index, :]

    def norm(self) -> float:
        """Return the largest eigenvalue by Lanczos, rounded up."""
        return self._norm

    def eigh(self) -> tuple[Array, Array]:
        """Return eigenvalues, clipped at zero, and eigenvectors."""
        return self._eigh

    def scaled(self, root: Array) -> "DenseGram":
        """Return diag(root) K diag(root)."""
        return DenseGram(root * self.matrix * root.T)

    @cached_property
    def _eigh(self) -> tuple[Array, Array]:
        return symmetric_eigh(self.matrix)

    @cached_property
    def _norm(self) -> float:
        return largest_eigenvalue(self.matmul, (self.shape[0], 1), self.matrix)
