"""Base classes of Gram operators."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import singledispatch

from fenchel._array import Array, namespace
from fenchel.exceptions import IncompatibleError
from fenchel.operators.eigenbasis import Eigenbasis, KroneckerBasis
from fenchel.operators.lanczos import largest_eigenvalue
from fenchel.operators.output import Output

__all__ = ["Index", "Operator", "ScalarOperator", "is_thin", "scaled", "taken", "width"]

Index = Array | slice


class Operator(ABC):
    """The Gram operator of a kernel: (K A)_i = sum_j K(x_i, z_j) a_j on n × p arrays, positive semidefinite if square.

    Arrays may also be (n, B, p), for B problems side by side.
    """

    shape: tuple[int, int]  # number of row samples and of column samples
    n_outputs: int | None = None  # p; None: any number of columns, all multiplied by one matrix
    terms: tuple[tuple["ScalarOperator", Output], ...] = ()  # K as a sum of Kronecker products; empty if it is not one
    why_not_factorize: str | None = None  # why ``factorize`` is not possible

    @abstractmethod
    def matmul(self, A: Array) -> Array:
        """Return K A."""

    @abstractmethod
    def diag(self) -> Array:
        """Return upper bounds on the norms of the diagonal blocks K(x_i, x_i), shape (n,)."""

    @abstractmethod
    def block(self, rows: Index, columns: Index | None = None) -> "Operator":
        """Return the operator between the row and column samples (by default the same), given by indices or slices."""

    @abstractmethod
    def factorize(self) -> Eigenbasis:
        """Return the eigenbasis, or raise ``IncompatibleError`` with ``why_not_factorize``."""

    @abstractmethod
    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Return ``B -> (shift + scale K)^-1 B`` for (n, p) arrays; ``shift`` is one number or one per row, (n,)."""

    def norm(self) -> float:
        """Return an upper bound on the operator norm, tight to 0.1 %."""
        return largest_eigenvalue(self.matmul, (self.shape[0], self.n_outputs or 1), self.diag())

    def apply(self, f: Callable[[Array], Array], B: Array) -> Array:
        """Return f(K) B for a function of the eigenvalues."""
        return self.factorize().function(f)(B)


class ScalarOperator(Operator, ABC):
    """The Gram matrix of a scalar kernel, which multiplies every column."""

    width: int  # numbers stored per row

    @property
    def terms(self) -> tuple[tuple["ScalarOperator", Output], ...]:  # type: ignore[override]  # a cycle would hold memory
        """The operator itself, times the identity."""
        return ((self, Output(None)),)

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """The matrix, (n, m), for methods that need it; raises ``IncompatibleError`` if it is too large."""

    @abstractmethod
    def block(self, rows: Index, columns: Index | None = None) -> "ScalarOperator":
        """Return the matrix between the selected row and column samples."""

    @abstractmethod
    def factorize(self) -> KroneckerBasis:
        """Return the eigenbasis of the matrix."""


@singledispatch
def scaled(operator: Operator, root: Array) -> Operator:
    """Return the operator with blocks root_i K(x_i, x_j) root_j.

    Parameters
    ----------
    operator : Operator
        A Gram operator.
    root : array of shape (n, 1)
        Square roots of the sample weights.

    Returns
    -------
    scaled : Operator
        The scaled operator.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, scaled
    >>> scaled(Dense(np.array([[2.0, 1.0], [1.0, 2.0]])), np.array([[1.0], [2.0]])).matrix.tolist()
    [[2.0, 2.0], [2.0, 8.0]]
    """
    raise IncompatibleError(f"{type(operator).__name__} cannot be scaled: sample weights are not supported.")


def width(operator: Operator) -> int:
    """Return how many numbers an operator stores per row.

    Parameters
    ----------
    operator : Operator
        A Gram operator.

    Returns
    -------
    width : int
        The number of features, or of columns of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Thin, width
    >>> width(Thin(np.ones((5, 2))))
    2
    """
    return operator.terms[0][0].width if len(operator.terms) == 1 else operator.shape[1]


def is_thin(operator: Operator) -> bool:
    """Whether the operator is a product of fewer features than samples.

    Parameters
    ----------
    operator : Operator
        A Gram operator.

    Returns
    -------
    is_thin : bool
        ``True`` if it has fewer features than rows and columns.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, Thin, is_thin
    >>> is_thin(Thin(np.ones((5, 2)))), is_thin(Dense(np.array([[2.0, 1.0], [1.0, 2.0]])))
    (True, False)
    """
    return width(operator) < min(operator.shape)


def taken(array: Array, index: Index, axis: int = 0) -> Array:
    """Return the selected part of an array along one axis."""
    if isinstance(index, slice):
        return array[(slice(None),) * axis + (index, ...)]
    return namespace(array).take(array, index, axis=axis)
