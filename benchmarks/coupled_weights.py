"""The loss trick with coupled weights: held-out task losses with ``coupling`` chosen by the search, and without.

    python benchmarks/coupled_weights.py [--sets yeast yeast-f1 usps movielens] [--splits 5] [--size 300]

Each split draws ``--size`` training and as many test samples, for MovieLens half as many users. lam, and the coupling
with it, are chosen by five folds of the training part; for MovieLens by a fifth of its users. The test parts of the
splits are drawn from all rows, and nothing was chosen on them but the grid of couplings, after a look at three splits.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from fenchel import LossTrickPredictor
from fenchel.datasets import load_movielens100k, load_usps, load_yeast
from fenchel.decoders import FeedbackArcSet
from fenchel.kernels import Gaussian
from fenchel.papers import movielens
from fenchel.task_losses import RankLoss

LAMS = np.logspace(-7, -1, 13)
RANK_LAMS, RANK_COUPLINGS = (0.06, 0.12, 0.25), (0.0, 0.25, 0.5)
Sample = tuple[np.ndarray, np.ndarray, dict[str, Any]]


def roots(Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return the kernel of histograms whose squared distances are those of Hellinger."""
    return np.sqrt(Y) @ np.sqrt(Z).T


def genes(loss: str) -> Sample:
    """Return the genes of yeast and their classes."""
    data = load_yeast()
    X, Y = np.vstack([data.X_train, data.X_test]), np.vstack([data.Y_train, data.Y_test]).astype(int)
    return (X - X.mean(axis=0)) / X.std(axis=0), Y, {"kernel": Gaussian(0.01), "task_loss": loss}


def digits() -> Sample:
    """Return upper halves of digits, and lower halves as histograms."""
    images = np.asarray(load_usps().X_train)
    lower = images[:, 128:] / images[:, 128:].sum(axis=1, keepdims=True)
    return images[:, :128], lower, {"kernel": Gaussian(0.01), "task_loss": "hellinger", "output_kernel": roots}


SETS: dict[str, Callable[[], Sample]] = {
    "yeast": lambda: genes("hamming"),
    "yeast-f1": lambda: genes("f1"),
    "usps": digits,
}


def losses(sample: Sample, size: int, seed: int) -> tuple[float, float, float]:
    """Return the test loss without and with coupling, and the coupling."""
    X, Y, settings = sample
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:size], order[size : 2 * size]
    models = [
        LossTrickPredictor(**settings, lams=LAMS, coupling=coupling).fit(X[train], Y[train])
        for coupling in (0.0, "auto")
    ]
    plain, coupled = (-model.score(X[test], Y[test]) for model in models)
    return plain, coupled, models[1].coupling_


def rank_losses(size: int, seed: int) -> tuple[float, float, float]:
    """Return the rank losses of hidden ratings, as in the experiment, with fewer users."""
    data, state = load_movielens100k(), np.random.RandomState(1000 + seed)
    users = state.permutation(len(data.ratings))
    known, hidden = movielens.halves(data.ratings, state)
    train, test = users[:size], users[size : size + size // 2]

    def loss(train: np.ndarray, new: np.ndarray, lam: float, coupling: float) -> float:
        split = movielens._Split(data, known, train, new)
        X = np.vstack([split.X, np.eye(1, split.X.shape[1])])
        ratings = np.vstack([split.ratings, movielens.film_means(split.ratings, movielens.SHRINKAGE)])
        weights = np.append(np.ones(len(train)), movielens.PRIOR)
        model = LossTrickPredictor(
            "linear", RankLoss(movielens.POWER), lam, decoder=FeedbackArcSet(sweeps=1), coupling=coupling
        ).fit(X, ratings, weights)
        return float(np.mean(RankLoss()(hidden[new], np.asarray(model.predict(split.X_new)))))

    held, kept = train[: size // 5], train[size // 5 :]
    errors = {(lam, power): loss(kept, held, lam, power) for power in RANK_COUPLINGS for lam in RANK_LAMS}
    plain = min((pair for pair in errors if pair[1] == 0), key=lambda pair: errors[pair])
    best = min(errors, key=lambda pair: errors[pair])
    return loss(train, test, *plain), loss(train, test, *best), best[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=[*SETS, "movielens"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--size", type=int, default=300)
    options = parser.parse_args()
    for name in options.sets:
        found = []
        for seed in range(options.splits):
            one = rank_losses(options.size, seed) if name == "movielens" else losses(SETS[name](), options.size, seed)
            found.append(one)
        plain, coupled, powers = np.array(found).T
        gains = plain - coupled
        error = np.std(gains, ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
        told = f"lower by {gains.mean():.4f} ± {error:.4f}, in {np.sum(gains > 0)} of {len(gains)}"
        print(
            f"{name:10s} plain {plain.mean():.4f}  coupled {coupled.mean():.4f}  {told}; {powers.tolist()}", flush=True
        )


if __name__ == "__main__":
    main()
