"""Base of the Newton methods: a smoothed primal, backtracking, and a proximal term that is gradually weakened."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fenchel._array import Array, eps, namespace
from fenchel._check import Interval, Options
from fenchel.problem import DualProblem
from fenchel.solvers.loop import ProblemwiseSolver
from fenchel.solvers.solver import Solution, Solver

__all__ = ["NewtonState", "SmoothedNewton"]


@dataclass(frozen=True)
class NewtonState:
    """State of a Newton method."""

    coef: Array  # C, with h = H C; at the optimum C = B
    fitted: Array  # H C
    duals: Array  # B, the (smoothed) gradient of the loss at the residuals
    centre: Array  # centre of the proximal term
    tau: float  # its weight; 0 if the conjugate has curvature
    floor: float  # smallest weight
    damping: float
    value: float  # smoothed primal objective
    residual: float  # |C - B|


class SmoothedNewton(ProblemwiseSolver[NewtonState], ABC):
    r"""Solve :math:`C = g(Y - \mathcal H C)` by Newton steps, where :math:`g` is the (smoothed) gradient of the loss.

    A loss whose conjugate has no curvature gets some from a proximal term around the last solution, which is then moved
    and weakened.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        **ProblemwiseSolver._limits,
        "tau": Interval(0, math.inf, also=(None,)),
        "patience": Interval(1, math.inf, "left", integer=True),
    }
    _weakest: ClassVar[float] = 0.1  # smallest weight of the proximal term, relative to the first

    _near: ClassVar[float] = 1e-2  # relative residual at which the smoothed problem counts as solved
    _factor: ClassVar[float] = 10.0
    _decrease: ClassVar[float] = 0.1  # sufficient decrease, relative to the slope
    _shorter: ClassVar[float] = 0.7  # factor by which a rejected step is shortened

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
        state = NewtonState(coef, fitted, coef, coef, tau, self._weakest * tau, 1.0, 0.0, 0.0)
        return self._evaluated(problem, state)

    def next_state(self, problem: DualProblem, state: NewtonState) -> NewtonState:
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
            enough = state.value + self._decrease * length * slope + 64 * eps(change) * abs(state.value)
            if trial.value <= enough or length < 1e-6 or not math.isfinite(slope):
                break
            length *= self._shorter
        damping = max(state.damping / 10, 1e-10) if length == 1 else min(state.damping * 10, 1.0)
        trial = replace(trial, damping=damping)
        size = float(xp.sqrt(xp.sum(trial.duals**2)))
        if state.tau > 0 and trial.residual <= self._near * max(size, 1e-300):
            return self._evaluated(
                problem, replace(trial, centre=trial.duals, tau=max(trial.tau / self._factor, trial.floor))
            )
        return trial

    def points(self, problem: DualProblem, state: NewtonState) -> Iterator[tuple[Array, Array]]:
        """Yield the duals of the current residuals, which are feasible and have exact zeros."""
        yield state.duals, problem.predictions(state.duals)

    def _gradient(self, problem: DualProblem, fitted: Array, centre: Array, tau: float) -> Array:
        curvature = problem.curvature + tau
        return problem.prox_remainder((problem.targets - fitted + tau * centre) / curvature, 1 / curvature)

    def _evaluated(self, problem: DualProblem, state: NewtonState) -> NewtonState:
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


def _first_tau(problem: DualProblem) -> float:
    """Return the weight of the first proximal term."""
    return 0.1 * max(0.01 * problem.lipschitz, 0.05)
