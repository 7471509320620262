"""How wide a band is at each output, or at each point of a curve, and for each input."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from fenchel.conformal.samples import Residuals, at_points, columns_for, inputs_for, largest, length, numbers, vectors
from fenchel.estimators import OperatorKernelRegressorCV
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Standardized

__all__: list[str] = []

_SIZE_LAMS = (1e-4, 1e-3, 1e-2, 0.1, 1.0)  # of the model of the size of residuals, which need not be sharp
ENOUGH = 500  # samples for widths: the deviation of as many residuals is off by 3 %
_LEAST = 0.1  # least factor of an input, in units of the median one
_LEAST_OF_POINTS = 1e-3  # least width of a point of a curve, in units of the median one
_ROUND_OFF = 1e-12  # the same for outputs in units of their own


@dataclass(frozen=True, eq=False)
class Widths:
    """The width s(x, t) = base(t) × factor(x): positive numbers, (n, q)."""

    base: np.ndarray  # (q,)
    grid: np.ndarray | None
    shape: tuple[int, ...]
    local: "LogFactors | None" = None
    whitening: np.ndarray | None = None  # (q, q), of an ellipsoid: turns residuals into uncorrelated ones of size 1

    def factors(self, X: Any) -> np.ndarray:
        """Return the factor of each input, (n,)."""
        return np.ones(length(X)) if self.local is None else self.local.at(X)

    def scores(self, residuals: Residuals, X: Any, is_joint: bool = True) -> np.ndarray:
        """Return how far residuals are, in units of the width: (n, 1), or (n, q) for each output by itself."""
        if self.whitening is not None:
            sizes = np.linalg.norm(residuals.values @ self.whitening.T, axis=1)
            return np.asarray(sizes / self.factors(X))[:, None]
        excess = np.abs(residuals.values) / self.at(X, residuals.grid)
        return largest(excess)[:, None] if is_joint else excess

    def at(self, X: Any, grid: np.ndarray | None) -> np.ndarray:
        """Return the widths of some inputs at some points, (n, q)."""
        base = self.base
        if self.grid is not None and grid is not None:
            base = at_points(base.reshape(1, *self.shape), self.grid, grid).ravel()
        return np.asarray(self.factors(X)[:, None] * base)


Shape = Callable[[Residuals, float], Widths]


def without_each(widths: Widths, residuals: Residuals, X: Any) -> np.ndarray:
    """Return by how much the widths would differ if a sample were not among those that they were estimated on, (n, q).

    A large residual makes its own width large, and its score small: scores of samples that the widths were estimated on
    would be smaller than those of new ones.
    """
    values = residuals.values / widths.factors(X)[:, None]
    counts, means = np.sum(~np.isnan(values), axis=0), _mean_squares(values)
    left = np.where(np.isnan(values), means, (counts * means - values**2) / np.maximum(counts - 1, 1))
    is_known = (counts > 1) & (means > 0)
    ratios = np.sqrt(np.maximum(left, 0) / np.where(is_known, means, 1.0))
    return np.where(is_known, np.maximum(ratios, _LEAST), 1.0)


def constant(residuals: Residuals) -> Widths:
    """Return the same width everywhere."""
    return Widths(np.ones(residuals.values.shape[1]), residuals.grid, residuals.shape)


def deviations(residuals: Residuals, contamination: float) -> Widths:
    """Return the root mean square of the residuals at each output; samples with the largest share are left out."""
    values = residuals.values
    scale = np.sqrt(_mean_squares(values))
    sizes = largest(np.abs(values) / np.where(scale > 0, scale, 1.0))
    base = np.sqrt(_mean_squares(values[sizes <= np.nanquantile(sizes, 1 - contamination)]))
    typical, share = _typical(base, residuals)
    base = np.where(np.isnan(base), typical, base)  # nothing is known of a point that was never observed
    return Widths(np.maximum(base, np.where(typical > 0, share * typical, 1.0)), residuals.grid, residuals.shape)


def correlated(residuals: Residuals, contamination: float) -> Widths:
    """Return the deviations, and the correlations of the outputs, shrunk as Ledoit and Wolf do."""
    if residuals.grid is not None or np.isnan(residuals.values).any():
        raise IncompatibleError("joint='ellipsoid' is for vectors without gaps. Use joint=True, which gives a box.")
    widths = deviations(residuals, contamination)
    sizes = largest(np.abs(residuals.values) / widths.base)
    kept = residuals.values[sizes <= np.quantile(sizes, 1 - contamination)]
    correlations, _ = ledoit_wolf(kept / widths.base, assume_centered=True)
    factor = np.linalg.cholesky(correlations * np.outer(widths.base, widths.base))
    base = np.sqrt(np.sum(factor**2, axis=1))
    return replace(widths, base=base, whitening=solve_triangular(factor, np.eye(len(base)), lower=True))


def size_model(is_pairwise: bool) -> Any:
    """Return the model of the size of residuals: a kernel machine on standardised vectors of the inputs."""
    kernel = "precomputed" if is_pairwise else Standardized(Gaussian("median"))
    machine = OperatorKernelRegressorCV(kernel, lams=_SIZE_LAMS, losses=["square"], cv="loo")
    return machine if is_pairwise else make_pipeline(FunctionTransformer(vectors), machine)


def local(residuals: Residuals, model: Any, X: Any, contamination: float, shape: Shape) -> Widths:
    """Return widths with a factor for each input; the deviations are those of the residuals over their factors.

    Deviations of the residuals themselves would be those of the inputs with large ones. ``shape`` is ``deviations``, or
    ``correlated`` for an ellipsoid.
    """
    uneven = _with_factors(shape(residuals, contamination), residuals, model, X, contamination)
    even = replace(residuals, values=residuals.values / uneven.factors(X)[:, None])
    return _with_factors(shape(even, contamination), residuals, model, X, contamination)


def _with_factors(widths: Widths, residuals: Residuals, model: Any, X: Any, contamination: float) -> Widths:
    """Return widths with a factor for each input, from a model of the logarithms of the largest residuals."""
    sizes = widths.scores(residuals, X)[:, 0]
    sizes = np.maximum(sizes, _LEAST * np.nanmedian(sizes))
    kept = np.flatnonzero(sizes <= np.nanquantile(sizes, 1 - contamination))
    kept = kept[np.linspace(0, len(kept) - 1, min(ENOUGH, len(kept))).astype(int)]
    logs = np.log(sizes[kept])
    mean = float(logs.mean())
    fitted = clone(model).fit(inputs_for(model, X, kept, kept), logs - mean)
    columns = kept if get_tags(model).input_tags.pairwise else None
    return replace(widths, local=LogFactors(fitted, mean, columns))


def _typical(base: np.ndarray, residuals: Residuals) -> tuple[np.ndarray, float]:
    """Return a typical width for each output, and the share of it that is the least one.

    Points of a channel have one unit, and their median says what is small. Outputs that are no curves may each have a
    unit of their own, so that only round-off is small.
    """
    if residuals.grid is None:
        return np.full_like(base, np.nanmedian(base)), _ROUND_OFF
    channels = base.reshape(len(residuals.grid), -1)
    medians = [np.nanmedian(one if np.any(~np.isnan(one)) else base) for one in channels.T]
    return np.broadcast_to(medians, channels.shape).ravel(), _LEAST_OF_POINTS


def _mean_squares(values: np.ndarray) -> np.ndarray:
    """Return the mean square of each column, NaN where nothing was observed."""
    counts = np.sum(~np.isnan(values), axis=0)
    return np.where(counts > 0, np.nansum(values**2, axis=0) / np.maximum(counts, 1), np.nan)


@dataclass(frozen=True, eq=False)
class LogFactors:
    """A fitted model of the log factors less their mean, and that mean."""

    model: Any
    mean: float
    columns: np.ndarray | None = None  # those of a Gram matrix that the model knows

    def at(self, X: Any) -> np.ndarray:
        """Return the factor of each input."""
        return np.asarray(np.exp(self.mean + numbers(self.model.predict(columns_for(X, self.columns))).ravel()))
