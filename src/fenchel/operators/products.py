"""Products with a kernel matrix that is never stored: each tile is computed, used and discarded."""

import logging
from collections.abc import Callable
from functools import singledispatch
from typing import Protocol

import numpy as np

from fenchel._array import Array, as_index, device, in_threads, is_array, is_lazy, is_numpy, is_on_cpu, namespace
from fenchel._check import checked_before

__all__ = ["CheckedProduct", "PointKernel", "Product", "fused_products", "kernel_product", "kernel_products", "tiles"]

Product = Callable[[Array], Array]  # A -> k(X, Z) A

_LOG = logging.getLogger("fenchel")

_TILE = 512  # n = 12 000, 20 columns, one core: a product takes 0.59 s with 512, 0.65 s with 1024, 0.79 s with 4096
_TILE_OF_DEVICE = 8192  # rows and columns: a tile of 256 MiB in float32
_ROWS = 64  # rows on which a fused product is compared with tiles
# relative error of predictions to iterate with; the gap that they reach is about its square, and less in float64
_FEW_DIGITS = 1e-2
_ROUND_OFF = 1e-13  # of sums in float64, relative to the sum of absolute values


class PointKernel(Protocol):
    """A scalar kernel between points."""

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j)."""

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i)."""


@singledispatch
def fused_products(kernel: PointKernel, X: Array, Z: Array | None, is_single: bool) -> list[Product]:
    """Return ways to compute k(X, Z) A by one fused GPU kernel, the fastest first; none if there is none."""
    return []


class CheckedProduct:
    """The product k(X, Z) A by the first way that agrees with tiles on a few rows, once; the last needs no check.

    Parameters
    ----------
    ways : list of callable
        Functions of A, the fastest first.
    kernel, X, Z
        As in ``kernel_product``, in the precision of the data.
    is_single : bool
        Whether the digits of float32 are enough.
    """

    def __init__(self, ways: list[Product], kernel: PointKernel, X: Array, Z: Array | None, is_single: bool) -> None:
        self._ways = ways
        self._sample = kernel, X, Z
        self._is_single = is_single
        self._is_checked = False

    def __call__(self, A: Array) -> Array:
        """Return the product."""
        product = self._ways[0](A)
        while not (self._is_checked or len(self._ways) == 1 or self._agrees(product, A)):
            self._ways = self._ways[1:]
            product = self._ways[0](A)
        self._is_checked = True
        return product

    def _agrees(self, product: Array, A: Array) -> bool:
        (kernel, X, Z), xp, norm = self._sample, namespace(A), namespace(A).linalg.vector_norm
        rows = as_index(np.unique(np.linspace(0, X.shape[0] - 1, _ROWS).astype(np.int64)), A)
        both, most = xp.concat([A, xp.abs(A)], axis=1), _TILE_OF_DEVICE**2 // _ROWS
        found = kernel_product(kernel, xp.take(X, rows, axis=0), X if Z is None else Z, both, most)
        expected, absolute = found[:, : A.shape[1]], found[:, A.shape[1] :]
        error = float(norm(xp.take(product, rows, axis=0) - expected))
        allowed = _FEW_DIGITS * float(norm(expected)) if self._is_single else _ROUND_OFF * float(norm(absolute))
        if error <= allowed:
            return True
        _LOG.info(f"A fused product is off by {error:.1e} where {allowed:.1e} is allowed, and not used")
        return False


def tiles(count: int, size: int) -> list[slice]:
    """Return consecutive slices of at most ``size``."""
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def kernel_product(kernel: PointKernel, X: Array, Z: Array | None, A: Array, tile: int | None = None) -> Array:
    """Return k(X, Z) A for A of shape (m, q); ``Z=None`` means ``Z = X``, where each tile serves two ranges of rows.

    Tiles have the dtype of the points, sums the dtype of A. Arrays on a device are checked once, not in every tile.
    """
    if is_lazy(X):
        return X.product(kernel, A)
    xp, size = namespace(A), tile or (_TILE if is_numpy(X) else _TILE_OF_DEVICE)
    rows = tiles(X.shape[0], size)
    columns = rows if Z is None else tiles(Z.shape[0], size)
    is_number = is_array(X) and namespace(A).isdtype(X.dtype, "real floating")  # points may be any objects
    short = xp.astype(A, X.dtype, copy=False) if is_number else A

    def add_strip(out: Array, k: int) -> None:
        here = rows[k]
        for there in columns[k:] if Z is None else columns:
            if Z is not None:
                out[here, :] += kernel(X[here, ...], Z[there, ...]) @ short[there, :]
            elif there is here:
                out[here, :] += kernel(X[here, ...]) @ short[here, :]
            else:
                block = kernel(X[here, ...], X[there, ...])
                out[here, :] += block @ short[there, :]
                out[there, :] += block.T @ short[here, :]

    def strips(places: range) -> Array:
        out = xp.zeros((X.shape[0], A.shape[1]), dtype=A.dtype, device=device(A))
        with checked_before(is_checked):
            for k in places:
                add_strip(out, k)
        return out

    is_checked = is_number and not is_on_cpu(X)  # a look at entries in every tile would wait for the device
    if is_checked:
        for points in (X,) if Z is None else (X, Z):
            kernel.diag(points)
    return _total(in_threads(strips, len(rows), A))


def kernel_products(kernel: PointKernel, X: Array, Z: Array, A: Array, B: Array) -> tuple[Array, Array]:
    """Return k(X, Z) A and k(Z, X) B for two samples, using each tile for both."""
    size = _TILE if is_numpy(X) else _TILE_OF_DEVICE
    xp, left, right = namespace(A), [], 0 * A
    short, other = (xp.astype(rows, X.dtype, copy=False) for rows in (A, B))
    for here in tiles(X.shape[0], size):
        total = 0.0
        for there in tiles(Z.shape[0], size):
            block = kernel(X[here, ...], Z[there, ...])
            total += block @ short[there, :]
            right[there, :] += block.T @ other[here, :]
        left.append(total)
    return xp.astype(xp.concat(left), A.dtype, copy=False), right


def _total(parts: list[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
