"""Samples given as Dask arrays with the same chunks of rows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from fenchel._array import Array
from fenchel._optional import require
from fenchel._statistics import weight_unit
from fenchel.model.target_scale import TargetScale

__all__ = ["Client", "Future", "Sample", "is_chunked", "sample_of", "target_scale_of"]


class Future(Protocol):
    """A result that is computed, or kept, by a worker; of the distributed library."""

    def result(self) -> Array:
        """Wait for the result and return it."""


class Client(Protocol):
    """What fits need of a client of the distributed library."""

    def submit(self, function: Callable[..., object], *args: object, pure: bool) -> Future:
        """Submit a task."""

    def compute(self, delayed: list[object]) -> list[Future]:
        """Submit delayed computations."""

    def scatter(self, data: object, *, direct: bool, hash: bool) -> Future:
        """Send data to a worker."""

    def nthreads(self) -> dict[str, int]:
        """Return the number of threads of each worker."""


def is_chunked(X: object) -> bool:
    """Whether X is a Dask array."""
    return type(X).__module__.startswith("dask.array")


@dataclass(frozen=True)
class Kept:
    """Which of the given rows have a positive weight."""

    mask: Array  # (n,), in the chunks as they were given
    counts: tuple[int, ...]  # numbers of kept rows of these chunks

    def of(self, array: Array) -> Array:
        """Return the kept rows of a Dask array in the given chunks; chunks without any are dropped."""
        tools, delayed = require("dask.array", extra="dask"), require("dask", extra="dask").delayed
        chunks = zip(self.mask.to_delayed().ravel(), array.to_delayed().ravel(), self.counts, strict=True)
        blocks = [
            tools.from_delayed(delayed(_kept_rows)(rows, mask), (count, *array.shape[1:]), dtype=array.dtype)
            for mask, rows, count in chunks
            if count
        ]
        return tools.concatenate(blocks)


@dataclass(frozen=True)
class Sample:
    """Dask arrays with the same chunks of rows; each chunk has all columns. Rows of weight zero are left out."""

    X: Array  # (n, d)
    y: Array  # (n, p)
    weights: Array  # (n,), or None
    is_flat: bool  # outputs are numbers, not vectors
    total: float  # the sum of the weights
    kept: Kept | None = None  # None: all of the given rows

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the inputs."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return int(self.y.shape[1])

    def encoded(self, scale: TargetScale) -> "Sample":
        """Return the sample with centred and scaled outputs."""
        return replace(self, y=(self.y - scale.center) / scale.scale)

    def few_outputs(self) -> np.ndarray:
        """Return p outputs that have the second moments of the sample, (p, p)."""
        rows = self.y.astype(np.float64)
        weighted = rows if self.weights is None else rows * self.weights[:, None]
        moments = np.asarray((weighted.T @ rows).compute()) / self.total
        values, vectors = np.linalg.eigh((moments + moments.T) / 2)
        root: np.ndarray = np.sqrt(self.n_outputs * np.clip(values, 0.0, None))[:, None] * vectors.T
        return root

    def futures(self, client: Client, function: Callable[..., object], shared: object) -> list[Future]:
        """Return futures of a function of the inputs, outputs and weights of each chunk, and of shared arguments."""
        delayed = require("dask", extra="dask").delayed
        blocks = [list(part.to_delayed().ravel()) for part in (self.X, self.y)]
        counts = [None] * len(blocks[0]) if self.weights is None else list(self.weights.to_delayed().ravel())
        return client.compute([delayed(function)(*parts, shared) for parts in zip(*blocks, counts, strict=True)])

    def rows_of(self, futures: Sequence[Future], width: int) -> Array:
        """Return the rows of the chunks, given as futures, as a Dask array whose chunks stay on the workers."""
        return _joined(futures, self.X.chunks[0], width, self.X.dtype)

    def given_rows_of(self, client: Client, futures: Sequence[Future], width: int) -> Array:
        """Return ``rows_of`` with a row for each given row, zeros for those of weight zero."""
        if self.kept is None:
            return self.rows_of(futures, width)
        mask, found = self.kept.mask, iter(futures)
        masks = client.compute(list(mask.to_delayed().ravel()))
        rows = [next(found) if count else np.zeros((0, width)) for count in self.kept.counts]
        spread = [client.submit(_spread, *pair, self.X.dtype, pure=False) for pair in zip(rows, masks, strict=True)]
        return _joined(spread, mask.chunks[0], width, self.X.dtype)


def sample_of(X: Array, y: Array, sample_weight: Array) -> Sample:
    """Check Dask arrays and return them as a sample."""
    array = require("dask.array", extra="dask")
    if X.ndim != 2:
        raise ValueError(f"X must be 2-dimensional. Got an array of shape {tuple(X.shape)} instead.")
    X = X.compute_chunk_sizes() if np.isnan(X.shape[0]) else X
    X = X.rechunk({1: -1})
    y = y if is_chunked(y) else array.from_array(np.asarray(y), chunks=-1)
    y = y.compute_chunk_sizes() if np.isnan(y.shape[0]) else y
    if y.ndim not in (1, 2):
        raise ValueError(f"y must be 1- or 2-dimensional. Got an array of shape {tuple(y.shape)} instead.")
    if y.shape[0] != X.shape[0]:
        raise ValueError(f"X and y must have the same number of samples. Got {X.shape[0]} and {y.shape[0]}.")
    rows = y[:, None] if y.ndim == 1 else y
    rows = rows.rechunk({0: X.chunks[0], 1: -1})
    if sample_weight is None:
        return Sample(X, rows, None, y.ndim == 1, float(X.shape[0]))
    weights = sample_weight if is_chunked(sample_weight) else array.from_array(np.asarray(sample_weight))
    if weights.shape != (X.shape[0],):
        raise ValueError(f"sample_weight must have shape ({X.shape[0]},). Got {tuple(weights.shape)} instead.")
    weights, kept = _weights_of(weights.rechunk({0: X.chunks[0]}).astype(np.float64), X.dtype)
    if kept is not None:
        X, rows, weights = kept.of(X), kept.of(rows), kept.of(weights)
    return Sample(X, rows, weights, y.ndim == 1, float(weights.sum().compute()), kept)


def _weights_of(weights: Array, dtype: np.dtype) -> tuple[Array, Kept | None]:
    """Return the weights, the largest in [1, 4), and which of them count; as ``model.sample.sample_weights`` does."""
    dask = require("dask", extra="dask")
    least, most = dask.compute(weights.min(), weights.max())
    if not (least >= 0 and most < math.inf):  # NaN is neither
        raise ValueError("sample_weight must hold finite non-negative numbers. Got a negative, NaN or infinite one.")
    if most == 0:
        raise ValueError("sample_weight must have at least one positive entry. Got zeros only.")
    unit = weight_unit(np.asarray(most))
    weights = weights / unit
    tiny = math.sqrt(np.finfo(dtype if dtype.kind == "f" else np.float64).smallest_normal)
    if least / unit > tiny:
        return weights, None
    mask = weights > tiny
    counts = dask.compute(*(dask.delayed(np.count_nonzero)(block) for block in mask.to_delayed().ravel()))
    return weights, Kept(mask, tuple(int(count) for count in counts))


def _joined(futures: Sequence[Future], sizes: tuple[int, ...], width: int, dtype: np.dtype) -> Array:
    """Return rows of chunks, given as futures, as a Dask array."""
    array, delayed = require("dask.array", extra="dask"), require("dask", extra="dask").delayed
    pairs = zip(futures, sizes, strict=True)
    return array.concatenate([array.from_delayed(delayed(one), (size, width), dtype=dtype) for one, size in pairs])


def _kept_rows(rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return np.asarray(rows)[mask]


def _spread(rows: np.ndarray, mask: np.ndarray, dtype: np.dtype) -> np.ndarray:
    given: np.ndarray = np.zeros((len(mask), rows.shape[1]), dtype=dtype)
    given[mask] = rows
    return given


def target_scale_of(sample: Sample, center: bool, scale: bool) -> TargetScale:
    """Return the mean and the standard deviation of the outputs, as ``standardized_targets`` does."""
    counts = 1.0 if sample.weights is None else sample.weights[:, None]

    def mean(rows: Array) -> np.ndarray:
        return np.asarray((counts * rows).sum(axis=0).compute()) / sample.total

    y = sample.y.astype(np.float64)
    middle = mean(y)
    deviations = np.sqrt(mean((y - middle) ** 2))
    size = 64 * np.finfo(np.float64).eps * np.asarray(abs(y).max(axis=0).compute())
    scales = np.where(deviations > size, deviations, 1.0)
    return TargetScale(middle if center else 0 * middle, scales if scale else np.ones_like(scales))
