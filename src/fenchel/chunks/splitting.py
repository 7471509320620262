"""Douglas–Rachford splitting of problems with chunked rows, on the workers of a Dask cluster.

Every array with one row per sample stays with its chunk. Workers exchange only D × p arrays: the products of the
features with the rows, and quantities derived from them. The client sees only scalars. Each state of a chunk is a task
that depends on the previous state and on D × p arrays, so the scheduler can recompute the data of a dead worker.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Protocol

import numpy as np

from fenchel._array import Array
from fenchel.chunks import tasks
from fenchel.chunks.sample import Client, Future
from fenchel.problem import DualProblem
from fenchel.problem.dual_problem import certificate_of_sums
from fenchel.solvers.loop import Point, Run
from fenchel.solvers.solver import Solution, Status
from fenchel.solvers.splitting import DouglasRachford
from fenchel.solvers.state_file import StateFile

__all__ = ["Features", "Splitting", "Workers", "solve_chunks"]

_GROUP = 16  # arrays added by one task
_IDLE = 40  # consecutive certificates without progress before giving up
_SPARSE_PATIENCE = 500  # iterations before a loss with sparse duals accepts a point without exact zeros


def solve_chunks(
    client: Client, chunks: Sequence[Future], solver: DouglasRachford, tol: float, file: StateFile | None = None
) -> Solution:
    """Solve the problem whose chunks are futures of ``DualProblem`` with a thin operator and the global lam and total.

    In the solution, ``duals`` are futures of the duals of the chunks and ``predictions`` the feature coefficients.
    """
    workers = Workers(client, chunks)
    linear = Features(workers)
    return Splitting(workers, linear, solver, *linear.start(file), file).solve(tol, "DouglasRachford on chunks")


class Workers:
    """The chunks of a problem, and helpers to submit tasks on them."""

    def __init__(self, client: Client, chunks: Sequence[Future]) -> None:
        self.client = client
        self.chunks = chunks
        self.kept: list[Future] = []  # small results of every step; without them a lost chunk would cost the others too

    def submit(self, function: Callable[..., object], *args: object) -> Future:
        """Submit a task."""
        return self.client.submit(function, *args, pure=False)

    def each(self, function: Callable[..., object], *args: object) -> list[Future]:
        """Submit a function of every chunk; list arguments have one entry per chunk."""
        return [
            self.submit(function, chunk, *(arg[k] if isinstance(arg, list) else arg for arg in args))
            for k, chunk in enumerate(self.chunks)
        ]

    def keep(self, function: Callable[..., object], *args: object) -> Future:
        """Submit a task whose result is kept until the end."""
        self.kept.append(self.submit(function, *args))
        return self.kept[-1]

    def sum(self, parts: list[Future], add: Callable[..., Array] = np.sum) -> Future:
        """Submit the sum over the chunks."""
        return self.submit(tasks.added, self.few(parts, add), add)

    def few(self, parts: list[Future], add: Callable[..., Array] = np.sum) -> list[Future]:
        """Submit sums over groups of chunks until few are left."""
        while len(parts) > _GROUP:
            groups = [parts[first : first + _GROUP] for first in range(0, len(parts), _GROUP)]
            parts = [self.submit(tasks.added, group, add) for group in groups]
        return parts


class Linear(Protocol):
    """The linear systems of a splitting, and the corresponding certificates."""

    check_every: int | None  # steps between two gap checks; None leaves it to the solver
    patience: int  # consecutive certificates without progress before giving up
    slack: float  # smallest change of log rho that is made

    def solved(self, states: list[Future], control: Future) -> list[Future]:
        """Return the solutions of the linear systems."""

    def certified(self, states: list[Future], tol: float, age: int) -> Point | None:
        """Return a certified point, or ``None`` if the states are not worth a check."""


class Features:
    """Linear systems in the features, solved by Woodbury's formula."""

    check_every: int | None = None
    patience = _IDLE
    slack = 0.0

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        sums = workers.sum(workers.each(tasks.first_sums))
        self.total, self.zero, self.is_sparse = workers.submit(tasks.facts, workers.chunks[0], sums).result()
        self.system = workers.keep(tasks.system_of, workers.chunks[0], sums)

    def start(self, file: StateFile | None = None) -> tuple[list[Future], Future]:
        """Return the states and the control from a checkpoint, or at the square-loss solution."""
        workers, system = self.workers, self.system
        if file is not None and (kept := restored(workers, file)) is not None:
            return kept
        ratio = workers.sum(workers.each(tasks.ridge_ratio, system), np.max) if self.is_sparse else None
        sums = None if ratio is None else workers.sum(workers.each(tasks.shortening_sums, system, ratio))
        control = workers.keep(tasks.first_control, system)
        return workers.each(tasks.first_state, system, control, workers.keep(tasks.shortening, ratio, sums)), control

    def solved(self, states: list[Future], control: Future) -> list[Future]:
        """Return the solutions of the linear systems."""
        products = self.workers.few(self.workers.each(tasks.right_products, states, control))
        correction = self.workers.keep(tasks.correction, products, self.system, control)
        return self.workers.each(tasks.thin_solved, states, control, correction)

    def certified(self, states: list[Future], tol: float, age: int) -> Point:
        """Return the prox points with their certificate or, if that fails, the better of them and the scaled solves."""
        point = self._point(states, None)
        if point[2].relative_gap <= tol or age == 0 or (self.is_sparse and age < _SPARSE_PATIENCE):
            return point
        ratio = self.workers.sum(self.workers.each(tasks.solved_ratio, states), np.max)
        return min(point, self._point(states, ratio), key=lambda one: one[2].relative_gap)

    def coefficients(self, duals: list[Future]) -> Future:
        """Return the coefficients of the features."""
        products = self.workers.sum(self.workers.each(tasks.thin_products, duals))
        return self.workers.keep(tasks.times_scale, self.system, products)

    def _point(self, states: list[Future], ratio: Future | None) -> Point:
        duals = self.workers.each(tasks.duals_of, states, ratio)
        coef = self.coefficients(duals)
        sums = self.workers.sum(self.workers.each(tasks.thin_certificate, duals, coef)).result()
        return duals, coef, certificate_of_sums(self.total, self.zero, *map(float, sums))


class Splitting:
    """The steps of the splitting, on all chunks."""

    def __init__(
        self,
        workers: Workers,
        linear: Linear,
        solver: DouglasRachford,
        states: list[Future],
        control: Future,
        file: StateFile | None = None,
    ) -> None:
        self.workers, self.linear, self.solver = workers, linear, solver
        self.states, self.control, self.file = states, control, file
        self.rebalance_at = 5

    def solve(self, tol: float, name: str) -> Solution:
        """Iterate until the relative gap is at most ``tol``; an interrupt ends with the best certified point."""
        run = Run(None, tol, math.inf)  # type: ignore[arg-type]  # rows are not available here
        try:
            self._iterate(run)
        except KeyboardInterrupt:
            if not run.has_point:
                raise
            run.status = Status.INTERRUPTED if run.status is Status.MAX_ITER else run.status
        return run.solution(name)

    def _iterate(self, run: Run) -> None:
        n_iter, best = 0, (0, math.inf)
        self._save()
        while True:
            point = self.linear.certified(self.states, run.tol, n_iter)
            if point is not None:
                run.add(n_iter, point)
                if point[2].relative_gap < 0.9 * best[1]:
                    best = (len(run.history), point[2].relative_gap)
                if run.is_done(None):
                    return
            if len(run.history) - best[0] > self.linear.patience:
                run.status = Status.STALLED
                return
            if n_iter >= self.solver.max_iter:
                return
            for _ in range(min(self.linear.check_every or self.solver.check_every, self.solver.max_iter - n_iter)):
                n_iter += 1
                self.step(n_iter)
            self._save()

    def step(self, age: int) -> None:
        """Submit one step."""
        is_rebalancing, workers = age >= self.rebalance_at, self.workers
        theta, memory = self.solver.relaxation, self.solver.memory
        solved = self.linear.solved(self.states, self.control)
        moved = workers.each(tasks.moved, self.states, self.control, solved, theta, memory, is_rebalancing)
        sums = workers.few([workers.submit(attrgetter("sums"), state) for state in moved])
        slack = self.linear.slack
        self.control = workers.keep(tasks.next_control, sums, self.control, memory, is_rebalancing, slack)
        self.states = workers.each(tasks.placed, moved, self.control)
        self.rebalance_at *= 2 if is_rebalancing else 1

    def _save(self) -> None:
        """Write the checkpoint, if any; one chunk at a time is sent to the client."""
        if self.file is not None and self.file.is_due:
            self.file.save(self.control.result().rho, self._chunks_of_z())

    def _chunks_of_z(self) -> Iterator[Array]:
        for state in self.states:
            yield self.workers.submit(attrgetter("z"), state).result()


def restored(workers: Workers, file: StateFile) -> tuple[list[Future], Future] | None:
    """Return the states and the control of a checkpoint, ``None`` if there is none; one chunk is loaded at a time."""
    shapes = workers.client.gather([workers.submit(_shape, chunk) for chunk in workers.chunks])
    if (kept := file.load(shapes)) is None:
        return None
    rho, chunks = kept
    control = workers.keep(tasks.Control, rho)
    states = []
    for problem, z in zip(workers.chunks, chunks, strict=True):
        rows = workers.client.scatter(z, direct=False, hash=False)
        workers.kept.append(rows)
        states.append(workers.submit(tasks.state_at, problem, rows, control))
    return states, control


def _shape(problem: DualProblem) -> tuple[int, int]:
    return tuple(problem.targets.shape)
