"""Auto against the best named solver, over losses, sizes and lam: ``python benchmarks/auto.py [n ...]``.

Prints the median and the worst ratio of Auto's CPU time to the best named solver's, the problems beyond the bound, and
how far the estimates are off. Run it on one thread and a quiet machine.
"""

import itertools
import math
import sys

import numpy as np
from families import Member, Spec, build
from measure import run
from threadpoolctl import threadpool_limits

from fenchel.solvers import APGD, DouglasRachford, RowNewton, Solver
from fenchel.solvers.costs import Known

BOUND = 1.5  # times the best named solver
SIZES = (100, 300, 1000)
OUTPUTS = (1, 5, 50)
LAMS = (1e-1, 1e-2, 1e-4, 1e-6)
SHARES = (0.1, 0.5, 0.9)
LOSSES = ("huber", "eps-ridge", "eps-svr")
NAMED: dict[str, Solver] = {
    "DouglasRachford": DouglasRachford(),
    "RowNewton": RowNewton(),
    "APGD": APGD(),
}


def compared(member: Member, tol: float) -> tuple[float, str, str, dict[str, float]]:
    """Return Auto's time over the best, who ended it, who is best, and the estimates over the times."""
    auto = run(member, "Auto", tol)
    times = {name: run(member, name, tol, limit=max(0.02, 3 * auto.seconds), repeats=2) for name in NAMED}
    reached = {name: record.seconds for name, record in times.items() if record.gap <= 1.01 * tol}
    best = min(reached, key=lambda name: reached[name], default="none")
    problem = member.problem()
    known = Known.of(problem)
    errors = {name: NAMED[name].cost(problem, known).seconds / seconds for name, seconds in reached.items()}
    return auto.seconds / reached.get(best, math.inf), auto.chosen, best, errors


def main(sizes: list[int], tol: float = 1e-6) -> None:
    ratios, errors = [], {name: [] for name in NAMED}
    for n, p, loss, lam, share in itertools.product(sizes, OUTPUTS, LOSSES, LAMS, SHARES):
        spec = Spec("vector", loss, n, p, lam, share)
        ratio, chosen, best, offs = compared(build(spec), tol)
        ratios.append(ratio)
        for name, off in offs.items():
            errors[name].append(math.log(off))
        if ratio > BOUND:
            print(f"{spec!s:50s} {ratio:5.2f}  {chosen}, best {best}", flush=True)
    array = np.asarray(ratios)
    print(
        f"{len(array)} problems: median {np.median(array):.2f}, geometric mean {np.exp(np.log(array).mean()):.2f}, "
        f"worst {array.max():.2f}, {int((array > BOUND).sum())} above {BOUND}"
    )
    for name, logs in errors.items():
        print(f"{name}: estimate over time {math.exp(np.mean(logs)):.2f}, one deviation {math.exp(np.std(logs)):.2f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main([int(argument) for argument in sys.argv[1:]] or list(SIZES))
