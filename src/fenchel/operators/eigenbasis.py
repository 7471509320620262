"""Eigenbases of Gram operators, from which any function of an operator follows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from fenchel._array import Array, namespace

__all__ = ["CoupledBasis", "Eigenbasis", "KroneckerBasis"]

Function = Callable[[Array], Array]  # of the eigenvalues (r, p); broadcasts with arrays (n, p) or (n, B, p)


class Factor(Protocol):
    """The interface that a basis needs from another operator in a product."""

    @property
    def terms(self) -> tuple[tuple[Any, Any], ...]:
        """The operator as a sum of Kronecker products."""

    def matmul(self, A: Array) -> Array:
        """Return C A."""


class Scalar(Protocol):
    """The interface that a basis needs from another operator on rows."""

    def matmul(self, A: Array) -> Array:
        """Return C A."""


class Eigenbasis(ABC):
    """Eigenvectors of an operator K, either all or only those outside its null space."""

    @property
    @abstractmethod
    def values(self) -> Array:
        """Eigenvalues, (r, p) or (r, 1)."""

    @abstractmethod
    def function(self, f: Function) -> Callable[[Array], Array]:
        """Return ``B -> f(K) B``."""

    @abstractmethod
    def left_out(self, f: Function, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i for every row i, with W = f(K), from which leave-one-out residuals follow."""

    @abstractmethod
    def images(self, cross: Factor, B: Array) -> Callable[[Function], Array]:
        """Return ``f -> C f(K) B``, where C is the operator between other samples and those of K."""


@dataclass(frozen=True)
class KroneckerBasis(Eigenbasis):
    """The eigenbasis of K ⊗ M, with one orthogonal matrix on each side."""

    left: Array  # (n, r), with r < n if K is rank-deficient
    left_values: Array  # (r,)
    right: Array | None = None  # (p, p); None: the columns themselves
    right_values: Array | None = None  # (p,); None: all one
    left_squares: Array | None = None  # (r,), squared norms of the columns of left; None: all one

    @property
    def values(self) -> Array:
        """Products of the eigenvalues of both sides."""
        column = self.left_values[:, None]
        return column if self.right_values is None else column * self.right_values

    def function(self, f: Function) -> Callable[[Array], Array]:
        """Return B -> U (f(S) ∘ U' B Q) Q' or, for a thin basis, f(0) B + U ((f(S) - f(0)) ∘ U' B Q) Q'."""
        values = self.values
        weights = f(values)
        if self.left.shape[1] == self.left.shape[0] and self.left_squares is None:
            return lambda B: self._back(weights * self._turned(B))
        at_zero = f(namespace(values).zeros_like(values[:1, :1]))
        weights = self._normed(weights - at_zero)
        return lambda B: at_zero * B + self._back(weights * self._turned(B))

    def left_out(self, f: Function, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i for every row."""
        values = self.values
        at_zero = f(namespace(values).zeros_like(values[:1, :1]))
        a = duals if self.right is None else duals @ self.right
        residuals = a / (at_zero + self.left**2 @ self._normed(f(values) - at_zero))
        return residuals if self.right is None else residuals @ self.right.T

    def images(self, cross: Factor, B: Array) -> Callable[[Function], Array]:
        """Transform C and B once: every function then takes one product. C vanishes on the null space of K."""
        turned, products = self._turned(B), cross.terms[0][0].matmul(self.left)
        turned = turned if self.right_values is None else turned * self.right_values

        def image(f: Function) -> Array:
            found = products @ (self._normed(f(self.values)) * turned)
            return found if self.right is None else found @ self.right.T

        return image

    def columns(self, cross: Scalar, f: Function) -> Iterator[Array]:
        """Yield C f(K t), (m, n), for each eigenvalue t of M, or once for all; C vanishes on the null space of K."""
        products, filters = cross.matmul(self.left), self._normed(f(self.values))
        for k in range(filters.shape[1]):
            yield (products * filters[:, k]) @ self.left.T

    def _normed(self, weights: Array) -> Array:
        if self.left_squares is None:
            return weights
        return weights / namespace(weights).reshape(self.left_squares, (-1, *(1,) * (weights.ndim - 1)))

    def _turned(self, B: Array) -> Array:
        turned = times(self.left.T, B)
        return turned if self.right is None else turned @ self.right

    def _back(self, turned: Array) -> Array:
        image = times(self.left, turned)
        return image if self.right is None else image @ self.right.T


@dataclass(frozen=True)
class CoupledBasis(Eigenbasis):
    """The eigenbasis of a general operator on n × p arrays, for small n p."""

    vectors: Array
    flat_values: Array
    n_outputs: int

    @property
    def values(self) -> Array:
        """Eigenvalues in the shape of the arrays, (n, p)."""
        return namespace(self.flat_values).reshape(self.flat_values, (-1, self.n_outputs))

    def function(self, f: Function) -> Callable[[Array], Array]:
        """Return B -> V (f(S) ∘ V' B), with B as one column per problem."""
        weights = f(self.values)
        return lambda B: self._product(self.vectors, weights * self._product(self.vectors.T, B))

    def left_out(self, f: Function, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i for every row."""
        xp, (n, p) = namespace(duals), duals.shape
        rows = xp.reshape(self.vectors, (n, p, n * p))
        blocks = (rows * xp.reshape(f(self.values), (1, 1, -1))) @ xp.permute_dims(rows, (0, 2, 1))
        return xp.linalg.solve(blocks, duals[:, :, None])[:, :, 0]

    def images(self, cross: Factor, B: Array) -> Callable[[Function], Array]:
        """Apply f(K) to B, then C."""
        return lambda f: cross.matmul(self.function(f)(B))

    def _product(self, matrix: Array, A: Array) -> Array:
        xp = namespace(A)
        if A.ndim == 2:
            return xp.reshape(matrix @ xp.reshape(A, (-1, 1)), A.shape)
        n, count, p = A.shape
        flat = matrix @ xp.reshape(xp.permute_dims(A, (0, 2, 1)), (n * p, count))
        return xp.permute_dims(xp.reshape(flat, (n, p, count)), (0, 2, 1))


def times(matrix: Array, A: Array) -> Array:
    """Return the product along the first axis of an (n, p) or (n, B, p) array."""
    if A.ndim == 2:
        return matrix @ A
    xp = namespace(A)
    return xp.reshape(matrix @ xp.reshape(A, (A.shape[0], -1)), (-1, *A.shape[1:]))
