"""A Gram matrix as a product of features, which is never formed."""

from collections.abc import Callable

from fenchel._array import Array, eps, namespace
from fenchel.operators.dense import Dense
from fenchel.operators.eigenbasis import KroneckerBasis, times
from fenchel.operators.operator import Index, ScalarOperator, is_thin, scaled, taken

__all__ = ["Thin"]


class Thin(ScalarOperator):
    r"""The Gram matrix of D features, :math:`K = \Phi \Psi^\top`.

    Parameters
    ----------
    left : array of shape (n, D)
        Features :math:`\Phi` of the rows.
    right : array of shape (m, D) or None, default=None
        Features :math:`\Psi` of the columns; ``None`` means those of the rows.
    """

    def __init__(self, left: Array, right: Array | None = None) -> None:
        super().__init__()
        self.left = left
        self.right = left if right is None else right
        self.shape = (left.shape[0], self.right.shape[0])
        self.width = left.shape[1]

    @property
    def matrix(self) -> Array:
        """The product of the features."""
        return self.left @ self.right.T

    def matmul(self, A: Array) -> Array:
        """Return Phi (Psi' A)."""
        return times(self.left, times(self.right.T, A))

    def diag(self) -> Array:
        """Return the products of the rows of both."""
        return namespace(self.left).sum(self.left * self.right, axis=1)

    def block(self, rows: Index, columns: Index | None = None) -> "Thin":
        """Return the features of some rows and of some columns."""
        left = taken(self.left, rows)
        if columns is None and self.right is self.left:
            return Thin(left)
        return Thin(left, taken(self.right, rows if columns is None else columns))

    def factorize(self) -> KroneckerBasis:
        """Return the squared singular values of the features that are not null, and the left singular vectors."""
        xp = namespace(self.left)
        Q, R = xp.linalg.qr(self.left, mode="reduced")
        U, singular, _ = xp.linalg.svd(R, full_matrices=False)
        cut = float(singular[0]) * eps(singular) * singular.shape[0]  # of R: the length of the sample does not matter
        rank = max(1, int(xp.sum(xp.astype(singular > cut, xp.int64))))
        return KroneckerBasis(Q @ U[:, :rank], singular[:rank] ** 2)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Use Woodbury's formula in the singular vectors of the features, scaled where the shifts differ."""
        if not is_thin(self):
            return Dense(self.matrix).solver(scale, shift)
        if isinstance(shift, float | int):
            return self.factorize().function(lambda values: 1 / (shift + scale * values))
        root = shift[:, None] ** -0.5
        inner = Thin(self.left * root).solver(scale, 1.0)
        return lambda B: root * inner(root * B)


@scaled.register
def _scaled(operator: Thin, root: Array) -> Thin:
    return Thin(operator.left * root)
