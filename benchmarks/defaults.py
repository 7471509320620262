"""Defaults against rivals: relative errors on tables and curves whose columns have random units.

    python benchmarks/defaults.py [--splits 5] [--sets edm wq ...] [--inner] [--dirty]

Every column of X is multiplied by a random factor from 1e-3 to 1e3. A set with more than 1500 rows is cut to 1500 at
random, so that everything runs in minutes on one core. The error is the root mean squared error over that of the
training mean, averaged over the outputs (for curves, over all points at once). Rivals are run once for each split and
kept in a file next to the other records. ``--inner`` cuts each training part once more and never looks at the test
part: for decisions about the search. ``--dirty`` adds gross errors to a tenth of the training rows.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import FOLDER
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import MultiTaskElasticNetCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from fenchel import FunctionalRegressorCV, OperatorKernelRegressorCV
from fenchel.datasets import (
    load_air_quality,
    load_bike_sharing,
    load_dti,
    load_lip_emg,
    load_mulan_regression,
    load_speech,
)
from fenchel.datasets.readers import table

LARGEST = 1500
MULAN = ("edm", "slump", "sf1", "atp1d", "oes97", "osales", "wq", "rf1")
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Rival = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def scikit_learn(load: Callable[..., Any]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def found() -> tuple[np.ndarray, np.ndarray]:
        X, y = load(return_X_y=True)
        return X, y.reshape(len(y), -1)

    return found


def mulan(name: str) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    return lambda: (lambda data: (data.X, data.Y))(load_mulan_regression(name))


def bike_hours() -> tuple[np.ndarray, np.ndarray]:
    data = load_bike_sharing()
    return data.X, data.y[:, None]


def bike_days() -> tuple[np.ndarray, np.ndarray]:
    """Return the curves of temperature and humidity, and of the rentals, of the days with all hours."""
    columns = table("bike_sharing", "hour.csv.gz", "dteday", "hr", "temp", "hum", "cnt")
    days, place = np.unique(columns["dteday"], return_inverse=True)
    values = np.full((len(days), 24, 3), np.nan)
    for channel, name in enumerate(("temp", "hum", "cnt")):
        values[place, columns["hr"].astype(int), channel] = columns[name].astype(float)
    whole = values[~np.isnan(values).any(axis=(1, 2))]
    return whole[..., :2], whole[..., 2]


def dti() -> tuple[np.ndarray, np.ndarray]:
    data = load_dti()
    Y = np.array([np.interp(np.arange(len(y)), np.flatnonzero(~np.isnan(y)), y[~np.isnan(y)]) for y in data.Y])
    return data.X[:, :, None], Y


def lip() -> tuple[np.ndarray, np.ndarray]:
    data = load_lip_emg()
    return data.X[:, ::4, None], data.Y[:, ::4]


def air() -> tuple[np.ndarray, np.ndarray]:
    data = load_air_quality()
    return data.X, data.Y


def speech() -> tuple[np.ndarray, np.ndarray]:
    """Return the sounds and the lip aperture, every third point."""
    data = load_speech()
    return data.X[:, ::3].astype(float), data.Y["LA"][:, ::3].astype(float)


TABLES = {name: mulan(name) for name in MULAN} | {
    "diabetes": scikit_learn(load_diabetes),
    "linnerud": scikit_learn(load_linnerud),
    "bike": bike_hours,
}
CURVES = {"dti": dti, "lip": lip, "air": air, "bike_days": bike_days, "speech": speech}


def splits(name: str, count: int, inner: bool) -> list[Split]:
    """Return training and test parts: random rows, three quarters for training, every column in a random unit."""
    X, Y = (TABLES | CURVES)[name]()
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(X))[:LARGEST]
        units = 10 ** rng.uniform(-3, 3, X.shape[-1])
        if inner:
            rows = rows[: 3 * len(rows) // 4]
        cut = 3 * len(rows) // 4
        train, test = rows[:cut], rows[cut:]
        found.append((X[train] * units, Y[train], X[test] * units, Y[test]))
    return found


def dirtied(Y: np.ndarray, seed: int) -> np.ndarray:
    """Return the outputs with 5 to 15 standard deviations, of one sign, added to a random tenth of the rows."""
    rng = np.random.default_rng(1000 + seed)
    rows = rng.permutation(len(Y))[: max(1, len(Y) // 10)]
    Y = Y.copy()
    sizes = rng.uniform(5, 15, len(rows)) * rng.choice([-1, 1], len(rows))
    Y[rows] += sizes[:, None] * np.std(Y, axis=0)
    return Y


def relative_error(name: str, found: np.ndarray, Y_train: np.ndarray, Y: np.ndarray) -> float:
    errors, base = (found - Y) ** 2, (np.mean(Y_train, axis=0) - Y) ** 2
    axis = None if name in CURVES else 0
    below = np.mean(base, axis=axis)
    ratios = np.sqrt(np.mean(errors, axis=axis) / np.where(below > 0, below, 1.0))
    return float(np.mean(ratios[below > 0] if axis == 0 else ratios))


def flat(X: np.ndarray) -> np.ndarray:
    return X.reshape(len(X), -1)


def scaled(fit: Callable[[np.ndarray, np.ndarray], Any]) -> Rival:
    """Return a rival that sees standardised inputs and outputs."""

    def run(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
        inputs, outputs = StandardScaler().fit(flat(X)), StandardScaler().fit(Y)
        model = fit(inputs.transform(flat(X)), outputs.transform(Y))
        predicted = np.asarray(model.predict(inputs.transform(flat(X_new)))).reshape(len(X_new), -1)
        return np.asarray(outputs.inverse_transform(predicted))

    return run


FOLDS = KFold(5, shuffle=True, random_state=0)


def kernel_ridge(X: np.ndarray, Y: np.ndarray) -> Any:
    gammas = np.logspace(-2, 2, 9) / X.shape[1]
    grid = {"kernel": ["rbf", "laplacian"], "gamma": gammas, "alpha": np.logspace(-6, 1, 8)}
    return GridSearchCV(KernelRidge(), grid, cv=FOLDS, scoring="neg_mean_squared_error").fit(X, Y)


def forest(X: np.ndarray, Y: np.ndarray) -> Any:
    return RandomForestRegressor(random_state=0).fit(X, Y if Y.shape[1] > 1 else Y[:, 0])


def boosting(X: np.ndarray, Y: np.ndarray) -> Any:
    return MultiOutputRegressor(HistGradientBoostingRegressor(random_state=0)).fit(X, Y)


def elastic_net(X: np.ndarray, Y: np.ndarray) -> Any:
    return MultiTaskElasticNetCV(l1_ratio=[0.1, 0.5, 0.9, 1.0], alphas=30, cv=FOLDS).fit(X, Y)


def ridge(X: np.ndarray, Y: np.ndarray) -> Any:
    return RidgeCV(np.logspace(-3, 7, 41)).fit(X, Y)


def neighbours(X: np.ndarray, Y: np.ndarray) -> Any:
    grid = {"n_neighbors": [1, 2, 3, 5, 8, 12, 20], "weights": ["uniform", "distance"]}
    return GridSearchCV(KNeighborsRegressor(), grid, cv=FOLDS, scoring="neg_mean_squared_error").fit(X, Y)


def least_squares(X: np.ndarray, Y: np.ndarray) -> Any:
    most = min(12, len(X) * 4 // 5 - 1, X.shape[1])
    grid = {"n_components": list(range(1, most + 1))}
    return GridSearchCV(PLSRegression(scale=False), grid, cv=FOLDS, scoring="neg_mean_squared_error").fit(X, Y)


RIVALS = {
    "tables": {"KernelRidge": kernel_ridge, "forest": forest, "boosting": boosting, "elastic net": elastic_net},
    "curves": {"ridge": ridge, "PLS": least_squares, "neighbours": neighbours, "KernelRidge": kernel_ridge},
}


def default(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Return the predictions of the class with cross-validation, without any argument."""
    model = FunctionalRegressorCV() if X.ndim == 3 else OperatorKernelRegressorCV()
    return np.asarray(model.fit(X, Y).predict(X_new)).reshape(len(X_new), -1)


def square(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Return the predictions with the square loss named, and nothing else."""
    model = FunctionalRegressorCV if X.ndim == 3 else OperatorKernelRegressorCV
    return np.asarray(model(losses=["square"]).fit(X, Y).predict(X_new)).reshape(len(X_new), -1)


OURS: dict[str, Rival] = {"default": default, "square": square}


def timed(run: Rival, split: Split, name: str, seed: int, dirty: bool) -> dict[str, float]:
    X, Y, X_new, Y_new = split
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(X, dirtied(Y, seed) if dirty else Y, X_new)
    return {"error": relative_error(name, found, Y, Y_new), "seconds": time.process_time() - start}


def records(names: list[str], count: int, inner: bool, dirty: bool, rivals: bool) -> dict[str, Any]:
    """Return the errors and seconds of each method on each split of each set; those of rivals come from a file."""
    file = Path(FOLDER) / f"defaults{'_inner' if inner else ''}{'_dirty' if dirty else ''}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    for name in names:
        mine = kept.setdefault(name, {})
        methods: dict[str, Rival] = dict(OURS)
        if rivals:
            methods |= {key: scaled(fit) for key, fit in RIVALS["curves" if name in CURVES else "tables"].items()}
        for method, run in methods.items():
            if method in OURS or len(mine.get(method, [])) < count:
                parts = enumerate(splits(name, count, inner))
                mine[method] = [timed(run, split, name, seed, dirty) for seed, split in parts]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(kept))
        print(line(name, mine), flush=True)
    return {name: kept[name] for name in names}


def line(name: str, found: dict[str, list[dict[str, float]]]) -> str:
    cells = []
    for method, runs in found.items():
        errors = np.array([run["error"] for run in runs])
        spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
        seconds = np.mean([run["seconds"] for run in runs])
        cells.append(f"{method} {np.mean(errors):.4f}±{spread:.4f} ({seconds:.1f}s)")
    return f"{name:10s} " + "  ".join(cells)


def summary(found: dict[str, Any], ours: str) -> str:
    """Return the geometric means of error ratios against each rival, and against the best rival of each set."""
    means = {
        name: {key: np.mean([run["error"] for run in runs]) for key, runs in methods.items()}
        for name, methods in found.items()
    }
    rivals = sorted({key for methods in means.values() for key in methods} - set(OURS))
    text = []
    for rival in rivals:
        ratios = [methods[ours] / methods[rival] for methods in means.values() if rival in methods]
        text.append(f"{rival} {np.exp(np.mean(np.log(ratios))):.3f} (worst {max(ratios):.3f}, {len(ratios)} sets)")
    best = {
        name: methods[ours] / min(methods[key] for key in rivals if key in methods)
        for name, methods in means.items()
        if any(key in methods for key in rivals)
    }
    if best:
        text.append(f"best of each set {np.exp(np.mean(np.log(list(best.values())))):.3f}")
    return f"{ours}: " + "; ".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(TABLES | CURVES))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--inner", action="store_true")
    parser.add_argument("--dirty", action="store_true")
    parser.add_argument("--no-rivals", action="store_true")
    options = parser.parse_args()
    found = records(options.sets, options.splits, options.inner, options.dirty, not options.no_rivals)
    for ours in OURS:
        print(summary(found, ours))


if __name__ == "__main__":
    main()
