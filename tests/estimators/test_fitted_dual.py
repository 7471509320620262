"""The values between data and solver: a training set, a fitted dual, the result of a search."""

import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from fenchel import FunctionalRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.estimators.fitted_dual import FITTED, fit_dual
from fenchel.estimators.search import SEARCHED, Search, squared_distance
from fenchel.estimators.training_set import encode
from fenchel.estimators.validation import DualSettings
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Separable
from fenchel.losses import EpsilonSVR, Huber, Square
from fenchel.representations import Euclidean, GramFactor
from fenchel.solvers import APGD, Auto, Status

N, LAM, TOL = 30, 1e-2, 1e-10


@pytest.fixture
def sample(rng):
    X = rng.uniform(-1, 1, (N, 2))
    return X, np.hstack([np.sin(3 * X), X[:, :1] * X[:, 1:]]) + 0.1 * rng.standard_normal((N, 3))


@pytest.fixture
def settings():
    return DualSettings.of(OperatorKernelRegressor(), "square")


def ridge(X, Y, weights, new):
    """Return predictions of weighted kernel ridge regression, by the normal equations."""
    root = np.sqrt(weights)[:, None]
    K = Gaussian(1.0)(X)
    duals = root * np.linalg.solve(root * K * root.T + LAM * weights.sum() * np.eye(len(X)), root * Y)
    return Gaussian(1.0)(new, X) @ duals


def encoded(sample, settings, representation=None, **options):
    X, Y = sample
    return encode(X, Y, Separable(Gaussian(1.0)), representation or Euclidean(), settings, **options)


class TestTrainingSet:
    def test_it_is_a_value(self, sample, settings):
        training_set = encoded(sample, settings)
        with pytest.raises(FrozenInstanceError):
            training_set.X = None

    def test_samples_of_weight_zero_are_left_out(self, sample, settings):
        weights = np.arange(N) % 3.0
        training_set = encoded(sample, settings, sample_weight=weights)
        assert (training_set.n_given, training_set.n_samples) == (N, 20)
        assert_array_equal(training_set.index, np.flatnonzero(weights))
        assert_array_equal(training_set.counts, weights[weights > 0])
        rows = training_set.given(training_set.targets)
        assert_array_equal(rows, np.where(weights[:, None] > 0, sample[1], 0))

    def test_a_problem_of_any_loss_and_lam(self, sample, settings):
        training_set = encoded(sample, settings)
        problem = training_set.problem(Huber(0.1), 0.3)
        assert problem.lam == 0.3
        assert repr(problem.loss) == repr(Huber(0.1))
        assert_array_equal(problem.targets, sample[1])

    def test_a_loss_of_single_values_needs_some(self, sample, settings):
        X, Y = sample
        training_set = encoded((X, Y @ Y.T), settings, GramFactor())
        with pytest.raises(IncompatibleError, match="needs point values"):
            training_set.problem(Huber(p=1), LAM)
        pointwise = DualSettings.of(OperatorKernelRegressor(), Huber(p=1))
        with pytest.raises(IncompatibleError, match="needs point values"):
            encoded((X, Y @ Y.T), pointwise, GramFactor())


class TestFittedDual:
    @pytest.mark.parametrize("weights", [np.ones(N), np.arange(N) % 3.0], ids=["equal", "some zero"])
    def test_ridge_regression(self, sample, settings, weights, rng):
        fitted = fit_dual(encoded(sample, settings, sample_weight=weights), Square(), LAM, Auto(), TOL)
        new = rng.uniform(-1, 1, (7, 2))
        assert_allclose(fitted.predict_coordinates(new), ridge(*sample, weights, new), rtol=0, atol=1e-8)
        assert fitted.status is Status.CONVERGED and fitted.certificate.relative_gap <= TOL
        assert fitted.duals.coef.shape == (N, 3)
        assert_array_equal(fitted.duals.support, np.flatnonzero(weights))
        assert fitted.duals.outlier_score is None

    def test_the_certificate_is_that_of_its_predictions(self, sample, settings):
        fitted = fit_dual(encoded(sample, settings), EpsilonSVR(0.1), LAM, Auto(), TOL)
        residuals = np.linalg.norm(sample[1] - fitted.predict_coordinates(sample[0]), axis=1)
        norm = np.sum(fitted.duals.coef * fitted.predict_coordinates(sample[0])) / N
        primal = np.mean(np.maximum(residuals - 0.1, 0)) + norm / 2
        assert fitted.certificate.primal == pytest.approx(primal, rel=1e-9)
        assert len(fitted.duals.support) == len(fitted.expansion.X) < N
        assert fitted.duals.outlier_score.max() == 1

    def test_start(self, sample, settings):
        training_set = encoded(sample, settings)
        first = fit_dual(training_set, Huber(0.1), LAM, APGD(), TOL)
        again = fit_dual(training_set, Huber(0.1), LAM, APGD(), TOL, first.solution.duals)
        assert again.solution.n_iter == 0 < first.solution.n_iter


class TestSearch:
    def test_errors_are_those_of_refits(self, sample, settings):
        X, Y = sample
        search = Search("a test", [Square(), Huber(0.2)], [1e-3, LAM], KFold(3), "mean", TOL)
        training_set = encoded(sample, settings)
        folds = search.folds(training_set)
        result = search(training_set, folds, squared_distance(training_set))
        refits = np.zeros((2, 2, 3))
        for i, loss in enumerate(search.losses):
            for j, lam in enumerate(search.lams):
                for k, test in enumerate(folds):
                    train = np.setdiff1d(np.arange(N), test)
                    part = fit_dual(encoded((X[train], Y[train]), settings), loss, lam, Auto(), TOL)
                    squares = np.sum((Y[test] - part.predict_coordinates(X[test])) ** 2, axis=1)
                    refits[i, j, k] = squares.mean()
        assert_allclose(result.fold_errors, refits, rtol=1e-4)
        assert_allclose(result.cv_errors, result.fold_errors.mean(axis=2))
        assert result.best == np.unravel_index(np.argmin(refits.mean(axis=2)), (2, 2))

    def test_every_fitted_attribute_of_the_best_estimator_is_declared(self, sample):
        model = OperatorKernelRegressorCV(lams=[LAM], losses=[Huber(0.1)]).fit(*sample)
        best = {name for name in vars(model.best_estimator_) if name.endswith("_") and not name.startswith("_")}
        assert best <= set(FITTED)
        assert {name for name in vars(model) if name.endswith("_")} == best | set(SEARCHED)

    def test_a_refit_leaves_no_attribute_of_another_loss(self, sample):
        model = OperatorKernelRegressorCV(lams=[LAM], losses=[Huber(0.1)]).fit(*sample)
        assert hasattr(model, "outlier_score_")
        assert not hasattr(model.set_params(losses=["square"]).fit(*sample), "outlier_score_")

    def test_its_warning_points_at_the_call(self, sample):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            OperatorKernelRegressorCV(lams=[1e-12], losses=[Huber(1e-3)], tol=1e-30).fit(*sample)
        assert caught and {warning.category for warning in caught} == {ConvergenceWarning}
        assert {warning.filename for warning in caught} == {__file__}


def test_curves_of_weight_zero_have_no_outlying_points(rng):
    """They took over the gaps of the first curve."""
    X, Y, weights = rng.standard_normal((12, 2)), rng.standard_normal((12, 6)), np.ones(12)
    Y[0, 2], Y[5, 4], weights[3] = np.nan, np.nan, 0
    scores = FunctionalRegressor(loss=Huber(0.1, p=1)).fit(X, Y, sample_weight=weights).point_outlier_score_
    assert_array_equal(np.argwhere(np.isnan(scores)), [[0, 2], [5, 4]])
    assert_array_equal(scores[3], np.zeros(6))
