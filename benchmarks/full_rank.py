"""Auto against the named solvers on outputs of full rank: ``python benchmarks/full_rank.py [n ...]``.

Molecules from mass spectra with a Gaussian-Tanimoto kernel on the outputs, as in the experiment ``metabolites``: about
as many output columns as samples. Prints CPU seconds to a gap of 1e-6, a dash where a named solver had not reached it
in three times Auto's time, and the ratio of Auto's time to the best. Run it on one thread and a quiet machine.
"""

import sys

import numpy as np
from families import Member
from measure import run
from threadpoolctl import threadpool_limits

from fenchel.datasets import load_massbank
from fenchel.datasets.spectra import binned_spectra, spectrum_products
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.operators import Dense
from fenchel.papers.metabolites import OUTPUT_KERNEL
from fenchel.problem import DualProblem
from fenchel.representations import KernelOutputs
from fenchel.solvers import ClosedForm

LAMS = (1e-2, 1e-4, 1e-6, 1e-8)
NAMED = ("DouglasRachford", "RowNewton")
# loss, and the quantile of the residual norms of the square loss that is its parameter
LOSSES = {
    "huber": (Huber, 0.95),
    "huber-50": (Huber, 0.5),
    "eps-ridge": (EpsilonRidge, 0.25),
    "eps-svr": (EpsilonSVR, 0.25),
}


def molecules(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the Gram matrix of the inputs and the targets of n training molecules, evenly spaced in the table."""
    data = load_massbank()
    train = np.flatnonzero(data.fold != 0)
    rows = train[np.linspace(0, len(train) - 1, n).astype(int)]
    spectra = [data.mz, data.intensity, data.offset]
    products = [
        spectrum_products(binned_spectra(*spectra, *more))[np.ix_(rows, rows)] for more in ((), (data.precursor_mz,))
    ]
    targets = KernelOutputs(OUTPUT_KERNEL).fit(data.Y[rows].astype(float)).targets_
    return np.exp((products[0] + products[1]) / 2 - 1), targets


def main(sizes: list[int]) -> None:
    ratios = []
    for n in sizes:
        K, Y = molecules(n)
        for lam in LAMS:
            square = DualProblem.build(Dense(K), Y, Square(), lam)
            norms = np.linalg.norm(ClosedForm().solve(square).duals, axis=1)
            for name, (make, level) in LOSSES.items():
                member = Member(f"{name} n {n} lam {lam:.0e}", K, None, Y, make(float(np.quantile(norms, level))), lam)
                auto = run(member, "Auto", tol=1e-6, repeats=1)
                times = {each: run(member, each, 1e-6, 3 * auto.seconds, 1) for each in NAMED}
                reached = {each: one.seconds for each, one in times.items() if one.gap <= 1.01e-6}
                ratios.append(auto.seconds / min(reached.values(), default=np.inf))
                others = ", ".join(f"{each} {reached[each]:.2f}" if each in reached else f"{each} -" for each in NAMED)
                print(
                    f"{member.name:28s} {auto.seconds:7.2f} by {auto.chosen}, {others}, ratio {ratios[-1]:.2f}",
                    flush=True,
                )
    print(f"{len(ratios)} problems: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main([int(argument) for argument in sys.argv[1:]] or [800])
