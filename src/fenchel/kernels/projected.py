"""Kernels on linear combinations of the inputs."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, as_like
from fenchel._check import check_array
from fenchel.kernels.images import OfImages
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear
from fenchel.kernels.scalar_kernel import ScalarKernel

__all__ = ["Projected"]


class Projected(OfImages):
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

    def __init__(self, kernel: ScalarKernel, matrix: ArrayLike) -> None:
        self.kernel = kernel
        self.matrix = matrix

    def validate(self) -> Self:
        """Raise if the kernel does not take points or the matrix has non-finite entries."""
        super().validate()
        matrix = np.asarray(self.matrix)
        if matrix.ndim > 2 or matrix.dtype.kind not in "fiu" or not np.all(np.isfinite(matrix)):
            raise ValueError(
                "The 'matrix' parameter of Projected must hold finite numbers, shape (d, k), (d,) or (). "
                f"Got {self.matrix!r} instead."
            )
        return self

    def image(self, X: Array, name: str = "X") -> Array:
        """Return the linear combinations of the columns."""
        X = check_array(X, name)
        matrix = as_like(self.matrix, X)
        if matrix.ndim and X.shape[1] != matrix.shape[0]:
            raise ValueError(f"{name} must have {matrix.shape[0]} columns, as Projected has. Got {X.shape[1]} instead.")
        return X @ matrix if matrix.ndim == 2 else X * matrix

    def pulled_back(self, gradient: Array, X: Array) -> Array:
        """Return derivatives with respect to the columns from those with respect to their combinations."""
        matrix = as_like(self.matrix, gradient)
        return gradient @ matrix.T if matrix.ndim == 2 else gradient * matrix

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on, for any number of columns."""
        return [cls(Gaussian("median"), 2.0), cls(Laplacian(0.5) + Linear(), 0.5)]
