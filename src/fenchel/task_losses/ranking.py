"""The loss of a ranking against ratings."""

from typing import Any, ClassVar

import numpy as np

from fenchel._check import Interval, Options
from fenchel.decoders import Decoder, FeedbackArcSet
from fenchel.kernels import ScalarKernel, as_scalar_kernel
from fenchel.task_losses.base import TaskLoss, numbers

__all__ = ["RankLoss"]


class RankLoss(TaskLoss):
    r"""Ratings as outputs, rankings as predictions: what the pairs in the wrong order cost.

    .. math:: \Delta(y, z) = \sum_{i,j} \max(z_i - z_j, 0) \, \tfrac12 \bigl(1 - \mathrm{sign}(y_i - y_j)\bigr),

    over the pairs of items that z rates. A ranking y gives each of the M items a number, the greatest to the best one.

    Parameters
    ----------
    normalize : bool, default=True
        Whether the loss is divided by that of the worst ranking, which makes it a number in [0, 1], 1/2 for chance.

    Notes
    -----
    Items that are not rated are NaN. Ratings that are all equal, or a single one, cost nothing.

    References
    ----------
    [Ciliberto2016]_, eq. 22; [Duchi2010]_.

    Examples
    --------
    >>> from fenchel.task_losses import RankLoss
    >>> RankLoss()([[5.0, 3.0, float("nan")]], [[2, 3, 1]])
    array([1.])
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"normalize": Options((False, True))}

    def __init__(self, normalize: bool = True) -> None:
        self.normalize = normalize

    def check(self, Z: Any) -> Any:
        """Look whether outputs are ratings."""
        return numbers(Z, "RankLoss", (2,), nan=True)

    def matrix(self, Y: Any, Z: Any) -> np.ndarray:
        """Return the losses of rankings against ratings."""
        Y, found = np.asarray(Y, dtype=np.float64), np.zeros((len(Y), len(Z)))
        for k, z in enumerate(np.asarray(Z, dtype=np.float64)):
            rated = ~np.isnan(z)
            better = np.maximum(z[rated][:, None] - z[rated], 0.0)
            total = better.sum() if self.normalize else 1.0
            if total > 0:
                for i, y in enumerate(Y[:, rated]):
                    found[i, k] = np.sum(better * (1 - np.sign(y[:, None] - y))) / (2 * total)
        return found

    def preferences(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return how much is won by ranking item i above item j, (M, M), antisymmetric, for one row of weights."""
        rated = ~np.isnan(Z)
        used = (weights != 0) & np.any(rated, axis=1)
        ratings, rated = np.where(rated, Z, 0.0)[used], rated[used].astype(np.float64)
        products = (ratings * (weights[used] / self._totals(Z[used]))[:, None]).T @ rated
        return np.asarray(products - products.T)

    def decoder(self) -> Decoder:
        """Return the heuristic of Eades, Lin and Smyth."""
        return FeedbackArcSet()

    def output_kernel(self) -> ScalarKernel:
        """Return the kernel of equal directions of centred ratings."""
        return as_scalar_kernel(_cosines)

    def _totals(self, Z: np.ndarray) -> np.ndarray:
        """Return the loss of the worst ranking of each row of ratings; 1 where it is null or not divided by."""
        if not self.normalize:
            return np.ones(len(Z))
        count = np.sum(~np.isnan(Z), axis=1)
        ordered = np.nan_to_num(np.sort(Z, axis=1))  # NaN come last
        place = np.arange(Z.shape[1])
        signs = np.where(place < count[:, None], 2 * place + 1 - count[:, None], 0)
        total = np.sum(signs * ordered, axis=1)  # the sum of all differences
        return np.where(total > 0, total, 1.0)


def _cosines(Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    def directions(ratings: np.ndarray) -> np.ndarray:
        rated = ~np.isnan(ratings)
        means = np.nansum(ratings, axis=1, keepdims=True) / np.maximum(rated.sum(axis=1, keepdims=True), 1)
        centred = np.where(rated, ratings - means, 0.0)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        return np.asarray(centred / np.where(lengths > 0, lengths, 1.0))

    return np.asarray(directions(Y) @ directions(Z).T)
