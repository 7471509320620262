"""Choice of the kernel and of the type of loss for ``"auto"``."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import as_like, host, is_sparse
from fenchel._progress import part
from fenchel._statistics import repeats_of
from fenchel.data.functional import Curves
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Constant, Gaussian, OutputOperator, ScalarKernel, Separable, as_operator_kernel
from fenchel.losses import Huber, Loss, Square
from fenchel.model.codec import Task
from fenchel.model.curve_gaps import completed_targets
from fenchel.model.fit import solve
from fenchel.model.logarithms import Logarithms
from fenchel.model.memory import check_fits
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec, as_losses
from fenchel.model.training_set import TrainingSet
from fenchel.search.contamination import is_contaminated
from fenchel.search.race import MOST_REFINED, KernelSearch, Trial, search_kernel
from fenchel.search.race.race import Ridges
from fenchel.search.result import Larger
from fenchel.search.robustness import Folds, has_wrong_rows, is_robust_better
from fenchel.search.wrong_values import (
    CERTAINLY_WRONG,
    ceilings_of,
    has_values,
    is_better_by_value,
    seen_values,
    value_sizes,
)
from fenchel.solvers import Auto

__all__ = [
    "KernelChoice",
    "check_metric",
    "choose_kernel",
    "distinct",
    "is_auto",
    "is_robust",
    "raced",
    "repeated_pairs",
    "searched",
    "trial_table",
]

_STEPS = 10.0 ** np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # lam, relative to that of the kernel search
_REPORTED = ("n_samples", "lam", "error", "seconds")
_OF_VALUES = "scale:2"  # threshold of single values, at which the search has shortened them too
_FIRST = 0.6  # share of the first race, whose factorisations the others use
_SECOND = 0.5  # share of the second race in what is left, if there is a third one
_RACES = 0.6  # share of the last race in what is left; then losses may be compared on folds


@dataclass(frozen=True)
class KernelChoice:
    """The choice for a sample: the data in the scaling that the losses need, a kernel with its lam, and the losses."""

    training_set: TrainingSet  # its kernel does not matter
    search: KernelSearch
    losses: list[Loss]
    is_robust: bool
    trials: dict[str, list[Any]]  # one entry for each trial
    is_wrong: bool = False  # whether some targets are wrong
    operator: OutputOperator | None = None  # of outputs with missing values; None: the one that was given
    logarithms: Logarithms | None = None  # of skewed outputs, which are then the targets
    unseen: tuple[ScalarKernel, ...] = ()  # the kernel as learned without each fold, if it was learned from outputs

    @classmethod
    def of(
        cls, training_set: TrainingSet, losses: Sequence[Loss], robust: bool, searches: dict[bool, KernelSearch]
    ) -> "KernelChoice":
        """Return the choice of the robust or the other search, with the trials of both."""
        return cls(training_set, searches[robust], list(losses), robust, trial_table(searches))

    def resolved_losses(self) -> list[Loss]:
        """Return the losses with relative thresholds resolved by the residuals of the search."""
        residuals, counts, point_scale = self.search.residuals, self._counts, self.training_set.targets.point_scale
        if self.search.by_value:
            seen = seen_values(self.training_set, self.search)
            residuals, counts = np.abs(residuals)[seen], np.broadcast_to(counts[:, None], seen.shape)[seen]
        return [loss.resolve(residuals, counts, point_scale) for loss in self.losses]

    def losses_at(self, training_set: TrainingSet, lam: float, tol: float) -> list[Loss]:
        """Return the losses with thresholds from the residuals of the square loss without gross errors, at another lam.

        The duals of a fit are its residuals: a threshold belongs to a kernel, an output operator and a lam.
        """
        pilot = solve(self.cleaned(training_set), Spec("search", Square(), lam, Auto(), tol))
        residuals = pilot.residuals + training_set.ridge.unscale(training_set.ridge.targets - pilot.problem.targets)
        return [training_set.resolved(loss, residuals) for loss in self.losses]

    def cleaned(self, training_set: TrainingSet) -> TrainingSet:
        """Return the training set with gross errors removed from the outputs by the robust search."""
        problem, targets = training_set.ridge, as_like(self.search.cleaned, training_set.targets.rows)
        if problem.mask is not None:
            targets = targets * problem.mask
        targets = targets if problem.root is None else targets * problem.root
        return training_set.with_targets(targets)

    def told(self, name: str, fits: Sequence[tuple[Trial, float]]) -> "KernelChoice":
        """Return the choice with further trials, and a column for what sets them apart, which was zero before."""
        before = self.trials | {name: self.trials.get(name, [0.0] * len(self.trials["lam"]))}
        own = dict.fromkeys(before, 0.0) | self._about
        rows = [own | _trial_row(trial, self.is_robust) | {name: value} for trial, value in fits]
        return replace(self, trials={key: [*values, *(row[key] for row in rows)] for key, values in before.items()})

    def told_of_larger(self, parts: Sequence[Larger]) -> "KernelChoice":
        """Return the choice with what larger parts of the sample said about the width and lam of its kernel."""
        if not parts:
            return self
        best, before = self.search.candidate, self.trials | {"held_out": [0] * len(self.trials["lam"])}
        own = {key: values[-1] for key, values in before.items()} | self._about | asdict(best)
        rows = [own | vars(one) | {"width": best.width * one.factor} for one in parts]
        return replace(self, trials={key: [*values, *(row[key] for row in rows)] for key, values in before.items()})

    def of_width(self, factor: float) -> ScalarKernel | None:
        """Return the kernel with a multiple of its width, ``None`` if it is not just one of the candidates."""
        inputs, best = self.search.ridges.inputs, self.search.candidate
        is_candidate = repr(self.search.kernel) == repr(inputs.kernel(best))
        return inputs.kernel(replace(best, width=best.width * factor)) if is_candidate else None

    @property
    def parts(self) -> dict[str, Any]:
        """The parameters of a machine that were chosen."""
        found = {"kernel": self.search.kernel, "operator": self.operator, "scale": self.logarithms}
        return {name: part for name, part in found.items() if part is not None}

    @property
    def ceiling(self) -> np.ndarray:
        """Squared error beyond which a target is certainly wrong, from the leave-one-out errors of the search.

        Of a sample; if values are cleaned, one for each output, (p,).
        """
        if self.search.by_value:
            return ceilings_of(self.training_set, self.search)
        norms = np.linalg.norm(self.search.left_out, axis=1)
        return np.asarray(CERTAINLY_WRONG.of(norms, self._counts) ** 2)

    @property
    def _about(self) -> dict[str, float]:
        """What is told of each trial of this choice."""
        return {"robust": self.is_robust, "logarithms": float(self.logarithms is not None)}

    @property
    def _counts(self) -> np.ndarray:
        return np.asarray(self.training_set.sample.counts[self.search.index])

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
    if owner.get_params(deep=False).get("metric") is not None and not is_auto(owner.kernel):
        raise IncompatibleError(
            f"The 'metric' parameter needs kernel='auto'. Got {owner.kernel!r}. Use Projected(kernel, matrix) instead."
        )


def is_robust(loss: Loss, training_set: TrainingSet) -> bool:
    """Whether the influence of a sample on a fit with the loss is bounded."""
    targets = training_set.targets
    bound = loss.resolve(np.ones(1)).bind(targets.rows, targets.point_scale)
    return bound.saturation(0 * targets.rows) is not None


def choose_kernel(
    encode: Callable[[bool], TrainingSet],
    losses: Any,
    folds: Folds,
    curves: bool = False,
    grid: ArrayLike | None = None,
    metric: Any = None,
    groups: np.ndarray | None = None,
    max_samples: int = MOST_REFINED,
    refines: bool = True,
) -> KernelChoice:
    """Choose the kernel with the smallest leave-one-out error, and the losses to fit with.

    ``encode(robust)`` returns the data, centred and scaled robustly or not; its kernel does not matter. ``losses`` are
    those to choose from; the other arguments are as for ``search_kernel``. With ``"auto"`` there are two searches, one
    for the square loss and one for Huber's loss. Huber's loss is chosen if some targets are wrong, as their residuals
    show (``is_contaminated``): the mean of held-out errors would follow them. Otherwise it is chosen if its mean error
    on the folds is smaller.
    """
    training_set = encode(False)
    search = partial(searched, curves=curves, grid=grid, metric=metric, groups=groups)
    search = partial(search, max_samples=max_samples, refines=refines)
    if not is_auto(losses):
        given = as_losses(losses)
        robust = any(is_robust(loss, training_set) for loss in given)
        training_set = encode(True) if robust else training_set
        return KernelChoice.of(training_set, given, robust, {robust: search(training_set, robust)})
    candidates = {False: training_set, True: encode(True)}
    with part(_FIRST):
        first = search(training_set, False)
    is_by_value = has_values(training_set)
    with part(_SECOND if is_by_value else _RACES):  # the inputs are the same, and so are the factorisations
        searches = {False: first, True: search(candidates[True], True, ridges=first.ridges)}
    places, weights = _distinct_places(training_set.sample, groups, first.index)
    is_wrong = False
    if is_by_value:
        with part(_RACES):
            by_value = search(candidates[True], True, ridges=first.ridges, by_value=True)
        is_wrong = is_contaminated(*value_sizes(candidates[True], by_value, places, weights))
        ceilings, rows = ceilings_of(candidates[True], by_value), searches[True].left_out[places]
        if is_wrong and is_better_by_value(by_value.left_out[places], rows, weights, ceilings):
            searches[True] = by_value
    is_wrong = is_wrong or has_wrong_rows(candidates, searches, places, weights)
    robust = is_wrong or is_robust_better(candidates, searches, places, weights, folds)
    huber = Huber(_OF_VALUES, p=1) if searches[True].by_value else Huber("auto")
    found = KernelChoice.of(candidates[robust], [huber] if robust else [Square()], robust, searches)
    return replace(found, is_wrong=is_wrong)


def raced(
    task: Callable[[bool], Task],
    sample: Sample,
    spec: Spec,
    folds: Folds,
    losses: Any,
    metric: Any = None,
    groups: np.ndarray | None = None,
    max_samples: int = MOST_REFINED,
    refines: bool = True,
) -> KernelChoice:
    """Return the choice of a kernel on points; ``task(robust)`` centres and scales the outputs robustly or not.

    ``folds`` returns those on which losses are compared, and raises if there are too few samples; the other arguments
    are as for ``choose_kernel``.
    """

    def encode(robust: bool) -> TrainingSet:
        codec, targets = task(robust).learn(sample)
        training_set = TrainingSet.of(sample, codec, targets, Separable(Constant()), spec.exactly())
        folds(training_set)
        check_fits(sample.X, as_operator_kernel(Gaussian()), spec, targets.width)  # before the search, not after
        return training_set

    grid = sample.inputs.grid if sample.inputs.takes_channels else None
    return choose_kernel(encode, losses, folds, grid is not None, grid, metric, groups, max_samples, refines)


def searched(
    training_set: TrainingSet,
    robust: bool,
    curves: bool,
    grid: ArrayLike | None,
    metric: Any,
    groups: np.ndarray | None,
    max_samples: int,
    refines: bool,
    ridges: Ridges | None = None,
    by_value: bool = False,
) -> KernelSearch:
    """Return the kernel search of a training set; a sample given twice is left out as one of weight 2 is."""
    targets, sample = training_set.targets, training_set.sample
    rows = targets.rows if targets.row_scale is None else completed_targets(training_set.codec, targets)
    given = sample.X, rows, targets.observed, sample.kept(groups)
    first, which = repeated_pairs(sample, groups) or (slice(None), None)
    X, rows, observed, kept_groups = (None if one is None else host(one)[first] for one in given)
    weights = sample.weights if which is None else np.bincount(which, sample.counts)
    search = search_kernel(
        X,
        rows,
        weights,
        robust=robust,
        curves=curves,
        grid=grid,
        max_samples=max_samples,
        observed=observed,
        metric=metric,
        groups=kept_groups,
        ridges=ridges,
        imputed=targets.row_scale is not None,
        by_value=by_value,
        blocks=sample.inputs.blocks,
        refines=refines,
    )
    search = search if which is None else _of_all(search, which)
    if targets.row_scale is None:
        return search
    rows = host(targets.row_scale)[search.index]
    return replace(search, **{name: rows * getattr(search, name) for name in ("left_out", "residuals", "cleaned")})


def repeated_pairs(sample: Sample, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ``repeats_of`` the pairs of inputs and outputs, of one group; ``None`` if there are none."""
    y = sample.y.values if isinstance(sample.y, Curves) else sample.y
    if is_sparse(sample.X) or is_sparse(y) or y.dtype == object:
        return None
    n = sample.n_samples
    parts = [host(sample.X).reshape(n, -1), host(y).reshape(n, -1)]
    if groups is not None:
        parts.append(np.unique(np.asarray(sample.kept(groups)), return_inverse=True)[1].reshape(n, 1))
    return repeats_of(np.hstack(parts))


def distinct(sample: Sample, groups: np.ndarray | None = None) -> tuple[Sample, np.ndarray]:
    """Return the sample with repeated pairs once, with their total weight, and the place of each sample in it."""
    repeats = repeated_pairs(sample, groups)
    if repeats is None:
        return sample, np.arange(sample.n_samples)
    first, which = repeats
    return replace(sample.keeping(first), weights=as_like(np.bincount(which, sample.counts), sample.X)), which


def _of_all(search: KernelSearch, which: np.ndarray) -> KernelSearch:
    """Return a search on distinct samples as one on all of them; ``which`` says which one each sample is."""
    place = np.full(int(which.max()) + 1, -1)
    place[search.index] = np.arange(len(search.index))
    index = np.flatnonzero(place[which] >= 0)
    at = place[which[index]]
    rows = {name: getattr(search, name)[at] for name in ("left_out", "residuals", "cleaned", "sizes")}
    return replace(search, index=index, **rows)


def _distinct_places(sample: Sample, groups: np.ndarray | None, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places in ``index`` of the distinct samples, and their total weights."""
    repeats, counts = repeated_pairs(sample, groups), sample.counts[index]
    if repeats is None:
        return np.arange(len(index)), counts
    places, which = np.unique(repeats[1][index], return_index=True, return_inverse=True)[1:]
    return places, np.bincount(which, counts)


def trial_table(searches: dict[bool, KernelSearch]) -> dict[str, list[Any]]:
    """Return the trials of robust and other searches as a dict of lists with one entry for each trial."""
    rows = [_trial_row(trial, is_robust) for is_robust, search in searches.items() for trial in search.trials]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _trial_row(trial: Trial, is_robust: bool) -> dict[str, Any]:
    """Return what is told of a trial."""
    about = asdict(trial.candidate)
    if not trial.candidate.weights:  # inputs are of one kind
        about = {name: value for name, value in about.items() if name not in ("weights", "is_sum")}
    return {"robust": is_robust, **about, **{name: getattr(trial, name) for name in _REPORTED}}
