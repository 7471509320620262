import pytest

from fenchel.experiments.base import Comparison


@pytest.mark.parametrize(
    ("ours", "passes"), [(0.1, True), (2.5, True), (2.69, True), (2.7, False), (float("nan"), False)]
)
def test_a_bar_from_above_has_an_absolute_tolerance(ours, passes):
    assert Comparison("a", 2.5, ours, 0.19, at_most=True).passes is passes


def test_a_relative_tolerance_holds_on_both_sides():
    assert Comparison("a", 2.0, 1.5, 0.25).passes
    assert not Comparison("a", 2.0, 1.49, 0.25).passes
    assert not Comparison("a", 2.0, 2.51, 0.25).passes
