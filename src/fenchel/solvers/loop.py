"""The loop shared by all iterative solvers, for any number of problems side by side."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Generic, Self, TypeVar

from fenchel._array import Array, has_shape
from fenchel._check import Interval, Options
from fenchel.problem import Certificate, DualProblem
from fenchel.problem.derived import rotation
from fenchel.problem.feasibility import pulled_inside, round_off
from fenchel.solvers.costs import Known
from fenchel.solvers.solver import Callback, Solution, Solver, Status, keeps_best, shown

__all__ = ["IterativeSolver", "Point", "ProblemwiseSolver"]

S = TypeVar("S")  # the state of a solver
Point = tuple[Array, Array, Certificate]  # duals, predictions, and their certificate

_AT_FLOOR = 0.1  # remaining share of the patience once round-off in the predictions explains the gap
_BROKEN = 3  # consecutive NaN certificates before a run ends


class Run:
    """Progress on one problem: its best point, its history, and whether it is done."""

    def __init__(self, problem: DualProblem, tol: float, patience: float) -> None:
        self.problem = problem
        self.tol = tol
        self.patience = patience
        self.history: list[tuple[int, Certificate]] = []
        self.status = Status.MAX_ITER
        self.state: object = None
        self._best: list[Point] = []  # empty, or a single point
        self._progress = (0, math.inf)

    def add(self, n_iter: int, point: Point) -> None:
        """Record a certificate, and keep the point if it is the best."""
        gap = comparable(point)
        self.history.append((n_iter, point[2]))
        shown(n_iter, point[2])
        if not self._best or gap < comparable(self._best[0]):
            self._best = [point]
        if gap < 0.9 * self._progress[1]:
            self._progress = (len(self.history), gap)

    def is_done(self, callback: Callback | None) -> bool:
        """Whether to stop; records the reason."""
        if self._best[0][2].distance <= self.tol:
            self.status = Status.CONVERGED
        elif callback is not None and callback(*self.history[-1]):
            self.status = Status.INTERRUPTED
        elif self._idle > self.patience or self._is_at_floor() or self._is_broken():
            self.status = Status.STALLED
        return self.status is not Status.MAX_ITER

    @property
    def has_point(self) -> bool:
        """Whether a point has been certified."""
        return bool(self._best)

    @property
    def _idle(self) -> int:
        """The number of certificates since the gap last fell by a tenth."""
        return len(self.history) - self._progress[0]

    def _is_at_floor(self) -> bool:
        """Whether the gap has stopped falling and round-off explains the rest."""
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


def comparable(point: Point) -> float:
    """Return the size of the gap of a point, infinity if it is NaN."""
    gap = point[2].distance
    return math.inf if math.isnan(gap) else gap


class IterativeSolver(Solver, ABC, Generic[S]):
    """Iterative solver: step until the gap, computed every ``check_every`` steps, is within tolerance.

    One problem is a batch of one. The best point seen for each problem is returned, so nothing is lost if a run is cut
    short. States are never modified.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "max_iter": Interval(1, math.inf, "left", integer=True),
        "check_every": Interval(1, math.inf, "left", integer=True),
    }

    max_iter: int
    check_every: int
    is_interruptible: ClassVar[bool] = False  # whether ``KeyboardInterrupt`` ends a solve with its best point
    patience: float = math.inf  # consecutive certificates without progress before giving up

    @abstractmethod
    def init(self, problems: Sequence[DualProblem], starts: Sequence[object]) -> S:
        """Return the initial state of the problems."""

    @abstractmethod
    def step(self, problems: Sequence[DualProblem], state: S) -> S:
        """Return the next state."""

    @abstractmethod
    def certify(self, problems: Sequence[DualProblem], state: S, tol: float) -> Sequence[Point | None]:
        """Return a certified point of each problem, or ``None`` for a guess that is not worth a check."""

    @abstractmethod
    def taken(self, state: S, places: Sequence[int]) -> S:
        """Return the state of the selected problems."""

    @abstractmethod
    def standing(self, state: S, place: int) -> object:
        """Return the state of one problem, as a start for another solve."""

    def turned(self, problems: Sequence[DualProblem]) -> list[DualProblem]:
        """Return the problems in the coordinates in which this solver works; unchanged unless overridden."""
        return list(problems)

    def is_hopeless(self, state: S, place: int) -> bool:
        """Whether to give up on one problem for a reason that the gap does not show."""
        return False

    def within(self, problem: DualProblem, known: Known, price: float, patience: float) -> Self:
        """Return the solver with as many iterations as the price allows by its own estimate."""
        cost = self.cost(problem, known)
        most = (patience * price - cost.setup) / cost.step
        return self if most >= self.max_iter else self.with_settings(max_iter=max(1, int(most)))

    def with_settings(self, **params: object) -> Self:
        """Return this solver with other values of some parameters."""
        return type(self)(**{**self.get_params(deep=False), **params})

    def _patience_for(self, problem: DualProblem) -> float:
        """Return how many consecutive certificates without progress end the run."""
        return self.patience

    def why_not(self, problem: DualProblem) -> str | None:
        """Return ``None``: an iterative solver accepts every problem unless overridden."""
        return None

    def solve_all(
        self,
        problems: Sequence[DualProblem],
        tol: float = 1e-6,
        starts: Sequence[object] | None = None,
        callback: Callback | None = None,
    ) -> list[Solution]:
        """Iterate side by side until each relative gap is at most ``tol``; problems are removed when they are done."""
        self.validate()
        for problem in problems:
            self.require(problem)
        turned = self.turned(problems)
        starts = starts or [None] * len(problems)
        forward = [_forward(*each) for each in zip(problems, turned, starts, strict=True)]
        runs = [Run(problem, tol, self._patience_for(problem)) for problem in turned]
        if runs:
            self._iterate(runs, forward, callback)
        solutions = [run.solution(type(self).__name__) for run in runs]
        return [
            solution if inner is problem else _turned_back(solution, problem, tol)
            for solution, problem, inner in zip(solutions, problems, turned, strict=True)
        ]

    def _iterate(self, runs: list[Run], starts: Sequence[object], callback: Callback | None) -> None:
        """Step until every run has ended; an interrupt ends the runs if each has a point and it is to be kept."""
        try:
            self._step_all(runs, starts, callback)
        except KeyboardInterrupt:
            if not ((self.is_interruptible or keeps_best()) and all(run.has_point for run in runs)):
                raise
            for run in runs:
                run.status = Status.INTERRUPTED if run.status is Status.MAX_ITER else run.status

    def _step_all(self, runs: list[Run], starts: Sequence[object], callback: Callback | None) -> None:
        state, n_iter = self.init([run.problem for run in runs], starts), 0
        while runs:
            problems = [run.problem for run in runs]
            stay = []
            for place, (run, point) in enumerate(zip(runs, self.certify(problems, state, runs[0].tol), strict=True)):
                if point is not None:
                    run.add(n_iter, point)
                is_done = point is not None and (run.is_done(callback) or self.is_hopeless(state, place))
                if is_done or n_iter >= self.max_iter:
                    run.state = self.standing(state, place)
                else:
                    stay.append(place)
            if 0 < len(stay) < len(runs):
                state = self.taken(state, stay)
            runs = [runs[place] for place in stay]
            if runs:
                problems = [run.problem for run in runs]
                for _ in range(min(self.check_every, self.max_iter - n_iter)):
                    state, n_iter = self.step(problems, state), n_iter + 1


class ProblemwiseSolver(IterativeSolver[tuple[S, ...]], ABC, Generic[S]):
    """An iterative solver that handles one problem at a time."""

    @abstractmethod
    def first_state(self, problem: DualProblem, start: Array | None) -> S:
        """Return the initial state of a problem."""

    @abstractmethod
    def next_state(self, problem: DualProblem, state: S) -> S:
        """Return the state after one step; states are never modified."""

    @abstractmethod
    def points(self, problem: DualProblem, state: S) -> Iterator[tuple[Array, Array]]:
        """Yield the duals (in the domain of the conjugate) and predictions of a state, in order of preference."""

    def init(self, problems: Sequence[DualProblem], starts: Sequence[object]) -> tuple[S, ...]:
        """Return the initial state of every problem."""
        return tuple(self.first_state(problem, start) for problem, start in zip(problems, starts, strict=True))

    def step(self, problems: Sequence[DualProblem], state: tuple[S, ...]) -> tuple[S, ...]:
        """Take one step in every problem."""
        return tuple(self.next_state(problem, each) for problem, each in zip(problems, state, strict=True))

    def certify(self, problems: Sequence[DualProblem], state: tuple[S, ...], tol: float) -> list[Point]:
        """Return for each problem the first point within ``tol``, else the best."""
        return [self._certified(problem, each, tol) for problem, each in zip(problems, state, strict=True)]

    def taken(self, state: tuple[S, ...], places: Sequence[int]) -> tuple[S, ...]:
        """Return the states of the selected problems."""
        return tuple(state[place] for place in places)

    def standing(self, state: tuple[S, ...], place: int) -> S:
        """Return the state of one problem."""
        return state[place]

    def _certified(self, problem: DualProblem, state: S, tol: float) -> Point:
        candidates: list[Point] = []
        for point in self.points(problem, state):
            duals, predictions = pulled_inside(problem, *point)
            candidates.append((duals, predictions, problem.certificate(duals, predictions)))
            if candidates[-1][2].distance <= tol:
                return candidates[-1]
        return min(candidates, key=comparable)


def _forward(problem: DualProblem, turned: DualProblem, start: object) -> object:
    """Return a start in the coordinates of the solver; the state of an earlier solve already is."""
    turn = rotation(problem)
    is_duals = turned is not problem and turn is not None and has_shape(start)
    return turn.forward(start) if is_duals else start  # type: ignore[union-attr]  # not None here


def _turned_back(solution: Solution, problem: DualProblem, tol: float) -> Solution:
    """Return the solution of the rotated problem in the original coordinates, certified there."""
    turn = rotation(problem)
    return certified(solution, problem, solution.duals if turn is None else turn.back(solution.duals), tol)


def certified(solution: Solution, problem: DualProblem, duals: Array, tol: float) -> Solution:
    """Return a solution that was found in other coordinates, with its duals in those of the problem."""
    predictions = problem.predictions(duals)
    certificate = problem.certificate(duals, predictions)
    is_lost = solution.status is Status.CONVERGED and not certificate.distance <= tol
    status = Status.STALLED if is_lost else solution.status  # the change of coordinates may cost the last digit
    return replace(solution, duals=duals, predictions=predictions, certificate=certificate, status=status)
