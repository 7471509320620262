"""Test errors of searches without arguments over those of an exhaustive search, on nineteen data sets.

    python benchmarks/exhaustive.py [--jobs 1] [--seeds 1] [--sets smooth ...] [--quick]

The exhaustive search compares the same kernels, all of them on all training samples, for both kinds of loss, and every
pair of loss and ``lam`` by folds that are solved to ``tol``. The other one halves the candidates on parts of at most
1000 samples, compares outputs in few coordinates, and solves folds loosely. The error is the root mean squared error
over that of the mean: of simulated data against noise-free outputs at 2000 new inputs, of tables and curves on rows
that were held out. Simulated data have 2000 training samples, the others three quarters of their rows, at most 2000.
Jobs are processes of one thread.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from unittest.mock import patch

import numpy as np
from defaults import CURVES, TABLES, Split, relative_error
from sizes import N_TEST, smooth
from threadpoolctl import threadpool_limits

from fenchel import FunctionalRegressorCV, OperatorKernelRegressorCV

LARGEST, QUICK = 2000, 150
Truth = Callable[[np.ndarray], np.ndarray]  # of inputs


def simulated(truth: Truth, d: int, noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]) -> Callable:
    """Return a function of the number of samples and a seed, which draws uniform inputs and noisy outputs."""

    def drawn(n: int, seed: int) -> Split:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (n + N_TEST, d))
        Y = truth(X)
        Y = Y / np.std(Y, axis=0)
        return X[:n], Y[:n] + noise(rng, Y[:n].shape), X[n:], Y[n:]

    return drawn


def normal(size: float) -> Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]:
    return lambda rng, shape: size * rng.standard_normal(shape)


def spoilt(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return noise, and gross errors of one sign in a tenth of the rows."""
    wrong = rng.random((shape[0], 1)) < 0.1
    return 0.1 * rng.standard_normal(shape) + wrong * rng.uniform(3, 10, (shape[0], 1))


def waves(X: np.ndarray) -> np.ndarray:
    """Return two smooth functions of the first three columns."""
    return np.column_stack([np.sin(3 * X[:, 0]) * X[:, 1], np.cos(4 * X[:, 2]) + X[:, 0]])


def rough(X: np.ndarray) -> np.ndarray:
    """Return a function with kinks everywhere, of three columns."""
    return sum(np.abs(((X[:, :3] * 2**k) % 1) - 0.5) * 2**-k for k in range(6)).sum(axis=1)[:, None]


def steps(X: np.ndarray) -> np.ndarray:
    """Return piecewise constant functions of four columns."""
    return np.column_stack([(X[:, 0] > 0.2) + 2.0 * (X[:, 1] > X[:, 2]), np.floor(3 * X[:, 3])])


def plane(X: np.ndarray) -> np.ndarray:
    return X @ np.linspace(-1, 1, X.shape[1])[:, None]


def many(X: np.ndarray) -> np.ndarray:
    """Return sixty smooth functions of four columns."""
    directions = np.random.default_rng(7).standard_normal((4, 60))
    return np.sin(2 * X @ directions + np.arange(60))


SIMULATED = {
    "smooth": smooth,
    "two waves": simulated(waves, 4, normal(0.3)),
    "nearly exact": simulated(waves, 4, normal(0.001)),
    "rough": simulated(rough, 3, normal(0.3)),
    "steps": simulated(steps, 4, normal(0.3)),
    "heavy tails": simulated(waves, 4, lambda rng, shape: 0.3 * rng.standard_t(1.5, shape)),
    "a tenth wrong": simulated(waves, 4, spoilt),
    "fifty inputs": simulated(waves, 50, normal(0.3)),
    "plane": simulated(plane, 20, normal(1.0)),
    "one input": simulated(lambda X: np.sin(12 * X**2), 1, normal(0.5)),
    "sixty outputs": simulated(many, 4, normal(1.0)),
}
REAL = ("diabetes", "linnerud", "bike", "rf1", "wq", "atp1d", "air", "dti")


def split(name: str, seed: int, most: int) -> Split:
    """Return training and test inputs and outputs of a data set."""
    if name in SIMULATED:
        return SIMULATED[name](most, seed)
    X, Y = (TABLES | CURVES)[name]()
    rows = np.random.default_rng(seed).permutation(len(X))
    cut = min(most, 3 * len(rows) // 4)
    train, test = rows[:cut], rows[cut : cut + N_TEST]
    return X[train], Y[train], X[test], Y[test]


def measured(name: str, data: Split) -> tuple[float, float]:
    """Return the CPU seconds of a search, and the error of its predictions."""
    X, Y, X_new, truth = data
    start = time.process_time()
    model = (FunctionalRegressorCV if name in CURVES else OperatorKernelRegressorCV)(approximation=None)
    found = model.fit(X, Y).predict(X_new)
    return time.process_time() - start, relative_error(name, found.reshape(truth.shape), Y, truth)


def compared(job: tuple[str, int, int]) -> tuple[str, int, int, list[tuple[float, float]]]:
    """Return the data set, seed and number of samples, and seconds and errors of both searches."""
    name, seed, most = job
    data = split(name, seed, most)
    race = "fenchel.search.race."
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        ours = measured(name, data)
        with (
            patch(f"{race}race._KEPT", {}),  # every kernel on all samples
            patch(f"{race}ridge._LEADING", 10**6),  # in all coordinates
            patch(f"{race}search.MOST_SAMPLES", 10**6),
            patch("fenchel.search.search._MANY", 10**6),  # folds to tol
            patch.object(OperatorKernelRegressorCV, "most_raced", 10**6),
        ):
            return name, seed, len(data[0]), [ours, measured(name, data)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sets", nargs="*", default=[*SIMULATED, *REAL], choices=[*SIMULATED, *REAL])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    jobs = [
        (name, seed, QUICK if options.quick else LARGEST) for seed, name in product(range(options.seeds), options.sets)
    ]
    print(f"{'data set':16}{'draw':>5}{'n':>6}{'CPU s':>8}{'of all':>8}{'error':>9}{'of all':>9}{'ratio':>8}")
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, seed, n, ((seconds, error), (all_seconds, all_error)) in pool.map(compared, jobs):
            numbers = f"{seconds:8.1f}{all_seconds:8.1f}{error:9.4f}{all_error:9.4f}{error / all_error:8.3f}"
            print(f"{name:16}{seed:5}{n:6}{numbers}", flush=True)


if __name__ == "__main__":
    main()
