from unittest.mock import patch

import numpy as np
import pytest

from fenchel.losses import Huber, Square
from fenchel.papers import synthetic
from fenchel.papers.experiment import run

FEW = {"square": [Square()], "H2": [Huber(0.01)], "H1": [Huber(0.05, p=1)]}


@pytest.fixture(scope="module")
def first():
    """The first draw: training curves, test curves, seed."""
    return next(synthetic._draws(1))


def test_surfaces_of_the_square_loss_in_closed_form(first, monkeypatch):
    """h = sum_i k(., x_i) L c_i with (K x L + lam n) c = y, on the leading eigenfunctions of the output kernel."""
    monkeypatch.setattr(synthetic, "LAMS", [1e-5])
    (X, Y), (test_X, test_Y), seed = first
    Y = synthetic._contaminated(Y, seed)[synthetic.LOCAL]
    errors, nulls = synthetic._surface(X, Y, (test_X, test_Y), [Square()])
    values, vectors = np.linalg.eigh(np.exp(-100 * (synthetic.T[:, None] - synthetic.T) ** 2) / len(synthetic.T))
    values, vectors = values[-25:], vectors[:, -25:]
    K, across = (np.exp(-0.01 * np.sum((Z[:, None] - X) ** 2, axis=2)) for Z in (X, test_X))
    duals = [
        np.linalg.solve(value * K + 1e-5 * len(X) * np.eye(len(X)), Y @ vector)
        for value, vector in zip(values, vectors.T, strict=True)
    ]
    predictions = (across @ np.stack(duals, axis=1) * values) @ vectors.T
    assert errors[0, 0] == pytest.approx(np.mean((predictions - test_Y) ** 2), rel=1e-6)
    assert nulls[0, 0] == 0


@patch.multiple(
    synthetic,
    LOSSES=FEW,
    ANY_ORDER={p: [Huber(0.02, p)] for p in (1.0, 2.0)},
    ORDERS=(1.0, 2.0),
    LAMS=np.logspace(-6, -4, 4).tolist(),
    KAPPAS=[0.02],
    EPSILONS=[0.1, 0.5],
)
def test_shape_of_the_table():
    """One draw, one kappa: what the outliers do to each loss, and to linear models, on both links."""
    first = [synthetic.Unit("synthetic-0", synthetic._draw, (0, True))]
    first.append(synthetic.Unit("synthetic-figures", synthetic._figures, (3,)))
    outcome = run(synthetic, first)
    rows, found = outcome.rows, outcome.found
    kernel, linear = found["means"]["kernel"], found["means"]["linear"]
    clean, everywhere, outliers = synthetic.CLEAN, synthetic.EVERYWHERE, synthetic.GLOBAL

    def ratio(setting, name):
        return kernel[setting, name] / kernel[clean, name]

    assert ratio(everywhere, "H1") < 1.3  # untouched where every curve is wrong at a tenth of its points
    assert min(ratio(everywhere, "H2"), ratio(everywhere, "square")) > 3
    assert ratio(synthetic.LOCAL, "square") > 1.5 > 1.1 > ratio(synthetic.LOCAL, "H1")
    assert max(kernel[outliers, "H1"], kernel[outliers, "H2"]) < 0.6 * kernel[outliers, "square"]
    assert linear[clean, "ridge"] < 1e-8  # the published link is linear
    assert max(linear[setting, "Huber"] for setting in synthetic.SETTINGS) < 1e-4
    named = {row.name: row for row in rows}
    assert len(named) == len(rows) == 18
    assert all(row.passes for name, row in named.items() if name.startswith("Figure 5"))
    for setting in (outliers, everywhere):  # on clean curves kernel ridge regression is as good
        assert named[f"nonlinear link, {setting}, vs kernel ridge"].passes
    assert found["means"]["orders"][everywhere, 1.0] < found["means"]["orders"][everywhere, 2.0] / 3
    for errors, nulls in found["sparse"].values():
        assert errors.shape == (2, 4)
        assert nulls[1].min() > nulls[0].max()
    if pytest.importorskip("matplotlib"):
        assert len(synthetic.draw(found).axes) == 8
    surfaces = found["surfaces"]
    assert all(surfaces[f"{setting}, H1"].shape == (3, 4) for setting in (outliers, everywhere))
    # Figure 4: some kappa is better than the square loss; for local outliers that of H1 only
    least = {key: surface.min() for key, surface in surfaces.items()}
    assert max(least[f"{outliers}, H1"], least[f"{outliers}, H2"]) < 0.6 * least[f"{outliers}, square"]
    assert least[f"{everywhere}, H1"] < 0.5 * least[f"{everywhere}, H2"]


def test_surfaces_have_the_grid_of_the_paper():
    *_, figures = synthetic.units()
    assert figures.args == () and len(synthetic.SURFACE_KAPPAS) == 25 and len(synthetic.LAMS) == 10
    assert synthetic.units(quick=True)[-1].args == (len(synthetic.KAPPAS),)


def test_robustness_ratio_by_hand():
    """One curve, doubled at one of two points: Huber losses of order 1 and 2 in closed form."""
    clean, wrong = np.array([[1.0, 1.0]]), np.array([[1.0, 4.0]])
    # p = 1: kappa = 1, the sup norm; mean over points of 1/2 r^2 up to 1, r - 1/2 beyond
    assert synthetic._ratio(clean, wrong, 1.0) == pytest.approx((0.5 + 3.5) / (0.5 + 0.5))
    # p = 2: kappa = 1, the norm; kappa |r| - kappa^2 / 2
    assert synthetic._ratio(clean, wrong, 2.0) == pytest.approx((np.sqrt(17 / 2) - 0.5) / 0.5)


def test_robustness_ratios_have_the_published_shape():
    ratios = synthetic.robustness_ratios()
    assert np.all(np.diff(ratios["global"], axis=1)[:, 0] < 0)
    assert np.all(ratios["global"].argmin(axis=1) == len(synthetic.ORDERS) - 1)
    assert np.all(ratios["local"].argmin(axis=1) <= 1)
    for levels in ratios.values():
        assert np.all(levels > 1)
        assert np.all(np.diff(levels, axis=0) > 0)
