"""Molecular fingerprints of 490 spectra that are known by their Gram matrix alone.

Five folds; inside each, lam and the parameter of the loss are chosen by cross-validation on the share of wrong bits.
The wanted numbers are those of a kernel ridge regression with a threshold, computed once; the data are the small
forerunner of those of [Brouard2016]_.
"""

from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from fenchel.data import load_metabolite_fp490
from fenchel.estimators import StructuredPredictorCV
from fenchel.experiments.base import Comparison, Unit
from fenchel.losses import EpsilonRidge, Huber, Loss, Square
from fenchel.report import plots
from fenchel.report.labels import hamming_losses

__all__ = ["draw", "summary", "units"]

LAMS = np.logspace(-5, -1, 9).tolist()
LOSSES: dict[str, list[Loss]] = {
    "square": [Square()],
    "epsilon-ridge": [EpsilonRidge(float(epsilon)) for epsilon in (0.3, 1.0, 2.0)],
    "Huber": [Huber(float(kappa)) for kappa in (0.5, 1.0, 2.0, 4.0)],
}
WANTED_ACCURACY, WANTED_F1, TOLERANCE = 0.897, 0.646, 0.02


def units(quick: bool = False) -> list[Unit]:
    """Return one unit for each loss, or that of the square loss."""
    return [Unit(f"fp490-{name}", _bits, (name,)) for name in LOSSES if name == "square" or not quick]


def _bits(name: str) -> dict[str, Any]:
    """Return what one loss gets wrong."""
    data = load_metabolite_fp490()
    decoded, gap, chosen = np.zeros_like(data.Y), 0.0, []
    for train, test in KFold(5, shuffle=True, random_state=0).split(data.Y):
        model = StructuredPredictorCV(
            "precomputed",
            lams=LAMS,
            losses=LOSSES[name],
            decoder="threshold",
            center=True,
            task_loss=hamming_losses,
            cv=KFold(5),
        ).fit(data.K[np.ix_(train, train)], data.Y[train])
        decoded[test] = model.predict(data.K[np.ix_(test, train)])
        gap = max(gap, model.duality_gap_)
        chosen.append(f"{model.best_lam_:.0e}")
    f1 = 2 * float(np.sum(decoded * data.Y)) / float(np.sum(decoded) + np.sum(data.Y))
    return {"loss": name, "wrong": hamming_losses(data.Y, decoded), "f1": f1, "gap": gap, "chosen": chosen}


def summary(results: dict[str, Any]) -> tuple[list[Comparison], dict[str, np.ndarray]]:
    """Return the wanted numbers beside ours, and the share of wrong bits of every spectrum."""
    rows, wrong = [], {}
    for found in results.values():
        name = found["loss"]
        wrong[name] = np.array(found["wrong"])
        note = f"lam {', '.join(found['chosen'])}; largest gap {max(found['gap'], 0.0):.0e}"
        error = float(np.std(wrong[name]) / len(wrong[name]) ** 0.5)
        accuracy = 1 - float(np.mean(wrong[name]))
        rows.append(Comparison(f"{name}, right bits", WANTED_ACCURACY, accuracy, TOLERANCE, f"± {error:.4f}; {note}"))
        rows.append(Comparison(f"{name}, micro F1", WANTED_F1, found["f1"], TOLERANCE, note))
    return rows, wrong


def draw(wrong: dict[str, np.ndarray]) -> Any:
    """Draw how many spectra have which share of wrong bits, loss by loss."""
    fig, (ax,) = plots.figure(1)
    for (name, values), colour in zip(wrong.items(), plots.COLOURS, strict=False):
        ax.hist(values, bins=30, histtype="step", color=colour, label=f"{name}: {values.mean():.4f}")
    ax.set_xlabel("share of wrong bits")
    ax.set_ylabel("spectra")
    ax.legend()
    return fig
