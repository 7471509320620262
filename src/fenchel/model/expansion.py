"""The kernel expansion of a fit, which predicts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import cast

import numpy as np

from fenchel._array import Array, as_index, as_like, device, joined, namespace
from fenchel._check import free_memory
from fenchel.kernels import ScalarKernel
from fenchel.kernels.scalar_kernel import BoundKernel
from fenchel.kernels.separable import BoundTerms
from fenchel.model.training_set import TrainingSet
from fenchel.model.warnings import far_inputs, warn_of_distance
from fenchel.operators import Operator, Thin, is_thin, kronecker, streamed

__all__ = ["KernelExpansion"]

_BLOCK_BYTES = 2**28  # Gram blocks of a prediction stay below 256 MiB


@dataclass(frozen=True)
class KernelExpansion:
    r"""The function :math:`\sum_i K(\cdot, x_i) c_i` over the support, in coordinates."""

    kernel: BoundKernel
    X: Array  # inputs of the support
    coef: Array  # (support, p)
    columns: np.ndarray | None = None  # columns of the support in a Gram matrix of new inputs with all samples
    features_coef: Array | None = None  # coefficients of the features of a kernel with few features, (D, p)
    tells_far: bool = False  # whether inputs whose kernel values vanish are far from the whole sample

    @classmethod
    def over(
        cls, training_set: TrainingSet, support: np.ndarray, coef: Array, features_coef: Array | None = None
    ) -> "KernelExpansion":
        """Return the expansion over samples of a training set; coefficients of features are computed unless given."""
        kernel, X, sample = training_set.kernel, training_set.X, training_set.sample
        has_features = is_thin(training_set.ridge.gram)
        if not (has_features and len(support) == X.shape[0]):  # features predict without the inputs: no copy is made
            X = namespace(X).take(X, as_index(support, X), axis=0)
        if features_coef is None and has_features and coef.shape[0] > 0:
            features_coef = cast(Array, _scalar(kernel).features(X)).T @ coef
        columns = None
        if training_set.is_pairwise:
            columns = support if sample.index is None else sample.index[support]
        is_plain = training_set.approximation is None and columns is None and features_coef is None
        is_single = isinstance(kernel, BoundTerms) and len(kernel.terms) == 1
        tells_far = is_plain and is_single and len(support) == training_set.n_samples
        return cls(kernel, X, coef, columns, features_coef, tells_far)

    def coordinates(self, X: Array) -> Array:
        """Return the values at checked inputs, (m, p)."""
        return self._joined(X, None)

    def evaluate(self, X: Array, matrices: Sequence[Array]) -> Array:
        """Return the values at checked inputs: sums over the terms, whose matrix (p, points) has the operator."""
        return self._joined(X, matrices)

    def on_training_inputs(self, training_set: TrainingSet) -> Array:
        """Return the values at the inputs of the training set, (n, p)."""
        if self.tells_far and streamed(training_set.ridge.gram) is not None:  # each tile serves two ranges of rows
            return cast(BoundTerms, self.kernel).streamed(self.X).matmul(self.coef)
        return self._joined(training_set.X, None, None if self.columns is None else training_set.sample.index)

    def _joined(self, X: Array, matrices: Sequence[Array] | None, index: np.ndarray | None = None) -> Array:
        """Return the values of all blocks; warn about inputs that are far from the sample.

        ``index`` are the places of the columns of a Gram matrix without samples of weight zero.
        """
        columns = self.columns if index is None or self.columns is None else np.searchsorted(index, self.columns)
        blocks = [self._values(block, matrices) for block in self._blocks(X, columns)]
        warn_of_distance(np.concatenate([is_far for _, is_far in blocks]))
        values = [value for value, _ in blocks]
        return values[0] if len(values) == 1 else joined(values)

    def _blocks(self, X: Array, columns: np.ndarray | None) -> Iterator[Array]:
        """Yield inputs in blocks with small Gram matrices with the support, in the dtype of the model."""
        xp = namespace(X)
        X = xp.astype(X, self.coef.dtype, copy=False)
        if columns is not None:
            X = xp.take(X, as_index(columns, X), axis=1)
        width = (self.coef if self.features_coef is None else self.features_coef).shape[0]
        free = free_memory(X)
        budget = _BLOCK_BYTES if free is None else min(_BLOCK_BYTES, free // 8)  # a kernel holds a few such arrays
        rows = max(1, budget // (8 * max(1, width)))
        for first in range(0, X.shape[0], rows):
            yield X[first : min(first + rows, X.shape[0]), ...]

    def _values(self, X: Array, matrices: Sequence[Array] | None) -> tuple[Array, np.ndarray]:
        """Return the values at some inputs, and a mask of those that are far from the sample."""
        is_far = np.zeros(X.shape[0], dtype=bool)
        if self.coef.shape[0] == 0:
            width = self.coef.shape[1] if matrices is None else matrices[0].shape[1]
            return namespace(X).zeros((X.shape[0], width), dtype=X.dtype, device=device(X)), is_far
        gram, coef = self._gram(X)
        if self.tells_far:
            is_far = far_inputs(_scalar(self.kernel), gram.terms[0][0], X, self.X)
        coef = as_like(coef, X)
        if matrices is None:
            return gram.matmul(coef), is_far
        terms = zip(gram.terms, matrices, strict=True)
        products = [scalar.matmul(coef @ as_like(matrix, X)) for (scalar, _), matrix in terms]
        return reduce(add, products), is_far

    def _gram(self, X: Array) -> tuple[Operator, Array]:
        """Return the Gram operator between inputs and the model, and the coefficients that it acts on."""
        if self.features_coef is None or not isinstance(self.kernel, BoundTerms):
            return self.kernel.gram(X, self.X), self.coef
        scalar, operator = self.kernel.terms[0]
        eye = namespace(X).eye(self.features_coef.shape[0], dtype=X.dtype, device=device(X))
        return kronecker(Thin(scalar.features(X), eye), operator), self.features_coef


def _scalar(kernel: BoundKernel) -> ScalarKernel:
    """Return the scalar kernel of a separable kernel."""
    return cast(BoundTerms, kernel).terms[0][0]
