"""Kronecker products of a Gram matrix with an operator on the outputs, for separable kernels."""

from collections.abc import Callable
from dataclasses import replace

from fenchel._array import Array
from fenchel.operators.conjugate import ConjugateGradients
from fenchel.operators.eigenbasis import Eigenbasis, KroneckerBasis
from fenchel.operators.operator import Index, Operator, ScalarOperator, scaled
from fenchel.operators.output import Output, columns_of, in_order

__all__ = ["Kronecker", "entries", "kronecker"]


class Kronecker(Operator):
    """Kronecker product K ⊗ M, the Gram operator of the kernel k(x, z) M.

    Parameters
    ----------
    scalar : ScalarOperator
        The scalar part K.
    output : Output
        The operator M on the outputs.
    basis : KroneckerBasis or None, default=None
        The eigenbasis of K, if already known.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, Kronecker, Output
    >>> operator = Kronecker(Dense(np.array([[2.0, 1.0], [1.0, 2.0]])), Output(np.array([1.0, 3.0])))
    >>> operator.matmul(np.ones((2, 2))).tolist()
    [[3.0, 9.0], [3.0, 9.0]]
    """

    def __init__(self, scalar: ScalarOperator, output: Output, basis: KroneckerBasis | None = None) -> None:
        self.scalar = scalar
        self.output = output
        self.basis = basis
        self.shape = scalar.shape
        self.n_outputs = None if output.matrix is None else output.matrix.shape[0]
        self.terms = ((scalar, output),)
        self.why_not_factorize = scalar.why_not_factorize

    def matmul(self, A: Array) -> Array:
        """Return K A M."""
        return self.scalar.matmul(self.output.times(A))

    def diag(self) -> Array:
        """Return k(x_i, x_i) |M|."""
        return self.scalar.diag() * self.output.norm

    def norm(self) -> float:
        """Return |K| |M|."""
        return self.scalar.norm() * self.output.norm

    def block(self, rows: Index, columns: Index | None = None) -> "Kronecker":
        """Return the block of the scalar part, times the same M."""
        block = self.scalar.block(rows, columns)
        return Kronecker(block, self.output)

    def factorize(self) -> Eigenbasis:
        """Return the eigenbasis of each side."""
        values, right = self.output.eigh
        basis = self.scalar.factorize() if self.basis is None else self.basis
        return replace(basis, right=right, right_values=values)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Return the solver in the eigenbases or, if the shifts differ, one system per distinct eigenvalue of M."""
        if isinstance(shift, float | int) and self.why_not_factorize is not None:
            return ConjugateGradients(self, scale, shift)
        if isinstance(shift, float | int):
            return self.factorize().function(lambda values: 1 / (shift + scale * values))
        groups, right = self.output.groups, self.output.eigh[1]
        solvers = [self.scalar.solver(scale * value, shift) for value, _ in groups]

        def solve(B: Array) -> Array:
            turned = B if right is None else B @ right
            parts = [inner(columns_of(turned, columns)) for inner, (_, columns) in zip(solvers, groups, strict=True)]
            found = in_order(parts, [columns for _, columns in groups])
            return found if right is None else found @ right.T

        return solve


@scaled.register
def _scaled(operator: Kronecker, root: Array) -> Kronecker:
    return Kronecker(scaled(operator.scalar, root), operator.output)  # type: ignore[arg-type]  # scalar as well


def kronecker(scalar: ScalarOperator, matrix: Array | None = None) -> Operator:
    """Return the Kronecker product K ⊗ M.

    Parameters
    ----------
    scalar : ScalarOperator
        The scalar part K.
    matrix : array of shape (p, p) or (p,), or None, default=None
        The operator M on the outputs, or its diagonal; ``None`` means the identity.

    Returns
    -------
    operator : Operator
        ``scalar`` itself if ``matrix`` is ``None``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, kronecker
    >>> kronecker(Dense(np.array([[2.0, 1.0], [1.0, 2.0]])), np.array([1.0, 3.0])).matmul(np.ones((2, 2))).tolist()
    [[3.0, 9.0], [3.0, 9.0]]
    """
    return scalar if matrix is None else Kronecker(scalar, Output(matrix))


def entries(operator: Operator, rows: Array, columns: Array) -> Array:
    """Return the matrix between single coordinates, each given by its sample and its output column.

    Parameters
    ----------
    operator : Operator
        A sum of Kronecker products, that is, one with ``terms``.
    rows, columns : array of int of shape (N,)
        Sample and output column of each coordinate.

    Returns
    -------
    matrix : array of shape (N, N)
        The entries.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, entries, kronecker
    >>> operator = kronecker(Dense(np.array([[2.0, 1.0], [1.0, 2.0]])), np.array([1.0, 3.0]))
    >>> entries(operator, np.array([0, 1]), np.array([1, 1])).tolist()
    [[6.0, 3.0], [3.0, 6.0]]
    """
    total = None
    for scalar, output in operator.terms:
        part = scalar.block(rows).matrix
        part = part * output.entries(part, columns)
        total = part if total is None else total + part
    return total
