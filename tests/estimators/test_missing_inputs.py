"""Missing inputs of a search: medians and indicators, as when they are computed beforehand."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.utils import get_tags

import fenchel
from fenchel import (
    ConformalRegressor,
    CostSensitiveClassifier,
    LearnedMetricRegressor,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    QuantileFunctionRegressorCV,
    RobustRefit,
    StructuredPredictor,
    StructuredPredictorCV,
)
from fenchel.kernels import Completed, Gaussian, Linear

COSTS = {CostSensitiveClassifier: (0.5,)}


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(70, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2]]) + 0.05 * rng.normal(size=(70, 2))
    X[rng.random(70) < 0.2, 1] = np.nan
    X[rng.random(70) < 0.1, 2] = np.nan
    return X, Y


@pytest.mark.parametrize("settings", [{}, {"leaves": False}, {"losses": ["square"]}])
def test_a_search_is_that_on_medians_and_indicators(sample, settings):
    X, Y = sample
    imputer = SimpleImputer(strategy="median", add_indicator=True).fit(X)
    model = OperatorKernelRegressorCV(**settings).fit(X, Y)
    by_hand = OperatorKernelRegressorCV(**settings).fit(imputer.transform(X), Y)
    new = X[::-1] + 0.1
    new[0, 0] = np.nan  # in a column that was complete
    assert_allclose(model.predict(new), by_hand.predict(imputer.transform(new)), rtol=0, atol=1e-9)
    assert model.best_lam_ == pytest.approx(by_hand.best_lam_)
    assert model.search_["gaps"][0] == [1, 2]
    assert model.duality_gap_ <= model.tol


def test_a_plain_fit_with_a_kernel_from_the_data(sample):
    X, Y = sample
    imputer = SimpleImputer(strategy="median", add_indicator=True).fit(X)
    model = OperatorKernelRegressor("auto", lam=1e-2).fit(X, Y)
    by_hand = OperatorKernelRegressor("auto", lam=1e-2).fit(imputer.transform(X), Y)
    assert_allclose(model.predict(X), by_hand.predict(imputer.transform(X)), atol=1e-10)


def test_frames_files_and_bands(sample, tmp_path):
    X, Y = sample
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).astype("Float64")
    model = OperatorKernelRegressorCV().fit(frame, Y)
    fenchel.save(model, tmp_path / "model.skops")
    assert_array_equal(fenchel.load(tmp_path / "model.skops").predict(frame), model.predict(frame))
    band = ConformalRegressor(coverage=0.8, method="cv+").fit(frame, Y).predict_interval(frame)
    assert np.mean(band.contains(Y)) > 0.7


def test_gaps_that_are_new(sample):
    X, Y = sample
    whole, weights = np.nan_to_num(X), np.arange(len(X)) % 3
    for model, y in [
        (OperatorKernelRegressorCV(), Y),
        (OperatorKernelRegressor("auto"), Y),
        (QuantileFunctionRegressorCV(), Y[:, 0]),
        (StructuredPredictorCV(), (Y > 0).astype(int)),
    ]:
        model.fit(whole, y, sample_weight=weights)
        medians = np.median(np.repeat(whole, weights, axis=0), axis=0)
        new = np.where(np.isnan(X), medians, X)
        assert_array_equal(model.predict(X), model.predict(new))


def test_refits_meet_gaps_that_they_have_not_seen(rng):
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    X[7, 1] = np.nan
    whole = OperatorKernelRegressorCV().fit(np.delete(X, 7, axis=0), np.delete(y, 7))
    y[7] = whole.predict(X)[7] + 20  # the fits that are compared leave this sample out
    model = RobustRefit(OperatorKernelRegressorCV(), trim=0.05).fit(X, y)
    assert np.all(np.isfinite(model.predict(X))) and np.isfinite(model.errors_["trimmed"])


def test_given_kernels_and_metrics_need_complete_inputs(sample):
    X, Y = sample
    with pytest.raises(ValueError, match="X must be finite"):
        OperatorKernelRegressorCV("gaussian").fit(X, Y)
    with pytest.raises(ValueError, match="X must be complete with a metric"):
        OperatorKernelRegressorCV(metric=np.ones(3)).fit(X, Y)
    with pytest.raises(ValueError, match="X must be complete"):
        LearnedMetricRegressor().fit(X, Y)
    with pytest.raises(ValueError, match="X must be finite"):
        OperatorKernelRegressorCV().fit(np.where(np.isnan(X), np.inf, X), Y)


def test_the_kernel_by_itself(sample):
    X, _ = sample
    kernel = Completed(Linear()).resolve(X)
    images = SimpleImputer(strategy="median", add_indicator=True).fit_transform(X)
    assert_allclose(kernel(X), images @ images.T, atol=1e-12)
    with pytest.raises(ValueError, match="The medians of Completed depend on the training sample"):
        Completed(Gaussian())(X, X)


@pytest.mark.parametrize(
    "model", [StructuredPredictorCV(), QuantileFunctionRegressorCV()], ids=lambda m: type(m).__name__
)
def test_other_searches(sample, model, tmp_path):
    X, Y = sample
    y = (Y > 0).astype(int) if isinstance(model, StructuredPredictorCV) else Y[:, 0]
    imputer = SimpleImputer(strategy="median", add_indicator=True).fit(X)
    fitted, by_hand = clone(model).fit(X, y), clone(model).fit(imputer.transform(X), y)
    assert fitted.search_["gaps"][0] == [1, 2] and fitted.best_lam_ == pytest.approx(by_hand.best_lam_)
    assert_allclose(fitted.predict(X), by_hand.predict(imputer.transform(X)), atol=1e-6)
    assert fitted.duality_gap_ <= model.tol and get_tags(fitted).input_tags.allow_nan
    fenchel.save(fitted, tmp_path / "model.skops")
    assert_array_equal(fenchel.load(tmp_path / "model.skops").predict(X), fitted.predict(X))


def test_plain_predictors_with_a_kernel_from_the_data(sample):
    X, Y = sample
    imputed = SimpleImputer(strategy="median", add_indicator=True).fit_transform(X)
    for model, y in [
        (StructuredPredictor("auto"), (Y > 0).astype(int)),
        (LossTrickPredictor("auto", task_loss="hamming"), (Y > 0).astype(int)),
        (QuantileFunctionRegressor("auto", lam=1e-2), Y[:, 0]),
        (CostSensitiveClassifier("auto"), Y[:, 0] > 0),
    ]:
        predictions = [clone(model).fit(rows, y).predict(rows, *COSTS.get(type(model), ())) for rows in (X, imputed)]
        assert_allclose(*predictions, atol=1e-6)
