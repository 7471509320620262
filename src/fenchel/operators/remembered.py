"""Gram matrix that keeps its eigenvectors and its blocks, for several problems that share them."""

from collections.abc import Callable
from threading import RLock
from typing import TypeVar, cast

from fenchel._array import Array, host
from fenchel.operators.eigenbasis import KroneckerBasis
from fenchel.operators.operator import Index, ScalarOperator, scaled

__all__ = ["Remembered"]

T = TypeVar("T")


class Remembered(ScalarOperator):
    """Gram matrix that keeps its eigenvectors and its blocks.

    Problems with the same inputs and other output operators then share every factorisation, also those of their folds.

    Parameters
    ----------
    scalar : ScalarOperator
        The matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, Remembered
    >>> gram = Remembered(Dense(np.array([[2.0, 1.0], [1.0, 2.0]])))
    >>> gram.factorize() is gram.factorize()
    True
    """

    def __init__(self, scalar: ScalarOperator) -> None:
        self.scalar = scalar
        self.shape = scalar.shape
        self.width = scalar.width
        self.why_not_factorize = scalar.why_not_factorize
        self._known: dict[object, object] = {}
        self._lock = RLock()  # folds may be solved in threads

    def __reduce__(self) -> "tuple[type[Remembered], tuple[ScalarOperator]]":
        return Remembered, (self.scalar,)

    @property
    def matrix(self) -> Array:
        """The matrix itself."""
        return self.scalar.matrix

    def matmul(self, A: Array) -> Array:
        """Return K A."""
        return self.scalar.matmul(A)

    def diag(self) -> Array:
        """Return the diagonal."""
        return self.scalar.diag()

    def norm(self) -> float:
        """Return the norm, rounded up."""
        return self._once("norm", self.scalar.norm)

    def factorize(self) -> KroneckerBasis:
        """Return eigenvectors and eigenvalues."""
        return self._once("basis", self.scalar.factorize)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Return the solver of the matrix."""
        return self.scalar.solver(scale, shift)

    def block(self, rows: Index, columns: Index | None = None) -> "Remembered":
        """Return a block, the same object for the same rows and columns."""
        key = _key(rows), None if columns is None else _key(columns)
        return self._once(key, lambda: Remembered(self.scalar.block(rows, columns)))

    def _once(self, name: object, compute: Callable[[], T]) -> T:
        with self._lock:
            if name not in self._known:
                self._known[name] = compute()
            return cast(T, self._known[name])


@scaled.register
def _scaled(operator: Remembered, root: Array) -> ScalarOperator:
    return cast(ScalarOperator, scaled(operator.scalar, root))


def _key(index: Index) -> object:
    return (index.start, index.stop, index.step) if isinstance(index, slice) else host(index).tobytes()
