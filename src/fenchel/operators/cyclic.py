"""Operators that commute with shifts of the outputs: one Hermitian matrix for each frequency."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fenchel._array import Array, namespace
from fenchel.operators.eigenbasis import Eigenbasis, Factor, Function
from fenchel.operators.operator import Index, Operator, scaled, taken

__all__ = ["Cyclic"]


class Cyclic(Operator):
    r"""Blocks that are circulant, :math:`K_{ij} = F^* \operatorname{diag}_f(K_f(i, j)) F`, with F Fourier's transform.

    Parameters
    ----------
    matrices : complex array of shape (frequencies, n, m)
        The matrices K_f of the first frequencies; those of the others are null.
    n_outputs : int
        Number p of points; outputs are real, so that frequencies end at p // 2.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Cyclic
    >>> mean = Cyclic(np.ones((1, 1, 1), dtype=complex), n_outputs=4)  # keeps the frequency zero alone
    >>> mean.matmul(np.array([[1.0, 2.0, 3.0, 4.0]])).tolist()
    [[2.5, 2.5, 2.5, 2.5]]
    """

    n_outputs: int

    def __init__(self, matrices: Array, n_outputs: int) -> None:
        self.matrices = matrices
        self.n_outputs = n_outputs
        self.shape = (matrices.shape[1], matrices.shape[2])

    def matmul(self, A: Array) -> Array:
        """Return K A: a Fourier transform, one product for each frequency, and back."""
        return _back(self.matrices @ _forward(A, self.matrices.shape[0]), A)

    def diag(self) -> Array:
        """Return the largest entry of each diagonal over the frequencies."""
        xp = namespace(self.matrices)
        return xp.max(xp.real(xp.linalg.diagonal(self.matrices)), axis=0)

    def block(self, rows: Index, columns: Index | None = None) -> "Cyclic":
        """Return the same between some samples."""
        part = taken(taken(self.matrices, rows, axis=1), rows if columns is None else columns, axis=2)
        return Cyclic(part, self.n_outputs)

    def factorize(self) -> "CyclicBasis":
        """Return the eigenbases of the matrices, one after the other."""
        xp = namespace(self.matrices)
        pairs = [xp.linalg.eigh(_hermitian(self.matrices[f, :, :])) for f in range(self.matrices.shape[0])]
        values = xp.stack([xp.clip(values, min=0.0) for values, _ in pairs])
        return CyclicBasis(xp.stack([vectors for _, vectors in pairs]), values, self.n_outputs)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Use the eigenbases, or a factorisation for each frequency where the shifts differ."""
        if isinstance(shift, float | int):
            return self.factorize().function(lambda values: 1 / (shift + scale * values))
        root = shift[:, None] ** -0.5
        inner = scaled(self, root).solver(scale, 1.0)
        return lambda B: root * inner(root * B)


@scaled.register
def _scaled(operator: Cyclic, root: Array) -> Cyclic:
    return Cyclic(operator.matrices * (root * root.T)[None, :, :], operator.n_outputs)


@dataclass(frozen=True)
class CyclicBasis(Eigenbasis):
    """An orthonormal eigenbasis for each frequency."""

    vectors: Array  # (frequencies, n, n), complex
    frequency_values: Array  # (frequencies, n)
    n_outputs: int

    @property
    def values(self) -> Array:
        """Eigenvalues (n, p): columns are the constant, then cosine and sine of each frequency; zero for others."""
        xp, (count, n) = namespace(self.frequency_values), self.frequency_values.shape
        columns = [min((j + 1) // 2, count) for j in range(self.n_outputs)]
        padded = xp.concat([self.frequency_values, xp.zeros_like(self.frequency_values[:1, :])])
        return xp.stack([padded[k, :] for k in columns], axis=1) if n else xp.zeros((0, self.n_outputs))

    def function(self, f: Function) -> Callable[[Array], Array]:
        """Return B -> f(K) B; frequencies that are not there are multiplied by f(0)."""
        xp = namespace(self.frequency_values)
        weights, at_zero = self._weights(f), f(xp.zeros_like(self.values[:1, :1]))
        count = self.vectors.shape[0]

        def image(B: Array) -> Array:
            turned = _forward(B, count)
            part = _back(self.vectors @ (weights * (_adjoint(self.vectors) @ turned)), B)
            if 2 * count > self.n_outputs:
                return part
            return part + at_zero * (B - _back(turned, B))

        return image

    def left_out(self, f: Function, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i: the diagonal blocks are circulant too."""
        xp = namespace(self.frequency_values)
        weights, at_zero = self._weights(f), f(xp.zeros_like(self.values[:1, :1]))
        diagonal = xp.real(self.vectors * xp.conj(self.vectors)) @ xp.real(weights)
        turned = _forward(duals, self.vectors.shape[0])
        part = _back(turned / diagonal, duals)
        return part if 2 * self.vectors.shape[0] > self.n_outputs else part + (duals - _back(turned, duals)) / at_zero

    def images(self, cross: Factor, B: Array) -> Callable[[Function], Array]:
        """Turn C and B once: every function is then one product for each frequency."""
        operator: Any = cross
        count = self.vectors.shape[0]
        products, turned = operator.matrices @ self.vectors, _adjoint(self.vectors) @ _forward(B, count)
        like = namespace(B).zeros_like(B[:1, ...])
        return lambda f: _back(products @ (self._weights(f) * turned), like)

    def _weights(self, f: Function) -> Array:
        """Return f of the eigenvalues, (frequencies, n, 1) or with one column for each problem."""
        xp, count = namespace(self.frequency_values), self.vectors.shape[0]
        weights = f(self.values)
        weights = xp.broadcast_to(weights, (*weights.shape[:-1], self.n_outputs))
        some = xp.stack([weights[..., max(0, 2 * k - 1)] for k in range(count)])  # (frequencies, n) or (..., n, B)
        return (some if some.ndim == 3 else some[:, :, None]) + 0j


def _hermitian(matrix: Array) -> Array:
    return (matrix + namespace(matrix).conj(matrix).T) / 2


def _adjoint(stack: Array) -> Array:
    xp = namespace(stack)
    return xp.conj(xp.permute_dims(stack, (0, 2, 1)))


def _forward(A: Array, count: int) -> Array:
    """Return the first frequencies of arrays (n, p) or (n, B, p) as (frequencies, n, B)."""
    xp = namespace(A)
    turned = xp.fft.rfft(A if A.ndim == 3 else A[:, None, :], norm="ortho")[:, :, :count]
    return xp.permute_dims(turned, (2, 0, 1))


def _back(turned: Array, like: Array) -> Array:
    """Return real arrays of the shape of those that were turned, with another number of rows."""
    xp = namespace(turned)
    rows = xp.fft.irfft(xp.permute_dims(turned, (1, 2, 0)), n=like.shape[-1], norm="ortho")
    return rows if like.ndim == 3 else rows[:, 0, :]
