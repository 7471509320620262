"""Eigenbases of Gram operators, and their largest eigenvalue."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fenchel._array import Array, as_like, eps, namespace

__all__ = ["DenseSpectrum", "KroneckerSpectrum", "Spectrum", "largest_eigenvalue"]


class Spectrum(Protocol):
    """Eigenvectors of an ``OperatorGram`` K, all of them or those outside its null space: functions of K.

    A function f is given by its values at the eigenvalues and at zero. Arrays are (n, p), or (n, B, p) for B problems
    side by side.
    """

    @property
    def values(self) -> Array:
        """Eigenvalues, (r, p) or (r, 1)."""

    def apply(self, weights: Array, at_zero: Any, A: Array) -> Array:
        """Return f(K) A."""

    def left_out(self, weights: Array, at_zero: float, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i for every row i, with W = f(K)."""


@dataclass(frozen=True)
class KroneckerSpectrum:
    """The eigenbasis of K ⊗ M: one orthogonal matrix on each side."""

    left: Array  # (n, r), r < n where K has no full rank
    right: Array | None
    values: Array

    def apply(self, weights: Array, at_zero: Any, A: Array) -> Array:
        """Return U (w ∘ U' A Q) Q', and of a thin basis f(0) A + U ((w - f(0)) ∘ U' A Q) Q'."""
        is_thin = self.left.shape[1] < self.left.shape[0]
        turned = _times(self.left.T, A)
        turned = turned if self.right is None else turned @ self.right
        image = _times(self.left, turned * (weights - at_zero if is_thin else weights))
        image = image if self.right is None else image @ self.right.T
        return at_zero * A + image if is_thin else image

    def left_out(self, weights: Array, at_zero: float, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i for every row: all of leave-one-out in one product."""
        a = duals if self.right is None else duals @ self.right
        residuals = a / (at_zero + self.left**2 @ (weights - at_zero))
        return residuals if self.right is None else residuals @ self.right.T


@dataclass(frozen=True)
class DenseSpectrum:
    """The eigenbasis of a general operator on n × p arrays, for small n p."""

    vectors: Array
    values: Array

    def apply(self, weights: Array, at_zero: Any, A: Array) -> Array:
        """Return V (w ∘ V' A), A as one column for each problem."""
        return self._applied(self.vectors, self._applied(self.vectors.T, A) * weights)

    def left_out(self, weights: Array, at_zero: float, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i for every row."""
        xp, (n, p) = namespace(duals), duals.shape
        rows = xp.reshape(self.vectors, (n, p, n * p))
        blocks = (rows * xp.reshape(weights, (1, 1, -1))) @ xp.permute_dims(rows, (0, 2, 1))
        return xp.linalg.solve(blocks, duals[:, :, None])[:, :, 0]

    def _applied(self, matrix: Array, A: Array) -> Array:
        xp = namespace(A)
        if A.ndim == 2:
            return xp.reshape(matrix @ xp.reshape(A, (-1, 1)), A.shape)
        n, count, p = A.shape
        flat = matrix @ xp.reshape(xp.permute_dims(A, (0, 2, 1)), (n * p, count))
        return xp.permute_dims(xp.reshape(flat, (n, p, count)), (0, 2, 1))


def _times(matrix: Array, A: Array) -> Array:
    """Return the product along the first axis of an (n, p) or (n, B, p) array."""
    if A.ndim == 2:
        return matrix @ A
    xp = namespace(A)
    return xp.reshape(matrix @ xp.reshape(A, (A.shape[0], -1)), (-1, *A.shape[1:]))


def largest_eigenvalue(matmul: Callable[[Array], Array], shape: tuple[int, ...], like: Array) -> float:
    """Return the largest eigenvalue of a PSD operator by Lanczos, rounded up by its error bound and 0.01 %.

    The start is a fixed pseudo-random vector, so that the same problem gives the same bits.
    """
    xp = namespace(like)
    size = math.prod(shape)
    start = as_like(np.random.default_rng(0).standard_normal(size), like)
    basis = [start / xp.linalg.vector_norm(start)]
    alphas: list[float] = []
    betas: list[float] = []
    top = error = 0.0
    for k in range(min(size, 80)):
        image = xp.reshape(matmul(xp.reshape(basis[-1], shape)), (size,))
        alphas.append(float(xp.sum(image * basis[-1])))
        rows = xp.stack(basis)
        for _ in range(2):  # twice is enough against the loss of orthogonality
            image = image - rows.T @ (rows @ image)
        beta = float(xp.linalg.vector_norm(image))
        is_last = k + 1 == min(size, 80) or beta <= max(1e-12, 64 * eps(like)) * max(alphas)
        if is_last or (k >= 11 and k % 4 == 3):
            values, vectors = np.linalg.eigh(np.diag(alphas) + np.diag(betas, 1) + np.diag(betas, -1))
            top, error = float(values[-1]), beta * abs(float(vectors[-1, -1]))
            if is_last or error <= 1e-4 * top:
                break
        betas.append(beta)
        basis.append(image / beta)
    return max(top + error, 0.0) * (1 + 1e-4)
