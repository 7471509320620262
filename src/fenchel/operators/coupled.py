"""Operators that mix samples and outputs, with the eigenbasis of one large matrix."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from fenchel._array import Array, cholesky_solver, namespace, symmetric_eigh
from fenchel.exceptions import IncompatibleError
from fenchel.operators.dense import shifted
from fenchel.operators.eigenbasis import CoupledBasis, Eigenbasis
from fenchel.operators.operator import Operator

__all__ = ["DENSE_LIMIT", "CoupledOperator"]

DENSE_LIMIT = 4000  # largest n * p for which the full matrix is formed


class CoupledOperator(Operator, ABC):
    """An operator that is not a Kronecker product."""

    n_outputs: int

    def __init__(self, shape: tuple[int, int], n_outputs: int) -> None:
        self.shape = shape
        self.n_outputs = n_outputs
        size = shape[0] * n_outputs
        if size > DENSE_LIMIT:
            self.why_not_factorize = (
                f"the eigendecomposition of this operator-valued kernel needs a {size} × {size} matrix; the limit is "
                f"{DENSE_LIMIT}. Use a separable kernel, or solver='apgd'."
            )

    @abstractmethod
    def _full(self) -> Array:
        """Return the (n p) × (n p) matrix."""

    def factorize(self) -> Eigenbasis:
        """Return the eigenbasis of the full matrix."""
        values, vectors = symmetric_eigh(self._matrix())
        return CoupledBasis(vectors, values, self.n_outputs)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Factorise the full matrix by Cholesky."""
        matrix = self._matrix()
        xp = namespace(matrix)
        long = shift if isinstance(shift, float | int) else xp.repeat(shift, self.n_outputs)
        solve = cholesky_solver(shifted(matrix, scale, long))
        return lambda B: xp.reshape(solve(xp.reshape(B, (-1, 1))), B.shape)

    def _matrix(self) -> Array:
        if self.why_not_factorize is not None:
            raise IncompatibleError(self.why_not_factorize)
        return self._full()
