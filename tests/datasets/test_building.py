"""Files of data sets built from originals: small stand-ins with the layout of the originals, and answers by hand."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from fenchel.datasets import building, recipes
from fenchel.datasets.arff import read_arff
from fenchel.datasets.building import build, differences, read_columns, summary
from fenchel.datasets.sources import SOURCES
from fenchel.datasets.store import check_files, known_files


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
        with pytest.raises(ValueError, match=r"nci_cancer cannot be built.*no public copy\. Source: https"):
            build("nci_cancer", folder)


def test_the_local_copy_has_the_known_contents(data_folder):
    for name in ("dti/dti_ms_first_visit.npz", "movielens100k/users.csv.gz", "mulan_mtr/sf1.npz"):
        assert differences(name, read_columns(data_folder / name)) == []
