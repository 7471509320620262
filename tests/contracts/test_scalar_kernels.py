"""What every scalar kernel keeps, and its values against independent ones."""

import inspect
import math
import re
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from fenchel import kernels
from fenchel.kernels import (
    Gaussian,
    GaussianTanimoto,
    Laplacian,
    Linear,
    Matern,
    OutputOperator,
    Polynomial,
    Precomputed,
    Product,
    ScalarKernel,
    Scaled,
    Sum,
    Tanimoto,
    Wrapped,
    as_scalar_kernel,
)
from fenchel.kernels import _distances as _values

CLASSES = [
    value
    for value in (getattr(kernels, name) for name in kernels.__all__)
    if isinstance(value, type) and issubclass(value, ScalarKernel) and not inspect.isabstract(value)
]
KERNELS = [kernel for cls in CLASSES for kernel in cls.examples()]
ON_POINTS = [kernel for kernel in KERNELS if not kernel.tags.is_pairwise]


def label(value):
    """Return a name that is the same in every process."""
    return re.sub(r" at 0x\w+", "", repr(value))


every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=label)
every_kernel_on_points = pytest.mark.parametrize("kernel", ON_POINTS, ids=label)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def sample(n=12, d=4, seed=0, dtype=np.float64):
    """Return non-negative vectors, so that every kernel takes them, two rows the same."""
    X = np.random.default_rng(seed).uniform(0, 2, size=(n, d))
    X[-1] = X[0]
    return X.astype(dtype)


def inputs(kernel, n=12, dtype=np.float64):
    X = sample(n, dtype=dtype)
    return X @ X.T if kernel.tags.is_pairwise else X


def tolerance(values, factor=64):
    return factor * float(np.finfo(values.dtype).eps) * float(np.max(np.abs(values)))


class Tilt(OutputOperator):
    """An operator that takes part in ``kernel * operator``."""

    def matrix(self, representation):
        return None

    def __rmul__(self, kernel):
        return ("separable", kernel, self)


def test_every_class_has_examples():
    assert len(CLASSES) >= 12
    for cls in CLASSES:
        assert issubclass(cls, ScalarKernel)
        assert cls.examples()
        assert all(type(kernel) is cls for kernel in cls.examples())


@every_kernel_on_points
def test_booleans_and_integers_become_float64(kernel):
    bits = (sample() > 0.8)[:-1]
    K = kernel(bits)
    assert K.dtype == np.float64
    assert_allclose(kernel(bits.astype(np.uint8)), K, rtol=1e-14, atol=1e-14)
    assert_allclose(kernel(bits.astype(np.float64)), K, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@every_dtype
@every_kernel
def test_other_array_libraries_agree(kernel, dtype, library):
    xp = pytest.importorskip(library)
    X = inputs(kernel, dtype=dtype)
    Z = X if kernel.tags.is_pairwise else sample(5, seed=1, dtype=dtype)
    x, z = xp.asarray(X), xp.asarray(Z)
    if isinstance(kernel, Wrapped):
        with pytest.raises(TypeError, match="X must be a NumPy array"):
            kernel(x)
        return
    K, resolved = kernel(X), kernel.resolve(X)
    mine, cross, diagonal = kernel(x), kernel.resolve(x)(x, z), kernel.diag(x)
    for result in (mine, cross, diagonal):
        assert type(result) is type(x)
        assert result.dtype == x.dtype
    assert_array_equal(np.asarray(mine), np.asarray(mine).T)
    assert_allclose(np.asarray(mine), K, rtol=0, atol=tolerance(K))
    assert_allclose(np.asarray(cross), resolved(X, Z), rtol=0, atol=tolerance(K))
    assert_allclose(np.asarray(diagonal), kernel.diag(X), rtol=0, atol=tolerance(K))
    assert_array_equal(np.asarray(x), X)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("kernel", [Laplacian(0.3), Matern(2.0, 0.5)], ids=label)
def test_blocked_distances_agree(kernel, library, monkeypatch):
    xp = pytest.importorskip(library)
    X, Z = sample(11), sample(7, seed=1)
    for budget in (2 * 8 * 4 * 3, 2 * 8 * 4 * 20, 1):  # three rows of Z, two rows of X with all Z, less than one row
        monkeypatch.setattr(_values, "_BLOCK_BYTES", budget)
        assert_allclose(np.asarray(kernel(xp.asarray(X), xp.asarray(Z))), kernel(X, Z), rtol=1e-14)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_array_libraries_find_the_same_median(library):
    xp = pytest.importorskip(library)
    X = np.random.default_rng(3).normal(size=(1203, 2))
    for cls in (Gaussian, Laplacian):
        gamma = cls("median").resolve(xp.asarray(X)).gamma
        assert type(gamma) is float
        assert gamma == cls("median").resolve(X).gamma


def signed(n, d=3, seed=5):
    return np.random.default_rng(seed).normal(size=(n, d)) + 0.5


@pytest.mark.parametrize("with_z", [False, True])
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Linear(), pairwise.linear_kernel),
        (Polynomial(), pairwise.polynomial_kernel),
        (Polynomial(2, 0.7, 0.5), lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=2, gamma=0.7, coef0=0.5)),
        (Gaussian(), pairwise.rbf_kernel),
        (Gaussian(0.8), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.8)),
        (Laplacian(), pairwise.laplacian_kernel),
        (Laplacian(0.8), lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.8)),
        (Wrapped("rbf"), pairwise.rbf_kernel),
        (Wrapped("laplacian"), pairwise.laplacian_kernel),
        *[(Matern(1.7, nu), gp.Matern(1.7, nu=nu)) for nu in (0.5, 0.8, 1.5, 2.5, 3.2, math.inf)],
    ],
    ids=label,
)
def test_values_of_scikit_learn(kernel, expected, with_z):
    X, Z = signed(15), signed(6, seed=6)
    Z = Z if with_z else X
    assert_allclose(kernel(X, Z if with_z else None), expected(X, Z), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        (Linear(), lambda x, z: sum(a * b for a, b in zip(x, z, strict=True))),
        (Polynomial(2, 0.5, 2.0), lambda x, z: (0.5 * sum(a * b for a, b in zip(x, z, strict=True)) + 2.0) ** 2),
        (Gaussian(0.4), lambda x, z: math.exp(-0.4 * math.dist(x, z) ** 2)),
        (Laplacian(0.4), lambda x, z: math.exp(-0.4 * sum(abs(a - b) for a, b in zip(x, z, strict=True)))),
        (Matern(0.7, 0.5), lambda x, z: math.exp(-math.dist(x, z) / 0.7)),
    ],
    ids=label,
)
def test_values_by_loops(kernel, value):
    X, Z = signed(7), signed(4, seed=6)
    expected = [[value(x, z) for z in Z.tolist()] for x in X.tolist()]
    assert_allclose(kernel(X, Z), expected, rtol=1e-13)


@pytest.mark.parametrize("nu", [0.3, 2.0, 30.0, 99.0, 101.0, 400.0])
def test_matern_is_a_scale_mixture(nu):
    r"""The kernel is the mean of exp(-nu r^2 / (2 s)) over s with a Gamma(nu, 1) law, in log s for the quadrature."""

    def mixture(r):
        def integrand(shift):
            s = nu * math.exp(shift)
            return math.exp(nu * math.log(s) - s - math.lgamma(nu) - nu * r**2 / (2 * s))

        width = 12 / math.sqrt(nu) if nu > 20 else 40 / nu
        return quad(integrand, -width, min(width, 6), points=[0], limit=500, epsabs=1e-13)[0]

    distances = np.asarray([0.003, 0.05, 0.4, 1.0, 2.5])
    values = Matern(1.0, nu)(np.zeros((1, 1)), distances[:, None])[0]
    assert_allclose(values, [mixture(r) for r in distances], rtol=0, atol=2e-12)


@pytest.mark.parametrize("nu", [0.01, 0.8, 4.0, 99.0, 101.0, 1e6, 1e12])
def test_matern_is_finite_from_zero_to_far(nu):
    Z = np.asarray([0.0, 1e-300, 1e-160, 1e-20, 1e-9, 0.01, 1.0, 1e3, 1e9])[:, None]
    values = Matern(1.0, nu)(np.zeros((1, 1)), Z)[0]
    assert values[0] == 1
    assert values[-1] < 1e-15
    assert np.all(np.diff(values) <= 1e-15)


def test_matern_approaches_the_gaussian():
    X = signed(6)
    assert_allclose(Matern(1.3, 1e9)(X), Matern(1.3, math.inf)(X), atol=1e-8)
    assert_allclose(Matern(1.3, math.inf)(X), Gaussian(1 / (2 * 1.3**2))(X), rtol=1e-14)


def test_tanimoto_by_hand():
    bits = np.asarray([[1, 1, 0, 1, 0], [1, 0, 0, 1, 1], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]], dtype=bool)
    # {0, 1, 3} and {0, 3, 4} share two of four
    expected = [[1, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert_array_equal(Tanimoto()(bits), expected)
    assert_array_equal(Tanimoto()(bits, bits[1:]), np.asarray(expected)[:, 1:])
    assert_array_equal(Tanimoto().diag(bits), np.ones(4))
    counts = np.asarray([[2.0, 1.0], [1.0, 3.0]])  # 5 / (5 + 10 - 5)
    assert_array_equal(Tanimoto()(counts), [[1, 0.5], [0.5, 1]])


def test_tanimoto_of_sets_is_jaccard():
    bits = np.random.default_rng(2).random((40, 30)) < 0.2
    sets = [set(np.flatnonzero(row)) for row in bits]
    expected = [[len(a & b) / len(a | b) if a | b else 1.0 for b in sets] for a in sets]
    assert_allclose(Tanimoto()(bits.astype(np.uint8)), expected, rtol=1e-15)


def test_gaussian_tanimoto_is_the_gaussian_of_the_feature_distance():
    bits = np.random.default_rng(2).random((20, 30)) < 0.2
    T = Tanimoto()(bits)
    values, vectors = np.linalg.eigh(T)
    features = vectors * np.sqrt(np.clip(values, 0, None))  # rows of a feature map of T
    assert_allclose(GaussianTanimoto(0.7)(bits), pairwise.rbf_kernel(features, gamma=0.7), atol=1e-12)
    assert GaussianTanimoto(0.7)(bits[:1], ~bits[:1])[0, 0] == pytest.approx(math.exp(-1.4), rel=1e-15)


def test_gaussian_of_distant_data_keeps_its_digits():
    X = signed(30)
    near = Gaussian(0.5)(X)
    assert_allclose(Gaussian(0.5)(X + 2.0**20), near, atol=1e-9)
    assert_array_equal(np.diagonal(Gaussian(50.0)(X * 1e6)), np.ones(30))


def test_gaussian_blocks_of_rows_agree(monkeypatch):
    X, bits = signed(23), np.random.default_rng(2).random((23, 9)) < 0.3
    expected = Gaussian(0.5)(X), Tanimoto()(bits)
    monkeypatch.setattr(_values, "_CACHE_BYTES", 23 * 8 * 5)
    assert_array_equal(Gaussian(0.5)(X), expected[0])
    assert_array_equal(Tanimoto()(bits), expected[1])


def test_median_heuristic_by_hand():
    X = np.asarray([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    # Euclidean distances 5, 1, sqrt(18): median sqrt(18); absolute distances 7, 1, 6: median 6
    assert Gaussian("median").resolve(X).gamma == pytest.approx(1 / 36, rel=1e-15)
    assert Laplacian("median").resolve(X).gamma == pytest.approx(1 / 6, rel=1e-15)
    assert Gaussian("median")(X)[0, 1] == pytest.approx(math.exp(-25 / 36), rel=1e-14)
    assert Laplacian("median")(X)[0, 1] == pytest.approx(math.exp(-7 / 6), rel=1e-14)


def test_median_heuristic_averages_the_two_middle_distances():
    X = np.asarray([[0.0], [1.0], [3.0], [7.0]])  # distances 1, 2, 3, 4, 6, 7
    assert Gaussian("median").resolve(X).gamma == pytest.approx(1 / (2 * 3.5**2), rel=1e-15)


def test_median_heuristic_of_duplicates():
    X = np.zeros((6, 1))
    X[4], X[5] = 2.0, 2.0  # 7 null distances of 15, so the median is 2
    assert Gaussian("median").resolve(X).gamma == pytest.approx(1 / 8)
    X[4] = 0.0  # 10 null distances of 15: the positive ones are all 2
    assert Gaussian("median").resolve(X).gamma == pytest.approx(1 / 8)
    assert Laplacian("median").resolve(X).gamma == pytest.approx(1 / 2)
    for constant in (np.ones((4, 2)), np.ones((1, 2))):
        assert Gaussian("median").resolve(constant).gamma == 0.5
        assert Laplacian("median").resolve(constant).gamma == 1.0


def test_median_heuristic_takes_1000_evenly_spaced_rows():
    X = np.arange(1999.0)[:, None] ** 2  # the rows taken are 0, 2, 4, ..., 1998
    assert Laplacian("median").resolve(X).gamma == Laplacian("median").resolve(X[::2]).gamma
    X = np.arange(1000.0)[:, None]
    everything = Laplacian("median").resolve(X).gamma
    differences = np.concatenate([np.full(1000 - k, k) for k in range(1, 1000)])
    assert everything == pytest.approx(1 / np.median(differences), rel=1e-15)


@pytest.mark.parametrize("kernel", [Gaussian("median"), Laplacian("median"), Gaussian("median") + Linear()], ids=label)
def test_median_heuristic_wants_its_sample(kernel):
    X = sample()
    with pytest.raises(ValueError, match=r"call kernel\.resolve\(X_train\) first"):
        kernel(X, X[:3])
    resolved = kernel.resolve(X)
    assert_allclose(resolved(X, X[:3]), kernel(X)[:, :3], rtol=1e-12)


@pytest.mark.parametrize("cls", [Gaussian, Laplacian, Polynomial])
def test_resolve_fills_in_the_default_width(cls):
    kernel = cls()
    resolved = kernel.resolve(sample(d=4))
    assert resolved.gamma == 0.25
    assert kernel.gamma is None


def test_numpy_scalars_as_parameters_keep_float32():
    X = sample(dtype=np.float32)
    number = np.float64(0.5)
    kernels = [Gaussian(number), Laplacian(number), Matern(number, 2.5), Polynomial(2, number, number)]
    for kernel in [*kernels, GaussianTanimoto(number), Scaled(Linear(), number)]:
        assert kernel(X).dtype == np.float32


def test_mixed_precision_is_promoted():
    X = sample()
    for kernel in (Linear(), Gaussian(0.3), Laplacian(0.3)):
        K = kernel(X.astype(np.float32), X[:3])
        assert K.dtype == np.float64
        assert_allclose(K, kernel(X, X[:3]), rtol=1e-5)


@pytest.mark.parametrize("library", ["numpy", "array_api_strict", "torch"])
@every_dtype
@pytest.mark.parametrize("kernel", [Gaussian(1e-3), Matern(3.0, math.inf), Tanimoto(), GaussianTanimoto()], ids=label)
def test_similarities_of_near_duplicates_stay_below_one(kernel, dtype, library):
    xp = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    X = (rng.uniform(1, 2, size=(1, 30)) * (1 + 1e-7 * rng.random((60, 30))) + 10 * rng.random((60, 1))).astype(dtype)
    Z = X[rng.permutation(60)]
    for K in (kernel(xp.asarray(X)), kernel(xp.asarray(X), xp.asarray(Z))):
        assert float(np.asarray(K).max()) == 1


@pytest.mark.parametrize("library", ["numpy", "array_api_strict", "torch"])
@every_dtype
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), Gaussian(), Matern(), Tanimoto()], ids=label)
def test_large_matrix_is_symmetric_to_the_bit(kernel, dtype, library):
    xp = pytest.importorskip(library)
    K = np.asarray(kernel(xp.asarray(np.random.default_rng(0).random((301, 37)).astype(dtype))))
    assert_array_equal(K, K.T)


def test_blocked_distances_hold_the_memory_limit(monkeypatch):
    xp = pytest.importorskip("array_api_strict")
    X = xp.asarray(sample(200, d=100))
    limit = 2**20
    monkeypatch.setattr(_values, "_BLOCK_BYTES", limit)
    tracemalloc.start()
    Laplacian(0.1)(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit + 3 * 200 * 200 * 8  # all the differences at once would take 32 MB


def test_operators_build_combined_kernels():
    a, b, X, Z = Gaussian(0.3), Linear(), signed(8), signed(5, seed=6)
    assert isinstance(a + b, Sum)
    assert isinstance(a * b, Product)
    for scaled in (2.0 * a, a * 2.0, 2 * a, np.float64(2.0) * a, a * np.float32(2.0)):
        assert isinstance(scaled, Scaled)
        assert scaled.kernel is a
        assert_allclose(scaled(X, Z), [[2 * v for v in row] for row in a(X, Z)], rtol=1e-15)
    assert_allclose((a + b)(X, Z), pairwise.rbf_kernel(X, Z, gamma=0.3) + X @ Z.T, rtol=1e-12)
    assert_allclose((a * b)(X, Z), pairwise.rbf_kernel(X, Z, gamma=0.3) * (X @ Z.T), rtol=1e-12)
    assert_allclose((a + 3.0 * b * b)(X), a(X) + 3 * (X @ X.T) ** 2, rtol=1e-12)
    assert_allclose((a * b + b).diag(X), 2 * np.sum(X**2, axis=1), rtol=1e-12)


def test_product_with_an_output_operator_is_left_to_the_operator():
    kernel, operator = Gaussian(), Tilt()
    assert kernel * operator == ("separable", kernel, operator)


@pytest.mark.parametrize("other", ["linear", None, [1.0], np.ones(2)])
def test_operators_refuse_what_is_no_kernel(other):
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+|does not support ufuncs"):
        Gaussian() + other
    for product in (lambda: Gaussian() * other, lambda: other * Gaussian()):
        with pytest.raises(
            TypeError, match=r"unsupported operand type\(s\) for \*|can't multiply|does not support ufuncs"
        ):
            product()


def test_combined_kernels_resolve_their_parts():
    X = sample()
    resolved = (2.0 * Gaussian("median") + Laplacian() * Polynomial(2)).resolve(X)
    assert resolved.left.kernel.gamma == Gaussian("median").resolve(X).gamma
    assert resolved.right.left.gamma == 0.25
    assert resolved.right.right.gamma == 0.25


def test_nested_parameters():
    kernel = Gaussian(0.1) + 2.0 * Laplacian(0.2)
    assert kernel.get_params()["right__kernel__gamma"] == 0.2
    copy = clone(kernel).set_params(left__gamma=0.5, right__scale=3.0, right__kernel__gamma=0.7)
    X = sample()
    assert_allclose(copy(X), Gaussian(0.5)(X) + 3 * Laplacian(0.7)(X), rtol=1e-14)
    assert kernel.left.gamma == 0.1
    wrapped = Wrapped(gp.RBF(1.0)).set_params(kernel__length_scale=2.0)
    assert_allclose(wrapped(X), gp.RBF(2.0)(X), rtol=1e-14)


def test_precomputed_is_the_matrix_itself():
    K = np.asarray([[2.0, 1.0], [1.0, 3.0]])
    kernel = Precomputed()
    assert kernel(K) is K
    rows = np.asarray([[0.5, 0.25], [1.0, 2.0], [0.0, 1.0]])
    assert kernel(rows, K) is rows
    assert_array_equal(kernel.diag(K), [2, 3])
    assert kernel(np.asarray([[1]])).dtype == np.float64
    with pytest.raises(ValueError, match=r"X must have 2 columns, one for each training sample.*\(2, 3\)"):
        kernel(rows.T, K)
    with pytest.raises(ValueError, match=r"X must be a square Gram matrix\. Got shape \(3, 2\)"):
        kernel.diag(rows)


def test_pairwise_kernels_say_so():
    assert Precomputed().tags.is_pairwise
    assert (Precomputed() + Linear()).tags.is_pairwise
    assert (Linear() * Precomputed()).tags.is_pairwise
    assert (2.0 * Precomputed()).tags.is_pairwise
    assert not (Gaussian() + Linear()).tags.is_pairwise
    K = np.asarray([[2.0, 1.0], [1.0, 3.0]])
    assert_array_equal((2.0 * Precomputed() + Precomputed())(K), 3 * K)
    assert_array_equal(K, [[2, 1], [1, 3]])


def test_wrapped_process_kernel_keeps_its_noise_on_the_diagonal():
    X = sample(6)[:-1]
    wrapped = Wrapped(gp.RBF(1.5) + gp.WhiteKernel(0.3))
    assert_allclose(wrapped(X), gp.RBF(1.5)(X) + 0.3 * np.eye(5), rtol=1e-14)
    assert_allclose(wrapped(X, X), gp.RBF(1.5)(X), rtol=1e-14)
    assert_allclose(wrapped.diag(X), np.full(5, 1.3), rtol=1e-14)


def test_wrapped_matrix_is_made_symmetric_to_the_bit():
    X, tilt = sample(), 1e-12 * np.triu(np.ones((12, 12)), 1)
    K = Wrapped(lambda X, Z: pairwise.rbf_kernel(X, Z) + tilt)(X)
    assert_array_equal(K, K.T)
    assert_allclose(K, pairwise.rbf_kernel(X), atol=1e-11)


def test_wrapped_function_gets_arrays_of_any_kind():
    words = np.asarray(["ab", "abc", "zz"], dtype=object)

    def common_letters(X, Z):
        return [[len(set(x) & set(z)) for z in Z] for x in X]

    wrapped = Wrapped(common_letters)
    assert_array_equal(wrapped(words), [[2, 2, 0], [2, 3, 0], [0, 0, 1]])
    assert_array_equal(wrapped.diag(words), [2, 3, 1])


def test_wrapped_function_gets_integers_as_they_are():
    table = np.asarray([[2.0, 1.0], [1.0, 3.0]])
    index = np.asarray([1, 0, 1])
    assert_array_equal(Wrapped(lambda i, j: table[np.ix_(i, j)])(index), [[3, 1, 3], [1, 2, 1], [3, 1, 3]])


def test_wrapped_refuses_empty_and_foreign_samples():
    with pytest.raises(ValueError, match=r"X must have at least one sample\. Got shape \(0, 4\)"):
        Wrapped("rbf")(sample()[:0])
    with pytest.raises(TypeError, match=r"Z must be a NumPy array for a wrapped kernel\. Got list instead"):
        Wrapped("rbf")(sample(), [[1.0]])


def test_wrapped_diag_by_blocks_covers_every_row():
    X = np.random.default_rng(0).normal(size=(300, 2))
    assert_allclose(Wrapped("linear").diag(X), np.sum(X**2, axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Z: X @ np.triu(np.ones((4, 4))) @ Z.T, "must be symmetric"),
        (lambda X, Z: X, r"must return an array of shape \(12, 12\)\. Got shape \(12, 4\)"),
        (lambda X, Z: X @ Z.T * np.nan, "must return finite values"),
    ],
)
def test_wrapped_function_is_held_to_its_word(function, message):
    with pytest.raises(ValueError, match=message):
        Wrapped(function)(sample())


@pytest.mark.parametrize(
    ("value", "cls"),
    [
        ("gaussian", Gaussian),
        ("laplacian", Laplacian),
        ("linear", Linear),
        ("gaussian_tanimoto", GaussianTanimoto),
        ("precomputed", Precomputed),
        ("rbf", Gaussian),
        ("chi2", Wrapped),
        (gp.RBF(), Wrapped),
        (pairwise.rbf_kernel, Wrapped),
        (lambda X, Z: X @ Z.T, Wrapped),
    ],
)
def test_as_scalar_kernel(value, cls):
    kernel = as_scalar_kernel(value)
    assert type(kernel) is cls
    assert as_scalar_kernel(kernel) is kernel
    assert kernel(sample(4)).shape == (4, 4) if not kernel.tags.is_pairwise else True


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("gausian", ValueError, r"Unknown kernel 'gausian'\. Known names: .*'gaussian'.*Pairwise names.*'rbf'"),
        (Gaussian, TypeError, "must be a ScalarKernel, a name, a scikit-learn kernel object or a function"),
        (3.0, TypeError, r"must be a ScalarKernel.*Got 3\.0 instead"),
        (None, TypeError, r"must be a ScalarKernel.*Got None instead"),
    ],
)
def test_as_scalar_kernel_refuses(value, error, message):
    with pytest.raises(error, match=message):
        as_scalar_kernel(value)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (Gaussian(-1.0), ValueError, r"'gamma' parameter of Gaussian must be a float in \(0, inf\).*Got -1\.0 instead"),
        (Gaussian(0), ValueError, "'gamma' parameter of Gaussian"),
        (Gaussian("mean"), ValueError, "'gamma' parameter of Gaussian .* or 'median'"),
        (Gaussian([1.0]), TypeError, "'gamma' parameter of Gaussian"),
        (Laplacian(math.nan), ValueError, "'gamma' parameter of Laplacian"),
        (Polynomial(0), ValueError, "'degree' parameter of Polynomial"),
        (Polynomial(2.5), ValueError, "'degree' parameter of Polynomial must be an int"),
        (Polynomial(gamma="median"), ValueError, "'gamma' parameter of Polynomial"),
        (Polynomial(coef0=-0.1), ValueError, "'coef0' parameter of Polynomial"),
        (Matern(0.0), ValueError, "'length_scale' parameter of Matern"),
        (Matern(1.0, -1.0), ValueError, "'nu' parameter of Matern"),
        (GaussianTanimoto(-2.0), ValueError, "'gamma' parameter of GaussianTanimoto"),
        (-2.0 * Linear(), ValueError, "'scale' parameter of Scaled"),
        (Linear() + Gaussian(-1.0), ValueError, "'gamma' parameter of Gaussian"),
        (Sum("linear", Linear()), TypeError, "'left' parameter of Sum must be a ScalarKernel"),
        (Product(Linear(), None), TypeError, "'right' parameter of Product must be a ScalarKernel"),
        (Scaled("linear", 2.0), TypeError, "'kernel' parameter of Scaled must be a ScalarKernel"),
        (Wrapped("gaussian"), ValueError, "'kernel' parameter of Wrapped must be one of .*'rbf'"),
        (Wrapped(gp.RBF), TypeError, "'kernel' parameter of Wrapped must be a scikit-learn kernel object"),
        (Wrapped(None), TypeError, "'kernel' parameter of Wrapped must be a scikit-learn kernel object"),
    ],
    ids=label,
)
def test_bad_parameters_are_named(kernel, error, message):
    for use in (kernel, kernel.diag):
        with pytest.raises(error, match=message):
            use(sample())


VECTOR_KERNELS = [Linear(), Polynomial(), Gaussian(), Laplacian(), Matern(), Tanimoto(), GaussianTanimoto()]


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=label)
def test_bad_inputs_are_named(kernel):
    X = sample()
    with pytest.raises(ValueError, match="X must be 2-dimensional"):
        kernel(X[0])
    with pytest.raises(ValueError, match="X must have at least one sample"):
        kernel(X[:0])
    with pytest.raises(ValueError, match="X must have at least one column"):
        kernel(X[:, :0])
    with pytest.raises(ValueError, match="Z must be finite"):
        kernel(X, np.where(X > 1, np.nan, X))
    with pytest.raises(ValueError, match=r"Z must have 4 columns, as X has\. Got shape \(12, 3\)"):
        kernel(X, X[:, :3])
    with pytest.raises(TypeError, match="X must hold real numbers"):
        kernel(X.astype(complex))


@pytest.mark.parametrize("kernel", [Tanimoto(), GaussianTanimoto()], ids=label)
def test_tanimoto_refuses_negative_entries(kernel):
    X = sample()
    for call in (lambda: kernel(-X), lambda: kernel.diag(-X)):
        with pytest.raises(ValueError, match="X must be non-negative for a Tanimoto kernel"):
            call()
    with pytest.raises(ValueError, match="Z must be non-negative for a Tanimoto kernel"):
        kernel(X, -X)


@pytest.mark.parametrize("cls", [Gaussian, Laplacian])
def test_a_weight_counts_a_sample_as_often_as_it_says_in_the_median(cls, rng):
    X = rng.standard_normal((9, 2))
    counts = np.array([1, 3, 2, 1, 5, 1, 1, 2, 1])
    repeated = cls("median").resolve(np.repeat(X, counts, axis=0)).gamma
    assert cls("median").resolve(X, counts).gamma == pytest.approx(repeated, rel=1e-14)
    assert cls("median").resolve(X, 0.3 * counts).gamma == pytest.approx(repeated, rel=1e-14)
    assert cls("median").resolve(X).gamma != pytest.approx(repeated, rel=1e-3)


def test_weights_choose_the_rows_of_a_large_sample():
    """Half of the weight on a cluster of five rows: it gives half of the rows that the median is taken over."""
    X = np.r_[np.linspace(0, 1, 3000), np.linspace(10, 10.1, 5)][:, None]
    weights = np.r_[np.ones(3000), np.full(5, 600.0)]
    distance = 1 / Laplacian("median").resolve(X, weights).gamma
    assert 8 < distance < 10.1
    assert 1 / Laplacian("median").resolve(X).gamma < 1
