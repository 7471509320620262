"""Douglas–Rachford splitting with Anderson acceleration; its linear solves are exact, so lam hardly matters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fenchel._array import Array, as_index, host, is_lazy, is_numpy, is_single, namespace, settled
from fenchel._check import Interval, Options
from fenchel.exceptions import IncompatibleError
from fenchel.losses.loss import row_saturation
from fenchel.operators import is_thin
from fenchel.problem import DualProblem
from fenchel.problem.batch import Batch
from fenchel.problem.derived import rotated
from fenchel.problem.feasibility import pulled_inside
from fenchel.solvers.anderson import Memory
from fenchel.solvers.costs import CALL, FLOPS, Cost, Known
from fenchel.solvers.linear import Conjugate, Eigen, Inverse
from fenchel.solvers.loop import IterativeSolver, Point, comparable
from fenchel.solvers.solver import Solution, Solver
from fenchel.solvers.state_file import StateFile, chunks_of

__all__ = ["DouglasRachford"]

_STEPS = 6.0  # times (1 + L)^power (to a gap of 1e-9, at 5, 450, 4500, 4.5e5: 5-10, 15-30, 25-55, 45-125)
_POWER = 1 / 6  # one output, or an insensitive zone
_LOW_POWER = 1 / 8  # several outputs (at L = 46, 4.6e3, 4.6e5, 4.6e7: Huber 10, 30, 40, 45 steps for p = 5)
_FLAT_POWER = 1 / 10  # no curvature (40, 100, 200, 150 steps for p = 5, 15 to 30 for p = n)
_SPARSE_PATIENCE = 500  # iterations
_PATIENCE = 400  # certificates, a tenth of that in float32


@dataclass(frozen=True)
class Warm:
    """State of the iteration for one problem; as a warm start along a path, it saves most of the work."""

    z: Array
    rho: float
    prox: Array | None  # the prox point of z; ``None`` for an extrapolated z

    def at(self, rho: float) -> Array:
        """Return z for another rho, with the same prox point and subgradient."""
        return self.prox + (self.z - self.prox) * (self.rho / rho)

    def beyond(self, before: "Warm", share: float) -> "Warm":
        """Extrapolate by a share of the last change, for a better start."""
        z = self.z + share * (self.z - before.at(self.rho))
        return Warm(z, self.rho, None)


@dataclass(frozen=True)
class State:
    batch: Batch
    z: Array  # (n, B, p)
    rhos: np.ndarray  # (B,)
    linear: Eigen | Inverse | Conjugate
    prox: Array  # B, always in the domain of the conjugate
    plain: Array  # the unaccelerated image of the last z
    solved: Array  # A
    least: Array  # (B,), smallest residual since the memory was cleared
    memory: Memory
    is_guess: bool  # whether the start is extrapolated, and hence hardly ever within tol
    age: int = 0
    rebalance_at: int = 5
    file: StateFile | None = None  # the checkpoint

    def kept(self) -> "State":
        """Return the state after computing its arrays, if they are lazy, and writing the checkpoint, if it is due."""
        state, memory, k = self, self.memory, len(self.memory.moves)
        if is_lazy(self.z):
            steps = settled(self.z, self.prox, self.plain, self.solved, *memory.moves, *memory.images)
            memory = replace(memory, moves=steps[4 : 4 + k], images=steps[4 + k :])
            state = replace(self, z=steps[0], prox=steps[1], plain=steps[2], solved=steps[3], memory=memory)
        if self.file is not None and self.file.is_due:
            self.file.save(float(self.rhos[0]), chunks_of(state.z[:, 0, :], host))
        return state


class DouglasRachford(IterativeSolver[State]):
    r"""Douglas–Rachford splitting in the eigenbasis of the kernel, with Anderson acceleration.

    .. math:: B = \operatorname{prox}_{g / \rho}(z), \quad
        A = (\sigma + \rho + \mathcal H)^{-1} \bigl(y + \rho (2B - z)\bigr), \quad
        z \leftarrow z + \theta (A - B),

    with :math:`\mathcal H = \mathcal K / (\lambda n)` and :math:`\ell^* = \tfrac\sigma2 \|\cdot\|^2 + g`.

    Parameters
    ----------
    max_iter : int, default=20000
        Maximum number of iterations.
    check_every : int, default=5
        Number of iterations between two certificates.
    relaxation : float, default=1.7
        The factor :math:`\theta`.
    memory : int, default=5
        Number of past steps combined by the acceleration; 0 disables it.
    factorization : {"auto", "eigen", "inverse"}, default="auto"
        ``"eigen"``: one eigendecomposition serves all problems. ``"inverse"``: an explicit inverse for each rho,
        cheaper for one problem with the identity operator. ``"auto"`` chooses the cheaper one.

    Notes
    -----
    One eigendecomposition makes every linear solve a Hadamard division between two pairs of matrix products, whatever
    lam and rho. ``solve_all`` solves many problems with the same Gram operator side by side: different losses, values
    of lam, or held-out samples. The penalty rho is rebalanced from the primal and dual residuals at iterations 5, 10,
    20, 40, ...; an accelerated step that doubles the residual is rejected. Only certificates and rebalancing transfer
    data to the host. Without a start the solver begins at the square-loss solution; for a loss with an insensitive
    zone, at the multiple of it (zero, if the zone is wide) with the best dual value.

    References
    ----------
    [LionsMercier1979]_ for the splitting; [EcksteinBertsekas1992]_ for the relaxation; [Anderson1965]_ and, for the
    least-squares form used here, [WalkerNi2011]_ for the acceleration.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.solvers import DouglasRachford
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(loss="huber", lam=1e-2, solver=DouglasRachford()).fit(X, np.sin(X))
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        **IterativeSolver._limits,
        "relaxation": Interval(0, 2),
        "memory": Interval(0, math.inf, "left", integer=True),
        "factorization": Options(("auto", "eigen", "inverse")),
    }

    file: StateFile | None = None  # of the problem that is solved next; ``Krylov`` sets it

    def __init__(
        self,
        max_iter: int = 20000,
        check_every: int = 5,
        relaxation: float = 1.7,
        memory: int = 5,
        factorization: str = "auto",
    ) -> None:
        self.max_iter = max_iter
        self.check_every = check_every
        self.relaxation = relaxation
        self.memory = memory
        self.factorization = factorization

    @property
    def most_shared(self) -> float:  # type: ignore[override]
        """Any number of problems, but only one with an explicit inverse."""
        return 1 if self.factorization == "inverse" else math.inf

    def why_not(self, problem: DualProblem) -> str | None:
        """Return why not: an eigendecomposition is not feasible."""
        return problem.gram.why_not_factorize

    def cost(self, problem: DualProblem, known: Known | None = None) -> Cost:
        """Return the cost of a factorisation, unless the eigenbasis is available, and of a few dozen steps."""
        known = known or Known.of(problem)
        n, p, width = known.sizes
        power = _FLAT_POWER if problem.curvature == 0 else _POWER if problem.loss.sparse or p == 1 else _LOW_POWER
        n_steps = _STEPS * (1 + known.norm) ** power * known.flatness / (1 + min(p / n, 1.0) / 2)  # n = p: two thirds
        if problem.curvature > 0 and not problem.loss.sparse and known.shares.at_bound == 0:
            n_steps = 1.0  # the loss acts like the square loss, whose solution is the start
        cube, products = n * width**2 / FLOPS, 1.4  # including a certificate and its two points in every fifth step
        if problem.shared.is_factorized:
            setup, products = 0.0, 2.4
        elif known.has_identity:  # the start, and an inverse for every second change of rho at steps 5, 10, 20, ...
            setup = (4 / 3 + max(0.0, math.log2(n_steps / 5)) / 2) * cube
        else:
            setup, products = 9 * cube, 2.4
        step = products * known.product + known.passes(10) + 80 * CALL
        return Cost(setup + 300 * CALL, step, n_steps)

    def resuming(self, solution: Solution) -> tuple[Solver, object]:
        """Return the solver, and the state of the solution if this solver found it."""
        return self, solution.state if isinstance(solution.state, Warm) else solution.duals

    def _patience_for(self, problem: DualProblem) -> float:
        return _PATIENCE // 10 if is_single(problem.targets) else _PATIENCE

    def turned(self, problems: Sequence[DualProblem]) -> list[DualProblem]:
        """Return the problems in rotated coordinates, if these are the same for all."""
        turned = [rotated(problem) for problem in problems]
        is_shared = all(problem.gram is turned[0].gram for problem in turned)  # False if one has a pointwise loss
        return turned if is_shared else list(problems)

    def init(self, problems: Sequence[DualProblem], starts: Sequence[object]) -> State:
        """Start from given duals, from the state of an earlier solve, or from the square-loss solution."""
        batch, targets = Batch(tuple(problems)), problems[0].targets
        xp = namespace(targets)
        kind = self._kind(batch)
        warm = [start if isinstance(start, Warm) and start.z.shape == targets.shape else None for start in starts]
        if any(standing is None for standing in warm):
            top, ridge = kind.largest(batch), kind.ridge(batch)
        columns, rhos = [], np.zeros(len(starts))
        for k, (problem, start) in enumerate(zip(batch.problems, starts, strict=True)):
            if (standing := warm[k]) is not None:
                columns.append(standing.z)
                rhos[k] = standing.rho
                continue
            sigma = problem.curvature
            rhos[k] = first_rho(sigma, top * problem.scale)
            is_cold = start is None or isinstance(start, Warm)
            begin: Array = ridge(problem.scale) if is_cold else start
            fitted = problem.predictions(begin)
            if is_cold:
                factor = shortening(problem, begin, fitted)
                begin, fitted = factor * begin, factor * fitted
            columns.append(begin + (targets - fitted - sigma * begin) / float(rhos[k]))
        is_guess = all(isinstance(start, Warm) and start.prox is None for start in starts)
        return self.begun(batch, xp.stack(columns, axis=1), rhos, kind(batch, rhos), is_guess)

    def begun(
        self, batch: Batch, z: Array, rhos: np.ndarray, linear: Eigen | Inverse | Conjugate, is_guess: bool = False
    ) -> State:
        """Return the initial state at z."""
        prox = batch.prox_remainder(z, rhos)
        least = namespace(z).sum(z, axis=(0, 2)) * 0 + math.inf
        return State(batch, z, rhos, linear, prox, z, prox, least, Memory(self.memory), is_guess, file=self.file).kept()

    def _kind(self, batch: Batch) -> type[Eigen] | type[Inverse]:
        """Return the class that solves the linear systems."""
        first = batch.first
        can_invert = len(batch.problems) == 1 and first.gram.n_outputs is None
        can_invert = can_invert and not (is_thin(first.gram) or is_lazy(first.targets))
        if self.factorization == "inverse" and not can_invert:
            raise IncompatibleError(
                "DouglasRachford(factorization='inverse') is for one problem with the identity operator. Use 'eigen'."
            )
        if self.factorization != "auto":
            return Eigen if self.factorization == "eigen" else Inverse
        return Inverse if can_invert and not first.shared.is_factorized else Eigen

    def step(self, problems: Sequence[DualProblem], state: State) -> State:
        """Take one splitting step in every problem and combine it with the previous ones."""
        batch = state.batch
        rho = batch.column(state.rhos)
        right = 2 * state.prox  # a new array, like move, so it may be overwritten
        right -= state.z
        right *= rho
        right += batch.first.targets[:, None, :]
        (solved,) = settled(state.linear(right))
        del right  # frees memory early for large samples
        move = solved - state.prox
        move *= self.relaxation
        image = state.z + move
        state = replace(state, solved=solved)
        if state.age + 1 >= state.rebalance_at:
            return self._rebalanced(state, image)
        if not self.memory:
            return self._moved(replace(state, plain=image), image)
        memory = state.memory.adding(move, image)
        residual = memory.last_norm
        xp = namespace(residual)
        is_bad = residual > 2 * state.least  # only possible for an accelerated step: plain ones never expand
        if is_numpy(is_bad) and not is_bad.any():  # on a device this check would need a transfer
            least = xp.minimum(residual, state.least)
            return self._moved(replace(state, plain=image, least=least, memory=memory), memory.combined())
        memory = state.memory.forgetting(is_bad).adding(move, image)
        accelerated = xp.where(is_bad[None, :, None], state.plain, memory.combined())
        least = xp.where(is_bad, xp.zeros_like(residual) + math.inf, xp.minimum(residual, state.least))
        plain = xp.where(is_bad[None, :, None], state.plain, image)
        return self._moved(replace(state, plain=plain, least=least, memory=memory), accelerated)

    def _moved(self, state: State, z: Array) -> State:
        return replace(state, z=z, prox=state.batch.prox_remainder(z, state.rhos), age=state.age + 1).kept()

    def _rebalanced(self, state: State, image: Array) -> State:
        """Multiply rho by the square root of the ratio of the residuals, keeping the subgradient at the prox point."""
        xp = namespace(image)
        prox = state.batch.prox_remainder(image, state.rhos)
        force = image - prox
        arrays = (state.solved - state.prox, prox, state.solved, prox - state.prox, force)
        factor = rebalancing(host(xp.stack([xp.sum(array**2, axis=(0, 2)) for array in arrays])))
        factor[np.abs(np.log(factor)) < state.linear.slack] = 1.0
        rhos = state.rhos * factor
        z = prox + force / state.batch.column(factor)
        fresh = replace(
            state,
            rhos=rhos,
            linear=state.linear if np.all(factor == 1) else state.linear.at(state.batch, rhos),
            plain=z,
            least=namespace(state.least).zeros_like(state.least) + math.inf,
            memory=Memory(self.memory),
            rebalance_at=2 * state.rebalance_at,
        )
        return self._moved(fresh, z)

    def certify(self, problems: Sequence[DualProblem], state: State, tol: float) -> Sequence[Point | None]:
        """Certify the prox points, then the linear-solve points where those fail.

        At small lam a change of the duals is magnified by 1 / lam in the predictions. Scaling is not: it changes duals
        and predictions by the same factor, so the linear-solve point, scaled into the domain, reaches a given gap
        before the prox point does. It has no exact zeros: a loss with sparse duals uses it only if the prox point
        takes too long.
        """
        if state.age == 0 and state.is_guess:
            return [None] * len(problems)
        predictions = state.batch.predictions(state.prox)
        points: list[Point] = []
        for k, certificate in enumerate(state.batch.certificates(state.prox, predictions)):
            problem, point = problems[k], (state.prox[:, k, :], predictions[:, k, :], certificate)
            if not certificate.distance <= tol:
                pair = pulled_inside(problem, *point[:2])
                point = point if pair[0] is point[0] else (*pair, problem.certificate(*pair))
            is_patient = state.age == 0 or (problem.loss.sparse and state.age < _SPARSE_PATIENCE)
            if not (point[2].distance <= tol or is_patient):
                point = min(point, _scaled_inside(problem, state.solved[:, k, :]), key=comparable)
            points.append(point)
        return points

    def taken(self, state: State, places: Sequence[int]) -> State:
        """Return the state of the remaining problems."""
        xp = namespace(state.z)
        batch, index = state.batch.take(places), as_index(np.asarray(places), state.z)
        z, prox, plain, solved = (
            xp.take(part, index, axis=1) for part in (state.z, state.prox, state.plain, state.solved)
        )
        rhos = state.rhos[list(places)]
        return replace(
            state,
            batch=batch,
            rhos=rhos,
            linear=state.linear.at(batch, rhos),
            least=xp.take(state.least, index, axis=0),
            memory=state.memory.taken(index),
            z=z,
            prox=prox,
            plain=plain,
            solved=solved,
        )

    def standing(self, state: State, place: int) -> Warm:
        """Return the state of the iteration for one problem."""
        return Warm(state.z[:, place, :], float(state.rhos[place]), state.prox[:, place, :])


def rebalancing(sums: np.ndarray) -> np.ndarray:
    """Return the factor of rho (B,) from squared norms (5, B) of A - B, B, A, the change of B, and z - B."""
    primal, size, other, dual, pull = np.sqrt(sums.astype(float)) + 1e-150
    with np.errstate(all="ignore"):
        ratio = (primal / np.maximum(size, other)) / (dual / pull)
        factor: np.ndarray = np.where(np.isfinite(ratio), np.clip(np.sqrt(ratio), 0.1, 10.0), 1.0)
    return factor


def first_rho(sigma: float, norm: float) -> float:
    """Return the initial penalty, from the curvature of the conjugate and the norm of H."""
    return (0.3 if sigma else 0.03) * math.sqrt(1 + norm)


def _scaled_inside(problem: DualProblem, solved: Array) -> Point:
    """Return the linear-solve point, scaled into the domain."""
    if problem.mask is not None:
        solved = solved * problem.mask
    ratios = row_saturation(problem.loss, problem.unscale(solved))
    duals = solved if ratios is None else solved / max(1.0, float(namespace(solved).max(ratios)))
    pair = pulled_inside(problem, duals, problem.predictions(duals))
    return (*pair, problem.certificate(*pair))


def shortening(problem: DualProblem, ridge: Array, fitted: Array) -> float:
    """Return the multiple of the square-loss solution that is the best start for a loss with sparse duals.

    The conjugate minus its quadratic part, g, is convex with g(0) = 0, so t g(a) bounds g(ta), and the bound on the
    dual objective is smallest at t = (<a, y> - g(a)) / <a, (sigma + H) a>. For a wide insensitive zone this is zero:
    at small lam the square-loss solution is then far away.
    """
    if not problem.loss.sparse:
        return 1.0
    xp = namespace(ridge)
    ratios = row_saturation(problem.loss, problem.unscale(ridge))
    inside = 1.0 if ratios is None else 1 / max(1.0, float(xp.max(ratios)))
    a = inside * ridge
    own = problem.curvature * float(xp.sum(a**2))
    bend = own + inside * float(xp.sum(a * fitted))
    gain = float(xp.sum(a * problem.targets)) - float(problem.conjugate_sum(a)) + own / 2
    return inside * min(1.0, max(0.0, gain / bend)) if bend > 0 else 0.0
