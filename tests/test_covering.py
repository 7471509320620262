"""The helper that chooses the cases of the core run."""

from itertools import product

import pytest
from sklearn.base import clone

from fenchel.estimators import OperatorKernelRegressor
from fenchel.losses import EpsilonRidge, Huber, InfimalConvolution, Norm, Square
from tests.covering import core, covering, kind
from tests.oracles.problems import Problem


def cases(**lists):
    """Return the cases of a product."""
    return [dict(zip(lists, case, strict=True)) for case in product(*lists.values())]


def test_one_list_is_kept_whole():
    assert core(cases(loss=[Huber(0.1), Huber(0.2), Huber(0.3)]), [("loss",)]) == {0, 1, 2}


def test_every_pair_of_three_lists():
    every = cases(a="abcd", b="wxyz", c=[1, 2, 3, 4])
    chosen = [every[k] for k in core(every, [("a",), ("b",), ("c",)])]
    assert len(chosen) <= 24 < len(every)  # 16 at the least
    for one, two in (("a", "b"), ("a", "c"), ("b", "c")):
        assert len({(case[one], case[two]) for case in chosen}) == 16


def test_pairs_of_kinds_and_every_value():
    losses = [Huber(0.1), Huber(0.2), Huber(0.3), Square()]
    every = cases(loss=losses, solver=["a", "b"])
    chosen = [every[k] for k in core(every, [("loss",), ("solver",)])]
    assert len(chosen) == 5
    assert {repr(case["loss"]) for case in chosen} == {repr(loss) for loss in losses}
    assert {(type(case["loss"]), case["solver"]) for case in chosen} == set(product([Huber, Square], "ab"))


def test_parameters_of_one_list_are_one_column():
    every = cases(name=["low", "high"], value=["x", "y"], p=[1, 3])
    assert len(core(every, [("name", "value"), ("p",)])) == 8
    assert len(core(every, [("name",), ("value",), ("p",)])) < 8


def test_cases_are_spread():
    """Of rows that cover as much the one with values that were used least."""
    rows = [(model, check) for model in range(3) for check in range(9)]
    chosen = covering(rows, [("model", check) for _, check in rows])
    assert len(chosen) == 9
    assert sorted(rows[k][0] for k in chosen) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (Huber(0.1), Huber(0.7), True),
        (Huber(0.1), Huber(0.1, p=1), False),
        (Huber(0.1, p=1.3), Huber(0.1, p=3), True),
        (EpsilonRidge(0.0), EpsilonRidge(0.2), False),
        (InfimalConvolution(Square(), Norm(0.3)), InfimalConvolution(Square(), Norm(0.4)), True),
        (InfimalConvolution(Square(), Norm(0.3)), InfimalConvolution(Square(), Huber(0.3)), False),
        (OperatorKernelRegressor(loss="huber"), OperatorKernelRegressor(), True),
        (Problem("sum", 1), Problem("sum", 2), True),
        (Problem("sum", 1), Problem("blocks", 1), False),
        ("numpy", "torch", False),
        (0.5, 0.7, False),
    ],
)
def test_kinds(one, two, same):
    assert (kind(one) == kind(two)) is same
    assert kind(one) == kind(clone(one) if hasattr(one, "get_params") else one)
