"""Rows in chunks: NumPy's functions of them, beside the same of whole arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel._array import namespace, settled
from fenchel.chunks.rows import Rows, Workers
from fenchel.kernels import Gaussian
from fenchel.operators import Streamed
from tests.dask.conftest import Done, Here

SIZES = (4, 1, 5)


def rows(array):
    parts = np.split(array, np.cumsum(SIZES)[:-1])
    return Rows(Workers(Here(), len(array)), np.ones((3, *array.shape[1:])), [Done(part) for part in parts])


def whole(lazy):
    return np.concatenate(list(lazy.each(np.asarray))) if isinstance(lazy, Rows) else np.asarray(lazy)


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, a: 2 * a[:, None, :] - np.array([1.0, 2.0]),
        lambda xp, a: xp.sum(a**2, axis=1),
        lambda xp, a: xp.max(a) * a,
        lambda xp, a: xp.sum(a[:, None, :], axis=(0, 2)),
        lambda xp, a: a @ (a.T @ xp.where(a > 0, a, xp.zeros_like(a))),
        lambda xp, a: xp.reshape(xp.reshape(a[:, None, :], (a.shape[0], -1)), (-1, 2, 1)),
        lambda xp, a: xp.stack([a, a / xp.linalg.vector_norm(a, axis=1, keepdims=True)], axis=1),
        lambda xp, a: xp.concat([a, xp.take(a, np.array([1]), axis=1)], axis=1),
        lambda xp, a: xp.stack([xp.sum(a), xp.min(a), xp.sum(xp.abs(a))]),
        lambda xp, a: xp.all(xp.isfinite(a)),
    ],
)
def test_functions_of_rows(rng, function):
    array = rng.standard_normal((10, 2))
    lazy = rows(array)
    found, expected = function(namespace(lazy), lazy), function(namespace(array), array)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert_allclose(whole(found), expected, rtol=1e-14)


def test_sums_are_computed_together_and_rows_once(rng):
    array, calls = rng.standard_normal((10, 2)), []
    lazy = rows(array)
    (twice,) = settled(lazy.of(lambda a: (calls.append(len(a)), 2 * a)[1], lazy))
    sums = [namespace(lazy).sum(twice), namespace(lazy).sum(twice**2)]
    Done.seen.clear()
    assert_allclose([float(one) for one in sums], [2 * array.sum(), 4 * (array**2).sum()])
    assert calls == [3, *SIZES] and len(Done.seen) == 1


def test_products_with_a_kernel_and_orthogonal_features(rng):
    X, A = rng.standard_normal((2, 10, 2))
    lazy = rows(X)
    other = Rows(lazy.workers, np.ones((3, 2)), rows(A).parts)
    assert_allclose(whole(Streamed(Gaussian(0.5), lazy).matmul(other)), Gaussian(0.5)(X) @ A, rtol=1e-13)
    turned, values = lazy.orthogonal()
    assert_allclose(whole(turned).T @ whole(turned), np.diag(values), atol=1e-13)
    assert_allclose(whole(turned) @ whole(turned).T, X @ X.T, atol=1e-13)
