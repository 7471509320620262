"""Width of a band at each output, or at each point of a curve, and for each input."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from fenchel._array import Inputs
from fenchel.conformal.shapes import student_shape, whole_sizes
from fenchel.data.containers import at_points, columns_for, inputs_for, largest, length, numbers, take, vectors
from fenchel.data.content import contents
from fenchel.estimators import OperatorKernelRegressorCV
from fenchel.exceptions import IncompatibleError, ScaleWarning
from fenchel.kernels import Gaussian, Standardized
from fenchel.resample.folds import grouped, ranks_of, whole_folds
from fenchel.resample.residuals import Residuals

__all__: list[str] = []

_SIZE_LAMS = (1e-4, 1e-3, 1e-2, 0.1, 1.0)  # for the model of the size of residuals, which need not be accurate
ENOUGH = 500  # samples for widths: the deviation of this many residuals has an error of 3 %
_LEAST = 0.1  # smallest factor of an input, relative to the median
_FOLDS = 10  # of the model of sizes, for the factors of its own samples
_LEAST_OF_POINTS = 1e-3  # smallest width of a point of a curve, relative to the median
_ENOUGH_VALUES = 30  # residuals from which the width of a point of a curve is estimated
_ROUND_OFF = 1e-12  # the same for outputs with their own units


@dataclass(frozen=True, eq=False)
class Widths:
    """The width s(x, t) = base(t) × factor(x): positive numbers, (n, q)."""

    base: np.ndarray  # (q,)
    grid: np.ndarray | None
    shape: tuple[int, ...]
    local: "LogFactors | None" = None
    whitening: np.ndarray | None = None  # (q, q), for an ellipsoid: makes residuals uncorrelated with size 1
    freedom: float = 1000.0  # of Student's law of residuals, from which gaps in those of an ellipsoid are drawn

    @property
    def log_side(self) -> float:
        """Logarithm of the side of a cube as large as the image of the unit cube, for an ellipsoid."""
        return 0.0 if self.whitening is None else -float(np.linalg.slogdet(self.whitening)[1]) / len(self.whitening)

    def factors(self, X: Inputs) -> np.ndarray:
        """Return the factor of each input, (n,)."""
        return np.ones(length(X)) if self.local is None else self.local.at(X)

    def scores(self, residuals: Residuals, X: Inputs, is_joint: bool = True) -> np.ndarray:
        """Return the size of residuals in units of the width, (n, 1), or (n, q) for each output separately."""
        if self.whitening is not None:
            return np.asarray(whole_sizes(residuals.values, self.whitening, self.freedom) / self.factors(X))[:, None]
        excess = np.abs(residuals.values) / self.at(X, residuals.grid)
        return largest(excess)[:, None] if is_joint else excess

    def at(self, X: Inputs, grid: np.ndarray | None) -> np.ndarray:
        """Return the widths for inputs at given points, (n, q)."""
        base = self.base
        if self.grid is not None and grid is not None:
            base = at_points(base.reshape(1, *self.shape), self.grid, grid).ravel()
        return np.asarray(self.factors(X)[:, None] * base)


Shape = Callable[[Residuals, float], Widths]


def without_each(widths: Widths, residuals: Residuals, X: Inputs, groups: np.ndarray | None = None) -> np.ndarray:
    """Return the factors by which the widths change if each sample is excluded from their estimation, (n, q).

    The others of its group (labels as numbers) are excluded with it.

    A large residual increases its own width and so decreases its score: scores of samples used to estimate the widths
    would be smaller than those of new samples.
    """
    counts, squares = _pooled(residuals.values / widths.factors(X)[:, None], _windows(residuals))
    count, total = counts.sum(axis=0), squares.sum(axis=0)
    if groups is not None:
        counts, squares = _sums(counts, groups), _sums(squares, groups)
    is_known = (count > counts) & (total > 0)
    left = np.maximum(total - squares, 0) / np.maximum(count - counts, 1)
    ratios = np.sqrt(left / np.where(is_known, total / np.maximum(count, 1), 1.0))
    return np.where(is_known, np.maximum(ratios, _LEAST), 1.0)


def without_own(widths: Widths, residuals: Residuals, X: Inputs, groups: np.ndarray | None = None) -> np.ndarray:
    """Return what the factor of each input is multiplied by if its fold is excluded from the model of sizes, (n, 1).

    A large residual increases the factor of its own input, in small samples by more than that of any new one.
    """
    n, local = len(residuals.values), widths.local
    if local is None or n > ENOUGH:
        return np.ones((n, 1))
    factors, logs = widths.factors(X), np.log(_at_least(widths.scores(residuals, X)[:, 0] * widths.factors(X)))
    left = factors.copy()
    for inside, outside in whole_folds(ranks_of(local.model, X, logs), _FOLDS, groups):
        labels = grouped(local.model, groups, inside)
        inputs = inputs_for(local.model, X, inside, inside)
        mean = float(np.nanmean(logs[inside]))
        model = LogFactors(clone(local.model).fit(inputs, logs[inside] - mean, **labels), mean)
        left[outside] = model.at(inputs_for(local.model, X, outside, inside))
    return np.asarray((left / factors)[:, None])


def without_own_shape(
    widths: Widths, residuals: Residuals, X: Inputs, contamination: float, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return by what the size of each residual is divided if its fold is excluded from the ellipsoid's shape, (n, 1).

    A large residual stretches the ellipsoid in its own direction. Shapes with and without a fold have the same volume.
    """
    n, plain = len(residuals.values), replace(widths, local=None)
    if widths.whitening is None or n > ENOUGH:
        return np.ones((n, 1))
    even = replace(residuals, values=residuals.values / widths.factors(X)[:, None])
    sizes, left = plain.scores(even, X), np.full((n, 1), np.nan)
    for inside, outside in whole_folds(contents(even.values), _FOLDS, groups):
        part = correlated(replace(even, values=even.values[inside]), contamination)
        others = part.scores(replace(even, values=even.values[outside]), take(X, outside))
        left[outside] = others * np.exp(part.log_side - plain.log_side)
    return np.where(left > 0, sizes / np.where(left > 0, left, 1.0), 1.0)


def constant(residuals: Residuals) -> Widths:
    """Return constant widths."""
    return Widths(np.ones(residuals.values.shape[1]), residuals.grid, residuals.shape)


def deviations(residuals: Residuals, contamination: float) -> Widths:
    """Return the root mean square of the residuals at each output, excluding the samples with the largest ones.

    A point at which few curves were observed shares the residuals of its neighbours: the width of a single residual
    would be that residual, and says nothing about new curves.
    """
    values, windows = residuals.values, _windows(residuals)
    scale = np.sqrt(_mean_squares(values, windows))
    sizes = largest(np.abs(values) / np.where(scale > 0, scale, 1.0))
    base = np.sqrt(_mean_squares(values[sizes <= np.nanquantile(sizes, 1 - contamination)], windows))
    typical, share = _typical(base, residuals)
    base = np.where(np.isnan(base), typical, base)  # nothing is known about a point that was never observed
    return Widths(np.maximum(base, np.where(typical > 0, share * typical, 1.0)), residuals.grid, residuals.shape)


def correlated(residuals: Residuals, contamination: float) -> Widths:
    """Return the deviations, and the shape of the residuals as Student's law has it; residuals may have gaps."""
    if residuals.grid is not None:
        raise IncompatibleError("joint='ellipsoid' is for vectors. Use joint=True, which gives a box.")
    widths = deviations(residuals, contamination)
    sizes = largest(np.abs(residuals.values) / widths.base)
    kept = residuals.values[sizes <= np.nanquantile(sizes, 1 - contamination)]
    shape, freedom = student_shape(kept / widths.base)
    factor = widths.base[:, None] * np.linalg.cholesky(shape)
    base, whitening = np.sqrt(np.sum(factor**2, axis=1)), solve_triangular(factor, np.eye(len(shape)), lower=True)
    return replace(widths, base=base, whitening=whitening, freedom=freedom)


def size_model(is_pairwise: bool, has_groups: bool = False) -> Any:
    """Return the model of the size of residuals, a kernel machine on standardised input vectors."""
    cv = LeaveOneGroupOut() if has_groups else "loo"
    kernel = "precomputed" if is_pairwise else Standardized(Gaussian("median"))
    machine = OperatorKernelRegressorCV(kernel, lams=_SIZE_LAMS, losses=["square"], cv=cv)
    return machine if is_pairwise else make_pipeline(FunctionTransformer(vectors), machine)


def modulated(
    modulation: str | BaseEstimator,
    residuals: Residuals,
    X: Inputs,
    contamination: float,
    shape: Shape,
    is_pairwise: bool,
    groups: np.ndarray | None = None,
) -> Widths:
    """Return the widths of ``modulation``: "std", "local" or a model of the size of residuals."""
    if not isinstance(modulation, str):
        return local(residuals, modulation, X, contamination, shape, groups)
    if modulation == "std":
        return shape(residuals, contamination)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)  # about a model that the user cannot set
        model = size_model(is_pairwise, groups is not None)
        return local(residuals, model, X, contamination, shape, groups)


def local(
    residuals: Residuals,
    model: BaseEstimator,
    X: Inputs,
    contamination: float,
    shape: Shape,
    groups: np.ndarray | None = None,
) -> Widths:
    """Return widths with a factor for each input and the deviations of the residuals divided by their factors.

    Deviations of the residuals themselves would be dominated by inputs with large ones. ``shape`` is ``deviations``, or
    ``correlated`` for an ellipsoid.
    """
    uneven = _with_factors(shape(residuals, contamination), residuals, model, X, contamination, groups)
    even = replace(residuals, values=residuals.values / uneven.factors(X)[:, None])
    return _with_factors(shape(even, contamination), residuals, model, X, contamination, groups)


def _with_factors(
    widths: Widths,
    residuals: Residuals,
    model: BaseEstimator,
    X: Inputs,
    contamination: float,
    groups: np.ndarray | None,
) -> Widths:
    """Return widths with a factor for each input, from a model of the logarithms of the largest residuals."""
    sizes = _at_least(widths.scores(residuals, X)[:, 0])
    kept = np.flatnonzero(sizes <= np.nanquantile(sizes, 1 - contamination))
    if len(kept) > ENOUGH:
        order = np.argsort(ranks_of(model, take(X, kept), sizes[kept]), kind="stable")
        kept = kept[order[np.linspace(0, len(kept) - 1, ENOUGH).astype(int)]]
    logs = np.log(sizes[kept])
    mean = float(logs.mean())
    labels = grouped(model, groups, kept)
    fitted = clone(model).fit(inputs_for(model, X, kept, kept), logs - mean, **labels)
    columns = kept if get_tags(model).input_tags.pairwise else None
    return replace(widths, local=LogFactors(fitted, mean, columns))


def _at_least(sizes: np.ndarray) -> np.ndarray:
    """Return sizes (n,) of which none is far below the median."""
    return np.maximum(sizes, _LEAST * np.nanmedian(sizes))


def _typical(base: np.ndarray, residuals: Residuals) -> tuple[np.ndarray, float]:
    """Return a typical width for each output, and the smallest allowed share of it.

    The points of a channel share a unit, and their median defines what is small. Outputs that are not curves may each
    have their own unit, so only round-off is small.
    """
    if residuals.grid is None:
        return np.full_like(base, np.nanmedian(base)), _ROUND_OFF
    channels = base.reshape(len(residuals.grid), -1)
    medians = [np.nanmedian(one if np.any(~np.isnan(one)) else base) for one in channels.T]
    return np.broadcast_to(medians, channels.shape).ravel(), _LEAST_OF_POINTS


def _sums(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the sum over the group of each sample, (n, q)."""
    sums = np.zeros((groups.max() + 1, values.shape[1]))
    np.add.at(sums, groups, values)
    return sums[groups]


def _windows(residuals: Residuals) -> np.ndarray:
    """Return the first and one past the last point whose residuals each output shares, (2, m, c).

    Neighbouring points are added until there are as many values as curves, or ``_ENOUGH_VALUES``. So outputs that are
    observed in every sample share nothing.
    """
    n, q = residuals.values.shape
    m = 1 if residuals.grid is None else len(residuals.grid)
    counts = np.sum(~np.isnan(residuals.values), axis=0).reshape(m, q // m)
    below = np.concatenate([np.zeros((1, q // m), dtype=int), np.cumsum(counts, axis=0)])
    reach, places = np.zeros_like(counts), np.arange(m)[:, None]
    while True:
        first, last = np.maximum(places - reach, 0), np.minimum(places + reach + 1, m)
        held = np.take_along_axis(below, last, axis=0) - np.take_along_axis(below, first, axis=0)
        is_short = (held < np.minimum(min(n, _ENOUGH_VALUES), below[-1])) & (reach < m)
        if not is_short.any():
            return np.stack([first, last])
        reach = reach + is_short


def _pooled(values: np.ndarray, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each sample and output the number and the sum of squares of the residuals in its window, (n, q)."""
    first, last = windows[:, None]

    def summed(parts: np.ndarray) -> np.ndarray:
        if np.all(last - first == 1):
            return parts  # differences of sums would round off
        below = np.cumsum(parts.reshape(len(parts), *windows.shape[1:]), axis=1)
        below = np.concatenate([np.zeros_like(below[:, :1]), below], axis=1)
        found = np.take_along_axis(below, last, axis=1) - np.take_along_axis(below, first, axis=1)
        return np.asarray(found.reshape(parts.shape))

    return summed(1.0 - np.isnan(values)), summed(np.nan_to_num(values) ** 2)


def _mean_squares(values: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the mean square of each output over its window, NaN if nothing was observed."""
    counts, squares = (part.sum(axis=0) for part in _pooled(values, windows))
    return np.where(counts > 0, squares / np.maximum(counts, 1), np.nan)


@dataclass(frozen=True, eq=False)
class LogFactors:
    """A fitted model of the centred log factors, and their mean."""

    model: BaseEstimator
    mean: float
    columns: np.ndarray | None = None  # the columns of a Gram matrix on which the model was fitted

    def at(self, X: Inputs) -> np.ndarray:
        """Return the factor of each input."""
        return np.asarray(np.exp(self.mean + numbers(self.model.predict(columns_for(X, self.columns))).ravel()))
