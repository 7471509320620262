"""Targets with gross errors, moved towards their leave-one-out predictions before kernels are compared."""

import math

import numpy as np

from fenchel._statistics import weighted_quantile
from fenchel.search.race.ridge import GappedRidge, Ridge

__all__ = ["cleaned_targets", "relative_sizes"]

_CLIP = 2.0  # a robust search shortens residuals beyond this many robust scales before it compares kernels
_REJECT = 4.0  # and sets those beyond this many to zero after the first round
_ROUNDS = 3  # rounds of shortening
_LEAST = 0.1  # smallest size whose logarithm counts, relative to the median: small residuals are small by chance
_LEVEL, _NORMAL = 0.8, 1.2815515655446004  # quantile level of residual norms, and that quantile of |N(0, 1)|


def cleaned_targets(
    ridge: Ridge | GappedRidge, Y: np.ndarray, seen: np.ndarray | None, by_value: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return targets with outlying ones moved towards their predictions, and a mask of the errors that count.

    Predictions leave the sample out. At a fixed point the moved targets are the pseudo-values of the Huber loss of the
    leave-one-out residuals: the square loss of the moved targets has the gradient of that loss of the original ones.
    Targets that are certainly wrong are replaced by their predictions. The mask is 0 for these and where ``seen`` is 0:
    an error there would favour the kernel that predicted them. Targets are samples, or with ``by_value`` single values.
    """
    known = np.ones((len(Y), Y.shape[1] if by_value else 1)) if seen is None else seen
    moved, counted = _shortened(known * Y, ridge.weights, known, by_value) * Y, known
    for done in range(_ROUNDS):
        lam, _ = ridge.best_lam(moved, counted)
        predictions = moved - ridge.left_out(lam, moved)
        residuals = known * (Y - predictions)
        factors = _shortened(residuals, ridge.weights, known, by_value, _REJECT if done else math.inf)
        moved, counted = predictions + factors * (Y - predictions), known * (factors > 0)
    return moved, counted


def relative_sizes(ridge: Ridge | GappedRidge, left_out: np.ndarray, seen: np.ndarray | None) -> np.ndarray:
    """Return the root mean squares of leave-one-out residuals over what is expected at the inputs, (n,).

    Otherwise samples at inputs where residuals are large would be taken for wrong ones. What is expected is predicted
    from the logarithms of the sizes of the other samples.
    """
    known = np.ones_like(left_out) if seen is None else np.broadcast_to(seen, left_out.shape)
    sizes = np.linalg.norm(known * left_out, axis=1) / np.sqrt(np.maximum(np.sum(known, axis=1), 1.0))
    middle = weighted_quantile(sizes, ridge.weights, 0.5)
    if middle == 0:
        return sizes
    logs = np.log(np.maximum(sizes / middle, _LEAST))
    found: np.ndarray = sizes / middle / np.exp(np.clip(ridge.predicted(logs), math.log(_LEAST), -math.log(_LEAST)))
    return found


def _shortened(
    residuals: np.ndarray, weights: np.ndarray, known: np.ndarray, by_value: bool, reject: float = math.inf
) -> np.ndarray:
    """Return factors (n, 1) that shorten residuals to norms of at most ``_CLIP`` robust scales, 0 beyond ``reject``.

    With ``by_value``, factors (n, p) shorten each value by the scale of its output. ``known`` is 1 where a target is
    known. The scale comes from a high quantile, so that up to a fifth of wrong targets do not move it far, and outputs
    that are constant for most samples have a positive one.
    """
    if by_value:
        columns = zip(residuals.T, known.T, strict=True)
        return np.hstack([_shortened(one[:, None], weights * of, of[:, None], False, reject) for one, of in columns])
    norms = np.linalg.norm(residuals, axis=1) / np.sqrt(np.maximum(np.mean(known, axis=1), np.finfo(float).tiny))
    scale = weighted_quantile(norms, weights, _LEVEL) / _NORMAL
    if scale == 0:
        return np.ones((len(norms), 1))
    factors = np.minimum(1.0, _CLIP * scale / np.where(norms > 0, norms, 1.0))
    shortened: np.ndarray = np.where(norms > reject * scale, 0.0, factors)[:, None]
    return shortened
