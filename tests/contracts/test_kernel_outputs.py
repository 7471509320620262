"""KernelOutputs: every number against kernel values written down in plain NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, GaussianTanimoto, Laplacian, Linear
from fenchel.representations import KernelOutputs, kernel_outputs

EPS = np.finfo(np.float64).eps
ROUNDING = 256 * EPS  # of a product of a factor with its transpose, relative to the largest entry
SOLVED = 1e8 * EPS  # after a triangular solve with a matrix of moderate condition


def linear(A, B):
    return A @ B.T


def gaussian(A, B):
    return np.exp(-0.3 * ((A[:, None] - B[None]) ** 2).sum(-1))


def tanimoto(A, B):
    common = (A[:, None] * B[None]).sum(-1)
    union = (A**2).sum(1)[:, None] + (B**2).sum(1) - common
    return np.exp(-2 * 0.7 * (1 - np.where(union > 0, common / np.where(union > 0, union, 1), 1.0)))


def min_kernel(A, B):
    return np.minimum(A[:, None], B[None]).sum(-1)


CASES = {
    "linear": (Linear(), linear),
    "gaussian": (Gaussian(0.3), gaussian),
    "tanimoto": (GaussianTanimoto(0.7), tanimoto),
    "callable": (min_kernel, min_kernel),
}
every_kernel = pytest.mark.parametrize("name", CASES)
no_features = pytest.mark.parametrize("name", [name for name in CASES if name != "linear"])


def bits(n=9, d=6, seed=0):
    return (np.random.default_rng(seed).random((n, d)) > 0.5).astype(float)


def points(n=9, d=6, seed=0):
    """Distinct non-negative vectors, which every kernel here takes."""
    return np.random.default_rng(seed).random((n, d))


def elements(bound, m=5, seed=3):
    """Return elements of the span: their weights on the training outputs and their coordinates."""
    weights = np.random.default_rng(seed).standard_normal((m, len(bound.targets_)))
    return weights, weights @ bound.targets_


class TestFactor:
    @every_kernel
    def test_inner_products(self, name):
        kernel, values = CASES[name]
        bound, K = KernelOutputs(kernel).fit(points()), values(points(), points())
        assert_allclose(bound.targets_ @ bound.targets_.T, K, rtol=0, atol=ROUNDING * K.max())

    @no_features
    def test_precomputed_is_the_same(self, name):
        kernel, values = CASES[name]
        K = values(points(), points())
        direct, given = KernelOutputs(kernel).fit(points()), KernelOutputs("precomputed").fit(K)
        assert given.is_pairwise
        assert not direct.is_pairwise
        assert_allclose(given.targets_ @ given.targets_.T, K, rtol=0, atol=ROUNDING * K.max())
        new = values(points(4, seed=1), points())
        codes = given.encode(new).rows
        assert_allclose(
            codes @ codes.T, direct.encode(points(4, seed=1)).rows @ direct.encode(points(4, seed=1)).rows.T, SOLVED
        )

    def test_linear_has_the_outputs_as_coordinates(self):
        bound = KernelOutputs().fit(points())
        assert bound.has_points
        assert_array_equal(bound.targets_, points())
        assert_array_equal(bound.encode(points(3, seed=1)).rows, points(3, seed=1))
        assert_array_equal(bound.decode(points(3, seed=1)), points(3, seed=1))

    @no_features
    def test_duplicates_have_one_pivot(self, name):
        kernel, values = CASES[name]
        Y = points()[[0, 1, 2, 0, 3, 1, 0, 4, 4]]
        bound, K = KernelOutputs(kernel).fit(Y), values(Y, Y)
        assert not bound.has_points
        assert bound.targets_.shape == (9, 5)
        assert_allclose(bound.targets_ @ bound.targets_.T, K, rtol=0, atol=ROUNDING * K.max())
        assert_allclose(bound.targets_[[3, 6, 8]], bound.targets_[[0, 0, 7]], rtol=0, atol=64 * ROUNDING)

    @pytest.mark.parametrize("rank", [1, 3, 7])
    def test_rank(self, rank):
        root = points(12, rank) - 0.5
        bound = KernelOutputs("precomputed").fit(root @ root.T)
        assert bound.targets_.shape == (12, rank)
        assert_allclose(bound.targets_ @ bound.targets_.T, root @ root.T, rtol=0, atol=ROUNDING)

    def test_rtol_cuts_the_rank(self):
        K = np.diag([1.0, 1e-2, 1e-4, 1e-9])
        assert KernelOutputs("precomputed").fit(K).targets_.shape[1] == 4
        assert KernelOutputs("precomputed", rtol=1e-7).fit(K).targets_.shape[1] == 3

    def test_a_zero_output_among_others(self):
        Y = bits()
        Y[4] = 0
        K = min_kernel(Y, Y)
        bound = KernelOutputs(min_kernel).fit(Y)
        assert_array_equal(bound.targets_[4], np.zeros(bound.targets_.shape[1]))
        assert_allclose(bound.targets_ @ bound.targets_.T, K, rtol=0, atol=ROUNDING * K.max())
        assert_array_equal(bound.encode(np.zeros((2, 6))).rows, np.zeros((2, bound.targets_.shape[1])))

    def test_linear_zero_outputs(self):
        bound = KernelOutputs().fit(np.zeros((4, 2)))
        assert_array_equal(bound.targets_, np.zeros((4, 2)))
        assert_array_equal(bound.distances(np.zeros((1, 2)), np.ones((3, 2))), [[2.0, 2.0, 2.0]])

    def test_zero_outputs_without_features(self):
        bound = KernelOutputs("precomputed").fit(np.zeros((4, 4)))
        assert_array_equal(bound.targets_, np.zeros((4, 1)))
        assert_array_equal(bound.encode(np.zeros((2, 4))).rows, np.zeros((2, 1)))
        assert_array_equal(bound.weights(np.zeros((2, 1))), np.zeros((2, 4)))
        assert_array_equal(bound.products(np.zeros((2, 1)), np.zeros((3, 4))), np.zeros((2, 3)))

    @pytest.mark.parametrize("size", [1e-100, 1e100])
    def test_units_do_not_matter(self, size):
        root = points(8, 3)
        bound = KernelOutputs("precomputed").fit(root @ root.T * size)
        assert bound.targets_.shape == (8, 3)
        assert_allclose(bound.targets_ @ bound.targets_.T / size, root @ root.T, rtol=ROUNDING)

    def test_one_output(self):
        assert_allclose(KernelOutputs("precomputed").fit(np.array([[4.0]])).targets_, [[2.0]])

    def test_the_gram_matrix_is_not_changed(self):
        K = gaussian(points(), points())
        before = K.copy()
        KernelOutputs("precomputed").fit(K)
        assert_array_equal(K, before)

    def test_a_median_bandwidth_becomes_a_number(self):
        bound = KernelOutputs(Gaussian("median")).fit(points())
        squares = ((points()[:, None] - points()[None]) ** 2).sum(-1)[np.triu_indices(9, 1)]
        assert bound.kernel_.gamma == pytest.approx(1 / (2 * np.median(np.sqrt(squares)) ** 2))

    @every_kernel
    def test_single_precision(self, name):
        kernel, values = CASES[name]
        Y = points().astype(np.float32)
        bound, K = KernelOutputs(kernel).fit(Y), values(points(), points())
        assert bound.targets_.dtype == np.float32
        assert bound.encode(Y).rows.dtype == np.float32
        assert bound.distances(bound.targets_, Y).dtype == np.float32
        assert_allclose(bound.targets_ @ bound.targets_.T, K, rtol=0, atol=256 * np.finfo(np.float32).eps * K.max())


class TestNotPositive:
    def test_names_the_eigenvalue(self):
        with pytest.raises(ValueError, match=r"output Gram matrix must be positive semidefinite.* -5\.000e-01"):
            KernelOutputs("precomputed").fit(np.diag([1.0, 2.0, -0.5]))

    @pytest.mark.parametrize(
        ("K", "low"),
        [
            ([[0.0, 1.0], [1.0, 0.0]], r"-1\.000e\+00"),  # a zero diagonal: not one pivot
            ([[-1.0, 0.0], [0.0, -2.0]], r"-2\.000e\+00"),
            ([[1.0, 2.0], [2.0, 1.0]], r"-1\.000e\+00"),
        ],
    )
    def test_shapes_of_it(self, K, low):
        with pytest.raises(ValueError, match=rf"most negative eigenvalue is {low}"):
            KernelOutputs("precomputed").fit(np.array(K))

    def test_a_function_that_is_no_kernel(self):
        with pytest.raises(ValueError, match=r"most negative eigenvalue is -"):
            KernelOutputs(lambda A, B: -gaussian(A, B)).fit(points())

    def test_a_small_negative_eigenvalue_of_a_large_matrix(self):
        root = points(80, 5)
        low = np.linalg.qr(root, mode="complete")[0][:, -1:]
        K = root @ root.T - 1e-2 * low @ low.T
        with pytest.raises(ValueError, match=r"most negative eigenvalue is -1\.000e-02"):
            KernelOutputs("precomputed").fit(K)

    def test_not_symmetric(self):
        with pytest.raises(ValueError, match="output Gram matrix must be symmetric"):
            KernelOutputs("precomputed").fit(np.array([[1.0, 0.1], [0.0, 1.0]]))

    def test_not_square(self):
        with pytest.raises(ValueError, match="must be square"):
            KernelOutputs("precomputed").fit(np.ones((4, 3)))


class TestEncode:
    @no_features
    def test_training_outputs(self, name):
        bound = KernelOutputs(CASES[name][0]).fit(points())
        assert_allclose(bound.encode(points()).rows, bound.targets_, rtol=0, atol=SOLVED)

    @no_features
    def test_projection_on_the_span(self, name):
        """The projection of phi(z) has weights K^-1 k(z), which give its norm and its products."""
        kernel, values = CASES[name]
        Y, Z = points(), points(4, seed=1)
        bound, K, cross = KernelOutputs(kernel).fit(Y), values(Y, Y), values(Z, Y)
        codes = bound.encode(Z).rows
        assert_allclose(codes @ bound.targets_.T, cross, rtol=0, atol=SOLVED)
        assert_allclose(bound.decode(codes), cross, rtol=0, atol=SOLVED)
        assert_allclose(codes @ codes.T, cross @ np.linalg.solve(K, cross.T), rtol=0, atol=SOLVED)
        assert np.all(np.sum(codes**2, axis=1) < np.diag(values(Z, Z)))  # none of them is in the span

    def test_out_of_the_span(self):
        root = np.eye(4)[:2]
        codes = KernelOutputs("precomputed").fit(root @ root.T).encode(np.array([[1.0, 2.0]])).rows
        assert np.sum(codes**2) == pytest.approx(5.0)


class TestWeights:
    @pytest.mark.parametrize("rows", [slice(None), [0, 1, 2, 0, 3, 1]], ids=["distinct", "repeated"])
    @no_features
    def test_they_make_up_the_element(self, name, rows):
        bound = KernelOutputs(CASES[name][0]).fit(points()[rows])
        _, codes = elements(bound)
        found = bound.weights(codes)
        assert found.shape == (5, len(bound.targets_))
        assert_allclose(found @ bound.targets_, codes, rtol=0, atol=SOLVED * np.max(np.abs(found)))

    def test_not_with_features(self):
        with pytest.raises(
            IncompatibleError, match=r"do not define weights on the training outputs.*such as Gaussian\(\)"
        ):
            KernelOutputs().fit(points()).weights(points())


class TestProducts:
    @every_kernel
    @pytest.mark.parametrize("block", [None, 1, 40, 64])
    def test_brute_force(self, name, block, monkeypatch):
        """<sum_j w_j phi(y_j), phi(c)> = sum_j w_j k(y_j, c), in blocks of any size."""
        if block is not None:
            monkeypatch.setattr(kernel_outputs, "_BLOCK", block)
        kernel, values = CASES[name]
        Y, C = points(), points(11, seed=2)
        bound = KernelOutputs(kernel).fit(Y)
        weights, codes = elements(bound)
        wanted = weights @ values(Y, C)
        assert_allclose(bound.products(codes, C), wanted, rtol=0, atol=SOLVED)
        squares = np.sum((weights @ values(Y, Y)) * weights, axis=1)
        distances = squares[:, None] - 2 * wanted + np.diag(values(C, C))
        assert_allclose(bound.distances(codes, C), distances, rtol=0, atol=SOLVED)
        assert_allclose(bound.squared_norms(C), np.diag(values(C, C)), rtol=64 * EPS)
        owner = np.array([4, 4, 0, 1, 1, 1, 3, 0, 2, 2, 4])
        assert_allclose(bound.paired_products(codes, C, owner), wanted[owner, np.arange(11)], rtol=0, atol=SOLVED)

    def test_blocks_are_bounded(self, monkeypatch):
        asked = []

        def kernel(A, B):
            asked.append((len(A), len(B)))
            return gaussian(A, B)

        bound = KernelOutputs(kernel).fit(points())
        asked.clear()
        monkeypatch.setattr(kernel_outputs, "_BLOCK", 40)
        bound.products(bound.targets_, points(11, seed=2))
        assert [rows for rows, _ in asked] == [4, 4, 3]  # 40 entries, 9 columns
        assert max(rows * columns for rows, columns in asked) <= 40

    @pytest.mark.parametrize("block", [1, 50])
    def test_precomputed(self, block, monkeypatch):
        monkeypatch.setattr(kernel_outputs, "_BLOCK", block)
        Y, C = points()[[0, 1, 2, 3, 0, 1]], points(7, seed=2)
        bound = KernelOutputs("precomputed").fit(gaussian(Y, Y))
        weights, codes = elements(bound)
        assert_allclose(bound.products(codes, gaussian(C, Y)), weights @ gaussian(Y, C), rtol=0, atol=SOLVED)
        squares = np.sum((weights @ gaussian(Y, Y)) * weights, axis=1)[:, None]
        found = bound.distances(codes, gaussian(C, Y), np.ones(7))
        assert_allclose(found, squares + 1 - 2 * weights @ gaussian(Y, C), rtol=0, atol=SOLVED)

    def test_norms_of_precomputed_outputs(self):
        bound = KernelOutputs("precomputed").fit(np.eye(3))
        with pytest.raises(IncompatibleError, match=r"need their own norms\. Give a pair \(products, squared norms\)"):
            bound.squared_norms(np.eye(3))
        with pytest.raises(IncompatibleError, match="need their own norms"):
            bound.distances(np.eye(3), np.eye(3))

    def test_wrong_number_of_products(self):
        bound = KernelOutputs("precomputed").fit(np.eye(3))
        with pytest.raises(ValueError, match="3"):
            bound.products(bound.targets_, np.ones((2, 5)))

    def test_distance_of_an_output_to_itself(self):
        bound = KernelOutputs(Gaussian(0.3)).fit(points())
        assert_allclose(np.diag(bound.distances(bound.targets_, points())), 0, atol=SOLVED)


class TestTorch:
    @pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.3), GaussianTanimoto(0.7), Laplacian(0.2)], ids=repr)
    def test_the_same_numbers(self, kernel):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        Y, C = points()[[0, 1, 2, 3, 4, 0, 1]], points(5, seed=2)
        here, there = KernelOutputs(kernel).fit(Y), KernelOutputs(kernel).fit(torch.tensor(Y))
        assert isinstance(there.targets_, torch.Tensor)
        assert there.targets_.shape == here.targets_.shape
        assert_allclose((there.targets_ @ there.targets_.T).numpy(), here.targets_ @ here.targets_.T, atol=ROUNDING)
        weights = np.random.default_rng(3).standard_normal((4, 7))
        mine, theirs = weights @ here.targets_, torch.tensor(weights) @ there.targets_
        new = torch.tensor(C)
        assert_allclose(there.distances(theirs, new).numpy(), here.distances(mine, C), rtol=0, atol=SOLVED)
        owner = np.array([0, 3, 1, 1, 2])
        found = there.paired_products(theirs, new, torch.tensor(owner)).numpy()
        assert_allclose(found, here.paired_products(mine, C, owner), rtol=0, atol=SOLVED)
        assert_allclose(
            (there.encode(new).rows @ there.targets_.T).numpy(),
            here.encode(C).rows @ here.targets_.T,
            rtol=0,
            atol=SOLVED,
        )

    def test_not_positive(self):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        with pytest.raises(ValueError, match=r"most negative eigenvalue is -5\.000e-01"):
            KernelOutputs("precomputed").fit(torch.tensor(np.diag([1.0, 2.0, -0.5])))


class TestTake:
    def test_outputs(self):
        assert_array_equal(KernelOutputs("gaussian").take(points(), np.array([3, 1])), points()[[3, 1]])

    def test_part_of_a_gram_matrix(self):
        K = gaussian(points(), points())
        assert_array_equal(KernelOutputs("precomputed").take(K, np.array([3, 1])), K[np.ix_([3, 1], [3, 1])])

    def test_objects(self):
        words = np.array(["a", "bc", "d"], dtype=object)
        assert_array_equal(KernelOutputs(min_kernel).take(words, np.array([2, 0])), np.array(["d", "a"], dtype=object))
