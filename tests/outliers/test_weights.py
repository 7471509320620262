"""Reports and refits of weighted fits: weights are repetitions in the fits, and weight zero is removal."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import (
    FunctionalRegressor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    OutlierReport,
    RobustRefit,
    load,
    save,
)
from fenchel.datasets import make_functional
from fenchel.kernels import Gaussian
from fenchel.outliers.held_out_residuals import held_out_residuals


@pytest.fixture
def sample():
    """Return inputs, outputs of which two are wrong, and weights 1 and 2."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(40)
    y[[3, 20]] += [1.5, -1.5]
    return X, y, rng.integers(1, 3, 40).astype(float)


def twice(rows, weights):
    """Return rows that are repeated as often as their weights say."""
    return np.repeat(rows, weights.astype(int), axis=0)


@pytest.mark.parametrize("loss", ["square", "huber"])
@pytest.mark.parametrize("cv", [None, 40])
def test_weights_are_repetitions_that_are_held_out_together(sample, loss, cv):
    X, y, weights = sample
    machine = OperatorKernelRegressor(Gaussian(0.7), loss=loss, lam=1e-3, tol=1e-10)
    model = machine.fit(X, y, sample_weight=weights)
    report = OutlierReport.of(model, X, y, cv=cv or 40, sample_weight=weights)
    many, rows, labels = (twice(part, weights) for part in (X, y, np.arange(40)))
    repeated = OperatorKernelRegressor(Gaussian(0.7), loss=loss, lam=1e-3, tol=1e-10).fit(many, rows)
    wanted = OutlierReport.of(repeated, many, rows, cv=cv or 40, groups=labels)
    first = np.unique(labels, return_index=True)[1]
    assert_allclose(report.residuals, wanted.residuals[first], atol=1e-5)
    assert_allclose(report.expected_sizes, wanted.expected_sizes[first], rtol=1e-3)
    assert np.max(np.abs(report.residuals - OutlierReport.of(model, X, y, cv=cv or 40).residuals)) > 1e-3


@pytest.mark.parametrize("model", [OperatorKernelRegressor(Gaussian(0.7), lam=1e-3, center=False), Ridge(0.1)])
def test_held_out_residuals_are_those_of_weighted_refits(sample, model):
    X, y, weights = sample
    fitted = model.fit(X, y, sample_weight=weights)
    found = held_out_residuals(fitted, X, y, 40, weights=weights).values[:, 0]
    for i in (0, 3, 17):
        rest = np.delete(np.arange(40), i)
        alone = model.fit(X[rest], y[rest], sample_weight=weights[rest])
        assert_allclose(found[i], y[i] - alone.predict(X[[i]])[0], atol=1e-8)


@pytest.mark.parametrize("is_gram", [False, True])
def test_samples_of_weight_zero_are_judged_and_change_nothing(sample, is_gram):
    X, y, weights = sample
    weights[[5, 20, 30]] = 0.0
    rest, others = np.flatnonzero(weights), np.flatnonzero(weights == 0)
    inputs = np.exp(-((X - X.T) ** 2)) if is_gram else X
    machine = OperatorKernelRegressor("precomputed" if is_gram else Gaussian(0.7), loss="huber", lam=1e-3, tol=1e-9)
    report = OutlierReport.of(machine.fit(inputs, y, sample_weight=weights), inputs, y, sample_weight=weights)
    known = inputs[np.ix_(rest, rest)] if is_gram else X[rest]
    alone = OutlierReport.of(
        machine.fit(known, y[rest], sample_weight=weights[rest]), known, y[rest], sample_weight=weights[rest]
    )
    assert_allclose(report.residuals[rest], alone.residuals, atol=1e-5)
    assert_allclose(report.scores[rest], alone.scores, rtol=1e-3)
    assert_allclose(report.p_values[rest], alone.p_values, rtol=1e-2)
    assert_allclose(report.conformal_p_values[rest], alone.conformal_p_values)
    new = alone.of_new(inputs[np.ix_(others, rest)] if is_gram else X[others], y[others])
    assert_allclose(report.scores[others], new.scores, rtol=1e-3)
    assert_allclose(report.residuals[others], new.residuals.reshape(3, 1), atol=1e-5)
    assert_allclose(report.conformal_p_values[others], new.conformal_p_values)
    assert np.isfinite(report.scores).all() and len(report.table()) == 40
    assert not is_gram or report.of_new(inputs[:3][:, rest], y[:3]).scores.shape == (3,)


def test_new_samples_are_not_compared_with_those_of_weight_zero(sample):
    X, y, weights = sample
    weights[:15] = 0.0
    y[:15] += 100.0
    model = OperatorKernelRegressor(Gaussian(0.7), lam=1e-3).fit(X, y, sample_weight=weights)
    report = OutlierReport.of(model, X, y, sample_weight=weights)
    assert report.of_new(X[[20]], y[[20]] + 50.0).conformal_p_values[0] == 1 / 26
    assert set(report.ranking[:15].tolist()) == set(range(15))
    again = report.of_new(X[:15], y[:15])
    assert_allclose(again.of_new(X[[20]], y[[20]] + 50.0).conformal_p_values, 1 / 26)


def test_weights_of_curves_with_weight_zero_and_a_mask():
    data = make_functional(40, 10, noise=0.1, random_state=0)
    weights = np.where(np.arange(40) < 4, 0.0, 1.0 + np.arange(40) % 2)
    fitted = np.arange(40) < 35
    model = FunctionalRegressor(lam=1e-3).fit(data.X[fitted], data.Y[fitted], sample_weight=weights[fitted])
    report = OutlierReport.of(model, data.X, data.Y, fitted=fitted, sample_weight=weights)
    plain = data.Y[~fitted] - model.predict(data.X[~fitted])
    assert_allclose(report.residuals[~fitted], plain) and np.isfinite(report.scores).all()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (make_pipeline(StandardScaler(), Ridge(0.1)), "ridge__sample_weight"),
        (GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1]}, cv=3), "ridge__sample_weight"),
    ],
)
def test_weights_reach_the_last_step_of_a_pipeline(sample, model, name):
    X, y, weights = sample
    report = OutlierReport.of(model.fit(X, y, **{name: weights}), X, y, cv=40, sample_weight=weights)
    rest = np.arange(1, 40)
    scaler = StandardScaler().fit(X[rest])
    alone = Ridge(0.1).fit(scaler.transform(X[rest]), y[rest], sample_weight=weights[rest])
    assert_allclose(report.residuals[0], y[0] - alone.predict(scaler.transform(X[:1]))[0], atol=1e-10)


def test_a_regressor_without_weights_is_refused(sample):
    X, y, weights = sample
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight in its fit"):
        OutlierReport.of(KNeighborsRegressor().fit(X, y), X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight in its fit"):
        RobustRefit(Ridge(), KNeighborsRegressor()).fit(X, y, sample_weight=weights)
    model = Ridge().fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(40,\), one weight for each sample. Got"):
        OutlierReport.of(model, X, y, sample_weight=weights[:3])
    with pytest.raises(ValueError, match="finite non-negative numbers"):
        OutlierReport.of(model, X, y, sample_weight=-weights)
    with pytest.raises(ValueError, match=r"needs at least 10 samples\. Got n_samples = 5"):
        OutlierReport.of(model, X, y, sample_weight=np.where(np.arange(40) < 5, 1.0, 0.0))


def test_a_refit_with_weights_is_one_of_the_samples_that_weigh(sample, tmp_path):
    X, y, weights = sample
    weights[[5, 30]] = 0.0
    y[5] += 1e3
    rest = np.flatnonzero(weights)
    machine = OperatorKernelRegressor(Gaussian(0.7), loss="huber", lam=1e-3)
    model = RobustRefit(machine).fit(X, y, sample_weight=weights)
    alone = RobustRefit(machine).fit(X[rest], y[rest], sample_weight=weights[rest])
    assert_allclose(model.predict(X), alone.predict(X))
    assert_array_equal(model.left_out_[rest], alone.left_out_)
    assert_array_equal(model.is_outlier_[rest], alone.is_outlier_)
    assert model.left_out_[[5, 30]].all() and not model.is_outlier_[[5, 30]].any() and model.is_outlier_[[3, 20]].all()
    assert np.isnan(model.report_.scores[[5, 30]]).all() and (model.report_.p_values[[5, 30]] == 1).all()
    assert np.max(np.abs(model.predict(X) - RobustRefit(machine).fit(X[rest], y[rest]).predict(X))) > 1e-4
    gram = np.exp(-((X - X.T) ** 2))
    pairwise = RobustRefit(OperatorKernelRegressor("precomputed", loss="huber", lam=1e-3))
    pairwise.fit(gram, y, sample_weight=weights)
    assert pairwise.predict(gram[:3]).shape == (3,) and pairwise.n_features_in_ == 40
    pytest.importorskip("skops.io")
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.report_.p_values, model.report_.p_values)


def test_the_fits_are_compared_by_weighted_means(sample):
    X, y, weights = sample
    model = RobustRefit(Ridge(0.1), cv=40).fit(X, y, sample_weight=weights)
    found = held_out_residuals(Ridge(0.1).fit(X, y, sample_weight=weights), X, y, 40, weights=weights).values[:, 0]
    assert_allclose(model.errors_["all"], np.average(np.abs(found), weights=weights))
    equal, none = (RobustRefit(Ridge(0.1), cv=40).fit(X, y, sample_weight=w).errors_ for w in (np.ones(40), None))
    assert equal == pytest.approx(none)


def test_a_refit_in_the_order_of_time_holds_out_blocks():
    """Neighbours in time that are alike, wrong ones as well, do not confirm each other."""
    rng = np.random.default_rng(1)
    sample = np.repeat(np.arange(30), 4)
    X = rng.uniform(-2, 2, (30, 2))[sample] + 0.01 * rng.standard_normal((120, 2))
    y = 0.02 * rng.standard_normal(120) + np.where(np.isin(sample, [4, 20]), 1.5, 0.0)
    days = np.datetime64("2026-01-01") + sample
    search = OperatorKernelRegressorCV(Gaussian(0.05), losses=["square"])
    model = RobustRefit(search, trim=None).fit(X, y, order=days)
    assert model.is_outlier_[np.isin(sample, [4, 20])].all()
    assert not RobustRefit(search, trim=None).fit(X, y).is_outlier_[np.isin(sample, [4, 20])].any()
    with pytest.raises(ValueError, match="Pass either groups or order, not both"):
        RobustRefit(search).fit(X, y, order=days, groups=sample)
