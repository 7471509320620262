"""Models for all levels in (0, 1) at once: quantiles of every order, classifiers for every cost."""

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, as_like, namespace
from fenchel._check import Interval, Options, check_parameter
from fenchel.datasets.functional import Curves
from fenchel.estimators.fitted_dual import KernelExpansion
from fenchel.estimators.training_set import TrainingSet, encode
from fenchel.estimators.validation import DualSettings
from fenchel.kernels import Constant, IntegralOperator, OperatorKernel, ScalarKernel, Separable, as_scalar_kernel
from fenchel.representations import Spline

__all__ = [
    "LevelSet",
    "as_levels",
    "encode_levels",
    "input_kernel",
    "interpolation",
    "level_quadrature",
    "values_at_levels",
]

_QUADRATURES = Options(("gauss_legendre", "uniform"))
_INTERCEPT = Interval(0, float("inf"), "left")
_COUNT = Interval(1, float("inf"), "left", integer=True)


@dataclass(frozen=True)
class LevelSet:
    """Training set whose outputs are functions of a level, known at the nodes of a quadrature rule."""

    training_set: TrainingSet
    operator: IntegralOperator  # of the levels
    levels: np.ndarray
    weights: np.ndarray  # weights of the levels, which sum to 1


class LevelEstimator(Protocol):
    """Interface of estimators of functions of a level: parameters, and fitted attributes used for prediction."""

    kernel: ScalarKernel | str
    levels: int | ArrayLike
    quadrature: str
    intercept: float
    representation_: Spline
    _operator: IntegralOperator
    _expansion: KernelExpansion


def level_quadrature(estimator: LevelEstimator) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels and their weights, from the parameters ``levels`` and ``quadrature``."""
    name = type(estimator).__name__
    if np.ndim(estimator.levels) > 0:
        levels = as_levels(estimator.levels, f"The 'levels' parameter of {name}")
        if np.any(np.diff(levels) <= 0):
            raise ValueError(f"The 'levels' parameter of {name} must be increasing. Got {estimator.levels!r} instead.")
        return levels, np.full(len(levels), 1 / len(levels))
    check_parameter(name, "levels", estimator.levels, _COUNT)
    check_parameter(name, "quadrature", estimator.quadrature, _QUADRATURES)
    count = int(cast(int, estimator.levels))
    if estimator.quadrature == "uniform":
        return (np.arange(count) + 0.5) / count, np.full(count, 1 / count)
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


def encode_levels(
    estimator: LevelEstimator,
    X: Array,
    values: Array,
    level_kernel: ScalarKernel | str | None,
    coupling: Array | None,
    sample_weight: Array | None,
    settings: DualSettings,
) -> LevelSet:
    """Return the training set of checked inputs and their targets at every level, (n, m) or (n, m, c).

    The estimator has the parameters ``kernel``, ``levels``, ``quadrature`` and ``intercept``.
    """
    check_parameter(type(estimator).__name__, "intercept", estimator.intercept, _INTERCEPT)
    levels, weights = level_quadrature(estimator)
    operator = IntegralOperator(as_scalar_kernel(level_kernel).validate(), coupling).validate()
    kernel, curves = input_kernel(estimator), Curves(levels, values)
    if estimator.intercept > 0:
        kernel = kernel + Constant(estimator.intercept)
    training_set = encode(X, curves, Separable(kernel, operator), Spline(weights), settings, sample_weight, operator)
    return LevelSet(training_set, operator, levels, weights)


def input_kernel(estimator: LevelEstimator) -> ScalarKernel:
    """Return the kernel of the inputs, without the constant that gives the model an intercept."""
    if isinstance(estimator.kernel, OperatorKernel):
        raise TypeError(
            f"The 'kernel' parameter must be a scalar kernel of the inputs; use 'level_kernel' for the levels. "
            f"Got {estimator.kernel!r}."
        )
    kernel = as_scalar_kernel(estimator.kernel).validate()
    if hasattr(estimator, "feature_names_in_"):
        kernel = kernel.named(estimator.feature_names_in_)
    return kernel


def values_at_levels(estimator: LevelEstimator, X: Array, levels: np.ndarray) -> Array:
    """Return the fitted function at some levels for checked inputs, (n, levels, c)."""
    matrix = estimator.representation_.evaluation(estimator._operator, levels)
    values = estimator._expansion.evaluate(X, matrix)
    return namespace(X).reshape(values, (X.shape[0], len(levels), -1))


def as_levels(levels: ArrayLike, name: str) -> np.ndarray:
    """Return levels as a vector; raise unless they are in (0, 1)."""
    values = np.atleast_1d(np.asarray(levels))
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers in (0, 1). Got {levels!r} instead.")
    if values.ndim != 1 or values.size == 0 or not np.all((values > 0) & (values < 1)):
        raise ValueError(f"{name} must hold numbers in (0, 1). Got {levels!r} instead.")
    return values.astype(np.float64)


def interpolation(known: np.ndarray, points: np.ndarray, like: Array) -> Array:
    """Return the matrix (known, points) of linear interpolation between increasing points."""
    right = np.clip(np.searchsorted(known, points), 1, len(known) - 1)
    share = (points - known[right - 1]) / (known[right] - known[right - 1])
    matrix = np.zeros((len(known), len(points)))
    places = np.arange(len(points))
    matrix[right - 1, places], matrix[right, places] = 1 - share, share
    return as_like(matrix, like)
