"""``fenchel outliers`` ranks the rows of the table of a fit."""

import csv

import numpy as np
import pytest


@pytest.fixture
def spoiled(tmp_path):
    """Return a table of 60 rows of which row 7 has another row's targets, and where it is."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    Y = np.stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 0]) - X[:, 1]], axis=1) + 0.05 * rng.standard_normal((60, 2))
    Y[6] = -Y[6] + 3
    file = tmp_path / "train.csv"
    np.savetxt(file, np.hstack([X, Y]), delimiter=",", header="a,b,y_1,y_2", comments="")
    return file


def test_the_wrong_row_comes_first(fenchel, spoiled, tmp_path):
    model = tmp_path / "m.fenchel"
    assert fenchel("fit", spoiled, "-t", "y_*", "--loss", "huber", "--model", model).code == 0
    result = fenchel("outliers", model, spoiled, "-n", "3", "-o", tmp_path / "ranked.csv")
    assert result.code == 0 and "rows flagged at a false discovery rate of 0.1" in result.out
    assert result.out.splitlines()[1].startswith("* row      7")
    assert len(result.out.splitlines()) == 4
    with (tmp_path / "ranked.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60 and rows[0]["row"] == "7" and float(rows[0]["saturation"]) == 1.0
    found = fenchel("outliers", model, spoiled, "--json", "--fdr", "0.05").json
    assert found["rows"] == 60 and found["fdr"] == 0.05 and 7 in found["flagged"]
    assert dict(zip(found["flagged"], found["targets"], strict=True))[7] == "y_1, y_2"
    assert fenchel("report", model, "--data", spoiled, "-o", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 0 < page.index("Outliers by held-out residuals") < page.index("<h2>Clipped samples</h2>")
    assert "their influence is capped" in page
    assert "Hover over a point to see its value" in page
    other = tmp_path / "other.csv"  # it is the table of the fit that is looked at
    lines = spoiled.read_text().splitlines()
    other.write_text("\n".join([lines[0], *lines[:0:-1]]))
    assert "is not the table" in fenchel("outliers", model, other).line
    assert "must end in .csv" in fenchel("outliers", model, spoiled, "-o", tmp_path / "x.txt").line
    fenchel("report", model, "--data", other, "-o", tmp_path / "page.html")
    assert "Outliers by held-out residuals" not in (tmp_path / "page.html").read_text(encoding="utf-8")
