"""Sums over directions of the output space, the operators of kernels aligned with the sample."""

from fenchel._array import Array, namespace
from fenchel.operators.coupled import CoupledOperator
from fenchel.operators.operator import Index, scaled, taken

__all__ = ["Anchored", "Directional"]


class Directional(CoupledOperator):
    """Sum over directions z_d of G_d(x, x') z_d ⊗ z_d.

    Parameters
    ----------
    matrices : array of shape (D, n, m)
        The Gram matrix G of each direction.
    directions : array of shape (D, p)
        The directions z.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Directional
    >>> operator = Directional(np.ones((1, 2, 2)), np.array([[1.0, 0.0]]))
    >>> operator.matmul(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[4.0, 0.0], [4.0, 0.0]]
    """

    def __init__(self, matrices: Array, directions: Array) -> None:
        super().__init__((matrices.shape[1], matrices.shape[2]), directions.shape[1])
        self.matrices = matrices
        self.directions = directions

    def matmul(self, A: Array) -> Array:
        """Return sum_d G_d (A z_d) z_d'."""
        xp = namespace(A)
        products = (A if A.ndim == 3 else A[:, None, :]) @ self.directions.T  # (m, B, D)
        columns = xp.matmul(self.matrices, xp.permute_dims(products, (2, 0, 1)))  # (D, n, B)
        images = xp.permute_dims(columns, (1, 2, 0)) @ self.directions
        return images if A.ndim == 3 else images[:, 0, :]

    def diag(self) -> Array:
        """Return sum_d G_d(x_i, x_i) |z_d|^2."""
        xp = namespace(self.directions)
        return xp.linalg.diagonal(self.matrices).T @ xp.sum(self.directions**2, axis=1)

    def block(self, rows: Index, columns: Index | None = None) -> "Directional":
        """Return the blocks of every G_d."""
        columns = rows if columns is None else columns
        return Directional(taken(taken(self.matrices, rows, axis=1), columns, axis=2), self.directions)

    def _full(self) -> Array:
        """Return the sum over directions of G_d ⊗ z_d z_d'."""
        xp, Z, size = namespace(self.directions), self.directions, self.shape[0] * self.n_outputs
        full = xp.tensordot(self.matrices, Z[:, :, None] * Z[:, None, :], axes=((0,), (0,)))  # (n, n, p, p)
        return xp.reshape(xp.permute_dims(full, (0, 2, 1, 3)), (size, size))


class Anchored(CoupledOperator):
    """Sum over directions z_d of l_d(x) r_d(x') z_d ⊗ z_d: each matrix of ``Directional`` is an outer product.

    Parameters
    ----------
    left : array of shape (n, D)
        Features l of the rows.
    right : array of shape (m, D)
        Features r of the columns.
    directions : array of shape (D, p)
        The directions z.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Anchored
    >>> ones = np.ones((2, 1))
    >>> Anchored(ones, ones, np.array([[1.0, 0.0]])).matmul(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[4.0, 0.0], [4.0, 0.0]]
    """

    def __init__(self, left: Array, right: Array, directions: Array) -> None:
        super().__init__((left.shape[0], right.shape[0]), directions.shape[1])
        self.left = left
        self.right = right
        self.directions = directions

    def matmul(self, A: Array) -> Array:
        """Return sum_d c_d (c_d' A z_d) z_d'."""
        products = (A if A.ndim == 3 else A[:, None, :]) @ self.directions.T  # (m, B, D)
        sums = namespace(A).sum(self.right[:, None, :] * products, axis=0)
        images = (self.left[:, None, :] * sums) @ self.directions
        return images if A.ndim == 3 else images[:, 0, :]

    def diag(self) -> Array:
        """Return the sum of the products of the features times |z_d|^2."""
        return (self.left * self.right) @ namespace(self.directions).sum(self.directions**2, axis=1)

    def block(self, rows: Index, columns: Index | None = None) -> "Anchored":
        """Return the operator on the features of the selected rows and columns."""
        return Anchored(
            taken(self.left, rows), taken(self.right, rows if columns is None else columns), self.directions
        )

    def _full(self) -> Array:
        """Return the product of the features c_d ⊗ z_d."""
        product = self.left[:, None, :] * self.directions.T[None, :, :]
        features = namespace(product).reshape(product, (-1, product.shape[2]))
        return features @ features.T


@scaled.register
def _scaled_directional(operator: Directional, root: Array) -> Directional:
    return Directional(operator.matrices * root * root.T, operator.directions)


@scaled.register
def _scaled_anchored(operator: Anchored, root: Array) -> Anchored:
    return Anchored(operator.left * root, operator.right * root, operator.directions)
