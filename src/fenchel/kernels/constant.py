"""The constant kernel, which gives a model an intercept."""

import math
from typing import ClassVar

from fenchel._array import Array, as_like, device, namespace
from fenchel._check import Interval, Options
from fenchel.kernels.base import ScalarKernel

__all__ = ["Constant"]


class Constant(ScalarKernel):
    r"""Constant kernel.

    .. math:: k(x, z) = c .

    Parameters
    ----------
    value : float, default=1.0
        The constant :math:`c`, positive. In ``Gaussian() + Constant(c)`` it adds an intercept whose square is
        penalised :math:`1 / c` times as much as a squared norm.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Constant
    >>> Constant(2.0)(np.array([[0.0], [1.0]])).round(4).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"value": Interval(0, math.inf)}

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        return self._full(X, (X.shape[0], (X if Z is None else Z).shape[0]))

    @property
    def diag_bound(self) -> float:  # type: ignore[override]
        """The constant itself."""
        return float(self.value)

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        return self._full(X, (X.shape[0],))

    @property
    def has_features(self) -> bool:
        """Return True."""
        return True

    def features(self, X: Array) -> Array:
        """Return a single column filled with the square root of the constant."""
        return self._full(X, (X.shape[0], 1)) ** 0.5

    def slope(self, X: Array, Z: Array) -> Array:
        """Return zeros, shape (n, m)."""
        return 0 * self(X, Z)

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        """Return zeros, shape (n, d) or (p, n, d)."""
        return namespace(X).sum(0 * weights, axis=-1, keepdims=True) + 0 * X

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return zeros, (p, n, d)."""
        return 0 * as_like(coef, X).T[:, :1, None] + 0 * X

    def _full(self, X: Array, shape: tuple[int, ...]) -> Array:
        self.validate()
        xp = namespace(X)
        dtype = X.dtype if xp.isdtype(X.dtype, "real floating") else xp.float64
        return xp.full(shape, float(self.value), dtype=dtype, device=device(X))
