"""Samples in which nothing is wrong: how often ``OutlierReport`` flags some, and what it finds of planted outliers.

    python benchmarks/nulls.py [--draws 1000] [--curves 30] [--designs white smooth ...] [--seed 0]

Prints for each design the share of draws with a flag at a false discovery rate of .1, by the fitted tails alone and by
the p-values, with the standard error; the Kolmogorov-Smirnov p-value that the p-values are uniform (one sample of each
draw); and the share of planted outliers that is found, by both. ``--draws`` is the number of draws of one output, whose
simulated samples are shared, and ``--curves`` that of the others. A tenth of the samples is planted in each draw of
curves and in at most a hundred draws of one output: moved by ten deviations of the output or, as a whole, by four
deviations of a curve.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.stats import kstest

from fenchel import OperatorKernelRegressor, OutlierReport
from fenchel.kernels import Gaussian
from fenchel.resample.residuals import Residuals

FDR = 0.1
PLANTED = 100  # draws of one output with planted outliers
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def white(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_normal((n, p))


def brownian(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_normal((n, p)).cumsum(axis=1)


def smooth(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    k, t = np.arange(1, 6)[:, None], np.linspace(0, 1, p)
    return rng.standard_normal((n, 5)) @ (np.sin(np.pi * k * t) / k) + 0.1 * rng.standard_normal((n, p))


def student(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_t(5, (n, p))


def smooth_student(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return smooth(rng, n, p) / np.sqrt(rng.chisquare(5, (n, 1)) / 5)


def report_of(rows: np.ndarray, kind: str) -> OutlierReport:
    """Return the report of curves, of given residuals, or of a model of one output."""
    if kind == "curves":
        return OutlierReport.of_curves(rows)
    if kind == "residuals":
        return OutlierReport.of_residuals(Residuals(rows, None, rows.shape[1:]), is_marginal=False)
    X = np.linspace(-2, 2, len(rows))[:, None]
    y = np.sin(2 * X[:, 0]) + 0.1 * rows[:, 0]
    return OutlierReport.of(OperatorKernelRegressor(Gaussian(1.0), lam=1e-3).fit(X, y), X, y)


DESIGNS: dict[str, tuple[Draw, int, int, str]] = {
    "one output, Gaussian, 12": (white, 12, 1, "residuals"),
    "one output, Gaussian, 30": (white, 30, 1, "residuals"),
    "one output, Gaussian, 100": (white, 100, 1, "residuals"),
    "one output, Gaussian, 500": (white, 500, 1, "residuals"),
    "one output, t5, 30": (student, 30, 1, "residuals"),
    "one output, t5, 200": (student, 200, 1, "residuals"),
    "model of one output, 30": (white, 30, 1, "model"),
    "three outputs, 60": (white, 60, 3, "residuals"),
    "white, 15 x 100": (white, 15, 100, "curves"),
    "white, 30 x 30": (white, 30, 30, "curves"),
    "white, 12 x 500": (white, 12, 500, "curves"),
    "white, t5, 60 x 30": (student, 60, 30, "curves"),
    "Brownian, 60 x 30": (brownian, 60, 30, "curves"),
    "Brownian, 500 x 10": (brownian, 500, 10, "curves"),
    "smooth, 30 x 30": (smooth, 30, 30, "curves"),
    "smooth, rows t5, 80 x 50": (smooth_student, 80, 50, "curves"),
    "smooth, 200 x 100": (smooth, 200, 100, "curves"),
}


def planted(rng: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of which a tenth are wrong, one after every ten, and which."""
    wrong, size = np.arange(len(rows)) % 10 == 5, 10.0 if rows.shape[1] == 1 else 4.0
    return rows + wrong[:, None] * size * rows.std(axis=0) * rng.choice([-1.0, 1.0], (len(rows), 1)), wrong


def measured(name: str, draws: int, seed: int) -> str:
    """Return the line of one design."""
    draw, n, p, kind = DESIGNS[name]
    any_flag, p_values, found = [], [], []
    for k in range(draws):
        rng = np.random.default_rng([seed + k, n, p])
        rows = draw(rng, n, p)
        report = report_of(rows, kind)
        any_flag.append([report.suspects(FDR).any(), report.flagged(FDR).any()])
        p_values.append(report.p_values[rng.integers(n)])
        if k < PLANTED:
            rows, wrong = planted(rng, rows)
            report = report_of(rows, kind)
            found.append([report.suspects(FDR)[wrong].mean(), report.flagged(FDR)[wrong].mean()])
    raw, share = np.mean(any_flag, axis=0)
    error, uniform, power = np.sqrt(0.09 / draws), kstest(p_values, "uniform").pvalue, np.mean(found, axis=0)
    return f"{draws} | {raw:.2f} | {share:.3f} ({error:.3f}) | {uniform:.2f} | {power[0]:.2f} | {power[1]:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--curves", type=int, default=30)
    parser.add_argument("--designs", nargs="+", default=[""], help="beginnings of names")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print("design | draws | fitted tails | p-values | uniform | planted found: fitted tails | p-values | seconds each")
    for name, (_, _, p, kind) in DESIGNS.items():
        if name.startswith(tuple(chosen.designs)):
            begin, draws = time.process_time(), chosen.draws if p == 1 and kind == "residuals" else chosen.curves
            line = measured(name, draws, chosen.seed)
            print(f"{name} | {line} | {(time.process_time() - begin) / draws:.2f}", flush=True)


if __name__ == "__main__":
    main()
