"""The part of a product of parameters that the core run takes.

A test with several parameters runs on their product, and most of its cases cannot fail apart: which code they run
depends on the kinds of two values, not on all the numbers of all values. The core run covers every value of every
parameter and every pair of kinds; the rest of the product is left to the exhaustive run.
"""

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations

from sklearn.base import BaseEstimator

from fenchel._component import Component

SPECIAL = (0, 1, 2, math.inf)  # numbers at which a part switches to another formula


def kind(value):
    """Return what chooses the code that a value runs: the class of an estimator; of a part also its options.

    A value may name its kind itself, by an attribute of this name.
    """
    if hasattr(value, "kind"):
        return value.kind
    if isinstance(value, Component):
        return type(value).__name__, *(_option(option) for _, option in sorted(value.get_params(deep=False).items()))
    if isinstance(value, BaseEstimator):
        return type(value).__name__
    if isinstance(value, functools.partial):  # a check of scikit-learn
        return value.func.__name__
    return value if isinstance(value, str | float | int | None) else repr(value)


def _option(value):
    if isinstance(value, float | int) and not isinstance(value, bool):
        return value if value in SPECIAL else "a number"
    return kind(value)


def covering(rows: Sequence[Sequence[Hashable]], kinds: Sequence[Sequence[Hashable]]) -> set[int]:
    """Return the places of rows that hold every value of every column and every pair of kinds of two columns.

    The row that covers most comes next; of equal ones that whose values were used least, then the first.

    Parameters
    ----------
    rows : sequence of sequences
        The values of each case, column by column.
    kinds : sequence of sequences
        The kinds of these values.
    """
    cases = [
        [(column, *pair) for column, pair in enumerate(zip(*case, strict=True))]
        for case in zip(rows, kinds, strict=True)
    ]
    peers = Counter((column, of) for column, _, of in {value for case in cases for value in case})
    missing = [
        {*_pairs(case), *(value for value in case if len(case) == 1 or peers[value[0], value[2]] > 1)} for case in cases
    ]
    holders, users = defaultdict(list), defaultdict(list)
    for place, (goals, values) in enumerate(zip(missing, cases, strict=True)):
        for goal in goals:
            holders[goal].append(place)
        for value in values:
            users[value].append(place)
    chosen: set[int] = set()
    uses = [0] * len(cases)  # of the values of each case
    while left := [place for place, goals in enumerate(missing) if goals]:
        most = max(len(missing[place]) for place in left)
        best = min((place for place in left if len(missing[place]) == most), key=uses.__getitem__)
        chosen.add(best)
        for value in cases[best]:
            for place in users[value]:
                uses[place] += 1
        for goal in list(missing[best]):
            for place in holders[goal]:
                missing[place].discard(goal)
    return chosen


def _pairs(case: Sequence[tuple[int, Hashable, Hashable]]) -> Iterator[Hashable]:
    """Yield the pairs of kinds of two columns."""
    for (i, _, first), (j, _, second) in combinations(case, 2):
        yield i, first, j, second


def core(cases: Sequence[dict], lists: Sequence[Sequence[str]]) -> set[int]:
    """Return the places of a test's cases that the core run takes.

    Parameters
    ----------
    cases : sequence of dict
        The parameters of each case, by name.
    lists : sequence of sequences of str
        The names of the parameters that come from one list: they vary together.
    """
    rows = [[tuple(_identity(case[name]) for name in names) for names in lists] for case in cases]
    return covering(rows, [[tuple(kind(case[name]) for name in names) for names in lists] for case in cases])


def _identity(value):
    """Return what tells a value from the others of its list: cases share the objects, but for checks."""
    return kind(value) if isinstance(value, functools.partial) else id(value)
