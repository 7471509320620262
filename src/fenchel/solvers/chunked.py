"""Douglas–Rachford splitting of a thin problem whose rows are in chunks, on the workers of a Dask cluster.

Every array with a row for each sample stays where its chunk is. What goes between workers is D × p: the products of the
features with the rows, and what follows from them. The client sees numbers. Each state of a chunk is a task of the
former state and of D × p arrays, so that the scheduler computes again what a dead worker has held.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel._array import Array
from fenchel.losses.base import row_saturation
from fenchel.problem import DualProblem, certificate_of_sums, certificate_sums
from fenchel.solvers.anderson import mixing_weights
from fenchel.solvers.base import Solution, Status
from fenchel.solvers.loop import Point, Run
from fenchel.solvers.splitting import DouglasRachford, first_rho, rebalancing

__all__ = ["solve_chunks"]

_GROUP = 16  # arrays that one task adds
_IDLE = 40  # certificates in a row without progress before giving up
_SPARSE_PATIENCE = 500  # iterations before a loss with sparse duals gets a point without zeros

Future = Any  # of the distributed library


@dataclass(frozen=True)
class System:
    """What all chunks share: the eigenbasis of the products of the features, and the scales of the problem."""

    vectors: np.ndarray  # (D, D)
    values: np.ndarray  # (D,)
    start: np.ndarray  # (D, p): the products of the features with the solution of the square loss
    scale: float  # 1 / (lam n)
    curvature: float

    def solve(self, shift: float, right: np.ndarray) -> np.ndarray:
        """Return (shift + scale F'F)^-1 B."""
        inner = (self.vectors.T @ right) / (shift + self.scale * self.values)[:, None]
        product: np.ndarray = self.vectors @ inner
        return product


@dataclass(frozen=True)
class Control:
    """What the chunks need to know of each other for the next step: all of it numbers."""

    rho: float
    factor: float | None = None  # of rho, where it has just been changed
    weights: np.ndarray | None = None  # of the images but the last
    is_bad: bool = False  # whether the last accelerated step is taken back
    products: np.ndarray | None = None  # (k, k, 1), of the moves
    valid: np.ndarray | None = None  # (k, 1)
    least: float = math.inf


@dataclass(frozen=True)
class State:
    """The rows of a chunk, as in ``DouglasRachford``."""

    z: Array
    prox: Array
    plain: Array
    solved: Array
    moves: tuple[Array, ...] = ()
    images: tuple[Array, ...] = ()
    sums: Array = None  # over the rows, for the next control


def solve_chunks(client: Any, chunks: Sequence[Future], solver: DouglasRachford, tol: float) -> Solution:
    """Solve the problem whose chunks are futures of ``DualProblem`` with a thin operator, lam and total of the whole.

    ``duals`` of the solution are futures of the duals of the chunks, ``predictions`` the coefficients of the features.
    """
    return _ChunkedSplitting(client, chunks, solver).solve(tol)


class _ChunkedSplitting:
    def __init__(self, client: Any, chunks: Sequence[Future], solver: DouglasRachford) -> None:
        self.client, self.chunks, self.solver = client, chunks, solver
        self.kept: list[Future] = []  # small results of every step: without them a lost chunk would cost the others too
        first = self.each(_first_sums)
        self.total, self.zero, is_sparse = self.client.submit(_facts, chunks[0], self.sum(first), pure=False).result()
        self.system = self.small(_system, chunks[0], self.sum(first))
        ratio = self.sum(self.each(_ridge_ratio, self.system), np.max) if is_sparse else None
        sums = None if ratio is None else self.sum(self.each(_shortening_sums, self.system, ratio))
        self.control = self.small(_first_control, self.system)
        self.states = self.each(_first_state, self.system, self.control, self.small(_shortening, ratio, sums))
        self.is_sparse, self.rebalance_at = is_sparse, 5

    def solve(self, tol: float) -> Solution:
        """Iterate until the relative gap is at most ``tol``."""
        run, n_iter, best = Run(None, tol, math.inf), 0, (0, math.inf)  # type: ignore[arg-type]  # no look at rows
        while True:
            point = self.certified(tol, n_iter)
            run.add(n_iter, point)
            if point[2].relative_gap < 0.9 * best[1]:
                best = (len(run.history), point[2].relative_gap)
            is_idle = len(run.history) - best[0] > _IDLE
            if run.is_done(None) or is_idle or n_iter >= self.solver.max_iter:
                run.status = Status.STALLED if is_idle and run.status is Status.MAX_ITER else run.status
                return run.solution("DouglasRachford on chunks")
            for _ in range(min(self.solver.check_every, self.solver.max_iter - n_iter)):
                n_iter += 1
                self.step(n_iter)

    def step(self, age: int) -> None:
        """Submit one step."""
        is_rebalancing = age >= self.rebalance_at
        products = self.few(self.each(_right_products, self.states, self.control))
        correction = self.small(_correction, products, self.system, self.control)
        theta, memory = self.solver.relaxation, self.solver.memory
        moved = self.each(_moved, self.states, self.control, correction, theta, memory, is_rebalancing)
        sums = self.few([self.client.submit(_sums_of, state, pure=False) for state in moved])
        self.control = self.small(_next_control, sums, self.control, memory, is_rebalancing)
        self.states = self.each(_placed, moved, self.control)
        self.rebalance_at *= 2 if is_rebalancing else 1

    def certified(self, tol: float, age: int) -> Point:
        """Return the prox points with their certificate; if that fails, the better of those and the scaled solves."""
        point = self.point(None)
        if point[2].relative_gap <= tol or age == 0 or (self.is_sparse and age < _SPARSE_PATIENCE):
            return point
        other = self.point(self.sum(self.each(_solved_ratio, self.states), np.max))
        return min(point, other, key=lambda one: one[2].relative_gap)

    def point(self, ratio: Future | None) -> Point:
        duals = self.each(_duals, self.states, ratio)
        coef = self.small(_times_scale, self.system, self.sum(self.each(_products, duals)))
        sums = self.sum(self.each(_certificate_sums, duals, coef)).result()
        return duals, coef, certificate_of_sums(self.total, self.zero, *map(float, sums))

    def each(self, function: Callable[..., Any], *args: Any) -> list[Future]:
        """Submit a function of every chunk; arguments that are lists have one entry for each."""
        return [
            self.client.submit(function, chunk, *(arg[k] if isinstance(arg, list) else arg for arg in args), pure=False)
            for k, chunk in enumerate(self.chunks)
        ]

    def small(self, function: Callable[..., Any], *args: Any) -> Future:
        """Submit a function whose result is small, and keep that."""
        self.kept.append(self.client.submit(function, *args, pure=False))
        return self.kept[-1]

    def sum(self, parts: list[Future], add: Callable[..., Any] = np.sum) -> Future:
        """Submit the sum over the chunks."""
        return self.client.submit(_added, self.few(parts, add), add, pure=False)

    def few(self, parts: list[Future], add: Callable[..., Any] = np.sum) -> list[Future]:
        """Submit sums over groups of chunks until a few are left."""
        while len(parts) > _GROUP:
            groups = [parts[first : first + _GROUP] for first in range(0, len(parts), _GROUP)]
            parts = [self.client.submit(_added, group, add, pure=False) for group in groups]
        return parts


def _added(parts: list[Any], add: Callable[..., Any] = np.sum) -> Any:
    if isinstance(parts[0], tuple):
        return tuple(_added(list(each), add) for each in zip(*parts, strict=True))
    return add(np.stack(parts), axis=0)


def _features(problem: DualProblem) -> Array:
    operator: Any = problem.gram
    return operator.left


def _first_sums(problem: DualProblem) -> tuple[Array, ...]:
    features = _features(problem)
    return features.T @ features, features.T @ problem.targets, np.asarray(problem.value_at_zero)


def _facts(problem: DualProblem, sums: tuple[Array, ...]) -> tuple[float, float, bool]:
    return problem.total, float(sums[2]), problem.loss.sparse


def _system(problem: DualProblem, sums: tuple[Array, ...]) -> System:
    gram, right, _ = sums
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    system = System(vectors, np.clip(values, 0.0, None), right, problem.scale, problem.curvature)
    return replace(system, start=system.solve(1.0, right))


def _ridge(problem: DualProblem, system: System) -> tuple[Array, Array]:
    """Return the solution of the square loss, and its predictions."""
    fitted = system.scale * (_features(problem) @ system.start)
    return problem.targets - fitted, fitted


def _largest_ratio(problem: DualProblem, duals: Array) -> Array:
    ratios = row_saturation(problem.loss, problem.unscale(duals))
    return np.asarray(1.0 if ratios is None else max(1.0, float(np.max(ratios))))


def _ridge_ratio(problem: DualProblem, system: System) -> Array:
    return _largest_ratio(problem, _ridge(problem, system)[0])


def _solved_ratio(problem: DualProblem, state: State) -> Array:
    return _largest_ratio(problem, state.solved)


def _shortening_sums(problem: DualProblem, system: System, ratio: Array) -> Array:
    ridge, fitted = _ridge(problem, system)
    a, own = ridge / ratio, problem.curvature * float(np.sum((ridge / ratio) ** 2))
    bend = own + float(np.sum(a * fitted)) / float(ratio)
    gain = float(np.sum(a * problem.targets)) - float(problem.conjugate_sum(a)) + own / 2
    return np.array([bend, gain])


def _shortening(ratio: Array | None, sums: Array | None) -> float:
    """Return the multiple of the solution of the square loss to begin with, as in ``DouglasRachford``."""
    if ratio is None or sums is None:
        return 1.0
    bend, gain = sums
    return min(1.0, max(0.0, gain / bend)) / float(ratio) if bend > 0 else 0.0


def _first_control(system: System) -> Control:
    return Control(first_rho(system.curvature, system.scale * float(system.values[-1])))


def _first_state(problem: DualProblem, system: System, control: Control, factor: float) -> State:
    begin, fitted = (factor * rows for rows in _ridge(problem, system))
    z = begin + (problem.targets - fitted - system.curvature * begin) / control.rho
    prox = problem.prox_remainder(z, 1 / control.rho)
    return State(z, prox, z, prox)


def _right(problem: DualProblem, state: State, control: Control) -> Array:
    return control.rho * (2 * state.prox - state.z) + problem.targets


def _right_products(problem: DualProblem, state: State, control: Control) -> Array:
    return _features(problem).T @ _right(problem, state, control)


def _correction(products: list[Array], system: System, control: Control) -> Array:
    """Return C with (shift + H)^-1 R = R / shift - F C, by Woodbury's formula."""
    shift = system.curvature + control.rho
    return system.scale / shift * system.solve(shift, _added(products))


def _moved(
    problem: DualProblem, state: State, control: Control, correction: Array, theta: float, memory: int, rebalance: bool
) -> State:
    """Return the state with the linear solve, the move and the image, and their sums over the rows."""
    shift = problem.curvature + control.rho
    solved = _right(problem, state, control) / shift - _features(problem) @ correction
    move = theta * (solved - state.prox)
    image = state.z + move
    if rebalance:
        prox = problem.prox_remainder(image, 1 / control.rho)
        arrays = solved - state.prox, prox, solved, prox - state.prox, image - prox
        sums = np.array([float(np.sum(rows**2)) for rows in arrays])
        return replace(state, solved=solved, moves=(), images=(prox, image - prox), sums=sums)
    first = 0 if len(state.moves) <= memory else 1
    moves, images = (*state.moves[first:], move), (*state.images[first:], image)
    sums = np.array([float(np.vdot(move, other)) for other in moves])
    return replace(state, solved=solved, moves=moves, images=images, sums=sums)


def _sums_of(state: State) -> Array:
    return state.sums


def _next_control(parts: list[Array], control: Control, memory: int, rebalance: bool) -> Control:
    """Return the weights of the images by Anderson's least squares, or another rho."""
    sums = _added(parts)
    if rebalance:
        factor = float(rebalancing(sums[:, None])[0])
        return Control(control.rho * factor, factor)
    k, norm = len(sums) - 1, math.sqrt(sums[-1])
    is_bad = norm > 2 * control.least
    products, valid = np.zeros((k + 1, k + 1, 1)), np.ones((k + 1, 1))
    products[k, :, 0] = products[:, k, 0] = sums
    if k > 0 and control.products is not None and control.valid is not None:
        products[:k, :k] = control.products[-k:, -k:]
        valid[:k] = 0 if is_bad else control.valid[-k:]
    weights = mixing_weights(products, valid)[0] if k > 0 and memory else np.zeros(0)
    least = math.inf if is_bad else min(norm, control.least)
    return Control(control.rho, None, weights, is_bad, products, valid, least)


def _placed(problem: DualProblem, state: State, control: Control) -> State:
    """Return the state at the next z."""
    if control.factor is not None:
        prox, force = state.images
        z = prox + force / control.factor
        state = replace(state, images=(), plain=z)
    elif control.is_bad:
        z = state.plain
    else:
        weights: Any = control.weights
        z = (1 - np.sum(weights)) * state.images[-1]
        for weight, image in zip(weights, state.images, strict=False):
            z = z + weight * image
        state = replace(state, plain=state.images[-1])
    return replace(state, z=z, prox=problem.prox_remainder(z, 1 / control.rho), sums=None)


def _duals(problem: DualProblem, state: State, ratio: Array | None) -> Array:
    return state.prox if ratio is None else state.solved / ratio


def _products(problem: DualProblem, duals: Array) -> Array:
    return _features(problem).T @ duals


def _times_scale(system: System, products: Array) -> Array:
    return system.scale * products


def _certificate_sums(problem: DualProblem, duals: Array, coef: Array) -> Array:
    return np.array(certificate_sums(problem, duals, _features(problem) @ coef))
