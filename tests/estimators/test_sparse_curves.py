"""Inputs that are noisy curves, each observed at a few points of its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fenchel
from fenchel import ConformalRegressor, FunctionalRegressorCV, OperatorKernelRegressorCV
from fenchel.data.functional import as_curves
from fenchel.exceptions import DataWarning
from fenchel.model.smoothed_curves import CurveSmoother, Observed, Process, _basis

NOISE = 0.3
QUICK = {"losses": ["square"], "cv": 3}


def shapes(t):
    return np.stack([1.5 * np.sin(np.pi * t), np.sin(2 * np.pi * t), 0.6 * np.cos(3 * np.pi * t)], axis=-1)


def curves(n, rng, fewest=5, most=15):
    scores = rng.standard_normal((n, 3))
    pairs = []
    for row in scores:
        at = rng.permutation(rng.uniform(size=rng.integers(fewest, most + 1)))
        pairs.append((at, 2 * at + shapes(at) @ row + NOISE * rng.standard_normal(len(at))))
    return scores, pairs


def expected(pairs, grid):
    """Return the conditional expectations of the Gaussian process with the true mean and covariance."""
    rows = []
    for at, values in pairs:
        basis = shapes(at)
        gram = basis @ basis.T + NOISE**2 * np.eye(len(at))
        rows.append(2 * grid + shapes(grid) @ basis.T @ np.linalg.solve(gram, values - 2 * at))
    return np.array(rows)


def test_smoothed_curves_are_nearly_as_good_as_with_a_known_covariance(rng):
    scores, pairs = curves(200, rng)
    found = as_curves(pairs)
    smoother = CurveSmoother.of(found)
    truth = 2 * smoother.grid + scores @ shapes(smoother.grid).T
    error, least = (
        np.sqrt(np.mean((rows - truth) ** 2)) for rows in (smoother(found)[:, :, 0], expected(pairs, smoother.grid))
    )
    linear = [np.interp(smoother.grid, *(part[np.argsort(pair[0])] for part in pair)) for pair in pairs]
    assert error < 1.12 * least
    assert error < 0.65 * np.sqrt(np.mean((linear - truth) ** 2))
    assert smoother.processes[0].noise ** 0.5 == pytest.approx(NOISE, rel=0.1)


def test_expectations_and_likelihoods_are_those_of_the_joint_normal_law(rng):
    _, pairs = curves(30, rng)
    found = as_curves(pairs)
    seen = Observed.of(found.grid, found.values)
    process = Process.learn(seen, 0.5, 10.0)
    grid, total, rows = np.linspace(0, 1, 7), 0.0, []
    for at, values in zip(
        *(np.split(part, np.flatnonzero(np.diff(seen.owner)) + 1) for part in (seen.points, seen.values)), strict=True
    ):
        basis = _basis(0.5, at)
        gram = basis @ process.covariance @ basis.T + process.noise * np.eye(len(at))
        rows.append(_basis(0.5, grid) @ process.covariance @ basis.T @ np.linalg.solve(gram, values))
        total -= 0.5 * (values @ np.linalg.solve(gram, values) + np.linalg.slogdet(gram)[1])
    assert_allclose(process.expected(seen, grid), rows, atol=1e-8)
    assert_allclose(process.log_likelihood(seen), total)
    others = Process.learn(seen, 0.5, 300.0)
    free = Process.learn(seen, 0.5, 1e-3)  # nearly the maximum of the likelihood itself
    assert free.log_likelihood(seen) > process.log_likelihood(seen) > others.log_likelihood(seen)


def test_both_searches_predict_nearly_as_well_as_from_whole_curves(rng):
    scores, pairs = curves(150, rng)
    grid = np.linspace(0, 1, 51)
    dense = (2 * grid + scores @ shapes(grid).T)[:, :, None]
    y = scores[:, 0] + 0.5 * scores[:, 1] + 0.1 * rng.standard_normal(150)
    model = OperatorKernelRegressorCV(**QUICK).fit(pairs[:100], y[:100])
    whole = OperatorKernelRegressorCV(**QUICK).fit({"curve": dense[:100]}, y[:100])
    assert model.score(pairs[100:], y[100:]) > 0.85
    assert whole.score({"curve": dense[100:]}, y[100:]) > 0.95
    assert_allclose(model.predict({"curves": pairs[100:]}), model.predict(pairs[100:]))
    Y = y[:, None] * np.sin(grid)
    assert FunctionalRegressorCV(**QUICK).fit(pairs[:100], Y[:100], grid).score(pairs[100:], Y[100:]) > 0.85


def test_gaps_in_arrays_and_parts_with_them(rng, tmp_path):
    scores, _ = curves(60, rng)
    grid, place = np.linspace(0, 1, 40), rng.normal(size=60)
    values = 2 * grid + scores @ shapes(grid).T + NOISE * rng.standard_normal((60, 40))
    values[rng.random(values.shape) < 0.7] = np.nan
    y = scores[:, 0] + place
    X = {"curve": values[:, :, None], "place": place}
    model = OperatorKernelRegressorCV(**QUICK).fit(X, y)
    assert model.score(X, y) > 0.8
    fenchel.save(model, tmp_path / "model.skops")
    assert_array_equal(fenchel.load(tmp_path / "model.skops").predict(X), model.predict(X))
    band = ConformalRegressor(OperatorKernelRegressorCV(**QUICK), coverage=0.8, method="split").fit(X, y)
    assert np.mean(band.predict_interval(X).contains(y)) > 0.7
    alone = OperatorKernelRegressorCV(**QUICK).fit(X["curve"], scores[:, 0])
    named = OperatorKernelRegressorCV(**QUICK).fit({"curves": X["curve"]}, scores[:, 0])
    assert_allclose(alone.predict(X["curve"]), named.predict({"curves": X["curve"]}))
    pairs = [(grid[seen], row[seen]) for row, seen in zip(values, ~np.isnan(values), strict=True)]
    assert_allclose(alone.predict(pairs), alone.predict(X["curve"]), atol=1e-8)


def test_hostile_curves(rng):
    scores, pairs = curves(30, rng)
    later = [(24 * at, values) for at, values in pairs]
    model = OperatorKernelRegressorCV(**QUICK).fit(later, scores[:, 0])
    with pytest.raises(ValueError, match=r"X\['curves'\] must come with points"):
        model.predict(np.zeros((2, 24, 1)))
    with pytest.raises(ValueError, match="must have 1 channels"):
        model.predict([(np.arange(3.0), np.ones((3, 2)))])
    with pytest.warns(DataWarning, match="outside of"):
        far = model.predict([(np.append(at, 100.0), np.append(values, 1e6)) for at, values in later])
    assert_allclose(far, model.predict(later))
    single = [(at[:1], values[:1]) for at, values in later]
    assert np.all(np.isfinite(OperatorKernelRegressorCV(**QUICK).fit(single, scores[:, 0]).predict(single)))
    flat = [(at, np.ones_like(values)) for at, values in later]
    with pytest.warns(DataWarning):  # equal inputs
        found = OperatorKernelRegressorCV(**QUICK).fit(flat, scores[:, 0]).predict(flat)
    assert np.all(np.isfinite(found))
