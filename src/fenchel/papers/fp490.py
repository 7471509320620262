"""Molecular fingerprints of 490 spectra known only through their Gram matrix (no published numbers).

The data are the small forerunner of those of [Brouard2016]_. Errors are those of 5-fold cross-validation. In each fold,
lam and the parameter of the loss are chosen by an inner cross-validation of the share of wrong bits. The targets are
results of kernel ridge regression with a threshold, computed once for this project.

The last row ranks candidates: the true fingerprint and 39 random ones, with 300 spectra for training and the others
for testing. Centring and lam of the search are chosen by ranks, and for comparison by squared errors.
"""

import numpy as np
from sklearn.model_selection import KFold

from fenchel.datasets import load_metabolite_fp490
from fenchel.estimators import StructuredPredictorCV
from fenchel.kernels import GaussianTanimoto
from fenchel.losses import EpsilonRidge, Huber, Loss, Square
from fenchel.metrics import hamming_losses, ranks_of, top_k_accuracies
from fenchel.papers.comparison import OWN_REFERENCE, Comparison, paired
from fenchel.papers.experiment import Result, Unit
from fenchel.report import figures as plots

__all__ = ["draw", "summary", "units"]

DATA = ("metabolite_fp490",)
LAMS = np.logspace(-5, -1, 9).tolist()
LOSSES: dict[str, list[Loss]] = {
    "square": [Square()],
    "epsilon-ridge": [EpsilonRidge(float(epsilon)) for epsilon in (0.3, 1.0, 2.0)],
    "Huber": [Huber(float(kappa)) for kappa in (0.5, 1.0, 2.0, 4.0)],
}
WANTED_ACCURACY, WANTED_F1, TOLERANCE = 0.897, 0.646, 0.02
RANKED, CANDIDATES, SPLITS = 300, 40, 10  # training spectra, candidates of each, random splits
SCORES = ("rank", None)  # by which settings are chosen; the second by squared errors


def units(quick: bool = False) -> list[Unit]:
    """Return one unit for each loss and one for ranks, or only the square loss if ``quick=True``."""
    losses = [Unit(f"fp490-{name}", _bits, (name,)) for name in LOSSES if name == "square" or not quick]
    return losses if quick else [*losses, Unit("fp490-ranks", _first_places)]


def _bits(name: str) -> Result:
    """Return the share of wrong bits of every spectrum and the micro F1 score, for one loss."""
    data = load_metabolite_fp490()
    decoded, gap, chosen = np.zeros_like(data.Y), 0.0, []
    constant = np.zeros_like(data.Y)
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
        constant[test] = data.Y[train].mean(axis=0) > 0.5
        gap = max(gap, model.duality_gap_)
        chosen.append(f"{model.best_lam_:.0e}")
    return {
        "loss": name,
        "wrong": hamming_losses(data.Y, decoded),
        "f1": _micro_f1(data.Y, decoded),
        "constant": {"right": 1 - np.mean(hamming_losses(data.Y, constant)), "f1": _micro_f1(data.Y, constant)},
        "gap": gap,
        "chosen": chosen,
    }


def _first_places() -> Result:
    """Return the share of test spectra whose first candidate is wrong, for each split and score."""
    data = load_metabolite_fp490()
    wrong: list[list[float]] = []
    for seed in range(SPLITS):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(data.Y))
        train, test = rows[:RANKED], rows[RANKED:]
        own, sets = (
            [_with_others(data.Y[i], data.Y[pool], rng) for i in part] for part, pool in ((train, train), (test, rows))
        )
        wrong.append([])
        for score in SCORES:
            model = StructuredPredictorCV("precomputed", GaussianTanimoto(1.0), losses=["square"], scoring=score)
            model.fit(data.K[np.ix_(train, train)], data.Y[train], candidates=own if score else None)
            ranks = ranks_of(model.decision_scores(data.K[np.ix_(test, train)], sets), np.zeros(len(test), dtype=int))
            wrong[-1].append(1 - float(np.mean(top_k_accuracies(ranks, 1))))
    return {"wrong": wrong}


def _with_others(fingerprint: np.ndarray, pool: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a fingerprint and others than it, drawn at random."""
    others = pool[np.any(pool != fingerprint, axis=1)]
    return np.vstack([fingerprint, others[rng.choice(len(others), CANDIDATES - 1, replace=False)]])


def _micro_f1(truth: np.ndarray, decoded: np.ndarray) -> float:
    return 2 * float(np.sum(decoded * truth)) / float(np.sum(decoded) + np.sum(truth))


def summary(results: Result) -> tuple[list[Comparison], dict[str, np.ndarray]]:
    """Compare with the targets; also return the share of wrong bits of every spectrum."""
    rows, wrong = [], {}
    results = dict(results)
    ranks = results.pop("fp490-ranks", None)
    for found in results.values():
        name = found["loss"]
        wrong[name] = np.array(found["wrong"])
        note = f"lam {', '.join(found['chosen'])}; largest gap {max(found['gap'], 0.0):.0e}"
        title, right, constant = f"{name}, share of correct bits", 1 - wrong[name], found["constant"]
        more = {"trivial": constant["right"], "target": OWN_REFERENCE}
        rows.append(Comparison.of_mean(title, WANTED_ACCURACY, right, TOLERANCE, note, **more))
        more["trivial"] = constant["f1"]
        rows.append(Comparison(f"{name}, micro F1", WANTED_F1, found["f1"], TOLERANCE, note, **more))
    if ranks is not None:
        ours, theirs = np.array(ranks["wrong"]).T
        note = f"target: chosen by squared errors; {RANKED} training spectra, {CANDIDATES} candidates"
        choice = "score of the ranks, after a look at ranks of test spectra"
        rows.append(paired("first candidate wrong, chosen by ranks", theirs, ours, note, choice))
    return rows, wrong


def draw(wrong: dict[str, np.ndarray]) -> plots.Figure:
    """Draw histograms of the share of wrong bits of the spectra, one for each loss."""
    fig, (ax,) = plots.figure(1)
    for (name, values), colour in zip(wrong.items(), plots.COLOURS, strict=False):
        ax.hist(values, bins=30, histtype="step", color=colour, label=f"{name}: {values.mean():.4f}")
    ax.set_xlabel("share of wrong bits")
    ax.set_ylabel("spectra")
    ax.legend()
    return fig
