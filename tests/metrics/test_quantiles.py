"""Scores of quantiles against hand-computed numbers and scikit-learn."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss

from fenchel import QuantileFunctionRegressor
from fenchel.metrics import coverage, crossing_rate, crps, crps_scorer, pinball_loss, pinball_scorer

LEVELS = (0.1, 0.5, 0.8)


def test_pinball_loss_is_scikit_learns():
    rng = np.random.default_rng(0)
    y, predicted = rng.standard_normal(20), rng.standard_normal((20, 3))
    wanted = np.mean([mean_pinball_loss(y, predicted[:, k], alpha=level) for k, level in enumerate(LEVELS)])
    assert pinball_loss(y, predicted, LEVELS) == pytest.approx(wanted, rel=1e-12)
    both = pinball_loss(np.stack([y, 2 * y], axis=1), np.stack([predicted, 2 * predicted], axis=2), LEVELS)
    assert both == pytest.approx(1.5 * wanted)


def test_crps_of_a_normal_distribution():
    """The closed form of Gneiting and Raftery, by many quantiles."""
    y, (points, weights) = np.array([-0.7, 0.3, 2.0]), np.polynomial.legendre.leggauss(2000)
    levels = (points + 1) / 2
    found = crps(y, np.tile(norm.ppf(levels), (3, 1)), levels, weights)
    wanted = y * (2 * norm.cdf(y) - 1) + 2 * norm.pdf(y) - 1 / np.sqrt(np.pi)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_crossings_and_coverage():
    assert crossing_rate([[0.0, 1.0, 1.0], [2.0, 1.0, 0.0]]) == 0.5
    assert crossing_rate([[1.0]]) == 0 and crossing_rate([[1.0, 1.0 - 1e-16]]) == 0
    assert coverage([1.0, 2.0, 3.0], [0.0, 2.0, 0.0], [1.0, 2.0, 1.0]) == pytest.approx(2 / 3)


def test_scorers():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (50, 1))
    y = X[:, 0] + 0.1 * rng.standard_normal(50)
    model = QuantileFunctionRegressor(levels=5, lam=1e-3).fit(X, y)
    assert pinball_scorer(LEVELS)(model, X, y) == -pinball_loss(y, model.predict(X, LEVELS), LEVELS)
    levels = (np.arange(50) + 0.5) / 50
    assert crps_scorer()(model, X, y) == pytest.approx(-np.mean(crps(y, model.predict(X, levels), levels)))


def test_bad_input():
    with pytest.raises(ValueError, match=r"predicted must have shape \(2, 3\). Got \(2, 2\)"):
        pinball_loss([1.0, 2.0], np.ones((2, 2)), LEVELS)
    with pytest.raises(ValueError, match="levels must be a vector of numbers"):
        pinball_loss([1.0], [[1.0]], [1.0])
    with pytest.raises(ValueError, match="predicted must be finite"):
        pinball_loss([1.0], [[np.nan]], [0.5])
    with pytest.raises(ValueError, match=r"weights must have shape \(1,\)"):
        crps([1.0], [[1.0]], [0.5], [1.0, 2.0])
    with pytest.raises(ValueError, match="must have the same shape"):
        coverage([1.0], [1.0], [1.0, 2.0])
