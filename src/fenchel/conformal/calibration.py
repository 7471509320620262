"""Scores of a calibration sample, and the quantiles that they give."""

from dataclasses import dataclass

import numpy as np

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of the calibration sample, and how they become a quantile."""

    scores: np.ndarray  # (m, q): one column if the band is joint; NaN where nothing was observed
    labels: np.ndarray  # (m,)
    weights: np.ndarray  # (m,)
    contamination: float

    def quantiles(self, coverage: float, labels: np.ndarray) -> np.ndarray:
        """Return the quantile of each new sample, (n, q); infinity where the group is too small."""
        out = np.full((len(labels), self.scores.shape[1]), np.inf)
        for label in np.unique(labels):
            is_in = self.labels == label
            out[labels == label] = self.quantile(self.scores[is_in], self.weights[is_in], coverage)
        return out

    def quantile(self, scores: np.ndarray, weights: np.ndarray, coverage: float) -> np.ndarray:
        """Return the least score below which the stated share lies, a new sample counting as infinite.

        Scores that are NaN do not count; the new sample has the largest weight of those that do.
        """
        order = np.argsort(scores, axis=0)
        ranked = np.concatenate([np.take_along_axis(scores, order, axis=0), np.full((1, scores.shape[1]), np.inf)])
        counts = np.where(np.isnan(scores), 0.0, weights[:, None])
        largest = counts.max(axis=0, initial=0.0)
        correct = (1 - self.contamination) * counts.sum(axis=0)  # the rest of the weight is that of wrong samples
        needed = np.where(largest > 0, coverage * (correct + largest), np.inf)
        reached = np.cumsum(np.take_along_axis(counts, order, axis=0), axis=0)
        place = np.sum(reached < needed * (1 - 1e-12), axis=0)
        return np.take_along_axis(ranked, place[None, :], axis=0)[0]
