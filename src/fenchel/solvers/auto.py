"""The solver that chooses a solver."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fenchel._array import Array, eps, host, is_single, namespace
from fenchel.problem import Certificate, DualProblem
from fenchel.solvers.base import Callback, Solution, Solver, Stage, Status
from fenchel.solvers.box import BoxNewton
from fenchel.solvers.closed_form import ClosedForm
from fenchel.solvers.newton import RowNewton
from fenchel.solvers.proximal import APGD
from fenchel.solvers.smoothed import SmoothedNewton
from fenchel.solvers.splitting import DouglasRachford

__all__ = ["Auto"]

_FEW = 0.4  # share of samples outside the insensitive zone below which Newton's first systems are small
_HALF = 0.6  # the same for one output, without curvature, when the problem is easy
_GROWTH, _MANY = 4.0, 0.8  # growth of that share, and the share, at which it shows that they are not
_NEAR = 0.1  # gap of the duals that the zero model asks for, below which gradient steps arrive at once
_EASY = 1e4  # condition number below which Newton's method sees at once which samples are active
_HARD = 1e6  # condition number above which it needs a start that is close
_NEARLY_ALL = 0.975  # share of samples at their bound in the zero model above which it finds the others only slowly
_SMALL = 256  # samples up to which a factorisation costs as little as a few steps of any method
_STEPS = 7.0  # accelerated gradient steps to a gap of 1e-6, over the square root of the condition number
_GIVE_UP = 80  # Newton steps without progress before the splitting takes over
_NO_CHANCE = (30, 0.8)  # Newton steps on a loss without curvature after which no gap below this one ends the attempt
_USEFUL = 0.5  # gap above which what Newton's method leaves is no better than a fresh start
_BEFORE_NEWTON = (20, 400)  # iterations of the splitting before Newton's method, when the problem is easy, and always
_BEFORE_FLAT = 2000  # the same for a loss without curvature, of which Newton's method needs many steps
_BEFORE_BOX = 1e-2  # relative gap of the splitting at which Newton's method takes over duals that are in a box
_SHORT = 15  # steps that the earlier attempt of Newton's method may take
_FLOPS = 2e10  # a matrix product's flops for each second, and the seconds that any step costs
_OVERHEAD = 1e-4
_BANDWIDTH, _CACHE = 1.2e10, 4e6  # bytes that a second brings from memory, and those that need not come from there
_NEWTON_STEPS = 4  # full steps that the small systems of a sparse loss are worth


class Auto(Solver):
    """Chooses by the problem: exact where there is a formula, else the method that is cheapest for these sizes.

    Parameters
    ----------
    max_iter : int or None, default=None
        Most iterations of the chosen solver; ``None`` is its own default.

    Notes
    -----
    ``choose`` returns the solver and the reason. The square loss has a closed form. A problem whose eigenbasis is there
    already goes to ``DouglasRachford``, and so does everything else unless ``RowNewton`` has small systems or ``APGD``
    is done before a factorisation would be (lam is large, or the duals that the zero model asks for are nearly
    optimal). Small systems are those of few samples outside the insensitive zone, and of one output if the loss has
    curvature and the zero model leaves some samples inside their bound (or n is small, and lam is not). A solver that
    does not arrive hands over to the next one, and so does Newton's method as soon as its systems turn out to be large;
    for a loss with curvature and an insensitive zone the splitting does so early, since Newton's method needs few steps
    from a near point and gives exact zeros. Duals in a box, as those of ``Pinball``, go to ``BoxNewton`` once the
    splitting has seen which of them are at an end. A problem whose solution is zero is answered at once.
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
        if problem.has_spectrum:
            return self._limited(DouglasRachford()), "the factorisation is there, and lam hardly matters"
        one_output = problem.targets.shape[1] == 1
        is_thin = problem.gram.is_thin
        can_newton = not is_thin and problem.gram.identity_factor() is not None and RowNewton().why_not(problem) is None
        is_flat, is_sparse = problem.curvature == 0, problem.loss.sparse
        if can_newton and is_sparse and (is_flat or self._is_mild(problem)):
            share = self._share_outside(problem)
            is_easy = is_flat and one_output and problem.lipschitz <= _EASY
            if share <= (_HALF if is_easy else _FEW):
                grown = _GROWTH * share if is_flat or problem.lipschitz <= _EASY else 0.0  # where few steps are to come
                most = 1.0 if one_output else min(max(_FEW, grown), _MANY)
                return self._newton(most), "few samples outside the insensitive zone"
        if can_newton and one_output and not is_flat and self._is_small(problem) and self._is_mild(problem):
            return self._newton(1.0), "one output: Newton's systems are small"  # and another look would cost as much
        if not is_flat:
            steps = _STEPS * math.sqrt(1 + problem.lipschitz)
            is_near = self._gap_of_gradient(problem) <= _NEAR
            rival = self._factorisation_seconds(problem)
            if can_newton and one_output:
                rival = min(rival, self._newton_seconds(problem))
            if is_near or steps * self._step_seconds(problem) < rival:
                limit = max(100, 0 if is_near else int(4 * steps))
                reason = "the zero model is near" if is_near else "lam is large"
                return self._limited(APGD(max_iter=limit)), f"{reason}: gradient steps beat a factorisation"
            if can_newton and one_output and self._is_for_newton(problem):
                return self._newton(1.0), "one output: Newton's systems are small"
        return self._limited(DouglasRachford()), "one factorisation, then iterations that hardly depend on lam"

    def solve_all(
        self,
        problems: Sequence[DualProblem],
        tol: float = 1e-6,
        starts: Sequence[Any] | None = None,
        callback: Callback | None = None,
    ) -> list[Solution]:
        """Solve one problem after the other."""
        starts = starts or [None] * len(problems)
        return [self._solve(*each, tol, callback) for each in zip(problems, starts, strict=True)]

    def _solve(self, problem: DualProblem, start: Any, tol: float, callback: Callback | None) -> Solution:
        """Solve with the chosen solver, after a look whether the answer is zero."""
        if problem.value_at_zero == 0:
            zero = namespace(problem.targets).zeros_like(problem.targets)
            found = problem.certificate(zero, zero)
            if found.gap == 0:
                solution = Solution(zero, zero, found, 0, Status.CONVERGED, type(self).__name__, [(0, found)])
                return replace(solution, stages=(solution.stage("the zero model is the solution"),))
        watch, is_split = _Watch(callback), False
        best: Solution | None = None
        history: list[tuple[int, Certificate]] = []
        stages: list[Stage] = []
        chosen, reason = self.choose(problem)
        for solver, near in self._relay(problem, chosen):
            if best is not None and solver.why_not(problem) is not None:
                continue
            begin = start
            if best is not None and isinstance(solver, DouglasRachford) and is_split:
                begin = best.state
            elif best is not None and (is_split or best.certificate.relative_gap <= _USEFUL):
                begin = best.duals
                if isinstance(solver, SmoothedNewton) and is_split:
                    solver = solver.set_params(tau=0.1 * best.state.rho)
            watch.before = history[-1][0] if history else 0
            better = solver.solve(problem, max(tol, near), begin, watch.of(solver, problem))
            history += [(watch.before + n_iter, found) for n_iter, found in better.history]
            stages.append(better.stage(reason))
            reason = f"{better.solver} handed over at gap {better.certificate.relative_gap:.1e}"
            if best is None or better.certificate.relative_gap < best.certificate.relative_gap:
                best, is_split = better, isinstance(solver, DouglasRachford)
            is_there = best.status is Status.CONVERGED and best.certificate.relative_gap <= tol
            if watch.is_over or is_there or best.status is Status.INFEASIBLE:
                break
        assert best is not None  # there is at least one solver
        best = replace(best, history=history, n_iter=history[-1][0], stages=tuple(stages))
        if best.status is Status.CONVERGED and best.certificate.relative_gap <= tol:
            return best
        ended = Status.INTERRUPTED if watch.is_over else Status.STALLED
        is_other = watch.is_over or best.status in (Status.INTERRUPTED, Status.CONVERGED)
        return replace(best, status=ended) if is_other else best

    def _relay(self, problem: DualProblem, chosen: Solver) -> list[tuple[Solver, float]]:
        """Return who takes over one after the other as long as none has arrived, and at which gap each hands over."""
        is_split = isinstance(chosen, DouglasRachford)
        if self.max_iter is None and is_split and BoxNewton().why_not(problem) is None:
            return [(chosen, _BEFORE_BOX), (BoxNewton(), 0.0), (DouglasRachford(), 0.0)]
        return [(solver, 0.0) for solver in self._to_the_end(problem, chosen)]

    def _to_the_end(self, problem: DualProblem, chosen: Solver) -> list[Solver]:
        """Return the chosen solver, and others for when it does not arrive."""
        if self.max_iter is not None or isinstance(chosen, ClosedForm):
            return [chosen]
        is_split = isinstance(chosen, DouglasRachford)
        if is_single(problem.targets):  # where the splitting stops, a refinement in float64 is the better successor
            return [chosen] if is_split else [chosen, DouglasRachford()]
        if not is_split:
            return [chosen, DouglasRachford(), RowNewton()]
        if not problem.loss.sparse:
            return [chosen, RowNewton()]
        # what Newton's method gives has exact zeros, and it needs few steps once the splitting is near
        first, second = _BEFORE_NEWTON
        second = second if problem.curvature > 0 else _BEFORE_FLAT
        is_easy = problem.curvature > 0 and problem.lipschitz <= _EASY
        near = [DouglasRachford(max_iter=first), RowNewton(max_iter=_SHORT)] if is_easy else []
        return [*near, DouglasRachford(max_iter=second), RowNewton(), DouglasRachford()]

    def _newton(self, most_active: float) -> Solver:
        """Return Newton's method, which gives up early, unless steps are counted: then nobody would take over."""
        if self.max_iter is not None:
            return RowNewton(max_iter=self.max_iter)
        return RowNewton(patience=_GIVE_UP, most_active=most_active)

    def _is_small(self, problem: DualProblem) -> bool:
        return problem.targets.shape[0] <= _SMALL

    def _is_mild(self, problem: DualProblem) -> bool:
        """Whether the condition number is at most ``_HARD``; the trace, a bound, tells it at once for most."""
        K: Array = problem.gram.identity_factor()
        trace = float(namespace(K).linalg.trace(K)) * problem.scale
        return trace <= _HARD or problem.lipschitz <= _HARD

    def _is_for_newton(self, problem: DualProblem) -> bool:
        """Whether Newton's method sees soon which samples of one output are active, or at their bound."""
        if problem.loss.sparse:  # its systems are smaller than the factorisation, whatever lam, if that is large
            return not self._is_small(problem)
        return self._share_at_bound(problem) <= _NEARLY_ALL

    def _gradient(self, problem: DualProblem) -> Array:
        """Return the gradient of the loss at the targets, the duals that the zero model asks for."""
        return problem.prox_remainder(problem.targets / problem.curvature, 1 / problem.curvature)

    def _gap_of_gradient(self, problem: DualProblem) -> float:
        duals = self._gradient(problem)
        return problem.certificate(duals, problem.predictions(duals)).relative_gap

    def _share_at_bound(self, problem: DualProblem) -> float:
        """Return the share of samples whose dual in the zero model is at its bound."""
        ratios = problem.loss.saturation(problem.unscale(self._gradient(problem)))
        return 0.0 if ratios is None else float((host(ratios) >= 1 - 16 * eps(ratios)).mean())

    def _share_outside(self, problem: DualProblem) -> float:
        """Return the share of samples that the zero model does not fit."""
        values: Array = host(problem.loss.value(problem.unscale(problem.targets)))
        return float((values > 0).mean())

    def _step_seconds(self, problem: DualProblem) -> float:
        (n, p), width = problem.targets.shape, problem.gram.width  # a product with one column waits for memory
        return max(2 * n * width * p / _FLOPS, (8 * n * width - _CACHE) / _BANDWIDTH) + _OVERHEAD

    def _newton_seconds(self, problem: DualProblem) -> float:
        n = problem.targets.shape[0] * (self._share_outside(problem) if problem.loss.sparse else 1.0)
        return _NEWTON_STEPS * (n**3 / 3 / _FLOPS + 5 * _OVERHEAD)

    def _factorisation_seconds(self, problem: DualProblem) -> float:
        n, width = problem.targets.shape[0], problem.gram.width
        return 2.2 * n * width**2 / _FLOPS + 10 * (self._step_seconds(problem) + _OVERHEAD)

    def _limited(self, solver: Solver) -> Solver:
        return solver if self.max_iter is None else solver.set_params(max_iter=self.max_iter)


class _Watch:
    """Hands each certificate to the user's callback, and ends an attempt of Newton's method that has no chance."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.is_over = False
        self.before = 0  # iterations of the solvers that came before

    def of(self, solver: Solver, problem: DualProblem) -> Callback:
        """Return the callback for one solver."""
        is_try = isinstance(solver, RowNewton) and solver.patience == _GIVE_UP and problem.curvature == 0
        limit, wanted = _NO_CHANCE if is_try else (math.inf, 0.0)
        best = math.inf

        def watch(n_iter: int, found: Certificate) -> bool:
            nonlocal best
            best = min(best, found.relative_gap)
            self.is_over = self.callback is not None and bool(self.callback(self.before + n_iter, found))
            return self.is_over or (n_iter >= limit and best > wanted)

        return watch
