"""A new kind of output in one file: the example of directions on the circle works with all that is built on models."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel
from fenchel import ConformalRegressor, OutlierReport
from fenchel.app.pages.model import ModelFacts
from fenchel.app.pages.summary import model_page

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "plot_directions.py"
MOST_LINES = 120
CUT = np.pi


@pytest.fixture(scope="module")
def directions():
    """Return the classes of the example, as a module."""
    module = ModuleType("directions_of_example")
    sys.modules[module.__name__] = module  # files hold classes by name
    exec(compile(EXAMPLE.read_text().split("\n# %%")[0], str(EXAMPLE), "exec"), vars(module))
    yield module
    del sys.modules[module.__name__]


@pytest.fixture(scope="module")
def sample():
    """Return directions on both sides of the cut, and new ones in other names."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(0, 2, (80, 1)), rng.uniform(0, 2, (400, 1))
    y, truth = (CUT - 0.5 + 0.5 * Z[:, 0] + 0.1 * rng.standard_normal(len(Z)) for Z in (X, new))
    return X, signed(y), new, truth + 4 * np.pi


@pytest.fixture(scope="module")
def model(directions, sample):
    X, y, *_ = sample
    return directions.DirectionRegressor("gaussian", "huber", 1e-3).fit(X, y)


def signed(angles):
    return np.angle(np.exp(1j * np.asarray(angles)))


def test_it_fits_in_few_lines():
    lines = [line for line in EXAMPLE.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) <= MOST_LINES


def test_predictions_cross_the_cut(model, sample):
    _, y, new, truth = sample
    assert np.abs(y).max() > 3 and (y < 0).any() and (y > 0).any()
    assert np.sqrt(np.mean(signed(model.predict(new) - truth) ** 2)) < 0.15
    assert model.duality_gap_ <= model.tol


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
@pytest.mark.parametrize("modulation", ["constant", "local"])
def test_bands_are_arcs(directions, model, sample, method, modulation):
    X, y, new, truth = sample
    band = ConformalRegressor(model, method=method, modulation=modulation, coverage=0.9).fit(X, y).predict_interval(new)
    assert 0.8 < band.contains(truth).mean() < 0.99
    assert 0.2 < band.width.mean() < 1.0  # the noise has a deviation of .1
    assert not band.contains(truth + np.pi).any()


def test_bands_of_a_pipeline_are_arcs(model, sample):
    X, y, new, truth = sample
    steps = make_pipeline(StandardScaler(), model)
    band = ConformalRegressor(steps, method="cv+", coverage=0.9).fit(X, y).predict_interval(new)
    assert 0.8 < band.contains(truth).mean() < 0.99 and band.width.mean() < 1.0


@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("loss", ["square", "huber"])
def test_outliers_are_those_far_on_the_circle(directions, sample, loss, cv):
    X, y, *_ = sample
    y = y.copy()
    y[[3, 30]] = signed(y[[3, 30]] + 1.5)
    model = directions.DirectionRegressor("gaussian", loss, 1e-2).fit(X, y)
    report = OutlierReport.of(model, X, y, cv)
    assert set(report.ranking[:2]) == {3, 30}
    assert np.abs(report.residuals).max() < 2.0  # not 6.3
    assert report.sizes is not None  # from its own kernel, on one factorisation
    assert np.abs(report.of_new(X, y + 2 * np.pi).residuals).max() < 2.0


def test_held_out_residuals_are_those_of_refits(directions, sample):
    X, y = (part[:30] for part in sample[:2])
    machine = directions.DirectionRegressor("gaussian", "square", 1e-2)
    residuals = OutlierReport.of(machine.fit(X, y), X, y).residuals
    for i in (0, 7, 29):
        rest = np.arange(30) != i
        alone = directions.DirectionRegressor("gaussian", "square", 1e-2).fit(X[rest], y[rest])
        assert residuals[i] == pytest.approx(signed(y[i] - alone.predict(X[[i]])[0]), abs=1e-8)


def test_kernel_loss_and_lam_are_searched_for(directions, sample):
    X, y, new, truth = sample
    search = directions.DirectionRegressorCV().fit(X, y)
    assert np.sqrt(np.mean(signed(search.predict(new) - truth) ** 2)) < 0.13
    assert search.search_ and search.cv_errors_.shape == (len(search.losses_), len(search.lams_))
    given = directions.DirectionRegressorCV("gaussian", ["square", "huber"], [1e-3, 1e-1], cv=3).fit(X, y)
    same = directions.DirectionRegressor("gaussian", given.best_loss_, given.best_lam_).fit(X, y)
    assert np.allclose(given.predict(new), same.predict(new), atol=1e-6)
    band = ConformalRegressor(given, method="jackknife+", coverage=0.9).fit(X, y).predict_interval(new)
    assert 0.8 < band.contains(truth).mean() < 0.99


def test_files_hold_it(directions, model, sample, tmp_path):
    own = [directions.Directions, directions.DirectionCodec, directions.DirectionRegressor]
    path = tmp_path / "directions.fenchel"
    fenchel.save(model, path, trusted=own)
    assert np.array_equal(fenchel.load(path, trusted=own).predict(sample[2]), model.predict(sample[2]))


def test_the_page_has_signed_errors(directions, model, sample):
    X, y, *_ = sample
    search = directions.DirectionRegressorCV("gaussian", lams=[1e-3, 1e-2]).fit(X, y)
    for fitted, name in ((model, "DirectionRegressor"), (search, "DirectionRegressorCV")):
        assert name in model_page(fitted)
        assert ModelFacts.of(fitted).training.errors.max() < 1.0  # not 6.3


def test_a_fit_that_fails_changes_nothing(directions, sample):
    X, y, new, _ = sample
    model = directions.DirectionRegressor().fit(X, y)
    before = model.predict(new)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(X, np.full(len(y), np.inf))
    assert np.array_equal(model.predict(new), before)
