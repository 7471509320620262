"""Several kernels of tandem mass spectra on MassBank, chosen on the training folds.

    python benchmarks/spectra.py [--draws 5] [--folds 0 1 2 3 4]

Folds, candidates, lam and output kernel are those of the experiment ``metabolites``; so is the input kernel of the
first row. Inputs are Gaussian kernels of a weighted mean of cosines of peaks, of neutral losses and of differences of
peaks, and of a kernel of precursor masses. Outputs are compared by all bits alike, or with more weight on bits that are
rare in the pool of candidates. For each test fold, the weights of the inputs (some fixed ones and draws from the
simplex) and the kind of outputs are those that find most molecules of the four training folds, each held out in turn.
The loss is the square one.
"""

import argparse
from itertools import combinations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import Bunch

from fenchel.datasets.spectra import binned_spectra, peak_differences, spectrum_products
from fenchel.kernels import Projected
from fenchel.metrics import ranks_of, top_k_accuracies
from fenchel.papers.comparison import standard_error
from fenchel.papers.metabolites import FOLDS, OUTPUT_KERNEL, massbank_with_candidates, ranked_molecules

LAM = 1e-5
MASS_WIDTH = 100.0  # of the Gaussian kernel of precursors, in the unit of m/z
GROUPS = ("peaks", "losses", "differences", "precursor")
FIXED = {
    "as in metabolites": (1, 1, 0, 0),
    "three equal": (1, 1, 1, 0),
    "precursor half": (2, 2, 2, 1),
    "four equal": (1, 1, 1, 1),
}
OUTPUTS = ("all bits alike", "rare bits count more")


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


def rare_bits(data: Bunch) -> np.ndarray:
    """Return the output kernel between candidates and molecules with weights of bits from the pool of candidates."""
    share = np.mean(data.candidate_Y, axis=0)
    metric = np.log1p(1 / np.maximum(share, 1 / len(data.candidate_Y))) ** 0.25  # its square weighs a bit
    metric_kernel = Projected(OUTPUT_KERNEL, metric)
    used = np.unique(np.concatenate([places for places in data.sets if len(places) > 1]))
    found = np.zeros_like(data.candidate_K)
    for part in np.array_split(used, 16):
        found[part] = metric_kernel(data.candidate_Y[part].astype(np.float32), data.Y.astype(np.float32))
    return found


def hits(
    data: Bunch, outputs: list[np.ndarray], K: np.ndarray, held_out: tuple[int, ...], fold: int, factor: tuple
) -> list[np.ndarray]:
    """Return which molecules of a fold a ridge regression finds, for each kind of outputs."""
    train, test = np.flatnonzero(~np.isin(data.fold, held_out)), ranked_molecules(data, fold)
    mixtures = cho_solve(factor, K[np.ix_(train, test)], check_finite=False).T
    found = []
    for candidates in outputs:
        scores = [-(candidates[data.sets[i]][:, train] @ w) for i, w in zip(test, mixtures, strict=True)]
        found.append(np.asarray(top_k_accuracies(ranks_of(scores, data.own[test]), 1)))
    return found


def factorised(data: Bunch, K: np.ndarray, held_out: tuple[int, ...]) -> tuple:
    """Return the factor of the ridge regression of all molecules but those of some folds."""
    train = np.flatnonzero(~np.isin(data.fold, held_out))
    A = K[np.ix_(train, train)] + np.float32(LAM * len(train)) * np.eye(len(train), dtype=np.float32)
    return cho_factor(A, overwrite_a=True, check_finite=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--folds", type=int, nargs="*", default=list(range(FOLDS)))
    arguments = parser.parse_args()
    data = massbank_with_candidates()
    parts, outputs = grams(data), [data.candidate_K, rare_bits(data)]
    drawn = np.random.default_rng(0).dirichlet(np.ones(len(GROUPS)), arguments.draws)
    names = [*FIXED, *(f"draw {k}" for k in range(len(drawn)))]
    inner = np.zeros((FOLDS, len(names), len(OUTPUTS)))  # molecules of the other folds that were found
    tested: dict[tuple[int, int], list[np.ndarray]] = {}
    for k, w in enumerate([*map(np.array, FIXED.values()), *drawn]):
        K = kernel(w, parts)
        for pair in combinations(range(FOLDS), 2):
            if set(pair) & set(arguments.folds):
                factor = factorised(data, K, pair)
                for fold, other in (pair, pair[::-1]):
                    inner[other, k] += [np.sum(one) for one in hits(data, outputs, K, pair, fold, factor)]
        for fold in arguments.folds:
            tested[fold, k] = hits(data, outputs, K, (fold,), fold, factorised(data, K, (fold,)))
        print(
            names[k],
            np.round(w / np.sum(w), 2),
            "found in training folds:",
            inner[arguments.folds, k].tolist(),
            flush=True,
        )
    report(arguments.folds, names, inner, tested)


def report(
    folds: list[int], names: list[str], inner: np.ndarray, tested: dict[tuple[int, int], list[np.ndarray]]
) -> None:
    """Print the test results of every kernel and of those that were chosen."""
    rows = {
        (name, kind): [tested[f, k][j] for f in folds] for k, name in enumerate(names) for j, kind in enumerate(OUTPUTS)
    }
    for title, allowed in (("chosen", [0, 1]), ("chosen", [0])):
        best = {
            f: max(((k, j) for k in range(len(names)) for j in allowed), key=lambda at: inner[f][at]) for f in folds
        }
        rows[title, " or ".join(OUTPUTS[j] for j in allowed)] = [tested[f, k][j] for f, (k, j) in best.items()]
        print(title, {f: (names[k], OUTPUTS[j]) for f, (k, j) in best.items()})
    first = np.concatenate(next(iter(rows.values())))
    for title, found in rows.items():
        tops, gain = 100 * np.array([one.mean() for one in found]), 100 * (np.concatenate(found) - first)
        error, spread = float(np.std(gain)) / len(gain) ** 0.5, standard_error(tops) if len(tops) > 1 else np.nan
        print(f"{title}: top-1 {tops.mean():.2f} ± {spread:.2f}, gain {gain.mean():+.2f} ± {error:.2f} on {len(gain)}")


if __name__ == "__main__":
    main()
