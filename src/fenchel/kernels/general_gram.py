"""Gram operators of kernels that are not sums of a few separable terms."""

from fenchel._array import Array, namespace
from fenchel.kernels.gram import OperatorGram

__all__ = ["BlockGram", "DirectionalGram"]


class DirectionalGram(OperatorGram):
    """Sum over directions z_d of G_d(x, x') z_d ⊗ z_d: the kernels aligned with the sample.

    ``matrices`` is (D, n, m), or a pair of factors ((n, D), (m, D)) when each G_d is the product of two vectors.
    """

    def __init__(self, matrices: Array | tuple[Array, Array], directions: Array) -> None:
        self.matrices = matrices
        self.directions = directions
        if isinstance(matrices, tuple):
            self.shape = (matrices[0].shape[0], matrices[1].shape[0])
        else:
            self.shape = (matrices.shape[1], matrices.shape[2])

    def matmul(self, A: Array) -> Array:
        """Return sum_d G_d (A z_d) z_d'."""
        xp = namespace(A)
        products = A @ self.directions.T  # (m, D)
        if isinstance(self.matrices, tuple):
            out, inner = self.matrices
            return (out * xp.sum(inner * products, axis=0)) @ self.directions
        columns = xp.matmul(self.matrices, products.T[:, :, None])[:, :, 0]  # (D, n)
        return columns.T @ self.directions

    def column(self, index: int, change: Array) -> Array:
        """Return sum_d G_d[:, i] <z_d, change> z_d."""
        products = self.directions @ change  # (D,)
        if isinstance(self.matrices, tuple):
            weights = self.matrices[0] * (self.matrices[1][index, :] * products)
        else:
            weights = self.matrices[:, :, index].T * products
        return weights @ self.directions

    def block_norms(self) -> Array:
        """Return sum_d G_d(x_i, x_i) |z_d|^2."""
        xp = namespace(self.directions)
        squares = xp.sum(self.directions**2, axis=1)
        if isinstance(self.matrices, tuple):
            return (self.matrices[0] * self.matrices[1]) @ squares
        return xp.linalg.diagonal(self.matrices).T @ squares

    def scaled(self, root: Array) -> "DirectionalGram":
        """Scale every G_d."""
        if isinstance(self.matrices, tuple):
            return DirectionalGram((self.matrices[0] * root, self.matrices[1] * root), self.directions)
        return DirectionalGram(self.matrices * root * root.T, self.directions)

    def dense(self, p: int) -> Array:
        """Return the sum over directions of G_d ⊗ z_d z_d'."""
        xp = namespace(self.directions)
        if isinstance(self.matrices, tuple):
            features = kronecker_rows(self.matrices[0], self.directions)
            return features @ features.T
        n = self.shape[0]
        outer = self.directions[:, :, None] * self.directions[:, None, :]  # (D, p, p)
        full = xp.tensordot(self.matrices, outer, axes=((0,), (0,)))  # (n, n, p, p)
        return xp.reshape(xp.permute_dims(full, (0, 2, 1, 3)), (n * p, n * p))


class BlockGram(OperatorGram):
    """A general operator-valued kernel, given by its blocks K(x_i, z_j), shape (n, m, p, p)."""

    def __init__(self, blocks: Array) -> None:
        self.blocks = blocks
        self.shape = (blocks.shape[0], blocks.shape[1])

    def matmul(self, A: Array) -> Array:
        """Return sum_j K(x_i, z_j) a_j."""
        return namespace(A).tensordot(self.blocks, A, axes=((1, 3), (0, 1)))

    def column(self, index: int, change: Array) -> Array:
        """Return K(x_i, z_index) change for each i."""
        return self.blocks[:, index, :, :] @ change

    def block_norms(self) -> Array:
        """Return the largest eigenvalue of each diagonal block."""
        xp = namespace(self.blocks)
        n = self.shape[0]
        diagonal = xp.stack([self.blocks[i, i, :, :] for i in range(n)])
        return xp.linalg.eigvalsh(diagonal)[:, -1]

    def scaled(self, root: Array) -> "BlockGram":
        """Scale every block."""
        weights = root * root.T
        return BlockGram(self.blocks * weights[:, :, None, None])

    def dense(self, p: int) -> Array:
        """Return the blocks as one matrix."""
        xp = namespace(self.blocks)
        n, m = self.shape
        return xp.reshape(xp.permute_dims(self.blocks, (0, 2, 1, 3)), (n * p, m * p))


def kronecker_rows(C: Array, Z: Array) -> Array:
    """Return the (n p, D) matrix with columns c_d ⊗ z_d."""
    xp = namespace(C)
    product = C[:, None, :] * Z.T[None, :, :]
    return xp.reshape(product, (C.shape[0] * Z.shape[1], C.shape[1]))
