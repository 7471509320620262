"""Data as they were given, checked once."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from fenchel._array import Array, Outputs, as_index, as_like, host, is_host, is_single, is_sparse, namespace
from fenchel._check import unmasked
from fenchel._statistics import weight_unit
from fenchel.data.content import contents
from fenchel.data.functional import Curves
from fenchel.kernels import Completed, KernelLike, as_scalar_kernel
from fenchel.model.forms import InputForm, OutputForm
from fenchel.model.parts import default_kernel, has_gaps

__all__ = ["Sample", "sample_counts", "sample_weights", "spread"]


@dataclass(frozen=True)
class Sample:
    """Data as they were given, checked once; nothing is learned from them.

    Samples of weight zero are left out; ``index`` holds the places of the others.
    """

    X: Array  # (n, ...), dense or CSR, or the Gram matrix of the kept samples
    y: Outputs  # (n, p), Curves or objects
    inputs: InputForm
    outputs: OutputForm
    weights: Array | None = None  # (n,), positive; None counts each sample once
    index: np.ndarray | None = None  # places of the samples among the given ones; None: all
    n_given: int = 0
    rounding: Array = None  # no numbers, in the dtype of predictions, if that is less precise than float64
    has_output_gram: bool = False  # whether y is the Gram matrix of the outputs

    @classmethod
    def of(
        cls,
        X: Array,
        y: Outputs,
        inputs: InputForm,
        outputs: OutputForm,
        sample_weight: Array | None = None,
        is_gram: bool = False,
    ) -> Self:
        """Return the sample of checked data, without samples of weight zero.

        ``is_gram`` says that y is the Gram matrix of the outputs.
        """
        n = int(X.shape[0])
        weights, index = sample_weights(sample_weight, X)
        rounding = X.data[:0] if is_sparse(X) else X[:0, ...]
        sample = cls(X, y, inputs, outputs, weights, None, n, rounding if is_single(rounding) else None, is_gram)
        if index is None:
            return sample
        y = _rows(y, index)
        y = namespace(y).take(y, as_index(index, y), axis=1) if is_gram else y
        return replace(sample, X=sample.inputs_of(index), y=y, index=index)

    def keeping(self, rows: np.ndarray) -> Self:
        """Return the sample with some of its rows; the others count as samples of weight zero."""
        weights = None if self.weights is None else _rows(self.weights, rows)
        index = rows if self.index is None else self.index[rows]
        y = _rows(self.y, rows)
        y = namespace(y).take(y, as_index(rows, y), axis=1) if self.has_output_gram else y
        return replace(self, X=self.inputs_of(rows), y=y, weights=weights, index=index)

    @property
    def n_samples(self) -> int:
        """Number of samples with a positive weight."""
        return int(self.X.shape[0])

    @property
    def counts(self) -> np.ndarray:
        """Sample weights, as a NumPy array (n,)."""
        return np.ones(self.n_samples) if self.weights is None else host(self.weights).astype(np.float64)

    def contents(self) -> np.ndarray:
        """Return the rank of each sample by what it contains, see ``fenchel.data.content``.

        Outputs come first, so that inputs and their Gram matrix give the same order unless outputs are equal.
        """
        parts = [(self.y, self.has_output_gram), (self.X, self.inputs.is_pairwise), (self.weights, False)]
        rows, grams = ([part for part, is_gram in parts if is_gram == wanted] for wanted in (False, True))
        return contents(*rows, grams=grams)

    def inputs_of(self, rows: np.ndarray, columns: np.ndarray | None = None) -> Array:
        """Return the inputs of some samples; of a Gram matrix, those rows and columns (the same by default)."""
        X = _rows(self.X, rows)
        if not self.inputs.is_pairwise:
            return X
        return namespace(X).take(X, as_index(rows if columns is None else columns, X), axis=1)

    def kernel_like(self, kernel: KernelLike) -> KernelLike:
        """Return a kernel as given, and ``"auto"`` as one of inputs in parts or with missing values if they are."""
        if not (isinstance(kernel, str) and kernel == "auto"):
            return kernel
        if self.inputs.blocks is not None:
            return default_kernel(self.X, self.inputs.blocks, self.weights)
        return Completed(as_scalar_kernel(kernel)) if has_gaps(self.X) else kernel

    def double(self) -> Self:
        """Return the sample in float64."""
        xp = namespace(self.X)
        return replace(self, X=xp.astype(self.X, xp.float64, copy=False), y=_double(self.y))

    def outputs_like(self, reference: Array) -> Outputs:
        """Return the outputs in the library and dtype of an array, objects unchanged."""
        if isinstance(self.y, Curves):
            return Curves(self.y.grid, as_like(self.y.values, reference))
        return self.y if self.y.dtype == object else as_like(self.y, reference)

    def given(self, rows: Array) -> Array:
        """Return one row for each given sample, with zeros for those of weight zero."""
        return spread(rows, self.index, self.n_given)

    def check_folds(self, tests: Iterable[np.ndarray]) -> None:
        """Raise if a fold holds all samples, or all of their weight but what a shared factorisation rounds away."""
        counts = self.counts
        total = float(np.sum(counts))
        least = len(counts) * float(np.finfo(np.float64).eps) * total
        if any(total - float(np.sum(counts[test])) <= least for test in tests):
            held = "" if self.n_samples == 1 else ", and a fold with all of the weight"
            raise ValueError(f"Each fold must leave samples to fit on. Got n_samples = {self.n_given}{held}.")

    def kept(self, labels: np.ndarray | None) -> np.ndarray | None:
        """Return the entries of the samples with a positive weight."""
        return labels if labels is None or self.index is None else labels[self.index]


def sample_weights(weights: Array | None, X: Array) -> tuple[Array | None, np.ndarray | None]:
    """Return the positive weights, the largest in [1, 4), and the indices of their samples; ``None`` means all samples.

    Weights below the square root of the smallest number of the dtype, 1e-154 in float64, count as zero.
    """
    if weights is None:
        return None, None
    n, weights = X.shape[0], unmasked(weights, "sample_weight")
    try:
        values = np.asarray(weights if is_host(weights) else host(weights), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"sample_weight must hold finite non-negative numbers: {error}.") from error
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},). Got {values.shape} instead.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError("sample_weight must hold finite non-negative numbers. Got a negative, NaN or infinite one.")
    if not np.any(values > 0):
        raise ValueError("sample_weight must have at least one positive entry. Got zeros only.")
    values = values / weight_unit(values)
    index = np.flatnonzero(values > math.sqrt(namespace(X).finfo(X.dtype).smallest_normal))
    return as_like(values[index], X), None if len(index) == n else index


def spread(rows: Array, index: np.ndarray | None, n: int) -> Array:
    """Return n rows: the given ones at the places of an index, zeros at the others; ``None`` means all places."""
    if index is None:
        return rows
    xp, place = namespace(rows), np.full(n, len(index))  # the last row is zero
    place[index] = np.arange(len(index))
    return xp.take(xp.concat([rows, xp.zeros_like(rows[:1, ...])]), as_index(place, rows), axis=0)


def sample_counts(sample_weight: Array | None, X: Array) -> np.ndarray:
    """Return the weights of ``sample_weights``, including zeros, as a NumPy array (n,)."""
    weights, index = sample_weights(sample_weight, X)
    if weights is None:
        return np.ones(X.shape[0])
    counts = np.zeros(X.shape[0])
    counts[slice(None) if index is None else index] = host(weights)
    return counts


def _rows(values: Outputs, index: np.ndarray) -> Outputs:
    if isinstance(values, Curves):
        return values.take(index)
    return namespace(values).take(values, as_index(index, values), axis=0)


def _double(y: Outputs) -> Outputs:
    if isinstance(y, Curves):
        return Curves(y.grid, _double(y.values))
    xp = namespace(y)
    is_real = y.dtype != object and xp.isdtype(y.dtype, "real floating")
    return xp.astype(y, xp.float64, copy=False) if is_real else y
