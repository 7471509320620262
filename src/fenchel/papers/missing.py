"""Training curves with most points removed: test error compared with that of full curves (no published numbers).

Every training curve keeps a fifth or a tenth of its points, drawn independently for each curve. The model has dual
variables at the remaining points only, and nothing is interpolated. It is compared with a model for which the remaining
points are first joined by straight lines. For each version of the training curves, the kernels are chosen for the
square loss, then loss, kappa and lam, all by cross-validation on the training part. Test curves are scored at all their
observed points. The baseline without inputs is the mean of the full training curves.

- DTI: 55 points, kernels of [Lambert2022]_, the ten splits of its public code.
- Lip records: every third of the 641 points, so that 43 and 21 points remain. The 641 points are linear interpolations
  of fewer points, and 64 of them still determine the whole curve, with or without interpolation. There are eight folds,
  with points removed twice; the 16 splits share their curves.

Choice made after seeing test errors: the grid of every third point of the lip records was chosen after four grids had
been tried on the same folds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold

from fenchel.datasets import load_dti, load_lip_emg
from fenchel.estimators import FunctionalRegressorCV
from fenchel.kernels import Gaussian, IntegralGaussian, Laplacian, ScalarKernel
from fenchel.losses import Huber, Loss, Square
from fenchel.papers import dti
from fenchel.papers.comparison import Comparison, paired, ratio_error
from fenchel.papers.experiment import Result, Unit, best_of
from fenchel.report import figures as plots

__all__ = ["draw", "summary", "units"]

DATA = ("dti", "lip_emg")
FILES = ("dti/dti_ms_first_visit.npz", "lip_emg/lip_emg.npz")  # the other files are not needed
BARS = {0.8: 1.10, 0.9: 1.15}  # share of removed points: bar of the ratio of the error to that of full curves
KAPPAS = (0.3, 1.0)  # times the root of the cross-validated error of the square loss
TOL = 1e-4
LOOKED = {"lip": "The grid of every third point was chosen after four grids had been tried on the same folds."}
KINDS = ("full", *(f"{share:.0%} removed{how}" for share in BARS for how in ("", ", interpolated")))


@dataclass(frozen=True)
class _Task:
    """Curves, candidate kernels and lams, and splits."""

    name: str
    X: np.ndarray
    Y: np.ndarray
    t: np.ndarray
    kernels: Sequence[tuple[ScalarKernel, ScalarKernel]]
    lams: list[float]
    splits: list[tuple[np.ndarray, np.ndarray]]


def tasks() -> Iterator[_Task]:
    """Yield the two data sets."""
    data = load_dti()
    pairs = [(Gaussian(gamma), Laplacian(10.0)) for gamma in (0.08, 0.32, 1.25)]
    yield _Task("DTI", data.X, data.Y, data.t_out, pairs, np.logspace(-4, -1, 7).tolist(), dti.splits())
    data = load_lip_emg()
    outputs = (Gaussian(300.0), Laplacian(10.0))
    kernels = [(IntegralGaussian(gamma), output) for gamma in (1.0, 3.0) for output in outputs]
    splits = 2 * list(KFold(8, shuffle=True, random_state=0).split(data.X))
    lams = np.logspace(-5, -2, 7).tolist()
    yield _Task("lip", data.X, data.Y[:, ::3], data.t[::3], kernels, lams, splits)


def units(quick: bool = False) -> list[Unit]:
    """Return the splits of both data sets, or two of each if ``quick=True``."""
    counts = {"DTI": 2 if quick else 10, "lip": 2 if quick else 16}
    return [Unit(f"missing-{name}-{k}", _errors, (name, k)) for name, count in counts.items() for k in range(count)]


def _errors(name: str, k: int) -> Result:
    """Return the test errors of one split, for every version of the training curves."""
    task = next(task for task in tasks() if task.name == name)
    train, test = task.splits[k]
    models = (_selected(task, task.X[train], Y) for Y in _versions(task.Y[train], task.t, seed=k))
    errors = [float(np.nanmean((task.Y[test] - model.predict(task.X[test])) ** 2)) for model in models]
    constant = float(np.nanmean((task.Y[test] - np.nanmean(task.Y[train], axis=0)) ** 2))
    return {"task": name, "errors": errors, "constant": constant}


def summary(results: Result) -> tuple[list[Comparison], dict[str, np.ndarray]]:
    """Compare the error ratios with the bars; also return the errors of every split."""
    rows, names = [], dict.fromkeys(one["task"] for one in results.values())
    found = {name: np.array([one["errors"] for one in results.values() if one["task"] == name]) for name in names}
    for name, errors in found.items():
        by_kind, looked = dict(zip(KINDS, errors.T, strict=True)), LOOKED.get(name, "")
        full = by_kind["full"]
        constant = float(np.mean([one["constant"] for one in results.values() if one["task"] == name])) / full.mean()
        for share, bar in BARS.items():
            kind = f"{share:.0%} removed"
            ours, joined, note = by_kind[kind], by_kind[f"{kind}, interpolated"], f"full curves have {full.mean():.5f}"
            ratio, error = float(ours.mean() / full.mean()), ratio_error(ours, full)
            title = f"{name}, {kind}, ratio to full curves"
            rows.append(Comparison(title, bar, ratio, 0.0, note, True, error, constant, looked_at_test=looked))
            note = f"interpolation has ratio {joined.mean() / full.mean():.3f}"
            rows.append(paired(f"{name}, {kind}, vs interpolation", joined, ours, note, looked))
    return rows, found


def _versions(Y: np.ndarray, t: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Yield the versions of the training curves, in the order of ``KINDS``."""
    yield Y
    for share in BARS:
        rng, thin = np.random.RandomState(seed), Y.copy()
        for row in thin:
            seen = rng.permutation(np.flatnonzero(~np.isnan(row)))
            row[seen[max(1, round((1 - share) * len(seen))) :]] = np.nan
        yield thin
        yield np.stack([np.interp(t, t[~np.isnan(row)], row[~np.isnan(row)]) for row in thin])


def _selected(task: _Task, X: np.ndarray, Y: np.ndarray) -> FunctionalRegressorCV:
    """Choose kernels and lam for the square loss, then the loss, with lam within one grid step."""

    def fit(kernels: tuple[ScalarKernel, ScalarKernel], losses: list[Loss], lams: list[float]) -> FunctionalRegressorCV:
        folds = KFold(5, shuffle=True, random_state=0)
        return FunctionalRegressorCV(*kernels, lams, losses, cv=folds, tol=TOL).fit(X, Y, grid=task.t)

    fits = [fit(kernels, [Square()], task.lams) for kernels in task.kernels]
    best = best_of(fits)
    size = float(np.sqrt(fits[best].cv_errors_.min()))
    losses = [Square(), *(Huber(kappa * size, p) for kappa in KAPPAS for p in (1, 2))]
    place = task.lams.index(fits[best].best_lam_)
    return fit(task.kernels[best], losses, task.lams[max(0, place - 1) : place + 2])


def draw(found: Result) -> plots.Figure:
    """Draw the ratio of the error of every split to that of its full curves."""
    fig, axes = plots.figure(len(found), width=5.5)
    for ax, (name, errors) in zip(axes, found.items(), strict=True):
        ax.boxplot(errors[:, 1:] / errors[:, :1])
        ax.axhline(1.0, color="0.7", linewidth=1)
        ax.set_xticks(np.arange(1, len(KINDS)), [kind.replace(", ", "\n") for kind in KINDS[1:]])
        ax.set(ylabel="ratio of test error to that of full curves", title=name)
    return fig
