"""The speech experiment on one split of one curve."""

import numpy as np
from sklearn.utils import Bunch

from fenchel.papers import speech
from fenchel.papers.experiment import units_of


def test_the_published_table():
    """Four numbers read in the paper, one of each corner of the table; every column has eight curves."""
    assert len(speech.PUBLISHED) == 11 + 3
    assert all(numbers.shape == (8, 2) for numbers in speech.PUBLISHED.values())
    np.testing.assert_array_equal(speech.PUBLISHED["clean", "square"][0], [6.58, 0.62])
    np.testing.assert_array_equal(speech.PUBLISHED["clean", "eps-inf"][7], [5.92, 0.34])
    np.testing.assert_array_equal(speech.PUBLISHED["type 1", "H1"][6], [9.48, 0.6])
    np.testing.assert_array_equal(speech.PUBLISHED["type 3", "H1"][7], [6.36, 0.39])


def test_one_part(data_folder, monkeypatch):
    """TTCL, first split: the square loss is spoilt by wrong curves, Huber's less."""
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    monkeypatch.setattr(speech, "RHOS", speech.RHOS[2:3])
    kappa = float(np.log10(0.005))
    grids = speech._Grids((-8, -6, 3), (kappa, kappa, 1), (-4, -3, 1), first=1)
    monkeypatch.setattr(speech, "PUBLISHED", {key: speech.PUBLISHED[key] for key in (("clean", "square"),
                        ("type 1", "square"), ("type 1", "H2"))})  # fmt: skip
    speech._inputs.cache_clear()
    clean = speech._errors(0, "clean", "TTCL", grids)
    wrong = speech._errors(0, "type 1", "TTCL", grids)
    speech._inputs.cache_clear()
    mean, deviation = speech.PUBLISHED["clean", "square"][6]
    assert abs(clean["errors"]["square"] - mean) < 2 * deviation
    assert wrong["errors"]["square"] > 3 * clean["errors"]["square"]
    assert wrong["errors"]["H2"] < 0.7 * wrong["errors"]["square"]
    assert max(clean["gap"], wrong["gap"]) <= 1e-6
    rows, columns = speech.summary({"one": clean, "other": wrong})
    assert [row.name for row in rows] == ["TTCL, clean, square", "TTCL, type 1, square", "TTCL, type 1, H2"]
    assert rows[0].ours == columns["clean", "square"][0, 6] == clean["errors"]["square"]
    assert [bool(row.looked_at_test) for row in rows] == [False, True, True]
    assert "grids: 3 lam, 1 kappa, 1 epsilon;" in rows[0].note


def test_only_training_words_standardise_the_inputs(data_folder, monkeypatch):
    """Other sounds of the test words change no entry among training words."""
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    monkeypatch.setattr(speech, "RHOS", speech.RHOS[:1])
    speech._inputs.cache_clear()
    data, (before,), train, test = speech._inputs(0)
    other = Bunch(**{**data, "X": data.X.copy()})
    other.X[test] *= 2
    monkeypatch.setattr(speech, "load_speech", lambda published_names: other)
    speech._inputs.cache_clear()
    after = speech._inputs(0)[1][0]
    speech._inputs.cache_clear()
    assert sorted([*train, *test]) == list(range(413))
    np.testing.assert_allclose(after[np.ix_(train, train)], before[np.ix_(train, train)], rtol=1e-12)
    assert not np.allclose(after[np.ix_(test, train)], before[np.ix_(test, train)])


def test_a_bar_that_the_median_curve_passes_is_not_counted():
    """TTCL of type 1: the published error of the square loss is about that of no input at all."""
    part = {
        "split": 0,
        "kind": "type 1",
        "curve": "TTCL",
        "errors": {"square": 14.0, "H2": 10.0},
        "gap": 0.0,
        "grids": "",
    }
    rows, _ = speech.summary({"one": part | {"constant": 15.7}})
    assert [row.verdict for row in rows] == ["reference", "PASS"]


def test_units():
    assert len(speech.units()) == 10 * 4 * 8 == len({unit.name for unit in speech.units()})
    assert len(speech.units(quick=True)) == 8


def test_full_grids_are_those_of_the_paper():
    units = units_of(speech, full=True)
    assert len({unit.name for unit in units} | {unit.name for unit in speech.units()}) == 640
    assert {unit.args[3] for unit in units} == {speech.FULL}
    families = speech.FULL.losses()
    assert [len(family) for family in families.values()] == [1, 100, 100, 80, 80]
    np.testing.assert_allclose([loss.kappa for loss in families["H1"]], np.geomspace(1e-7, 1, 100))
    np.testing.assert_allclose([loss.epsilon for loss in families["eps2"]], np.geomspace(1e-5, 0.1, 80))
    assert speech.FULL.lams == (-10, -6, 10)
