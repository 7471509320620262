"""Replicates: rows of one group are held out together, in the search, in the test rows and in the intervals."""

import numpy as np
import pytest

import fenchel as library
from fenchel.app.tables import TableRegressor
from tests.cli.conftest import write_csv

pandas = pytest.importorskip("pandas")

N_GROUPS, N_REPLICATES = 24, 5


@pytest.fixture
def replicates(rng):
    """Specimens measured five times: the error of a specimen is large, that of a measurement small."""
    specimen = np.repeat(np.arange(N_GROUPS), N_REPLICATES)
    x = rng.uniform(-2, 2, (N_GROUPS, 3))[specimen]
    y = np.sin(x[:, 0]) + rng.normal(0, 0.5, N_GROUPS)[specimen] + rng.normal(0, 0.02, len(specimen))
    columns = {f"x_{k}": x[:, k].tolist() for k in range(3)}
    return columns | {"specimen": [f"s{k}" for k in specimen], "y": y.tolist()}


@pytest.fixture
def file(replicates, tmp_path):
    return write_csv(tmp_path / "replicates.csv", replicates)


def test_the_search_does_not_learn_the_error_of_a_specimen(fenchel, file, tmp_path):
    words = ("fit", file, "-t", "y", "--loss", "square", "--kernel", "gaussian:gamma=0.5", "--lams", "1e-8:1:9")
    apart = fenchel(*words, "--drop", "specimen", "--json").json
    together = fenchel(*words, "--groups", "specimen", "--json", "--model", tmp_path / "m").json
    assert together["inputs"] == ["x_0", "x_1", "x_2"]
    assert together["lam"] >= 100 * apart["lam"]
    assert together["cv_error"] > 10 * apart["cv_error"]
    predicted = fenchel("predict", tmp_path / "m", file)
    assert predicted.code == 0 and predicted.err == ""
    assert fenchel(*words, "--groups", "specimen", "--cv", "loo", "--model", tmp_path / "m").code == 0


def test_a_group_is_not_divided_by_the_test(fenchel, file, replicates, tmp_path, monkeypatch):
    from fenchel.app.cli import fitting

    split, parts = fitting._split, []
    monkeypatch.setattr(fitting, "_split", lambda *given: parts.append(split(*given)) or parts[0])
    found = fenchel("fit", file, "-t", "y", "--groups", "specimen", "--test-size", "0.25", "--lam", "1", "--json").json
    train, test = ({*part.columns["specimen"]} for part in parts[0])
    assert not train & test
    assert (len(train), len(test), found["test_rows"]) == (18, 6, 30)
    line = fenchel("fit", file, "-t", "y", "--groups", "specimen", "--test-size", "0.99").line
    assert "--test-size 0.99 leaves none of the 24 groups" in line


def test_intervals_cover_new_specimens(fenchel, tmp_path):
    """Jackknife+ leaves out single rows, so that it measures the errors of measurements, not of specimens."""
    rng = np.random.default_rng(5)
    specimen = np.repeat(np.arange(120), 4)
    x = rng.uniform(-2, 2, (120, 2))[specimen]
    y = np.sin(x[:, 0]) + rng.normal(0, 0.5, 120)[specimen] + rng.normal(0, 0.02, len(specimen))
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "specimen": specimen, "y": y})
    frame[:200].to_csv(tmp_path / "train.csv", index=False)
    covered = {}
    for words in (("--drop", "specimen"), ("--groups", "specimen")):
        words = (*words, "--coverage", "0.9", "--loss", "square", "--model", tmp_path / "m")
        assert fenchel("fit", tmp_path / "train.csv", "-t", "y", *words).code == 0
        lower, upper = library.load(tmp_path / "m").predict_interval(frame[200:])
        covered[words[0]] = np.mean((lower[:, 0] <= y[200:]) & (y[200:] <= upper[:, 0]))
    assert covered["--drop"] < 0.5
    assert 0.8 <= covered["--groups"] <= 1


def test_folds_of_the_intervals_hold_whole_groups(replicates):
    conformal = library.ConformalRegressor(library.OperatorKernelRegressorCV(losses=["square"]), joint=False)
    model = TableRegressor(conformal, targets=["y"]).fit(replicates, groups="specimen")
    of_group = {}
    for name, fold in zip(replicates["specimen"], model.conformal_.cv.test_fold, strict=True):
        of_group.setdefault(name, set()).add(int(fold))
    assert {len(folds) for folds in of_group.values()} == {1}
    assert set.union(*of_group.values()) == set(range(5))
    assert model.estimator_.best_lam_ == model.conformal_.estimator.lam
    labels = replicates.pop("specimen")
    same = TableRegressor(conformal, targets=["y"]).fit(replicates, groups=labels)
    np.testing.assert_array_equal(same.predict(replicates), model.predict(replicates))


def test_rows_without_a_target_leave_the_groups_in_step(replicates):
    replicates["y"][3] = replicates["y"][50] = None
    estimator = library.OperatorKernelRegressorCV(losses=["square"])
    model = TableRegressor(estimator, targets=["y"]).fit(replicates, groups="specimen")
    assert len(model.rows_) == N_GROUPS * N_REPLICATES - 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda names: [None, *names[1:]], r"Each row needs a group\. That of row 1 is missing"),
        (lambda names: ["s"] * len(names), "are in one group; at least 2 groups are needed"),
    ],
)
def test_groups_that_cannot_be_used(change, said, replicates):
    replicates["specimen"] = change(replicates["specimen"])
    with pytest.raises(ValueError, match=said):
        TableRegressor(library.OperatorKernelRegressorCV(), targets=["y"]).fit(replicates, groups="specimen")


def test_more_folds_than_groups(fenchel, file):
    said = "cv=25 needs at least 25 groups. "
    assert said in fenchel("fit", file, "-t", "y", "--groups", "specimen", "--cv", "25").line


def test_the_name_of_a_column_that_is_not_there(fenchel, file):
    assert "groups: " in fenchel("fit", file, "-t", "y", "--groups", "specimens").line
    assert "Did you mean 'specimen'?" in fenchel("fit", file, "-t", "y", "--groups", "specimens").line
    assert "is a target and cannot hold the groups" in fenchel("fit", file, "-t", "y", "--groups", "y").line
