import numpy as np
import pytest

from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.papers.catalogue import EXPERIMENTS
from fenchel.papers.comparison import Comparison
from fenchel.papers.yeast_curves import PUBLISHED_BEST, TOLERANCE, errors


@pytest.mark.parametrize(
    ("name", "loss", "lam"),
    [
        ("ridge", Square(), 3.36e-3),
        ("epsilon-ridge", EpsilonRidge(0.1), 3.36e-3),
        ("epsilon-SVR", EpsilonSVR(0.1), 7.85e-3),
        ("Huber", Huber(0.251), 1.44e-3),
    ],
)
def test_best_values_are_the_published_ones(data_folder, monkeypatch, name, loss, lam):
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    found = errors([loss], [lam])
    assert found["error"][0, 0] == pytest.approx(PUBLISHED_BEST[name], rel=TOLERANCE)
    assert found["gap"][0, 0] <= 1e-6


def test_sparsity_grows_with_epsilon(data_folder, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    found = errors([EpsilonRidge(epsilon) for epsilon in (0.7, 1.0, 1.3)], [1e-6])
    assert np.all(np.diff(found["sparsity"][:, 0]) > 0)


def test_comparison():
    assert Comparison("a", 2.0, 2.009, 5e-3).passes
    assert not Comparison("a", 2.0, 2.011, 5e-3).passes
    assert "yeast-curves" in EXPERIMENTS


def test_missing_data_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="set FENCHEL_DATA to the folder"):
        errors([Square()], [1.0])
    (tmp_path / "yeast").mkdir()
    np.savez(tmp_path / "yeast" / "yeast.npz", X_train=np.zeros(3))
    with pytest.raises(ValueError, match="lacks Y_train, X_test, Y_test"):
        errors([Square()], [1.0])
