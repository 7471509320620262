"""Estimators that find scales, kernel, loss and lam from the data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from fenchel import (
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    StructuredPredictorCV,
)
from fenchel.exceptions import IncompatibleError, ScaleWarning
from fenchel.kernels import Gaussian, Standardized
from fenchel.losses import EpsilonRidge, Huber, Square
from fenchel.model.training_set import TrainingSet
from fenchel.representations import GramFactor
from fenchel.search.search import squared_distance

UNITS = st.floats(-3, 3).map(lambda power: 10**power)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1] + 5, X[:, 1] * X[:, 2], X[:, 0] - 3])
    Y += 0.1 * rng.standard_normal((60, 3))
    return X[:45], Y[:45], X[45:], Y[45:]


def error(model, X, Y):
    return np.sqrt(np.mean((model.predict(X) - Y) ** 2) / np.var(Y, axis=0).mean())


class TestUnits:
    @given(inputs=st.tuples(UNITS, UNITS, UNITS), outputs=st.tuples(UNITS, UNITS, UNITS))
    @pytest.mark.parametrize("losses", ["auto", [Huber("auto")]], ids=str)
    def test_predictions_do_not_depend_on_units(self, table, losses, inputs, outputs):
        X, Y, X_new, _ = table
        reference = _fitted(losses, X, Y).predict(X_new)
        rescaled = OperatorKernelRegressorCV(losses=losses).fit(X * inputs, Y * outputs)
        assert_allclose(rescaled.predict(X_new * inputs) / outputs, reference, rtol=1e-6, atol=1e-6)

    @given(inputs=st.tuples(UNITS, UNITS, UNITS), unit=UNITS)
    def test_plain_regressor(self, table, inputs, unit):
        X, Y, X_new, _ = table
        model = OperatorKernelRegressor("auto", center=True, scale=True, loss=Huber("auto"), tol=1e-10)
        reference = model.fit(X, Y).predict(X_new)
        assert_allclose(model.fit(X * inputs, Y * unit).predict(X_new * inputs) / unit, reference, rtol=1e-6, atol=1e-6)


class TestUnitsOfCurves:
    @given(inputs=st.tuples(UNITS, UNITS), output=UNITS, time=UNITS)
    def test_predictions_do_not_depend_on_units(self, curves, inputs, output, time):
        X, Y, grid, reference = curves
        model = FunctionalRegressorCV().fit(X * inputs, Y * output, grid=grid * time)
        assert_allclose(model.predict(X * inputs) / output, reference.predict(X), rtol=1e-6, atol=1e-6)

    @given(outputs=st.tuples(UNITS, UNITS))
    def test_output_channels(self, curves, outputs):
        X, Y, grid, _ = curves
        two = np.stack([Y, Y[:, ::-1] ** 2], axis=2)
        reference = FunctionalRegressorCV(losses=["square"], output_kernel="gaussian").fit(X, two, grid=grid)
        model = FunctionalRegressorCV(losses=["square"], output_kernel="gaussian").fit(X, two * outputs, grid=grid)
        assert_allclose(model.predict(X) / outputs, reference.predict(X), rtol=1e-6, atol=1e-6)

    def test_vectors_have_a_scale_for_each_column(self, table):
        X, Y, X_new, _ = table
        units = np.array([1e3, 1e-3, 20.0])
        one, other = (FunctionalRegressorCV().fit(X * unit, Y).predict(X_new * unit) for unit in (1.0, units))
        assert_allclose(other, one, rtol=1e-6, atol=1e-8 * np.max(np.abs(one)))  # some values are near zero

    def test_plain_regressor(self, curves):
        X, Y = curves[:2]
        for center, scale in ((True, True), ("median", "robust")):
            model = FunctionalRegressor("auto", loss=Huber("auto"), center=center, scale=scale, tol=1e-9)
            one, other = (model.fit(X * unit, Y * 7).predict(X * unit) for unit in (1.0, [1e3, 1e-3]))
            assert_allclose(other, one, rtol=1e-6)
            assert model.scale_.shape == (1,)


class TestChoiceForCurves:
    def test_what_was_chosen(self, curves):
        model = curves[-1]
        assert isinstance(model.best_kernel_, Standardized)
        assert model.best_kernel_.by == "channel"
        assert set(model.search_["family"]) == {"gaussian", "exponential", "integral"}
        assert model.best_estimator_.output_kernel.gamma in (20.0, 10.0, 5.0, 2.0)
        assert model.score(*curves[:2]) > 0.9

    def test_curves_with_absent_values(self, curves):
        X, Y, grid, model = curves
        Y = Y.copy()
        Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
        missing = FunctionalRegressorCV().fit(X, Y, grid=grid)
        assert_allclose(missing.predict(X), model.predict(X), atol=0.3)

    def test_gross_errors(self, curves):
        X, Y, grid, _ = curves
        dirty = Y.copy()
        dirty[::8] += 40.0
        robust = FunctionalRegressorCV().fit(X, dirty, grid=grid)
        assert isinstance(robust.best_loss_, Huber)
        rest = np.arange(len(Y)) % 8 != 0
        assert np.mean((robust.predict(X) - Y)[rest] ** 2) < 0.15 * np.var(Y)

    def test_gross_errors_of_curves_with_gaps(self, curves):
        X, Y, grid, _ = curves
        wrong = np.arange(len(Y)) % 8 == 3
        dirty = Y + 40.0 * wrong[:, None]
        dirty[np.random.default_rng(1).random(Y.shape) < 0.3] = np.nan
        robust = FunctionalRegressorCV().fit(X, dirty, grid=grid)
        assert isinstance(robust.best_loss_, Huber)
        assert np.mean((robust.predict(X) - Y)[~wrong] ** 2) < 0.02 * np.var(Y)

    def test_a_threshold_does_not_count_gaps_as_errors(self, curves):
        X, Y, grid, _ = curves
        gaps = np.where(np.random.default_rng(0).random(Y.shape) < 0.5, np.nan, Y)
        model = FunctionalRegressor(loss=Huber("auto"), lam=1e-4)
        kappas = [model.fit(X, curves, grid=grid).loss_.kappa for curves in (Y, gaps)]
        assert 0.5 * kappas[0] < kappas[1] < 2 * kappas[0]

    @pytest.mark.parametrize("settings", [{}, {"losses": [Huber("auto", p=1)], "lams": [1e-4]}], ids=str)
    def test_the_size_of_gross_errors_does_not_matter(self, curves, settings):
        X, Y, grid, _ = curves
        wrong = np.arange(len(Y)) % 8 == 0
        near, far = (FunctionalRegressorCV(**settings).fit(X, Y + size * wrong[:, None], grid) for size in (40, 400))
        assert_allclose(far.best_loss_.kappa, near.best_loss_.kappa, rtol=0.05)
        for model in (near, far):
            assert np.mean((model.predict(X) - Y)[~wrong] ** 2) < 0.02 * np.var(Y)


@pytest.fixture(scope="module")
def curves():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 15)
    a, b = rng.standard_normal((2, 48, 1))
    X = np.stack([a * np.sin(3 * grid) + 0.1 * b, b * grid], axis=2)
    Y = a * np.cos(2 * grid) + np.sin(b * grid) + 0.05 * rng.standard_normal((48, 15))
    return X, Y, grid, FunctionalRegressorCV().fit(X, Y, grid=grid)


_MODELS: dict[str, OperatorKernelRegressorCV] = {}


def _fitted(losses, X, Y):
    """Return the model of the data as they are, fitted once."""
    if str(losses) not in _MODELS:
        _MODELS[str(losses)] = OperatorKernelRegressorCV(losses=losses).fit(X, Y)
    return _MODELS[str(losses)]


class TestChoice:
    def test_a_raw_table_is_learned(self, table):
        X, Y, X_new, Y_new = table
        units = [1e3, 1e-3, 50.0]
        model = OperatorKernelRegressorCV().fit(X * units, Y)
        assert error(model, X_new * units, Y_new) < 0.5
        assert model.score(X_new * units, Y_new) > 0.7

    def test_what_was_tried_is_reported(self, table):
        model = OperatorKernelRegressorCV().fit(*table[:2])
        assert isinstance(model.best_kernel_, Standardized)
        assert model.best_lam_ in model.lams_
        assert {len(values) for values in model.search_.values()} == {len(model.search_["error"])}
        assert set(model.search_["family"]) == {"gaussian", "exponential", "laplacian"}
        assert set(model.search_["robust"]) == {False, True}
        assert repr(model.best_estimator_.kernel) == repr(model.best_kernel_)
        assert OperatorKernelRegressorCV("gaussian").fit(*table[:2]).search_ is None

    def test_gross_errors_are_met_by_a_robust_loss(self, table):
        X, Y, X_new, Y_new = table
        clean = OperatorKernelRegressorCV().fit(X, Y)
        dirty = Y.copy()
        dirty[::9] += 30.0
        model = OperatorKernelRegressorCV().fit(X, dirty)
        assert isinstance(model.best_loss_, Huber)
        assert error(model, X_new, Y_new) < 1.5 * error(clean, X_new, Y_new)
        square = OperatorKernelRegressorCV(losses=["square"]).fit(X, dirty)
        assert error(square, X_new, Y_new) > 1.5 * error(model, X_new, Y_new)
        assert set(np.argsort(model.outlier_score_)[-5:]) <= set(np.flatnonzero(model.outlier_score_ == 1))
        assert np.all(model.outlier_score_[::9] == 1)

    def test_tails_that_inputs_explain_are_met_by_the_square_loss(self):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((300, 2))
        y = 8.0 * (X[:, 0] > 1.2) * (1 + rng.random(300)) + 0.3 * rng.standard_normal(300)
        model = OperatorKernelRegressorCV().fit(X, y)
        assert isinstance(model.best_loss_, Square)
        assert not np.any(np.isnan(model.cv_errors_))

    def test_named_parts_mean_what_they_meant(self, table):
        X, Y = table[:2]
        model = OperatorKernelRegressorCV(Gaussian(0.3), lams=[1e-2], losses=[Huber(1.0)]).fit(X, Y)
        plain = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(1.0), lam=1e-2).fit(X, Y)
        assert_allclose(model.predict(X), plain.predict(X), rtol=1e-9)
        assert model.center_ is None
        assert repr(model.best_kernel_) == repr(Gaussian(0.3))
        named = OperatorKernelRegressorCV(losses=[Huber(1.0)], lams=[1e-2]).fit(X, Y)
        assert_allclose(named.scale_, 1.0)  # kappa is in the unit of the outputs
        assert named.best_loss_.kappa == 1.0

    def test_weights_count_samples(self, table):
        X, Y, X_new, _ = table
        weights = np.ones(len(X))
        weights[:5] = 0
        found = OperatorKernelRegressorCV(cv="loo").fit(X, Y, sample_weight=weights).predict(X_new)
        assert_allclose(found, OperatorKernelRegressorCV(cv="loo").fit(X[5:], Y[5:]).predict(X_new), rtol=1e-6)


class TestRobustCriterion:
    def test_a_distance_counts_at_most_as_the_ceiling(self, table):
        X, Y, _, _ = table
        model = OperatorKernelRegressor("gaussian")
        task = model._task()
        training_set = TrainingSet.learn(task, task.sample(model, X, Y), model._spec())
        predictions = np.zeros(training_set.targets.rows.shape)
        squares = np.sum(np.asarray(training_set.targets.rows) ** 2, axis=1)
        ceiling = float(np.median(squares))
        assert_allclose(squared_distance(training_set, ceiling)(predictions), np.minimum(squares, ceiling))
        assert_allclose(squared_distance(training_set)(predictions), squares)

    def test_a_noisy_table_is_not_interpolated(self):
        """A trimmed mean does not see the worst predictions, and takes the lam at which the training error is null."""
        X, _, y, _ = train_test_split(*load_diabetes(return_X_y=True), random_state=2)
        assert OperatorKernelRegressorCV().fit(X, y).score(X, y) < 0.97
        assert OperatorKernelRegressorCV(aggregate="trimmed_mean").fit(X, y).score(X, y) > 0.999


class TestCenterAndScale:
    def test_is_a_fit_of_standardised_outputs(self, table):
        X, Y, X_new, _ = table
        mean, deviation = Y.mean(axis=0), Y.std(axis=0)
        model = OperatorKernelRegressor(Gaussian(0.3), center=True, scale=True, loss=Huber(0.5), lam=1e-2).fit(X, Y)
        plain = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.5), lam=1e-2).fit(X, (Y - mean) / deviation)
        assert_allclose(model.predict(X_new), plain.predict(X_new) * deviation + mean, rtol=1e-9)
        assert_allclose(model.center_, mean)
        assert_allclose(model.scale_, deviation)

    def test_numbers_as_outputs(self, table):
        X, Y, X_new, _ = table
        one = OperatorKernelRegressor(center=True).fit(X, Y[:, 0]).predict(X_new)
        assert_allclose(one, OperatorKernelRegressor(center=True).fit(X, Y[:, :1]).predict(X_new)[:, 0])

    def test_outputs_without_columns(self, table):
        X, Y = table[:2]
        with pytest.raises(IncompatibleError, match="center and scale are for vector outputs"):
            OperatorKernelRegressor(representation=GramFactor(), center=True).fit(X, Y @ Y.T)
        model = OperatorKernelRegressorCV(representation=GramFactor(), lams=[1e-3]).fit(X, Y @ Y.T)
        assert model.center_ is None

    def test_bad_values(self, table):
        with pytest.raises(ValueError, match="'center' parameter of OperatorKernelRegressor"):
            OperatorKernelRegressor(center="mean").fit(*table[:2])


class TestRelativeLosses:
    @pytest.mark.parametrize("loss", [Huber("auto"), Huber("quantile:0.7"), EpsilonRidge("scale:0.5")], ids=repr)
    def test_threshold_is_that_of_the_residuals_of_a_ridge(self, table, loss):
        X, Y = table[:2]
        model = OperatorKernelRegressor(Gaussian(0.3), loss=loss, lam=1e-2, tol=1e-9).fit(X, Y)
        residuals = Y - OperatorKernelRegressor(Gaussian(0.3), lam=1e-2, tol=1e-9).fit(X, Y).predict(X)
        assert repr(model.loss_)[:15] == repr(loss.resolve(residuals))[:15]

    def test_in_the_grid_of_a_search(self, table):
        X, Y = table[:2]
        model = OperatorKernelRegressorCV(Gaussian(0.3), losses=["square", Huber("auto")]).fit(X, Y)
        assert isinstance(model.losses_[1].kappa, float)


class TestWarnings:
    def test_every_sample_alone(self, table):
        X, Y = table[:2]
        with pytest.warns(ScaleWarning, match="The kernel matrix is nearly diagonal.*Use kernel='auto'"):
            OperatorKernelRegressor(Gaussian(1.0)).fit(1e3 * X, Y)

    def test_all_samples_the_same(self, table):
        X, Y = table[:2]
        with pytest.warns(ScaleWarning, match="The kernel matrix is nearly constant.*Use kernel='auto'"):
            OperatorKernelRegressor(Gaussian(1.0)).fit(1e-5 * X, Y)

    def test_nearly_all_samples_clipped(self, table):
        X, Y = table[:2]
        with pytest.warns(ScaleWarning, match="Huber\\(kappa=0.001\\) clips .* of the samples.*use 'auto'"):
            OperatorKernelRegressor(Gaussian(0.3), loss=Huber(1e-3), lam=1e-2).fit(X, Y)


class TestGridOfLam:
    def test_ours_is_extended(self, table):
        X = table[0]
        model = OperatorKernelRegressorCV(Gaussian(0.3), losses=["square"]).fit(X, X)  # without noise
        assert min(model.lams_) < 1e-6
        assert model.lams_ == sorted(model.lams_)
        assert model.cv_errors_.shape == (1, len(model.lams_))
        assert model.fold_errors_.shape == (1, len(model.lams_), 5)

    def test_that_of_the_user_is_not(self, table):
        X, Y = table[:2]
        with pytest.warns(ScaleWarning, match="largest of the grid.*Add larger values to lams, such as"):
            OperatorKernelRegressorCV(Gaussian(0.3), lams=np.logspace(-9, -5, 5), losses=["square"]).fit(X, Y)


class TestLabels:
    @given(inputs=st.tuples(UNITS, UNITS, UNITS))
    def test_units_of_inputs_do_not_matter(self, table, inputs):
        X, Y, X_new, _ = table
        labels = (np.median(Y, axis=0) < Y).astype(float)
        search = StructuredPredictorCV(decoder="threshold")
        one, other = (search.fit(X * unit, labels).embed(X_new * unit) for unit in (1.0, inputs))
        assert_allclose(other, one, rtol=1e-6, atol=1e-6)

    def test_raw_inputs(self, table):
        X, Y, X_new, Y_new = table
        units, middle = np.array([1e3, 1e-3, 20.0]), np.median(Y, axis=0)
        model = StructuredPredictorCV(decoder="threshold").fit(X * units, (middle < Y).astype(float))
        assert np.mean(model.predict(X_new * units) != (Y_new > middle)) < 0.25
        assert isinstance(model.best_loss_, Square)
        assert isinstance(model.best_kernel_, Standardized)
