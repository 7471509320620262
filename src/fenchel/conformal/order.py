"""Samples in the order of time: weights of recent scores, levels that follow the coverage, and a test."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata, spearmanr

from fenchel.exceptions import DataWarning, warn_user
from fenchel.resample.folds import times_of

__all__: list[str] = []

_STEP = 0.01  # of the level for each sample: the band follows a change within some hundred samples
_LONGEST_STEP = 0.5  # of a block
_LEAST_WEIGHT = 1e-3  # of the newest score, below which scores are dropped
_DOUBTFUL = 0.01  # p-value below which a warning is given


def places_in_time(order: ArrayLike | None, n: int) -> np.ndarray | None:
    """Return the place in time of each sample, from 0; equal times keep the order of the rows."""
    if order is None:
        return None
    return np.argsort(np.argsort(times_of(order, n), kind="stable"))


def recency(places: np.ndarray, half_life: float) -> np.ndarray:
    """Return the weight of each sample, one for a sample after the last."""
    return np.asarray(0.5 ** ((len(places) - places) / half_life))


def stepped(level: float, missed: float, target: float, n: int) -> float:
    """Return the share of outputs that bands shall miss, relative to the target, after a block of n samples.

    More is to be missed if the block missed less than its target, and the other way round [GibbsCandes2021]_.
    """
    moved = level * target + min(_STEP * n, _LONGEST_STEP) * (target - missed)
    return float(np.clip(moved, 0.0, 1.0)) / target


def kept(weights: np.ndarray) -> np.ndarray:
    """Whether scores with these weights still count."""
    return weights > _LEAST_WEIGHT * weights.max()


def exchangeability_p_value(scores: np.ndarray) -> float:
    """Return the p-value that scores (m, q) in the order of time are exchangeable: no trend, neighbours not alike.

    By Bonferroni's bound over Spearman's correlation with time and von Neumann's ratio of ranks, both with their
    normal approximations, and over columns.
    """
    found = [1.0]
    for column in scores.T:
        ranks = rankdata(column[~np.isnan(column)])
        if (m := len(ranks)) < 4 or np.ptp(ranks) == 0:
            continue
        ratio = np.sum(np.diff(ranks) ** 2) / np.sum((ranks - ranks.mean()) ** 2)
        alike = 2 * norm.sf(
            abs(ratio - 2) / np.sqrt(4 * (m - 2) * (5 * m**2 - 2 * m - 9) / (5 * m * (m + 1) * (m - 1) ** 2))
        )
        found.append(2 * min(float(spearmanr(ranks, np.arange(m)).pvalue), float(alike)))
    return min(1.0, min(found) * max(1, len(found) - 1))


def warn_of_drift(p_value: float) -> None:
    """Warn if scores are hardly exchangeable."""
    if p_value < _DOUBTFUL:
        warn_user(
            f"The calibration scores change with time (p-value {p_value:.1g} that they are exchangeable), so that no "
            "coverage is guaranteed. Call update with each block of new samples, or fit again.",
            DataWarning,
            "scores-change",
        )
