"""Curves on a device that is not the host's: a stand-in for an accelerator, made of array-api-strict.

Its arrays meet no array of another device, and turn into NumPy arrays only when they are asked to (``get``, as CuPy's).
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fenchel
from fenchel import FunctionalRegressor, FunctionalRegressorCV, OperatorKernelRegressor
from fenchel.datasets import make_functional
from fenchel.losses import EpsilonRidge, Huber
from tests.estimators.curves import blanked


@pytest.fixture
def away(monkeypatch):
    """Return a function that puts an array on the other device."""
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    kind = type(strict.asarray([1.0]))
    cpu = strict.Device("CPU_DEVICE")
    monkeypatch.setattr(kind, "get", lambda array: np.asarray(array.to_device(cpu)), raising=False)
    return lambda array: strict.asarray(array, device=device)


@pytest.fixture
def data():
    return make_functional(15, 12, random_state=0)


def test_the_stand_in_is_strict(away):
    with pytest.raises(RuntimeError, match="Can't convert array"):
        np.asarray(away([1.0]))
    with pytest.raises(ValueError, match="different devices"):
        away([1.0]) + away([1.0]).__array_namespace__().asarray([1.0])


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize(
    ("loss", "representation"),
    [
        ("square", "spline"),
        ("huber", "spline"),
        ("epsilon_svr", "spline"),
        ("huber", "eigen"),
        ("huber", "fourier"),
        (Huber(0.1, p=1), "spline"),
        (Huber(0.1, p=1.5), "spline"),
        (EpsilonRidge(0.1, p=np.inf), "spline"),
    ],
    ids=str,
)
def test_fit_and_predict(away, data, loss, representation, gaps):
    if gaps and representation != "spline":
        pytest.skip("only the spline takes gaps")
    Y = blanked(data.Y) if gaps else data.Y
    model = FunctionalRegressor(loss=loss, representation=representation, center="median")
    found = model.fit(away(data.X), away(Y)).predict(away(data.X), [0.1, 0.6])
    assert found.device == away(data.X).device
    assert model.dual_coef_.device == found.device
    assert_allclose(found.get(), model.fit(data.X, Y).predict(data.X, [0.1, 0.6]), rtol=0, atol=1e-10)


def test_weights_of_zero(away, data):
    weights = np.ones(15)
    weights[3] = 0
    model = FunctionalRegressor().fit(away(data.X), away(data.Y), sample_weight=away(weights))
    assert model.predict(away(data.X)).device == away(data.X).device


def test_weights_of_zero_for_vectors(away, data):
    weights = np.ones(15)
    weights[3] = 0
    model = OperatorKernelRegressor().fit(away(data.X), away(data.Y), sample_weight=away(weights))
    assert model.predict(away(data.X)).device == away(data.X).device


def test_without_support(away, data):
    model = FunctionalRegressor(loss=EpsilonRidge(100.0)).fit(away(data.X), away(data.Y))
    found = model.predict(away(data.X))
    assert_allclose(found.get(), np.tile(data.Y.mean(axis=0), (15, 1)), rtol=1e-12)
    assert found.device == away(data.X).device


@pytest.mark.parametrize(
    "losses",
    [["square"], ["huber"], [Huber(0.1, p=1)]],
    ids=str,
)
def test_cross_validation_and_paths(away, data, losses):
    X, Y, lams = away(data.X), away(blanked(data.Y)), [1e-2, 1e-3]
    model = FunctionalRegressorCV(lams=lams, losses=losses, cv=2).fit(X, Y)
    wanted = FunctionalRegressorCV(lams=lams, losses=losses, cv=2).fit(data.X, blanked(data.Y))
    assert_allclose(model.cv_errors_, wanted.cv_errors_, rtol=1e-6)
    assert np.all(fenchel.path(FunctionalRegressor(), X, Y, lams, losses).gaps <= 1e-6)


def test_score(away, data):
    model = FunctionalRegressor().fit(away(data.X), away(data.Y))
    assert 0.5 < model.score(away(data.X), away(blanked(data.Y))) < 1


def test_score_with_weights(away, data):
    model = FunctionalRegressor().fit(away(data.X), away(data.Y))
    assert 0.5 < model.score(away(data.X), away(data.Y), sample_weight=away(np.ones(15))) < 1
