"""Scalar kernels between vectors, their sums and products, and kernels that come from elsewhere."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import gammaln, kve
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels, rbf_kernel

from fenchel._array import Array, as_like, host, is_numpy, namespace
from fenchel._check import Interval, Options, check_array, check_parameter
from fenchel._component import from_name
from fenchel.kernels.base import ScalarKernel

__all__ = [
    "Gaussian",
    "GaussianTanimoto",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Sum",
    "Tanimoto",
    "Wrapped",
    "as_scalar_kernel",
]

_POSITIVE = Interval(0, math.inf)
_BLOCK_BYTES = 2**26  # temporaries of blocked loops stay below this
_CACHE_BYTES = 2**19  # a block of this size stays in cache between two passes
_MEDIAN_ROWS = 1000


class _VectorKernel(ScalarKernel, ABC):
    """A kernel between the rows of two matrices; arguments are checked here, once for all such kernels."""

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.validate()
        X = self._check_points(X, "X")
        if Z is not None:
            Z = self._check_points(Z, "Z")
            if Z.shape[1] != X.shape[1]:
                raise ValueError(f"Z must have {X.shape[1]} columns, as X has. Got shape {tuple(Z.shape)} instead.")
            if X.dtype != Z.dtype:
                xp = namespace(X, Z)
                dtype = xp.result_type(X, Z)
                X, Z = xp.astype(X, dtype), xp.astype(Z, dtype)
        return self._values(X, Z)

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.validate()
        return self._diagonal(self._check_points(X, "X"))

    @abstractmethod
    def _values(self, X: Array, Z: Array | None) -> Array:
        """Return the kernel matrix of checked arguments."""

    def _diagonal(self, X: Array) -> Array:
        """Return the diagonal for a checked argument; one for every row unless overridden."""
        return namespace(X).ones_like(X[:, 0])

    def _check_points(self, points: Array, name: str) -> Array:
        points = check_array(points, name)
        if points.shape[1] == 0:
            raise ValueError(f"{name} must have at least one column. Got shape {tuple(points.shape)} instead.")
        return points


class Linear(_VectorKernel):
    r"""Linear kernel.

    .. math:: k(x, z) = \langle x, z \rangle.
    """

    def _values(self, X: Array, Z: Array | None) -> Array:
        return _inner_products(X, Z)

    def _diagonal(self, X: Array) -> Array:
        return _squared_norms(X)


class Polynomial(_VectorKernel):
    r"""Polynomial kernel.

    .. math:: k(x, z) = (\gamma \langle x, z \rangle + c_0)^{\mathrm{degree}}.

    Parameters
    ----------
    degree : int, default=3
        Degree, at least 1.
    gamma : float or None, default=None
        Positive factor of the inner product; ``None`` means ``1 / n_features``.
    coef0 : float, default=1.0
        Constant term; must be non-negative, or the kernel would not be positive semidefinite.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "degree": Interval(1, math.inf, "left", integer=True),
        "gamma": Interval(0, math.inf, also=(None,)),
        "coef0": Interval(0, math.inf, "left"),
    }

    def __init__(self, degree: int = 3, gamma: float | None = None, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def resolve(self, X: Array) -> "Polynomial":
        """Return the kernel with ``gamma`` as a number."""
        self.validate()
        return Polynomial(self.degree, _inverse_width(self.gamma, self._check_points(X, "X")), self.coef0)

    def _values(self, X: Array, Z: Array | None) -> Array:
        return self._power(_inner_products(X, Z), X)

    def _diagonal(self, X: Array) -> Array:
        return self._power(_squared_norms(X), X)

    def _power(self, products: Array, X: Array) -> Array:
        return (_inverse_width(self.gamma, X) * products + float(self.coef0)) ** int(self.degree)

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(degree=2, gamma=0.5, coef0=0.0)]


class Gaussian(_VectorKernel):
    r"""Gaussian kernel.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|_2^2).

    Parameters
    ----------
    gamma : float, None or "median", default=None
        Positive inverse width. ``None`` means ``1 / n_features``; ``"median"`` means
        :math:`1 / (2 \operatorname{med}^2)`, with the median distance between two distinct rows of the sample (1000
        evenly spaced rows of a larger one; the median of the positive distances when it is zero).
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": Interval(0, math.inf, also=(None, "median"))}

    def __init__(self, gamma: float | str | None = None) -> None:
        self.gamma = gamma

    def resolve(self, X: Array) -> "Gaussian":
        """Return the kernel with ``gamma`` as a number."""
        self.validate()
        return Gaussian(self._inverse_width(self._check_points(X, "X")))

    def _values(self, X: Array, Z: Array | None) -> Array:
        return _gaussian(X, Z, self._inverse_width(X, Z))

    def _inverse_width(self, X: Array, Z: Array | None = None) -> float:
        if self.gamma == "median":
            return 1 / (2 * _median_distance(X, Z, "euclidean") ** 2)
        return _inverse_width(self.gamma, X)

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(gamma=0.3), cls(gamma="median")]


class Laplacian(_VectorKernel):
    r"""Laplacian kernel, with the sum of absolute differences as scikit-learn's.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|_1).

    Parameters
    ----------
    gamma : float, None or "median", default=None
        Positive inverse width. ``None`` means ``1 / n_features``; ``"median"`` means :math:`1 / \operatorname{med}`,
        with the median :math:`\ell_1` distance between two distinct rows of the sample, taken as in ``Gaussian``.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": Interval(0, math.inf, also=(None, "median"))}

    def __init__(self, gamma: float | str | None = None) -> None:
        self.gamma = gamma

    def resolve(self, X: Array) -> "Laplacian":
        """Return the kernel with ``gamma`` as a number."""
        self.validate()
        return Laplacian(self._inverse_width(self._check_points(X, "X")))

    def _values(self, X: Array, Z: Array | None) -> Array:
        gamma = self._inverse_width(X, Z)
        return _exp(_distances(X, Z, "cityblock"), -gamma)

    def _inverse_width(self, X: Array, Z: Array | None = None) -> float:
        if self.gamma == "median":
            return 1 / _median_distance(X, Z, "cityblock")
        return _inverse_width(self.gamma, X)

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(gamma=0.3), cls(gamma="median")]


class Matern(_VectorKernel):
    r"""Matérn kernel.

    .. math:: k(x, z) = \frac{2^{1-\nu}}{\Gamma(\nu)} t^\nu K_\nu(t), \qquad t = \frac{\sqrt{2\nu}}{\ell} \|x - z\|_2.

    Parameters
    ----------
    length_scale : float, default=1.0
        Width :math:`\ell`, positive.
    nu : float, default=1.5
        Smoothness, positive. 0.5, 1.5, 2.5 and ``inf`` have closed forms (``inf`` is a Gaussian); any other number
        goes through Bessel functions on the host, or for ``nu > 100``, where these overflow, through their uniform
        expansion in :math:`1/\nu`.

    References
    ----------
    [RasmussenWilliams2006]_, eq. (4.14); DLMF (https://dlmf.nist.gov), 10.41.4, for the expansion.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"length_scale": _POSITIVE, "nu": Interval(0, math.inf, "right")}

    def __init__(self, length_scale: float = 1.0, nu: float = 1.5) -> None:
        self.length_scale = length_scale
        self.nu = nu

    def _values(self, X: Array, Z: Array | None) -> Array:
        scale, nu = float(self.length_scale), float(self.nu)
        if nu == math.inf:
            return _gaussian(X, Z, 1 / (2 * scale**2))
        distances = _distances(X, Z, "euclidean")
        if nu == 0.5:
            return _exp(distances, -1 / scale)
        t = distances * (math.sqrt(2 * nu) / scale)
        if nu == 1.5:
            return (1 + t) * _exp(t, -1.0)
        if nu == 2.5:
            return (1 + t + t**2 / 3) * _exp(t, -1.0)
        return as_like(_matern_of(host(t).astype(np.float64), nu), X)

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [cls(length_scale=2.0, nu=nu) for nu in (0.5, 0.8, 1.5, 2.5, 4.0, 150.0, math.inf)]


class Tanimoto(_VectorKernel):
    r"""Tanimoto (Jaccard) similarity of fingerprints: 0/1 vectors, or non-negative ones.

    .. math:: k(x, z) = \frac{\langle x, z \rangle}{\|x\|^2 + \|z\|^2 - \langle x, z \rangle}.

    Two zero vectors have similarity 1, a zero vector and another one 0. Boolean and integer inputs are accepted.

    References
    ----------
    [Ralaivola2005]_.
    """

    def _values(self, X: Array, Z: Array | None) -> Array:
        return _tanimoto(X, Z)

    def _check_points(self, points: Array, name: str) -> Array:
        return _check_non_negative(super()._check_points(points, name), name)


class GaussianTanimoto(_VectorKernel):
    r"""Gaussian kernel on the feature map of the Tanimoto kernel T.

    .. math:: k(x, z) = \exp(-\gamma \|\phi(x) - \phi(z)\|^2) = \exp(-2 \gamma (1 - T(x, z))).

    Parameters
    ----------
    gamma : float, default=1.0
        Positive inverse width.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": _POSITIVE}

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _values(self, X: Array, Z: Array | None) -> Array:
        return _exp(1 - _tanimoto(X, Z), -2 * float(self.gamma))

    def _check_points(self, points: Array, name: str) -> Array:
        return _check_non_negative(super()._check_points(points, name), name)


class Precomputed(ScalarKernel):
    """The input is the Gram matrix itself: ``(n_train, n_train)`` in ``fit``, ``(n, n_train)`` in ``predict``."""

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return ``X``; ``Z``, the Gram matrix of the training sample, only tells how many columns are wanted."""
        X = check_array(X, "X")
        if Z is not None and X.shape[1] != Z.shape[0]:
            raise ValueError(
                f"X must have {Z.shape[0]} columns, one for each training sample, as the kernel is precomputed. "
                f"Got shape {tuple(X.shape)} instead."
            )
        return X

    def diag(self, X: Array) -> Array:
        """Return the diagonal of the square matrix ``X``, shape (n,)."""
        X = check_array(X, "X")
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be a square Gram matrix. Got shape {tuple(X.shape)} instead.")
        return namespace(X).linalg.diagonal(X)

    @property
    def is_pairwise(self) -> bool:
        """Tell whether inputs are Gram matrices rather than points."""
        return True


class _PairKernel(ScalarKernel, ABC):
    """A kernel made of two kernels of the same inputs."""

    def __init__(self, left: ScalarKernel, right: ScalarKernel) -> None:
        self.left = left
        self.right = right

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        _check_parts(self, left=self.left, right=self.right)
        return self._combine(self.left(X, Z), self.right(X, Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        _check_parts(self, left=self.left, right=self.right)
        return self._combine(self.left.diag(X), self.right.diag(X))

    def resolve(self, X: Array) -> ScalarKernel:
        """Return the kernel made of the resolved parts."""
        _check_parts(self, left=self.left, right=self.right)
        return type(self)(self.left.resolve(X), self.right.resolve(X))

    @property
    def is_pairwise(self) -> bool:
        """Tell whether inputs are Gram matrices rather than points."""
        return self.left.is_pairwise or self.right.is_pairwise

    @staticmethod
    @abstractmethod
    def _combine(left: Array, right: Array) -> Array:
        """Return the value of the pair from the values of the parts."""

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [cls(Gaussian(gamma="median"), Linear()), cls(Laplacian(), cls(Polynomial(2), Gaussian(0.1)))]


class Sum(_PairKernel):
    r"""Sum of two kernels, also written ``left + right``.

    .. math:: k(x, z) = k_1(x, z) + k_2(x, z).

    Parameters
    ----------
    left, right : ScalarKernel
        The two kernels.
    """

    @staticmethod
    def _combine(left: Array, right: Array) -> Array:
        return left + right


class Product(_PairKernel):
    r"""Product of two kernels, also written ``left * right``.

    .. math:: k(x, z) = k_1(x, z) \, k_2(x, z).

    Parameters
    ----------
    left, right : ScalarKernel
        The two kernels.
    """

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
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"scale": _POSITIVE}

    def __init__(self, kernel: ScalarKernel, scale: float = 1.0) -> None:
        self.kernel = kernel
        self.scale = scale

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        _check_parts(self, kernel=self.kernel)
        return float(self.scale) * self.kernel(X, Z)

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        _check_parts(self, kernel=self.kernel)
        return float(self.scale) * self.kernel.diag(X)

    def resolve(self, X: Array) -> "Scaled":
        """Return the kernel made of the resolved part."""
        _check_parts(self, kernel=self.kernel)
        return Scaled(self.kernel.resolve(X), self.scale)

    @property
    def is_pairwise(self) -> bool:
        """Tell whether inputs are Gram matrices rather than points."""
        return self.kernel.is_pairwise

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [cls(Gaussian(gamma="median"), 2.5)]


ScalarKernel._sum, ScalarKernel._product, ScalarKernel._scaled = Sum, Product, Scaled


class Wrapped(ScalarKernel):
    """A kernel from elsewhere: a Gaussian-process kernel or a pairwise kernel of scikit-learn, or a function.

    NumPy arrays only; the values are given back in the dtype of ``X`` (float64 when it is not floating). Kernels of
    scikit-learn get booleans and integers as float64, a function gets its arguments as they are.

    Parameters
    ----------
    kernel : str, object or callable
        A name of ``sklearn.metrics.pairwise`` (``"rbf"``, ``"chi2"``, ``"cosine"``...), with its default parameters; a
        kernel of ``sklearn.gaussian_process.kernels``; or a function ``f(X, Z)`` that returns the matrix of values,
        where an entry depends on its row of ``X`` and its row of ``Z`` only.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def validate(self) -> "Wrapped":
        """Raise if the kernel is none of those wanted."""
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
    def _is_process_kernel(self) -> bool:
        """Tell whether the kernel follows scikit-learn's Gaussian-process protocol: ``k(X)``, ``k.diag(X)``."""
        return hasattr(self.kernel, "diag")

    def _check_sample(self, X: Any, name: str) -> Array:
        if not isinstance(X, np.ndarray):
            raise TypeError(
                f"{name} must be a NumPy array for a wrapped kernel. Got {type(X).__name__} instead; "
                "use a kernel of fenchel.kernels for other array libraries."
            )
        if X.ndim == 0 or len(X) == 0:
            raise ValueError(f"{name} must have at least one sample. Got shape {X.shape} instead.")
        is_function = not isinstance(self.kernel, str) and not self._is_process_kernel
        # scikit-learn's DotProduct would multiply booleans as booleans
        return X if is_function or X.dtype.kind not in "biu" else X.astype(np.float64)

    def _raw(self, X: Array, Z: Array) -> Any:
        if isinstance(self.kernel, str):
            return pairwise_kernels(X, Z, metric=self.kernel)
        return self.kernel(X, Z)

    def _checked(self, values: Any, X: Array, shape: tuple[int, ...]) -> Array:
        dtype = X.dtype if np.issubdtype(X.dtype, np.floating) else np.float64
        values = np.asarray(values, dtype=dtype)
        if values.shape != shape:
            raise ValueError(f"{self!r} must return an array of shape {shape}. Got shape {values.shape} instead.")
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{self!r} must return finite values. Some are NaN or infinite.")
        return values

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [cls("rbf"), cls("cosine"), cls(RBF(2.0) + DotProduct()), cls(rbf_kernel)]


def as_scalar_kernel(value: Any) -> ScalarKernel:
    """Return the kernel that a value means.

    Parameters
    ----------
    value : ScalarKernel, str, object or callable
        A kernel; a short name of this module (``"gaussian"``, ``"gaussian_tanimoto"``...); or what ``Wrapped`` takes.
        A name that is known here and to scikit-learn means the kernel of this module.

    Returns
    -------
    kernel : ScalarKernel
        The kernel itself when ``value`` is one.
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
    """Return the kernel of this module, else the pairwise kernel of scikit-learn, that has the name."""
    try:
        kernel: ScalarKernel = from_name(name, sys.modules[__name__], "kernel")
        return kernel
    except TypeError as error:
        raise ValueError(f"The kernel {name!r} has parameters without a default; pass an instance.") from error
    except ValueError as error:
        pairwise = sorted(kernel_metrics())
        if name in pairwise:
            return Wrapped(name)
        raise ValueError(f"{error} Pairwise names of scikit-learn: {', '.join(map(repr, pairwise))}.") from error


def _check_parts(owner: ScalarKernel, **parts: Any) -> None:
    """Raise unless the parts of a combined kernel are kernels and have valid parameters."""
    for name, part in parts.items():
        if not isinstance(part, ScalarKernel):
            raise TypeError(
                f"The {name!r} parameter of {type(owner).__name__} must be a ScalarKernel. Got {part!r} instead."
            )
    owner.validate()


def _check_non_negative(points: Array, name: str) -> Array:
    """Return the array if it holds no negative number, else raise."""
    low = float(namespace(points).min(points))
    if low < 0:
        raise ValueError(f"{name} must be non-negative for a Tanimoto kernel. Its least entry is {low:.3e}.")
    return points


def _inverse_width(gamma: float | str | None, X: Array) -> float:
    """Return ``gamma`` as a Python float, which leaves float32 arrays in float32."""
    return 1 / X.shape[1] if gamma is None else float(gamma)


def _median_distance(X: Array, Z: Array | None, metric: str) -> float:
    """Return the median distance of two distinct rows of X, which must be the whole sample (``Z`` is None)."""
    if Z is not None:
        raise ValueError(
            "gamma='median' depends on the training sample: call kernel.resolve(X_train) first, then the kernel it "
            "returns on (X, Z)."
        )
    n = X.shape[0]
    if n > _MEDIAN_ROWS:
        xp = namespace(X)
        rows = np.linspace(0, n - 1, _MEDIAN_ROWS).astype(np.int64)
        X = xp.take(X, xp.asarray(rows, device=X.device), axis=0)
    distances = pdist(host(X), metric)
    median = float(np.median(distances)) if distances.size else 0.0
    if median > 0:
        return median
    positive = distances[distances > 0]
    return float(np.median(positive)) if positive.size else 1.0


def _squared_norms(X: Array) -> Array:
    """Return the squared Euclidean norms of the rows, shape (n,)."""
    if is_numpy(X):
        return np.einsum("ij,ij->i", X, X)
    return namespace(X).sum(X * X, axis=1)


def _inner_products(X: Array, Z: Array | None) -> Array:
    """Return the inner products of the rows in a new array, symmetric to the bit when ``Z`` is None."""
    if Z is not None:
        return X @ Z.T
    if is_numpy(X):  # NumPy sees one operand twice and fills both triangles from one
        X = np.ascontiguousarray(X)
        return X @ X.T
    products = X @ X.T
    return (products + products.T) / 2


def _norms_beside(products: Array, X: Array, Z: Array | None) -> tuple[Array, Array]:
    """Return the squared norms of the rows of X and Z; for ``Z=None`` to the bit those in the inner products."""
    if Z is not None:
        return _squared_norms(X), _squared_norms(Z)
    norms = namespace(X).linalg.diagonal(products) * 1.0  # NumPy's diagonal is a view of the buffer
    return norms, norms


def _gaussian(X: Array, Z: Array | None, gamma: float) -> Array:
    """Return exp(-gamma |x_i - z_j|^2), by a matrix product of the centred data."""
    xp = namespace(X)
    center, scale = xp.mean(X, axis=0, keepdims=True), math.sqrt(2 * gamma)
    X = (X - center) * scale
    Z = None if Z is None else (Z - center) * scale
    products = _inner_products(X, Z)
    left, right = (norms / 2 for norms in _norms_beside(products, X, Z))
    if not is_numpy(X):
        return xp.exp(xp.clip(products - (left[:, None] + right[None, :]), max=0.0))
    for rows in _row_blocks(products.shape, products.itemsize, _CACHE_BYTES):
        block = products[rows]
        block -= left[rows, None] + right
        np.minimum(block, 0, out=block)
        np.exp(block, out=block)
    return products


def _tanimoto(X: Array, Z: Array | None) -> Array:
    """Return the Tanimoto similarities of non-negative rows, at most 1."""
    products = _inner_products(X, Z)
    left, right = _norms_beside(products, X, Z)
    if not is_numpy(X):
        return _ratios(products, left[:, None] + right[None, :] - products)
    for rows in _row_blocks(products.shape, products.itemsize, _CACHE_BYTES):
        products[rows] = _ratios(products[rows], left[rows, None] + right - products[rows])
    return products


def _ratios(common: Array, union: Array) -> Array:
    """Return common / union, at most 1, and 1 where the union is empty."""
    xp = namespace(union)
    one = xp.ones_like(union)
    is_empty = union == 0
    return xp.clip(xp.where(is_empty, one, common) / xp.where(is_empty, one, union), max=1.0)


def _exp(values: Array, factor: float) -> Array:
    """Return exp(factor * values); the buffer of a NumPy argument is used again."""
    if not is_numpy(values):
        return namespace(values).exp(factor * values)
    np.multiply(values, factor, out=values)
    return np.exp(values, out=values)


def _distances(X: Array, Z: Array | None, metric: str) -> Array:
    """Return the distances of the rows in a new array, without the cancellation of a matrix product."""
    if is_numpy(X):
        distances = squareform(pdist(X, metric)) if Z is None else cdist(X, Z, metric)
        return distances.astype(X.dtype, copy=False)
    xp = namespace(X)
    Z = X if Z is None else Z
    d, itemsize = X.shape[1], xp.finfo(X.dtype).bits // 8
    budget = _BLOCK_BYTES // 2  # a difference and its absolute value live together
    columns = list(_row_blocks(Z.shape, itemsize, budget))
    width = min(Z.shape[0], max(1, budget // (d * itemsize)))
    norm = _absolute_sum if metric == "cityblock" else _root_of_squares
    out = [
        xp.concat([norm(X[rows, None, :] - Z[None, part, :]) for part in columns], axis=1)
        for rows in _row_blocks((X.shape[0], width * d), itemsize, budget)
    ]
    return xp.concat(out, axis=0)


def _absolute_sum(differences: Array) -> Array:
    xp = namespace(differences)
    return xp.sum(xp.abs(differences), axis=-1)


def _root_of_squares(differences: Array) -> Array:
    xp = namespace(differences)
    return xp.sqrt(xp.sum(differences * differences, axis=-1))


def _row_blocks(shape: tuple[int, ...], itemsize: int, budget: int) -> Iterator[slice]:
    """Yield slices of rows whose part of an array of the shape takes at most ``budget`` bytes (or one row)."""
    step = max(1, budget // (shape[1] * itemsize))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def _matern_of(t: np.ndarray, nu: float) -> np.ndarray:
    """Return 2^(1-nu) / Gamma(nu) t^nu K_nu(t), in logarithms to keep away from overflow."""
    if nu > 100:
        return _matern_expansion(t, nu)
    t = np.minimum(t, 1e6)  # the value is zero from far below; Bessel functions are NaN far above
    with np.errstate(divide="ignore", invalid="ignore"):
        bessel = kve(nu, t)
        logs = (1 - nu) * math.log(2) - gammaln(nu) + nu * np.log(t) + np.log(bessel) - t
    # K_nu overflows where t is so small that the first two terms of the series are exact to round-off
    near = np.exp(-(t**2) / (4 * (nu - 1))) if nu > 2 else np.ones_like(t)
    return np.where(np.isinf(bessel), near, np.exp(np.minimum(logs, 0.0)))


def _matern_expansion(t: np.ndarray, nu: float) -> np.ndarray:
    """Return the same for large nu by Debye's uniform expansion of K_nu, DLMF 10.41.4, over its value at zero."""
    square = (t / nu) ** 2
    p = 1 / np.sqrt(1 + square)
    excess = square / (1 + 1 / p)  # 1/p - 1
    logs = nu * (np.log1p(excess / 2) - excess) - np.log1p(excess) / 2
    values: np.ndarray = np.exp(logs) * _debye_sum(p, nu) / _debye_sum(1.0, nu)
    return values


def _debye_sum(p: Any, nu: float) -> Any:
    """Return the sum of (-1)^k U_k(p) / nu^k for k up to 4, DLMF 10.41.10."""
    q = p**2
    first = p * (3 - 5 * q) / 24
    second = q * (81 + q * (-462 + q * 385)) / 1152
    third = p * q * (30375 + q * (-369603 + q * (765765 - q * 425425))) / 414720
    fourth = q**2 * (4465125 + q * (-94121676 + q * (349922430 + q * (-446185740 + q * 185910725)))) / 39813120
    return 1 - (first - (second - (third - fourth / nu) / nu) / nu) / nu
