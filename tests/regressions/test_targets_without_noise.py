"""Targets without noise: the search does not choose a lam at which round-off hides the gap."""

import warnings

import numpy as np
import pytest
from scipy.linalg import eigh

from fenchel import FunctionalRegressorCV, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.kernels import Gaussian
from fenchel.losses import Square
from fenchel.operators import Dense
from fenchel.problem import DualProblem

CASES = {
    "line": lambda X: 2 * X[:, 0] + 1,
    "square": lambda X: X[:, 0] ** 2,
    "two cubics": lambda X: np.column_stack([X[:, 0] ** 3 - X[:, 0], X[:, 0] ** 2]),
    "plane": lambda X: X @ np.array([1.0, 2.0, -1.0]),
    "product": lambda X: X[:, 0] * X[:, 1] + X[:, 2] ** 2,
}


@pytest.mark.parametrize("n", [24, 200])
@pytest.mark.parametrize("name", CASES)
def test_a_search_without_noise_ends_with_a_certified_fit(name, n):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 1 if name in ("line", "square", "two cubics") else 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OperatorKernelRegressorCV().fit(X, CASES[name](X))
    assert model.status_.startswith("converged")
    assert model.duality_gap_ <= 1e-6
    assert np.max(np.abs(model.predict(X) - CASES[name](X))) < (1e-4 if n == 200 or name != "product" else 0.1)


def test_curves_without_noise_end_with_a_certified_fit():
    rng, grid = np.random.default_rng(0), np.linspace(0, 1, 12)
    X = rng.uniform(-1, 1, (30, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FunctionalRegressorCV().fit(X, X * grid + X**2 * grid**2, grid=grid)
    assert model.duality_gap_ <= 1e-6


def test_far_below_the_least_lam_round_off_hides_the_gap():
    x = np.random.default_rng(0).uniform(-1, 1, (24, 1))
    Y = CASES["two cubics"](x)
    least = DualProblem.build(Dense(Gaussian(0.05)(x)), Y, Square(), 1.0).least_lam(1e-6)
    found = OperatorKernelRegressor(Gaussian(0.05), lam=least).fit(x, Y)
    assert found.duality_gap_ <= 1e-6
    with pytest.warns(match="gap"):
        below = OperatorKernelRegressor(Gaussian(0.05), lam=1e-5 * least).fit(x, Y)
    assert below.duality_gap_ > 1e-6


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_round_off_of_predictions_at_the_least_lam(tol):
    """The ridge solution, rounded as a backward stable solver rounds it, has a gap within tol."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (40, 2))
    K, y = Gaussian(1.0)(X), np.sin(X[:, :1])
    problem = DualProblem.build(Dense(K), y, Square(), 1.0)
    lam = problem.least_lam(tol)
    assert lam == pytest.approx(np.finfo(float).eps / np.sqrt(tol) * np.trace(K) / 40, rel=1e-12)
    values, vectors = eigh(K)
    a = vectors @ ((vectors.T @ y) * (40 * lam / (np.maximum(values, 0) + 40 * lam))[:, None])
    bound = np.finfo(float).eps * np.trace(K) * np.linalg.norm(a) / (40 * lam)  # of the error of predictions
    objective = float(np.sum(a * y)) / 80
    assert bound**2 / 80 <= tol * objective
    found = problem.with_(lam=lam)
    gap = found.certificate(a, found.predictions(a)).relative_gap
    assert gap <= tol
