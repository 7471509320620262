"""Operators that commute with a finite group: one matrix for each of its irreducible representations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from fenchel._array import Array, namespace, symmetric_eigh
from fenchel.operators.eigenbasis import Eigenbasis, Factor, Function, times
from fenchel.operators.lanczos import largest_eigenvalue
from fenchel.operators.operator import Index, Operator, scaled, taken

__all__ = ["Isotypic"]


class Isotypic(Operator):
    r"""Blocks that are block-diagonal in a common basis of the outputs, with repeated d × d blocks.

    .. math:: K_{ij} = Q \bigoplus_\rho \bigl( K_\rho(i, j) \otimes I \bigr) Q^\top .

    Parameters
    ----------
    matrices : sequence of arrays of shape (d, n, d, m)
        The matrix of each representation, where d is its dimension.
    multiplicities : sequence of int
        Number of times each representation occurs in the outputs.
    basis : array of shape (p, p)
        The orthogonal matrix Q. Its columns are grouped by representation and, within one, by its d coordinates, each
        with as many columns as the multiplicity of the representation.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Isotypic
    >>> even, odd = np.full((1, 1, 1, 1), 3.0), np.full((1, 1, 1, 1), 1.0)  # of the exchange of two outputs
    >>> basis = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    >>> Isotypic((even, odd), (1, 1), basis).matmul(np.array([[1.0, 0.0]])).round(12).tolist()
    [[2.0, 1.0]]
    """

    n_outputs: int

    def __init__(self, matrices: tuple[Array, ...], multiplicities: tuple[int, ...], basis: Array) -> None:
        self.matrices = matrices
        self.multiplicities = multiplicities
        self.basis = basis
        self.shape = (matrices[0].shape[1], matrices[0].shape[3])
        self.n_outputs = basis.shape[0]

    def matmul(self, A: Array) -> Array:
        """Return K A: a change of basis, one product per representation, and the change back."""
        return self.joined(
            [times(_flat(matrix), part) for matrix, part in zip(self.matrices, self.parts(A), strict=True)]
        )

    def diag(self) -> Array:
        """Return the largest eigenvalue of each diagonal block."""
        xp = namespace(self.basis)
        tops = []
        for matrix in self.matrices:
            blocks = xp.stack([matrix[:, i, :, i] for i in range(self.shape[0])])
            tops.append(xp.linalg.eigvalsh((blocks + xp.matrix_transpose(blocks)) / 2)[:, -1])
        return xp.max(xp.stack(tops), axis=0)

    def norm(self) -> float:
        """Return the largest of the upper bounds of the matrices' norms."""
        xp, flat = namespace(self.basis), [_flat(matrix) for matrix in self.matrices]
        return max(largest_eigenvalue(M.__matmul__, (M.shape[0], 1), xp.linalg.diagonal(M)) for M in flat)

    def block(self, rows: Index, columns: Index | None = None) -> "Isotypic":
        """Return the operator between the selected samples."""
        columns = rows if columns is None else columns
        return self.with_matrices(taken(taken(matrix, rows, axis=1), columns, axis=3) for matrix in self.matrices)

    def factorize(self) -> "IsotypicBasis":
        """Return the eigenbasis of each matrix."""
        xp = namespace(self.basis)
        pairs = [symmetric_eigh((_flat(matrix) + _flat(matrix).T) / 2) for matrix in self.matrices]
        values = tuple(xp.clip(values, min=0.0) for values, _ in pairs)
        return IsotypicBasis(self, tuple(vectors for _, vectors in pairs), values)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Return the solver in the eigenbases, of the scaled operator if the shifts differ."""
        if isinstance(shift, float | int):
            return self.factorize().function(lambda values: 1 / (shift + scale * values))
        root = shift[:, None] ** -0.5
        inner = scaled(self, root).solver(scale, 1.0)
        return lambda B: root * inner(root * B)

    def parts(self, A: Array) -> list[Array]:
        """Split arrays (n, p) or (n, B, p) in the basis into (d n, multiplicity) or (d n, B, multiplicity) each."""
        xp, turned, found, start = namespace(A), A @ self.basis, [], 0
        for matrix, count in zip(self.matrices, self.multiplicities, strict=True):
            ends = [start + k * count for k in range(matrix.shape[0] + 1)]
            found.append(xp.concat([turned[..., a:b] for a, b in pairwise(ends)]))
            start = ends[-1]
        return found

    def joined(self, parts: list[Array]) -> Array:
        """Join parts into arrays, the inverse of ``parts``."""
        xp = namespace(self.basis)
        columns = []
        for matrix, part in zip(self.matrices, parts, strict=True):
            size = part.shape[0] // matrix.shape[0]
            columns += [part[k * size : (k + 1) * size, ...] for k in range(matrix.shape[0])]
        return xp.concat(columns, axis=-1) @ self.basis.T

    def with_matrices(self, matrices: Iterator[Array]) -> "Isotypic":
        """Return the operator with other matrices of the same shapes of representations."""
        return Isotypic(tuple(matrices), self.multiplicities, self.basis)


@scaled.register
def _scaled(operator: Isotypic, root: Array) -> Isotypic:
    left, right = root[:, 0][None, :, None, None], root[:, 0][None, None, None, :]
    return operator.with_matrices(left * matrix * right for matrix in operator.matrices)


@dataclass(frozen=True)
class IsotypicBasis(Eigenbasis):
    """An orthonormal eigenbasis for each representation."""

    operator: Isotypic
    vectors: tuple[Array, ...]  # (d n, d n) each
    part_values: tuple[Array, ...]  # (d n,) each

    @property
    def values(self) -> Array:
        """Eigenvalues (n, p), in the order of the columns of the basis."""
        xp, columns = namespace(self.operator.basis), []
        for values, matrix, count in zip(
            self.part_values, self.operator.matrices, self.operator.multiplicities, strict=True
        ):
            rows = xp.reshape(values, (matrix.shape[0], -1))
            columns += [xp.broadcast_to(rows[k, :][:, None], (rows.shape[1], count)) for k in range(matrix.shape[0])]
        return xp.concat(columns, axis=1)

    def function(self, f: Function) -> Callable[[Array], Array]:
        """Return B -> f(K) B."""
        weights = self._weights(f)

        def image(B: Array) -> Array:
            parts = zip(self.vectors, weights, self.operator.parts(B), strict=True)
            return self.operator.joined([times(V, w * times(V.T, part)) for V, w, part in parts])

        return image

    def left_out(self, f: Function, duals: Array) -> Array:
        """Return (W_ii)^-1 a_i: a d × d system for each sample and representation."""
        xp, found = namespace(duals), []
        for V, w, part in zip(self.vectors, self._weights(f), self.operator.parts(duals), strict=True):
            d = V.shape[0] // duals.shape[0]
            rows = xp.permute_dims(xp.reshape(V, (d, -1, V.shape[1])), (1, 0, 2))  # (n, d, d n)
            blocks = (rows * w[:, 0]) @ xp.matrix_transpose(rows)
            right = xp.permute_dims(xp.reshape(part, (d, -1, part.shape[1])), (1, 0, 2))
            solved = xp.permute_dims(xp.linalg.solve(blocks, right), (1, 0, 2))
            found.append(xp.reshape(solved, part.shape))
        return self.operator.joined(found)

    def images(self, cross: Factor, B: Array) -> Callable[[Function], Array]:
        """Transform C and B once: every function then takes one product per representation."""
        operator = cast(Isotypic, cross)
        products = [_flat(matrix) @ V for matrix, V in zip(operator.matrices, self.vectors, strict=True)]
        turned = [times(V.T, part) for V, part in zip(self.vectors, self.operator.parts(B), strict=True)]

        def image(f: Function) -> Array:
            parts = zip(products, self._weights(f), turned, strict=True)
            return operator.joined([times(P, w * part) for P, w, part in parts])

        return image

    def _weights(self, f: Function) -> list[Array]:
        """Return f of the eigenvalues of each matrix, (d n, 1) or (d n, B, 1)."""
        xp, n = namespace(self.operator.basis), self.operator.shape[0]
        found, start = [], 0
        weights = f(self.values)
        weights = xp.broadcast_to(weights, (*weights.shape[:-1], self.operator.n_outputs))
        for V, count in zip(self.vectors, self.operator.multiplicities, strict=True):
            d = V.shape[0] // n
            firsts = [start + k * count for k in range(d)]
            found.append(xp.concat([weights[..., k : k + 1] for k in firsts]))
            start += d * count
        return found


def _flat(matrix: Array) -> Array:
    d, n, _, m = matrix.shape
    return namespace(matrix).reshape(matrix, (d * n, d * m))
