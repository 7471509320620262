"""Gram operators of operator-valued kernels, on n × p arrays."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fenchel._array import Array, as_index, cholesky_solver, device, host, namespace, row_norms, symmetric_eigh
from fenchel.exceptions import IncompatibleError
from fenchel.kernels.scalar_gram import DenseGram, GramOperator, ThinGram
from fenchel.kernels.spectrum import DenseSpectrum, KroneckerSpectrum, Spectrum, largest_eigenvalue

__all__ = ["DenseGram", "GramOperator", "OperatorGram", "Rotation", "SeparableGram", "SumGram", "ThinGram"]

_DENSE_LIMIT = 4000  # largest n * p whose full matrix is ever formed


class OperatorGram(ABC):
    """The Gram operator of an operator-valued kernel: (KA)_i = sum_j K(x_i, z_j) a_j on n × p arrays."""

    shape: tuple[int, int]  # rows, columns of the sample pairs
    is_batched: ClassVar[bool] = False  # matmul takes (m, B, p) arrays too
    has_entries: ClassVar[bool] = False  # single entries are within reach

    @property
    def width(self) -> int:
        """Numbers that are stored for each row."""
        return self.shape[1]

    @property
    def is_thin(self) -> bool:
        """Whether the operator is a product of fewer features than samples: no n × n matrix is needed."""
        return self.width < min(self.shape)

    @abstractmethod
    def matmul(self, A: Array) -> Array:
        """Return K A, shape (rows, p)."""

    @abstractmethod
    def column(self, index: int, change: Array) -> Array:
        """Return the change of K A when row ``index`` of A changes by ``change`` (p,)."""

    @abstractmethod
    def block_norms(self) -> Array:
        """Return upper bounds of |K(x_i, x_i)|, shape (n,)."""

    @abstractmethod
    def scaled(self, root: Array) -> "OperatorGram":
        """Return the operator with blocks root_i K(x_i, x_j) root_j; ``root`` has shape (n, 1)."""

    @abstractmethod
    def dense(self, p: int) -> Array:
        """Return the (n p) × (n p) matrix."""

    def norm(self, like: Array) -> float:
        """Return an upper bound of the operator norm, tight to 0.1 %; ``like`` is any n × p array."""
        return largest_eigenvalue(self.matmul, like.shape, like)

    def why_no_spectrum(self, like: Array) -> str | None:
        """Return why the eigenbasis is out of reach, or ``None``."""
        size = math.prod(like.shape)
        if size <= _DENSE_LIMIT:
            return None
        return (
            f"the eigendecomposition of this operator-valued kernel needs a {size} × {size} matrix; the limit is "
            f"{_DENSE_LIMIT}. Use a separable kernel, or solver='apgd'."
        )

    def spectrum(self, like: Array) -> Spectrum:
        """Return the eigenbasis; ``like`` is any n × p array."""
        reason = self.why_no_spectrum(like)
        if reason is not None:
            raise IncompatibleError(reason)
        values, vectors = symmetric_eigh(self.dense(like.shape[1]))
        return DenseSpectrum(vectors, namespace(values).reshape(values, like.shape))

    def identity_factor(self) -> Array | None:
        """Return the matrix K if this is K times the identity operator, else ``None``."""
        return None

    def diagonal_factor(self) -> tuple[Array, Array | None] | None:
        """Return K and the eigenvalues of a diagonal operator (``None``: the identity), else ``None``."""
        return None

    def rotated(self, targets: Array) -> "Rotation | None":
        """Return coordinates of the outputs in which the operator is diagonal and its null space is one column.

        ``None`` where there is nothing to gain. Only losses of the row norm may be treated in these coordinates.
        """
        return None

    def ridge_predictor(self, train: Array, test: Array, targets: Array) -> Callable[[float], Array]:
        """Return ``scale -> scale K_FT (1 + scale K_TT)^-1 y_T`` for some samples T and others F.

        These are the predictions of the square loss out of sample.
        """
        xp, (n, p) = namespace(targets), targets.shape
        whole = xp.reshape(self.dense(p), (n, p, n * p))

        def part(rows: Array, columns: Array) -> Array:
            found = xp.reshape(xp.take(whole, rows, axis=0), (-1, n, p))
            return xp.reshape(xp.take(found, columns, axis=1), (rows.shape[0] * p, -1))

        values, vectors = symmetric_eigh(part(train, train))
        turned = vectors.T @ xp.reshape(xp.take(targets, train, axis=0), (-1, 1))
        products = part(test, train) @ vectors
        return lambda scale: xp.reshape(products @ (scale * turned / (1 + scale * values[:, None])), (-1, p))

    def part(self, rows: Array, columns: Array) -> "OperatorGram | None":
        """Return the operator between some samples and others, ``None`` where it cannot be cut."""
        return None

    def entries(self, rows: Array, columns: Array) -> Array:
        """Return the matrix between single coordinates, each given by its sample and its output column."""
        raise IncompatibleError("The entries of this operator-valued kernel are out of reach. Use a separable kernel.")

    def shifted_solver(self, scale: float, shift: float, like: Array) -> Callable[[Array], Array]:
        """Return ``B -> (shift + scale K)^-1 B``; ``like`` is any n × p array."""
        basis = self.spectrum(like)
        weights = 1 / (shift + scale * basis.values)
        return lambda B: basis.apply(weights, 1 / shift, B)


class SeparableGram(OperatorGram):
    """K ⊗ M: the kernel k(x, z) M; ``operator`` is (p, p), (p,) when diagonal, ``None`` for the identity."""

    is_batched = True
    has_entries = True

    def __init__(self, gram: GramOperator, operator: Array | None = None) -> None:
        self.gram = gram
        self.operator = operator
        self.shape = gram.shape

    def matmul(self, A: Array) -> Array:
        """Return K A M."""
        xp, A = namespace(A), self._times_operator(A)
        if A.ndim == 2:
            return self.gram.matmul(A)
        return xp.reshape(self.gram.matmul(xp.reshape(A, (A.shape[0], -1))), (-1, *A.shape[1:]))

    def column(self, index: int, change: Array) -> Array:
        """Return K[:, i] (change M)."""
        row = namespace(change).reshape(change, (1, -1))
        return self.gram.rows(index)[:, None] * self._times_operator(row)

    def block_norms(self) -> Array:
        """Return k(x_i, x_i) |M|."""
        return self.gram.diag() * self._operator_norm

    def scaled(self, root: Array) -> "SeparableGram":
        """Scale the scalar part."""
        return SeparableGram(self.gram.scaled(root), self.operator)

    def dense(self, p: int) -> Array:
        """Return the Kronecker product."""
        K = self.gram.rows(slice(None))
        xp = namespace(K)
        M = self.operator
        if M is None or M.ndim == 1:
            M = xp.eye(p, dtype=K.dtype, device=device(K)) * (1.0 if M is None else M)
        return kronecker(K, M)

    def norm(self, like: Array) -> float:
        """Return |K| |M|."""
        return self.gram.norm() * self._operator_norm

    def why_no_spectrum(self, like: Array) -> str | None:
        """Return ``None``: each side is diagonalised on its own."""
        return None

    def spectrum(self, like: Array) -> Spectrum:
        """Return the eigenbasis of each side."""
        values, left = self.gram.eigh()
        if self.operator is None:
            return KroneckerSpectrum(left, None, values[:, None])
        if self.operator.ndim == 1:
            return KroneckerSpectrum(left, None, values[:, None] * self.operator)
        weights, right = self._operator_eigh
        return KroneckerSpectrum(left, right, values[:, None] * weights)

    def shifted_solver(self, scale: float, shift: float, like: Array) -> Callable[[Array], Array]:
        """Factorise once by Cholesky if the operator is the identity, else use the eigenbases."""
        K = None if self.is_thin else self.identity_factor()
        if K is None:
            return super().shifted_solver(scale, shift, like)
        return cholesky_solver(K * scale + shift * namespace(K).eye(K.shape[0], dtype=K.dtype, device=device(K)))

    def part(self, rows: Array, columns: Array) -> "SeparableGram":
        """Cut the scalar part; what is known of the operator is kept."""
        found = SeparableGram(self.gram.block(rows, columns), self.operator)
        if self.operator is not None and self.operator.ndim == 2:
            found.__dict__["_operator_eigh"] = self._operator_eigh
        return found

    def entries(self, rows: Array, columns: Array) -> Array:
        """Return the products of the entries of K and M."""
        found, M = self.gram.block(rows, rows).rows(slice(None)), self.operator
        xp = namespace(found)
        if M is not None and M.ndim == 2:
            return found * xp.take(xp.take(M, columns, axis=0), columns, axis=1)
        weights = xp.ones_like(found[0, :]) if M is None else xp.take(M, columns)
        return xp.where(columns[:, None] == columns[None, :], found * weights, xp.zeros_like(found))

    def ridge_predictor(self, train: Array, test: Array, targets: Array) -> Callable[[float], Array]:
        """Diagonalise the part of the samples T once: every scale is then two products."""
        xp = namespace(targets)
        values, left = self.gram.block(train, train).eigh()
        weights, right = self.operator, None
        if weights is None:
            weights = xp.ones_like(targets[0, :1])
        elif weights.ndim == 2:
            weights, right = self._operator_eigh
        turned = left.T @ xp.take(targets, train, axis=0)
        turned = (turned if right is None else turned @ right) * weights
        products, outer = self.gram.block(test, train).matmul(left), values[:, None] * weights

        def predict(scale: float) -> Array:
            found = products @ (scale * turned / (1 + scale * outer))
            return found if right is None else found @ right.T

        return predict

    def rotated(self, targets: Array) -> "Rotation | None":
        """Return the eigenbasis of the operator, its null space collapsed into one column."""
        if self.operator is None or (self.operator.ndim == 1 and float(namespace(targets).min(self.operator)) > 0):
            return None
        xp = namespace(targets)
        values, basis = (self.operator, None) if self.operator.ndim == 1 else self._operator_eigh
        is_null = host(values <= 1e-15 * float(xp.max(values)))
        head, tail = (as_index(np.flatnonzero(mask), targets) for mask in (~is_null, is_null))
        turned = targets if basis is None else targets @ basis
        rest = xp.take(turned, tail, axis=1)
        sizes = row_norms(rest)
        units = rest / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        kept = xp.take(values, head)
        if tail.shape[0] > 0:
            kept = xp.concat([kept, 0 * values[:1]])
        columns = xp.take(turned, head, axis=1)
        new = columns if tail.shape[0] == 0 else xp.concat([columns, sizes], axis=1)
        return Rotation(SeparableGram(self.gram, kept), new, basis, head, tail, units)

    def diagonal_factor(self) -> tuple[Array, Array | None] | None:
        """Return K and the operator, where that is diagonal."""
        if self.operator is not None and self.operator.ndim == 2:
            return None
        return self.gram.rows(slice(None)), self.operator

    def identity_factor(self) -> Array | None:
        """Return K, where the operator is the identity."""
        return self.gram.rows(slice(None)) if self.operator is None else None

    @property
    def width(self) -> int:
        """Numbers that are stored for each row: the features, or the whole row."""
        return self.gram.width

    def _times_operator(self, A: Array) -> Array:
        if self.operator is None:
            return A
        return A * self.operator if self.operator.ndim == 1 else A @ self.operator

    @cached_property
    def _operator_eigh(self) -> tuple[Array, Array]:
        return symmetric_eigh(self.operator)

    @cached_property
    def _operator_norm(self) -> float:
        if self.operator is None:
            return 1.0
        values = self.operator if self.operator.ndim == 1 else self._operator_eigh[0]
        return float(namespace(values).max(values))


@dataclass(frozen=True)
class Rotation:
    """Outputs turned into the eigenbasis of their operator, with the null space as one column that carries its norm.

    Within the null space the optimal duals of a loss of the row norm point along the targets: their size is enough.
    """

    gram: SeparableGram
    targets: Array
    basis: Array | None
    head: Array
    tail: Array
    units: Array

    def forward(self, rows: Array) -> Array:
        """Return rows in these coordinates; in the null space, what lies along the targets."""
        xp = namespace(rows)
        turned = rows if self.basis is None else rows @ self.basis
        head = xp.take(turned, self.head, axis=1)
        if self.tail.shape[0] == 0:
            return head
        along = xp.sum(xp.take(turned, self.tail, axis=1) * self.units, axis=1, keepdims=True)
        return xp.concat([head, along], axis=1)

    def back(self, rows: Array) -> Array:
        """Return rows in the original coordinates."""
        xp = namespace(rows)
        count = self.head.shape[0]
        parts = [rows[:, :count]]
        if self.tail.shape[0] > 0:
            parts.append(rows[:, count:] * self.units)
        order = xp.argsort(xp.concat([self.head, self.tail]))
        turned = xp.take(xp.concat(parts, axis=1), order, axis=1)
        return turned if self.basis is None else turned @ self.basis.T


class SumGram(OperatorGram):
    """Sum of separable terms (Assumption 4 of [Laforgue2020]_)."""

    has_entries = True

    def __init__(self, terms: Sequence[SeparableGram]) -> None:
        self.terms = tuple(terms)
        self.shape = self.terms[0].shape

    def matmul(self, A: Array) -> Array:
        """Return the sum of K_t A M_t."""
        return _add(term.matmul(A) for term in self.terms)

    def column(self, index: int, change: Array) -> Array:
        """Return the sum of the terms' columns."""
        return _add(term.column(index, change) for term in self.terms)

    def block_norms(self) -> Array:
        """Return the sum of the terms' bounds."""
        return _add(term.block_norms() for term in self.terms)

    def scaled(self, root: Array) -> "SumGram":
        """Scale each term."""
        return SumGram([term.scaled(root) for term in self.terms])

    def entries(self, rows: Array, columns: Array) -> Array:
        """Return the sum of the terms' entries."""
        return _add(term.entries(rows, columns) for term in self.terms)

    def dense(self, p: int) -> Array:
        """Return the sum of Kronecker products."""
        return _add(term.dense(p) for term in self.terms)


def kronecker(K: Array, M: Array) -> Array:
    """Return the Kronecker product of two matrices."""
    xp = namespace(K)
    product = K[:, None, :, None] * M[None, :, None, :]
    return xp.reshape(product, (K.shape[0] * M.shape[0], K.shape[1] * M.shape[1]))


def _add(arrays: Any) -> Array:
    total = None
    for array in arrays:
        total = array if total is None else total + array
    return total
