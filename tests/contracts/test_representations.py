"""Vectors as they are, and the Gram factor in the cases where factorisations go wrong."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Diagonal, Matrix
from fenchel.representations import Euclidean, GramFactor
from tests.parts import space

EPS = np.finfo(np.float64).eps
ROUNDING = 256 * EPS  # relative to the largest entry of a product


def outputs(n=7, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


class TestEuclidean:
    def test_one_column_for_flat_outputs(self):
        y = np.array([1.0, -2.0, 3.0])
        bound = space(Euclidean(), y)
        assert_array_equal(bound.targets, [[1.0], [-2.0], [3.0]])
        assert_array_equal(bound.covariance(), [[14 / 3]])
        assert bound.congruence(np.array([[2.0]])).shape == (1, 1)

    def test_coordinates_are_the_entries(self):
        Y = outputs()
        bound = space(Euclidean(), Y)
        assert_array_equal(bound.targets, Y)
        assert_array_equal(bound.representation.decode(Y + 1), Y + 1)
        B = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
        assert_array_equal(bound.congruence(B), B)
        assert_array_equal(bound.congruence_diagonal(np.array([1.0, 0.0, 2.0])), [1.0, 0.0, 2.0])

    def test_operator_takes_the_dtype_of_the_outputs(self):
        bound = space(Euclidean(), outputs().astype(np.float32))
        assert bound.congruence(np.eye(3)).dtype == np.float32

    def test_size_of_the_operator(self):
        bound = space(Euclidean(), outputs())
        with pytest.raises(
            ValueError, match=r"must act on the 3 output columns of Y\. Got one of shape \(4, 4\) instead"
        ):
            bound.congruence(np.eye(4))
        with pytest.raises(
            ValueError, match=r"must act on the 3 output columns of Y\. Got one of shape \(2,\) instead"
        ):
            bound.congruence_diagonal(np.ones(2))


def factor_error(K, bound):
    return np.max(np.abs(bound.targets_ @ bound.targets_.T - K))


class TestGramFactor:
    def test_full_rank(self):
        root = outputs(6, 6)
        K = root @ root.T
        bound = GramFactor().fit(K)
        assert bound.n_components_ == 6
        assert bound.targets_.shape == (6, 6)
        assert factor_error(K, bound) <= ROUNDING * np.max(np.abs(K))

    @pytest.mark.parametrize("rank", [1, 2, 5])
    def test_rank_deficient(self, rank):
        root = outputs(9, rank)
        K = root @ root.T
        bound = GramFactor().fit(K)
        assert bound.n_components_ == rank
        assert bound.targets_.shape == (9, rank)
        assert factor_error(K, bound) <= ROUNDING * np.max(np.abs(K))

    def test_near_singular(self):
        Q = np.linalg.qr(outputs(8, 8))[0]
        values = np.array([1.0, 0.5, 1e-3, 1e-7, 1e-12, 1e-18, 1e-18, 1e-18])
        K = (Q * values) @ Q.T
        bound = GramFactor().fit((K + K.T) / 2)
        assert bound.n_components_ == 5  # 1e-12 is far above round-off, 1e-18 is not
        assert factor_error(K, bound) <= ROUNDING
        assert np.all(np.isfinite(bound.targets_))
        encoded = bound.encode(K).rows
        assert np.all(np.isfinite(encoded))
        assert_allclose(bound.decode(encoded), K, rtol=0, atol=ROUNDING)

    def test_rtol_cuts_the_spectrum(self):
        Q = np.linalg.qr(outputs(4, 4))[0]
        K = (Q * np.array([1.0, 1e-2, 1e-4, 1e-6])) @ Q.T
        K = (K + K.T) / 2
        assert GramFactor().fit(K).n_components_ == 4
        assert GramFactor(rtol=1e-3).fit(K).n_components_ == 2
        assert GramFactor(rtol=0.0).fit(K).n_components_ == 4
        with pytest.raises(ValueError, match=r"'rtol' parameter of GramFactor must be a float in \[0, 1\)"):
            GramFactor(rtol=-1.0).validate()

    def test_zero_matrix(self):
        bound = GramFactor().fit(np.zeros((4, 4)))
        assert bound.targets_.shape == (4, 1)
        assert_array_equal(bound.targets_, np.zeros((4, 1)))
        assert_array_equal(bound.encode(np.zeros((2, 4))).rows, np.zeros((2, 1)))
        assert_array_equal(bound.decode(np.ones((2, 1))), np.zeros((2, 4)))

    def test_one_sample(self):
        bound = GramFactor().fit(np.array([[4.0]]))
        assert_allclose(np.abs(bound.targets_), [[2.0]])

    def test_duplicated_rows_have_the_same_coordinates(self):
        root = outputs(6, 4)
        root[3], root[5] = root[0], root[0]
        bound = GramFactor().fit(root @ root.T)
        assert bound.n_components_ == 4
        assert_allclose(bound.targets_[[3, 5]], bound.targets_[[0, 0]], rtol=0, atol=ROUNDING * np.max(np.abs(root)))
        assert factor_error(root @ root.T, bound) <= ROUNDING * np.max(root @ root.T)

    @pytest.mark.parametrize("size", [1e-150, 1e150])
    def test_units_do_not_matter(self, size):
        root = outputs(6, 2)
        K = root @ root.T * size
        bound = GramFactor().fit(K)
        assert bound.n_components_ == 2
        assert factor_error(K, bound) <= ROUNDING * np.max(np.abs(K))

    def test_new_outputs_by_their_products(self):
        root, new = outputs(7, 3), outputs(4, 3, seed=1)
        bound = GramFactor().fit(root @ root.T)
        encoded = bound.encode(new @ root.T).rows
        assert_allclose(encoded @ encoded.T, new @ new.T, atol=1e3 * EPS * np.max(new @ new.T))
        assert_allclose(encoded @ bound.targets_.T, new @ root.T, atol=1e3 * EPS * np.max(np.abs(new @ root.T)))
        assert_allclose(bound.decode(encoded), new @ root.T, atol=1e3 * EPS * np.max(np.abs(new @ root.T)))

    def test_new_outputs_out_of_the_span_are_projected(self):
        root = np.eye(4)[:2]  # the first two of four directions
        new = np.array([[1.0, 2.0, 3.0, 4.0]])
        encoded = GramFactor().fit(root @ root.T).encode(new @ root.T).rows
        assert_allclose(np.sum(encoded**2), 1.0**2 + 2.0**2, rtol=64 * EPS)

    def test_not_psd(self):
        with pytest.raises(
            ValueError, match=r"output Gram matrix must be positive semidefinite.* eigenvalue is -5\.000e-01"
        ):
            GramFactor().fit(np.diag([1.0, 2.0, -0.5]))

    def test_negative_definite(self):
        with pytest.raises(ValueError, match=r"most negative eigenvalue is -2\.000e\+00"):
            GramFactor().fit(np.diag([-1.0, -2.0]))

    def test_round_off_below_zero_is_no_error(self):
        K = np.diag([1.0, 1.0, -8 * EPS])
        assert GramFactor().fit(K).n_components_ == 2

    def test_not_symmetric(self):
        with pytest.raises(ValueError, match="output Gram matrix must be symmetric"):
            GramFactor().fit(np.array([[1.0, 0.1], [0.0, 1.0]]))

    def test_not_square(self):
        with pytest.raises(ValueError, match=r"output Gram matrix must be a square matrix\. Got shape \(3, 2\)"):
            GramFactor().fit(np.ones((3, 2)))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite(self, bad):
        K = np.eye(3)
        K[1, 1] = bad
        with pytest.raises(ValueError, match="finite"):
            GramFactor().fit(K)

    def test_integers(self):
        """A Gram matrix of counts is an ordinary matrix."""
        K = np.array([[2, 1], [1, 2]])
        bound = GramFactor().fit(K)
        assert factor_error(K, bound) <= ROUNDING * 2

    def test_no_matrix_acts_on_products(self):
        bound = space(GramFactor(), np.eye(3))
        with pytest.raises(IncompatibleError, match=r"no raw coordinates.*Use Identity\(\) or Covariance\(\)"):
            Matrix(np.eye(3)).matrix(bound)
        with pytest.raises(IncompatibleError, match=r"Use Identity\(\) or Covariance\(\)"):
            Diagonal(np.ones(3)).matrix(bound)
