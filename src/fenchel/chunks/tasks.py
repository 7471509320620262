"""Computations on one chunk of rows, or on sums over all chunks, for the splitting of chunked problems.

All of these are tasks of a Dask cluster: pure functions of a chunk and of small arrays.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fenchel._array import Array
from fenchel.losses.loss import row_saturation
from fenchel.operators import Output, Thin
from fenchel.problem import DualProblem
from fenchel.problem.dual_problem import certificate_sums
from fenchel.solvers.anderson import mixing_weights
from fenchel.solvers.splitting import first_rho, rebalancing

__all__: list[str] = []


@dataclass(frozen=True)
class System:
    """Data shared by all chunks: the eigenbasis of the products of the features, and the scales of the problem."""

    vectors: np.ndarray  # (D, D)
    values: np.ndarray  # (D,)
    start: np.ndarray  # (D, p): the coefficients of the square-loss solution
    scale: float  # 1 / (lam n)
    curvature: float
    output: Output  # the operator M

    @property
    def weights(self) -> float | np.ndarray:
        """The factors of the Gram matrix in the eigenbasis of M: a number, or (p,)."""
        values = self.output.eigh[0]
        return self.scale if values is None else self.scale * values

    @property
    def weights_max(self) -> float:
        """The largest of them."""
        return float(np.max(self.weights))

    def correction(self, shift: float, products: np.ndarray) -> np.ndarray:
        """Return C with (shift + H)^-1 R = R / shift - F C, from the products F'R, by Woodbury's formula."""
        return self.back(self.turned_correction(shift, self.turned(products)))

    def turned_correction(self, shift: float, products: np.ndarray) -> np.ndarray:
        """Return the same for R in the eigenbasis of M."""
        weights = self.weights
        inner = (self.vectors.T @ products) * (weights / shift / (shift + weights * self.values[:, None]))
        product: np.ndarray = self.vectors @ inner
        return product

    def turned(self, rows: Array) -> Array:
        """Rotate rows into the eigenbasis of M."""
        vectors = self.output.eigh[1]
        return rows if vectors is None else rows @ vectors

    def back(self, rows: Array) -> Array:
        """Rotate rows back into the coordinates of the outputs."""
        vectors = self.output.eigh[1]
        return rows if vectors is None else rows @ vectors.T


@dataclass(frozen=True)
class Control:
    """Small quantities that all chunks need for the next step."""

    rho: float
    factor: float | None = None  # of rho, if it has just been changed
    weights: np.ndarray | None = None  # of all images but the last
    is_bad: bool = False  # whether the last accelerated step is rejected
    products: np.ndarray | None = None  # (k, k, 1), inner products of the moves
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


def added(parts: list[Array], add: Callable[..., Array] = np.sum) -> Array:
    """Return the sum of arrays, or of tuples of arrays."""
    if isinstance(parts[0], tuple):
        return tuple(added(list(each), add) for each in zip(*parts, strict=True))
    return add(np.stack(parts), axis=0)


def features_of(problem: DualProblem) -> Array:
    """Return the features of a chunk, (n, D)."""
    scalar = problem.gram.terms[0][0]
    assert isinstance(scalar, Thin)  # chunks are problems of features
    return scalar.left


def first_sums(problem: DualProblem) -> tuple[Array, ...]:
    """Return the products of the features with each other and with the targets, and the loss of the zero model."""
    features = features_of(problem)
    return features.T @ features, features.T @ problem.targets, np.asarray(problem.value_at_zero)


def facts(problem: DualProblem, sums: tuple[Array, ...]) -> tuple[float, float, bool]:
    """Return the total weight, the loss of the zero model, and whether the duals are sparse."""
    return problem.total, float(sums[2]), problem.loss.sparse


def system_of(problem: DualProblem, sums: tuple[Array, ...]) -> System:
    """Return the data shared by all chunks."""
    gram, right, _ = sums
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    output = problem.gram.terms[0][1]
    system = System(vectors, np.clip(values, 0.0, None), right, problem.scale, problem.curvature, output)
    return replace(system, start=system.correction(1.0, right))


def ridge_of(problem: DualProblem, system: System) -> tuple[Array, Array]:
    """Return the square-loss solution and its predictions."""
    fitted = features_of(problem) @ system.start
    return problem.targets - fitted, fitted


def largest_ratio(problem: DualProblem, duals: Array) -> Array:
    """Return the largest ratio of a dual to its bound, at least one."""
    ratios = row_saturation(problem.loss, problem.unscale(duals))
    return np.asarray(1.0 if ratios is None else max(1.0, float(np.max(ratios))))


def ridge_ratio(problem: DualProblem, system: System) -> Array:
    """Return the largest ratio of the square-loss solution."""
    return largest_ratio(problem, ridge_of(problem, system)[0])


def solved_ratio(problem: DualProblem, state: State) -> Array:
    """Return the largest ratio of the solution of the linear system."""
    return largest_ratio(problem, state.solved)


def shortening_sums(problem: DualProblem, system: System, ratio: Array) -> Array:
    """Return the sums needed by ``shortening``."""
    ridge, fitted = ridge_of(problem, system)
    a, own = ridge / ratio, problem.curvature * float(np.sum((ridge / ratio) ** 2))
    bend = own + float(np.sum(a * fitted)) / float(ratio)
    gain = float(np.sum(a * problem.targets)) - float(problem.conjugate_sum(a)) + own / 2
    return np.array([bend, gain])


def shortening(ratio: Array | None, sums: Array | None) -> float:
    """Return the initial multiple of the square-loss solution, as in ``DouglasRachford``."""
    if ratio is None or sums is None:
        return 1.0
    bend, gain = sums
    return min(1.0, max(0.0, gain / bend)) / float(ratio) if bend > 0 else 0.0


def first_control(system: System) -> Control:
    """Return the control with the initial penalty."""
    return Control(first_rho(system.curvature, system.weights_max * float(system.values[-1])))


def renewed(control: Control, rho: float | None) -> Control:
    """Return the control of a splitting that continues another one, with its penalty or a given one."""
    return Control(control.rho if rho is None else rho)


def first_state(problem: DualProblem, system: System, control: Control, factor: float) -> State:
    """Return the state at a multiple of the square-loss solution."""
    begin, fitted = (factor * rows for rows in ridge_of(problem, system))
    return state_at(problem, begin + (problem.targets - fitted - system.curvature * begin) / control.rho, control)


def state_at(problem: DualProblem, z: Array, control: Control) -> State:
    """Return the initial state at z."""
    prox = problem.prox_remainder(z, 1 / control.rho)
    return State(z, prox, z, prox)


def again(problem: DualProblem, state: State, control: Control) -> State:
    """Return the initial state at the z of another state."""
    return state_at(problem, state.z, control)


def right_of(problem: DualProblem, state: State, control: Control) -> Array:
    """Return the right-hand side of the linear system."""
    return control.rho * (2 * state.prox - state.z) + problem.targets


def right_products(problem: DualProblem, state: State, control: Control) -> Array:
    """Return the products of the features with the right-hand side."""
    return features_of(problem).T @ right_of(problem, state, control)


def correction(products: list[Array], system: System, control: Control) -> Array:
    """Return the Woodbury correction of the linear system of the features."""
    return system.correction(system.curvature + control.rho, added(products))


def thin_solved(problem: DualProblem, state: State, control: Control, correction: Array) -> Array:
    """Return the solution of the linear system of the features."""
    return right_of(problem, state, control) / (problem.curvature + control.rho) - features_of(problem) @ correction


def moved(
    problem: DualProblem, state: State, control: Control, solved: Array, theta: float, memory: int, rebalance: bool
) -> State:
    """Return the state with the linear solve, the move and the image, and their sums over the rows."""
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


def next_control(parts: list[Array], control: Control, memory: int, rebalance: bool, slack: float) -> Control:
    """Return the weights of the images by Anderson's least squares, or a new rho if it differs by the slack."""
    sums = added(parts)
    if rebalance:
        factor = float(rebalancing(sums[:, None])[0])
        factor = 1.0 if abs(math.log(factor)) < slack else factor
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


def placed(problem: DualProblem, state: State, control: Control) -> State:
    """Return the state at the next z."""
    if control.factor is not None:
        prox, force = state.images
        z = prox + force / control.factor
        state = replace(state, images=(), plain=z)
    elif control.is_bad:
        z = state.plain
    else:
        weights = control.weights
        assert weights is not None  # given with the images
        z = (1 - np.sum(weights)) * state.images[-1]
        for weight, image in zip(weights, state.images, strict=False):
            z = z + weight * image
        state = replace(state, plain=state.images[-1])
    return replace(state, z=z, prox=problem.prox_remainder(z, 1 / control.rho), sums=None)


def duals_of(problem: DualProblem, state: State, ratio: Array | None) -> Array:
    """Return the prox points, or the solutions of the linear system scaled into the domain."""
    return state.prox if ratio is None else state.solved / ratio


def thin_products(problem: DualProblem, duals: Array) -> Array:
    """Return the products of the features with duals."""
    return features_of(problem).T @ duals


def times_scale(system: System, products: Array) -> Array:
    """Return the coefficients of the features."""
    return system.scale * products


def thin_certificate(problem: DualProblem, duals: Array, coef: Array) -> Array:
    """Return the sums of a certificate in the problem of the features."""
    predictions = features_of(problem) @ problem.gram.terms[0][1].times(coef)
    return np.array(certificate_sums(problem, duals, predictions))
