"""Kernels between fingerprints: vectors of bits or counts."""

import math
from typing import ClassVar

from fenchel._array import Array
from fenchel._check import Interval, Options
from fenchel.kernels._values import check_non_negative, exp, tanimoto
from fenchel.kernels.vectors import VectorKernel

__all__ = ["GaussianTanimoto", "Tanimoto"]


class Tanimoto(VectorKernel):
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

    def points(self, values: Array, name: str) -> Array:
        """Return a sample of non-negative vectors, checked."""
        return check_non_negative(super().points(values, name), name)


class GaussianTanimoto(VectorKernel):
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

    def points(self, values: Array, name: str) -> Array:
        """Return a sample of non-negative vectors, checked."""
        return check_non_negative(super().points(values, name), name)
