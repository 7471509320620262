"""Predictions for Dask arrays, and predictions of models that were fitted on Dask arrays."""

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

import numpy as np

from fenchel._array import Array
from fenchel._optional import require
from fenchel.kernels.separable import BoundTerms
from fenchel.model.machine import KernelMachine
from fenchel.operators import Output
from fenchel.operators.products import PointKernel, kernel_product

__all__ = ["ChunkedExpansion", "predict_chunks"]

_GROUP = 16  # number of arrays that one task adds
_BLOCK_BYTES = 2**22  # bytes of inputs that are sent with a task


@dataclass(frozen=True)
class ChunkedExpansion:
    r"""The function :math:`\sum_i K(\cdot, x_i) c_i`, with Dask arrays of inputs and coefficients."""

    kernel: BoundTerms
    X: Array  # (n, d)
    coef: Array  # (n, p)

    def coordinates(self, X: Array) -> Array:
        """Return the values at checked inputs, (m, p), computed on the workers in blocks of rows."""
        array, rows = require("dask.array", extra="dask"), max(1, _BLOCK_BYTES // (8 * X.shape[1]))
        blocks = (array.from_array(X[first : first + rows], chunks=-1) for first in range(0, X.shape[0], rows))
        return np.concatenate([self.chunked_coordinates(block).compute() for block in blocks])

    def chunked_coordinates(self, X: Array) -> Array:
        """Return the values at the rows of a Dask array, as a Dask array."""
        array, delayed = require("dask.array", extra="dask"), require("dask", extra="dask").delayed
        kernel, matrix = self.kernel.terms[0]
        own = list(zip(self.X.to_delayed().ravel(), self.coef.to_delayed().ravel(), strict=True))
        product = partial(delayed(_product), delayed(kernel, traverse=False))
        rows = []
        for block, size in zip(X.to_delayed().ravel(), X.chunks[0], strict=True):
            parts = [product(block, *pair) for pair in own]
            while len(parts) > 1:
                parts = [delayed(sum)(parts[k : k + _GROUP]) for k in range(0, len(parts), _GROUP)]
            rows.append(array.from_delayed(parts[0], (size, self.coef.shape[1]), dtype=self.coef.dtype))
        return array.concatenate(rows).map_blocks(Output(matrix).times, dtype=self.coef.dtype)


def _product(kernel: PointKernel, X: Array, Z: Array, coef: Array) -> Array:
    return kernel_product(kernel, np.asarray(X), np.asarray(Z), coef)


def predict_chunks(estimator: KernelMachine, X: Array) -> Array:
    """Predict for a Dask array chunk by chunk; return a Dask array."""
    if X.ndim != 2 or X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has shape {X.shape}, but the model was fitted with {estimator.n_features_in_} features.")
    model = estimator.model_
    X, is_flat, shape = X.rechunk({1: -1}), model.outputs.is_flat, model.outputs.shape
    if isinstance(model.expansion, ChunkedExpansion):
        rows = model.codec.decode(model.expansion.chunked_coordinates(X))
        return rows[:, 0] if is_flat else rows
    return require("dask.array", extra="dask").map_blocks(
        _predicted,
        X,
        predict=_Predict(estimator),
        drop_axis=[1] if is_flat else None,
        chunks=X.chunks[:1] if is_flat else (X.chunks[0], shape),
        meta=np.empty((0,) if is_flat else (0, 0), dtype=X.dtype),
    )


class _Predict:
    """The part of a model that prediction needs, without arrays that have a row for each sample."""

    def __init__(self, estimator: KernelMachine) -> None:
        self.model, duals = copy(estimator), estimator.model_.duals
        self.model.model_ = replace(estimator.model_, duals=replace(duals, coef=None))

    def __dask_tokenize__(self) -> str:
        return uuid4().hex


def _predicted(X: Array, predict: _Predict) -> Array:
    return predict.model.predict(X)
