"""Douglas–Rachford splitting with Anderson acceleration: exact linear solves, so lam hardly matters."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fenchel._array import Array, as_like, host, namespace
from fenchel._check import Interval, Options
from fenchel.problem import DualProblem
from fenchel.solvers.base import IterativeSolver

__all__ = ["DouglasRachford"]

_SPARSE_PATIENCE = 500  # iterations


@dataclass(frozen=True)
class _State:
    z: Array
    rho: float
    divisor: Array
    prox: Array  # B, always in the domain of the conjugate
    plain: Array  # the unaccelerated image of the last z
    solved: Array = None  # A
    residual: float = math.inf  # the least since the memory was cleared
    moves: tuple[Array, ...] = ()  # last fixed-point residuals, newest last
    images: tuple[Array, ...] = ()
    age: int = 0
    rebalance_at: int = 5


class DouglasRachford(IterativeSolver):
    r"""Douglas–Rachford splitting in the eigenbasis of the kernel, with Anderson acceleration.

    .. math:: B = \operatorname{prox}_{g / \rho}(z), \quad
        A = (\sigma + \rho + \mathcal H)^{-1} \bigl(y + \rho (2B - z)\bigr), \quad
        z \leftarrow z + \theta (A - B),

    with :math:`\mathcal H = \mathcal K / (\lambda n)` and :math:`\ell^* = \tfrac\sigma2 \|\cdot\|^2 + g`.

    Parameters
    ----------
    max_iter : int, default=20000
        Most iterations.
    check_every : int, default=5
        Iterations between two certificates.
    relaxation : float, default=1.7
        The factor :math:`\theta`.
    memory : int, default=5
        Number of past steps that the acceleration combines; 0 switches it off.

    Notes
    -----
    One eigendecomposition makes every linear solve a Hadamard division between two pairs of matrix products, whatever
    lam and rho. The penalty rho is rebalanced from the primal and dual residuals at iterations 5, 10, 20, 40, ...; an
    accelerated step after which the residual doubles is taken back.
    """

    patience = 400
    _limits: ClassVar[dict[str, Interval | Options]] = {
        **IterativeSolver._limits,
        "relaxation": Interval(0, 2),
        "memory": Interval(0, math.inf, "left", integer=True),
    }

    def __init__(self, max_iter: int = 20000, check_every: int = 5, relaxation: float = 1.7, memory: int = 5) -> None:
        self.max_iter = max_iter
        self.check_every = check_every
        self.relaxation = relaxation
        self.memory = memory

    def why_not(self, problem: DualProblem) -> str | None:
        """Return why not: no eigendecomposition within reach."""
        return problem.gram.why_no_spectrum(problem.targets)

    def init(self, problem: DualProblem, start: Array | None) -> _State:
        """Start from given duals, or from the solution of the square loss."""
        xp, basis, sigma = namespace(problem.targets), problem.spectrum, problem.curvature
        values = problem.scale * basis.values
        top = float(xp.max(values))
        rho = 0.3 * math.sqrt(1 + top) if sigma else max(0.01 * top, 0.05)
        if start is None:
            start = basis.backward(basis.forward(problem.targets) / (1 + values))
        z = start + (problem.targets - problem.predictions(start) - sigma * start) / rho
        return _State(z, rho, self._divisor(problem, rho), problem.prox_remainder(z, 1 / rho), z)

    def step(self, problem: DualProblem, state: _State) -> _State:
        """Take one splitting step and combine it with the last ones."""
        xp, basis = namespace(state.z), problem.spectrum
        right = problem.targets + state.rho * (2 * state.prox - state.z)
        solved = basis.backward(basis.forward(right) / state.divisor)
        move = self.relaxation * (solved - state.prox)
        residual = float(xp.sqrt(xp.sum(move**2)))
        if state.moves and residual > 2 * state.residual:
            return self._moved(problem, replace(state, moves=(), images=(), residual=math.inf), state.plain)
        image = state.z + move
        state = replace(state, solved=solved, plain=image)
        if state.age + 1 >= state.rebalance_at:
            return self._rebalanced(problem, state)
        moves = (*state.moves, move)[-self.memory - 1 :] if self.memory else ()
        images = (*state.images, image)[-self.memory - 1 :] if self.memory else ()
        after = replace(state, residual=min(residual, state.residual), moves=moves, images=images)
        return self._moved(problem, after, _anderson(moves, images) if len(moves) > 1 else image)

    def points(self, problem: DualProblem, state: _State) -> Iterator[tuple[Array, Array]]:
        """Yield the prox point, which has exact zeros, then the linear-solve point, scaled into the domain.

        At small lam a change of the duals is magnified by 1 / lam in the predictions. Scaling is not: it changes duals
        and predictions by the same share, so the second point is certified digits before the first. It has no exact
        zeros: a loss that makes the duals sparse gets it only when the first point is slow to come.
        """
        yield state.prox, problem.predictions(state.prox)
        if state.solved is None or (problem.loss.sparse and state.age < _SPARSE_PATIENCE):
            return
        ratios = problem.loss.saturation(problem.unscale(state.solved))
        factor = 1.0 if ratios is None else 1 / max(1.0, float(namespace(state.z).max(ratios)))
        scaled = factor * state.solved
        yield scaled, problem.predictions(scaled)

    def _moved(self, problem: DualProblem, state: _State, z: Array) -> _State:
        return replace(state, z=z, prox=problem.prox_remainder(z, 1 / state.rho), age=state.age + 1)

    def _rebalanced(self, problem: DualProblem, state: _State) -> _State:
        """Change rho by the square root of the ratio of the residuals; the subgradient at the prox point is kept."""
        xp, image, solved = namespace(state.z), state.plain, state.solved
        prox = problem.prox_remainder(image, 1 / state.rho)
        force = image - prox
        sums = xp.stack([xp.sum(a**2) for a in (solved - state.prox, prox, solved, prox - state.prox, force)])
        primal, size, other, dual, pull = (math.sqrt(float(number)) + 1e-300 for number in host(sums))
        ratio = (primal / max(size, other)) / (dual / pull)
        factor = min(max(math.sqrt(ratio), 0.1), 10.0) if math.isfinite(ratio) else 1.0
        rho = state.rho * factor
        fresh = replace(
            state, rho=rho, divisor=self._divisor(problem, rho), moves=(), images=(), residual=math.inf,
            rebalance_at=2 * state.rebalance_at,
        )  # fmt: skip
        z = prox + force / factor
        return self._moved(problem, replace(fresh, plain=z), z)

    def _divisor(self, problem: DualProblem, rho: float) -> Array:
        return problem.curvature + rho + problem.scale * problem.spectrum.values


def _anderson(moves: tuple[Array, ...], images: tuple[Array, ...]) -> Array:
    """Return the combination of the images whose residual is least (type II), slightly regularised."""
    xp = namespace(moves[-1])
    changes = [moves[-1] - move for move in moves[:-1]]
    products = xp.stack([xp.sum(a * b) for a in changes for b in (*changes, moves[-1])])
    table = np.reshape(host(products).astype(float), (len(changes), len(changes) + 1))
    matrix, right = table[:, :-1], table[:, -1]
    matrix = matrix + 1e-8 * np.trace(matrix) / len(changes) * np.eye(len(changes))
    try:
        weights = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return images[-1]
    combined = images[-1]
    for weight, image in zip(weights, images[:-1], strict=True):
        combined = combined - as_like(weight, combined) * (images[-1] - image)
    return combined
