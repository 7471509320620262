"""The output operator of a Kronecker product."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel._array import Array, as_index, device, host, namespace, symmetric_eigh

__all__ = ["Columns", "Output", "columns_of", "in_order"]

Columns = list[tuple[float, np.ndarray | None]]  # eigenvalues, each with its columns; None means all columns


@dataclass(frozen=True, eq=False)
class Output:
    """An operator M on the outputs.

    Parameters
    ----------
    matrix : array of shape (p, p) or (p,), or None
        The matrix, its diagonal if it is diagonal, or ``None`` for the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Output
    >>> Output(np.array([1.0, 3.0])).times(np.ones((2, 2))).tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """

    matrix: Array | None

    @property
    def is_diagonal(self) -> bool:
        """Whether the operator does not mix columns."""
        return self.matrix is None or self.matrix.ndim == 1

    def times(self, A: Array) -> Array:
        """Return A M."""
        if self.matrix is None:
            return A
        return A * self.matrix if self.is_diagonal else A @ self.matrix

    def full(self, like: Array, size: int) -> Array:
        """Return the matrix (p, p)."""
        if self.matrix is not None and self.matrix.ndim == 2:
            return self.matrix
        eye = namespace(like).eye(size, dtype=like.dtype, device=device(like))
        return eye if self.matrix is None else eye * self.matrix

    def entries(self, like: Array, columns: Array) -> Array:
        """Return the entries between given columns, which may repeat."""
        xp = namespace(like)
        if self.matrix is not None and self.matrix.ndim == 2:
            return xp.take(xp.take(self.matrix, columns, axis=0), columns, axis=1)
        weights = xp.ones_like(like[0, :1]) if self.matrix is None else xp.take(self.matrix, columns)
        return xp.where(columns[:, None] == columns[None, :], weights[None, :], xp.zeros_like(weights[None, :]))

    @cached_property
    def eigh(self) -> tuple[Array | None, Array | None]:
        """Eigenvalues (``None``: all one) and eigenvectors (``None``: the columns themselves)."""
        return (self.matrix, None) if self.is_diagonal else symmetric_eigh(self.matrix)

    @cached_property
    def norm(self) -> float:
        """The largest eigenvalue."""
        values = self.eigh[0]
        return 1.0 if values is None else float(namespace(values).max(values))

    @cached_property
    def groups(self) -> Columns:
        """The distinct eigenvalues with the columns of the eigenbasis that belong to them."""
        if self.eigh[0] is None:
            return [(1.0, None)]
        numbers = host(self.eigh[0])
        distinct = np.unique(numbers)
        if len(distinct) == 1:
            return [(float(distinct[0]), None)]
        return [(float(value), np.flatnonzero(numbers == value)) for value in distinct]


def columns_of(rows: Array, columns: np.ndarray | None) -> Array:
    """Return the selected columns; ``None`` means all of them."""
    return rows if columns is None else namespace(rows).take(rows, as_index(columns, rows), axis=1)


def in_order(parts: list[Array], groups: list[np.ndarray | None]) -> Array:
    """Concatenate the columns of several groups in their original order."""
    if len(parts) == 1:
        return parts[0]
    xp = namespace(parts[0])
    order = np.argsort(np.concatenate([columns for columns in groups if columns is not None]))
    return xp.take(xp.concat(parts, axis=1), as_index(order, parts[0]), axis=1)
