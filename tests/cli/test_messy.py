"""A table as users have it, from the file to the page."""

import csv
import io
import re

import numpy as np
import pytest

pytest.importorskip("pandas")

N = 120


def messy(rng):
    """Return the rows of a table with gaps of every kind, dates with repeats and a category of one row."""
    area, rooms = rng.uniform(30, 200, N), rng.integers(1, 7, N)
    days = np.datetime64("2024-02-27") + rng.integers(0, 60, N)
    kind = np.where(rng.uniform(size=N) < 0.5, "flat", "house")
    price = area + 5 * rooms * (kind == "house") + 0.2 * (days - days.min()).astype(int)
    rows = [
        [f"{a:.1f}", str(r), str(d), k, f"{p:.2f}", str(p > np.median(price))]
        for a, r, d, k, p in zip(area, rooms, days, kind, price, strict=True)
    ]
    for column, step, mark in [(0, 11, "?"), (1, 13, ""), (2, 17, "NA"), (3, 19, "-"), (4, 23, "null"), (5, 29, ".")]:
        for row in rows[::step]:
            row[column] = mark
    rows[7][3] = "castle"
    return rows


def written(path, rows, header=("area", "rooms", "day", "kind", "price", "sold")):
    """Write a file with a byte-order mark, semicolons and Windows line ends."""
    text = "\r\n".join(";".join(row) for row in [header, *rows]) + "\r\n"
    path.write_bytes(text.encode("utf-8-sig"))
    return path


@pytest.fixture
def house_file(tmp_path, rng):
    return written(tmp_path / "houses.csv", messy(rng))


def test_from_the_file_to_the_page(fenchel, house_file, tmp_path, rng):
    words = ("-t", "price", "--drop", "sold", "--loss", "huber:kappa=10", "--lam", "1e-5", "--test-size", "0.25")
    files = ("--model", tmp_path / "m", "--report", tmp_path / "fit.html")
    found = fenchel("fit", house_file, *words, *files, "--json").json
    known = N - len(range(0, N, 23))  # rows with a price
    assert found["rows"] + found["test_rows"] == known
    assert found["inputs"] == ["area", "rooms", "day", "kind"]
    assert found["test_rmse"] < 0.7 * found["test_rmse_of_mean"]
    notes = "\n".join(found["notes"])
    assert re.search(r"median, and a 0/1 column says where: area \(\d+ missing\), rooms \(\d+ missing\), day \(", notes)
    assert "dates are counted in days since the first one: day (2024-0" in notes
    assert "missing text is a value of its own: kind" in notes
    new = [row[:4] for row in messy(rng)[:9]]
    new[3][3] = "boat"
    result = fenchel("predict", tmp_path / "m", written(tmp_path / "new.csv", new, ("area", "rooms", "day", "kind")))
    predicted = [float(row["price"]) for row in csv.DictReader(io.StringIO(result.out))]
    assert len(predicted) == 9
    assert np.isfinite(predicted).all()
    assert "area: missing in row 1; replaced by the training median" in result.err
    assert re.search(r"kind: .* a value not seen in training \(.*'boat'.*\); treated as 'other'", result.err)
    assert fenchel("report", tmp_path / "m", "--data", house_file).code == 0
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert f"<td>{found['train_r2']:.4f}</td>" in page
    assert f"{known} rows of houses.csv" in page
    assert "note on the compared rows" in page


def test_a_rare_category_in_the_test_rows_only(fenchel, house_file):
    """Whichever part the one castle is in, the fit goes on."""
    counted = 0
    for seed in range(6):
        words = ("-t", "price", "--drop", "sold", "--test-size", "0.5", "--seed", seed)
        notes = fenchel("fit", house_file, *words, "--json").json["notes"]
        counted += any(
            "kind: row 8 has a value not seen in training ('castle'); treated as 'other'" in n for n in notes
        )
    assert 0 < counted < 6


def test_a_target_of_true_and_false(fenchel, house_file):
    found = fenchel("fit", house_file, "-t", "sold", "--drop", "price", "--json").json
    assert "true and false are read as 1 and 0: sold" in found["notes"]
    assert found["rows"] == N - len(range(0, N, 29))
    assert 0 < found["train_rmse"] < found["train_rmse_of_mean"] < 0.51


def test_an_infinite_number_is_named(fenchel, tmp_path, rng):
    rows = messy(rng)
    rows[5][0] = "inf"
    file = written(tmp_path / "houses.csv", rows)
    line = fenchel("fit", file, "-t", "price").line
    assert line.startswith(f"The column 'area' of {file} is infinite in row 6. Correct it")


@pytest.mark.parametrize(("column", "cell"), [(1, "3 rooms"), (0, "12 m2")])
def test_a_number_with_its_unit_is_named(column, cell, fenchel, tmp_path, rng):
    """A few different numbers become categories, with a warning; numbers of which each occurs once do not."""
    rows = messy(rng)
    rows[4][column] = cell
    name, known = ("area", "rooms")[column], sum(row[column] not in "?" and row[4] != "null" for row in rows) - 1
    result = fenchel("fit", written(tmp_path / "houses.csv", rows), "-t", "price", "--drop", "sold", "--lam", "1e-3")
    said = f"has {known} numbers and 1 cell of text: {cell!r} in row 5. Write a number there"
    if column == 0:
        assert f"The column '{name}'" in result.line and said in result.line
    else:
        assert result.code == 0 and f"The column '{name}'" in result.out and said in result.out
        assert "Row 1 is the first row of data, below the header." in result.out
