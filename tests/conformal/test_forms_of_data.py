"""Bands for whatever form the data come in: gaps, ragged curves, Gram matrices, files."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fenchel import ConformalRegressor, FunctionalRegressor, OperatorKernelRegressor, load, save
from fenchel.exceptions import IncompatibleError


def sample(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.stack([np.sin(X[:, 0]), X[:, 1]], axis=1) + 0.1 * rng.standard_normal((n, 2))


def calibrated(scores, weights=None, **params):
    """Return a model whose calibration scores are given: it predicts zero, and the widths are one."""
    scores = np.asarray(scores, dtype=float)
    zero = Ridge().fit(np.zeros((2, 1)), np.zeros((2, *scores.shape[1:])))
    model = ConformalRegressor(zero, modulation="constant", **params)
    return model.conformalize(np.zeros((len(scores), 1)), scores, sample_weight=weights)


def test_outputs_that_were_not_observed_do_not_count():
    scores = np.stack([np.arange(1.0, 10.0), np.arange(1.0, 10.0)], axis=1)
    gaps = np.concatenate([scores, np.full((5, 2), np.nan)])
    gaps[-1, 1] = 0.5
    upper = calibrated(gaps, joint=False).predict_interval(np.zeros((1, 1)), coverage=0.8).upper
    np.testing.assert_array_equal(upper, [[8.0, 8.0]])  # the 8th of 9, and the 9th of 10
    both = calibrated(gaps[:, 0]).predict_interval(np.zeros((1, 1)), coverage=0.8).upper
    np.testing.assert_array_equal(both, [8.0])


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_bands_of_single_points_are_finite_in_spite_of_gaps(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (80, 1))
    Y = np.sin(6 * np.linspace(0, 1, 7) + X) + 0.1 * rng.standard_normal((80, 7))
    gaps = np.where(rng.uniform(size=Y.shape) < 0.3, np.nan, Y)
    gaps[:, 3], gaps[:, 0] = np.nan, Y[:, 0]
    model = ConformalRegressor(FunctionalRegressor(lam=1e-3), method=method, joint=False, cv=2).fit(X, gaps)
    band = model.predict_interval(X)
    is_seen = np.arange(7) != 3
    assert np.all(np.isfinite(band.lower[:, is_seen]))
    assert np.all(np.isinf(band.lower[:, 3]))  # nothing is known there
    assert band.contains(Y)[:, is_seen].mean() > 0.8


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_the_units_of_the_outputs_do_not_matter(method):
    X, Y = sample(80, np.random.default_rng(0))
    units = np.array([1.0, 1e6])
    one, other = (ConformalRegressor(Ridge(), method=method).fit(X, Y * by).predict_interval(X) for by in (1.0, units))
    np.testing.assert_allclose(other.upper - other.lower, (one.upper - one.lower) * units, rtol=1e-6)


def test_the_units_of_output_channels_do_not_matter():
    X, Y = sample(60, np.random.default_rng(0))
    curves = Y[:, None, :] * np.linspace(1, 2, 5)[:, None]
    curves[:, 0] = 0  # a point without variance has a width all the same
    units, bands = np.array([1.0, 1e6]), []
    for unit in (1.0, units):
        model = ConformalRegressor(FunctionalRegressor(lam=1e-3, scale=True)).fit(X, curves * unit)
        bands.append(model.predict_interval(X))
    one, other = bands
    assert np.all(one.upper > one.lower)
    np.testing.assert_allclose(other.upper - other.lower, (one.upper - one.lower) * units, rtol=1e-4)


def test_an_output_that_is_constant_does_not_widen_the_others():
    X, Y = sample(80, np.random.default_rng(0))
    alone = ConformalRegressor(Ridge()).fit(X, Y).predict_interval(X)
    band = ConformalRegressor(Ridge()).fit(X, np.c_[Y, np.full(80, 5.0)]).predict_interval(X)
    np.testing.assert_allclose(band.upper[:, :2], alone.upper, rtol=1e-6)
    np.testing.assert_allclose([band.lower[:, 2], band.upper[:, 2]], 5.0, rtol=1e-9)


def test_the_unit_of_the_weights_does_not_matter():
    weights, X = np.random.default_rng(0).uniform(0.5, 2.0, 40), np.zeros((1, 1))
    uppers = [calibrated(np.arange(40.0), weights * unit).predict_interval(X).upper for unit in (1.0, 1e-3, 1e3)]
    assert np.isfinite(uppers[0])
    np.testing.assert_array_equal(uppers[0], uppers[1])
    np.testing.assert_array_equal(uppers[0], uppers[2])


def test_weights_are_checked():
    X, y = np.zeros((20, 1)), np.arange(20.0)
    with pytest.raises(ValueError, match="sample_weight must have a positive entry"):
        ConformalRegressor(Ridge()).fit(X, y, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(20,\)"):
        ConformalRegressor(Ridge()).fit(X, y, sample_weight=np.ones(25))
    for name in ("groups", "strata"):
        with pytest.raises(ValueError, match=rf"{name} must have shape \(20,\)"):
            ConformalRegressor(Ridge()).fit(X, y, **{name: np.ones(25)})
    with pytest.raises(ValueError, match="requires y"):
        ConformalRegressor(Ridge()).fit(X, None)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_a_stratum_that_was_not_calibrated_has_no_bounds(method):
    X, Y = sample(40, np.random.default_rng(0))
    model = ConformalRegressor(Ridge(), method=method).fit(X, Y, strata=np.arange(40) % 2)
    band = model.predict_interval(X[:3], strata=np.full(3, 2))
    assert np.all(band.lower == -np.inf)
    assert np.all(band.upper == np.inf)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_ragged_curves_are_calibrated(method):
    rng = np.random.default_rng(0)

    def ragged(X):
        grids = [np.sort(rng.choice(np.arange(1, 40) / 40, 6, replace=False)) for _ in X]
        return [(t, np.sin(6 * t + x) + 0.1 * rng.standard_normal(6)) for t, x in zip(grids, X[:, 0], strict=True)]

    X, X_new = rng.uniform(-2, 2, (60, 1)), rng.uniform(-2, 2, (60, 1))
    model = ConformalRegressor(FunctionalRegressor(lam=1e-3), method=method, cv=3).fit(X, ragged(X))
    band = model.predict_interval(X_new)
    assert np.all(np.isfinite(band.lower))
    assert band.contains(ragged(X_new)).mean() > 0.75


@pytest.mark.parametrize("modulation", ["std", "local"])
def test_a_gram_matrix_with_the_whole_sample_is_enough_to_predict(modulation):
    rng = np.random.default_rng(0)
    (X, Y), (X_new, Y_new) = sample(120, rng), sample(100, rng)

    def gram(left):
        return np.exp(-np.sum((left[:, None] - X[None]) ** 2, axis=2))

    inner = OperatorKernelRegressor("precomputed", lam=1e-3)
    model = ConformalRegressor(inner, modulation=modulation, contamination=0.05, cv=3).fit(gram(X), Y)
    assert model.predict_interval(gram(X_new)).contains(Y_new).mean() > 0.75
    assert model.predict(gram(X_new)).shape == (100, 2)
    assert model.n_features_in_ == 120


@pytest.mark.parametrize("method", ["split", "cv+"])
@pytest.mark.parametrize("modulation", ["constant", "std", "local"])
def test_models_can_be_saved(method, modulation, tmp_path):
    pytest.importorskip("skops")
    X, Y = sample(60, np.random.default_rng(0))
    model = ConformalRegressor(OperatorKernelRegressor(), method=method, modulation=modulation, cv=2).fit(X, Y)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_interval(X).upper, model.predict_interval(X).upper)


def test_one_output_may_be_a_column():
    X, Y = sample(60, np.random.default_rng(0))
    column = ConformalRegressor(Ridge()).fit(X, Y[:, :1]).predict_interval(X)
    flat = ConformalRegressor(Ridge()).fit(X, Y[:, 0]).predict_interval(X)
    np.testing.assert_allclose(np.ravel(column.upper), flat.upper, rtol=1e-10)
    np.testing.assert_array_equal(flat.contains(Y[:, :1]), flat.contains(Y[:, 0]))


def test_local_widths_of_text_need_a_model_that_takes_it():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"x": rng.standard_normal(80), "site": np.where(rng.uniform(size=80) < 0.5, "a", "b")})
    y = X["x"].to_numpy() + (X["site"] == "b") * rng.standard_normal(80)
    columns = make_column_transformer((OneHotEncoder(), ["site"]), remainder="passthrough")
    model = ConformalRegressor(make_pipeline(columns, Ridge()), modulation="local")
    with pytest.raises(IncompatibleError, match=r"needs inputs that are numbers.* use modulation='std'"):
        model.fit(X, y)
    width = model.set_params(modulation=make_pipeline(columns, Ridge())).fit(X, y).predict_interval(X).width
    assert width[X["site"] == "b"].mean() > 1.5 * width[X["site"] == "a"].mean()
