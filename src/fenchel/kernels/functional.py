"""Scalar kernels between curves."""

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist

from fenchel._array import Array, as_like, host, namespace
from fenchel._check import Interval, Options, check_array
from fenchel.data.quadrature import trapezoid_weights
from fenchel.kernels._distances import (
    check_whole_sample,
    distances,
    evenly_spaced,
    exp,
    gaussian,
    inner_products,
    integral_gaussian,
    laplacian_factors,
    mean_over_points,
    median_distance,
    minus_absolute_sums,
    positive_median,
    same_dtype,
    spaced_sample,
    squared_norms,
)
from fenchel.kernels.scalar import Gaussian, Linear
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.tags import KernelTags

__all__ = [
    "FunctionalGaussian",
    "FunctionalLaplacian",
    "FunctionalLinear",
    "IntegralGaussian",
    "IntegralLaplacian",
]

_MEDIAN_POINTS = 1000  # points of a curve that the median heuristic looks at
_MEDIAN_VALUES = 2**22  # numbers whose median is taken: 32 MiB


class CurveKernel(ScalarKernel, ABC):
    """Kernel between curves on a common grid, (n, m), or (n, m, c) with c channels."""

    grid: ArrayLike | None

    def weights(self, X: Array) -> np.ndarray:
        """Return the quadrature weights of the m points."""
        m = X.shape[1]
        weights = np.full(m, 1 / m) if self.grid is None else trapezoid_weights(self.grid)
        if weights.shape[0] != m:
            raise ValueError(
                f"The 'grid' parameter of {type(self).__name__} must hold {m} points, as many as the curves. "
                f"Got {weights.shape[0]} instead."
            )
        return weights

    def coordinates(self, curves: Array) -> Array:
        """Return rows, (n, m c), whose Euclidean inner products and distances are those of the curves."""
        roots = as_like(np.sqrt(self.weights(curves)), curves)
        return namespace(curves).reshape(curves * roots[None, :, None], (curves.shape[0], -1))

    def _check_curves(self, curves: Array, name: str) -> Array:
        """Return the curves with three dimensions; raise if a value is missing."""
        xp = namespace(curves)
        if xp.isdtype(curves.dtype, "real floating"):
            missing = int(xp.sum(xp.astype(xp.isnan(curves), xp.int64)))
            if missing:
                raise ValueError(
                    f"Input curves must be complete. {missing} of the {math.prod(curves.shape)} values of {name} are "
                    "missing (NaN); interpolate them first."
                )
        curves = check_array(curves, name, ndim=(2, 3))
        if 0 in curves.shape:
            raise ValueError(
                f"The curves of {name} must have at least one point and one channel. Got shape {tuple(curves.shape)}."
            )
        return curves if curves.ndim == 3 else curves[:, :, None]

    def pair(self, X: Array, Z: Array | None) -> tuple[Array, Array | None]:
        """Return checked curves and a second sample on the same number of points, in a common dtype."""
        X = self._check_curves(X, "X")
        if Z is None:
            return X, None
        Z = self._check_curves(Z, "Z")
        if X.shape[1:] != Z.shape[1:]:
            expected, came = ("{} points and {} channels".format(*curves.shape[1:]) for curves in (X, Z))
            raise ValueError(f"The curves of Z must have {expected}, like those of X. Got {came} instead.")
        return same_dtype(X, Z)

    def on_coordinates(self) -> ScalarKernel | None:
        """Return the kernel on coordinates, or ``None`` if it has no derivative."""
        return None


class _UnitKernel(CurveKernel, ABC):
    """Kernel between curves with k(x, x) = 1."""

    tags = KernelTags(diag_bound=1.0)

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": Interval(0, math.inf, also=("median",))}

    def __init__(self, gamma: float | str = 1.0, grid: ArrayLike | None = None) -> None:
        self.gamma = gamma
        self.grid = grid

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.check()
        X, Z = self.pair(X, Z)
        return self._values(X, Z, self._inverse_width(X, Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.check()
        return namespace(X).ones_like(self._check_curves(X, "X")[:, 0, 0])

    def resolve(self, X: Array, weights: Array | None = None) -> ScalarKernel:
        """Return the kernel with ``gamma`` as a number."""
        self.check()
        return self.ready(gamma=self._inverse_width(self._check_curves(X, "X"), None, weights))

    @abstractmethod
    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        """Return the kernel matrix of checked curves, (n, m, c)."""

    @abstractmethod
    def _median_width(self, X: Array, weights: Array | None) -> float:
        """Return the inverse width given by the median heuristic on checked curves."""

    def _inverse_width(self, X: Array, Z: Array | None, weights: Array | None = None) -> float:
        if self.gamma != "median":
            return float(self.gamma)
        check_whole_sample(Z)
        return self._median_width(X, weights)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(0.3), cls("median")]


class FunctionalGaussian(_UnitKernel):
    r"""Gaussian kernel between curves.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|^2), \qquad \|x\|^2 = \int \sum_c x_c(t)^2 \, dt.

    Parameters
    ----------
    gamma : float or "median", default=1.0
        Positive inverse width. ``"median"`` means :math:`1 / (2 \operatorname{med}^2)`, with the median distance
        between two distinct curves, computed as in ``Gaussian``.
    grid : array of shape (m,) or None, default=None
        Increasing points at which the curves are known; integrals use the trapezoid rule. ``None`` means the mean
        over the m points: a grid on, or a random draw from, an interval of length 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import FunctionalGaussian
    >>> t = np.linspace(0, 2, 101)
    >>> curves = np.stack([0 * t, 1 + 0 * t])
    >>> FunctionalGaussian(0.5, grid=t)(curves).round(4)  # the squared distance is 2
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    def on_coordinates(self) -> ScalarKernel:
        """Return the kernel on coordinates."""
        return Gaussian(self.gamma)

    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        return gaussian(self.coordinates(X), None if Z is None else self.coordinates(Z), gamma)

    def _median_width(self, X: Array, weights: Array | None) -> float:
        return 1 / (2 * median_distance(self.coordinates(X), None, "euclidean", weights) ** 2)


class FunctionalLaplacian(_UnitKernel):
    r"""Laplacian kernel between curves.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|), \qquad \|x\|^2 = \int \sum_c x_c(t)^2 \, dt.

    Parameters
    ----------
    gamma : float or "median", default=1.0
        Positive inverse width. ``"median"`` means :math:`1 / \operatorname{med}`, with the median distance between
        two distinct curves, computed as in ``Gaussian``.
    grid : array of shape (m,) or None, default=None
        As in ``FunctionalGaussian``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import FunctionalLaplacian
    >>> curves = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> FunctionalLaplacian(gamma=1.0)(curves).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        lengths = distances(self.coordinates(X), None if Z is None else self.coordinates(Z), "euclidean")
        return exp(lengths, -gamma)

    def _median_width(self, X: Array, weights: Array | None) -> float:
        return 1 / median_distance(self.coordinates(X), None, "euclidean", weights)


class FunctionalLinear(CurveKernel):
    r"""Inner product of two curves.

    .. math:: k(x, z) = \int \sum_c x_c(t) z_c(t) \, dt.

    Parameters
    ----------
    grid : array of shape (m,) or None, default=None
        As in ``FunctionalGaussian``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import FunctionalLinear
    >>> curves = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> FunctionalLinear()(curves).round(4).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """

    tags = KernelTags(has_features=True)

    def __init__(self, grid: ArrayLike | None = None) -> None:
        self.grid = grid

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        X, Z = self.pair(X, Z)
        return inner_products(self.coordinates(X), None if Z is None else self.coordinates(Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        return squared_norms(self.features(X))

    def features(self, X: Array) -> Array:
        """Return the values of the curves times the square roots of the quadrature weights, (n, m c)."""
        return self.coordinates(self._check_curves(X, "X"))

    def on_coordinates(self) -> ScalarKernel:
        """Return the kernel on coordinates."""
        return Linear()


class _IntegralKernel(_UnitKernel, ABC):
    """Mean over the points of a kernel between the values of the curves."""

    _metric: ClassVar[str]

    def _mean_weights(self, X: Array) -> Array:
        weights = self.weights(X)
        return as_like(weights / np.sum(weights), X)

    def _median_width(self, X: Array, weights: Array | None) -> float:
        curves = evenly_spaced(X, _MEDIAN_POINTS, axis=1)
        n_pairs = _MEDIAN_VALUES // curves.shape[1]
        curves, counts = spaced_sample(curves, math.isqrt(2 * n_pairs), weights)
        pairs = [pdist(values, self._metric) for values in np.moveaxis(host(curves), 1, 0)]
        return 1 / positive_median(np.stack(pairs), counts)


class IntegralGaussian(_IntegralKernel):
    r"""Mean over the points of the Gaussian kernel between the values of two curves.

    .. math:: k(x, z) = \frac{1}{|T|} \int_T \exp\Big(-\gamma \sum_c |x_c(t) - z_c(t)|^2\Big) \, dt.

    Parameters
    ----------
    gamma : float or "median", default=1.0
        Positive inverse width. ``"median"`` means :math:`1 / \operatorname{med}`, with the median of
        :math:`\sum_c |x_c(t) - z_c(t)|^2` over the pairs of curves and the points where it is not zero, weighted by the
        sample weights of the pairs. A large sample is thinned evenly: at most 1000 points, and curves up to four
        million such numbers.
    grid : array of shape (m,) or None, default=None
        Increasing points at which the curves are known; the mean is the integral by the trapezoid rule divided by the
        length of the grid. ``None`` means the plain mean over the m points.

    Notes
    -----
    The kernel is bounded pointwise: a part of the interval where two curves are far apart costs at most its share.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import IntegralGaussian
    >>> curves = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> IntegralGaussian(gamma=1.0)(curves).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    _metric = "sqeuclidean"

    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        return integral_gaussian(X, Z, self._mean_weights(X), gamma)


class IntegralLaplacian(_IntegralKernel):
    r"""Mean over the points of the Laplacian kernel between the values of two curves.

    .. math:: k(x, z) = \frac{1}{|T|} \int_T \exp\Big(-\gamma \sum_c |x_c(t) - z_c(t)|\Big) \, dt.

    Parameters
    ----------
    gamma : float or "median", default=1.0
        Positive inverse width. ``"median"`` means :math:`1 / \operatorname{med}`, with the median of
        :math:`\sum_c |x_c(t) - z_c(t)|`, computed as in ``IntegralGaussian``.
    grid : array of shape (m,) or None, default=None
        As in ``IntegralGaussian``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import IntegralLaplacian
    >>> curves = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> IntegralLaplacian(gamma=1.0)(curves).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    _metric = "cityblock"

    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        prepare = partial(laplacian_factors, gamma=gamma)
        return mean_over_points(X, Z, self._mean_weights(X), prepare, minus_absolute_sums)
