"""Derivatives of predictions in the inputs, against finite differences of predict."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import FunctionalRegressor, FunctionalRegressorCV, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.approximations import Nystrom, RandomFeatures
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import (
    Constant,
    FunctionalGaussian,
    FunctionalLinear,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Part,
    Polynomial,
    Precomputed,
    Projected,
    Standardized,
    as_operator,
)
from fenchel.losses import Huber
from tests.parts import SCALAR_KERNELS

STEP = 1e-4
NO_DERIVATIVE = [
    "Wrapped",
    "FunctionalLaplacian",
    "IntegralGaussian",
    "IntegralLaplacian",
    "GaussianTanimoto",
    "Tanimoto",
    "Precomputed",
    "nu=0.8",
]
SMOOTH = [
    Gaussian(0.4),
    Matern(1.7, 2.5),
    Linear(),
    Linear() + Constant(2.0),
    Polynomial(2, 0.5),
    FunctionalGaussian(0.4),
    FunctionalLinear(),
    FunctionalGaussian("median", grid=[0.0, 0.3, 1.0]),
    Part(Gaussian(0.5), [0, -1]) + 0.5 * Part(Linear(), [1]),
    Projected(Gaussian(0.5), [1.0, 0.0, 2.0]) + Linear(),
    Projected(Matern(1.0, 1.5), [[1.0, 0.2], [0.0, 1.0], [0.5, -0.5]]),
    Standardized(Part(Matern(1.0, 1.5), slice(0, 2)) * Gaussian("median") + Linear()),
]


def sample(n=14, d=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(0.1, 1, (n, d)) * [1.0, 10.0, 0.1]
    mixed = X / [1.0, 10.0, 0.1]
    Y = np.stack([np.sin(3 * mixed[:, 0]) + mixed[:, 1], 100 * mixed[:, 1] * mixed[:, 2]], axis=1)
    return X, Y + 0.01 * random.normal(size=Y.shape), np.array([1.0, 10.0, 0.1])


def differences(predict, X, units):
    """Return derivatives by a formula of order four, predictions' shape and then one entry for each column."""
    found = []
    for unit in np.diag(units):
        near, far = (predict(X + j * STEP * unit) - predict(X - j * STEP * unit) for j in (1, 2))
        found.append((8 * near - far) / (12 * STEP * np.max(unit)))
    return np.stack(found, axis=-1)


def assert_gradient(found, predict, X, units, rtol=1e-6):
    expected = differences(predict, X, units)
    assert found.shape == expected.shape
    assert_allclose(found * units, expected * units, rtol=rtol, atol=rtol * np.max(np.abs(expected * units)))


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_vectors_in_their_own_units(kernel):
    X, Y, units = sample()
    kernel = Standardized(kernel) if not isinstance(kernel, Standardized) else kernel
    model = OperatorKernelRegressor(kernel, loss=Huber(0.5), lam=1e-2, center=True, scale=True).fit(X, Y)
    Z = sample(5, seed=1)[0]
    assert_gradient(model.gradient(Z), model.predict, Z, units)


@pytest.mark.parametrize("kernel", SCALAR_KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_every_kernel_has_its_gradient_or_says_that_it_has_none(kernel):
    X, Y, _ = sample()
    X, Z, units = X / [1.0, 10.0, 0.1], sample(4, seed=1)[0] / [1.0, 10.0, 0.1], np.ones(3)
    if kernel.tags.is_pairwise:
        X, Z = X @ X.T, Z @ X.T
    model = OperatorKernelRegressor(kernel, lam=1e-2).fit(X, Y)
    try:
        found = model.gradient(Z, almost_everywhere=True)
    except IncompatibleError as error:
        assert "is not smooth, or has no derivative implemented" in str(error)
        assert any(name in repr(kernel) for name in NO_DERIVATIVE)
        return
    assert_gradient(found, model.predict, Z, units, 1e-5)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Matern(1.0, 0.5), Gaussian() + 0.5 * Laplacian()], ids=repr)
def test_kinks_are_an_error_unless_allowed(kernel):
    X, Y, units = sample(9)
    model = OperatorKernelRegressor(Standardized(kernel), lam=1e-2).fit(X, Y)
    with pytest.raises(IncompatibleError, match="is not smooth"):
        model.gradient(X)
    Z = sample(5, seed=1)[0]
    assert_gradient(model.gradient(Z, almost_everywhere=True), model.predict, Z, units, 1e-5)
    at_kinks = model.gradient(X, almost_everywhere=True)
    step = 1e-5 * units[1] * np.eye(3)[1]  # the mean of the one-sided derivatives is the central difference
    central = (model.predict(X + step) - model.predict(X - step)) / (2 * step[1])
    assert_allclose(at_kinks[:, :, 1], central, rtol=1e-3, atol=1e-3 * np.max(np.abs(central)))


@pytest.mark.parametrize("approximation", [Nystrom(6, "uniform"), RandomFeatures(8), RandomFeatures(40)])
@pytest.mark.parametrize("kernel", [Gaussian(0.4), Standardized(Gaussian(0.4) + 0.3 * Linear())], ids=repr)
def test_thin_models(approximation, kernel):
    X, Y, units = sample(20)
    X, units = (X, units) if isinstance(kernel, Standardized) else (X / units, np.ones(3))
    model = OperatorKernelRegressor(kernel, lam=1e-2, approximation=approximation, center=True).fit(X, Y)
    Z = X[:5] + 0.01 * units
    assert_gradient(model.gradient(Z), model.predict, Z, units)


@pytest.mark.parametrize("operator", [None, [1.0, 0.2], [[2.0, 0.5], [0.5, 1.0]]])
def test_output_operators_and_sums(operator):
    X, Y, units = sample()
    X = X / units
    kernel = Gaussian(0.5) * as_operator(operator) + Linear() * as_operator("covariance")
    model = OperatorKernelRegressor(kernel, lam=1e-2).fit(X, Y)
    assert_gradient(model.gradient(X), model.predict, X, np.ones(3))


def test_one_output_in_blocks_and_in_float32(monkeypatch):
    X, Y, units = sample()
    model = OperatorKernelRegressor("auto", lam=1e-2).fit(X, Y[:, 0])
    whole = model.gradient(X)
    assert_gradient(whole, model.predict, X, units)
    monkeypatch.setattr("fenchel.model.gradient._BLOCK_BYTES", 1000)
    assert_allclose(model.gradient(X), whole, rtol=1e-12)
    assert model.gradient(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("representation", ["spline", "eigen", "fourier"])
@pytest.mark.parametrize("channels", [1, 2])
def test_curves(representation, channels):
    X, _, units = sample()
    t = np.linspace(0, 1, 15)
    curves = np.sin(X[:, :1] + t) + X[:, 1:2] * t / 10
    Y = curves if channels == 1 else np.stack([curves, 100 * curves**2], axis=2)
    model = FunctionalRegressor("auto", lam=1e-3, representation=representation, scale=True).fit(X, Y, grid=t)
    assert_gradient(model.gradient(X), model.predict, X, units)
    grid = [0.2, 0.7]
    assert_gradient(model.gradient(X, grid), lambda Z: model.predict(Z, grid), X, units)


def test_cross_validated_models():
    X, Y, units = sample(20)
    Z = sample(3, seed=1)[0]
    for model in (OperatorKernelRegressorCV(cv=3), FunctionalRegressorCV(cv=3)):
        model.fit(X, Y)
        assert_gradient(model.gradient(Z, almost_everywhere=True), model.predict, Z, units, 1e-5)


def test_inputs_that_have_no_columns_to_derive_in():
    X, Y, _ = sample()
    with pytest.raises(IncompatibleError, match="Precomputed"):
        OperatorKernelRegressor(Precomputed()).fit(X @ X.T, Y).gradient(X @ X.T)
    curves = np.stack([X, X], axis=2)
    with pytest.raises(IncompatibleError, match="dense vectors"):
        FunctionalRegressor().fit(curves, Y).gradient(curves)


def test_other_libraries(xp):
    X, Y, _ = sample()
    expected = OperatorKernelRegressor(Gaussian(0.1), lam=1e-2).fit(X, Y).gradient(X)
    model = OperatorKernelRegressor(Gaussian(0.1), lam=1e-2).fit(xp.asarray(X), xp.asarray(Y))
    assert_allclose(np.asarray(model.gradient(xp.asarray(X))), expected, rtol=1e-6, atol=1e-6)
