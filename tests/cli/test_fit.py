"""``fenchel fit`` and ``fenchel predict`` on real files."""

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import median_absolute_error, r2_score, root_mean_squared_error

import fenchel as library
from fenchel.app.tables import TableRegressor
from fenchel.app.tables.linear_model import linear_model
from fenchel.losses import Huber
from tests.cli.conftest import write_csv

pandas = pytest.importorskip("pandas")


def by_hand(columns):
    """Return inputs and outputs, encoded and standardised without the library."""
    numbers = np.column_stack([columns["x"], columns["z"]])
    sides = np.array([[side == "left", side == "right"] for side in columns["side"]], dtype=float)
    X = np.hstack([(numbers - numbers.mean(axis=0)) / numbers.std(axis=0), sides])
    return X, np.column_stack([columns["y_a"], columns["y_b"]])


def test_the_result_is_that_of_the_library(fenchel, csv_file, columns):
    found = fenchel("fit", csv_file, "-t", "y_*", "--loss", "huber:kappa=0.1", "--lam", "1e-2", "--json").json
    X, Y = by_hand(columns)
    centred = Y - np.median(Y, axis=0)  # of a robust fit
    model = library.OperatorKernelRegressor(loss=Huber(0.1), lam=1e-2).fit(X, centred)
    assert found["primal"] == pytest.approx(model.primal_objective_, rel=1e-9)
    assert found["train_r2"] == pytest.approx(model.score(X, centred), rel=1e-9)
    assert found["loss"] == "Huber(kappa=0.1)"
    assert found["inputs"] == ["x", "z", "side"]
    assert found["features"] == 4
    assert found["gap"] <= 1e-6
    assert found["clipped"] == np.sum(model.outlier_score_ >= 1 - 1e-6)
    assert any("constant columns are left out: unit" in note for note in found["notes"])
    assert any("side (2 values)" in note for note in found["notes"])
    assert found["warnings"] == []


def test_the_printed_result(fenchel, csv_file):
    result = fenchel("fit", csv_file, "-t", "y_a", "--drop", "y_b")
    assert result.code == 0
    assert "status       converged" in result.out
    assert "note         constant columns are left out: unit" in result.out
    assert result.err == ""


def test_a_saved_model_predicts_the_raw_table(fenchel, csv_file, columns, tmp_path):
    assert fenchel("fit", csv_file, "-t", "y_a,y_b", "--lam", "1e-3", "--model", tmp_path / "m.fenchel").code == 0
    printed = fenchel("predict", tmp_path / "m.fenchel", csv_file)
    lines = printed.out.splitlines()
    assert lines[0] == "y_a,y_b"
    found = np.array([[float(cell) for cell in line.split(",")] for line in lines[1:]])
    X, Y = by_hand(columns)
    expected = library.OperatorKernelRegressor().fit(X, Y - Y.mean(axis=0)).predict(X) + Y.mean(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    model = library.load(tmp_path / "m.fenchel")
    assert isinstance(model, TableRegressor)
    assert (found == model.predict(pandas.DataFrame(columns))).all()  # the text of a number is the number
    for suffix in ("csv", "npz", "parquet"):
        output = tmp_path / f"predicted.{suffix}"
        assert fenchel("predict", tmp_path / "m.fenchel", csv_file, "--output", output).code == 0
    with np.load(tmp_path / "predicted.npz") as stored:
        assert (stored["Y"] == found).all()
    assert (pandas.read_parquet(tmp_path / "predicted.parquet").to_numpy() == found).all()
    assert (tmp_path / "predicted.csv").read_text() == printed.out
    assert fenchel("predict", tmp_path / "m.fenchel", csv_file, "--json").json["predictions"] == found.tolist()
    moved = {name: columns[name] for name in reversed(columns) if not name.startswith("y")} | {"more": ["?"] * 40}
    write_csv(tmp_path / "moved.csv", moved)
    assert fenchel("predict", tmp_path / "m.fenchel", tmp_path / "moved.csv").out == printed.out


def test_a_saved_model_predicts_the_file_as_pandas_reads_it(fenchel, columns, tmp_path):
    columns["open"] = ["yes" if x > 0 else "no" for x in columns["x"]]
    file = write_csv(tmp_path / "data.csv", columns)
    assert fenchel("fit", file, "-t", "y_a", "--drop", "y_b", "--lam", "1e-3", "--model", tmp_path / "m").code == 0
    predicted = library.load(tmp_path / "m").predict(pandas.read_csv(file))
    printed = fenchel("predict", tmp_path / "m", file).out.splitlines()[1:]
    assert predicted[:, 0].tolist() == [float(line) for line in printed]


def test_predict_copies_columns_and_names_what_is_outside_the_training_range(fenchel, columns, tmp_path):
    model, new = tmp_path / "m", tmp_path / "new.csv"
    file = write_csv(tmp_path / "data.csv", columns)
    assert fenchel("fit", file, "-t", "y_a", "--inputs", "x,z", "--lam", "1e-3", "--model", model).code == 0
    columns |= {"number": list(range(1, 41)), "code": ["a,b", None] * 20}
    columns["x"][4] = columns["z"][6] = columns["z"][7] = 99.0
    write_csv(new, columns | {"code": ['"a,b"', None] * 20})
    result = fenchel("predict", model, new, "--keep", "number", "--keep", "code")
    assert result.out.splitlines()[0] == "number,code,y_a"
    assert [line.rpartition(",")[0] for line in result.out.splitlines()[1:3]] == ['1,"a,b"', "2,"]
    said = "note         outside the range of the training rows: x in row 5, z in 2 rows (first in row 7)\n"
    assert said in result.err and result.err.count("note") == 2
    for suffix in ("csv", "npz", "parquet"):
        output = tmp_path / f"predicted.{suffix}"
        assert fenchel("predict", model, new, "--keep", "number,code", "-o", output).code == 0
    days = pandas.read_csv(new).assign(day=pandas.Timestamp("2026-01-31"))
    days.to_parquet(tmp_path / "new.parquet")
    dated = fenchel("predict", model, tmp_path / "new.parquet", "--keep", "day").out.splitlines()[1]
    assert dated.startswith("2026-01-31 00:00:00,")
    assert list(pandas.read_parquet(tmp_path / "predicted.parquet")) == ["number", "code", "y_a"]
    with np.load(tmp_path / "predicted.npz") as stored:
        assert stored["number"].tolist() == columns["number"] and stored["code"][0] == "a,b"
    assert fenchel("predict", model, new, "--keep", "number", "--json").json["kept"]["number"][:2] == ["1", "2"]
    assert "--keep y_a: the predictions have that name" in fenchel("predict", model, new, "--keep", "y_a").line
    assert "has no column 'numbr'. Did you mean 'number'?" in fenchel("predict", model, new, "--keep", "numbr").line


def test_names_of_columns_are_no_formulas_in_a_spreadsheet(fenchel, columns, tmp_path):
    names = {"y_a": '=HYPERLINK("http://example.org";"y")', "y_b": "-0.5"}  # the second is a number and stays
    file = write_csv(tmp_path / "data.csv", {names.get(name, name): values for name, values in columns.items()}, "\t")
    targets = [word for name in names.values() for word in ("-t", name)]
    assert fenchel("fit", file, *targets, "--model", tmp_path / "m.fenchel", "--report", tmp_path / "m.html").code == 0
    printed = fenchel("predict", tmp_path / "m.fenchel", file).out.splitlines()
    assert printed[0] == '"\'=HYPERLINK(""http://example.org"";""y"")",-0.5'
    assert any(line.startswith("-") for line in printed[1:])  # numbers stay numbers


@pytest.mark.parametrize(
    "form",
    [
        {"encoding": "utf-8-sig"},
        {"encoding": "utf-16"},
        {"end": "\r\n"},
        {"encoding": "utf-8-sig", "end": "\r\n"},
        {"separator": ";"},
        {"separator": ";", "decimal": ","},
        {"separator": "\t", "end": "\r\n"},
    ],
)
def test_every_form_of_csv_is_read(form, fenchel, csv_file, columns, tmp_path):
    expected = fenchel("fit", csv_file, "-t", "y_*", "--json").json
    found = fenchel("fit", write_csv(tmp_path / "other.csv", columns, **form), "-t", "y_*", "--json").json
    assert found["inputs"] == expected["inputs"]
    assert found["primal"] == expected["primal"]


def test_other_kinds_of_file_give_the_same_model(fenchel, csv_file, columns, tmp_path):
    expected = fenchel("fit", csv_file, "-t", "y_*", "--inputs", "x,z", "--json").json
    pandas.DataFrame(columns).to_parquet(tmp_path / "data.parquet")
    np.savez(
        tmp_path / "data.npz",
        X=np.column_stack([columns["x"], columns["z"]]),
        y=np.column_stack([columns["y_a"], columns["y_b"]]),
    )
    found = fenchel("fit", tmp_path / "data.parquet", "-t", "y_*", "--inputs", "x:z", "--json").json
    assert found["primal"] == expected["primal"]
    found = fenchel("fit", tmp_path / "data.npz", "-t", "y_*", "--inputs", "X_*", "--json").json
    assert found["primal"] == expected["primal"]
    assert found["targets"] == ["y_0", "y_1"]


def test_single_precision_stays_single(fenchel, tmp_path, rng):
    X = rng.normal(size=(30, 3)).astype(np.float32)
    np.savez(tmp_path / "data.npz", X=X, y=X[:, 0])
    assert fenchel("fit", tmp_path / "data.npz", "-t", "y", "--lam", "1e-3", "--model", tmp_path / "m").code == 0
    assert library.load(tmp_path / "m").estimator_.X_fit_.dtype == np.float32


def test_rows_without_targets_are_left_out_and_cells_do_not_count(fenchel, columns, tmp_path):
    for row in (3, 7, 11, 19, 30):
        columns["y_a"][row] = None
    columns["y_b"][7] = None
    file, page = write_csv(tmp_path / "gaps.csv", columns), tmp_path / "page.html"
    found = fenchel("fit", file, "-t", "y_*", "--report", page, "--test-size", "0.2", "--json").json
    assert found["rows"] + found["test_rows"] == 39
    assert any("1 of 32 rows have no target and are left out" in note for note in found["notes"])
    assert any("of the targets are not observed" in note for note in found["notes"])
    assert all(np.isfinite(value) for value in found["by_target"]["y_a"].values())
    assert "observed nan" not in page.read_text(encoding="utf-8")


def test_weights_are_a_column(fenchel, columns, tmp_path):
    columns["times"] = [1.0 + (k % 3 == 0) for k in range(40)]
    repeated = {name: [v for k, v in enumerate(values) for _ in range(int(columns["times"][k]))]
                for name, values in columns.items() if name != "times"}  # fmt: skip
    files = write_csv(tmp_path / "weights.csv", columns), write_csv(tmp_path / "repeated.csv", repeated)
    weighted = fenchel("fit", files[0], "-t", "y_*", "--lam", "1e-2", "--weights", "times", "--json").json
    twice = fenchel("fit", files[1], "-t", "y_*", "--lam", "1e-2", "--no-scale", "--json").json
    assert weighted["rows"] == 40
    assert "times" not in weighted["inputs"]
    bare = fenchel("fit", files[0], "-t", "y_*", "--lam", "1e-2", "--no-scale", "--weights", "times", "--json").json
    assert bare["primal"] == pytest.approx(twice["primal"], rel=1e-9)
    columns["times"][5] = -1.0
    result = fenchel("fit", write_csv(tmp_path / "bad.csv", columns), "-t", "y_*", "--weights", "times")
    assert "That of row 6 is -1.0" in result.err


def test_rows_with_a_missing_input_can_be_left_out(fenchel, columns, tmp_path):
    columns["x"][4] = columns["side"][5] = None
    columns["y_a"][1] = None
    file = write_csv(tmp_path / "gaps.csv", columns)
    found = fenchel("fit", file, "-t", "y_a", "--drop-missing", "--json").json
    assert found["rows"] == 37
    assert "2 of 40 rows have a missing input and are left out" in found["notes"]


def test_test_rows_that_are_left_out_are_counted_and_not_said_to_be_filled(fenchel, columns, tmp_path):
    """With half of the rows as test rows, each gap is counted in one of the parts."""
    for row in range(6):
        columns["y_a"][row] = columns["x"][row + 3] = None
    file, page = write_csv(tmp_path / "gaps.csv", columns), tmp_path / "page.html"
    words = ("fit", file, "-t", "y_a", "--test-size", "0.5", "--report", page, "--json")
    found = fenchel(*words, "--drop-missing").json
    assert found["rows"] + found["test_rows"] == 40 - 9
    for what, total in (("a missing target", 6), ("a missing input", 3)):
        counts = [
            re.fullmatch(rf"(test rows, )?(\d+) of 20 rows have {what} and are left out", note)
            for note in found["notes"]
        ]
        assert sum(int(count[2]) for count in counts if count) == total
    assert not any("replaced by the training median" in note for note in found["notes"])
    text = page.read_text(encoding="utf-8")
    assert re.search(r"note on the compared rows</th><td>\d of 20 rows have a missing target and are left out", text)
    assert "replaced by the training median" not in text


@pytest.fixture
def curve_file(tmp_path, rng):
    t, n = np.linspace(0, 2, 9), 30
    x = rng.uniform(-1, 1, n)
    Y = np.sin(t + x[:, None])
    Y[2] += 5
    Y[rng.uniform(size=Y.shape) < 0.1] = np.nan
    columns = {"x": x.tolist()} | {
        f"t_{point:g}": [None if np.isnan(v) else float(v) for v in Y[:, j]] for j, point in enumerate(t)
    }
    return write_csv(tmp_path / "curves.csv", columns), x, t, Y


def test_curves_with_gaps(fenchel, curve_file, tmp_path):
    file, x, t, Y = curve_file
    words = ("-t", "t_0:t_2", "--curves", "--loss", "huber:kappa=0.1,p=1", "--lam", "1e-3", "--no-scale", "--json")
    found = fenchel("fit", file, *words, "--model", tmp_path / "m").json
    model = library.FunctionalRegressor(loss=Huber(0.1, p=1)).fit(x[:, None], Y, grid=t)
    assert found["primal"] == pytest.approx(model.primal_objective_, rel=1e-9)
    assert any("of the points of the curves are not observed" in note for note in found["notes"])
    assert any("those in the names, 0 to 2" in note for note in found["notes"])
    fenchel("predict", tmp_path / "m", file, "-o", tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as stored:
        assert stored["Y"].tobytes() == model.predict(x[:, None]).tobytes()
        assert (stored["grid"] == t).all()


def test_cross_validation_chooses(fenchel, csv_file, tmp_path):
    words = ("fit", csv_file, "-t", "y_a", "--loss", "square", "--loss", "huber:kappa=0.1", "--lams", "1e-6:1:4")
    found = fenchel(*words, "--cv", "4", "--json", "--model", tmp_path / "m").json
    assert found["estimator"] == "OperatorKernelRegressorCV"
    model = library.load(tmp_path / "m").estimator_
    assert model.lams_ == [1e-6, 1e-4, 1e-2, 1.0]
    assert found["cv_error"] == model.cv_errors_.min()
    assert found["lam"] == model.best_lam_
    assert model.fold_errors_.shape == (2, 4, 4)
    assert model.progress is None


def test_a_part_is_held_out(fenchel, csv_file, tmp_path):
    words = ("fit", csv_file, "-t", "y_a", "--test-size", "0.25", "--json")
    found = fenchel(*words).json
    assert (found["rows"], found["test_rows"]) == (30, 10)
    assert found["test_r2"] == fenchel(*words).json["test_r2"]
    assert found["test_r2"] != fenchel(*words, "--seed", "1").json["test_r2"]


def test_only_rows_that_are_scored_are_counted(fenchel, columns, tmp_path):
    columns["y_a"][::2] = [None] * 20
    found = fenchel("fit", write_csv(tmp_path / "gaps.csv", columns), "-t", "y_a", "--test-size", "0.5", "--json").json
    assert found["rows"] + found["test_rows"] == 20
    assert 0 < found["test_rows"] < 20


def test_a_loss_in_other_units_than_the_targets_is_noted(fenchel, columns, tmp_path):
    columns["y_a"] = [1e5 * y for y in columns["y_a"]]
    words = ("fit", write_csv(tmp_path / "large.csv", columns), "-t", "y_a", "--drop", "y_b", "--lam", "1e-3", "--json")
    found = fenchel(*words, "--loss", "huber:kappa=0.5").json
    assert found["clipped"] == 40
    deviation = found["train_rmse_of_mean"]
    assert "40 of 40 rows are clipped like outliers" in found["notes"][-1]
    assert f"whose deviation from the mean is {deviation:.4g}" in found["notes"][-1]
    found = fenchel(*words, "--loss", f"huber:kappa={deviation}").json
    assert not any("are clipped" in note for note in found["notes"])


def test_errors_are_shown_beside_those_of_the_mean(fenchel, csv_file, columns):
    words = ("fit", csv_file, "-t", "y_a", "--inputs", "x,z")
    found = fenchel(*words, "--json").json
    y = np.array(columns["y_a"])
    assert found["train_rmse_of_mean"] == pytest.approx(np.std(y), rel=1e-12)
    assert found["train_r2"] == pytest.approx(1 - (found["train_rmse"] / np.std(y)) ** 2, rel=1e-9)
    printed = fenchel(*words).out
    assert f"train r2     {found['train_r2']:.4f}" in printed
    others = f"of the mean: {found['train_rmse_of_mean']:.4g}, of a linear model: {found['train_rmse_of_linear']:.4g}"
    assert f"train rmse   {found['train_rmse']:.4g} ({others})" in printed
    X = np.column_stack([columns["x"], columns["z"], np.ones(len(y))])
    least = np.sqrt(np.mean((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2))
    assert least <= found["train_rmse_of_linear"] <= found["train_rmse_of_mean"]


def test_errors_of_each_target_in_its_own_units(fenchel, csv_file, columns, tmp_path):
    columns["y_b"] = [1000 * y for y in columns["y_b"]]
    file, page = write_csv(tmp_path / "units.csv", columns), tmp_path / "page.html"
    words = ("fit", file, "-t", "y_*", "--lam", "1e-3", "--report", page)
    found = fenchel(*words, "--json", "--model", tmp_path / "m").json
    predicted = library.load(tmp_path / "m").predict(pandas.DataFrame(columns))
    printed, text = fenchel(*words).out, page.read_text(encoding="utf-8")
    for k, name in enumerate(("y_a", "y_b")):
        y = np.array(columns[name])
        rmse, r2 = root_mean_squared_error(y, predicted[:, k]), r2_score(y, predicted[:, k])
        scores, median = found["by_target"][name], median_absolute_error(y, predicted[:, k])
        assert scores["train_rmse"] == pytest.approx(rmse, rel=1e-9)
        assert scores["train_r2"] == pytest.approx(r2, rel=1e-9)
        assert scores["train_median_error"] == pytest.approx(median, rel=1e-9)
        assert scores["train_rmse_of_mean"] == pytest.approx(np.std(y), rel=1e-9)
        assert scores["train_rmse"] < scores["train_rmse_of_linear"] < scores["train_rmse_of_mean"]
        line = next(line for line in printed.splitlines() if line.startswith(f"  {name:<10} rmse {rmse:.4g} (mean "))
        assert f", r2 {r2:.4g} (linear " in line and f", median error {median:.4g} (mean " in line
        assert f"<td>{r2:.4f}</td><td>{rmse:.4g}</td>" in text
    assert "train rmse" not in printed  # of both targets, it would mix units


def test_a_wrong_row_does_not_hide_the_errors_of_the_others(fenchel, columns, tmp_path):
    columns["y_a"][5] = 1e6
    file = write_csv(tmp_path / "wrong.csv", columns)
    words = (
        "fit",
        file,
        "-t",
        "y_a",
        "--drop",
        "y_b",
        "--loss",
        "huber:kappa=0.5",
        "--lam",
        "1e-4",
        "--center",
        "median",
    )
    found = fenchel(*words, "--json").json
    assert found["train_rmse"] > 1e5
    assert found["train_median_error"] < 1 < found["train_median_error_of_mean"]
    printed = fenchel(*words).out
    assert f"train median error {found['train_median_error']:.4g} (of the mean: " in printed
    assert (
        f"r2 and rmse include the rows that the loss clips as outliers (clipped: {found['clipped']} of 40)" in printed
    )


def test_the_linear_model_of_a_target_does_not_depend_on_another(rng):
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.01 * rng.normal(size=60)
    wrong = np.where(np.arange(60) == 7, 1e6, y)
    coef, _ = linear_model(X, np.column_stack([y, wrong]), np.zeros(2))
    np.testing.assert_allclose(coef[:, 0], [1.0, -2.0, 0.5], atol=0.01)


def test_intervals_are_kept_and_written(fenchel, csv_file, columns, tmp_path):
    model, output = tmp_path / "m", tmp_path / "p.csv"
    words = ("fit", csv_file, "-t", "y_*", "--coverage", "0.8")
    assert fenchel(*words, "--lams", "1e-3,1e-2", "--model", model).code == 0  # without its bar
    words = (*words, "--lam", "1e-3")
    assert fenchel(*words, "--model", model, "--json").json["coverage"] == 0.8
    assert fenchel("predict", model, csv_file, "-o", output).code == 0
    found = pandas.read_csv(output)
    assert list(found) == ["y_a", "y_a_lower", "y_a_upper", "y_b", "y_b_lower", "y_b_upper"]
    X, Y = by_hand(columns)
    mean = Y.mean(axis=0)
    regressor = library.ConformalRegressor(library.OperatorKernelRegressor(), 0.8, method="jackknife+", joint=False)
    band = regressor.fit(X, Y - mean).predict_interval(X)
    lower, upper = (found[[f"y_a_{end}", f"y_b_{end}"]].to_numpy() for end in ("lower", "upper"))
    np.testing.assert_allclose(lower, band.lower + mean, atol=1e-9)
    np.testing.assert_allclose(upper, band.upper + mean, atol=1e-9)
    assert fenchel(*words, "--test-size", "0.25", "--json").json["test_coverage"] <= 1
    fenchel("predict", model, csv_file, "-o", tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as stored:
        assert (stored["upper"] == upper).all() and stored["names"].tolist() == ["y_a", "y_b"]
    assert fenchel("outliers", model, csv_file).code == 0


def test_intervals_by_folds_are_kept(fenchel, csv_file, tmp_path, monkeypatch):
    monkeypatch.setattr("fenchel.app.cli.fitting._JACKKNIFE", 10)
    words = ("fit", csv_file, "-t", "y_a", "--drop", "y_b", "--coverage", "0.8", "--lams", "1e-3,1e-2")
    assert fenchel(*words, "--model", tmp_path / "m").code == 0  # the models of the folds had the bar
    assert fenchel("predict", tmp_path / "m", csv_file).code == 0


def test_too_few_rows_for_the_coverage(fenchel, columns, tmp_path):
    file = write_csv(tmp_path / "few.csv", {name: column[:8] for name, column in columns.items()})
    words = ("fit", file, "-t", "y_a", "--inputs", "x,z", "--lam", "1e-3", "--coverage", "0.9")
    done = fenchel(*words, "--model", tmp_path / "m")
    assert done.code == 0 and "requires at least 9 calibration samples" in done.out
    done = fenchel("predict", tmp_path / "m", file)
    assert "note         Bands are infinite" in done.err
    done = fenchel("predict", tmp_path / "m", file, "--json").json  # as JSON without infinity
    assert done["predictions"][0][1:] == [None, None] and "Bands are infinite" in done["notes"][-1]


def test_an_interval_and_a_target_of_the_same_name(fenchel, columns, tmp_path):
    file = write_csv(tmp_path / "data.csv", {**columns, "y_a_lower": columns["y_b"]})
    words = ("fit", file, "-t", "y_a", "-t", "y_a_lower", "--inputs", "x,z", "--lam", "1e-3", "--coverage", "0.8")
    assert fenchel(*words, "--model", tmp_path / "m").code == 0
    assert "Two columns of the output would be called 'y_a_lower'" in fenchel("predict", tmp_path / "m", file).line


def test_one_gross_error_does_not_move_the_centre_of_a_robust_fit(fenchel, columns, tmp_path):
    columns["y_a"][3] = 1e6
    file = write_csv(tmp_path / "data.csv", columns)
    words = ("fit", file, "-t", "y_a", "--inputs", "x,z", "--lam", "1e-3", "--json")
    assert fenchel(*words, "--loss", "huber:kappa=0.1").json["train_median_error"] < 0.5
    assert fenchel(*words).json["train_median_error"] > 1e3  # the square loss follows it


def test_nothing_has_to_be_named(fenchel, csv_file, tmp_path):
    words = ("fit", csv_file, "-t", "y_*", "--test-size", "0.25")
    found = fenchel(*words, "--json", "--report", tmp_path / "page.html").json
    assert found["kernel"].startswith("Standardized(by='column', ")
    assert found["test_rmse"] < found["test_rmse_of_mean"]
    assert found["test_rmse_of_linear"] > 0
    page = (tmp_path / "page.html").read_text()
    assert "RMSE of a linear model" in page
    assert "Standardized(" in page
    assert f"kernel       {found['kernel']}" in fenchel(*words).out


def test_a_fit_that_does_not_converge_is_kept_and_said(fenchel, csv_file, tmp_path):
    words = ("-t", "y_*", "--loss", "huber:kappa=0.05", "--lam", "1e-2", "--max-iter", "1")
    result = fenchel("fit", csv_file, *words, "--model", tmp_path / "m", "--json")
    assert result.code == 3
    assert any("stopped after 1 iteration" in text for text in result.json["warnings"])
    assert (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("huber:kappa=0.5,p=inf", "loss", Huber(0.5, p=np.inf)),
        ("epsilon_svr", "loss", library.losses.EpsilonSVR()),
        ("gaussian:gamma=median", "kernel", library.kernels.Gaussian("median")),
        ("rbf", "kernel", library.kernels.as_scalar_kernel("rbf")),
    ],
)
def test_parts_in_words(text, column, expected, fenchel, csv_file, tmp_path):
    assert (
        fenchel("fit", csv_file, "-t", "y_a", "--lam", "1e-3", f"--{column}", text, "--model", tmp_path / "m").code == 0
    )
    assert repr(getattr(library.load(tmp_path / "m").estimator_, column)) == repr(expected)


def test_the_command_itself_in_a_process_of_its_own(fenchel, csv_file, tmp_path):
    """The whole way, as a user has it: exit status, output and error stream; a pipe sees nothing of the bar."""
    run = [sys.executable, "-m", "fenchel"]
    env = os.environ | {"PYTHONPATH": str(Path(library.__file__).parents[1])}
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    words = ["fit", csv_file, "-t", "y_*", "--model", "m.fenchel", "--json"]
    done = subprocess.run([*run, *words], env=env, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout)["model"] == "m.fenchel"
    done = subprocess.run([*run, "predict", "nothing", csv_file], env=env, **options)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: There is no model file nothing.\n"
    variables = {"_FENCHEL_COMPLETE": "bash_complete", "COMP_WORDS": "fenchel fit --loss hu", "COMP_CWORD": "3"}
    done = subprocess.run(run, env=env | variables, **options)
    assert done.stdout.split() == ["plain,huber"]


def test_the_bar_follows_the_gap(monkeypatch):
    pytest.importorskip("click")
    from fenchel.app.cli import fitting

    seen = []
    update = fitting.rich_progress.Progress.update
    monkeypatch.setattr(
        fitting.rich_progress.Progress,
        "update",
        lambda bar, task, **fields: seen.append(fields) or update(bar, task, **fields),
    )
    model = library.OperatorKernelRegressorCV(losses=[Huber(0.1)], lams=[1e-4, 1e-2])
    X = np.linspace(0, 3, 30)[:, None]
    with fitting._progress(model):
        model.fit(X, np.sin(3 * X))
    gaps = [float(fields["gap"].split("gap ")[1]) for fields in seen if "gap" in fields]
    assert min(gaps) <= 1e-6 < max(gaps)
    done = [fields["completed"] for fields in seen if "completed" in fields]
    assert done == sorted(set(done)) and done[-1] == 1000 and len(done) > 10


def test_a_score_that_does_not_exist_is_null(fenchel, csv_file):
    found = fenchel("fit", csv_file, "-t", "y_a", "--test-size", "0.02", "--json").json
    assert (found["test_rows"], found["test_r2"]) == (1, None)
    assert found["test_rmse"] > 0


def test_control_characters_of_names_are_shown_as_escapes(fenchel, columns, tmp_path):
    """A name could else clear the terminal, change its title or reverse the order of what follows."""
    names = {"x": "x\x1b[2Jx", "y_a": "y\x1b]0;title\x07a", "side": "s\u202eide"}
    table = {names.get(name, name): values for name, values in columns.items()}
    table["side\x9b1m"] = [f"\x1b[{k % 3}m" for k in range(40)]
    file = write_csv(tmp_path / "data.csv", table)
    result = fenchel("fit", file, "-t", "y*a", "--drop", "y_b", "--lam", "1e-3", "--report", tmp_path / "m.html")
    absent = fenchel("fit", file, "-t", "no\x1b[31m")
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert result.code == 0
    for text in (result.out, result.err, absent.err, page):
        assert not any(unicodedata.category(char) in ("Cc", "Cf") for char in set(text) - {"\n"})
    assert r"x\x1b[2Jx" in result.out and r"x\x1b[2Jx" in page and r"s\u202eide" in result.out
