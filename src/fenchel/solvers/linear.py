"""The linear systems of the splitting: in the eigenbasis for many problems, by an explicit inverse for one."""

from collections.abc import Callable

import numpy as np

from fenchel._array import Array, namespace, spd_inverse
from fenchel.operators.dense import shifted
from fenchel.side_by_side import Batch

__all__ = ["Eigen", "Inverse"]


class Eigen:
    """Solves (sigma + rho + H) A = B in the eigenbasis: one factorisation for every problem, lam and rho."""

    slack = 0.0  # changing rho costs nothing

    def __init__(self, batch: Batch, rhos: np.ndarray) -> None:
        shifts, scales = batch.curvatures + batch.column(rhos), batch.scales
        self._solve = batch.first.shared.factorize().function(lambda values: 1 / (shifts + scales * values[:, None, :]))

    def __call__(self, right: Array) -> Array:
        """Return A for B of shape (n, B, p)."""
        return self._solve(right)

    @staticmethod
    def largest(batch: Batch) -> float:
        """Return the largest eigenvalue of the Gram operator."""
        values = batch.first.shared.factorize().values
        return float(namespace(values).max(values))

    @staticmethod
    def ridge(batch: Batch) -> Callable[[float], Array]:
        """Return the solution of the square loss as a function of the factor 1 / (lam n)."""
        basis, targets = batch.first.shared.factorize(), batch.first.targets
        return lambda scale: basis.function(lambda values: 1 / (1 + scale * values))(targets)


class Inverse:
    """Solves the same for one problem with the identity operator by an explicit inverse: one product for each step."""

    slack = 0.7  # a new rho costs a new inverse: only for a factor of two

    def __init__(self, batch: Batch, rhos: np.ndarray) -> None:
        problem = batch.first
        K = problem.gram.terms[0][0].matrix
        self.matrix = spd_inverse(shifted(K, problem.scale, problem.curvature + float(rhos[0])))

    def __call__(self, right: Array) -> Array:
        """Return A for B of shape (n, 1, p)."""
        return (self.matrix @ right[:, 0, :])[:, None, :]

    @staticmethod
    def largest(batch: Batch) -> float:
        """Return the largest eigenvalue of the Gram operator."""
        return batch.first.shared.norm

    @staticmethod
    def ridge(batch: Batch) -> Callable[[float], Array]:
        """Return the solution of the square loss as a function of the factor 1 / (lam n)."""
        problem = batch.first
        return lambda scale: problem.gram.solver(scale, 1.0)(problem.targets)
