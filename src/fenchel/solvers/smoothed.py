"""Base of the Newton methods: a smoothed primal, a search along each step, and a proximal term that is weakened."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fenchel._array import Array, eps, namespace
from fenchel._check import Interval, Options
from fenchel.operators import is_thin
from fenchel.problem import DualProblem
from fenchel.solvers.loop import ProblemwiseSolver
from fenchel.solvers.solver import Solution, Solver

__all__ = ["NewtonState", "SmoothedNewton", "sparse_predictions"]

_FLAT = 0.1  # share of the first slope at which a search along a step ends
_DECREASE = 0.1  # sufficient decrease, relative to the slope
_SHORTER = 0.7  # factor by which a rejected step is shortened
_SHARE = 0.2  # residual, relative to the distance from the centre, at which the smoothed problem counts as solved
_EASY = 2  # number of steps, the last a full one, in which it is solved if its proximal term can be weaker
_FACTOR = 2.0  # by which it is then weakened (with 10: up to twice as many steps)
_FEW = 0.25  # share of the rows of a matrix that is copied faster than all of it is multiplied
_FULL = 0.1  # length from which a step counts as full: the model from which it was found holds that far
_TRIALS = 30  # of a search; a few are enough, unless round-off hides the slope


@dataclass(frozen=True)
class NewtonState:
    """State of a Newton method."""

    coef: Array  # C, with h = H C; at the optimum C = B
    fitted: Array  # H C
    duals: Array  # B, the (smoothed) gradient of the loss at the residuals
    centre: Array  # centre of the proximal term
    tau: float  # its weight; 0 if the conjugate has curvature
    age: int = 0  # number of steps with this centre
    damping: float = 1.0


class SmoothedNewton(ProblemwiseSolver[NewtonState], ABC):
    r"""Solve :math:`C = g(Y - \mathcal H C)` by Newton steps, where :math:`g` is the (smoothed) gradient of the loss.

    A loss whose conjugate has no curvature gets some from a proximal term around the last solution, which is then moved
    and, as long as a few steps solve the smoothed problem, weakened.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        **ProblemwiseSolver._limits,
        "tau": Interval(0, math.inf, also=(None,)),
        "patience": Interval(1, math.inf, "left", integer=True),
    }
    _steps: ClassVar[float] = 1.8  # times (1 + L)^(1/6) (at 5, 450, 4500, 4.5e5: 3, 4, 6 and 8 to 20 steps)

    tau: float | None

    @abstractmethod
    def _direction(self, problem: DualProblem, state: NewtonState) -> Array:
        """Solve (I + D H) X = B - C for the Jacobian D of the gradient map."""

    def resuming(self, solution: Solution) -> tuple[Solver, object]:
        """Return the solver with a proximal term as weak as the penalty of a preceding splitting allows, if any."""
        rho = getattr(solution.state, "rho", None)
        return self if rho is None else self.with_settings(tau=0.1 * rho), solution.duals

    def first_state(self, problem: DualProblem, start: Array | None) -> NewtonState:
        """Start from given duals, or from the zero model, so that the samples it fits are not in the first system."""
        coef = namespace(problem.targets).zeros_like(problem.targets) if start is None else start
        tau = 0.0 if problem.curvature > 0 else self.tau or _first_tau(problem)
        fitted = coef if start is None else problem.predictions(coef)
        return self._at(problem, NewtonState(coef, fitted, coef, coef, tau))

    def next_state(self, problem: DualProblem, state: NewtonState) -> NewtonState:
        """Take one Newton step; move the centre once the smoothed problem is nearly solved."""
        xp = namespace(state.coef)
        change = self._direction(problem, state)
        search = self._searched if state.tau > 0 else self._shortened
        trial, is_full = search(problem, state, change)
        damping = max(state.damping / 10, 1e-10) if is_full else min(state.damping * 10, 1.0)
        trial = replace(trial, damping=damping, age=state.age + 1)
        if state.tau == 0:
            return trial
        residual, move = (float(xp.sum(rows**2)) for rows in (trial.coef - trial.duals, trial.duals - trial.centre))
        if not math.sqrt(residual) <= _SHARE * math.sqrt(move):
            return trial
        is_easy = is_full and trial.age <= _EASY
        tau = max(trial.tau / _FACTOR, math.sqrt(eps(change)) * problem.lipschitz) if is_easy else trial.tau
        return self._at(problem, replace(trial, centre=trial.duals, tau=tau, age=0))

    def _shortened(self, problem: DualProblem, state: NewtonState, change: Array) -> tuple[NewtonState, bool]:
        """Return the state after the longest step that decreases the objective enough, and whether it is a full one."""
        fitted = sparse_predictions(problem, change)
        value, first = self._value(problem, state), self._slope(state, fitted)
        length, slack = 1.0, 64 * eps(change) * abs(value)
        while True:
            trial = self._moved(problem, state, length * change, length * fitted)
            is_enough = self._value(problem, trial) <= value + _DECREASE * length * first + slack
            if is_enough or length < 1e-6 or not math.isfinite(first):
                return trial, length == 1
            length *= _SHORTER

    def _searched(self, problem: DualProblem, state: NewtonState, change: Array) -> tuple[NewtonState, bool]:
        """Return the state where the smoothed objective is nearly least along a direction; whether far along it.

        Its slope increases along the direction, piecewise linearly for most losses, so that secants find the root in
        two or three trials. With a proximal term the kinks are close: steps that merely decrease the objective are up
        to twice as many.
        """
        xp = namespace(change)
        fitted = sparse_predictions(problem, change)
        low, high, length = (0.0, self._slope(state, fitted)), None, 1.0
        enough = max(_FLAT * abs(low[1]), 64 * eps(change) * abs(float(xp.sum(state.coef * fitted))))
        for _ in range(_TRIALS):
            trial = self._moved(problem, state, length * change, length * fitted)
            slope = self._slope(trial, fitted)
            if abs(slope) <= enough or not (math.isfinite(slope) and low[1] < 0):
                break
            last, low, high = low, (low if slope > 0 else (length, slope)), ((length, slope) if slope > 0 else high)
            length = _between(low, high) if high is not None else _beyond(last, low)
        return trial, length >= _FULL

    def points(self, problem: DualProblem, state: NewtonState) -> Iterator[tuple[Array, Array]]:
        """Yield the duals of the current residuals, which are feasible and have exact zeros."""
        yield state.duals, problem.predictions(state.duals)

    def _at(self, problem: DualProblem, state: NewtonState) -> NewtonState:
        """Return the state with the duals of its predictions."""
        curvature = problem.curvature + state.tau
        point = (problem.targets - state.fitted + state.tau * state.centre) / curvature
        return replace(state, duals=problem.prox_remainder(point, 1 / curvature))

    def _moved(self, problem: DualProblem, state: NewtonState, change: Array, fitted: Array) -> NewtonState:
        return self._at(problem, replace(state, coef=state.coef + change, fitted=state.fitted + fitted))

    def _slope(self, state: NewtonState, fitted: Array) -> float:
        """Return the slope of the smoothed primal objective along a direction with these predictions."""
        return float(namespace(fitted).sum((state.coef - state.duals) * fitted))

    def _value(self, problem: DualProblem, state: NewtonState) -> float:
        """Return the smoothed primal objective."""
        xp, duals = namespace(state.coef), state.duals
        gains = xp.sum(duals * (problem.targets - state.fitted)) - problem.conjugate_sum(duals)
        proximal = state.tau / 2 * xp.sum((duals - state.centre) ** 2)
        return float(gains - proximal + xp.sum(state.coef * state.fitted) / 2)


def sparse_predictions(problem: DualProblem, duals: Array) -> Array:
    """Return the predictions, from some rows of a stored Gram matrix if only few duals are not zero.

    In a Newton step most duals stay at their bound or at zero.
    """
    gram = problem.gram
    if gram.n_outputs is not None or is_thin(gram) or len(gram.terms) != 1:
        return problem.predictions(duals)
    xp = namespace(duals)
    rows = xp.nonzero(xp.any(duals != 0, axis=1))[0]
    if rows.shape[0] > _FEW * duals.shape[0]:
        return problem.predictions(duals)
    part = xp.take(gram.terms[0][0].matrix, rows, axis=0)  # of a symmetric matrix
    return problem.scale * (part.T @ xp.take(duals, rows, axis=0))


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Return the length at which a secant vanishes, away from the ends of the bracket."""
    share = low[1] / (low[1] - high[1])
    return low[0] + min(max(share, 0.1), 0.9) * (high[0] - low[0])


def _beyond(last: tuple[float, float], low: tuple[float, float]) -> float:
    """Return the length at which a secant vanishes beyond both points, at most four times as far."""
    rise = low[1] - last[1]
    return min(4 * low[0], low[0] - low[1] * (low[0] - last[0]) / rise) if rise > 0 else 4 * low[0]


def _first_tau(problem: DualProblem) -> float:
    """Return the weight of the first proximal term."""
    return 0.03 * max(0.01 * problem.lipschitz, 0.05)
