import json

import numpy as np
import pytest

from fenchel.experiments import kae
from fenchel.experiments.base import kept
from fenchel.losses import EpsilonRidge, Square


@pytest.fixture
def few(data_folder, monkeypatch):
    """A part of the molecules, and few steps."""
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    K = kae._gram()[:260, :260]
    monkeypatch.setattr(kae, "_gram", lambda: K)
    for name, value in {"N_TRAIN": 200, "N_TIMED": 150, "STEPS": 4, "TREES": 20}.items():
        monkeypatch.setattr(kae, name, value)
    data = kae.load_nci_cancer()
    for name in ("X", "Y", "scores"):
        data[name] = data[name][:260]
    monkeypatch.setattr(kae, "load_nci_cancer", lambda: data)


def test_kernel_is_normalised(few):
    K = kae._gram()
    np.testing.assert_allclose(np.diag(K), 1, rtol=1e-12)
    bits = kae.load_nci_cancer().X.astype(float)
    common = bits[3] @ bits[7]
    similarity = common / (bits[3].sum() + bits[7].sum() - common)
    assert K[3, 7] == pytest.approx(np.exp(-2 * (1 - similarity)))


def test_shape_on_a_part_of_the_molecules(few):
    """Zero coefficients at epsilon = 1, more null rows than at 0, and no molecule on both sides."""
    train, test = kae._split()
    assert len(train) == 200 and len(test) == 60 and not set(train) & set(test)
    square, wide, all_null = (kae._curve(loss) for loss in (Square(), EpsilonRidge(0.9), EpsilonRidge(1.0)))
    assert square["null"] == 0 < wide["null"] < all_null["null"] == 200
    assert all_null["test"] == pytest.approx(1, abs=1e-9)
    assert square["train"] < square["test"] < 1
    assert max(one["gap"] for one in (square, wide, all_null)) <= 1e-6


def test_torch_finds_the_same(few):
    pytest.importorskip("torch")
    here, there = (kae._curve(EpsilonRidge(0.5), device) for device in (None, "cpu"))
    assert there["test"] == pytest.approx(here["test"], rel=0.02) and there["gap"] <= 1e-6


def test_outliers_leave_the_test_molecules_alone(few, monkeypatch):
    seen = []
    monkeypatch.setattr(kae, "_errors", lambda loss, K, across, device: seen.append((K, across)))
    kae._with_outliers(Square())
    (K, across), (train, test) = seen[0], kae._split()
    changed = np.any(np.abs(across - kae._gram()[np.ix_(test, train)]) > 1e-9, axis=0)
    assert changed.sum() == 20  # a tenth of the training molecules
    np.testing.assert_allclose(K[np.ix_(~changed, ~changed)], kae._gram()[np.ix_(train[~changed], train[~changed])])


def test_finished_parts_are_kept(few, tmp_path, monkeypatch):
    monkeypatch.setattr(kae, "PUBLISHED", {0.0: 0.6485, 0.4: 0.5685, 1.0: 1.0})
    monkeypatch.setattr(kae, "KAPPAS", (0.3,))
    monkeypatch.setattr(kae, "FOLDS", 2)
    calls = []
    rows, found = kae.run(lambda *call: calls.append(call), folder=tmp_path)
    assert calls[-1] == ("kae", 9, 9)
    assert len(rows) == 8 and [row.passes for row in rows if "epsilon 1" in row.name] == [True, True]
    assert rows[0].ours == pytest.approx(found["epsilon-0.4"]["test"] / found["epsilon-0"]["test"])
    monkeypatch.setattr(kae, "_model", None)  # nothing is computed again
    again, same = kae.run(folder=tmp_path)
    assert same == found and [row.ours for row in again] == [row.ours for row in rows]
    assert len(pytest.importorskip("matplotlib") and kae.draw(found).axes) == 3


def test_kept_writes_whole_files(tmp_path):
    assert kept(tmp_path / "a", "one", lambda: {"x": 1.5}) == {"x": 1.5}
    assert json.loads((tmp_path / "a" / "one.json").read_text()) == {"x": 1.5}
    assert kept(tmp_path / "a", "one", lambda: {"x": 2.0}) == {"x": 1.5}
    assert kept(None, "one", lambda: {"x": 2.0}) == {"x": 2.0}
