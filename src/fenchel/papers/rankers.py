"""Convex rankers of pairs of items, the competing methods of [Ciliberto2016]_, Table 1.

Scores of the items are linear in the features of a user, plus the shrunken mean rating of each item. For every user and
pair of items with ratings z_i > z_j, the surrogate is a function of the difference d of their scores, weighted by
z_i - z_j; the weights of a user sum to 1. The surrogates are

- linear: -d, with a squared norm of the scores' coefficients as the only curvature, hence in closed form;
- hinge: max(0, 1 - d);
- logistic: log(1 + exp(-d));
- structured: max(0, z_i - z_j - d) without a weight. It bounds the structured hinge of SVM-struct, whose most violated
  ranking is found pair by pair, without asking for an order: exact ones are feedback arc sets of all items for each
  user and step.

Hinges are rounded by a parabola of width 0.1, so that one smooth solver serves all. The paper does not say how its
competing methods were run.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

__all__ = ["SURROGATES", "Pairs", "scores"]

_WIDTH = 0.1  # of the parabola between the two pieces of a hinge
_STEPS, _TOL = 100, 1e-5  # iterations, and the relative decrease that ends them

Surrogate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Pairs:
    """Pairs of items with different ratings by the same user, the better one first."""

    user: np.ndarray
    better: np.ndarray
    worse: np.ndarray
    gap: np.ndarray  # difference of the ratings
    total: np.ndarray  # sum of the differences of the user

    @classmethod
    def of(cls, ratings: np.ndarray) -> "Pairs":
        """Return the pairs of a matrix of ratings, NaN where there is none."""
        parts = []
        for user, row in enumerate(ratings):
            rated = np.flatnonzero(~np.isnan(row))
            gaps = row[rated][:, None] - row[rated]
            first, second = np.nonzero(gaps > 0)
            found = gaps[first, second]
            parts.append(
                (np.full(len(first), user), rated[first], rated[second], found, np.full(len(first), found.sum()))
            )
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _hinge(slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded hinge of its argument and its derivative."""
    inside = np.clip(slack, 0, _WIDTH)
    return inside * (slack - inside / 2) / _WIDTH, inside / _WIDTH


def _logistic(margin: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return gap * np.logaddexp(0, -margin), -gap / (1 + np.exp(np.clip(margin, -500, 500)))


def _rank_hinge(margin: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value, slope = _hinge(1 - margin)
    return gap * value, -gap * slope


def _structured(margin: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value, slope = _hinge(gap - margin)
    return value, -slope


# functions of the differences of scores and of ratings, with their derivatives in the former
SURROGATES: dict[str, Surrogate] = {
    "linear": lambda margin, gap: (-gap * margin, -gap),
    "hinge": _rank_hinge,
    "logistic": _logistic,
    "structured": _structured,
}


def scores(
    X: np.ndarray, X_new: np.ndarray, ratings: np.ndarray, offset: np.ndarray, name: str, lam: float
) -> np.ndarray:
    """Return the scores of all items for new users, (m, items).

    Parameters
    ----------
    X, X_new : array of shape (n, d) and (m, d)
        Features of the users.
    ratings : array of shape (n, items)
        Ratings of the users X, NaN where there is none.
    offset : array of shape (items,)
        Scores to which the linear ones are added.
    name : {"linear", "hinge", "logistic", "structured"}
        The surrogate.
    lam : float
        Weight of half the squared norm of the coefficients; the surrogate is a mean over users.
    """
    left, sizes, right = np.linalg.svd(X, full_matrices=False)
    factor, shape = left * sizes, (len(sizes), ratings.shape[1])
    pairs, objective = Pairs.of(ratings), SURROGATES[name]

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        loss, slopes = _objective(factor @ flat.reshape(shape) + offset, pairs, objective)
        return loss + lam / 2 * float(flat @ flat), (factor.T @ slopes).ravel() + lam * flat

    start = np.zeros(shape[0] * shape[1])
    if name == "linear":
        found = -value(start)[1] / lam
    else:
        found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS, "ftol": _TOL}).x
    return np.asarray(X_new @ right.T @ found.reshape(shape) + offset)


def _objective(table: np.ndarray, pairs: Pairs, surrogate: Surrogate) -> tuple[float, np.ndarray]:
    """Return the mean surrogate over users, and its derivatives in their scores, (n, items)."""
    n, items = table.shape
    better, worse = pairs.user * items + pairs.better, pairs.user * items + pairs.worse
    values, slopes = surrogate(table.ravel()[better] - table.ravel()[worse], pairs.gap)
    shares = 1 / (pairs.total * n)
    gradient = np.bincount(better, shares * slopes, table.size) - np.bincount(worse, shares * slopes, table.size)
    return float(np.sum(shares * values)), gradient.reshape(table.shape)
