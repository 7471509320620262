"""FunctionalRegressor: its numbers against plain NumPy, its certificate, weights, outliers, derivatives, score."""

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

from fenchel import FunctionalRegressor
from fenchel.datasets import as_curves, contaminate, make_functional
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import (
    Constant,
    FunctionalGaussian,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Scaled,
    Standardized,
)
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.model.curve_center import CurveCenter
from fenchel.model.training_set import TrainingSet
from fenchel.representations import Basis, Fourier
from fenchel.solvers import Auto, Status
from tests.estimators.curves import GRID, blanked, full_weights, objectives

TOL = 1e-6
LOSSES = [
    Square(),
    Huber(0.2),
    Huber(0.2, p=1),
    EpsilonRidge(0.2),
    EpsilonRidge(0.2, p=np.inf),
    EpsilonSVR(0.2),
    EpsilonSVR(0.2, p=1),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


@pytest.fixture
def sample(rng):
    """Twelve vectors, and curves on an uneven grid that depend on them."""
    X = rng.standard_normal((12, 2))
    return X, np.sin(X @ rng.standard_normal((2, len(GRID)))) + 0.3 * rng.standard_normal((12, len(GRID)))


def model(loss="square", **settings):
    defaults = {"kernel": Gaussian(0.5), "output_kernel": Laplacian(3.0), "lam": 1e-2}
    return FunctionalRegressor(loss=loss, **{**defaults, **settings})


class TestCertificate:
    @every_loss
    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_from_scratch(self, sample, loss, gaps, weighted, rng):
        """P, D and the gap from the dual coefficients alone; a loose tol leaves a gap that is no round-off."""
        X, Y = sample
        Y = blanked(Y) if gaps else Y
        counts = rng.uniform(0.3, 3, 12) if weighted else None
        fitted = model(loss, center=False, tol=1e-3).fit(X, Y, GRID, counts)
        primal, dual, predictions = objectives(fitted.dual_coef_, X, Y, loss, fitted.lam, counts)
        assert fitted.primal_objective_ == pytest.approx(primal, rel=1e-11)
        assert fitted.dual_objective_ == pytest.approx(dual, rel=1e-11)
        assert fitted.duality_gap_ == pytest.approx((primal - dual) / abs(primal), rel=1e-6, abs=1e-12)
        assert -1e-12 <= fitted.duality_gap_ <= 1e-3
        assert_allclose(fitted.predict(X), predictions, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("center", [True, "median"])
    def test_with_a_centre(self, sample, center):
        X, Y = sample
        fitted = model(Huber(0.2, p=1), center=center, tol=1e-3).fit(X, Y, GRID)
        middle = np.mean(Y, axis=0) if center is True else np.median(Y, axis=0)
        primal, dual, predictions = objectives(fitted.dual_coef_, X, Y - middle, fitted.loss, fitted.lam)
        assert fitted.primal_objective_ == pytest.approx(primal, rel=1e-11)
        assert fitted.duality_gap_ == pytest.approx((primal - dual) / primal, rel=1e-6)
        assert_allclose(fitted.predict(X), predictions + middle, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    def test_channels(self, rng, gaps):
        X, Y, B = rng.standard_normal((8, 2)), rng.standard_normal((8, len(GRID), 2)), [[2.0, 1.0], [1.0, 1.0]]
        Y = blanked(Y) if gaps else Y
        for loss in (Square(), Huber(0.3, p=1), EpsilonSVR(0.2)):
            fitted = model(loss, center=False, tol=1e-4, channels=B, scale=False).fit(X, Y, GRID)
            flat = Y.reshape(8, -1)
            primal, dual, predictions = objectives(fitted.dual_coef_, X, flat, loss, fitted.lam, channels=B)
            assert fitted.primal_objective_ == pytest.approx(primal, rel=1e-11)
            assert fitted.dual_objective_ == pytest.approx(dual, rel=1e-11)
            assert_allclose(fitted.predict(X), predictions.reshape(8, -1, 2), rtol=0, atol=1e-10)

    @pytest.mark.parametrize("loss", [*LOSSES, Huber(0.2, p=1.5)], ids=repr)
    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    def test_small_and_large_lam(self, loss, gaps):
        data = make_functional(25, 15, noise=0.1, random_state=0)
        Y = blanked(data.Y) if gaps else data.Y
        for lam in (1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0):
            fitted = FunctionalRegressor(loss=loss, lam=lam).fit(data.X, Y)
            assert fitted.duality_gap_ <= TOL
            assert fitted.status_.startswith("converged")

    def test_fitted_attributes(self, sample):
        X, Y = sample
        fitted = model(EpsilonRidge(0.5)).fit(X, Y, GRID)
        assert fitted.dual_coef_.shape == Y.shape
        assert_array_equal(fitted.support_, np.flatnonzero(np.any(fitted.dual_coef_ != 0, axis=1)))
        assert fitted.sparsity_ == pytest.approx(1 - len(fitted.support_) / 12)
        assert 0 < fitted.sparsity_ < 1
        assert_array_equal(fitted.grid_, GRID)
        assert fitted.representation_error_ == 0
        assert fitted.n_features_in_ == 2
        assert set(fitted.solver_info_) == {"solver", "reason", "stages"}
        assert fitted.n_iter_ >= 1
        assert not hasattr(fitted, "outlier_score_")
        assert not hasattr(fitted, "point_outlier_score_")


class TestPrediction:
    @pytest.mark.parametrize("representation", ["spline", "eigen", "fourier"])
    @pytest.mark.parametrize("center", [True, "median", False])
    def test_a_finer_grid_agrees_at_shared_points(self, representation, center):
        data = make_functional(20, 21, random_state=0)
        fitted = FunctionalRegressor(representation=representation, center=center).fit(data.X, data.Y)
        finer = fitted.predict(data.X, np.linspace(0, 1, 41))
        assert_allclose(finer[:, ::2], fitted.predict(data.X), rtol=0, atol=1e-10)
        assert_allclose(fitted.predict(data.X, [0.35]), finer[:, [14]], rtol=0, atol=1e-10)

    def test_gaps_are_filled(self):
        """Predictions are whole curves, near the truth where the training curves had gaps."""
        data = make_functional(60, 30, random_state=0)
        Y = blanked(data.Y, share=0.4)
        found = FunctionalRegressor(lam=1e-5).fit(data.X, Y).predict(data.X)
        assert found.shape == Y.shape
        hidden = np.isnan(Y)
        assert np.mean((found - data.Y)[hidden] ** 2) < 0.05 * np.var(data.Y[hidden])

    def test_in_blocks(self, sample, monkeypatch):
        from fenchel.model import expansion

        X, Y = sample
        fitted = model("huber").fit(X, Y, GRID)
        whole = fitted.predict(X)
        monkeypatch.setattr(expansion, "_BLOCK_BYTES", 8 * 12 * 5)  # five rows at a time
        assert_allclose(fitted.predict(X), whole, rtol=1e-12)

    def test_without_support_it_is_the_centre(self, sample):
        X, Y = sample
        fitted = model(EpsilonRidge(100.0)).fit(X, Y, GRID)
        assert len(fitted.support_) == 0
        assert_allclose(fitted.predict(X), np.tile(Y.mean(axis=0), (12, 1)), rtol=1e-13)

    @pytest.mark.parametrize("output_kernel", [Gaussian(5.0), Matern(0.5, nu=1.5), Gaussian(5.0) + Matern(0.4, nu=2.5)])
    @pytest.mark.parametrize("center", [True, False])
    def test_derivative(self, sample, output_kernel, center):
        X, Y = sample
        fitted = model(output_kernel=output_kernel, center=center).fit(X, Y, GRID)
        points, step = np.array([0.03, 0.27, 0.7, 1.21]), 1e-6
        found = fitted.predict(X, points, derivative=True)
        wanted = (fitted.predict(X, points + step) - fitted.predict(X, points - step)) / (2 * step)
        assert_allclose(found, wanted, rtol=0, atol=1e-5)
        assert np.max(np.abs(found)) > 0.1

    def test_derivative_on_a_basis(self):
        data = make_functional(20, 21, random_state=0)
        fitted = FunctionalRegressor(representation="fourier", center=False).fit(data.X, data.Y)
        points, step = np.array([0.1, 0.52]), 1e-6
        wanted = (fitted.predict(data.X, points + step) - fitted.predict(data.X, points - step)) / (2 * step)
        assert_allclose(fitted.predict(data.X, points, derivative=True), wanted, rtol=0, atol=1e-5)

    @pytest.mark.parametrize(
        "settings",
        [
            {"output_kernel": kernel}
            for kernel in (
                Gaussian(5.0),
                Matern(0.5, nu=2.5),
                Matern(0.7, nu=3.2),
                Matern(0.5, nu=math.inf),
                RationalQuadratic(0.4, 1.5),
                Scaled(Gaussian(5.0), 2.0) + Linear() * Matern(0.4, nu=2.5) + Constant(),
                Polynomial(degree=4, gamma=1.0),
                Polynomial(degree=1, gamma=1.0) + Standardized(Gaussian(2.0), [0.5], [0.4]),
            )
        ]
        + [{"representation": Fourier(5)}, {"representation": Fourier(5), "output_kernel": Gaussian(5.0)}],
        ids=repr,
    )
    def test_second_derivative(self, sample, settings):
        X, Y = sample
        fitted = FunctionalRegressor(**{"lam": 1e-2, "center": False} | settings).fit(X, Y, GRID)
        points, step = np.array([0.03, 0.27, 0.7, 1.21]), 1e-6
        found = fitted.predict(X, points, derivative=2)
        slopes = [fitted.predict(X, points + sign * step, derivative=1) for sign in (1, -1)]
        assert_allclose(found, (slopes[0] - slopes[1]) / (2 * step), rtol=1e-6, atol=1e-5)
        assert np.max(np.abs(found)) > 0.1
        assert_array_equal(fitted.predict(X, points, derivative=True), fitted.predict(X, points, derivative=1))

    def test_second_derivative_of_smooth_curves(self, rng):
        t, scores = np.linspace(0, 1, 60), 1 + rng.standard_normal((30, 1))
        waves = scores * np.sin(2 * np.pi * t)
        fitted = FunctionalRegressor(output_kernel=Gaussian(10.0), lam=1e-8).fit(scores, waves, t)
        wanted = -((2 * np.pi) ** 2) * waves
        inner = slice(5, -5)
        found = fitted.predict(scores, derivative=2)
        assert_allclose(found[:, inner], wanted[:, inner], atol=0.03 * np.max(np.abs(wanted)))

    def test_derivatives_that_are_not_there(self, sample):
        X, Y = sample
        with pytest.raises(ValueError, match="The 'derivative' parameter of predict must be one of"):
            model().fit(X, Y, GRID).predict(X, derivative=3)
        for kernel in (Laplacian(3.0), Matern(0.5, nu=0.5), Gaussian(1.0) + Laplacian(1.0)):
            with pytest.raises(IncompatibleError, match="no second derivative"):
                model(output_kernel=kernel).fit(X, Y, GRID).predict(X, derivative=2)
        waves = Basis(lambda t: np.stack([np.sin(t), np.cos(t)], axis=1), [1.0, 0.5], derivatives=lambda t: t)
        with pytest.raises(IncompatibleError, match="first derivatives only"):
            FunctionalRegressor(representation=waves).fit(X, Y, GRID).predict(X, derivative=2)

    def test_derivative_of_a_kernel_with_a_kink(self, sample):
        X, Y = sample
        message = r"Laplacian\(gamma=3\.0\) is not smooth.*output_kernel=Matern\(0\.13, nu"
        with pytest.raises(IncompatibleError, match=message):
            model().fit(X, Y, GRID).predict(X, derivative=True)


class TestWeights:
    @pytest.mark.parametrize("loss", [Square(), Huber(0.2), Huber(0.2, p=1), EpsilonSVR(0.2)], ids=repr)
    @pytest.mark.parametrize("center", [True, "median", False])
    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    def test_they_count_curves(self, sample, loss, center, gaps, rng):
        X, Y = sample
        Y = blanked(Y) if gaps else Y
        counts = rng.integers(0, 3, 12)
        counts[[0, 1]] = 0, 2
        index = np.repeat(np.arange(12), counts)
        weighted = model(loss, center=center, tol=1e-11).fit(X, Y, GRID, counts)
        repeated = model(loss, center=center, tol=1e-11).fit(X[index], Y[index], GRID)
        assert weighted.primal_objective_ == pytest.approx(repeated.primal_objective_, rel=1e-9)
        assert_allclose(weighted.predict(X), repeated.predict(X), rtol=0, atol=1e-5)
        assert np.all(weighted.dual_coef_[counts == 0] == 0)
        assert not np.any(np.isin(weighted.support_, np.flatnonzero(counts == 0)))

    def test_scores_of_absent_curves_are_zero(self, sample):
        X, Y = sample
        weights = np.ones(12)
        weights[4] = 0
        fitted = model(Huber(0.2, p=1)).fit(X, Y, GRID, weights)
        assert fitted.outlier_score_.shape == (12,)
        assert fitted.outlier_score_[4] == 0
        assert_array_equal(fitted.point_outlier_score_[4], np.zeros(len(GRID)))

    def test_missing_points_have_no_score_beside_absent_curves(self, sample):
        X, Y = sample
        Y, weights = blanked(Y), np.ones(12)
        weights[4] = 0
        fitted = model(Huber(0.2, p=1)).fit(X, Y, GRID, weights)
        scores = fitted.point_outlier_score_
        assert_array_equal(np.isnan(scores), np.isnan(Y) & (weights > 0)[:, None])
        assert_array_equal(scores[4], np.zeros(Y.shape[1]))  # it is not part of the fit

    def test_they_count_curves_for_the_default_kernel(self, sample):
        X, Y = sample
        counts = np.ones(12, dtype=int)
        counts[:6] = 3
        weighted = FunctionalRegressor().fit(X, Y, sample_weight=counts).predict(X)
        assert_allclose(weighted, FunctionalRegressor().fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
                        .predict(X), rtol=0, atol=1e-6)  # fmt: skip


class TestOutliers:
    @pytest.mark.parametrize("kind", ["label", "global"])
    def test_curves(self, kind):
        clean = make_functional(60, 25, random_state=0)
        data = contaminate(clean.Y, kind, 0.1, intensity=3.0, random_state=1)
        fitted = FunctionalRegressor(loss=Huber(0.2), lam=1e-4, center="median").fit(clean.X, data.Y)
        scores = fitted.outlier_score_
        assert scores.shape == (60,)
        assert np.all((scores >= 0) & (scores <= 1))
        assert np.all(scores[data.is_outlier] > 1 - 1e-4)  # clipped, up to tol
        assert roc_auc_score(data.is_outlier, scores) > 0.97
        assert_allclose(scores, np.linalg.norm(fitted.dual_coef_, axis=1) / 0.2, rtol=1e-10)
        assert not hasattr(fitted, "point_outlier_score_")

    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    def test_points(self, gaps):
        clean = make_functional(60, 25, random_state=0)
        data = contaminate(clean.Y, "local", 0.5, intensity=2.0, random_state=1)
        Y = blanked(data.Y) if gaps else data.Y
        fitted = FunctionalRegressor(loss=Huber(0.1, p=1), lam=1e-4, center="median").fit(clean.X, Y)
        scores, seen = fitted.point_outlier_score_, ~np.isnan(Y)
        assert scores.shape == Y.shape
        assert_array_equal(np.isnan(scores), ~seen)
        assert np.all((scores[seen] >= 0) & (scores[seen] <= 1))
        assert roc_auc_score(data.is_outlier_point[seen], scores[seen]) > 0.95
        assert_allclose(fitted.outlier_score_, np.nanmax(scores, axis=1), rtol=1e-12)
        # a score is the dual function over its bound, by hand
        found = np.abs(fitted.dual_coef_) / 0.1
        assert_allclose(scores[seen], (found / np.sqrt(full_weights(Y, np.linspace(0, 1, 25))))[seen], atol=1e-12)

    def test_points_of_channels(self, rng):
        X, Y = rng.standard_normal((15, 2)), 0.1 * rng.standard_normal((15, len(GRID), 2))
        Y[3, 4, 1], Y[5, 0, 0] = 30.0, np.nan
        scores = model(Huber(0.1, p=1), center=False).fit(X, Y, GRID).point_outlier_score_
        assert scores.shape == Y.shape
        assert scores[3, 4, 1] == pytest.approx(1.0, abs=1e-6)
        assert np.isnan(scores[5, 0, 0])
        assert np.sum(np.isnan(scores)) == 1

    def test_scores_of_an_earlier_loss_are_forgotten(self, sample):
        X, Y = sample
        fitted = model(Huber(0.2, p=1)).fit(X, Y, GRID)
        assert hasattr(fitted, "point_outlier_score_")
        fitted.set_params(loss="square").fit(X, Y, GRID)
        assert not hasattr(fitted, "outlier_score_")
        assert not hasattr(fitted, "point_outlier_score_")


class TestFloat32:
    @pytest.mark.parametrize("loss", [Square(), Huber(0.1, p=1)], ids=repr)
    def test_refined_in_float64_when_needed(self, loss):
        """With lam = 1e-8 no run in float32 gets to 1e-6; the fit does, and gives float32 back."""
        data = make_functional(15, 10, noise=0.1, random_state=0)
        X, Y = data.X.astype(np.float32), data.Y.astype(np.float32)
        fitted = FunctionalRegressor(loss=loss, lam=1e-8, tol=1e-6).fit(X, Y)  # no warning: they are errors
        assert fitted.duality_gap_ <= 1e-6
        assert fitted.dual_coef_.dtype == np.float64  # else it would be float32, as below
        predicted = fitted.predict(X)
        assert predicted.dtype == np.float32
        exact = FunctionalRegressor(loss=loss, lam=1e-8, tol=1e-6).fit(X.astype(float), Y.astype(float))
        assert fitted.primal_objective_ == pytest.approx(exact.primal_objective_, rel=1e-5)
        assert_allclose(predicted, exact.predict(X.astype(float)), rtol=0, atol=1e-3)

    def test_float32_alone_cannot(self):
        data = make_functional(15, 10, noise=0.1, random_state=0)
        X, Y = data.X.astype(np.float32), data.Y.astype(np.float32)
        model = FunctionalRegressor(lam=1e-8)
        task = model._task()
        problem = TrainingSet.learn(task, task.sample(model, X, Y), model._spec()).problem(Square(), model.lam)
        alone = Auto().solve(problem, tol=1e-6)
        assert alone.duals.dtype == np.float32
        assert alone.status is not Status.CONVERGED

    def test_kept_when_it_is_enough(self):
        data = make_functional(30, 20, random_state=0)
        X, Y = data.X.astype(np.float32), data.Y.astype(np.float32)
        fitted = FunctionalRegressor(loss=Huber(0.1), lam=1e-1, tol=1e-4).fit(X, Y)
        assert fitted.dual_coef_.dtype == fitted.predict(X).dtype == np.float32
        assert fitted.duality_gap_ <= 1e-4

    def test_the_dtype_is_that_of_the_inputs_of_predict(self):
        data = make_functional(20, 10, random_state=0)
        fitted = FunctionalRegressor().fit(data.X, data.Y)
        assert fitted.predict(data.X.astype(np.float32)).dtype == np.float32
        assert FunctionalRegressor().fit(data.X, data.Y.astype(np.float32)).predict(data.X).dtype == np.float64


class TestScore:
    def test_by_hand(self, sample):
        X, Y = sample
        fitted = model().fit(X, Y, GRID)
        weights = np.array([np.trapezoid(row, GRID) for row in np.eye(len(GRID))])
        error = np.sum(weights * (Y - fitted.predict(X)) ** 2)
        total = np.sum(weights * (Y - Y.mean(axis=0)) ** 2)
        assert fitted.score(X, Y, grid=GRID) == pytest.approx(1 - error / total, rel=1e-12)
        assert 0.1 < fitted.score(X, Y, grid=GRID) < 1

    def test_missing_values_do_not_count(self, sample, rng):
        X, Y = sample
        fitted = model().fit(X, Y, GRID)
        gaps, counts = blanked(Y), rng.uniform(0.5, 2, 12)
        weights = np.array([np.trapezoid(row, GRID) for row in np.eye(len(GRID))]) * counts[:, None] * ~np.isnan(gaps)
        mean = CurveCenter.of(as_curves(gaps, GRID), gaps[:, :, None], counts, "mean").values[:, 0]  # smooth, as in fit
        wanted = 1 - np.nansum(weights * (gaps - fitted.predict(X)) ** 2) / np.nansum(weights * (gaps - mean) ** 2)
        assert fitted.score(X, gaps, counts, GRID) == pytest.approx(wanted, rel=1e-12)

    def test_on_another_grid(self, sample):
        X, Y = sample
        fitted = model().fit(X, Y, GRID)
        points = np.array([0.2, 0.33, 0.9])
        assert fitted.score(X, fitted.predict(X, points), grid=points) == 1.0

    def test_constants(self, sample):
        X, Y = sample
        fitted = model().fit(X, Y, GRID)
        assert fitted.score(X[:1], fitted.predict(X[:1]), grid=GRID) == 1.0

    def test_constants_without_variance(self, sample):
        X, Y = sample
        fitted = model().fit(X, Y, GRID)
        assert fitted.score(X[:1], Y[:1], grid=GRID) == 0.0

    def test_points_drawn_at_random(self, rng):
        """The total variance is that around one mean curve, not around each value itself."""
        X = rng.standard_normal((30, 2))
        points = [np.sort(rng.random(5)) for _ in X]
        Y = [(t, np.sin(6 * t) + x[0]) for x, t in zip(X, points, strict=True)]
        assert 0.5 < model(output_kernel=Gaussian(20.0), lam=1e-4).fit(X, Y).score(X, Y) <= 1

    @pytest.mark.parametrize(
        ("y", "weights", "message"),
        [
            (np.ones((5, 8)), None, "must have the same number of samples. Got 12 and 5"),
            (np.ones((12, 8)), np.ones(5), "sample_weight must have shape"),
            (np.ones((12, 8, 2)), None, "channel"),
        ],
        ids=["samples", "weights", "channels"],
    )
    def test_bad_arguments(self, sample, y, weights, message):
        X, Y = sample
        with pytest.raises(ValueError, match=message):
            model().fit(X, Y, GRID).score(X, y, weights, GRID)


class TestScikitLearn:
    def test_clone_and_parameters(self):
        estimator = FunctionalRegressor(FunctionalGaussian(0.5), Gaussian(2.0), Huber(0.3, p=1), 1e-4, center="median")
        copy = clone(estimator)
        assert repr(copy) == repr(estimator)
        assert copy.get_params()["loss__kappa"] == 0.3
        assert copy.get_params()["output_kernel__gamma"] == 2.0
        copy.set_params(loss__p=2, kernel__gamma=1.0)
        assert (copy.loss.p, estimator.loss.p) == (2, 1)

    def test_fit_changes_no_parameter(self, sample):
        X, Y = sample
        copies = X.copy(), Y.copy(), GRID.copy()
        estimator = FunctionalRegressor(loss=Huber(0.3, p=1), representation="spline")
        before = repr(estimator.get_params())
        estimator.fit(X, Y, GRID).predict(X, GRID)
        assert repr(estimator.get_params()) == before
        for array, copy in zip((X, Y, GRID), copies, strict=True):
            assert_array_equal(array, copy)

    @pytest.mark.parametrize("representation", ["spline", "eigen", "fourier"])
    def test_pickle_and_same_bits(self, representation):
        data = make_functional(20, 21, random_state=0)
        fitted = FunctionalRegressor(loss="huber", representation=representation).fit(data.X, data.Y)
        again = clone(fitted).fit(data.X, data.Y)
        assert_array_equal(fitted.dual_coef_, again.dual_coef_)
        loaded, points = pickle.loads(pickle.dumps(fitted)), np.linspace(0, 1, 7)
        assert_array_equal(loaded.predict(data.X, points), fitted.predict(data.X, points))

    def test_grid_search(self):
        data = make_functional(24, 10, random_state=0)
        grid = {"loss__kappa": [0.1, 1.0], "lam": [1e-4, 1.0], "output_kernel__gamma": [1.0, 10.0]}
        search = GridSearchCV(FunctionalRegressor(output_kernel=Laplacian(), loss=Huber(p=1)), grid, cv=2)
        assert search.fit(data.X, data.Y).best_params_["lam"] == 1e-4

    def test_refit_on_other_data(self, sample):
        """Nothing of an earlier fit stays: other inputs, another grid, gaps and then none."""
        X, Y = sample
        fitted = model(Huber(0.2, p=1)).fit(X, blanked(Y), GRID)
        other = make_functional(20, 9, random_state=0)
        fitted.fit(other.X, other.Y)
        fresh = model(Huber(0.2, p=1)).fit(other.X, other.Y)
        assert_array_equal(fitted.predict(other.X), fresh.predict(other.X))
        assert not np.any(np.isnan(fitted.point_outlier_score_))

    def test_parts_by_name_and_instance(self, sample):
        X, Y = sample
        by_name = FunctionalRegressor("gaussian", "laplacian", "huber", representation="eigen", n_components=3)
        instance = FunctionalRegressor(
            Gaussian(), Laplacian(), Huber(), representation=by_name.fit(X, Y).representation_.__class__(3)
        )
        assert_array_equal(by_name.predict(X), instance.fit(X, Y).predict(X))
        assert by_name.dual_coef_.shape == (12, 3)
        assert 0 < by_name.representation_error_ < 1

    def test_the_default_kernels(self, sample):
        """A Gaussian of the mean squared difference with the median width, and a length of a tenth of the domain."""
        X, Y = sample
        distances = [np.sqrt(np.mean((X[i] - X[k]) ** 2)) for i in range(12) for k in range(i)]
        explicit = FunctionalRegressor(
            lambda A, B: np.exp(-np.mean((A[:, None] - B) ** 2, axis=2) / (2 * np.median(distances) ** 2)),
            lambda s, t: np.exp(-np.abs(s - t.T) / 0.13),
        )
        assert_allclose(
            FunctionalRegressor().fit(X, Y, GRID).predict(X), explicit.fit(X, Y, GRID).predict(X), atol=1e-9
        )
