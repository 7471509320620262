"""Outputs that are functions of a level in (0, 1): quantiles of every order, classifiers for every cost."""

from abc import ABC
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, Outputs, as_like, namespace
from fenchel._check import Interval, Options, check_parameter
from fenchel.data.functional import Curves
from fenchel.kernels import (
    Constant,
    IntegralOperator,
    KernelLike,
    OperatorKernel,
    ScalarKernel,
    Separable,
    as_scalar_kernel,
)
from fenchel.kernels.scalar_kernel import BoundKernel
from fenchel.model.codec import Codec, Expansion, Reading, Task
from fenchel.model.marginal_quantiles import MarginalQuantiles
from fenchel.model.sample import Sample
from fenchel.representations import Coordinates, Spline

__all__ = ["LevelCodec", "LevelTask", "as_levels", "level_quadrature"]

_QUADRATURES = Options(("gauss_legendre", "uniform"))
_INTERCEPT = Interval(0, float("inf"), "left")  # a constant added to the kernel, which stays positive semidefinite
_COUNT = Interval(1, float("inf"), "left", integer=True)  # number of levels


class Pilot(Protocol):
    """A first model, whose quantiles are corrected; its centre and scale depend on the inputs."""

    def columns(self, X: Array) -> np.ndarray:
        """Return the regressions of the pilot at checked inputs."""

    def corrected(self, columns: np.ndarray, rest: Array, levels: np.ndarray) -> Array:
        """Add predictions of the pilot's scaled residuals (n, levels, c) to its quantiles."""


@dataclass(frozen=True)
class LevelCodec(Codec):
    """Functions of a level at the nodes of a quadrature rule, relative to marginal quantiles or to a pilot."""

    representation: Spline
    operator: IntegralOperator  # of the levels
    levels: np.ndarray
    weights: np.ndarray  # of the levels, which sum to 1
    marginal: MarginalQuantiles | None = None  # of the outputs
    pilot: Pilot | None = None  # takes the place of the marginal quantiles

    @property
    def center(self) -> MarginalQuantiles | None:
        """The function of the level that was subtracted."""
        return self.marginal if self.pilot is None else None

    def encode(self, y: Outputs) -> Coordinates:
        """Return functions of the level, (n, levels) or (n, levels, c), in coordinates."""
        return self.representation.encode(Curves(self.levels, y))

    def decode(self, rows: Array) -> Array:
        """Return the functions with these coordinates at the nodes, (n, levels, c), relative to the pilot if any."""
        values = self.representation.decode(rows)
        values = namespace(values).reshape(values, (values.shape[0], len(self.levels), -1))
        return values if self.center is None else values + as_like(self.center(self.levels), values)

    def reading(self, kernel: BoundKernel, at: ArrayLike | None = None, derivative: int = 0) -> Reading:
        """Return how an expansion is read at any levels."""
        levels = self.levels if at is None else np.asarray(at)
        matrix = self.representation.evaluation(self.operator, levels, derivative)
        return Reading((matrix,), None, None if self.center is None else self.center(levels).reshape(-1))

    def read(self, expansion: Expansion, X: Array, at: ArrayLike | None = None, derivative: int = 0) -> Array:
        """Return the functions at some levels, (n, levels, c)."""
        levels = self.levels if at is None else np.asarray(at)
        values = super().read(expansion, X, levels, derivative)
        values = namespace(X).reshape(values, (X.shape[0], len(levels), -1))
        return values if self.pilot is None else self.pilot.corrected(self.pilot.columns(X), values, levels)


@dataclass(frozen=True)
class LevelTask(Task, ABC):
    """What tasks whose outputs are functions of a level have in common."""

    owner: str
    kernel: KernelLike
    level_kernel: KernelLike
    levels: int | ArrayLike
    quadrature: str
    intercept: float
    coupling: Array | None = None

    def kernel_of(self, sample: Sample, codec: Codec) -> OperatorKernel:
        """Return the kernel of the inputs, with a constant as intercept, times the operator on the levels."""
        assert isinstance(codec, LevelCodec)  # what ``learn`` returns
        kernel = self.input_kernel(sample)
        if self.intercept > 0:
            kernel = kernel + Constant(self.intercept)
        return Separable(kernel, codec.operator)

    def input_kernel(self, sample: Sample) -> ScalarKernel:
        """Return the kernel of the inputs, without the constant that gives the model an intercept."""
        if isinstance(self.kernel, OperatorKernel):
            raise TypeError(
                f"The 'kernel' parameter must be a scalar kernel of the inputs; use 'level_kernel' for the levels. "
                f"Got {self.kernel!r}."
            )
        kernel = as_scalar_kernel(sample.kernel_like(self.kernel)).validate()
        return sample.inputs.named(kernel)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the levels and their weights."""
        return level_quadrature(self.owner, self.levels, self.quadrature)

    def coordinates(
        self, values: Array, sample: Sample, marginal: MarginalQuantiles | None = None, pilot: Pilot | None = None
    ) -> tuple[LevelCodec, Coordinates]:
        """Return the codec of targets at every level, (n, levels) or (n, levels, c), and these in coordinates."""
        check_parameter(self.owner, "intercept", self.intercept, _INTERCEPT)
        levels, weights = self.nodes()
        operator = IntegralOperator(as_scalar_kernel(self.level_kernel).validate(), self.coupling).validate()
        codec = LevelCodec(Spline(weights), operator.resolve(levels), levels, weights, marginal, pilot)
        return codec, codec.representation.learn(Curves(levels, values), sample.weights, operator)


def level_quadrature(owner: str, levels: int | ArrayLike, quadrature: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels and their weights, from the parameters ``levels`` and ``quadrature`` of an estimator."""
    if not isinstance(levels, int) and np.ndim(levels) > 0:
        given = as_levels(levels, f"The 'levels' parameter of {owner}")
        if np.any(np.diff(given) <= 0):
            raise ValueError(f"The 'levels' parameter of {owner} must be increasing. Got {levels!r} instead.")
        return given, np.full(len(given), 1 / len(given))
    check_parameter(owner, "levels", levels, _COUNT)
    check_parameter(owner, "quadrature", quadrature, _QUADRATURES)
    count = int(levels)  # type: ignore[arg-type]  # an integer, as checked
    if quadrature == "uniform":
        return (np.arange(count) + 0.5) / count, np.full(count, 1 / count)
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


def as_levels(levels: ArrayLike, name: str, has_ends: bool = False) -> np.ndarray:
    """Return levels as a vector; raise unless they are in (0, 1), or in [0, 1] with ``has_ends``."""
    values, interval = np.atleast_1d(np.asarray(levels)), "[0, 1]" if has_ends else "(0, 1)"
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers in {interval}. Got {levels!r} instead.")
    is_inside = (values >= 0) & (values <= 1) if has_ends else (values > 0) & (values < 1)
    if values.ndim != 1 or values.size == 0 or not np.all(is_inside):
        raise ValueError(f"{name} must hold numbers in {interval}. Got {levels!r} instead.")
    return values.astype(np.float64)
