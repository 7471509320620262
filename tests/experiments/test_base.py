import pytest

from fenchel.experiments.base import Comparison, stored


@pytest.mark.parametrize(
    ("ours", "passes"), [(0.1, True), (2.5, True), (2.69, True), (2.7, False), (float("nan"), False)]
)
def test_a_bar_from_above_has_an_absolute_tolerance(ours, passes):
    assert Comparison("a", 2.5, ours, 0.19, at_most=True).passes is passes


def test_a_relative_tolerance_holds_on_both_sides():
    assert Comparison("a", 2.0, 1.5, 0.25).passes
    assert not Comparison("a", 2.0, 1.49, 0.25).passes
    assert not Comparison("a", 2.0, 2.51, 0.25).passes


def test_a_part_is_computed_once(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"a": [1.5, None], "b": "text"}

    folder = tmp_path / "parts"
    assert stored(folder, "one", compute) == stored(folder, "one", compute) == {"a": [1.5, None], "b": "text"}
    assert len(calls) == 1 and [file.name for file in folder.iterdir()] == ["one.json"]
    stored(folder, "two", compute)
    stored(None, "one", compute)
    assert len(calls) == 3


def test_a_part_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError):
        stored(tmp_path, "one", lambda: {"a": 1 / 0})
    with pytest.raises(TypeError, match="not JSON serializable"):
        stored(tmp_path, "one", lambda: {"a": {1, 2}})
    assert not (tmp_path / "one.json").exists()
