"""Marginal quantiles of the outputs."""

from dataclasses import dataclass

import numpy as np

__all__ = ["MarginalQuantiles"]


@dataclass(frozen=True)
class MarginalQuantiles:
    """Marginal quantile function of the outputs: exact at the levels of a model, linear in between.

    It is the smallest value at level 0 and the largest at level 1, and never decreases.
    """

    levels: np.ndarray
    values: np.ndarray  # (levels, c)

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray, levels: np.ndarray) -> "MarginalQuantiles":
        """Return the weighted quantiles of each column of y (n, c)."""
        order = np.argsort(y, axis=0, kind="stable")
        ordered = np.take_along_axis(y, order, axis=0)
        mass = np.cumsum(weights[order], axis=0)
        knots = np.concatenate([[0.0], levels, [1.0]])
        values = np.empty((len(knots), y.shape[1]))
        for c in range(y.shape[1]):
            places = np.searchsorted(mass[:, c], knots * mass[-1, c] * (1 - 1e-12), "left")
            values[:, c] = ordered[np.minimum(places, len(y) - 1), c]
        return cls(knots, values)

    def __call__(self, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles at some levels, (levels, c)."""
        return np.stack([np.interp(levels, self.levels, column) for column in self.values.T], axis=1)
