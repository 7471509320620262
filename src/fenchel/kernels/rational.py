"""The rational quadratic kernel."""

import math
from typing import ClassVar, Self

from fenchel._array import Array
from fenchel._check import Interval, Options
from fenchel.kernels._values import distances
from fenchel.kernels.scalar import _VectorKernel as VectorKernel

__all__ = ["RationalQuadratic"]


class RationalQuadratic(VectorKernel):
    r"""Rational quadratic kernel, a scale mixture of Gaussian kernels.

    .. math:: k(x, z) = \Bigl(1 + \frac{\|x - z\|_2^2}{2 \alpha \ell^2}\Bigr)^{-\alpha} .

    Parameters
    ----------
    length_scale : float, default=1.0
        Width :math:`\ell`, positive.
    alpha : float, default=1.0
        Exponent, positive; the kernel approaches a Gaussian as it grows.

    References
    ----------
    [RasmussenWilliams2006]_, eq. (4.19).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import RationalQuadratic
    >>> RationalQuadratic()(np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.6667], [0.6667, 1.0]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "length_scale": Interval(0, math.inf),
        "alpha": Interval(0, math.inf),
    }

    def __init__(self, length_scale: float = 1.0, alpha: float = 1.0) -> None:
        self.length_scale = length_scale
        self.alpha = alpha

    def profile(self, squares: Array) -> Array:
        """Return the kernel at squared distances."""
        return self._base(squares) ** -float(self.alpha)

    def _values(self, X: Array, Z: Array | None) -> Array:
        return self.profile(distances(X, Z, "euclidean") ** 2)

    def _derivative(self, X: Array, Z: Array) -> tuple[Array | float, Array | float]:
        base = self._base(distances(X, Z, "euclidean") ** 2)
        return base ** -(float(self.alpha) + 1) / -(float(self.length_scale) ** 2), 0.0

    def _base(self, squares: Array) -> Array:
        return 1 + squares / (2 * float(self.alpha) * float(self.length_scale) ** 2)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(length_scale=2.0, alpha=0.5)]
