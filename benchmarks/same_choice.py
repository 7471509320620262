"""Count the small samples whose model changes when units or the order of the rows do.

Every sample is fitted by the classes without arguments as it is, in random units of all columns and outputs, none of
them powers of two, and with shuffled rows. Choices are the kernel, the loss and lam; predictions are compared in the
deviations of the outputs.

Run with ``python -m benchmarks.same_choice [--samples 50] [--times 20]``.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator

import numpy as np

from fenchel import FunctionalRegressorCV, OperatorKernelRegressorCV, QuantileFunctionRegressorCV, StructuredPredictorCV

SAME = 1e-4  # predictions of one choice agree to this: the gap of a fit is 1e-6 at most, and duals are its root
ESTIMATORS = {
    "vectors": OperatorKernelRegressorCV,
    "curves": FunctionalRegressorCV,
    "labels": StructuredPredictorCV,
    "quantiles": QuantileFunctionRegressorCV,
}


def sample(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a small sample: smooth, linear, noise alone, of few distinct values, or with wrong outputs."""
    rng = np.random.default_rng(seed)
    n, d, p = int(rng.integers(12, 61)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) if seed % 3 else rng.integers(0, 4, (n, d)).astype(float)
    mixing = rng.standard_normal((d, p))
    kinds = [np.sin(2 * X @ mixing), X @ mixing, np.zeros((n, p)), np.round(X @ mixing), np.abs(X) @ mixing]
    Y = kinds[seed % 5] + (0.0, 0.1, 0.5)[seed % 3 if seed % 5 != 2 else 2] * rng.standard_normal((n, p))
    if seed % 4 == 0:
        Y[: n // 8] += 5 * (1 + np.std(Y))
    return X, Y


def changes(seed: int, times: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the name of a change, the rows in their new order, and the units of columns and outputs."""
    rng = np.random.default_rng(10_000 + seed)
    X, Y = sample(seed)
    rows = np.arange(len(X))
    for _ in range(times):
        yield "units", rows, 10 ** rng.uniform(-3, 3, X.shape[1]), 10 ** rng.uniform(-3, 3, Y.shape[1])
    for _ in range(times):
        yield "order", rng.permutation(len(X)), np.ones(X.shape[1]), np.ones(Y.shape[1])


def fitted(name: str, X: np.ndarray, Y: np.ndarray, new: np.ndarray, units: np.ndarray) -> tuple[object, np.ndarray]:
    """Return the choices of a fit, and its predictions in the units of the outputs."""
    model = ESTIMATORS[name]().fit(X, Y)
    trials = {key: column for key, column in (model.search_ or {}).items() if key in ("family", "width", "linear")}
    best = int(np.argmin(model.search_["error"])) if model.search_ else 0
    loss = type(model.best_loss_).__name__
    choice = loss, f"{model.best_lam_:.6g}", [column[best] for column in trials.values()]
    return choice, np.asarray(model.predict(new), dtype=float).reshape(len(new), -1) / units


def given(name: str, Y: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return outputs of the kind that a class takes, in other units, and the units of its predictions."""
    if name == "curves":  # one unit for all points of a curve
        return (Y @ np.cos(np.outer(np.arange(Y.shape[1]), np.linspace(0, 3, 8)))) * units[0], units[:1]
    if name == "labels":
        return (np.median(Y, axis=0) < Y).astype(int), np.ones(1)
    return (Y[:, 0] * units[0], units[:1]) if name == "quantiles" else (Y * units, units)


def run(name: str, n_samples: int, times: int) -> dict[str, list[tuple[int, float]]]:
    """Return, for each kind of change, the samples whose predictions moved, and by how many deviations."""
    moved: dict[str, list[tuple[int, float]]] = {"units": [], "order": []}
    for seed in range(n_samples):
        X, Y = sample(seed)
        outputs, units = given(name, Y, np.ones(Y.shape[1]))
        _, wanted = fitted(name, X, outputs, X, units)
        size = np.std(outputs, axis=0) + 1e-12
        for kind, rows, x_units, y_units in changes(seed, times):
            outputs, units = given(name, Y[rows], y_units)
            _, found = fitted(name, X[rows] * x_units, outputs, X * x_units, units)
            distance = float(np.max(np.abs(found - wanted) / size.ravel()))
            if distance > SAME:
                moved[kind].append((seed, distance))
    return moved


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=list(ESTIMATORS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.only:
        for kind, moved in run(name, options.samples, options.times).items():
            total = options.samples * options.times
            largest = max((distance for _, distance in moved), default=0.0)
            seeds = sorted({seed for seed, _ in moved})
            print(f"{name:10} {kind:6} {len(moved):4} of {total} moved, by {largest:.2g} at most; samples {seeds}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
