"""Kernels on inputs with columns of categories, which become indicators."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel._check import check_array
from fenchel.kernels.images import OfImages
from fenchel.kernels.scalar import Gaussian
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.standardized import Standardized

__all__ = ["Indicators"]


class Indicators(OfImages):
    r"""Kernel on inputs with columns of categories, each of which becomes one indicator for each of its levels.

    Levels are numbers that only name them: their order and their distances say nothing.

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel of the other columns, followed by the indicators.
    columns : list of int
        The columns of categories.
    levels : list of arrays or None, default=None
        The levels of each of these columns; ``None`` means those of the training sample. A level that is not among them
        has no indicator.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Indicators, Linear
    >>> X = np.array([[7.0, 0.5], [9.0, 0.2], [7.0, 0.1]])
    >>> Indicators(Linear(), [0]).resolve(X).image(X).tolist()
    [[0.5, 1.0, 0.0], [0.2, 0.0, 1.0], [0.1, 1.0, 0.0]]
    """

    def __init__(self, kernel: ScalarKernel, columns: Sequence[int], levels: Sequence[Array] | None = None) -> None:
        self.kernel = kernel
        self.columns = columns
        self.levels = levels

    def validate(self) -> Self:
        """Raise if the kernel does not take points, or columns and levels do not match."""
        super().validate()
        is_list = isinstance(self.columns, list | tuple | np.ndarray) and len(self.columns) > 0
        if not is_list or not all(isinstance(column, int | np.integer) for column in self.columns):
            raise TypeError(
                f"The 'columns' parameter of Indicators must be a non-empty list of int. Got {self.columns!r} instead."
            )
        if self.levels is not None and len(self.levels) != len(self.columns):
            raise ValueError(
                f"The 'levels' parameter of Indicators must hold one array for each of the {len(self.columns)} "
                f"columns. Got {len(self.levels)}."
            )
        return self

    def known(self, X: Array | None, weights: Array | None = None) -> Self:
        """Return the kernel with its levels, from the sample if they were not given."""
        self.check()
        if self.levels is not None:
            return self
        if X is None:
            raise ValueError(
                "The levels of Indicators depend on the training sample: call kernel.resolve(X_train) first, then the "
                "kernel it returns on (X, Z)."
            )
        return self.ready(levels=[np.unique(host(X)[:, column]) for column in self.columns])

    def image(self, X: Array, name: str = "X") -> Array:
        """Return the other columns, followed by the indicators of all levels."""
        X, xp = check_array(X, name), namespace(X)
        chosen = [range(X.shape[1])[column] for column in self.columns]
        others = [column for column in range(X.shape[1]) if column not in chosen]
        parts = [xp.take(X, as_index(np.array(others, dtype=int), X), axis=1)]
        for column, levels in zip(chosen, self.levels or [], strict=True):
            parts.append(xp.astype(X[:, column, None] == as_like(levels, X)[None, :], X.dtype))
        return xp.concat(parts, axis=1)

    def pulled_back(self, gradient: Array, X: Array) -> Array:
        """Return derivatives with respect to the columns, zero for categories."""
        chosen = [range(X.shape[1])[column] for column in self.columns]
        others = [column for column in range(X.shape[1]) if column not in chosen]
        place = np.eye(X.shape[1])[others]
        return gradient[..., : len(others)] @ as_like(place, gradient)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(Gaussian("median"), [0]), cls(Standardized(Gaussian()), [-1])]
