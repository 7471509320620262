"""Warnings about kernels and losses whose scale does not fit the data, and about uninformative data."""

import numpy as np

from fenchel._array import Array, as_index, host, is_numpy, namespace
from fenchel.exceptions import DataWarning, ScaleWarning, warn_user
from fenchel.kernels import ScalarKernel
from fenchel.kernels.separable import BoundTerms
from fenchel.losses import Loss
from fenchel.model.training_set import TrainingSet
from fenchel.operators import ScalarOperator

__all__ = [
    "far_inputs",
    "warn_of_clipping",
    "warn_of_distance",
    "warn_of_domain",
    "warn_of_duplicates",
    "warn_of_kernel",
]

_ROWS = 50  # number of rows of the Gram matrix that are checked
_FEWEST = 30  # minimum number of samples for a check of the scale of a kernel or a loss
_ALONE = 1e-3  # kernel value with the nearest other sample, relative to the diagonal, below which a sample is isolated
_SAME = 1e-6  # range of all entries relative to the diagonal, below which the kernel cannot tell samples apart
_REPEATED = 0.5  # fraction of the variance of the outputs that remains between samples with the same input
_FAR = 1e-6  # cosine with training inputs in the feature space, below which an input is far from all of them
_SHOWN = 5  # number of inputs that a warning names
_CLIPPED = 0.95  # fraction of clipped samples above which the quadratic part of a loss is lost


def warn_of_kernel(training_set: TrainingSet) -> None:
    """Warn about a Gram matrix that is nearly diagonal or nearly constant."""
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
            "The kernel matrix is nearly diagonal: the median kernel value of a sample and its nearest neighbour is "
            f"{max(nearest, 0.0):.1e} of the diagonal. {fix} choose a larger bandwidth, such as gamma='median'.",
            ScaleWarning,
            "kernel-scale",
        )
    elif 0 < spread < _SAME:
        warn_user(
            f"The kernel matrix is nearly constant: its values differ by {spread:.1e} of the diagonal. {fix} choose "
            "a smaller bandwidth, such as gamma='median'.",
            ScaleWarning,
            "kernel-scale",
        )


def warn_of_clipping(loss: Loss, scores: Array | None) -> None:
    """Warn if nearly all samples are clipped by a loss that is quadratic near zero."""
    if scores is None or loss.pointwise or not loss.curvature > 0 or scores.shape[0] < _FEWEST:
        return  # with p = 1 single values are clipped, and a sample with one clipped value scores 1
    share = float(np.mean(host(scores) >= 1))
    if share > _CLIPPED:
        warn_user(
            f"{loss!r} clips {share:.0%} of the samples: its threshold is small compared with the residuals, and "
            "the loss is nearly the norm. Its parameter is in units of the outputs: raise it, or use 'auto'. If a "
            "search chose it, look for nearly identical samples, and pass replicates as groups.",
            ScaleWarning,
            "clipped-samples",
        )


def warn_of_duplicates(training_set: TrainingSet) -> None:
    """Warn if samples with the same inputs have outputs that differ by more than half of all variance."""
    n, X, targets = training_set.n_samples, training_set.X, training_set.targets.rows
    is_unit_vectors = targets.shape[1] >= n  # such as the targets of the loss trick, which always differ
    if n < _FEWEST or not is_numpy(X) or training_set.is_pairwise or is_unit_vectors:
        return
    _, group = np.unique([hash(row.tobytes()) for row in X], return_inverse=True)
    if np.max(group) == n - 1:
        return
    values, observed = host(targets).astype(np.float64), training_set.targets.observed
    masses = np.broadcast_to(training_set.sample.counts[:, None], values.shape)
    masses = masses if observed is None else masses * host(observed)
    share = _within(values, masses, group) / (_within(values, masses, np.zeros_like(group)) or 1.0)
    if share > _REPEATED:
        repeated = float(np.mean(np.bincount(group)[group] > 1))
        warn_user(
            f"{repeated:.0%} of the samples share their inputs with another sample, and the differences between their "
            f"outputs make up {share:.0%} of the variance, which no function of X can explain. Add columns to X that "
            "distinguish these samples, or average them and pass their numbers as sample_weight.",
            DataWarning,
            "same-inputs",
        )


def _within(values: np.ndarray, masses: np.ndarray, group: np.ndarray) -> float:
    """Return the sum of the squared distances of values (n, p) to the means of their groups."""
    sums, totals = np.zeros((2, np.max(group) + 1, values.shape[1]))
    np.add.at(sums, group, masses * values)
    np.add.at(totals, group, masses)
    means = sums / np.where(totals > 0, totals, 1.0)
    return float(np.sum(masses * (values - means[group]) ** 2))


def far_inputs(scalar: ScalarKernel, gram: ScalarOperator, X: Array, Z: Array) -> np.ndarray:
    """Return a mask of the inputs X whose kernel values with all training inputs Z nearly vanish.

    ``gram`` is the Gram operator of X and Z.
    """
    is_far = np.zeros(X.shape[0], dtype=bool)
    if not is_numpy(X):
        return is_far
    sums = np.abs(gram.matmul(np.ones((Z.shape[0], 1), dtype=X.dtype)))[:, 0]
    least = _FAR * np.sqrt(np.abs(scalar.diag(X))) * np.sqrt(np.max(np.abs(scalar.diag(Z))))
    suspects = np.flatnonzero((sums < Z.shape[0] * least) & (least > 0))
    if len(suspects):
        is_far[suspects] = np.max(np.abs(scalar(X[suspects], Z)), axis=1) < least[suspects]
    return is_far


def warn_of_distance(is_far: np.ndarray) -> None:
    """Warn about new inputs that are far from all training inputs."""
    places = np.flatnonzero(is_far).tolist()
    if places:
        shown = ", ".join(map(str, places[:_SHOWN])) + (", ..." if len(places) > _SHOWN else "")
        warn_user(
            f"{len(places)} of {len(is_far)} samples are far from all training inputs (index {shown}): every kernel "
            f"value is below {_FAR:g} of the diagonal, and the prediction is the centre of the outputs. Check the "
            "units of X, or use a wider kernel or one with a linear part.",
            DataWarning,
            "far-inputs",
        )


def warn_of_domain(points: np.ndarray, grid: np.ndarray) -> None:
    """Warn about points outside the domain of the training curves."""
    slack = 1e-9 * float(grid[-1] - grid[0])
    if points[0] < grid[0] - slack or points[-1] > grid[-1] + slack:
        warn_user(
            f"Predictions are requested from {points[0]:g} to {points[-1]:g}, but the training curves are known only "
            f"from {grid[0]:g} to {grid[-1]:g}: predictions outside this domain are meaningless. Check the unit of the "
            "grid, or request points in this domain.",
            DataWarning,
            "outside-the-domain",
        )


def _gram_rows(training_set: TrainingSet) -> tuple[np.ndarray, np.ndarray] | None:
    """Return some rows of the Gram matrix of a scalar kernel, and their indices; ``None`` for other kernels."""
    kernel, n = training_set.kernel, training_set.n_samples
    terms = kernel.terms if isinstance(kernel, BoundTerms) else ()
    if n < _FEWEST or len(terms) != 1 or training_set.approximation is not None:
        return None
    X, places = training_set.X, np.linspace(0, n - 1, min(n, _ROWS)).astype(int)
    some = namespace(X).take(X, as_index(places, X), axis=0)
    values = some if training_set.is_pairwise else terms[0][0](some, X)
    return host(values).astype(np.float64), places
