"""The linear systems of the splitting: in the eigenbasis for many problems, by an explicit inverse for one."""

from collections.abc import Callable

import numpy as np

from fenchel._array import Array, device, namespace, spd_inverse
from fenchel.batch import Batch

__all__ = ["Eigen", "Inverse"]


class Eigen:
    """Solves (sigma + rho + H) A = B in the eigenbasis: one factorisation for every problem, lam and rho."""

    slack = 0.0  # changing rho costs nothing

    def __init__(self, batch: Batch, rhos: np.ndarray) -> None:
        self.basis = batch.first.spectrum
        shifts = batch.curvatures + batch.column(rhos)
        self.weights, self.at_zero = 1 / (shifts + batch.scales * self.basis.values[:, None, :]), 1 / shifts

    def __call__(self, right: Array) -> Array:
        """Return A for B of shape (n, B, p)."""
        return self.basis.apply(self.weights, self.at_zero, right)

    @staticmethod
    def largest(batch: Batch) -> float:
        """Return the largest eigenvalue of the Gram operator."""
        values = batch.first.spectrum.values
        return float(namespace(values).max(values))

    @staticmethod
    def ridge(batch: Batch) -> Callable[[float], Array]:
        """Return the solution of the square loss as a function of the factor 1 / (lam n)."""
        basis = batch.first.spectrum
        return lambda scale: basis.apply(1 / (1 + scale * basis.values), 1.0, batch.first.targets)


class Inverse:
    """Solves the same for one problem with the identity operator by an explicit inverse: one product for each step."""

    slack = 0.7  # a new rho costs a new inverse: only for a factor of two

    def __init__(self, batch: Batch, rhos: np.ndarray) -> None:
        problem = batch.first
        K: Array = problem.gram.identity_factor()
        shift = problem.curvature + float(rhos[0])
        eye = namespace(K).eye(K.shape[0], dtype=K.dtype, device=device(K))
        self.matrix = spd_inverse(K * problem.scale + shift * eye)

    def __call__(self, right: Array) -> Array:
        """Return A for B of shape (n, 1, p)."""
        return (self.matrix @ right[:, 0, :])[:, None, :]

    @staticmethod
    def largest(batch: Batch) -> float:
        """Return the largest eigenvalue of the Gram operator."""
        return batch.first.gram.norm(batch.first.targets)

    @staticmethod
    def ridge(batch: Batch) -> Callable[[float], Array]:
        """Return the solution of the square loss as a function of the factor 1 / (lam n)."""
        problem = batch.first
        return lambda scale: problem.gram.shifted_solver(scale, 1.0, problem.targets)(problem.targets)
