"""Outliers: nineteen models of outlying curves, wrong pairs, planted outliers, and what a second fit is worth.

    python benchmarks/outliers.py curves [--repetitions 20] [--seed 0] [--models 1 2 ...]
    python benchmarks/outliers.py pairs [--repetitions 20]
    python benchmarks/outliers.py planted [--splits 3] [--curves DTI LP ...]
    python benchmarks/outliers.py speech [--splits 3] [--seed 0] [--curves LP ...]

``curves``: area under the ROC curve, and Matthews correlation of what is flagged, of ``OutlierReport.of_curves`` at a
false discovery rate of .05 and of other detectors. The setting of each is the best of a grid on separate draws; LOF and
the isolation forest are told the share of outliers. ``pairs``: outputs of a tenth of the samples are exchanged among
these. ``planted``: outliers of types 1 to 3 in a tenth of the training curves. ``speech``: test error of a model fitted
to contaminated curves, over that of the same model fitted to the clean ones; everything is chosen on the training part.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from math import prod

import numpy as np
from outlying_curves import make_functional_outliers
from sklearn.ensemble import IsolationForest
from sklearn.metrics import matthews_corrcoef, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils import Bunch

from fenchel import FunctionalRegressorCV, OutlierReport, RobustRefit
from fenchel.datasets import contaminate, load_dti, load_speech, make_functional

SHARE, FDR = 0.1, 0.05
KINDS = ("label", "global", "local")
NAMES = ("LP", "LA", "TBCL", "TBCD", "VEL", "GLO", "TTCL", "TTCD")
EVERY = 8  # points of speech curves between those that are used
Detected = tuple[np.ndarray, np.ndarray]  # scores, flags
Detector = Callable[..., Detected]  # of the curves and a setting
CHOICE, CHOICE_DRAWS = 10_000, 3  # first seed, and draws of each model, on which the settings of rivals are chosen


def ours(Y: np.ndarray) -> Detected:
    report = OutlierReport.of_curves(Y)
    return report.scores, report.flagged(FDR)


def features(Y: np.ndarray, weight: float) -> np.ndarray:
    """Return values and differences between points, each over its deviation; weight 0: values, inf: differences."""
    steps = np.diff(Y, axis=1)
    both = np.hstack([Y / Y.std(), weight * steps / steps.std()]) if 0 < weight < np.inf else None
    return both if both is not None else Y if weight == 0 else steps


def local_outlier_factor(Y: np.ndarray, neighbours: int, weight: float) -> Detected:
    detector = LocalOutlierFactor(n_neighbors=neighbours, contamination=SHARE)
    flags = detector.fit_predict(features(Y, weight)) < 0
    return -detector.negative_outlier_factor_, flags


def isolation_forest(Y: np.ndarray, share: float, weight: float) -> Detected:
    Z = features(Y, weight)
    scores = -IsolationForest(max_features=share, random_state=0).fit(Z).score_samples(Z)
    return scores, scores > np.quantile(scores, 1 - SHARE)


def _fdata(Y: np.ndarray) -> object:
    from skfda import FDataGrid

    return FDataGrid(Y, np.linspace(0, 1, Y.shape[1]))


def ms_plot(Y: np.ndarray, cutoff: float, weight: float) -> Detected:
    from skfda.exploratory.outliers import MSPlotOutlierDetector

    detector = MSPlotOutlierDetector(cutoff_factor=cutoff, random_state=0)
    flags = detector.fit_predict(_fdata(features(Y, weight))) < 0
    return detector.cov_.mahalanobis(detector.points_), flags


def functional_boxplot(Y: np.ndarray, factor: float, weight: float) -> Detected:
    from skfda.exploratory.depth import ModifiedBandDepth
    from skfda.exploratory.outliers import BoxplotOutlierDetector

    curves = _fdata(features(Y, weight))
    return -ModifiedBandDepth()(curves), BoxplotOutlierDetector(factor=factor).fit_predict(curves) < 0


RIVALS: dict[str, tuple[Detector, tuple[tuple[float, ...], ...]]] = {  # grids; the last is `weight`
    "MS-plot": (ms_plot, ((1, 1.5, 2, 3), (0, 1, np.inf))),
    "boxplot": (functional_boxplot, ((1, 1.5, 2, 3), (0, 1, np.inf))),
    "LOF": (local_outlier_factor, ((10, 20, 35, 50, 75, 100), (0, 1, 2, 3, 5, np.inf))),
    "forest": (isolation_forest, ((0.1, 1.0), (0, 1, np.inf))),
}


def scored(detect: Callable[[np.ndarray], Detected], Y: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return the area under the ROC curve, and Matthews correlation of the flags."""
    scores, flags = detect(Y)
    return roc_auc_score(truth, scores), matthews_corrcoef(truth, flags)


def tuned(draws: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Callable[[np.ndarray], Detected]]:
    """Return our report and each rival with its best setting: the largest mean of AUC and MCC over these draws."""
    found: dict[str, Callable[[np.ndarray], Detected]] = {"fenchel": ours}
    for name, (detect, grid) in RIVALS.items():
        best = -np.inf
        for setting in product(*grid):
            candidate = with_setting(detect, setting)
            means = np.mean([scored(candidate, Y, truth) for Y, truth in draws], axis=0)
            if means.mean() > best:
                best, chosen, found[name] = means.mean(), (setting, means), candidate
        print(f"{name}: {chosen[0]} of {prod(map(len, grid))}, AUC and MCC of its choice", *np.round(chosen[1], 3))
    return found


def with_setting(detect: Detector, setting: tuple[float, ...]) -> Callable[[np.ndarray], Detected]:
    return lambda Y: detect(Y, *setting)


def recycled(model: int, random_state: int) -> Bunch:
    """Return model 17 or 18 as the public code of the collection draws it: means of outliers laid along the samples."""
    data = make_functional_outliers(model, random_state=random_state)
    t, k = data.t, int(data.is_outlier.sum())
    mean = 1 - 2 * np.arctan(t) if model == 17 else np.log(2) * np.arctan(t) + 0.5 - (t > 0.5)
    data.Y[data.is_outlier] += np.resize(mean, (len(t), k)).T - mean
    return data


def curves(repetitions: int, models: list[int], first: int) -> None:
    separate = [make_functional_outliers(m, random_state=CHOICE + k) for m in models for k in range(CHOICE_DRAWS)]
    detectors = tuned([(data.Y, data.is_outlier) for data in separate])
    print("model", *(f"{name:>15}" for name in detectors), " (AUC, MCC); r: recycled means, not in the mean")
    found = {}
    for model in [*models, *(f"{model}r" for model in models if model in (17, 18))]:
        draw = recycled if isinstance(model, str) else make_functional_outliers
        sample = [draw(int(str(model).rstrip("r")), random_state=first + k) for k in range(repetitions)]
        found[model] = np.array([[scored(d, one.Y, one.is_outlier) for d in detectors.values()] for one in sample])
        print(f"{model:>5}", *(f"{auc:9.3f} {mcc:5.3f}" for auc, mcc in found[model].mean(axis=0)), flush=True)
    overall = np.mean([found[model] for model in models], axis=0)  # of each repetition
    print(" mean", *(f"{auc:9.3f} {mcc:5.3f}" for auc, mcc in overall.mean(axis=0)))
    errors = overall.std(axis=0, ddof=1) / repetitions**0.5
    print("   ±", *(f"{auc:9.4f} {mcc:5.4f}" for auc, mcc in errors))


def swapped(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, outputs of which a tenth change places, and which do."""
    data = make_functional(200, 50, "nonlinear" if seed % 2 else "linear", noise=0.05, random_state=seed)
    wrong = np.random.RandomState(seed).permutation(200)[:20]
    Y = data.Y.copy()
    Y[wrong] = Y[np.roll(wrong, 1)]
    return data.X[:, :, None], Y, np.isin(np.arange(200), wrong)


def pairs(repetitions: int) -> None:
    """Print the AUC of wrong pairs: of held-out residuals, and of detectors that see outputs alone."""
    detectors = tuned([swapped(seed)[1:] for seed in range(CHOICE, CHOICE + 10)])
    rows = []
    for seed in range(repetitions):
        X, Y, truth = swapped(seed)
        report = OutlierReport.of(FunctionalRegressorCV().fit(X, Y), X, Y)
        flags = report.flagged(FDR)
        rows.append([roc_auc_score(truth, s) for s in (report.scores, *(d(Y)[0] for d in detectors.values()))])
        rows[-1] += [float(np.mean(flags[truth])), np.sum(flags & ~truth) / max(1, flags.sum())]
    print("held-out residuals", *detectors, "found", "false", sep=" | ")
    for link in (0, 1):
        part = np.array(rows[link::2])
        errors = part.std(axis=0, ddof=1) / len(part) ** 0.5
        print(("linear", "nonlinear")[link], *(f"{m:.3f} ± {e:.3f}" for m, e in zip(part.mean(0), errors, strict=True)))


def dti_part(split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = load_dti()
    Y = np.array([np.interp(np.arange(len(y)), np.flatnonzero(~np.isnan(y)), y[~np.isnan(y)]) for y in data.Y])
    return data.X[:, :, None], Y, np.random.RandomState(split).permutation(len(Y))


def planted(splits: int, names: list[str]) -> None:
    print("set, type: AUC of held-out residuals, of curves alone; share found, share of false ones among the flagged")
    speech_data = load_speech(published_names=True)
    for name in names:
        for number, kind in enumerate(KINDS, 1):
            rows = []
            for split in range(splits):
                if name == "DTI":
                    X, Y, _ = dti_part(split)
                else:
                    part = np.random.RandomState(split).permutation(len(speech_data.X))[:250]
                    X, Y = speech_data.X[part], scaled(speech_data.Y[name], part)[part][:, ::EVERY]
                dirty = contaminate(Y, kind, SHARE, point_share=0.1, random_state=split)
                report = OutlierReport.of(FunctionalRegressorCV().fit(X, dirty.Y), X, dirty.Y)
                alone, flags = OutlierReport.of_curves(dirty.Y), report.flagged(FDR)
                rows.append([roc_auc_score(dirty.is_outlier, one.scores) for one in (report, alone)])
                rows[-1] += [np.mean(flags[dirty.is_outlier]), np.sum(flags & ~dirty.is_outlier) / max(1, flags.sum())]
            print(f"{name:>5} type {number}", *(f"{value:.3f}" for value in np.mean(rows, axis=0)), flush=True)


def scaled(Y: np.ndarray, train: np.ndarray) -> np.ndarray:
    low, high = Y[train].min(), Y[train].max()
    return 2 * (Y - low) / (high - low) - 1


def speech(splits: list[int], names: list[str]) -> None:
    data = load_speech(published_names=True)
    print(
        "curve, type, split: clean error; over it: fit to all samples, fit that was kept; which; left out: wrong, right"
    )
    for name in names:
        for split in splits:
            order = np.random.RandomState(split).permutation(len(data.X))
            train, test = order[:250], order[250:]
            Y = scaled(data.Y[name], train)[:, ::EVERY]
            inside = (np.arange(data.Y[name].shape[1]) < data.valid_len[test][:, None])[:, ::EVERY]

            def error(model: object, Y: np.ndarray = Y, test: np.ndarray = test, inside: np.ndarray = inside) -> float:
                return float(np.mean(np.sum((model.predict(data.X[test]) - Y[test]) ** 2 * inside, axis=1)))

            clean = error(FunctionalRegressorCV().fit(data.X[train], Y[train]))
            for number, kind in enumerate(KINDS, 1):
                dirty = contaminate(Y[train], kind, SHARE, point_share=0.1, random_state=split)
                model = RobustRefit(FunctionalRegressorCV()).fit(data.X[train], dirty.Y)
                ratios = [f"{error(fit) / clean:.3f}" for fit in (model.first_estimator_, model)]
                left_out = [int(np.sum(model.left_out_ & mask)) for mask in (dirty.is_outlier, ~dirty.is_outlier)]
                print(
                    f"{name:>5} type {number} {split:>4} {clean:.3f}", *ratios, model.kept_fit_, *left_out, flush=True
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("curves", "pairs", "planted", "speech"))
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first repetition or split")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--models", type=int, nargs="+", default=list(range(1, 20)))
    parser.add_argument("--curves", nargs="+", default=list(NAMES))
    chosen = parser.parse_args()
    start = time.perf_counter()
    calls = {
        "curves": lambda: curves(chosen.repetitions, chosen.models, chosen.seed),
        "pairs": lambda: pairs(chosen.repetitions),
        "planted": lambda: planted(chosen.splits, chosen.curves),
        "speech": lambda: speech(list(range(chosen.seed, chosen.seed + chosen.splits)), chosen.curves),
    }
    warnings.simplefilter("ignore")
    calls[chosen.table]()
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
