"""Every error is one line on the error stream; the traceback comes with --debug."""

import numpy as np
import pytest

import fenchel as library
from tests.cli.conftest import write_csv

pandas = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-t", "y_aa"], "has no column 'y_aa'. Did you mean 'y_a'?"),
        (["-t", "y_a", "--inputs", "xx"], "inputs: "),
        (["-t", "y_a:q"], "has no column 'q'"),
        (["-t", "z:x"], "the range 'z:x' is empty"),
        (["-t", "side"], "The column 'side' of"),
        (["-t", "y_a", "--inputs", "y_*"], "The column 'y_a' is an input and a target."),
        (["-t", "y_a", "--inputs", "unit"], "has no input column that varies"),
        (["-t", "y_a", "--loss", "hubert"], "Unknown loss 'hubert'. Did you mean 'huber'? Known names: ball, "),
        (["-t", "y_a", "--loss", "hubr:kappa=1"], "Unknown loss 'hubr'. Did you mean 'huber'?"),
        (["-t", "y_a", "--cv", "41"], "data.csv has 40. Use a smaller cv (--cv on the command line)."),
        (["-t", "y_a", "--loss", "huber:kapa=1"], "Huber has no parameter 'kapa'. Did you mean 'kappa'?"),
        (["-t", "y_a", "--loss", "huber:kappa"], "'kappa' is not a parameter"),
        (["-t", "y_a", "--loss", "huber:kappa=-1"], "must be a float in (0, inf). Got -1 instead."),
        (["-t", "y_a", "--kernel", "gauss"], "Unknown kernel 'gauss'"),
        (["-t", "y_a", "--lams", "1:2"], "neither positive numbers"),
        (["-t", "y_a", "--lams", "1,-2"], "neither positive numbers"),
        (["-t", "y_a", "--lams", "1", "--lam", "2"], "leave out --lam"),
        (["-t", "y_a", "--lams", "1,2", "--cv", "x"], "neither a number of folds nor 'loo'"),
        (["-t", "y_a", "--loss", "square", "--loss", "huber", "--lam", "1"], "chooses among several --loss"),
        (["-t", "y_a", "--lam", "0"], "'--lam'"),
        (["-t", "y_a", "--test-size", "0.999"], "leaves none of the 40 rows"),
        (["-t", "y_a", "--model", "no/such/folder/m"], "There is no folder no/such/folder for m."),
        (["-t", "y_a", "--lossy", "1"], "No such option '--lossy'"),
        ([], "Name the columns to predict with --target."),
    ],
)
def test_a_wrong_call_of_fit(words, said, fenchel, csv_file):
    assert said in fenchel("fit", csv_file, *words).line


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n", "is empty"),
        ("a.csv", b"\xef\xbb\xbf", "is empty"),
        ("a.csv", b"x,y\n", "has no rows"),
        ("a.csv", b"x,x\n1,2\n", "more than one column 'x'"),
        ("a.csv", b"x,y\n1,2\n1,2,3,4\n", "is not a regular table"),
        ("a.csv", b"x,y\n1,\xff\xfa\n", "is not UTF-8 text"),
        ("a.csv", b"x," + b"y" * 200_000 + b"\n1,2\n", "its first lines cannot be read (field larger than"),
        ("a.csv", b'x,"y\n1,2\n', "is not a regular table"),
        ("a.csv", b"x,\0y\n1,2\n", "contains NUL characters"),
        ("a.csv", bytes(range(128)) * 9, "contains NUL characters"),
        ("a.csv", b"x,y\n1,2\n", "has 1 usable rows; at least 2 are needed"),
        ("a.csv", b"x,y\n1,2\n2,a\n", "The column 'y' of"),
        ("a.csv", b"x,y\n1,\n2,\n", "has 0 usable rows"),
        ("a.npz", b"zzz", "is not an NPZ file"),
        ("a.parquet", b"zzz", "is not a Parquet file"),
        ("a.xlsx", b"zzz", "has the suffix '.xlsx'"),
    ],
)
def test_a_file_that_is_no_table(name, content, said, fenchel, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert said in fenchel("fit", tmp_path / name, "-t", "y").line


def test_a_missing_file_and_a_folder(fenchel, tmp_path):
    assert fenchel("fit", tmp_path / "no.csv", "-t", "y").line == f"There is no file {tmp_path / 'no.csv'}."
    (tmp_path / "folder.csv").mkdir()
    assert "Is a directory" in fenchel("fit", tmp_path / "folder.csv", "-t", "y").line


def test_text_that_names_the_rows(fenchel, columns, tmp_path):
    columns["id"] = [f"row{k}" for k in range(40)]
    file = write_csv(tmp_path / "data.csv", columns)
    assert (
        "it names the rows. Leave it out (drop=['id'], on the command line --drop id)."
        in fenchel("fit", file, "-t", "y_a").line
    )
    assert fenchel("fit", file, "-t", "y_a", "--drop", "id").code == 0


def test_text_that_names_most_rows(fenchel, columns, tmp_path):
    columns["city"] = [f"row{max(k, 9)}" for k in range(40)]  # ten rows have the same one
    file = write_csv(tmp_path / "data.csv", columns)
    result = fenchel("fit", file, "-t", "y_a")
    assert result.code == 0
    assert "has a value of its own in 30 of 40 rows. If it names the rows, leave it out" in result.out


def test_a_target_of_dates(fenchel, columns, tmp_path):
    frame = pandas.DataFrame(columns).assign(day=pandas.date_range("2026-01-01", periods=40))
    frame.to_parquet(tmp_path / "data.parquet")
    assert "must hold numbers. It holds dates." in fenchel("fit", tmp_path / "data.parquet", "-t", "day").line


def test_arrays_that_are_no_table(fenchel, tmp_path):
    np.savez(tmp_path / "data.npz", X=np.zeros((4, 3)), y=np.zeros(5))
    line = fenchel("fit", tmp_path / "data.npz", "-t", "y").line
    assert "has no column 'y' (the array 'y' of shape (5,) does not have 4 rows and is ignored)" in line
    np.savez(tmp_path / "data.npz", X=np.zeros((4, 3, 2)), y=np.zeros(4))
    assert "the array 'X' has shape (4, 3, 2)" in fenchel("fit", tmp_path / "data.npz", "-t", "y").line


@pytest.fixture
def model_file(fenchel, csv_file, tmp_path):
    assert fenchel("fit", csv_file, "-t", "y_a", "--drop", "y_b", "--model", tmp_path / "m.fenchel").code == 0
    return tmp_path / "m.fenchel"


def test_predict_says_what_is_wrong_with_a_table(fenchel, model_file, columns, tmp_path):
    renamed = {("zz" if name == "z" else name): values for name, values in columns.items()}
    line = fenchel("predict", model_file, write_csv(tmp_path / "new.csv", renamed)).line
    assert "has no column 'z'. Did you mean 'zz'?" in line
    columns["x"][2] = "many"
    assert (
        "1 cell of text: 'many' in row 3. Write a number there, or leave the cell empty."
        in fenchel("predict", model_file, write_csv(tmp_path / "new.csv", columns)).line
    )


def test_predict_says_what_is_wrong_with_a_model(fenchel, model_file, csv_file, tmp_path):
    assert "is not a model file of fenchel" in fenchel("predict", csv_file, csv_file).line
    model_file.write_bytes(model_file.read_bytes()[:-100])
    assert "is damaged or truncated" in fenchel("predict", model_file, csv_file).line
    X = np.linspace(0, 1, 9)[:, None]
    library.save(library.OperatorKernelRegressor().fit(X, X), model_file)
    assert "holds a OperatorKernelRegressor, which has no columns" in fenchel("predict", model_file, csv_file).line


def test_an_output_of_an_unknown_kind(fenchel, model_file, csv_file, tmp_path):
    assert "must end in .csv, .npz, .parquet" in fenchel("predict", model_file, csv_file, "-o", tmp_path / "a.doc").line
    assert not (tmp_path / "a.doc").exists()


def test_debug_shows_where(fenchel, tmp_path):
    result = fenchel("fit", tmp_path / "no.csv", "-t", "y", "--debug")
    assert isinstance(result.exception, FileNotFoundError)  # not caught: Python prints the traceback


def test_an_error_of_ours_keeps_its_name(fenchel, csv_file, monkeypatch):
    def broken(path):
        raise KeyError("inner")

    monkeypatch.setattr("fenchel.app.cli.fitting.read_table", broken)
    assert fenchel("fit", csv_file, "-t", "y_a").line == "KeyError: 'inner' (--debug shows where)"


def test_help_and_version(fenchel):
    assert fenchel().code == 2
    text = fenchel("fit", "--help").out
    assert "fenchel fit houses.csv --target price" in text
    assert "--lams 1e-6:1:13" in text
    assert library.__version__ in fenchel("--version").out


def test_the_help_says_how_choices_are_made(fenchel):
    text = " ".join(fenchel("fit", "--help").out.split())
    assert (
        "Kernel, loss and lam are chosen by cross-validation unless you set them. With --lam there is a single" in text
    )
    assert text.count("[default: chosen by cross-validation]") == 3
    assert "Random seed of the test split." in text
    assert "labelled as such" in " ".join(fenchel("reproduce", "--help").out.split())
