"""Ellipsoids, weights of new inputs, and arguments that reach the regressor."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_t
from sklearn.linear_model import LinearRegression, Ridge

from fenchel import (
    ConformalRegressor,
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    PredictionBand,
    QuantileFunctionRegressor,
    load,
    save,
)
from fenchel.conformal.band import Ellipsoid
from fenchel.conformal.calibration import calibration_number
from fenchel.conformal.shapes import student_shape
from fenchel.exceptions import IncompatibleError


def correlated_outputs(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, 2))
    mixing = np.array([[1.0, 0.0, 0.0], [9.0, 1.0, 0.0], [0.1, 0.1, 0.01]])
    return X, X @ np.ones((2, 3)) + rng.standard_normal((n, 3)) @ mixing.T


@pytest.mark.parametrize("modulation", ["std", "local"])
def test_an_ellipsoid_covers_as_a_box_does_and_is_smaller(modulation):
    rng = np.random.default_rng(0)
    (X, Y), (X_new, Y_new) = correlated_outputs(800, rng), correlated_outputs(2000, rng)
    box, ellipsoid = (
        ConformalRegressor(LinearRegression(), joint=joint, modulation=modulation).fit(X, Y).predict_interval(X_new)
        for joint in (True, "ellipsoid")
    )
    for band in (box, ellipsoid):
        assert abs(band.contains(Y_new).mean() - 0.9) < 0.04
    assert ellipsoid.ellipsoid.volume.mean() < 0.2 * np.prod(box.upper - box.lower, axis=1).mean()


def test_an_ellipsoid_is_what_its_definition_says():
    rng = np.random.default_rng(0)
    (X, Y), (X_new, _) = correlated_outputs(200, rng), correlated_outputs(3, rng)
    model = ConformalRegressor(Ridge(), joint="ellipsoid").fit(X, Y)
    band = model.predict_interval(X_new)
    W, radius = band.ellipsoid.whitening, np.sort(model.scores_)[int(np.ceil((len(model.scores_) + 1) * 0.9)) - 1]
    np.testing.assert_allclose(band.ellipsoid.radius, radius)
    centers = model.predict(X_new)
    directions = rng.standard_normal((3, 400, 3))
    directions /= np.linalg.norm(directions @ W.T, axis=2, keepdims=True)
    for share, is_inside in ((0.999, True), (1.001, False)):
        points = centers[:, None] + share * radius * directions
        assert np.all([band.contains(points[:, k]) == is_inside for k in range(400)])
    edges = centers[:, None] + radius * directions
    assert np.all(edges.max(axis=1) <= band.upper + 1e-9)
    np.testing.assert_allclose(
        band.upper - centers, radius * np.sqrt(np.diag(np.linalg.inv(W.T @ W)))[None] + 0 * centers
    )
    with pytest.raises(ValueError, match="requires modulation='std' or 'local'"):
        ConformalRegressor(Ridge(), joint="ellipsoid", method="cv+", modulation="constant").fit(X, Y)
    with pytest.raises(IncompatibleError, match="is for vectors"):
        ConformalRegressor(FunctionalRegressor(), joint="ellipsoid").fit(X, Y)
    with pytest.raises(ValueError, match="not for intervals"):
        ConformalRegressor(QuantileFunctionRegressor(), joint="ellipsoid").fit(X, Y[:, 0])


def test_the_shape_of_residuals_is_that_of_their_law():
    """Maximum likelihood of Student's law, found again by a general minimiser; heavy tails do not spoil it."""
    rng = np.random.default_rng(0)
    mixing = np.array([[1.0, 0.0], [2.0, 1.0]])
    rows = rng.standard_normal((4000, 2)) @ mixing.T / np.sqrt(rng.chisquare(2, (4000, 1)) / 2)
    rows = np.vstack([rows, [[1.0, np.nan]]])  # with a gap the shape is the most likely one
    shape, freedom = student_shape(rows)
    assert freedom == 2.0

    def minus_likelihood(entries):
        root = np.array([[entries[0], 0.0], entries[1:]])
        return -multivariate_t(shape=root @ root.T, df=2.0).logpdf(rows[:-1]).sum()

    start = np.linalg.cholesky(np.cov(rows[:-1].T))[[0, 1, 1], [0, 0, 1]]
    found = minimize(minus_likelihood, start, method="Nelder-Mead", options={"xatol": 1e-5}).x
    root = np.array([[found[0], 0.0], found[1:]])
    np.testing.assert_allclose(shape, root @ root.T, rtol=0.03, atol=0.03)
    assert student_shape(rng.standard_normal((4000, 3)))[1] == 1000.0
    far = np.vstack([rng.standard_normal((190, 2)) @ mixing.T, 100 * rng.standard_normal((10, 2))])
    half = np.sqrt(np.linalg.det(mixing @ mixing.T) / np.linalg.det(student_shape(far)[0]))
    turned = student_shape(far)[0] * half - mixing @ mixing.T
    assert np.max(np.abs(turned)) < 0.2 * np.max(mixing @ mixing.T)  # few large residuals do not turn it


@pytest.mark.parametrize("freedom", [np.inf, 3.0])
def test_an_ellipsoid_calibrated_on_outputs_with_gaps_covers_whole_outputs(freedom):
    """Three tenths of the cells are missing; the smallest sample is one of which half are 50 calibration samples."""
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mixing = np.tril(rng.standard_normal((4, 4))) + np.eye(4)

        def draw(n, rng=rng, mixing=mixing):
            X, noise = rng.standard_normal((n, 2)), rng.standard_normal((n, 4))
            noise = noise if np.isinf(freedom) else noise / np.sqrt(rng.chisquare(freedom, (n, 1)) / freedom)
            return X, X @ np.ones((2, 4)) + noise @ mixing.T

        model, (X, Y), (X_new, Y_new) = LinearRegression().fit(*draw(100)), draw(100), draw(300)
        Y[rng.uniform(size=Y.shape) < 0.3] = np.nan
        known = ~np.isnan(Y).all(axis=1)
        band = ConformalRegressor(model, joint="ellipsoid").conformalize(X[known], Y[known]).predict_interval(X_new)
        shares.append(band.contains(Y_new).mean())
    assert np.mean(shares) >= 0.88 - 2 * np.std(shares) / np.sqrt(20)
    assert np.mean(shares) <= 0.96


def test_volumes_and_coverage_by_group():
    lower, upper = np.array([[0.0, 0.0], [0.0, 0.0]]), np.array([[2.0, 8.0], [1.0, 1.0]])
    band = PredictionBand(lower, upper, 0.9)
    np.testing.assert_allclose(band.volume(), [16.0, 1.0])
    np.testing.assert_allclose(band.volume(root=True), [4.0, 1.0])
    disc = Ellipsoid(np.zeros((2, 2)), np.diag([1.0, 0.5]), np.array([1.0, 2.0]))  # semi-axes 1 and 2
    np.testing.assert_allclose(replace(band, ellipsoid=disc).volume(), 2 * np.pi * np.array([1.0, 4.0]))
    found = band.summary([[1.0, 1.0], [3.0, 0.5]], groups=["a", "b"])
    assert [found[name]["coverage"] for name in ("all", "a", "b")] == [0.5, 1.0, 0.0]
    assert found["a"] == {"n": 1, "coverage": 1.0, "standard_error": 0.0, "width": 5.0}
    assert set(band.summary([[1.0, 1.0], [3.0, 0.5]])) == {"all"}
    with pytest.raises(ValueError, match=r"groups must have shape \(2,\)"):
        band.summary([[1.0, 1.0], [3.0, 0.5]], groups=["a"])


def test_weights_of_new_inputs_keep_the_coverage_under_a_shift():
    shares = {"none": [], "weights": []}
    for seed in range(25):
        rng = np.random.default_rng(seed)

        def noisy(x, rng=rng):
            return x[:, 0] + (0.1 + np.maximum(x[:, 0], 0)) * rng.standard_normal(len(x))

        X, X_new = rng.uniform(-1, 1, (800, 1)), np.abs(rng.uniform(-1, 1, (200, 1))) ** 0.5  # density 2 x on (0, 1)
        y, y_new = noisy(X), noisy(X_new)
        ratio = 4 * np.maximum(X[:, 0], 0) + 1e-9
        model = ConformalRegressor(LinearRegression(), modulation="constant")
        shares["none"].append(model.fit(X, y).predict_interval(X_new).contains(y_new).mean())
        band = model.fit(X, y, sample_weight=ratio).predict_interval(X_new, sample_weight=4 * X_new[:, 0])
        shares["weights"].append(band.contains(y_new).mean())
    assert np.mean(shares["none"]) < 0.85
    assert abs(np.mean(shares["weights"]) - 0.9) < 0.025


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_the_points_of_curves_reach_the_regressor(method):
    rng = np.random.default_rng(0)
    X, grid = rng.uniform(-1, 1, (60, 2)), np.array([0.0, 0.1, 0.2, 0.5, 1.0])
    Y = np.sin(3 * grid + X[:, :1]) + 0.1 * rng.standard_normal((60, 5))
    channels = np.stack([Y, 2 * Y], axis=2)
    model = ConformalRegressor(FunctionalRegressor(lam=1e-2), method=method).fit(X, channels, grid=grid)
    band = model.predict_interval(X)
    np.testing.assert_array_equal(band.grid, grid)
    assert band.lower.shape == (60, 5, 2)
    assert band.contains(channels).mean() > 0.8


def test_a_regressor_that_takes_weights_is_given_them():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 1))
    y, weights = X[:, 0] ** 2, rng.uniform(0.1, 3.0, 100)
    model = ConformalRegressor(Ridge(), method="cv+", cv=3).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(X), Ridge().fit(X, y, weights).predict(X))


def test_the_number_of_calibration_samples_wastes_no_coverage():
    assert [calibration_number(n, 0.25, 0.9) for n in (20, 76, 100, 300, 1000)] == [5, 19, 29, 79, 259]
    assert calibration_number(100, 0.25, 0.93) == 25  # 99 would be too many


def test_a_search_is_not_repeated_for_the_widths(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    Y = np.sin(np.linspace(0, 3, 6) + X[:, :1]) + 0.1 * rng.standard_normal((40, 6))
    calls, fit = [], FunctionalRegressorCV.fit
    monkeypatch.setattr(
        FunctionalRegressorCV, "fit", lambda self, *args, **kw: calls.append(0) or fit(self, *args, **kw)
    )
    ConformalRegressor(FunctionalRegressorCV(None, lams=[1e-3, 1e-2], losses=["huber"], cv=2)).fit(X, Y)
    assert len(calls) == 1


@pytest.mark.parametrize("n", [30, 60])
@pytest.mark.parametrize(("method", "model"), [("cv+", Ridge()), ("jackknife+", OperatorKernelRegressor(lam=1e-2))])
def test_ellipsoids_of_folds_cover_the_nominal_share_of_small_samples(n, method, model):
    rng, covered = np.random.default_rng(0), list[float]()
    for _ in range(200 if method == "cv+" and n == 30 else 40):
        (X, Y), (X_new, Y_new) = correlated_outputs(n, rng), correlated_outputs(50, rng)
        band = ConformalRegressor(model, joint="ellipsoid", method=method).fit(X, Y).predict_interval(X_new)
        covered.append(band.contains(Y_new).mean())
    error = np.std(covered) / np.sqrt(len(covered))
    assert 0.9 - 3 * error < np.mean(covered) < 0.97


def test_an_ellipsoid_of_folds_contains_their_region():
    """The rank rule of CV+, written out: an output inside is far from the predictions of few models."""
    rng = np.random.default_rng(0)
    (X, Y), (X_new, Y_new) = correlated_outputs(40, rng), correlated_outputs(6, rng)
    model = ConformalRegressor(Ridge(), joint="ellipsoid", method="cv+", modulation="local", cv=4).fit(X, Y)
    band, folds = model.predict_interval(X_new), model._models
    W, factors = band.ellipsoid.whitening, model._calibration_widths.factors(X_new)
    points = Y_new + rng.standard_normal((2000, 6, 3)) @ np.linalg.inv(W).T
    centers = np.stack([one.predict(X_new) for one in folds.models])[folds.place]  # (40, 6, 3)
    sizes = np.linalg.norm((points[:, None] - centers) @ W.T, axis=3) / factors
    is_in_region = np.sum(sizes > model.scores_[:, None], axis=1) < 0.9 * 41
    is_inside = np.array([band.contains(rows) for rows in points])
    assert is_inside[is_in_region].all() and 0.2 < is_in_region.mean() <= is_inside.mean() < is_in_region.mean() + 0.1
    np.testing.assert_allclose(band.upper - model.predict(X_new), model.predict(X_new) - band.lower)


def test_ellipsoids_of_folds_take_groups_strata_weights_and_gaps(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = correlated_outputs(120, rng)
    Y[5, 0] = np.nan
    strata, weights = np.arange(120) % 2, 1.0 + np.arange(120) % 3
    model = ConformalRegressor(OperatorKernelRegressor(lam=1e-2), joint="ellipsoid", method="cv+")
    model.fit(X, Y, groups=np.arange(120) // 2, strata=strata, sample_weight=weights)
    band = model.predict_interval(X, strata=strata)
    assert np.isfinite(band.volume()).all() and len(np.unique(band.ellipsoid.radius)) == 120
    pytest.importorskip("skops.io")
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_interval(X, strata=strata).upper, band.upper)
