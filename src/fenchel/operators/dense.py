"""Gram matrix held in memory."""

from collections.abc import Callable

import numpy as np

from fenchel._array import Array, cholesky_solver, device, is_numpy, namespace, symmetric_eigh
from fenchel.operators.eigenbasis import KroneckerBasis, times
from fenchel.operators.operator import Index, ScalarOperator, scaled, taken

__all__ = ["Dense", "shifted"]


class Dense(ScalarOperator):
    """Gram matrix held in memory.

    Parameters
    ----------
    matrix : array of shape (n, m)
        The matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense
    >>> Dense(np.array([[2.0, 1.0], [1.0, 2.0]])).matmul(np.ones((2, 1))).tolist()
    [[3.0], [3.0]]
    """

    def __init__(self, matrix: Array) -> None:
        self._matrix = matrix
        self.shape = (matrix.shape[0], matrix.shape[1])
        self.width = matrix.shape[1]

    @property
    def matrix(self) -> Array:
        """The matrix itself."""
        return self._matrix

    def matmul(self, A: Array) -> Array:
        """Return K A."""
        return times(self._matrix, A)

    def diag(self) -> Array:
        """Return the diagonal."""
        return namespace(self._matrix).linalg.diagonal(self._matrix)

    def block(self, rows: Index, columns: Index | None = None) -> "Dense":
        """Return a block of the matrix."""
        return Dense(taken(taken(self._matrix, rows), rows if columns is None else columns, axis=1))

    def factorize(self) -> KroneckerBasis:
        """Return eigenvectors and eigenvalues, clipped at zero."""
        values, vectors = symmetric_eigh(self._matrix)
        return KroneckerBasis(vectors, values)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Return the solver from a Cholesky factorisation."""
        return cholesky_solver(shifted(self._matrix, scale, shift))


@scaled.register
def _scaled(operator: Dense, root: Array) -> Dense:
    return Dense(root * operator.matrix * root.T)


def shifted(matrix: Array, scale: float, shift: float | Array) -> Array:
    """Return scale K + shift, where ``shift`` is one number or one per row."""
    result = matrix * scale
    if is_numpy(result):
        diagonal = np.einsum("ii->i", result)  # a view, for any memory layout
        diagonal += shift
        return result
    return result + namespace(matrix).eye(matrix.shape[0], dtype=matrix.dtype, device=device(matrix)) * shift
