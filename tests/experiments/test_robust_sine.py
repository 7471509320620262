from unittest.mock import patch

import numpy as np
import pytest

from fenchel.kernels import Gaussian
from fenchel.papers import robust_sine
from fenchel.papers.experiment import run


@pytest.fixture
def small():
    with patch.multiple(robust_sine, GAMMAS=(50.0, 100.0), LAMS=(1e-3, 1e-2), WIDTHS=(300.0, 1000.0)):
        yield


def test_the_data():
    """One in ten is an outlier of at most 3; the rest has variance 0.1 around the sine."""
    x, y = robust_sine.made(200_000, np.random.default_rng(0))
    noise = y - np.sin(6 * np.pi * x)
    assert abs(x).max() <= 1 and abs(x.mean()) < 0.01
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert noise.var() == pytest.approx(0.1 + 0.1 * 3, rel=0.02)  # a uniform number of [-3, 3] has variance 3
    assert np.mean(abs(noise) > 1.5) == pytest.approx(0.1 * 0.5, rel=0.05)


def test_nadaraya_watson_by_hand(monkeypatch):
    """The minimiser of the kernel-weighted loss, by brute force."""
    monkeypatch.setattr(robust_sine, "WIDTHS", (30.0,))
    x, y = robust_sine.made(40, np.random.default_rng(1))
    new = np.array([[-0.3], [0.8]])
    found = robust_sine._nadaraya_watson(x[:, None], y, new)
    grid = np.linspace(y.min(), y.max(), 200_001)
    for at, value in zip(new, found, strict=True):
        weights = np.exp(-30 * (at[0] - x) ** 2)
        gamma = robust_sine.EFFICIENT.gamma
        losses = sum(w * gamma * np.log1p((grid - z) ** 2 / gamma) for w, z in zip(weights, y, strict=True))
        assert value == pytest.approx(grid[np.argmin(losses)], abs=1e-4)
    assert np.allclose(Gaussian(30.0)(new, x[:, None])[0], np.exp(-30 * (new[0] - x) ** 2))


def test_the_loss_trick_is_nearest_to_the_sine(small):
    results = {str(n): robust_sine._distances(n, 0, 4) for n in (100, 200)}
    rows, found = robust_sine.summary(results)
    assert [row.name for row in rows] == [
        "n = 100, loss trick vs Nadaraya-Watson",
        "n = 100, loss trick vs ridge",
        "n = 200, loss trick vs Nadaraya-Watson",
        "n = 200, loss trick vs ridge",
        "loss trick, n = 200 vs n = 100",
    ]
    assert all(row.passes for row in rows), rows
    assert found["distances"][200].shape == (4, 3)


def test_figure(small):
    pytest.importorskip("matplotlib")
    parts = [robust_sine.Unit(f"robust-sine-{n}-0", robust_sine._distances, (n, 0, 1)) for n in (50, 60)]
    outcome = run(robust_sine, [*parts, robust_sine.units()[-1]])
    assert [ax.get_xlabel() for ax in robust_sine.draw(outcome.found).axes] == ["x", "n"]
