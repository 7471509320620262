"""How many features a preconditioner has, and what an exact fit with them certifies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.kernels import Gaussian, Matern
from fenchel.losses import Huber, Square
from fenchel.model.memory import preconditioner
from fenchel.model.spec import Spec
from fenchel.model.spectrum import Spectrum
from fenchel.operators import Streamed
from fenchel.problem import DualProblem
from fenchel.solvers import Krylov


def spec(lam, loss=None, solver=None):
    return Spec("test", loss or Square(), lam, solver or Krylov(), 1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(0.15), Matern(2.0, 1.5)], ids=repr)
@pytest.mark.parametrize("count", [60, 200])
@pytest.mark.parametrize("ridge", [1e-3, 1e-1])
def test_condition_against_generalised_eigenvalues(kernel, count, ridge, rng):
    """The root of the estimated condition, which the passes follow, is within a factor of three."""
    X = rng.standard_normal((800, 5))
    K, features = kernel(X), Nystrom(count, "uniform").approximate(kernel, X).features(X)
    eye = ridge * np.eye(len(X))
    values = eigh(K + eye, features @ features.T + eye, eigvals_only=True)
    found = Spectrum.of(kernel, X).condition(count, ridge)
    assert 1 / 9 < found / (values[-1] / values[0]) < 9


def test_a_small_ridge_gets_more_features(rng, monkeypatch):
    n = 20_000
    X = rng.standard_normal((n, 5))

    def look():
        return Spectrum.of(Gaussian(0.4), X)

    counts = [preconditioner(X, spec(lam), 5, look).n_components for lam in (1e-2, 1e-6, 1e-8)]
    assert counts[0] == int(6 * n**0.5) < counts[1] < counts[2]
    monkeypatch.setattr("fenchel.model.memory.free_memory", lambda like: 3 * 2**29)
    least = preconditioner(X, spec(1e-8), 5, look).n_components
    assert least < counts[2] and 8 * n * (3 * least + 5 * 32) <= 3 * 2**28
    assert preconditioner(X, spec(1e-9, solver=Krylov(n_components=77)), 5, look).n_components == 77


def test_the_count_has_the_least_estimated_time(rng):
    X, kernel, lam = rng.standard_normal((5000, 5)), Gaussian(0.4), 1e-7
    spectrum = Spectrum.of(kernel, X)
    found = preconditioner(X, spec(lam, Huber(1.0)), 3, lambda: spectrum).n_components

    def seconds(count):
        condition = spectrum.condition(count, 5000 * lam)
        return Krylov().estimate(5000, 3, Huber(1.0), lam, True, count, condition).seconds

    assert seconds(found) <= 1.001 * min(seconds(count) for count in range(450, 4500, 50))


@pytest.mark.parametrize(("loss", "kappa"), [(Square(), np.inf), (Huber(0.2), 0.2)], ids=repr)
def test_the_certificate_of_a_tiny_ridge_is_that_of_predictions(loss, kappa, rng):
    """A fit in float32 tiles reaches the gap that float64 predictions confirm."""
    X = rng.uniform(-2, 2, (900, 3))
    Y = np.sin(X @ rng.standard_normal((3, 2))) + 0.1 * rng.standard_normal((900, 2))
    lam = 1e-3 / 900
    model = OperatorKernelRegressor(Gaussian(0.3), loss=loss, lam=lam, solver="krylov").fit(X, Y)
    assert model.duality_gap_ <= 1e-6
    duals, residuals = model.dual_coef_, Y - model.predict(X)
    sizes = np.linalg.norm(residuals, axis=1)
    values = np.where(sizes < kappa, sizes**2 / 2, 0.2 * (sizes - 0.1))
    # Fenchel-Young, summed: the norm of the model is the product of its predictions with the duals
    gap = np.mean(values + np.sum(duals**2, axis=1) / 2 - np.sum(duals * residuals, axis=1))
    primal = np.mean(values) + np.sum(duals * (model.predict(X) - Y.mean(axis=0))) / 2 / len(X)
    assert_allclose(gap / primal, model.duality_gap_, rtol=1e-3, atol=1e-10)


def test_corrections_in_float32_reach_the_digits_of_float64(rng, monkeypatch):
    """After a certificate that float32 has missed, products of corrections have enough digits: few float64 passes."""
    X = rng.uniform(-2, 2, (900, 3))
    Y, kernel = np.sin(X @ rng.standard_normal((3, 2))), Gaussian(0.3)

    def passes():
        gram = Streamed(kernel, X, features=lambda: Nystrom(100).approximate(kernel, X).features(X))
        solution = Krylov().solve(DualProblem.build(gram, Y, Square(), 1e-4 / 900), 1e-7)
        fitted = kernel(X) @ solution.duals / 1e-4
        gap = np.sum((Y - fitted - solution.duals) ** 2) / 2
        assert gap <= 1e-7 * (np.sum((Y - fitted) ** 2) + np.sum(fitted * solution.duals)) / 2
        return gram.n_passes

    few = passes()
    monkeypatch.setattr("fenchel.solvers.krylov._BETTER", 0.0)
    assert few <= 10 and passes() > 3 * few
