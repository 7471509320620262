from unittest.mock import patch

import numpy as np
import pytest

from fenchel.papers import kae
from fenchel.papers.experiment import run


@pytest.fixture
def few(data_folder, monkeypatch):
    """A part of the molecules, and few steps."""
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    K = kae._gram()[:260, :260]
    data = kae.load_nci_cancer()
    for name in ("X", "Y", "scores"):
        data[name] = data[name][:260]
    few = {"N_TRAIN": 200, "N_TIMED": 150, "TREES": 20}
    with patch.multiple(kae, _gram=lambda: K, load_nci_cancer=lambda: data, **few):
        yield


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
    square, wide, all_null = (kae._curve("epsilon", value, 1, 4, None) for value in (0.0, 0.9, 1.0))
    assert square["null"] == 0 < wide["null"] < all_null["null"] == 200
    assert all_null["test"] == pytest.approx(1, abs=1e-9)
    assert square["train"] < square["test"] < 1
    assert max(one["gap"] for one in (square, wide, all_null)) <= 1e-6


def test_losses():
    assert repr(kae._loss("epsilon", 0.0)) == "Square()"
    assert kae._loss("epsilon", 0.4).epsilon == 0.4 and kae._loss("kappa", 0.3).kappa == 0.3


def test_torch_finds_the_same(few):
    pytest.importorskip("torch")
    here, there = (kae._curve("epsilon", 0.5, 2, 4, device) for device in (None, "cpu"))
    assert there["test"] == pytest.approx(here["test"], rel=0.02) and there["gap"] <= 1e-6


def test_outliers_leave_the_test_molecules_alone(few, monkeypatch):
    seen = []
    monkeypatch.setattr(kae, "_errors", lambda model, K, across, device: seen.append((K, across)))
    kae._with_outliers("kappa", 0.3, 1, 4, None)
    (K, across), (train, test) = seen[0], kae._split()
    changed = np.any(np.abs(across - kae._gram()[np.ix_(test, train)]) > 1e-9, axis=0)
    assert changed.sum() == 20  # a tenth of the training molecules
    np.testing.assert_allclose(K[np.ix_(~changed, ~changed)], kae._gram()[np.ix_(train[~changed], train[~changed])])


def test_summary_of_a_reduced_run(few):
    outcome = run(kae, kae.units(quick=True))
    rows = {row.name: row for row in outcome.rows}
    assert len(rows) == 8
    assert rows["test error with epsilon = 1"].passes and rows["share of null rows with epsilon = 1"].passes
    errors = {epsilon: one["test"] for epsilon, one in kae._values(outcome.found, "epsilon").items()}
    assert list(errors) == [0.0, 0.4, 1.0]
    lowest = rows["lowest test error with epsilon > 0, divided by that with epsilon = 0"]
    assert lowest.ours == pytest.approx(min(errors[0.4], errors[1.0]) / errors[0.0])
    assert lowest.standard_error > 0 and lowest.looked_at_test.startswith("Epsilon or kappa is that of the lowest")
    codes = rows["normalised error of a forest on the codes, vs KernelPCA"]
    assert 0.3 < codes.ours < 1.5 and 0.3 < codes.published < 1.5
    assert len(pytest.importorskip("matplotlib") and kae.draw(outcome.found).axes) == 3
