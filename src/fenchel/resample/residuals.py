"""Residuals of samples in any form, as arrays."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Array, Inputs, Outputs, host
from fenchel.data.containers import numbers, of_shape
from fenchel.data.frames import with_arrays
from fenchel.data.functional import as_curves, brings_points
from fenchel.model.machine import near_of
from fenchel.model.training_set import TrainingSet

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class Residuals:
    """Outputs minus predictions as an array (n, q), NaN where nothing was observed, at the points of the outputs."""

    values: np.ndarray
    grid: np.ndarray | None
    shape: tuple[int, ...]  # of the output of one sample

    @classmethod
    def decoded(cls, training_set: TrainingSet, predictions: Array) -> "Residuals":
        """Return the residuals of predictions in coordinates, without the factors of the rows, (n, p)."""
        codec, y = training_set.codec, training_set.sample.y
        truth, found = host(codec.truth(y)), host(codec.decode(predictions))
        return cls(codec.residuals(truth, found).reshape(len(truth), -1), codec.grid, truth.shape[1:])

    def among(self, places: np.ndarray, n: int) -> "Residuals":
        """Return the residuals at some places among n samples, NaN at the others."""
        values = np.full((n, self.values.shape[1]), np.nan)
        values[places] = self.values
        return replace(self, values=values)

    def on(self, grid: np.ndarray | None) -> "Residuals":
        """Return the residuals on a grid with further points, NaN at these."""
        if grid is None or self.grid is None or len(grid) == len(self.grid):
            return self
        values = np.full((len(self.values), len(grid), *self.shape[1:]), np.nan)
        values[:, np.searchsorted(grid, self.grid)] = self.values.reshape(-1, *self.shape)
        return Residuals(values.reshape(len(values), -1), grid, values.shape[1:])

    def filled(self) -> np.ndarray:
        """Return the values with missing ones interpolated along a curve, otherwise replaced by the median."""
        rows = self.values.astype(float)
        if not np.isnan(rows).any():
            return rows
        filled = np.where(np.isnan(rows), np.nan_to_num(np.nanmedian(rows, axis=0)), rows)
        if self.grid is None:
            return filled
        known, out = (part.reshape(len(rows), len(self.grid), -1) for part in (rows, filled))
        for i, c in np.ndindex(len(rows), known.shape[2]):
            seen = ~np.isnan(known[i, :, c])
            if seen.any() and not seen.all():  # a curve without observations is the median
                out[i, :, c] = np.interp(self.grid, self.grid[seen], known[i, seen, c])
        return out.reshape(rows.shape)

    @classmethod
    def of(cls, model: BaseEstimator, X: Inputs, y: Outputs) -> "Residuals":
        """Return the residuals of a fitted model."""
        model, grid = with_arrays(model), getattr(model, "grid_", None)
        if grid is None:
            truth = numbers(y)
            predictions = of_shape(numbers(model.predict(X)), truth.shape)
        else:
            curves = as_curves(y, None if brings_points(y) else grid, "y")
            truth, grid = numbers(curves.values), curves.grid
            predictions = numbers(model.predict(X, grid))
        if truth.shape != predictions.shape:
            raise ValueError(f"y must have the shape of the predictions, {predictions.shape}. Got {truth.shape}.")
        return cls((near_of(model)(truth, predictions) - predictions).reshape(len(truth), -1), grid, truth.shape[1:])
