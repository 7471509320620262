"""Kernels between curves, kernels on parts of a table, and slopes, against loops, integrals and hand values."""

import math
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import gamma as gamma_function
from scipy.special import kv
from sklearn.base import clone

from fenchel.data.quadrature import trapezoid_weights
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import (
    FunctionalGaussian,
    FunctionalLaplacian,
    Gaussian,
    IntegralGaussian,
    IntegralLaplacian,
    Laplacian,
    Linear,
    Matern,
    Part,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Separable,
    SeparableSum,
    Sum,
    Tanimoto,
    Wrapped,
    functional,
)
from fenchel.kernels import _distances as _values
from fenchel.kernels.derivatives import slope, weighted_gradient

NORMS = [FunctionalGaussian, FunctionalLaplacian]
MEANS = [IntegralGaussian, IntegralLaplacian]
GRID = [0.0, 0.5, 1.5, 1.75, 3.0]
GRID_WEIGHTS = [0.25, 0.75, 0.625, 0.75, 0.625]  # by hand, halves of the two neighbouring steps; their sum is 3
every_class = pytest.mark.parametrize("cls", [*NORMS, *MEANS])
every_mean = pytest.mark.parametrize("cls", MEANS)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def curves(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def value_by_loops(cls, x, z, gamma, weights):
    """Return k(x, z) from Python floats; a point of a curve is a list of channels."""
    total = 0.0
    for a, b, weight in zip(x, z, weights, strict=True):
        squares = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
        lengths = sum(abs(p - q) for p, q in zip(a, b, strict=True))
        if cls in NORMS:
            total += weight * squares
        else:
            distance = squares if cls is IntegralGaussian else lengths
            total += weight / math.fsum(weights) * math.exp(-gamma * distance)
    if cls in MEANS:
        return total
    return math.exp(-gamma * (total if cls is FunctionalGaussian else math.sqrt(total)))


def matrix_by_loops(cls, X, Z, gamma, weights):
    X, Z = (C if C.ndim == 3 else C[:, :, None] for C in (X, Z))
    return np.array([[value_by_loops(cls, x, z, gamma, weights) for z in Z.tolist()] for x in X.tolist()])


def direct_mean(cls, X, Z, gamma):
    """Return the plain mean over the points, all differences at once."""
    differences = np.abs(X[:, None] - Z[None]) ** (2 if cls is IntegralGaussian else 1)
    return np.mean(np.exp(-gamma * np.sum(differences, axis=-1)), axis=-1)


# Values


@pytest.mark.parametrize("with_z", [False, True])
@pytest.mark.parametrize(("grid", "weights"), [(None, [0.2] * 5), (GRID, GRID_WEIGHTS)], ids=["mean", "grid"])
@pytest.mark.parametrize("channels", [(), (1,), (3,)], ids=["flat", "one", "three"])
@every_class
def test_values_by_loops(cls, channels, grid, weights, with_z):
    X, Z = curves(6, 5, *channels), curves(4, 5, *channels, seed=1)
    K = cls(0.7, grid)(X, Z) if with_z else cls(0.7, grid)(X)
    assert_allclose(K, matrix_by_loops(cls, X, Z if with_z else X, 0.7, weights), rtol=1e-12)


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (FunctionalGaussian, math.exp(-0.5 * 3 * (4 + 9))),
        (FunctionalLaplacian, math.exp(-0.5 * math.sqrt(3 * (4 + 9)))),
        (IntegralGaussian, math.exp(-0.5 * (4 + 9))),
        (IntegralLaplacian, math.exp(-0.5 * (2 + 3))),
    ],
)
def test_constant_curves_by_hand(cls, expected):
    """The curves (0, 0) and (2, -3) over an interval of length 3."""
    X = np.zeros((2, 5, 2))
    X[1] = [2.0, -3.0]
    assert_allclose(cls(0.5, GRID)(X), [[1, expected], [expected, 1]], rtol=1e-14)


@pytest.mark.parametrize(
    "grid", [None, np.sort(np.random.default_rng(4).uniform(-1, 2, size=40))], ids=["mean", "grid"]
)
def test_norm_is_that_of_numpy_trapezoid(grid):
    X = curves(7, 40, 2)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    expected = np.mean(squares, axis=-1) if grid is None else np.trapezoid(squares, grid, axis=-1)
    assert_allclose(-np.log(FunctionalGaussian(0.1, grid)(X)) / 0.1, expected, rtol=1e-10, atol=1e-12)
    assert_allclose(-np.log(FunctionalLaplacian(0.1, grid)(X)) / 0.1, np.sqrt(expected), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("cls", "point", "whole"),
    [
        (FunctionalGaussian, lambda d: d**2, lambda value: math.exp(-0.5 * value)),
        (FunctionalLaplacian, lambda d: d**2, lambda value: math.exp(-0.5 * math.sqrt(value))),
        (IntegralGaussian, lambda d: math.exp(-0.5 * d**2), lambda value: value / 2),
        (IntegralLaplacian, lambda d: math.exp(-0.5 * abs(d)), lambda value: value / 2),
    ],
)
def test_finer_uneven_grids_converge_to_the_integral(cls, point, whole):
    exact = whole(quad(lambda t: point(math.sin(3 * t) - t**2 + 1), 0, 2, limit=200, epsabs=1e-12)[0])
    for m in (11, 41, 161, 641, 2561):  # the rule has order two, also with the kinks of an absolute value
        t = 2 * np.linspace(0, 1, m) ** 1.7
        K = cls(0.5, t)(np.sin(3 * t)[None], (t**2 - 1)[None])
        assert abs(K[0, 0] - exact) < 4 / (m - 1) ** 2


def test_plain_mean_is_not_the_integral_of_an_uneven_grid():
    """On points crowded near zero, where both curves agree, the two means differ as they should."""
    t = np.linspace(0, 1, 101) ** 3
    x, z = np.zeros((1, 101)), t[None]
    exact = quad(lambda s: math.exp(-(s**2)), 0, 1)[0]
    assert abs(IntegralGaussian(1.0, t)(x, z)[0, 0] - exact) < 1e-3
    assert IntegralGaussian(1.0)(x, z)[0, 0] - exact > 0.1


@pytest.mark.parametrize("cls", [FunctionalGaussian, IntegralGaussian])
def test_channels_that_agree_change_nothing(cls):
    X, Z = curves(6, 5), curves(4, 5, seed=1)
    wide = [np.stack([np.ones_like(C), C, np.full_like(C, -2.0)], axis=2) for C in (X, Z)]
    assert_allclose(cls(0.7, GRID)(*wide), cls(0.7, GRID)(X, Z), rtol=1e-12)


def test_channels_multiply_in_the_functional_gaussian():
    X = curves(6, 5, 3)
    parts = [FunctionalGaussian(0.4, GRID)(X[:, :, c]) for c in range(3)]
    assert_allclose(FunctionalGaussian(0.4, GRID)(X), parts[0] * parts[1] * parts[2], rtol=1e-12)


@every_mean
def test_one_point_is_the_kernel_of_vectors(cls):
    X = curves(8, 1, 4)
    vectors = Gaussian(0.3) if cls is IntegralGaussian else Laplacian(0.3)
    for grid in (None, [2.5]):
        assert_allclose(cls(0.3, grid)(X), vectors(X[:, 0]), rtol=1e-12)


# Contract on curves with channels


@pytest.mark.parametrize("grid", [None, GRID], ids=["mean", "grid"])
@every_dtype
@every_class
def test_matrix_of_curves_with_channels(cls, dtype, grid):
    X = curves(30, 5, 3, dtype=dtype)
    X[-1] = X[0]
    kernel = cls(0.2, grid)
    K = kernel(X)
    assert K.dtype == kernel(X, X[:4]).dtype == kernel.diag(X).dtype == dtype
    assert_array_equal(K, K.T)
    assert_array_equal(np.diagonal(K), kernel.diag(X))
    assert kernel.diag(X).shape == (30,)
    values = np.linalg.eigvalsh(K.astype(np.float64))
    assert values[0] >= -16 * np.finfo(dtype).eps * np.trace(K)
    assert_allclose(kernel(X, X), K, rtol=0, atol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize("channels", [(), (1,), (3,)], ids=["flat", "one", "three"])
@every_dtype
@every_class
def test_array_libraries_agree(cls, dtype, channels, xp):
    X, Z = curves(9, 5, *channels, dtype=dtype), curves(4, 5, *channels, seed=1, dtype=dtype)
    x, z = xp.asarray(X), xp.asarray(Z)
    kernel = cls(0.4, xp.asarray(GRID))
    for mine, expected in [
        (kernel(x), matrix_by_loops(cls, X, X, 0.4, GRID_WEIGHTS)),
        (kernel(x, z), matrix_by_loops(cls, X, Z, 0.4, GRID_WEIGHTS)),
        (kernel.diag(x), np.ones(9)),
    ]:
        assert type(mine) is type(x)
        assert mine.dtype == x.dtype
        assert_allclose(np.asarray(mine), expected, rtol=0, atol=64 * np.finfo(dtype).eps)
    assert_array_equal(np.asarray(kernel(x)), np.asarray(kernel(x)).T)
    assert cls("median", GRID).resolve(x).gamma == pytest.approx(cls("median", GRID).resolve(X).gamma, rel=1e-5)
    assert_array_equal(np.asarray(x), X)
    assert_array_equal(np.asarray(z), Z)


def test_mixed_precision_is_promoted():
    X = curves(6, 5, 2)
    for cls in (*NORMS, *MEANS):
        K = cls(0.3)(X.astype(np.float32), X[:3])
        assert K.dtype == np.float64
        assert_allclose(K, cls(0.3)(X, X[:3]), rtol=1e-5)


# Blocks, memory, digits


@pytest.mark.parametrize("channels", [1, 3])
@every_mean
def test_blocks_agree_with_all_differences_at_once(cls, channels, xp, monkeypatch):
    X, Z = curves(13, 7, channels), curves(9, 7, channels, seed=1)
    x, z = xp.asarray(X), xp.asarray(Z)
    # one tile; tiles that do not divide the sizes; one row and one column at a time
    for tile, budget in [((8, 512), 2**20), ((3, 5), 3 * 5 * 8 * 4), ((1, 1), 8), ((4, 16), 1)]:
        monkeypatch.setattr(_values, "_TILE", tile)
        monkeypatch.setattr(_values, "_CACHE_BYTES", budget // 2)
        monkeypatch.setattr(_values, "_BLOCK_BYTES", budget * 4)
        K = np.asarray(cls(0.3)(x))
        assert_allclose(K, direct_mean(cls, X, X, 0.3), rtol=1e-12)
        assert_array_equal(K, K.T)
        assert_allclose(np.asarray(cls(0.3)(x, z)), direct_mean(cls, X, Z, 0.3), rtol=1e-12)


@every_mean
def test_more_columns_than_a_tile(cls):
    X = curves(530, 3, 2)
    assert_allclose(cls(0.3)(X), direct_mean(cls, X, X, 0.3), rtol=1e-11)
    assert_allclose(cls(0.3)(X[:2], X), direct_mean(cls, X[:2], X, 0.3), rtol=1e-11)


@pytest.mark.parametrize("library", ["numpy", "array_api_strict"])
@every_mean
def test_temporary_memory_is_bounded(cls, library, monkeypatch):
    xp = pytest.importorskip(library)
    X = xp.asarray(curves(400, 20, 3))  # the differences at all points would take 77 MB, those of one tile 10 MB
    monkeypatch.setattr(_values, "_BLOCK_BYTES", 2**20)
    monkeypatch.setattr(_values, "_CACHE_BYTES", 2**17)
    tracemalloc.start()
    cls(0.1)(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 2**20 + 2 * 400 * 400 * 8


@every_dtype
def test_gaussian_of_distant_curves_keeps_its_digits(dtype):
    X = curves(12, 20, 3, dtype=dtype)
    near = IntegralGaussian(0.5)(X)
    shift = 2.0 ** (20 if dtype == np.float64 else 6)
    assert_allclose(IntegralGaussian(0.5)(X + dtype(shift)), near, rtol=0, atol=shift * 64 * np.finfo(dtype).eps)
    far = IntegralGaussian(50.0)(X * dtype(1e6))
    assert_array_equal(far, np.eye(12))


@every_dtype
@every_class
def test_similarities_of_near_duplicates_stay_below_one(cls, dtype, xp):
    rng = np.random.default_rng(0)
    X = (rng.uniform(1, 2, size=(1, 9, 4)) * (1 + 1e-7 * rng.random((40, 9, 4))) + 10 * rng.random((40, 1, 1))).astype(
        dtype
    )
    x = xp.asarray(X)
    most = 1 + 4 * float(np.finfo(dtype).eps)  # the round-off of a sum of nine weights
    for K in (cls(1e-3)(x), cls(1e-3)(x, xp.asarray(X[::-1].copy()))):
        assert float(np.asarray(K).max()) <= most


# Median heuristic


def test_median_of_norms_by_hand():
    # over an interval of length 3 the squared distances are 3 * (1, 16, 9): the median is 27
    X = np.array([0.0, 1.0, 4.0])[:, None] * np.ones(5)
    assert FunctionalGaussian("median", GRID).resolve(X).gamma == pytest.approx(1 / 54, rel=1e-14)
    assert FunctionalLaplacian("median", GRID).resolve(X).gamma == pytest.approx(1 / math.sqrt(27), rel=1e-14)
    assert FunctionalGaussian("median").resolve(X).gamma == pytest.approx(1 / 18, rel=1e-14)


def test_median_of_pointwise_distances_by_hand():
    X = np.zeros((2, 3, 2))
    X[1] = [[1.0, 1.0], [2.0, -1.0], [0.0, 4.0]]  # squares 2, 5, 16; absolute values 2, 3, 4
    assert IntegralGaussian("median").resolve(X).gamma == pytest.approx(1 / 5, rel=1e-15)
    assert IntegralLaplacian("median").resolve(X).gamma == pytest.approx(1 / 3, rel=1e-15)
    assert IntegralLaplacian("median")(X)[0, 1] == pytest.approx(
        (math.exp(-2 / 3) + math.exp(-1) + math.exp(-4 / 3)) / 3, rel=1e-14
    )


@every_mean
def test_median_is_over_pairs_and_points(cls):
    X = curves(9, 6, 2)
    power = 2 if cls is IntegralGaussian else 1
    numbers = [
        sum(abs(p - q) ** power for p, q in zip(X[i, t], X[j, t], strict=True))
        for i in range(9)
        for j in range(i)
        for t in range(6)
    ]
    assert cls("median").resolve(X).gamma == pytest.approx(1 / np.median(numbers), rel=1e-13)


@every_class
def test_zero_medians(cls):
    X = np.zeros((6, 4))
    X[5] = 2.0  # 10 null distances of 15: the positive ones are all 2
    at_two = {FunctionalGaussian: 1 / 8, FunctionalLaplacian: 1 / 2, IntegralGaussian: 1 / 4, IntegralLaplacian: 1 / 2}
    assert cls("median").resolve(X).gamma == pytest.approx(at_two[cls], rel=1e-14)
    for constant in (np.ones((4, 3)), np.ones((1, 3, 2))):
        assert cls("median").resolve(constant).gamma == (0.5 if cls is FunctionalGaussian else 1.0)


@every_mean
def test_median_of_a_large_sample_takes_evenly_spaced_curves_and_points(cls, monkeypatch):
    X = curves(21, 9)
    ordered = X[np.argsort(X[:, 0])]
    monkeypatch.setattr(functional, "_MEDIAN_POINTS", 5)  # points 0, 2, 4, 6, 8
    monkeypatch.setattr(functional, "_MEDIAN_VALUES", 5 * 61)  # pairs of 11 curves, 0, 2, ..., 20 in order of content
    gamma = cls("median").resolve(X).gamma
    assert gamma == cls("median").resolve(X[::-1]).gamma
    monkeypatch.undo()
    assert gamma == cls("median").resolve(ordered[::2, ::2]).gamma
    assert gamma != cls("median").resolve(X).gamma


@every_class
def test_median_wants_its_sample(cls):
    X = curves(9, 5, 2)
    with pytest.raises(ValueError, match=r"call kernel\.resolve\(X_train\) first"):
        cls("median", GRID)(X, X[:3])
    resolved = cls("median", GRID).resolve(X)
    assert type(resolved) is cls
    assert resolved.grid is GRID
    assert_allclose(resolved(X, X[:3]), cls("median", GRID)(X)[:, :3], rtol=1e-12)


# Bad arguments


@every_class
def test_missing_values_are_counted(cls):
    X = curves(6, 5, 2)
    holes = X.copy()
    holes[1, 2, 0] = holes[4, 0, 1] = holes[5, 4, 1] = np.nan
    message = r"Input curves must be complete\. 3 of the 60 values of {} are missing \(NaN\); interpolate them first"
    for call in (cls(), cls().diag, cls("median").resolve):
        with pytest.raises(ValueError, match=message.format("X")):
            call(holes)
    with pytest.raises(ValueError, match=message.format("Z")):
        cls()(X, holes)
    with pytest.raises(ValueError, match="X must be finite"):
        cls()(np.where(np.isnan(holes), np.inf, holes))


@every_class
def test_bad_curves_are_named(cls):
    X = curves(6, 5, 2)
    with pytest.raises(ValueError, match=r"X must be 2-dimensional or 3-dimensional\. Got an array of shape \(5,\)"):
        cls()(X[0, :, 0])
    with pytest.raises(ValueError, match="X must have at least one sample"):
        cls()(X[:0])
    for empty in (X[:, :0], X[:, :, :0], X[:, :0, 0]):
        with pytest.raises(ValueError, match="curves of X must have at least one point and one channel"):
            cls()(empty)
    with pytest.raises(ValueError, match=r"Z must have 5 points and 2 channels, like those of X\. Got 4 points and 2"):
        cls()(X, X[:, :4])
    with pytest.raises(ValueError, match=r"Z must have 5 points and 2 channels, like those of X\. Got 10 points and 1"):
        cls()(X, X.reshape(6, 10))
    with pytest.raises(ValueError, match=r"Z must have 5 points and 2 channels, like those of X\. Got 5 points and 1"):
        cls()(X, X[:, :, 0])
    with pytest.raises(TypeError, match="X must hold real numbers"):
        cls()(X.astype(complex))
    with pytest.raises(
        ValueError, match=f"'grid' parameter of {cls.__name__} must hold 5 points, as many as the curves. Got 3"
    ):
        cls(1.0, GRID[:3])(X)
    with pytest.raises(ValueError, match=rf"'gamma' parameter of {cls.__name__} must be .* or 'median'\. Got -1\.0"):
        cls(-1.0)(X)
    with pytest.raises(TypeError, match=f"'gamma' parameter of {cls.__name__}"):
        cls(None)(X)


# Quadrature


def test_trapezoid_weights_by_hand():
    assert_array_equal(trapezoid_weights(GRID), GRID_WEIGHTS)
    assert_array_equal(trapezoid_weights([4.0]), [1.0])
    assert_array_equal(trapezoid_weights([1, 4]), [1.5, 1.5])


def test_trapezoid_weights_are_numpy_trapezoid(xp):
    rng = np.random.default_rng(0)
    for m in (2, 3, 50):
        grid, values = np.sort(rng.normal(size=m)), rng.normal(size=m)
        weights = trapezoid_weights(xp.asarray(grid))
        assert type(weights) is np.ndarray
        assert weights.dtype == np.float64
        assert weights @ values == pytest.approx(np.trapezoid(values, grid), rel=1e-12)
        assert weights.sum() == pytest.approx(grid[-1] - grid[0], rel=1e-13)


def test_trapezoid_weights_keep_the_grid():
    grid = np.array(GRID)
    weights = trapezoid_weights(grid)
    weights *= 2
    assert_array_equal(grid, GRID)


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ([0.0, 2.0, 1.0], ValueError, r"increasing points\. Got 1 at index 2 after 2; sort the points"),
        ([3.0, 2.0, 1.0], ValueError, r"increasing points\. Got 2 at index 1 after 3; sort the points"),
        ([0.0, 1.0, 1.0, 2.0], ValueError, r"increasing points\. Got 1 at index 2 after 1; drop the repeated point"),
        ([0.0, np.nan, np.inf], ValueError, r"finite points\. 2 of its 3 are NaN or infinite"),
        ([], ValueError, r"at least one point\. Got shape \(0,\)"),
        (np.zeros((2, 2)), ValueError, r"must be a vector of at least one point\. Got shape \(2, 2\)"),
        (["a", "b"], TypeError, "must hold real numbers. Got dtype <U1"),
    ],
)
def test_bad_grids_are_named(grid, error, message):
    with pytest.raises(error, match=message):
        trapezoid_weights(grid)
    with pytest.raises(error, match=message):
        IntegralGaussian(1.0, grid)(curves(4, 3))


# Parts of a table


def table(n=8, seed=0):
    return curves(n, 12, seed=seed)


def test_mixed_table_is_a_sum_of_kernels(xp):
    X, Z = table(), table(5, seed=1)
    kernel = Part(FunctionalGaussian(), slice(0, 10)) + 2.0 * Part(Laplacian(0.5), [10, 11])

    def expected(a, b):
        squares = sum((p - q) ** 2 for p, q in zip(a[:10], b[:10], strict=True)) / 10
        return math.exp(-squares) + 2 * math.exp(-0.5 * (abs(a[10] - b[10]) + abs(a[11] - b[11])))

    def matrix(A, B):
        return [[expected(a, b) for b in B.tolist()] for a in A.tolist()]

    assert_allclose(np.asarray(kernel(xp.asarray(X))), matrix(X, X), rtol=1e-12)
    assert_allclose(np.asarray(kernel(xp.asarray(X), xp.asarray(Z))), matrix(X, Z), rtol=1e-12)
    assert_allclose(np.asarray(kernel.diag(xp.asarray(X))), np.full(8, 3.0), rtol=1e-14)


@pytest.mark.parametrize(
    ("columns", "places"),
    [
        ([3, 0], [3, 0]),
        ((3, -1), [3, 11]),
        ([-12], [0]),
        (range(2, 8, 2), [2, 4, 6]),
        (np.array([5, 5]), [5, 5]),
        (slice(None), list(range(12))),
        (slice(9, 12), [9, 10, 11]),
        (slice(-2, None), [10, 11]),
        (slice(8, 2, -3), [8, 5]),
    ],
    ids=str,
)
def test_columns(columns, places, xp):
    X = table()
    seen = np.stack([X[:, place] for place in places], axis=1)
    kernel = Part(Linear(), columns)
    assert_allclose(np.asarray(kernel(xp.asarray(X))), seen @ seen.T, rtol=1e-12)
    assert_allclose(np.asarray(kernel.diag(xp.asarray(X))), np.sum(seen**2, axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    "columns", [[12], [-13], [0, 50], slice(0, 13), slice(20, None), slice(-13, None), slice(4, 4)], ids=str
)
def test_columns_that_are_not_there(columns):
    kernel = Part(Linear(), columns)
    for call in (kernel, kernel.diag, kernel.resolve):
        with pytest.raises(ValueError, match=r"X must have the columns .* of Part\. It has 12 columns"):
            call(table())


def test_shape_makes_curves_with_channels():
    X, Z = table(), table(5, seed=1)
    kernel = Part(IntegralLaplacian(0.5), slice(2, 12), shape=(5, 2))
    # the channels of a point stand side by side
    X3, Z3 = (np.stack([C[:, 2::2], C[:, 3::2]], axis=2) for C in (X, Z))
    assert_allclose(kernel(X, Z), direct_mean(IntegralLaplacian, X3, Z3, 0.5), rtol=1e-12)
    assert_allclose(kernel.diag(X), np.ones(8))
    with pytest.raises(ValueError, match=r"'shape' parameter of Part must have as many entries.*, 10\. Got \(4, 2\)"):
        Part(IntegralLaplacian(0.5), slice(2, 12), shape=(4, 2))(X)


def test_part_resolves_on_its_columns():
    X = table()
    resolved = (Part(Gaussian("median"), [1, 2]) + Part(FunctionalGaussian("median"), slice(4, 12), (4, 2))).resolve(X)
    assert resolved.left.kernel.gamma == Gaussian("median").resolve(X[:, 1:3]).gamma
    assert resolved.right.kernel.gamma == FunctionalGaussian("median").resolve(X[:, 4:].reshape(8, 4, 2)).gamma
    assert resolved.left.columns == [1, 2]
    assert resolved.right.shape == (4, 2)


def test_part_tells_of_missing_values_in_its_columns_only():
    X = table()
    X[2, 0] = np.nan
    assert Part(FunctionalGaussian(), slice(1, 12))(X).shape == (8, 8)
    with pytest.raises(ValueError, match=r"Input curves must be complete\. 1 of the 80 values of X"):
        Part(FunctionalGaussian(), slice(0, 10))(X)


NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]


def test_names_become_places():
    X = table()
    kernel = Part(Gaussian(0.5), ["c", "a"]).named(NAMES)
    assert kernel.columns == [2, 0]
    assert_allclose(kernel(X), Gaussian(0.5)(X[:, [2, 0]]), rtol=1e-14)
    assert Part(Gaussian(0.5), slice(0, 3)).named(NAMES).columns == slice(0, 3)
    assert Part(Gaussian(0.5), [4, 5]).named(np.array(NAMES, dtype=object)).columns == [4, 5]
    assert Part(Linear(), ["c", "a", "b", "l"], (2, 2)).named(NAMES).shape == (2, 2)


def test_names_go_through_combined_kernels():
    X = table()
    combined = (Part(Linear(), ["b"]) + 3.0 * Part(Gaussian(0.5), ["c", "d"])) * Part(Laplacian(0.1), ["l"])
    named = combined.named(NAMES)
    assert (type(named), type(named.left), type(named.left.right)) == (Product, Sum, Scaled)
    expected = (np.outer(X[:, 1], X[:, 1]) + 3 * Gaussian(0.5)(X[:, 2:4])) * Laplacian(0.1)(X[:, 11:])
    assert_allclose(named(X), expected, rtol=1e-12)
    assert combined.left.left.columns == ["b"]
    for kernel in (Gaussian(), Wrapped("rbf"), Precomputed(), IntegralGaussian()):
        assert kernel.named(NAMES) is kernel


def test_names_go_through_a_part_of_a_part():
    X = table()
    named = Part(Part(Linear(), ["d"]) + Part(Linear(), [0]), ["b", "d", "c"]).named(NAMES)
    assert named.kernel.left.columns == [1]
    assert_allclose(named(X), np.outer(X[:, 3], X[:, 3]) + np.outer(X[:, 1], X[:, 1]), rtol=1e-12)
    with pytest.raises(ValueError, match=r"Got \['a'\]; the names are \['b', 'd'\]"):
        Part(Part(Linear(), ["a"]), ["b", "d"]).named(NAMES)


def test_names_go_through_operator_kernels():
    operator = np.eye(2)
    term = Separable(Part(Linear(), ["b"]), operator)
    named = term.named(NAMES)
    assert named.kernel.columns == [1]
    assert named.operator is operator
    total = SeparableSum([term, Separable("gaussian")]).named(NAMES)
    assert total.terms[0].kernel.columns == [1]
    assert total.terms[0].operator is operator
    assert type(total.terms[1].kernel) is Gaussian
    assert term.kernel.columns == ["b"]


def test_names_that_are_not_there():
    with pytest.raises(ValueError, match=r"names that occur once in X\. Got \['z', 'y'\]; the names are \['a', 'b'\]"):
        Part(Linear(), ["a", "z", "y"]).named(["a", "b"])
    with pytest.raises(ValueError, match=r"names that occur once in X\. Got \['a'\]"):
        Part(Linear(), ["a"]).named(["a", "b", "a"])
    kernel = Part(Linear(), ["a", "b"])
    for call in (kernel, kernel.diag, kernel.resolve):
        with pytest.raises(ValueError, match=r"selects columns by name: X must be a pandas DataFrame"):
            call(table())


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Part("linear", [0]), "'kernel' parameter of Part must be a ScalarKernel on points. Got 'linear'"),
        (Part(Precomputed(), [0]), r"'kernel' parameter of Part must be a ScalarKernel on points. Got Precomputed\(\)"),
        (Part(Linear(), "ab"), "'columns' parameter of Part must be a non-empty slice, list of int .* Got 'ab'"),
        (Part(Linear(), []), r"'columns' parameter of Part .* Got \[\]"),
        (Part(Linear(), 3), "'columns' parameter of Part .* Got 3"),
        (Part(Linear(), [0, "a"]), "'columns' parameter of Part"),
        (Part(Linear(), [0.0]), "'columns' parameter of Part"),
        (Part(Linear(), [True, False]), "'columns' parameter of Part"),
        (Part(Linear(), [0], (0,)), "'shape' parameter of Part must be a tuple of positive int"),
        (Part(Linear(), [0], 1), "'shape' parameter of Part must be a tuple of positive int"),
    ],
)
def test_bad_parts_are_named(kernel, message):
    for call in (kernel, kernel.diag, kernel.resolve, lambda X: kernel.named(NAMES)):
        with pytest.raises(TypeError, match=message):
            call(table())


def test_part_is_a_component():
    kernel = Part(Gaussian(0.5), slice(0, 3))
    assert clone(kernel).set_params(kernel__gamma=2.0).kernel.gamma == 2.0
    assert kernel.kernel.gamma == 0.5
    assert kernel.tags.is_trusted
    assert not Part(Wrapped("rbf"), [0]).tags.is_trusted
    assert not kernel.tags.is_pairwise
    with pytest.raises(ValueError, match="'gamma' parameter of Gaussian"):
        Part(Gaussian(-1.0), [0]).validate()
    with pytest.raises(ValueError, match=r"X must be 2-dimensional for Part\. Got an array of shape \(8, 6, 2\)"):
        kernel(table().reshape(8, 6, 2))
    with pytest.raises(ValueError, match=r"Z must be 2-dimensional for Part\. Got an array of shape \(12,\)"):
        kernel(table(), table()[0])


# Slopes

SMOOTH = [
    Linear(),
    Polynomial(1, 0.7, 0.5),
    Polynomial(2, coef0=0.0),
    Polynomial(5, 0.3, 2.0),
    Gaussian(),
    Gaussian(0.4),
    *[Matern(1.7, nu) for nu in (1.2, 1.5, 2.0, 2.5, 3.5, 10.0, 100.5, 150.0, math.inf)],
    Gaussian(0.4) + Linear(),
    Gaussian(0.4) * Polynomial(2, 0.5, 1.0),
    2.5 * Matern(0.8, 2.5),
    (Gaussian(0.3) + 0.5 * Linear()) * Matern(2.0, 1.5) * Gaussian(0.1),
]
every_smooth = pytest.mark.parametrize("kernel", SMOOTH, ids=repr)


def line(n, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).uniform(-2, 2, size=(n, 1)).astype(dtype)


@every_smooth
def test_slope_is_the_finite_difference(kernel):
    X, Z, step = line(9), line(6, seed=1), 1e-4
    ahead, behind = kernel(X + step, Z), kernel(X - step, Z)
    further, before = kernel(X + 2 * step, Z), kernel(X - 2 * step, Z)
    expected = (8 * (ahead - behind) - (further - before)) / (12 * step)  # fourth order
    assert_allclose(slope(kernel, X, Z), expected, rtol=1e-9, atol=1e-9)


@every_dtype
@every_smooth
def test_slope_in_other_libraries_and_dtypes(kernel, dtype, xp):
    X, Z = line(9, dtype=dtype), line(6, seed=1, dtype=dtype)
    x, z = xp.asarray(X), xp.asarray(Z)
    slopes = slope(kernel, x, z)
    assert type(slopes) is type(x)
    assert slopes.dtype == x.dtype
    assert slopes.shape == (9, 6)
    expected = slope(kernel, X.astype(np.float64), Z.astype(np.float64))
    assert_allclose(np.asarray(slopes), expected, rtol=0, atol=64 * np.finfo(dtype).eps * np.max(np.abs(expected)))
    assert_array_equal(np.asarray(x), X)
    assert_array_equal(np.asarray(z), Z)


def test_slopes_by_hand():
    X, Z = np.array([[1.0], [2.0]]), np.array([[3.0], [2.0]])
    assert_array_equal(slope(Linear(), X, Z), [[3, 2], [3, 2]])
    # d/dx (x z / 2 + 1)^2 = z (x z / 2 + 1)
    assert_allclose(slope(Polynomial(2, 0.5, 1.0), X, Z), [[7.5, 4], [12, 6]], rtol=1e-15)
    e = math.exp
    assert_allclose(slope(Gaussian(0.5), X, Z), [[2 * e(-2), e(-0.5)], [e(-0.5), 0]], rtol=1e-15)
    # (1 + a r) exp(-a r), a = sqrt(3) / 2, has the derivative -a^2 r exp(-a r)
    a = math.sqrt(3) / 2
    expected = [[2 * a**2 * e(-2 * a), a**2 * e(-a)], [a**2 * e(-a), 0]]
    assert_allclose(slope(Matern(2.0, 1.5), X, Z), expected, rtol=1e-14)
    # (1 + a r + a^2 r^2 / 3) exp(-a r), a = sqrt(5), has the derivative -a^2 r (1 + a r) exp(-a r) / 3
    a = math.sqrt(5)
    at = {r: a**2 * r * (1 + a * r) * e(-a * r) / 3 for r in (1.0, 2.0)}
    assert_allclose(slope(Matern(1.0, 2.5), X, Z), [[at[2.0], at[1.0]], [at[1.0], 0]], rtol=1e-14)


@pytest.mark.parametrize("nu", [1.0001, 1.3, 1.5, 2.0, 2.5, 3.5, 6.2])
def test_matern_slope_by_bessel_functions(nu):
    r = np.array([1e-6, 1e-3, 0.1, 0.7, 2.0, 9.0])
    s = math.sqrt(2 * nu) / 1.3
    expected = -s * 2 ** (1 - nu) / gamma_function(nu) * (s * r) ** nu * kv(nu - 1, s * r)
    slopes = slope(Matern(1.3, nu), r[:, None], np.zeros((1, 1)))[:, 0]
    assert_allclose(slopes, expected, rtol=1e-11)
    assert_allclose(slope(Matern(1.3, nu), -r[:, None], np.zeros((1, 1)))[:, 0], -slopes, rtol=1e-14)


@pytest.mark.parametrize("nu", [1.1, 1.5, 2.5, 4.0, 150.0, math.inf])
def test_matern_slope_at_zero_and_far(nu):
    X = np.array([0.0, 1e-300, 1e3, 1e9])[:, None]
    slopes = slope(Matern(1.0, nu), X, np.zeros((1, 1)))[:, 0]
    assert slopes[0] == 0
    assert np.all(np.abs(slopes) < 1e-15)


def test_matern_slope_is_continuous_in_the_smoothness():
    X, Z = line(9), line(6, seed=1)
    for nu in (1.5, 2.5, 3.5, 101.0):
        assert_allclose(slope(Matern(1.3, nu), X, Z), slope(Matern(1.3, nu + 1e-9), X, Z), atol=1e-8)
    assert_allclose(slope(Matern(1.3, 1e9), X, Z), slope(Matern(1.3, math.inf), X, Z), atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [
        Laplacian(),
        Matern(1.0, 0.5),
        Matern(1.0, 1.0),
        Tanimoto(),
        Precomputed(),
        Wrapped("rbf"),
        Part(Gaussian(0.5), [0]),
        FunctionalGaussian(),
        Gaussian() + Laplacian(),
        Gaussian() * Laplacian(),
        2.0 * Laplacian(),
    ],
    ids=repr,
)
def test_kernels_without_a_slope_say_so(kernel):
    X = np.abs(line(5))
    with pytest.raises(
        IncompatibleError,
        match=r"is not smooth, or has no derivative implemented\. Use Gaussian\(\), or Matern with nu=1\.5",
    ):
        slope(kernel, X, X)


def test_slope_wants_points_of_the_line():
    X = curves(5, 2)
    with pytest.raises(ValueError, match=r"X must have one column for a derivative\. Got shape \(5, 2\)"):
        slope(Gaussian(0.5), X, X)
    with pytest.raises(ValueError, match=r"Z must have 1 columns, as X has\. Got shape \(5, 2\)"):
        slope(Gaussian(0.5), X[:, :1], X)
    with pytest.raises(ValueError, match=r"call kernel\.resolve\(X_train\) first"):
        slope(Gaussian("median"), X[:, :1], X[:, :1])
    with pytest.raises(ValueError, match="'gamma' parameter of Gaussian"):
        slope(Gaussian(-1.0), X[:, :1], X[:, :1])
    assert slope(Gaussian(0.5), X[:, :1].astype(np.float32), X[:3, :1]).dtype == np.float64


# Gradients in vectors


@every_smooth
def test_weighted_gradient_is_the_finite_difference(kernel):
    random = np.random.default_rng(0)
    X, Z, weights, step = random.uniform(-1, 1, (7, 3)), random.uniform(-1, 1, (5, 3)), random.normal(size=(7, 5)), 1e-4
    found = weighted_gradient(kernel, X, Z, weights)
    assert found.shape == (7, 3)
    for k in range(3):
        move = step * np.eye(3)[k]
        ahead, further = (kernel(X + j * move, Z) - kernel(X - j * move, Z) for j in (1, 2))
        expected = np.sum(weights * (8 * ahead - further) / (12 * step), axis=1)
        assert_allclose(found[:, k], expected, rtol=1e-8, atol=1e-8)


@every_smooth
def test_weighted_gradient_on_the_line_is_the_slope(kernel):
    X, Z, weights = line(9), line(6, seed=1), np.random.default_rng(2).normal(size=(9, 6))
    expected = np.sum(weights * slope(kernel, X, Z), axis=1, keepdims=True)
    assert_allclose(weighted_gradient(kernel, X, Z, weights), expected, rtol=1e-12, atol=1e-13)


@every_dtype
@every_smooth
def test_weighted_gradient_in_other_libraries_and_dtypes(kernel, dtype, xp):
    random = np.random.default_rng(0)
    X, Z, weights = (random.uniform(-1, 1, shape).astype(dtype) for shape in ((7, 3), (5, 3), (7, 5)))
    found = weighted_gradient(kernel, *(xp.asarray(array) for array in (X, Z, weights)))
    assert type(found) is type(xp.asarray(X)) and found.dtype == xp.asarray(X).dtype
    expected = weighted_gradient(kernel, *(array.astype(np.float64) for array in (X, Z, weights)))
    assert_allclose(np.asarray(found), expected, rtol=0, atol=256 * np.finfo(dtype).eps * np.max(np.abs(expected)))


def test_kernels_without_a_gradient_say_so():
    X = np.abs(curves(5, 2))
    for kernel in (Laplacian(), Tanimoto(), Matern(1.0, 0.5), Gaussian() + Laplacian(), Precomputed(), Wrapped("rbf")):
        with pytest.raises(IncompatibleError, match="is not smooth, or has no derivative implemented"):
            weighted_gradient(kernel, X, X, np.ones((5, 5)))


def test_functions_take_objects():
    assert Wrapped(lambda X, Z: np.ones((len(X), len(Z)))).tags.takes_objects
    assert not any(kernel.tags.takes_objects for kernel in (Gaussian(), Wrapped("rbf"), Linear() + Gaussian()))


@pytest.mark.parametrize("cls", [FunctionalGaussian, FunctionalLaplacian, IntegralGaussian, IntegralLaplacian])
def test_a_weight_counts_a_curve_as_often_as_it_says_in_the_median(cls, rng):
    X = rng.standard_normal((7, 4, 2))
    counts = np.array([1, 1, 1, 1, 1, 9, 8])
    repeated = cls("median").resolve(np.repeat(X, counts, axis=0)).gamma
    assert cls("median").resolve(X, counts).gamma == pytest.approx(repeated, rel=1e-14)
    assert cls("median").resolve(X).gamma != pytest.approx(repeated, rel=1e-3)
