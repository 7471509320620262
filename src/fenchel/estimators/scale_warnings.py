"""Warnings about kernels and losses whose scale does not fit the data."""

from typing import Any

import numpy as np

from fenchel._array import as_index, host, namespace
from fenchel.estimators.training_set import TrainingSet
from fenchel.estimators.validation import warn_user
from fenchel.exceptions import ScaleWarning
from fenchel.losses import Loss

__all__ = ["warn_of_clipping", "warn_of_kernel"]

_ROWS = 50  # of the Gram matrix that are looked at
_FEWEST = 30  # samples that say something about the scale of a kernel or a loss
_ALONE = 1e-3  # kernel with the nearest other sample, over the diagonal, at which a sample is alone
_SAME = 1e-6  # spread of all entries over the diagonal at which samples are the same to the kernel
_CLIPPED = 0.95  # share of clipped samples at which a loss has lost its quadratic part


def warn_of_kernel(training_set: TrainingSet) -> None:
    """Warn about a Gram matrix that is nearly diagonal, or nearly the same number everywhere."""
    rows = _gram_rows(training_set)
    if rows is None:
        return
    values, places = rows
    diagonal = np.abs(values[np.arange(len(places)), places])
    size = float(np.mean(diagonal))
    if not size > 0:
        return
    others = values.copy()
    others[np.arange(len(places)), places] = -np.inf
    nearest = float(np.median(np.max(others, axis=1)) / size)
    spread = float((np.max(values) - np.min(values)) / size)
    fix = "Use kernel='auto', scale the inputs, or"
    if nearest < _ALONE:
        warn_user(
            "To the kernel every sample is alone: its value for a sample and the nearest other one is, in the median, "
            f"{max(nearest, 0.0):.1e} of the diagonal. {fix} choose a larger bandwidth, such as gamma='median'.",
            ScaleWarning,
        )
    elif 0 < spread < _SAME:
        warn_user(
            f"To the kernel all samples are the same: its values differ by {spread:.1e} of the diagonal. {fix} choose "
            "a smaller bandwidth, such as gamma='median'.",
            ScaleWarning,
        )


def warn_of_clipping(loss: Loss, scores: Any) -> None:
    """Warn if nearly all samples are clipped by a loss that is quadratic near zero."""
    if scores is None or loss.pointwise or not loss.curvature > 0 or scores.shape[0] < _FEWEST:
        return  # with p = 1 single values are clipped, and a sample that has one scores 1
    share = float(np.mean(host(scores) >= 1))
    if share > _CLIPPED:
        warn_user(
            f"{loss!r} clips {share:.0%} of the samples: its threshold is small beside the residuals, and the fit is "
            "nearly that of the norm alone. Its parameter is in units of the outputs: raise it, or use 'auto'.",
            ScaleWarning,
        )


def _gram_rows(training_set: TrainingSet) -> tuple[np.ndarray, np.ndarray] | None:
    """Return some rows of the Gram matrix of a scalar kernel, and their places; ``None`` for other kernels."""
    kernel: Any = training_set.kernel
    n = training_set.n_samples
    terms: Any = getattr(kernel, "terms", ())
    if n < _FEWEST or len(terms) != 1 or not training_set.is_exact:
        return None
    X, places = training_set.X, np.linspace(0, n - 1, min(n, _ROWS)).astype(int)
    some = namespace(X).take(X, as_index(places, X), axis=0)
    values = some if training_set.is_pairwise else terms[0][0](some, X)
    return host(values).astype(np.float64), places
