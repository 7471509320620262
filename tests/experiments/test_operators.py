"""The experiment on operators, small: rows, their bars, and the figure."""

from functools import partial
from unittest.mock import patch

import numpy as np
import pytest

from fenchel.datasets import make_darcy
from fenchel.papers import operators
from fenchel.papers.experiment import Unit, run


@pytest.fixture
def small():
    with patch.multiple(operators, N_TRAIN=60, N_TEST=20, make_darcy=partial(make_darcy, n_points=9, refinement=1)):
        yield


def test_rows_and_figure(small):
    pytest.importorskip("matplotlib")
    units = [Unit("operators-burgers-0", operators._burgers, (0,)), Unit("operators-darcy", operators._darcy)]
    outcome = run(operators, units)
    rows = {row.name: row for row in outcome.rows}
    assert list(rows) == [
        "Burgers, linear",
        "Burgers, Matérn",
        "Darcy, Matérn",
        "Darcy, symmetries of the square",
        "Darcy, 30 % of the values missing",
    ]
    assert rows["Burgers, Matérn"].ours < rows["Burgers, linear"].ours
    assert rows["Darcy, symmetries of the square"].ours < 0.8 * rows["Darcy, Matérn"].ours
    assert rows["Darcy, 30 % of the values missing"].published == rows["Darcy, Matérn"].ours
    assert rows["Darcy, symmetries of the square"].standard_error == pytest.approx(
        np.std(outcome.found["errors"]["Darcy, symmetries of the square"], ddof=1) / np.sqrt(20)
    )
    assert len(operators.draw(outcome.found).axes) == 4 + 3  # and three colour bars


def test_the_quick_version(small):
    (unit,) = operators.units(quick=True)
    rows, found = operators.summary({unit.name: operators._burgers(0)})
    assert [row.published for row in rows] == [36.2, 2.41]
    assert found["fields"] is None


def test_relative_errors():
    truth = np.array([[3.0, 4.0], [0.0, 2.0]])
    assert operators._relative(truth + np.array([0.0, 1.0]), truth) == pytest.approx([20.0, 50.0])
