"""Tables as they come: clean, with wrong cells, with missing target cells; ours without arguments beside tuned rivals.

    python benchmarks/tables.py [--splits 2] [--sets edm wq ...] [--situations clean wrong ...] [--methods ours ...]
                                [--packages FOLDER] [--cache FILE] [--largest 600] [--jobs 1] [--seconds 3600]

``clean`` is the table as it is. ``wrong`` adds 5 to 15 deviations, of random sign, to a tenth of the training cells;
rivals are then their robust forms. ``missing`` hides half of the training cells: ours on all of them ("joint"), one
model for each target on the rows that have it ("one by one"), and ours with nothing hidden ("whole"). ``trees``
compares ours with ``leaves=False`` on tables as they are, ``logarithms`` with a search that never takes logarithms of
skewed outputs. The error is the
root mean squared error over that of the training mean, averaged over the targets; test rows are clean and whole.
Records are kept, and a run only makes those that are missing. ``xRFM`` needs ``pip install xrfm torch``.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from defaults import FOLDS, kernel_ridge, relative_error, scaled
from joblib import Parallel, delayed
from measure import FOLDER
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.multioutput import MultiOutputRegressor
from table_sets import NAMES, split, tables

from fenchel import OperatorKernelRegressorCV
from fenchel.search.choice import KernelChoice
from fenchel.search.search import Search

Fit = Callable[[np.ndarray, np.ndarray], Any]
FILE = Path(FOLDER) / "tables.jsonl"
THREE = KFold(3, shuffle=True, random_state=0)
_WILD = 5.0  # robust deviations from the median beyond which a robust rival cuts a target
SITUATIONS = ("clean", "wrong", "missing", "trees", "logarithms")


def cut(Y: np.ndarray) -> np.ndarray:
    """Return targets within so many robust deviations of the median."""
    middle = np.median(Y, axis=0)
    reach = _WILD * 1.4826 * np.median(np.abs(Y - middle), axis=0)
    return np.where(reach > 0, np.clip(Y, middle - reach, middle + reach), Y)


def forest(criterion: str) -> Fit:
    grid = {"min_samples_leaf": [1, 3, 8], "max_features": [0.33, 1.0]}

    def fit(X: np.ndarray, Y: np.ndarray) -> Any:
        scoring = "neg_mean_squared_error" if criterion == "squared_error" else "neg_mean_absolute_error"
        model = RandomForestRegressor(criterion=criterion, random_state=0)
        return GridSearchCV(model, grid, cv=THREE, scoring=scoring).fit(X, Y if Y.shape[1] > 1 else Y[:, 0])

    return fit


def boosting(loss: str) -> Fit:
    grid = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [5, 31]}

    def fit(X: np.ndarray, Y: np.ndarray) -> Any:
        scoring = "neg_mean_squared_error" if loss == "squared_error" else "neg_mean_absolute_error"
        model = HistGradientBoostingRegressor(loss=loss, max_iter=200, min_samples_leaf=10, random_state=0)
        return MultiOutputRegressor(GridSearchCV(model, grid, cv=THREE, scoring=scoring)).fit(X, Y)

    return fit


def robust_ridge(X: np.ndarray, Y: np.ndarray) -> Any:
    gammas = np.logspace(-2, 2, 9) / X.shape[1]
    grid = {"kernel": ["rbf", "laplacian"], "gamma": gammas, "alpha": np.logspace(-6, 1, 8)}
    return GridSearchCV(KernelRidge(), grid, cv=FOLDS, scoring="neg_mean_absolute_error").fit(X, cut(Y))


def xrfm(robust: bool) -> Fit:
    """Return xRFM with its own early stopping, the best of six settings by a quarter of the rows, then refitted."""

    def fit(X: np.ndarray, Y: np.ndarray) -> Any:
        import torch
        from xrfm import xRFM

        torch.set_num_threads(1)
        Y = cut(Y) if robust else Y
        parts = train_test_split(X, Y, test_size=0.25, random_state=0)
        X_fit, X_held, Y_fit, Y_held = (torch.tensor(part, dtype=torch.float32) for part in parts)
        best: tuple[float, Any] = (np.inf, None)
        for width, reg in product((3.0, 10.0, 30.0), (1e-3, 1e-1)):
            settings = {
                "model": {
                    "kernel": "l2",
                    "bandwidth": width,
                    "exponent": 1.0,
                    "diag": True,
                    "bandwidth_mode": "constant",
                },
                "fit": {"reg": reg, "iters": 4, "verbose": False, "early_stop_rfm": True},
            }
            model = xRFM(rfm_params=settings, device=torch.device("cpu"), tuning_metric="mse", verbose=False)
            model.fit(X_fit, Y_fit, X_held, Y_held)
            errors = (np.asarray(model.predict(X_held)).reshape(len(X_held), -1) - Y_held.numpy()) ** 2
            error = float(np.mean(np.sqrt(errors) if robust else errors))
            best = min(best, (error, model), key=lambda pair: pair[0])
        return Single(best[1])

    return fit


class Single:
    """A model in float32."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: np.ndarray) -> np.ndarray:
        import torch

        return np.asarray(self.model.predict(torch.tensor(X, dtype=torch.float32)))


def ours(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    return np.asarray(OperatorKernelRegressorCV().fit(X, Y).predict(X_new)).reshape(len(X_new), -1)


def smooth(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    return np.asarray(OperatorKernelRegressorCV(leaves=False).fit(X, Y).predict(X_new)).reshape(len(X_new), -1)


class Straight(OperatorKernelRegressorCV):
    """The class without logarithms, and otherwise the same."""

    def _with_logarithms(self, choice: KernelChoice, search: Search) -> KernelChoice:
        return choice


def straight(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    return np.asarray(Straight().fit(X, Y).predict(X_new)).reshape(len(X_new), -1)


def one_by_one(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    known = ~np.isnan(Y)
    return np.hstack([ours(X[seen], y[seen, None], X_new) for y, seen in zip(Y.T, known.T, strict=True)])


METHODS: dict[str, dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]] = {
    "clean": {
        "ours": ours,
        "boosting": scaled(boosting("squared_error")),
        "forest": scaled(forest("squared_error")),
        "KernelRidge": scaled(kernel_ridge),
        "xRFM": scaled(xrfm(False)),
    },
    "wrong": {
        "ours": ours,
        "boosting": scaled(boosting("absolute_error")),
        "forest": scaled(forest("absolute_error")),
        "KernelRidge": scaled(robust_ridge),
        "xRFM": scaled(xrfm(True)),
    },
    "missing": {"joint": ours, "one by one": one_by_one, "whole": ours},
    "trees": {"ours": ours, "without trees": smooth},
    "logarithms": {"ours": ours, "without logarithms": straight},
}


def spoiled(Y: np.ndarray, situation: str, method: str, seed: int) -> np.ndarray:
    """Return the training targets of a situation."""
    rng = np.random.default_rng(1000 + seed)
    if situation == "wrong":
        sizes = rng.uniform(5, 15, Y.shape) * rng.choice([-1, 1], Y.shape)
        return Y + (rng.random(Y.shape) < 0.1) * sizes * np.std(Y, axis=0)
    if situation == "missing" and method != "whole":
        hidden = rng.random(Y.shape) < 0.5
        hidden[np.all(hidden, axis=1), 0] = False
        return np.where(hidden, np.nan, Y)
    return Y


def record(table: tuple[np.ndarray, np.ndarray], key: tuple[str, int, str, str], largest: int) -> dict[str, Any]:
    """Return the error and the CPU seconds of one method on one split."""
    name, seed, situation, method = key
    X, Y, X_new, Y_new = split(*table, seed, largest)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = METHODS[situation][method](X, spoiled(Y, situation, method, seed), X_new)
            error = relative_error(name, found, Y, Y_new)
        except Exception as fault:  # a method that fails is told, not left out
            error, found = float("nan"), fault
    why = {} if np.isfinite(error) else {"fault": repr(found)[:200]}
    return {"key": key, "error": error, "seconds": time.process_time() - start, **why}


def missing_keys(options: argparse.Namespace, found: dict[str, tuple[np.ndarray, np.ndarray]]) -> Iterator[Any]:
    """Yield what is not yet recorded, first splits first."""
    done = {tuple(one["key"]) for one in records()}
    for seed, situation, name in product(range(options.splits), options.situations, options.sets):
        for method in METHODS[situation]:
            is_wanted = not options.methods or method in options.methods
            if situation == "missing" and found[name][1].shape[1] < 2:
                continue
            if is_wanted and (name, seed, situation, method) not in done:
                yield name, seed, situation, method


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []


def errors(situation: str, names: list[str]) -> dict[str, dict[str, np.ndarray]]:
    """Return the errors of each method on the splits of each set, of those splits that all methods have."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for one in records():
        name, seed, of, method = one["key"]
        if of == situation and name in names and method in METHODS[situation] and np.isfinite(one["error"]):
            found.setdefault(name, {}).setdefault(method, {})[seed] = one["error"]
    kept: dict[str, dict[str, np.ndarray]] = {method: {} for method in METHODS[situation]}
    for name, by_method in found.items():
        common = sorted(set.intersection(*map(set, by_method.values())))
        for method, by_seed in by_method.items():
            kept[method][name] = np.array([by_seed[seed] for seed in common])
    return kept


def report(names: list[str], situation: str) -> None:
    """Print set by set means with standard errors, and geometric means of ratios."""
    found = errors(situation, names)
    first, *others = found
    print(f"\n{situation}: mean error and its standard error over the splits")
    means: dict[str, dict[str, float]] = {}
    for name in names:
        cells = []
        for method, by_set in found.items():
            if len(values := by_set.get(name, np.array([]))):
                spread = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
                means.setdefault(name, {})[method] = float(np.mean(values))
                cells.append(f"{method} {np.mean(values):.3f}±{spread:.3f} ({len(values)})")
        if cells:
            print(f"  {name:11s} " + "  ".join(cells))
    for method in others:
        ratios = [row[first] / row[method] for row in means.values() if {first, method} <= row.keys()]
        worst = max(ratios, default=np.nan)
        print(f"  {first} over {method}: {geometric(ratios):.3f} on {len(ratios)} sets, worst {worst:.3f}")
        pairs = {name: np.divide(values, found[method][name]) for name, values in found[first].items()}
        other = {name: [ratio for ratio in row if ratio != 1] for name, row in pairs.items() if np.any(row != 1)}
        each = ", ".join(f"{name} {geometric(row):.3f} ({len(row)})" for name, row in other.items())
        print(f"    where they differ (splits): {geometric(list(map(geometric, other.values()))):.3f}; {each}")
    if situation in ("clean", "wrong"):
        best = [
            row[first] / np.nanmin([row[key] for key in others if key in row])
            for row in means.values()
            if first in row and any(key in row for key in others)
        ]
        print(f"  {first} over the best rival of each set: {geometric(best):.3f} on {len(best)} sets")


def geometric(ratios: list[float]) -> float:
    known = [ratio for ratio in ratios if np.isfinite(ratio)]
    return float(np.exp(np.mean(np.log(known)))) if known else np.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=NAMES)
    parser.add_argument("--situations", nargs="*", default=list(SITUATIONS))
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--largest", type=int, default=600)
    parser.add_argument("--packages", type=Path, default=Path(np.__file__).parent.parent)
    parser.add_argument("--cache", type=Path, default=FILE.with_name("tables.npz"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0)
    options = parser.parse_args()
    FILE.parent.mkdir(parents=True, exist_ok=True)
    found, end = tables(options.sets, options.packages, options.cache), time.time() + options.seconds
    jobs = (
        delayed(record)(found[key[0]], key, options.largest)
        for key in missing_keys(options, found)
        if time.time() < end
    )
    for one in Parallel(n_jobs=options.jobs, return_as="generator_unordered", pre_dispatch="n_jobs")(jobs):
        with FILE.open("a") as file:
            file.write(json.dumps(one) + "\n")
    for situation in options.situations:
        report(options.sets, situation)


if __name__ == "__main__":
    main()
