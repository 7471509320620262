"""Curves for the tests of the functional estimators, and the problem that they solve, in plain NumPy.

Everything is for ``Gaussian(0.5)`` on vectors and ``Laplacian(3.0)`` on the points of ``GRID``.
"""

import numpy as np

from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square

GRID = np.array([0.0, 0.05, 0.2, 0.4, 0.45, 0.8, 1.1, 1.3])


def blanked(Y, share=0.3, seed=1):
    """A copy of the curves with some values missing, at least one left in each."""
    rng = np.random.default_rng(seed)
    flat = Y.reshape(len(Y), -1).copy()
    hidden = rng.random(flat.shape) < share
    hidden[np.arange(len(Y)), rng.integers(0, flat.shape[1], len(Y))] = False
    flat[hidden] = np.nan
    return flat.reshape(Y.shape)


def full_weights(Y, grid=GRID):
    """Weights (n, m) of the points of each curve: the trapezoid rule, scaled to the same sum over what was seen."""
    flat = Y.reshape(len(Y), -1)
    rule = np.array([np.trapezoid(row, grid) for row in np.eye(len(grid))])
    rule = np.repeat(rule, flat.shape[1] // len(grid))
    seen = ~np.isnan(flat)
    return (rule * rule.sum() / np.sum(seen * rule, axis=1, keepdims=True)).reshape(Y.shape)


def loss_and_conjugate(loss, residual, dual, weights):
    """The value of a loss at a function, that of its conjugate at another, both by their values at weighted points."""

    def norm(f, p):
        return np.max(np.abs(f)) if np.isinf(p) else np.sum(weights * np.abs(f) ** p) ** (1 / p)

    size, square = norm(residual, 2), norm(dual, 2) ** 2 / 2
    if isinstance(loss, Square):
        return size**2 / 2, square
    if isinstance(loss, Huber) and loss.p == 2:
        assert norm(dual, 2) <= loss.kappa * (1 + 1e-9)
        return size**2 / 2 if size <= loss.kappa else loss.kappa * (size - loss.kappa / 2), square
    if isinstance(loss, Huber) and loss.p == 1:  # point by point
        assert norm(dual, np.inf) <= loss.kappa * (1 + 1e-9)
        value, kappa = np.abs(residual), loss.kappa
        return np.sum(weights * np.where(value <= kappa, value**2 / 2, kappa * (value - kappa / 2))), square
    if isinstance(loss, EpsilonRidge) and loss.p == 2:
        return max(size - loss.epsilon, 0) ** 2 / 2, square + loss.epsilon * norm(dual, 2)
    if isinstance(loss, EpsilonRidge) and np.isinf(loss.p):  # point by point
        beyond = np.clip(np.abs(residual) - loss.epsilon, 0, None)
        return np.sum(weights * beyond**2) / 2, square + loss.epsilon * norm(dual, 1)
    assert isinstance(loss, EpsilonSVR)
    bound = norm(dual, 2 if loss.p == 2 else np.inf)
    assert loss.p in (1, 2)
    assert bound <= 1 + 1e-9
    return max(norm(residual, loss.p) - loss.epsilon, 0), loss.epsilon * bound


def objectives(duals, X, Y, loss, lam, counts=None, channels=((1.0,),)):
    """P(h_a), D(a) and the predictions at the training points; rows of Y and of the duals are flat."""
    n = len(X)
    counts = np.ones(n) if counts is None else counts
    weights, seen = full_weights_flat(Y, len(channels)), ~np.isnan(Y)
    functions = np.where(seen, duals / np.sqrt(weights), 0.0)  # coordinates are values times roots of weights
    assert np.all(duals[~seen] == 0)
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    G = np.kron(np.exp(-3 * np.abs(GRID[:, None] - GRID)), channels)
    total = counts.sum()
    charges = counts[:, None] * np.where(seen, weights, 0.0) * functions
    predictions = K @ charges @ G / (lam * total)
    norm = np.sum(charges * predictions) / (lam * total)
    primal, dual = lam / 2 * norm, -lam / 2 * norm
    for i in range(n):
        at = seen[i]
        value, conjugate = loss_and_conjugate(loss, (Y - predictions)[i, at], functions[i, at], weights[i, at])
        primal += counts[i] * value / total
        dual += counts[i] * (np.sum(weights[i, at] * functions[i, at] * Y[i, at]) - conjugate) / total
    return primal, dual, predictions


def full_weights_flat(Y, n_channels):
    return full_weights(Y.reshape(len(Y), -1, n_channels)).reshape(Y.shape)
