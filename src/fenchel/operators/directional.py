"""Sums over directions of the output space: the operators of kernels aligned with the sample."""

from fenchel._array import Array, namespace
from fenchel.operators.coupled import CoupledOperator
from fenchel.operators.operator import Index, scaled, taken

__all__ = ["Directional"]


class Directional(CoupledOperator):
    """Sum over directions z_d of G_d(x, x') z_d ⊗ z_d.

    ``matrices`` is (D, n, m), or a pair of factors ((n, D), (m, D)) when each G_d is the product of two vectors.
    """

    def __init__(self, matrices: Array | tuple[Array, Array], directions: Array) -> None:
        self.matrices = matrices
        self.directions = directions
        if isinstance(matrices, tuple):
            super().__init__((matrices[0].shape[0], matrices[1].shape[0]), directions.shape[1])
        else:
            super().__init__((matrices.shape[1], matrices.shape[2]), directions.shape[1])

    def matmul(self, A: Array) -> Array:
        """Return sum_d G_d (A z_d) z_d'."""
        xp = namespace(A)
        products = (A if A.ndim == 3 else A[:, None, :]) @ self.directions.T  # (m, B, D)
        if isinstance(self.matrices, tuple):
            out, inner = self.matrices
            columns = out[:, None, :] * xp.sum(inner[:, None, :] * products, axis=0)
        else:
            columns = xp.permute_dims(xp.matmul(self.matrices, xp.permute_dims(products, (2, 0, 1))), (1, 2, 0))
        images = columns @ self.directions
        return images if A.ndim == 3 else images[:, 0, :]

    def diag(self) -> Array:
        """Return sum_d G_d(x_i, x_i) |z_d|^2."""
        xp = namespace(self.directions)
        squares = xp.sum(self.directions**2, axis=1)
        if isinstance(self.matrices, tuple):
            return (self.matrices[0] * self.matrices[1]) @ squares
        return xp.linalg.diagonal(self.matrices).T @ squares

    def block(self, rows: Index, columns: Index | None = None) -> "Directional":
        """Return the blocks of every G_d."""
        columns = rows if columns is None else columns
        if isinstance(self.matrices, tuple):
            return Directional((taken(self.matrices[0], rows), taken(self.matrices[1], columns)), self.directions)
        return Directional(taken(taken(self.matrices, rows, axis=1), columns, axis=2), self.directions)

    def _full(self) -> Array:
        """Return the sum over directions of G_d ⊗ z_d z_d'."""
        xp, Z, (n, p) = namespace(self.directions), self.directions, (self.shape[0], self.n_outputs)
        if isinstance(self.matrices, tuple):
            features = xp.reshape(self.matrices[0][:, None, :] * Z.T[None, :, :], (n * p, Z.shape[0]))
            return features @ features.T
        full = xp.tensordot(self.matrices, Z[:, :, None] * Z[:, None, :], axes=((0,), (0,)))  # (n, n, p, p)
        return xp.reshape(xp.permute_dims(full, (0, 2, 1, 3)), (n * p, n * p))


@scaled.register
def _scaled(operator: Directional, root: Array) -> Directional:
    if isinstance(operator.matrices, tuple):
        return Directional((operator.matrices[0] * root, operator.matrices[1] * root), operator.directions)
    return Directional(operator.matrices * root * root.T, operator.directions)
