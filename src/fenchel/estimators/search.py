"""The search over losses and lam that every estimator with cross-validation runs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv

from fenchel._array import Array, host
from fenchel._check import Interval, Options, check_parameter
from fenchel.derived_problems import bound_loss
from fenchel.estimators.core import Sample
from fenchel.estimators.errors import AGGREGATES, Checkpoint, key_of
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.selection import Progress, as_lams, as_losses, warn_gaps
from fenchel.exceptions import IncompatibleError
from fenchel.held_out import HeldOut, held_out, nearly_held_out
from fenchel.losses import Loss
from fenchel.problem import arithmetic

__all__ = ["CrossValidatedMixin"]


class CrossValidatedMixin(NamedPartsMixin, ABC):
    """Chooses loss and lam on the errors of held-out samples, then fits the chosen pair on the whole sample."""

    lams: Any
    losses: Sequence[Loss | str]
    cv: Any
    aggregate: str
    tol: float
    n_jobs: int | None = None
    checkpoint: Any = None
    progress: Progress | None = None

    @abstractmethod
    def _estimator(self, loss: Loss | str, lam: float) -> Any:
        """Return the estimator of one pair."""

    def _choose(self, X: Any, y: Any, sample_weight: Array | None = None, grid: Array | None = None) -> Self:
        """Cross-validate the grid, and fit the best pair."""
        return self._refitted(*self._searched(X, y, sample_weight, grid))

    def _searched(
        self, X: Any, y: Any, sample_weight: Array | None = None, grid: Array | None = None
    ) -> tuple[Any, Sample]:
        """Cross-validate the grid; return an estimator that has seen the sample, and the sample."""
        check_parameter(type(self).__name__, "aggregate", self.aggregate, Options(tuple(AGGREGATES)))
        losses, lams = as_losses(self.losses), as_lams(np.logspace(-6, 0, 13) if self.lams is None else self.lams)
        self.losses_, self.lams_ = losses, lams
        estimator = self._estimator(losses[0], lams[0])
        estimator._is_swept = True
        sample = estimator._sample(X, y, estimator._parts()[0], True, sample_weight, grid)
        estimator._is_swept = False
        folds = self._folds(sample)
        self._cross_validate(sample, losses, lams, folds)
        return estimator, sample

    def _refitted(self, estimator: Any, sample: Sample) -> Self:
        """Fit the best pair on the whole sample."""
        losses, lams = self.losses_, self.lams_
        i, j = divmod(int(np.argmin(self.cv_errors_)), len(lams))
        self.best_loss_, self.best_lam_ = clone(losses[i]), lams[j]
        self.best_estimator_ = estimator._settled(losses[i], lams[j])
        problem = sample.problem.with_(loss=bound_loss(sample.problem, losses[i]), lam=lams[j])
        sample = replace(sample, problem=problem)
        solution = estimator._certified_by_predict(sample, estimator._solve(problem, estimator._parts()[1]))
        self.best_estimator_._fitted(sample, solution, warn=True)
        for name, value in vars(self.best_estimator_).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        return self

    def _is_expanded(self, sample: Sample) -> bool:
        """Whether held-out predictions are wanted as weights of the outputs."""
        return False

    def _fold_tol(self) -> float:
        """Return the gap to which the folds are solved."""
        return self.tol

    def _what(self) -> str:
        """Return what the errors depend on beside sample, grid and folds, for the key of a checkpoint."""
        return ""

    def _measure(self, sample: Sample, folds: list[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that gives the error of each sample from predictions in coordinates, (n, p)."""
        targets = host(sample.problem.unscale(sample.problem.targets))
        seen = 1.0 if sample.problem.mask is None else host(sample.problem.mask)

        def measure(predictions: np.ndarray) -> np.ndarray:
            squares: np.ndarray = np.sum(seen * (targets - predictions) ** 2, axis=1)
            return squares

        return measure

    @property
    def _is_approximate(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "approximate-loo"

    def _held_out(
        self, sample: Sample, losses: list[Loss], lams: list[float], folds: list[np.ndarray]
    ) -> Iterator[HeldOut]:
        """Return the predictions out of sample for each pair."""
        expanded = self._is_expanded(sample)
        if not self._is_approximate:
            return held_out(sample.problem, losses, lams, folds, self._fold_tol(), expanded)
        if expanded:
            raise IncompatibleError("cv='approximate-loo' does not give the weights of the outputs. Use cv='loo'.")
        return nearly_held_out(sample.problem, losses, lams, self._fold_tol())

    def _folds(self, sample: Sample) -> list[np.ndarray]:
        """Return the test parts, as places among the samples with a positive weight."""
        if isinstance(self.cv, str):
            check_parameter(type(self).__name__, "cv", self.cv, Options(("loo", "approximate-loo")))
            tests = [np.array([k]) for k in range(sample.n)]
        else:
            tests = [np.asarray(test) for _, test in self._splitter(sample.n).split(np.zeros((sample.n, 1)))]
        if sample.kept is not None:
            tests = [np.flatnonzero(np.isin(sample.kept, test)) for test in tests]
        tests = [test for test in tests if len(test)]
        if sample.n < 2 or any(len(test) == sample.problem.targets.shape[0] for test in tests):
            raise ValueError(f"Each fold must leave samples to fit on. Got n_samples = {sample.n}.")
        return tests

    def _splitter(self, n: int) -> Any:
        """Return the splitter that ``cv`` means; folds by number are shuffled, since samples may be sorted."""
        if not isinstance(self.cv, Integral):
            return check_cv(self.cv)
        check_parameter(type(self).__name__, "cv", self.cv, Interval(2, float("inf"), "left", integer=True))
        n_folds = int(self.cv)
        if n < n_folds:
            raise ValueError(f"cv={n_folds} needs at least {n_folds} samples. Got n_samples = {n}.")
        return KFold(n_folds, shuffle=True, random_state=0)

    def _cross_validate(self, sample: Sample, losses: list[Loss], lams: list[float], folds: list[np.ndarray]) -> None:
        """Fill ``fold_errors_``, ``cv_errors_`` and ``cv_gaps_``; finished losses come from the checkpoint."""
        shape = (len(losses), len(lams), len(folds))
        key = key_of(
            sample, losses, lams, folds, (self._fold_tol(), self.aggregate, self._what(), self._is_approximate)
        )
        store = Checkpoint(self.checkpoint, key, shape)
        measure, n = self._measure(sample, folds), sample.problem.targets.shape[0]
        weights = np.ones(n) if sample.weights is None else host(sample.weights)
        aggregate = AGGREGATES[self.aggregate]

        def rows(places: list[int]) -> None:
            with np.errstate(all="ignore"):  # threads have a state of their own
                measure_rows(places)

        def measure_rows(places: list[int]) -> None:
            for found in self._held_out(sample, [losses[i] for i in places], lams, folds):
                i = places[found.loss]
                errors = measure(host(found.predictions))
                means = [np.average(errors[fold], weights=weights[fold]) for fold in folds]
                score = aggregate(errors, weights, np.array(means))
                done = store.record(i, found.lam, means, found.gap, score)
                if self.progress is not None:
                    self.progress(done, len(losses) * len(lams))
                store.save(i)

        with arithmetic(sample.problem):
            parts = [part.tolist() for part in np.array_split(store.todo, effective_n_jobs(self.n_jobs)) if len(part)]
            Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(rows)(part) for part in parts)
        self.fold_errors_, self.cv_gaps_, self.cv_errors_ = store.errors, store.gaps, store.scores
        warn_gaps(store.gaps, self._fold_tol())
