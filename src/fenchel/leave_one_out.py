"""Leave-one-out residuals of kernel ridge regression in closed form, and derivatives of functions of them."""

from dataclasses import dataclass

import numpy as np

from fenchel._array import Array, namespace

__all__ = ["LEAST_RIDGE", "LeftOutResiduals", "is_plausible"]

LEAST_RIDGE = 1e-13  # of a kernel whose values are at most one: below it is round-off
_DEVIATIONS = 3.0  # robust ones, of the logarithm of an error, beyond which a sample is taken for wrong


@dataclass(frozen=True)
class LeftOutResiduals:
    r"""Residuals of samples that are left out one by one.

    With :math:`A = K + \mu I` and :math:`\alpha = A^{-1} y` they are :math:`r_i = \alpha_i / (A^{-1})_{ii}`. Matrices
    may be stacked, (..., n, n), and so are their targets, (..., n, p); both may be complex.
    """

    inverse: Array
    duals: Array
    diagonal: Array  # (..., n, 1), of the inverse
    residuals: Array

    @classmethod
    def of(cls, matrix: Array, targets: Array) -> "LeftOutResiduals":
        """Return the residuals of a positive definite Hermitian matrix A, ridge included, and of targets."""
        xp = namespace(targets)
        inverse = xp.linalg.inv(matrix)
        duals = xp.matmul(inverse, targets)
        diagonal = xp.linalg.diagonal(inverse)
        diagonal = (xp.real(diagonal) if xp.isdtype(diagonal.dtype, "complex floating") else diagonal)[..., None]
        return cls(inverse, duals, diagonal, duals / diagonal)

    def pulled_back(self, slopes: Array) -> Array:
        r"""Return the matrix M of a derivative :math:`\operatorname{Re} \sum_{ij} M_{ij} \, dA_{ij}`.

        ``slopes`` G are those in the residuals, :math:`\operatorname{Re} \sum_{ip} G_{ip} \, dr_{ip}`, each a real
        number times the conjugate of its residual.
        """
        xp = namespace(self.inverse)
        left = xp.matrix_transpose(slopes / self.diagonal)
        middle = xp.sum(slopes * self.residuals, axis=-1, keepdims=True) / self.diagonal
        first = xp.matmul(self.duals, xp.matmul(left, self.inverse))
        return xp.matrix_transpose(xp.matmul(self.inverse, middle * self.inverse) - first)


def is_plausible(errors: np.ndarray) -> np.ndarray:
    """Whether each error is not far above the median, by a robust deviation of their logarithms."""
    sizes = np.log(errors)
    middle = np.median(sizes)
    plausible: np.ndarray = sizes <= middle + _DEVIATIONS * 1.4826 * np.median(np.abs(sizes - middle))
    return plausible
