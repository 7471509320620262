"""Joint fit of a model and its output operator by block coordinate descent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel._array import Array, as_index, as_like, host
from fenchel.derived_problems import restricted
from fenchel.losses.relative import RelativeSize
from fenchel.operators import Kronecker, Output
from fenchel.problem import DualProblem, arithmetic, relative_gap
from fenchel.solvers import Solution, Solver

__all__ = ["OperatorFit", "OperatorSet", "held_out_errors", "learn_operator"]

_FINEST = 1e-4  # smallest gap of a block relative to that of the joint problem
_WRONG = 4.0  # robust deviations at which the errors of a robust fit are clipped


@dataclass(frozen=True)
class OperatorSet:
    r"""The operators :math:`A = \delta I + U U^\top` of trace p, with at most ``rank`` columns in U."""

    share: float  # delta, in (0, 1]; 1 is the identity
    rank: int | None = None  # None: no limit

    def best(self, moment: np.ndarray) -> tuple[np.ndarray, float]:
        r"""Return the operator that minimises :math:`\mathrm{tr}(A^{-1} S)` for a moment S (p, p), and the minimum.

        It has the eigenvectors of S, and the eigenvalues :math:`\max(\delta, c \sqrt{s_j})` with c set by the trace.
        """
        squares, vectors = np.linalg.eigh((moment + moment.T) / 2)
        squares, vectors = np.maximum(squares[::-1], 0.0), vectors[:, ::-1]
        values = self._filled(np.sqrt(squares) if squares[0] > 0 else np.ones_like(squares))
        return (vectors * values) @ vectors.T, float(np.sum(squares / values))

    def largest(self, products: np.ndarray) -> float:
        r"""Return the maximum of :math:`\mathrm{tr}(A G)` over the set, for a positive semidefinite G (p, p)."""
        p, top = len(products), float(np.linalg.eigvalsh((products + products.T) / 2)[-1])
        return float(self.share * np.trace(products) + p * (1 - self.share) * top)

    def _filled(self, roots: np.ndarray) -> np.ndarray:
        """Return eigenvalues with sum p for descending roots (p,): multiples of the roots, but at least the share."""
        p = len(roots)
        for k in range(p if self.rank is None else min(self.rank, p), 0, -1):
            factor = (p - self.share * (p - k)) / np.sum(roots[:k])
            if factor * roots[k - 1] >= self.share:
                break
        return np.concatenate([factor * roots[:k], np.full(p - k, self.share)])


@dataclass(frozen=True)
class OperatorFit:
    r"""A model, the operator that it was fitted with, and the objective after each block.

    The objective is :math:`\frac1n \sum_i \ell(y_i - h(x_i)) + \frac\lambda2 \|h\|^2_{k A}`, over h and over a set of
    operators.
    """

    problem: DualProblem  # with the operator
    solution: Solution
    operator: np.ndarray  # (p, p)
    objectives: list[float]
    gaps: list[float]  # relative duality gap of each block of the model
    gap: float = np.inf  # relative duality gap of the joint problem over model and operator
    is_done: bool = False  # whether the gap is small or, with a rank, the objective no longer decreases

    @property
    def products(self) -> np.ndarray:
        r"""The matrix :math:`\sum_{ij} k(x_i, x_j) a_i a_j^\top / (\lambda n)^2` of the duals, (p, p)."""
        duals = self.solution.duals
        scalar = self.problem.gram.terms[0][0]
        return np.asarray(host(duals.T @ scalar.matmul(duals))) * self.problem.scale**2

    @property
    def energy(self) -> float:
        r"""The squared norm of the model, :math:`\|h\|^2_{k A}`."""
        return float(np.sum(self.operator * self.products))

    def certified(self, operators: OperatorSet) -> "OperatorFit":
        r"""Return the fit with the gap of the joint problem over model and operator.

        For any duals, the minimum over A of the dual objective is a lower bound of the minimum objective; it depends on
        A only through :math:`-\frac\lambda2 \mathrm{tr}(A G)`.
        """
        certificate, lam = self.solution.certificate, self.problem.lam
        excess = lam / 2 * (operators.largest(self.products) - self.energy)
        gap = certificate.gap + max(excess, 0.0)
        return replace(self, gap=relative_gap(self.problem.value_at_zero, certificate.primal, gap))


def learn_operator(
    problem: DualProblem,
    operators: OperatorSet,
    solver: Solver,
    block_tol: float,
    tol: float,
    max_iter: int,
    start: OperatorFit | None = None,
) -> OperatorFit:
    """Minimise alternately over the model and the operator, starting from the identity.

    Operators have a closed form; models are solved to the relative gap ``block_tol``, which is tightened if the
    objective no longer decreases. The descent ends when the gap of the joint problem is at most ``tol``; with a rank,
    for which that gap may not close, it ends when the objective no longer decreases.
    """
    if start is None:
        targets = host(problem.targets)
        fit = _fitted(problem, operators.best(targets.T @ targets)[0], solver, block_tol)
    else:
        fit = _fitted(problem, start.operator, solver, block_tol, start.solution.duals)
    fit = fit.certified(operators)
    for _ in range(1, max_iter):
        if fit.gap <= tol:
            break
        A, energy = operators.best(fit.operator @ fit.products @ fit.operator)
        now = fit.objectives[-1]
        before = min(now, now + problem.lam / 2 * (energy - fit.energy))
        after = _fitted(problem, A, solver, block_tol, fit.solution.duals).certified(operators)
        if after.objectives[0] < before:
            fit = replace(after, objectives=[*fit.objectives, before, *after.objectives], gaps=[*fit.gaps, *after.gaps])
        elif operators.rank is not None:
            return replace(fit, is_done=True)
        elif block_tol <= _FINEST * tol:
            break
        else:
            block_tol /= 10
    return replace(fit, is_done=fit.gap <= tol)


def held_out_errors(
    problem: DualProblem,
    folds: Sequence[np.ndarray],
    sets: Sequence[OperatorSet],
    lams: Sequence[float],
    solver: Solver,
    tol: float,
    max_iter: int,
    is_robust: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared held-out errors (sets, lams, samples) and the sample weights; each fold learns its operators.

    If ``is_robust``, errors are clipped at four robust deviations of those of the first set at the first lam.
    """
    n, everyone = problem.targets.shape[0], np.arange(problem.targets.shape[0])
    errors = np.full((len(sets), len(lams), n), np.nan)
    for fold in folds:
        train = np.setdiff1d(everyone, fold)
        part = restricted(problem, train)
        cross = problem.gram.block(as_index(fold, problem.targets), as_index(train, problem.targets))
        for s, operators in enumerate(sets):
            fit = None
            for j in np.argsort(lams)[::-1]:
                fit = learn_operator(part.with_(lam=float(lams[j])), operators, solver, tol / 10, tol, max_iter, fit)
                errors[s, j, fold] = _distances(problem, fold, fit, cross.matmul(fit.solution.duals))
    counts = np.ones(n) if problem.root is None else host(problem.root)[:, 0] ** 2
    seen = ~np.isnan(errors[0, 0])
    errors, counts = errors[:, :, seen], counts[seen]
    if is_robust:
        errors = np.minimum(errors, RelativeSize("scale", _WRONG).of(errors[0, 0], counts))
    return errors**2, counts


def _fitted(
    problem: DualProblem, operator: np.ndarray, solver: Solver, tol: float, start: Array | None = None
) -> OperatorFit:
    """Solve the problem with an operator, using the factorisation of the problem without one."""
    basis: Any = None if problem.gram.why_not_factorize else problem.shared.factorize()
    gram = Kronecker(problem.gram.terms[0][0], Output(as_like(operator, problem.targets)), basis)
    coupled = replace(problem, gram=gram)
    with arithmetic(coupled):
        solution = solver.solve(coupled, tol=tol, start=start)
    certificate = solution.certificate
    return OperatorFit(coupled, solution, operator, [certificate.primal], [certificate.relative_gap])


def _distances(problem: DualProblem, fold: np.ndarray, fit: OperatorFit, products: Array) -> np.ndarray:
    """Return the distances between held-out outputs and predictions, from the kernel times the duals."""
    predictions = host(products) @ fit.operator * fit.problem.scale
    residuals = host(problem.targets)[fold] - predictions
    residuals = residuals if problem.root is None else residuals / host(problem.root)[fold]
    return np.asarray(np.linalg.norm(residuals, axis=1))
