"""Whether a robust loss predicts better than the square loss."""

from collections.abc import Callable

import numpy as np

from fenchel._array import host
from fenchel._progress import part
from fenchel._statistics import weighted_median, weighted_quantile
from fenchel.kernels import Separable
from fenchel.losses import Huber, Loss, Square
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet
from fenchel.operators import error_in_single
from fenchel.resample.held_out import held_out
from fenchel.search.contamination import has_gap, is_contaminated
from fenchel.search.race import KernelSearch
from fenchel.solvers import Auto, Krylov
from fenchel.solvers.costs import EIGEN, FLOPS

__all__ = ["Folds", "has_wrong_rows", "is_robust_better"]

Folds = Callable[[TrainingSet], list[np.ndarray]]
_GAP = 1e-3  # of the fits without a fold


def has_wrong_rows(
    candidates: dict[bool, TrainingSet],
    searches: dict[bool, KernelSearch],
    places: np.ndarray,
    weights: np.ndarray,
) -> bool:
    """Whether some targets are wrong; ``places`` and ``weights`` are those of distinct samples."""
    square, huber = (_left_out_errors(candidates[one], searches[one], candidates[False])[places] for one in searches)
    # a wrong target is far from the predictions of both searches, a right one may be far from those of the robust one
    if not 4 * np.max(square) >= np.max(huber):
        return False
    sizes = searches[True].sizes[places]
    return is_contaminated(sizes, weights) or has_gap(
        sizes, _are_gross(candidates[True], searches[True], places), weights
    )


def _are_gross(training_set: TrainingSet, search: KernelSearch, places: np.ndarray) -> np.ndarray:
    """Whether each residual of distinct samples is larger than half of the outputs are far from their median."""
    counts, rows = training_set.sample.counts[search.index], host(training_set.targets.rows)[search.index]
    distances = np.linalg.norm(rows - weighted_median(rows, counts), axis=1)
    return np.asarray(np.linalg.norm(search.left_out, axis=1) > weighted_quantile(distances, counts, 0.5))[places]


def is_robust_better(
    candidates: dict[bool, TrainingSet],
    searches: dict[bool, KernelSearch],
    places: np.ndarray,
    weights: np.ndarray,
    folds: Folds,
) -> bool:
    """Whether Huber's loss is better than the square loss, each with the kernel and the lam of its search.

    If no targets are wrong, the mean errors of samples that were held out decide: a robust loss is biased where errors
    are skewed, and has more noise where they are normal. The leave-one-out errors of the robust search are too small,
    since a sample has moved the targets by which it is predicted: if they are larger than those of the square loss,
    nothing needs to be fitted. ``places`` and ``weights`` are those of distinct samples.
    """
    square, huber = (_left_out_errors(candidates[one], searches[one], candidates[False])[places] for one in searches)
    if weights @ huber > weights @ square:
        return False
    errors = {}
    for one, share in ((False, 0.5), (True, 1.0)):
        with part(share):
            errors[one] = _held_out_error(candidates[one], searches[one], folds, candidates[False])
    return errors[True] < errors[False]


def _left_out_errors(training_set: TrainingSet, search: KernelSearch, other: TrainingSet) -> np.ndarray:
    """Return the squared leave-one-out errors of the samples of a search, in the units of other data.

    The mean residual is subtracted: gross errors of one sign shift the mean of the outputs, and a model that follows
    them is no better than one that is shifted.
    """
    counts = training_set.sample.counts[search.index]
    observed, units = training_set.targets.observed, training_set.codec.units
    seen = np.ones_like(search.left_out) if observed is None else host(observed)[search.index]
    masses = np.maximum(counts @ seen, np.finfo(float).tiny)  # of a point without observations
    residuals = seen * (search.left_out - (counts @ search.left_out) / masses) * units
    errors: np.ndarray = np.sum((residuals / other.codec.units) ** 2, axis=1)
    return errors


def _held_out_error(training_set: TrainingSet, search: KernelSearch, folds: Folds, other: TrainingSet) -> float:
    """Return the mean squared error of held-out samples with the kernel and the lam of a search, in units as above."""
    counts, targets = training_set.sample.counts, training_set.targets
    loss: Loss = Square()
    if training_set is not other:
        loss = Huber("auto").resolve(search.residuals, counts[search.index], targets.point_scale)
    parts = folds(training_set)
    solver = Krylov() if _is_streamed(training_set, search, loss, len(parts)) else Auto()
    spec = Spec("search", Square(), search.lam, solver, _GAP, adjustable=("approximation",))
    problem = training_set.with_kernel(Separable(search.kernel), spec).ridge
    (found,) = held_out(problem, [loss], [search.lam], parts, _GAP)
    seen = 1.0 if targets.observed is None else host(targets.observed)
    residuals = seen * (host(targets.rows) - host(found.predictions)) * training_set.codec.units / other.codec.units
    errors = np.sum(residuals**2, axis=1)
    known = ~np.isnan(errors)
    return float(np.average(errors[known], weights=counts[known]))


def _is_streamed(training_set: TrainingSet, search: KernelSearch, loss: Loss, count: int) -> bool:
    """Whether products with one matrix for all folds take less time than a factorisation of each, for one lam."""
    n, p = training_set.n_samples, training_set.targets.width
    size = float(np.mean(host(search.kernel.diag(training_set.X))))
    products = Krylov().estimate(n, p * count, loss, search.lam, is_stored=True).seconds
    factors = count * EIGEN * (n - n / count) ** 3 / FLOPS
    return products < factors and search.lam * n > error_in_single(n, size)
