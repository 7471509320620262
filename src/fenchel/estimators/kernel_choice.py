"""Choice of the kernel and of the type of loss for ``"auto"``."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fenchel._array import Array, as_like, host
from fenchel.estimators.curve_gaps import completed_targets
from fenchel.estimators.fitted_dual import fit_dual
from fenchel.estimators.memory import check_fits
from fenchel.estimators.training_set import Encoded, TrainingSet, with_kernel
from fenchel.estimators.validation import as_losses
from fenchel.exceptions import IncompatibleError
from fenchel.kernel_search import KernelSearch, search_kernel
from fenchel.kernels import Constant, Gaussian, as_operator_kernel
from fenchel.losses import Huber, Loss, Square
from fenchel.losses.relative import RelativeSize
from fenchel.solvers import Auto

__all__ = ["KernelChoice", "check_metric", "choose_kernel", "encoded_for_search", "is_auto", "is_robust", "trial_table"]

_STEPS = 10.0 ** np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # lam, relative to that of the kernel search
_REPORTED = ("n_samples", "lam", "error", "seconds")
_WRONG = 4.0  # robust deviations; one normal error in 16 000 is larger
_ERRORS = 1.5  # standard errors by which the square loss must win, see choose_kernel


@dataclass(frozen=True)
class KernelChoice:
    """The choice for a sample: the data in the scaling that the losses need, a kernel with its lam, and the losses."""

    encoded: Any
    search: KernelSearch
    losses: list[Loss]
    is_robust: bool
    trials: dict[str, list[Any]]  # one entry for each trial

    @classmethod
    def of(
        cls, encoded: Any, losses: Sequence[Loss], robust: bool, searches: dict[bool, KernelSearch]
    ) -> "KernelChoice":
        """Return the choice of the robust or the other search, with the trials of both."""
        return cls(encoded, searches[robust], list(losses), robust, trial_table(searches))

    def resolved_losses(self) -> list[Loss]:
        """Return the losses with relative thresholds resolved by the residuals of the search."""
        training_set = self.encoded.training_set
        counts, point_scale = training_set.counts[self.search.index], training_set.representation.point_scale
        return [loss.resolve(self.search.residuals, counts, point_scale) for loss in self.losses]

    def losses_at(self, training_set: TrainingSet, lam: float, tol: float) -> list[Loss]:
        """Return the losses with thresholds from the residuals of the square loss without gross errors, at another lam.

        The duals of a fit are its residuals: a threshold belongs to a kernel, an output operator and a lam.
        """
        pilot = fit_dual(self.cleaned(training_set), Square(), lam, Auto(), tol)
        residuals = pilot.residuals + training_set.ridge.unscale(training_set.ridge.targets - pilot.problem.targets)
        weights, point_scale = training_set.weights, training_set.representation.point_scale
        return [loss.resolve(residuals, weights, point_scale) for loss in self.losses]

    def cleaned(self, training_set: TrainingSet) -> TrainingSet:
        """Return the training set with gross errors removed from the outputs by the robust search."""
        problem, targets = training_set.ridge, as_like(self.search.cleaned, training_set.targets)
        if problem.mask is not None:
            targets = targets * problem.mask
        targets = targets if problem.root is None else targets * problem.root
        return replace(training_set, ridge=replace(problem, targets=targets))

    @property
    def ceiling(self) -> float:
        """Squared distance beyond which a target is certainly wrong, from the leave-one-out errors of the search."""
        counts = self.encoded.training_set.counts[self.search.index]
        return float(RelativeSize("scale", _WRONG).of(np.linalg.norm(self.search.left_out, axis=1), counts) ** 2)

    @property
    def lams(self) -> list[float]:
        """Two decades around the lam of the kernel search."""
        lams: list[float] = (self.search.lam * _STEPS).tolist()
        return lams


def is_auto(value: Any) -> bool:
    """Whether a parameter is ``"auto"``."""
    return isinstance(value, str) and value == "auto"


def check_metric(owner: Any) -> None:
    """Raise if an estimator has both a metric and a given kernel, which has its own."""
    if owner.metric is not None and not is_auto(owner.kernel):
        raise IncompatibleError(
            f"The 'metric' parameter needs kernel='auto'. Got {owner.kernel!r}. Use Projected(kernel, matrix) instead."
        )


def is_robust(loss: Loss, training_set: TrainingSet) -> bool:
    """Whether the influence of a sample on a fit with the loss is bounded."""
    targets = training_set.targets
    bound = loss.resolve(np.ones(1)).bind(targets, training_set.representation.point_scale)
    return bound.saturation(0 * targets) is not None


def choose_kernel(
    encode: Callable[[bool], Encoded],
    losses: Any,
    curves: bool = False,
    grid: Any = None,
    metric: Any = None,
    groups: np.ndarray | None = None,
) -> KernelChoice:
    """Choose the kernel with the smallest leave-one-out error, and the losses to fit with.

    ``encode(robust)`` returns the data, centred and scaled robustly or not; its kernel does not matter. ``losses`` are
    those to choose from; ``metric`` and ``groups`` are as for ``search_kernel``. With ``"auto"`` there are two
    searches, one for the square loss and one for Huber's loss, and the square loss is chosen if the variance of its
    leave-one-out errors is smaller by more than 1.5 standard errors of the difference. Gross errors in the targets make
    that difference noisy, so that the robust loss is chosen; with heavy tails that the inputs explain, the difference
    is clear.
    """
    encoded = encode(False)
    if not is_auto(losses):
        given = as_losses(losses)
        robust = any(is_robust(loss, encoded.training_set) for loss in given)
        encoded = encode(True) if robust else encoded
        search = _searched(encoded.training_set, robust, curves, grid, metric, groups)
        return KernelChoice.of(encoded, given, robust, {robust: search})
    candidates = {False: encoded, True: encode(True)}
    searches = {
        robust: _searched(encoded.training_set, robust, curves, grid, metric, groups)
        for robust, encoded in candidates.items()
    }
    square, huber = (
        _squared_errors(candidates[robust], searches[robust], candidates[False]) for robust in (False, True)
    )
    difference, n = square - huber, len(square)
    spread = float(np.std(difference)) / n**0.5
    robust = not float(np.mean(difference)) < -_ERRORS * spread
    given = [Huber("auto")] if robust else [Square()]
    return KernelChoice.of(candidates[robust], given, robust, searches)


def encoded_for_search(
    owner: Any,
    losses: Any,
    estimators: dict[bool, Any],
    check: Callable[[TrainingSet], object],
    X: Any,
    y: Any,
    sample_weight: Array | None,
    groups: np.ndarray | None = None,
) -> tuple[Any, Any, KernelChoice | None]:
    """Return an estimator and its data for a search over losses and lam, with the kernel of ``owner``.

    ``losses`` are as for ``choose_kernel``; ``estimators`` has one for robust losses and one for others; ``check``
    raises if there are too few samples; ``groups`` of samples are left out together.
    """
    settings = estimators[False]._settings().swept()
    if not is_auto(owner.kernel):
        return estimators[False], estimators[False]._encode(X, y, sample_weight, settings, double=True), None
    without_kernel = replace(settings, approximation=None)

    def encode(is_robust: bool) -> Any:
        estimator = estimators[is_robust].set_params(kernel=Constant())
        encoded = estimator._encode(X, y, sample_weight, without_kernel, double=True)
        check(encoded.training_set)
        points, n_outputs = encoded.training_set.X, encoded.training_set.targets.shape[1]
        check_fits(points, as_operator_kernel(Gaussian()), settings, n_outputs)  # before the search, not after
        return encoded

    choice = choose_kernel(encode, losses, metric=getattr(owner, "metric", None), groups=groups)
    kernel = as_operator_kernel(choice.search.kernel, owner.operator)
    if owner.lams is None:
        settings = replace(settings, lam=min(choice.lams))  # the smallest lam needs the most features
    training_set = with_kernel(choice.encoded.training_set, kernel, settings)
    estimator = estimators[choice.is_robust].set_params(kernel=choice.search.kernel)
    return estimator, replace(choice.encoded, training_set=training_set), choice


def _searched(
    training_set: TrainingSet, robust: bool, curves: bool, grid: Any, metric: Any, groups: np.ndarray | None
) -> KernelSearch:
    targets, scale = training_set.targets, training_set.representation.row_scale_
    search = search_kernel(
        training_set.X,
        targets if scale is None else completed_targets(training_set.representation),
        training_set.weights,
        robust=robust,
        curves=curves,
        grid=grid,
        observed=training_set.representation.observed_,
        metric=metric,
        groups=groups if groups is None or training_set.index is None else groups[training_set.index],
    )
    if scale is None:
        return search
    rows = host(scale)[search.index]
    parts = {name: rows * getattr(search, name) for name in ("left_out", "residuals", "cleaned")}
    return replace(search, **parts)


def _squared_errors(encoded: Encoded, search: KernelSearch, other: Encoded) -> np.ndarray:
    """Return the weighted squared leave-one-out errors of the samples of a search, in the units of other data.

    The mean residual is subtracted: gross errors of one sign shift the mean of the outputs, and a model that follows
    them is no better than one that is shifted.
    """
    counts = encoded.training_set.counts[search.index]
    observed = encoded.training_set.representation.observed_
    seen = np.ones_like(search.left_out) if observed is None else host(observed)[search.index]
    masses = np.maximum(counts @ seen, np.finfo(float).tiny)  # of a point without observations
    residuals = seen * (search.left_out - (counts @ search.left_out) / masses) * _units(encoded)
    errors: np.ndarray = np.sum((residuals / _units(other)) ** 2, axis=1) * counts / np.mean(counts)
    return errors


def _units(encoded: Encoded) -> Any:
    """Return the units of the coordinates, a single number or one for each."""
    return getattr(encoded, "units", 1.0)


def trial_table(searches: dict[bool, KernelSearch]) -> dict[str, list[Any]]:
    """Return the trials of robust and other searches as a dict of lists with one entry for each trial."""
    rows = [
        {"robust": is_robust, **asdict(trial.candidate), **{name: getattr(trial, name) for name in _REPORTED}}
        for is_robust, search in searches.items()
        for trial in search.trials
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}
