"""Newton's method on the rows: a dozen linear systems where the conjugate of the loss is curved."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fenchel._array import Array, cholesky_solver, device, namespace, row_norms
from fenchel._check import Interval, Options
from fenchel.problem import DualProblem
from fenchel.solvers.base import IterativeSolver

__all__ = ["RowNewton"]

_STEP = 1e-6  # relative step of the difference that gives the radial slope
_FLAT = 1e-14  # slopes below this are those of a row that does not move


@dataclass(frozen=True)
class _State:
    coef: Array  # C, with h = H C; at the optimum C = B
    fitted: Array  # H C
    duals: Array  # B, the (smoothed) gradient of the loss at the residuals
    centre: Array  # centre of the proximal term
    tau: float  # its weight; 0 where the conjugate has curvature of its own
    floor: float  # the least weight
    damping: float
    value: float  # smoothed primal objective
    residual: float  # |C - B|


class RowNewton(IterativeSolver):
    r"""Semismooth Newton's method with one multiplier for each sample, for losses of the row norm.

    With :math:`\mathcal H = K / (\lambda n)` and the gradient :math:`g` of the loss, the equation
    :math:`C = g(Y - \mathcal H C)` is solved by Newton steps. The Jacobian of :math:`g` at a row is a multiple of the
    identity plus a rank-one term, so that a step takes the Cholesky factor of :math:`\mathcal H + \mathrm{diag}(m)` and
    one more system, the Hadamard product of its inverse with the cosines between rows: never an :math:`nr \times nr`
    matrix.

    Parameters
    ----------
    max_iter : int, default=200
        Most Newton steps.
    check_every : int, default=1
        Steps between two certificates.
    tau : float or None, default=None
        First weight of the proximal term that a loss without curvature in its conjugate gets; ``None`` takes it from
        the size of the kernel.
    patience : int, default=60
        Certificates in a row without progress after which it gives up.

    Notes
    -----
    Rows with a null dual leave the system, which shrinks with sparsity. The step is found by backtracking on the primal
    objective; rows at the bound of the dual domain are damped until full steps are taken. A loss whose conjugate has no
    curvature (``Norm``, ``EpsilonSVR``) gets some from a proximal term around the last solution, which is then moved
    and made weaker: good for the last digits from a near solution, slow from afar when lam is small.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        **IterativeSolver._limits,
        "tau": Interval(0, math.inf, also=(None,)),
        "patience": Interval(1, math.inf, "left", integer=True),
    }

    def __init__(self, max_iter: int = 200, check_every: int = 1, tau: float | None = None, patience: int = 60) -> None:
        self.max_iter = max_iter
        self.patience = patience
        self.check_every = check_every
        self.tau = tau

    def why_not(self, problem: DualProblem) -> str | None:
        """Return why not: the loss is not one of the row norm, or the operator couples the columns."""
        if problem.loss.profile() is None:
            return f"{problem.loss!r} is not a loss of the Euclidean norm. Use DouglasRachford() or Auto()."
        if problem.gram.identity_factor() is None:
            return "the kernel is not a scalar kernel times the identity. Use DouglasRachford() or Auto()."
        return None

    def init(self, problem: DualProblem, start: Array | None) -> _State:
        """Start from given duals, or from the gradient of the loss at the targets."""
        xp = namespace(problem.targets)
        tau = 0.0 if problem.curvature > 0 else self.tau or _first_tau(problem)
        zero = xp.zeros_like(problem.targets)
        centre = zero if start is None else start
        coef = self._gradient(problem, zero, centre, tau) if start is None else start
        return self._evaluated(
            problem, _State(coef, problem.predictions(coef), coef, centre, tau, 0.1 * tau, 1.0, 0.0, 0.0)
        )

    def step(self, problem: DualProblem, state: _State) -> _State:
        """Take one Newton step; weaken the proximal term once the smoothed problem is nearly solved."""
        xp = namespace(state.coef)
        change = self._direction(problem, state)
        fitted = problem.predictions(change)
        slope = float(xp.sum((state.coef - state.duals) * fitted))
        length = 1.0
        while True:
            trial = self._evaluated(
                problem,
                replace(state, coef=state.coef + length * change, fitted=state.fitted + length * fitted),
            )
            if trial.value <= state.value + 1e-4 * length * slope + 1e-14 * abs(state.value) or length < 1e-6:
                break
            length /= 2
        damping = max(state.damping / 10, 1e-10) if length == 1 else min(state.damping * 10, 1.0)
        trial = replace(trial, damping=damping)
        size = float(xp.sqrt(xp.sum(trial.duals**2)))
        if state.tau > 0 and trial.residual <= 1e-2 * max(size, 1e-300):
            return self._evaluated(problem, replace(trial, centre=trial.duals, tau=max(trial.tau / 10, trial.floor)))
        return trial

    def points(self, problem: DualProblem, state: _State) -> Iterator[tuple[Array, Array]]:
        """Yield the duals of the current residuals, which are feasible and have exact zeros."""
        yield state.duals, problem.predictions(state.duals)

    def _gradient(self, problem: DualProblem, fitted: Array, centre: Array, tau: float) -> Array:
        curvature = problem.curvature + tau
        return problem.prox_remainder((problem.targets - fitted + tau * centre) / curvature, 1 / curvature)

    def _evaluated(self, problem: DualProblem, state: _State) -> _State:
        """Return the state with its duals and the value of the smoothed primal objective."""
        xp = namespace(state.coef)
        duals = self._gradient(problem, state.fitted, state.centre, state.tau)
        residuals = problem.targets - state.fitted
        proximal = state.tau / 2 * xp.sum((duals - state.centre) ** 2)
        value = (
            xp.sum(duals * residuals) - problem.conjugate_sum(duals) - proximal + xp.sum(state.coef * state.fitted) / 2
        )
        distance = xp.sqrt(xp.sum((state.coef - duals) ** 2))
        return replace(state, duals=duals, value=float(value), residual=float(distance))

    def _direction(self, problem: DualProblem, state: _State) -> Array:
        """Solve (I + D H) X = B - C for the Jacobian D of the gradient map."""
        xp = namespace(state.coef)
        tangential, radial, unit = self._jacobian(problem, state)
        right = state.duals - state.coef
        is_active = xp.maximum(tangential, radial) > _FLAT
        active = xp.nonzero(is_active)[0]
        change = xp.where(is_active[:, None], xp.zeros_like(right), right)
        if active.shape[0] == 0:
            return change
        K: Array = problem.gram.identity_factor()
        K = K * problem.scale
        outer = K @ change if active.shape[0] < K.shape[0] else None
        t, q = xp.take(tangential, active), xp.take(radial, active)
        e, g = xp.take(unit, active, axis=0), xp.take(right, active, axis=0)
        q = xp.maximum(q, state.damping * t)
        if right.shape[1] == 1:
            t = q
        t = xp.maximum(t, _FLAT)
        along = xp.sum(e * g, axis=1)[:, None]
        wanted = (g - along * e) / t[:, None] + along * e / q[:, None]  # D^-1 (B - C)
        if outer is not None:
            wanted = wanted - xp.take(outer, active, axis=0)
        part = K if outer is None else xp.take(xp.take(K, active, axis=0), active, axis=1)
        solve = cholesky_solver(part + xp.eye(part.shape[0], dtype=K.dtype, device=device(K)) * (1 / t))
        found = solve(wanted)
        excess = 1 / q - 1 / t
        bent = xp.nonzero(xp.abs(excess) > 1e-12 * (1 / t))[0]
        if bent.shape[0] > 0:
            found = _bend(found, solve, e, excess, bent)
        place = xp.clip(xp.cumulative_sum(xp.astype(is_active, xp.int64)) - 1, min=0)
        return xp.where(is_active[:, None], xp.take(found, place, axis=0), change)

    def _jacobian(self, problem: DualProblem, state: _State) -> tuple[Array, Array, Array]:
        """Return the tangential and radial slopes of the gradient map at each row, and the direction of the row."""
        xp = namespace(state.coef)
        curvature = problem.curvature + state.tau
        point = problem.unscale((problem.targets - state.fitted + state.tau * state.centre) / curvature)
        norms = row_norms(point)
        safe = xp.where(norms > 0, norms, xp.ones_like(norms))
        prox = problem.loss.profile().remainder().prox
        size = prox(norms, 1 / curvature)
        above, below = prox(norms * (1 + _STEP), 1 / curvature), prox(norms * (1 - _STEP), 1 / curvature)
        tangential = xp.where(norms > 0, size / safe, xp.zeros_like(norms)) / curvature
        radial = xp.where(norms > 0, (above - below) / (2 * _STEP * safe), xp.zeros_like(norms)) / curvature
        return tangential[:, 0], xp.clip(radial[:, 0], min=0.0), point / safe


def _bend(found: Array, solve: Any, units: Array, excess: Array, bent: Array) -> Array:
    """Add the rank-one terms excess_i e_i e_i' to a system that is already solved, by the Hadamard system."""
    xp = namespace(found)
    n = found.shape[0]
    places = xp.arange(n, dtype=bent.dtype, device=device(found))
    columns = xp.astype(places[:, None] == bent[None, :], found.dtype)
    inverse = solve(columns)  # S[:, bent]
    e = xp.take(units, bent, axis=0)
    system = xp.take(inverse, bent, axis=0) * (e @ e.T)
    weights = 1 / xp.take(excess, bent)
    system = system + xp.eye(bent.shape[0], dtype=found.dtype, device=device(found)) * weights
    along = xp.sum(e * xp.take(found, bent, axis=0), axis=1)
    forces = xp.linalg.solve(system, along[:, None])
    return found - inverse @ (forces * e)


def _first_tau(problem: DualProblem) -> float:
    """Return the weight of the first proximal term."""
    return 0.1 * max(0.01 * problem.lipschitz, 0.05)
