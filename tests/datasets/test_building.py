"""Files of data sets built from originals: small stand-ins with the layout of the originals, and answers by hand."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

from fenchel.datasets.store import check_files, known_files
from fenchel.papers.datasets import building, nci_recipes, recipes
from fenchel.papers.datasets.arff import read_arff
from fenchel.papers.datasets.building import build, differences, read_columns, summary
from fenchel.papers.datasets.cepstra import mel_cepstra
from fenchel.papers.datasets.sources import SOURCES


@pytest.fixture
def write(tmp_path):
    """Write an original, and return its path."""

    def written(name, text, encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode(encoding))
        return path

    return written


def test_every_data_set_has_a_source():
    known = {file.data_set for file in known_files().values()}
    assert set(SOURCES) == known
    for name, source in SOURCES.items():
        assert source.url.startswith("https://") and source.licence and source.citation
        assert source.recipes or source.note
        for recipe in source.recipes:
            assert f"{name}/{recipe.file}" in known_files()
            assert f"{name}/{recipe.file}" in building._contents()


def test_the_page_names_every_source():
    page = Path(__file__).parents[2] / "docs" / "data.rst"
    if not page.exists():
        pytest.skip("the pages are not beside the tests")
    text = page.read_text(encoding="utf-8")
    for name, source in SOURCES.items():
        for part in (f"``{name}``", source.url, source.licence, source.citation, *source.originals):
            assert part in text, name


def test_dense_arff(write):
    path = write(
        "a.arff",
        "% a comment\n@RELATION r\n@attribute 'a name' NUMERIC\n@attribute size {X, R,S}\n@attribute level {1,2,3}\n"
        '@attribute "it\'s" real\n\n@DATA\n% another\n1.5, S, 3, -2e1\n?,X,1,0\n',
    )
    relation = read_arff(path)
    assert relation.names == ["a name", "size", "level", "it's"]
    np.testing.assert_array_equal(relation.values, [[1.5, 2, 3, -20], [np.nan, 0, 1, 0]])
    assert relation.nominal.tolist() == [False, True, True, False]


def test_sparse_arff_and_labels(write):
    header = "@relation r\n" + "".join(f"@attribute w{k} {{0,1}}\n" for k in range(3))
    header += "@attribute TAG_a {0,1}\n@attribute TAG_b {0,1}\n@data\n"
    train, test = write("train.arff", header + "{0 1,4 1}\n{}\n"), write("test.arff", header + "{2 1,3 1}\n")
    found = recipes.multi_label(train, test, n_labels=2, is_binary=True)
    assert found["X_train"].tolist() == [[1, 0, 0], [0, 0, 0]] and found["X_train"].dtype == np.uint8
    assert found["Y_train"].tolist() == [[0, 1], [0, 0]] and found["Y_test"].tolist() == [[1, 0]]
    assert found["label_names"].tolist() == ["TAG_a", "TAG_b"] and found["feature_names"].tolist() == ["w0", "w1", "w2"]


def test_an_attribute_of_text_is_refused(write):
    with pytest.raises(ValueError, match="attribute of type 'string'"):
        read_arff(write("a.arff", "@relation r\n@attribute a string\n@data\nword\n"))


def test_multi_target(write):
    path = write(
        "a.arff", "@relation r\n@attribute a {u,v}\n@attribute b numeric\n@attribute y numeric\n@data\nv,2,3\n"
    )
    found = recipes.multi_target(path, n_targets=1)
    assert (
        found["X"].tolist() == [[1, 2]] and found["Y"].tolist() == [[3]] and found["nominal"].tolist() == [True, False]
    )
    assert found["target_names"].tolist() == ["y"]


def test_movielens(write):
    ratings = write("u.data", "2\t5\t3\t100\n1\t9\t4\t200\n1\t3\t5\t300\n")
    tests = [write(f"u{k}.test", line) for k, line in enumerate(["2\t5\t3\t100\n", "1\t3\t5\t300\n1\t9\t4\t200\n"], 1)]
    empty = [write(f"u{k}.test", "7\t7\t1\t1\n") for k in (3, 4, 5)]
    found = recipes.movielens_ratings(ratings, *tests, *empty, tests[0], tests[1])
    assert {name: column.tolist() for name, column in found.items()} == {
        "user": ["1", "1", "2"],
        "item": ["3", "9", "5"],
        "rating": ["5", "4", "3"],
        "timestamp": ["300", "200", "100"],
        "fold": ["2", "2", "1"],
        "ua_test": ["0", "0", "1"],
        "ub_test": ["1", "1", "0"],
    }
    flags = "|".join("1" if k == 2 else "0" for k in range(19))
    films = recipes.movielens_films(write("u.item", f"1|Café (1995)|01-Jan-1995||http://x|{flags}\n", "latin-1"))
    assert films["title"].tolist() == ["Café (1995)"] and films["Adventure"].tolist() == ["1"] and len(films) == 22
    users = recipes.movielens_users(write("u.user", "1|24|M|technician|85711\n"))
    assert users["occupation"].tolist() == ["technician"]


def test_usps(write):
    line = "6.0000 " + " ".join(["-1.000"] * 255 + ["0.862"]) + " \n"
    found = recipes.usps(write("zip.train.gz", line * 2), write("zip.test.gz", line))
    assert found["X_train"].shape == (2, 256) and found["X_train"].dtype == np.float32
    assert found["X_test"][0, -1] == np.float32(0.862) and found["y_train"].tolist() == [6, 6]


def test_dti(write):
    header = (
        '"ID","visit","visit.time","Nscans","case","sex","pasat","cca.cca_1","cca.cca_2","cca.cca_3","rcst.1","rcst.2"'
    )
    rows = [
        '2001,1,0,2,1,"female",31,0.1,NA,0.3,NA,0.5',
        '2001,2,9,2,1,"female",32,0.2,0.2,0.2,0.2,0.2',
        '1001,1,0,1,0,"male",NA,0.4,0.4,0.4,0.4,0.4',
    ]
    found = recipes.dti(write("DTI.csv", "\n".join([header, *rows, ""])))
    assert found["ID"].tolist() == [2001] and found["sex"].tolist() == ["female"] and found["pasat"].tolist() == [31]
    np.testing.assert_array_equal(found["cca_raw"], [[0.1, np.nan, 0.3]])
    np.testing.assert_allclose(found["cca"], [[0.1, 0.2, 0.3]])
    np.testing.assert_allclose(found["rcst"], [[0.5, 0.5]])  # constant at the ends


def test_air_quality(write):
    header = (
        "Date;Time;CO(GT);PT08.S1(CO);NMHC(GT);C6H6(GT);PT08.S2(NMHC);NOx(GT);PT08.S3(NOx);NO2(GT);PT08.S4(NO2);"
        "PT08.S5(O3);T;RH;AH;;"
    )
    days = {"10/03/2004": range(18, 24), "11/03/2004": range(24), "12/03/2004": range(24), "01/02/2005": range(24)}
    lines = [
        f"{day};{hour:02d}.00.00;1,2;1185;31;3,6;690;62;1462;77;{-200 if day[:2] == '12' and hour == 5 else 1333};733;"
        f"{hour},5;56,8;0,76;;"
        for day, hours in days.items()
        for hour in hours
    ]
    found = recipes.air_quality(write("AirQualityUCI.csv", "\n".join([header, *lines, ";" * 16, ""])))
    assert found["NO2"].shape == (2, 24)  # a day that is cut off and one with a gap are left out
    np.testing.assert_allclose(found["CO"], np.log(1185))
    np.testing.assert_allclose(found["C6H6"], np.log(733))
    np.testing.assert_allclose(found["temperature"][0], np.arange(24) + 0.5)
    np.testing.assert_allclose(found["humidity"], 56.8)


def test_lip_emg_and_fingerprints(write):
    t = np.linspace(0, 0.69, 501)
    paths = [
        write(name, "\n".join(f"{a:.17g},{b:.17g}" for a, b in zip(t, 2 * t, strict=True)) + "\n")
        for name in ("EMG.csv", "LipAcc.csv", "LipPos.csv")
    ]
    found = recipes.lip_emg(*paths)
    assert found["emg_raw"].shape == (2, 501)
    np.testing.assert_allclose(found["emg"], np.outer([1, 2], found["t"]), atol=1e-15)
    np.testing.assert_allclose(found["lip_acc"], np.outer([1, 2], found["t"] + 0.05), atol=1e-15)
    found = recipes.fp490(write("fp_kernel", "1 0.5\n0.5 1\n"), write("fp_targets", "-1 1 1\n1 -1 -1\n"))
    assert found["K"].tolist() == [[1, 0.5], [0.5, 1]] and found["Y"].tolist() == [[0, 1, 1], [1, 0, 0]]


def cepstra_by_the_book(signal, rate):
    """Frames of 10 ms each 5 ms, without any transform of a library."""
    emphasised = [float(now) - 0.97 * float(before) for before, now in zip([0, *signal[:-1]], signal, strict=True)]
    length, hop = rate // 100, rate // 200
    starts = [0]
    while starts[-1] + length < len(signal):
        starts.append(starts[-1] + hop)
    emphasised += [0.0] * (starts[-1] + length - len(signal))
    frequencies = np.arange(257)
    waves = np.exp(-2j * np.pi * np.outer(np.arange(length), frequencies) / 512)
    top = 2595 * np.log10(1 + rate / 1400)
    corners = [int(513 * 700 * (10 ** (top * k / 27 / 2595) - 1) / rate + 1e-9) for k in range(28)]
    rows = []
    for start in starts:
        power = np.abs(emphasised[start : start + length] @ waves) ** 2 / 512
        energies = []
        for a, b, c in zip(corners, corners[1:], corners[2:], strict=False):
            energy = sum(power[f] * (f - a) / (b - a) for f in range(a, b))
            energies.append(energy + sum(power[f] * (c - f) / (c - b) for f in range(b, c)))
        logs = [np.log(energy or np.finfo(float).eps) for energy in energies]
        row = [np.log(power.sum() or np.finfo(float).eps)]
        for q in range(1, 13):
            cosines = [np.cos(np.pi * q * (2 * k + 1) / 52) for k in range(26)]
            row.append((1 + 11 * np.sin(np.pi * q / 22)) * np.sqrt(2 / 26) * np.dot(logs, cosines))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("length", [60, 100, 101, 251, 300])
def test_cepstra(length):
    signal = np.random.default_rng(length).integers(-(2**15), 2**15, length).astype(np.int16)
    signal[: length // 3] = 0
    found = mel_cepstra(signal, 10000, 0.01, 0.005)
    expected = cepstra_by_the_book(signal, 10000)
    assert found.shape == expected.shape == (1 + max(0, int(np.ceil((length - 100) / 50))), 13)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_cepstra_of_silence():
    found = mel_cepstra(np.zeros(251, dtype=np.int16), 10000, 0.01, 0.005)
    np.testing.assert_allclose(found[:, 0], np.log(2.0**-52))
    np.testing.assert_allclose(found[:, 1:], 0, atol=1e-12)


def write_word(folder, word, sound, curves):
    """Write a sound and its 14 rows, of which the last four are constant."""
    wavfile.write(folder / f"{word}.wav", 10000, sound)
    rows = [*curves, *([value] * curves.shape[1] for value in (120, 0, 0, 0))]
    (folder / f"{word}.csv").write_text("".join(",".join(f"{v:.15g}" for v in row) + "\n" for row in rows))


def test_speech(tmp_path):
    rng = np.random.default_rng(0)
    sounds = [rng.integers(-900, 900, n).astype(np.int16) for n in (301, 101)]
    curves = [rng.normal(size=(10, n)) for n in (6, 2)]
    for word, one in (("to", 1), ("longest", 0), ("two", 1)):
        write_word(tmp_path, word, sounds[one], curves[one])
    write_word(tmp_path, "tu", sounds[1], curves[1] + 1)  # sounds the same, and moves otherwise
    (tmp_path / "table.csv").write_text("not,of,a,word\n")
    (tmp_path / "noise.wav").write_bytes(b"not a sound")
    found = recipes.speech(*tmp_path.glob("*.*"))
    assert found["words"].tolist() == ["longest", "to", "tu", "two"]
    assert found["keep413"].tolist() == [True, True, True, False] and found["valid_len"].tolist() == [6, 2, 2, 2]
    assert found["mfcc"].dtype == found["tv"].dtype == np.float32
    there, back = curves[1], curves[1][:, ::-1]
    np.testing.assert_allclose(found["tv"][:2], [curves[0], np.hstack([there, back, there])], rtol=1e-6)
    there, back = sounds[1], sounds[1][::-1]
    extended = np.concatenate([there, back, there])[:301]
    np.testing.assert_allclose(found["mfcc"][1], cepstra_by_the_book(extended, 10000), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found["mfcc"][0], cepstra_by_the_book(sounds[0], 10000), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found["t"], np.arange(6) * 0.005 / 0.0251)
    assert found["tv_names"].tolist()[:6] == ["LP", "LA", "TBCL", "TBCD", "JAW", "VEL"]
    with pytest.raises(ValueError, match="No word has both"):
        recipes.speech(tmp_path / "to.wav", tmp_path / "two.csv")


def test_speech_from_the_words_of_the_data(data_folder, tmp_path):
    """The longest word, a pair that sounds the same, and some others."""
    folder = data_folder / "speech_tada"
    raw, known = read_columns(folder / "speech_raw.npz"), read_columns(folder / "speech_ext.npz")
    cuts, points = raw["signal_offset"], raw["tv_offset"]
    words = raw["words"].tolist()
    rows = sorted({*range(0, 416, 20), np.argmax(np.diff(cuts)), words.index("buy"), words.index("by")})
    for k in rows:
        sound, curves = raw["signal"][cuts[k] : cuts[k + 1]], raw["tv"][:, points[k] : points[k + 1]]
        write_word(tmp_path, words[k], sound, curves)
    found = recipes.speech(*tmp_path.iterdir())
    for name in ("words", "keep413", "tv", "valid_len"):
        np.testing.assert_array_equal(found[name], known[name][rows], err_msg=name)
    np.testing.assert_allclose(found["mfcc"], known["mfcc"][rows], rtol=2e-7, atol=1e-12)  # float32
    np.testing.assert_allclose(found["t"], known["t"], rtol=1e-15)
    np.testing.assert_array_equal(found["tv_names"], known["tv_names"])


def test_nci_cancer(write):
    chem = pytest.importorskip("rdkit.Chem")
    lines = write("cancer_label.txt", "1\tNCI-H23\thuman\tLung\n25\tM14\thuman\tMelanoma\n")
    molecules = write("cancer_labels.3", "NSC_740\nNSC_5\nNSC_17\nNSC_8\nNSC_1\n")
    subsets = write("cancer_labels.1", "NSC_17\n"), write("cancer_labels.2", "NSC_5\nNSC_17\n")
    scores = write("cancer_targets.3", "40 41\n61 40\n70 75\n17 147\n40 40\n")
    header = '""\t"NSC"\t"NAME"\t"SMILES"\t"CONFIDENTIAL_FLAG"\n'
    newest = write(
        "new.txt",
        header + '"5"\t5\t"5\\"-name, 7\\""\t"C(O)C"\t0\n"17"\t17\t"b"\t"Cl\\C=C\\Cl"\t0\n'
        '"8"\t8\tNA\tNA\t0\n"740"\t740\t"metal"\t"C[R](C)C"\t0\n"99"\t99\t"é"\t"C"\t0\n',
        "latin-1",
    )
    oldest = write("old.txt", header + '"5"\t"5"\t"a"\t"CCCC"\t0\n"8"\t"8"\t""\t"c1ccccc1O"\t0\n')
    found = nci_recipes.nci_table(lines, scores, molecules, *subsets, newest, oldest)
    assert {name: column.tolist() for name, column in found.items()} == {
        "NSC": ["740", "5", "17", "8", "1"],
        "smiles": ["", "CCO", "Cl/C=C/Cl", "Oc1ccccc1", ""],
        "no_zero_active": ["0", "1", "1", "0", "0"],
        "middle_active": ["0", "0", "1", "0", "0"],
        "NCI-H23": ["40", "61", "70", "17", "40"],
        "M14": ["41", "40", "75", "147", "40"],
    }
    swapped = nci_recipes.nci_table(lines, scores, molecules, *reversed(subsets), newest, oldest)
    np.testing.assert_array_equal(swapped["middle_active"], found["middle_active"])
    bits = nci_recipes.nci_fingerprints(molecules, newest, oldest)
    structures = [chem.MolFromSmiles(text) for text in ("OCC", "Cl/C=C/Cl", "c1ccccc1O")]
    assert bits["NSC"].tolist() == [5, 17, 8] and bits["NSC"].dtype == np.int64
    paths = [list(chem.RDKFingerprint(one, fpSize=2048)) for one in structures]
    np.testing.assert_array_equal(np.unpackbits(bits["rdkit_path_2048_packed"], axis=1), paths)
    assert bits["morgan2_2048_packed"].shape == (3, 256)
    assert nci_recipes.nci_cell_lines(lines)["pubchem_aid"].tolist() == ["1", "25"]
    with pytest.raises(ValueError, match=r"cancer_targets\.3 has 5 rows for 1 molecules of cancer_labels\.1"):
        nci_recipes.nci_table(lines, scores, subsets[0], *subsets, newest)


def test_nci_cancer_from_the_molecules_of_the_data(data_folder, write):
    pytest.importorskip("rdkit")
    names = ("cell_lines.csv.gz", "nci_cancer.csv.gz", "fingerprints.npz")
    lines, table, bits = (read_columns(data_folder / "nci_cancer" / name) for name in names)
    known = {name: column[::45] for name, column in table.items()}

    def labels(name, is_there):
        return write(name, "".join(f"NSC_{number}\n" for number in known["NSC"][is_there]))

    label = write(
        "cancer_label.txt",
        "".join(f"{aid}\t{line}\thuman\t{tissue}\n" for line, tissue, aid in zip(*lines.values(), strict=True)),
    )
    rows = zip(*(known[line] for line in lines["cell_line"]), strict=True)
    scores = write("cancer_targets.3", "".join(" ".join(row) + "\n" for row in rows))
    molecules = labels("cancer_labels.3", slice(None))
    subsets = [
        labels(f"cancer_labels.{k}", known[name] == "1")
        for k, name in enumerate(("middle_active", "no_zero_active"), 1)
    ]
    pairs = [(number, text) for number, text in zip(known["NSC"], known["smiles"], strict=True) if text]
    drugs = write(
        "new.txt",
        '""\t"NSC"\t"NAME"\t"SMILES"\n' + "".join(f'"{number}"\t{number}\t""\t"{text}"\n' for number, text in pairs),
    )
    assert len(known["NSC"]) > len(pairs) > 50
    for name, column in nci_recipes.nci_cell_lines(label).items():
        np.testing.assert_array_equal(column, lines[name])
    found = nci_recipes.nci_table(label, scores, molecules, *subsets, drugs)
    assert list(found) == list(known)
    for name in set(known) - {"smiles"}:
        np.testing.assert_array_equal(found[name], known[name], err_msg=name)
    np.testing.assert_array_equal(found["smiles"] == "", known["smiles"] == "")  # its text differs with RDKit's release
    found = nci_recipes.nci_fingerprints(molecules, drugs)
    is_there = np.isin(bits["NSC"], found["NSC"])
    for name in bits:
        np.testing.assert_array_equal(found[name], bits[name][is_there], err_msg=name)


class TestBuild:
    HOURS = "a,b,note\n1,0.5,x\n2,0.25,y\n"

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("FENCHEL_DATA", str(tmp_path / "data"))
        columns = {"a": np.array([1, 2]), "b": np.array([0.5, 0.25]), "note": np.array(["x", "y"])}
        known = json.loads(json.dumps({"bike_sharing/hour.csv.gz": summary(columns)}))
        monkeypatch.setattr(building, "_contents", lambda: known)
        (tmp_path / "unpacked").mkdir()
        return tmp_path

    def test_a_file_is_built_where_it_is_read(self, folder):
        (folder / "unpacked" / "hour.csv").write_text(self.HOURS)
        built, absent = build("bike_sharing", folder)
        assert built == [folder / "data" / "bike_sharing" / "hour.csv.gz"] and absent == []
        assert {name: column.tolist() for name, column in read_columns(built[0]).items()} == {
            "a": ["1", "2"],
            "b": ["0.5", "0.25"],
            "note": ["x", "y"],
        }
        assert differences("bike_sharing/hour.csv.gz", read_columns(built[0])) == []
        assert [state for _, state in check_files(["bike_sharing"])] == ["damaged"]  # not the bytes that are known

    @pytest.mark.parametrize(
        "hours",
        [
            "a,b,note\n2,0.25,y\n1,0.5,x\n",
            "a,b,note\n1,0.5,x\n2,0.2500001,y\n",
            "a,b,note\n1,0.5,x\n",
            "a,b\n1,.5\n2,.25\n",
        ],
        ids=["order", "value", "length", "column"],
    )
    def test_other_data_are_refused(self, folder, hours):
        (folder / "hour.csv").write_text(hours)
        with pytest.raises(
            ValueError, match=r"^This is another version of hour\.csv than the one that hour\.csv\.gz is made from"
        ):
            build("bike_sharing", folder)
        assert not (folder / "data").exists()

    def test_an_original_that_is_not_there(self, folder):
        with pytest.raises(FileNotFoundError, match=r"no hour\.csv in .*Download it from https://archive.*CC BY 4\.0"):
            build("bike_sharing", folder)

    def test_a_set_that_cannot_be_built(self, folder):
        with pytest.raises(ValueError, match=r"massbank_msms cannot be built\. There is no recipe.*No public copy"):
            build("massbank_msms", folder)

    def test_originals_by_pattern_deep_in_a_repository(self, folder, monkeypatch):
        raw = folder / "repository" / "datasets" / "speech" / "raw"
        raw.mkdir(parents=True)
        for word in ("b", "a"):
            write_word(raw, word, np.arange(101, dtype=np.int16), np.ones((10, 2)))
        (folder / "c.wav").write_bytes(b"no sound, and no curves")
        known = {"speech_tada/speech_ext.npz": json.loads(json.dumps(summary(recipes.speech(*raw.iterdir()))))}
        monkeypatch.setattr(building, "_contents", lambda: known)
        built, absent = build("speech_tada", folder)
        assert built == [folder / "data" / "speech_tada" / "speech_ext.npz"] and absent == []
        assert read_columns(built[0])["words"].tolist() == ["a", "b"]

    def test_files_whose_originals_are_there(self, folder, monkeypatch):
        """The lines of cells need one original; the other files need structures, named once each."""
        (folder / "cancer_label.txt").write_text("1\tNCI-H23\thuman\tLung\n")
        columns = nci_recipes.nci_cell_lines(folder / "cancer_label.txt")
        known = {"nci_cancer/cell_lines.csv.gz": json.loads(json.dumps(summary(columns)))}
        monkeypatch.setattr(building, "_contents", lambda: known)
        built, absent = build("nci_cancer", folder)
        assert [path.name for path in built] == ["cell_lines.csv.gz"]
        assert len(absent) == len(set(absent)) == 13 and "public_drug_info_v2_12.txt" in absent


def test_the_local_copy_has_the_known_contents(data_folder):
    nci = [f"nci_cancer/{file}" for file in ("cell_lines.csv.gz", "nci_cancer.csv.gz", "fingerprints.npz")]
    others = ["dti/dti_ms_first_visit.npz", "movielens100k/users.csv.gz", "mulan_mtr/sf1.npz"]
    for name in (*others, *nci, "speech_tada/speech_ext.npz"):
        assert differences(name, read_columns(data_folder / name)) == []
