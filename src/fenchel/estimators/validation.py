"""Checks of parameters and data shared by the estimators."""

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from types import ModuleType
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel import approximations as approximation_room
from fenchel import losses as loss_room
from fenchel import solvers as solver_room
from fenchel._array import Array, Outputs, as_like, host, is_host, namespace
from fenchel._check import (
    Interval,
    Options,
    check_array,
    check_finite,
    check_parameter,
    not_times,
    outputs_like,
    shown,
    unmasked,
)
from fenchel._component import from_name
from fenchel._sparse import as_rows, dense, is_sparse
from fenchel._statistics import weight_unit
from fenchel.approximations import Approximation
from fenchel.datasets.functional import input_curves, is_fdata
from fenchel.exceptions import see
from fenchel.kernels import OperatorKernel, ScalarKernel
from fenchel.kernels.separable import takes_missing
from fenchel.losses import Loss
from fenchel.solvers import Solver

K = TypeVar("K", ScalarKernel, OperatorKernel)

__all__ = [
    "DualSettings",
    "all_or_nothing",
    "as_lams",
    "as_losses",
    "is_regular",
    "new_inputs",
    "part_of",
    "sample_counts",
    "sample_weights",
    "training_inputs",
    "training_vectors",
    "validated",
    "warn_user",
]

E = TypeVar("E")
P = ParamSpec("P")

_LIMITS = {
    "lam": Interval(0, float("inf")),
    "tol": Interval(0, float("inf")),
    "max_iter": Interval(1, float("inf"), "left", integer=True, also=(None,)),
}


_CERTIFICATES = Options(("approximate", "sampled", "exact"))


def all_or_nothing(fit: Callable[Concatenate[E, P], E]) -> Callable[Concatenate[E, P], E]:
    """Decorate ``fit`` so that it changes the estimator only on success.

    The fit runs on a copy of the estimator. If it is interrupted or fails, the estimator is left unchanged. In masked
    arrays, masked entries become NaN; outputs that are times are refused.
    """
    names = list(signature(fit).parameters)[1:]

    @wraps(fit)
    def fit_whole(self: E, /, *args: P.args, **kwargs: P.kwargs) -> E:
        trial = object.__new__(type(self))
        trial.__dict__.update(self.__dict__)
        given: Any = [_plain(value, name) for name, value in zip(names, args, strict=False)]
        named: Any = {name: _plain(value, name) for name, value in kwargs.items()}
        rest: Any = args[len(given) :]
        fit(trial, *given, *rest, **named)
        self.__dict__ = trial.__dict__
        return self

    return fit_whole


def _plain(value: Any, name: str) -> Any:
    """Return an argument of ``fit`` without a mask; raise if outputs are times."""
    return unmasked(not_times(value, name) if name == "y" else value, name)


def warn_user(message: str, category: type[Warning], entry: str) -> None:
    """Warn at the line that called the library, with a link to an entry of the troubleshooting page."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("fenchel."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{message} {see(entry)}", category, stacklevel=level)


def part_of(value: object, room: ModuleType | tuple[ModuleType, ...], argument: str, kind: type) -> Any:
    """Return a copy of a part given by instance or short name."""
    part = from_name(value, room, argument)
    if not isinstance(part, kind):
        raise TypeError(
            f"The {argument!r} parameter must be a {kind.__name__} instance or a short name. Got {value!r} instead."
        )
    return clone(part)


@dataclass(frozen=True)
class DualSettings:
    """Settings of one dual problem and its solver, from the parameters of an estimator."""

    loss: Loss
    lam: float
    solver: Solver
    tol: float
    approximation: Approximation | None
    certificate: str  # with an approximation: whether the gap is that of the approximate or of the exact kernel
    adjustable: tuple[str, ...]  # parameters that a memory error may suggest changing

    @classmethod
    def of(cls, estimator: Any, loss: Loss | str, argument: str = "loss") -> "DualSettings":
        """Return the checked settings of an estimator; ``loss`` is an instance or a short name."""
        parameters = estimator.get_params(deep=False)
        for name, limits in _LIMITS.items():
            check_parameter(type(estimator).__name__, name, parameters[name], limits)
        checked: Loss = part_of(loss, loss_room, argument, Loss).validate()
        solver: Solver = part_of(estimator.solver, solver_room, "solver", Solver)
        if estimator.max_iter is not None and "max_iter" in solver.get_params():
            solver.set_params(max_iter=estimator.max_iter)
        approximation: Approximation | None = parameters.get("approximation")
        if approximation is not None:
            approximation = part_of(approximation, approximation_room, "approximation", Approximation).validate()
        adjustable = tuple(name for name in ("approximation", "solver") if name in parameters)
        certificate = parameters.get("certificate", "approximate")
        check_parameter(type(estimator).__name__, "certificate", certificate, _CERTIFICATES)
        return cls(checked, estimator.lam, solver.validate(), estimator.tol, approximation, certificate, adjustable)

    def swept(self) -> "DualSettings":
        """Return the settings of a search, which uses a factorisation whatever the solver."""
        return replace(self, adjustable=tuple(name for name in self.adjustable if name != "solver"))


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
    values = grid.tolist()
    if not values:
        raise ValueError("The 'lams' parameter must hold at least one number. Got none.")
    for value in values:
        check_parameter("the grid", "lams", value, Interval(0, float("inf")))
    return values


def is_regular(y: Outputs) -> bool:
    """Whether a list holds numbers, or rows of numbers of equal length."""
    with suppress(ValueError):
        return np.asarray(y).dtype.kind in "biuf"
    return False


def validated(estimator: Any, *data: Outputs, **options: object) -> Outputs:
    """Return ``X``, or ``X`` and ``y``, checked by scikit-learn; errors name entries of ``X`` that are not finite."""
    if is_fdata(data[0]):
        data = (_function_values(estimator, data[0], bool(options.get("reset", True))), *data[1:])
    data = (unmasked(not_times(data[0], "X"), "X"), *data[1:])
    try:
        checked = validate_data(estimator, *data, dtype=[np.float64, np.float32], ensure_all_finite=False, **options)
    except ValueError as error:
        advised = _advised(str(error), data)
        if advised is None:
            raise
        raise ValueError(advised) from error
    except OverflowError as error:
        raise ValueError(
            f"{' and '.join(('X', 'y')[: len(data)])} must hold numbers below 1.8e308: {error}."
        ) from error
    X, *rest = checked if len(data) == 2 else (checked,)
    X = as_rows(X) if is_sparse(X) else X
    X = _finite(estimator, X, check_finite)
    return (X, *rest) if rest else X


def _function_values(estimator: Any, X: Any, reset: bool) -> np.ndarray:
    """Return scikit-fda functions as vectors: their values at the points of the training functions."""
    curves = input_curves(X, None if reset else getattr(estimator, "_function_points", None))
    if reset:
        estimator._function_points = curves.grid
    return curves.values.reshape(len(curves.values), -1)


def _advised(text: str, data: Sequence[Outputs]) -> str | None:
    """Return an error of scikit-learn with advice added, ``None`` if its text says enough."""
    names = ("X", "y")[: len(data)]
    if "could not convert" in text:
        found = [told for name, part in zip(names, data, strict=True) if (told := _text_columns(name, part))]
        return found[0] if found else f"{' and '.join(names)} must hold numbers: {text}."
    if text.startswith("Input y contains NaN"):
        y = _as_floats(data[1])
        lacking = np.flatnonzero(np.isnan(y.reshape(len(y), -1)).any(axis=1))
        return (
            f"Input y contains NaN in {len(lacking)} of {len(y)} samples, the first at index {lacking[0]}. Drop these "
            "samples, or fit each output on those that have it. If the outputs of a sample are a curve, NaN is a gap "
            "that FunctionalRegressorCV takes."
        )
    if text.startswith("Found array with dim") and np.ndim(data[0]) > 2:
        return (
            f"{text} For curves with channels, (n, m, c), use FunctionalRegressorCV, for fields on a rectangle "
            "FieldRegressor; X.reshape(len(X), -1) makes vectors."
        )
    return None


def _text_columns(name: str, part: Outputs) -> str:
    """Return a message that names the columns of a data frame that are not numbers; empty if there are none."""
    if not (hasattr(part, "iloc") and hasattr(part, "columns")):
        return ""
    examples = {}
    for place, column in enumerate(part.columns):
        for value in part.iloc[:, place]:
            try:
                float(value if value is not None else math.nan)
            except (TypeError, ValueError):
                examples[str(column)] = value
                break
    if not examples:
        return ""
    columns = ", ".join(f"{column!r} (such as {value!r})" for column, value in examples.items())
    advice = "Encode text, by OneHotEncoder in a ColumnTransformer" if name == "X" else "Convert them to numbers"
    return f"{name} must hold numbers. These columns do not: {columns}. {advice}, or drop them."


def _finite(estimator: Any, X: Array, check: Callable[[Array, str], Array]) -> Array:
    """Check that inputs are finite; NaN is allowed if the kernel accepts missing groups."""
    xp = namespace(X)
    if not takes_missing(getattr(estimator, "kernel", None)):
        return check(X, "X")
    if not xp.isdtype(X.dtype, "real floating") or not bool(xp.any(xp.isnan(X))):
        return check(X, "X")
    check(xp.where(xp.isnan(X), xp.zeros_like(X), X), "X")
    return X


def _as_floats(y: Outputs) -> np.ndarray:
    """Return outputs as floats; raise if they are not numbers."""
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"y must hold numbers: {error}.") from error


def training_inputs(estimator: Any, X: Array, kernel: K, double: bool, takes_sparse: bool = False) -> tuple[Array, K]:
    """Return training inputs and the kernel with their feature names; store the features in the estimator."""
    if is_host(X):
        X = validated(estimator, X, accept_sparse="csr" if takes_sparse else False)
    else:
        X = _finite(estimator, X, check_array)
        estimator.n_features_in_ = int(X.shape[1])
    if hasattr(estimator, "feature_names_in_"):
        kernel = kernel.named(estimator.feature_names_in_)
    return (namespace(X).astype(X, namespace(X).float64) if double else X), kernel


def training_vectors(
    estimator: Any, X: Array, y: Outputs, double: bool, takes_sparse: bool = False
) -> tuple[Array, Array]:
    """Return training inputs and vector outputs as arrays of one floating dtype, float64 with ``double``."""
    if is_host(X):
        accepted = "csr" if takes_sparse else False
        X, y = validated(estimator, X, y, multi_output=True, y_numeric=True, accept_sparse=accepted)
        y = y if y.dtype.kind in "biuf" else _as_floats(y)
        y = check_array(y, "y", ndim=(1, 2)) if y.dtype.kind == "f" else y  # None has become NaN
        y = outputs_like(y, X.data if is_sparse(X) else X, "y")
    else:
        X, y = _finite(estimator, X, check_array), check_array(outputs_like(as_like(y, X), X, "y"), "y", ndim=(1, 2))
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {y.shape[0]}.")
        estimator.n_features_in_ = int(X.shape[1])
    if not double:
        return X, y
    xp = namespace(X)
    return xp.astype(X, xp.float64), xp.astype(y, xp.float64)


def new_inputs(estimator: Any, X: Array) -> Array:
    """Return checked inputs for prediction; raise if the estimator is not fitted or the features differ."""
    check_is_fitted(estimator)
    if is_host(X):
        X = validated(estimator, X, reset=False, accept_sparse="csr")
        has_sparse = is_sparse(getattr(estimator, "X_fit_", None))
        if is_sparse(X) != has_sparse:  # in the form of the training inputs
            X = as_rows(X) if has_sparse else dense(X)
    else:
        X = _finite(estimator, X, check_array)
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but the model was fitted with {estimator.n_features_in_}.")
    return X


def sample_weights(weights: Array | None, X: Array) -> tuple[Array | None, np.ndarray | None]:
    """Return the positive weights, the largest in [1, 4), and the indices of their samples; ``None`` means all samples.

    Weights below the square root of the smallest number of the dtype, 1e-154 in float64, count as zero.
    """
    if weights is None:
        return None, None
    n = X.shape[0]
    try:
        values = np.asarray(weights if is_host(weights) else host(weights), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"sample_weight must hold finite non-negative numbers: {error}.") from error
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},). Got {values.shape} instead.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError("sample_weight must hold finite non-negative numbers. Got a negative, NaN or infinite one.")
    if not np.any(values > 0):
        raise ValueError("sample_weight must have at least one positive entry. Got zeros only.")
    values = values / weight_unit(values)
    index = np.flatnonzero(values > math.sqrt(namespace(X).finfo(X.dtype).smallest_normal))
    return as_like(values[index], X), None if len(index) == n else index


def sample_counts(sample_weight: Array | None, X: Array) -> np.ndarray:
    """Return the weights of ``sample_weights``, including zeros, as a NumPy array (n,)."""
    weights, index = sample_weights(sample_weight, X)
    if weights is None:
        return np.ones(X.shape[0])
    counts = np.zeros(X.shape[0])
    counts[slice(None) if index is None else index] = host(weights)
    return counts
