"""Data of an autoencoder: vectors or objects, and their coordinates in the feature space of a kernel."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Array, as_index, as_objects, eps, host, is_host, joined, namespace
from fenchel._check import check_memory
from fenchel._statistics import weight_unit
from fenchel.approximations import Approximation
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import ScalarKernel, is_pairwise
from fenchel.losses import Loss
from fenchel.model.forms import InputForm, is_regular
from fenchel.model.sample import sample_weights
from fenchel.representations import KernelOutputs

__all__ = ["DataSpace", "doubled", "like"]

_LARGEST = 1e70  # largest coordinate whose fourth power, in products of products, does not overflow
_MOST_UNIT = 2.0**20  # of weights; products of larger ones would overflow
_BLOCK_BYTES = 2**28  # blocks of kernel values of new points stay below 256 MiB


@dataclass(frozen=True)
class DataSpace:
    """The feature space of the data, and the form in which data come.

    Samples of weight zero are left out; ``index`` holds the places of the others.
    """

    representation: KernelOutputs
    inputs: InputForm | None  # None for objects
    index: np.ndarray | None = None  # None: all samples
    n_given: int = 0
    weights: Array | None = None  # (n,), positive; None counts each sample once

    @classmethod
    def learn(
        cls,
        owner: BaseEstimator,
        X: Array,
        kernel: ScalarKernel,
        loss: Loss,
        center: bool,
        approximation: Approximation | None,
        sample_weight: Array | None = None,
    ) -> tuple["DataSpace", Array]:
        """Return the space of checked training data, and their coordinates."""
        inputs = None
        if _are_objects(X, kernel):
            X = as_objects(X)
        else:
            X, _, inputs = InputForm.learn(owner, X, is_pairwise=is_pairwise(kernel))
            X = doubled(X)
            kernel = kernel if inputs.names is None else kernel.named(inputs.names)
        n_given = int(X.shape[0])
        weights, index = sample_weights(sample_weight, np.empty((len(X), 0)) if _holds_objects(X) else X)
        if index is not None:
            X = namespace(X).take(X, as_index(index, X), axis=0)
            X = _columns(X, index) if is_pairwise(kernel) else X
        check_memory(48 * X.shape[0] ** 2, f"A fit of {X.shape[0]} samples", "Fit on a part of the sample")
        representation = KernelOutputs(kernel, center=center, approximation=approximation)
        # norms carry the round-off of the factor: duals must be exactly zero if the insensitive zone equals the norm
        V = representation.learn(X, weights).rows
        V = V * (1 - V.shape[0] * eps(V))
        largest = float(namespace(V).max(namespace(V).abs(V)))
        if largest > _LARGEST:
            raise ValueError(
                f"X must be below {_LARGEST:.0e} in the space of the kernel. Got {largest:.1e}: scale the inputs."
            )
        if loss.pointwise and not representation.has_points:
            raise IncompatibleError(f"{loss!r} needs point values, which this kernel does not provide. Use p=2.")
        if weights is not None:  # as given, so that L-BFGS moves a sample of weight 2 like two equal ones
            unit = weight_unit(np.asarray(host(sample_weight), dtype=np.float64))
            weights = weights * min(max(unit, 1 / _MOST_UNIT), _MOST_UNIT)
        return cls(representation, inputs, index, n_given, weights), V

    def read(self, owner: BaseEstimator, X: Array) -> Array:
        """Return checked new data in their own dtype."""
        return as_objects(X) if self.inputs is None else self.inputs.read(owner, X)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        if self.weights is None:
            return float(self.representation.targets_.shape[0])
        return float(namespace(self.weights).sum(self.weights))

    def coordinates(self, X: Array) -> Array:
        """Return the coordinates of checked data projected onto the span of the training data."""
        X = X if self.index is None or not self.representation.is_pairwise else _columns(X, self.index)
        rows = max(1, _BLOCK_BYTES // (8 * max(self.representation.targets_.shape)))
        starts = range(0, X.shape[0], rows)
        return joined([self.representation.encode(doubled(X[first : first + rows, ...])).rows for first in starts])


def doubled(X: Array) -> Array:
    """Return numbers in float64, other objects unchanged."""
    return X if _holds_objects(X) else namespace(X).astype(X, namespace(X).float64, copy=False)


def like(numbers: Array, X: Array) -> Array:
    """Return numbers in the dtype of X, unchanged if X holds objects."""
    return numbers if _holds_objects(X) else namespace(numbers).astype(numbers, X.dtype, copy=False)


def _are_objects(X: Array, kernel: ScalarKernel) -> bool:
    """Whether the data are objects other than numbers, which only a callable kernel accepts."""
    return kernel.tags.takes_objects and is_host(X) and not is_regular(X)


def _columns(X: Array, index: np.ndarray) -> Array:
    """Return the columns of a Gram matrix that belong to samples of positive weight."""
    return namespace(X).take(X, as_index(index, X), axis=1)


def _holds_objects(X: Array) -> bool:
    return is_host(X) and X.dtype.kind == "O"
