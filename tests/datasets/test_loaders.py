import gzip

import numpy as np
import pytest

from fenchel.datasets import (
    as_curves,
    load_bike_sharing,
    load_dti,
    load_lip_emg,
    load_movielens100k,
    load_mulan_regression,
    load_nci_cancer,
    load_speech,
    load_usps,
    load_yeast,
    morgan_fingerprints,
)

LOADERS = (
    load_bike_sharing,
    load_dti,
    load_lip_emg,
    load_movielens100k,
    load_nci_cancer,
    load_speech,
    load_usps,
    load_yeast,
)


@pytest.fixture
def folder(data_folder, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    return data_folder


class TestDti:
    def test_shapes(self, folder):
        data = load_dti()
        assert data.X.shape == (100, 93) and data.Y.shape == data.Y_interpolated.shape == (100, 55)
        assert data.X.dtype == data.Y.dtype == data.Y_interpolated.dtype == np.float64
        np.testing.assert_allclose(data.t_in, np.arange(93) / 92)
        np.testing.assert_allclose(data.t_out, np.arange(55) / 54)
        assert data.pasat.shape == data.sex.shape == (100,)
        assert dict(zip(*np.unique(data.sex, return_counts=True), strict=True)) == {"female": 34, "male": 66}

    def test_missing_values(self, folder):
        """192 missing values in 34 curves, as the data's page says; inputs have none left."""
        data = load_dti()
        missing = np.isnan(data.Y)
        assert missing.sum() == 192 and missing.any(axis=1).sum() == 34
        assert np.all(np.isfinite(data.X)) and np.all(np.isfinite(data.pasat))
        assert not as_curves(data.Y, data.t_out).is_complete

    def test_interpolation(self, folder):
        data = load_dti()
        for row, filled in zip(data.Y, data.Y_interpolated, strict=True):
            seen = ~np.isnan(row)
            np.testing.assert_allclose(filled, np.interp(data.t_out, data.t_out[seen], row[seen]), rtol=1e-13)


class TestSpeech:
    def test_shapes(self, folder):
        data = load_speech()
        assert data.X.shape == (413, 290, 13) and data.X.dtype == np.float64
        assert list(data.Y) == list(data.names)
        assert data.names == ("LP", "LA", "TBCL", "TBCD", "JAW", "VEL", "GLO", "TTCL", "TTCD", "TTCR")
        assert all(curves.shape == (413, 290) and curves.dtype == np.float64 for curves in data.Y.values())
        assert data.t.shape == (290,) and data.t[0] == 0 and 0.999 < data.t[-1] <= 1
        assert np.issubdtype(data.valid_len.dtype, np.integer)
        assert (data.valid_len.min(), data.valid_len.max()) == (60, 290)

    def test_no_word_comes_twice(self, folder):
        data = load_speech()
        assert len(set(data.words)) == 413
        assert {"buy", "son", "to"} <= set(data.words) and not {"by", "sun", "two"} & set(data.words)
        sounds = data.X.reshape(413, -1)
        assert len(np.unique(sounds, axis=0)) == 413

    def test_published_names_are_those_of_the_data(self, folder):
        with np.load(folder / "speech_tada" / "speech_raw.npz") as raw:
            known = [str(name) for name in raw["tv_names_in_published_loader"] if name]
        assert list(load_speech(published_names=True).names) == known

    def test_the_two_ways_of_naming(self, folder):
        """The same from the first to the fourth; then one row off."""
        ours, theirs = load_speech(), load_speech(published_names=True)
        assert len(theirs.Y) == 8
        for name in ("LP", "LA", "TBCL", "TBCD"):
            np.testing.assert_array_equal(ours.Y[name], theirs.Y[name])
        for name, published in {"JAW": "VEL", "VEL": "GLO", "GLO": "TTCL", "TTCL": "TTCD"}.items():
            np.testing.assert_array_equal(ours.Y[name], theirs.Y[published])

    def test_velum_opens_in_nasal_words_only(self, folder):
        """The physiology that tells the right names from the published ones."""
        data = load_speech()
        is_nasal = np.array(["n" in word or "m" in word for word in data.words])
        np.testing.assert_array_equal(data.Y["VEL"].max(axis=1) > 0.05, is_nasal)

    def test_curves_are_extended_by_reflection(self, folder):
        data = load_speech()
        with np.load(folder / "speech_tada" / "speech_raw.npz") as raw:
            words, tracts, cuts = list(raw["words"]), raw["tv"], raw["tv_offset"]
        for row in (0, 100, 412):
            n, source = data.valid_len[row], words.index(data.words[row])
            true = tracts[:, cuts[source] : cuts[source + 1]]
            assert true.shape[1] == n
            for curves, expected in zip(data.Y.values(), true, strict=True):
                np.testing.assert_allclose(curves[row, :n], expected, rtol=1e-6, atol=1e-6)
                m = min(n, 290 - n)
                np.testing.assert_array_equal(curves[row, n : n + m], curves[row, n - m : n][::-1])


class TestUsps:
    def test_shapes(self, folder):
        data = load_usps()
        assert data.X_train.shape == (7291, 256) and data.X_test.shape == (2007, 256)
        assert data.X_train.dtype == data.X_test.dtype == np.float64
        for images in (data.X_train, data.X_test):
            assert (images.min(), images.max()) == (0, 1)
        assert np.mean(data.X_train == 0) == pytest.approx(0.59, abs=0.005)  # background, as the data's page says

    def test_digits(self, folder):
        """The counts of the documentation of the data."""
        data = load_usps()
        assert np.issubdtype(data.y_train.dtype, np.integer)
        np.testing.assert_array_equal(np.bincount(data.y_train), [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644])
        np.testing.assert_array_equal(np.bincount(data.y_test), [359, 264, 198, 166, 200, 160, 170, 147, 166, 177])

    def test_rows_are_images_from_the_top(self, folder):
        """A seven has its bar above and only its stem below; a six has its bowl below."""
        data = load_usps()
        images = data.X_train.reshape(-1, 16, 16)
        above = images[:, :8].sum(axis=(1, 2)) / images.sum(axis=(1, 2))
        assert np.mean(above[data.y_train == 7]) > 0.55 > 0.45 > np.mean(above[data.y_train == 6])
        one = images[data.y_train == 1].mean(axis=0)  # a stroke from top to bottom
        assert one.mean(axis=0).max() > 2 * one.mean(axis=1).max()

    @pytest.mark.parametrize("images", [np.zeros((2, 255)), np.zeros((2, 16, 16)), np.full((2, 256), 1.5)])
    def test_other_images(self, tmp_path, monkeypatch, images):
        monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
        (tmp_path / "usps").mkdir()
        np.savez(tmp_path / "usps/usps.npz", X_train=np.zeros((2, 256)), X_test=images, y_train=[0, 1], y_test=[0, 1])
        with pytest.raises(ValueError, match=r"X_test of .* must hold rows of 256 numbers from -1 to 1"):
            load_usps()


class TestMovieLens:
    def test_shapes(self, folder):
        """The counts of the data's page."""
        data = load_movielens100k()
        assert data.ratings.shape == (943, 1682) and data.title.shape == (1682,)
        values, counts = np.unique(data.ratings[~np.isnan(data.ratings)], return_counts=True)
        assert values.tolist() == [1, 2, 3, 4, 5] and counts.tolist() == [6110, 11370, 27145, 34174, 21201]
        assert np.min(np.sum(~np.isnan(data.ratings), axis=1)) == 20
        assert data.age.shape == data.gender.shape == data.occupation.shape == (943,)
        assert data.age.dtype == np.float64 and set(data.gender) == {"M", "F"} and len(set(data.occupation)) == 21

    def test_ratings_are_where_the_table_says(self, folder):
        with gzip.open(folder / "movielens100k" / "ratings.csv.gz", "rt") as stream:
            lines = stream.readlines()[1::9973]
        data = load_movielens100k()
        for line in lines:
            user, item, rating = map(int, line.split(",")[:3])
            assert data.ratings[user - 1, item - 1] == rating
        assert data.title[0] == "Toy Story (1995)"
        assert (data.age[0], data.gender[0], data.occupation[0]) == (24, "M", "technician")


class TestNciCancer:
    def test_shapes(self, folder):
        data = load_nci_cancer()
        assert data.X.shape == (2102, 2048) and data.X.dtype == np.uint8 and set(np.unique(data.X)) == {0, 1}
        assert data.scores.shape == data.Y.shape == (2102, 59)
        np.testing.assert_array_equal(data.Y, data.scores >= 60)
        assert data.scores.min() >= 17 and data.scores.max() <= 147
        assert np.all(data.Y.any(axis=1))  # active in at least one line
        assert data.Y.mean() == pytest.approx(0.36, abs=5e-3)  # as the data's page says
        assert len(data.cell_lines) == 59 and data.cell_lines[0] == "NCI-H23"

    def test_fingerprints_are_those_of_the_structures(self, folder):
        pytest.importorskip("rdkit")
        data = load_nci_cancer("morgan")
        rows = [0, 100, 2101]
        np.testing.assert_array_equal(morgan_fingerprints(data.smiles[rows].tolist()), data.X[rows])
        with pytest.raises(ValueError, match=r"fingerprint must be one of 'path', 'morgan'\. Got 'maccs'"):
            load_nci_cancer("maccs")


@pytest.mark.parametrize("load", LOADERS)
def test_missing_file(tmp_path, monkeypatch, load):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="Put it there, or set FENCHEL_DATA to the folder"):
        load()


@pytest.mark.parametrize(
    ("load", "path", "held", "missing"),
    [
        (load_dti, "dti/dti_ms_first_visit.npz", ("cca", "pasat"), "It lacks rcst_raw, rcst"),
        (load_dti, "dti/dti_ms_first_visit.npz", ("cca", "pasat", "rcst", "rcst_raw"), "It lacks sex"),
        (load_speech, "speech_tada/speech_ext.npz", ("mfcc", "t"), "It lacks tv"),
        (load_speech, "speech_tada/speech_ext.npz", ("mfcc", "t", "tv", "words"), "lacks valid_len, keep413, tv_names"),
        (load_lip_emg, "lip_emg/lip_emg.npz", ("emg",), "It lacks lip_acc, t"),
        (load_usps, "usps/usps.npz", ("X_train", "y_train"), "It lacks X_test"),
    ],
)
def test_missing_arrays(tmp_path, monkeypatch, load, path, held, missing):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    (tmp_path / path).parent.mkdir()
    np.savez(tmp_path / path, **{name: np.zeros((2, 2)) for name in held})
    with pytest.raises(ValueError, match=missing):
        load()


class TestRegressionSets:
    @pytest.mark.parametrize(
        ("name", "shape", "targets"),
        [("slump", (103, 7), 3), ("edm", (154, 16), 2), ("wq", (1060, 16), 14), ("rf1", (9125, 64), 8)],
    )
    def test_mulan(self, folder, name, shape, targets):
        data = load_mulan_regression(name)
        assert data.X.shape == shape and data.Y.shape == (shape[0], targets)
        assert data.X.dtype == data.Y.dtype == np.float64
        assert np.all(np.isfinite(data.X)) and np.all(np.isfinite(data.Y))
        assert len(data.feature_names) == shape[1] and len(data.target_names) == targets

    def test_missing_values_are_feature_means(self, folder):
        with np.load(folder / "mulan_mtr" / "rf1.npz") as stored:
            X = np.vstack([stored["X_train"], stored["X_test"]])
        missing = np.isnan(X)
        assert missing.sum() == 3264
        data, column = load_mulan_regression("rf1"), np.argmax(missing.any(axis=0))
        np.testing.assert_allclose(data.X[missing[:, column], column], np.nanmean(X[:, column]))

    def test_unknown_name(self):
        with pytest.raises(ValueError, match="name must be one of 'atp1d'"):
            load_mulan_regression("rf2")

    def test_bike_sharing(self, folder):
        data = load_bike_sharing()
        assert data.X.shape == (17379, 12) and data.y.shape == (17379,)
        assert data.y.sum() == 3292679  # rentals of two years, as the data's page says
        sine, cosine = (data.X[:, data.feature_names.index(f"hr_{name}")] for name in ("sin", "cos"))
        np.testing.assert_allclose(sine**2 + cosine**2, 1)
