"""Utilities for samples in any form that a regressor takes: length, subsets, arrays of numbers."""

from collections.abc import Mapping, Sized

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from fenchel._array import Inputs, Outputs, as_rows, dense, has_shape, host, is_host, is_sparse
from fenchel._check import unmasked
from fenchel.data.fdata import classes_of
from fenchel.data.functional import as_curves, brings_points, is_fdata
from fenchel.data.pairs import is_pairs
from fenchel.exceptions import IncompatibleError

__all__: list[str] = []


def length(sample: Outputs) -> int:
    """Return the number of samples."""
    if isinstance(sample, Mapping) and not has_shape(sample):
        return length(next(iter(sample.values()))) if sample else 0
    return int(sample.shape[0]) if has_shape(sample) else len(sample)


def indexable(sample: Outputs) -> Outputs:
    """Return a sample that can be split: sparse matrices as CSR, others unchanged if they can be indexed."""
    if is_sparse(sample):
        return as_rows(sample)
    return sample if sample is None or has_shape(sample) or isinstance(sample, Sized) else np.asarray(sample)


def checked_length(X: Inputs, y: Outputs, owner: str) -> int:
    """Return the number of samples; raise if inputs and outputs differ in it or cannot be split."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    n = length(X)
    if n != length(y):
        raise ValueError(f"X and y must have the same number of samples. Got {n} and {length(y)}.")
    if n < 2:
        raise ValueError(f"{owner} needs at least 2 samples. Got n_samples = {n}.")
    return n


def take(sample: Outputs, index: np.ndarray) -> Outputs:
    """Return the selected samples, in their original form."""
    if isinstance(sample, Mapping) and not has_shape(sample):
        return {name: take(part, index) for name, part in sample.items()}
    if hasattr(sample, "iloc"):
        return sample.iloc[index]
    if classes_of(sample, "pyarrow"):
        return sample.take(np.arange(len(sample))[index])
    if hasattr(sample, "take") and not has_shape(sample):
        return sample.take(index)
    if isinstance(sample, list | tuple):
        return [sample[i] for i in index]
    return sample[index]


def inputs_for(model: BaseEstimator, X: Inputs, rows: np.ndarray, train: np.ndarray | None) -> Inputs:
    """Return the inputs of some samples for a model of others; for a Gram matrix, only the given columns."""
    return columns_for(take(X, rows), train if train is not None and get_tags(model).input_tags.pairwise else None)


def columns_for(X: Inputs, columns: np.ndarray | None) -> Inputs:
    """Return the selected columns of a Gram matrix; ``None`` means all of them."""
    if columns is None:
        return X
    return X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]


def on_one_grid(y: Outputs) -> Outputs:
    """Return curves with their own points on the union of all points, so that all parts of a sample share a grid.

    Other outputs are returned unchanged.
    """
    is_ragged = is_pairs(y) or (is_fdata(y) and type(y).__name__ == "FDataIrregular")
    return as_curves(y) if is_ragged else y


def largest(values: np.ndarray) -> np.ndarray:
    """Return the maximum of each row, ignoring NaN; NaN if a row has no number."""
    found = np.where(np.isnan(values), -np.inf, values).max(axis=1)
    return np.where(np.isneginf(found), np.nan, found)


def of_shape(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return values with a trailing axis of length 1 added or removed to match a shape, else unchanged."""
    is_column = values.shape == (*shape, 1) or (*values.shape, 1) == shape
    return values.reshape(shape) if is_column else values


def vectors(X: Inputs) -> np.ndarray:
    """Return inputs as vectors, (n, d)."""
    try:
        values = numbers(dense(X))
    except (TypeError, ValueError):
        raise IncompatibleError(
            "modulation='local' needs inputs that are numbers, since its model of the widths does not see the steps of "
            "a pipeline. Transform the inputs first, use modulation='std', or pass a pipeline with the same "
            "transformers and a regressor as modulation."
        ) from None
    return values.reshape(len(values), -1)


def numbers(values: Outputs) -> np.ndarray:
    """Return an array of any library, a table or a scikit-fda object as a NumPy array of floats, NaN where masked."""
    values = unmasked(values, "y")
    if hasattr(values, "data_matrix"):  # an FDataGrid; the ends of a band may be infinite
        values = of_shape(values.data_matrix, values.data_matrix.shape[:2])
    elif brings_points(values) and not isinstance(values, list | tuple):
        values = as_curves(values).values
    return np.asarray(values if is_host(values) else host(values), dtype=float)


def at_points(values: np.ndarray, grid: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return values (..., m) or (n, m, c) on a grid, interpolated linearly at other points."""
    if len(grid) == len(points) and np.array_equal(grid, points):
        return values
    flat = np.moveaxis(values, 1, -1) if values.ndim == 3 else values
    rows = flat.reshape(-1, len(grid))
    moved = np.stack([np.interp(points, grid, row) for row in rows]).reshape(*flat.shape[:-1], len(points))
    return np.moveaxis(moved, -1, 1) if values.ndim == 3 else moved
