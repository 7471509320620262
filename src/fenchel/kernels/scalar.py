"""Scalar kernels between vectors, and precomputed Gram matrices."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_like, device, host, namespace
from fenchel._check import Interval, Options, check_array
from fenchel._sparse import dense
from fenchel.kernels._values import (
    check_non_negative,
    distances,
    exp,
    gaussian,
    inner_products,
    inverse_width,
    matern_of,
    median_distance,
    same_dtype,
    squared_norms,
    tanimoto,
)
from fenchel.kernels.base import ScalarKernel

__all__ = [
    "Gaussian",
    "GaussianTanimoto",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Tanimoto",
]

_POSITIVE = Interval(0, math.inf)


class _VectorKernel(ScalarKernel, ABC):
    """Kernel between the rows of two matrices, with validation shared by all such kernels."""

    diag_bound = 1.0

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.validate()
        X = self._check_points(X, "X")
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is checked later on the Gram matrix
            return self._values(X, None) if Z is None else self._values(*self._check_pair(X, Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.validate()
        return self._diagonal(self._check_points(X, "X"))

    def slope(self, X: Array, Z: Array) -> Array:
        """Return the derivatives of k(x_i, z_j) with respect to x_i, shape (n, m), for inputs (n, 1) and (m, 1)."""
        self.validate()
        X, Z = self._check_pair(self._check_points(X, "X"), Z)
        if X.shape[1] != 1:
            raise ValueError(f"X must have one column for a derivative. Got shape {tuple(X.shape)} instead.")
        along, across = self._derivative(X, Z)
        return along * (X - Z.T) + across * Z.T

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        """Return the sum over j of w_ij times the gradient of k(x_i, z_j) in x_i, shape (n, d) or (p, n, d)."""
        self.validate()
        X, Z = self._check_pair(self._check_points(X, "X"), Z)
        along, across = self._derivative(X, Z)
        moved = namespace(X).mean(X, axis=0, keepdims=True)  # differences lose fewer digits near the origin
        along, across = weights * along, weights * across
        return namespace(X).sum(along, axis=-1, keepdims=True) * (X - moved) - along @ (Z - moved) + across @ Z

    @abstractmethod
    def _values(self, X: Array, Z: Array | None) -> Array:
        """Return the kernel matrix of checked arguments."""

    def _derivative(self, X: Array, Z: Array) -> tuple[Array | float, Array | float]:
        """Return c and e such that the gradient of k(x_i, z_j) in x_i is c_ij (x_i - z_j) + e_ij z_j."""
        raise self._no_derivative()

    def _diagonal(self, X: Array) -> Array:
        """Return the diagonal for a checked argument; ones unless overridden."""
        return namespace(X).ones(X.shape[0], dtype=X.dtype, device=device(X))

    def _check_points(self, points: Array, name: str) -> Array:
        points = check_array(points, name, takes_sparse=True)
        if points.shape[1] == 0:
            raise ValueError(f"{name} must have at least one column. Got shape {tuple(points.shape)} instead.")
        return points

    def _check_pair(self, X: Array, Z: Array) -> tuple[Array, Array]:
        """Return checked points and a second sample with the same number of columns, in a common dtype."""
        Z = self._check_points(Z, "Z")
        if Z.shape[1] != X.shape[1]:
            raise ValueError(f"Z must have {X.shape[1]} columns, as X has. Got shape {tuple(Z.shape)} instead.")
        return same_dtype(X, Z)


class Linear(_VectorKernel):
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

    diag_bound = math.inf

    @property
    def has_features(self) -> bool:
        """Return True."""
        return True

    def features(self, X: Array) -> Array:
        """Return the points themselves as a dense array."""
        return dense(self._check_points(X, "X"))

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return the coefficients, the same at every point, (p, n, d)."""
        return as_like(coef, X).T[:, None, :] + 0 * X

    def _values(self, X: Array, Z: Array | None) -> Array:
        return inner_products(X, Z)

    def _derivative(self, X: Array, Z: Array) -> tuple[Array | float, Array | float]:
        return 0.0, 1.0

    def _diagonal(self, X: Array) -> Array:
        return squared_norms(X)


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
        Constant term; must be non-negative for the kernel to be positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0)(np.array([[1.0], [2.0]])).round(4).tolist()
    [[4.0, 9.0], [9.0, 25.0]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "degree": Interval(1, math.inf, "left", integer=True),
        "gamma": Interval(0, math.inf, also=(None,)),
        "coef0": Interval(0, math.inf, "left"),
    }
    diag_bound = math.inf

    def __init__(self, degree: int = 3, gamma: float | None = None, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def resolve(self, X: Array, weights: Array | None = None) -> "Polynomial":
        """Return the kernel with ``gamma`` as a number."""
        self.validate()
        return Polynomial(self.degree, inverse_width(self.gamma, self._check_points(X, "X")), self.coef0)

    def _values(self, X: Array, Z: Array | None) -> Array:
        return self._power(inner_products(X, Z), X, int(self.degree))

    def _derivative(self, X: Array, Z: Array) -> tuple[Array | float, Array | float]:
        degree = int(self.degree)
        return 0.0, (degree * inverse_width(self.gamma, X)) * self._power(X @ Z.T, X, degree - 1)

    def _diagonal(self, X: Array) -> Array:
        return self._power(squared_norms(X), X, int(self.degree))

    def _power(self, products: Array, X: Array, degree: int) -> Array:
        return (inverse_width(self.gamma, X) * products + float(self.coef0)) ** degree

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(degree=2, gamma=0.5, coef0=0.0)]


class Gaussian(_VectorKernel):
    r"""Gaussian kernel.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|_2^2).

    Parameters
    ----------
    gamma : float, None or "median", default=None
        Positive inverse width. ``None`` means ``1 / n_features``; ``"median"`` means
        :math:`1 / (2 \operatorname{med}^2)`, with the median distance between two distinct rows of the sample
        (1000 evenly spaced rows of a larger one), weighted by the sample weights of the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> Gaussian(gamma=1.0)(np.array([[0.0], [1.0]])).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": Interval(0, math.inf, also=(None, "median"))}

    def __init__(self, gamma: float | str | None = None) -> None:
        self.gamma = gamma

    def resolve(self, X: Array, weights: Array | None = None) -> "Gaussian":
        """Return the kernel with ``gamma`` as a number."""
        self.validate()
        return Gaussian(self._inverse_width(self._check_points(X, "X"), None, weights))

    def spectral_frequencies(self, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return normal frequencies of variance 2 gamma."""
        return math.sqrt(2 * inverse_width(self.gamma, normals)) * normals

    def _values(self, X: Array, Z: Array | None) -> Array:
        return gaussian(X, Z, self._inverse_width(X, Z))

    def _derivative(self, X: Array, Z: Array) -> tuple[Array | float, Array | float]:
        gamma = self._inverse_width(X, Z)
        return gaussian(X, Z, gamma) * (-2 * gamma), 0.0

    def _inverse_width(self, X: Array, Z: Array | None = None, weights: Array | None = None) -> float:
        if self.gamma == "median":
            return 1 / (2 * median_distance(X, Z, "euclidean", weights) ** 2)
        return inverse_width(self.gamma, X)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(gamma=0.3), cls(gamma="median")]


class Laplacian(_VectorKernel):
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

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": Interval(0, math.inf, also=(None, "median"))}

    def __init__(self, gamma: float | str | None = None) -> None:
        self.gamma = gamma

    def resolve(self, X: Array, weights: Array | None = None) -> "Laplacian":
        """Return the kernel with ``gamma`` as a number."""
        self.validate()
        return Laplacian(self._inverse_width(self._check_points(X, "X"), None, weights))

    def spectral_frequencies(self, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return Cauchy frequencies of scale gamma, independent across columns: ratios of two normals."""
        return inverse_width(self.gamma, normals) * normals / np.abs(rng.standard_normal(normals.shape))

    def _values(self, X: Array, Z: Array | None) -> Array:
        gamma = self._inverse_width(X, Z)
        return exp(distances(X, Z, "cityblock"), -gamma)

    def _inverse_width(self, X: Array, Z: Array | None = None, weights: Array | None = None) -> float:
        if self.gamma == "median":
            return 1 / median_distance(X, Z, "cityblock", weights)
        return inverse_width(self.gamma, X)

    @classmethod
    def examples(cls) -> list[Self]:
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

    def spectral_frequencies(self, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        r"""Return frequencies from Student's t with :math:`2 \nu` degrees of freedom and scale :math:`1 / \ell`."""
        nu = float(self.nu)
        mixing = 1.0 if nu == math.inf else rng.chisquare(2 * nu, (len(normals), 1)) / (2 * nu)
        return normals / np.sqrt(mixing) / float(self.length_scale)

    def _values(self, X: Array, Z: Array | None) -> Array:
        scale, nu = float(self.length_scale), float(self.nu)
        if nu == math.inf:
            return gaussian(X, Z, 1 / (2 * scale**2))
        return self._profile(distances(X, Z, "euclidean") * (math.sqrt(2 * nu) / scale), nu)

    def _derivative(self, X: Array, Z: Array) -> tuple[Array | float, Array | float]:
        scale, nu = float(self.length_scale), float(self.nu)
        if nu <= 1:
            return super()._derivative(X, Z)
        if nu == math.inf:
            return gaussian(X, Z, 1 / (2 * scale**2)) / -(scale**2), 0.0
        t = distances(X, Z, "euclidean") * (math.sqrt(2 * nu) / scale)
        return self._profile(t, nu - 1) * (-nu / ((nu - 1) * scale**2)), 0.0

    @staticmethod
    def _profile(t: Array, nu: float) -> Array:
        """Return the kernel of smoothness nu at scaled distances, whose buffer may be overwritten."""
        if nu == 0.5:
            return exp(t, -1.0)
        if nu in (1.5, 2.5):
            t = namespace(t).clip(
                t, max=1e4
            )  # beyond this the exponential is zero, and the distance or its square might overflow
            return (1 + t + (t**2 / 3 if nu == 2.5 else 0.0)) * exp(t, -1.0)
        return as_like(matern_of(host(t).astype(np.float64), nu), t)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(length_scale=2.0, nu=nu) for nu in (0.5, 0.8, 1.5, 2.5, 4.0, 150.0, math.inf)]


class Tanimoto(_VectorKernel):
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

    def _check_points(self, points: Array, name: str) -> Array:
        return check_non_negative(super()._check_points(points, name), name)


class GaussianTanimoto(_VectorKernel):
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

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": _POSITIVE}

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _values(self, X: Array, Z: Array | None) -> Array:
        return exp(1 - tanimoto(X, Z), -2 * float(self.gamma))

    def _check_points(self, points: Array, name: str) -> Array:
        return check_non_negative(super()._check_points(points, name), name)


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

    @property
    def is_pairwise(self) -> bool:
        """Whether inputs are Gram matrices rather than points."""
        return True

    @property
    def is_trusted(self) -> bool:
        """Return False: the matrix is supplied by the user."""
        return False
