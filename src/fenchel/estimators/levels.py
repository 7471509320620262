"""What models of a whole range of levels share: quantiles of every order, classifiers for every cost."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, as_like, namespace
from fenchel._check import Interval, Options, check_array, check_parameter
from fenchel.datasets.functional import Curves
from fenchel.estimators.core import KernelRegressorMixin, Sample, is_host, validated
from fenchel.kernels import Constant, IntegralOperator, OperatorKernel, ScalarKernel, Separable, as_scalar_kernel
from fenchel.losses import Loss
from fenchel.representations import Spline

__all__ = ["LevelModelMixin", "as_levels"]

_QUADRATURES = Options(("gauss_legendre", "uniform"))
_INTERCEPT = Interval(0, float("inf"), "left")
_COUNT = Interval(1, float("inf"), "left", integer=True)


@dataclass(frozen=True)
class _Extra:
    """What a fitted model needs beside its coefficients."""

    operator: IntegralOperator
    levels: np.ndarray
    weights: np.ndarray
    rest: Any


class LevelModelMixin(KernelRegressorMixin, BaseEstimator):
    r"""A function of a level in (0, 1) for each input, whose loss is an integral over the levels.

    The estimator has the parameters ``kernel``, ``level_kernel``, ``levels``, ``quadrature`` and ``intercept``.
    """

    kernel: Any
    level_kernel: Any
    levels: Any
    quadrature: str
    intercept: float

    def _settled(self, loss: Loss, lam: float) -> Self:
        """Take the lam of one pair of a grid: the loss is the one that it is."""
        return self.set_params(lam=lam)

    def _rule(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the levels and their weights, whose sum is 1."""
        name = type(self).__name__
        if np.ndim(self.levels) > 0:
            levels = as_levels(self.levels, f"The 'levels' parameter of {name}")
            if np.any(np.diff(levels) <= 0):
                raise ValueError(f"The 'levels' parameter of {name} must be increasing. Got {self.levels!r} instead.")
            return levels, np.full(len(levels), 1 / len(levels))
        check_parameter(name, "levels", self.levels, _COUNT)
        check_parameter(name, "quadrature", self.quadrature, _QUADRATURES)
        count = int(self.levels)
        if self.quadrature == "uniform":
            return (np.arange(count) + 0.5) / count, np.full(count, 1 / count)
        points, weights = np.polynomial.legendre.leggauss(count)
        return (points + 1) / 2, weights / 2

    def _level_sample(
        self, X: Array, values: Array, sample_weight: Array | None, loss: Loss, coupling: Any, rest: Any
    ) -> Sample:
        """Return the dual problem for checked inputs and their targets at every level, (n, m) or (n, m, c)."""
        check_parameter(type(self).__name__, "intercept", self.intercept, _INTERCEPT)
        levels, weights = self._rule()
        operator = IntegralOperator(self._level_kernel(), coupling).validate()
        kernel = Separable(self._input_kernel(), operator)
        extra = _Extra(operator, levels, weights, rest)
        curves = Curves(levels, values)
        return self._prepared(X, curves, sample_weight, loss, kernel, Spline(weights), extra, operator=operator)

    def _input_kernel(self) -> ScalarKernel:
        if isinstance(self.kernel, OperatorKernel):
            raise TypeError(
                f"The 'kernel' parameter must be a scalar kernel of the inputs; that of the levels is 'level_kernel'. "
                f"Got {self.kernel!r}."
            )
        kernel = as_scalar_kernel(self.kernel).validate()
        if hasattr(self, "feature_names_in_"):
            kernel = kernel.named(self.feature_names_in_)
        return kernel + Constant(self.intercept) if self.intercept > 0 else kernel

    def _level_kernel(self) -> ScalarKernel:
        return as_scalar_kernel(self.level_kernel).validate()

    def _finish(self, sample: Sample) -> None:
        extra = sample.extra
        self._operator, self.levels_, self.level_weights_ = extra.operator, extra.levels, extra.weights

    def _at(self, X: Array, levels: np.ndarray) -> Array:
        """Return the model's function at some levels for checked inputs, (n, levels, c)."""
        xp = namespace(X)
        values = self._evaluated(X, self.representation_.evaluation(self._operator, levels))
        return xp.reshape(values, (X.shape[0], len(levels), -1))

    def _inputs(self, X: Any) -> Array:
        """Return checked inputs of a fitted model."""
        check_is_fitted(self)
        X = validated(self, X, reset=False) if is_host(X) else check_array(X, "X")
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} features, but the model was fitted with {self.n_features_in_}.")
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        with suppress(TypeError, ValueError):  # fit raises the error, with its message
            tags.input_tags.pairwise = as_scalar_kernel(self.kernel).is_pairwise
        return tags


def as_levels(levels: Any, name: str) -> np.ndarray:
    """Return levels as a vector of numbers in (0, 1), else raise."""
    values = np.atleast_1d(np.asarray(levels))
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers in (0, 1). Got {levels!r} instead.")
    if values.ndim != 1 or values.size == 0 or not np.all((values > 0) & (values < 1)):
        raise ValueError(f"{name} must hold numbers in (0, 1). Got {levels!r} instead.")
    return values.astype(np.float64)


def interpolation(known: np.ndarray, wanted: np.ndarray, like: Array) -> Array:
    """Return the matrix (known, wanted) of linear interpolation between increasing points."""
    right = np.clip(np.searchsorted(known, wanted), 1, len(known) - 1)
    share = (wanted - known[right - 1]) / (known[right] - known[right - 1])
    matrix = np.zeros((len(known), len(wanted)))
    places = np.arange(len(wanted))
    matrix[right - 1, places], matrix[right, places] = 1 - share, share
    return as_like(matrix, like)
