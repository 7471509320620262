"""Whether some targets are wrong, from the errors of samples that were left out."""

import numpy as np

from fenchel._statistics import weighted_quantile

__all__ = ["has_gap", "is_contaminated", "total_with_error"]

_MIDDLE, _HALF = 0.5, 0.6744897501960817  # quantile level of the sizes to begin with, and that quantile of |N(0, 1)|
_LEVEL, _NORMAL = 0.8, 1.2815515655446004  # the same for those that are not large
_ROUNDS = 20
_LARGE = 3.0  # robust deviations; larger sizes do not count in their own scale
_FAR = 1.8  # times as large
# The tail of noise thins out, however heavy it is: of the sizes that are large, less than 1 / 1.8 are 1.8 times as
# large if the tail has a mean (Pareto's law of index 1 is the limit). With two thirds they are a group of their own.
_SHARE = 2 / 3
# Few wrong targets may be lost among large residuals of the noise. If noise has a variance (Pareto's law of index 2 is
# the limit), the kth largest size is r times the next one with probability r^(-2k).
_UNLIKELY = 0.01


def is_contaminated(sizes: np.ndarray, weights: np.ndarray) -> bool:
    """Whether the largest of some sizes of residuals (n,) are a group of their own, beyond a gap.

    Skewed or heavy-tailed noise has large residuals of all sizes, targets that are wrong do not.
    """
    scale = _scale(sizes, weights)
    large, far = (float(np.sum(weights[sizes > factor * _LARGE * scale])) for factor in (1.0, _FAR))
    return scale > 0 and far > _SHARE * large


def has_gap(sizes: np.ndarray, is_gross: np.ndarray, weights: np.ndarray) -> bool:
    """Whether some far sizes are so much larger than the next one that noise with a variance is unlikely.

    Only errors that are gross count, as large as the outputs vary: without noise, those at the ends of the inputs are
    far larger than the others, and small.
    """
    large = _LARGE * _scale(sizes, weights)
    order = np.argsort(-sizes, kind="stable")
    ordered = np.maximum(sizes[order], large)
    count = int(np.sum(np.cumprod((ordered > _FAR * large) & is_gross[order])))
    if count == 0 or not large > 0:
        return False
    ratios = ordered[:count] / np.append(ordered[1:], large)[:count]
    return bool(np.any(2 * np.arange(1, count + 1) * np.log(ratios) > np.log(count / _UNLIKELY)))


def total_with_error(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the weighted sum of the values of distinct samples, and its standard error."""
    total = float(weights @ values)
    return total, float(np.linalg.norm(weights * (values - total / np.sum(weights))))


def _scale(sizes: np.ndarray, weights: np.ndarray) -> float:
    """Return a robust deviation of sizes, from those within three of it."""
    scale = weighted_quantile(sizes, weights, _MIDDLE) / _HALF
    for _ in range(_ROUNDS):
        usual, before = sizes <= _LARGE * scale, scale
        scale = weighted_quantile(sizes[usual], weights[usual], _LEVEL) / _NORMAL
        if scale == before:
            break
    return scale
