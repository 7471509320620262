from unittest.mock import patch

import numpy as np
import pytest
from sklearn.model_selection import KFold

from fenchel import FunctionalRegressor
from fenchel.datasets import load_dti
from fenchel.kernels import Gaussian, Laplacian
from fenchel.losses import EpsilonRidge, Huber, Square
from fenchel.papers import dti
from fenchel.papers.catalogue import EXPERIMENTS
from fenchel.papers.experiment import run
from fenchel.representations import Eigen, Spline

FEW = {
    "square": [Square()],
    "H2": [Huber(0.001), Huber(0.03)],
    "H1": [Huber(0.001, p=1), Huber(0.03, p=1)],
    "eps2": [EpsilonRidge(0.03)],
    "eps-inf": [EpsilonRidge(0.01, p=np.inf), EpsilonRidge(0.1, p=np.inf)],
}


@pytest.fixture
def data(data_folder, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    return load_dti()


@pytest.fixture
def few(data):
    """A small grid of every column of the table."""
    with patch.multiple(dti, _losses=lambda counts: FEW, LAMS=[1e-5, 1e-3, 1e-2]):
        yield data


def test_splits_are_those_of_the_public_code():
    found = dti.splits()
    assert len(found) == 10
    for train, test in found:
        assert len(train) == 70
        assert sorted([*train, *test]) == list(range(100))
    np.random.seed(np.random.RandomState(784).randint(100, 2000, 10)[3])
    np.testing.assert_array_equal(np.random.choice(100, 100, replace=False)[:70], found[3][0])


def test_ridge_regression_is_the_recomputed_number(data):
    """2.06 +- 0.20 over the ten splits: that settles kernel, norm, centring, interpolation, the unit of the error."""
    errors = []
    for train, test in dti.splits():
        model = FunctionalRegressor(Gaussian(1.25), Laplacian(10.0), lam=1e-3, representation=Spline("monte_carlo"))
        model.fit(data.X[train], data.Y_interpolated[train], grid=data.t_out)
        squares = np.nansum((data.Y[test] - model.predict(data.X[test])) ** 2, axis=1)
        errors.append(10 * squares.mean())
    assert np.mean(errors) == pytest.approx(2.06, abs=0.005)
    assert np.std(errors) == pytest.approx(0.20, abs=0.005)


def test_grids_are_those_of_the_paper():
    many, few = dti._losses(dti.MANY), dti._losses(dti.FEW)
    assert [len(family) for family in many.values()] == [1, 50, 50, 50, 50]
    for family, (low, high) in zip(
        list(many.values())[1:], [(1e-4, 0.1)] * 2 + [(1e-3, 0.1), (1e-3, 10**-0.5)], strict=True
    ):
        values = [getattr(loss, "kappa", None) or loss.epsilon for loss in family]
        np.testing.assert_allclose(values, np.geomspace(low, high, 50))
    assert max(len(family) for family in few.values()) < 50


def test_one_split(few):
    outcome = run(dti, dti.units()[:1])
    rows, cells = outcome.rows, outcome.found
    assert len(rows) == 12
    assert all(row.at_most for row in rows)
    train, test = dti.splits(1)[0]
    mean_curve = 10 * np.mean(np.nansum((few.Y[test] - np.nanmean(few.Y[train], axis=0)) ** 2, axis=1))
    assert rows[-1].name == "best selected vs mean curve"
    assert rows[-2].ours == rows[-1].ours < mean_curve == pytest.approx(rows[-1].published)
    assert all(row.trivial == rows[-1].published for row in rows[:-1])
    for row in rows[5:10]:  # lam 1e-3, where every loss does well
        assert row.ours < mean_curve
    errors = {name: cells["table", 1e-5, name][0, 0] for name in FEW}
    assert errors["square"] > max(errors["H2"], errors["H1"], errors["eps2"])  # too small a lam for the square loss
    assert cells["table", 1e-5, "square"][0, 1] == 0
    assert 0 < cells["table", 1e-5, "eps-inf"][0, 1] < 1


@pytest.mark.parametrize("components", [5, 55])
def test_held_out_errors_count_what_the_eigenfunctions_lose(few, components):
    """The error of a candidate is that of the curves, not of their coordinates: five folds by hand."""
    train, _ = dti.splits(1)[0]
    X, Y, representation = few.X[train], few.Y_interpolated[train], Eigen(components, "monte_carlo")
    (found,) = dti._candidates(X, Y, few.t_out, {"square": [Square()]}, [1e-3], representation)
    centred, errors = Y - Y.mean(axis=0), []
    for kept, held in KFold(5, shuffle=True, random_state=342).split(X):
        model = FunctionalRegressor(
            Gaussian(1.25), Laplacian(10.0), lam=1e-3, representation=representation, center=False
        ).fit(X[kept], centred[kept], grid=few.t_out)
        errors.append(np.mean((centred[held] - model.predict(X[held])) ** 2))
    assert found.error == pytest.approx(np.mean(errors), rel=1e-6)


def test_table_is_drawn(few, tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    cells = {("table", lam, name): rng.uniform(2, 3, (4, 2)) for lam in dti.PUBLISHED for name in FEW}
    fig = EXPERIMENTS["dti"].draw(cells)
    fig.savefig(tmp_path / "dti.png")
    assert [ax.get_title() for ax in fig.axes] == ["lam 1e-05", "lam 0.001"]
