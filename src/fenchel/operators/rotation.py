"""Rotation of the outputs into the eigenbasis of their operator."""

from dataclasses import dataclass, replace

import numpy as np

from fenchel._array import Array, as_index, host, namespace, row_norms
from fenchel.operators.eigenbasis import Eigenbasis, KroneckerBasis
from fenchel.operators.kronecker import kronecker
from fenchel.operators.operator import Operator
from fenchel.operators.output import Output

__all__ = ["Rotation", "rotation_of"]


@dataclass(frozen=True)
class Rotation:
    """Outputs in the eigenbasis of their operator, with the null space reduced to one column that holds the norm.

    Within the null space, the optimal duals of a loss of the row norm point along the targets: their size is enough.

    Attributes
    ----------
    gram : Operator
        The operator in these coordinates.
    targets : array of shape (n, q)
        The targets in these coordinates.
    basis : array of shape (p, p) or None
        Eigenvectors of the output operator; ``None`` if it is diagonal.
    head, tail : array of int
        Columns of the range and of the null space.
    units : array of shape (n, len(tail))
        Direction of each target in the null space.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, kronecker, rotation_of
    >>> gram = kronecker(Dense(np.array([[2.0, 1.0], [1.0, 2.0]])), np.array([[1.0, 1.0], [1.0, 1.0]]))
    >>> rotation_of(gram, np.eye(2)).gram.terms[0][1].matrix.round(4).tolist()  # its eigenvalues
    [2.0, 0.0]
    """

    gram: Operator
    targets: Array
    basis: Array | None
    head: Array
    tail: Array
    units: Array

    def turned(self, basis: Eigenbasis) -> Eigenbasis:
        """Return the eigenbasis of the rotated operator, given that of the original one."""
        assert isinstance(basis, KroneckerBasis)  # only Kronecker products have a rotation
        return replace(basis, right=None, right_values=self.gram.terms[0][1].matrix)

    def forward(self, rows: Array) -> Array:
        """Return rows in these coordinates; in the null space, their component along the targets."""
        xp = namespace(rows)
        turned = rows if self.basis is None else rows @ self.basis
        head = xp.take(turned, self.head, axis=1)
        if self.tail.shape[0] == 0:
            return head
        along = xp.sum(xp.take(turned, self.tail, axis=1) * self.units, axis=1, keepdims=True)
        return xp.concat([head, along], axis=1)

    def back(self, rows: Array) -> Array:
        """Return rows in the original coordinates."""
        xp = namespace(rows)
        count = self.head.shape[0]
        parts = [rows[:, :count]]
        if self.tail.shape[0] > 0:
            parts.append(rows[:, count:] * self.units)
        order = xp.argsort(xp.concat([self.head, self.tail]))
        turned = xp.take(xp.concat(parts, axis=1), order, axis=1)
        return turned if self.basis is None else turned @ self.basis.T


def rotation_of(gram: Operator, targets: Array) -> Rotation | None:
    """Return coordinates of the outputs in which the operator is diagonal and its null space is one column.

    Only losses of the row norm can be treated in these coordinates.

    Parameters
    ----------
    gram : Operator
        The Gram operator.
    targets : array of shape (n, p)
        The targets.

    Returns
    -------
    rotation : Rotation or None
        ``None`` if nothing is gained by these coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, kronecker, rotation_of
    >>> gram = kronecker(Dense(np.array([[2.0, 1.0], [1.0, 2.0]])), np.array([[1.0, 1.0], [1.0, 1.0]]))
    >>> rotation_of(gram, np.eye(2)).targets.round(4).tolist()  # the null space is one column, of norms
    [[0.7071, 0.7071], [0.7071, 0.7071]]
    """
    scalar, output = gram.terms[0] if len(gram.terms) == 1 else (None, Output(None))
    values, basis = output.eigh
    xp = namespace(targets)
    if scalar is None or values is None or (basis is None and float(xp.min(values)) > 0):
        return None
    is_null = host(values <= 1e-15 * float(xp.max(values)))
    head, tail = (as_index(np.flatnonzero(mask), targets) for mask in (~is_null, is_null))
    turned = targets if basis is None else targets @ basis
    columns, eigenvalues = xp.take(turned, head, axis=1), xp.take(values, head)
    rest = xp.take(turned, tail, axis=1)
    sizes = row_norms(rest)
    units = rest / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
    if tail.shape[0] > 0:
        columns, eigenvalues = xp.concat([columns, sizes], axis=1), xp.concat([eigenvalues, 0 * values[:1]])
    return Rotation(kronecker(scalar, eigenvalues), columns, basis, head, tail, units)
