"""The default search with and without a learned metric, on the tables of ``defaults.py``.

    python benchmarks/learned_metric.py [--splits 1] [--sets edm wq ...] [--methods full forest ...] [--inner] [--dirty]
        [--rows 50]

Splits, units and errors are those of ``defaults.py``: at most 1125 training rows. Everything is chosen on the training
part, of which ``--rows`` keeps the first so many. ``--dirty`` adds gross errors to the targets of a tenth of the
training rows; test rows stay clean. Methods that are not named come from the file of an earlier run. ``xrfm`` needs the
package of this name.
"""

import argparse
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from defaults import TABLES, Rival, boosting, default, forest, line, scaled, splits, timed
from measure import FOLDER
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.multioutput import MultiOutputRegressor

from fenchel import LearnedMetricRegressor


def learned(metric: str) -> Rival:
    def run(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
        model = LearnedMetricRegressor(metric=metric).fit(X, Y)
        notes.append(model.best_round_)
        return np.asarray(model.predict(X_new)).reshape(len(X_new), -1)

    return run


def absolute_boosting(X: np.ndarray, Y: np.ndarray) -> Any:
    """Return boosted trees that minimise absolute errors."""
    return MultiOutputRegressor(HistGradientBoostingRegressor(loss="absolute_error", random_state=0)).fit(X, Y)


class MedianForest:
    """A random forest that predicts the weighted median of the training outputs in the leaves of an input."""

    def __init__(self, X: np.ndarray, Y: np.ndarray) -> None:
        self.model = RandomForestRegressor(min_samples_leaf=3, random_state=0).fit(X, Y if Y.shape[1] > 1 else Y[:, 0])
        self.leaves, self.Y = self.model.apply(X), Y

    def predict(self, X: np.ndarray) -> np.ndarray:
        found = np.empty((len(X), self.Y.shape[1]))
        order = np.argsort(self.Y, axis=0)
        for i, leaves in enumerate(self.model.apply(X)):
            shared = self.leaves == leaves
            weights = np.mean(shared / np.sum(shared, axis=0), axis=1)
            for j in range(self.Y.shape[1]):
                place = np.searchsorted(np.cumsum(weights[order[:, j]]), 0.5)
                found[i, j] = self.Y[order[min(place, len(weights) - 1), j], j]
        return found


class RecursiveFeatures:
    """The package xrfm: bandwidth, ridge and form of the metric by the mean absolute error of a fifth of the rows."""

    def __init__(self, X: np.ndarray, Y: np.ndarray) -> None:
        import torch
        from xrfm import xRFM

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.center = np.median(Y, axis=0)
        rows = np.random.default_rng(0).permutation(len(X))
        held = max(2, len(X) // 5)
        train, test = ((X[part], (Y - self.center)[part]) for part in (rows[held:], rows[:held]))
        trials = list[tuple[float, int, Any]]()
        for settings in product((False, True), (2.0, 5.0, 10.0, 20.0), (1e-3, 1e-2, 1e-1, 1.0, 10.0)):
            names = {"device": "cpu", "tuning_metric": "mse", "verbose": False, "random_state": 0}
            model = xRFM(rfm_params=self.parameters(*settings), **names)
            model.fit(*(part.astype(np.float32) for part in (*train, *test)))
            error = float(np.mean(np.abs(_rows(model.predict(test[0].astype(np.float32)), Y.shape[1]) - test[1])))
            trials.append((error, len(trials), model))
        self.model = min(trial for trial in trials if np.isfinite(trial[0]))[2]

    @staticmethod
    def parameters(diagonal: bool, bandwidth: float, ridge: float) -> dict[str, dict[str, Any]]:
        model = {"kernel": "l2", "bandwidth": bandwidth, "exponent": 1.0, "diag": diagonal}
        fit = {"reg": ridge, "iters": 3, "verbose": False, "early_stop_rfm": True}
        return {"model": model | {"bandwidth_mode": "constant"}, "fit": fit}

    def predict(self, X: np.ndarray) -> np.ndarray:
        return _rows(self.model.predict(X.astype(np.float32)), len(self.center)) + self.center


def _rows(values: Any, width: int) -> np.ndarray:
    return np.asarray(values).reshape(-1, width)


notes: list[float] = []  # rounds of the last fits, for the record
OURS: dict[str, Rival] = {
    "default": default,
    "diagonal": learned("diagonal"),
    "full": learned("full"),
}
RIVALS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "forest": forest,
    "median forest": MedianForest,
    "boosting": boosting,
    "absolute boosting": absolute_boosting,
    "xrfm": RecursiveFeatures,
}
METHODS = OURS | {name: scaled(fit) for name, fit in RIVALS.items()}


def summary(found: dict[str, Any]) -> str:
    """Return geometric means of ratios to the default, of errors and of seconds, and mean ranks among all methods."""
    methods = [method for method in METHODS if all(method in runs for runs in found.values())]
    errors, seconds = (
        np.array([[run[key] for runs in found.values() for run in runs[method]] for method in methods])
        for key in ("error", "seconds")
    )
    ranks = np.mean(rankdata(errors, axis=0), axis=1)
    text = []
    for method, rank, row, times in zip(methods, ranks, errors, seconds, strict=True):
        logs = np.log(row / errors[0])
        spread = np.std(logs, ddof=1) / np.sqrt(len(logs)) if len(logs) > 1 else 0.0
        time = np.exp(np.mean(np.log(times / seconds[0])))
        text.append(
            f"{method}: error {np.exp(np.mean(logs)):.3f} ± {spread:.3f} ({np.exp(np.min(logs)):.3f} to "
            f"{np.exp(np.max(logs)):.3f}), rank {rank:.1f}, seconds {time:.1f}, {len(logs)} fits"
        )
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(TABLES))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--methods", nargs="*", default=list(OURS), choices=list(METHODS))
    parser.add_argument("--inner", action="store_true")
    parser.add_argument("--dirty", action="store_true")
    parser.add_argument("--rows", type=int, default=None)
    options = parser.parse_args()
    kind = f"{'_inner' if options.inner else ''}{'_dirty' if options.dirty else ''}"
    file = Path(FOLDER) / f"learned_metric{kind}{'' if options.rows is None else f'_{options.rows}'}.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for name in options.sets:
        found.setdefault(name, {})
        notes.clear()
        for method in options.methods:
            whole = splits(name, options.splits, options.inner)
            parts = [(X[: options.rows], Y[: options.rows], *test) for X, Y, *test in whole]
            runs = [timed(METHODS[method], split, name, seed, options.dirty) for seed, split in enumerate(parts)]
            found[name][method] = runs
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found))
        print(line(name, found[name]), f"notes {notes}", flush=True)
    print(summary({name: found[name] for name in options.sets}))


if __name__ == "__main__":
    main()
