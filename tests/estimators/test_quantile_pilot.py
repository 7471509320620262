"""Quantile functions with no scale to know: pilots, what is certified, units, outputs with values that recur."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import fenchel
from fenchel import OperatorKernelRegressor, QuantileFunctionRegressor, QuantileFunctionRegressorCV
from fenchel.estimators.quantile_pilot import Distribution, Scores, _fitted, pinball
from fenchel.kernels import Gaussian
from fenchel.metrics import coverage
from fenchel.model.training_set import TrainingSet
from fenchel.model.vectors import Vectors
from fenchel.search.race.ridge import Ridge

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
UNITS = st.floats(-3, 3).map(lambda power: 10**power)


def data(n, seed=0):
    """A location that bends and a spread that grows with another column; columns in odd units."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    location, spread = np.sin(3 * X[:, 0]), np.exp(X[:, 1]) / 2
    return X * [1e3, 1e-2], location + spread * rng.standard_normal(n), location, spread


class TestDefault:
    def test_true_quantiles_of_a_location_scale_family(self):
        X, y, location, spread = data(1000)
        model = QuantileFunctionRegressorCV().fit(X[:400], y[:400])
        true = location[400:, None] + spread[400:, None] * norm.ppf(LEVELS)
        found = model.predict(X[400:], LEVELS)
        errors = np.sqrt(np.mean((found - true) ** 2, axis=0))
        assert np.all(errors < [0.4, 0.3, 0.25, 0.3, 0.4])  # the spread is .59 on average, 1.36 at most
        assert 0.86 < coverage(y[400:], *model.predict_interval(X[400:], 0.9).T) < 0.94
        assert np.all(np.diff(found, axis=1) >= 0) and model.duality_gap_ <= 1e-6
        assert model.search_["error"] and model.best_lam_ in model.lams_

    def test_named_parts_mean_what_they_meant(self):
        X, y, _, _ = data(60)
        model = QuantileFunctionRegressorCV("gaussian", lams=[1e-2, 1e-1], levels=5).fit(X, y)
        assert model.pilot_ is None and model.search_ is None and not model.best_estimator_.non_crossing
        alone = QuantileFunctionRegressor("gaussian", lam=model.best_lam_, levels=5).fit(X, y)
        assert_allclose(model.predict(X, LEVELS), alone.predict(X, LEVELS), atol=1e-4)

    def test_a_pilot_with_a_given_kernel(self):
        X, y, _, _ = data(60)
        model = QuantileFunctionRegressorCV(Gaussian(1.0), lams=[0.1], levels=5, pilot=True).fit(X / [1e3, 1e-2], y)
        assert model.best_kernel_.gamma == 1.0 and model.search_ is None
        alone = QuantileFunctionRegressor(Gaussian(1.0), lam=0.1, levels=5, pilot=True, non_crossing=True)
        alone.fit(X / [1e3, 1e-2], y)
        assert_allclose(model.predict(X / [1e3, 1e-2]), alone.predict(X / [1e3, 1e-2]), atol=1e-6)

    def test_bad_values(self):
        X, y, _, _ = data(20)
        with pytest.raises(ValueError, match="'pilot' parameter of QuantileFunctionRegressorCV"):
            QuantileFunctionRegressorCV(pilot="robust").fit(X, y)
        with pytest.raises(ValueError, match="'pilot' parameter of QuantileFunctionRegressor "):
            QuantileFunctionRegressor(pilot="auto").fit(X, y)
        with pytest.raises(ValueError, match="y must have all outputs of a sample, or none"):
            QuantileFunctionRegressorCV().fit(X, np.column_stack([y, np.where(y > 0, y, np.nan)]))

    def test_save_and_load(self, tmp_path):
        X, y, _, _ = data(40)
        model = QuantileFunctionRegressorCV(levels=5).fit(X, y)
        fenchel.save(model, tmp_path / "model")
        assert_array_equal(fenchel.load(tmp_path / "model").predict(X, LEVELS), model.predict(X, LEVELS))


class TestUnits:
    @settings(max_examples=3)
    @given(inputs=st.tuples(UNITS, UNITS), unit=st.floats(-6, 6).map(lambda power: 10**power))
    def test_predictions_do_not_depend_on_units(self, inputs, unit):
        X, y, _, _ = data(50)
        reference = QuantileFunctionRegressorCV(levels=5).fit(X[:40], y[:40]).predict(X[40:], LEVELS)
        rescaled = QuantileFunctionRegressorCV(levels=5).fit(X[:40] * inputs, y[:40] * unit)
        assert_allclose(rescaled.predict(X[40:] * inputs, LEVELS) / unit, reference, rtol=1e-6, atol=1e-6)

    def test_outputs_have_units_of_their_own(self):
        X, y, _, _ = data(60)
        Y = np.stack([y, X[:, 0] / 1e3 + 0.1 * y], axis=1)
        model = QuantileFunctionRegressorCV(levels=5).fit(X, Y)
        rescaled = QuantileFunctionRegressorCV(levels=5).fit(X, Y * [1e-6, 1e4])
        found = rescaled.predict(X, LEVELS)
        assert found.shape == (60, 5, 2)
        assert_allclose(found / [1e-6, 1e4], model.predict(X, LEVELS), rtol=1e-6, atol=1e-6)


class TestCertificate:
    @pytest.mark.parametrize("weights", [None, np.arange(40) % 3], ids=["alone", "weighted"])
    def test_objective_from_predictions(self, weights):
        """P = mean pinball loss of the rest less h, h from predict, plus lam / 2 times the squared norm of h."""
        X, y, _, _ = data(40)
        model = QuantileFunctionRegressor(
            "auto", level_kernel=Gaussian(2.0), lam=0.05, levels=5, pilot=True, tol=1e-9
        ).fit(X, y, weights)
        counts = np.ones(40) if weights is None else weights.astype(float)
        pilot, levels, kept = model.pilot_, model.levels_, counts > 0
        columns = pilot.columns(X)
        h = (model.predict(X, levels)[:, :, None] - pilot.quantiles(columns, levels)) / pilot.scale(columns)
        rest = pilot.rest(y[kept, None], levels)
        losses = pinball(rest - h[kept], levels, model.level_weights_)[:, 0]
        duals = model.dual_coef_ * np.sqrt(model.level_weights_)
        norm2 = np.sum(counts[:, None] * duals * h[:, :, 0]) / (0.05 * np.sum(counts))
        primal = np.average(losses, weights=counts[kept]) + 0.05 / 2 * norm2
        assert primal == pytest.approx(model.primal_objective_, rel=1e-6)
        assert model.duality_gap_ <= 1e-9 and norm2 > 0

    def test_the_largest_lam_is_the_pilot(self):
        X, y, _, _ = data(40)
        model = QuantileFunctionRegressor("auto", lam=1e15, levels=5, pilot=True).fit(X, y)
        pilot = model.pilot_
        assert_array_equal(model.predict(X, LEVELS), pilot.quantiles(pilot.columns(X), LEVELS)[:, :, 0])


class TestPilot:
    @pytest.mark.parametrize("weights", [None, np.arange(12) % 4 + 1.0], ids=["alone", "weighted"])
    def test_left_out_predictions_are_those_of_the_other_samples(self, weights):
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((12, 2)), rng.standard_normal((12, 3))
        task, owner = Vectors(Gaussian(0.5)), OperatorKernelRegressor()
        training_set = TrainingSet.learn(task, task.sample(owner, X, Y, weights), owner._spec())
        fit = _fitted(Ridge.shared(training_set.ridge), Y)
        counts = np.ones(12) if weights is None else weights
        K = np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=2))
        everyone = _ridge(K, Y - fit.center, counts, fit.lam * np.sum(counts))
        assert_allclose(K @ fit.coef, K @ everyone, atol=1e-10)
        for i in range(12):
            kept = np.arange(12) != i
            total = fit.lam * np.sum(counts) * 11 / 12
            coef = _ridge(K[np.ix_(kept, kept)], (Y - fit.center)[kept], counts[kept], total)
            assert_allclose(fit.left_out[i], fit.center + K[i, kept] @ coef, atol=1e-10)

    def test_quantiles_of_a_distribution_function(self):
        """Steps where the sample has no value between thresholds, lines where it has."""
        steps = Distribution.of(np.array([0.0, 0.0, 1.0, 3.0]), np.ones(4))
        assert_array_equal(steps.ends[1:-1], [0.0, 1.0])
        assert_array_equal(steps.indicators(np.array([1.0])), [[0.0, 1.0]])
        found = steps.quantiles(np.array([[0.5, 0.75], [0.1, 1.2]]), np.array([0.1, 0.5, 0.6, 0.75, 0.9]))
        assert_array_equal(found, [[0, 0, 1, 1, 3], [0, 1, 1, 1, 1]])
        lines = Distribution(np.array([0.0, 2.0, 4.0]), np.array([True, True]))
        assert_allclose(lines.quantiles(np.array([[0.5]]), np.array([0.25, 0.5, 0.75])), [[1.0, 2.0, 3.0]])

    def test_normal_scores(self):
        y = np.array([3.0, 1.0, 3.0, 10.0])
        scores = Scores.of(y, np.ones(4))
        assert_allclose(scores.encode(y), norm.ppf([0.5, 0.125, 0.5, 0.875]))
        assert_allclose(scores.decode(scores.encode(y)), y)
        assert_allclose(scores.decode(np.array([-9.0, 9.0])), [1.0, 10.0])

    def test_samples_of_weight_zero_do_not_matter(self):
        X, y, _, _ = data(50)
        weights = np.ones(50)
        weights[40:] = 0
        wild = np.where(weights > 0, y, 1e6)
        model = QuantileFunctionRegressorCV(levels=5, cv=_folds(40)).fit(X, wild, weights)
        alone = QuantileFunctionRegressorCV(levels=5, cv=_folds(40)).fit(X[:40], y[:40])
        assert_allclose(model.predict(X, LEVELS), alone.predict(X, LEVELS), atol=1e-6)


class TestAtoms:
    def test_counts_are_predicted_as_counts(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 1, (300, 2))
        y = rng.poisson(3 * X[:, 0]).astype(float)
        model = QuantileFunctionRegressorCV().fit(X[:150], y[:150])
        found = model.predict(X[150:], LEVELS)
        assert np.all(np.isin(found, y))
        assert coverage(y[150:], found[:, 0], found[:, -1]) > 0.85

    def test_many_zeros(self):
        rng = np.random.default_rng(1)
        X = rng.uniform(-1, 1, (300, 1))
        y = np.where(rng.uniform(size=300) < 0.6, 0.0, np.exp(X[:, 0] + rng.standard_normal(300)))
        model = QuantileFunctionRegressorCV().fit(X[:150], y[:150])
        assert_array_equal(model.predict(X[150:], 0.05), 0.0)
        assert coverage(y[150:], *model.predict_interval(X[150:], 0.9).T) > 0.85

    @pytest.mark.parametrize("n", [20, 5])
    def test_a_constant_output(self, n):
        X = np.random.default_rng(0).standard_normal((n, 2))
        model = QuantileFunctionRegressorCV(levels=5).fit(X, np.full(n, 0.1))
        assert_array_equal(model.predict(X, LEVELS), 0.1)


def _ridge(K, Y, weights, mu):
    """Return coefficients of the minimiser of a weighted sum of squares plus mu times the squared norm."""
    return np.linalg.solve(K + np.diag(mu / weights), Y)


def _folds(n):
    order = np.random.default_rng(0).permutation(n)
    return [(np.setdiff1d(np.arange(n), part), part) for part in np.array_split(order, 4)]
