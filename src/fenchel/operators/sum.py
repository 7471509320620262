"""Sums of Kronecker products."""

from collections.abc import Iterable, Sequence

from fenchel._array import Array, namespace
from fenchel.operators.coupled import CoupledOperator
from fenchel.operators.operator import Index, Operator, scaled

__all__ = ["Sum"]


class Sum(CoupledOperator):
    """Sum of Kronecker products (Assumption 4 of [Laforgue2020]_).

    Parameters
    ----------
    parts : sequence of Operator
        The terms, at least one of them with an output operator.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, Sum, kronecker
    >>> scalar = Dense(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> total = Sum([kronecker(scalar, np.array([1.0, 0.0])), kronecker(scalar, np.array([0.0, 1.0]))])
    >>> total.matmul(np.ones((2, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    def __init__(self, parts: Sequence[Operator]) -> None:
        self.parts = tuple(parts)
        sizes = [part.n_outputs for part in self.parts if part.n_outputs is not None]
        if not sizes:
            raise ValueError("A sum needs a part with an output operator: add the matrices themselves instead.")
        super().__init__(self.parts[0].shape, sizes[0])
        self.terms = tuple(term for part in self.parts for term in part.terms)

    def matmul(self, A: Array) -> Array:
        """Return the sum of the products."""
        return _total(part.matmul(A) for part in self.parts)

    def diag(self) -> Array:
        """Return the sum of the upper bounds."""
        return _total(part.diag() for part in self.parts)

    def block(self, rows: Index, columns: Index | None = None) -> "Sum":
        """Return the sum of the blocks."""
        return Sum([part.block(rows, columns) for part in self.parts])

    def _full(self) -> Array:
        matrices = [(scalar.matrix, output) for scalar, output in self.terms]
        return _total(_kronecker(K, output.full(K, self.n_outputs)) for K, output in matrices)


@scaled.register
def _scaled(operator: Sum, root: Array) -> Sum:
    return Sum([scaled(part, root) for part in operator.parts])


def _kronecker(K: Array, M: Array) -> Array:
    product = K[:, None, :, None] * M[None, :, None, :]
    return namespace(K).reshape(product, (K.shape[0] * M.shape[0], K.shape[1] * M.shape[1]))


def _total(arrays: Iterable[Array]) -> Array:
    total = None
    for array in arrays:
        total = array if total is None else total + array
    return total
