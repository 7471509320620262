"""Operators that commute with shifts of the outputs, with or without reflections: one matrix per frequency."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from fenchel._array import Array, as_like, cholesky_solver, namespace
from fenchel.operators.dense import shifted
from fenchel.operators.eigenbasis import Eigenbasis, Factor, Function
from fenchel.operators.operator import Index, Operator, scaled, taken

__all__ = ["Cyclic", "Mirrored", "Turn"]


@dataclass(frozen=True)
class Turn:
    """Fourier transform of real outputs of p points: n complex rows per frequency."""

    n_outputs: int
    copies: ClassVar[int] = 1  # rows of a matrix per sample

    def forward(self, A: Array, count: int) -> Array:
        """Return the first ``count`` frequencies of arrays (n, p) or (n, B, p) as (frequencies, n, B)."""
        xp = namespace(A)
        turned = xp.fft.rfft(A if A.ndim == 3 else A[:, None, :], norm="ortho")[:, :, :count]
        return xp.permute_dims(turned, (2, 0, 1))

    def back(self, turned: Array, like: Array) -> Array:
        """Return real arrays shaped like the transformed ones, except for the number of rows."""
        xp = namespace(turned)
        rows = xp.fft.irfft(xp.permute_dims(turned, (1, 2, 0)), n=like.shape[-1], norm="ortho")
        return rows if like.ndim == 3 else rows[:, 0, :]

    def eigh(self, matrix: Array, frequency: int) -> tuple[Array, Array]:
        """Return the eigenvalues, clipped at zero, and eigenvectors of the matrix of a frequency."""
        xp = namespace(matrix)
        values, vectors = xp.linalg.eigh((matrix + xp.conj(matrix).T) / 2)
        return xp.clip(values, min=0.0), vectors

    def by_column(self, values: Array) -> Array:
        """Return eigenvalues (frequencies, n) as (n, p): constant, then cosine and sine of each; zero for the rest."""
        xp, count = namespace(values), values.shape[0]
        padded = xp.concat([values, xp.zeros_like(values[:1, :])])
        return xp.stack([padded[min((j + 1) // 2, count), :] for j in range(self.n_outputs)], axis=1)

    def by_frequency(self, weights: Array, count: int) -> Array:
        """Return weights (n, ..., p) of the eigenvalues as weights of eigenvectors, (frequencies, n, ...)."""
        return namespace(weights).stack([weights[..., max(0, 2 * k - 1)] for k in range(count)]) + 0j


@dataclass(frozen=True)
class Mirrored(Turn):
    r"""Fourier transform as 2 n real rows per frequency: first the parts that a reflection keeps, then the others.

    A reflection :math:`(R y)_t = \sigma y_{-t}` maps coefficients to :math:`\sigma` times their conjugates, which is
    linear in real and imaginary parts but not over the complex numbers. It keeps the real part if :math:`\sigma` is 1,
    and the imaginary part if it is -1.
    """

    sign: int = 1
    copies: ClassVar[int] = 2

    def forward(self, A: Array, count: int) -> Array:
        """Return both parts of the first frequencies, (frequencies, 2 n, B)."""
        turned, xp = super().forward(A, count), namespace(A)
        real, imag = xp.real(turned), xp.imag(turned)
        return xp.concat([real, imag] if self.sign > 0 else [-imag, real], axis=1)

    def back(self, turned: Array, like: Array) -> Array:
        """Return real arrays."""
        n = turned.shape[1] // 2
        first, second = turned[:, :n, :], turned[:, n:, :]
        return super().back(first + 1j * second if self.sign > 0 else second - 1j * first, like)

    def matrix(self, direct: Array, across: Array) -> Array:
        """Return the matrices of c -> (a c + b R c) / 2, a for shifts and b for reflections, (frequencies, n, m)."""
        xp = namespace(direct)
        real, imag = xp.real(direct), xp.imag(direct)
        other, turned = xp.real(across), xp.imag(across)
        rows = [xp.concat([real + other, turned - imag], axis=2), xp.concat([imag + turned, real - other], axis=2)]
        return self._kept(xp.concat(rows, axis=1) / 2)

    def slopes(self, matrices: Array) -> tuple[Array, Array]:
        """Return derivatives in a and b, the sums of Re(M_ij da_ij), from derivatives in the matrices."""
        matrices = self._kept(matrices)
        n, m = matrices.shape[1] // 2, matrices.shape[2] // 2
        (first, up), (down, last) = (
            (matrices[:, rows, :m], matrices[:, rows, m:]) for rows in (slice(n), slice(n, None))
        )
        return (first + last + 1j * (up - down)) / 2, (first - last - 1j * (up + down)) / 2

    def eigh(self, matrix: Array, frequency: int) -> tuple[Array, Array]:
        """Return eigenvalues and eigenvectors; those of the part that real coefficients lack come first."""
        if self._is_real(frequency):
            apart = np.zeros((2, matrix.shape[0] // 2))
            apart[self._missing] = -1
            matrix = matrix + as_like(np.diag(apart.ravel()), matrix)
        return super().eigh(matrix, frequency)

    def by_column(self, values: Array) -> Array:
        """Return eigenvalues (frequencies, 2 n) as (n, p): the smaller half of each frequency, then the larger one."""
        xp, n = namespace(values), values.shape[1] // 2
        kept = min(self.n_outputs, 2 * values.shape[0] - 1)
        columns = [self._half(values, j, n) for j in range(kept)] + [xp.zeros_like(values[0, :n])]
        return xp.stack([columns[min(j, kept)] for j in range(self.n_outputs)], axis=1)

    def by_frequency(self, weights: Array, count: int) -> Array:
        """Return the weights of eigenvectors, (frequencies, 2 n, ...)."""
        xp, last = namespace(weights), self.n_outputs - 1
        pairs = [(max(0, 2 * k - 1), min(2 * k, last)) for k in range(count)]
        return xp.stack([xp.concat([weights[..., j] for j in pair]) for pair in pairs])

    @property
    def _missing(self) -> int:
        return 1 if self.sign > 0 else 0

    def _kept(self, matrices: Array) -> Array:
        """Return matrices without the part that real coefficients lack."""
        xp, (count, n, m) = namespace(matrices), matrices.shape
        keeps = np.ones((count, 2, 1, 2, 1))
        for k in filter(self._is_real, range(count)):
            keeps[k, self._missing, ...] = keeps[k, :, :, self._missing] = 0
        split = xp.reshape(matrices, (count, 2, n // 2, 2, m // 2))
        return xp.reshape(split * as_like(keeps, matrices), (count, n, m))

    def _is_real(self, frequency: int) -> bool:
        return 2 * frequency % self.n_outputs == 0

    def _half(self, values: Array, column: int, n: int) -> Array:
        is_smaller = column % 2 == 1 and column + 1 < self.n_outputs
        return values[(column + 1) // 2, :n] if is_smaller else values[(column + 1) // 2, n:]


class Cyclic(Operator):
    r"""Blocks that the Fourier transform F makes diagonal: :math:`K_{ij} = F^* \operatorname{diag}_f(K_f(i, j)) F`.

    Parameters
    ----------
    matrices : array of shape (frequencies, c n, c m)
        The matrices K_f of the first frequencies; those of the others are zero. Circulant blocks have complex matrices
        and c = 1; blocks with reflections have real matrices and c = 2.
    turn : Turn
        The transform; outputs are real, so frequencies end at p // 2.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Cyclic
    >>> from fenchel.operators.cyclic import Turn
    >>> mean = Cyclic(np.ones((1, 1, 1), dtype=complex), Turn(4))  # keeps the frequency zero alone
    >>> mean.matmul(np.array([[1.0, 2.0, 3.0, 4.0]])).tolist()
    [[2.5, 2.5, 2.5, 2.5]]
    """

    n_outputs: int

    def __init__(self, matrices: Array, turn: Turn) -> None:
        self.matrices = matrices
        self.turn = turn
        self.n_outputs = turn.n_outputs
        self.shape = (matrices.shape[1] // turn.copies, matrices.shape[2] // turn.copies)

    def matmul(self, A: Array) -> Array:
        """Return K A: a Fourier transform, one product per frequency, and the inverse transform."""
        return self.turn.back(self.matrices @ self.turn.forward(A, self.matrices.shape[0]), A)

    def diag(self) -> Array:
        """Return the largest eigenvalue of each diagonal block over the frequencies."""
        xp, blocks = namespace(self.matrices), diagonal_blocks(self.matrices, self.turn.copies)
        if len(blocks) == 1:
            return xp.max(blocks[0], axis=0)
        a, b, d = blocks
        return xp.max((a + d) / 2 + xp.sqrt((a - d) ** 2 / 4 + b**2), axis=0)

    def block(self, rows: Index, columns: Index | None = None) -> "Cyclic":
        """Return the operator between the selected samples."""
        xp, c, (n, m), count = namespace(self.matrices), self.turn.copies, self.shape, self.matrices.shape[0]
        part = taken(xp.reshape(self.matrices, (count, c, n, c, m)), rows, axis=2)
        part = taken(part, rows if columns is None else columns, axis=4)
        return Cyclic(xp.reshape(part, (count, c * part.shape[2], c * part.shape[4])), self.turn)

    def factorize(self) -> "CyclicBasis":
        """Return the eigenbases of the matrices."""
        xp = namespace(self.matrices)
        pairs = [self.turn.eigh(self.matrices[f, :, :], f) for f in range(self.matrices.shape[0])]
        return CyclicBasis(xp.stack([vectors for _, vectors in pairs]), xp.stack([v for v, _ in pairs]), self.turn)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Factorise the matrix of each frequency by Cholesky."""
        xp, turn, count = namespace(self.matrices), self.turn, self.matrices.shape[0]
        is_one = isinstance(shift, float | int)
        rows = shift if is_one else xp.concat([shift] * turn.copies)
        solvers = [cholesky_solver(shifted(self.matrices[f, :, :], scale, rows)) for f in range(count)]

        def solve(B: Array) -> Array:
            turned = turn.forward(B, count)
            part = turn.back(xp.stack([one(turned[f, :, :]) for f, one in enumerate(solvers)]), B)
            if 2 * count > turn.n_outputs:
                return part
            rest = B - turn.back(turned, B)
            return part + rest / (shift if is_one else xp.reshape(shift, (-1, *(1,) * (B.ndim - 1))))

        return solve


@scaled.register
def _scaled(operator: Cyclic, root: Array) -> Cyclic:
    roots = namespace(root).concat([root] * operator.turn.copies)
    return Cyclic(operator.matrices * (roots * roots.T)[None, :, :], operator.turn)


@dataclass(frozen=True)
class CyclicBasis(Eigenbasis):
    """An orthonormal eigenbasis for each frequency."""

    vectors: Array  # (frequencies, c n, c n)
    frequency_values: Array  # (frequencies, c n)
    turn: Turn

    @property
    def values(self) -> Array:
        """Eigenvalues (n, p), with columns for the constant, then for each frequency; zero for the rest."""
        return self.turn.by_column(self.frequency_values)

    def function(self, f: Function) -> Callable[[Array], Array]:
        """Return B -> f(K) B; frequencies that are not stored are multiplied by f(0)."""
        weights, at_zero, count, turn = self._weights(f), self._at_zero(f), self.vectors.shape[0], self.turn

        def image(B: Array) -> Array:
            turned = turn.forward(B, count)
            part = turn.back(self.vectors @ (weights * (_adjoint(self.vectors) @ turned)), B)
            return part if self._is_whole else part + at_zero * (B - turn.back(turned, B))

        return image

    def left_out(self, f: Function, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i; the diagonal blocks have the same structure."""
        xp, c, turned = namespace(duals), self.turn.copies, self.turn.forward(duals, self.vectors.shape[0])
        n, weights = turned.shape[1] // c, xp.real(self._weights(f))
        parts = [self.vectors[:, k * n : (k + 1) * n, :] for k in range(c)]
        pairs = [(parts[j], parts[k]) for j in range(c) for k in range(j, c)]
        blocks = tuple(xp.real(one * xp.conj(other)) @ weights for one, other in pairs)
        part = self.turn.back(solved_blocks(blocks, turned), duals)
        return part if self._is_whole else part + (duals - self.turn.back(turned, duals)) / self._at_zero(f)

    def images(self, cross: Factor, B: Array) -> Callable[[Function], Array]:
        """Transform C and B once: every function then takes one product per frequency."""
        operator = cast(Cyclic, cross)
        turned = _adjoint(self.vectors) @ self.turn.forward(B, self.vectors.shape[0])
        products, like = operator.matrices @ self.vectors, namespace(B).zeros_like(B[:1, ...])
        return lambda f: self.turn.back(products @ (self._weights(f) * turned), like)

    @property
    def _is_whole(self) -> bool:
        return bool(2 * self.vectors.shape[0] > self.turn.n_outputs)

    def _at_zero(self, f: Function) -> Array:
        return f(namespace(self.frequency_values).zeros_like(self.values[:1, :1]))

    def _weights(self, f: Function) -> Array:
        """Return f of the eigenvalues, (frequencies, c n, 1) or with one column per problem."""
        xp, weights = namespace(self.frequency_values), f(self.values)
        weights = xp.broadcast_to(weights, (*weights.shape[:-1], self.turn.n_outputs))
        some = self.turn.by_frequency(weights, self.vectors.shape[0])
        return some if some.ndim == 3 else some[:, :, None]


def diagonal_blocks(matrices: Array, copies: int) -> tuple[Array, ...]:
    """Return the diagonal block of each sample: (a,), or (a, b, d) of [[a, b], [b, d]], each (..., n)."""
    xp, n = namespace(matrices), matrices.shape[-1] // copies
    parts = [slice(k * n, (k + 1) * n) for k in range(copies)]
    pairs = [(rows, columns) for j, rows in enumerate(parts) for columns in parts[j:]]
    return tuple(xp.real(xp.linalg.diagonal(matrices[..., rows, columns])) for rows, columns in pairs)


def solved_blocks(blocks: tuple[Array, ...], turned: Array) -> Array:
    """Return B_i^-1 a_i for rows a_i, (..., c n, p)."""
    if len(blocks) == 1:
        return turned / blocks[0]
    xp, n, (a, b, d) = namespace(turned), turned.shape[-2] // 2, blocks
    first, second, determinant = turned[..., :n, :], turned[..., n:, :], a * d - b * b
    return xp.concat([(d * first - b * second) / determinant, (a * second - b * first) / determinant], axis=-2)


def _adjoint(stack: Array) -> Array:
    xp = namespace(stack)
    return xp.conj(xp.permute_dims(stack, (0, 2, 1)))
