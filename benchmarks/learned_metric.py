"""The default search with and without a learned metric, on the tables of ``defaults.py``.

    python benchmarks/learned_metric.py [--splits 1] [--sets edm wq ...] [--methods full forest ...] [--inner] [--dirty]

Splits, units and errors are those of ``defaults.py``. Everything is chosen on the training part. Methods that are not
named come from the file of an earlier run.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from defaults import TABLES, Rival, boosting, default, forest, line, scaled, splits, timed
from measure import FOLDER

from fenchel import LearnedMetricRegressor


def learned(metric: str) -> Rival:
    def run(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
        model = LearnedMetricRegressor(metric=metric).fit(X, Y)
        rounds.append(model.best_round_)
        return np.asarray(model.predict(X_new)).reshape(len(X_new), -1)

    return run


rounds: list[int] = []  # of the last fits, for the record
OURS: dict[str, Rival] = {"default": default, "diagonal": learned("diagonal"), "full": learned("full")}
METHODS = OURS | {"forest": scaled(forest), "boosting": scaled(boosting)}


def summary(found: dict[str, Any]) -> str:
    """Return the geometric means of ratios to the default, of errors and of seconds."""
    text = []
    for method in METHODS:
        pairs = [
            (run["error"] / base["error"], run["seconds"] / base["seconds"])
            for methods in found.values()
            for run, base in zip(methods.get(method, []), methods["default"], strict=False)
        ]
        if not pairs:
            continue
        errors, seconds = np.exp(np.mean(np.log(pairs), axis=0))
        worst, best = max(pairs)[0], min(pairs)[0]
        text.append(
            f"{method}: error {errors:.3f} ({best:.3f} to {worst:.3f}), seconds {seconds:.1f}, {len(pairs)} fits"
        )
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(TABLES))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--methods", nargs="*", default=list(OURS), choices=list(METHODS))
    parser.add_argument("--inner", action="store_true")
    parser.add_argument("--dirty", action="store_true")
    options = parser.parse_args()
    file = Path(FOLDER) / f"learned_metric{'_inner' if options.inner else ''}{'_dirty' if options.dirty else ''}.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for name in options.sets:
        found.setdefault(name, {})
        rounds.clear()
        for method in options.methods:
            parts = enumerate(splits(name, options.splits, options.inner))
            found[name][method] = [timed(METHODS[method], split, name, seed, options.dirty) for seed, split in parts]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found))
        print(line(name, found[name]), f"rounds {rounds}", flush=True)
    print(summary({name: found[name] for name in options.sets}))


if __name__ == "__main__":
    main()
