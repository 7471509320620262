"""Systems of one operator on some of its rows each, and their inverses with features in place of the kernel."""

from collections.abc import Callable, Sequence

from fenchel._array import Array, namespace
from fenchel.operators.eigenbasis import KroneckerBasis, times

__all__ = ["KeptRows"]


class KeptRows:
    r"""The rows that each of several systems keeps, such as the training parts of folds.

    Parameters
    ----------
    basis : KroneckerBasis
        Orthogonal features of all rows.
    masks : sequence of array of shape (n, 1)
        For each system 1 for the rows that it keeps and 0 for the others. Systems may share a mask, as one object.

    Notes
    -----
    With features :math:`\Phi` and the mask M of a system, its moments :math:`\Phi^\top M \Phi = V C V^\top` give

    .. math:: (d + s M \Phi \Phi^\top M)^{-1}
        = \frac1d \Bigl(I - M \Phi V \frac{s}{d + s C} V^\top \Phi^\top M\Bigr).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import KeptRows, Thin
    >>> basis = Thin(np.array([[1.0], [2.0]])).factorize()
    >>> rows = KeptRows(basis, [np.array([[1.0], [0.0]])])
    >>> rows.inverse(1.0, 1.0)(np.array([[[1.0]], [[0.0]]]))[0, 0, 0].item()  # 1 / (1 + 1 * 1)
    0.5
    """

    def __init__(self, basis: KroneckerBasis, masks: Sequence[Array]) -> None:
        xp = namespace(basis.left)
        features = basis.left if basis.left_squares is not None else basis.left * xp.sqrt(basis.left_values)
        known: dict[int, tuple[Array, Array]] = {}
        for mask in masks:
            if id(mask) not in known:
                values, vectors = xp.linalg.eigh(features.T @ (mask * features))
                known[id(mask)] = xp.clip(values, min=0.0), vectors
        self.basis = basis
        self.features = features
        self.mask = xp.stack(list(masks), axis=1)
        self.moments = [known[id(mask)] for mask in masks]

    def inverse(self, scale: float | Array, shift: float | Array) -> Callable[[Array], Array]:
        """Return B -> (shift + scale K)^-1 B on the kept rows, for B (n, B, p) that is zero on the others.

        ``scale`` and ``shift`` are numbers, or arrays that broadcast with (1, B, p).
        """
        xp = namespace(self.features)
        ones = xp.ones_like(self.features[:1, :1, None]) + xp.zeros_like(self.mask[:1, :, :])
        scales, shifts = scale * ones, shift * ones

        def solve(B: Array) -> Array:
            turned, parts = times(self.features.T, B), []
            for k, (values, vectors) in enumerate(self.moments):
                filters = scales[0, k, :] / (shifts[0, k, :] + scales[0, k, :] * values[:, None])
                parts.append(vectors @ (filters * (vectors.T @ turned[:, k, :])))
            return self.mask * (B - times(self.features, xp.stack(parts, axis=1))) / shift

        return solve
