"""Gram matrix as a product of features, never formed explicitly."""

from collections.abc import Callable

from fenchel._array import Array, eps, is_lazy, is_single, namespace
from fenchel.operators.dense import Dense
from fenchel.operators.eigenbasis import KroneckerBasis, times
from fenchel.operators.operator import Index, ScalarOperator, is_thin, scaled, taken

__all__ = ["Thin", "leading", "orthogonal", "orthogonal_features"]

_LARGE = 2**23  # size of features from which their D × D products are factorised instead
_ROUND_OFF = 16.0  # in eps: what is below is noise in float32, whose moments no Cholesky factor corrects
_LEAST = 1e-12  # relative size of the smallest eigenvalue that survives round-off in the products of the features
_BLOCK = 2**14  # rows rotated at a time


class Thin(ScalarOperator):
    r"""Gram matrix of D features, :math:`K = \Phi \Psi^\top`.

    Parameters
    ----------
    left : array of shape (n, D)
        Features :math:`\Phi` of the rows.
    right : array of shape (m, D) or None, default=None
        Features :math:`\Psi` of the columns; ``None`` means :math:`\Phi`.
    values : array of shape (D,) or None, default=None
        Squared norms of the features over the sample, if they are known to be orthogonal.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Thin
    >>> features = np.array([[1.0], [2.0], [3.0]])
    >>> Thin(features).matmul(np.ones((3, 1))).tolist()
    [[6.0], [12.0], [18.0]]
    """

    def __init__(self, left: Array, right: Array | None = None, values: Array | None = None) -> None:
        self.values = values
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
        """Return the inner products of corresponding rows."""
        return namespace(self.left).linalg.vecdot(self.left, self.right)

    def block(self, rows: Index, columns: Index | None = None) -> "Thin":
        """Return the operator on the features of the selected rows and columns."""
        left = taken(self.left, rows)
        if columns is None and self.right is self.left:
            return Thin(left)
        return Thin(left, taken(self.right, rows if columns is None else columns))

    def factorize(self) -> KroneckerBasis:
        """Return the left singular vectors of the features with non-zero singular values, and the squares of these."""
        if self.values is not None:
            return KroneckerBasis(self.left, self.values, left_squares=self.values)
        xp = namespace(self.left)
        Q, R = xp.linalg.qr(self.left, mode="reduced")
        U, singular, _ = xp.linalg.svd(R, full_matrices=False)
        cut = float(singular[0]) * eps(singular) * singular.shape[0]  # of R, so independent of the sample size
        rank = max(1, int(xp.sum(xp.astype(singular > cut, xp.int64))))
        return KroneckerBasis(Q @ U[:, :rank], singular[:rank] ** 2)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Return the solver by Woodbury's formula in the singular vectors of the features, scaled if shifts differ."""
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


def orthogonal_features(features: Array) -> tuple[Array, Array, Array]:
    """Return features rotated to be orthogonal, their squared norms, and the rotation.

    They are computed from the D × D moments, in a fifth of the time of a QR factorisation. Round-off in the moments
    hides what is below ``_LEAST`` and leaves vectors near it that are not quite orthogonal; a Cholesky factor of their
    own moments corrects this.
    """
    if is_lazy(features):
        return (*features.orthogonal(), None)
    xp = namespace(features)
    values, vectors = leading(features.T @ features)
    tiny = float(xp.finfo(values.dtype).smallest_normal)
    if not float(values[-1]) > tiny:  # all features are zero
        return 0 * features[:, :1], tiny + 0 * values[:1], vectors[:, :1]
    roots = xp.sqrt(xp.clip(values, min=tiny))
    inner = vectors / roots
    turned = features @ inner
    lower = xp.linalg.cholesky(turned.T @ turned)
    _, singular, turn = xp.linalg.svd(roots[:, None] * lower, full_matrices=False)
    last = xp.linalg.solve(lower.T, turn.T) * singular
    for start in range(0, turned.shape[0], _BLOCK):
        turned[start : start + _BLOCK, :] = turned[start : start + _BLOCK, :] @ last
    return turned, singular**2, inner @ last


def leading(moments: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of the products of features that survive round-off, at least one, and eigenvectors."""
    xp = namespace(moments)
    values, vectors = xp.linalg.eigh(moments)
    least = max(_LEAST, _ROUND_OFF * eps(values)) * float(values[-1])
    first = min(int(xp.sum(xp.astype(values <= least, xp.int64))), values.shape[0] - 1)
    return values[first:], vectors[:, first:]


def orthogonal(operator: Thin) -> tuple[Thin, Array] | None:
    """Return a large operator with orthogonal features.

    Parameters
    ----------
    operator : Thin
        An operator given by its features.

    Returns
    -------
    turned : tuple of Thin and array, or None
        The operator and the rotation of its features; ``None`` if it is small.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Thin, orthogonal
    >>> orthogonal(Thin(np.ones((5, 2)))) is None  # too small to gain
    True
    """
    if operator.shape[0] * operator.width <= _LARGE or is_single(operator.left):
        return None
    turned, values, turn = orthogonal_features(operator.left)
    return Thin(turned, None, values), turn
