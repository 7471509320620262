"""Bands cover as often as they say, whatever the outputs, and say so when they cannot."""

import matplotlib.figure
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from fenchel import (
    ConformalRegressor,
    FunctionalRegressor,
    OperatorKernelRegressor,
    PredictionBand,
    QuantileFunctionRegressor,
)
from fenchel.conformal.calibration import Calibration, wrong_share
from fenchel.conformal.widths import deviations
from fenchel.datasets import make_functional
from fenchel.exceptions import DataWarning
from fenchel.losses import Huber
from fenchel.resample.residuals import Residuals


def curves(n: int, rng: np.random.Generator, local: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    X, t = rng.uniform(-1, 1, (n, 3)), np.linspace(0, 1, 21)
    noise = rng.standard_normal((n, 3)) @ np.stack([np.cos(np.pi * k * t) / (1 + k) for k in range(3)])
    return X, np.sin(2 * np.pi * t + 2 * X[:, :1]) + 0.3 * np.exp(local * X[:, :1]) * noise


def coverage_of(make, draw, n: int, repetitions: int) -> tuple[float, float]:
    """Return the mean coverage over repetitions, and its standard error."""
    shares = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        (X, Y), (X_new, Y_new) = draw(n, rng), draw(100, rng)
        shares.append(make().fit(X, Y).predict_interval(X_new).contains(Y_new).mean())
    return float(np.mean(shares)), float(np.std(shares) / np.sqrt(repetitions))


def exact_coverage(m: int, coverage: float) -> float:
    """Return the coverage of split conformal prediction with m calibration samples and scores without ties."""
    return float(np.ceil((m + 1) * coverage) / (m + 1))


def test_given_splits(rng):
    """The first of them sets the calibration part; other methods use all of them, of the whole sample."""
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    splits = [(np.arange(10), np.arange(10, 40)), (np.arange(10, 40), np.arange(10))]
    model = ConformalRegressor(Ridge(), modulation="constant", cv=splits).fit(X, y)
    scores = np.abs(y[10:] - Ridge().fit(X[:10], y[:10]).predict(X[10:]))
    np.testing.assert_allclose(model.scores_, scores, rtol=1e-12)
    assert len(ConformalRegressor(Ridge(), cv=splits).fit(X, y).scores_) == 30
    assert len(ConformalRegressor(Ridge(), method="cv+", cv=splits).fit(X, y).scores_) == 40
    with pytest.raises(ValueError, match="splits in cv must be of the 30 samples"):
        ConformalRegressor(Ridge(), method="cv+", cv=splits).fit(X[:30], y[:30])
    for wrong in [(np.arange(40), np.arange(0))], [(np.arange(40), np.arange(3))]:
        with pytest.raises(ValueError, match="first split in cv must have a calibration part, which shares no sample"):
            ConformalRegressor(Ridge(), cv=wrong).fit(X, y)
    with pytest.raises(ValueError, match="no group"):
        ConformalRegressor(Ridge(), cv=splits).fit(X, y, groups=np.arange(40) // 20)


@pytest.mark.parametrize("n_calibration", [29, 99])
@pytest.mark.parametrize("name", ["normal", "t, 3", "exponential", "uniform", "largest of 20"])
def test_wrong_samples_that_may_be_there_do_not_cost_coverage(name, n_calibration):
    """The coverage of correct samples is never below .87 for any share from zero to the stated one."""
    draw = {
        "normal": lambda rng, m: np.abs(rng.standard_normal(m)),
        "t, 3": lambda rng, m: np.abs(rng.standard_t(3, m)),
        "exponential": lambda rng, m: rng.exponential(size=m),
        "uniform": lambda rng, m: rng.uniform(size=m),
        "largest of 20": lambda rng, m: np.abs(rng.standard_normal((m, 20))).max(axis=1),
    }[name]
    law = np.sort(draw(np.random.default_rng(1), 100_000))
    ones, labels, wide = np.ones(n_calibration), np.zeros(n_calibration, dtype=int), []
    for stated in (0.1, 0.2):
        for share in (0.0, stated / 2, stated):
            shares = []
            for seed in range(200):
                rng = np.random.default_rng([seed, n_calibration])
                scores = draw(rng, n_calibration)
                count = int(share * n_calibration)
                scores[:count] = 60 * law[50_000] * rng.uniform(1, 2, count)
                found = Calibration(scores[:, None], labels, ones, stated, False).quantiles(0.9, labels[:1])[0, 0]
                shares.append(np.searchsorted(law, found) / len(law))
                wide.append(found > 50 * law[50_000])
            assert np.mean(shares) > 0.87 + 2 * np.std(shares) / np.sqrt(200)
    assert np.mean(wide) < 0.05  # wrong samples hardly ever set the width


def test_the_share_of_wrong_scores():
    scores = np.array([*np.arange(1.0, 11.0), 1e4, 2e4])[:, None]
    ones = np.ones(12)
    np.testing.assert_allclose(wrong_share(scores, ones, 0.25), 2 / 12)
    np.testing.assert_allclose(wrong_share(scores, ones, 0.1), 0.1)  # no more than is stated
    assert wrong_share(scores[:10], np.ones(10), 0.25) == 0
    np.testing.assert_allclose(wrong_share(scores - 5, ones, 0.25), 2 / 12)  # scores of intervals may be negative
    weights = np.append(np.ones(11), 3.0)
    np.testing.assert_allclose(wrong_share(scores, weights, 0.4), 4 / 14)


@pytest.mark.parametrize("modulation", ["constant", "std", "local"])
def test_a_band_of_curves_covers_the_whole_curve_as_often_as_it_says(modulation):
    def make():
        return ConformalRegressor(FunctionalRegressor(lam=1e-2), modulation=modulation, cv=3)

    mean, error = coverage_of(make, lambda n, rng: curves(n, rng, 1.0), 76, 40)
    assert abs(mean - exact_coverage(19, 0.9)) <= 4 * error


def test_the_quantile_is_the_right_order_statistic():
    X, y = np.zeros((9, 1)), np.arange(1.0, 10.0)
    model = Ridge().fit(np.zeros((2, 1)), np.zeros(2))  # predicts zero: scores are the outputs
    found = ConformalRegressor(model, modulation="constant").conformalize(X, y)
    assert found.predict_interval(X[:1], coverage=0.8).upper.item() == 8.0  # the ceil(10 * .8)-th smallest
    assert found.predict_interval(X[:1], coverage=0.9).upper.item() == 9.0
    assert np.isinf(found.predict_interval(X[:1], coverage=0.95).upper.item())  # nine samples cannot tell


def test_weights_count_samples():
    X, y = np.zeros((9, 1)), np.arange(1.0, 10.0)
    model = Ridge().fit(np.zeros((2, 1)), np.zeros(2))
    weights = np.array([3, 1, 1, 1, 1, 1, 1, 1, 1.0])
    once = ConformalRegressor(model, modulation="constant").conformalize(X, y, sample_weight=weights)
    twice = ConformalRegressor(model, modulation="constant").conformalize(
        np.zeros((11, 1)), np.concatenate([[1.0, 1.0], y])
    )
    assert twice.predict_interval(X[:1], 0.5).upper.item() == 4.0  # the 6th of 1, 1, 1, 2, 3, 4, ...
    assert once.predict_interval(X[:1], 0.5).upper.item() >= 4.0  # a new sample may weigh as much as the heaviest


def test_wide_noise_has_wide_bands():
    rng = np.random.default_rng(0)
    (X, Y), (X_new, Y_new) = curves(300, rng, 1.5), curves(400, rng, 1.5)
    bands = [
        ConformalRegressor(FunctionalRegressor(lam=1e-3), modulation=kind, random_state=1)
        .fit(X, Y)
        .predict_interval(X_new)
        for kind in ("constant", "local")
    ]
    assert bands[1].width.mean() < 0.8 * bands[0].width.mean()
    noise = np.exp(1.5 * X_new[:, 0])
    assert np.corrcoef(np.log(bands[1].width), np.log(noise))[0, 1] > 0.8
    wide = noise > np.median(noise)
    shares = [[band.contains(Y_new)[part].mean() for part in (wide, ~wide)] for band in bands]
    assert abs(np.subtract(*shares[1])) < abs(np.subtract(*shares[0]))  # coverage is more even over the inputs


def test_calibration_keeps_its_coverage_under_contamination():
    def dirty(n, rng):
        X, Y = curves(n, rng)
        if n > 100:
            Y[: n // 10] += 10 * rng.choice([-1, 1], (n // 10, 1))
            order = rng.permutation(n)
            X, Y = X[order], Y[order]
        return X, Y

    def make(contamination):
        inner = FunctionalRegressor(loss=Huber(0.3), lam=1e-3, center="median")
        return lambda: ConformalRegressor(inner, contamination=contamination, cv=3)

    told, error = coverage_of(make(0.1), dirty, 300, 15)
    plain, _ = coverage_of(make(0.0), dirty, 300, 15)
    assert abs(told - 0.9) <= max(4 * error, 0.025)
    assert plain > 0.97


def test_cross_conformal_bands_contain_their_set():
    rng = np.random.default_rng(1)
    X, Y = curves(40, rng, 1.0)
    X_new, _ = curves(5, rng, 1.0)
    model = ConformalRegressor(FunctionalRegressor(lam=1e-2), method="cv+", cv=4, modulation="std").fit(X, Y)
    band, scores = model.predict_interval(X_new), model.scores_
    widths = model._calibration_widths.at(X_new, model.estimator_.grid_)
    squares = model._models.residuals.values**2
    ratios = np.sqrt((np.sum(squares, axis=0) - squares) / 39 / np.mean(squares, axis=0))  # widths without each sample
    centers = np.stack([fold.predict(X_new) for fold in model._models.models])[model._models.place]
    for trial in rng.uniform(-2, 2, (500, 21)) * 0.2 + model.predict(X_new)[0]:
        agreeing = np.sum(np.max(np.abs(trial - centers[:, 0]) / (ratios * widths[0]), axis=1) <= scores)
        if agreeing > (1 - 0.9) * (len(scores) + 1):  # the set of [Barber2021]_
            assert np.all((trial >= band.lower[0] - 1e-12) & (trial <= band.upper[0] + 1e-12))


def test_strata_are_covered_each():
    def make_data(n, rng):
        groups = rng.integers(0, 2, n)
        X = rng.uniform(-1, 1, (n, 1))
        return X, X[:, 0] + np.where(groups, 1.0, 0.1) * rng.standard_normal(n), groups

    rng = np.random.default_rng(0)
    X, y, groups = make_data(1200, rng)
    X_new, y_new, new_groups = make_data(2000, rng)
    model = ConformalRegressor(Ridge()).fit(X, y, strata=groups)
    is_inside = model.predict_interval(X_new, strata=new_groups).contains(y_new)
    for label in (0, 1):
        assert abs(is_inside[new_groups == label].mean() - 0.9) < 0.04
    together = ConformalRegressor(Ridge()).fit(X, y).predict_interval(X_new).contains(y_new)
    assert together[new_groups == 0].mean() > 0.98
    with pytest.raises(ValueError, match="strata must be given"):
        model.predict_interval(X_new)


def test_quantile_intervals_are_mended():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (700, 1))
    y = np.sin(X[:, 0]) + np.exp(X[:, 0] / 2) * 0.2 * rng.standard_normal(700)
    inner = QuantileFunctionRegressor(lam=1e-2)
    model = ConformalRegressor(inner, calibration_size=0.5, random_state=1).fit(X[:300], y[:300])
    band = model.predict_interval(X[300:])
    assert band.contains(y[300:]).mean() >= 0.86
    assert np.corrcoef(band.width, np.exp(X[300:, 0] / 2))[0, 1] > 0.6
    assert np.all(band.lower <= band.upper)


@pytest.mark.parametrize("joint", [True, False])
def test_outputs_one_by_one_or_together(joint):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    Y = X @ rng.standard_normal((2, 3)) + rng.standard_normal((2000, 3)) * [1.0, 10.0, 0.1]
    band = ConformalRegressor(Ridge(), joint=joint).fit(X[:1000], Y[:1000]).predict_interval(X[1000:])
    is_inside = band.contains(Y[1000:])
    assert is_inside.shape == ((1000,) if joint else (1000, 3))
    assert np.all(np.abs(is_inside.mean(axis=0) - 0.9) < 0.04)
    assert band.lower.shape == (1000, 3)


def test_any_regressor_will_do():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = X[:, 0] ** 2 + 0.1 * rng.standard_normal(400)
    model = ConformalRegressor(RandomForestRegressor(20, random_state=0), modulation="local").fit(X[:200], y[:200])
    assert model.predict_interval(X[200:]).contains(y[200:]).mean() > 0.82
    assert model.predict(X[:5]).shape == (5,)


def test_gaps_and_points_of_their_own():
    rng = np.random.default_rng(0)
    X, Y = curves(120, rng)
    t = np.linspace(0, 1, 21)
    Y[rng.uniform(size=Y.shape) < 0.2] = np.nan
    model = ConformalRegressor(FunctionalRegressor(lam=1e-2), cv=3).fit(X[:80], Y[:80])
    band = model.predict_interval(X[80:])
    inside = band.contains(Y[80:])
    pairs = [(t[~np.isnan(row)], row[~np.isnan(row)]) for row in Y[80:]]
    np.testing.assert_array_equal(band.contains(pairs), inside)
    assert inside.mean() > 0.75


def test_curves_of_scikit_fda_stay_such():
    skfda = pytest.importorskip("skfda")
    X, Y = curves(60, np.random.default_rng(0))
    t = np.linspace(0, 1, 21)
    model = ConformalRegressor(FunctionalRegressor(lam=1e-2), cv=3).fit(X, skfda.FDataGrid(Y, t))
    band = model.predict_interval(X[:3])
    assert isinstance(band.lower, skfda.FDataGrid)
    plain = ConformalRegressor(FunctionalRegressor(lam=1e-2), cv=3).fit(X, Y).predict_interval(X[:3])
    np.testing.assert_allclose(band.upper.data_matrix[..., 0], plain.upper, rtol=1e-10)
    np.testing.assert_array_equal(band.contains(skfda.FDataGrid(Y[:3], t)), plain.contains(Y[:3]))


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_curves_with_points_of_their_own_are_covered(method):
    """The width at a point of one curve was the residual there: less than half of the new curves were covered."""
    shares = []
    for seed in range(4, 6):
        data, rng = make_functional(120, 101, random_state=seed), np.random.default_rng(seed)
        points = np.sort(rng.uniform(0, 1, (120, 6)), axis=1)
        clean = [np.interp(at, data.t, curve) for at, curve in zip(points, data.truth, strict=True)]
        pairs = [(at, y + 0.1 * rng.standard_normal(6)) for at, y in zip(points, clean, strict=True)]
        model = ConformalRegressor(FunctionalRegressor(lam=1e-3), method=method).fit(data.X[:60], pairs[:60])
        shares.append(model.predict_interval(data.X[60:]).contains(pairs[60:]).mean())
    assert np.mean(shares) > 0.8  # 0.9, and four standard errors of 120 curves and 60 calibration samples


def test_points_observed_in_few_curves_share_residuals():
    values = np.full((40, 6), np.nan)
    values[:, 0] = 2.0  # observed in every curve: nothing is shared
    values[:10, 2], values[10:20, 3], values[20:30, 5] = 1.0, 3.0, 5.0
    base = deviations(Residuals(values, np.arange(6.0), (6,)), contamination=0.0).base
    last = np.sqrt((10 * 1.0 + 10 * 9.0 + 10 * 25.0) / 30)
    np.testing.assert_allclose(base[[0, 3, 4, 5]], [2.0, last, last, last])
    np.testing.assert_allclose(base[[1, 2]], [np.sqrt((10 * 1.0 + 40 * 4.0) / 50), np.sqrt((10 + 90 + 40 * 4.0) / 60)])


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_functions_in_and_out(method):
    skfda = pytest.importorskip("skfda")
    _, Y = curves(40, np.random.default_rng(0))
    t = np.linspace(0, 1, 21)
    inputs, outputs = skfda.FDataGrid(Y[:, ::4], t[::4]), skfda.FDataGrid(Y, t)
    make = ConformalRegressor(FunctionalRegressor(lam=1e-2), method=method, random_state=0)
    band = clone(make).fit(inputs, outputs).predict_interval(inputs[:3])
    assert isinstance(band.lower, skfda.FDataGrid)
    plain = clone(make).fit(inputs, Y, grid=t).predict_interval(inputs[:3])
    np.testing.assert_allclose(band.upper.data_matrix[..., 0], plain.upper, rtol=1e-8)


def test_functions_keep_their_names_in_infinite_bands_around_a_regressor_of_scikit_fda():
    skfda = pytest.importorskip("skfda")
    regression = pytest.importorskip("skfda.ml.regression")
    _, Y = curves(40, np.random.default_rng(0))
    t = np.linspace(0, 1, 21)
    inputs = skfda.FDataGrid(Y[:, ::4], sample_names=[f"day {i}" for i in range(40)])
    outputs = skfda.FDataGrid(Y, t, argument_names=("hour",))
    model = ConformalRegressor(regression.KNeighborsRegressor(), cv=3).fit(inputs, outputs)
    band = model.predict_interval(inputs[:3])
    assert band.contains(band.prediction).all()
    with pytest.warns(DataWarning, match="Bands are infinite"):
        band = model.predict_interval(inputs[:3], coverage=0.999)
    assert np.all(np.isinf(band.lower.data_matrix)) and band.contains(outputs[:3]).all()
    assert band.upper.argument_names == ("hour",) and band.upper.sample_names == ("day 0", "day 1", "day 2")
    ax = band.plot(index=1)
    assert ax.get_xlabel() == "hour"
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), model.predict(inputs[1]).data_matrix[0, :, 0])


def test_a_gram_matrix_is_cut_as_it_should():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(200)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    K = np.exp(-squares)
    from fenchel.kernels import Gaussian

    machines = OperatorKernelRegressor(Gaussian(1.0)), OperatorKernelRegressor("precomputed")
    points, gram = (ConformalRegressor(one, random_state=np.random.RandomState(0)) for one in machines)
    points.fit(X, y)
    gram.fit(K, y)
    np.testing.assert_allclose(gram.scores_, points.scores_, rtol=1e-6)


def test_what_cannot_be_is_said():
    X, y = np.zeros((20, 1)), np.arange(20.0)
    with pytest.raises(ValueError, match="'coverage' parameter of ConformalRegressor"):
        ConformalRegressor(Ridge(), coverage=1.5).fit(X, y)
    with pytest.raises(NotFittedError, match="must be fitted before conformalize"):
        ConformalRegressor(Ridge()).conformalize(X, y)
    with pytest.raises(ValueError, match="the same number of samples"):
        ConformalRegressor(Ridge()).fit(X, y[:-1])
    with pytest.raises(ValueError, match="shape of the band"):
        PredictionBand(np.zeros((2, 3)), np.ones((2, 3)), 0.9).contains(np.zeros((2, 2)))


def test_plots_show_band_and_truth():
    X, Y = curves(60, np.random.default_rng(0))
    band = ConformalRegressor(FunctionalRegressor(lam=1e-2), cv=3).fit(X, Y).predict_interval(X[:4])
    ax = band.plot(index=2, Y=Y[:4])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), Y[2])
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.linspace(0, 1, 21))
    assert isinstance(ax.figure, matplotlib.figure.Figure)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), band.prediction[2])
    flat = PredictionBand(np.zeros(5), np.ones(5), 0.9).plot(Y=np.full(5, 0.5))
    assert flat.get_title() == "Prediction intervals"


def test_bands_of_vectors_are_bars():
    band = PredictionBand(np.zeros((2, 2)), np.ones((2, 2)), 0.9, prediction=np.full((2, 2), 0.4))
    ax = band.plot(index=1)
    (bars,) = ax.collections
    np.testing.assert_array_equal(bars.get_segments(), [[[0, 0], [0, 1]], [[1, 0], [1, 1]]])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.4, 0.4])
