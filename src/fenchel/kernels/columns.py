"""Kernels restricted to some columns of a table."""

import math
from collections import defaultdict
from collections.abc import Sequence
from types import UnionType
from typing import Self, cast

import numpy as np

from fenchel._array import Array, as_index, as_like, namespace
from fenchel.kernels.functional import FunctionalGaussian, IntegralLaplacian
from fenchel.kernels.images import OfImages
from fenchel.kernels.scalar import Gaussian
from fenchel.kernels.scalar_kernel import ScalarKernel

__all__ = ["Part"]

Columns = slice | Sequence[int] | Sequence[str]


class PartName(str):
    """Name of a part of the inputs, which may have several columns."""


class Part(OfImages):
    r"""Kernel on a subset of the columns.

    .. math:: k(x, z) = k_1(x_J, z_J).

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel :math:`k_1`.
    columns : slice, list of int or list of str
        The columns :math:`J`. Names require a pandas DataFrame passed to an estimator (or a call of ``named``), or
        inputs in parts, where the name of a part means all of its columns.
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

    def __init__(self, kernel: ScalarKernel, columns: Columns, shape: tuple[int, ...] | None = None) -> None:
        self.kernel = kernel
        self.columns = columns
        self.shape = shape

    def validate(self) -> "Part":
        """Raise if the kernel, the columns or the shape are invalid."""
        super().validate()
        columns = self.columns
        if not isinstance(columns, slice) and not _holds(columns, int | np.integer) and not _holds(columns, str):
            raise TypeError(
                "The 'columns' parameter of Part must be a non-empty slice, list of int or list of column names. "
                f"Got {columns!r} instead."
            )
        if self.shape is not None and not (_holds(self.shape, int | np.integer) and min(self.shape) > 0):
            raise TypeError(f"The 'shape' parameter of Part must be a tuple of positive int. Got {self.shape!r}.")
        return self

    def named(self, names: Sequence[str]) -> "Part":
        """Return the kernel with its column names replaced by their positions in ``names``."""
        self.check()
        names, columns = list(names), self.columns
        if _holds(columns, str):
            given = cast("Sequence[str]", columns)
            places = defaultdict[str, list[int]](list)
            for place, name in enumerate(names):
                places[name].append(place)
            parts = {name for name in names if isinstance(name, PartName)}
            wrong = [name for name in given if len(places[name]) != 1 and name not in parts]
            if wrong:
                raise ValueError(
                    f"The 'columns' parameter of Part must hold names that occur once in X. Got {wrong!r}; the names "
                    f"are {list(dict.fromkeys(names))!r}."
                )
            columns = [place for name in given for place in places[name]]
        kernel = self.kernel
        if self.shape is None:  # a nested Part resolves its names among the remaining columns
            kernel = kernel.named([names[column] for column in self._places(columns, len(names), "X")])
        return self.ready(kernel=kernel, columns=columns)

    def pulled_back(self, gradient: Array, X: Array) -> Array:
        """Return derivatives with respect to all columns of the table, zero for the others."""
        place = np.eye(X.shape[1])[self._places(self.columns, X.shape[1], "X")]
        return gradient @ as_like(place, gradient)

    def image(self, X: Array, name: str = "X") -> Array:
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
    def _places(columns: Columns, count: int, name: str) -> list[int]:
        """Return the positions of the columns in a table with ``count`` columns."""
        if isinstance(columns, slice):
            places = list(range(count)[columns])
            is_inside = all(-count <= end <= count for end in (columns.start, columns.stop) if end is not None)
        else:
            numbers = cast("Sequence[int]", columns)
            places = [int(column) + (count if column < 0 else 0) for column in numbers]
            is_inside = all(-count <= column < count for column in numbers)
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


def _holds(values: object, kind: type | UnionType) -> bool:
    """Whether the values are a non-empty sequence of instances of ``kind``; booleans do not count as integers."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        return False
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)
