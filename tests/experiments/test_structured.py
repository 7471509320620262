import numpy as np
import pytest

from fenchel.approximations import Nystrom
from fenchel.datasets import (
    binned_spectra,
    load_bibtex,
    load_massbank,
    load_metabolite_fp490,
    load_yeast,
    peak_differences,
    spectrum_products,
)
from fenchel.estimators import StructuredPredictor
from fenchel.kernels import Gaussian, GaussianTanimoto
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.metrics import f1_scores, hamming_losses, ranks_of, top_k_accuracies
from fenchel.papers import bibtex, fp490, metabolites, yeast_hamming
from fenchel.papers.experiment import run

ROUND_OFF = 64 * np.finfo(float).eps


@pytest.fixture
def folder(data_folder, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    return data_folder


class TestLoaders:
    def test_bibtex(self, folder):
        data = load_bibtex()
        assert data.X_train.shape == (4880, 1836) and data.X_test.shape == (2515, 1836)
        assert data.Y_train.shape == (4880, 159) and data.Y_test.shape == (2515, 159)
        mean = np.vstack([data.Y_train, data.Y_test]).sum(axis=1).mean()
        assert mean == pytest.approx(2.402, abs=5e-4)
        assert len(data.feature_names) == 1836 and len(data.label_names) == 159

    def test_massbank(self, folder):
        """The numbers of the data's page: peaks, folds without common formulas, candidate sets."""
        data = load_massbank()
        assert len(data.mz) == len(data.intensity) == data.offset[-1] == 193_770
        assert data.Y.shape == (4020, 2048) and data.candidate_Y.shape == (13_289, 2048)
        assert np.bincount(data.fold).min() == 790 and np.bincount(data.fold).max() == 834
        assert all(len(np.unique(data.fold[data.formula == one])) == 1 for one in np.unique(data.formula)[:200])
        sizes = dict(zip(*np.unique(data.candidate_formula, return_counts=True), strict=True))
        assert sum(sizes[formula] >= 2 for formula in data.formula) == 2787
        place = {key: k for k, key in enumerate(data.candidate_inchikey)}
        own = np.array([place[key] for key in data.inchikey])
        np.testing.assert_array_equal(data.candidate_Y[own], data.Y)

    def test_fingerprints_side_by_side(self, folder):
        data = load_massbank(("maccs", "morgan"))
        assert data.Y.shape == (4020, 167 + 2048)
        with pytest.raises(ValueError, match="'morgan', 'maccs'"):
            load_massbank("ecfp")

    def test_fp490(self, folder):
        data = load_metabolite_fp490()
        assert data.K.shape == (490, 490) and data.Y.shape == (490, 286)
        np.testing.assert_allclose(np.diag(data.K), 1, rtol=1e-6)
        assert data.Y.sum(axis=1).mean() == pytest.approx(49.10, abs=5e-3)

    def test_a_table_without_its_columns(self, tmp_path, folder, monkeypatch):
        (tmp_path / "massbank_msms").symlink_to(folder / "massbank_msms")
        monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
        monkeypatch.setattr("fenchel.datasets.readers.csv.DictReader", lambda _: _Empty())
        with pytest.raises(ValueError, match="It lacks inchikey14, smiles, formula, precursor_mz, fold"):
            load_massbank()


class _Empty:
    fieldnames = ("name",)


class TestSpectra:
    def test_by_hand(self):
        """Two peaks at 1 and 2; their losses from a precursor at 4 are 3 and 2; the precursor itself is no loss."""
        rows = binned_spectra([1.0, 2.0, 4.0], [0.36, 0.64, 1.0], [0, 3], width=1.0)
        np.testing.assert_allclose(rows.toarray(), [np.array([0, 0.6, 0.8, 0, 1]) / 2**0.5], rtol=ROUND_OFF)
        losses = binned_spectra([1.0, 2.0, 4.0], [0.36, 0.64, 1.0], [0, 3], [4.0], width=1.0)
        np.testing.assert_allclose(losses.toarray(), [[0, 0, 0.8, 0.6]], rtol=ROUND_OFF)

    def test_differences_by_hand(self):
        """Of the three strongest peaks; a difference of 5 is too large, and the second spectrum has one peak."""
        peaks = [3.0, 1.0, 6.0, 2.5, 7.0], [0.5, 0.4, 0.3, 0.1, 1.0], [0, 4, 5]
        gaps, products, offset = peak_differences(*peaks, most=3, largest=5.0)
        np.testing.assert_allclose(gaps, [2.0, 3.0], rtol=ROUND_OFF)
        np.testing.assert_allclose(products, [0.2, 0.15], rtol=ROUND_OFF)
        np.testing.assert_array_equal(offset, [0, 2, 2])
        assert binned_spectra(gaps, products, offset, power=0.25).shape[0] == 2

    def test_a_peak_between_two_bins(self):
        assert binned_spectra([1.25], [1.0], [0, 1], width=1.0).toarray() == pytest.approx(
            np.array([[0, 0.75, 0.25]]) / 0.625**0.5
        )
        np.testing.assert_array_equal(
            binned_spectra([1.25], [1.0], [0, 1], width=1.0, spread=False).toarray(), [[0, 1]]
        )

    def test_cosines(self):
        rng = np.random.default_rng(0)
        mz, offset = rng.uniform(50, 60, 40), np.array([0, 10, 10, 25, 40])
        rows = binned_spectra(mz, rng.random(40), offset, width=0.5)
        K = spectrum_products(rows)
        np.testing.assert_allclose(K, rows.toarray() @ rows.toarray().T, rtol=1e-12)
        np.testing.assert_allclose(np.diag(K), [1, 0, 1, 1], rtol=ROUND_OFF)  # the second has no peaks
        np.testing.assert_array_equal(spectrum_products(rows, rows[:2]), K[:, :2])

    def test_errors(self):
        with pytest.raises(ValueError, match="two lists of equal length"):
            binned_spectra([1.0], [1.0, 2.0], [0, 1])
        with pytest.raises(ValueError, match="increase from 0 to the number of peaks, 2"):
            binned_spectra([1.0, 2.0], [1.0, 1.0], [0, 1])
        with pytest.raises(ValueError, match="finite and non-negative"):
            binned_spectra([1.0], [-1.0], [0, 1])
        with pytest.raises(ValueError, match="width must be positive"):
            binned_spectra([1.0], [1.0], [0, 1], width=0.0)
        with pytest.raises(ValueError, match="each of the 1 spectra"):
            binned_spectra([1.0], [1.0], [0, 1], [3.0, 4.0])


class TestYeast:
    @pytest.mark.parametrize("loss", [Square(), EpsilonRidge(0.1), Huber(1.0), EpsilonSVR(0.5)])
    def test_every_loss_is_below_the_bar(self, folder, loss):
        """With the numbers that cross-validation on the training part chose."""
        data = load_yeast()
        model = StructuredPredictor(Gaussian(1.0), loss=loss, lam=1e-3, decoder="threshold", tol=1e-4)
        model.fit(data.X_train, data.Y_train)
        missed = 100 * np.mean(hamming_losses(data.Y_test, model.predict(data.X_test)))
        assert 18.0 < missed <= yeast_hamming.BAR

    def test_figure(self, monkeypatch):
        pytest.importorskip("matplotlib")
        cv = np.ones((1, len(yeast_hamming.LAMS)))
        found = {name: {"missed": np.array([18.0, 20.0]), "cv": cv} for name in yeast_hamming.LOSSES}
        assert len(yeast_hamming.draw(found).axes) == 2


def test_sketched_yeast(folder):
    """Within 0.7 points of the exact model, with 200 landmarks of 1500 genes."""
    data = load_yeast()
    missed = []
    for approximation in (None, Nystrom(200)):
        model = StructuredPredictor(Gaussian(0.75), decoder="threshold", lam=1e-3, approximation=approximation)
        predicted = model.fit(data.X_train, data.Y_train).predict(data.X_test)
        missed.append(100 * np.mean(hamming_losses(data.Y_test, predicted)))
    assert missed[0] < 19.3 and abs(missed[1] - missed[0]) < 0.7


class TestBibtex:
    @pytest.fixture
    def quarter(self, folder, monkeypatch):
        data = load_bibtex()
        data.update(X_train=data.X_train[::4], Y_train=data.Y_train[::4])
        data.update(X_test=data.X_test[::4], Y_test=data.Y_test[::4])
        monkeypatch.setattr(bibtex, "load_bibtex", lambda: data)
        return data

    def test_part(self, quarter):
        """A quarter of the sample, by the same route: better than the most frequent tag set, and a certified fit."""
        outcome = run(bibtex, bibtex.units(quick=True))
        (row,), found = outcome.rows, outcome.found
        sets, counts = np.unique(quarter.Y_train, axis=0, return_counts=True)
        most = np.broadcast_to(sets[np.argmax(counts)], quarter.Y_test.shape)
        assert row.ours == pytest.approx(100 * np.mean(found["f1"]))
        assert row.ours > 30 > row.trivial == pytest.approx(100 * np.mean(f1_scores(quarter.Y_test, most)))
        pytest.importorskip("matplotlib")
        assert len(bibtex.draw(found).axes) == 2

    def test_sizes_of_sketches_are_chosen_on_training_references(self, quarter, monkeypatch):
        """The first pair that loses at most half of the score is kept, whatever the test references are."""
        monkeypatch.setattr(bibtex, "SIZES", ((2, 2), (300, 200), (400, 300)))
        monkeypatch.setattr(bibtex, "LEAST_SHARE", 0.5)
        monkeypatch.setattr(bibtex, "DRAWS", 2)
        found = bibtex._sketched()
        assert found["sizes"] == (300, 200) and len(found["held_out"]) == 3
        assert np.shape(found["f1"]) == (2, len(quarter.Y_test))
        assert found["held_out"][1] < 0.5 * found["held_out"][0] <= found["held_out"][2]
        quarter.update(Y_test=1 - quarter.Y_test)
        assert bibtex._sketched()["held_out"] == found["held_out"]

    @pytest.mark.exhaustive
    def test_published_numbers(self, folder):
        exact, sketched = run(bibtex, bibtex.units()).rows
        assert exact.passes and exact.ours == pytest.approx(44.87, abs=0.01)
        assert sketched.passes and sketched.ours == pytest.approx(55.9, abs=0.2)


class TestMetabolites:
    def test_spectra_tell_molecules_apart(self, folder):
        """A quarter of the training molecules, one robust fit: far better than a ranking by the mean output."""
        data = load_massbank()
        peaks = binned_spectra(data.mz, data.intensity, data.offset)
        losses = binned_spectra(data.mz, data.intensity, data.offset, data.precursor_mz)
        train = np.flatnonzero(data.fold != 0)[::4]
        sets = {i: np.flatnonzero(data.candidate_formula == data.formula[i]) for i in np.flatnonzero(data.fold == 0)}
        test = np.array([i for i, places in sets.items() if len(places) > 1])[::4]

        def gram(rows):
            mean = sum(spectrum_products(one[rows], one[train]) for one in (peaks, losses)) / 2
            return np.exp(mean - 1)

        candidates = [data.candidate_Y[sets[i]].astype(float) for i in test]
        own = np.array([np.flatnonzero(data.candidate_inchikey[sets[i]] == data.inchikey[i])[0] for i in test])
        model = StructuredPredictor("precomputed", GaussianTanimoto(1.0), Huber(0.1), 1e-5, decoder="candidates")
        model.fit(gram(train), data.Y[train].astype(float))
        assert model.duality_gap_ <= 1e-6

        def top(inputs):
            return np.mean(top_k_accuracies(ranks_of(model.decision_scores(inputs, candidates), own), 1))

        blind = np.ones((len(test), len(train)))
        assert top(gram(test)) > 0.5 > 0.4 > top(blind)

    def test_rows(self):
        one = {name: {"top": [0.67, 0.9, 0.98], "gap": 1e-7, "seconds": 9.0} for name in metabolites.LOSSES}
        part = {"device": None, "blind": 0.27, "small": one, "tuned": one}
        rows, parts = metabolites.summary({unit.name: part for unit in metabolites.units()})
        assert len(parts) == metabolites.FOLDS
        assert [row.ours for row in rows] == pytest.approx([33.0, 33.0, 33.0, 9.0]) and all(row.passes for row in rows)
        assert "67.0 / 90.0 / 98.0" in rows[0].note and rows[0].trivial == pytest.approx(73.0)
        pytest.importorskip("matplotlib")
        assert len(metabolites.draw(parts).axes) == 2


def test_fp490_from_its_gram_matrix(data_folder, monkeypatch):
    """The square loss reaches the numbers of a kernel ridge regression with a threshold."""
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    outcome = run(fp490, fp490.units(quick=True))
    rows, wrong = outcome.rows, outcome.found
    assert [row.name for row in rows] == ["square, share of correct bits", "square, micro F1"]
    assert all(row.passes for row in rows), rows
    assert wrong["square"].shape == (490,)
    most = np.mean(load_metabolite_fp490().Y.mean(axis=0) > 0.5)
    assert 0 < most < 0.3  # some bits are mostly set
    assert rows[1].trivial < 0.9 * rows[1].ours and rows[0].trivial < rows[0].ours
