"""Columns of raw tables: missing values, dates, text that was never seen, true and false."""

import numpy as np
import pytest

import fenchel
from fenchel.app.tables import TableRegressor
from fenchel.datasets import read_table
from fenchel.exceptions import DataWarning
from fenchel.losses import Huber

pandas = pytest.importorskip("pandas")


@pytest.fixture
def table(rng):
    x = rng.normal(size=30)
    return {"x": x, "side": ["left", "right", "right"] * 10, "y": np.sin(x)}


def fitted(table, **options):
    return TableRegressor(fenchel.OperatorKernelRegressor(), targets=["y"], **options).fit(table)


def read_csv(folder, text):
    (folder / "data.csv").write_text(text, encoding="utf-8")
    return read_table(folder / "data.csv")


def test_a_missing_number_becomes_the_median_and_a_column_says_where(table):
    table["x"][[3, 8]] = np.nan
    model = fitted(table)
    assert model.feature_names_ == ["x", "x is missing", "side=left", "side=right"]
    X = model.encode(table)
    assert np.flatnonzero(X[:, 1]).tolist() == [3, 8]
    filled = np.where(np.isnan(table["x"]), np.nanmedian(table["x"]), table["x"])
    np.testing.assert_allclose(X[:, 0], (filled - filled.mean()) / filled.std(), rtol=1e-12)
    assert "missing values are replaced by the median, and a 0/1 column says where: x (2 missing)" in model.notes_
    assert len(model.rows_) == 30


def test_the_median_is_that_of_the_training_rows(table):
    model = fitted(table)
    assert model.feature_names_ == ["x", "side=left", "side=right"]
    new = {"x": [np.nan, 100.0], "side": ["left", "left"]}
    median = {"x": [np.median(table["x"])], "side": ["left"]}
    np.testing.assert_array_equal(model.encode(new)[:1], model.encode(median))
    assert model.input_notes(new) == ["x: missing in row 1; replaced by the training median"]


def test_missing_text_is_a_value_of_its_own(table):
    table["side"] = [None if i in (2, 5) else side for i, side in enumerate(table["side"])]
    model = fitted(table)
    assert model.feature_names_[1:] == ["side=left", "side=right", "side is missing"]
    assert np.flatnonzero(model.encode(table)[:, 3]).tolist() == [2, 5]
    assert "missing text is a value of its own: side (2 missing)" in model.notes_
    assert model.input_notes(table) == []


def test_text_that_was_never_seen_counts_as_other(table):
    model = fitted(table)
    new = {"x": [0.1, 0.2, 0.3], "side": ["above", "left", None]}
    np.testing.assert_array_equal(model.encode(new)[:, 1:], [[0, 0], [1, 0], [0, 0]])
    assert model.input_notes(new) == [
        "side: 2 rows have a value not seen in training ('above', missing, first in row 1); treated as 'other'"
    ]
    assert model.predict(new).shape == (3, 1)


def test_drop_missing_leaves_rows_out_of_the_fit_and_predicts_all(table):
    table["x"][3] = np.nan
    model = fitted(table, drop_missing=True)
    assert len(model.rows_) == 29
    assert model.evaluate(table).n_rows == 29
    assert model.predict(table).shape == (30, 1)


@pytest.mark.parametrize("mark", ["", "?", "NA", "N/A", "-", ".", "null", "nan"])
def test_marks_of_missing_values_in_csv(mark, tmp_path):
    table = read_csv(tmp_path, f"x,side,y\n1.5,left,1\n{mark},{mark},2\n2.5,right,{mark}\n")
    np.testing.assert_array_equal(table.columns["x"], [1.5, np.nan, 2.5])
    assert table.columns["side"].tolist() == ["left", None, "right"]
    np.testing.assert_array_equal(table.columns["y"], [1, 2, np.nan])


def decimal_commas(rng, **cells):
    """Return a CSV text of two columns of numbers with decimal commas, with other text in row 31."""
    x = rng.uniform(0, 20, 60)
    rows = [[f"{a:.2f}".replace(".", ","), f"{b:.1f}".replace(".", ",")] for a, b in zip(x, x + 1, strict=True)]
    rows[4][0], rows[5][1] = "7", "-,5"
    for name, cell in cells.items():
        rows[30]["xy".index(name)] = cell
    return "x;y;day\n" + "".join(f"{x};{y};{1 + i % 9}.03.2025\n" for i, (x, y) in enumerate(rows))


@pytest.mark.parametrize("name", ["x", "y"])
def test_one_bad_cell_among_decimal_commas_is_named(name, rng, tmp_path):
    table = read_csv(tmp_path, decimal_commas(rng, **{name: "n.c."}))
    assert "numbers have a decimal comma" in table.notes
    with pytest.raises(ValueError, match=f"The column '{name}' .* 1 cell of text: 'n.c.' in row 31. Write a number"):
        fitted(table, drop=["day"])


def test_text_with_commas_stays_text(tmp_path):
    table = read_csv(tmp_path, "place;y\n1,2;1,5\nleft;2,5\nA,4;3,5\n")
    assert table.columns["place"].tolist() == ["1,2", "left", "A,4"]
    assert table.columns["y"].tolist() == [1.5, 2.5, 3.5]


def test_dates_with_repeats_become_days_since_the_first(rng):
    days = [0, 1, 1, 4, 9, 9, 9, 31]
    dates = np.datetime_as_string(np.datetime64("2025-12-31") + np.array(days)).tolist()
    model = fitted({"day": dates, "y": rng.normal(size=8)}, scale=False)
    assert model.feature_names_ == ["day"]
    np.testing.assert_array_equal(model.encode({"day": dates})[:, 0], days)
    assert "dates are counted in days since the first one: day (2025-12-31)" in model.notes_
    np.testing.assert_array_equal(model.encode({"day": ["2025-12-30", "2026-12-31"]})[:, 0], [-1, 365])
    with pytest.raises(ValueError, match=r"must hold dates such as .* Row 2 has 'soon'"):
        model.predict({"day": ["2026-01-01", "soon"]})


@pytest.mark.parametrize("form", ["16/03/2025", "3/16/25", "16.03.2025", "2025/03/16", "16-03-2025 12:30"])
def test_dates_in_another_form_are_named(form, rng):
    days = [form.replace("16", str(10 + i % 12)) for i in range(30)]
    with pytest.warns(DataWarning, match="'day' of the table looks like dates: row 1 has .* such as 2025-03-16"):
        fitted({"day": days, "y": rng.normal(size=30)})
    alone = [form.replace("16", str(10 + i % 12)).replace("25", str(i)) for i in range(10, 34)]
    with pytest.raises(ValueError, match=r"looks like dates: .* Write dates as year-month-day"):
        fitted({"day": alone, "y": rng.normal(size=24)})


def test_numbers_and_dates_outside_the_training_range(rng):
    days = [f"2026-01-{1 + i:02d}" for i in range(10)]
    model = fitted({"x": np.arange(10.0), "side": ["a", "b"] * 5, "day": days, "y": rng.normal(size=10)})
    new = {"x": [-1.0, 9.0, 9.5, np.nan], "side": list("abca"), "day": [*days[:3], "2025-12-31"]}
    assert model.range_notes(new) == [
        "outside the range of the training rows: x in 2 rows (first in row 1), day in row 4"
    ]
    assert model.range_notes({"x": [0.0, 9.0], "side": ["a", "c"], "day": days[:2]}) == []


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-01-01T00:00", "2026-01-01T06:00", None],
        ["2026-01-01 00:00:00", "2026-01-01 06:00:00", None],
        ["2026-01-01T00:00:00Z", "2026-01-01T08:00:00+02:00", None],
    ],
)
def test_times_become_parts_of_days(texts):
    model = fitted({"time": texts, "y": [0.0, 1.0, 2.0]}, scale=False)
    np.testing.assert_array_equal(model.encode({"time": texts}), [[0, 0], [0.25, 0], [0.125, 1]])


def test_dates_of_a_frame_are_the_same_as_text(rng):
    frame = pandas.DataFrame({"day": pandas.date_range("2026-01-01", periods=8), "y": rng.normal(size=8)})
    text = frame.assign(day=frame["day"].dt.strftime("%Y-%m-%d"))
    zoned = frame.assign(day=frame["day"].dt.tz_localize("UTC"))
    model = fitted(frame)
    for other in (text, zoned):
        np.testing.assert_array_equal(fitted(other).encode(other), model.encode(frame))


def test_true_and_false_are_numbers_and_noted(tmp_path):
    lines = "".join(f"{i},{'yes' if i % 3 else 'no'},{'True' if i % 2 else 'False'}\n" for i in range(12))
    table = read_csv(tmp_path, f"x,flag,y\n{lines}")
    model = fitted(table)
    assert "true and false are read as 1 and 0: flag, y" in model.notes_
    assert table.columns["y"].tolist() == [i % 2 for i in range(12)]
    assert model.feature_names_ == ["x", "flag"]
    gaps = read_csv(tmp_path, f"x,flag,y\n1,yes,\n{lines}")
    assert "1 of 13 rows have a missing target and are left out" in fitted(gaps).notes_


def test_yes_and_no_mean_the_same_in_a_file_and_in_a_frame(rng, tmp_path):
    """Our reader of CSV files takes yes and no for 1 and 0; pandas leaves them as text."""
    lines = "".join(f"{x:.3f},{'yes' if x > 0 else 'No'},{'TRUE' if x > 1 else 'false'}\n" for x in rng.normal(size=30))
    table = read_csv(tmp_path, f"x,flag,y\n{lines}-0.5,,no\n")
    frame = pandas.read_csv(tmp_path / "data.csv", dtype={"flag": str, "y": str})
    of_file, of_frame = fitted(table), fitted(frame)
    assert of_file.columns_ == of_frame.columns_
    for data in (table, frame):
        assert (of_frame.encode(data) == of_file.encode(data)).all()
        assert (of_frame.predict(data) == of_file.predict(data)).all()
    assert any("read as 1 and 0: flag (text)" in note for note in of_frame.notes_)
    with pytest.raises(ValueError, match=r"It has 31 cells of text: 'yes' in row 1, 'perhaps' in row 2, \.\.\."):
        of_file.predict(frame.assign(flag=["yes"] + ["perhaps"] * 30))


def test_yes_and_no_among_other_text(tmp_path):
    """The whole column of a new file is yes and no, which our reader takes for 1 and 0."""
    lines = "".join(f"{('yes', 'no', 'perhaps')[i % 3]},{i % 5}\n" for i in range(15))
    model = fitted(read_csv(tmp_path, f"flag,y\n{lines}"))
    new = read_csv(tmp_path, "flag,y\nyes,0\nno,0\n")
    assert model.feature_names_ == ["flag=no", "flag=perhaps", "flag=yes"]
    np.testing.assert_array_equal(model.encode(new), [[0, 0, 1], [1, 0, 0]])


def test_a_text_column_whose_new_rows_are_all_numbers(tmp_path):
    """Levels 1, 2 and x are text; a table that has only 1 and 2 there is read as numbers, and means the same."""
    lines = "".join(f"{'12x'[i % 3]},{i % 5}\n" for i in range(15))
    model = fitted(read_csv(tmp_path, f"code,y\n{lines}"))
    new = read_csv(tmp_path, "code,y\n2,0\n1,0\n7,0\n")
    assert model.feature_names_ == ["code=1", "code=2", "code=x"]
    np.testing.assert_array_equal(model.encode(new), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("name", ["x", "y"])
def test_infinity_is_no_missing_value_and_its_place_is_named(name, table):
    table[name][7] = np.inf
    with pytest.raises(ValueError, match=rf"The column '{name}' .* is infinite in row 8\. Correct it"):
        fitted(table)


def test_columns_without_a_value_or_with_one_are_left_out(table):
    model = fitted(table | {"empty": [None] * 30, "same": ["a"] * 30, "gaps": [1.0] * 29 + [np.nan]})
    assert "constant columns are left out: empty, same" in model.notes_
    assert model.feature_names_[-2:] == ["gaps", "gaps is missing"]
    assert np.isfinite(model.predict(table | {"gaps": [2.0] * 30})).all()


def test_the_encoding_is_part_of_the_model_file(table, tmp_path):
    pytest.importorskip("skops.io")
    table["x"][3] = np.nan
    table["side"][4] = None
    table["day"] = [f"2026-01-{1 + i % 9:02d}" for i in range(30)]
    model = fitted(table)
    fenchel.save(model, tmp_path / "model")
    same = fenchel.load(tmp_path / "model")
    assert same.encode(table).tobytes() == model.encode(table).tobytes()
    assert same.train_scores_ == model.train_scores_


def test_scores_are_those_of_the_estimator(rng):
    x = rng.uniform(-2, 2, 40)
    table = {"x": x, "a": np.sin(x), "b": x**2 + rng.normal(size=40)}
    model = TableRegressor(fenchel.OperatorKernelRegressor(), targets=["a", "b"]).fit(table)
    X, Y, _ = model.sample(table)
    assert model.score(table) == pytest.approx(model.estimator_.score(X, Y - model.offset_), rel=1e-12)
    scores = model.evaluate(table)
    assert scores == model.train_scores_
    assert scores.rmse == pytest.approx(np.sqrt(np.mean((model.predict(table) - Y) ** 2)), rel=1e-12)
    assert scores.rmse_of_mean == pytest.approx(np.sqrt(np.mean((Y.mean(axis=0) - Y) ** 2)), rel=1e-12)


def test_scores_of_curves_are_those_of_the_estimator(rng):
    t = np.array([0.0, 0.5, 2.0, 3.0])
    x = rng.uniform(-1, 1, 30)
    Y = np.sin(t + x[:, None]) + 0.1 * rng.normal(size=(30, 4))
    Y[rng.uniform(size=Y.shape) < 0.1] = np.nan
    table = {"x": x} | {f"t_{point:g}": Y[:, j] for j, point in enumerate(t)}
    model = TableRegressor(fenchel.FunctionalRegressor(loss=Huber(0.5)), targets=["t_*"], curves=True).fit(table)
    expected = model.estimator_.score(model.encode(table), Y, grid=t)
    assert model.score(table) == pytest.approx(expected, rel=1e-12)


def test_a_target_that_does_not_vary_scores_one_if_it_is_predicted(table):
    model = fitted(table | {"y": np.full(30, 2.0)})
    assert model.train_scores_.r2 == 1.0
    assert np.isnan(model.evaluate({"x": [1.0], "side": ["left"], "y": [2.0]}).r2)
