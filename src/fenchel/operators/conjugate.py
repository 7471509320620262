"""Preconditioned conjugate gradients for linear systems given by products, for all columns at once."""

from dataclasses import replace
from typing import Any

from fenchel._array import Array, eps, namespace, settled
from fenchel.operators.kept_rows import KeptRows
from fenchel.operators.operator import Operator

__all__ = ["ConjugateGradients"]

_RTOL = 1e-12  # tolerance for a system that is solved once
STEPS = 200  # maximum number of iterations


class ConjugateGradients:
    r"""Conjugate gradients for (shift + scale K ⊗ M) A = B, for all columns at once in the eigenbasis of M.

    The preconditioner is the inverse of the same operator with the features in place of K. The last solution and its
    product are kept as the start of the next solve; they do not depend on scale and shift. Systems (n, B, p) side by
    side have a scale and a shift each, (1, B, 1), and may leave out rows, as in ``Systems``.

    Parameters
    ----------
    gram : Operator
        A ``Streamed`` operator, or its Kronecker product with an operator on the outputs.
    scale, shift : float or array of shape (1, B, 1)
        Both positive.
    rtol : float
        Relative residual at which the solve ends.
    before : ConjugateGradients or None
        The solver for another scale and shift, whose last solution is the start.
    rows : KeptRows or None
        The rows of each system, if some are left out: there the solution is zero, but its product with K is known.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.operators import ConjugateGradients, Streamed
    >>> X = np.array([[0.0], [1.0]])
    >>> gram = Streamed(Gaussian(1.0), X, features=lambda: np.linalg.cholesky(Gaussian(1.0)(X)))
    >>> solution = ConjugateGradients(gram, scale=1.0, shift=1.0)(np.ones((2, 1)))
    >>> bool(np.allclose((np.eye(2) + Gaussian(1.0)(X)) @ solution, 1.0))
    True
    """

    def __init__(
        self,
        gram: Operator,
        scale: float | Array,
        shift: float | Array,
        rtol: float = _RTOL,
        before: "ConjugateGradients | None" = None,
        rows: KeptRows | None = None,
    ) -> None:
        scalar: Any = gram.terms[0][0]
        self.gram = gram
        self.rtol = rtol
        self.rows = rows
        self._scalar = scalar
        values, self._right = gram.terms[0][1].eigh
        self._scales = scale if values is None else scale * values
        self._shift = shift
        self._basis = replace(scalar.basis, right_values=values)
        self.last: tuple[Array, Array] | None = None if before is None else before.last
        if rows is not None:
            self._precondition = rows.inverse(self._scales, shift)
        elif isinstance(shift, float | int):
            self._precondition = self._basis.function(lambda eigenvalues: 1 / (shift + scale * eigenvalues))
        else:
            self._precondition = self._basis.function(lambda values: 1 / (shift + scale * values[:, None, :]))

    def begin(self, gram: Operator, A: Array, product: Array) -> None:
        """Start the next solve at A, whose product with K (without M) is known; later products use ``gram``."""
        self.gram, self._scalar = gram, gram.terms[0][0]
        self.last = self._turned(A), self._turned(product)

    def product(self) -> Array:
        """Return the product of K with the last solution times M."""
        assert self.last is not None  # a solve has been completed
        values = self.gram.terms[0][1].eigh[0]
        return self._back(self.last[1] if values is None else self.last[1] * values)

    def thin_product(self, A: Array) -> Array:
        """Return the product with the features in place of K, times M."""
        turned = self._turned(A)
        return self._back(self._basis.function(lambda values: values if A.ndim == 2 else values[:, None, :])(turned))

    def __call__(self, B: Array) -> Array:
        """Return A."""
        xp, right = namespace(B), self._turned(B)
        if self.last is None:
            x = self._precondition(self._kept(right))
            self.last = x, self._scalar.matmul(x)
        x, Kx = self.last
        (residual,) = settled(self._kept(right - self._shift * x - self._scales * Kx))
        stop = xp.maximum(16 * eps(right) * _size(self._kept(right)), self.rtol * _size(residual))
        step = self._precondition(residual)
        slope = xp.sum(residual * step, axis=0)
        for _ in range(STEPS):
            if bool(xp.all(_size(residual) <= stop)):
                break
            product = self._scalar.matmul(step)
            image = self._kept(self._shift * step + self._scales * product)
            length = _ratio(slope, xp.sum(step * image, axis=0))
            x, Kx, residual = x + length * step, Kx + length * product, residual - length * image
            image = self._precondition(residual)
            slope, last = xp.sum(residual * image, axis=0), slope
            x, Kx, residual, step = settled(x, Kx, residual, image + _ratio(slope, last) * step)
        self.last = x, Kx
        return self._back(x)

    def _kept(self, rows: Array) -> Array:
        return rows if self.rows is None else rows * self.rows.mask

    def _turned(self, rows: Array) -> Array:
        return rows if self._right is None else rows @ self._right

    def _back(self, rows: Array) -> Array:
        return rows if self._right is None else rows @ self._right.T


def _size(rows: Array) -> Array:
    """Return the Euclidean norm of each of the systems side by side (n, B, p), or of one."""
    xp = namespace(rows)
    return xp.linalg.vector_norm(rows) if rows.ndim == 2 else xp.sqrt(xp.sum(rows**2, axis=(0, 2)))


def _ratio(a: Array, b: Array) -> Array:
    """Return a / b, zero where b is zero: a solved column does not move."""
    xp = namespace(a)
    return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(a))
