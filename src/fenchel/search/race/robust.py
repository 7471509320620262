"""Targets with gross errors, moved towards their leave-one-out predictions before kernels are compared."""

import math

import numpy as np

from fenchel._statistics import weighted_quantile
from fenchel.search.race.ridge import GappedRidge, Ridge

__all__ = ["cleaned_targets"]

_CLIP = 2.0  # a robust search shortens residuals beyond this many robust scales before it compares kernels
_REJECT = 4.0  # and sets those beyond this many to zero after the first round
_ROUNDS = 3  # rounds of shortening
_LEVEL, _NORMAL = 0.8, 1.2815515655446004  # quantile level of residual norms, and that quantile of |N(0, 1)|


def cleaned_targets(
    ridge: Ridge | GappedRidge, Y: np.ndarray, seen: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return targets with outlying ones moved towards their predictions, and a mask of the errors that count.

    Predictions leave the sample out. At a fixed point the moved targets are the pseudo-values of the Huber loss of the
    leave-one-out residuals: the square loss of the moved targets has the gradient of that loss of the original ones.
    Samples that are certainly wrong are replaced by their predictions. The mask is 0 for these and where ``seen`` is 0:
    an error there would favour the kernel that predicted them.
    """
    known = np.ones((len(Y), 1)) if seen is None else seen
    shares = np.mean(known, axis=1)
    moved, counted = _shortened(known * Y, ridge.weights, shares) * Y, known
    for done in range(_ROUNDS):
        lam, _ = ridge.best_lam(moved, counted)
        predictions = moved - ridge.left_out(lam, moved)
        residuals = known * (Y - predictions)
        factors = _shortened(residuals, ridge.weights, shares, _REJECT if done else math.inf)
        moved, counted = predictions + factors * (Y - predictions), known * (factors > 0)
    return moved, counted


def _shortened(residuals: np.ndarray, weights: np.ndarray, shares: np.ndarray, reject: float = math.inf) -> np.ndarray:
    """Return factors (n, 1) that shorten residuals to norms of at most ``_CLIP`` robust scales, 0 beyond ``reject``.

    ``shares`` are the shares of the targets that count. The scale comes from a high quantile, so that up to a fifth of
    wrong samples do not move it far, and outputs that are constant for most samples have a positive one.
    """
    norms = np.linalg.norm(residuals, axis=1) / np.sqrt(shares)
    scale = weighted_quantile(norms, weights, _LEVEL) / _NORMAL
    if scale == 0:
        return np.ones((len(norms), 1))
    factors = np.minimum(1.0, _CLIP * scale / np.where(norms > 0, norms, 1.0))
    shortened: np.ndarray = np.where(norms > reject * scale, 0.0, factors)[:, None]
    return shortened
