"""Sums, products and multiples of kernels, and the constant, which adds an intercept."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, device, namespace
from fenchel._check import Interval, Options
from fenchel.kernels.fused import DistanceTerm, distance_terms
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear, Polynomial
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.tags import KernelTags

__all__ = ["Constant", "Product", "Scaled", "Sum"]

_POSITIVE = Interval(0, math.inf)  # factors and constants; a kernel times zero is not one


class _Combination(ScalarKernel, ABC):
    """A kernel made of kernels on the same inputs."""

    _has_short_name = False
    _names: ClassVar[tuple[str, ...]] = ("left", "right")  # of the parameters that are kernels

    def validate(self) -> Self:
        """Raise if a part is not a kernel with valid parameters."""
        for name, part in self._parts.items():
            if not isinstance(part, ScalarKernel):
                raise TypeError(
                    f"The {name!r} parameter of {type(self).__name__} must be a ScalarKernel. Got {part!r} instead."
                )
        return super().validate()

    def resolve(self, X: Array, weights: Array | None = None) -> Self:
        """Return the kernel made of the resolved parts."""
        self.check()
        return self.ready(**{name: part.resolve(X, weights) for name, part in self._parts.items()})

    def named(self, names: Sequence[str]) -> Self:
        """Return the kernel made of the parts with column names replaced by positions."""
        self.check()
        return self.ready(**{name: part.named(names) for name, part in self._parts.items()})

    @property
    def _parts(self) -> dict[str, ScalarKernel]:
        return {name: self.__dict__[name] for name in self._names}


class _PairKernel(_Combination, ABC):
    """A kernel made of two kernels, by an operation on their values."""

    def __init__(self, left: ScalarKernel, right: ScalarKernel) -> None:
        self.left = left
        self.right = right

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.check()
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is checked later on the Gram matrix
            return self._combine(self.left(X, Z), self.right(X, Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.check()
        return self._combine(self.left.diag(X), self.right.diag(X))

    @property
    def tags(self) -> KernelTags:
        """Those of both parts."""
        left, right = self.left.tags, self.right.tags
        return replace(left & right, diag_bound=float(self._combine(left.diag_bound, right.diag_bound)))

    @staticmethod
    @abstractmethod
    def _combine(left: Array, right: Array) -> Array:
        """Combine the values of the two parts."""

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(Gaussian(gamma="median"), Linear()), cls(Laplacian(), cls(Polynomial(2), Gaussian(0.1)))]


class Sum(_PairKernel):
    r"""Sum of two kernels, also written ``left + right``.

    .. math:: k(x, z) = k_1(x, z) + k_2(x, z).

    Parameters
    ----------
    left, right : ScalarKernel
        The two kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Linear
    >>> kernel = Gaussian(1.0) + Linear()
    >>> kernel
    Sum(left=Gaussian(gamma=1.0), right=Linear())
    >>> kernel(np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 2.0]]
    """

    def features(self, X: Array) -> Array | None:
        """Return the features of both parts side by side."""
        left, right = self.left.features(X), self.right.features(X)
        return None if left is None or right is None else namespace(left).concat([left, right], axis=1)

    @staticmethod
    def _combine(left: Array, right: Array) -> Array:
        return left + right


@distance_terms.register
def _(kernel: Sum, X: Array) -> list[DistanceTerm] | None:
    left, right = distance_terms(kernel.left, X), distance_terms(kernel.right, X)
    return None if left is None or right is None else [*left, *right]


class Product(_PairKernel):
    r"""Product of two kernels, also written ``left * right``.

    .. math:: k(x, z) = k_1(x, z) \, k_2(x, z).

    Parameters
    ----------
    left, right : ScalarKernel
        The two kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Linear
    >>> kernel = Gaussian(1.0) * Linear()
    >>> kernel
    Product(left=Gaussian(gamma=1.0), right=Linear())
    >>> kernel(np.array([[1.0], [2.0]])).round(4).tolist()
    [[1.0, 0.7358], [0.7358, 4.0]]
    """

    @property
    def tags(self) -> KernelTags:
        """Those of both parts, without features."""
        return replace(super().tags, has_features=False)

    @staticmethod
    def _combine(left: Array, right: Array) -> Array:
        return left * right


class Scaled(_Combination):
    r"""Kernel times a positive number, also written ``scale * kernel``.

    .. math:: k(x, z) = s \, k_1(x, z).

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel.
    scale : float, default=1.0
        Positive factor :math:`s`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Linear
    >>> kernel = 3.0 * Linear()
    >>> kernel
    Scaled(kernel=Linear(), scale=3.0)
    >>> kernel(np.array([[1.0], [2.0]])).tolist()
    [[3.0, 6.0], [6.0, 12.0]]
    """

    _names = ("kernel",)
    _limits: ClassVar[dict[str, Interval | Options]] = {"scale": _POSITIVE}

    def __init__(self, kernel: ScalarKernel, scale: float = 1.0) -> None:
        self.kernel = kernel
        self.scale = scale

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.check()
        return float(self.scale) * self.kernel(X, Z)

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.check()
        return float(self.scale) * self.kernel.diag(X)

    def features(self, X: Array) -> Array | None:
        """Return the features of the kernel times the square root of the scale."""
        features = self.kernel.features(X)
        return None if features is None else math.sqrt(self.scale) * features

    @property
    def tags(self) -> KernelTags:
        """Those of the kernel, with the bound scaled."""
        tags = self.kernel.tags
        return replace(tags, diag_bound=float(self.scale) * tags.diag_bound)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(Gaussian(gamma="median"), 2.5)]


ScalarKernel._algebra = Sum, Product, Scaled


@distance_terms.register
def _(kernel: Scaled, X: Array) -> list[DistanceTerm] | None:
    terms = distance_terms(kernel.kernel, X)
    return terms and [replace(term, weight=float(kernel.scale) * term.weight) for term in terms]


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

    _limits: ClassVar[dict[str, Interval | Options]] = {"value": _POSITIVE}

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        return self._full(X, (X.shape[0], (X if Z is None else Z).shape[0]))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        return self._full(X, (X.shape[0],))

    @property
    def tags(self) -> KernelTags:
        """One feature, and the constant itself as the bound."""
        return KernelTags(has_features=True, diag_bound=float(self.value))

    def features(self, X: Array) -> Array:
        """Return a single column filled with the square root of the constant."""
        return self._full(X, (X.shape[0], 1)) ** 0.5

    def _full(self, X: Array, shape: tuple[int, ...]) -> Array:
        self.check()
        xp = namespace(X)
        dtype = X.dtype if xp.isdtype(X.dtype, "real floating") else xp.float64
        return xp.full(shape, float(self.value), dtype=dtype, device=device(X))
