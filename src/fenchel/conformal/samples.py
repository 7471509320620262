"""Samples in whatever form a regressor takes them: their length, parts of them, residuals as arrays."""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar, cast

import numpy as np
from sklearn.utils import get_tags

from fenchel._array import Outputs, host
from fenchel.datasets.functional import as_curves, brings_points

__all__: list[str] = []


S = TypeVar("S")


class Regressor(Protocol):
    """A regressor of scikit-learn's kind; those of curves also take the points at which to predict."""

    def fit(self, X: object, y: object) -> Self:
        """Learn from a sample."""

    def predict(self, X: object, *grid: np.ndarray) -> Outputs:
        """Return the predictions."""


class IntervalRegressor(Regressor, Protocol):
    """A regressor with intervals of its own."""

    def predict_interval(self, X: object, coverage: float) -> Outputs:
        """Return the ends of the intervals."""


def length(sample: object) -> int:
    """Return the number of samples."""
    return int(sample.shape[0]) if hasattr(sample, "shape") else len(cast(Sized, sample))


def take(sample: S, index: np.ndarray) -> S:
    """Return some samples, in the form that they came in."""
    given: Outputs = sample
    if hasattr(given, "iloc"):
        return given.iloc[index]
    if hasattr(given, "take") and not hasattr(given, "shape"):
        return given.take(index)
    if isinstance(given, list | tuple):
        return cast(S, [given[i] for i in index])
    return given[index]


def inputs_for(model: Regressor, X: S, rows: np.ndarray, train: np.ndarray) -> S:
    """Return the inputs of some samples for a model of others: of a Gram matrix, their columns alone."""
    part: Outputs = take(X, rows)
    return part[:, train] if get_tags(model).input_tags.pairwise else part


def vectors(X: object) -> np.ndarray:
    """Return inputs as vectors, (n, d)."""
    values = numbers(X)
    return values.reshape(len(values), -1)


def numbers(values: Outputs) -> np.ndarray:
    """Return an array of any library, a table or a scikit-fda object as a NumPy array of floats."""
    if brings_points(values) and not isinstance(values, list | tuple):
        values = as_curves(values).values
    if hasattr(values, "__array_namespace__") or type(values).__module__.split(".")[0] == "torch":
        values = host(values)
    return np.asarray(values, dtype=float)


def at_points(values: np.ndarray, grid: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return values (..., m) or (n, m, c) on a grid, interpolated linearly at other points."""
    if len(grid) == len(points) and np.array_equal(grid, points):
        return values
    flat = np.moveaxis(values, 1, -1) if values.ndim == 3 else values
    rows = flat.reshape(-1, len(grid))
    moved = np.stack([np.interp(points, grid, row) for row in rows]).reshape(*flat.shape[:-1], len(points))
    return np.moveaxis(moved, -1, 1) if values.ndim == 3 else moved


@dataclass(frozen=True, eq=False)
class Residuals:
    """Outputs less predictions as an array (n, q), NaN where nothing was observed, at the points of the outputs."""

    values: np.ndarray
    grid: np.ndarray | None
    shape: tuple[int, ...]  # of the output of one sample

    @classmethod
    def of(cls, model: Regressor, X: object, y: object) -> "Residuals":
        """Return the residuals of a fitted model."""
        grid = getattr(model, "grid_", None)
        if grid is None:
            truth, predictions = numbers(y), numbers(model.predict(X))
        else:
            curves = as_curves(y, None if brings_points(y) else grid, "y")
            truth, grid = numbers(curves.values), curves.grid
            predictions = numbers(model.predict(X, grid))
        if truth.shape != predictions.shape:
            raise ValueError(f"y must have the shape of the predictions, {predictions.shape}. Got {truth.shape}.")
        return cls((truth - predictions).reshape(len(truth), -1), grid, truth.shape[1:])
