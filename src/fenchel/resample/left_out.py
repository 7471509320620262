"""Closed-form leave-one-out residuals of kernel ridge regression, and derivatives of functions of them."""

from dataclasses import dataclass

import numpy as np

from fenchel._array import Array, namespace
from fenchel.operators.cyclic import diagonal_blocks, solved_blocks

__all__ = ["LEAST_RIDGE", "LeftOutResiduals", "is_plausible"]

LEAST_RIDGE = 1e-13  # smallest ridge above round-off, for a kernel bounded by one
_DEVIATIONS = 3.0  # robust deviations of the log error beyond which a sample is taken for an outlier


@dataclass(frozen=True)
class LeftOutResiduals:
    r"""Residuals of samples left out one at a time.

    With :math:`A = K + \mu I` and :math:`\alpha = A^{-1} y` they are :math:`r_i = (A^{-1})_{ii}^{-1} \alpha_i`.
    Matrices may be stacked, (..., c n, c n), with targets (..., c n, p); both may be complex. If a sample has c = 2
    rows, i and n + i, both are left out together.
    """

    inverse: Array
    duals: Array
    blocks: tuple[Array, ...]  # the diagonal blocks of the inverse, each (..., n, 1)
    residuals: Array
    copies: int

    @classmethod
    def of(cls, matrix: Array, targets: Array, copies: int = 1) -> "LeftOutResiduals":
        """Return the residuals for a positive definite Hermitian matrix A, including the ridge, and targets."""
        xp = namespace(targets)
        inverse = xp.linalg.inv(matrix)
        duals = xp.matmul(inverse, targets)
        blocks = tuple(part[..., None] for part in diagonal_blocks(inverse, copies))
        return cls(inverse, duals, blocks, solved_blocks(blocks, duals), copies)

    def pulled_back(self, slopes: Array) -> Array:
        r"""Return the matrix M of a derivative :math:`\operatorname{Re} \sum_{ij} M_{ij} \, dA_{ij}`.

        ``slopes`` G are the derivatives in the residuals, :math:`\operatorname{Re} \sum_{ip} G_{ip} \, dr_{ip}`, each a
        real number times the conjugate of its residual.
        """
        xp, left = namespace(self.inverse), solved_blocks(self.blocks, slopes)
        rows = list(zip(self._parts(left), self._parts(self.inverse), strict=True))
        own = [
            sum(xp.sum(each * one, axis=-1, keepdims=True) * row for one, row in rows)
            for each in self._parts(self.residuals)
        ]
        first = xp.matmul(self.duals, xp.matmul(xp.matrix_transpose(left), self.inverse))
        return xp.matrix_transpose(xp.matmul(self.inverse, xp.concat(own, axis=-2)) - first)

    def _parts(self, stacked: Array) -> list[Array]:
        n = stacked.shape[-2] // self.copies
        return [stacked[..., k * n : (k + 1) * n, :] for k in range(self.copies)]


def is_plausible(errors: np.ndarray) -> np.ndarray:
    """Return a mask of errors that are not far above the median, by a robust deviation of their logarithms."""
    sizes = np.log(errors)
    middle = np.median(sizes)
    plausible: np.ndarray = sizes <= middle + _DEVIATIONS * 1.4826 * np.median(np.abs(sizes - middle))
    return plausible
