"""Kernels of a distance on points that are extended by their squared norms, so that a tile is one matrix product."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fenchel.operators.products import Product, kernel_product

__all__ = ["Extended", "extended_product"]


def _matern32(r: np.ndarray) -> np.ndarray:
    values = np.exp(-r)
    r += 1
    values *= r
    return values


def _matern52(r: np.ndarray) -> np.ndarray:
    values = np.exp(-r)
    values *= 1 + r + r * r / 3
    return values


_OF_DISTANCE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exponential": lambda r: np.exp(np.negative(r, out=r), out=r),
    "matern32": _matern32,
    "matern52": _matern52,
}


@dataclass(frozen=True)
class Extended:
    """Weighted sum of profiles of the distances of points, which take some columns each of extended points.

    Points x are extended to (√2 x, -|x|², 1): the inner product with (√2 z, 1, -|z|²) is -|x - z|².

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels.extended import Extended
    >>> kernel, points = Extended.of([("gaussian", np.array([[0.0], [1.0]]), 2.0)], np.float64)
    >>> bool(np.allclose(kernel(points), [[2, 2 / np.e], [2 / np.e, 2]])), kernel.diag(points).tolist()
    (True, [2.0, 2.0])
    """

    parts: tuple[tuple[str, float, slice], ...]  # profile, weight and columns

    @classmethod
    def of(cls, terms: list[tuple[str, np.ndarray, float]], dtype: type) -> tuple["Extended", np.ndarray]:
        """Return the kernel of terms (profile, points, weight), and the extended points."""
        parts, columns, first = [], [], 0
        for profile, points, weight in terms:
            columns += [2**0.5 * points, -np.sum(points**2, axis=1, keepdims=True), np.ones((len(points), 1))]
            parts.append((profile, weight, slice(first, first + points.shape[1] + 2)))
            first += points.shape[1] + 2
        return cls(tuple(parts)), np.ascontiguousarray(np.hstack(columns), dtype=dtype)

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """Return the matrix of the kernel, in the dtype of the points."""
        total = None
        for profile, weight, columns in self.parts:
            left, right = X[:, columns], (X if Z is None else Z)[:, columns]
            squares = left @ np.hstack([right[:, :-2], right[:, -1:], right[:, -2:-1]]).T
            if Z is None:
                np.fill_diagonal(squares, 0)
            if profile == "gaussian":  # of points that are nearly equal it may exceed 1 by round-off
                values = np.exp(squares, out=squares)
            else:
                np.minimum(squares, 0, out=squares)
                values = _OF_DISTANCE[profile](np.sqrt(np.negative(squares, out=squares), out=squares))
            if weight != 1:
                values *= values.dtype.type(weight)
            total = values if total is None else np.add(total, values, out=total)
        assert total is not None  # there is a part
        return total

    def diag(self, X: np.ndarray) -> np.ndarray:
        """Return the kernel of each point with itself."""
        return np.full(len(X), sum(weight for _, weight, _ in self.parts), dtype=X.dtype)


def extended_product(terms: list[tuple[str, np.ndarray, float]], dtype: type) -> Product:
    """Return the product with a sum of terms (profile, points, weight), in tiles of a dtype where these are curved."""
    linear = [(points, weight) for profile, points, weight in terms if profile == "linear"]
    kernel, extended = Extended.of([term for term in terms if term[0] != "linear"], dtype)

    def product(A: np.ndarray) -> np.ndarray:
        total = kernel_product(kernel, extended, None, A)
        for points, weight in linear:
            total = total + weight * (points @ (points.T @ A))
        return total

    return product
