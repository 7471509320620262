from unittest.mock import patch

import numpy as np
import pytest

from fenchel.datasets import load_usps
from fenchel.kernels import Gaussian
from fenchel.papers import usps
from fenchel.papers.experiment import run
from fenchel.task_losses import KernelInduced


@pytest.fixture
def small(data_folder, monkeypatch):
    """8 training images of each digit, 150 test images, one bandwidth."""
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    data = load_usps()
    data.update(
        X_train=data.X_train[:900], y_train=data.y_train[:900], X_test=data.X_test[:60], y_test=data.y_test[:60]
    )
    usps._images.cache_clear()
    few = {"N_EACH": 8, "N_TEST": 150, "WIDTHS": (4.0,), "LAMS": (1e-3, 1e-2), "NARROWER": (4.0,)}
    with patch.multiple(usps, load_usps=lambda: data, **few):
        yield data
    usps._images.cache_clear()


def test_split():
    digits = np.repeat(np.arange(10), 700)
    train, test, separate = usps.split(digits, seed=3)
    np.testing.assert_array_equal(np.bincount(digits[train]), np.full(10, 100))
    assert len(test) == 5000
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test, separate])), np.arange(7000))
    assert set(usps.split(digits, seed=4)[0]) != set(train)


def test_histograms():
    np.testing.assert_allclose(usps.histograms(np.array([[1.0, -2.0, 3.0]])), [[0.25, 0, 0.75]])


def test_two_sets_of_images(small):
    grey, digits = usps._images("grey")
    black, _ = usps._images("black and white")
    assert len(grey) == len(digits) == 960
    assert np.mean((grey > 0) & (grey < 1)) > 0
    np.testing.assert_array_equal(black, np.round(grey))


class TestRun:
    def test_numbers_of_a_part(self, small):
        """Pictures are those of the test images, predictions are histograms that do better than none."""
        part = usps._part("grey", 0)
        images, digits = usps._images("grey")
        _, test, _ = usps.split(digits, 0)
        shown = [np.flatnonzero(digits[test] == digit)[0] for digit in range(10)]
        pictures = {name: np.array(one) for name, one in part["pictures"].items()}
        np.testing.assert_allclose(pictures["upper"], images[test][shown, :128], atol=1e-5)
        lower = images[test][shown, 128:]
        np.testing.assert_allclose(pictures["truth"], lower / lower.sum(axis=1, keepdims=True), atol=1e-5)
        for name in usps.PUBLISHED:
            np.testing.assert_allclose(pictures[name].sum(axis=1), 1, atol=1e-3)
            one = part["losses"][name]
            assert one["R"] == one["R, roots"] and 150 * one["R"] == pytest.approx(round(150 * one["R"]))
            assert one["root of H"] ** 2 < one["H"] < part["constants"]["H"]  # Jensen; better than no input
        assert set(part["losses"]) == {*usps.PUBLISHED, *usps.OTHERS}
        assert part["losses"]["narrower"]["G"] < 1.1 * part["losses"]["KDE-Gaussian"]["G"]

    def test_a_gaussian_that_is_too_narrow_is_not_chosen(self, small, monkeypatch):
        images, digits = usps._images("grey")
        train, _, _ = usps.split(digits, 0)
        outputs = usps.histograms(images[train, 128:])
        gaussian = KernelInduced(Gaussian("median")).resolve(outputs)
        monkeypatch.setattr(usps, "NARROWER", (1e4,))
        models, settings = usps._models(images[train, :128], outputs, gaussian)
        assert models["narrower"] is models["KDE-Gaussian"] is not models["training set"]
        assert settings["Hellinger"] == (4.0, models["Hellinger"].lam_)

    def test_losses_of_known_predictions(self, small, monkeypatch):
        """Predictions that are the training mean, whatever the input."""

        class Mean:
            lam_ = 1.0

            def __init__(self, outputs):
                self.mean = outputs.mean(axis=0)

            def predict(self, X):
                return np.broadcast_to(self.mean, (len(X), 128))

        names = (*usps.PUBLISHED, *usps.OTHERS)
        monkeypatch.setattr(usps, "_models", lambda X, Y, _: (dict.fromkeys(names, Mean(Y)), {}))
        part = usps._part("black and white", 1)
        images, digits = usps._images("black and white")
        train, test, _ = usps.split(digits, 1)
        halves = images[:, 128:] / images[:, 128:].sum(axis=1, keepdims=True)
        mean, truth = halves[train].mean(axis=0), halves[test]
        places = np.triu_indices(len(train), 1)
        distances = np.linalg.norm(halves[train][:, None] - halves[train][None], axis=2)[places]
        width = np.median(distances[distances > 0])  # some halves are equal
        gaussian = 1 - np.exp(-np.sum((truth - mean) ** 2, axis=1) / (2 * width**2))
        hellinger = np.sum((np.sqrt(truth) - np.sqrt(mean)) ** 2, axis=1)
        found = part["losses"]["Hellinger"]
        assert found["G"] == pytest.approx(gaussian.mean(), rel=1e-6)
        assert found["H"] == pytest.approx(hellinger.mean(), rel=1e-6)
        assert found["root of H"] == pytest.approx(np.sqrt(hellinger).mean(), rel=1e-6)
        assert part["constants"]["H"] < found["H"]
        assert part["true"]["roots"] < 0.2 < found["R"]

    def test_rows(self, small):
        outcome = run(usps, [unit for unit in usps.units() if unit.args[1] == 0])
        by_name = {row.name: row for row in outcome.rows}
        assert len(by_name) == len(outcome.rows) == 18
        grey = next(part for part in outcome.found if part["kind"] == "grey")
        assert by_name["grey: Hellinger, Delta_H"].ours == grey["losses"]["Hellinger"]["H"]
        assert by_name["grey: Delta_H, Hellinger vs KDE-Gaussian"].passes
        assert by_name["grey: Delta_G, KDE-Gaussian vs Hellinger"].passes
        pytest.importorskip("matplotlib")
        assert len(usps.draw(outcome.found).axes) == 2
        grey["losses"]["Hellinger"]["H"] = 1.5
        again = {row.name: row for row in usps.summary({"one": grey})[0]}
        assert len(again) == 9
        assert not again["grey: Hellinger, Delta_H"].passes
        assert not again["grey: Delta_H, Hellinger vs KDE-Gaussian"].passes


class TestRecogniser:
    def test_what_it_sees(self):
        upper, lower = np.array([[0.5, 0.5, 1.0]]), np.array([[0.25, 0.75, 0.0]])
        seen = {view: usps._Recogniser(view, 2.0)._seen(upper, lower)[0] for view in usps.VIEWS}
        np.testing.assert_allclose(seen["histograms"], [0.25, 0.25, 0.5, 0.25, 0.75, 0])
        np.testing.assert_allclose(seen["roots"], np.sqrt(seen["histograms"]))
        np.testing.assert_allclose(seen["ink"], [0.5, 0.5, 1.0, 0.5, 1.0, 0])

    def test_it_looks_at_both_halves(self, rng):
        upper, lower = rng.integers(0, 2, (2, 300))
        halves = [np.column_stack([1.0 - bit, 0.5 + bit]) + 0.05 * rng.random((300, 2)) for bit in (upper, lower)]
        halves[1] = usps.histograms(halves[1])
        digits = 2 * upper + lower
        machine = usps._Recogniser("roots", 1.0).fit(halves[0][:200], halves[1][:200], digits[:200])
        assert machine.error(halves[0][200:], halves[1][200:], digits[200:]) == 0
        assert machine.error(halves[0][200:], halves[1][200:][::-1], digits[200:]) > 0.3
        assert machine.error(halves[0][200:][::-1], halves[1][200:], digits[200:]) > 0.3


def test_the_median_is_that_of_the_training_outputs(rng):
    Z = rng.random((50, 3))
    distances = np.linalg.norm(Z[:, None] - Z[None], axis=2)[np.triu_indices(50, 1)]
    loss = KernelInduced(Gaussian("median")).resolve(Z)
    assert loss.kernel.gamma == pytest.approx(1 / (2 * np.median(distances) ** 2))
