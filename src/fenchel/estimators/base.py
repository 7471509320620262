"""What every estimator of a convex problem does: parts from parameters, one solve, the fitted attributes."""

import warnings
from typing import Any, ClassVar, Self

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel import losses as loss_room
from fenchel import solvers as solver_room
from fenchel._array import Array, host, namespace
from fenchel._check import Interval, check_parameter
from fenchel._component import from_name
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.losses import Loss
from fenchel.problem import DualProblem
from fenchel.solvers import Auto, Solution, Solver, Status

__all__ = ["CertifiedMixin", "part_of"]

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

    def _solve(self, problem: DualProblem, solver: Solver, start: Array | None = None, warn: bool = True) -> Solution:
        """Solve, set the fitted attributes that every estimator has, warn if not converged."""
        with problem.few_threads():
            solution = solver.solve(problem, tol=self.tol, start=start)
        self._certify(problem, solution, self._info(problem, solver, solution))
        if warn and solution.status is not Status.CONVERGED:
            warnings.warn(self._message(solution), ConvergenceWarning, stacklevel=4)
        return solution

    def _certify(self, problem: DualProblem, solution: Solution, info: dict[str, str]) -> None:
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
        self.solver_info_ = info
        scores = {
            "outlier_score_": problem.loss.saturation(duals),
            "point_outlier_score_": problem.loss.point_saturation(duals),
        }
        for name, ratios in scores.items():
            if ratios is not None:
                setattr(self, name, xp.clip(ratios, max=1.0))
            elif hasattr(self, name):
                delattr(self, name)

    def _info(self, problem: DualProblem, solver: Solver, solution: Solution) -> dict[str, str]:
        reason = solver.choose(problem)[1] if isinstance(solver, Auto) else "chosen by the user"
        return {"solver": solution.solver, "reason": reason}

    def _message(self, solution: Solution) -> str:
        gap, plural = solution.certificate.relative_gap, "" if solution.n_iter == 1 else "s"
        text = (
            f"{solution.solver} stopped after {solution.n_iter} iteration{plural} with gap {gap:.1e} > tol {self.tol:g}"
        )
        advice = {
            Status.MAX_ITER: f"Raise max_iter, or lam (now {self.lam:g}).",
            Status.STALLED: f"Round-off is reached: use float64, or raise lam (now {self.lam:g}) or tol.",
            Status.INFEASIBLE: "No finite primal value was found: the loss may admit no solution on these data.",
        }
        return f"{text}. {advice.get(solution.status, solution.status.value)}"


def part_of(value: Any, room: Any, argument: str, kind: type) -> Any:
    """Return a copy of a part given by instance or short name."""
    part = from_name(value, room, argument)
    if not isinstance(part, kind):
        raise TypeError(
            f"The {argument!r} parameter must be a {kind.__name__} instance or a short name. Got {value!r} instead."
        )
    return clone(part)
