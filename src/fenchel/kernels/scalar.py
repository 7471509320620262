"""Scalar kernels between vectors, and precomputed Gram matrices."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_like, dense, host, namespace
from fenchel._check import Interval, Options, check_array
from fenchel.kernels._distances import (
    distances,
    exp,
    gaussian,
    inner_products,
    inverse_width,
    matern_of,
    median_distance,
    squared_norms,
)
from fenchel.kernels.fused import DistanceTerm, distance_terms
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.tags import KernelTags
from fenchel.kernels.vectors import VectorKernel

__all__ = [
    "Gaussian",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "RationalQuadratic",
]

_POSITIVE = Interval(0, math.inf)  # lengths and exponents
_PROFILES = {0.5: "exponential", 1.5: "matern32", 2.5: "matern52", math.inf: "gaussian"}  # of Matern by its smoothness


class Linear(VectorKernel):
    r"""Linear kernel.

    .. math:: k(x, z) = \langle x, z \rangle.

    Notes
    -----
    The model has no intercept, and ``center=True`` of an estimator centres the outputs only. Use
    ``Standardized(Linear())`` for linear regression with an intercept: it centres the inputs, too.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Linear
    >>> Linear()(np.array([[1.0], [2.0]])).round(4).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    tags = KernelTags(has_features=True)

    def features(self, X: Array) -> Array:
        """Return the points themselves as a dense array."""
        return dense(self.points(X, "X"))

    def _values(self, X: Array, Z: Array | None) -> Array:
        return inner_products(X, Z)

    def _diagonal(self, X: Array) -> Array:
        return squared_norms(X)


class Polynomial(VectorKernel):
    r"""Polynomial kernel.

    .. math:: k(x, z) = (\gamma \langle x, z \rangle + c_0)^{\mathrm{degree}}.

    Parameters
    ----------
    degree : int, default=3
        Degree, at least 1.
    gamma : float or None, default=None
        Positive factor of the inner product; ``None`` means ``1 / n_features``.
    coef0 : float, default=1.0
        Constant term; must be non-negative for the kernel to be positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0)(np.array([[1.0], [2.0]])).round(4).tolist()
    [[4.0, 9.0], [9.0, 25.0]]
    """

    tags = KernelTags()

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "degree": Interval(1, math.inf, "left", integer=True),
        "gamma": Interval(0, math.inf, also=(None,)),
        "coef0": Interval(0, math.inf, "left"),
    }

    def __init__(self, degree: int = 3, gamma: float | None = None, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def resolve(self, X: Array, weights: Array | None = None) -> Self:
        """Return the kernel with ``gamma`` as a number."""
        self.check()
        return self.ready(gamma=inverse_width(self.gamma, self.points(X, "X")))

    def _values(self, X: Array, Z: Array | None) -> Array:
        return self.power(inner_products(X, Z), X, int(self.degree))

    def _diagonal(self, X: Array) -> Array:
        return self.power(squared_norms(X), X, int(self.degree))

    def power(self, products: Array, X: Array, degree: int) -> Array:
        """Return a power of the affine function of inner products."""
        return (inverse_width(self.gamma, X) * products + float(self.coef0)) ** degree

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(degree=2, gamma=0.5, coef0=0.0)]


class _WidthKernel(VectorKernel, ABC):
    """Kernel of a distance times an inverse width ``gamma``."""

    _metric: ClassVar[str]
    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": Interval(0, math.inf, also=(None, "median"))}

    def __init__(self, gamma: float | str | None = None) -> None:
        self.gamma = gamma

    def resolve(self, X: Array, weights: Array | None = None) -> Self:
        """Return the kernel with ``gamma`` as a number."""
        self.check()
        return self.ready(gamma=self.inverse_width(self.points(X, "X"), None, weights))

    def inverse_width(self, X: Array, Z: Array | None = None, weights: Array | None = None) -> float:
        """Return ``gamma`` as a number; the median heuristic needs the whole sample (``Z`` is None)."""
        if self.gamma == "median":
            return self._width(median_distance(X, Z, self._metric, weights))
        return inverse_width(self.gamma, X)

    @abstractmethod
    def _width(self, median: float) -> float:
        """Return the inverse width given by the median distance."""

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(gamma=0.3), cls(gamma="median")]


class Gaussian(_WidthKernel):
    r"""Gaussian kernel.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|_2^2).

    Parameters
    ----------
    gamma : float, None or "median", default=None
        Positive inverse width. ``None`` means ``1 / n_features``; ``"median"`` means
        :math:`1 / (2 \operatorname{med}^2)`, with the median distance between two distinct rows of the sample
        (1000 rows of a larger one, evenly spaced among its sorted rows), weighted by the sample weights of the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> Gaussian(gamma=1.0)(np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    _metric = "euclidean"

    def _values(self, X: Array, Z: Array | None) -> Array:
        return gaussian(X, Z, self.inverse_width(X, Z))

    def _width(self, median: float) -> float:
        return 1 / (2 * median**2)


class Laplacian(_WidthKernel):
    r"""Laplacian kernel with the l1 distance, as in scikit-learn.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|_1).

    Parameters
    ----------
    gamma : float, None or "median", default=None
        Positive inverse width. ``None`` means ``1 / n_features``; ``"median"`` means :math:`1 / \operatorname{med}`,
        with the median :math:`\ell_1` distance between two distinct rows of the sample, computed as in ``Gaussian``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Laplacian
    >>> Laplacian(gamma=1.0)(np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    _metric = "cityblock"

    def _values(self, X: Array, Z: Array | None) -> Array:
        gamma = self.inverse_width(X, Z)
        return exp(distances(X, Z, "cityblock"), -gamma)

    def _width(self, median: float) -> float:
        return 1 / median


class Matern(VectorKernel):
    r"""Matérn kernel.

    .. math:: k(x, z) = \frac{2^{1-\nu}}{\Gamma(\nu)} t^\nu K_\nu(t), \qquad t = \frac{\sqrt{2\nu}}{\ell} \|x - z\|_2.

    Parameters
    ----------
    length_scale : float, default=1.0
        Width :math:`\ell`, positive.
    nu : float, default=1.5
        Smoothness, positive. 0.5, 1.5, 2.5 and ``inf`` have closed forms (``inf`` is a Gaussian); any other value
        uses Bessel functions on the host or, for ``nu > 100``, where these overflow, their uniform expansion in
        :math:`1/\nu`.

    Notes
    -----
    The derivative exists for ``nu > 1``. By :math:`(t^\nu K_\nu)' = -t^\nu K_{\nu-1}`, the derivative of the profile
    is :math:`-t / (2\nu - 2)` times the profile of smoothness :math:`\nu - 1`.

    References
    ----------
    [RasmussenWilliams2006]_, eq. (4.14); DLMF (https://dlmf.nist.gov), 10.41.4, for the expansion, and 10.29.4, for the
    derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Matern
    >>> Matern(nu=1.5)(np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.4834], [0.4834, 1.0]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"length_scale": _POSITIVE, "nu": Interval(0, math.inf, "right")}

    def __init__(self, length_scale: float = 1.0, nu: float = 1.5) -> None:
        self.length_scale = length_scale
        self.nu = nu

    def _values(self, X: Array, Z: Array | None) -> Array:
        scale, nu = float(self.length_scale), float(self.nu)
        if nu == math.inf:
            return gaussian(X, Z, 1 / (2 * scale**2))
        return self.profile(distances(X, Z, "euclidean") * (math.sqrt(2 * nu) / scale), nu)

    @staticmethod
    def profile(t: Array, nu: float) -> Array:
        """Return the kernel of smoothness nu at scaled distances, whose buffer may be overwritten."""
        if nu == 0.5:
            return exp(t, -1.0)
        if nu in (1.5, 2.5):
            t = namespace(t).clip(t, max=1e4)  # the exponential is zero beyond; the square might overflow
            return (1 + t + (t**2 / 3 if nu == 2.5 else 0.0)) * exp(t, -1.0)
        return as_like(matern_of(host(t).astype(np.float64), nu), t)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(length_scale=2.0, nu=nu) for nu in (0.5, 0.8, 1.5, 2.5, 4.0, 150.0, math.inf)]


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
        "length_scale": _POSITIVE,
        "alpha": _POSITIVE,
    }

    def __init__(self, length_scale: float = 1.0, alpha: float = 1.0) -> None:
        self.length_scale = length_scale
        self.alpha = alpha

    def profile(self, squares: Array) -> Array:
        """Return the kernel at squared distances."""
        return self.base(squares) ** -float(self.alpha)

    def _values(self, X: Array, Z: Array | None) -> Array:
        return self.profile(distances(X, Z, "euclidean") ** 2)

    def base(self, squares: Array) -> Array:
        """Return the base of the power at squared distances."""
        return 1 + squares / (2 * float(self.alpha) * float(self.length_scale) ** 2)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(length_scale=2.0, alpha=0.5)]


class Precomputed(ScalarKernel):
    """Precomputed Gram matrix as input: ``(n_train, n_train)`` in ``fit``, ``(n, n_train)`` in ``predict``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Gaussian, Precomputed
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> gram = Gaussian(1.0)(X)
    >>> model = OperatorKernelRegressor(Precomputed(), lam=1e-3).fit(gram, np.sin(X))
    >>> model.predict(gram[:2]).shape
    (2, 1)
    """

    tags = KernelTags(is_pairwise=True, is_trusted=False)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return ``X``; ``Z``, the Gram matrix of the training sample, only determines the number of columns."""
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


@distance_terms.register
def _gaussian(kernel: Gaussian, X: Array) -> list[DistanceTerm] | None:
    return [DistanceTerm("gaussian", math.sqrt(inverse_width(kernel.gamma, X)) * X)]


@distance_terms.register
def _laplacian(kernel: Laplacian, X: Array) -> list[DistanceTerm] | None:
    return [DistanceTerm("laplacian", inverse_width(kernel.gamma, X) * X)]


@distance_terms.register
def _matern(kernel: Matern, X: Array) -> list[DistanceTerm] | None:
    nu = float(kernel.nu)
    if nu not in _PROFILES:
        return None
    factor = math.sqrt(0.5 if nu == math.inf else 2 * nu) / float(kernel.length_scale)
    return [DistanceTerm(_PROFILES[nu], factor * X)]


@distance_terms.register
def _linear(kernel: Linear, X: Array) -> list[DistanceTerm] | None:
    return [DistanceTerm("linear", X)]
