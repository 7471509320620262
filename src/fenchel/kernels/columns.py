"""Kernels restricted to some columns of a table."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np

from fenchel._array import Array, as_index, as_like, namespace
from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.functional import FunctionalGaussian, IntegralLaplacian
from fenchel.kernels.scalar import Gaussian

__all__ = ["Part"]


class Part(ScalarKernel):
    r"""Kernel on a subset of the columns.

    .. math:: k(x, z) = k_1(x_J, z_J).

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel :math:`k_1`.
    columns : slice, list of int or list of str
        The columns :math:`J`. Names require a pandas DataFrame passed to an estimator (or a call of ``named``).
    shape : tuple of int or None, default=None
        Shape in which the kernel receives one sample, such as ``(100, 3)``: 300 columns become a curve with 100 points
        and 3 channels, where the channels of the first point come first.

    Examples
    --------
    >>> from fenchel.kernels import FunctionalGaussian, Gaussian, Part
    >>> kernel = Part(FunctionalGaussian(), slice(0, 100)) + Part(Gaussian(0.5), [100, 101])
    >>> kernel.right
    Part(columns=[100, 101], kernel=Gaussian(gamma=0.5))
    """

    def __init__(self, kernel: ScalarKernel, columns: Any, shape: tuple[int, ...] | None = None) -> None:
        self.kernel = kernel
        self.columns = columns
        self.shape = shape

    def validate(self) -> "Part":
        """Raise if the kernel, the columns or the shape are invalid."""
        if not isinstance(self.kernel, ScalarKernel) or self.kernel.is_pairwise:
            raise TypeError(f"The 'kernel' parameter of Part must be a ScalarKernel on points. Got {self.kernel!r}.")
        columns = self.columns
        if not isinstance(columns, slice) and not _holds(columns, Integral) and not _holds(columns, str):
            raise TypeError(
                "The 'columns' parameter of Part must be a non-empty slice, list of int or list of column names. "
                f"Got {columns!r} instead."
            )
        if self.shape is not None and not (_holds(self.shape, Integral) and min(self.shape) > 0):
            raise TypeError(f"The 'shape' parameter of Part must be a tuple of positive int. Got {self.shape!r}.")
        return super().validate()

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        self.validate()
        return self.kernel(self._select(X, "X"), None if Z is None else self._select(Z, "Z"))

    @property
    def diag_bound(self) -> float:  # type: ignore[override]
        """The least upper bound of k(x, x) over all inputs."""
        return self.kernel.diag_bound

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        self.validate()
        return self.kernel.diag(self._select(X, "X"))

    def resolve(self, X: Array, weights: Array | None = None) -> "Part":
        """Return the kernel with its data-dependent parameters set from its columns of the sample."""
        self.validate()
        return Part(self.kernel.resolve(self._select(X, "X"), weights), self.columns, self.shape)

    def named(self, names: Sequence[str]) -> "Part":
        """Return the kernel with its column names replaced by their positions in ``names``."""
        self.validate()
        names, columns = list(names), self.columns
        if _holds(columns, str):
            counts, places = Counter(names), {name: place for place, name in enumerate(names)}
            wrong = [name for name in columns if counts[name] != 1]
            if wrong:
                raise ValueError(
                    f"The 'columns' parameter of Part must hold names that occur once in X. Got {wrong!r}; the names "
                    f"are {names!r}."
                )
            columns = [places[name] for name in columns]
        kernel = self.kernel
        if self.shape is None:  # a nested Part resolves its names among the remaining columns
            kernel = kernel.named([names[column] for column in self._places(columns, len(names), "X")])
        return Part(kernel, columns, self.shape)

    @property
    def has_features(self) -> bool:
        """Whether the kernel has features."""
        return self.kernel.has_features

    def features(self, X: Array) -> Array | None:
        """Return the features of the columns."""
        return self.kernel.features(self._select(X, "X")) if self.has_features else None

    def mapped(self, change: Callable[[ScalarKernel, Array], ScalarKernel], X: Array) -> "Part":
        """Return ``change`` applied to the kernel on its columns."""
        return Part(self.kernel.mapped(change, self._select(X, "X")), self.columns, self.shape)

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        """Return the sum over j of w_ij times the gradient of k(x_i, z_j) in x_i, zero for the other columns."""
        self.validate()
        return self._placed(self.kernel.weighted_gradient(self._vectors(X, "X"), self._vectors(Z, "Z"), weights), X)

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of ``features(X) @ coef``, zero for the other columns."""
        return self._placed(self.kernel.feature_gradient(self._vectors(X, "X"), coef), X)

    def _vectors(self, X: Array, name: str) -> Array:
        """Return the columns; raise if the kernel does not take vectors."""
        if self.shape is not None and len(self.shape) != 1:
            raise self._no_derivative()
        return self._select(X, name)

    def _placed(self, gradient: Array, X: Array) -> Array:
        """Embed derivatives with respect to the selected columns in all columns of the table."""
        place = np.eye(X.shape[1])[self._places(self.columns, X.shape[1], "X")]
        return gradient @ as_like(place, gradient)

    @property
    def is_trusted(self) -> bool:
        """Whether the kernel is positive semidefinite by construction."""
        return self.kernel.is_trusted

    def _select(self, X: Array, name: str) -> Array:
        """Return the columns of the table in the shape that the kernel takes."""
        xp = namespace(X)
        if X.ndim != 2:
            raise ValueError(f"{name} must be 2-dimensional for Part. Got an array of shape {tuple(X.shape)} instead.")
        if _holds(self.columns, str):
            raise ValueError(
                f"{self!r} selects columns by name: {name} must be a pandas DataFrame passed to the estimator. "
                "For arrays give column positions, or call kernel.named(names) first."
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
        """Return the positions of the columns in a table with ``count`` columns."""
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
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [
            cls(Gaussian("median"), [0, -1]),
            cls(FunctionalGaussian(), slice(1, None)),
            cls(IntegralLaplacian(), slice(0, 2), (1, 2)),
        ]


def _holds(values: object, kind: type) -> bool:
    """Whether the values are a non-empty sequence of instances of ``kind``; booleans do not count as integers."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        return False
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)
