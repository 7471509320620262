"""Where the papers' printed formulas and the mathematics differ, the mathematics is kept: shown here by numbers."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from fenchel.kernels import Gaussian, Separable
from fenchel.losses import EpsilonRidge
from fenchel.problem import DualProblem
from fenchel.representations import Euclidean
from fenchel.solvers import PGD, Status
from tests.parts import space

EPS = np.finfo(np.float64).eps


def soft_threshold(rows, threshold):
    """BST(x, t) = (1 - t / |x|)_+ x."""
    norms = np.sqrt(np.sum(rows**2, axis=1, keepdims=True))
    return np.clip(1 - threshold / norms, 0, None) * rows


def test_soft_threshold_is_scaled_by_the_step():
    """[Laforgue2020] Alg. 1 prints BST(W, epsilon) after a gradient step of length eta; it must be eta × epsilon."""
    rng = np.random.default_rng(0)
    n, p, lam, epsilon = 8, 2, 0.2, 0.6
    X, Y = rng.standard_normal((n, 2)), rng.standard_normal((n, p))
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    H = K / (lam * n)

    bound = space(Euclidean(), Y)
    problem = DualProblem.build(Separable(Gaussian(0.5)).bind(X, bound).gram(X), Y, EpsilonRidge(epsilon), lam)

    # one step of the solver, twice: the prox of g (|.|^2 / 2 + epsilon |.|) is BST(., g epsilon) / (1 + g)
    solver = PGD()
    state = solver.first_state(problem, rng.standard_normal((n, p)))
    g = state.step
    assert 0.5 < g * np.linalg.norm(H, 2) <= 1
    for _ in range(2):
        W = state.duals
        state = solver.next_state(problem, state)
        wanted = soft_threshold(W - g * (H @ W - Y), g * epsilon) / (1 + g)
        assert_allclose(state.duals, wanted, rtol=0, atol=64 * EPS * np.max(np.abs(Y)))
    assert 0 < np.sum(np.all(state.duals == 0, axis=1)) < n  # both branches of the threshold were met

    # the optimum by a minimisation of the smooth primal, which knows nothing of thresholds: h = K c
    def primal(flat):
        c = flat.reshape(n, p)
        residuals = Y - K @ c
        norms = np.sqrt(np.sum(residuals**2, axis=1))
        excess = np.clip(norms - epsilon, 0, None)
        slope = -K @ (residuals * (excess / norms)[:, None]) / n + lam * (K @ c)
        return np.sum(excess**2) / (2 * n) + lam / 2 * np.sum(c * (K @ c)), slope.ravel()

    best = minimize(primal, np.zeros(n * p), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000}).fun
    solution = PGD().solve(problem, tol=1e-9)
    assert solution.status is Status.CONVERGED
    assert_allclose(solution.certificate.primal, best, rtol=1e-7)

    # the printed algorithm, with the quadratic in the gradient as it stands there, at its fixed point
    full = H + np.eye(n)
    eta = 1 / np.linalg.norm(full, 2)
    reached = {}
    for name, threshold in (("printed", epsilon), ("scaled", eta * epsilon)):
        W = np.zeros((n, p))
        for _ in range(5000):
            before, W = W, soft_threshold(W - eta * (full @ W - Y), threshold)
        assert np.max(np.abs(W - before)) < 1e-14  # a fixed point indeed
        reached[name] = primal((W / (lam * n)).ravel())[0]
    assert_allclose(reached["scaled"], best, rtol=1e-7)
    assert reached["printed"] > 1.05 * best
