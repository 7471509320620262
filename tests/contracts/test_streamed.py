"""Gram operators whose matrix is never stored, and the solver for them, against the stored matrix."""

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Scaled, Standardized
from fenchel.losses import Ball, EpsilonRidge, EpsilonSVR, Huber, Norm, Square
from fenchel.operators import Streamed, kronecker, products, scaled
from fenchel.problem import DualProblem
from fenchel.solvers import DouglasRachford, Krylov, watched
from tests.contracts.test_solvers import GAMMA, LAM, Case, is_true, refuses
from tests.contracts.test_solvers import MATRIX as FULL
from tests.parts import LOSSES

N, P = 23, 3
MATRIX = np.array([[1.0, 0.4, 0.0], [0.4, 0.8, -0.2], [0.0, -0.2, 0.0]]) + 0.3 * np.eye(3)
DIAGONAL = np.array([1.0, 0.0, 0.2])


@pytest.fixture(name="X")
def points(rng):
    return rng.standard_normal((N, 2))


def operator(X, kernel=None, **options):
    kernel = Gaussian(0.4) if kernel is None else kernel
    return Streamed(kernel, X, features=lambda: Nystrom(6).approximate(kernel, X).features(X), tile=5, **options)


class TestStreamed:
    @pytest.mark.parametrize("kernel", [Gaussian(0.4), Laplacian(0.4)], ids=repr)
    def test_products(self, X, rng, kernel):
        K, A, root = kernel(X), rng.standard_normal((N, P)), rng.uniform(0.5, 2, (N, 1))
        gram = operator(X, kernel)
        assert_allclose(gram.matmul(A), K @ A, atol=1e-13)
        assert_allclose(gram.matmul(A[:, None, :])[:, 0, :], K @ A, atol=1e-13)
        assert gram.n_passes == 2
        assert_allclose(scaled(gram, root).matmul(A), root * (K @ (root * A)), atol=1e-13)
        assert_allclose(scaled(scaled(gram, root), root).diag(), np.diag(K) * root[:, 0] ** 4, rtol=1e-14)
        assert_allclose(gram.matrix, K, atol=1e-15)

    def test_parts(self, X, rng):
        root, rows, columns = rng.uniform(0.5, 2, (N, 1)), np.array([3, 1, 8]), np.array([0, 22])
        K, gram = root * Gaussian(0.4)(X) * root.T, scaled(operator(X), root)
        assert_allclose(gram.block(rows).matrix, K[np.ix_(rows, rows)], atol=1e-14)
        part = gram.block(rows, columns)
        assert_allclose(part.matmul(np.eye(2)), K[np.ix_(rows, columns)], atol=1e-14)
        assert_allclose(part.block(slice(1, 3)).matrix, K[np.ix_(rows[1:], columns[1:])], atol=1e-14)
        assert gram.block(rows).basis.left.shape[0] == 3

    @pytest.mark.parametrize("output", [None, DIAGONAL, MATRIX], ids=["identity", "diagonal", "matrix"])
    def test_systems(self, X, rng, output):
        """One product for all columns in each step, and the start of the next system is the last solution."""
        K, B = Gaussian(0.4)(X), rng.standard_normal((N, P))
        M = np.eye(P) if output is None else np.diag(output) if output.ndim == 1 else output
        scalar = operator(X)
        solve = kronecker(scalar, output).solver(7.0, 0.3)
        full = 0.3 * np.eye(N * P) + 7.0 * np.kron(K, M)
        assert_allclose(solve(B), np.linalg.solve(full, B.ravel()).reshape(N, P), rtol=1e-8, atol=1e-9)
        before = scalar.n_passes
        solve(B)
        assert scalar.n_passes - before <= before / 2
        shifts = rng.uniform(0.2, 1, N)
        if output is None:
            expected = np.linalg.solve(np.diag(shifts) + 7.0 * K, B)
            assert_allclose(scalar.solver(7.0, shifts)(B), expected, rtol=1e-8, atol=1e-9)

    def test_float32_tiles(self, X, rng):
        A = rng.standard_normal((N, P))
        product = operator(X).rounded.matmul(A)
        assert product.dtype == np.float64
        error = np.abs(product - Gaussian(0.4)(X) @ A).max()
        assert 0 < error < 1e-5

    @pytest.mark.parametrize(
        "kernel",
        [
            Gaussian(0.4),
            *(Matern(1.3, nu) for nu in (0.5, 1.5, 2.5)),
            Standardized(Scaled(Gaussian(0.3), 0.7) + Linear()),
        ],
        ids=repr,
    )
    def test_products_of_distances(self, X, rng, kernel):
        """One inner product of extended points for a tile has the digits of its dtype, on and off the diagonal."""
        points, A = X + 100.0, rng.standard_normal((N, P))  # far from the origin
        kernel = kernel.resolve(points)
        size = np.abs(kernel(points)) @ np.abs(A)
        smooth = kernel.get_params().get("nu") != 0.5
        for is_single, digits in ((True, 3e-6), *([(False, 1e-13)] if smooth else [])):
            (product,) = products.fused_products(kernel, points, None, is_single)
            assert np.all(np.abs(product(A) - kernel(points) @ A) <= digits * size)

    def test_no_float32_products_of_distant_points(self, X):
        assert products.fused_products(Gaussian(0.4), 10 * X, None, True) == []
        assert (
            products.fused_products(Laplacian(0.4), X, None, True)
            == products.fused_products(Linear(), X, None, True)
            == []
        )

    def test_threads_share_the_work(self, X, rng, monkeypatch):
        A = rng.standard_normal((N, P))
        pool = type("Pools", (), {"info": lambda self: [{"user_api": "blas", "num_threads": 3}]})()
        pool.limit = products.in_threads.__globals__["_thread_pools"]().limit
        monkeypatch.setitem(products.in_threads.__globals__, "_thread_pools", lambda: pool)
        assert_allclose(operator(X).matmul(A), Gaussian(0.4)(X) @ A, atol=1e-13)

    def test_refusals(self, X):
        gram = operator(X)
        with pytest.raises(IncompatibleError, match="is not stored"):
            gram.factorize()
        assert "is not stored" in DouglasRachford().why_not(DualProblem.build(gram, X, Square(), 1.0))
        with pytest.raises(IncompatibleError, match="no features"):
            gram.block(np.array([1, 2]), np.array([3])).basis  # noqa: B018


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((50, 3))
    Y = np.tanh(X @ rng.standard_normal((3, P))) + 0.1 * rng.standard_normal((50, P))
    Y[::9] += 4
    return X, Y


class TestKrylov:
    @pytest.fixture(autouse=True)
    def small_tiles(self, monkeypatch):
        monkeypatch.setattr(products, "_TILE", 17)

    @pytest.mark.parametrize("operator", [None, MATRIX, DIAGONAL], ids=["identity", "matrix", "diagonal"])
    @pytest.mark.parametrize(
        "loss",
        [Square(), Huber(0.3), EpsilonRidge(0.2), EpsilonSVR(0.3), Norm(), Huber(0.3, p=1)],
        ids=repr,
    )
    def test_it_is_the_solution_of_the_stored_matrix(self, sample, rng, loss, operator):
        X, Y = sample
        settings = {"kernel": Gaussian(0.3), "operator": operator, "loss": loss, "lam": 1e-3}
        weights = rng.uniform(0.5, 2, 50)
        stored = OperatorKernelRegressor(**settings, tol=1e-9).fit(X, Y, weights)
        model = OperatorKernelRegressor(**settings, solver=Krylov(n_components=15)).fit(X, Y, weights)
        assert model.certificate_ == "exact" and model.duality_gap_ <= 1e-6
        size = stored.primal_objective_
        assert abs(model.primal_objective_ - size) <= 1.01e-6 * size
        # the norm of the difference of two models is bounded by their gaps; the kernel is 1 on the diagonal
        bound = np.sqrt(2 * 1.01e-6 * size / 1e-3 * (1.0 if operator is None else np.abs(operator).sum()))
        assert np.abs(model.predict(X) - stored.predict(X)).max() <= bound

    @pytest.mark.parametrize("loss", LOSSES, ids=repr)
    def test_every_loss_gets_a_true_certificate(self, loss):
        case = Case("euclidean")
        features = Nystrom(5).approximate(Gaussian(GAMMA), case.X).features(case.X)
        scalar = Streamed(Gaussian(GAMMA), case.X, features=lambda: features)
        problem = DualProblem.build(kronecker(scalar, FULL), case.targets, loss, LAM)
        if not refuses(Krylov(), problem):
            solution = Krylov().solve(problem)
            assert solution.certificate.relative_gap <= 1e-6
            is_true(case, loss, problem, solution)

    def test_single_tiles_and_the_state_of_an_earlier_solve(self, sample):
        X, Y = sample
        gram = Streamed(Gaussian(0.3), X, features=lambda: Nystrom(20).approximate(Gaussian(0.3), X).features(X))
        problem = DualProblem.build(gram, Y, Huber(0.3), 1e-3)
        solution = Krylov(tiles="float32").solve(problem, tol=1e-5)
        certificate = problem.certificate(solution.duals, Gaussian(0.3)(X) @ solution.duals / (1e-3 * 50))
        assert certificate.relative_gap == pytest.approx(solution.certificate.relative_gap, rel=1e-6)
        assert certificate.relative_gap <= 1e-5
        finer = Krylov(tiles="float32").solve(problem, tol=1e-10)  # beyond float32: it goes on in float64
        assert finer.certificate.relative_gap <= 1e-10
        again = Krylov().solve(problem, tol=1e-5, start=solution.state)
        assert again.n_iter <= 1

    def test_an_interrupt_keeps_the_best_point(self, sample):
        X, Y = sample
        seen = []

        def interrupt(n_iter, certificate):
            seen.append(certificate.relative_gap)
            if len(seen) == 2:
                raise KeyboardInterrupt

        settings = {"loss": Huber(0.3), "lam": 1e-4, "tol": 1e-9, "solver": Krylov(n_components=5)}
        model = OperatorKernelRegressor(Gaussian(0.3), **settings)
        with watched(interrupt), pytest.warns(ConvergenceWarning, match="best point that was certified"):
            model.fit(X, Y)
        assert model.duality_gap_ == seen[0] and "interrupted" in model.status_
        K = Gaussian(0.3)(X) / (1e-4 * 50)
        assert_allclose(model.predict(X), K @ model.dual_coef_, atol=1e-8)

    def test_it_says_how_far_it_is(self, sample, caplog):
        X, Y = sample
        with caplog.at_level(logging.INFO, "fenchel"):
            OperatorKernelRegressor(loss="huber", lam=1e-5, solver=Krylov(n_components=5)).fit(X, Y)
        assert caplog.messages[0].startswith("Krylov: 1 passes over the kernel, gap")
        assert caplog.messages[-1].endswith("about 0 s left")

    def test_few_features_are_the_whole_problem(self, sample):
        X, Y = sample
        model = OperatorKernelRegressor("linear", loss="huber", solver="krylov").fit(X, Y)
        assert model.duality_gap_ <= 1e-6

    def test_torch(self, sample):
        torch = pytest.importorskip("torch")
        X, Y = map(torch.asarray, sample)
        model = OperatorKernelRegressor(Gaussian(0.3), operator=torch.asarray(MATRIX), loss="huber", solver="krylov")
        here = OperatorKernelRegressor(Gaussian(0.3), operator=MATRIX, loss="huber").fit(*sample)
        assert isinstance(model.fit(X, Y).predict(X), torch.Tensor) and model.duality_gap_ <= 1e-6
        assert model.primal_objective_ == pytest.approx(here.primal_objective_, rel=2e-6)

    def test_refusals(self, sample):
        X, Y = sample
        with pytest.raises(IncompatibleError, match="of one kernel on points"):
            OperatorKernelRegressor("precomputed", loss="huber", solver="krylov").fit(Gaussian(0.3)(X), Y)
        with pytest.raises(IncompatibleError, match="infinite outside a ball"):
            OperatorKernelRegressor(loss=Ball(2.0), solver="krylov").fit(X, Y)
