"""Kernels on linear combinations of the inputs."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from fenchel._array import Array, as_like
from fenchel._check import check_array
from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.distance_terms import DistanceTerm, distance_terms
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear

__all__ = ["Projected"]


class Projected(ScalarKernel):
    r"""Kernel on linear combinations of the columns, that is, with a Mahalanobis metric.

    .. math:: k(x, z) = k_1(A^\top x, A^\top z), \qquad \|A^\top x - A^\top z\|^2 = (x - z)^\top A A^\top (x - z).

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel :math:`k_1`, on vectors.
    matrix : array of shape (d, k) or (d,), or float
        The matrix A. A vector is its diagonal, one weight per column; a number is one weight for all columns.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Projected
    >>> kernel = Projected(Gaussian(1.0), [1.0, 0.0])  # the second column does not matter
    >>> kernel(np.array([[0.0, 1.0], [0.0, 7.0]]))
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, kernel: ScalarKernel, matrix: Any) -> None:
        self.kernel = kernel
        self.matrix = matrix

    def validate(self) -> Self:
        """Raise if the kernel does not take points or the matrix has non-finite entries."""
        if not isinstance(self.kernel, ScalarKernel) or self.kernel.is_pairwise:
            raise TypeError(
                f"The 'kernel' parameter of Projected must be a ScalarKernel on points. Got {self.kernel!r} instead."
            )
        matrix = np.asarray(self.matrix)
        if matrix.ndim > 2 or matrix.dtype.kind not in "fiu" or not np.all(np.isfinite(matrix)):
            raise ValueError(
                "The 'matrix' parameter of Projected must hold finite numbers, shape (d, k), (d,) or (). "
                f"Got {self.matrix!r} instead."
            )
        return super().validate()

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.validate()
        return self.kernel(self._projected(X, "X"), None if Z is None else self._projected(Z, "Z"))

    @property
    def diag_bound(self) -> float:  # type: ignore[override]
        """The least upper bound of k(x, x) over all inputs."""
        return self.kernel.diag_bound

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.validate()
        return self.kernel.diag(self._projected(X, "X"))

    def resolve(self, X: Array, weights: Array | None = None) -> "Projected":
        """Return the kernel with its data-dependent parameters set from the projected sample."""
        self.validate()
        return Projected(self.kernel.resolve(self._projected(X, "X"), weights), self.matrix)

    @property
    def has_features(self) -> bool:
        """Whether the kernel has features."""
        return self.kernel.has_features

    def features(self, X: Array) -> Array | None:
        """Return the features of the projected inputs."""
        return self.kernel.features(self._projected(X, "X")) if self.has_features else None

    def mapped(self, change: Callable[[ScalarKernel, Array], ScalarKernel], X: Array) -> "Projected":
        """Return ``change`` applied to the kernel on the projected inputs."""
        return Projected(self.kernel.mapped(change, self._projected(X, "X")), self.matrix)

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        """Return the sum over j of w_ij times the gradient of k(x_i, z_j) in x_i, shape (n, d) or (p, n, d)."""
        self.validate()
        return self._back(self.kernel.weighted_gradient(self._projected(X, "X"), self._projected(Z, "Z"), weights))

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of ``features(X) @ coef``, (p, n, d)."""
        return self._back(self.kernel.feature_gradient(self._projected(X, "X"), coef))

    @property
    def is_trusted(self) -> bool:
        """Whether the kernel is positive semidefinite by construction."""
        return self.kernel.is_trusted

    def _projected(self, X: Array, name: str) -> Array:
        X = check_array(X, name)
        matrix = as_like(self.matrix, X)
        if matrix.ndim and X.shape[1] != matrix.shape[0]:
            raise ValueError(f"{name} must have {matrix.shape[0]} columns, as Projected has. Got {X.shape[1]} instead.")
        return X @ matrix if matrix.ndim == 2 else X * matrix

    def _back(self, gradient: Array) -> Array:
        """Map derivatives in the projected coordinates back to the columns."""
        matrix = as_like(self.matrix, gradient)
        return gradient @ matrix.T if matrix.ndim == 2 else gradient * matrix

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on, for any number of columns."""
        return [cls(Gaussian("median"), 2.0), cls(Laplacian(0.5) + Linear(), 0.5)]


@distance_terms.register
def _(kernel: Projected, X: Array) -> list[DistanceTerm] | None:
    return distance_terms(kernel.kernel, kernel._projected(X, "X"))
