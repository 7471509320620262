"""Operator-valued kernels against K(s, t) written as a function of two points, block by block."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel.kernels import (
    Aligned,
    Blocks,
    Covariance,
    Diagonal,
    Gaussian,
    Identity,
    Laplacian,
    Linear,
    Matrix,
    Precomputed,
    Separable,
    SeparableSum,
    as_operator_kernel,
)
from fenchel.losses import EpsilonSVR, Huber
from fenchel.operators import Dense, Kronecker, Thin, is_thin, width
from fenchel.problem import DualProblem
from fenchel.representations import Euclidean, GramFactor
from fenchel.solvers import Auto, Status
from tests.matrices import apply, close, flatten, full_matrix, psd
from tests.parts import OPERATOR_KERNELS, space

EPS = np.finfo(np.float64).eps
ROUNDING = 256 * EPS  # relative to the largest entry
N, P = 5, 3


def gauss(gamma):
    return lambda s, t: np.exp(-gamma * np.sum((s - t) ** 2))


def laplace(gamma):
    return lambda s, t: np.exp(-gamma * np.sum(np.abs(s - t)))


def linear(s, t):
    return np.sum(s * t)


def sample(n=4, p=P, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)), rng.standard_normal((n, p)), rng.standard_normal((3, 2))


B = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
C = np.array([[1.0, -0.5, 0.3], [-0.5, 1.0, 0.0], [0.3, 0.0, 2.0]])
V = np.array([1.0, 0.3, 0.0])


def admissible(form, X, Y):
    """The library's kernel and its definition on the slides, for the six forms of admissible kernels."""
    n = len(X)
    mu, gammas = np.linspace(0.0, 2.0, n), np.linspace(0.2, 1.4, n)
    mus, many = np.linspace(0.1, 1.0, n * n).reshape(n, n), np.linspace(0.2, 1.4, n * n).reshape(n, n)
    k = gauss(0.6)

    def single(weight):
        return lambda s, t: sum(weight(i, s, t) * np.outer(Y[i], Y[i]) for i in range(n))

    def double(weight):
        return lambda s, t: sum(
            weight(i, j, s, t) * np.outer(Y[i] + Y[j], Y[i] + Y[j]) for i in range(n) for j in range(n)
        )

    kernels, all_kernels = [Gaussian(g) for g in gammas], [Gaussian(g) for g in many.ravel()]
    return {
        1: (Aligned(kernels, weights=np.ones(n)), single(lambda i, s, t: gauss(gammas[i])(s, t))),
        2: (Aligned(Gaussian(0.6), weights=mu), single(lambda i, s, t: mu[i] * k(s, t))),
        3: (
            Aligned(Gaussian(0.6), weights=np.ones(n), anchored=True),
            single(lambda i, s, t: k(s, X[i]) * k(t, X[i])),
        ),
        4: (
            Aligned(all_kernels, weights=np.ones(n * n), pairs=True),
            double(lambda i, j, s, t: gauss(many[i, j])(s, t)),
        ),
        5: (
            Aligned(Gaussian(0.6), weights=mus.ravel(), pairs=True),
            double(lambda i, j, s, t: mus[i, j] * k(s, t)),
        ),
        6: (
            Aligned(Gaussian(0.6), weights=np.ones(n * n), pairs=True, anchored=True),
            double(lambda i, j, s, t: k(s, X[i]) * k(s, X[j]) * k(t, X[i]) * k(t, X[j])),
        ),
    }[form]


def agrees(kernel, function, X, Y, Z):
    """Square and rectangular Gram operators against the definition, block by block."""
    bound = kernel.bind(X, space(Euclidean(), Y))
    full = flatten([[function(s, t) for t in X] for s in X])
    close(full_matrix(bound.gram(X), Y.shape[1]), full)
    rng = np.random.default_rng(7)
    A = rng.standard_normal(Y.shape)
    close(bound.gram(X).matmul(A), apply(full, A))
    cross = flatten([[function(z, t) for t in X] for z in Z])
    gram = bound.gram(Z, X)
    assert gram.shape == (len(Z), len(X))
    close(gram.matmul(A), apply(cross, A))
    other = rng.standard_normal((len(Z), Y.shape[1]))
    close(bound.gram(X, Z).matmul(other), apply(cross.T, other))
    values = np.linalg.eigvalsh(full_matrix(bound.gram(X), Y.shape[1]))
    assert values[0] >= -64 * EPS * values.sum()


class TestSeparable:
    @pytest.mark.parametrize(
        ("kernel", "function"),
        [
            (Separable(Gaussian(0.5)), lambda s, t: gauss(0.5)(s, t) * np.eye(P)),
            (Separable(Gaussian(0.5), Identity()), lambda s, t: gauss(0.5)(s, t) * np.eye(P)),
            (Separable(Laplacian(0.7), B), lambda s, t: laplace(0.7)(s, t) * B),
            (Separable("linear", V), lambda s, t: linear(s, t) * np.diag(V)),
            (Gaussian(0.4) * Matrix(B), lambda s, t: gauss(0.4)(s, t) * B),
            (2.5 * Gaussian(0.4) * Diagonal(V), lambda s, t: 2.5 * gauss(0.4)(s, t) * np.diag(V)),
            ((Gaussian(0.4) + Linear()) * Matrix(B), lambda s, t: (gauss(0.4)(s, t) + linear(s, t)) * B),
        ],
        ids=lambda value: repr(value) if isinstance(value, Separable) else "",
    )
    def test_blocks(self, kernel, function):
        X, Y, Z = sample()
        agrees(kernel, function, X, Y, Z)

    def test_covariance_is_that_of_the_outputs(self):
        X, Y, Z = sample()
        moment = sum(np.outer(y, y) for y in Y) / len(Y)
        agrees(Gaussian(0.5) * Covariance(), lambda s, t: gauss(0.5)(s, t) * moment, X, Y, Z)

    def test_covariance_counts_the_weights(self):
        X, Y, _ = sample()
        weights = np.array([2.0, 1.0, 3.0, 1.0])
        bound = Separable("linear", "covariance").bind(X, space(Euclidean(), Y, weights))
        again = Separable("linear", "covariance").bind(X, space(Euclidean(), np.repeat(Y, [2, 1, 3, 1], axis=0)))
        close(full_matrix(bound.gram(X), P), full_matrix(again.gram(X), P))

    def test_product_gives_separable(self):
        product = Gaussian(0.5) * Matrix(B)
        assert isinstance(product, Separable)
        assert isinstance(product.kernel, Gaussian)
        assert isinstance(product.operator, Matrix)

    @pytest.mark.parametrize("factor", [2.0, "gaussian", None, B])
    def test_an_operator_times_something_else_is_an_error(self, factor):
        with pytest.raises(TypeError, match=r"unsupported operand|multiply sequence"):
            factor * Matrix(B)

    def test_operator_times_kernel_is_an_error(self):
        with pytest.raises(TypeError, match="unsupported operand"):
            Matrix(B) * Gaussian(0.5)

    def test_size_of_the_operator(self):
        X, Y, _ = sample()
        with pytest.raises(ValueError, match=r"must act on the 3 output columns of Y\. Got one of shape \(2, 2\)"):
            Separable(Gaussian(0.5), np.eye(2)).bind(X, space(Euclidean(), Y))
        with pytest.raises(ValueError, match=r"must act on the 3 output columns of Y\. Got one of shape \(4,\)"):
            Separable(Gaussian(0.5), np.ones(4)).bind(X, space(Euclidean(), Y))

    def test_operator_that_is_not_psd(self):
        X, Y, _ = sample()
        with pytest.raises(
            ValueError, match=r"The 'B' parameter of Matrix must be positive semidefinite.*-1\.000e\+00"
        ):
            Separable(Gaussian(0.5), np.diag([1.0, -1.0, 1.0])).bind(X, space(Euclidean(), Y))
        with pytest.raises(ValueError, match="The 'values' parameter of Diagonal must be non-negative"):
            Separable(Gaussian(0.5), np.array([1.0, -1.0, 1.0])).bind(X, space(Euclidean(), Y))

    def test_kernel_matrix_that_is_not_psd(self):
        K = np.array([[1.0, 2.0], [2.0, 1.0]])
        with pytest.raises(ValueError, match=r"must be positive semidefinite\. Its most negative eigenvalue is -1\.0"):
            Separable(Precomputed()).bind(K, space(Euclidean(), np.eye(2))).gram(K)

    def test_estimator_arguments(self):
        assert as_operator_kernel(Gaussian(0.5) * Matrix(B)).kernel.gamma == 0.5
        with pytest.raises(ValueError, match="'operator' parameter must be None when 'kernel' is operator-valued"):
            as_operator_kernel(Separable(), "covariance")
        with pytest.raises(TypeError, match=r"must be a kernel on inputs\. Got the output operator"):
            as_operator_kernel(Matrix(B))


class TestSeparableSum:
    def test_merged_terms_give_the_same_matrix(self):
        X, Y, Z = sample()
        terms = [
            Separable(Gaussian(0.3), B),
            Separable(Linear(), B),  # same operator
            Separable(Gaussian(0.3), C),  # same kernel as one that is merged already
            Separable(Laplacian(0.7)),
            Separable(Gaussian(1.1)),  # same operator: the identity
            Separable(Laplacian(0.7), V),  # same kernel as one with the identity
            Separable(Linear(), V),
            Separable(Gaussian(0.4), C),
        ]

        def function(s, t):
            first = (gauss(0.3)(s, t) + linear(s, t)) * B + (gauss(0.3)(s, t) + gauss(0.4)(s, t)) * C
            second = (laplace(0.7)(s, t) + gauss(1.1)(s, t)) * np.eye(P)
            return first + second + (laplace(0.7)(s, t) + linear(s, t)) * np.diag(V)

        for order in (terms, terms[::-1], terms[3:] + terms[:3]):
            agrees(SeparableSum(order), function, X, Y, Z)

    def test_same_operator_makes_it_separable(self):
        X, Y, Z = sample()
        kernel = Gaussian(0.3) * Matrix(B) + Linear() * Matrix(B.copy())
        assert isinstance(kernel.bind(X, space(Euclidean(), Y)).gram(X), Kronecker)
        agrees(kernel, lambda s, t: (gauss(0.3)(s, t) + linear(s, t)) * B, X, Y, Z)

    def test_same_kernel_makes_it_separable(self):
        X, Y, Z = sample()
        kernel = Gaussian(0.3) * Matrix(B) + Gaussian(0.3) * Matrix(C) + Gaussian(0.3) * Diagonal(V)
        assert isinstance(kernel.bind(X, space(Euclidean(), Y)).gram(X), Kronecker)
        agrees(kernel, lambda s, t: gauss(0.3)(s, t) * (B + C + np.diag(V)), X, Y, Z)

    def test_different_parameters_are_not_merged(self):
        X, Y, Z = sample()
        agrees(
            Gaussian(0.3) * Matrix(B) + Gaussian(0.31) * Matrix(C),
            lambda s, t: gauss(0.3)(s, t) * B + gauss(0.31)(s, t) * C,
            X,
            Y,
            Z,
        )

    def test_sums_of_other_kinds_of_kernels_are_not_merged(self):
        X, Y, Z = sample()
        agrees(
            (Gaussian(0.3) + Linear()) * Matrix(B) + (Linear() + Laplacian(0.3)) * Matrix(C),
            lambda s, t: (gauss(0.3)(s, t) + linear(s, t)) * B + (linear(s, t) + laplace(0.3)(s, t)) * C,
            X,
            Y,
            Z,
        )

    def test_products_of_other_kinds_of_kernels_are_not_merged(self):
        X, Y, Z = sample()
        agrees(
            (Gaussian(0.3) * Gaussian(0.2)) * Matrix(B) + (2.0 * Gaussian(0.3)) * Matrix(C),
            lambda s, t: gauss(0.5)(s, t) * B + 2 * gauss(0.3)(s, t) * C,
            X,
            Y,
            Z,
        )

    def test_two_callables_are_not_merged(self):
        X, Y, Z = sample()

        def rough(S, T):
            return np.array([[laplace(0.4)(s, t) for t in T] for s in S])

        def flat(S, T):
            return S @ T.T

        agrees(
            SeparableSum([Separable(rough, B), Separable(flat, C)]),
            lambda s, t: laplace(0.4)(s, t) * B + linear(s, t) * C,
            X,
            Y,
            Z,
        )

    def test_additions(self):
        one, two = Gaussian(0.3) * Matrix(B), Linear() * Matrix(C)
        assert len((one + two).terms) == 2
        assert len((one + two + one).terms) == 3
        assert len((one + (two + one)).terms) == 3
        with pytest.raises(TypeError, match="unsupported operand"):
            one + 3.0
        with pytest.raises(TypeError, match="unsupported operand"):
            one + Gaussian(0.3)

    def test_no_terms(self):
        X, Y, _ = sample()
        with pytest.raises(ValueError, match="'terms' parameter of SeparableSum must hold at least one Separable"):
            SeparableSum([]).bind(X, space(Euclidean(), Y))


class TestAligned:
    @pytest.mark.parametrize("form", range(1, 7))
    @pytest.mark.parametrize("n", [1, 4])
    def test_admissible_kernels(self, form, n):
        X, Y, Z = sample(n)
        agrees(*admissible(form, X, Y), X, Y, Z)

    @pytest.mark.parametrize(("pairs", "anchored"), [(False, False), (False, True), (True, False), (True, True)])
    def test_default_weights_make_a_mean(self, pairs, anchored):
        X, Y, _ = sample()
        count = len(X) ** 2 if pairs else len(X)
        bound = space(Euclidean(), Y)
        default = full_matrix(Aligned(Gaussian(0.6), pairs=pairs, anchored=anchored).bind(X, bound).gram(X), P)
        plain = Aligned(Gaussian(0.6), np.ones(count), pairs=pairs, anchored=anchored)
        ones = full_matrix(plain.bind(X, bound).gram(X), P)
        close(default, ones / count)

    def test_one_kernel_without_anchors_is_separable(self):
        X, Y, _ = sample()
        bound = space(Euclidean(), Y)
        assert isinstance(Aligned(Gaussian(0.6)).bind(X, bound).gram(X), Kronecker)
        same = (Gaussian(0.6) * Covariance()).bind(X, bound).gram(X)
        close(full_matrix(Aligned(Gaussian(0.6)).bind(X, bound).gram(X), P), full_matrix(same, P))

    @pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, 1.0, 1.0, -0.1], [1.0, 1.0, 1.0, np.nan]])
    def test_wrong_weights(self, weights):
        X, Y, _ = sample()
        with pytest.raises(ValueError, match="'weights' parameter of Aligned must be 4 non-negative numbers"):
            Aligned(Gaussian(0.6), weights).bind(X, space(Euclidean(), Y))

    def test_infinite_weights(self):
        X, Y, _ = sample()
        with pytest.raises(ValueError, match="'weights' parameter of Aligned"):
            Aligned(Gaussian(0.6), [1.0, 1.0, 1.0, np.inf]).bind(X, space(Euclidean(), Y))

    def test_wrong_number_of_kernels(self):
        X, Y, _ = sample()
        with pytest.raises(ValueError, match=r"one kernel or a list of 4, one per direction\. Got a list of 2"):
            Aligned([Gaussian(0.1), Gaussian(0.2)]).bind(X, space(Euclidean(), Y))
        with pytest.raises(ValueError, match="one kernel or a list of 16"):
            Aligned([Gaussian(0.1)] * 4, pairs=True).bind(X, space(Euclidean(), Y))

    def test_anchored_takes_one_kernel(self):
        X, Y, _ = sample()
        with pytest.raises(ValueError, match="An anchored Aligned kernel takes a single scalar kernel"):
            Aligned([Gaussian(0.1)] * 4, anchored=True).bind(X, space(Euclidean(), Y))

    def test_anchored_needs_points(self):
        """A sparse solution would cut the columns of a Gram matrix, and every anchor is needed."""
        _, Y, _ = sample()
        with pytest.raises(ValueError, match="takes a kernel on points"):
            Aligned(Precomputed(), anchored=True).bind(np.eye(len(Y)), space(Euclidean(), Y))


class TestBlocks:
    def test_blocks(self):
        X, Y, Z = sample()

        def root(s):
            return np.eye(P) + np.tanh(s[0]) * np.eye(P, k=1)

        def function(s, t):
            return gauss(0.5)(s, t) * root(s) @ root(t).T

        agrees(Blocks(lambda S, T: np.array([[function(s, t) for t in T] for s in S])), function, X, Y, Z)

    @pytest.mark.parametrize("rank", [2, 4])
    @pytest.mark.parametrize("name", ["identity", "covariance"])
    def test_tensor_gives_the_problem_of_the_separable_path(self, rank, name):
        rng = np.random.default_rng(3)
        X, Z, K_Y = rng.standard_normal((6, 2)), rng.standard_normal((3, 2)), psd(rng, 6, rank)
        products = K_Y if name == "identity" else K_Y @ K_Y / 6  # <y_k, A y_l>

        def tensor(S, T):
            return np.array([[gauss(0.5)(s, t) * products for t in T] for s in S])

        bound = space(GramFactor(), K_Y)
        assert bound.representation.n_components_ == rank
        predictions, values = [], []
        for kernel in (Blocks(tensor, tensor=True), Separable(Gaussian(0.5), name)):
            gram = kernel.bind(X, bound)
            problem = DualProblem.build(gram.gram(X), bound.targets, Huber(0.8), 0.05)
            solution = Auto().solve(problem, tol=1e-10)
            assert solution.status is Status.CONVERGED
            values.append(solution.certificate.primal)
            predictions.append(gram.gram(Z, X).matmul(solution.duals) * problem.scale)
        assert_allclose(values[0], values[1], rtol=1e-9)
        assert_allclose(predictions[0], predictions[1], atol=1e-4 * np.max(np.abs(predictions[1])))

    def test_tensor_is_the_same_matrix(self):
        rng = np.random.default_rng(3)
        X, K_Y = rng.standard_normal((5, 2)), psd(rng, 5, 3)
        bound = space(GramFactor(), K_Y)
        kernel = Blocks(lambda S, T: np.array([[gauss(0.5)(s, t) * K_Y for t in T] for s in S]), tensor=True)
        wanted = full_matrix(Separable(Gaussian(0.5)).bind(X, bound).gram(X), 3)
        close(full_matrix(kernel.bind(X, bound).gram(X), 3), wanted, factor=64)

    @pytest.mark.parametrize(("tensor", "wanted"), [(False, r"\(4, 4, 3, 3\)"), (True, r"\(4, 4, 4, 4\)")])
    def test_wrong_shape(self, tensor, wanted):
        X, Y, _ = sample()
        kernel = Blocks(lambda S, T: np.ones((len(S), len(T), 2, 2)), tensor=tensor)
        with pytest.raises(
            ValueError, match=rf"blocks must have shape {wanted}\. The function returned \(4, 4, 2, 2\)"
        ):
            kernel.bind(X, space(Euclidean(), Y)).gram(X)

    def test_not_a_function(self):
        X, Y, _ = sample()
        with pytest.raises(TypeError, match="'function' parameter of Blocks must be a callable"):
            Blocks().bind(X, space(Euclidean(), Y))

    def test_blocks_that_are_not_psd(self):
        X, Y, _ = sample()
        kernel = Blocks(lambda S, T: -np.einsum("ij,ab->ijab", S @ T.T, np.eye(P)))
        with pytest.raises(ValueError, match="must be positive semidefinite"):
            kernel.bind(X, space(Euclidean(), Y)).gram(X)

    def test_blocks_that_are_not_symmetric(self):
        X, Y, _ = sample()
        skew = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        kernel = Blocks(lambda S, T: np.einsum("ij,ab->ijab", S @ T.T, skew))
        with pytest.raises(ValueError, match="must be symmetric"):
            kernel.bind(X, space(Euclidean(), Y)).gram(X)


@pytest.mark.parametrize("kernel", OPERATOR_KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_every_example_is_psd_and_consistent(kernel):
    _, Y, _ = sample(6)
    X, Z = np.random.default_rng(9).standard_normal((9, P))[:6], np.random.default_rng(9).standard_normal((9, P))[6:]
    bound = kernel.bind(X, space(Euclidean(), Y))
    gram, both = bound.gram(X), bound.gram(np.concatenate([X, Z]))
    full = full_matrix(gram, P)
    close(full, full.T)
    values = np.linalg.eigvalsh(full)
    assert values[0] >= -64 * EPS * values.sum()
    A = np.random.default_rng(8).standard_normal((6, P))
    padded = np.concatenate([A, np.zeros((3, P))])
    close(bound.gram(Z, X).matmul(A), both.matmul(padded)[6:])  # new points, and old ones, in one sample
    close(gram.matmul(A), both.matmul(padded)[:6])


class TestThin:
    """A linear kernel with fewer columns than samples is never a matrix."""

    X = np.random.default_rng(11).standard_normal((30, 4))

    def test_linear_kernels_take_it(self):
        bound = Separable("linear").bind(self.X, space(Euclidean(), self.X))
        assert is_thin(bound.gram(self.X)) and width(bound.gram(self.X[:2], self.X)) == 4
        assert not is_thin(bound.gram(self.X[:3]))
        assert not is_thin(Separable(Gaussian()).bind(self.X, space(Euclidean(), self.X)).gram(self.X))

    @pytest.mark.parametrize("loss", [Huber(0.3), EpsilonSVR(0.1), Huber(0.3, p=1)], ids=repr)
    @pytest.mark.parametrize("lam", [1e-1, 1e-4])
    def test_same_solution_as_the_matrix(self, loss, lam):
        Y = np.random.default_rng(13).standard_normal((30, P))
        thick = DualProblem.build(Dense(self.X @ self.X.T), Y, loss, lam)
        slim = DualProblem.build(Thin(self.X), Y, loss, lam)
        first, second = (Auto().solve(problem, tol=1e-9) for problem in (thick, slim))
        assert second.status is Status.CONVERGED
        assert second.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-8)
