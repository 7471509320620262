"""Defaults on label sets against one-vs-rest support vector machines: Hamming losses, columns in random units.

    python benchmarks/label_sets.py [--splits 5] [--sets yeast bibtex ...] [--inner] [--no-rivals]

Every column of X is multiplied by a random factor from 1e-3 to 1e3. A set is cut to 1500 rows at random, three quarters
for training. The rival sees standardised columns; its C and gamma, the same for all labels, have the least Hamming loss
over five folds. Rivals are run once for each split and kept in a file next to the other records. ``--inner`` cuts each
training part once more and never looks at the test part: for decisions about the search.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measure import FOLDER
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fenchel import StructuredPredictorCV
from fenchel.datasets import load_bibtex, load_corel5k, load_nci_cancer, load_yeast

LARGEST = 1500
PENALTIES = (1.0, 10.0, 100.0)
WIDTHS = (0.1, 0.3, 1.0)  # gamma times the number of columns
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def whole(load: Callable[[], Any]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Return the loader of both parts of a set."""

    def found() -> tuple[np.ndarray, np.ndarray]:
        data = load()
        return np.vstack([data.X_train, data.X_test]), np.vstack([data.Y_train, data.Y_test]).astype(int)

    return found


def molecules() -> tuple[np.ndarray, np.ndarray]:
    """Return the fingerprints of molecules, and the cell lines against which they are active."""
    data = load_nci_cancer()
    return data.X.astype(float), data.Y.astype(int)


SETS = {"yeast": whole(load_yeast), "bibtex": whole(load_bibtex), "corel5k": whole(load_corel5k), "nci": molecules}


def splits(name: str, count: int, inner: bool) -> list[Split]:
    """Return training and test parts."""
    X, Y = SETS[name]()
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(X))[:LARGEST]
        units = 10 ** rng.uniform(-3, 3, X.shape[1])
        if inner:
            rows = rows[: 3 * len(rows) // 4]
        cut = 3 * len(rows) // 4
        train, test = rows[:cut], rows[cut:]
        found.append((X[train] * units, Y[train], X[test] * units, Y[test]))
    return found


def one_vs_rest(K: np.ndarray, Y: np.ndarray, K_new: np.ndarray, C: float) -> np.ndarray:
    """Return the labels by one machine each; a label that all or no training samples have is that of all others."""
    found = np.tile(Y[0], (len(K_new), 1))
    for label in np.flatnonzero(np.ptp(Y, axis=0)):
        found[:, label] = SVC(C=C, kernel="precomputed").fit(K, Y[:, label]).predict(K_new)
    return found


def machines(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Return the labels by support vector machines, with C and gamma from five folds."""
    scaler = StandardScaler().fit(X)
    X, X_new = scaler.transform(X), scaler.transform(X_new)
    folds, errors = list(KFold(5, shuffle=True, random_state=0).split(X)), {}
    for width in WIDTHS:
        K = rbf_kernel(X, gamma=width / X.shape[1])
        for C in PENALTIES:
            wrong = [one_vs_rest(K[np.ix_(a, a)], Y[a], K[np.ix_(b, a)], C) != Y[b] for a, b in folds]
            errors[width, C] = np.mean(np.concatenate(wrong))
    width, C = min(product(WIDTHS, PENALTIES), key=lambda pair: errors[pair])
    gamma = width / X.shape[1]
    return one_vs_rest(rbf_kernel(X, gamma=gamma), Y, rbf_kernel(X_new, X, gamma=gamma), C)


def default(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Return the labels by the class with cross-validation, without any argument."""
    return np.asarray(StructuredPredictorCV().fit(X, Y).predict(X_new))


def none(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Return the more frequent value of each label."""
    return np.tile(np.mean(Y, axis=0) > 0.5, (len(X_new), 1))


Method = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
RIVALS: dict[str, Method] = {"majority": none, "SVM": machines}


def timed(run: Method, split: Split) -> dict[str, float]:
    X, Y, X_new, Y_new = split
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(X, Y, X_new)
    return {"error": float(np.mean(found != Y_new)), "seconds": time.process_time() - start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--inner", action="store_true")
    parser.add_argument("--no-rivals", action="store_true")
    options = parser.parse_args()
    for name in options.sets:
        file = Path(FOLDER) / f"label_sets_{name}{'_inner' if options.inner else ''}.json"
        kept: dict[str, list[dict[str, float]]] = json.loads(file.read_text()) if file.exists() else {}
        parts = splits(name, options.splits, options.inner)
        kept["default"] = [timed(default, split) for split in parts]
        for rival, run in RIVALS.items():
            done = kept.setdefault(rival, [])
            for split in [] if options.no_rivals else parts[len(done) :]:
                done.append(timed(run, split))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(kept))
        print(line(name, kept), flush=True)


def line(name: str, found: dict[str, list[dict[str, float]]]) -> str:
    cells = []
    for method, runs in found.items():
        if not runs:
            continue
        errors = np.array([run["error"] for run in runs])
        spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
        seconds = np.mean([run["seconds"] for run in runs])
        cells.append(f"{method} {np.mean(errors):.5f}±{spread:.5f} ({seconds:.1f}s)")
    return f"{name:10s} " + "  ".join(cells)


if __name__ == "__main__":
    main()
