"""Kernels between fingerprints: vectors of bits or counts."""

import math
from abc import ABC
from typing import ClassVar

from fenchel._array import Array, is_numpy, namespace
from fenchel._check import Interval, Options
from fenchel.kernels._distances import cache_blocks, exp, inner_products, squared_norms
from fenchel.kernels.vectors import VectorKernel

__all__ = ["GaussianTanimoto", "Tanimoto"]


class _FingerprintKernel(VectorKernel, ABC):
    """Kernel between vectors without negative entries."""

    def points(self, values: Array, name: str) -> Array:
        """Return a sample of non-negative vectors, checked."""
        values = super().points(values, name)
        low = float(namespace(values).min(values))
        if low < 0:
            raise ValueError(f"{name} must be non-negative for a Tanimoto kernel. Its smallest entry is {low:.3e}.")
        return values


class Tanimoto(_FingerprintKernel):
    r"""Tanimoto (Jaccard) similarity of fingerprints: 0/1 vectors or non-negative vectors.

    .. math:: k(x, z) = \frac{\langle x, z \rangle}{\|x\|^2 + \|z\|^2 - \langle x, z \rangle}.

    Two zero vectors have similarity 1; a zero vector and a non-zero one have 0. Booleans and integers are accepted.

    References
    ----------
    [Ralaivola2005]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Tanimoto
    >>> Tanimoto()(np.array([[1, 1, 0], [0, 1, 1]])).round(4).tolist()
    [[1.0, 0.3333], [0.3333, 1.0]]
    """

    def _values(self, X: Array, Z: Array | None) -> Array:
        return tanimoto(X, Z)


class GaussianTanimoto(_FingerprintKernel):
    r"""Gaussian kernel on the feature map of the Tanimoto kernel T.

    .. math:: k(x, z) = \exp(-\gamma \|\phi(x) - \phi(z)\|^2) = \exp(-2 \gamma (1 - T(x, z))).

    Parameters
    ----------
    gamma : float, default=1.0
        Positive inverse width.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import GaussianTanimoto
    >>> GaussianTanimoto(gamma=1.0)(np.array([[1, 1, 0], [0, 1, 1]])).round(4).tolist()
    [[1.0, 0.2636], [0.2636, 1.0]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": Interval(0, math.inf)}

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _values(self, X: Array, Z: Array | None) -> Array:
        return exp(1 - tanimoto(X, Z), -2 * float(self.gamma))


def tanimoto(X: Array, Z: Array | None) -> Array:
    """Return the Tanimoto similarities of non-negative rows, at most 1."""
    products = inner_products(X, Z)
    if Z is None:  # NumPy's diagonal is a view of the buffer, hence the copy
        left = right = namespace(X).linalg.diagonal(products) * 1.0
    else:
        left, right = squared_norms(X), squared_norms(Z)
    if not is_numpy(products):
        return _ratios(products, left[:, None] + right[None, :] - products)
    for rows in cache_blocks(products):
        products[rows] = _ratios(products[rows], left[rows, None] + right - products[rows])
    return products


def _ratios(common: Array, union: Array) -> Array:
    """Return common / union, at most 1, with 1 where the union is empty."""
    xp = namespace(union)
    one = xp.ones_like(union)
    is_empty = union == 0
    return xp.clip(xp.where(is_empty, one, common) / xp.where(is_empty, one, union), max=1.0)
