"""Vectorised distances, inner products and special functions behind the scalar kernels."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import gammaln, kve

from fenchel._array import Array, as_index, dense, device, host, is_numpy, is_sparse, is_torch, namespace
from fenchel._statistics import weighted_median
from fenchel.data.content import contents

__all__: list[str] = []

_BLOCK_BYTES = 2**26  # upper limit on the temporaries of blocked loops
_CACHE_BYTES = 2**19  # a block of this size stays in cache between two passes
_MEDIAN_ROWS = 1000  # rows for the median heuristic: half a million distances, four megabytes
_LARGEST_PART = 256  # largest |exponent| part; the error of a difference is at most 256 eps
_TILE = (8, 512)  # points and columns of one block when averaging over points


def same_dtype(X: Array, Z: Array) -> tuple[Array, Array]:
    """Promote two arrays to a common dtype."""
    if X.dtype == Z.dtype:
        return X, Z
    xp = namespace(X, Z)
    dtype = xp.result_type(X, Z)
    return xp.astype(X, dtype), xp.astype(Z, dtype)


def inverse_width(gamma: float | str | None, X: Array) -> float:
    """Return ``gamma`` as a Python float, so that float32 arrays stay float32."""
    return 1 / X.shape[1] if gamma is None else float(gamma)


def check_whole_sample(Z: Array | None) -> None:
    """Raise if a kernel with a median width is called on two samples."""
    if Z is not None:
        raise ValueError(
            "gamma='median' depends on the training sample: call kernel.resolve(X_train) first, then the kernel it "
            "returns on (X, Z)."
        )


def median_distance(X: Array, Z: Array | None, metric: str, weights: Array | None = None) -> float:
    """Return the weighted median distance between two distinct rows of X, the whole sample (``Z`` is None)."""
    check_whole_sample(Z)
    rows, counts = spaced_sample(X, _MEDIAN_ROWS, weights)
    return positive_median(pdist(host(rows), metric), counts)


def spaced_sample(X: Array, count: int, weights: Array | None) -> tuple[Array, np.ndarray | None]:
    """Return the rows of X and their weights; a longer sample is thinned to ``count`` rows evenly spaced in weight.

    The rows are sorted by what they contain, so that their given order does not matter.
    """
    n = X.shape[0]
    masses = None if weights is None else host(weights).astype(np.float64)
    if n <= count:
        return X, masses
    order = np.argsort(contents(X, masses), kind="stable")
    if masses is None:
        index = np.linspace(0, n - 1, count).astype(np.int64)
    else:
        reached = np.cumsum(masses[order])
        index = np.searchsorted(reached, np.linspace(0, reached[-1], count, endpoint=False), side="right")
    return namespace(X).take(X, as_index(order[np.minimum(index, n - 1)], X), axis=0), None


def evenly_spaced(X: Array, count: int, axis: int) -> Array:
    """Return the array, thinned to ``count`` evenly spaced entries along ``axis`` if it is longer."""
    length = X.shape[axis]
    if length <= count:
        return X
    xp = namespace(X)
    index = np.linspace(0, length - 1, count).astype(np.int64)
    return xp.take(X, as_index(index, X), axis=axis)


def positive_median(distances: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the median of the positive distances, or 1 if there are none.

    ``distances`` holds the pairs in the order of ``pdist``, one row per set of pairs. Each pair is weighted by the
    product of its sample weights: a sample of weight 2 counts as two equal samples at distance zero from each other.
    """
    is_positive = distances > 0
    values = distances[is_positive]
    if not values.size:
        return 1.0
    if weights is None:
        return _squarable(float(np.median(values)))
    first, second = np.triu_indices(len(weights), k=1)
    masses = np.broadcast_to(weights[first] * weights[second], distances.shape)[is_positive]
    return _squarable(float(weighted_median(values, masses)))


def _squarable(distance: float) -> float:
    """Return the distance; raise if its square overflows or underflows in float64."""
    if not 1e-150 < distance < 1e150:
        raise ValueError(f"The median distance of X must be in (1e-150, 1e150). Got {distance:.1e}: scale the inputs.")
    return distance


def squared_norms(X: Array) -> Array:
    """Return the squared Euclidean norms of the rows, shape (n,)."""
    if is_numpy(X):
        return np.einsum("ij,ij->i", X, X)
    if is_sparse(X):
        return X.multiply(X).sum(axis=1)
    return namespace(X).sum(X * X, axis=1)


def inner_products(X: Array, Z: Array | None) -> Array:
    """Return the inner products of the rows in a new array, exactly symmetric when ``Z`` is None."""
    if is_sparse(X):
        return dense(X @ (X if Z is None else Z).T)
    if Z is not None:
        return X @ Z.T
    if is_numpy(X):  # NumPy detects the repeated operand and fills both triangles from one
        X = np.ascontiguousarray(X)
        return X @ X.T
    products = X @ X.T
    return (products + products.T) / 2


def gaussian(X: Array, Z: Array | None, gamma: float) -> Array:
    """Return exp(-gamma |x_i - z_j|^2), through a matrix product of the centred data where no digits are lost."""
    xp, scale = namespace(X), math.sqrt(2 * gamma)
    center = 0 if is_sparse(X) else xp.mean(X, axis=0, keepdims=True)  # centring would destroy sparsity
    left = (X - center) * scale
    right = left if Z is None else (Z - center) * scale
    halves = [squared_norms(rows) / 2 for rows in (left, right)]
    if cancels(*halves):
        return exp(distances(X, Z, "sqeuclidean"), -gamma)
    if Z is not None and is_torch(X):
        return exp_of_inner(_lengthened(left, -halves[0], 1.0), _lengthened(right, 1.0, -halves[1]))
    products = inner_products(left, None if Z is None else right)
    if Z is None:  # use the very norms of the products, so that the diagonal is exactly one
        halves = [xp.linalg.diagonal(products) / 2] * 2
    if not is_numpy(products):
        return xp.exp(xp.clip(products - (halves[0][:, None] + halves[1][None, :]), max=0.0))
    for rows in cache_blocks(products):
        block = products[rows]
        block -= halves[0][rows, None] + halves[1]
        np.minimum(block, 0, out=block)
        np.exp(block, out=block)
    return products


def _lengthened(rows: Array, *columns: Array | float) -> Array:
    """Append columns, arrays (n,) or numbers, to the rows."""
    xp, zero = namespace(rows), 0 * rows[:, :1]
    return xp.concat([rows, *(zero + (c if isinstance(c, float) else c[:, None]) for c in columns)], axis=1)


def exp_of_inner(left: Array, right: Array) -> Array:
    """Return exp(min(<x_i, z_j>, 0)) for torch in a single buffer: a device is limited by memory bandwidth."""
    xp, products = namespace(left), left @ right.T
    xp.clip(products, max=0.0, out=products)
    return xp.exp(products, out=products)


def cancels(left: Array, right: Array) -> bool:
    """Whether computing Gaussian exponents as differences of these parts would lose digits.

    The absolute error of the exponent, hence the relative error of the kernel, is eps times the largest part.
    """
    return max(float(namespace(part).max(part)) for part in (left, right)) > _LARGEST_PART


def exp(values: Array, factor: float = 1.0) -> Array:
    """Return exp(factor * values), reusing the buffer of a NumPy argument."""
    if not is_numpy(values):
        return namespace(values).exp(factor * values)
    if factor != 1:
        np.multiply(values, factor, out=values)
    return np.exp(values, out=values)


def mean_over_points(
    X: Array,
    Z: Array | None,
    weights: Array,
    prepare: Callable[[Array, Array], tuple[Array, Array]],
    exponents: Callable[[Array, Array], Array],
) -> Array:
    """Return the sum over t of weights[t] exp(e(x_i(t), z_j(t))), shape (n, k), for curves (n, m, c) and (k, m, c).

    ``prepare`` takes the values of both samples at some points and moves the point axis first; ``exponents`` takes
    rows of its result and returns e, with e = 0 where x = z. For ``Z=None`` only the upper triangle is computed.
    """
    xp, is_symmetric = namespace(X), Z is None
    Z = X if Z is None else Z
    (n, m, _), k, itemsize = X.shape, Z.shape[0], xp.finfo(X.dtype).bits // 8
    budget = 2 * _CACHE_BYTES if is_numpy(X) else _BLOCK_BYTES // 4
    rows = list(row_blocks((n, min(_TILE[1], k) * min(_TILE[0], m)), itemsize, budget))
    out = xp.zeros((n, k), dtype=X.dtype, device=device(X))
    for points in row_blocks((m, 1), 1, _TILE[0]):
        left, right = prepare(X[:, points, :], Z[:, points, :])
        for here in rows:
            for start in range(here.start if is_symmetric else 0, k, _TILE[1]):
                there = slice(start, min(start + _TILE[1], k))
                values = exp(exponents(left[:, here, :], right[:, there, :]))
                out[here, there] += xp.tensordot(weights[points], values, axes=1)
    return mirrored(out, rows) if is_symmetric else out


def mirrored(upper: Array, rows: list[slice]) -> Array:
    """Mirror the upper triangle in place and set the diagonal to one."""
    xp = namespace(upper)
    for here in rows:
        block = xp.triu(upper[here, here], k=1)
        upper[here, here] = block + block.T + xp.eye(block.shape[0], dtype=upper.dtype, device=device(upper))
        upper[here.stop :, here] = upper[here, here.stop :].T
    return upper


def gaussian_factors(X: Array, Z: Array, gamma: float) -> tuple[Array, Array]:
    """Return factors whose products over the last axis are -gamma |x_i(t) - z_j(t)|^2, from centred data."""
    xp = namespace(X)
    left, right = scaled_values(X, Z, gamma)
    halves = [xp.sum(values * values, axis=2, keepdims=True) / -2 for values in (left, right)]
    ones = [xp.ones_like(half) for half in halves]
    return xp.concat([left, halves[0], ones[0]], axis=2), xp.concat([right, ones[1], halves[1]], axis=2)


def scaled_values(X: Array, Z: Array, gamma: float) -> tuple[Array, Array]:
    """Return centred values times sqrt(2 gamma), point axis first."""
    xp = namespace(X)
    center, scale = xp.mean(X, axis=0, keepdims=True), math.sqrt(2 * gamma)
    left, right = (xp.permute_dims((curves - center) * scale, (1, 0, 2)) for curves in (X, Z))
    return left, right


def integral_gaussian(X: Array, Z: Array | None, weights: Array, gamma: float) -> Array:
    """Return the sum over t of weights[t] exp(-gamma |x_i(t) - z_j(t)|^2), shape (n, k)."""
    xp = namespace(X)
    halves = [xp.sum(values * values, axis=2) / 2 for values in scaled_values(X, X if Z is None else Z, gamma)]
    if cancels(*halves):
        return mean_over_points(X, Z, weights, partial(scaled_values, gamma=gamma), minus_half_squares)
    return mean_over_points(X, Z, weights, partial(gaussian_factors, gamma=gamma), products_below_zero)


def minus_half_squares(left: Array, right: Array) -> Array:
    """Return minus half the sum over the last axis of (x_i(t) - z_j(t))^2, one point or one channel at a time."""
    return minus_channel_sums(left, right, "sqeuclidean", lambda difference: difference * difference) / 2


def products_below_zero(left: Array, right: Array) -> Array:
    """Return the inner products over the last axis, at most zero."""
    xp = namespace(left)
    products = left @ xp.matrix_transpose(right)
    return np.minimum(products, 0, out=products) if is_numpy(left) else xp.clip(products, max=0.0)


def laplacian_factors(X: Array, Z: Array, gamma: float) -> tuple[Array, Array]:
    """Return the values times gamma, point axis first."""
    left, right = (namespace(X).permute_dims(curves * gamma, (1, 0, 2)) for curves in (X, Z))
    return left, right


def minus_absolute_sums(left: Array, right: Array) -> Array:
    """Return minus the sum over the last axis of |x_i(t) - z_j(t)|, one point or one channel at a time."""
    return minus_channel_sums(left, right, "cityblock", namespace(left).abs)


def minus_channel_sums(left: Array, right: Array, metric: str, size: Callable[[Array], Array]) -> Array:
    """Return minus the sum over the last axis of the sizes of differences; ``metric`` is SciPy's name for the sum."""
    points, rows, channels = left.shape
    if is_numpy(left) and channels > 1:
        out = np.empty((points, rows, right.shape[1]), dtype=left.dtype)
        for t in range(points):
            np.negative(cdist(left[t], right[t], metric), out=out[t], casting="same_kind")
        return out
    total = size(left[:, :, None, 0] - right[:, None, :, 0])
    for channel in range(1, channels):
        total += size(left[:, :, None, channel] - right[:, None, :, channel])
    return -total


def distances(X: Array, Z: Array | None, metric: str) -> Array:
    """Return the distances between rows in a new array, without the cancellation of a matrix product."""
    if is_numpy(X):
        distances = squareform(pdist(X, metric)) if Z is None else cdist(X, Z, metric)
        return distances.astype(X.dtype, copy=False)
    if is_sparse(X):
        return sparse_distances(X, X if Z is None else Z, metric)
    xp = namespace(X)
    Z = X if Z is None else Z
    d, itemsize = X.shape[1], xp.finfo(X.dtype).bits // 8
    budget = _BLOCK_BYTES // 2  # a difference and its absolute value are held at the same time
    columns = list(row_blocks(Z.shape, itemsize, budget))
    width = min(Z.shape[0], max(1, budget // (d * itemsize)))
    norm = _NORMS[metric]
    out = [
        xp.concat([norm(X[rows, None, :] - Z[None, part, :]) for part in columns], axis=1)
        for rows in row_blocks((X.shape[0], width * d), itemsize, budget)
    ]
    return xp.concat(out, axis=0)


def sparse_distances(X: Array, Z: Array, metric: str) -> np.ndarray:
    """Return the distances between rows of sparse matrices, converting one block at a time to dense."""
    out = np.empty((X.shape[0], Z.shape[0]), dtype=X.dtype)
    blocks = [list(row_blocks(points.shape, 8, _BLOCK_BYTES // 2)) for points in (X, Z)]
    for rows in blocks[0]:
        left = dense(X[rows])
        for columns in blocks[1]:
            out[rows, columns] = cdist(left, dense(Z[columns]), metric)
    return out


def absolute_sum(differences: Array) -> Array:
    xp = namespace(differences)
    return xp.sum(xp.abs(differences), axis=-1)


def sum_of_squares(differences: Array) -> Array:
    return namespace(differences).sum(differences * differences, axis=-1)


def root_of_squares(differences: Array) -> Array:
    return namespace(differences).sqrt(sum_of_squares(differences))


_NORMS = {"cityblock": absolute_sum, "euclidean": root_of_squares, "sqeuclidean": sum_of_squares}


def row_blocks(shape: tuple[int, ...], itemsize: int, budget: int) -> Iterator[slice]:
    """Yield row slices such that each slice of an array of this shape takes at most ``budget`` bytes (or one row)."""
    step = max(1, budget // (shape[1] * itemsize))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def cache_blocks(matrix: np.ndarray) -> Iterator[slice]:
    """Yield row slices of a matrix that stay in the cache between two passes."""
    return row_blocks(matrix.shape, matrix.itemsize, _CACHE_BYTES)


def matern_of(t: np.ndarray, nu: float) -> np.ndarray:
    """Return 2^(1-nu) / Gamma(nu) t^nu K_nu(t), computed in logarithms to avoid overflow."""
    if nu > 100:
        return matern_expansion(t, nu)
    t = np.minimum(t, 1e6)  # the value underflows to zero well before; Bessel functions are NaN well beyond
    with np.errstate(divide="ignore", invalid="ignore"):
        bessel = kve(nu, t)
        logs = (1 - nu) * math.log(2) - gammaln(nu) + nu * np.log(t) + np.log(bessel) - t
    # where K_nu overflows, t is so small that the first two terms of the series are exact to round-off
    near = np.exp(-(t**2) / (4 * (nu - 1))) if nu > 2 else np.ones_like(t)
    return np.where(np.isinf(bessel), near, np.exp(np.minimum(logs, 0.0)))


def matern_expansion(t: np.ndarray, nu: float) -> np.ndarray:
    """Return the same for large nu by Debye's uniform expansion of K_nu, DLMF 10.41.4, divided by its value at zero."""
    square = (t / nu) ** 2
    p = 1 / np.sqrt(1 + square)
    excess = square / (1 + 1 / p)  # 1/p - 1
    logs = nu * (np.log1p(excess / 2) - excess) - np.log1p(excess) / 2
    values: np.ndarray = np.exp(logs) * debye_sum(p, nu) / debye_sum(1.0, nu)
    return values


def debye_sum(p: Array, nu: float) -> Array:
    """Return the sum of (-1)^k U_k(p) / nu^k for k up to 4, DLMF 10.41.10."""
    q = p**2
    first = p * (3 - 5 * q) / 24
    second = q * (81 + q * (-462 + q * 385)) / 1152
    third = p * q * (30375 + q * (-369603 + q * (765765 - q * 425425))) / 414720
    fourth = q**2 * (4465125 + q * (-94121676 + q * (349922430 + q * (-446185740 + q * 185910725)))) / 39813120
    return 1 - (first - (second - (third - fourth / nu) / nu) / nu) / nu
