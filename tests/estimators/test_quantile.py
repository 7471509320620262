"""Quantile functions: against cvxpy, in order, at any level, for several outputs, in every array library."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import fenchel
from fenchel import QuantileFunctionRegressor, QuantileFunctionRegressorCV
from fenchel.kernels import Constant, Gaussian, Laplacian
from fenchel.metrics import coverage, crossing_rate, pinball_scorer

AGREEMENT = 1e-6


def data(n=60, seed=0):
    """A location that bends and a scale that grows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + (0.2 + 0.4 * np.abs(X[:, 1])) * rng.standard_normal(n)


def root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.clip(values, 0, None))


def solved(problem):
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value


class TestOracles:
    @pytest.mark.parametrize("lam", [1e-1, 1e-3])
    @pytest.mark.parametrize("quadrature", ["gauss_legendre", "uniform"])
    def test_objective_is_that_of_cvxpy(self, lam, quadrature):
        """The primal problem written with a feature map of k + c and the kernel of the levels, from the definition."""
        X, y = data(30)
        model = QuantileFunctionRegressor(
            Gaussian(0.7), Laplacian(2.0), lam, 5, quadrature, intercept=0.5, tol=1e-9
        ).fit(X, y)
        levels, weights = model.levels_, model.level_weights_
        K = np.exp(-0.7 * np.sum((X[:, None] - X[None]) ** 2, axis=2)) + 0.5
        G = np.exp(-2 * np.abs(levels[:, None] - levels))
        W = cp.Variable((30, 5))
        predictions = root(K) @ W @ root(G).T
        order = np.sort(y)
        marginal = np.array([order[int(np.ceil(level * 30 - 1e-9)) - 1] for level in levels])
        residuals = y[:, None] - marginal[None, :] - predictions
        pinball = cp.maximum(cp.multiply(levels[None, :], residuals), cp.multiply(levels[None, :] - 1, residuals))
        value = solved(cp.Problem(cp.Minimize(cp.sum(pinball @ weights) / 30 + lam / 2 * cp.sum_squares(W))))
        assert model.primal_objective_ == pytest.approx(value, rel=AGREEMENT)
        assert model.duality_gap_ <= 1e-9

    def test_one_level_and_a_constant_kernel_is_scalar_quantile_regression(self):
        X, y = data(40)
        model = QuantileFunctionRegressor(Gaussian(0.7), Constant(), 1e-2, levels=[0.3], intercept=0.0, tol=1e-10).fit(
            X, y
        )
        K = np.exp(-0.7 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
        w, shift = cp.Variable(40), np.sort(y)[11]  # the twelfth of forty is the quantile of level 0.3
        residuals = y - shift - root(K) @ w
        loss = cp.sum(cp.maximum(0.3 * residuals, -0.7 * residuals)) / 40
        value = solved(cp.Problem(cp.Minimize(loss + 1e-2 / 2 * cp.sum_squares(w))))
        assert model.primal_objective_ == pytest.approx(value, rel=AGREEMENT)
        np.testing.assert_allclose(model.predict(X, 0.3), shift + root(K) @ w.value, atol=1e-4)

    def test_several_outputs_with_a_coupling(self):
        X, y = data(20)
        Y, B = np.stack([y, -2 * y + X[:, 0]], axis=1), np.array([[1.0, 0.6], [0.6, 2.0]])
        model = QuantileFunctionRegressor(Gaussian(0.7), Gaussian(3.0), 1e-2, 3, coupling=B, tol=1e-9).fit(X, Y)
        levels, weights = model.levels_, model.level_weights_
        K = np.exp(-0.7 * np.sum((X[:, None] - X[None]) ** 2, axis=2)) + 1
        G = np.kron(np.exp(-3 * (levels[:, None] - levels) ** 2), B)
        w = cp.Variable((20, 6))
        predictions, loss = root(K) @ w @ root(G).T, 0
        for j, (level, weight) in enumerate(zip(levels, weights, strict=True)):
            for c in range(2):
                shift = np.sort(Y[:, c])[int(np.ceil(level * 20 - 1e-9)) - 1]
                r = Y[:, c] - shift - predictions[:, 2 * j + c]
                loss = loss + weight * cp.sum(cp.maximum(level * r, (level - 1) * r)) / 20
        value = solved(cp.Problem(cp.Minimize(loss + 1e-2 / 2 * cp.sum_squares(w))))
        assert model.primal_objective_ == pytest.approx(value, rel=AGREEMENT)

    def test_outputs_without_coupling_are_separate_models(self):
        X, y = data(40)
        Y = np.stack([y, y**2], axis=1)
        both = QuantileFunctionRegressor(Gaussian(1.0), lam=1e-2, levels=7, tol=1e-9).fit(X, Y)
        for c in range(2):
            alone = clone(both).fit(X, Y[:, c])
            np.testing.assert_allclose(both.predict(X, [0.2, 0.7])[:, :, c], alone.predict(X, [0.2, 0.7]), atol=1e-5)

    def test_curves_are_coupled_outputs(self):
        """Quantile × time: the coupling is a kernel of the points; without samples between them it is the same fit."""
        X, y = data(25)
        times = np.linspace(0, 1, 6)
        Y = y[:, None] * np.cos(3 * times) + times
        coupling = np.exp(-5 * np.abs(times[:, None] - times))
        model = QuantileFunctionRegressor(Gaussian(1.0), lam=1e-2, levels=5, coupling=coupling).fit(X, Y)
        assert model.duality_gap_ <= 1e-6
        assert model.predict(X, [0.1, 0.9]).shape == (25, 2, 6) and model.predict(X).shape == (25, 6)


class TestIntercept:
    def test_a_heavy_penalty_leaves_the_marginal_quantiles(self):
        X, y = data(50)
        model = QuantileFunctionRegressor(lam=1e4).fit(X, y)
        levels = [0.1, 0.25, 0.5]
        np.testing.assert_allclose(
            model.predict(X, levels), np.tile(model.marginal_(np.array(levels)).T, (50, 1)), atol=1e-3
        )
        assert np.mean(y <= model.marginal_(np.array([model.levels_[4]]))[0, 0]) >= model.levels_[4]

    def test_shifted_outputs_have_shifted_quantiles(self):
        X, y = data(50)
        model = QuantileFunctionRegressor(lam=1e-3, tol=1e-9)
        shifted = clone(model).fit(X, y + 100).predict(X, [0.2, 0.8]) - 100
        np.testing.assert_allclose(shifted, model.fit(X, y).predict(X, [0.2, 0.8]), atol=1e-4)

    def test_marginal_quantiles_count_weights(self):
        X, y = data(20)
        weights = np.arange(20) % 3
        weighted = QuantileFunctionRegressor(lam=1e-2, tol=1e-9).fit(X, y, weights)
        repeated = QuantileFunctionRegressor(lam=1e-2, tol=1e-9).fit(
            np.repeat(X, weights, axis=0), np.repeat(y, weights)
        )
        np.testing.assert_allclose(weighted.predict(X, [0.1, 0.6]), repeated.predict(X, [0.1, 0.6]), atol=1e-4)
        assert np.all(weighted.dual_coef_[::3] == 0)


class TestOrder:
    def crossing(self):
        """A fit whose quantiles cross: narrow kernels and little regularisation."""
        X, y = data(60)
        model = QuantileFunctionRegressor(Gaussian(20.0), Gaussian(50.0), lam=1e-5, levels=9, tol=1e-4)
        return model.fit(X, y), X, y

    def test_crossings_are_counted(self):
        model, X, _ = self.crossing()
        raw = model.predict(X, model.levels_)
        assert model.crossing_rate_ > 0.05
        assert model.crossing_rate_ == pytest.approx(np.mean(np.diff(raw, axis=1) < 0), abs=0.01)

    def test_none_is_left_at_any_level_in_any_call(self):
        model = self.crossing()[0]
        new = np.random.default_rng(1).uniform(-2, 2, (40, 2))
        model.set_params(non_crossing=True)
        levels = np.sort(np.random.default_rng(2).uniform(0.001, 0.999, 300))
        together = model.predict(new, levels)
        assert crossing_rate(together) == 0 and np.all(np.diff(together, axis=1) >= -1e-12)
        apart = np.stack([model.predict(new, level) for level in levels[::30]], axis=1)
        np.testing.assert_allclose(apart, together[:, ::30], rtol=1e-12)

    def test_what_is_in_order_stays(self):
        X, y = data(100)
        model = QuantileFunctionRegressor(lam=1e-1, levels=9, quadrature="uniform").fit(X, y)
        assert model.crossing_rate_ == 0
        raw = model.predict(X, model.levels_)
        np.testing.assert_allclose(model.set_params(non_crossing=True).predict(X, model.levels_), raw, atol=1e-10)

    def test_several_outputs_are_put_in_order_one_by_one(self):
        X, y = data(40)
        model = QuantileFunctionRegressor(Gaussian(20.0), Gaussian(50.0), 1e-4, 7, non_crossing=True, tol=1e-4)
        found = model.fit(X, np.stack([y, -y], axis=1)).predict(X, [0.1, 0.3, 0.5, 0.7])
        assert np.all(np.diff(found, axis=1) >= -1e-12)


class TestDistribution:
    def test_coverage_on_held_out_data(self):
        shares = []
        for seed in range(4):
            X, y = data(2400, seed)
            model = QuantileFunctionRegressor(Gaussian(1.0), lam=5e-3, tol=1e-4).fit(X[:400], y[:400])
            low, high = model.predict_interval(X[400:], 0.8).T
            shares.append(coverage(y[400:], low, high))
        assert 0.76 <= np.mean(shares) <= 0.84

    def test_samples_have_the_quantiles(self):
        X, y = data(200)
        model = QuantileFunctionRegressor(lam=1e-2).fit(X, y)
        draws = model.sample(X[:3], 20000, random_state=0)
        assert draws.shape == (3, 20000)
        np.testing.assert_allclose(np.quantile(draws, [0.1, 0.5, 0.9], axis=1).T, model.predict(X[:3], [0.1, 0.5, 0.9]),
                                   atol=0.03)  # fmt: skip
        np.testing.assert_array_equal(draws, model.sample(X[:3], 20000, random_state=0))

    def test_samples_of_several_outputs(self):
        X, y = data(30)
        model = QuantileFunctionRegressor(lam=1e-2, levels=5).fit(X, np.stack([y, y], axis=1))
        draws = model.sample(X[:4], 5, random_state=0)
        assert draws.shape == (4, 5, 2) and not np.allclose(draws[..., 0], draws[..., 1])

    def test_quantiles_come_in_the_order_asked_for(self):
        X, y = data()
        model = QuantileFunctionRegressor(lam=1e-2).fit(X, y)
        np.testing.assert_allclose(model.predict(X, [0.9, 0.1])[:, ::-1], model.predict(X, [0.1, 0.9]), rtol=1e-12)
        assert model.predict(X).shape == (60,) and model.predict(X, [0.5]).shape == (60, 1)

    def test_score_is_the_share_of_the_loss(self):
        X, y = data(200)
        model = QuantileFunctionRegressor(lam=1e-3, levels=[0.1, 0.5, 0.9]).fit(X, y)

        def mean_loss(q):
            r = y[:, None] - q
            return np.mean(np.maximum(model.levels_ * r, (model.levels_ - 1) * r))

        marginal = model.marginal_(model.levels_).T
        assert model.score(X, y) == pytest.approx(1 - mean_loss(model.predict(X, model.levels_)) / mean_loss(marginal))
        assert 0.3 < model.score(X, y) < 1


class TestSelection:
    def test_lam_and_kernel_are_chosen_on_held_out_losses(self):
        X, y = data(90)
        kernels, lams = [Gaussian(0.5), Gaussian(200.0)], [1e-3, 1e-1]
        model = QuantileFunctionRegressorCV(kernels, lams=lams, levels=5, cv=3, cv_tol=1e-7).fit(X, y)
        assert model.kernel_errors_.shape == (2, 2) and model.best_kernel_ is kernels[0]
        errors = np.zeros((2, 2))
        order = np.argsort(y)  # folds are drawn from the sorted outputs
        for train, test in ((order[a], order[b]) for a, b in KFold(3, shuffle=True, random_state=0).split(X)):
            for i, kernel in enumerate(kernels):
                for j, lam in enumerate(lams):
                    errors[i, j] += held_out_loss(kernel, lam, X, y, train, test) / 3
        np.testing.assert_allclose(model.kernel_errors_, errors, rtol=1e-3)
        i, j = np.unravel_index(np.argmin(errors), errors.shape)
        assert (model.best_kernel_, model.best_lam_) == (kernels[i], lams[j])
        alone = QuantileFunctionRegressor(kernels[i], lam=lams[j], levels=5).fit(X, y)
        np.testing.assert_allclose(model.predict(X, [0.2, 0.8]), alone.predict(X, [0.2, 0.8]), atol=1e-4)
        assert model.duality_gap_ <= 1e-6 and model.cv_gaps_.max() <= 1e-6
        assert model.predict_interval(X).shape == (90, 2) and model.sample(X, 2, 0).shape == (90, 2)

    def test_the_kernel_of_the_levels_is_chosen_too(self):
        rng = np.random.default_rng(3)
        X = rng.uniform(-1, 1, (120, 1))
        y = (0.02 + np.abs(X[:, 0])) * rng.standard_normal(120)  # the scale varies: a common shift is of no use
        kernels = [Constant(), Laplacian(2.0)]
        model = QuantileFunctionRegressorCV(Gaussian(1.0), kernels, lams=[1e-3], levels=5, cv=3).fit(X, y)
        assert model.best_level_kernel_ is kernels[1] and model.kernel_errors_.shape == (2, 1)
        assert model.cv_errors_[0, 0] == model.kernel_errors_[1, 0] < model.kernel_errors_[0, 0]
        alone = QuantileFunctionRegressor(Gaussian(1.0), kernels[1], 1e-3, 5).fit(X, y)
        np.testing.assert_allclose(model.predict(X, 0.3), alone.predict(X, 0.3), atol=1e-4)

    def test_path(self):
        X, y = data()
        found = fenchel.path(QuantileFunctionRegressor(levels=5), X, y, [1e-3, 1e-1])
        assert found.gaps.max() <= 1e-6
        alone = QuantileFunctionRegressor(levels=5, lam=1e-3).fit(X, y)
        np.testing.assert_allclose(found.model(0, 0).predict(X, [0.3, 0.6]), alone.predict(X, [0.3, 0.6]), atol=1e-4)

    def test_grid_search(self):
        X, y = data()
        search = GridSearchCV(
            QuantileFunctionRegressor(Gaussian(), levels=5),
            {"kernel__gamma": [0.5, 100.0], "lam": [1e-2]},
            scoring=pinball_scorer([0.2, 0.5, 0.8]),
            cv=2,
        ).fit(X, y)
        assert search.best_params_["kernel__gamma"] == 0.5

    def test_bad_arguments(self):
        X, y = data(20)
        with pytest.raises(ValueError, match="'kernel' parameter must hold at least one kernel"):
            QuantileFunctionRegressorCV([]).fit(X, y)
        with pytest.raises(ValueError, match="'level_kernel' parameter must hold at least one kernel"):
            QuantileFunctionRegressorCV(level_kernel=[]).fit(X, y)
        with pytest.raises(ValueError, match="'cv_tol' parameter"):
            QuantileFunctionRegressorCV(cv_tol=0.0).fit(X, y)


def held_out_loss(kernel, lam, X, y, train, test):
    """The mean loss of one fold: a model that knows the training part only."""
    model = QuantileFunctionRegressor(kernel, lam=lam, levels=5).fit(X[train], y[train])
    r = y[test][:, None] - model.predict(X[test], model.levels_)
    return np.mean(np.maximum(model.levels_ * r, (model.levels_ - 1) * r) @ model.level_weights_)


class TestArrays:
    def test_float32(self):
        X, y = data()
        single = QuantileFunctionRegressor(lam=1e-2, non_crossing=True).fit(X.astype(np.float32), y.astype(np.float32))
        found = single.predict(X.astype(np.float32), [0.2, 0.8])
        assert found.dtype == np.float32 and single.duality_gap_ <= 1e-6
        double = QuantileFunctionRegressor(lam=1e-2, non_crossing=True).fit(X, y)
        np.testing.assert_allclose(found, double.predict(X, [0.2, 0.8]), atol=2e-3)

    def test_torch(self):
        torch = pytest.importorskip("torch")
        X, y = data()
        model = QuantileFunctionRegressor(lam=1e-2, levels=6, non_crossing=True)
        found = clone(model).fit(torch.asarray(X), torch.asarray(y)).predict(torch.asarray(X), [0.2, 0.8])
        assert isinstance(found, torch.Tensor) and found.dtype == torch.float64
        np.testing.assert_allclose(found.numpy(), model.fit(X, y).predict(X, [0.2, 0.8]), atol=1e-4)
        assert isinstance(model.fit(torch.asarray(X), torch.asarray(y)).sample(torch.asarray(X), 2, 0), torch.Tensor)

    def test_precomputed(self):
        X, y = data()
        K = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2))
        model = QuantileFunctionRegressor("precomputed", lam=1e-2, levels=5).fit(K, y)
        plain = QuantileFunctionRegressor(Gaussian(1.0), lam=1e-2, levels=5).fit(X, y)
        np.testing.assert_allclose(model.predict(K[:7], [0.3, 0.7]), plain.predict(X[:7], [0.3, 0.7]), atol=1e-4)


class TestBadInput:
    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"levels": 0}, r"'levels' parameter of QuantileFunctionRegressor must be an int in \[1, inf\)"),
            ({"levels": [0.5, 0.2]}, "must be increasing"),
            ({"levels": [0.0, 0.5]}, r"must hold numbers in \(0, 1\)"),
            ({"quadrature": "simpson"}, "'quadrature' parameter of QuantileFunctionRegressor must be one of"),
            ({"intercept": -1.0}, "'intercept' parameter"),
            ({"non_crossing": "yes"}, "'non_crossing' parameter"),
            ({"lam": 0.0}, "'lam' parameter"),
            ({"coupling": np.eye(2)}, "'channels' parameter of IntegralOperator must have shape"),
        ],
    )
    def test_parameters(self, params, message):
        X, y = data(20)
        with pytest.raises(ValueError, match=message):
            QuantileFunctionRegressor(**params).fit(X, y)

    def test_calls(self):
        X, y = data(20)
        model = QuantileFunctionRegressor(levels=3).fit(X, y)
        for wrong in (-0.1, 1.1, [0.5, 2.0], [], [[0.5]]):
            with pytest.raises(ValueError, match=r"quantiles must hold numbers in \[0, 1\]"):
                model.predict(X, wrong)
        with pytest.raises(TypeError, match="quantiles must hold numbers"):
            model.predict(X, "median")
        with pytest.raises(ValueError, match="'coverage' parameter"):
            model.predict_interval(X, 80)
        with pytest.raises(ValueError, match="'n_samples' parameter"):
            model.sample(X, 0)
        with pytest.raises(ValueError, match="the same number of samples"):
            model.score(X, y[:5])
        with pytest.raises(TypeError, match="must be a scalar kernel of the inputs"):
            QuantileFunctionRegressor(fenchel.kernels.Separable()).fit(X, y)
        with pytest.raises(TypeError, match="does not take a grid"):
            fenchel.path(QuantileFunctionRegressor(), X, y, [1.0], grid=[0.0, 1.0])
