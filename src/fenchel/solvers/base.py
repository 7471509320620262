"""What a solver is, what it returns, and how a user watches it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from fenchel._array import Array
from fenchel._component import Component
from fenchel.exceptions import IncompatibleError
from fenchel.problem import Certificate, DualProblem
from fenchel.solvers.costs import Cost, Known

__all__ = ["Callback", "Solution", "Solver", "Stage", "Status", "keeping_best", "keeps_best", "shown", "watched"]

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
        Called as ``watcher(n_iter, certificate)`` at each test of the gap; what it returns is not used. Solves in
        threads of their own (``n_jobs``) are not seen, nor is the closed form of the square loss, which has no steps.

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
def keeping_best() -> Iterator[None]:
    """Let ``KeyboardInterrupt`` end the solves inside a ``with`` block with the best point that was certified.

    Elsewhere it goes through: of a search, whose result is a choice among many solves, one point is of no use.
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
    """Show a certificate to the watcher, if there is one."""
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
    INTERRUPTED = "not converged: interrupted, this is the best point that was certified"


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
    """The result of a solver: duals, predictions, certificate, and how they were reached.

    Attributes
    ----------
    duals, predictions : array of shape (n, p)
        Dual variables of the problem, and the predictions of the training samples.
    certificate : Certificate
        Objectives and duality gap.
    n_iter : int
        Number of iterations.
    status : Status
        Why the solver stopped.
    solver : str
        The solver that found the duals.
    history : list of (int, Certificate)
        Iteration and certificate of each test of the gap.
    state : object
        Final state of the solver, from which it can be started again.
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

    def stage(self, reason: str) -> Stage:
        """Return this solution as a stage of a relay."""
        return Stage(self.solver, reason, self.n_iter, self.certificate.relative_gap, self.status.value)


class Solver(Component, ABC):
    """Solves dual problems to a relative gap, or says why it cannot."""

    gram_copies: ClassVar[float] = 7.0  # peak memory over that of the Gram matrix, factorisation and its work included
    streams: ClassVar[bool] = False  # wants a Gram matrix that is not stored
    chooses: ClassVar[bool] = False  # leaves the work to solvers of its choice
    most_shared: float = 0.0  # problems that it solves side by side from one eigendecomposition; 0: it needs none
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

        ``starts`` are duals to begin from, or the ``state`` of a solution that this solver found, one for each problem;
        ``callback(n_iter, certificate)`` may return True to stop a problem. A solver writes this, or ``solve``.
        """
        starts = starts or [None] * len(problems)
        return [self.solve(problem, tol, start, callback) for problem, start in zip(problems, starts, strict=True)]

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return an estimate of what a solve to a gap of 1e-6 takes, whether or not this solver takes the problem.

        Infinite unless a solver says otherwise, so that ``Auto`` has no reason to prefer it.
        """
        return Cost(0.0, math.inf, 1.0)

    def within(self, problem: DualProblem, known: Known, price: float, patience: float) -> "Solver":
        """Return this solver, set to give up once it has cost ``patience`` times a price in (estimated) seconds."""
        return self

    def resuming(self, solution: Solution) -> "tuple[Solver, object]":
        """Return this solver, set to go on where another one came to, and its start."""
        return self, solution.duals

    def solve(
        self, problem: DualProblem, tol: float = 1e-6, start: object = None, callback: Callback | None = None
    ) -> Solution:
        """Return the solution of one problem."""
        return self.solve_all([problem], tol, [start], callback)[0]

    def require(self, problem: DualProblem) -> None:
        """Raise ``IncompatibleError`` if the problem is not for this solver."""
        reason = self.why_not(problem)
        if reason is not None:
            raise IncompatibleError(f"{type(self).__name__} cannot solve this problem: {reason}")
