"""Gram matrices of scalar kernels as operators, n × m: stored, or as products of features."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

from fenchel._array import Array, eps, namespace, symmetric_eigh
from fenchel.kernels.spectrum import largest_eigenvalue

__all__ = ["DenseGram", "GramOperator", "ThinGram"]


class GramOperator(ABC):
    """The Gram matrix of a scalar kernel: all that a solver may ask of it."""

    shape: tuple[int, int]
    width: int  # numbers that are stored for each row

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
    def block(self, rows: Array, columns: Array) -> "GramOperator":
        """Return the operator between some samples and others."""

    @abstractmethod
    def eigh(self) -> tuple[Array, Array]:
        """Return non-negative eigenvalues (r,) and eigenvectors (n, r); K is zero on the rest of the space."""

    @abstractmethod
    def scaled(self, root: Array) -> "GramOperator":
        """Return diag(root) K diag(root); ``root`` has shape (n, 1)."""

    def norm(self) -> float:
        """Return an upper bound of the operator norm, tight to 0.1 %."""
        return self._norm

    @cached_property
    def _norm(self) -> float:
        return largest_eigenvalue(self.matmul, (self.shape[0], 1), self.diag())


class DenseGram(GramOperator):
    """A Gram matrix held in memory; its eigendecomposition is computed once."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.shape = (matrix.shape[0], matrix.shape[1])
        self.width = matrix.shape[1]

    def matmul(self, A: Array) -> Array:
        """Return K A."""
        return self.matrix @ A

    def diag(self) -> Array:
        """Return the diagonal."""
        return namespace(self.matrix).linalg.diagonal(self.matrix)

    def rows(self, index: Any) -> Array:
        """Return some rows."""
        return self.matrix[index, :]

    def block(self, rows: Array, columns: Array) -> "DenseGram":
        """Return a part of the matrix."""
        xp = namespace(self.matrix)
        return DenseGram(xp.take(xp.take(self.matrix, rows, axis=0), columns, axis=1))

    def eigh(self) -> tuple[Array, Array]:
        """Return eigenvalues, clipped at zero, and eigenvectors."""
        return self._eigh

    def scaled(self, root: Array) -> "DenseGram":
        """Return diag(root) K diag(root)."""
        return DenseGram(root * self.matrix * root.T)

    @cached_property
    def _eigh(self) -> tuple[Array, Array]:
        return symmetric_eigh(self.matrix)


class ThinGram(GramOperator):
    r"""The Gram matrix of D features, :math:`K = \Phi \Psi^\top`, which is never formed.

    Parameters
    ----------
    left : array of shape (n, D)
        Features :math:`\Phi` of the rows.
    right : array of shape (m, D) or None, default=None
        Features :math:`\Psi` of the columns; ``None`` means those of the rows.
    """

    def __init__(self, left: Array, right: Array | None = None) -> None:
        self.left = left
        self.right = left if right is None else right
        self.shape = (left.shape[0], self.right.shape[0])
        self.width = left.shape[1]

    def matmul(self, A: Array) -> Array:
        """Return Phi (Psi' A)."""
        return self.left @ (self.right.T @ A)

    def diag(self) -> Array:
        """Return the products of the rows of both."""
        return namespace(self.left).sum(self.left * self.right, axis=1)

    def rows(self, index: Any) -> Array:
        """Return some rows of the matrix."""
        return self.left[index, :] @ self.right.T

    def block(self, rows: Array, columns: Array) -> "ThinGram":
        """Return the features of some rows and of some columns."""
        xp = namespace(self.left)
        return ThinGram(xp.take(self.left, rows, axis=0), xp.take(self.right, columns, axis=0))

    def eigh(self) -> tuple[Array, Array]:
        """Return the squared singular values of the features that are not null, and the left singular vectors."""
        return self._eigh

    def scaled(self, root: Array) -> "ThinGram":
        """Scale the features."""
        return ThinGram(self.left * root)

    @cached_property
    def _eigh(self) -> tuple[Array, Array]:
        xp = namespace(self.left)
        Q, R = xp.linalg.qr(self.left, mode="reduced")
        U, singular, _ = xp.linalg.svd(R, full_matrices=False)
        cut = float(singular[0]) * eps(singular) * singular.shape[0]  # of R: the length of the sample does not matter
        rank = max(1, int(xp.sum(xp.astype(singular > cut, xp.int64))))
        return singular[:rank] ** 2, Q @ U[:, :rank]
