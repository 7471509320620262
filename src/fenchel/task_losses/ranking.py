"""Loss of a ranking given ratings."""

import math
from typing import ClassVar

import numpy as np

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders import Decoder, FeedbackArcSet
from fenchel.decoders._ties import round_off
from fenchel.kernels import ScalarKernel, as_scalar_kernel
from fenchel.task_losses.embedding import Embedding
from fenchel.task_losses.task_loss import TaskLoss, numbers

__all__ = ["RankLoss"]


class RankLoss(TaskLoss):
    r"""Ranking loss for ratings: the cost of the pairs in the wrong order.

    .. math:: \Delta(y, z) = \sum_{i,j} \max(z_i - z_j, 0) \, \tfrac12 \bigl(1 - \mathrm{sign}(y_i - y_j)\bigr),

    over the pairs of items rated by z. A ranking y assigns each of the M items a number, the largest to the best one;
    an item without a number (NaN) ranks equal to any other.

    Parameters
    ----------
    normalize : bool or float, default=True
        Whether to divide the loss by that of the worst ranking, which gives a number in [0, 1], 1/2 for chance. A
        number between 0 (``False``) and 1 (``True``) is an exponent of the divisor, which controls how much less users
        with many ratings, about whom more is known, count than in the sum over all pairs.

    Notes
    -----
    Unrated items are NaN. Ratings that are all equal, or a single rating, cost nothing.

    References
    ----------
    [Ciliberto2016]_, eq. 22; [Duchi2010]_.

    Examples
    --------
    >>> from fenchel.task_losses import RankLoss
    >>> RankLoss()([[5.0, 3.0, float("nan")]], [[2, 3, 1]])
    array([1.])
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"normalize": Interval(0, 1, "both", also=(False, True))}

    _together = 1

    def __init__(self, normalize: bool | float = True) -> None:
        self.normalize = normalize

    def check(self, Z: Outputs) -> Outputs:
        """Check that outputs are ratings."""
        return numbers(Z, "RankLoss", (2,), nan=True)

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the losses of rankings against ratings."""
        Y, losses = np.asarray(Y, dtype=np.float64), np.zeros((len(Y), len(Z)))
        for k, z in enumerate(np.asarray(Z, dtype=np.float64)):
            rated = ~np.isnan(z)
            better = np.maximum(z[rated][:, None] - z[rated], 0.0)
            total = better.sum() ** float(self.normalize)
            if better.any():
                for i, y in enumerate(Y[:, rated]):
                    losses[i, k] = np.sum(better * (1 - np.nan_to_num(np.sign(y[:, None] - y)))) / (2 * total)
        return losses

    def preferences(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the gain of ranking item i above item j, antisymmetric, with round-off set to zero.

        Shape (M, M) for one row of weights (n,), and (m, M, M) for several, (m, n).
        """
        rows, M = np.atleast_2d(weights), Z.shape[1]
        used = np.any(rows != 0, axis=0)
        rows, Z = rows[:, used] / self._totals(Z[used]), Z[used]
        is_rated = ~np.isnan(Z)
        ratings, rated = np.where(is_rated, Z, 0.0), is_rated.astype(np.float64)
        matrices = np.empty((len(rows), M, M))
        for i in range(M):  # only the few users who rated the item contribute to its row
            by = np.flatnonzero(is_rated[:, i])
            np.matmul(rows[:, by] * ratings[by, i], rated[by], out=matrices[:, i])
        slack = round_off(np.abs(rows) @ np.max(np.abs(ratings), axis=1, initial=0.0))
        _subtract_transposed(matrices, slack[:, None, None])
        return matrices.reshape(*np.shape(weights)[:-1], M, M)

    def decoder(self) -> Decoder:
        """Return the heuristic of Eades, Lin and Smyth, improved by insertions."""
        return FeedbackArcSet(sweeps=1)

    def output_kernel(self) -> ScalarKernel:
        """Return the cosine kernel of centred ratings."""
        return as_scalar_kernel(_cosines)

    def embedding(self, Z: Outputs) -> Embedding:
        r"""Return sizes for ratings whose worst ranking costs at most T, the largest of Z.

        The loss is half of :math:`t(z) - \langle s(y), v(z) \rangle` over the P pairs of items: s has the signs of
        :math:`y_i - y_j`, v the differences :math:`z_i - z_j` over the divisor, and t(z) is their absolute sum. Each
        side has its own coordinates, so the squared norm of features is at most :math:`2 T (1 + \sqrt P)`.
        """
        Z = self.check(Z)
        worst, pairs = float(np.max(self(Z, -Z))), math.comb(Z.shape[1], 2)
        return Embedding(0.5, math.sqrt(2 * worst * (1 + math.sqrt(pairs))))

    def _totals(self, Z: np.ndarray) -> np.ndarray:
        """Return the loss of the worst ranking for each row of ratings; 1 if it is zero or not divided by."""
        count = np.sum(~np.isnan(Z), axis=1)
        ordered = np.sort(Z, axis=1)  # NaN are sorted last
        ordered = np.nan_to_num(ordered - ordered[:, :1])  # equal ratings leave exact zeros
        place = np.arange(Z.shape[1])
        signs = np.where(place < count[:, None], 2 * place + 1 - count[:, None], 0)
        total = np.sum(signs * ordered, axis=1)  # the sum of all differences
        return np.where(total > 0, total, 1.0) ** float(self.normalize)


def _subtract_transposed(matrices: np.ndarray, slack: np.ndarray, size: int = 128) -> None:
    """Subtract from each square matrix its transpose, in place and tile by tile, to make good use of the cache.

    Differences of at most the slack are set to zero.
    """
    M = matrices.shape[1]
    for i in range(0, M, size):
        for j in range(i, M, size):
            here, there = np.s_[:, i : i + size, j : j + size], np.s_[:, j : j + size, i : i + size]
            tile = matrices[here] - matrices[there].transpose(0, 2, 1)
            tile[np.abs(tile) <= slack] = 0.0
            matrices[here] = tile
            matrices[there] = -tile.transpose(0, 2, 1)


def _cosines(Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    def directions(ratings: np.ndarray) -> np.ndarray:
        rated = ~np.isnan(ratings)
        means = np.nansum(ratings, axis=1, keepdims=True) / np.maximum(rated.sum(axis=1, keepdims=True), 1)
        centred = np.where(rated, ratings - means, 0.0)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        return np.asarray(centred / np.where(lengths > 0, lengths, 1.0))

    return np.asarray(directions(Y) @ directions(Z).T)
