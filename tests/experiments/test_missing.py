from unittest.mock import patch

import numpy as np
import pytest

from fenchel.papers import missing
from fenchel.papers.experiment import run


@pytest.fixture
def tasks(data_folder, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    return list(missing.tasks())


def test_points_are_removed_curve_by_curve(tasks):
    for task in tasks:
        Y = task.Y[task.splits[0][0]]
        versions = dict(zip(missing.KINDS, missing._versions(Y, task.t, seed=0), strict=True))
        np.testing.assert_array_equal(versions["full"], Y)
        for share in (0.8, 0.9):
            thin, joined = versions[f"{share:.0%} removed"], versions[f"{share:.0%} removed, interpolated"]
            left = ~np.isnan(thin)
            wanted = np.round((1 - share) * np.sum(~np.isnan(Y), axis=1))
            np.testing.assert_array_equal(left.sum(axis=1), wanted)
            assert len(np.unique(left, axis=0)) == len(Y)  # other points for every curve
            np.testing.assert_array_equal(thin[left], Y[left])
            np.testing.assert_allclose(joined[left], Y[left])
            assert not np.isnan(joined).any()


def test_one_split_needs_no_interpolation(tasks):
    """One kernel: fewer points cost little, straight lines between them much."""
    few = [
        missing._Task(task.name, task.X, task.Y, task.t, task.kernels[-2:-1], task.lams[1:6:2], task.splits)
        for task in tasks
    ]
    units = [unit for unit in missing.units() if unit.args[1] == 0]
    with patch.multiple(missing, tasks=lambda: few, KAPPAS=(1.0,)):
        outcome = run(missing, units)
    rows, found = outcome.rows, outcome.found
    assert [row.name for row in rows if "ratio to full" in row.name] == [
        f"{name}, {share} removed, ratio to full curves" for name in ("DTI", "lip") for share in ("80%", "90%")
    ]
    for errors in found.values():
        full, _, _, thin, joined = errors[0]
        assert thin < 1.3 * full
        assert thin < 0.9 * joined
    assert len(pytest.importorskip("matplotlib") and missing.draw(found).axes) == 2
