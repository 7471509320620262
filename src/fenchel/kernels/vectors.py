"""Base class of the kernels between vectors."""

from abc import ABC, abstractmethod

import numpy as np

from fenchel._array import Array, device, namespace
from fenchel._check import check_array
from fenchel.kernels._distances import same_dtype
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.tags import KernelTags

__all__ = ["VectorKernel"]


class VectorKernel(ScalarKernel, ABC):
    """Kernel between the rows of two matrices, with validation shared by all such kernels."""

    tags = KernelTags(diag_bound=1.0)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.check()
        X = self.points(X, "X")
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is checked later on the Gram matrix
            return self._values(X, None) if Z is None else self._values(*self.pair(X, Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.check()
        return self._diagonal(self.points(X, "X"))

    @abstractmethod
    def _values(self, X: Array, Z: Array | None) -> Array:
        """Return the kernel matrix of checked arguments."""

    def _diagonal(self, X: Array) -> Array:
        """Return the diagonal for a checked argument; ones unless overridden."""
        return namespace(X).ones(X.shape[0], dtype=X.dtype, device=device(X))

    def points(self, values: Array, name: str) -> Array:
        """Return a sample of vectors, checked."""
        values = check_array(values, name, takes_sparse=True)
        if values.shape[1] == 0:
            raise ValueError(f"{name} must have at least one column. Got shape {tuple(values.shape)} instead.")
        return values

    def pair(self, X: Array, Z: Array) -> tuple[Array, Array]:
        """Return checked points and a second sample with the same number of columns, in a common dtype."""
        Z = self.points(Z, "Z")
        if Z.shape[1] != X.shape[1]:
            raise ValueError(f"Z must have {X.shape[1]} columns, as X has. Got shape {tuple(Z.shape)} instead.")
        return same_dtype(X, Z)
