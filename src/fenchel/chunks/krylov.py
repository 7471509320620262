"""Exact solutions for rows in chunks on the workers of a Dask cluster, without storing the Gram matrix.

A product with the kernel is made of pairs of chunks: a task computes the tiles between two chunks, uses them for both,
and discards them. It reads the inputs and the vectors of two chunks; none of these reach the client. Products stay on
the workers until the end, so that the rows of a dead worker can be recomputed from those of the others.
"""

import logging
import time
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter, itemgetter

import numpy as np

from fenchel._array import Array, eps
from fenchel.chunks import tasks
from fenchel.chunks.sample import Client, Future
from fenchel.chunks.splitting import Features, Splitting, Workers, restored
from fenchel.chunks.tasks import Control, State, System
from fenchel.losses.loss import Loss, is_square
from fenchel.operators.conjugate import STEPS
from fenchel.operators.products import PointKernel, kernel_product, kernel_products
from fenchel.problem import Certificate, DualProblem
from fenchel.problem.dual_problem import certificate_of_sums, certificate_sums
from fenchel.solvers.krylov import ALONE, IDLE, Krylov, progress, tightness
from fenchel.solvers.linear import LOOSE, Conjugate, Mark
from fenchel.solvers.loop import Point, comparable
from fenchel.solvers.solver import Solution, watched
from fenchel.solvers.splitting import DouglasRachford
from fenchel.solvers.state_file import StateFile

__all__ = ["Points", "solve_exactly"]

_LOG = logging.getLogger("fenchel")


@dataclass(frozen=True)
class Points:
    """Inputs of a chunk, its kernel, and the square roots of the weights (n, 1)."""

    kernel: PointKernel
    X: Array
    root: Array | None

    def times_root(self, rows: Array) -> Array:
        """Return rows times the square roots of the weights."""
        return rows if self.root is None else rows * self.root


def solve_exactly(
    client: Client,
    chunks: list[Future],
    points: list[Future],
    loss: Loss,
    solver: Krylov,
    tol: float,
    file: StateFile | None = None,
) -> Solution:
    """Solve the problem with the kernel itself, preconditioned by ``chunks`` of a problem with features.

    In the solution, ``duals`` are futures of the duals of the chunks.
    """
    workers, splitting = Workers(client, chunks), DouglasRachford(solver.max_iter)
    features = Features(workers)
    kept = None if file is None else restored(workers, file)
    if kept is None:
        thin = Splitting(workers, features, DouglasRachford(2000), *features.start())
        with watched(lambda n_iter, certificate: None):  # the gap with features is not the gap with the kernel
            thin.solve(1e-8, "thin")
        kept = thin.states, thin.control
    states, control = kept
    control = workers.keep(tasks.renewed, control, ALONE if is_square(loss) else None)
    states = workers.each(tasks.again, states, control)
    exact = Exact(workers, features, points, is_square(loss), solver.tiles == "float32")
    return Splitting(workers, exact, splitting, states, control, file).solve(tol, "Krylov on chunks")


class Exact:
    """Linear systems of the kernel, solved by conjugate gradients from the last solution."""

    check_every: int | None = 1
    patience = Krylov.patience
    slack = Conjugate.slack

    def __init__(
        self, workers: Workers, features: Features, points: list[Future], is_alone: bool, is_single: bool
    ) -> None:
        self.workers, self.features, self.system = workers, features, features.system
        self.exact_points = points
        self.points = [workers.submit(_rounded, one) for one in points] if is_single else points
        self.is_alone = is_alone
        self.rtol = LOOSE
        self.solutions: list[Future] = []  # x and Kx of each chunk, in the eigenbasis of the output operator
        self.marks: list[Mark] = []
        self.n_passes = 0

    def solved(self, states: list[Future], control: Future) -> list[Future]:
        """Return the solutions of the linear systems; the client waits only for the norm of each residual."""
        workers, system = self.workers, self.system
        at = workers.each(_first_descent, states, control, self.solutions, system)
        size = workers.sum(workers.each(_right_size, states, control)).result()
        at, slope, norm = self._turned(at, control, None)
        stop = max(16 * eps(size) * np.sqrt(size), self.rtol * norm)
        for _ in range(STEPS):
            if norm <= stop:
                break
            products = self.product([workers.submit(attrgetter("step"), one) for one in at], self.points)
            bends = workers.keep(tasks.added, workers.few(workers.each(_bends, at, products, control, system)))
            at = workers.each(_advanced, at, products, control, system, slope, bends)
            at, slope, norm = self._turned(at, control, slope)
        self.solutions = [workers.submit(attrgetter("x", "product"), one) for one in at]
        return workers.each(_solved, self.solutions, system)

    def _turned(self, at: list[Future], control: Future, last: Future | None) -> tuple[list[Future], Future, float]:
        """Return the descents in a new direction, the slopes along the preconditioned residual, and its norm."""
        workers = self.workers
        sums = workers.few(workers.each(_residual_sums, at))
        correction = workers.keep(_conditioning, sums, self.system, control)
        images = workers.each(_images, at, correction, control)
        slope = workers.keep(tasks.added, workers.few(workers.each(_slopes, at, images)))
        return workers.each(_directed, at, images, slope, last), slope, workers.submit(_norm, sums).result()

    def product(self, rows: list[Future], points: list[Future]) -> list[Future]:
        """Return the products of the kernel with rows, in one pass over all pairs of chunks."""
        self.n_passes += 1
        submit = self.workers.submit
        parts = [[submit(_own_product, *one)] for one in zip(points, rows, strict=True)]
        for i, j in combinations(range(len(rows)), 2):
            pair = submit(_pair_products, points[i], points[j], rows[i], rows[j])
            parts[i].append(submit(itemgetter(0), pair))
            parts[j].append(submit(itemgetter(1), pair))
        return [self.workers.keep(tasks.added, self.workers.few(part)) for part in parts]

    def certified(self, states: list[Future], tol: float, age: int) -> Point | None:
        """Return the certified point, or ``None`` if the estimate says that it is not worth a pass."""
        duals, gap = self.workers.each(tasks.duals_of, states, None), np.inf
        if age > 0:
            duals, gap = self._best_guess(states)
            self.rtol = tightness(self.is_alone, gap, tol)
            last = self.marks[-1]
            if not (gap <= max(0.9 * tol, 0.1 * last.gap) or age >= last.age + IDLE):
                return None
        products = self.product(duals, self.exact_points)
        pairs = self.workers.each(_pair, duals, products, self.system)
        certificate = self._certificate(pairs)
        if age == 0:
            self.solutions = self.workers.each(_first_solution, duals, products, self.system)
            self.rtol = tightness(self.is_alone, certificate.relative_gap, tol)
        elif not certificate.relative_gap <= max(tol, 2 * gap):  # float32 tiles are too coarse
            self.solutions = self.workers.each(_first_solution, duals, products, self.system)
            self.points = self.exact_points
        self.marks.append(Mark(age, time.perf_counter(), certificate.relative_gap))
        _LOG.info(progress(self.marks, self.n_passes, tol))
        return duals, None, certificate

    def _best_guess(self, states: list[Future]) -> tuple[list[Future], float]:
        """Return the better of the prox point and the scaled solution, with an estimate of its gap."""
        workers = self.workers
        coef = self.features.coefficients(workers.each(_excess, states))
        ratios: list[Future | None] = [None]
        if not self.features.is_sparse:
            ratios.append(workers.sum(workers.each(tasks.solved_ratio, states), np.max))
        guesses = [workers.each(_guess, states, self.solutions, coef, ratio, self.system) for ratio in ratios]
        points = [(pairs, None, self._certificate(pairs)) for pairs in guesses]
        pairs, _, certificate = min(points, key=comparable)
        return [workers.submit(itemgetter(0), pair) for pair in pairs], certificate.relative_gap

    def _certificate(self, pairs: list[Future]) -> Certificate:
        sums = self.workers.sum(self.workers.each(_certificate_sums, pairs)).result()
        return certificate_of_sums(self.features.total, self.features.zero, *map(float, sums))


@dataclass(frozen=True)
class Descent:
    """State of conjugate gradients in a chunk, in the eigenbasis of the output operator."""

    x: Array
    product: Array  # K x
    residual: Array
    step: Array = None


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, zero where b is zero: a solved column does not move."""
    return np.where(b > 0, a / np.where(b > 0, b, 1.0), 0.0)


def _rounded(points: Points) -> Points:
    return Points(points.kernel, points.X.astype(np.float32), points.root)


def _own_product(points: Points, rows: Array) -> Array:
    product = kernel_product(points.kernel, points.X, None, points.times_root(rows))
    return points.times_root(product)


def _pair_products(here: Points, there: Points, rows: Array, others: Array) -> tuple[Array, Array]:
    weighted = there.times_root(others), here.times_root(rows)
    left, right = kernel_products(here.kernel, here.X, there.X, *weighted)
    return here.times_root(left), there.times_root(right)


def _shift(problem: DualProblem, control: Control) -> float:
    return problem.curvature + control.rho


def _first_solution(problem: DualProblem, duals: Array, product: Array, system: System) -> tuple[Array, Array]:
    return system.turned(duals), system.turned(product)


def _first_descent(
    problem: DualProblem, state: State, control: Control, solution: tuple[Array, Array], system: System
) -> Descent:
    x, product = solution
    right = system.turned(tasks.right_of(problem, state, control))
    return Descent(x, product, right - _shift(problem, control) * x - system.weights * product)


def _right_size(problem: DualProblem, state: State, control: Control) -> Array:
    return np.sum(tasks.right_of(problem, state, control) ** 2)


def _residual_sums(problem: DualProblem, at: Descent) -> tuple[Array, Array]:
    return tasks.features_of(problem).T @ at.residual, np.sum(at.residual**2)


def _norm(sums: list[tuple[Array, Array]]) -> float:
    return float(np.sqrt(sum(part[1] for part in sums)))


def _conditioning(sums: list[tuple[Array, Array]], system: System, control: Control) -> Array:
    return system.turned_correction(system.curvature + control.rho, tasks.added([part[0] for part in sums]))


def _images(problem: DualProblem, at: Descent, correction: Array, control: Control) -> Array:
    """Return the preconditioned residual."""
    return at.residual / _shift(problem, control) - tasks.features_of(problem) @ correction


def _slopes(problem: DualProblem, at: Descent, image: Array) -> Array:
    return np.sum(at.residual * image, axis=0)


def _directed(problem: DualProblem, at: Descent, image: Array, slope: Array, last: Array | None) -> Descent:
    return Descent(at.x, at.product, at.residual, image if last is None else image + _ratio(slope, last) * at.step)


def _bends(problem: DualProblem, at: Descent, product: Array, control: Control, system: System) -> Array:
    return np.sum(at.step * (_shift(problem, control) * at.step + system.weights * product), axis=0)


def _advanced(
    problem: DualProblem, at: Descent, product: Array, control: Control, system: System, slope: Array, bends: Array
) -> Descent:
    length = _ratio(slope, bends)
    image = _shift(problem, control) * at.step + system.weights * product
    return Descent(at.x + length * at.step, at.product + length * product, at.residual - length * image, at.step)


def _solved(problem: DualProblem, solution: tuple[Array, Array], system: System) -> Array:
    return system.back(solution[0])


def _excess(problem: DualProblem, state: State) -> Array:
    return state.prox - state.solved


def _guess(
    problem: DualProblem,
    state: State,
    solution: tuple[Array, Array],
    coef: Array,
    ratio: Array | None,
    system: System,
) -> tuple[Array, Array]:
    """Return duals and an estimate of their predictions, from the product with the last solution."""
    predictions = system.back(system.weights * solution[1])
    if ratio is not None:
        return state.solved / ratio, predictions / ratio
    return state.prox, predictions + tasks.features_of(problem) @ system.output.times(coef)


def _pair(problem: DualProblem, duals: Array, product: Array, system: System) -> tuple[Array, Array]:
    """Return duals and their predictions."""
    return duals, system.scale * system.output.times(product)


def _certificate_sums(problem: DualProblem, pair: tuple[Array, Array]) -> Array:
    return np.array(certificate_sums(problem, *pair))
