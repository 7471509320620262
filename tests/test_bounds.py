"""Bounds from stability: constants against the published ones and brute force, the bound against simulated risks."""

import math

import numpy as np
import pytest

from fenchel import (
    ConformalRegressor,
    FunctionalRegressor,
    KernelAutoencoder,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    StructuredPredictor,
    generalization_bound,
)
from fenchel.approximations import Nystrom
from fenchel.conformal.bounds import derivative
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Aligned, Gaussian, Linear, Matrix, Standardized
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, MaxMargin, NormLog, Pinball, Square
from fenchel.representations import Fourier

LOSSES = [Square(), Huber(0.3), EpsilonRidge(0.1), EpsilonSVR(0.1), NormLog(0.5)]
LAM, MY = 0.2, 1.0


def sample(n, rng):
    X = rng.uniform(-2, 2, (n, 1))
    y = np.clip(0.7 * np.sin(2 * X[:, 0]) + 0.3 * rng.uniform(-1, 1, n), -MY, MY)
    return X, y


def fitted(loss, n=40, seed=0, lam=LAM, kernel=None):
    X, y = sample(n, np.random.default_rng(seed))
    return OperatorKernelRegressor(kernel or 2.0 * Gaussian(1.0), loss=loss, lam=lam, tol=1e-9).fit(X, y), X, y


@pytest.mark.parametrize(
    ("loss", "largest", "lipschitz"),
    [
        (
            EpsilonSVR(0.1),
            math.sqrt(MY - 0.1) * (math.sqrt(2) * math.sqrt(2) / math.sqrt(LAM) + math.sqrt(MY - 0.1)),
            1.0,
        ),
        (
            Huber(0.3),
            0.3 * math.sqrt(MY - 0.15) * (math.sqrt(2) * math.sqrt(0.6) / math.sqrt(LAM) + math.sqrt(MY - 0.15)),
            0.3,
        ),
        # the published row is for the loss without the factor 1/2
        (EpsilonRidge(0.1), (MY - 0.1) ** 2 / 2 * (1 + math.sqrt(2 / LAM)) ** 2, (MY - 0.1) * (1 + math.sqrt(2 / LAM))),
        (Square(), MY**2 / 2 * (1 + math.sqrt(2 / LAM)) ** 2, MY * (1 + math.sqrt(2 / LAM))),
    ],
    ids=repr,
)
def test_constants_are_the_published_ones(loss, largest, lipschitz):
    found = generalization_bound(fitted(loss)[0], 0.1, MY)
    assert found.largest_loss == pytest.approx(largest, rel=1e-12)
    assert found.lipschitz == pytest.approx(lipschitz, rel=1e-12)
    stability = lipschitz**2 * 2 / (LAM * 40)
    assert found.stability == pytest.approx(stability, rel=1e-12)
    deviation = (4 * 40 * stability + largest) * math.sqrt(math.log(10) / 80)  # delta = 0.1, n = 40
    wanted = found.training_risk + 2 * stability + deviation + found.optimization_error
    assert found.bound == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_constants_hold_for_samples_without_one(loss):
    model, X, y = fitted(loss, n=8)
    found = generalization_bound(model, 0.1, MY)
    inputs, outputs = np.linspace(-3, 3, 61)[:, None], np.linspace(-MY, MY, 41)
    losses = [loss.value(outputs[:, None] - value) for value in model.predict(inputs)]
    assert np.max(losses) - loss.value(np.zeros((1, 1)))[0] <= found.largest_loss
    for left in range(len(X)):
        kept = np.delete(np.arange(len(X)), left)
        other = OperatorKernelRegressor(2.0 * Gaussian(1.0), loss=loss, lam=LAM, tol=1e-9).fit(X[kept], y[kept])
        for here, there in zip(model.predict(inputs), other.predict(inputs), strict=True):
            differences = np.abs(loss.value(outputs[:, None] - here) - loss.value(outputs[:, None] - there))
            assert np.max(differences) <= min(found.stability, found.lipschitz * abs(here - there) + 1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_training_risk_and_bound_hold(loss):
    new_inputs, new_outputs = sample(5_000, np.random.default_rng(99))
    for seed in range(4):
        model, X, y = fitted(loss, 60, seed)
        found = generalization_bound(model, 0.1, MY, X=X, y=y)
        losses = loss.value((y - model.predict(X))[:, None])
        assert found.training_risk == pytest.approx(np.mean(losses), rel=1e-6, abs=1e-12)
        risk = float(np.mean(loss.value((new_outputs - model.predict(new_inputs))[:, None])))
        assert risk <= found.bound
        assert abs(found.left_out_risk - risk) < 6 * found.left_out_standard_error
        assert found.bound > found.left_out_risk


def test_a_loose_solve_adds_its_gap():
    tight, X, y = fitted(Huber(0.3))
    loose = OperatorKernelRegressor(2.0 * Gaussian(1.0), loss=Huber(0.3), lam=LAM, tol=0.5, solver="apgd").fit(X, y)
    bounds = [generalization_bound(model, 0.1, MY) for model in (tight, loose)]
    gap = loose.primal_objective_ - loose.dual_objective_
    assert gap > 0
    assert bounds[1].optimization_error == pytest.approx(2 * 0.3 * math.sqrt(2) * math.sqrt(2 * gap / LAM))
    assert bounds[0].optimization_error < bounds[1].optimization_error


def test_curves_have_a_bound():
    rng = np.random.default_rng(0)
    X, grid = rng.normal(size=(30, 2)), np.linspace(0, 1, 15)
    Y = np.sin(X[:, :1] + 3 * grid)
    model = FunctionalRegressor(Gaussian(0.5), loss=Huber(0.3), lam=0.1, center=False).fit(X, Y, grid=grid)
    found = generalization_bound(model, 0.1, 1.0, X=X, y=Y)
    assert found.training_risk <= found.left_out_risk <= found.bound


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivative_is_that_of_the_profile(loss):
    for t in (0.05, 0.25, 0.9, 3.0):
        slope = (loss.value(np.array([[t + 1e-6]])) - loss.value(np.array([[t - 1e-6]]))) / 2e-6
        assert derivative(loss.profile, t) == pytest.approx(float(slope[0]), abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": MaxMargin()}, "losses of the norm"),
        ({"kernel": Linear()}, "kernel_bound"),
        ({"kernel": Gaussian("median")}, "does not depend on the sample"),
        ({"kernel": Standardized(Gaussian(1.0))}, "does not depend on the sample"),
        ({"center": True}, "center=False"),
        ({"operator": "covariance"}, "fixed output operator"),
        ({"kernel": Aligned(Gaussian(1.0))}, "does not depend on the sample"),
        ({"kernel": Gaussian("median") * Matrix(np.eye(1))}, "does not depend on the sample"),
        (
            {"kernel": Gaussian(1.0) * Matrix(np.eye(1)) + Gaussian("median") * Matrix(2 * np.eye(1))},
            "does not depend on the sample",
        ),
        ({"kernel": Gaussian("median"), "loss": EpsilonSVR(3.0)}, "does not depend on the sample"),  # no support
        ({"loss": Huber("auto")}, "loss that does not depend on the sample"),
    ],
)
def test_an_assumption_that_is_not_met_is_named(changes, words):
    X, y = sample(30, np.random.default_rng(0))
    model = OperatorKernelRegressor(Gaussian(1.0), loss=Huber(0.3), lam=LAM).set_params(**changes).fit(X, y)
    with pytest.raises(IncompatibleError, match=words):
        generalization_bound(model, 0.1, MY)


def test_weights_are_refused_and_a_linear_kernel_takes_its_bound():
    X, y = sample(30, np.random.default_rng(0))
    model = OperatorKernelRegressor(Gaussian(1.0), lam=LAM).fit(X, y, sample_weight=1 + np.arange(30.0))
    with pytest.raises(IncompatibleError, match="equal weight"):
        generalization_bound(model, 0.1, MY)
    linear = fitted(Square(), kernel=Linear())[0]
    assert generalization_bound(linear, 0.1, MY, kernel_bound=4.0).stability > 0


def test_a_kernel_that_depends_on_the_sample_in_columns_that_its_repr_leaves_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 9))
    X[:, [0, -1]] = 1.0
    model = OperatorKernelRegressor(Standardized(Gaussian(0.1)), loss=Huber(1.0)).fit(X, X[:, 1])
    with pytest.raises(IncompatibleError, match="does not depend on the sample"):
        generalization_bound(model, 0.05, 5.0)


def test_the_smallest_value_of_a_loss_need_not_be_zero():
    """A bound on the outputs at which NormLog is below zero: the reach is that of the loss above its smallest value."""
    model, X, y = fitted(NormLog(0.5))
    model.fit(X, 0.25 * y)
    found = generalization_bound(model, 0.1, 0.3)
    assert found.largest_loss == pytest.approx(0)  # the zero model is as good as any: its loss is constant below 1 / e
    assert found.bound == pytest.approx(-0.5 / math.e)


@pytest.mark.parametrize(
    "settings", [{"output_kernel": Gaussian("median")}, {"output_approximation": Nystrom(5)}, {"center": True}], ids=str
)
def test_objects(settings):
    """The bound of the risk in the feature space, whose objects have norm one."""
    X, y = sample(30, np.random.default_rng(0))
    model = StructuredPredictor(Gaussian(1.0), Gaussian(0.5), loss=Huber(0.3), lam=LAM).fit(X, y)
    residuals = model.representation_.targets_ - model.embed(X)
    found = generalization_bound(model, 0.1, 1.0)
    assert found.training_risk == pytest.approx(np.mean(Huber(0.3).value(residuals)), rel=1e-6)
    with pytest.raises(IncompatibleError, match=r"on the sample|does not depend"):
        generalization_bound(model.set_params(**settings).fit(X, y), 0.1, 1.0)


@pytest.mark.parametrize(
    "estimator",
    [
        LossTrickPredictor(Gaussian(1.0)),
        KernelAutoencoder(2),
        ConformalRegressor(OperatorKernelRegressor(Gaussian(1.0))),
        OperatorKernelRegressorCV(Gaussian(1.0), lams=[0.1], losses=["square"]),
        Linear(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_other_estimators_are_refused(estimator):
    with pytest.raises(
        TypeError, match=f"generalization_bound takes a fitted OperatorKernel.*{type(estimator).__name__}"
    ):
        generalization_bound(estimator, 0.1, 1.0)


def test_data_beyond_the_stated_bounds_are_refused():
    model, X, y = fitted(Huber(0.3), kernel=Linear())
    with pytest.raises(ValueError, match=r"kernel_bound must be at least k\(x, x\) of every input. Got 1,"):
        generalization_bound(model, 0.1, MY, kernel_bound=1.0)
    with pytest.raises(ValueError, match=r"output_bound must be at least the norm of every output. Got 1, .* norm 100"):
        generalization_bound(model.fit(X, 100 * y / np.abs(y).max()), 0.1, MY, kernel_bound=4.0)


def test_what_a_representation_drops_is_not_forgotten():
    grid, X = np.linspace(0, 1, 201), np.random.default_rng(0).normal(size=(20, 2))
    curves = math.sqrt(2) * np.sin(20 * math.pi * grid) * np.ones((20, 1))
    model = FunctionalRegressor(Gaussian(0.5), lam=10.0, center=False, representation=Fourier(3)).fit(X, curves, grid)
    assert 0.5 * np.mean(curves**2) == pytest.approx(0.5, rel=0.01)  # the loss of the zero model
    assert model.primal_objective_ == pytest.approx(0, abs=1e-12)
    with pytest.raises(IncompatibleError, match=r"Fourier drops 1\.0e\+00 of their squared norm"):
        generalization_bound(model, 0.1, 1.01)
    whole = model.set_params(representation=Fourier(21)).fit(X, curves, grid)
    assert generalization_bound(whole, 0.1, 1.01).bound > 0.4


def test_curves_need_fixed_kernels_and_points():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), rng.uniform(size=(12, 15))
    model = FunctionalRegressor(loss=Huber(0.3), center=False).fit(X, Y)
    with pytest.raises(IncompatibleError, match=r"kernel that does not depend on the sample.*FunctionalGaussian"):
        generalization_bound(model, 0.1, 1.0)
    Y[0, 3] = np.nan
    with pytest.raises(IncompatibleError, match="observed at common points"):
        generalization_bound(model.set_params(kernel=Gaussian(1.0)).fit(X, Y), 0.1, 1.0)


def test_samples_of_weight_zero_do_not_count():
    X, y = sample(40, np.random.default_rng(0))
    model = OperatorKernelRegressor(Gaussian(1.0), loss=Huber(0.3), lam=LAM, tol=1e-10)
    without = generalization_bound(model.fit(X[:20], y[:20]), 0.1, MY)
    found = generalization_bound(model.fit(X, y, sample_weight=(np.arange(40) < 20).astype(float)), 0.1, MY)
    assert found.stability == without.stability
    assert found.bound == pytest.approx(without.bound)


ORDERS = [
    *(kind(0.4, p=p) for kind in (Huber, EpsilonRidge, EpsilonSVR) for p in (1, 1.3, 2, 3, math.inf)),
    Pinball([0.1, 0.5, 0.8]),
]


@pytest.mark.parametrize("scale", [None, np.sqrt([0.25, 0.5, 0.25])], ids=["vectors", "points"])
@pytest.mark.parametrize("loss", ORDERS, ids=repr)
def test_envelopes_are_above_losses_and_their_gradients(loss, scale):
    """Also that they are the least of their kind: at some residual both are reached."""
    rng = np.random.default_rng(0)
    bound = loss.bind(np.zeros((1, 3)), scale)
    envelope, weights = bound.envelope(3), np.ones(3) if scale is None else scale**2
    special = np.vstack(
        [np.sqrt(weights), np.eye(3)[np.argmin(weights)], np.array([-0.9, 0.5, 0.8]) * np.sqrt(weights)]
    )
    special /= np.linalg.norm(special, axis=1, keepdims=True)
    directions = rng.normal(size=(300, 3))
    directions = np.vstack([directions / np.linalg.norm(directions, axis=1, keepdims=True), special])
    reached = []
    for t in (0.05, 0.3, 0.7, 2.0, 8.0):
        rows = t * directions
        steps = 1e-6 * np.eye(3)
        slopes = [(bound.value(rows + step) - bound.value(rows - step)) / 2e-6 for step in steps]
        norms = np.linalg.norm(slopes, axis=0)
        top, steepest = envelope.value(np.array([t]))[0], derivative(envelope, t)
        assert np.max(bound.value(rows)) <= top + 1e-9
        assert np.max(norms) <= steepest + 1e-6
        reached.append((np.max(bound.value(rows)) / max(top, 1e-9), np.max(norms) / max(steepest, 1e-9)))
    assert np.max(reached, axis=0) == pytest.approx([1, 1], abs=1e-3)


@pytest.mark.parametrize("loss", [Huber(0.2, p=1), EpsilonRidge(0.1, p=math.inf), EpsilonSVR(0.1, p=1), Pinball(0.3)])
def test_constants_hold_for_other_orders(loss):
    """Two outputs; all models with one sample left out, at all inputs, for outputs in all directions."""
    rng = np.random.default_rng(0)
    X, angles = rng.uniform(-2, 2, (8, 1)), np.linspace(0, 2 * np.pi, 17)
    Y = 0.6 * np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])])
    model = OperatorKernelRegressor(2.0 * Gaussian(1.0), loss=loss, lam=LAM, tol=1e-9).fit(X, Y)
    found = generalization_bound(model, 0.1, MY, X=X, y=Y)
    inputs, outputs = np.linspace(-3, 3, 25)[:, None], MY * np.column_stack([np.cos(angles), np.sin(angles)])
    bound = loss.bind(np.zeros((1, 2)))
    losses = np.array([bound.value(outputs - value) for value in model.predict(inputs)])
    assert 0 < np.max(losses) <= found.largest_loss
    assert found.training_risk == pytest.approx(np.mean(bound.value(Y - model.predict(X))), rel=1e-5, abs=1e-9)
    for left in range(len(X)):
        kept = np.delete(np.arange(len(X)), left)
        other = OperatorKernelRegressor(2.0 * Gaussian(1.0), loss=loss, lam=LAM, tol=1e-9).fit(X[kept], Y[kept])
        there = np.array([bound.value(outputs - value) for value in other.predict(inputs)])
        away = np.linalg.norm(model.predict(inputs) - other.predict(inputs), axis=1)
        assert np.all(np.abs(losses - there) <= np.minimum(found.stability, found.lipschitz * away[:, None] + 1e-9))


def test_single_points_of_curves_have_a_bound():
    """The loss of curves is that of their values at points, in the leave-one-out risk too."""
    rng = np.random.default_rng(0)
    X, grid = rng.normal(size=(20, 2)), np.linspace(0, 1, 15)
    Y = 0.8 * np.sin(X[:, :1] + 3 * grid)
    model = FunctionalRegressor(Gaussian(0.5), loss=Huber(0.1, p=1), lam=0.1, center=False, tol=1e-9)
    found = generalization_bound(model.fit(X, Y, grid=grid), 0.1, 1.0, X=X, y=Y)
    assert found.lipschitz == pytest.approx(0.1)  # an interval of length one: the bound of the values
    assert found.training_risk <= found.left_out_risk <= found.bound
    values = []
    for i in range(20):
        part = model.fit(np.delete(X, i, 0), np.delete(Y, i, 0), grid=grid)
        gaps = np.abs(np.asarray(Y[i] - part.predict(X[i : i + 1]))[0])
        weights = np.full(15, 1 / 14)
        weights[[0, -1]] /= 2
        values.append(np.sum(weights * np.where(gaps <= 0.1, gaps**2 / 2, 0.1 * gaps - 0.005)))
    assert found.left_out_risk == pytest.approx(np.mean(values), rel=1e-4)


def test_pinball_over_all_levels():
    levels = (np.arange(2000) + 0.5) / 2000
    bound = Pinball(levels).bind(np.zeros((1, 2000)), np.full(2000, 2000**-0.5))
    assert bound.envelope(2000).bound ** 2 == pytest.approx(7 / 12, abs=1e-6)  # twice the integral of t^2 from 1/2 to 1
