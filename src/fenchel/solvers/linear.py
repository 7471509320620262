"""Linear systems of the splitting: in the eigenbasis for many problems, by an inverse or by products for one."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fenchel._array import Array, namespace, spd_inverse
from fenchel.operators import ConjugateGradients, KeptRows, Operator
from fenchel.operators.dense import shifted
from fenchel.problem.batch import Batch

__all__ = ["LOOSE", "Conjugate", "Eigen", "Inverse", "Mark"]

LOOSE = 0.3  # relative residual at which conjugate gradients stop while the gap is large


class Eigen:
    """Solve (sigma + rho + H) A = B in the eigenbasis: one factorisation for every problem, lam and rho."""

    slack = 0.0  # changing rho costs nothing

    def __init__(self, batch: Batch, rhos: np.ndarray) -> None:
        shifts, scales = batch.curvatures + batch.column(rhos), batch.scales
        self._solve = batch.first.shared.factorize().function(lambda values: 1 / (shifts + scales * values[:, None, :]))

    def __call__(self, right: Array) -> Array:
        """Return A for B of shape (n, B, p)."""
        return self._solve(right)

    def at(self, batch: Batch, rhos: np.ndarray) -> "Eigen":
        """Return the solver for other problems or another rho."""
        return Eigen(batch, rhos)

    @staticmethod
    def largest(batch: Batch) -> float:
        """Return the largest eigenvalue of the Gram operator."""
        values = batch.first.shared.factorize().values
        return float(namespace(values).max(values))

    @staticmethod
    def ridge(batch: Batch) -> Callable[[float], Array]:
        """Return the square-loss solution as a function of the factor 1 / (lam n)."""
        basis, targets = batch.first.shared.factorize(), batch.first.targets
        return lambda scale: basis.function(lambda values: 1 / (1 + scale * values))(targets)


class Inverse:
    """Solve the same for one problem with the identity operator by an explicit inverse: one product per step."""

    slack = 0.7  # a new rho needs a new inverse: worth it only for a factor of two

    def __init__(self, batch: Batch, rhos: np.ndarray) -> None:
        problem = batch.first
        K = problem.gram.terms[0][0].matrix
        self.matrix = spd_inverse(shifted(K, problem.scale, problem.curvature + float(rhos[0])))

    def __call__(self, right: Array) -> Array:
        """Return A for B of shape (n, 1, p)."""
        return (self.matrix @ right[:, 0, :])[:, None, :]

    def at(self, batch: Batch, rhos: np.ndarray) -> "Inverse":
        """Return the solver for other problems or another rho."""
        return Inverse(batch, rhos)

    @staticmethod
    def largest(batch: Batch) -> float:
        """Return the largest eigenvalue of the Gram operator."""
        return batch.first.shared.norm

    @staticmethod
    def ridge(batch: Batch) -> Callable[[float], Array]:
        """Return the square-loss solution as a function of the factor 1 / (lam n)."""
        problem = batch.first
        return lambda scale: problem.gram.solver(scale, 1.0)(problem.targets)


class Conjugate:
    """Solve the same by conjugate gradients from the last solution, without a factorisation.

    Problems with samples held out are solved on the others. The products of the solutions with the Gram operator are
    known for all samples.
    """

    slack = 0.3  # a new rho makes the last solution a worse start

    def __init__(
        self,
        batch: Batch,
        rhos: np.ndarray,
        gram: Operator,
        before: "Conjugate | None" = None,
        rows: KeptRows | None = None,
    ) -> None:
        self.marks: list[Mark] = [] if before is None else before.marks
        last, rtol = (None, LOOSE) if before is None else (before.gradients, before.gradients.rtol)
        shifts = batch.curvatures + batch.column(rhos)
        self.gradients: ConjugateGradients = ConjugateGradients(gram, batch.scales, shifts, rtol, last, rows)

    def __call__(self, right: Array) -> Array:
        """Return A for B of shape (n, B, p)."""
        return self.gradients(right)

    def at(self, batch: Batch, rhos: np.ndarray) -> "Conjugate":
        """Return the solver for another rho, which continues from the last solutions."""
        return Conjugate(batch, rhos, self.gradients.gram, self, self.gradients.rows)


class Mark(NamedTuple):
    """A certificate during the solve: number of steps, seconds, and its gap."""

    age: int
    seconds: float
    gap: float
