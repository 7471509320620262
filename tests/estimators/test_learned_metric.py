"""The learned metric: what it finds, what it does not depend on, and when the plain metric is kept."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold

from fenchel import FunctionalRegressorCV, LearnedMetricRegressor, OperatorKernelRegressorCV
from fenchel.approximations import Nystrom
from fenchel.estimators.metric_rounds import MetricData, outer_product
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Projected
from fenchel.search.race import search_kernel

FAST = OperatorKernelRegressorCV(losses=["square"], cv=2)
DIRECTION = np.array([1.0, -2.0, 0.0, 2.0, 0.0, 0.0]) / 3


def sample(n=120, d=6, seed=0):
    """Return inputs of which the second and the fourth column matter, and two outputs in different units."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n, d))
    Y = np.stack([np.sin(4 * X[:, 1]), 100 * X[:, 1] * X[:, 3]], axis=1)
    return X, Y + np.std(Y, axis=0) * 0.05 * random.normal(size=Y.shape)


@pytest.fixture(scope="module")
def fitted():
    return LearnedMetricRegressor(max_rounds=2).fit(*sample())


def test_relevant_columns_are_found(fitted):
    assert fitted.best_round_ > 0
    assert fitted.relevances_.shape == fitted.metric_.shape == (6,)
    assert_allclose(np.sum(fitted.relevances_), 1.0, rtol=1e-12)
    assert set(np.argsort(fitted.relevances_)[-2:]) == {1, 3}
    assert np.sum(fitted.relevances_[[1, 3]]) > 0.9
    X, Y = sample(200, seed=1)
    assert 1 - fitted.score(X, Y) < 0.7 * (1 - OperatorKernelRegressorCV().fit(*sample()).score(X, Y))


def test_the_round_of_the_least_held_out_error_is_kept_and_every_fit_is_certified(fitted):
    history = fitted.history_
    assert history[fitted.best_round_] == min(history) <= history[0]
    assert all(later < earlier for earlier, later in pairwise(history[: fitted.best_round_ + 1]))
    assert len(fitted.gaps_) == fitted.best_round_ + 1
    assert max(fitted.gaps_) <= 1e-6 and fitted.best_estimator_.duality_gap_ <= 1e-6


def test_units_of_columns_do_not_matter():
    (X, Y), units = sample(100), 10 ** np.array([-3.0, 2.0, 0.0, 3.0, 1.0, -1.0])
    one, other = (LearnedMetricRegressor(FAST, max_rounds=1).fit(X * factor, Y) for factor in (1.0, units))
    assert one.best_round_ == 1
    assert_allclose(other.predict(X * units), one.predict(X), rtol=0, atol=1e-5 * np.std(Y))
    assert_allclose(other.relevances_, one.relevances_, rtol=0, atol=1e-6)
    assert_allclose(other.metric_ * units**2, one.metric_, rtol=1e-4)


def test_a_direction_is_found():
    X, _ = sample(100)
    model = LearnedMetricRegressor(FAST, metric="full", max_rounds=3).fit(X, np.sin(3 * X @ DIRECTION))
    assert model.metric_.shape == (6, 6)
    values, vectors = np.linalg.eigh(model.metric_)
    assert abs(vectors[:, -1] @ DIRECTION) > 0.99 and values[-1] > 10 * values[-2] >= 0


def test_noise_and_no_rounds_leave_the_default():
    X, Y = sample(40)
    model = LearnedMetricRegressor(max_rounds=0).fit(X, Y)
    assert model.best_round_ == 0 and len(model.history_) == 1
    assert_allclose(model.predict(X), OperatorKernelRegressorCV().fit(X, Y).predict(X), rtol=1e-12)
    assert_allclose(model.metric_, 1 / np.var(X, axis=0), rtol=1e-12)


def test_the_outer_product_is_the_mean_over_the_sample():
    X, Y = sample(30)
    counts = np.arange(1.0, 31.0)
    data = MetricData(X, Y, counts, None, False, "full", {})
    model = data.first_round().model
    J, step = [], 1e-5
    for move in step * np.eye(6):
        J.append((model.predict(X + move) - model.predict(X - move)) / (2 * step))
    moved = np.stack(J, axis=2) * data.scale
    expected = np.einsum("i,ipd,ipe->de", counts / counts.sum(), moved, moved)
    assert_allclose(outer_product(data, model.model_), expected, rtol=1e-3, atol=1e-3 * np.max(expected))


@pytest.mark.parametrize(
    "metric", [np.array([1.0, 2.0, 0.0, 0.5, 1.0, 1.0]), np.random.default_rng(0).normal(size=(6, 3))]
)
def test_the_search_takes_distances_of_the_metric(metric):
    X, Y = sample(30)
    Y = Y - np.mean(Y, axis=0)
    search = search_kernel(X, Y, metric=metric)
    assert "Projected" in repr(search.kernel)
    K, errors = search.kernel(X), []
    for i in range(30):
        others = np.delete(np.arange(30), i)
        ridge = KernelRidge(alpha=29 * search.lam, kernel="precomputed").fit(K[np.ix_(others, others)], Y[others])
        errors.append(np.sum((Y[i] - ridge.predict(K[i : i + 1, others])) ** 2))
    assert_allclose(search.error, np.mean(errors), rtol=1e-6)


def test_thin_problems_curves_and_weights():
    X, Y = sample(90)
    thin = LearnedMetricRegressor(clone(FAST).set_params(approximation=Nystrom(40)), max_rounds=1)
    assert np.sum(thin.fit(X, Y).relevances_[[1, 3]]) > 0.6
    t = np.linspace(0, 1, 6)
    curves = np.sin(4 * X[:, 1:2] + t)
    model = LearnedMetricRegressor(FunctionalRegressorCV(cv=2, losses=["square"]), max_rounds=1, cv=KFold(2))
    model.fit(X, curves, np.repeat([1.0, 0.0], [80, 10]), grid=t)
    assert np.argmax(model.relevances_) == 1
    assert model.predict(X[:3], grid=[0.3]).shape == (3, 1)
    assert model.gradient(X[:3], almost_everywhere=True).shape == (3, 6, 6)


def test_other_libraries(xp):
    X, Y = sample(40)
    model, expected = (LearnedMetricRegressor(FAST, max_rounds=1, cv=2) for _ in range(2))
    model.fit(xp.asarray(X), xp.asarray(Y))
    assert type(model.predict(xp.asarray(X))) is type(xp.asarray(X))
    assert_allclose(model.relevances_, expected.fit(X, Y).relevances_, rtol=1e-6)


def test_arguments():
    X, Y = sample(20)
    with pytest.raises(IncompatibleError, match="kernel='auto'"):
        LearnedMetricRegressor(OperatorKernelRegressorCV("gaussian")).fit(X, Y)
    with pytest.raises(ValueError, match="'metric' parameter of LearnedMetricRegressor"):
        LearnedMetricRegressor(metric="diag").fit(X, Y)
    with pytest.raises(ValueError, match="'cv' parameter of LearnedMetricRegressor"):
        LearnedMetricRegressor(cv=1).fit(X, Y)
    with pytest.raises(IncompatibleError, match="needs vectors"):
        LearnedMetricRegressor(FunctionalRegressorCV(cv=2)).fit(X[:, :, None], Y)
    with pytest.raises(IncompatibleError, match="'metric' parameter needs kernel='auto'"):
        OperatorKernelRegressorCV("gaussian", metric=np.ones(6)).fit(X, Y)
    with pytest.raises(ValueError, match=r"metric must hold finite numbers.*Got shape \(5,\)"):
        OperatorKernelRegressorCV(metric=np.ones(5)).fit(X, Y)
    with pytest.raises(ValueError, match="'matrix' parameter of Projected"):
        Projected(search_kernel(X, Y).kernel, [np.nan])(X)


class TestMissingOutputs:
    def test_rounds_are_fitted_to_the_observed_values(self):
        """Gaps that were read as zeros, the mean, left errors that no metric reduces."""
        X, Y = sample(100)
        rng = np.random.default_rng(1)
        gaps = np.where(rng.uniform(size=Y.shape) < 0.5, np.nan, Y)
        gaps[np.isnan(gaps).all(axis=1), 0] = Y[np.isnan(gaps).all(axis=1), 0]
        model = LearnedMetricRegressor(FAST, max_rounds=2).fit(X, gaps)
        assert set(np.argsort(model.relevances_)[-2:]) == {1, 3}
        assert min(model.history_) < 0.5 * model.history_[0]

    def test_curves_with_gaps(self):
        X, _ = sample(60)
        rng, t = np.random.default_rng(1), np.linspace(0, 1, 8)
        Y = 3 + np.sin(4 * X[:, 1:2] + t)
        regressor = FunctionalRegressorCV(losses=["square"], cv=2)
        whole = LearnedMetricRegressor(regressor, max_rounds=1).fit(X, Y)
        gaps = np.where(rng.uniform(size=Y.shape) < 0.5, np.nan, Y)
        gaps[np.isnan(gaps).all(axis=1)] = 3.0
        model = LearnedMetricRegressor(regressor, max_rounds=1).fit(X, gaps)
        assert model.relevances_[1] > 0.9
        assert model.history_[-1] < 0.1 * whole.history_[0] + whole.history_[-1]

    @pytest.mark.filterwarnings("ignore:.*have no output:fenchel.exceptions.DataWarning")
    @pytest.mark.parametrize("cv", [3, KFold(3)], ids=repr)
    def test_samples_without_outputs_have_weight_zero(self, cv):
        X, Y = sample(60)
        weights = np.ones(60)
        weights[[4, 59]] = 0
        gaps = np.where(weights[:, None] > 0, Y, np.nan)
        one, other = (
            LearnedMetricRegressor(FAST, max_rounds=1, cv=cv).fit(X, targets, sample_weight=given)
            for targets, given in ((gaps, None), (Y, weights))
        )
        assert_allclose(one.history_, other.history_, rtol=1e-6)
        assert_allclose(one.predict(X), other.predict(X), rtol=0, atol=1e-5 * np.std(Y))


def test_samples_of_a_group_are_held_out_together():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(25), 4)
    X = random.uniform(-1, 1, (25, 3))[labels] + 0.01 * random.normal(size=(100, 3))
    y = random.normal(size=25)[labels]  # nothing to learn but which group a sample is of
    alone, together = (LearnedMetricRegressor(FAST, max_rounds=1).fit(X, y, groups=g) for g in (None, labels))
    assert alone.history_[0] < 0.2 < 0.8 < together.history_[0]
    renamed = LearnedMetricRegressor(FAST, max_rounds=1).fit(
        X, y, groups=np.array(list("zyxwvutsrqponmlkjihgfedcb"))[labels]
    )
    assert_allclose(renamed.history_, together.history_, rtol=1e-6)


def test_times_are_blocks():
    X, Y = sample(100)
    times = np.random.default_rng(1).permutation(100)
    blocks = LearnedMetricRegressor(FAST, max_rounds=1).fit(X, Y, groups=times // 10)
    assert LearnedMetricRegressor(FAST, max_rounds=1).fit(X, Y, order=times).history_ == blocks.history_
    with pytest.raises(ValueError, match="either groups or order"):
        LearnedMetricRegressor(FAST).fit(X, Y, groups=times, order=times)


def test_groups_of_samples_of_weight_zero_are_left_out():
    X, Y = sample(90)
    labels = np.arange(90) // 3
    weights = np.where(labels == 7, 0.0, 1.0)
    kept = weights > 0
    weighted = LearnedMetricRegressor(FAST, max_rounds=1).fit(X, Y, sample_weight=weights, groups=labels)
    fewer = LearnedMetricRegressor(FAST, max_rounds=1).fit(X[kept], Y[kept], groups=labels[kept])
    assert_allclose(weighted.predict(X), fewer.predict(X), rtol=0, atol=1e-4 * np.std(Y))
