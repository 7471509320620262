"""Importance of inputs: the outer product of gradients against differences, refits by hand, and the picture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from fenchel import FunctionalRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.kernels import Gaussian
from fenchel.report.importance import Importance


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)) * [1, 2, 3, 4]
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 0]])


def differences(model, X, step=1e-5):
    """Return derivatives (n, p, d) of predictions by central differences."""
    moves = step * np.eye(X.shape[1])
    return np.stack([(model.predict(X + m) - model.predict(X - m)) / (2 * step) for m in moves], axis=-1)


def test_the_outer_product_of_differences(sample):
    X, Y = sample
    model = OperatorKernelRegressor(Gaussian(0.1), lam=1e-3).fit(X, Y)
    found = Importance.of(model, X)
    moved = differences(model, X) * X.std(axis=0)
    product = np.einsum("noj,nok->jk", moved, moved) / len(X)
    assert_allclose(found.values, np.sqrt(np.diag(product)), rtol=1e-6)
    assert_allclose((found.loadings.T * found.shares) @ found.loadings, product / np.trace(product), atol=1e-7)
    assert np.all(found.loadings[np.arange(4), np.argmax(np.abs(found.loadings), axis=1)] > 0)
    assert_allclose(found.scores(X), (X - X.mean(axis=0)) / X.std(axis=0) @ found.loadings.T)


def test_one_direction_of_a_linear_model_and_a_constant_column(sample):
    X = np.column_stack([sample[0], np.full(30, 7.0)])
    slopes = np.array([1.0, -2, 0, 0.5, 3])
    model = OperatorKernelRegressor("linear", lam=1e-9, center=True).fit(X, X[:, :4] @ slopes[:4])
    found = Importance.of(model, X)
    assert_allclose(found.shares[0], 1, rtol=1e-9)
    assert_allclose(found.values, np.append(np.abs(slopes[:4]), 0) * X.std(axis=0), atol=1e-4)
    assert np.all(np.isfinite(found.scores(X)))


def test_refits_are_bootstrap_samples_of_groups(sample):
    X, Y = sample
    groups = np.arange(30) // 3
    search = OperatorKernelRegressorCV(Gaussian(0.1), losses=["square"]).fit(X, Y)
    found = Importance.of(search, X, Y, n_refits=3, groups=groups, random_state=4)
    rng = np.random.default_rng(4)
    for values in found.refits:
        rows = np.concatenate([np.flatnonzero(groups == label) for label in rng.integers(10, size=10)])
        model = clone(search.best_estimator_).fit(X[rows], Y[rows])
        moved = model.gradient(X) * X.std(axis=0)
        assert_allclose(values, np.sqrt(np.mean(np.sum(moved**2, axis=1), axis=0)), rtol=1e-8)
    low, high = found.interval(0.5)
    assert_allclose([low, high], np.quantile(found.refits, [0.25, 0.75], axis=0))


def test_curves_and_the_picture(sample):
    pytest.importorskip("matplotlib")
    X, Y = sample
    curves = Y[:, :1] + Y[:, 1:] * np.linspace(0, 1, 5)
    model = FunctionalRegressor(Gaussian(0.1), lam=1e-2).fit(X, curves)
    found = Importance.of(model, X, curves, n_refits=2)
    ax = found.plot(x=[10, 20, 30, 40])
    assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([[10, 20, 30, 40], found.values]))
    assert len(ax.collections) == 1
    assert not Importance.of(model, X).plot().collections


def test_what_cannot_be(sample):
    X, Y = sample
    model = OperatorKernelRegressor(Gaussian(0.1), lam=1e-3).fit(X, Y)
    with pytest.raises(ValueError, match="Refits need the outputs"):
        Importance.of(model, X, n_refits=2)
    with pytest.raises(ValueError, match=r"same number of samples\. Got 30 and 29"):
        Importance.of(model, X, Y[1:], n_refits=2)
    with pytest.raises(ValueError, match=r"groups must have shape \(30,\)"):
        Importance.of(model, X, Y, n_refits=2, groups=[0, 1])
    with pytest.raises(ValueError, match="NaN"):
        Importance.of(model, np.where(X > 5, np.nan, X))
    with pytest.raises(ValueError, match="There are no refits"):
        Importance.of(model, X).interval()
    with pytest.raises(ValueError, match="X must have 4 columns"):
        Importance.of(model, X).scores(X[:, :3])
    with pytest.raises(ValueError, match=r"x must have shape \(4,\)"):
        Importance.of(model, X).plot(x=[1, 2])
    with pytest.raises(ValueError, match="n_refits == -1, must be >= 0"):
        Importance.of(model, X, Y, n_refits=-1)
    with pytest.raises(TypeError, match=r"model with gradient, such as OperatorKernelRegressor\. Got LinearRegression"):
        Importance.of(LinearRegression().fit(X, Y), X)
