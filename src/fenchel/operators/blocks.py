"""General Gram operators, stored as blocks."""

from fenchel._array import Array, namespace
from fenchel.operators.coupled import CoupledOperator
from fenchel.operators.operator import Index, scaled, taken

__all__ = ["Blocks", "as_matrix"]


class Blocks(CoupledOperator):
    """An operator stored as its blocks K(x_i, z_j).

    Parameters
    ----------
    blocks : array of shape (n, m, p, p)
        The blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Blocks
    >>> blocks = np.stack([np.stack([np.eye(2), np.zeros((2, 2))]), np.stack([np.zeros((2, 2)), np.eye(2)])])
    >>> Blocks(blocks).matmul(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """

    def __init__(self, blocks: Array) -> None:
        self.blocks = blocks
        super().__init__((blocks.shape[0], blocks.shape[1]), blocks.shape[2])

    def matmul(self, A: Array) -> Array:
        """Return sum_j K(x_i, z_j) a_j."""
        xp = namespace(A)
        if A.ndim == 2:
            return xp.tensordot(self.blocks, A, axes=((1, 3), (0, 1)))
        return xp.permute_dims(xp.tensordot(self.blocks, A, axes=((1, 3), (0, 2))), (0, 2, 1))

    def diag(self) -> Array:
        """Return the largest eigenvalue of each diagonal block."""
        xp = namespace(self.blocks)
        diagonal = xp.stack([self.blocks[i, i, :, :] for i in range(self.shape[0])])
        return xp.linalg.eigvalsh(diagonal)[:, -1]

    def block(self, rows: Index, columns: Index | None = None) -> "Blocks":
        """Return the blocks of the selected samples."""
        return Blocks(taken(taken(self.blocks, rows), rows if columns is None else columns, axis=1))

    def _full(self) -> Array:
        return as_matrix(self.blocks)


@scaled.register
def _scaled(operator: Blocks, root: Array) -> Blocks:
    return Blocks(operator.blocks * (root * root.T)[:, :, None, None])


def as_matrix(blocks: Array) -> Array:
    """Reshape blocks (n, m, p, p) to one (n p) × (m p) matrix."""
    xp, (n, m, p, _) = namespace(blocks), blocks.shape
    return xp.reshape(xp.permute_dims(blocks, (0, 2, 1, 3)), (n * p, m * p))
