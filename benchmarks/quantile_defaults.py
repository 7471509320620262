"""Quantile functions without an argument against forests and boosting, on tables whose columns have random units.

    python benchmarks/quantile_defaults.py [--splits 2] [--sets edm wq ...] [--models default forest boosting] [--inner]
    python benchmarks/quantile_defaults.py --time

Sets and splits are those of ``defaults.py``: rows cut to 1500, a random factor from 1e-3 to 1e3 for every column. Every
output is a problem of its own; of a set with more than eight outputs the first eight are taken. Curves as inputs are
vectors of all their points. Models predict the 19 levels .05, .1, ..., .95: ``QuantileFunctionRegressorCV()``,
``quantile_forest.RandomForestQuantileRegressor()``, and ``HistGradientBoostingRegressor(loss="quantile")`` for each
level, sorted. The error is the mean pinball loss; ratios are geometric means over the outputs of a set of the ratios of
errors averaged over the splits. The coverage is that of the interval between the first and the last level, over all
test rows of a set. Records are kept in a file next to the others; ``default`` is always run again. ``--inner`` cuts
each training part once more and never looks at the test part. ``--time`` fits a sample of 1000 rows.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from defaults import MULAN, TABLES, flat, splits
from measure import FOLDER
from sklearn.ensemble import HistGradientBoostingRegressor

from fenchel import QuantileFunctionRegressorCV
from fenchel.metrics import coverage, pinball_loss

LEVELS = np.arange(1, 20) / 20
MOST = 8  # outputs of a set
SETS = (*MULAN, "diabetes", "linnerud", "air", "bike_days")
Model = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def default(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    return np.asarray(QuantileFunctionRegressorCV().fit(X, y).predict(X_new, LEVELS))


def forest(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(random_state=0).fit(X, y)
    return np.asarray(model.predict(X_new, quantiles=LEVELS.tolist()))


def boosting(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    found = []
    for level in LEVELS:
        model = HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)
        found.append(model.fit(X, y).predict(X_new))
    return np.sort(np.stack(found, axis=1), axis=1)


MODELS: dict[str, Model] = {"default": default, "forest": forest, "boosting": boosting}


def problems(name: str, count: int, inner: bool) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yield a key and the data of every split and output of a set."""
    for seed, (X, Y, X_new, Y_new) in enumerate(splits(name, count, inner)):
        for j in range(min(MOST, Y.shape[1])):
            yield f"{j}/{seed}", (flat(X), Y[:, j], flat(X_new), Y_new[:, j])


def measured(run: Model, data: tuple[np.ndarray, ...]) -> dict[str, float]:
    X, y, X_new, y_new = data
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(X, y, X_new)
    seconds = time.process_time() - start
    covered = coverage(y_new, found[:, 0], found[:, -1])
    return {"error": pinball_loss(y_new, found, LEVELS), "coverage": covered, "seconds": seconds, "n": len(y_new)}


def records(names: list[str], count: int, inner: bool, models: list[str]) -> dict[str, Any]:
    """Return what was measured for each set, model, and output and split; that of rivals comes from a file."""
    file = Path(FOLDER) / f"quantile_defaults{'_inner' if inner else ''}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        for model in models:
            kept = json.loads(file.read_text()) if file.exists() else {}
            known = {} if model == "default" else kept.get(name, {}).get(model, {})
            for key, data in problems(name, count, inner):
                if key not in known:
                    known[key] = measured(MODELS[model], data)
            kept = json.loads(file.read_text()) if file.exists() else {}  # another run may have written
            kept.setdefault(name, {})[model] = known
            file.write_text(json.dumps(kept))
        print(line(name, kept[name]), flush=True)
    kept = json.loads(file.read_text())
    return {name: kept[name] for name in names}


def errors(found: dict[str, dict[str, float]]) -> np.ndarray:
    """Return the error of each output, averaged over the splits."""
    outputs: dict[str, list[float]] = {}
    for key, one in found.items():
        outputs.setdefault(key.split("/")[0], []).append(one["error"])
    return np.array([np.mean(outputs[key]) for key in sorted(outputs, key=int)])


def ratio(found: dict[str, Any], rival: str) -> float:
    shared = set(found["default"]) & set(found[rival])
    ours, theirs = (errors({key: found[model][key] for key in shared}) for model in ("default", rival))
    known = (ours > 0) & (theirs > 0)
    return float(np.exp(np.mean(np.log(ours[known] / theirs[known]))))


def line(name: str, found: dict[str, Any]) -> str:
    rivals = [model for model in found if model != "default"] if "default" in found else []
    cells = [f"{rival} ratio {ratio(found, rival):.3f}" for rival in rivals]
    for model, runs in found.items():
        rows = np.array([one["n"] for one in runs.values()])
        covered = np.average([one["coverage"] for one in runs.values()], weights=rows)
        cells.append(f"{model} covers {covered:.3f} ({np.mean([one['seconds'] for one in runs.values()]):.1f}s)")
    note = f"{len(errors(next(iter(found.values()))))} outputs"
    return f"{name:10s} {note:10s} " + "  ".join(cells)


def summary(found: dict[str, Any]) -> str:
    text = []
    for rival in ("forest", "boosting"):
        ratios = {name: ratio(one, rival) for name, one in found.items() if rival in one and "default" in one}
        if ratios:
            mean, worst = np.exp(np.mean(np.log(list(ratios.values())))), max(ratios, key=ratios.__getitem__)
            text.append(f"{rival} {mean:.3f} (worst {ratios[worst]:.3f}, {worst}; {len(ratios)} sets)")
    covered = {
        name: np.average([r["coverage"] for r in one["default"].values()],
                         weights=[r["n"] for r in one["default"].values()])
        for name, one in found.items() if "default" in one
    }  # fmt: skip
    if covered:
        least = min(covered, key=covered.__getitem__)
        text.append(f"least coverage {covered[least]:.3f} ({least})")
    return "; ".join(text)


def timed() -> None:
    """Print CPU seconds of a fit to 1000 rows: two continuous outputs, and one with four values."""
    for name in ("rf1", "bike", "wq"):
        X, Y = TABLES[name]()
        rows = np.random.default_rng(0).permutation(len(X))[:1000]
        X, Y = X[rows], Y[rows]
        start = time.process_time()
        model = QuantileFunctionRegressorCV().fit(flat(X), Y[:, 0])
        seconds = time.process_time() - start
        print(f"{name} n=1000: {seconds:.1f} CPU s, gap {model.duality_gap_:.1e}, lam {model.best_lam_:g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--inner", action="store_true")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    if options.time:
        timed()
        return
    print(f"Every output of a set, of those with more than {MOST} the first {MOST}; {options.splits} splits.")
    print(summary(records(options.sets, options.splits, options.inner, options.models)))


if __name__ == "__main__":
    main()
