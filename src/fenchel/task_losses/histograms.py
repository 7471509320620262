"""Losses of histograms."""

from abc import ABC

import numpy as np

from fenchel._array import Outputs
from fenchel.decoders import Decoder, Simplex
from fenchel.task_losses.embedding import Embedding
from fenchel.task_losses.task_loss import TaskLoss, numbers

__all__ = ["ChiSquare", "Hellinger", "HistogramLoss"]

_SUM_TOL = 1e-5  # allowed deviation of the sum of a histogram from 1; in float32 it is about 1e-6


class HistogramLoss(TaskLoss, ABC):
    """Loss of histograms, rows of non-negative numbers that sum to one."""

    def check(self, Z: Outputs) -> Outputs:
        """Check that outputs are histograms."""
        name = type(self).__name__
        histograms = numbers(Z, name, (2,))
        if np.any(histograms < 0):
            raise ValueError(f"{name} takes histograms. Got a negative entry, {histograms.min():g}.")
        sums = histograms.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > _SUM_TOL:
            raise ValueError(
                f"{name} takes histograms that sum to 1. Row {worst} sums to {sums[worst]:g}; divide each by its sum."
            )
        return histograms

    def decoder(self) -> Decoder:
        """Return a search on the simplex."""
        return Simplex()

    def embedding(self, Z: Outputs) -> Embedding:
        r"""Return sizes for all histograms: both losses are 2 - 2 k, where k is a normalised kernel.

        The kernels are :math:`\sum_j \sqrt{y_j z_j}` and :math:`\sum_j 2 y_j z_j / (y_j + z_j)`.
        """
        return Embedding.of_similarity(2.0)


class Hellinger(HistogramLoss):
    r"""Squared Hellinger distance of histograms, :math:`\sum_j (\sqrt{y_j} - \sqrt{z_j})^2`, in [0, 2].

    Notes
    -----
    This is eq. 23 of [Ciliberto2016]_; its appendix has an additional factor :math:`1 / \sqrt 2`.

    Examples
    --------
    >>> from fenchel.task_losses import Hellinger
    >>> Hellinger()([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]])
    array([2., 0.])
    """

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the squared distances of the square roots."""
        Y, Z = np.asarray(Y, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        products = np.sqrt(Y) @ np.sqrt(Z).T
        return np.maximum(Y.sum(axis=1)[:, None] + Z.sum(axis=1) - 2 * products, 0.0)

    def minimise(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the best histogram for each row of weights, of any sign, (m, d).

        With u = sqrt(y) on the sphere the loss is linear: u is the normalised positive part of the weighted sum of
        roots or, if that is zero, the vertex at which the sum is largest.
        """
        sums = weights @ np.sqrt(Z)
        roots = np.maximum(sums, 0.0)
        none = ~np.any(roots > 0, axis=1)
        roots[none, np.argmax(sums[none], axis=1)] = 1.0
        roots /= np.max(roots, axis=1, keepdims=True)  # prevents underflow when tiny numbers are squared
        return np.asarray(roots**2 / np.sum(roots**2, axis=1, keepdims=True))


class ChiSquare(HistogramLoss):
    r""":math:`\chi^2` distance of histograms, :math:`\sum_j (y_j - z_j)^2 / (y_j + z_j)`, in [0, 2].

    Examples
    --------
    >>> from fenchel.task_losses import ChiSquare
    >>> ChiSquare()([[1.0, 0.0], [0.75, 0.25]], [[0.0, 1.0], [0.25, 0.75]])
    array([2. , 0.5])
    """

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the distances; entries that are zero in both contribute nothing."""
        Y, Z = np.asarray(Y, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        losses = np.zeros((len(Y), len(Z)))
        for y, z in zip(Y.T, Z.T, strict=True):
            both = y[:, None] + z[None, :]
            losses += (y[:, None] - z[None, :]) ** 2 / np.where(both > 0, both, 1.0)
        return losses

    def first_guesses(self, weights: np.ndarray, Z: np.ndarray) -> list[np.ndarray]:
        """Return initial histograms for a search, for each row of weights.

        These are the minimisers of the squared Hellinger distance, and the best histograms with a single entry, one of
        which is the minimum if all weights are negative.
        """
        single = weights @ (4 * Z**2 / (1 + Z) - 4 * Z)  # the loss minus the part that all of them share
        return [Hellinger().minimise(weights, Z), np.eye(Z.shape[1])[np.argmin(single, axis=1)]]

    def derivatives(
        self, weights: np.ndarray, Y: np.ndarray, Z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""Return the weighted loss at one histogram y for each row of weights, (m,), its slopes and bends, (m, d).

        :math:`(y - z)^2 / (y + z) = y - 3z + 4 z^2 / (y + z)`: on the simplex only the last term depends on y. Where
        negative weights make a second derivative negative, or nearly so, it is computed with absolute weights.
        """
        value, slope, bend = np.zeros(len(Y)), np.zeros_like(Y), np.zeros_like(Y)
        for j, z in enumerate(Z.T):
            seen = z > 0
            w, part = weights[:, seen], z[seen] / (Y[:, j, None] + z[seen])
            value += 4 * np.sum(w * z[seen] * part, axis=1)
            slope[:, j] = -4 * np.sum(w * part**2, axis=1)
            cubes = 8 * part**3 / z[seen]
            own, most = np.sum(w * cubes, axis=1), np.sum(np.abs(w) * cubes, axis=1)
            bend[:, j] = np.where(own > most / 8, own, most)
        return value, slope, bend
