"""Outputs that an operator or channels couple are scaled like others, unless the user says otherwise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import (
    FieldRegressor,
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
)
from fenchel.losses import Huber

UNITS = np.array([1e4, 1.0])


@pytest.fixture
def table(rng):
    X = rng.standard_normal((30, 2))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1]])


def test_covariance_of_outputs_in_other_units(table):
    X, Y = table
    model = OperatorKernelRegressorCV(operator="covariance", losses="square", lams=[1e-3], cv=2)
    reference = model.fit(X, Y).predict(X)
    assert_allclose(model.fit(X, Y * UNITS).predict(X) / UNITS, reference, rtol=1e-5, atol=1e-5)


def test_coupled_channels_in_other_units(table):
    X, Y = table
    curves = Y[:, None, :] * np.linspace(1, 2, 2)[:, None]
    model = FunctionalRegressorCV(channels=[[1, 0.8], [0.8, 1]], losses="square", lams=[1e-3], cv=2)
    reference = model.fit(X, curves).predict(X)
    assert_allclose(model.fit(X, curves * UNITS).predict(X) / UNITS, reference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", ["square", "huber_relative"])
def test_coupled_channels_of_a_plain_regressor_in_other_units(table, loss):
    X, Y = table
    curves = Y[:, None, :] * np.linspace(1, 2, 2)[:, None]
    loss = Huber("auto") if loss == "huber_relative" else loss
    model = FunctionalRegressor(channels=[[1, 0.8], [0.8, 1]], loss=loss, lam=1e-3, tol=1e-9)
    reference = model.fit(X, curves).predict(X)
    assert_allclose(model.fit(X, curves * UNITS).predict(X) / UNITS, reference, rtol=1e-5, atol=1e-5)


def test_channels_that_are_not_coupled_keep_their_units(table):
    X, Y = table
    curves = Y[:, None, :] * np.linspace(1, 2, 2)[:, None]
    assert FunctionalRegressor().fit(X, curves).scale_ is None
    assert FunctionalRegressor(channels=[[1, 0.8], [0.8, 1]], scale=False).fit(X, curves).scale_ is None
    assert FunctionalRegressor(channels=[[1, 0.8], [0.8, 1]], loss=Huber(0.1)).fit(X, curves).scale_ is None


@pytest.mark.parametrize("basis", ["pca", "points", "fourier"])
def test_channels_of_fields_in_other_units(rng, basis):
    a = rng.standard_normal((30, 1, 2)) * np.sin(np.linspace(0.5, 2, 6))[:, None]
    X, Y = a[:, None] + np.zeros((1, 2, 1, 1)), np.tanh(a)[:, None] + np.zeros((1, 2, 1, 1))
    holes = Y.copy()
    holes[0, 0, 0, 1] = np.nan
    model = FieldRegressor(OperatorKernelRegressor(lam=1e-4), input_basis=basis, output_basis=basis)
    reference = model.fit(X, holes).predict(X)
    assert_allclose(model.fit(X * UNITS, holes * UNITS).predict(X * UNITS) / UNITS, reference, rtol=1e-6, atol=1e-6)
    lost = model.set_params(scale=False).fit(X * UNITS, Y * UNITS).predict(X * UNITS) / UNITS
    errors = [np.mean((found - Y) ** 2, axis=(0, 1, 2)) for found in (reference, lost)]
    assert errors[0][1] < 0.5 * errors[1][1]
