"""Masked entries and times are no numbers: never read as data."""

from datetime import date

import numpy as np
import pytest

from fenchel import (
    ConformalRegressor,
    FieldRegressor,
    FunctionalRegressor,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    StructuredPredictor,
)
from fenchel.exceptions import DataWarning
from fenchel.kernels import Gaussian
from fenchel.metrics import hamming_losses, pinball_loss

VECTORS = [OperatorKernelRegressor(), OperatorKernelRegressorCV("gaussian"), QuantileFunctionRegressor(levels=5)]
DAYS = np.arange(20).astype("datetime64[D]")


def masked(values, *place):
    found = np.ma.array(values, copy=True)
    found[place] = np.ma.masked
    return found


@pytest.fixture
def table(rng):
    X = rng.standard_normal((20, 2))
    return X, X[:, 0]


@pytest.mark.parametrize("model", [*VECTORS, FieldRegressor()], ids=lambda model: type(model).__name__)
def test_masked_inputs_are_missing(model, table):
    X, y = table
    with pytest.raises(ValueError, match=r"X must be finite. It contains NaN, the first at index \[3, 1\]"):
        model.fit(masked(X, 3, 1), y)


@pytest.mark.parametrize("model", [*VECTORS, FieldRegressor()], ids=lambda model: type(model).__name__)
def test_masked_weights_are_refused(model, table):
    with pytest.raises(ValueError, match=r"sample_weight must hold finite non-negative numbers\. Got a negative, NaN"):
        model.fit(*table, sample_weight=masked(np.ones(20), 3))


def test_masked_inputs_are_missing_in_predict(table):
    X, y = table
    with pytest.raises(ValueError, match=r"X must be finite. It contains NaN, the first at index \[3, 1\]"):
        OperatorKernelRegressor().fit(X, y).predict(masked(X, 3, 1))


@pytest.mark.parametrize("model", VECTORS[:2], ids=lambda model: type(model).__name__)
def test_masked_outputs_are_missing(model, table):
    X, y = table
    with pytest.warns(DataWarning, match="1 of 20 samples have no output"):
        found = model.fit(X, y=masked(y, 2)).predict(X)
    weights = np.where(np.arange(20) == 2, 0.0, 1.0)
    np.testing.assert_allclose(found, model.fit(X, y, weights).predict(X), rtol=0, atol=1e-9)


def test_masked_outputs_of_quantile_functions(table):
    X, y = table
    with pytest.warns(DataWarning, match="1 of 20 samples have no output"):
        found = QuantileFunctionRegressor(levels=5).fit(X, y=masked(y, 2)).predict(X, [0.5])
    weights = np.where(np.arange(20) == 2, 0.0, 1.0)
    alone = QuantileFunctionRegressor(levels=5).fit(X, y, weights)
    np.testing.assert_allclose(found, alone.predict(X, [0.5]), rtol=0, atol=1e-9)


def test_masked_points_of_curves_and_fields_are_gaps(rng):
    X, Y = rng.standard_normal((20, 2)), rng.standard_normal((20, 6))
    gaps = np.array(Y)
    gaps[4, 2] = np.nan
    for model in (FunctionalRegressor(), FieldRegressor()):
        one, other = model.fit(X, masked(Y, 4, 2)).predict(X), model.fit(X, gaps).predict(X)
        np.testing.assert_array_equal(one, other)


def test_a_mask_without_masked_entries_changes_nothing(table):
    X, y = table
    plain = OperatorKernelRegressor().fit(X, y).predict(X)
    np.testing.assert_array_equal(OperatorKernelRegressor().fit(np.ma.array(X), np.ma.array(y)).predict(X), plain)


@pytest.mark.parametrize("y", [DAYS, DAYS - DAYS[0], DAYS.astype(object), [date(2020, 1, 1 + i) for i in range(20)]])
@pytest.mark.parametrize("model", VECTORS, ids=lambda model: type(model).__name__)
def test_times_are_no_outputs(model, table, y):
    with pytest.raises(TypeError, match=r"y must hold numbers. Got dates, times or durations"):
        model.fit(table[0], y)


def test_times_are_no_inputs(table):
    with pytest.raises(TypeError, match=r"X must hold numbers. Got dates, times or durations"):
        OperatorKernelRegressor().fit(DAYS[:, None], table[1])


def test_cubes_are_said_to_be_read_as_channels(rng):
    X = rng.standard_normal((10, 4, 4, 4))
    with pytest.warns(DataWarning, match="X of shape .10, 4, 4, 4. is read as fields of two variables with 4 channels"):
        FieldRegressor().fit(X, X[:, 0, 0, 0])


GAUSSIAN = Gaussian(1.0)
REFUSES = {
    "fields": FieldRegressor(),
    "structured": StructuredPredictor(GAUSSIAN),
    "loss trick": LossTrickPredictor(GAUSSIAN),
    "quantiles": QuantileFunctionRegressor(GAUSSIAN, levels=3),
}


@pytest.mark.parametrize("name", REFUSES)
def test_masked_truth_in_scores_is_refused(name, rng):
    """The million under the mask was scored."""
    X, Y = rng.standard_normal((20, 2)), rng.standard_normal((20, 2))
    truth = masked(np.where(np.arange(40).reshape(20, 2) == 6, 1e6, Y), 3, 0)
    model = REFUSES[name].fit(X, Y)
    with pytest.raises(ValueError, match=r"NaN"):
        model.score(X, truth)
    assert model.score(X, np.ma.array(Y)) == model.score(X, Y)


@pytest.mark.parametrize("model", [OperatorKernelRegressor(), FunctionalRegressor()], ids=repr)
def test_masked_truth_does_not_count(model, rng):
    X, Y = rng.standard_normal((20, 2)), rng.standard_normal((20, 2))
    truth, gaps = masked(np.where(np.arange(40).reshape(20, 2) == 6, 1e6, Y), 3, 0), np.array(Y)
    gaps[3, 0] = np.nan
    assert model.fit(X, Y).score(X, truth) == model.score(X, gaps)
    band = ConformalRegressor(model, coverage=0.5, method="cv+").fit(X, Y).predict_interval(X)
    np.testing.assert_array_equal(band.contains(truth), band.contains(gaps))


def test_masked_truth_in_metrics_is_refused(rng):
    labels, y = np.ones((4, 2), dtype=int), np.ones(4)
    with pytest.raises(ValueError, match="Y must hold labels that are 0 or 1"):
        hamming_losses(masked(labels, 1, 0), labels)
    with pytest.raises(ValueError, match="y must be finite"):
        pinball_loss(masked(y, 1), y[:, None], [0.5])
