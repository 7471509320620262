"""How wide a band is at each output, or at each point of a curve, and for each input."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from fenchel.conformal.samples import Residuals, at_points, columns_for, inputs_for, largest, length, numbers

__all__: list[str] = []

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

    def at(self, X: Any, grid: np.ndarray | None) -> np.ndarray:
        """Return the widths of some inputs at some points, (n, q)."""
        base = self.base
        if self.grid is not None and grid is not None:
            base = at_points(base.reshape(1, *self.shape), self.grid, grid).ravel()
        factors = np.ones(length(X)) if self.local is None else self.local.at(X)
        return np.asarray(factors[:, None] * base)


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


def local(residuals: Residuals, model: Any, X: Any, contamination: float) -> Widths:
    """Return widths with a factor for each input; the deviations are those of the residuals over their factors.

    Deviations of the residuals themselves would be those of the inputs with large ones.
    """
    uneven = _with_factors(deviations(residuals, contamination), residuals, model, X, contamination)
    factors = uneven.local.at(X)[:, None] if uneven.local is not None else 1.0
    even = replace(residuals, values=residuals.values / factors)
    return _with_factors(deviations(even, contamination), residuals, model, X, contamination)


def _with_factors(widths: Widths, residuals: Residuals, model: Any, X: Any, contamination: float) -> Widths:
    """Return widths with a factor for each input, from a model of the logarithms of the largest residuals."""
    sizes = largest(np.abs(residuals.values) / widths.at(X, residuals.grid))
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
