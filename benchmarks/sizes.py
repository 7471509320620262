"""Searches without arguments against the number of samples: CPU seconds and test errors, beside tuned rivals.

    python benchmarks/sizes.py [1000 4000 10000] [--seeds 1] [--quick]
    python benchmarks/sizes.py --exhaustive [4000] [--seeds 4] [--tables bike rf1]
    python benchmarks/sizes.py --alone [1000 4000 10000] [--curves]

The outputs are smooth functions of ten inputs with noise: sines of projections and products. The error is the root mean
squared distance to the noise-free outputs at new inputs, over that of their mean. Rivals choose their settings by folds
of the training part; the grid of ``KernelRidge`` ends at 4000 samples. One thread and one process. The figure is
docs/_static/sizes.svg. ``--quick`` runs 300 and 600 samples and writes no figure.

``--exhaustive`` compares loss and lam chosen on a part of the sample with those chosen on all of it, which is what a
splitter does. ``--alone`` runs the search without rivals, with ``--curves`` on curves of 200 points with smooth and
white noise.
"""

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from defaults import CURVES, TABLES, Rival, Split, relative_error, scaled
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from fenchel import FunctionalRegressorCV, OperatorKernelRegressorCV
from fenchel.approximations import Nystrom

SIZES, LARGE, QUICK = [1000, 4000, 10_000], [4000], [300, 600]
N_TEST = 2000
GAMMAS = np.logspace(-1.5, 0.5, 5) / 10
LAST = {"KernelRidge": 4000}  # the largest number of samples of a rival
FIRST = {"fenchel, Nystrom(2000)": 4000, "fenchel, Nystrom(500)": 4000}
FIGURE = Path(__file__).parents[1] / "docs" / "_static" / "sizes.svg"
OURS = "fenchel"


def smooth(n: int, seed: int) -> Split:
    """Return training inputs and outputs, and test inputs with their noise-free outputs."""
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((10, 20)) / 10**0.5, rng.standard_normal((20, 5)) / 20**0.5
    C = rng.standard_normal((5, 5)) / 5**0.5
    X = rng.standard_normal((n + N_TEST, 10))
    truth = np.sin(X @ A) @ B + 0.3 * (X[:, :5] * X[:, 5:]) @ C
    return X[:n], truth[:n] + 0.1 * rng.standard_normal((n, 5)), X[n:], truth[n:]


def curves(n: int, seed: int) -> Split:
    """Return the same inputs with curves of 200 points, sums of five sines that the smooth outputs weigh."""
    X, Y, X_new, truth = smooth(n, seed)
    rng, grid = np.random.default_rng(1000 + seed), np.linspace(0, 1, 200)
    sines = np.array([np.sin(np.pi * k * grid) / k**0.5 for k in range(1, 6)])
    cosines = np.array([np.cos(np.pi * k * grid) / (k + 1) for k in range(20)])
    noise = 0.1 * rng.standard_normal((n, 20)) @ cosines + 0.05 * rng.standard_normal((n, 200))
    return X, Y @ sines + noise, X_new, truth @ sines


def tuned(model: Any, folds: int = 5, **grid: Any) -> Rival:
    """Return a rival with the settings of a grid that folds prefer, on standardised inputs and outputs."""
    cv = KFold(folds, shuffle=True, random_state=0)
    return scaled(lambda X, Y: GridSearchCV(model, grid, cv=cv, scoring="neg_mean_squared_error").fit(X, Y))


def features(n: int) -> Rival:
    model = make_pipeline(Nystroem(n_components=n, random_state=0), RidgeCV(np.logspace(-6, 1, 15)))
    return tuned(model, nystroem__gamma=GAMMAS)


def ours(**settings: Any) -> Rival:
    return lambda X, Y, X_new: np.asarray(OperatorKernelRegressorCV(**settings).fit(X, Y).predict(X_new))


def of_curves(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    return np.asarray(FunctionalRegressorCV().fit(X, Y, grid=np.linspace(0, 1, Y.shape[1])).predict(X_new))


def trees(kind: Any) -> Rival:
    return tuned(kind(random_state=0), 3, max_features=[0.4, 1.0])


BOOSTING = HistGradientBoostingRegressor(max_iter=1000, early_stopping=True, random_state=0)
METHODS: dict[str, Rival] = {
    OURS: ours(),
    "fenchel, Nystrom(2000)": ours(approximation=Nystrom(2000)),
    "fenchel, Nystrom(500)": ours(approximation=Nystrom(500)),
    "KernelRidge": tuned(KernelRidge(kernel="rbf"), gamma=GAMMAS, alpha=np.logspace(-5, 0, 6)),
    "Nystroem(1000), RidgeCV": features(1000),
    "random forest": trees(RandomForestRegressor),
    "extra trees": trees(ExtraTreesRegressor),
    "boosting": tuned(MultiOutputRegressor(BOOSTING), 3, estimator__learning_rate=[0.03, 0.1]),
}


def measured(
    run: Rival, X: np.ndarray, Y: np.ndarray, X_new: np.ndarray, truth: np.ndarray, kind: str = "smooth"
) -> tuple[float, float]:
    """Return the CPU seconds of fit and prediction, and the error; of curves, over all points at once."""
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = run(X, Y, X_new)
    return time.process_time() - start, relative_error(kind, found, Y, truth)


def grows(sizes: list[int], seeds: int) -> dict[str, dict[int, np.ndarray]]:
    """Print one line for each size and method: means over seeds, and their ratios to ours."""
    found: dict[str, dict[int, np.ndarray]] = defaultdict(dict)
    print(f"{'n':>6}  {'method':24}{'CPU s':>8}{'ratio':>8}{'error':>9}{'ratio':>8}")
    for n in sizes:
        for name, run in METHODS.items():
            if not FIRST.get(name, n) <= n <= LAST.get(name, n):
                continue
            found[name][n] = np.mean([measured(run, *smooth(n, seed)) for seed in range(seeds)], axis=0)
            seconds, error = found[name][n]
            of_time, of_error = found[name][n] / found[OURS][n]
            print(f"{n:6}  {name:24}{seconds:8.1f}{of_time:8.2f}{error:9.4f}{of_error:8.2f}", flush=True)
    return found


def samples(n: int, tables: list[str], seeds: int) -> Iterator[tuple[str, Split]]:
    """Yield n training and 2000 test rows of each sample that has as many."""
    for seed in range(seeds):
        yield "smooth", smooth(n, seed)
        for name in tables:
            X, Y = TABLES[name]()
            train, test, _ = np.split(np.random.default_rng(seed).permutation(len(X)), [n, n + N_TEST])
            if len(test) == N_TEST:
                yield name, (X[train], Y[train], X[test], Y[test])


def exhaustive(sizes: list[int], tables: list[str], seeds: int) -> None:
    """Print seconds and errors of searches on a part and on all samples, and the ratios of the errors."""
    print(f"{'n':>6}  {'sample':8}{'CPU s':>8}{'of all':>8}{'error':>9}{'of all':>9}{'ratio':>8}")
    for n, (name, split) in ((size, each) for size in sizes for each in samples(size, tables, seeds)):
        rows = [measured(ours(cv=cv), *split) for cv in (5, KFold(5, shuffle=True, random_state=0))]
        (seconds, error), (all_seconds, all_error) = rows
        ratio = error / all_error
        print(f"{n:6}  {name:8}{seconds:8.1f}{all_seconds:8.1f}{error:9.4f}{all_error:9.4f}{ratio:8.3f}", flush=True)


def alone(sizes: list[int], seeds: int, are_curves: bool) -> None:
    """Print seconds and errors of the search, on vectors or on curves."""
    for n, seed in ((size, seed) for size in sizes for seed in range(seeds)):
        data, run = (curves(n, seed), of_curves) if are_curves else (smooth(n, seed), ours())
        seconds, error = measured(run, *data, next(iter(CURVES)) if are_curves else "smooth")
        print(f"{n:6}  {'curves' if are_curves else 'vectors'} {seconds:8.1f}{error:9.4f}", flush=True)


def draw(found: dict[str, dict[int, np.ndarray]]) -> None:
    """Draw CPU seconds and errors against the number of samples."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "fenchel", "svg.fonttype": "none"})
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for place, (ax, label) in enumerate(zip(axes, ("CPU seconds", "relative test error"), strict=True)):
        for k, (name, rows) in enumerate(found.items()):
            width = 2.5 if name == OURS else 1.2
            ax.loglog(list(rows), [row[place] for row in rows.values()], "o-", color=f"C{k}", lw=width, label=name)
        ticks = sorted({n for rows in found.values() for n in rows})
        ax.set_xticks(ticks, [f"{n:,}".replace(",", " ") for n in ticks])
        ax.minorticks_off()
        ax.set(xlabel="samples", ylabel=label)
    errors = [0.1, 0.2, 0.3, 0.5]
    axes[1].set_yticks(errors, [str(error) for error in errors])
    axes[1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--tables", nargs="*", default=["bike"], choices=TABLES)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--curves", action="store_true")
    options = parser.parse_args()
    if options.alone:
        return alone(options.sizes or SIZES, options.seeds, options.curves)
    if options.exhaustive:
        return exhaustive(options.sizes or LARGE, options.tables, options.seeds)
    found = grows(options.sizes or (QUICK if options.quick else SIZES), options.seeds)
    if not options.quick:
        draw(found)


if __name__ == "__main__":
    main()
