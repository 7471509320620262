import math

import numpy as np
import pytest

from fenchel.papers.comparison import Comparison, paired, ratio_error, standard_error


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(2.0, "PASS"), (2.29, "PASS"), (2.31, "TIE"), (2.69, "TIE"), (2.71, "MISS"), (math.nan, "MISS")],
)
def test_a_bar_is_tied_within_two_standard_errors(ours, verdict):
    """The bar with its tolerance is 2.5, the standard error 0.1."""
    assert Comparison("a", 2.4, ours, 0.1, at_most=True, standard_error=0.1).verdict == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"), [(2.0, "PASS"), (2.29, "PASS"), (2.31, "TIE"), (1.69, "TIE"), (2.71, "MISS"), (1.29, "MISS")]
)
def test_both_edges_of_a_relative_tolerance_are_tied(ours, verdict):
    assert Comparison("a", 2.0, ours, 0.25, standard_error=0.1).verdict == verdict


def test_without_a_standard_error_there_is_no_tie():
    assert Comparison("a", 2.0, 2.0, 0.0, at_most=True).verdict == "PASS"
    assert Comparison("a", 2.0, 2.0 + 1e-12, 0.0, at_most=True).verdict == "MISS"


@pytest.mark.parametrize(("trivial", "verdict"), [(0.297, "reference"), (0.41, "reference"), (0.42, "PASS")])
def test_a_bar_that_needs_no_inputs_is_not_counted(trivial, verdict):
    assert Comparison("a", 0.41, 0.277, 0.0, at_most=True, trivial=trivial).verdict == verdict


def test_a_published_number_that_needs_no_inputs_is_not_counted():
    assert Comparison("a", 0.9, 0.91, 0.02, trivial=0.89).verdict == "reference"
    assert Comparison("a", 0.9, 0.91, 0.02, trivial=0.85).verdict == "PASS"


class TestPaired:
    def test_differences_decide_and_not_the_spread_of_each(self):
        """Trials differ by far more than the methods do, but the difference is the same in each."""
        level = np.array([1.0, 5.0, 9.0, 13.0])
        row = paired("a", level + np.array([0.1, 0.12, 0.1, 0.08]), level, "more")
        assert row.verdict == "PASS" and row.ours == 7.0 and row.published == pytest.approx(7.1)
        assert row.standard_error == pytest.approx(np.sqrt(8e-4 / 3) / 2)
        assert row.note == "lower by 0.1 ± 0.0082, in 4 of 4 trials; more"

    def test_a_difference_within_two_standard_errors_is_a_tie(self):
        """The rank losses of movielens: lower by .0005, with a deviation of .0019 over ten trials."""
        gains = np.array([0.0019, -0.0019] * 5) + 0.0005
        for sign in (1, -1):
            assert paired("a", 0.2767 + sign * gains, np.full(10, 0.2767)).verdict == "TIE"

    def test_one_trial_decides_by_its_sign(self):
        assert paired("a", [2.0], [1.0]).verdict == "PASS"
        assert paired("a", [1.0], [2.0]).verdict == "MISS"
        assert paired("a", [2.0], [1.0]).standard_error is None


def test_standard_error():
    assert standard_error([1.0, 3.0]) == pytest.approx(1.0)  # deviation sqrt 2, over sqrt 2
    assert standard_error([1.0]) is None


def test_error_of_a_ratio(rng):
    """Beside the deviation of the ratio over many samples of the same size."""
    below = rng.uniform(1, 2, (4000, 50))
    above = 0.8 * below + 0.1 * rng.standard_normal(below.shape)
    ratios = above.mean(axis=1) / below.mean(axis=1)
    errors = [ratio_error(a, b) for a, b in zip(above, below, strict=True)]
    assert np.mean(errors) == pytest.approx(np.std(ratios), rel=0.05)
    assert ratio_error([1.0], [2.0]) is None
