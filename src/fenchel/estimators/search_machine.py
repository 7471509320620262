"""What the estimators that choose loss and lam by held-out errors have in common."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from fenchel._array import Array, Outputs
from fenchel._component import undone_on_failure
from fenchel._progress import part
from fenchel.kernels import Gaussian, ScalarKernel, as_operator_kernel
from fenchel.losses import Loss
from fenchel.model.fit import solve, warned
from fenchel.model.machine import Fitted, KernelMachine, keep, set_pair, spec_of, task_of
from fenchel.model.memory import can_stream, check_fits, width_of
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet
from fenchel.search.as_numbers import AsNumbers
from fenchel.search.choice import KernelChoice, check_metric, is_auto, raced
from fenchel.search.larger import Ladder, sizes
from fenchel.search.race import MOST_REFINED, race_share
from fenchel.search.result import SearchResult
from fenchel.search.scoring import Measure, Scoring, scored
from fenchel.search.search import Search, grid_share, squared_distance
from fenchel.solvers import Krylov

__all__ = ["Found", "PairSearchMachine", "Prepared", "SearchMachine"]

Machine = TypeVar("Machine", bound=KernelMachine)
_LARGER = 0.2  # share of the parts that are larger than that of the search in what is left


@dataclass(frozen=True)
class Found:
    """What a search has found: the errors of the grid, the best pair and its kernel."""

    result: SearchResult | None  # None if only a kernel was searched for
    kernel: Any
    trials: dict[str, list[Any]] | None = None  # of the kernel search
    n_samples: int | None = None  # on which loss and lam were compared


class SearchMachine(KernelMachine):
    """An estimator that chooses loss and lam by held-out errors; its model is that of the best pair."""

    found_: Found
    best_estimator_: Any

    best_kernel_ = Fitted[Any]("kernel", of="found_")
    best_loss_ = Fitted[Loss]("result.loss", of="found_")
    best_lam_ = Fitted[float]("result.lam", of="found_")
    cv_errors_ = Fitted[np.ndarray]("result.cv_errors", of="found_")
    fold_errors_ = Fitted[np.ndarray]("result.fold_errors", of="found_")
    cv_gaps_ = Fitted[np.ndarray]("result.cv_gaps", of="found_")
    lams_ = Fitted[list[float]]("result.lams", of="found_")
    losses_ = Fitted[list[Loss]]("result.losses", of="found_")
    n_searched_ = Fitted[int]("n_samples", of="found_")

    @property
    def search_(self) -> dict[str, list[Any]] | None:
        """Results of the kernel search, ``None`` for a given kernel."""
        return self.found_.trials

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the model, which is that of the best estimator: files hold it once."""
        state: dict[str, Any] = super().__getstate__()
        best = state.get("best_estimator_")
        is_shared = best is not None and vars(best).get("model_") is state.get("model_")
        return {name: value for name, value in state.items() if name != "model_"} if is_shared else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        best = state.get("best_estimator_")
        if best is not None and "model_" not in state:
            self.model_ = best.model_

    def _with_shared(self, kind: type[Machine], **own: object) -> Machine:
        """Return an estimator with the parameters that it shares with the search, except for its own."""
        shared = signature(kind).parameters.keys() & self.get_params(deep=False).keys()
        return kind(**{name: vars(self)[name] for name in shared} | own)

    def _search_spec(self) -> Spec:
        """Return the settings of the fits of the search; losses and lam are those of its grid."""
        return Spec.of(self, "square").for_search()

    def _fit_best(
        self,
        estimator: KernelMachine,
        training_set: TrainingSet,
        result: SearchResult,
        choice: KernelChoice | None = None,
        whole: Sample | None = None,
        **form: Any,
    ) -> Self:
        """Fit the best pair on the whole sample, and keep the model, the errors of the search and the estimator.

        If the search has seen a part of the sample, the ridge lam n stays that of the search.
        """
        result.warn_at_end()
        sample = training_set.sample if whole is None else whole
        is_part = training_set.n_samples < sample.n_samples
        if is_part:
            result = result.times(float(np.sum(training_set.sample.counts) / np.sum(sample.counts)))
        found = Found(result, estimator.kernel, None if choice is None else choice.trials, training_set.n_samples)
        best = set_pair(estimator, result.loss, result.lam)
        if is_part:
            training_set = TrainingSet.learn(task_of(best, **form), sample, spec_of(best))
        fit = solve(training_set, spec_of(best))
        for name in ("n_features_in_", "feature_names_in_"):
            if name in vars(self):
                best.__dict__[name] = vars(self)[name]
        self.found_, self.best_estimator_ = found, keep(best, warned(fit))
        self.model_ = best.model_
        return self


@dataclass(frozen=True)
class Prepared(Generic[Machine]):
    """What a search over losses and lam begins with."""

    machine: Machine  # of one pair, with its kernel
    training_set: TrainingSet
    search: Search  # the grid that remains
    choice: KernelChoice | None  # None for a given kernel
    whole: Sample  # of which the training set may hold a part


class PairSearchMachine(SearchMachine, Generic[Machine]):
    """A search over kernel, loss and lam of one estimator, ``_machine``."""

    races_robust: ClassVar[bool] = True  # whether "auto" losses compare the square loss with a robust one
    most_raced: ClassVar[int] = MOST_REFINED  # samples to which the best kernel is fitted
    _climbs: ClassVar[bool] = True  # whether width and lam are compared again on larger parts of a large sample
    _after_race: ClassVar[float] = 0.0  # share of what an estimator compares between the race and the grid

    losses: Any
    cv: Any

    @abstractmethod
    def _machine(self, losses: Sequence[Loss] = (), is_robust: bool = False) -> Machine:
        """Return the estimator of one pair, with centre and scale as the losses require."""

    def _task(self, **form: Any) -> Any:
        return task_of(self._machine(), **form)

    def _choose(
        self,
        X: Outputs,
        y: Outputs,
        sample_weight: Array | None = None,
        groups: ArrayLike | None = None,
        **form: Any,
    ) -> Self:
        """Choose kernel, loss and lam, and fit on the whole sample."""
        with undone_on_failure(self):
            scoring, found = Scoring.of(self), self._prepared(X, y, sample_weight, groups, **form)
            training_set, search = found.training_set, found.search
            folds = search.folds(training_set)
            measure = squared_distance(training_set, search.ceiling)
            if scoring is not None:
                measure = scored(training_set, scoring, folds)
            with part(grid_share()):
                result = search(training_set, folds, measure, settings=f"{scoring or ''}")
            result, choice = self._carried(found, result, scoring, **form)
            return self._fit_best(found.machine, training_set, result, choice, found.whole, **form)

    def _carried(
        self, found: Prepared[Machine], result: SearchResult, scoring: Scoring | None, **form: Any
    ) -> tuple[SearchResult, KernelChoice | None]:
        """Return the result with the ridge of larger parts of a large sample, and the choice with what they said.

        The kernel of the machine gets the width that they prefer.
        """
        part_of, whole, choice = found.training_set, found.whole, found.choice
        if not (part_of.n_samples < whole.n_samples and found.search.is_open and result.is_whole):
            return result, choice
        machine = set_pair(found.machine, result.loss, result.lam)
        kernel = task_of(machine, **form).kernel_of(part_of.sample, part_of.codec)
        spec = replace(spec_of(machine).exactly(), solver=Krylov())
        if not can_stream(whole.X, kernel, spec) or Krylov().why_not_loss(result.loss) is not None:
            return result, choice

        def learn(sample: Sample, lam: float, factor: float) -> TrainingSet | None:
            kernel = machine.kernel if factor == 1 else _of_width(machine, choice, factor)
            if kernel is None:
                return None
            task = task_of(clone(machine).set_params(kernel=kernel), **form)
            few = Krylov(n_components=Krylov().n_features(sample.n_samples))  # enough for a loose gap
            return TrainingSet.learn(task, sample, replace(spec, lam=lam, solver=few))

        def measure(training_set: TrainingSet, folds: list[np.ndarray]) -> Measure:
            if scoring is not None:
                return scored(training_set, scoring, folds)
            return squared_distance(training_set, found.search.ceiling)

        ridge = result.lam * float(np.sum(part_of.sample.counts))
        width = width_of(whole.X, kernel, spec_of(machine), part_of.targets.width)
        with part(_LARGER):
            parts = Ladder(found.search, result, whole, learn, measure)(ridge, width)
        if not parts:
            return result, choice
        if parts[-1].factor != 1:
            machine.set_params(kernel=_of_width(machine, choice, parts[-1].factor))
        result = replace(result, moved=parts[-1].ridge / ridge)
        return result, None if choice is None else choice.told_of_larger(parts)

    def _prepared(
        self, X: Outputs, y: Outputs, sample_weight: Array | None, groups: ArrayLike | None, **form: Any
    ) -> Prepared[Machine]:
        """Return checked data with a kernel, given or chosen; scikit-learn's attributes of the inputs are set."""
        check_metric(self)
        search = Search.of(self, ["square"] if is_auto(self.losses) else self.losses, groups)
        machines = [self._machine(search.losses, is_robust) for is_robust in (False, True)]
        tasks = [task_of(machine, **form) for machine in machines]
        whole = tasks[False].sample(self, X, y, sample_weight).double()
        search, sample = search.on_part(whole)
        spec = replace(self._search_spec(), lam=min(search.lams))  # the smallest lam needs the most features
        spec = replace(spec, is_factorised=isinstance(self.cv, str))
        if sample is not whole:  # before the search, not after it
            self._check_fits(machines[False], whole)
        if not is_auto(self.kernel):
            training_set = TrainingSet.learn(tasks[False], sample, spec)
            return Prepared(machines[False], training_set, search.on(training_set), None, whole)
        losses = self.losses if self.races_robust else search.losses
        metric = self.get_params(deep=False).get("metric")
        most, given = self.most_raced, AsNumbers.of(sample, metric)
        is_climbed = self._climbs and search.is_open and bool(sizes(whole.n_samples, whole.n_samples))
        refines = not is_climbed
        with part(race_share(sample.n_samples, most)):
            choice = raced(
                tasks.__getitem__, given.numbers, spec, search.few_folds, losses, metric, search.groups, most, refines
            )
        with part(self._after_race):
            choice = given.choice(self._extended(choice, search, sample))
        machine = machines[choice.is_robust].set_params(**choice.parts)
        training_set, search = self._narrowed(choice, search, machine, spec, **form)
        return Prepared(machine, training_set, search.on(training_set, is_free=search.is_open), choice, whole)

    def _check_fits(self, machine: Machine, whole: Sample) -> None:
        """Raise if the last fit does not fit in memory."""
        kernel = as_operator_kernel(Gaussian() if is_auto(self.kernel) else machine.kernel)
        check_fits(whole.X, kernel, spec_of(machine))

    def _extended(self, choice: KernelChoice, search: Search, sample: Sample) -> KernelChoice:
        """Return the choice with what an estimator compares after the race: an output operator, a kernel of trees."""
        return choice

    def _narrowed(
        self, choice: KernelChoice, search: Search, machine: Machine, spec: Spec, **form: Any
    ) -> tuple[TrainingSet, Search]:
        """Return the training set with the chosen kernel, and the remaining grid of losses and lams."""
        search, raced_set = search.chosen(choice, choice.resolved_losses(), self), choice.training_set
        spec = replace(spec, lam=min(search.lams))

        def bound(machine: Machine) -> TrainingSet:
            kernel = task_of(machine, **form).kernel_of(raced_set.sample, raced_set.codec)
            return raced_set.with_kernel(kernel, spec)

        unseen = tuple(bound(clone(machine).set_params(kernel=kernel)) for kernel in choice.unseen)
        return bound(machine), replace(search, unseen=unseen)


def _of_width(machine: KernelMachine, choice: KernelChoice | None, factor: float) -> ScalarKernel | None:
    """Return the kernel of a machine with a multiple of its width, ``None`` if it was not found by the search alone."""
    is_found = choice is not None and repr(machine.kernel) == repr(choice.search.kernel)
    return choice.of_width(factor) if choice is not None and is_found else None
