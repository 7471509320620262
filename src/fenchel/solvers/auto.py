"""The solver that chooses a solver."""

import math
from typing import Any

from fenchel._array import Array, host, namespace
from fenchel.problem import DualProblem
from fenchel.solvers.base import Callback, Solution, Solver, Status
from fenchel.solvers.closed_form import ClosedForm
from fenchel.solvers.newton import RowNewton
from fenchel.solvers.proximal import APGD
from fenchel.solvers.splitting import DouglasRachford

__all__ = ["Auto"]

_FEW = 0.35  # share of samples outside the insensitive zone below which Newton's systems are small
_EASY = 1e3  # condition number below which Newton's method sees at once which samples are active
_STEPS = 7.0  # accelerated gradient steps to a gap of 1e-6, over the square root of the condition number
_GIVE_UP = 25  # Newton steps without progress before the splitting takes over
_BEFORE_NEWTON = 400  # iterations of the splitting before Newton's method takes over for a sparse loss
_FLOPS = 2e10  # a matrix product's flops for each second, and the seconds that any step costs
_OVERHEAD = 1e-4


class Auto(Solver):
    """Chooses by the problem: exact where there is a formula, else the method that is cheapest for these sizes.

    Parameters
    ----------
    max_iter : int or None, default=None
        Most iterations of the chosen solver; ``None`` is its own default.

    Notes
    -----
    ``choose`` returns the solver and the reason. The square loss has a closed form. A problem whose eigenbasis is there
    already goes to ``DouglasRachford``, and so does everything else unless ``RowNewton`` has small systems (one output,
    or few samples outside the insensitive zone) or lam is so large that ``APGD`` is done before a factorisation would
    be. A solver that does not arrive hands over to the next one. A problem whose solution is zero is answered at once.
    """

    def __init__(self, max_iter: int | None = None) -> None:
        self.max_iter = max_iter

    def why_not(self, problem: DualProblem) -> str | None:
        """Return ``None``: there is a solver for every problem."""
        return None

    def choose(self, problem: DualProblem) -> tuple[Solver, str]:
        """Return the solver for this problem, and why."""
        if ClosedForm().why_not(problem) is None:
            return ClosedForm(), "the square loss has a closed form"
        reason = DouglasRachford().why_not(problem)
        if reason is not None:
            return self._limited(APGD()), reason
        if not problem.has_spectrum and problem.curvature > 0:
            can_newton = problem.gram.identity_factor() is not None and RowNewton().why_not(problem) is None
            is_easy = problem.loss.sparse and problem.lipschitz <= _EASY
            if can_newton and is_easy and self._share_outside(problem) <= _FEW:
                return self._limited(RowNewton(patience=_GIVE_UP)), "few samples outside the insensitive zone"
            steps = _STEPS * math.sqrt(1 + problem.lipschitz)
            if steps * self._step_seconds(problem) < self._factorisation_seconds(problem):
                limit = max(100, int(4 * steps))
                return self._limited(APGD(max_iter=limit)), "lam is large: gradient steps beat a factorisation"
            if can_newton and problem.targets.shape[1] == 1:
                return self._limited(RowNewton(patience=_GIVE_UP)), "one output: Newton's systems are small"
        return self._limited(DouglasRachford()), "one factorisation, then iterations that hardly depend on lam"

    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: Any = None, callback: Callback | None = None
    ) -> Solution:
        """Solve with the chosen solver, after a look whether the answer is zero."""
        if problem.value_at_zero == 0:
            zero = namespace(problem.targets).zeros_like(problem.targets)
            found = problem.certificate(zero, zero)
            if found.gap == 0:
                return Solution(zero, zero, found, 0, Status.CONVERGED, type(self).__name__, [(0, found)])
        chosen, _ = self.choose(problem)
        can_newton = RowNewton().why_not(problem) is None and self.max_iter is None
        if isinstance(chosen, DouglasRachford) and problem.loss.sparse and can_newton:
            chosen = DouglasRachford(max_iter=_BEFORE_NEWTON)  # what Newton's method then gives has exact zeros
        solution = chosen.solve(problem, tol, start, callback)
        for other in self._successors(chosen, solution) if self.max_iter is None else ():
            if solution.status in (Status.CONVERGED, Status.INTERRUPTED, Status.INFEASIBLE):
                break
            if other.why_not(problem) is None:
                better = other.solve(problem, tol, solution.duals, callback)
                if better.certificate.relative_gap < solution.certificate.relative_gap:
                    solution = better
        return solution

    def _successors(self, chosen: Solver, solution: Solution) -> list[Solver]:
        """Return who takes over from a solver that did not arrive."""
        if isinstance(chosen, DouglasRachford):
            newton = RowNewton(tau=0.1 * solution.state.rho)
            return [newton, DouglasRachford()] if chosen.max_iter == _BEFORE_NEWTON else [newton]
        return [DouglasRachford()]

    def _share_outside(self, problem: DualProblem) -> float:
        """Return the share of samples that the zero model does not fit."""
        values: Array = host(problem.loss.value(problem.unscale(problem.targets)))
        return float((values > 0).mean())

    def _step_seconds(self, problem: DualProblem) -> float:
        n, p = problem.targets.shape
        return 2 * n * n * p / _FLOPS + _OVERHEAD

    def _factorisation_seconds(self, problem: DualProblem) -> float:
        n = problem.targets.shape[0]
        return 4 * n**3 / _FLOPS + 10 * (self._step_seconds(problem) + _OVERHEAD)

    def _limited(self, solver: Solver) -> Solver:
        return solver if self.max_iter is None else solver.set_params(max_iter=self.max_iter)
