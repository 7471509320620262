"""How wide a band is at each output, or at each point of a curve, and for each input."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from fenchel.conformal.samples import Regressor, Residuals, at_points, length, numbers, take

__all__: list[str] = []

_LEAST = 0.1  # least factor of an input, in units of the median one


@dataclass(frozen=True, eq=False)
class Widths:
    """The width s(x, t) = base(t) × factor(x): positive numbers, (n, q)."""

    base: np.ndarray  # (q,)
    grid: np.ndarray | None
    shape: tuple[int, ...]
    local: "LogFactors | None" = None

    def at(self, X: object, grid: np.ndarray | None) -> np.ndarray:
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
    scale = np.sqrt(np.nanmean(values**2, axis=0, keepdims=True))
    sizes = np.nanmax(np.abs(values) / np.where(scale > 0, scale, 1.0), axis=1)
    kept = values[sizes <= np.quantile(sizes, 1 - contamination)]
    base = np.sqrt(np.nanmean(kept**2, axis=0))
    typical = np.nanmedian(base)
    floor = 1e-3 * typical if typical > 0 else 1.0
    return Widths(np.fmax(base, floor), residuals.grid, residuals.shape)


def local(widths: Widths, residuals: Residuals, model: Regressor, X: object, contamination: float) -> Widths:
    """Return widths with a factor for each input, from a model of the logarithms of the largest residuals."""
    sizes = np.nanmax(np.abs(residuals.values) / widths.at(X, residuals.grid), axis=1)
    sizes = np.maximum(sizes, _LEAST * np.median(sizes))
    kept = np.flatnonzero(sizes <= np.quantile(sizes, 1 - contamination))
    logs = np.log(sizes[kept])
    mean = float(logs.mean())
    return replace(widths, local=LogFactors(clone(model).fit(take(X, kept), logs - mean), mean))


@dataclass(frozen=True, eq=False)
class LogFactors:
    """A fitted model of the log factors less their mean, and that mean."""

    model: Regressor
    mean: float

    def at(self, X: object) -> np.ndarray:
        """Return the factor of each input."""
        return np.asarray(np.exp(self.mean + numbers(self.model.predict(X)).ravel()))
