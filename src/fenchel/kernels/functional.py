"""Scalar kernels between curves, and kernels on some columns of a table."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import pdist

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel._check import Interval, Options, check_array
from fenchel.kernels._values import (
    check_whole_sample,
    distances,
    evenly_spaced,
    exp,
    gaussian,
    integral_gaussian,
    laplacian_factors,
    mean_over_points,
    median_distance,
    minus_absolute_sums,
    positive_median,
    same_dtype,
    spaced_sample,
)
from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.scalar import Gaussian
from fenchel.quadrature import trapezoid_weights

__all__ = ["FunctionalGaussian", "FunctionalLaplacian", "IntegralGaussian", "IntegralLaplacian", "Part"]

_MEDIAN_POINTS = 1000
_MEDIAN_VALUES = 2**22


class _CurveKernel(ScalarKernel, ABC):
    """A kernel between curves on one grid, (n, m), or (n, m, c) with c channels; its values at (x, x) are 1."""

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": Interval(0, math.inf, also=("median",))}

    def __init__(self, gamma: float | str = 1.0, grid: Any = None) -> None:
        self.gamma = gamma
        self.grid = grid

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.validate()
        X = self._check_curves(X, "X")
        if Z is not None:
            Z = self._check_curves(Z, "Z")
            if X.shape[1:] != Z.shape[1:]:
                wanted, came = ("{} points and {} channels".format(*curves.shape[1:]) for curves in (X, Z))
                raise ValueError(f"The curves of Z must have {wanted}, as those of X. Got {came} instead.")
            X, Z = same_dtype(X, Z)
        return self._values(X, Z, self._inverse_width(X, Z))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.validate()
        return namespace(X).ones_like(self._check_curves(X, "X")[:, 0, 0])

    def resolve(self, X: Array, weights: Array | None = None) -> ScalarKernel:
        """Return the kernel with ``gamma`` as a number."""
        self.validate()
        return type(self)(self._inverse_width(self._check_curves(X, "X"), None, weights), self.grid)

    @abstractmethod
    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        """Return the kernel matrix of checked curves, (n, m, c)."""

    @abstractmethod
    def _median_width(self, X: Array, weights: Array | None) -> float:
        """Return the inverse width of the median heuristic for checked curves."""

    def _inverse_width(self, X: Array, Z: Array | None, weights: Array | None = None) -> float:
        if self.gamma != "median":
            return float(self.gamma)
        check_whole_sample(Z)
        return self._median_width(X, weights)

    def _weights(self, X: Array) -> np.ndarray:
        """Return the quadrature weights of the m points."""
        m = X.shape[1]
        weights = np.full(m, 1 / m) if self.grid is None else trapezoid_weights(self.grid)
        if weights.shape[0] != m:
            raise ValueError(
                f"The 'grid' parameter of {type(self).__name__} must hold {m} points, as the curves do. "
                f"Got {weights.shape[0]} instead."
            )
        return weights

    def _check_curves(self, curves: Array, name: str) -> Array:
        """Return complete curves in three dimensions, else raise."""
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

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(0.3), cls("median")]


class _NormKernel(_CurveKernel, ABC):
    """A function of the norm of the difference of two curves."""

    def _coordinates(self, curves: Array) -> Array:
        """Return rows, (n, m c), whose Euclidean distances are those of the curves."""
        roots = as_like(np.sqrt(self._weights(curves)), curves)
        return namespace(curves).reshape(curves * roots[None, :, None], (curves.shape[0], -1))


class FunctionalGaussian(_NormKernel):
    r"""Gaussian kernel between curves.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|^2), \qquad \|x\|^2 = \int \sum_c x_c(t)^2 \, dt.

    Parameters
    ----------
    gamma : float or "median", default=1.0
        Positive inverse width. ``"median"`` means :math:`1 / (2 \operatorname{med}^2)`, with the median distance of two
        different curves, taken as in ``Gaussian``.
    grid : array of shape (m,) or None, default=None
        Increasing points where the curves are known; the integral is by the trapezoid rule. ``None`` means the mean
        over the m points: a grid or a random draw of an interval of length 1.

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

    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        return gaussian(self._coordinates(X), None if Z is None else self._coordinates(Z), gamma)

    def _median_width(self, X: Array, weights: Array | None) -> float:
        return 1 / (2 * median_distance(self._coordinates(X), None, "euclidean", weights) ** 2)


class FunctionalLaplacian(_NormKernel):
    r"""Exponential of the distance between curves.

    .. math:: k(x, z) = \exp(-\gamma \|x - z\|), \qquad \|x\|^2 = \int \sum_c x_c(t)^2 \, dt.

    Parameters
    ----------
    gamma : float or "median", default=1.0
        Positive inverse width. ``"median"`` means :math:`1 / \operatorname{med}`, with the median distance of two
        different curves, taken as in ``Gaussian``.
    grid : array of shape (m,) or None, default=None
        As in ``FunctionalGaussian``.
    """

    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        lengths = distances(self._coordinates(X), None if Z is None else self._coordinates(Z), "euclidean")
        return exp(lengths, -gamma)

    def _median_width(self, X: Array, weights: Array | None) -> float:
        return 1 / median_distance(self._coordinates(X), None, "euclidean", weights)


class _IntegralKernel(_CurveKernel, ABC):
    """The mean over the points of a kernel between the values of the curves there."""

    _metric: ClassVar[str]

    def _mean_weights(self, X: Array) -> Array:
        weights = self._weights(X)
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
        :math:`\sum_c |x_c(t) - z_c(t)|^2` over the pairs of curves and the points where it is not zero (evenly
        spaced ones of a large sample: at most 1000 points, and curves up to four million such numbers), pairs counted
        by their sample weights.
    grid : array of shape (m,) or None, default=None
        Increasing points where the curves are known; the mean is the integral by the trapezoid rule over the length of
        the grid. ``None`` means the plain mean over the m points.

    Notes
    -----
    Bounded in each point: a part of the interval where two curves are far apart costs at most its share.
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
        :math:`\sum_c |x_c(t) - z_c(t)|`, taken as in ``IntegralGaussian``.
    grid : array of shape (m,) or None, default=None
        As in ``IntegralGaussian``.
    """

    _metric = "cityblock"

    def _values(self, X: Array, Z: Array | None, gamma: float) -> Array:
        prepare = partial(laplacian_factors, gamma=gamma)
        return mean_over_points(X, Z, self._mean_weights(X), prepare, minus_absolute_sums)


class Part(ScalarKernel):
    r"""A kernel on some columns of a table.

    .. math:: k(x, z) = k_1(x_J, z_J).

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel :math:`k_1`.
    columns : slice, list of int or list of str
        The columns :math:`J`. Names need a pandas DataFrame, and an estimator that fits on it (or ``named``).
    shape : tuple of int or None, default=None
        Shape of one sample for the kernel, such as ``(100, 3)``: curves with 100 points and 3 channels from 300
        columns, the channels of the first point first.

    Examples
    --------
    >>> from fenchel.kernels import FunctionalGaussian, Gaussian, Part
    >>> Part(FunctionalGaussian(), slice(0, 100)) + Part(Gaussian(0.5), [100, 101])
    Sum(left=Part(columns=slice(0, 100, None), kernel=FunctionalGaussian()),
        right=Part(columns=[100, 101], kernel=Gaussian(gamma=0.5)))
    """

    def __init__(self, kernel: ScalarKernel, columns: Any, shape: tuple[int, ...] | None = None) -> None:
        self.kernel = kernel
        self.columns = columns
        self.shape = shape

    def validate(self) -> "Part":
        """Raise if the kernel, the columns or the shape are none of those wanted."""
        if not isinstance(self.kernel, ScalarKernel) or self.kernel.is_pairwise:
            raise TypeError(f"The 'kernel' parameter of Part must be a ScalarKernel on points. Got {self.kernel!r}.")
        columns = self.columns
        if not isinstance(columns, slice) and not _holds(columns, Integral) and not _holds(columns, str):
            raise TypeError(
                "The 'columns' parameter of Part must be a slice, a list of int or a list of column names, not empty. "
                f"Got {columns!r} instead."
            )
        if self.shape is not None and not (_holds(self.shape, Integral) and min(self.shape) > 0):
            raise TypeError(f"The 'shape' parameter of Part must be a tuple of positive int. Got {self.shape!r}.")
        return super().validate()

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.validate()
        return self.kernel(self._select(X, "X"), None if Z is None else self._select(Z, "Z"))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.validate()
        return self.kernel.diag(self._select(X, "X"))

    def resolve(self, X: Array, weights: Array | None = None) -> "Part":
        """Return the kernel with the numbers that its columns of the sample give."""
        self.validate()
        return Part(self.kernel.resolve(self._select(X, "X"), weights), self.columns, self.shape)

    def named(self, names: Sequence[str]) -> "Part":
        """Return the kernel with its column names replaced by their places in ``names``."""
        self.validate()
        names, columns = list(names), self.columns
        if _holds(columns, str):
            counts, places = Counter(names), {name: place for place, name in enumerate(names)}
            wrong = [name for name in columns if counts[name] != 1]
            if wrong:
                raise ValueError(
                    f"The 'columns' parameter of Part must hold names that X has once. Got {wrong!r}; the names are "
                    f"{names!r}."
                )
            columns = [places[name] for name in columns]
        kernel = self.kernel
        if self.shape is None:  # a part of a part knows the columns that are left
            kernel = kernel.named([names[column] for column in self._places(columns, len(names), "X")])
        return Part(kernel, columns, self.shape)

    @property
    def is_trusted(self) -> bool:
        """Whether the kernel is positive semidefinite by construction."""
        return self.kernel.is_trusted

    def _select(self, X: Array, name: str) -> Array:
        """Return what the kernel sees of the table."""
        xp = namespace(X)
        if X.ndim != 2:
            raise ValueError(f"{name} must be 2-dimensional for Part. Got an array of shape {tuple(X.shape)} instead.")
        if _holds(self.columns, str):
            raise ValueError(
                f"{self!r} names its columns: {name} must be a pandas DataFrame, given to the estimator. "
                "For arrays give the places of the columns, or call kernel.named(names) first."
            )
        places = self._places(self.columns, X.shape[1], name)
        part = xp.take(X, as_index(np.asarray(places), X), axis=1)
        if self.shape is None:
            return part
        if math.prod(self.shape) != len(places):
            raise ValueError(
                f"The 'shape' parameter of Part must have as many entries as there are columns, {len(places)}. "
                f"Got {self.shape!r} instead."
            )
        return xp.reshape(part, (X.shape[0], *map(int, self.shape)))

    @staticmethod
    def _places(columns: Any, count: int, name: str) -> list[int]:
        """Return the places of the columns in a table with ``count`` of them."""
        if isinstance(columns, slice):
            places = list(range(count)[columns])
            is_inside = all(-count <= end <= count for end in (columns.start, columns.stop) if end is not None)
        else:
            places = [int(column) + (count if column < 0 else 0) for column in columns]
            is_inside = all(-count <= column < count for column in columns)
        if not (places and is_inside):
            raise ValueError(f"{name} must have the columns {columns!r} of Part. It has {count} columns.")
        return places

    @classmethod
    def examples(cls) -> list[Any]:
        """Return instances that the contract tests run on."""
        return [
            cls(Gaussian("median"), [0, -1]),
            cls(FunctionalGaussian(), slice(1, None)),
            cls(IntegralLaplacian(), slice(0, 2), (1, 2)),
        ]


def _holds(values: Any, kind: type) -> bool:
    """Whether the values are a sequence, not empty, of one kind; a boolean is no integer here."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        return False
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)
