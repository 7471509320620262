"""Equal candidates are chosen by their order: the same sample in other units, or shuffled, has the same model."""

import numpy as np
import pytest
from benchmarks.same_choice import run

from fenchel._statistics import ranked


def test_errors_that_agree_to_round_off_keep_their_order():
    assert ranked([2.0, 1.0 + 1e-14, 1.0, np.nan, 1.0 - 1e-14, 0.9]).tolist() == [5, 1, 2, 4, 0, 3]
    assert ranked([1.0 + 1e-7, 1.0]).tolist() == [1, 0]
    assert ranked([3e-18, 1e-18, 1.0, 2.0]).tolist() == [0, 1, 2, 3]  # a perfect fit, and its round-off
    assert ranked([np.inf, np.nan]).tolist() == [0, 1] and ranked([0.0, 0.0]).tolist() == [0, 1]


@pytest.mark.parametrize("unit", [1e-9, 1 / 3, 7e5])
def test_ranks_have_no_units(unit, rng):
    errors = np.repeat(rng.random(20), 3) * (1 + 1e-13 * rng.standard_normal(60))
    assert ranked(unit * errors).tolist() == ranked(errors).tolist()


@pytest.mark.parametrize(("name", "samples"), [("vectors", 2), ("curves", 2), ("labels", 2), ("quantiles", 1)])
@pytest.mark.filterwarnings("ignore")
def test_units_and_order_do_not_choose(name, samples):
    """``python -m benchmarks.same_choice`` has 50 samples and 20 changes of each."""
    assert run(name, samples, 2) == {"units": [], "order": []}
