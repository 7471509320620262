"""Logarithms of skewed outputs: their likelihood, means back in the units of the outputs, and where they are chosen."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from fenchel import (
    ConformalRegressor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    OutlierReport,
    load,
    save,
)
from fenchel.app.pages.summary import model_page
from fenchel.app.tables import TableRegressor
from fenchel.losses import Huber
from fenchel.model.logarithms import Logarithms


def skewed(n, seed=0, noise=0.3, slope=1.5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, np.exp(slope * f + noise * rng.standard_normal(n)), f


def of(y, weights=None):
    return Logarithms.of(y.reshape(len(y), -1), np.ones(len(y)) if weights is None else weights)


class TestLogarithms:
    def test_rate_has_the_largest_normal_likelihood(self):
        """The density of y is that of a normal t times the derivative of t, on a fine grid of rates."""
        y = skewed(200)[1]
        rates = np.geomspace(0.2, 500, 4000) / y.std()
        logs = [np.log1p(rate * (y - y.min())) for rate in rates]
        likelihood = [
            np.sum(norm.logpdf(t, t.mean(), t.std())) + np.sum(np.log(rate) - t)
            for t, rate in zip(logs, rates, strict=True)
        ]
        assert_allclose(of(y).rates, rates[np.argmax(likelihood)], rtol=0.01)

    def test_weights_count_and_units_and_signs_do_not_matter(self):
        y, weights = skewed(60)[1], np.random.default_rng(1).integers(1, 4, 60)
        for values in (y, 3e5 + 1e4 * y, -1e-7 * y):
            found, repeated = of(values, weights), of(np.repeat(values, weights))
            assert_allclose(found.rates, repeated.rates, rtol=1e-5)
            assert_allclose(found.encode(values[:, None]), of(y, weights).encode(y[:, None]), rtol=1e-4)
            assert found.signs[0] == np.sign(values[1] - values[0]) * np.sign(y[1] - y[0])

    def test_means_by_hand(self):
        """Values e - 1 and e ** 3 - 1 have the logarithms 1 and 3, and their mean is that of the logarithm 2 +- 1."""
        rest = (np.array([0.0]), np.array([1.0]), np.array([9.0]), np.array([[-1.0], [1.0]]))
        logs, values = Logarithms(np.array([1.0]), *rest), np.array([[np.e - 1], [np.e**3 - 1]])
        assert_allclose(logs.encode(values), [[1.0], [3.0]])
        assert_allclose(logs.decode(np.array([[2.0]])), np.mean(values)[None, None])
        assert_allclose(logs.decode(np.array([[-3.0]])), [[-3.0]])  # linear below the origin
        assert_allclose(logs.decode(np.array([[50.0]])), [[np.expm1(9.0)]])  # no larger than the largest of a sample

    def test_encoding_is_undone(self, rng):
        Y = np.column_stack([skewed(50)[1], 1000 * rng.standard_normal(50), -skewed(50, 1)[1]])
        logs = of(Y)
        np.testing.assert_array_equal(logs.is_used, [True, False, True])
        assert_allclose(logs.restored(logs.encode(Y)), Y, rtol=1e-9, atol=1e-12)
        low = Y - [[9.0, 0.0, -9.0]]
        assert_allclose(logs.restored(logs.encode(low)), low, rtol=1e-9)
        np.testing.assert_array_equal(logs.encode(Y)[:, 1], Y[:, 1])
        np.testing.assert_array_equal(logs.decode(Y)[:, 1], Y[:, 1])

    def test_constant_and_symmetric_outputs_stay(self, rng):
        assert not of(np.full(20, 3.0)).is_used.any()
        assert not of(rng.standard_normal(300)).is_used.any()


@pytest.fixture(scope="module")
def fitted():
    X, y, f = skewed(200)
    weights = np.random.default_rng(5).integers(1, 3, 200).astype(float)
    return X, y, f, weights, OperatorKernelRegressorCV(leaves=False).fit(X, y, sample_weight=weights)


class TestSearch:
    def test_predictions_are_means_in_the_units_of_the_outputs(self, fitted):
        X, y, _, weights, model = fitted
        X_new, _, f_new = skewed(2000, 7)
        mean = np.exp(1.5 * f_new + 0.3**2 / 2)
        found = np.mean((model.predict(X_new) - mean) ** 2)
        plain = OperatorKernelRegressorCV(leaves=False, scale=True).fit(X, y, sample_weight=weights)
        assert found < 0.7 * np.mean((plain.predict(X_new) - mean) ** 2)

    def test_certificate_is_that_of_the_logarithms(self, fitted):
        """Encoding the outputs by hand gives the same problem, and predictions are means over the errors."""
        X, y, _, weights, model = fitted
        best, logs = model.best_estimator_, model.best_estimator_.scale
        t = logs.encode(y[:, None])[:, 0]
        other = OperatorKernelRegressor(best.kernel, loss=best.loss, lam=best.lam, center=True, scale=True)
        other.fit(X, t, sample_weight=weights)
        assert_allclose(model.dual_coef_, other.dual_coef_, rtol=1e-6, atol=1e-9)
        assert model.duality_gap_ <= 1e-6
        found = np.mean([logs.restored((other.predict(X) + e)[:, None])[:, 0] for e in logs.errors[:, 0]], axis=0)
        assert_allclose(model.predict(X), found, rtol=1e-9)

    def test_gradient(self, fitted):
        X, model, step = fitted[0][:5], fitted[-1], 1e-3
        for k in range(3):
            shift = step * np.eye(3)[k]
            found = (model.predict(X + shift) - model.predict(X - shift)) / (2 * step)
            assert_allclose(model.gradient(X, almost_everywhere=True)[:, k], found, rtol=1e-4, atol=1e-6)

    def test_units(self, fitted):
        X, y, _, weights, model = fitted
        other = OperatorKernelRegressorCV(leaves=False).fit(X, 1e3 * y + 7, sample_weight=weights)
        assert_allclose((other.predict(X) - 7) / 1e3, model.predict(X), rtol=1e-4)

    def test_files_bands_and_reports(self, fitted, tmp_path):
        X, y, _, _, model = fitted
        save(model, tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))
        X_new, y_new, _ = skewed(1000, 3)
        for method, least in (("split", 0.6), ("cv+", 0.7)):
            band = ConformalRegressor(OperatorKernelRegressorCV(leaves=False), method=method, coverage=0.8)
            found = band.fit(X, y).predict_interval(X_new)
            assert np.mean((y_new >= found.lower.ravel()) & (y_new <= found.upper.ravel())) > least
        wrong = y.copy()
        wrong[3] *= 40
        refitted = OperatorKernelRegressor(**model.best_estimator_.get_params(deep=False)).fit(X, wrong)
        assert np.argmax(OutlierReport.of(refitted, X, wrong).scores) == 3

    def test_trials_of_both_races_are_told(self, fitted):
        """The trials of the logarithms follow those of the outputs, and the trees follow the race that has won."""
        X, y, _, _, model = fitted
        told = model.search_["logarithms"]
        assert told == sorted(told) and 0 < sum(told) < len(told)
        assert {len(values) for values in model.search_.values()} == {len(told)}
        found = OperatorKernelRegressorCV().fit(X, y)
        assert found.search_["logarithms"][-3:] == [1, 1, 1]
        assert found.search_["leaves"][-3:] == [0, 0.3, 2] and not any(found.search_["leaves"][:-3])
        lost = OperatorKernelRegressorCV().fit(X, np.random.default_rng(0).exponential(size=200))
        assert lost.logarithms_ is None and 1 in lost.search_["logarithms"]
        assert lost.search_["logarithms"][-3:] == [0, 0, 0]

    def test_tables_and_pages_say_so(self, fitted):
        X, y, f, _, model = fitted
        table = pd.DataFrame(np.c_[X, y, f], columns=[*"abc", "price", "rent"])
        found = TableRegressor(OperatorKernelRegressorCV(leaves=False), targets=["price", "rent"]).fit(table)
        (note,) = [note for note in found.notes_ if "logarithms" in note]
        assert note.endswith(": price")
        assert "logarithms of 1 outputs" in model_page(model) and note in model_page(found)
        assert not TableRegressor(OperatorKernelRegressorCV(leaves=False), targets=["rent"]).fit(table).notes_

    def test_outputs_of_all_kinds(self):
        """Units, signs, constants, gaps and copies: the logarithms are the same, or there are none."""
        X, y, _ = skewed(120)
        X_new = skewed(50, 9)[0]

        def predicted(y, X=X, **given):
            model = OperatorKernelRegressorCV(leaves=False).fit(X, y, **given)
            assert model.logarithms_ is not None
            return model.predict(X_new)

        plain = predicted(y)
        size = plain.std()
        for values, back in ((1e3 * y, 1e3), (1e100 * y, 1e100), (1e-100 * y, 1e-100)):
            assert_allclose(predicted(values) / back, plain, atol=1e-5 * size)
        assert_allclose(predicted(y - 50) + 50, plain, atol=1e-5 * size)
        both = predicted(np.column_stack([y, np.full(120, 3.0)]))
        assert_allclose(both, np.column_stack([plain, np.full(50, 3.0)]), atol=1e-5 * size)
        counts = np.random.default_rng(1).integers(0, 4, 120)
        copies = predicted(np.repeat(y, counts), np.repeat(X, counts, axis=0))
        assert_allclose(predicted(y, sample_weight=counts.astype(float)), copies, atol=1e-5 * size)
        for row, value in ((np.argmax(y), 1e6), (np.argmin(y), -1e3)):  # of no weight
            weights, wild = (np.arange(120) != row).astype(float), np.where(np.arange(120) == row, value, y)
            kept = predicted(np.delete(y, row), np.delete(X, row, axis=0))
            assert_allclose(predicted(wild, sample_weight=weights), kept, atol=1e-5 * size)

    def test_missing_outputs_groups_and_tables(self):
        X, y, f = skewed(200)
        rng = np.random.default_rng(0)
        Y = np.column_stack([y, f + 0.2 * rng.standard_normal(200)])
        gaps = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
        model = OperatorKernelRegressorCV(leaves=False).fit(X, gaps, groups=np.arange(200) // 2)
        np.testing.assert_array_equal(model.best_estimator_.scale.is_used, [True, False])
        assert np.mean((model.predict(X)[:, 0] - np.exp(1.5 * f)) ** 2) < 0.1 * np.var(y)
        table = pd.DataFrame(np.c_[X, Y], columns=[*"abc", "price", "rent"])
        found = TableRegressor(OperatorKernelRegressorCV(leaves=False), targets=["price", "rent"]).fit(table)
        assert_allclose(found.predict(table), OperatorKernelRegressorCV(leaves=False).fit(X, Y).predict(X), rtol=1e-6)

    @pytest.mark.parametrize("seed", range(3))
    def test_nothing_is_transformed_where_it_does_not_help(self, seed):
        X, _, f = skewed(200, seed)
        rng = np.random.default_rng(seed)
        plain = OperatorKernelRegressorCV(leaves=False).fit(X, f + 0.3 * rng.standard_normal(200))
        noise = OperatorKernelRegressorCV(leaves=False).fit(X, f + 0.5 * rng.exponential(size=200))
        assert plain.best_estimator_.scale in (True, "robust")
        assert noise.best_estimator_.scale in (True, "robust")  # skewed errors, of a mean that is none

    def test_wrong_targets_are_not_skewed_ones(self):
        X, _, f = skewed(200)
        y = f + 2
        y[np.random.default_rng(0).permutation(200)[:20]] *= 10
        model = OperatorKernelRegressorCV(leaves=False).fit(X, y)
        assert isinstance(model.best_loss_, Huber)
        assert model.best_estimator_.scale == "robust"
