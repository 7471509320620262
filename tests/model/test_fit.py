"""The values between data and prediction: a sample, a training set, a fit, a model, the result of a search."""

import warnings
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from fenchel import FunctionalRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonSVR, Huber, Square
from fenchel.model.fit import learn, solve
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet
from fenchel.model.vectors import Vectors
from fenchel.representations import GramFactor
from fenchel.search.search import Search, squared_distance
from fenchel.solvers import APGD, Status

N, LAM, TOL = 30, 1e-2, 1e-10


@pytest.fixture
def sample(rng):
    X = rng.uniform(-1, 1, (N, 2))
    return X, np.hstack([np.sin(3 * X), X[:, :1] * X[:, 1:]]) + 0.1 * rng.standard_normal((N, 3))


def spec(loss="square"):
    return Spec.of(OperatorKernelRegressor(lam=LAM, tol=TOL), loss)


def learned(X, Y, weights=None, loss="square", **parts):
    task = Vectors(Gaussian(1.0), **parts)
    return TrainingSet.learn(task, task.sample(OperatorKernelRegressor(), X, Y, weights), spec(loss))


def ridge(X, Y, weights, new):
    """Return predictions of weighted kernel ridge regression, by the normal equations."""
    root = np.sqrt(weights)[:, None]
    K = Gaussian(1.0)(X)
    duals = root * np.linalg.solve(root * K * root.T + LAM * weights.sum() * np.eye(len(X)), root * Y)
    return Gaussian(1.0)(new, X) @ duals


class TestTrainingSet:
    def test_it_is_a_value(self, sample):
        with pytest.raises(FrozenInstanceError):
            learned(*sample).targets = None

    def test_samples_of_weight_zero_are_left_out(self, sample):
        weights = np.arange(N) % 3.0
        training_set = learned(*sample, weights)
        kept = training_set.sample
        assert (kept.n_given, training_set.n_samples) == (N, 20)
        assert_array_equal(kept.index, np.flatnonzero(weights))
        assert_array_equal(kept.counts, weights[weights > 0])
        assert_array_equal(kept.given(training_set.targets.rows), np.where(weights[:, None] > 0, sample[1], 0))

    def test_a_problem_of_any_loss_and_lam(self, sample):
        problem = learned(*sample).problem(Huber(0.1), 0.3)
        assert problem.lam == 0.3
        assert repr(problem.loss) == repr(Huber(0.1))
        assert_array_equal(problem.targets, sample[1])

    def test_a_loss_of_single_values_needs_some(self, sample):
        X, Y = sample
        training_set = learned(X, Y @ Y.T, representation=GramFactor())
        with pytest.raises(IncompatibleError, match="needs point values"):
            training_set.problem(Huber(p=1), LAM)
        with pytest.raises(IncompatibleError, match="needs point values"):
            learned(X, Y @ Y.T, loss=Huber(p=1), representation=GramFactor())


class TestFit:
    @pytest.mark.parametrize("weights", [np.ones(N), np.arange(N) % 3.0], ids=["equal", "some zero"])
    def test_ridge_regression(self, sample, weights, rng):
        fit = solve(learned(*sample, weights), spec())
        new = rng.uniform(-1, 1, (7, 2))
        assert_allclose(fit.model().read(new), ridge(*sample, weights, new), rtol=0, atol=1e-8)
        assert fit.solution.status is Status.CONVERGED and fit.solution.certificate.relative_gap <= TOL
        assert fit.duals.coef.shape == (N, 3)
        assert_array_equal(fit.duals.support, np.flatnonzero(weights))
        assert fit.duals.outlier_score is None

    def test_the_certificate_is_that_of_its_predictions(self, sample):
        fit = solve(learned(*sample), spec(EpsilonSVR(0.1)))
        predictions = fit.expansion.coordinates(sample[0])
        norm = np.sum(fit.duals.coef * predictions) / N
        primal = np.mean(np.maximum(np.linalg.norm(sample[1] - predictions, axis=1) - 0.1, 0)) + norm / 2
        assert fit.solution.certificate.primal == pytest.approx(primal, rel=1e-9)
        assert len(fit.duals.support) == len(fit.expansion.X) < N
        assert fit.duals.outlier_score.max() == 1
        assert_allclose(fit.predictions, predictions, rtol=0, atol=1e-12)
        assert_allclose(fit.residuals, sample[1] - predictions, rtol=0, atol=1e-12)

    def test_start(self, sample):
        training_set, settings = learned(*sample), replace(spec(Huber(0.1)), solver=APGD())
        first = solve(training_set, settings)
        again = solve(training_set, settings, first.solution.duals)
        assert again.solution.n_iter == 0 < first.solution.n_iter

    @pytest.mark.parametrize("center", [True, "robust"])
    def test_a_model_reads_what_its_codec_encodes(self, sample, center):
        X, Y = sample
        task = Vectors(Gaussian(1.0), center=center, scale=True)
        model = learn(task, task.sample(OperatorKernelRegressor(), X, Y), spec()).model()
        assert_allclose(model.codec.decode(model.targets.rows), Y, rtol=1e-13)
        assert_allclose(model.codec.truth(Y[:4]), Y[:4], rtol=1e-13)
        estimator = OperatorKernelRegressor(Gaussian(1.0), lam=LAM, tol=TOL, center=center, scale=True)
        assert_array_equal(model.read(X), estimator.fit(X, Y).predict(X))


class TestSearch:
    def test_errors_are_those_of_refits(self, sample):
        X, Y = sample
        search = Search("a test", [Square(), Huber(0.2)], [1e-3, LAM], KFold(3), "mean", TOL)
        training_set = learned(X, Y)
        folds = search.folds(training_set)
        result = search(training_set, folds, squared_distance(training_set))
        refits = np.zeros((2, 2, 3))
        for i, loss in enumerate(search.losses):
            for j, lam in enumerate(search.lams):
                for k, test in enumerate(folds):
                    train = np.setdiff1d(np.arange(N), test)
                    part = solve(learned(X[train], Y[train]), replace(spec(), loss=loss, lam=lam))
                    refits[i, j, k] = np.sum((Y[test] - part.expansion.coordinates(X[test])) ** 2, axis=1).mean()
        assert_allclose(result.fold_errors, refits, rtol=1e-4)
        assert_allclose(result.cv_errors, result.fold_errors.mean(axis=2))
        assert result.best == np.unravel_index(np.argmin(refits.mean(axis=2)), (2, 2))

    def test_it_has_the_model_of_its_best_estimator(self, sample):
        model = OperatorKernelRegressorCV(lams=[LAM], losses=[Huber(0.1)]).fit(*sample)
        assert model.model_ is model.best_estimator_.model_

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
