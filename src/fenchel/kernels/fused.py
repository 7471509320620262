"""Products with kernel matrices on a GPU by one fused Triton kernel: tiles of the matrix never leave the chip."""

from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from importlib.util import find_spec

import numpy as np

from fenchel._array import Array, is_array, is_numpy, is_torch, namespace, on_its_device
from fenchel.kernels.extended import extended_product
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.operators.products import Product, fused_products

__all__ = ["DistanceTerm", "distance_terms"]

_CHUNK = 8192  # columns that are summed in the precision of the tiles
_LOW = 2048.0  # 2^11, the first digit that float16 loses


@dataclass(frozen=True)
class _Tiles:
    """Shape of the tiles of a precision, and the largest squared norm from which differences keep their digits."""

    dtype: str
    rows: int
    columns: int
    warps: int
    stages: int
    block: int  # coordinates at a time
    outputs: int  # columns of A per program; the sums are held in registers
    largest: float


# the fastest of nine shapes for halves, of five for float32 by differences, of seven for float64 on an H200
_HALVES = _Tiles("float16", 64, 64, 4, 3, 64, 64, 64.0)  # differences keep six digits of float32
_SINGLE = _Tiles("float32", 128, 64, 4, 3, 64, 64, 64.0)
_DOUBLE = _Tiles("float64", 64, 64, 4, 2, 32, 64, 256.0)  # the error of an exponent is at most 256 eps, as in tiles


@dataclass(frozen=True)
class DistanceTerm:
    """The kernel weight * f(x, z), with points scaled to the units of f.

    With r the Euclidean distance, f is ``"gaussian"`` exp(-r²), ``"exponential"`` exp(-r), ``"matern32"``
    (1 + r) exp(-r), ``"matern52"`` (1 + r + r²/3) exp(-r), ``"laplacian"`` exp(-r) with the sum of absolute
    differences, or ``"linear"``, the inner product.
    """

    profile: str
    points: Array  # (n, d)
    weight: float = 1.0


@singledispatch
def distance_terms(kernel: ScalarKernel, X: Array) -> list[DistanceTerm] | None:
    """Return the terms of a resolved kernel on a sample, or ``None`` if the kernel is not such a sum."""
    return None


@fused_products.register
def _of_distance_terms(kernel: ScalarKernel, X: Array, Z: Array | None, is_single: bool) -> list[Product]:
    """Return fused products, the fastest first, or none if that is not supported.

    It supports torch arrays in float64 on CUDA with Triton installed, and sums of Gaussian, Laplacian, Matérn (1/2,
    3/2, 5/2) and linear kernels on vectors; and NumPy arrays, without kernels that are not smooth where this matters.
    """
    on_host = is_numpy(X) and Z is None and X.ndim == 2 and np.issubdtype(X.dtype, np.floating)
    if not on_host and not _is_supported(X, is_single):
        return []
    left = distance_terms(kernel, X)
    right = left if Z is None else distance_terms(kernel, Z)
    if left is None or right is None:
        return []
    pairs = [_centred(one, other, Z is None) for one, other in zip(left, right, strict=True)]
    if on_host:
        curved = [pair for pair in pairs if pair.left.profile != "linear"]
        terms = [(pair.left.profile, pair.left.points, pair.left.weight) for pair in pairs]
        is_near = bool(curved) and all(pair.is_smooth(_HALVES if is_single else _DOUBLE) for pair in curved)
        return [extended_product(terms, np.float32 if is_single else np.float64)] if is_near else []
    return [_FusedSum(pairs, tiles) for tiles in ((_HALVES, _SINGLE, _DOUBLE) if is_single else (_DOUBLE,))]


def _is_supported(X: Array, is_single: bool) -> bool:
    """Whether points are vectors on a device for which Triton is installed, in float64 if its digits are wanted."""
    if not is_array(X) or not is_torch(X) or X.device.type != "cuda" or X.ndim != 2 or find_spec("triton") is None:
        return False
    xp = namespace(X)
    return X.dtype == xp.float64 or (is_single and X.dtype == xp.float32)


@dataclass(frozen=True)
class _Pair:
    """A term on the rows and on the columns, and whether these are the same points."""

    left: DistanceTerm
    right: DistanceTerm
    is_same: bool

    def is_smooth(self, tiles: _Tiles) -> bool:
        """Whether r² = |x|² + |z|² - 2 <x, z> keeps the digits that f needs."""
        profile, xp = self.left.profile, namespace(self.left.points)
        # exp(-r) magnifies errors near zero: on a diagonal they are removed, nearly equal points are rare
        if profile == "laplacian" or (profile == "exponential" and not (tiles is _HALVES and self.is_same)):
            return False
        points = (self.left.points, self.right.points)
        return all(float(xp.max(xp.sum(rows**2, axis=1))) <= tiles.largest for rows in points)


def _centred(left: DistanceTerm, right: DistanceTerm, is_same: bool) -> _Pair:
    """Shift the points towards the origin, where squares lose the fewest digits."""
    if left.profile == "linear":
        return _Pair(left, right, is_same)
    center = namespace(left.points).mean(left.points, axis=0, keepdims=True)
    moved = [replace(term, points=term.points - center) for term in (left, right)]
    return _Pair(moved[0], moved[1], is_same)


class _FusedSum:
    """The product with a sum of terms; factors are prepared at the first call."""

    def __init__(self, pairs: list[_Pair], tiles: _Tiles) -> None:
        self._pairs = pairs
        self._tiles = tiles

    @cached_property
    def _products(self) -> list[tuple[float, Product]]:
        return [(pair.left.weight, _product_of(pair, self._tiles)) for pair in self._pairs]

    def __call__(self, A: Array) -> Array:
        """Return k(X, Z) A."""
        total = 0 * A[:1, :]
        for weight, product in self._products:
            total = total + weight * product(A)
        return total


def _product_of(pair: _Pair, tiles: _Tiles) -> Product:
    left, right = pair.left.points, pair.right.points
    if pair.left.profile == "linear":
        return lambda A: left @ (right.T @ A)
    profile = _PROFILES[pair.left.profile]
    if not pair.is_smooth(tiles):
        return _by_differences(left, right, profile, _SINGLE if tiles is _HALVES else tiles)
    return _by_squares(left, right, profile, tiles)


# numbers by which the programs on the device know the kernels
_PROFILES = {"gaussian": 0, "matern32": 1, "matern52": 2, "exponential": 3, "laplacian": 4}


def _by_squares(x: Array, z: Array, profile: int, tiles: _Tiles) -> Product:
    """Return the product with -r² = 2 <x, z> - |x|² - |z|² as one inner product of extended points."""
    xp = namespace(x)
    x_square, z_square = xp.sum(x * x, axis=1, keepdims=True), xp.sum(z * z, axis=1, keepdims=True)
    width = _power(x.shape[1] + 2)
    sides = ((x, x_square, xp.ones_like(x_square)), (2 * z, -xp.ones_like(z_square), -z_square))
    rows, columns = (
        _rounded(xp.concat(parts, axis=1), height, width, tiles)
        for parts, height in zip(sides, (tiles.rows, tiles.columns), strict=True)
    )
    name = "by_halves" if tiles is _HALVES else "by_squares"
    return _Launcher(name, rows, columns, (x.shape[0], z.shape[0], width), profile, tiles)


def _by_differences(x: Array, z: Array, profile: int, tiles: _Tiles) -> Product:
    """Return the product with distances accumulated coordinate by coordinate, exact near zero."""
    d = x.shape[1]
    rows, columns = (
        _padded(points, height, d, tiles.dtype).T.contiguous()
        for points, height in ((x, tiles.rows), (z, tiles.columns))
    )
    return _Launcher("by_differences", rows, columns, (x.shape[0], z.shape[0], d), profile, tiles)


@dataclass(frozen=True)
class _Launcher:
    """The product by one Triton kernel, for padded factors of (number of rows, of columns, coordinates)."""

    name: str
    rows: Array
    columns: Array
    sizes: tuple[int, int, int]
    profile: int
    tiles: _Tiles

    def __call__(self, A: Array) -> Array:
        """Return f(rows, columns) A."""
        from fenchel.kernels import _triton  # Triton ships with torch for CUDA only

        xp, tiles, (n_rows, n_columns, width) = namespace(A), self.tiles, self.sizes
        size = min(tiles.outputs, _power(A.shape[1]))
        parts = -(-A.shape[1] // size)
        # a column in units of its largest entry, so that halves keep its digits
        unit = xp.clip(xp.max(xp.abs(A), axis=0, keepdims=True), min=float(xp.finfo(A.dtype).smallest_normal))
        factors = _rounded(A / unit, tiles.columns, parts * size, tiles)
        n, m = _whole(n_rows, tiles.rows), _whole(n_columns, tiles.columns)
        out = xp.zeros((n, parts * size), dtype=xp.float64, device=A.device)
        with on_its_device(A):
            getattr(_triton, self.name)[(n // tiles.rows, parts)](
                self.rows, self.columns, factors, out, n, m, parts * size,
                width, min(width, tiles.block), size, tiles.rows, tiles.columns, _CHUNK, self.profile,
                num_warps=tiles.warps, num_stages=tiles.stages,
            )  # fmt: skip
        return unit * xp.astype(out[:n_rows, : A.shape[1]], A.dtype)


def _whole(size: int, step: int) -> int:
    """Return the next multiple of ``step``."""
    return -(-size // step) * step


def _power(size: int) -> int:
    """Return the next power of two, at least 16, as tensor cores require."""
    return max(16, 1 << (size - 1).bit_length())


def _rounded(values: Array, height: int, width: int, tiles: _Tiles) -> Array:
    """Return a padded matrix in the precision of the tiles, as two halves one after the other if that is float16."""
    if tiles is not _HALVES:
        return _padded(values, height, width, tiles.dtype)
    return namespace(values).stack([_padded(half, height, width, tiles.dtype) for half in halves(values)])


def halves(values: Array) -> tuple[Array, Array]:
    """Return two matrices in float16 with high + low / 2048 equal to the values, to 22 bits."""
    xp = namespace(values)
    high = xp.astype(values, xp.float16)
    return high, xp.astype((values - xp.astype(high, values.dtype)) * _LOW, xp.float16)


def _padded(values: Array, height: int, width: int, dtype: str) -> Array:
    """Return the matrix with rows of zeros up to a multiple of ``height``, and columns of zeros."""
    xp, n = namespace(values), values.shape[0]
    out = xp.zeros((_whole(n, height), width), dtype=getattr(xp, dtype), device=values.device)
    out[:n, : values.shape[1]] = values
    return out
