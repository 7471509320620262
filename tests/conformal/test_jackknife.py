"""Jackknife+ in closed form or on one eigenbasis is jackknife+ by n refits."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import ConformalRegressor, FunctionalRegressor, FunctionalRegressorCV, OperatorKernelRegressor, load, save
from fenchel.exceptions import DataWarning, IncompatibleError
from fenchel.kernels import Gaussian
from fenchel.losses import Huber

N, POINTS = 16, 7
PLAIN = {"kernel": Gaussian(1.0), "lam": 1e-2}
MACHINES = {
    "one output": OperatorKernelRegressor(**PLAIN),
    "operator": OperatorKernelRegressor(**PLAIN, operator=np.diag(np.arange(1.0, POINTS + 1)) + 0.1),
    "few features": OperatorKernelRegressor("linear", lam=1e-2, operator=np.arange(1.0, POINTS + 1)),
    "curves": FunctionalRegressor(**PLAIN, center=False),
    "eigenbasis": FunctionalRegressor(**PLAIN, center=False, representation="eigen"),
    "huber": FunctionalRegressor(**PLAIN, center=False, loss=Huber(0.2), tol=1e-9),
    "gaps": FunctionalRegressor(**PLAIN, center=False, tol=1e-9),
    "channels": FunctionalRegressor(**PLAIN, center=False, loss="epsilon_ridge", tol=1e-9),
}


def sample(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, t = rng.uniform(-1, 1, (N, 2)), np.linspace(0, 1, POINTS)
    Y = np.sin(2 * np.pi * t + 2 * X[:, :1]) + 0.1 * rng.standard_normal((N, POINTS))
    gaps = np.where(rng.uniform(size=Y.shape) < 0.2, np.nan, Y)
    return X, {"one output": Y[:, 0], "gaps": gaps, "channels": np.stack([Y, 2 * Y], axis=2)}.get(kind, Y)


@pytest.mark.parametrize("kind", list(MACHINES))
def test_bands_are_those_of_refits(kind):
    X, Y = sample(kind)
    X_new, everyone = np.random.default_rng(1).uniform(-1, 1, (5, 2)), np.arange(N)
    model = ConformalRegressor(MACHINES[kind], method="jackknife+", modulation="constant").fit(X, Y)
    band = model.predict_interval(X_new)
    refits = [clone(MACHINES[kind]).fit(X[everyone != i], Y[everyone != i]) for i in everyone]
    errors = [np.abs(Y[i] - refit.predict(X[i : i + 1])[0]) for i, refit in enumerate(refits)]
    scores = np.array([np.nanmax(error) for error in errors])
    centers = np.stack([refit.predict(X_new) for refit in refits])
    moves = scores.reshape(-1, *[1] * (centers.ndim - 1))
    place = int(np.ceil(0.9 * (N + 1))) - 1
    np.testing.assert_allclose(model.scores_, scores, rtol=1e-4)
    np.testing.assert_allclose(band.upper, np.sort(centers + moves, axis=0)[place], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(band.lower, np.sort(centers - moves, axis=0)[N - 1 - place], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.predict(X_new), clone(MACHINES[kind]).fit(X, Y).predict(X_new), rtol=1e-6)


def test_whole_curves_are_covered():
    shares = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, t = rng.uniform(-1, 1, (129, 2)), np.linspace(0, 1, POINTS)
        Y = np.sin(2 * np.pi * t + 2 * X[:, :1]) + 0.1 * np.exp(X[:, :1]) * rng.standard_normal((129, POINTS))
        model = ConformalRegressor(FunctionalRegressor(**PLAIN), method="jackknife+").fit(X[:49], Y[:49])
        shares.append(model.predict_interval(X[49:]).contains(Y[49:]).mean())
    assert abs(np.mean(shares) - 0.9) <= max(0.02, 4 * np.std(shares) / np.sqrt(30))


def test_rough_curves_are_covered_by_widths_from_few_samples():
    shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (74, 2))
        Y = X[:, :1] + rng.standard_normal((74, 60))
        model = ConformalRegressor(Ridge(), method="cv+", cv=8).fit(X[:24], Y[:24])
        shares.append(model.predict_interval(X[24:]).contains(Y[24:]).mean())
    assert np.mean(shares) >= 0.9 - 4 * np.std(shares) / np.sqrt(40)


def test_local_widths_of_small_samples_cover():
    """The model of the widths leaves out the sample whose score it scales: otherwise .83 of .9 is covered."""
    shares = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X, t = rng.uniform(-1, 1, (130, 2)), np.linspace(0, 1, POINTS)
        noise = rng.standard_normal((130, 3)) @ np.stack([np.cos(np.pi * k * t) / (1 + k) for k in range(3)])
        Y = np.sin(2 * np.pi * t + 2 * X[:, :1]) + 0.1 * np.exp(2 * X[:, :1]) * noise
        machine = FunctionalRegressor(Gaussian(1.0), lam=1e-4)
        model = ConformalRegressor(machine, method="jackknife+", modulation="local").fit(X[:30], Y[:30])
        shares.append(model.predict_interval(X[30:]).contains(Y[30:]).mean())
    assert np.mean(shares) >= 0.87 - 2 * np.std(shares) / 5


def test_weights_count_in_every_model():
    X, y = sample("one output")
    weights = np.random.default_rng(2).uniform(0.2, 2.0, N)
    weights[3] = 0.0
    inner = OperatorKernelRegressor(**PLAIN, tol=1e-10)
    model = ConformalRegressor(inner, method="jackknife+", modulation="constant").fit(X, y, sample_weight=weights)
    assert np.isnan(model.scores_[3])
    for i in (0, 4):
        others = np.arange(N) != i
        alone = clone(inner).fit(X[others], y[others], weights[others])
        assert abs(abs(y[i] - alone.predict(X[i : i + 1])[0]) - model.scores_[i]) < 1e-5


def test_a_gram_matrix_is_enough():
    X, y = sample("one output")
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2))
    found = ConformalRegressor(OperatorKernelRegressor("precomputed", lam=1e-2), method="jackknife+").fit(K, y)
    points = ConformalRegressor(OperatorKernelRegressor(**PLAIN), method="jackknife+").fit(X, y)
    np.testing.assert_allclose(found.predict_interval(K).upper, points.predict_interval(X).upper, rtol=1e-8)


def test_a_gram_matrix_with_samples_of_weight_zero():
    X, y = sample("one output")
    K, weights = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2)), (np.arange(N) != 3).astype(float)
    gram = OperatorKernelRegressor("precomputed", lam=1e-2, tol=1e-9)
    points = OperatorKernelRegressor(**PLAIN, tol=1e-9)
    found = ConformalRegressor(gram, method="jackknife+").fit(K, y, sample_weight=weights)
    wanted = ConformalRegressor(points, method="jackknife+").fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.predict_interval(K, 0.8).upper, wanted.predict_interval(X, 0.8).upper, rtol=1e-5)


def test_what_a_search_chooses_is_kept(tmp_path):
    pytest.importorskip("skops")
    X, Y = sample("curves")
    search = FunctionalRegressorCV(None, lams=[1e-3, 1e-2], losses=["square"], cv=2)
    model = ConformalRegressor(search, method="jackknife+").fit(X, Y)
    alone = ConformalRegressor(model.estimator_.best_estimator_, method="jackknife+").fit(X, Y)
    band = model.predict_interval(X)
    np.testing.assert_allclose(band.upper, alone.predict_interval(X).upper, rtol=1e-8)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_interval(X).upper, band.upper)


def test_other_regressors_are_referred_to_folds():
    with pytest.raises(IncompatibleError, match=r"Use method='cv\+'"):
        ConformalRegressor(Ridge(), method="jackknife+").fit(*sample("one output"))
    with pytest.raises(IncompatibleError, match=r"Got Pipeline\. Use method='cv\+'"):
        ConformalRegressor(make_pipeline(StandardScaler(), Ridge()), method="jackknife+").fit(*sample("one output"))


def test_too_few_samples_are_said():
    X, y = sample("one output")
    model = ConformalRegressor(Ridge(), method="cv+").fit(X, y)
    with pytest.warns(DataWarning, match="0.95 requires at least 19 calibration samples, and there are 16"):
        assert np.all(np.isinf(model.predict_interval(X, 0.95).upper))
    of_strata = ConformalRegressor(Ridge(), method="cv+").fit(X, y, strata=np.arange(N) % 2)
    with pytest.warns(DataWarning, match="at least 9 calibration samples in stratum 1, and there are 8"):
        of_strata.predict_interval(X, strata=np.ones(N, dtype=int))
