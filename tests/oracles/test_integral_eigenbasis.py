"""Integral losses in M eigenfunctions of the levels, [Laforgue2019] problem (16), against cvxpy.

The library restricts the model to the eigenfunctions and leaves the duals free in their box. The paper restricts the
duals to the eigenfunctions, where the box has no simple projection; cvxpy takes such constraints.
"""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import CostSensitiveClassifier, QuantileFunctionRegressor
from fenchel.kernels import Gaussian

M, LAM, LEVELS = 3, 1e-2, 9
SETTINGS = {"kernel": Gaussian(1.0), "lam": LAM, "levels": LEVELS, "intercept": 0.0, "tol": 1e-8}


def cosines(levels, count=M):
    """Return orthonormal functions of L2(0, 1) at some levels, (levels, count)."""
    return np.where(np.arange(count) > 0, np.sqrt(2), 1.0) * np.cos(np.pi * levels[:, None] * np.arange(count))


def spectrum(count=M):
    return 1 / (1 + np.arange(count)) ** 2


def leading(S, T, count=M):
    """Return the kernel of the leading eigenfunctions, with the arguments of a kernel of vectors."""
    return cosines(S[:, 0], count) * spectrum(count) @ cosines(T[:, 0], count).T


@pytest.fixture
def sample(rng):
    X = rng.uniform(-1, 1, (14, 1))
    return X, X[:, 0] + (0.3 + 0.2 * X[:, 0]) * rng.standard_normal(14)


def quantile_problem(X, y, model, count):
    """Return the smallest objective with h = sum_i k(., x_i) Psi S b_i, for coefficients b (n, count) of duals."""
    K, levels, weights = SETTINGS["kernel"](X), model.levels_, model.level_weights_
    targets = y[:, None] - model.marginal_(levels)[:, 0]
    b, root = cp.Variable((len(y), count)), np.linalg.cholesky(K + 1e-12 * np.eye(len(y)))
    residuals = targets - K @ b @ np.diag(spectrum(count)) @ cosines(levels, count).T
    loss = cp.sum(cp.maximum(cp.multiply(levels[None], residuals), cp.multiply(levels[None] - 1, residuals)) @ weights)
    penalty = cp.sum_squares(root.T @ b @ np.diag(spectrum(count) ** 0.5))
    return cp.Problem(cp.Minimize(loss / len(y) + LAM / 2 * penalty)).solve(solver="CLARABEL")


def literal_dual(X, y, model, count):
    """Return the largest dual objective of (16): duals in the span of the eigenfunctions that stay in their box."""
    K, levels, weights, n = SETTINGS["kernel"](X), model.levels_, model.level_weights_, len(y)
    targets = y[:, None] - model.marginal_(levels)[:, 0]
    beta, root = cp.Variable((n, count)), np.linalg.cholesky(K + 1e-12 * np.eye(n))
    duals = beta @ cosines(levels, count).T
    moments = (cosines(levels, count).T * weights) @ cosines(levels, count)  # the identity, up to the quadrature
    penalty = cp.sum_squares(root.T @ beta @ moments @ np.diag(spectrum(count) ** 0.5)) / (2 * LAM * n)
    linear = cp.sum(cp.multiply(duals, targets) @ weights)
    box = [duals <= levels[None], duals >= levels[None] - 1]
    return cp.Problem(cp.Maximize((linear - penalty) / n), box).solve(solver="CLARABEL")


def test_quantiles_in_few_eigenfunctions(sample):
    """The certified optimum is that over coefficients; duals in the span stay below it."""
    X, y = sample
    model = QuantileFunctionRegressor(level_kernel=leading, **SETTINGS).fit(X, y)
    best = quantile_problem(X, y, model, M)
    assert model.duality_gap_ <= 1e-8
    assert_allclose([model.primal_objective_, model.dual_objective_], best, rtol=1e-6)
    literal = literal_dual(X, y, model, M)
    assert literal < best - 1e-3 * best  # a gap that no iteration closes


def test_both_approximations_tend_to_problem_15(sample):
    """With as many eigenfunctions as nodes, duals in the span are all duals."""
    X, y = sample

    def kernel(S, T):
        return leading(S, T, LEVELS)

    model = QuantileFunctionRegressor(level_kernel=kernel, **SETTINGS).fit(X, y)
    assert_allclose(literal_dual(X, y, model, LEVELS), model.dual_objective_, rtol=1e-5)
    assert_allclose(quantile_problem(X, y, model, LEVELS), model.primal_objective_, rtol=1e-5)


def test_predictions_are_functions_in_the_span(sample):
    X, y = sample
    model = QuantileFunctionRegressor(level_kernel=leading, **SETTINGS).fit(X, y)
    levels = np.linspace(0.02, 0.98, 40)
    values = model.predict(X, levels) - model.marginal_(levels)[:, 0]
    fitted = np.linalg.lstsq(cosines(levels), values.T, rcond=None)[0]
    assert_allclose(cosines(levels) @ fitted, values.T, atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"non_crossing": True}, {"pilot": True}])
def test_levels_zero_and_one_are_limits(sample, settings):
    X, y = sample
    model = QuantileFunctionRegressor("gaussian", lam=1e-2, levels=8, **settings).fit(X, y)
    assert_allclose(model.predict(X, [0.0, 1.0]), model.predict(X, [1e-12, 1 - 1e-12]), atol=1e-8)
    with pytest.raises(ValueError, match=r"quantiles must hold numbers in \[0, 1\]\. Got 1\.2"):
        model.predict(X, 1.2)


def test_costs_in_few_eigenfunctions(sample):
    X, y = sample
    labels = np.where(y > 0, 1, -1)
    model = CostSensitiveClassifier(level_kernel=leading, **SETTINGS).fit(X, labels)
    K, costs, weights = SETTINGS["kernel"](X), model.levels_, model.level_weights_
    b, root = cp.Variable((len(y), M)), np.linalg.cholesky(K + 1e-12 * np.eye(len(y)))
    scores = K @ b @ np.diag(spectrum()) @ cosines(costs).T
    dear = np.where(labels[:, None] > 0, costs, 1 - costs)
    loss = cp.sum(cp.multiply(dear, cp.pos(1 - cp.multiply(labels[:, None] * np.ones_like(dear), scores))) @ weights)
    penalty = cp.sum_squares(root.T @ b @ np.diag(spectrum() ** 0.5))
    best = cp.Problem(cp.Minimize(loss / len(y) + LAM / 2 * penalty)).solve(solver="CLARABEL")
    assert_allclose(model.primal_objective_, best, rtol=1e-6)
