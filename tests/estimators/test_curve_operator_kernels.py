"""Operator-valued kernels of curves against one dense system of all curve values, written from the definition."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import fenchel
from fenchel import FunctionalRegressor, FunctionalRegressorCV, StructuredPredictor, StructuredPredictorCV
from fenchel.approximations import Nystrom
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import (
    Aligned,
    Blocks,
    Covariance,
    Diagonal,
    FunctionalGaussian,
    Gaussian,
    Identity,
    IntegralOperator,
    Laplacian,
    Linear,
    Matrix,
)
from fenchel.losses import Huber
from fenchel.representations import Eigen, Fourier

N, LAM = 9, 3e-2
GRID = np.array([0.0, 0.15, 0.3, 0.55, 0.8, 1.0])
FINE = np.linspace(0.05, 0.95, 7)
WEIGHTS = np.trapezoid(np.eye(len(GRID)), GRID)
SUM = Gaussian(0.4) * IntegralOperator(Gaussian(6.0)) + Laplacian(0.7) * IntegralOperator(Laplacian(2.0))


def sample(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 2))
    Y = np.sin(3 * GRID + X[:, :1]) + X[:, 1:] * GRID + 0.3 * rng.standard_normal((N, len(GRID)))
    return X, Y, rng.standard_normal((4, 2))


def gauss(S, T, gamma):
    return np.exp(-gamma * np.sum((S[:, None] - T[None]) ** 2, axis=-1))


def laplace(S, T, gamma):
    return np.exp(-gamma * np.sum(np.abs(S[:, None] - T[None]), axis=-1))


def sum_blocks(S, T, s, t):
    """K(x, z)(s, t) of ``SUM``, (S, s, T, t)."""
    s, t = s[:, None], t[:, None]
    first = np.einsum("ij,st->isjt", gauss(S, T, 0.4), gauss(s, t, 6.0))
    return first + np.einsum("ij,st->isjt", laplace(S, T, 0.7), laplace(s, t, 2.0))


def directed(Y, points):
    """The training curves at any points, linear in between."""
    return np.array([np.interp(points, GRID, y) for y in Y])


def aligned_blocks(X, Y, form):
    """K(x, z)(s, t) of the aligned kernels, sums over the training curves."""

    def blocks(S, T, s, t):
        left, right = directed(Y, s), directed(Y, t)
        if form == "anchored":
            return np.einsum("id,jd,ds,dt->isjt", gauss(S, X, 0.4), gauss(T, X, 0.4), left, right) / N
        if form == "pairs":
            left, right = ((Z[:, None] + Z[None]).reshape(N * N, -1) for Z in (left, right))
        gammas = np.linspace(0.2, 1.4, N) if form == "several" else np.full(len(left), 0.4)
        stack = np.array([gauss(S, T, gamma) for gamma in gammas])
        return np.einsum("dij,ds,dt->isjt", stack, left, right) / len(left)

    return blocks


ALIGNED = {
    "one": Aligned(Gaussian(0.4)),
    "pairs": Aligned(Gaussian(0.4), pairs=True),
    "anchored": Aligned(Gaussian(0.4), anchored=True),
    "several": Aligned([Gaussian(gamma) for gamma in np.linspace(0.2, 1.4, N)]),
}


def ridge(blocks, X, Y, new, points, weights=None, counts=None):
    """Predictions of the square loss: a = y - h, h = sum_j K(., x_j) (w_j a_j) / (lam n), one system of all values."""
    weights = np.tile(WEIGHTS, (len(X), 1)) if weights is None else weights
    counts = np.ones(len(X)) if counts is None else counts
    scale = weights * counts[:, None] / (LAM * np.sum(counts))
    size = Y.size
    gram = blocks(X, X, GRID, GRID).reshape(size, size)
    duals = np.linalg.solve(np.eye(size) + gram * scale.ravel(), np.nan_to_num(Y).ravel())
    return (blocks(new, X, points, GRID).reshape(-1, size) @ (scale.ravel() * duals)).reshape(len(new), -1)


def fitted(kernel, X, Y, loss="square", weights=None, **settings):
    model = FunctionalRegressor(kernel, loss=loss, lam=LAM, center=False, tol=1e-10, **settings)
    return model.fit(X, Y, grid=GRID, sample_weight=weights)


class TestSums:
    def test_square_loss_on_and_between_the_points(self):
        X, Y, new = sample()
        model = fitted(SUM, X, Y)
        for points in (None, FINE):
            expected = ridge(sum_blocks, X, Y, new, GRID if points is None else points)
            assert_allclose(model.predict(new, points), expected, atol=1e-8)

    def test_missing_values_and_weights(self):
        X, Y, new = sample()
        Y[0, 2], Y[3, 4:], counts = np.nan, np.nan, np.arange(1.0, N + 1)
        observed = WEIGHTS * ~np.isnan(Y)
        weights = observed * np.sum(WEIGHTS) / np.sum(observed, axis=1, keepdims=True)
        expected = ridge(sum_blocks, X, Y, new, FINE, weights, counts)
        assert_allclose(fitted(SUM, X, Y, weights=counts).predict(new, FINE), expected, atol=1e-7)

    def test_huber_loss_against_cvxpy(self):
        X, Y, _ = sample()
        root = np.tile(np.sqrt(WEIGHTS), N)
        gram = root[:, None] * sum_blocks(X, X, GRID, GRID).reshape(Y.size, Y.size) * root
        factor = np.linalg.cholesky(gram + 1e-12 * np.eye(Y.size))
        coef = cp.Variable(Y.size)
        residuals = cp.reshape(root * Y.ravel() - factor @ coef, (N, len(GRID)), order="C")
        loss = cp.sum(cp.huber(cp.norm(residuals, axis=1), 0.3)) / (2 * N)
        optimum = cp.Problem(cp.Minimize(loss + LAM / 2 * cp.sum_squares(coef))).solve()
        model = fitted(SUM, X, Y, Huber(0.3))
        assert model.duality_gap_ <= 1e-10
        assert_allclose(model.primal_objective_, optimum, rtol=1e-6)

    def test_one_term_is_the_output_kernel(self):
        X, Y, new = sample()
        one = fitted(Gaussian(0.4) * IntegralOperator(Gaussian(6.0)), X, Y)
        two = fitted(Gaussian(0.4), X, Y, output_kernel=Gaussian(6.0))
        for derivative in (False, True):
            assert np.array_equal(one.predict(new, FINE, derivative), two.predict(new, FINE, derivative))

    def test_terms_with_the_same_kernel_are_added(self):
        X, Y, new = sample()
        operators = IntegralOperator(Gaussian(6.0)), IntegralOperator(Laplacian(2.0))
        merged = fitted(Gaussian(0.4) * operators[0] + Gaussian(0.4) * operators[1], X, Y)
        whole = fitted(Gaussian(0.4), X, Y, output_kernel=Gaussian(6.0) + Laplacian(2.0))
        assert_allclose(merged.predict(new, FINE), whole.predict(new, FINE), atol=1e-9)

    def test_coupled_channels(self):
        """Kernels of each term may couple the channels: the values of both are one long curve."""
        X, Y, new = sample()
        coupling, both = np.array([[1.0, 0.6], [0.6, 2.0]]), np.stack([Y, np.cos(Y)], axis=2)
        kernel = Gaussian(0.4) * IntegralOperator(Gaussian(6.0), coupling) + Linear() * IntegralOperator(Laplacian(2.0))
        s, t = GRID[:, None], FINE[:, None]

        def gram(S, points):
            first = np.einsum("ij,st,cd->iscjtd", gauss(S, X, 0.4), gauss(points, s, 6.0), coupling)
            return first + np.einsum("ij,st,cd->iscjtd", S @ X.T, laplace(points, s, 2.0), np.eye(2))

        scale = np.tile(np.repeat(WEIGHTS, 2), N) / (LAM * N)
        matrix = gram(X, s).reshape(both.size, both.size)
        duals = np.linalg.solve(np.eye(both.size) + matrix * scale, both.ravel())
        expected = (gram(new, t).reshape(-1, both.size) @ (scale * duals)).reshape(4, len(FINE), 2)
        assert_allclose(fitted(kernel, X, both).predict(new, FINE), expected, atol=1e-8)

    def test_derivatives_are_finite_differences(self):
        X, Y, new = sample()
        smooth = Gaussian(0.4) * IntegralOperator(Gaussian(6.0)) + Linear() * IntegralOperator(Gaussian(1.0))
        model, step = fitted(smooth, X, Y), 1e-5
        along = (model.predict(new, FINE + step) - model.predict(new, FINE - step)) / (2 * step)
        assert_allclose(model.predict(new, FINE, derivative=True), along, atol=1e-7)
        move = np.array([step, 0.0])
        across = (model.predict(new + move, FINE) - model.predict(new - move, FINE)) / (2 * step)
        assert_allclose(model.gradient(new, FINE)[..., 0], across, atol=1e-7)

    @pytest.mark.parametrize("n_components", [len(GRID), 4])
    def test_eigenfunctions_of_another_operator(self, n_components):
        """With all eigenfunctions the span is that of the points; with fewer, curves are projected on them."""
        X, Y, new = sample()
        model = fitted(SUM, X, Y, output_kernel=Laplacian(3.0), representation=Eigen(n_components))
        root = np.sqrt(WEIGHTS)
        _, vectors = np.linalg.eigh(root[:, None] * laplace(GRID[:, None], GRID[:, None], 3.0) * root)
        kept = vectors[:, ::-1][:, :n_components]
        projection = (kept @ kept.T) * root / root[:, None]

        gram = np.einsum("us,isjt->iujt", projection, sum_blocks(X, X, GRID, GRID)).reshape(Y.size, Y.size)
        scale = np.tile(WEIGHTS, N) / (LAM * N)
        duals = np.linalg.solve(np.eye(Y.size) + gram * scale, (Y @ projection.T).ravel())
        expected = (sum_blocks(new, X, FINE, GRID).reshape(-1, Y.size) @ (scale * duals)).reshape(4, -1)
        assert_allclose(model.predict(new, FINE), expected, atol=1e-8)

    def test_approximated_terms(self):
        """As many landmarks as samples give the kernel itself."""
        X, Y, new = sample()
        thin = fitted(SUM, X, Y, approximation=Nystrom(N))
        assert_allclose(thin.predict(new, FINE), fitted(SUM, X, Y).predict(new, FINE), atol=1e-6)


class TestAligned:
    @pytest.mark.parametrize("form", ALIGNED)
    def test_directions_are_the_training_curves(self, form):
        X, Y, new = sample()
        model = fitted(ALIGNED[form], X, Y)
        for points in (None, FINE):
            at = GRID if points is None else points
            assert_allclose(model.predict(new, points), ridge(aligned_blocks(X, Y, form), X, Y, new, at), atol=1e-8)

    def test_tensor_of_products(self):
        """The fourth-order tensor of Theorem 4 needs inner products of curves only."""
        X, Y, new = sample()
        products = (Y * WEIGHTS) @ Y.T

        def tensor(S, T):
            return np.einsum("ij,kd,dl->ijkl", gauss(S, T, 0.4), products, products) / N

        by_tensor = fitted(Blocks(tensor, tensor=True), X, Y, representation="spline")
        assert_allclose(by_tensor.predict(new), fitted(ALIGNED["one"], X, Y).predict(new), atol=1e-7)

    def test_fourier_coefficients(self):
        """Directions in the span of the basis are read by the basis itself, between the points too."""
        X, Y, new = sample()
        model = fitted(ALIGNED["one"], X, Y, representation=Fourier(3))
        phases = 2 * np.pi * np.arange(2)[:, None]
        basis = np.sqrt(2) * np.concatenate([np.cos(phases * FINE), np.sin(phases[1:] * FINE)])
        values = model.predict(new, FINE)
        inside = np.linalg.lstsq(basis.T, values.T, rcond=None)[0]
        assert_allclose(basis.T @ inside, values.T, atol=1e-9)
        step = 1e-5
        slopes = (model.predict(new, FINE + step) - model.predict(new, FINE - step)) / (2 * step)
        assert_allclose(model.predict(new, FINE, derivative=True), slopes, atol=1e-6)

    def test_a_covariance_is_an_aligned_kernel(self):
        X, Y, new = sample()
        model = fitted(Gaussian(0.4) * Covariance(), X, Y)
        assert_allclose(model.predict(new, FINE), fitted(ALIGNED["one"], X, Y).predict(new, FINE), atol=1e-9)

    def test_the_identity_couples_no_points(self):
        """Each point is a ridge regression of its own; between the points curves are linear."""
        X, Y, new = sample()
        gram = gauss(X, X, 0.4)
        at_points = gauss(new, X, 0.4) @ np.linalg.solve(gram + LAM * N * np.eye(N), Y)
        model = fitted(Gaussian(0.4) * Identity(), X, Y)
        assert_allclose(model.predict(new), at_points, atol=1e-9)
        assert_allclose(model.predict(new, FINE), directed(at_points, FINE), atol=1e-9)
        with pytest.raises(IncompatibleError, match="between the points are linear"):
            model.predict(new, derivative=True)


class TestConventions:
    def test_saved_models_predict_the_same(self, tmp_path):
        X, Y, new = sample()
        for kernel in (SUM, ALIGNED["anchored"], ALIGNED["several"], Gaussian(0.4) * Covariance()):
            model = fitted(clone(kernel), X, Y)
            fenchel.save(model, tmp_path / "model.skops")
            assert np.array_equal(fenchel.load(tmp_path / "model.skops").predict(new, FINE), model.predict(new, FINE))

    def test_search_over_losses_and_lam(self):
        """Held-out errors are those of fits without the fold."""
        X, Y, _ = sample()
        folds = [(np.arange(3, N), np.arange(3)), (np.arange(6), np.arange(6, N))]
        search = FunctionalRegressorCV(
            SUM, lams=[LAM], losses=["square"], center=False, scale=False, cv=folds, aggregate="mean", tol=1e-10
        ).fit(X, Y, grid=GRID)
        errors = []
        for train, test in folds:
            found = ridge(sum_blocks, X[train], Y[train], X[test], GRID)
            errors.append(np.mean(np.sum(WEIGHTS * (Y[test] - found) ** 2, axis=1)))
        assert_allclose(search.fold_errors_[0, 0], errors, rtol=1e-6)

    def test_input_curves_lend_the_kernel_their_points(self):
        _, Y, _ = sample()
        curves, operator = Y[:, :, None], IntegralOperator(Gaussian(6.0))
        one = fitted(FunctionalGaussian(0.4) * operator, curves, Y).predict(curves)
        assert np.array_equal(
            one, fitted(FunctionalGaussian(0.4), curves, Y, output_kernel=Gaussian(6.0)).predict(curves)
        )

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"output_kernel": Gaussian(6.0)}, "'output_kernel' parameter must be None"),
            ({"channels": np.eye(1)}, "'channels' parameter must be None"),
            ({"representation": "eigen"}, "'output_kernel' parameter must be the kernel whose eigenfunctions"),
        ],
    )
    def test_a_second_operator_is_refused(self, settings, message):
        X, Y, _ = sample()
        with pytest.raises(ValueError, match=message):
            fitted(SUM, X, Y, **settings)

    def test_a_matrix_has_no_meaning_for_curves(self):
        X, Y, _ = sample()
        with pytest.raises(IncompatibleError, match="no raw coordinates"):
            fitted(Gaussian(0.4) * Matrix(np.eye(len(GRID))), X, Y)


class TestStructuredOutputs:
    B = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])

    @pytest.mark.parametrize("operator", [Matrix(B), B, Diagonal([2.0, 1.0, 0.0])])
    @pytest.mark.parametrize("center", [False, True])
    def test_a_matrix_acts_on_the_outputs_of_a_linear_kernel(self, operator, center):
        X, Y, new = sample()
        Y = Y[:, :3]
        model = StructuredPredictor(Gaussian(0.4), operator=operator, lam=LAM, center=center, tol=1e-10).fit(X, Y)
        mean = np.mean(Y, axis=0) * center
        matrix = np.diag([2.0, 1.0, 0.0]) if isinstance(operator, Diagonal) else self.B
        system = np.kron(gauss(X, X, 0.4), matrix) + LAM * N * np.eye(3 * N)
        coef = np.linalg.solve(system, (Y - mean).ravel()).reshape(N, 3)
        assert_allclose(model.embed(new), gauss(new, X, 0.4) @ coef @ matrix + mean, atol=1e-9)

    def test_search(self):
        X, Y, new = sample()
        Y = Y[:, :3]
        search = StructuredPredictorCV(Gaussian(0.4), operator=self.B, lams=[LAM], losses=["square"], center=False)
        single = StructuredPredictor(Gaussian(0.4), operator=self.B, lam=LAM)
        assert_allclose(search.fit(X, Y).embed(new), single.fit(X, Y).embed(new), atol=1e-6)

    @pytest.mark.parametrize("settings", [{"output_kernel": "gaussian"}, {"output_approximation": Nystrom(2)}])
    def test_other_coordinates_are_refused(self, settings):
        X, Y, _ = sample()
        with pytest.raises(IncompatibleError, match="A matrix acts on outputs that are vectors with a linear kernel"):
            StructuredPredictor(operator=np.eye(6), **settings).fit(X, Y)

    def test_its_size_is_that_of_the_outputs(self):
        X, Y, _ = sample()
        with pytest.raises(ValueError, match="must act on the 6 output columns"):
            StructuredPredictor(operator=np.eye(5)).fit(X, Y)
