"""CPU time, size of the saved model and time to import, against another commit.

    git worktree add ../old COMMIT
    python benchmarks/old_and_new.py ../old [--repeats 5] [--cases vectors dti ...]

The cases are every class with its own search on 200 samples, a search for 1000 curves of 100 points, and the training
parts of the data sets of ``defaults.py``. Each repetition starts a new process for the old code, then one for the new,
in which every case is fitted once, after small fits that load what is loaded late. The ratio of a case is the median of
those of its repetitions.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from defaults import CURVES, TABLES, splits

import fenchel

FLOOR = 1e-9  # seconds, for a clock that did not move
Data = tuple[np.ndarray, np.ndarray]


def sample(n: int, points: int = 20) -> dict[str, np.ndarray]:
    """Return three inputs with two outputs, a curve and five labels for each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    noise = rng.normal(size=(n, points))
    return {
        "X": X,
        "vectors": np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * noise[:, :2],
        "curves": np.sin(X[:, :1] + 3 * np.linspace(0, 1, points)) + 0.1 * noise,
        "labels": (rng.random((n, 5)) < 0.4).astype(int),
    }


MADE: dict[str, tuple[Any, str, int, int]] = {
    "Huber alone": (fenchel.OperatorKernelRegressor(loss="huber"), "vectors", 200, 20),
    "vectors": (fenchel.OperatorKernelRegressorCV(), "vectors", 200, 20),
    "curves": (fenchel.FunctionalRegressorCV(), "curves", 200, 20),
    "quantiles": (fenchel.QuantileFunctionRegressorCV(), "vectors", 200, 20),
    "labels": (fenchel.StructuredPredictorCV(), "labels", 200, 20),
    "bands": (fenchel.ConformalRegressor(fenchel.FunctionalRegressorCV()), "curves", 200, 20),
    "1000 curves": (fenchel.FunctionalRegressorCV(), "curves", 1000, 100),
}
CASES = list(MADE) + list(TABLES) + list(CURVES)


def case(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the estimator of a case and its sample."""
    if name in MADE:
        model, outputs, n, points = MADE[name]
        data = sample(n, points)
        return model, data["X"], data[outputs][:, 0] if name == "quantiles" else data[outputs]
    X, Y, *_ = splits(name, 1, inner=False)[0]
    return (fenchel.FunctionalRegressorCV() if X.ndim == 3 else fenchel.OperatorKernelRegressorCV()), X, Y


def measure(name: str) -> tuple[float, int]:
    """Return the CPU seconds of one fit and the bytes of its model."""
    model, X, Y = case(name)
    start = time.process_time()
    model.fit(X, Y)
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        fenchel.save(model, Path(folder) / "model")
        return seconds, (Path(folder) / "model").stat().st_size


def measure_all(names: list[str]) -> dict[str, tuple[float, int]]:
    """Return the numbers of each case in this process."""
    warnings.simplefilter("ignore")
    small = sample(12)
    for outputs, model in (
        ("vectors", fenchel.OperatorKernelRegressorCV()),
        ("curves", fenchel.FunctionalRegressorCV()),
    ):
        model.fit(small["X"], small[outputs])
    return {name: measure(name) for name in names}


def run(tree: Path, *command: str) -> str:
    """Return what a new process prints with the library of a tree."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=True
    ).stdout


def seconds_to_import(tree: Path) -> float:
    """Return the CPU seconds of a process that imports the library."""
    return float(run(tree, "-c", "import fenchel, time; print(time.process_time())"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path, help="a checkout of the other commit")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cases", nargs="*", default=CASES, choices=CASES)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure_all(options.cases)))
        return
    trees, command = (options.old.resolve(), Path(__file__).parents[1]), [__file__, ".", "--here", "--cases"]
    runs = [[json.loads(run(tree, *command, *options.cases)) for tree in trees] for _ in range(options.repeats)]
    ratios = []
    print(f"{'case':14}{'old s':>8}{'new s':>8}{'ratio':>7}{'least':>7}{'most':>7}{'size':>7}")
    for name in options.cases:
        seconds = np.array([[each[name][0] for each in pair] for pair in runs])  # (repeats, trees)
        found = seconds[:, 1] / np.maximum(seconds[:, 0], FLOOR)
        ratios.append(float(np.median(found)))
        size = runs[0][1][name][1] / runs[0][0][name][1]
        old, new = np.median(seconds, axis=0)
        print(f"{name:14}{old:8.3f}{new:8.3f}{ratios[-1]:7.2f}{found.min():7.2f}{found.max():7.2f}{size:7.3f}")
    print(f"geometric mean {statistics.geometric_mean(ratios):.3f}, worst {max(ratios):.2f}")
    imports = np.median([[seconds_to_import(tree) for tree in trees] for _ in range(options.repeats)], axis=0)
    print(f"import: old {imports[0]:.2f} s, new {imports[1]:.2f} s")


if __name__ == "__main__":
    main()
