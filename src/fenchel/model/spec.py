"""What is solved, and how, as the parameters of an estimator describe it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from fenchel import approximations as approximation_room
from fenchel import losses as loss_room
from fenchel import solvers as solver_room
from fenchel._check import Interval, Options, check_parameter, shown
from fenchel._component import from_name
from fenchel.approximations import Approximation
from fenchel.losses import Loss
from fenchel.solvers import Auto, Solver

__all__ = ["Spec", "as_lams", "as_losses", "part_of"]

P = TypeVar("P")

_LIMITS: dict[str, Interval | Options] = {
    "lam": Interval(0, float("inf")),
    "tol": Interval(0, float("inf")),
    "max_iter": Interval(1, float("inf"), "left", integer=True, also=(None,)),
    "certificate": Options(("approximate", "sampled", "exact")),
}
_DEFAULTS: dict[str, object] = {"lam": 1.0, "solver": "auto", "max_iter": None, "certificate": "approximate"}


@dataclass(frozen=True)
class Spec:
    """One dual problem and its solver, as the parameters of an estimator describe them: parsed and checked once."""

    owner: str  # name of the estimator, for messages
    loss: Loss
    lam: float
    solver: Solver
    tol: float
    approximation: Approximation | None = None
    certificate: str = "approximate"  # with an approximation: of which kernel the gap is
    adjustable: tuple[str, ...] = ()  # parameters that a memory error may suggest changing
    is_open: bool = False  # approximation="auto": landmarks where an exact fit would take too long
    is_factorised: bool = False  # whether what follows needs a stored Gram matrix, whatever the solver

    @classmethod
    def of(cls, estimator: BaseEstimator, loss: Loss | str, argument: str = "loss", **changed: object) -> Self:
        """Return the checked settings of an estimator; ``changed`` are values that replace its parameters."""
        name, own = type(estimator).__name__, estimator.get_params(deep=False)
        given: dict[str, Any] = _DEFAULTS | own | changed
        for parameter, limits in _LIMITS.items():
            check_parameter(name, parameter, given[parameter], limits)
        checked = part_of(loss, loss_room, argument, Loss).validate()
        solver = part_of(given["solver"], solver_room, "solver", Solver)
        if given["max_iter"] is not None and "max_iter" in solver.get_params():
            solver.set_params(max_iter=given["max_iter"])
        approximation, certificate = given.get("approximation"), str(given["certificate"])
        is_open = isinstance(approximation, str) and approximation == "auto"
        if is_open:  # the gap of the landmarks alone would hide what they cost
            approximation, certificate = None, "sampled" if certificate == "approximate" else certificate
        if approximation is not None:
            approximation = part_of(approximation, approximation_room, "approximation", Approximation).validate()
        adjustable = tuple(name for name in ("approximation", "solver") if name in own)
        settings = given["tol"], approximation, certificate, adjustable, is_open
        return cls(name, checked, given["lam"], solver.validate(), *settings)

    def for_search(self) -> Self:
        """Return the settings of a search, which factorises whatever the solver."""
        adjustable = tuple(name for name in self.adjustable if name != "solver")
        return replace(self, adjustable=adjustable, is_open=False, is_factorised=True)

    def exactly(self) -> Self:
        """Return the settings without an approximation."""
        return replace(self, approximation=None, is_open=False)

    def stored(self) -> Self:
        """Return the settings of regressions in closed form, which need a stored Gram matrix."""
        return replace(self, solver=Auto(), is_factorised=True)


def part_of(value: object, room: ModuleType | tuple[ModuleType, ...], argument: str, kind: type[P]) -> P:
    """Return a copy of a part given by instance or short name."""
    part = from_name(value, room, argument)
    if not isinstance(part, kind):
        raise TypeError(
            f"The {argument!r} parameter must be a {kind.__name__} instance or a short name. Got {value!r} instead."
        )
    copy: P = clone(part)
    return copy


def as_losses(losses: Sequence[Loss | str]) -> list[Loss]:
    """Return the losses of a grid as checked copies."""
    if isinstance(losses, str | Loss):
        losses = [losses]
    parts = [from_name(loss, loss_room, "loss") for loss in losses]
    if not parts:
        raise ValueError("The 'losses' parameter must hold at least one loss. Got none.")
    for part in parts:
        if not isinstance(part, Loss):
            raise TypeError(f"The 'losses' parameter must hold Loss instances or short names. Got {part!r} instead.")
    return [clone(part).validate() for part in parts]


def as_lams(lams: ArrayLike) -> list[float]:
    """Return the regularisation weights of a grid as positive floats."""
    try:
        grid = np.atleast_1d(np.asarray(lams, dtype=float))
    except (TypeError, ValueError, OverflowError):
        grid = np.empty((0, 0))
    if grid.ndim != 1:
        raise ValueError(f"The 'lams' parameter must be a sequence of numbers. Got {shown(lams)}.")
    values: list[float] = grid.tolist()
    if not values:
        raise ValueError("The 'lams' parameter must hold at least one number. Got none.")
    for value in values:
        check_parameter("the grid", "lams", value, Interval(0, float("inf")))
    return values
