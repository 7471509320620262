"""Bands of samples in the order of time follow what comes, and a test says when calibration scores change."""

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.linear_model import LogisticRegression, Ridge

from fenchel import ConformalPredictor, ConformalRegressor
from fenchel.conformal.calibration import Calibration
from fenchel.conformal.order import exchangeability_p_value, stepped
from fenchel.exceptions import DataWarning
from fenchel.resample.folds import blocks_of


def test_the_calibration_part_is_the_latest(rng):
    X, y, order = rng.standard_normal((40, 2)), rng.standard_normal(40), rng.permutation(40)
    model = ConformalRegressor(Ridge(), modulation="constant", calibration_size=0.5).fit(X, y, order=order)
    m = len(model.scores_)
    by_time = np.argsort(order)
    early, late = by_time[:-m], by_time[-m:]
    np.testing.assert_allclose(model.scores_, np.abs(y[late] - Ridge().fit(X[early], y[early]).predict(X[late])))
    labels = np.arange(40) // 4
    kept = ConformalRegressor(Ridge(), calibration_size=0.5).fit(X, y, groups=labels, order=order)
    assert len(kept.scores_) % 4 == 0


def test_recent_scores_count_more():
    """A new sample counts one, one that is a half-life old a half; a quantile is that of the weights."""
    scores = np.arange(1.0, 21.0)[:, None]
    weights = 0.5 ** (np.arange(20, 0, -1) / 10)
    found = Calibration(scores, np.zeros(20), weights, 0.0, False, new_weight=1.0, half_life=10.0)
    wanted = 0.5 * (weights.sum() + 1)
    assert found.quantiles(0.5, np.zeros(1))[0, 0] == scores[np.searchsorted(np.cumsum(weights), wanted), 0]
    later = found.followed_by(np.array([[5.0], [6.0]]), np.zeros(2), 0.1, 0.9)
    np.testing.assert_allclose(later.weights, 0.5 ** (np.arange(22, 0, -1) / 10))
    assert later.level == 1.0  # a tenth was missed, as it should be


def test_the_level_moves_against_what_was_missed():
    assert stepped(1.0, 0.3, 0.1, 10) == pytest.approx((0.1 - 0.1 * 0.2) / 0.1)
    assert stepped(1.0, 0.0, 0.1, 10_000) == pytest.approx((0.1 + 0.5 * 0.1) / 0.1)
    assert stepped(0.0, 1.0, 0.1, 100) == 0.0


def drifting(seed, n=900):
    """Return samples whose noise grows by a factor of four after the first 300."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    size = np.exp(np.log(4) * np.maximum(np.arange(n) - 300, 0) / (n - 300))
    return X, X @ [1.0, -1.0] + size * rng.standard_normal(n)


@pytest.mark.parametrize("block", [1, 25])
def test_bands_follow_a_drift(block):
    covered = []
    for seed in range(3):
        X, y = drifting(seed)
        model = ConformalRegressor(Ridge(), modulation="constant").fit(X[:300], y[:300], order=np.arange(300))
        fixed = model.predict_interval(X[300:]).contains(y[300:]).mean()
        for begin in range(300, 900, block):
            part = slice(begin, begin + block)
            covered.append(model.predict_interval(X[part]).contains(y[part]).mean())
            model.update(X[part], y[part])
        assert fixed < 0.75 and np.isfinite(model.predict_interval(X[:1]).upper).all()
    assert 0.86 <= np.mean(covered) <= 0.94


def test_sets_of_candidates_follow_a_drift():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 2))
    noise = np.where(np.arange(900) < 300, 0.2, 2.0)
    y = (X[:, 0] + noise * rng.standard_normal(900) > 0).astype(int)
    model = ConformalPredictor(LogisticRegression(), measure="distance").fit(X[:300], y[:300], order=np.arange(300))
    fixed, covered = model.predict_set(X[300:]).contains(y[300:]).mean(), []
    for begin in range(300, 900, 30):
        part = slice(begin, begin + 30)
        covered.append(model.predict_set(X[part]).contains(y[part]).mean())
        model.update(X[part], y[part])
    assert fixed < 0.8 and 0.86 <= np.mean(covered) <= 0.94


@pytest.mark.parametrize("m", [20, 200])
def test_p_values_of_exchangeable_scores_are_not_too_small(m):
    found = np.array([exchangeability_p_value(np.random.default_rng(s).exponential(size=(m, 1))) for s in range(400)])
    for level in (0.01, 0.05, 0.2):
        assert np.mean(found <= level) <= level + 3 * np.sqrt(level * (1 - level) / 400)
    assert kstest(found, "uniform", alternative="greater").pvalue > 0.001
    rng = np.random.default_rng(0)
    assert exchangeability_p_value(np.sort(rng.exponential(size=(m, 1)), axis=0)) < 1e-3  # a trend
    waves = np.sin(np.arange(m) / 2)[:, None] + 0.1 * rng.standard_normal((m, 1))
    assert exchangeability_p_value(waves) < 1e-3  # neighbours are alike
    assert exchangeability_p_value(np.ones((m, 1))) == 1.0


def test_a_change_is_said_with_its_p_value(rng):
    X, y = drifting(0)
    with pytest.warns(DataWarning, match=r"change with time \(p-value \de-\d+ that"):
        model = ConformalRegressor(Ridge(), calibration_size=0.8).fit(X, y, order=np.arange(900))
    assert model.exchangeability_p_value_ < 0.01


def test_folds_and_searches_hold_out_blocks_of_time():
    rng = np.random.default_rng(0)
    X, y, order = rng.standard_normal((60, 2)), rng.standard_normal(60), rng.permutation(60)
    blocks, seen = blocks_of(order, None, X), []

    class Told(Ridge):
        def fit(self, X, y, groups=None):
            seen.append(groups)
            return super().fit(X, y)

    model = ConformalRegressor(Told(), method="cv+", cv=3, modulation="constant").fit(X, y, order=order)
    assert len(seen) == 4 and np.array_equal(seen[0], blocks)
    for labels in seen[1:]:
        inside = np.isin(blocks, labels)
        assert len(labels) == inside.sum() < 60  # whole blocks
        scores = np.abs(y - Ridge().fit(X[inside], y[inside]).predict(X))
        np.testing.assert_allclose(model.scores_[~inside], scores[~inside])
    with pytest.raises(ValueError, match="Use method='split' for update"):
        model.update(X, y)


def test_what_order_cannot_be_is_said(rng):
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    with pytest.raises(ValueError, match="update is for samples in the order of time"):
        ConformalRegressor(Ridge()).fit(X, y).update(X, y)
    with pytest.raises(ValueError, match="order= requires method='split'"):
        ConformalRegressor(method="jackknife+").fit(X, y, order=np.arange(30))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("q", [1, 2])
def test_missing_outputs_of_a_block_say_nothing(rng, joint, q):
    X = rng.standard_normal((130, 2))
    Y = (X[:, :q] + 0.1 * rng.standard_normal((130, q))).squeeze()
    is_missing, dirty = np.arange(100, 130) % 3 == 0, Y[100:].copy()
    dirty[is_missing] = np.nan
    models = [ConformalRegressor(Ridge(), joint=joint).fit(X[:100], Y[:100], order=np.arange(100)) for _ in range(2)]
    for _ in range(10):
        models[0].update(X[100:], np.full_like(dirty, np.nan))
    models[0].update(X[100:], dirty)
    models[1].update(X[100:][~is_missing], Y[100:][~is_missing])
    upper, wanted = (model.predict_interval(X).upper for model in models)
    assert np.isfinite(upper).all() and np.array_equal(upper, wanted)
    assert not np.isnan(models[0].scores_).any()


def test_values_that_are_missing_are_not_covered_ones(rng):
    X, Y = rng.standard_normal((60, 2)), rng.standard_normal((60, 2))
    model = ConformalRegressor(Ridge(), joint=False).fit(X[:50], Y[:50], order=np.arange(50))
    far = np.stack([np.full(10, 100.0), np.full(10, np.nan)], axis=1)
    assert model.update(X[50:], far)._calibration.level == stepped(1.0, 1.0, 1 - 0.9, 10)  # all that were seen


def test_a_number_that_is_no_count_of_samples_is_explained(rng):
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    model = ConformalRegressor(Ridge()).fit(X, y, order=np.arange(40))
    said = rf"at least 19 calibration samples, and there are effectively 5 \({len(model.scores_)}, of which older"
    with pytest.warns(DataWarning, match=said):
        model.predict_interval(X, coverage=0.95)
