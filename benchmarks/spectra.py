"""Several kernels of tandem mass spectra on MassBank: weights and lam chosen on the training folds.

    python benchmarks/spectra.py [--draws 5] [--folds 0 1 2 3 4]

Folds, candidates and output kernel are those of the experiment ``metabolites``; so is the input kernel of the first
row. Inputs are Gaussian kernels of a weighted mean of cosines of peaks, of neutral losses and of differences of peaks,
and of a kernel of precursor masses. For each test fold, weights (some fixed ones and draws from the simplex) and lam
are those that find most molecules of the four training folds, each held out in turn. The test fold is then ranked once.
"""

import argparse
from itertools import combinations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import Bunch

from fenchel.datasets.spectra import binned_spectra, peak_differences, spectrum_products
from fenchel.experiments.comparison import standard_error
from fenchel.experiments.metabolites import FOLDS, massbank_with_candidates, ranked_molecules
from fenchel.metrics import ranks_of, top_k_accuracies

LAMS = (1e-5, 3e-5)
MASS_WIDTH = 100.0  # of the Gaussian kernel of precursors, in the unit of m/z
GROUPS = ("peaks", "losses", "differences", "precursor")
FIXED = {
    "as in metabolites": (1, 1, 0, 0),
    "three equal": (1, 1, 1, 0),
    "precursor half": (2, 2, 2, 1),
    "four equal": (1, 1, 1, 1),
}


def grams(data: Bunch) -> list[np.ndarray]:
    """Return the matrices of the groups, in float32."""
    spectra = data.mz, data.intensity, data.offset
    rows = [
        binned_spectra(*spectra),
        binned_spectra(*spectra, data.precursor_mz),
        binned_spectra(*peak_differences(*spectra), power=0.25),
    ]
    masses = data.precursor_mz / MASS_WIDTH
    mass = np.exp(-((masses[:, None] - masses) ** 2) / 2)
    return [np.asarray(gram, dtype=np.float32) for gram in (*map(spectrum_products, rows), mass)]


def kernel(weights: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    """Return the Gaussian kernel of the weighted mean."""
    mean = sum(np.float32(w) * part for w, part in zip(weights / np.sum(weights), parts, strict=True) if w)
    return np.exp(mean - 1, dtype=np.float32)


def hits(data: Bunch, K: np.ndarray, held_out: tuple[int, ...], tests: tuple[int, ...], lam: float) -> list[np.ndarray]:
    """Return which molecules of folds a ridge regression finds that has seen none of those held out."""
    train = np.flatnonzero(~np.isin(data.fold, held_out))
    A = K[np.ix_(train, train)] + np.float32(lam * len(train)) * np.eye(len(train), dtype=np.float32)
    factor = cho_factor(A, overwrite_a=True, check_finite=False)
    found = []
    for fold in tests:
        test = ranked_molecules(data, fold)
        mixtures = cho_solve(factor, K[np.ix_(train, test)], check_finite=False).T
        scores = [-(data.candidate_K[data.sets[i]][:, train] @ w) for i, w in zip(test, mixtures, strict=True)]
        found.append(np.asarray(top_k_accuracies(ranks_of(scores, data.own[test]), 1)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--folds", type=int, nargs="*", default=list(range(FOLDS)))
    arguments = parser.parse_args()
    data = massbank_with_candidates()
    parts = grams(data)
    drawn = np.random.default_rng(0).dirichlet(np.ones(len(GROUPS)), arguments.draws)
    weights = [*map(np.array, FIXED.values()), *drawn]
    counts = np.zeros((FOLDS, len(weights), len(LAMS)))  # molecules of the other folds that were found
    for k, w in enumerate(weights):
        K = kernel(w, parts)
        for b, a in combinations(range(FOLDS), 2):
            if not {a, b} & set(arguments.folds):
                continue
            for j, lam in enumerate(LAMS):
                of_a, of_b = hits(data, K, (a, b), (a, b), lam)
                counts[b, k, j] += np.sum(of_a)
                counts[a, k, j] += np.sum(of_b)
    rows: dict[str, list[np.ndarray]] = {}
    for fold in arguments.folds:
        for title, allowed in (*((name, [k]) for k, name in enumerate(FIXED)), ("chosen", list(range(len(weights))))):
            k, j = max(((k, j) for k in allowed for j in range(len(LAMS))), key=lambda pair: counts[fold][pair])
            (found,) = hits(data, kernel(weights[k], parts), (fold,), (fold,), LAMS[j])
            rows.setdefault(title, []).append(found)
            shares = np.round(weights[k] / np.sum(weights[k]), 2)
            print(
                f"fold {fold}, {title}: top-1 {100 * found.mean():.2f} of {len(found)}, weights {shares}, lam {LAMS[j]}"
            )
    first = np.concatenate(rows[next(iter(FIXED))])
    for title, folds in rows.items():
        tops, gain = 100 * np.array([one.mean() for one in folds]), 100 * (np.concatenate(folds) - first)
        error = float(np.std(gain)) / len(gain) ** 0.5
        spread = standard_error(tops) if len(tops) > 1 else float("nan")
        print(f"{title}: top-1 {tops.mean():.2f} ± {spread:.2f}, gain {gain.mean():+.2f} ± {error:.2f} on {len(gain)}")


if __name__ == "__main__":
    main()
