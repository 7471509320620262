"""Theorem 5 of the loss trick: its parts against exact operators on a finite set of inputs, the bound by hand."""

import math

import numpy as np
import pytest

from fenchel import LossTrickPredictor, OperatorKernelRegressor, excess_risk_bound
from fenchel.approximations import Nystrom
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Constant, Gaussian, Linear
from fenchel.losses import Huber

INPUTS = np.linspace(-2, 2, 41)[:, None]  # all possible inputs, equally probable
CENTRES = np.array([[-1.0], [1.0]])
KERNEL, DELTA = Gaussian(1.0) + Constant(), 0.1


def kernel(A, B):
    return 1 + np.exp(-((A - B.T) ** 2))


def probabilities():
    """Return p(x) of three classes in the space of the kernel, and the squared norm of its part for each class."""
    bumps = np.exp(-((INPUTS - CENTRES.T) ** 2))
    shares = np.array([[0.4, -0.2], [-0.2, 0.4], [-0.2, -0.2]])
    p = 1 / 3 + bumps @ shares.T
    norms = 1 / 9 + np.einsum("ki,ij,kj->k", shares, np.exp(-((CENTRES - CENTRES.T) ** 2)), shares)
    return p, norms


def features(p):
    """Return the mean features of the zero-one loss: a unit vector and a one."""
    return np.hstack([p, np.ones((len(p), 1))])


def fitted(n, seed, lam):
    rng, p = np.random.default_rng(seed), probabilities()[0]
    rows = rng.integers(len(INPUTS), size=n)
    y = np.array([rng.choice(3, p=p[row]) for row in rows])
    return LossTrickPredictor(KERNEL, "zero_one", lam=lam).fit(INPUTS[rows], y), y


def test_the_law_is_one():
    p, norms = probabilities()
    assert p.min() > 0
    assert p.sum(axis=1) == pytest.approx(1)
    values, vectors = np.linalg.eigh(kernel(INPUTS, INPUTS))
    kept = values > 1e-9
    interpolants = np.sum((vectors[:, kept].T @ p) ** 2 / values[kept, None], axis=0)  # of smallest norm
    assert np.all(interpolants <= norms * (1 + 1e-6))


@pytest.mark.parametrize(("n", "lam"), [(50, 0.3), (400, 0.1), (400, 0.01)])
def test_parts_hold(n, lam):
    p, norms = probabilities()
    target, norm = features(p), math.sqrt(norms.sum() + 1)
    gram = kernel(INPUTS, INPUTS) / len(INPUTS)
    smoothed = gram @ np.linalg.solve(gram + lam * np.eye(len(gram)), target)  # infinitely many samples
    away = math.sqrt(np.mean(np.sum((smoothed - target) ** 2, axis=1)))
    for seed in range(8):
        model, y = fitted(n, seed, lam)
        found = excess_risk_bound(model, DELTA, norm, [0, 1, 2])
        assert found.constant == pytest.approx(math.sqrt(2))
        assert 2 * found.constant * away <= found.penalty_error
        predicted = model.weights(INPUTS) @ features(np.eye(3)[y])
        deviation = math.sqrt(np.mean(np.sum((predicted - smoothed) ** 2, axis=1)))
        assert 2 * found.constant * deviation <= found.sample_error
        excess = np.mean(p.max(axis=1) - p[np.arange(len(p)), model.predict(INPUTS)])
        assert excess <= 2 * found.constant * (away + deviation) <= found.bound


def test_value_by_hand_and_below_lemma_18():
    model, _ = fitted(100, 0, 0.04)
    found = excess_risk_bound(model, DELTA, 1.5, [0, 1, 2])
    log = math.log(40)
    t = 2 * log / 100 + math.sqrt(2 * log / 100)  # 0.0738 + 0.2716
    gamma, feature = math.sqrt(2), math.sqrt(2)
    inner = (feature * gamma + 1.5 * gamma**2) * t * math.sqrt(1 / 0.16 + 2 * t / 0.0016)
    assert t == pytest.approx(0.3454, abs=1e-4)
    assert found.sample_error == pytest.approx(2 * math.sqrt(2) * inner)
    assert found.penalty_error == pytest.approx(2 * math.sqrt(2) * 0.1 * 1.5)
    assert found.bound == pytest.approx(found.sample_error + found.penalty_error)
    first = 8 * gamma * math.sqrt(2) * (feature + gamma * 1.5) / math.sqrt(0.04 * 100)
    lemma = first * (1 + math.sqrt(4 * 2 / (0.04 * 10))) * math.log(8 / DELTA) ** 2
    assert found.bound < lemma + 2 * math.sqrt(2) * math.sqrt(0.04) * 1.5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"surrogate": Huber(0.3)}, "square surrogate"),
        ({"lams": [0.1, 1.0]}, "Give lam instead of lams"),
        ({"kernel": Gaussian("median")}, "does not depend on the sample"),
        ({"kernel": "auto"}, "does not depend on the sample"),
        ({"approximation": Nystrom(10)}, "does not depend on the sample"),
        ({"kernel": Linear()}, "kernel_bound"),
    ],
    ids=str,
)
def test_an_assumption_that_is_not_met_is_named(changes, words):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = LossTrickPredictor(Gaussian(1.0), "zero_one", lam=0.1).set_params(**changes).fit(X, X[:, 0] > 0)
    with pytest.raises(IncompatibleError, match=words):
        excess_risk_bound(model, DELTA, 1.0, [False, True])


def test_other_refusals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = LossTrickPredictor(Gaussian(1.0), "zero_one", lam=0.1).fit(X, X[:, 0] > 0, sample_weight=1 + np.arange(30))
    with pytest.raises(IncompatibleError, match="equal weight"):
        excess_risk_bound(model, DELTA, 1.0, [False, True])
    with pytest.raises(TypeError, match="takes a fitted LossTrickPredictor"):
        excess_risk_bound(OperatorKernelRegressor(), DELTA, 1.0, [False, True])
    with pytest.raises(ValueError, match="'target_norm'"):
        excess_risk_bound(model, DELTA, -1.0, [False, True])
