"""Eigenbases of Gram operators, and their largest eigenvalue."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fenchel._array import Array, as_like, namespace

__all__ = ["DenseSpectrum", "KroneckerSpectrum", "Spectrum", "largest_eigenvalue"]


class Spectrum(Protocol):
    """An orthonormal change of coordinates of n × p arrays in which an ``OperatorGram`` is a Hadamard product."""

    @property
    def values(self) -> Array:
        """Eigenvalues, (n, p) or (n, 1)."""

    def forward(self, A: Array) -> Array:
        """Go to the eigenbasis."""

    def backward(self, A: Array) -> Array:
        """Come back."""


@dataclass(frozen=True)
class KroneckerSpectrum:
    """The eigenbasis of K ⊗ M: one orthogonal matrix on each side."""

    left: Array
    right: Array | None
    values: Array

    def forward(self, A: Array) -> Array:
        """Return U' A Q."""
        A = self.left.T @ A
        return A if self.right is None else A @ self.right

    def backward(self, A: Array) -> Array:
        """Return U A Q'."""
        A = self.left @ A
        return A if self.right is None else A @ self.right.T


@dataclass(frozen=True)
class DenseSpectrum:
    """The eigenbasis of a general operator on n × p arrays, for small n p."""

    vectors: Array
    values: Array

    def forward(self, A: Array) -> Array:
        """Return the coordinates, in the shape of A."""
        xp = namespace(A)
        return xp.reshape(self.vectors.T @ xp.reshape(A, (-1, 1)), A.shape)

    def backward(self, A: Array) -> Array:
        """Return the array that has these coordinates."""
        xp = namespace(A)
        return xp.reshape(self.vectors @ xp.reshape(A, (-1, 1)), A.shape)


def largest_eigenvalue(matmul: Callable[[Array], Array], shape: tuple[int, ...], like: Array) -> float:
    """Return the largest eigenvalue of a PSD operator by Lanczos, rounded up by its error bound and 0.01 %.

    The start is a fixed pseudo-random vector, so that the same problem gives the same bits.
    """
    xp = namespace(like)
    size = math.prod(shape)
    start = as_like(np.random.default_rng(0).standard_normal(shape), like)
    basis = [start / xp.sqrt(xp.sum(start**2))]
    alphas: list[float] = []
    betas: list[float] = []
    for k in range(min(size, 80)):
        image = matmul(basis[-1])
        alphas.append(float(xp.sum(image * basis[-1])))
        for _ in range(2):  # twice is enough against the loss of orthogonality
            for vector in basis:
                image = image - xp.sum(image * vector) * vector
        beta = float(xp.sqrt(xp.sum(image**2)))
        values, vectors = np.linalg.eigh(np.diag(alphas) + np.diag(betas, 1) + np.diag(betas, -1))
        top, error = float(values[-1]), beta * abs(float(vectors[-1, -1]))
        if (error <= 1e-4 * top and k >= 11) or k + 1 == size or beta <= 1e-12 * top:
            break
        betas.append(beta)
        basis.append(image / beta)
    return max(top + error, 0.0) * (1 + 1e-4)
