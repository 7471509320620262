"""What every estimator of a convex problem does: parts from parameters, one solve, the fitted attributes."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel import losses as loss_room
from fenchel import solvers as solver_room
from fenchel._array import Array, eps, host, namespace
from fenchel._check import Interval, check_parameter
from fenchel._component import from_name
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.losses import Loss
from fenchel.problem import DualProblem, arithmetic
from fenchel.solvers import Solution, Solver, Status

__all__ = ["CertifiedMixin", "all_or_nothing", "part_of"]

E = TypeVar("E")
P = ParamSpec("P")

_LIMITS = {
    "lam": Interval(0, float("inf")),
    "tol": Interval(0, float("inf")),
    "max_iter": Interval(1, float("inf"), "left", integer=True, also=(None,)),
}


class CertifiedMixin(NamedPartsMixin):
    """Solves the dual problem of an estimator and writes down the certificate.

    The estimator has the parameters ``loss`` (under the name of ``_loss_parameter``), ``lam``, ``solver``, ``tol`` and
    ``max_iter``.
    """

    _loss_parameter: ClassVar[str] = "loss"  # the name of the parameter that is the loss of the dual problem
    lam: float
    solver: Any
    tol: float
    max_iter: int | None

    def _parts(self) -> tuple[Loss, Solver]:
        """Return the loss and the solver as checked instances of their own."""
        for name, wanted in _LIMITS.items():
            check_parameter(type(self).__name__, name, getattr(self, name), wanted)
        loss = part_of(self._wanted_loss(), loss_room, self._loss_parameter, Loss)
        solver = part_of(self.solver, solver_room, "solver", Solver)
        if self.max_iter is not None and "max_iter" in solver.get_params():
            solver.set_params(max_iter=self.max_iter)
        return loss.validate(), solver.validate()

    def _wanted_loss(self) -> Any:
        """Return the loss, an instance or a name; estimators without a choice of it override this."""
        return getattr(self, self._loss_parameter)

    def _settled(self, loss: Loss, lam: float) -> Self:
        """Take the loss and the lam of one pair of a grid."""
        self.set_params(**{self._loss_parameter: clone(loss), "lam": lam})
        return self

    def _solve(self, problem: DualProblem, solver: Solver, start: Array | None = None) -> Solution:
        """Solve, and set the fitted attributes that every estimator has."""
        with arithmetic(problem):
            solution = _finite(solver.solve(problem, tol=self.tol, start=start), problem)
        self._certify(problem, solution)
        return solution

    def _warn_unless_converged(self, solution: Solution, stacklevel: int = 6) -> None:
        """Warn about a solution whose gap is above ``tol``."""
        if solution.status is not Status.CONVERGED:
            warnings.warn(self._message(solution), ConvergenceWarning, stacklevel=stacklevel)

    def _certify(self, problem: DualProblem, solution: Solution) -> None:
        """Set the fitted attributes of a solution."""
        xp, duals = namespace(solution.duals), problem.unscale(solution.duals)
        is_null = host(xp.all(duals == 0, axis=1))
        self.dual_coef_ = duals
        self.support_ = (~is_null).nonzero()[0]
        self.sparsity_ = float(is_null.mean())
        self.primal_objective_ = solution.certificate.primal
        self.dual_objective_ = solution.certificate.dual
        self.duality_gap_ = solution.certificate.relative_gap
        self.n_iter_ = max(1, solution.n_iter)  # the first point is work too
        self.status_ = solution.status.value
        self.history_ = [(n_iter, found.relative_gap) for n_iter, found in solution.history]
        self.solver_info_ = _account(solution)
        scores = {
            "outlier_score_": problem.loss.saturation(duals),
            "point_outlier_score_": problem.loss.point_saturation(duals),
        }
        for name, ratios in scores.items():
            if ratios is not None:  # a clipped sample has a score of exactly 1, whatever its round-off
                setattr(self, name, xp.where(ratios >= 1 - eps(duals) ** 0.5, xp.ones_like(ratios), ratios))
            elif hasattr(self, name):
                delattr(self, name)

    def _message(self, solution: Solution) -> str:
        gap, plural = solution.certificate.relative_gap, "" if solution.n_iter == 1 else "s"
        text = (
            f"{solution.solver} stopped after {solution.n_iter} iteration{plural} with gap {gap:.1e} > tol {self.tol:g}"
        )
        advice = {
            Status.MAX_ITER: f"Raise max_iter, or lam (now {self.lam:g}).",
            Status.STALLED: f"Round-off is reached: scale the inputs, use float64, raise lam ({self.lam:g}) or tol.",
            Status.INFEASIBLE: "No finite primal value was found: the loss may admit no solution on these data.",
        }
        return f"{text}. {advice.get(solution.status, solution.status.value)}"


def _account(solution: Solution) -> dict[str, Any]:
    """Return which solver found the duals, why it ran, and every solver that ran before or after it."""
    reasons = [stage.reason for stage in solution.stages if stage.solver == solution.solver]
    return {
        "solver": solution.solver,
        "reason": reasons[0] if reasons else "chosen by the user",
        "stages": [asdict(stage) for stage in solution.stages],
    }


def _finite(solution: Solution, problem: DualProblem) -> Solution:
    """Return the solution, or the zero model where overflow has left no numbers."""
    xp = namespace(solution.duals)
    if bool(xp.all(xp.isfinite(solution.duals))):
        return solution
    zero = xp.zeros_like(problem.targets)
    certificate = problem.certificate(zero, zero)
    return replace(solution, duals=zero, predictions=zero, certificate=certificate, status=Status.STALLED)


def all_or_nothing(fit: Callable[Concatenate[E, P], E]) -> Callable[Concatenate[E, P], E]:
    """Return a ``fit`` that changes the estimator only when it has ended.

    The work is done on a copy of the estimator. If it is interrupted or fails, the estimator is what it was before:
    not fitted, or fitted as it was.
    """

    @wraps(fit)
    def fit_whole(self: E, /, *args: P.args, **kwargs: P.kwargs) -> E:
        trial = object.__new__(type(self))
        trial.__dict__.update(self.__dict__)
        fit(trial, *args, **kwargs)
        self.__dict__ = trial.__dict__
        return self

    return fit_whole


def part_of(value: Any, room: Any, argument: str, kind: type) -> Any:
    """Return a copy of a part given by instance or short name."""
    part = from_name(value, room, argument)
    if not isinstance(part, kind):
        raise TypeError(
            f"The {argument!r} parameter must be a {kind.__name__} instance or a short name. Got {value!r} instead."
        )
    return clone(part)
