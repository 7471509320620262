"""Search over losses and lam by the errors of held-out samples."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, check_cv

from fenchel._array import host
from fenchel._check import Interval, Options, check_parameter
from fenchel._progress import Work, counted, here, part
from fenchel.data.content import ranks_of_groups
from fenchel.exceptions import IncompatibleError, warn_user
from fenchel.losses import Loss, Square
from fenchel.model.fit import solve
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec, as_lams, as_losses
from fenchel.model.training_set import TrainingSet, check_loss
from fenchel.operators import streamed
from fenchel.problem.dual_problem import arithmetic
from fenchel.resample.folds import whole_folds, whole_part
from fenchel.resample.held_out import HeldOut, held_out, joined, nearly_held_out
from fenchel.resample.streamed import LOOSE_GAP
from fenchel.search.aggregates import AGGREGATES, clipped
from fenchel.search.checkpoint import Checkpoint, search_key
from fenchel.search.choice import KernelChoice, repeated_pairs
from fenchel.search.interruption import keeps_best_pair, warn_interrupted
from fenchel.search.result import PairErrors, SearchResult
from fenchel.search.scoring import Measure
from fenchel.solvers import Auto

__all__ = [
    "Search",
    "grid_share",
    "squared_distance",
    "warn_gaps",
]

_GRID = 4.0  # cost of a grid, whose folds have factorisations of their own, in fits of one pair
# with more samples loss and lam are compared on a part of them, as long as it takes: 2000 factorise in a second
MOST_SEARCHED = 2000
# gap of the folds if kernel and lam are chosen: their errors are within 2 % of those of exact solves, as tests check
_GAP = 1e-3
_MANY = 1000  # with fewer samples folds take less than a second, and are solved to tol
_MOST_STEPS = 12  # maximum number of steps by which a grid of lam is extended
_FEW = 5  # folds on which two losses are compared before the grid
_GIVEN = 0.9  # share of the given grid in a search that may extend it


def _checked_groups(groups: ArrayLike | None) -> np.ndarray:
    """Return the labels of groups as an array; raise if one is missing."""
    labels = np.asarray(groups)
    missing = [place for place, label in enumerate(labels.ravel().tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"groups must have a label for each sample. That of sample {missing[0]} is missing.")
    return labels


@dataclass(frozen=True)
class Search:
    """A grid of losses and lam, the folds, and the aggregation of held-out errors."""

    owner: str  # the estimator, for messages
    losses: list[Loss]
    lams: list[float]
    cv: object
    aggregate: str
    tol: float  # relative gap to which the folds are solved
    is_open: bool = False  # whether the grid of lam may be extended
    ceiling: float | np.ndarray = (
        math.inf
    )  # value at which squared distances are clipped, or errors of each output (p,)
    n_jobs: int | None = None
    checkpoint: Any = None
    groups: np.ndarray | None = None  # of samples that are held out together
    share: float = 1.0  # weight of the samples on which pairs are compared, in that of all
    least_lam: float = 0.0  # below which an open grid does not go
    unseen: tuple[TrainingSet, ...] = ()  # for each fold, with a kernel that has not seen its outputs; none: any fold

    @classmethod
    def of(cls, estimator: BaseEstimator, losses: Sequence[Loss | str], groups: ArrayLike | None = None) -> "Search":
        """Return the search defined by the parameters of an estimator."""
        name, parameters = type(estimator).__name__, estimator.get_params(deep=False)
        check_parameter(name, "aggregate", estimator.aggregate, Options((*AGGREGATES, "auto")))
        checked, lams = as_losses(losses), np.logspace(-6, 0, 13) if estimator.lams is None else estimator.lams
        aggregate = "mean" if estimator.aggregate == "auto" else estimator.aggregate
        optional = {key: parameters[key] for key in ("n_jobs", "checkpoint") if key in parameters}
        optional["groups"] = None if groups is None else _checked_groups(groups)
        return cls(
            name, checked, as_lams(lams), estimator.cv, aggregate, estimator.tol, estimator.lams is None, **optional
        )

    def chosen(self, choice: KernelChoice, losses: list[Loss], estimator: BaseEstimator) -> "Search":
        """Return the search with the losses and the lams of a choice; those given by the user are kept."""
        lams = choice.lams if estimator.lams is None else self.lams
        is_capped = choice.is_robust and estimator.aggregate == "auto"
        return replace(self, losses=losses, lams=lams, ceiling=choice.ceiling if is_capped else math.inf)

    def on(self, training_set: TrainingSet, is_free: bool = False) -> "Search":
        """Return the search with a gap that tells pairs apart where exact solves take long; ``is_free`` allows it.

        It is always so where a Gram matrix is not factorised. An open grid is moved up to where round-off allows the
        last fit to reach ``tol``.
        """
        gap = _GAP if is_free and training_set.n_samples >= _MANY else 0.0
        gap = gap if streamed(training_set.ridge.gram) is None else LOOSE_GAP
        search = replace(self, tol=max(self.tol, gap))
        if not self.is_open:
            return search
        least = training_set.ridge.least_lam(self.tol) / self.share
        up = max(1.0, least / min(self.lams))
        return replace(search, lams=[lam * up for lam in self.lams], least_lam=least)

    @property
    def is_approximate(self) -> bool:
        """Whether leave-one-out predictions are approximated."""
        return isinstance(self.cv, str) and self.cv == "approximate-loo"

    def on_part(self, whole: Sample) -> tuple["Search", Sample]:
        """Return the search at the same ridges lam n on a part of a large sample, and the part; else all of it.

        If the folds are a number the part is drawn from what samples contain, and of whole groups.
        """
        if whole.n_samples <= MOST_SEARCHED or not isinstance(self.cv, Integral):
            return self, whole
        groups = whole.kept(self.groups)
        sample = whole.keeping(whole_part(whole.contents(), MOST_SEARCHED, groups, 4 * int(self.cv)))
        share = float(np.sum(sample.counts) / np.sum(whole.counts))
        return replace(self, lams=[lam / share for lam in self.lams], share=share), sample

    def folds(self, training_set: TrainingSet) -> list[np.ndarray]:
        """Return the test parts, as indices into the samples with a positive weight."""
        return self.folds_of(training_set.sample)

    def few_folds(self, training_set: TrainingSet) -> list[np.ndarray]:
        """Return the test parts, or five if samples are held out one by one."""
        folds = self.folds(training_set)
        return replace(self, cv=min(_FEW, len(folds))).folds(training_set) if isinstance(self.cv, str) else folds

    def folds_of(self, sample: Sample) -> list[np.ndarray]:
        """Return the test parts of a sample."""
        n, index = sample.n_given, sample.index
        if self.groups is not None and self.groups.shape != (n,):
            raise ValueError(f"groups must have shape ({n},), one entry for each sample. Got {self.groups.shape}.")
        if isinstance(self.cv, str):
            check_parameter(self.owner, "cv", self.cv, Options(("loo", "approximate-loo")))
            if self.groups is not None:
                raise ValueError(f"cv={self.cv!r} leaves out single samples. For groups, use cv=LeaveOneGroupOut().")
            tests = [np.array([k]) for k in range(sample.n_samples)]
        elif isinstance(self.cv, Integral):
            groups, count = sample.kept(self.groups), self._number(self.cv, n)
            if groups is None:
                repeats = repeated_pairs(sample, None)
                together = None if repeats is None or len(repeats[0]) < count else repeats[1]
                tests = [test for _, test in whole_folds(sample.contents(), count, together)]
            else:
                codes = ranks_of_groups(sample.contents(), groups)  # not the names of the groups
                tests = [test for _, test in GroupKFold(count).split(codes, groups=codes)]
        else:
            tests = [np.asarray(test) for _, test in check_cv(self.cv).split(np.zeros((n, 1)), groups=self.groups)]
            if index is not None:
                tests = [np.flatnonzero(np.isin(index, test)) for test in tests]
        tests = [test for test in tests if len(test)]
        sample.check_folds(tests)
        return tests

    def _number(self, cv: Integral, n: int) -> int:
        """Return the number of folds; raise if there are fewer samples."""
        check_parameter(self.owner, "cv", cv, Interval(2, float("inf"), "left", integer=True))
        if n < int(cv):
            raise ValueError(f"cv={cv} needs at least {cv} samples. Got n_samples = {n}.")
        return int(cv)

    def __call__(
        self,
        training_set: TrainingSet,
        folds: list[np.ndarray],
        measure: Measure,
        is_expanded: bool = False,
        settings: str = "",
    ) -> SearchResult:
        """Return the errors of the grid; every pair is solved without each fold, using one factorisation.

        The grid of lam is extended as long as its best point is an end. A grid given by the user is not extended.

        With ``is_expanded``, predictions are weights of the outputs (n, n); ``settings`` are other settings that the
        errors depend on, for the key of a checkpoint.
        """
        if self.is_approximate and is_expanded:
            raise IncompatibleError("cv='approximate-loo' does not provide the weights of the outputs. Use cv='loo'.")
        for loss in self.losses:
            check_loss(loss, training_set.codec.representation)
        if any(loss.is_relative for loss in self.losses):
            with part(0.5):
                resolved = self._resolved(training_set, folds, measure, is_expanded)
            return resolved(training_set, folds, measure, is_expanded, settings)

        def errors(losses: list[Loss]) -> Iterator[PairErrors]:
            for pair in self._held_out(training_set, losses, self.lams, folds, is_expanded):
                yield PairErrors(pair.loss, pair.lam, measure(host(pair.predictions)), pair.gap)

        with part(_GIVEN if self.is_open else 1.0):
            result = self.collect(training_set, folds, errors, settings)
        try:
            for _ in range(_MOST_STEPS if self.is_open else 0):
                beyond = result.beyond()
                if beyond is None or beyond < self.least_lam or not result.is_whole:
                    break
                step = replace(self, lams=[beyond], checkpoint=None)
                with part(0.5):
                    result = result.joined(step(training_set, folds, measure, is_expanded))
        except KeyboardInterrupt:
            if not keeps_best_pair():
                raise
            warn_interrupted(result.cv_errors.size, result.cv_errors.size)
            result = replace(result, is_whole=False)
        return replace(result, is_open=self.is_open)

    def predictions(self, training_set: TrainingSet, folds: list[np.ndarray], result: SearchResult) -> np.ndarray:
        """Return the held-out predictions (n, p) of the best pair."""
        i, j = result.best
        with arithmetic(training_set.ridge):
            (pair,) = self._held_out(training_set, [result.losses[i]], [result.lams[j]], folds)
        return np.asarray(host(pair.predictions))

    def _held_out(
        self,
        training_set: TrainingSet,
        losses: list[Loss],
        lams: list[float],
        folds: list[np.ndarray],
        is_expanded: bool = False,
    ) -> Iterator[HeldOut]:
        if self.is_approximate:
            return nearly_held_out(training_set.ridge, losses, lams, self.tol)
        if not self.unseen:
            return held_out(training_set.ridge, losses, lams, folds, self.tol, is_expanded)
        parts = [
            counted(held_out(own.ridge, losses, lams, [fold], self.tol, is_expanded), 1 / (len(folds) - k))
            for k, (own, fold) in enumerate(zip(self.unseen, folds, strict=True))
        ]
        return (joined(members) for members in zip(*parts, strict=True))

    def pilot(self, losses: Sequence[Loss], lams: Any) -> "Search":
        """Return the search over other losses, on a grid that may be extended."""
        return replace(self, losses=list(losses), lams=as_lams(lams), is_open=True, checkpoint=None)

    def _resolved(
        self, training_set: TrainingSet, folds: list[np.ndarray], measure: Measure, is_expanded: bool
    ) -> "Search":
        """Return the search with relative thresholds resolved by the residuals of the square loss at its best lam."""
        with part(grid_share()):
            result = self.pilot([Square()], self.lams)(training_set, folds, measure, is_expanded)
        lam = result.lam
        pilot = solve(training_set, Spec(self.owner, Square(), lam, Auto(), self.tol))
        losses = [training_set.resolved(loss, pilot.residuals) for loss in self.losses]
        return replace(self, losses=losses, lams=self.lams if result.is_whole else [lam])

    def collect(
        self,
        training_set: TrainingSet,
        folds: list[np.ndarray],
        errors: Callable[[list[Loss]], Iterator[PairErrors]],
        settings: str = "",
    ) -> SearchResult:
        """Return the aggregated errors of the grid; finished losses come from the checkpoint, others from ``errors``.

        ``errors(losses)`` yields the errors of some losses of the grid at every lam; it may be called from several
        threads.
        """
        store, weights = self._store(training_set, folds, settings), training_set.sample.counts

        def record(places: list[int], work: Work) -> None:
            with np.errstate(all="ignore"), work.entered():  # threads have their own state
                for done, pair in enumerate(errors([self.losses[i] for i in places]), 1):
                    means = [np.average(pair.errors[fold], weights=weights[fold]) for fold in folds]
                    score = AGGREGATES[self.aggregate](pair.errors, weights, np.array(means))
                    store.record(places[pair.loss], pair.lam, means, pair.gap, score)
                    store.save(places[pair.loss])
                    work.reach(done / (len(places) * len(self.lams)))
                    if work.is_stopped:
                        return

        with arithmetic(training_set.ridge):
            here().reach(1 - len(store.todo) / len(self.losses))
            parts = [some.tolist() for some in np.array_split(store.todo, effective_n_jobs(self.n_jobs)) if len(some)]
            jobs = zip(parts, here().split(len(parts)), strict=True)
            try:
                # always threads: pairs share a factorisation and are recorded in one place
                Parallel(n_jobs=self.n_jobs, require="sharedmem")(delayed(record)(*job) for job in jobs)
                is_whole = not here().is_stopped
                here().go_on()
            except KeyboardInterrupt as interrupt:
                is_whole = False
                if not (keeps_best_pair() and store.n_done):
                    interrupt.add_note(store.account())
                    raise
        if not is_whole:
            warn_interrupted(store.n_done, store.gaps.size)
        warn_gaps(store.gaps if is_whole else store.gaps[~np.isnan(store.gaps)], self.tol)
        # threads of an interrupted search may still write
        scores, errors_of_folds, gaps = (values.copy() for values in (store.scores, store.errors, store.gaps))
        return SearchResult(self.losses, self.lams, scores, errors_of_folds, gaps, is_whole=is_whole)

    def _store(self, training_set: TrainingSet, folds: list[np.ndarray], settings: str) -> Checkpoint:
        """Return the checkpoint of the search, for its data and settings."""
        key = ""
        if self.checkpoint is not None:
            others = (self.tol, self.aggregate, settings, self.is_approximate)
            key = search_key(training_set, self.losses, self.lams, folds, others)
        return Checkpoint(self.checkpoint, key, (len(self.losses), len(self.lams), len(folds)))


def grid_share(n_after: int = 0) -> float:
    """Return the share of a grid in the work that is left: this grid, as many others and one fit."""
    return 1 / (1 + n_after + 1 / _GRID)


def squared_distance(training_set: TrainingSet, ceiling: float | np.ndarray = math.inf) -> Measure:
    """Return the measure of the squared distance between outputs and predictions, where outputs are observed.

    Distances are clipped at the ceiling, or the squared errors of each output at its own (p,), so that a wrong target
    costs the same whatever is predicted, while wrong predictions are still penalised.
    """
    problem = training_set.ridge
    targets = host(problem.unscale(problem.targets))
    observed = 1.0 if problem.mask is None else host(problem.mask)

    def measure(predictions: np.ndarray) -> np.ndarray:
        return clipped(observed * (targets - predictions) ** 2, ceiling)

    return measure


def warn_gaps(gaps: np.ndarray, tol: float) -> None:
    """Warn about pairs of a grid whose gap is above ``tol``."""
    over = int(np.sum(~(np.abs(gaps) <= tol)))
    if over:
        warn_user(
            f"{over} of {gaps.size} pairs of the grid have a gap above tol {tol:g}, {np.nanmax(gaps):.1e} at most.",
            ConvergenceWarning,
            "not-converged",
        )
