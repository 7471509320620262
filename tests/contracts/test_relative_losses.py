"""Thresholds in the units of the data, against hand values and rescaled residuals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from fenchel import OperatorKernelRegressor
from fenchel._statistics import weighted_quantile
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.losses.loss import row_saturation
from tests.parts import LOSSES

RELATIVE = [cls(text) for cls in (Huber, EpsilonRidge, EpsilonSVR) for text in ("auto", "scale:1.5", "quantile:0.9")]
every_relative = pytest.mark.parametrize("loss", RELATIVE, ids=repr)


def threshold(loss):
    return loss.kappa if isinstance(loss, Huber) else loss.epsilon


def residuals(n=40, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def test_values_by_hand():
    norms = np.array([1.0, 2.0, 3.0, 4.0, 100.0])  # the median is 3
    assert Huber("scale:2").resolve(norms).kappa == pytest.approx(2 * 1.4826022185 * 3)
    assert Huber("auto").resolve(norms).kappa == pytest.approx(1.4826022185 * 3)
    assert EpsilonSVR("auto").resolve(norms).epsilon == pytest.approx(0.6 * 1.4826022185 * 3)
    assert EpsilonRidge("quantile:0.7").resolve(norms).epsilon == 4.0
    assert Huber("quantile:0.6").resolve(norms).kappa == 3.5  # between the third and the fourth of five


@every_relative
def test_thresholds_follow_the_unit(loss):
    R = residuals()
    assert threshold(loss.resolve(1000 * R)) == pytest.approx(1000 * threshold(loss.resolve(R)), rel=1e-12)


@every_relative
def test_parameters_are_kept(loss):
    before = repr(loss)
    copy = clone(loss).validate()
    assert repr(copy) == before
    assert copy.is_relative
    assert copy.sparse == (not isinstance(loss, Huber))
    resolved = copy.resolve(residuals())
    assert not resolved.is_relative
    assert type(threshold(resolved)) is float
    assert repr(copy) == before
    assert resolved.resolve(residuals()).get_params() == resolved.get_params()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_the_norm_is_the_one_that_the_threshold_bounds(p):
    R = residuals()
    order = {1.0: np.inf, 2.0: 2.0, 3.0: 1.5, np.inf: 1.0}[p]
    kappa = Huber("quantile:0.5", p).resolve(R).kappa
    assert kappa == pytest.approx(np.median(np.linalg.norm(R, ord=order, axis=1)))
    inside = np.linalg.norm(R, ord=order, axis=1) <= kappa
    squares = np.sum(R**2, axis=1) / 2
    assert_allclose(Huber(kappa, p).value(R)[inside], squares[inside])  # half of the rows are not clipped
    assert np.all(Huber(kappa, p).value(R)[~inside] < squares[~inside])
    epsilon = EpsilonRidge("quantile:0.5", p).resolve(R).epsilon
    assert np.mean(EpsilonRidge(epsilon, p).value(R) == 0) == 0.5


def test_point_values_have_their_own_scale():
    R, scale = residuals(), np.array([0.5, 1.0, 2.0])
    kappa = Huber("quantile:0.5", 1).resolve(R, point_scale=scale).kappa
    bound = Huber(kappa, 1).bind(R, scale)
    assert np.mean(row_saturation(bound, R) <= 1) == 0.5


def test_weights_count_samples():
    R, counts = residuals(7), np.array([1.0, 2.0, 3.0, 1.0, 1.0, 2.0, 1.0])
    for loss in RELATIVE:
        repeated = loss.resolve(np.repeat(R, counts.astype(int), axis=0))
        assert threshold(loss.resolve(R, counts)) == pytest.approx(threshold(repeated))


def test_null_residuals():
    assert Huber("scale:2").resolve(np.zeros(4)).kappa == 1.0
    assert Huber("quantile:0.5").resolve(np.array([0.0, 0.0, 0.0, 5.0])).kappa == 5.0


def test_other_losses_resolve_to_themselves():
    for loss in LOSSES:
        assert not loss.is_relative
        assert repr(loss.resolve(residuals())) == repr(loss)
    assert Square().resolve(residuals()).get_params() == {}


@pytest.mark.parametrize("text", ["automatic", "scale:", "scale:-1", "scale:0", "quantile:1", "quantile:x"])
@pytest.mark.parametrize("cls", [Huber, EpsilonRidge, EpsilonSVR])
def test_wrong_texts(cls, text):
    with pytest.raises(ValueError, match=rf"parameter of {cls.__name__} must be a float in .* or 'auto', 'scale:c'"):
        cls(text).validate()
    with pytest.raises(ValueError, match="must be a float in"):
        cls("auto", p=0.5).validate()


def test_a_loss_without_a_pilot_says_so():
    with pytest.raises(ValueError, match=r"call loss\.resolve\(residuals\) first"):
        Huber("auto").bind(np.ones((4, 1)))


def test_a_model_has_a_pilot():
    """The number that was taken is that of the residuals of the square loss, and is an attribute."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 1, 40)[:, None]
    y = np.sin(6 * X) + 0.1 * rng.standard_normal((40, 1))
    model = OperatorKernelRegressor(loss=Huber("scale:2"), lam=1e-3).fit(X, y)
    pilot = OperatorKernelRegressor(loss="square", lam=1e-3).fit(X, y)
    norms = np.abs(y - pilot.predict(X))[:, 0]
    assert model.loss_.kappa == pytest.approx(2 * 1.4826 * np.median(norms), rel=1e-3)
    assert model.loss.kappa == "scale:2"


@pytest.mark.parametrize("level", [0.1, 0.25, 0.5, 0.77])
def test_weighted_quantile_is_numpys(level):
    values = residuals(20)[:, 0]
    expected = np.quantile(values, level, method="averaged_inverted_cdf")
    assert weighted_quantile(values, np.ones(20), level) == pytest.approx(expected)
