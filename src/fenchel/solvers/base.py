"""What a solver is, and the one loop that every iterative solver runs in."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from fenchel._array import Array
from fenchel._check import Interval, Options
from fenchel._component import Component
from fenchel.exceptions import IncompatibleError
from fenchel.problem import Certificate, DualProblem

__all__ = ["IterativeSolver", "Solution", "Solver", "Status"]

Callback = Callable[[int, Certificate], bool | None]


class Status(Enum):
    """How a solve ended; the value is the sentence that a user reads."""

    CONVERGED = "converged: the relative duality gap is within tol"
    MAX_ITER = "not converged: stopped at max_iter"
    STALLED = "not converged: no progress, the round-off of this dtype is reached"
    INFEASIBLE = "not converged: no finite primal value was found; the loss may admit no solution"
    INTERRUPTED = "not converged: interrupted by the callback"


@dataclass(frozen=True)
class Solution:
    """Duals (of the solver's problem), their predictions, the certificate and how it was reached."""

    duals: Array
    predictions: Array
    certificate: Certificate
    n_iter: int
    status: Status
    solver: str
    history: list[tuple[int, Certificate]] = field(default_factory=list, repr=False)
    state: Any = field(default=None, repr=False)


class Solver(Component, ABC):
    """Solves a dual problem to a relative gap, or says why it cannot."""

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

    def why_not(self, problem: DualProblem) -> str | None:
        """Return ``None``: an iterative solver takes every problem unless it says otherwise."""
        return None

    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: Array | None = None, callback: Callback | None = None
    ) -> Solution:
        """Iterate until the relative gap is at most ``tol``."""
        self.validate()
        self.require(problem)
        state = self.init(problem, start)
        best = self._certified(problem, state, tol)
        history = [(0, best[2])]
        progress_at, progress = 0, best[2].relative_gap
        status, n_iter = Status.MAX_ITER, 0
        while True:
            if best[2].relative_gap <= tol:
                status = Status.CONVERGED
            elif callback is not None and callback(*history[-1]):
                status = Status.INTERRUPTED
            elif len(history) - progress_at > self.patience:
                status = Status.STALLED
            if status is not Status.MAX_ITER or n_iter == self.max_iter:
                break
            for _ in range(min(self.check_every, self.max_iter - n_iter)):
                state, n_iter = self.step(problem, state), n_iter + 1
            found = self._certified(problem, state, tol)
            history.append((n_iter, found[2]))
            if found[2].relative_gap < best[2].relative_gap:
                best = found
            if best[2].relative_gap < 0.9 * progress:
                progress_at, progress = len(history), best[2].relative_gap
        if status is not Status.CONVERGED and not math.isfinite(best[2].primal):
            status = Status.INFEASIBLE
        return Solution(*best, n_iter, status, type(self).__name__, history, state)

    def _certified(self, problem: DualProblem, state: Any, tol: float) -> tuple[Array, Array, Certificate]:
        """Return the first point of a state that is within ``tol``, else its best."""
        found = []
        for point in self.points(problem, state):
            duals, predictions = problem.pulled_inside(*point)
            found.append((duals, predictions, problem.certificate(duals, predictions)))
            if found[-1][2].relative_gap <= tol:
                return found[-1]
        return min(found, key=lambda triple: triple[2].relative_gap)
