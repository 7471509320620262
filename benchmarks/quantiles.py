"""Nineteen quantiles on real data: one certified fit against scikit-learn's fits of one level after the other.

``python benchmarks/quantiles.py slump:0 wq:3 --splits 3 --out rows.jsonl`` measures targets, one line for each model;
``--table rows.jsonl`` prints what docs/quantiles.rst shows; ``--coverage 50`` repeats the simulated problem.
Every model chooses its parameters by the same three folds of the training part, on the pinball loss; inputs and outputs
are standardised with the training part's mean and deviation.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.pipeline import make_pipeline

from fenchel import QuantileFunctionRegressor, QuantileFunctionRegressorCV
from fenchel.datasets import load_bike_sharing, load_mulan_regression
from fenchel.kernels import Gaussian, Laplacian
from fenchel.metrics import coverage, crossing_rate, pinball_loss

LEVELS = np.arange(1, 20) / 20
LARGEST = 2000  # training samples
WIDTHS = (0.03, 0.1, 0.5)  # gamma of the Gaussian kernel, times the number of features


class PerLevel(BaseEstimator):
    """A model of one level, fitted for each; its parameters are chosen on three levels for all."""

    def __init__(self, model: Callable[..., BaseEstimator], grid: dict, level: str) -> None:
        self.model = model
        self.grid = grid
        self.level = level

    def fit(self, X: np.ndarray, y: np.ndarray) -> "PerLevel":
        """Choose the parameters, and fit every level."""
        errors = [self._error(X, y, params) for params in ParameterGrid(self.grid)]
        self.params_ = list(ParameterGrid(self.grid))[int(np.argmin(errors))]
        self.models_ = [self._one(level, self.params_).fit(X, y) for level in LEVELS]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the quantiles, one column for each level."""
        return np.stack([model.predict(X) for model in self.models_], axis=1)

    def _one(self, level: float, params: dict) -> BaseEstimator:
        return clone(self.model(**{self.level: level}, **params))

    def _error(self, X: np.ndarray, y: np.ndarray, params: dict) -> float:
        losses = []
        for train, test in folds(len(y)):
            for level in (0.1, 0.5, 0.9):
                found = self._one(level, params).fit(X[train], y[train]).predict(X[test])
                losses.append(pinball_loss(y[test], found[:, None], [level]))
        return float(np.mean(losses))


def folds(n: int) -> list:
    """Return the folds on which every model chooses."""
    return list(KFold(3, shuffle=True, random_state=0).split(np.zeros(n)))


def boosting(**params: float) -> BaseEstimator:
    """Return gradient boosting for one level."""
    return GradientBoostingRegressor(loss="quantile", random_state=0, **params)


def nystroem(gamma: float = 1.0, **params: float) -> BaseEstimator:
    """Return linear quantile regression on Nyström features for one level."""
    features = Nystroem(gamma=gamma, n_components=100, random_state=0)
    return make_pipeline(features, QuantileRegressor(solver="highs", **params))


def fenchel(X: np.ndarray, y: np.ndarray) -> QuantileFunctionRegressorCV:
    """Return the fitted quantile function, chosen on the same folds."""
    kernels = [Gaussian(width / X.shape[1]) for width in WIDTHS]
    model = QuantileFunctionRegressorCV(
        kernels,
        [Laplacian(2.0), Laplacian(20.0)],
        lams=np.logspace(-5, -1, 5),
        levels=LEVELS,
        non_crossing=True,
        cv=folds(len(y)),
        cv_tol=1e-2,
    )
    return model.fit(X, y)


def models(d: int, names: list[str]) -> dict[str, Callable[[np.ndarray, np.ndarray], tuple]]:
    """Return functions that fit a model and give its predictions."""
    gammas = [width / d for width in WIDTHS]
    trees = {"n_estimators": [50, 200], "max_depth": [2, 4], "learning_rate": [0.1]}
    linear = {"gamma": gammas, "alpha": [1e-4, 1e-3]}
    every = {
        "fenchel": lambda X, y: (lambda m: (m, lambda Z: m.predict(Z, LEVELS)))(fenchel(X, y)),
        "boosting": lambda X, y: (lambda m: (m, m.predict))(PerLevel(boosting, trees, "alpha").fit(X, y)),
        "nystroem": lambda X, y: (lambda m: (m, m.predict))(PerLevel(nystroem, linear, "quantile").fit(X, y)),
    }
    return {name: every[name] for name in names}


def load(name: str, target: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and one target."""
    if name == "bike":
        data = load_bike_sharing()
        return data.X, data.y
    data = load_mulan_regression(name)
    return data.X, data.Y[:, target]


def measured(name: str, target: int, split: int, only: list[str]) -> list[dict]:
    """Return one row for each model on one split: seven tenths for training, at most 2000."""
    X, y = load(name, target)
    order = np.random.default_rng(split).permutation(len(y))
    count = min(int(0.7 * len(y)), LARGEST)
    train, test = order[:count], order[count : count + 5000]
    X = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-12)
    y = (y - y[train].mean()) / y[train].std()
    rows = []
    for label, fit in models(X.shape[1], only).items():
        began = time.process_time()
        model, predict = fit(X[train], y[train])
        seconds, found = time.process_time() - began, predict(X[test])
        row = {"set": name, "target": target, "split": split, "model": label, "n": count, "cpu": round(seconds, 2)}
        row |= {"pinball": pinball_loss(y[test], found, LEVELS), "crossing": crossing_rate(found)}
        if label == "fenchel":
            row |= {"gap": model.duality_gap_, "lam": model.best_lam_, "raw_crossing": model.crossing_rate_}
        rows.append(row)
    return rows


def table(rows: list[dict]) -> str:
    """Return the table of the docs: means over the splits."""
    lines = ["set target | n | fenchel | boosting | Nyström | crossing: fenchel, boosting, Nyström | CPU s | gap"]
    for key in dict.fromkeys((row["set"], row["target"]) for row in rows):
        own = [row for row in rows if (row["set"], row["target"]) == key]

        def mean(model: str, what: str, own: list[dict] = own) -> float:
            return float(np.mean([row[what] for row in own if row["model"] == model] or [np.nan]))

        names = ("fenchel", "boosting", "nystroem")
        parts = [" | ".join(f"{mean(model, what):{form}}" for model in names) for what, form in
                 (("pinball", ".4f"), ("crossing", ".1%"), ("cpu", ".1f"))]  # fmt: skip
        gap = max((row["gap"] for row in own if row["model"] == "fenchel"), default=np.nan)
        lines.append(f"{key[0]} {key[1]} | {own[0]['n']} | {' | '.join(parts)} | {gap:.0e}")
    return "\n".join(lines)


def covered(repetition: int) -> float:
    """Return the coverage of the 80 % interval on held-out data of a heteroscedastic problem."""
    rng = np.random.default_rng(repetition)
    X = rng.uniform(-1, 1, (6000, 2))
    y = np.sin(3 * X[:, 0]) + (0.2 + 0.4 * np.abs(X[:, 1])) * rng.standard_normal(6000)
    model = QuantileFunctionRegressor(Gaussian(1.0), Gaussian(1.0), lam=5e-3, tol=1e-4).fit(X[:2000], y[:2000])
    low, high = model.predict_interval(X[2000:], 0.8).T
    return coverage(y[2000:], low, high)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="set:target, such as slump:0")
    parser.add_argument("--models", default="fenchel,boosting,nystroem")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--coverage", type=int, default=0)
    wanted = parser.parse_args()
    warnings.filterwarnings("ignore", message="n_components > n_samples")  # Nystroem then takes them all
    if wanted.coverage:
        shares = np.array([covered(k) for k in range(wanted.coverage)])
        print(f"{len(shares)} repetitions: mean {shares.mean():.3f}, least {shares.min():.3f}, most {shares.max():.3f}")
    for one in wanted.targets:
        name, target = one.split(":")
        for split in range(wanted.splits):
            for row in measured(name, int(target), split, wanted.models.split(",")):
                line = json.dumps(row)
                print(line, flush=True)
                if wanted.out is not None:
                    with wanted.out.open("a", encoding="utf-8") as stream:
                        stream.write(line + "\n")
    if wanted.table is not None:
        print(table([json.loads(line) for line in wanted.table.read_text(encoding="utf-8").splitlines()]))


if __name__ == "__main__":
    main()
