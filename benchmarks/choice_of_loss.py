"""The choice between the square and the robust loss, on simulated samples with and without wrong targets.

    python benchmarks/choice_of_loss.py [--seeds 10] [--sizes 80 250 600] [--designs clean t3 ...]
    python benchmarks/choice_of_loss.py --cells [--seeds 5] [--sizes 200 800]

For each design: how often each loss was chosen, and the error of the default over that of the better of the two named
losses, both means over the draws. Errors are root mean squares against new targets of the same law, none of them
wrong.

``--cells``: seven outputs with nothing wrong, with a twentieth of the cells wrong by ten deviations, and with a tenth
of the rows wrong. The errors of the default, of the loss of rows and of one model for each output, and the ratio of
the first to its error with nothing wrong.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from fenchel import FunctionalRegressorCV, OperatorKernelRegressorCV
from fenchel.datasets import contaminate, make_functional
from fenchel.losses import Huber

NEW = 1000
Sample = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Law = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def signals(X: np.ndarray) -> np.ndarray:
    """Return three smooth functions of five inputs, of variance near one."""
    a = np.sin(np.pi * X[:, 0] * X[:, 1]) * 2 + 4 * (X[:, 2] - 0.5) ** 2 + X[:, 3]
    b = 2 * np.cos(3 * X[:, 0]) * X[:, 4] + X[:, 1]
    c = 3 * X[:, 2] * X[:, 3] + np.sin(4 * X[:, 4])
    return np.column_stack([a, b, c]) - [1.8, 0.6, 0.9]


def rare(X: np.ndarray, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return outputs that are large in a corner of the inputs, at one sample of twenty."""
    return f + 12 * np.clip(5 * (X[:, :1] - 0.92), 0, 1) + 0.3 * rng.standard_normal(f.shape)


LAWS: dict[str, Law] = {
    "clean": lambda X, f, rng: f + 0.3 * rng.standard_normal(f.shape),
    "noisy": lambda X, f, rng: f + 2 * rng.standard_normal(f.shape),
    "t3": lambda X, f, rng: f + 0.3 * rng.standard_t(3, f.shape),
    "noisy t3": lambda X, f, rng: f + rng.standard_t(3, f.shape),
    "log": lambda X, f, rng: np.exp(f + 0.5 * rng.standard_normal(f.shape)),
    "steep": lambda X, f, rng: np.exp(1.5 * f) + 0.1 * rng.standard_normal(f.shape),
    "long log": lambda X, f, rng: np.exp(f + rng.standard_normal(f.shape)),
    "skewed": lambda X, f, rng: f + 0.5 * np.exp(rng.standard_normal(f.shape)),
    "exponential": lambda X, f, rng: np.exp(f) * rng.exponential(size=f.shape),
    "spread": lambda X, f, rng: f + 0.5 * np.exp(2 * X[:, 1:2]) * rng.standard_normal(f.shape),
    "zeros": lambda X, f, rng: np.exp(f) * (rng.random(f.shape) < 0.3),
    "rare": rare,
}
WRONG = {"rows 5": 0.05, "rows 10": 0.1, "rows 20": 0.2}
SLIPPED = {"slipped": "clean", "slipped log": "log"}  # ten times as large in a tenth of the rows
CURVES = ("curves", "noisy curves", "flipped", "flipped gaps", "other curves")
DESIGNS = (*LAWS, *WRONG, "wrong log", *SLIPPED, *CURVES)


def table(design: str, n: int, seed: int) -> Sample:
    """Return inputs and outputs to learn from, and new ones without wrong targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n + NEW, 5))
    name = "log" if design == "wrong log" else SLIPPED.get(design, design)
    Y = LAWS.get(name, LAWS["clean"])(X, signals(X), rng)
    Y = Y[:, :1] if seed % 2 else Y
    y, y_new = Y[:n].copy(), Y[n:]
    rows = rng.permutation(n)[: int(n * WRONG.get(design, 0.1))]
    if design in WRONG or design == "wrong log":
        sizes = rng.uniform(5, 15, (len(rows), 1)) * rng.choice([-1, 1], (len(rows), 1))
        y[rows] += sizes * np.std(y, axis=0)
    elif design in SLIPPED:
        y[rows] *= 10
    return X[:n], y, X[n:], y_new


def curves(design: str, n: int, seed: int) -> Sample:
    """Return curves to learn from, and new ones without wrong curves."""
    n = min(n, 250)
    noise = 0.5 if design == "noisy curves" else 0.05
    train, new = make_functional(n, 30, noise=noise, random_state=seed), make_functional(300, 30, random_state=999)
    Y, rng = train.Y, np.random.default_rng(seed)
    if design.startswith("flipped"):
        Y = contaminate(Y, "label", 0.1, random_state=seed).Y
    elif design == "other curves":
        Y = contaminate(Y, "global", 0.1, intensity=4.0, random_state=seed).Y
    if design == "flipped gaps":
        Y = np.where(rng.uniform(size=Y.shape) < 0.5, np.nan, Y)
    return train.X[:, :, None], Y, new.X[:, :, None], new.truth


def sample(design: str, n: int, seed: int) -> Sample:
    return curves(design, n, seed) if design in CURVES else table(design, n, seed)


def error(found: np.ndarray, Y: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.mean((found.reshape(Y.shape) - Y) ** 2, axis=0) / np.var(Y, axis=0))))


def errors(design: str, n: int, seed: int) -> tuple[str, float, float, float]:
    """Return the loss that was chosen, and the errors of the default and of both named losses."""
    X, Y, X_new, Y_new = sample(design, n, seed)
    kind = FunctionalRegressorCV if X.ndim == 3 else OperatorKernelRegressorCV
    default, square, huber = (kind(losses=losses).fit(X, Y) for losses in ("auto", ["square"], [Huber("auto")]))
    found = [error(model.predict(X_new), Y_new) for model in (default, square, huber)]
    return type(default.best_loss_).__name__, *found


def outputs(n: int, seed: int, wrong: str) -> Sample:
    """Return seven outputs of six inputs with some cells or rows wrong, and new ones without."""
    rng = np.random.default_rng(seed)
    X, V, W = rng.uniform(0, 1, (n + NEW, 6)), rng.standard_normal((6, 7)), rng.standard_normal((6, 7))
    F = np.sin(X @ V + rng.uniform(0, 6, 7)) + 0.7 * X @ W
    Y = F / F.std(axis=0) + 0.15 * rng.standard_normal(F.shape)
    share, shape = {"nothing": (0.0, (n, 7)), "cells": (0.05, (n, 7)), "rows": (0.1, (n, 1))}[wrong]
    errors = rng.choice([-10, 10], shape) * (rng.random(shape) < share)
    return X[:n], Y[:n] + errors * Y[:n].std(axis=0), X[n:], Y[n:]


def one_by_one(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    return np.column_stack([OperatorKernelRegressorCV().fit(X, y).predict(X_new) for y in Y.T])


def cells(sizes: list[int], seeds: int) -> None:
    print("wrong      n   default  of rows  one by one   ratio to nothing wrong")
    for n in sizes:
        clean = 0.0
        for wrong in ("nothing", "cells", "rows"):
            runs = []
            for seed in range(seeds):
                X, Y, X_new, Y_new = outputs(n, seed, wrong)
                models = (OperatorKernelRegressorCV(losses=losses).fit(X, Y) for losses in ("auto", [Huber("auto")]))
                found = [*(model.predict(X_new) for model in models), one_by_one(X, Y, X_new)]
                runs.append([error(one, Y_new) for one in found])
            means = np.mean(runs, axis=0)
            clean = clean or means[0]
            text = "  ".join(f"{mean:.4f}" for mean in means)
            print(f"{wrong:8s} {n:4d}  {text}   {means[0] / clean:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="*", default=[80, 250, 600])
    parser.add_argument("--designs", nargs="*", default=DESIGNS)
    parser.add_argument("--cells", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.cells:
        cells(options.sizes, options.seeds)
        return
    print("design          n    Huber   default square  Huber   ratio to the better")
    for design in options.designs:
        for n in options.sizes:
            runs = [errors(design, n, seed) for seed in range(options.seeds)]
            means = np.mean([run[1:] for run in runs], axis=0)
            share = np.mean([run[0] == "Huber" for run in runs])
            text = "  ".join(f"{mean:.4f}" for mean in means)
            print(f"{design:14s} {n:4d}  {share:.2f}   {text}   {means[0] / min(means[1:]):.3f}", flush=True)


if __name__ == "__main__":
    main()
