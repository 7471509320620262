"""Sums, products and multiples of kernels, and wrappers for kernels of other libraries."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels, rbf_kernel

from fenchel._array import Array, namespace
from fenchel._check import Interval, Options, check_parameter
from fenchel._component import from_name
from fenchel.kernels import columns, constant, functional, scalar
from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.distance_terms import DistanceTerm, distance_terms
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear, Polynomial
from fenchel.kernels.standardized import Standardized

__all__ = ["Product", "Scaled", "Sum", "Wrapped", "as_scalar_kernel"]

_POSITIVE = Interval(0, math.inf)


class _PairKernel(ScalarKernel, ABC):
    """A kernel made of two kernels on the same inputs."""

    def __init__(self, left: ScalarKernel, right: ScalarKernel) -> None:
        self.left = left
        self.right = right

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        _check_parts(self, left=self.left, right=self.right)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is checked later on the Gram matrix
            return self._combine(self.left(X, Z), self.right(X, Z))

    @property
    def diag_bound(self) -> float:  # type: ignore[override]
        """The least upper bound of k(x, x) over all inputs."""
        return float(self._combine(self.left.diag_bound, self.right.diag_bound))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        _check_parts(self, left=self.left, right=self.right)
        return self._combine(self.left.diag(X), self.right.diag(X))

    def resolve(self, X: Array, weights: Array | None = None) -> ScalarKernel:
        """Return the kernel made of the resolved parts."""
        _check_parts(self, left=self.left, right=self.right)
        return type(self)(self.left.resolve(X, weights), self.right.resolve(X, weights))

    def named(self, names: Sequence[str]) -> ScalarKernel:
        """Return the kernel made of the parts with column names replaced by positions."""
        _check_parts(self, left=self.left, right=self.right)
        return type(self)(self.left.named(names), self.right.named(names))

    @property
    def is_pairwise(self) -> bool:
        """Whether inputs are Gram matrices rather than points."""
        return self.left.is_pairwise or self.right.is_pairwise

    @staticmethod
    @abstractmethod
    def _combine(left: Array, right: Array) -> Array:
        """Combine the values of the two parts."""

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(Gaussian(gamma="median"), Linear()), cls(Laplacian(), cls(Polynomial(2), Gaussian(0.1)))]

    @property
    def is_trusted(self) -> bool:
        """Whether both parts are positive semidefinite by construction."""
        return self.left.is_trusted and self.right.is_trusted


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

    def slope(self, X: Array, Z: Array) -> Array:
        """Return the derivatives of k(x_i, z_j) with respect to x_i, shape (n, m), for inputs (n, 1) and (m, 1)."""
        _check_parts(self, left=self.left, right=self.right)
        return self.left.slope(X, Z) + self.right.slope(X, Z)

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        """Return the sum over j of w_ij times the gradient of k(x_i, z_j) in x_i, shape (n, d) or (p, n, d)."""
        _check_parts(self, left=self.left, right=self.right)
        return self.left.weighted_gradient(X, Z, weights) + self.right.weighted_gradient(X, Z, weights)

    @property
    def has_features(self) -> bool:
        """Whether both parts have features."""
        return self.left.has_features and self.right.has_features

    def features(self, X: Array) -> Array | None:
        """Return the features of both parts side by side."""
        left, right = self.left.features(X), self.right.features(X)
        return None if left is None or right is None else namespace(left).concat([left, right], axis=1)

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of ``features(X) @ coef``, (p, n, d), each part with its own coefficients."""
        first = self.left.features(X[:1, ...])
        if first is None:
            raise self._no_derivative()
        count = first.shape[1]
        return self.left.feature_gradient(X, coef[:count, :]) + self.right.feature_gradient(X, coef[count:, :])

    def mapped(self, change: Callable[[ScalarKernel, Array], ScalarKernel], X: Array) -> "Sum":
        """Return the sum with ``change`` applied to both parts."""
        return Sum(self.left.mapped(change, X), self.right.mapped(change, X))

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

    def slope(self, X: Array, Z: Array) -> Array:
        """Return the derivatives of k(x_i, z_j) with respect to x_i, shape (n, m), for inputs (n, 1) and (m, 1)."""
        _check_parts(self, left=self.left, right=self.right)
        return self.left.slope(X, Z) * self.right(X, Z) + self.left(X, Z) * self.right.slope(X, Z)

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        """Return the sum over j of w_ij times the gradient of k(x_i, z_j) in x_i, shape (n, d) or (p, n, d)."""
        _check_parts(self, left=self.left, right=self.right)
        first = self.left.weighted_gradient(X, Z, weights * self.right(X, Z))
        return first + self.right.weighted_gradient(X, Z, weights * self.left(X, Z))

    @staticmethod
    def _combine(left: Array, right: Array) -> Array:
        return left * right


class Scaled(ScalarKernel):
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

    _limits: ClassVar[dict[str, Interval | Options]] = {"scale": _POSITIVE}

    def __init__(self, kernel: ScalarKernel, scale: float = 1.0) -> None:
        self.kernel = kernel
        self.scale = scale

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        _check_parts(self, kernel=self.kernel)
        return float(self.scale) * self.kernel(X, Z)

    @property
    def diag_bound(self) -> float:  # type: ignore[override]
        """The least upper bound of k(x, x) over all inputs."""
        return float(self.scale) * self.kernel.diag_bound

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        _check_parts(self, kernel=self.kernel)
        return float(self.scale) * self.kernel.diag(X)

    def slope(self, X: Array, Z: Array) -> Array:
        """Return the derivatives of k(x_i, z_j) with respect to x_i, shape (n, m), for inputs (n, 1) and (m, 1)."""
        _check_parts(self, kernel=self.kernel)
        return float(self.scale) * self.kernel.slope(X, Z)

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        """Return the sum over j of w_ij times the gradient of k(x_i, z_j) in x_i, shape (n, d) or (p, n, d)."""
        _check_parts(self, kernel=self.kernel)
        return float(self.scale) * self.kernel.weighted_gradient(X, Z, weights)

    @property
    def has_features(self) -> bool:
        """Whether the kernel has features."""
        return self.kernel.has_features

    def features(self, X: Array) -> Array | None:
        """Return the features of the kernel times the square root of the scale."""
        features = self.kernel.features(X)
        return None if features is None else math.sqrt(self.scale) * features

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of ``features(X) @ coef``, (p, n, d)."""
        return math.sqrt(self.scale) * self.kernel.feature_gradient(X, coef)

    def mapped(self, change: Callable[[ScalarKernel, Array], ScalarKernel], X: Array) -> "Scaled":
        """Return the scaled kernel with ``change`` applied to the kernel."""
        return Scaled(self.kernel.mapped(change, X), self.scale)

    def resolve(self, X: Array, weights: Array | None = None) -> "Scaled":
        """Return the scaled kernel with the kernel resolved."""
        _check_parts(self, kernel=self.kernel)
        return Scaled(self.kernel.resolve(X, weights), self.scale)

    def named(self, names: Sequence[str]) -> "Scaled":
        """Return the scaled kernel with column names replaced by positions."""
        _check_parts(self, kernel=self.kernel)
        return Scaled(self.kernel.named(names), self.scale)

    @property
    def is_pairwise(self) -> bool:
        """Whether inputs are Gram matrices rather than points."""
        return self.kernel.is_pairwise

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(Gaussian(gamma="median"), 2.5)]

    @property
    def is_trusted(self) -> bool:
        """Whether the kernel is positive semidefinite by construction."""
        return self.kernel.is_trusted


ScalarKernel._sum, ScalarKernel._product, ScalarKernel._scaled = Sum, Product, Scaled


@distance_terms.register
def _(kernel: Scaled, X: Array) -> list[DistanceTerm] | None:
    terms = distance_terms(kernel.kernel, X)
    return terms and [replace(term, weight=float(kernel.scale) * term.weight) for term in terms]


class Wrapped(ScalarKernel):
    """Kernel defined elsewhere: a scikit-learn Gaussian-process or pairwise kernel, or a function.

    It takes NumPy arrays only; values are returned in the dtype of ``X`` (float64 if it is not floating). scikit-learn
    kernels receive booleans and integers as float64; a function receives its arguments unchanged.

    Parameters
    ----------
    kernel : str, object or callable
        A name from ``sklearn.metrics.pairwise`` (``"rbf"``, ``"chi2"``, ``"cosine"``...), with its default parameters;
        a kernel from ``sklearn.gaussian_process.kernels``; or a function ``f(X, Z)`` that returns the matrix of values,
        each entry of which depends only on its row of ``X`` and its row of ``Z``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from fenchel.kernels import Wrapped
    >>> Wrapped(RBF(1.0))(np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def validate(self) -> "Wrapped":
        """Raise if the kernel is not a supported kernel."""
        if isinstance(self.kernel, str):
            check_parameter("Wrapped", "kernel", self.kernel, Options(tuple(sorted(kernel_metrics()))))
        elif isinstance(self.kernel, type) or not callable(self.kernel):
            raise TypeError(
                "The 'kernel' parameter of Wrapped must be a scikit-learn kernel object, a pairwise name or a function "
                f"of (X, Z). Got {self.kernel!r} instead."
            )
        return super().validate()

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.validate()
        X = self._check_sample(X, "X")
        if Z is not None:
            Z = self._check_sample(Z, "Z")
            return self._checked(self._raw(X, Z), X, (len(X), len(Z)))
        values = self._checked(self.kernel(X) if self._is_process_kernel else self._raw(X, X), X, (len(X), len(X)))
        asymmetry = np.max(np.abs(values - values.T))
        if asymmetry > math.sqrt(np.finfo(values.dtype).eps) * np.max(np.abs(values)):
            raise ValueError(f"The matrix of {self!r} must be symmetric. Two of its entries differ by {asymmetry:.3e}.")
        return (values + values.T) / 2

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.validate()
        X = self._check_sample(X, "X")
        if self._is_process_kernel:
            return self._checked(self.kernel.diag(X), X, (len(X),))
        blocks = [X[start : start + 128] for start in range(0, len(X), 128)]
        return np.concatenate([np.diagonal(self(block)) for block in blocks])

    @property
    def takes_objects(self) -> bool:
        """Whether the kernel is a function, which receives its arguments unchanged."""
        return not isinstance(self.kernel, str) and not self._is_process_kernel

    @property
    def _is_process_kernel(self) -> bool:
        """Whether the kernel follows scikit-learn's Gaussian-process protocol: ``k(X)``, ``k.diag(X)``."""
        return hasattr(self.kernel, "diag")

    def _check_sample(self, X: Array, name: str) -> Array:
        if not isinstance(X, np.ndarray):
            raise TypeError(
                f"{name} must be a NumPy array for a wrapped kernel. Got {type(X).__name__} instead; "
                "use a kernel of fenchel.kernels for other array libraries."
            )
        if X.ndim == 0 or len(X) == 0:
            raise ValueError(f"{name} must have at least one sample. Got shape {X.shape} instead.")
        # scikit-learn's DotProduct would multiply booleans as booleans
        return X if self.takes_objects or X.dtype.kind not in "biu" else X.astype(np.float64)

    def _raw(self, X: Array, Z: Array) -> Array:
        if isinstance(self.kernel, str):
            return pairwise_kernels(X, Z, metric=self.kernel)
        return self.kernel(X, Z)

    def _checked(self, values: Array, X: Array, shape: tuple[int, ...]) -> Array:
        dtype = X.dtype if np.issubdtype(X.dtype, np.floating) else np.float64
        values = np.asarray(values, dtype=dtype)
        if values.shape != shape:
            raise ValueError(f"{self!r} must return an array of shape {shape}. Got shape {values.shape} instead.")
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{self!r} must return finite values. Some are NaN or infinite.")
        return values

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls("rbf"), cls("cosine"), cls(RBF(2.0) + DotProduct()), cls(rbf_kernel)]

    @property
    def is_trusted(self) -> bool:
        """Return False: an arbitrary function may not be positive semidefinite."""
        return False


def as_scalar_kernel(value: object) -> ScalarKernel:
    """Convert a name, a function or a kernel of another library to a scalar kernel.

    Parameters
    ----------
    value : ScalarKernel, str, object or callable
        A kernel; a short name from this module (``"gaussian"``, ``"gaussian_tanimoto"``...); ``"auto"``, a Gaussian
        kernel on standardised inputs with the median heuristic; or any argument of ``Wrapped``.
        A name known both here and to scikit-learn means the kernel of this module.

    Returns
    -------
    kernel : ScalarKernel
        ``value`` itself if it is a ScalarKernel.

    Examples
    --------
    >>> from fenchel.kernels import as_scalar_kernel
    >>> as_scalar_kernel("laplacian")
    Laplacian()
    """
    if isinstance(value, ScalarKernel):
        return value
    if isinstance(value, str):
        return _kernel_of_name(value)
    if callable(value) and not isinstance(value, type):
        return Wrapped(value)
    raise TypeError(
        "The 'kernel' argument must be a ScalarKernel, a name, a scikit-learn kernel object or a function of (X, Z). "
        f"Got {value!r} instead."
    )


def _kernel_of_name(name: str) -> ScalarKernel:
    """Return the kernel of this name from this module, or else the pairwise kernel from scikit-learn."""
    if name == "auto":
        return Standardized(Gaussian("median"))
    if name == "rbf":  # scikit-learn's name for the same kernel
        return Gaussian()
    try:
        kernel: ScalarKernel = from_name(name, (scalar, functional, columns, constant), "kernel")
        return kernel
    except ValueError as error:
        pairwise = sorted(kernel_metrics())
        if name in pairwise:
            return Wrapped(name)
        raise ValueError(f"{error} Pairwise names of scikit-learn: {', '.join(map(repr, pairwise))}.") from error


def _check_parts(owner: ScalarKernel, **parts: object) -> None:
    """Raise unless the parts of a combined kernel are kernels with valid parameters."""
    for name, part in parts.items():
        if not isinstance(part, ScalarKernel):
            raise TypeError(
                f"The {name!r} parameter of {type(owner).__name__} must be a ScalarKernel. Got {part!r} instead."
            )
    owner.validate()
