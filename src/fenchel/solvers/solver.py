"""Base class of solvers, the solutions they return, and ways to watch their progress."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar

from fenchel._array import Array
from fenchel._component import Component
from fenchel._progress import part
from fenchel.exceptions import IncompatibleError
from fenchel.problem import Certificate, DualProblem
from fenchel.solvers.costs import Cost, Known

__all__ = [
    "Callback",
    "Solution",
    "Solver",
    "Stage",
    "Status",
    "approaching",
    "keeping_best",
    "keeps_best",
    "shown",
    "watched",
]

Callback = Callable[[int, Certificate], bool | None]
Watcher = Callable[[int, Certificate], None]

_WATCHER: ContextVar[Watcher | None] = ContextVar("_WATCHER", default=None)
_KEEPS_BEST: ContextVar[bool] = ContextVar("_KEEPS_BEST", default=False)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call a function with every certificate of the iterative solves inside a ``with`` block.

    Solves deep in an estimator or a search are included.

    Parameters
    ----------
    watcher : callable
        Called as ``watcher(n_iter, certificate)`` at each gap check; its return value is ignored. Solves in separate
        threads (``n_jobs``) are not seen, nor is the closed form of the square loss, which has no iterations.

    Yields
    ------
    None
        The block runs with the watcher set.

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


@contextmanager
def approaching(tol: float) -> Iterator[None]:
    """Count the solve inside a ``with`` block as the rest of the work, by the logarithm of its gap.

    A listener that asks for the end interrupts the solve, once it has a certified point.
    """
    watcher, gaps = _WATCHER.get(), list[float]()

    def watch(n_iter: int, certificate: Certificate) -> None:
        if watcher is not None:
            watcher(n_iter, certificate)
        gaps.append(certificate.distance)
        if tol < gaps[-1] < gaps[0] < math.inf:
            work.reach(math.log(gaps[0] / gaps[-1]) / math.log(gaps[0] / tol))
        if work.is_stopped and len(gaps) > 1:
            work.go_on()
            raise KeyboardInterrupt

    with part() as work, watched(watch):
        yield


@contextmanager
def keeping_best() -> Iterator[None]:
    """Make ``KeyboardInterrupt`` end the solves inside a ``with`` block with their best certified point.

    Elsewhere it propagates: a search chooses among many solves, so a single point would be of no use.
    """
    token = _KEEPS_BEST.set(True)
    try:
        yield
    finally:
        _KEEPS_BEST.reset(token)


def keeps_best() -> bool:
    """Whether an interrupted solve returns its best point."""
    return _KEEPS_BEST.get()


def shown(n_iter: int, certificate: Certificate) -> None:
    """Pass a certificate to the watcher, if there is one."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(n_iter, certificate)


class Status(Enum):
    """How a solve ended; the value is the message shown to the user.

    Examples
    --------
    >>> from fenchel.solvers import Status
    >>> Status.CONVERGED.value
    'converged: the relative duality gap is within tol'
    """

    CONVERGED = "converged: the relative duality gap is within tol"
    MAX_ITER = "not converged: stopped at max_iter"
    STALLED = "not converged: no progress, the round-off of this dtype is reached"
    INFEASIBLE = "not converged: no finite primal value was found; the loss may admit no solution"
    COARSE = "not converged: solved for the approximate kernel, but the gap of the exact kernel is above tol"
    INTERRUPTED = "not converged: interrupted, this is the best point that was certified"


@dataclass(frozen=True)
class Stage:
    """One solver's turn in a relay: why it ran, for how long, and the gap it reached."""

    solver: str
    reason: str
    n_iter: int
    gap: float
    status: str


@dataclass(frozen=True)
class Solution:
    """The result of a solver: duals, predictions, certificate, and how they were obtained.

    Attributes
    ----------
    duals, predictions : array of shape (n, p)
        Dual variables of the problem, and predictions for the training samples.
    certificate : Certificate
        Objectives and duality gap.
    n_iter : int
        Number of iterations.
    status : Status
        Why the solver stopped.
    solver : str
        The solver that found the duals.
    history : list of (int, Certificate)
        Iteration and certificate at each gap check.
    state : object
        Final state of the solver, from which it can be restarted.
    stages : tuple of Stage
        All solvers that ran, if there were several.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.losses import Huber
    >>> from fenchel.operators import Dense
    >>> from fenchel.problem import DualProblem
    >>> from fenchel.solvers import APGD
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> solution = APGD().solve(DualProblem.build(Dense(Gaussian(1.0)(X)), np.sin(X), Huber(0.5), lam=1e-2))
    >>> solution.solver, solution.duals.shape
    ('APGD', (20, 1))
    """

    duals: Array
    predictions: Array
    certificate: Certificate
    n_iter: int
    status: Status
    solver: str
    history: list[tuple[int, Certificate]] = field(default_factory=list, repr=False)
    state: object = field(default=None, repr=False)
    stages: tuple[Stage, ...] = ()

    def certified(self, certificate: Certificate, tol: float, otherwise: Status) -> "Solution":
        """Return the solution with another certificate and its status; ``otherwise`` is that of a gap above ``tol``."""
        status = otherwise if self.status is Status.CONVERGED else self.status
        status = Status.CONVERGED if certificate.distance <= tol else status
        return replace(self, certificate=certificate, status=status)

    def stage(self, reason: str) -> Stage:
        """Return this solution as a stage of a relay."""
        return Stage(self.solver, reason, self.n_iter, self.certificate.relative_gap, self.status.value)


class Solver(Component, ABC):
    """Solve dual problems to a relative gap, or report why that is not possible."""

    gram_copies: ClassVar[float] = 7.0  # peak memory, including the factorisation, in units of the Gram matrix
    streams: ClassVar[bool] = False  # works with a Gram matrix that is not stored
    chooses: ClassVar[bool] = False  # delegates to other solvers
    most_shared: float = 0.0  # number of problems solved side by side from one eigendecomposition; 0: it needs none
    start_gap: ClassVar[float] = math.inf  # largest gap of a start from which this solver is worth its cost

    @abstractmethod
    def why_not(self, problem: DualProblem) -> str | None:
        """Return why this solver cannot solve the problem, or ``None`` if it can."""

    def solve_all(
        self,
        problems: Sequence[DualProblem],
        tol: float = 1e-6,
        starts: Sequence[object] | None = None,
        callback: Callback | None = None,
    ) -> list[Solution]:
        """Return the solutions of problems that share Gram operator and targets.

        ``starts`` are initial duals, or the ``state`` of a solution found by this solver, one for each problem;
        ``callback(n_iter, certificate)`` may return True to stop a problem. A solver implements this or ``solve``.
        """
        starts = starts or [None] * len(problems)
        return [self.solve(problem, tol, start, callback) for problem, start in zip(problems, starts, strict=True)]

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Estimate the cost of a solve to a gap of 1e-6, whether or not this solver accepts the problem.

        Infinite unless overridden, so that ``Auto`` does not prefer it.
        """
        return Cost(0.0, math.inf, 1.0)

    def within(self, problem: DualProblem, known: Known, price: float, patience: float) -> "Solver":
        """Return this solver, limited to ``patience`` times a price in (estimated) seconds."""
        return self

    def resuming(self, solution: Solution) -> "tuple[Solver, object]":
        """Return this solver, set to continue from another solver's solution, and its start."""
        return self, solution.duals

    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: object = None, callback: Callback | None = None
    ) -> Solution:
        """Return the solution of one problem."""
        return self.solve_all([problem], tol, [start], callback)[0]

    def require(self, problem: DualProblem) -> None:
        """Raise ``IncompatibleError`` if this solver does not accept the problem."""
        reason = self.why_not(problem)
        if reason is not None:
            raise IncompatibleError(f"{type(self).__name__} cannot solve this problem: {reason}")
