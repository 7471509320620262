"""Automatic choice of a solver by estimated cost."""

import logging
import math
from dataclasses import dataclass, replace

from fenchel._array import has_shape, is_on_cpu, is_single, namespace
from fenchel.exceptions import SlowFitWarning, warn_user
from fenchel.operators import streamed
from fenchel.problem import Certificate, DualProblem
from fenchel.problem.derived import compact
from fenchel.problem.feasibility import round_off
from fenchel.solvers.box import BoxNewton
from fenchel.solvers.closed_form import ClosedForm
from fenchel.solvers.costs import Cost, Known, Shares, trace
from fenchel.solvers.krylov import Krylov
from fenchel.solvers.loop import certified
from fenchel.solvers.newton import RowNewton
from fenchel.solvers.proximal import APGD
from fenchel.solvers.solver import Callback, Solution, Solver, Stage, Status, keeps_best
from fenchel.solvers.splitting import DouglasRachford

__all__ = ["Auto"]

_LOG = logging.getLogger("fenchel")
_LONG = 90.0  # seconds of an estimate from which on a warning says minutes: it rounds to two
# measured on the 351 problems of costs.py, to a gap of 1e-9: with 3, the relay takes 1.10 times the time of the best
# solver (geometric mean; 4 at worst), with 2 it takes 1.14 times (26 at worst)
_PATIENCE = 3.0


class Auto(Solver):
    """Run the solver with the lowest estimated cost, then the next one if it fails to converge.

    Parameters
    ----------
    max_iter : int or None, default=None
        Maximum number of iterations of the chosen solver, which then runs alone; ``None`` means its own default.

    Notes
    -----
    The square loss has a closed form. A Gram matrix that is not stored is left to ``Krylov``. For other losses each
    solver estimates its cost from the sizes, the norm of the Gram operator, the share of samples that the zero model
    leaves outside the insensitive zone and at their bound, and whether the eigenbasis is available. A solver hands over
    once it has stalled or has cost three times the estimate of the next one, which continues from the best point so
    far. A solver that has run is then priced at its last allowance, so that it may run again with a larger one. A
    solver that is good only near the solution (``BoxNewton``) is preceded by the cheapest one that is not, until the
    gap is small enough. A problem whose solution is zero is recognised immediately. ``Solution.stages`` lists the
    solvers that ran, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.solvers import Auto
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(loss="huber", lam=1e-2, solver=Auto()).fit(X, np.sin(X))
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    chooses = True

    def __init__(self, max_iter: int | None = None) -> None:
        self.max_iter = max_iter

    def why_not(self, problem: DualProblem) -> str | None:
        """Return ``None``: there is a solver for every problem."""
        return None

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost of the solver that would run first."""
        return self.choose(problem)[0].cost(problem, known)

    def choose(self, problem: DualProblem) -> tuple[Solver, str]:
        """Return the solver that would run first, and why."""
        alone = self._alone(problem)
        if alone is not None:
            return alone
        queue = _Queue(problem, self._candidates())
        offer = queue.pop(math.inf)
        assert offer is not None  # APGD accepts every problem
        return offer.solver, queue.reason(offer)

    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: object = None, callback: Callback | None = None
    ) -> Solution:
        """Run solvers one after the other until one converges."""
        zero = self._zero(problem)
        if zero is not None:
            return zero
        if (small := compact(problem)) is not None:
            begin = small.forward(start) if has_shape(start) else start
            solution = self.solve(small.problem, tol, begin, callback)
            return certified(solution, problem, small.back(solution.duals), tol)
        relay = _Relay(problem, start, tol, callback)
        alone = self._alone(problem)
        if alone is not None:
            relay.run(*alone, tol)
            return relay.solution()
        queue = _Queue(problem, self._candidates())
        while not relay.is_over and (offer := queue.pop(relay.gap)) is not None:
            reason, price = queue.reason(offer), queue.next_price(relay.gap)
            solver = offer.solver if self.max_iter else offer.solver.within(problem, queue.known, price, _PATIENCE)
            is_limited = solver is not offer.solver
            if not relay.has_run:
                _say(problem, offer.solver, queue.known, reason)
            status = relay.run(solver, reason, max(tol, queue.gap_of_successor(offer, relay.gap)), is_limited)
            if self.max_iter:
                break
            if is_limited and status is Status.MAX_ITER:
                queue.put(replace(offer, price=_PATIENCE * price))
            elif status is Status.CONVERGED and not relay.is_over:
                queue.put(offer)
        return relay.solution()

    def _alone(self, problem: DualProblem) -> tuple[Solver, str] | None:
        """Return the solver without a rival for this problem, if any, and why."""
        krylov = Krylov() if self.max_iter is None else Krylov(max_iter=self.max_iter)
        if streamed(problem.gram) is not None and krylov.why_not(problem) is None:
            return krylov, "the Gram matrix is not stored in full precision"
        if ClosedForm().why_not(problem) is None:
            return ClosedForm(), "the square loss has a closed form"
        return None

    def _candidates(self) -> list[Solver]:
        if self.max_iter is None:
            return [RowNewton(), BoxNewton(), DouglasRachford(), APGD()]
        return [kind(max_iter=self.max_iter) for kind in (RowNewton, DouglasRachford, APGD)]

    def _zero(self, problem: DualProblem) -> Solution | None:
        """Return the zero model if it is the solution."""
        if problem.value_at_zero != 0:
            return None
        zero = namespace(problem.targets).zeros_like(problem.targets)
        certificate = problem.certificate(zero, zero)
        if certificate.gap != 0:
            return None
        solution = Solution(zero, zero, certificate, 0, Status.CONVERGED, type(self).__name__, [(0, certificate)])
        return replace(solution, stages=(solution.stage("the zero model is the solution"),))


@dataclass(frozen=True)
class _Offer:
    """A solver, and the price in seconds of its next turn."""

    solver: Solver
    price: float


def _say(problem: DualProblem, solver: Solver, known: Known, reason: str) -> None:
    """Tell the logger which solver begins, and warn if it is estimated to take more than a minute."""
    name, cost = type(solver).__name__, solver.cost(problem, known)
    _LOG.info(f"{name}: {reason}")
    seconds = cost.setup + cost.step * min(cost.n_steps, solver.max_iter or math.inf)
    if seconds > _LONG and is_on_cpu(problem.targets):  # estimates are those of a core
        warn_user(
            f"The fit is estimated to take {seconds / 60:.0f} minutes by {name} on one core. A fit to a part of "
            "the sample, with landmarks (approximation=) or a larger tol is faster; progress=True or the logger "
            "'fenchel' tell how far it is.",
            SlowFitWarning,
            "slow-fit",
        )


class _Queue:
    """The solvers that may run, cheapest first; whether one accepts the problem is checked only when its turn comes."""

    def __init__(self, problem: DualProblem, candidates: list[Solver]) -> None:
        self.problem = problem
        self._refusals: dict[str, str | None] = {}
        candidates = [each for each in candidates if math.isinf(each.start_gap) or self._takes(each)]
        # if the same solver is cheapest for the trace and for trace / sqrt(n), the exact norm hardly matters
        shares, bound, n = Shares(problem), trace(problem), problem.targets.shape[0]
        ends = [self._ranked(candidates, Known(shares, norm)) for norm in (bound, bound / n**0.5)]
        first, other = (self._first(ranking, math.inf) for ranking in ends)
        is_settled = first is not None and other is not None and first.solver is other.solver
        self.known = Known(shares, bound / n**0.25 if is_settled else problem.lipschitz)
        self._offers = self._ranked(candidates, self.known)

    def pop(self, gap: float) -> _Offer | None:
        """Remove and return the cheapest solver that is worth its cost from a start with this gap."""
        offer = self._first(self._offers, gap)
        if offer is not None:
            self._offers.remove(offer)
        return offer

    def put(self, offer: _Offer) -> None:
        """Queue a solver for another turn."""
        self._offers = sorted([*self._offers, offer], key=lambda each: each.price)

    def next_price(self, gap: float) -> float:
        """Return the price of the cheapest queued solver."""
        offer = self._first(self._offers, gap)
        return math.inf if offer is None else offer.price

    def gap_of_successor(self, offer: _Offer, gap: float) -> float:
        """Return the gap at which a cheaper solver that needs a close start can take over, 0 if there is none."""
        cheaper = (each for each in self._offers if each.price < offer.price and each.solver.start_gap < gap)
        return max((each.solver.start_gap for each in cheaper if self._takes(each.solver)), default=0.0)

    def reason(self, offer: _Offer) -> str:
        """Return why a solver taken from the queue was chosen."""
        other = self._first(self._offers, math.inf)
        if other is None:
            refusals = [f"{name}: {reason}" for name, reason in self._refusals.items() if reason is not None]
            return " ".join(["the only solver for this problem.", *refusals])
        name = type(other.solver).__name__
        basis = " with the available eigenbasis" if self.problem.shared.is_factorized else ""
        return f"cheapest estimate{basis}: {offer.price:.2g} s, next {name} {other.price:.2g} s"

    def _ranked(self, candidates: list[Solver], known: Known) -> list[_Offer]:
        offers = [_Offer(solver, solver.cost(self.problem, known).seconds) for solver in candidates]
        return sorted(offers, key=lambda offer: offer.price)

    def _first(self, offers: list[_Offer], gap: float) -> _Offer | None:
        return next((each for each in offers if gap <= each.solver.start_gap and self._takes(each.solver)), None)

    def _takes(self, solver: Solver) -> bool:
        name = type(solver).__name__
        if name not in self._refusals:
            self._refusals[name] = solver.why_not(self.problem)
        return self._refusals[name] is None


class _Relay:
    """The solvers that have run on a problem, one after the other, and the best solution so far."""

    def __init__(self, problem: DualProblem, start: object, tol: float, callback: Callback | None) -> None:
        self.problem = problem
        self.tol = tol
        self._start = start
        self._callback = callback
        self._best: Solution | None = None
        self._history: list[tuple[int, Certificate]] = []
        self._stages: list[Stage] = []
        self._is_interrupted = False

    @property
    def gap(self) -> float:
        """The smallest gap so far, infinity if it is NaN."""
        gap = math.inf if self._best is None else self._best.certificate.distance
        return math.inf if math.isnan(gap) else gap

    @property
    def has_run(self) -> bool:
        """Whether a solver has run."""
        return bool(self._stages)

    @property
    def is_over(self) -> bool:
        """Whether the best point is within tol, or no solver should continue."""
        if self._best is None:
            return False
        return self._is_interrupted or self._is_there or self._is_infeasible or self._is_at_floor

    def run(self, solver: Solver, reason: str, tol: float, is_limited: bool = False) -> Status:
        """Run a solver from the best point, unless the zero model is better.

        A solver that is cut short cannot conclude that a problem has no solution.
        """
        start = self._start if self._best is None else None
        if self._best is not None and self.gap < 1:
            solver, start = solver.resuming(self._best)
        if self._stages:
            reason = f"{self._stages[-1].solver} handed over at gap {self._stages[-1].gap:.1e}"
        before = self._history[-1][0] if self._history else 0

        def watch(n_iter: int, certificate: Certificate) -> bool:
            is_stop = self._callback is not None and bool(self._callback(before + n_iter, certificate))
            self._is_interrupted = self._is_interrupted or is_stop
            return is_stop

        try:
            solution = solver.solve(self.problem, tol, start, watch)
        except KeyboardInterrupt:  # before its first point: keep the point of an earlier solver
            if self._best is None or not keeps_best():
                raise
            self._is_interrupted = True
            return Status.INTERRUPTED
        self._is_interrupted = self._is_interrupted or solution.status is Status.INTERRUPTED
        is_cut_short = is_limited and solution.n_iter >= getattr(solver, "max_iter", math.inf)
        if is_cut_short and solution.status is Status.INFEASIBLE:
            solution = replace(solution, status=Status.MAX_ITER)
        self._history += [(before + n_iter, certificate) for n_iter, certificate in solution.history]
        self._stages.append(solution.stage(reason))
        if math.isinf(self.gap) or solution.certificate.distance < self.gap:
            self._best = solution
        return solution.status

    def solution(self) -> Solution:
        """Return the best point, with the history of all solvers."""
        assert self._best is not None  # at least one solver has run
        best = replace(self._best, history=self._history, n_iter=self._history[-1][0], stages=tuple(self._stages))
        if self._is_there or (best.status is Status.INFEASIBLE and not self._is_interrupted):
            return best
        last = Status(self._stages[-1].status)
        ended = Status.INTERRUPTED if self._is_interrupted else last
        return replace(best, status=Status.STALLED if ended is Status.CONVERGED else ended)

    @property
    def _is_there(self) -> bool:
        return self._best is not None and self._best.status is Status.CONVERGED and self.gap <= self.tol

    @property
    def _is_infeasible(self) -> bool:
        """Whether two solvers ran to their end without a finite value; a single Newton method may just have stalled."""
        verdicts = [stage for stage in self._stages if stage.status == Status.INFEASIBLE.value]
        return math.isinf(self.gap) and len(verdicts) > 1

    @property
    def _is_at_floor(self) -> bool:
        """Whether round-off explains the gap, so that no solver can do much better.

        In float64 one more solver is tried; in float32 refinement in float64 is a better successor.
        """
        best = self._best
        if best is None or best.status is not Status.STALLED or not (len(self._stages) > 1 or is_single(best.duals)):
            return False
        return best.certificate.gap <= round_off(self.problem, best.duals, best.predictions)
