"""Rankers of pairs: derivatives, closed form and optimum by cvxpy, losses pair by pair."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils import Bunch

from fenchel.papers import movielens, rankers
from fenchel.papers.experiment import Unit, run

LAM = 0.05


@pytest.fixture
def sample(rng):
    ratings = rng.integers(1, 6, (7, 5)).astype(float)
    ratings[rng.random((7, 5)) < 0.2] = np.nan
    ratings[0] = 3.0  # no pair
    return rng.standard_normal((7, 3)), rng.standard_normal((2, 3)), ratings, rng.standard_normal(5)


def test_pairs_by_hand():
    pairs = rankers.Pairs.of(np.array([[1.0, np.nan, 3.0, 2.0], [4.0, 4.0, np.nan, np.nan]]))
    found = sorted(zip(pairs.user, pairs.better, pairs.worse, pairs.gap, pairs.total, strict=True))
    assert found == [(0, 2, 0, 2, 4), (0, 2, 3, 1, 4), (0, 3, 0, 1, 4)]


@pytest.mark.parametrize("name", rankers.SURROGATES)
def test_surrogates_and_their_slopes(name):
    margin, gap = np.linspace(-3, 4, 101), np.full(101, 2.0)
    value, slope = rankers.SURROGATES[name](margin, gap)
    step = 1e-6
    above, below = (rankers.SURROGATES[name](margin + sign * step, gap)[0] for sign in (1, -1))
    assert_allclose(slope, (above - below) / (2 * step), atol=1e-4)
    exact = {
        "linear": -gap * margin,
        "hinge": gap * np.maximum(0, 1 - margin),
        "logistic": gap * np.log(1 + np.exp(-margin)),
        "structured": np.maximum(0, gap - margin),
    }[name]
    assert_allclose(value, exact, atol=2 * rankers._WIDTH / 2 + 1e-9)
    assert np.all(value <= exact + 1e-12)


@pytest.mark.parametrize("name", rankers.SURROGATES)
def test_optimum_against_cvxpy(sample, name, monkeypatch):
    X, X_new, ratings, offset = sample
    monkeypatch.setattr(rankers, "_WIDTH", 1e-3)  # nearly the hinge itself
    monkeypatch.setattr(rankers, "_STEPS", 5000)
    monkeypatch.setattr(rankers, "_TOL", 1e-13)
    W = cp.Variable((3, 5))
    table, losses = X @ W + offset[None], []
    for user, row in enumerate(ratings):
        pairs = [(i, j) for i in range(5) for j in range(5) if row[i] > row[j]]
        total = sum(row[i] - row[j] for i, j in pairs)
        for i, j in pairs:
            margin, gap = table[user, i] - table[user, j], row[i] - row[j]
            form = {
                "linear": -gap * margin,
                "hinge": gap * cp.pos(1 - margin),
                "logistic": gap * cp.logistic(-margin),
                "structured": cp.pos(gap - margin),
            }[name]
            losses.append(form / total)
    cp.Problem(cp.Minimize(sum(losses) / len(X) + LAM / 2 * cp.sum_squares(W))).solve(solver="CLARABEL")
    found = rankers.scores(X, X_new, ratings, offset, name, LAM)
    assert_allclose(found, X_new @ W.value + offset, atol=5e-3)


def test_part_of_movielens(rng, monkeypatch):
    """Made ratings with two tastes that the occupation tells: every ranker is far below mean ratings."""
    taste = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    ratings = np.clip(np.round(3 + taste[:, None] * rng.standard_normal(24) + rng.standard_normal((60, 24)) / 2), 1, 5)
    ratings[rng.random((60, 24)) < 0.4] = np.nan
    jobs = np.where(taste > 0, "artist", "engineer")
    data = Bunch(ratings=ratings, age=rng.uniform(18, 70, 60), gender=rng.choice(["M", "F"], 60), occupation=jobs)
    monkeypatch.setattr(movielens, "load_movielens100k", lambda: data)
    trials = range(2)
    units = [Unit(f"movielens-{trial}", movielens._losses, (trial, 40)) for trial in trials]
    units += [Unit(f"movielens-rankers-{trial}", movielens._ranker_losses, (trial, 40)) for trial in trials]
    rows = {row.name: row for row in run(movielens, units).rows}
    popular = rows["loss trick vs mean ratings"].published
    for name in rankers.SURROGATES:
        row = rows[f"loss trick vs pairs, {name}"]
        assert row.published < 0.8 * popular and row.looked_at_test and "lam" in row.note
    names = [unit.name for unit in movielens.units()]
    assert sum("rankers" in name for name in names) == 10 and len(names) == 20
    assert not any("rankers" in unit.name for unit in movielens.units(quick=True))
