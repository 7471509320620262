"""Learned frequencies: the error and its gradient against refits and differences, and what the search must find."""

import contextlib

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import OperatorKernelRegressor, learn_frequencies
from fenchel.datasets import make_burgers
from fenchel.kernels import Equivariant, Filtered, Linear, RationalQuadratic
from fenchel.search import frequencies as frequency_search
from fenchel.search.frequencies import LeftOut


@pytest.fixture
def pairs(rng):
    X = rng.standard_normal((7, 8))
    return X, np.tanh(X) + np.roll(X, 1, axis=1) ** 2


GROUPS = ["shifts", "reflections", "odd reflections"]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("count", [5, 3])
def test_the_gradient(pairs, rng, count, group):
    left_out = LeftOut.of(*pairs, count, group)
    theta = 0.5 * rng.standard_normal(5 + 2 * count)
    steps = 1e-6 * np.eye(len(theta))
    differences = [(left_out(theta + step)[0] - left_out(theta - step)[0]) / 2e-6 for step in steps]
    assert_allclose(left_out(theta)[1], differences, rtol=0, atol=1e-8)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("count", [5, 3])
def test_the_error_is_that_of_refits(pairs, rng, count, group):
    """Of the estimator, without each sample in turn, with the kernel that the weights stand for."""
    X, Y = pairs
    weights, linear, ridges = (np.exp(0.3 * rng.standard_normal(size)) for size in (5, count, count))
    slow = np.concatenate([np.sqrt(linear), np.zeros(5 - count)])
    kernel = Filtered(RationalQuadratic(), weights) + Filtered(Linear(), slow)
    errors = []
    for i in range(7):
        rest = np.delete(np.arange(7), i)
        equivariant = Equivariant(kernel, count, 1 / ridges, group)
        model = OperatorKernelRegressor(equivariant, loss="square", lam=1 / 6, tol=1e-12)
        predicted = model.fit(X[rest], Y[rest]).predict(X[i : i + 1])
        errors.append(np.linalg.norm(predicted - Y[i]) / np.linalg.norm(Y[i]))
    theta = np.log(np.concatenate([weights, linear, ridges]))
    assert_allclose(LeftOut.of(X, Y, count, group).errors(theta), errors, rtol=1e-8)


def test_the_search():
    """The error falls, is that of new curves, and the fit with kernel and lam is certified."""
    data = make_burgers(120, n_points=32)
    X, Y, X_new, Y_new = data.X[:80], data.Y[:80], data.X[80:], data.Y[80:]
    found = learn_frequencies(X, Y, 14, max_iter=25)
    model = OperatorKernelRegressor(found.kernel, loss="square", lam=found.lam).fit(X, Y)
    errors = np.linalg.norm(model.predict(X_new) - Y_new, axis=1) / np.linalg.norm(Y_new, axis=1)
    assert found.error <= 1.0001 * min(found.history) < 0.7 * found.history[0]
    assert errors.mean() < 1.5 * found.error < 0.05
    assert model.duality_gap_ <= 1e-6
    scaled = learn_frequencies(1e6 * X, 1e-3 * Y, 14, max_iter=25)
    assert_allclose(scaled.error, found.error, rtol=0.05)  # no units


def test_a_symmetry_of_the_law_is_worth_samples():
    """Burgers' equation has odd reflections, and no even ones."""
    data = make_burgers(40, n_points=32)
    errors = {group: learn_frequencies(data.X, data.Y, 14, max_iter=40, group=group).error for group in GROUPS}
    assert errors["odd reflections"] < 0.75 * errors["shifts"] < 0.2 * errors["reflections"]


def test_wrong_pairs_are_left_out(rng):
    data = make_burgers(80, n_points=32)
    Y, wrong = data.Y.copy(), rng.choice(80, 8, replace=False)
    Y[wrong] = -Y[np.roll(wrong, 1)]
    found = learn_frequencies(data.X, Y, 14, max_iter=20, outliers=True)
    assert not set(wrong) & set(found.index)
    assert len(found.index) >= 60


def test_wrong_arguments(pairs):
    X, Y = pairs
    with pytest.raises(ValueError, match=r"same shape. Got \(7, 8\) and \(7, 4\)"):
        learn_frequencies(X, Y[:, :4])
    with pytest.raises(ValueError, match="'gains' parameter of Equivariant must be 5 positive"):
        OperatorKernelRegressor(Equivariant(Linear(), gains=[1.0, 2.0])).fit(X, Y)
    with pytest.raises(ValueError, match="'decay' parameter of Filtered"):
        Filtered(Linear(), [1.0, 2.0])(X)


def test_a_descent_ends_before_a_ridge_falls_below_round_off(pairs, monkeypatch):
    """Beyond, the leave-one-out error is noise, and a fit with that lam cannot be trusted."""
    seen = []

    def descent(value, start, callback, **options):
        for step in (0.0, -1.0, -9.0, -2.0):
            moved = start + np.where(np.arange(len(start)) < len(start) - 5, -step, step)
            seen.append(moved)
            callback(moved)

    def minimize(value, start, callback, **options):
        with contextlib.suppress(StopIteration):
            descent(value, start, callback)

    monkeypatch.setattr(frequency_search, "minimize", minimize)
    found = learn_frequencies(*pairs)
    assert len(seen) == 3  # the third point is unusable
    assert_allclose(found.lam, np.exp(seen[1][-1]) / len(pairs[0]))
