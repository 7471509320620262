"""Outputs that an operator or channels couple are scaled like others, unless the user says otherwise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import FunctionalRegressorCV, OperatorKernelRegressorCV

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
