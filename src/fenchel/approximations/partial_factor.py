"""Factor of the Gram matrix on some landmarks, and the residual that it leaves unexplained."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fenchel._array import Array, host, namespace
from fenchel.approximations.landmark_features import inverse_root, kernel_product, rows_of
from fenchel.data.content import contents
from fenchel.kernels import ScalarKernel

__all__ = ["PartialFactor", "Sample"]


@dataclass(frozen=True)
class Sample:
    """A sample for an approximation: kernel, inputs, sample weights, weight of the squared norm."""

    kernel: ScalarKernel
    X: Array
    masses: np.ndarray  # (n,)
    lam: float
    order: np.ndarray  # of the samples by what they contain, in which landmarks are drawn

    @classmethod
    def of(cls, kernel: ScalarKernel, X: Array, weights: Array | None, lam: float) -> "Sample":
        """Return the sample; ``weights=None`` weighs all inputs equally."""
        masses = np.ones(X.shape[0]) if weights is None else host(weights).astype(np.float64)
        return cls(kernel, X, masses, lam, np.argsort(contents(X, weights), kind="stable"))

    @cached_property
    def diagonal(self) -> np.ndarray:
        """k(x, x) of each input, (n,)."""
        return host(self.kernel.diag(self.X)).astype(np.float64)


@dataclass(frozen=True)
class PartialFactor:
    r"""Gram matrix projected on landmarks, :math:`\hat K = F F^\top`, built block of columns by block of columns.

    Columns are computed on first use; a factor with more landmarks reuses those of the former one.
    """

    sample: Sample
    index: np.ndarray  # indices of the landmarks, in the order in which they were drawn
    former: "PartialFactor | None" = field(default=None, repr=False)

    @classmethod
    def empty(cls, sample: Sample) -> "PartialFactor":
        """Return the factor without landmarks."""
        return cls(sample, np.zeros(0, dtype=np.int64))

    def extended(self, index: np.ndarray) -> "PartialFactor":
        """Return the factor with more landmarks."""
        return PartialFactor(self.sample, np.append(self.index, index), self)

    @cached_property
    def blocks(self) -> tuple[Array, ...]:
        """The columns of F, in blocks (n, d)."""
        if self.former is None:
            return ()
        X, known, new = self.sample.X, self.former.blocks, self.new
        schur = self.sample.kernel(rows_of(X, new))
        for block in known:
            part = rows_of(block, new)
            schur = schur - part @ part.T
        root = inverse_root((schur + schur.T) / 2, float(np.max(self.sample.diagonal)) * len(self.index) / len(new))
        left = kernel_product(self.sample.kernel, X, rows_of(X, new), root)
        for block in known:
            left = left - block @ (rows_of(block, new).T @ root)
        return (*known, left)

    @property
    def new(self) -> np.ndarray:
        """Landmarks that are not in the former factor."""
        return self.index[0 if self.former is None else len(self.former.index) :]

    @cached_property
    def unexplained(self) -> np.ndarray:
        """Diagonal of K minus its projection, (n,)."""
        if self.former is None:
            return self.sample.diagonal
        last = self.blocks[-1]
        return np.clip(self.former.unexplained - host(namespace(last).sum(last**2, axis=1)), 0.0, None)

    @cached_property
    def distances(self) -> np.ndarray:
        """Squared distances, in the space of the kernel, between each sample and its nearest landmark, (n,)."""
        if self.former is None:
            return np.full(len(self.sample.masses), np.inf)
        X, diagonal = self.sample.X, self.sample.diagonal
        products = host(self.sample.kernel(X, rows_of(X, self.new)))
        squares = diagonal + np.min(diagonal[self.new] - 2 * products, axis=1)
        return np.minimum(self.former.distances, np.clip(squares, 0.0, None))

    @property
    def predicted_gap(self) -> float:
        r"""The trace :math:`\operatorname{tr}(K - \hat K) / (\lambda n^2)`."""
        sample = self.sample
        return float(sample.masses @ self.unexplained) / (sample.lam * float(sample.masses.sum()) ** 2)
