"""Kernels in the units of the sample: against hand values, scikit-learn's scaler and finite differences."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from fenchel import OperatorKernelRegressor
from fenchel.kernels import (
    Constant,
    FunctionalGaussian,
    FunctionalLaplacian,
    FunctionalLinear,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Part,
    Precomputed,
    Standardized,
    derivatives,
)
from fenchel.kernels.derivatives import weighted_gradient


def sample(n=15, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * [1.0, 100.0, 0.01][:d] + [0.0, 7.0, -3.0][:d]


@pytest.mark.parametrize("inner", [Gaussian("median"), Laplacian(0.4), Linear(), Gaussian(0.3) + 2.0 * Linear()])
def test_values_are_those_of_scaled_columns(inner):
    X, Z = sample(), sample(6, seed=1)
    scaler = StandardScaler().fit(X)
    expected = inner.resolve(scaler.transform(X))
    kernel = Standardized(inner).resolve(X)
    assert_allclose(kernel(X, Z), expected(scaler.transform(X), scaler.transform(Z)), rtol=1e-9)
    assert_allclose(kernel(X), Standardized(inner)(X), rtol=1e-12)
    assert_allclose(kernel.scale, scaler.scale_, rtol=1e-12)


def test_units_do_not_matter():
    X, Z, units = sample(), sample(6, seed=1), np.array([1e-3, 1e3, 7.0])
    kernel = Standardized(Laplacian("median") + Linear())
    expected = kernel.resolve(X)(X, Z)
    assert_allclose(kernel.resolve(X * units + 5)(X * units + 5, Z * units + 5), expected, atol=1e-9)


def test_a_constant_column_is_ignored():
    X, Z = sample(), sample(6, seed=1)
    X[:, 1] = 0.1  # not a binary fraction: its computed deviation is not zero
    kernel = Standardized(Gaussian("median") + Linear()).resolve(X)
    assert kernel.scale[1] == math.inf
    rest = Standardized(Gaussian("median") + Linear()).resolve(X[:, [0, 2]])
    assert_allclose(kernel(X, Z), rest(X[:, [0, 2]], Z[:, [0, 2]]), rtol=1e-12)
    everything = Standardized(Gaussian("median")).resolve(np.ones((4, 2)))
    assert_array_equal(everything(np.ones((4, 2))), np.ones((4, 4)))


def test_weights_count_samples():
    X, counts = sample(6), np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    kernel = Standardized(Gaussian("median")).resolve(X, counts)
    repeated = Standardized(Gaussian("median")).resolve(np.repeat(X, counts.astype(int), axis=0))
    assert_allclose(kernel.mean, repeated.mean, rtol=1e-12)
    assert_allclose(kernel.scale, repeated.scale, rtol=1e-12)
    assert kernel.kernel.gamma == pytest.approx(repeated.kernel.gamma, rel=1e-12)


@pytest.mark.parametrize("inner", [FunctionalGaussian("median"), FunctionalLaplacian("median"), FunctionalLinear()])
def test_each_channel_has_one_scale(inner):
    X = np.random.default_rng(0).normal(size=(10, 7, 2)) * np.linspace(1, 2, 7)[:, None]
    kernel = Standardized(inner).resolve(X)
    deviations = np.sqrt(np.mean(np.var(X, axis=0), axis=0))
    assert_allclose(np.ravel(kernel.scale), deviations, rtol=1e-12)
    assert kernel.mean.shape == (7, 2)
    assert_allclose(kernel(X), Standardized(inner)(X * [1e4, 1e-4] + [3, 0]), rtol=1e-7)
    flat = Standardized(inner, by="channel").resolve(X[..., 0])
    assert_allclose(np.ravel(flat.scale), deviations[:1], rtol=1e-12)


def test_functional_linear_is_the_integral_of_the_product():
    t = np.array([0.0, 0.5, 1.5, 2.0])
    X = np.random.default_rng(0).normal(size=(5, 4, 2))
    expected = [[np.trapezoid(np.sum(x * z, axis=1), t) for z in X] for x in X]
    kernel = FunctionalLinear(t)
    assert_allclose(kernel(X), expected, rtol=1e-12)
    assert_allclose(kernel(X, X[:2]), np.array(expected)[:, :2], rtol=1e-12)
    assert_allclose(kernel.features(X) @ kernel.features(X).T, expected, rtol=1e-12)
    assert_allclose(FunctionalLinear()(X), np.einsum("itc,jtc->ij", X, X) / 4, rtol=1e-12)
    with pytest.raises(ValueError, match="must have 4 points and 2 channels, like those of X"):
        kernel(X, X[:, :3])


@pytest.mark.parametrize(
    "kernel",
    [Linear() + Constant(3.0), 2.0 * Linear(), 0.5 * Linear() + (Linear() + Constant()), Standardized(2.0 * Linear())],
)
def test_sums_of_features(kernel):
    X, Z = sample(), sample(4, seed=1)
    kernel = kernel.resolve(X)
    assert kernel.tags.has_features
    assert_allclose(kernel.features(X) @ kernel.features(Z).T, kernel(X, Z), rtol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian() + Linear(), 2.0 * Gaussian(), Standardized(Gaussian() + Linear())])
def test_no_features_without_those_of_all_parts(kernel):
    assert not kernel.tags.has_features
    assert kernel.features(sample()) is None


@pytest.mark.parametrize("inner", [Gaussian(0.3), Matern(1.3, 2.5), Gaussian(0.2) + Linear() + Constant(2.0)])
def test_gradients_follow_the_chain_rule(inner):
    X, Z, weights = sample(4), sample(5, seed=1), np.random.default_rng(2).normal(size=(4, 5))
    kernel, step = Standardized(inner).resolve(np.vstack([X, Z])), 1e-6
    found = weighted_gradient(kernel, X, Z, weights)
    for j, unit in enumerate(np.diag(kernel.scale)):
        slopes = (kernel(X + step * unit, Z) - kernel(X - step * unit, Z)) / (2 * step * kernel.scale[j])
        assert_allclose(found[:, j], np.sum(weights * slopes, axis=1), rtol=1e-5, atol=1e-8 / kernel.scale[j])
    line, other = X[:, 1:2], Z[:, 1:2]
    kernel = Standardized(inner).resolve(line)
    slope = (kernel(line + 1e-4, other) - kernel(line - 1e-4, other)) / 2e-4
    assert_allclose(derivatives.slope(kernel, line, other), slope, rtol=1e-5, atol=1e-9)


def test_named_columns_pass_through():
    pd = pytest.importorskip("pandas")
    X, y = sample(20), np.arange(20.0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    kernel = Standardized(Part(Gaussian("median"), ["b", "c"]))
    model = OperatorKernelRegressor(kernel, lam=0.01).fit(frame, y)
    places = OperatorKernelRegressor(Standardized(Part(Gaussian("median"), [1, 2])), lam=0.01).fit(X, y)
    assert_allclose(model.predict(frame), places.predict(X), rtol=1e-12)


def test_it_needs_the_training_sample():
    X = sample()
    with pytest.raises(ValueError, match=r"call kernel\.resolve\(X_train\) first"):
        Standardized(Gaussian(1.0))(X, X[:2])
    with pytest.raises(ValueError, match="as its 'mean' has"):
        Standardized(Gaussian(1.0)).resolve(X)(X[:, :2])


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (Standardized("gaussian"), TypeError, "must be a ScalarKernel on points"),
        (Standardized(Precomputed()), TypeError, "must be a ScalarKernel on points"),
        (Standardized(Gaussian(), scale=[1.0, 0.0, 1.0]), ValueError, "'scale' parameter of Standardized must be pos"),
        (Standardized(Gaussian(), by="row"), ValueError, "'by' parameter of Standardized"),
    ],
)
def test_wrong_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel.resolve(sample())


def test_resolved_kernels_are_cloned_and_shown():
    kernel = Standardized(Gaussian("median")).resolve(sample())
    copy = clone(kernel)
    assert_array_equal(copy(sample()), kernel(sample()))
    assert "Standardized" in repr(kernel)


def test_a_repr_shows_the_ends_of_long_arrays():
    kernel = Standardized(Gaussian(0.5), mean=np.arange(500.0), scale=np.ones(500))
    ends = "mean=array([  0., ..., 499.], shape=(500,)), scale=array([1., ..., 1.], shape=(500,)))"
    assert repr(kernel) == f"Standardized(kernel=Gaussian(gamma=0.5), {ends}"
    assert repr(OperatorKernelRegressor(kernel)) == f"OperatorKernelRegressor(kernel={kernel!r})"
