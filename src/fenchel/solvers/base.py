"""What a solver is, and the one loop that every iterative solver runs in."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar

from fenchel._array import Array
from fenchel._check import Interval, Options
from fenchel._component import Component
from fenchel.derived_problems import rotation
from fenchel.exceptions import IncompatibleError
from fenchel.feasibility import pulled_inside, round_off
from fenchel.problem import Certificate, DualProblem

__all__ = ["IterativeSolver", "Solution", "Solver", "Stage", "Status", "watched"]

Callback = Callable[[int, Certificate], bool | None]
Watcher = Callable[[int, Certificate], None]

_WATCHER: ContextVar[Watcher | None] = ContextVar("_WATCHER", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Show every certificate of the iterative solves inside a ``with`` block, also of solves deep in an estimator.

    Parameters
    ----------
    watcher : callable
        Called as ``watcher(n_iter, certificate)`` at each test of the gap; what it returns is not used. Solves in
        threads of their own (``n_jobs``) are not seen, nor is the closed form of the square loss, which has no steps.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.solvers import watched
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> gaps = []
    >>> with watched(lambda n_iter, certificate: gaps.append(certificate.relative_gap)):
    ...     model = OperatorKernelRegressor(loss="huber").fit(X, np.sin(X))
    >>> bool(gaps[-1] <= 1e-6)
    True
    """
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


class Status(Enum):
    """How a solve ended; the value is the sentence that a user reads."""

    CONVERGED = "converged: the relative duality gap is within tol"
    MAX_ITER = "not converged: stopped at max_iter"
    STALLED = "not converged: no progress, the round-off of this dtype is reached"
    INFEASIBLE = "not converged: no finite primal value was found; the loss may admit no solution"
    INTERRUPTED = "not converged: interrupted by the callback"


@dataclass(frozen=True)
class Stage:
    """What one solver of a relay did: why it ran, how long, and how far it came."""

    solver: str
    reason: str
    n_iter: int
    gap: float
    status: str


@dataclass(frozen=True)
class Solution:
    """Duals (of the solver's problem), their predictions, the certificate and how it was reached.

    ``solver`` names the one that found the duals; ``stages`` are all that ran, where several did.
    """

    duals: Array
    predictions: Array
    certificate: Certificate
    n_iter: int
    status: Status
    solver: str
    history: list[tuple[int, Certificate]] = field(default_factory=list, repr=False)
    state: Any = field(default=None, repr=False)
    stages: tuple[Stage, ...] = ()

    def stage(self, reason: str) -> Stage:
        """Return this solution as a stage of a relay."""
        return Stage(self.solver, reason, self.n_iter, self.certificate.relative_gap, self.status.value)


Point = tuple[Array, Array, Certificate]  # duals, predictions, and their certificate


_AT_FLOOR = 0.1  # share of the patience that is left once round-off in the predictions explains the gap
_BROKEN = 3  # certificates in a row that are not numbers before a run ends


class Run:
    """What has been seen of one problem: its best point, its history, and whether it is done."""

    def __init__(self, problem: DualProblem, tol: float, patience: float) -> None:
        self.problem = problem
        self.tol = tol
        self.patience = patience
        self.history: list[tuple[int, Certificate]] = []
        self.status = Status.MAX_ITER
        self.state: Any = None
        self._best: list[Point] = []  # empty, or one
        self._progress = (0, math.inf)

    def add(self, n_iter: int, point: Point) -> None:
        """Note a certificate, and keep the point if it is the best."""
        gap, watcher = _comparable(point), _WATCHER.get()
        self.history.append((n_iter, point[2]))
        if watcher is not None:
            watcher(n_iter, point[2])
        if not self._best or gap < _comparable(self._best[0]):
            self._best = [point]
        if gap < 0.9 * self._progress[1]:
            self._progress = (len(self.history), gap)

    def is_done(self, callback: Callback | None) -> bool:
        """Whether to stop, and note why."""
        if self._best[0][2].relative_gap <= self.tol:
            self.status = Status.CONVERGED
        elif callback is not None and callback(*self.history[-1]):
            self.status = Status.INTERRUPTED
        elif self._idle > self.patience or self._is_at_floor() or self._is_broken():
            self.status = Status.STALLED
        return self.status is not Status.MAX_ITER

    @property
    def _idle(self) -> int:
        """The number of certificates since the gap last fell by a tenth."""
        return len(self.history) - self._progress[0]

    def _is_at_floor(self) -> bool:
        """Whether the gap no longer falls and round-off explains what is left of it."""
        patience = max(1, int(_AT_FLOOR * self.patience)) if math.isfinite(self.patience) else 0
        if patience == 0 or self._idle == 0 or self._idle % patience:
            return False
        duals, predictions, certificate = self._best[0]
        return certificate.gap <= round_off(self.problem, duals, predictions)

    def _is_broken(self) -> bool:
        last = self.history[-_BROKEN:]
        return len(last) == _BROKEN and all(math.isnan(certificate.relative_gap) for _, certificate in last)

    def solution(self, name: str) -> Solution:
        """Return the best point."""
        best = self._best[0]
        is_infinite = self.status is not Status.CONVERGED and not math.isfinite(best[2].primal)
        status = Status.INFEASIBLE if is_infinite else self.status
        return Solution(*best, self.history[-1][0], status, name, self.history, self.state)


def _comparable(point: Point) -> float:
    """Return the gap of a point, infinity where it is not a number."""
    gap = point[2].relative_gap
    return math.inf if math.isnan(gap) else gap


def turned_back(solution: Solution, problem: DualProblem, tol: float) -> Solution:
    """Return the solution of the rotated problem in the problem's own coordinates, certified there."""
    turn = rotation(problem)
    duals = solution.duals if turn is None else turn.back(solution.duals)
    predictions = problem.predictions(duals)
    certificate = problem.certificate(duals, predictions)
    is_lost = solution.status is Status.CONVERGED and not certificate.relative_gap <= tol
    status = Status.STALLED if is_lost else solution.status  # the change of coordinates can cost the last digit
    return replace(solution, duals=duals, predictions=predictions, certificate=certificate, status=status)


class Solver(Component, ABC):
    """Solves a dual problem to a relative gap, or says why it cannot."""

    gram_copies: ClassVar[float] = 7.0  # peak memory over that of the Gram matrix, factorisation and its work included

    @abstractmethod
    def why_not(self, problem: DualProblem) -> str | None:
        """Return why this solver cannot solve the problem, or ``None`` if it can."""

    @abstractmethod
    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: Array | None = None, callback: Callback | None = None
    ) -> Solution:
        """Return the solution.

        ``start`` are duals to begin from; ``callback(n_iter, certificate)`` may return True to stop.
        """

    def require(self, problem: DualProblem) -> None:
        """Raise ``IncompatibleError`` if the problem is not for this solver."""
        reason = self.why_not(problem)
        if reason is not None:
            raise IncompatibleError(f"{type(self).__name__} cannot solve this problem: {reason}")


class IterativeSolver(Solver, ABC):
    """The loop: step, and every ``check_every`` steps the certificate, on which it stops.

    The best point seen is the one returned, so a run that is cut short loses nothing.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "max_iter": Interval(1, math.inf, "left", integer=True),
        "check_every": Interval(1, math.inf, "left", integer=True),
    }

    max_iter: int
    check_every: int
    patience: float = math.inf  # certificates in a row without progress before giving up

    @abstractmethod
    def init(self, problem: DualProblem, start: Array | None) -> Any:
        """Return the first state."""

    @abstractmethod
    def step(self, problem: DualProblem, state: Any) -> Any:
        """Return the next state; states are never written to."""

    @abstractmethod
    def points(self, problem: DualProblem, state: Any) -> Iterator[tuple[Array, Array]]:
        """Yield the duals (in the domain of the conjugate) and predictions of a state, the preferred ones first."""

    def is_hopeless(self, problem: DualProblem, state: Any) -> bool:
        """Whether to give up at this state, for a reason that the gap does not show."""
        return False

    def why_not(self, problem: DualProblem) -> str | None:
        """Return ``None``: an iterative solver takes every problem unless it says otherwise."""
        return None

    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: Array | None = None, callback: Callback | None = None
    ) -> Solution:
        """Iterate until the relative gap is at most ``tol``."""
        self.validate()
        self.require(problem)
        run, state, n_iter = Run(problem, tol, self.patience), self.init(problem, start), 0
        while True:
            run.add(n_iter, self._certified(problem, state, tol))
            if run.is_done(callback) or n_iter >= self.max_iter or self.is_hopeless(problem, state):
                break
            for _ in range(min(self.check_every, self.max_iter - n_iter)):
                state, n_iter = self.step(problem, state), n_iter + 1
        run.state = state
        return run.solution(type(self).__name__)

    def _certified(self, problem: DualProblem, state: Any, tol: float) -> Point:
        """Return the first point of a state that is within ``tol``, else its best."""
        found = []
        for point in self.points(problem, state):
            duals, predictions = pulled_inside(problem, *point)
            found.append((duals, predictions, problem.certificate(duals, predictions)))
            if found[-1][2].relative_gap <= tol:
                return found[-1]
        return min(found, key=_comparable)
