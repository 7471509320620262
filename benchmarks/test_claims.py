"""The comparisons that the documentation states: a named solver is given 20 times Auto's time to gap 1e-6."""

import pytest
from families import Spec, build
from measure import keep, run

CASES = {
    "hard": (Spec("vector", "huber", 500, 100, 1e-6, 0.5), "APGD"),
    "hard-sparse": (Spec("vector", "eps-ridge", 500, 100, 1e-6, 0.5), "APGD"),
    "easy": (Spec("vector", "eps-ridge", 500, 14, 1e-3, 0.05), "BCD"),
    "easy-1%": (Spec("vector", "eps-ridge", 500, 14, 1e-3, 0.01), "BCD"),
    "curves": (Spec("functional", "huber", 250, 300, 1e-8, 0.3), "APGD"),
    "curves-pointwise": (Spec("functional", "huber-1", 250, 300, 1e-8, 0.3), "APGD"),
}


@pytest.mark.parametrize("case", CASES)
def test_claim(case):
    spec, rival = CASES[case]
    member = build(spec)
    auto = run(member, "Auto", tol=1e-6)
    other = run(member, rival, tol=1e-6, limit=20 * auto.seconds)
    for record in (auto, other):
        record.extra["case"] = case
        keep("claims", record)
    assert auto.gap <= 1e-6
