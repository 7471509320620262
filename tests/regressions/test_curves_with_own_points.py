"""Curves that are observed at few points of their own: kernels are compared where the curves were observed."""

import numpy as np
import pytest

from fenchel import FunctionalRegressor, FunctionalRegressorCV
from fenchel.datasets import Curves
from fenchel.kernels import IntegralOperator, Laplacian
from fenchel.model.curve_gaps import completed_targets
from fenchel.model.functions import FunctionCodec
from fenchel.representations import Spline

GRID = np.linspace(0, 1, 21)


def at(X, points):
    return np.sin(2 * np.pi * points + 2 * X[:, :1]) * (1 + X[:, 1:]) + X[:, :1] * points


def curves(X):
    return at(X, GRID)


def sample(seed, n=30):
    """Return inputs, curves with five to fifteen values, and all values."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    whole = curves(X) + 0.05 * rng.standard_normal((n, len(GRID)))
    partial = np.full_like(whole, np.nan)
    for row, values in zip(partial, whole, strict=True):
        at = rng.choice(len(GRID), rng.integers(5, 16), replace=False)
        row[at] = values[at]
    return X, partial, whole


@pytest.mark.parametrize("seed", [1])
def test_search_is_nearly_as_good_as_the_best_lam(seed):
    X, partial, _ = sample(seed)
    new = np.random.default_rng(100).uniform(-1, 1, (100, 2))
    truth = curves(new)
    model = FunctionalRegressorCV(output_kernel=Laplacian(10.0), losses="square", cv=2).fit(X, partial, GRID)

    def error(fitted):
        return float(np.mean((fitted.predict(new) - truth) ** 2))

    best = model.best_estimator_.get_params(deep=False)
    others = [FunctionalRegressor(**{**best, "lam": 10.0**k}).fit(X, partial, GRID) for k in range(-8, 1)]
    assert error(model) <= min(error(other) for other in others) + 0.02 * np.var(truth)


def test_missing_values_are_estimated_from_the_same_curve():
    _, partial, whole = sample(0)

    def completed(values):
        representation = Spline("mean")
        targets = representation.learn(Curves(GRID, values))
        codec = FunctionCodec(representation, IntegralOperator(Laplacian(10.0)), grid=GRID)
        return representation.decode(completed_targets(codec, targets))

    filled = completed(partial)
    seen = ~np.isnan(partial)
    np.testing.assert_allclose(filled[seen], partial[seen], rtol=1e-12)
    assert np.mean((filled - whole)[~seen] ** 2) < 0.3 * np.mean(whole[~seen] ** 2)
    alone = completed(np.vstack([partial[:20], 7 + partial[20:]]))
    np.testing.assert_allclose(alone[:20], filled[:20], atol=0.5)


def test_kernels_are_compared_where_curves_were_observed():
    """Each curve has points of its own; completed curves rank a kernel first that explains half as much."""
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (40, 2))
    pairs = []
    for row in X:
        points = np.sort(rng.uniform(0, 1, rng.integers(5, 16)))
        pairs.append((points, at(row[None], points)[0] + 0.05 * rng.standard_normal(len(points))))
    model = FunctionalRegressorCV(output_kernel=Laplacian(10.0), losses="square", cv=2).fit(X, pairs)
    new = rng.uniform(-1, 1, (100, 2))
    points = np.linspace(0.05, 0.95, 20)
    truth = at(new, points)
    assert np.mean((model.predict(new, points) - truth) ** 2) < 0.1 * np.var(truth)
