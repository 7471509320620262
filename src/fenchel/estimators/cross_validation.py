"""Model selection by cross-validation on one factorisation."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, host
from fenchel._check import Interval, Options, check_parameter
from fenchel.estimators.base import all_or_nothing
from fenchel.estimators.core import Sample
from fenchel.estimators.errors import AGGREGATES, Checkpoint, key_of
from fenchel.estimators.functional import CurveScoreMixin, FunctionalRegressor
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.regression import OperatorKernelRegressor
from fenchel.estimators.selection import Progress, as_lams, as_losses, warn_gaps
from fenchel.exceptions import IncompatibleError
from fenchel.losses import Loss
from fenchel.sweep import HeldOut, held_out, nearly_held_out

__all__ = ["FunctionalRegressorCV", "OperatorKernelRegressorCV"]


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
        problem = sample.problem.with_(loss=sample.problem.bind(losses[i]), lam=lams[j])
        solution = estimator._solve(problem, estimator._parts()[1])
        self.best_estimator_._fitted(replace(sample, problem=problem), solution, warn=True)
        for name, value in vars(self.best_estimator_).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        return self

    def _is_expanded(self, sample: Sample) -> bool:
        """Tell whether held-out predictions are wanted as weights of the outputs."""
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
        seen = 1.0 if sample.problem.kept is None else host(sample.problem.kept)

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

        with sample.problem.arithmetic():
            parts = [part.tolist() for part in np.array_split(store.todo, effective_n_jobs(self.n_jobs)) if len(part)]
            Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(rows)(part) for part in parts)
        self.fold_errors_, self.cv_gaps_, self.cv_errors_ = store.errors, store.gaps, store.scores
        warn_gaps(store.gaps, self._fold_tol())


class OperatorKernelRegressorCV(CrossValidatedMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """``OperatorKernelRegressor`` with loss and lam chosen by cross-validation on one factorisation.

    Small folds are solved side by side on the Gram matrix of the whole sample with their test samples held out, large
    ones on that of their training part, one factorisation for every loss and lam, few outputs side by side and others
    warm-started along lam; the square loss takes a closed form. The chosen pair is then fitted on the whole sample.

    Parameters
    ----------
    kernel, operator, representation, tol, approximation
        As for ``OperatorKernelRegressor``. What a kernel or operator takes from the sample (a median bandwidth, the
        covariance of the outputs) is taken from the whole sample, once.
    lams : sequence of float or None, default=None
        Regularisation weights; ``None`` is 13 values from 1e-6 to 1.
    losses : sequence of Loss or str, default=("square",)
        Losses to choose from, such as ``[Huber(kappa) for kappa in kappas]``.
    cv : int, splitter, "loo" or "approximate-loo", default=5
        Folds. A number means that many folds of samples in random order, the same in every fit; for folds in the order
        of the samples pass ``KFold(5)``. ``"loo"`` is leave-one-out, exact. ``"approximate-loo"`` takes one fit and
        one linear system for each pair instead of n fits, for losses of the Euclidean norm and the identity operator:
        exact for the square loss; ``fenchel.sweep.approximate_loo`` states its error with others.
    aggregate : {"mean", "median", "trimmed_mean", "fold_median"}, default="mean"
        How held-out errors become one number: mean of the folds' means; median over all held-out samples, which a
        minority of outliers does not move; mean of the smallest four fifths of all errors, for fewer outliers than a
        fifth; median of the folds' means.
    n_jobs : int or None, default=None
        Threads over the losses.
    checkpoint : path or None, default=None
        A file that keeps the errors of finished losses; a fit with the same data and grid goes on from there.
    progress : callable or None, default=None
        Called as ``progress(done, total)`` after each (loss, lam) pair.

    Attributes
    ----------
    best_loss_, best_lam_ : Loss, float
        The chosen pair.
    losses_, lams_ : list
        The grid.
    cv_errors_ : array of shape (n_losses, n_lams)
        Mean squared distance between held-out outputs and predictions, aggregated over folds.
    fold_errors_ : array of shape (n_losses, n_lams, n_folds)
        The same for each fold.
    cv_gaps_ : array of shape (n_losses, n_lams)
        Largest relative duality gap over the folds.
    best_estimator_ : OperatorKernelRegressor
        The model fitted on the whole sample; its fitted attributes are attributes of this one too.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressorCV
    >>> from fenchel.losses import Huber
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> Y = np.hstack([np.sin(X), np.cos(X)])
    >>> model = OperatorKernelRegressorCV(lams=[1e-4, 1e-2, 1.0], losses=[Huber(0.1), Huber(1.0)]).fit(X, Y)
    >>> model.best_lam_
    0.0001
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        operator: Any = None,
        lams: Any = None,
        losses: Sequence[Loss | str] = ("square",),
        cv: Any = 5,
        aggregate: str = "mean",
        tol: float = 1e-6,
        representation: Any = None,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        progress: Progress | None = None,
        approximation: Any = None,
    ) -> None:
        self.kernel = kernel
        self.operator = operator
        self.lams = lams
        self.losses = losses
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.representation = representation
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.progress = progress
        self.approximation = approximation

    @all_or_nothing
    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Choose loss and lam, then fit on the whole sample.

        Parameters
        ----------
        X, y, sample_weight : array
            As for ``OperatorKernelRegressor.fit``.

        Returns
        -------
        self : OperatorKernelRegressorCV
            The fitted model.
        """
        return self._choose(X, y, sample_weight)

    def predict(self, X: Array) -> Array:
        """Predict with the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def _estimator(self, loss: Loss | str, lam: float) -> OperatorKernelRegressor:
        return OperatorKernelRegressor(
            self.kernel,
            self.operator,
            loss,
            lam,
            tol=self.tol,
            representation=self.representation,
            approximation=self.approximation,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = OperatorKernelRegressor(self.kernel, self.operator).__sklearn_tags__()
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags


class FunctionalRegressorCV(CrossValidatedMixin, CurveScoreMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """``FunctionalRegressor`` with loss and lam chosen by cross-validation on one factorisation.

    Folds are solved as in ``OperatorKernelRegressorCV``. The error of a held-out curve is its mean squared distance to
    the prediction over the points at which it was observed. The chosen pair is then fitted on the whole sample.

    Parameters
    ----------
    kernel, output_kernel, channels, representation, n_components, center, tol, approximation
        As for ``FunctionalRegressor``. What they take from the sample (a median bandwidth, the centre) is taken from
        the whole sample, once.
    lams, losses, cv, aggregate, n_jobs, checkpoint, progress
        As for ``OperatorKernelRegressorCV``. With contaminated curves ``aggregate="trimmed_mean"`` or ``"median"`` is
        the robust choice.

    Attributes
    ----------
    best_loss_, best_lam_ : Loss, float
        The chosen pair.
    losses_, lams_ : list
        The grid.
    cv_errors_ : array of shape (n_losses, n_lams)
        Errors of held-out curves, aggregated over curves and folds.
    fold_errors_ : array of shape (n_losses, n_lams, n_folds)
        Their mean over the curves of each fold.
    cv_gaps_ : array of shape (n_losses, n_lams)
        Largest relative duality gap over the folds.
    best_estimator_ : FunctionalRegressor
        The model fitted on the whole sample; its fitted attributes are attributes of this one too.

    Examples
    --------
    >>> from fenchel import FunctionalRegressorCV
    >>> from fenchel.data import make_functional
    >>> from fenchel.losses import Huber
    >>> data = make_functional(30, 20, random_state=0)
    >>> model = FunctionalRegressorCV(lams=[1e-4, 1e-2], losses=["square", Huber(0.5, p=1)]).fit(data.X, data.Y)
    >>> model.cv_errors_.shape, bool(model.cv_gaps_.max() <= 1e-6)
    ((2, 2), True)
    """

    def __init__(
        self,
        kernel: Any = None,
        output_kernel: Any = None,
        lams: Any = None,
        losses: Sequence[Loss | str] = ("square",),
        representation: Any = "spline",
        n_components: float | None = None,
        center: bool | str = True,
        channels: Array | None = None,
        cv: Any = 5,
        aggregate: str = "mean",
        tol: float = 1e-6,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        progress: Progress | None = None,
        approximation: Any = None,
    ) -> None:
        self.kernel = kernel
        self.output_kernel = output_kernel
        self.lams = lams
        self.losses = losses
        self.representation = representation
        self.n_components = n_components
        self.center = center
        self.channels = channels
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.progress = progress
        self.approximation = approximation

    @all_or_nothing
    def fit(self, X: Any, y: Any, grid: Array | None = None, sample_weight: Array | None = None) -> Self:
        """Choose loss and lam, then fit on the whole sample.

        Parameters
        ----------
        X, y, grid, sample_weight
            As for ``FunctionalRegressor.fit``.

        Returns
        -------
        self : FunctionalRegressorCV
            The fitted model.
        """
        return self._choose(X, y, sample_weight, grid)

    def predict(self, X: Any, grid: Array | None = None, derivative: bool = False) -> Any:
        """Predict with the chosen model, as ``FunctionalRegressor.predict`` does."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, grid, derivative)

    def _estimator(self, loss: Loss | str, lam: float) -> FunctionalRegressor:
        return FunctionalRegressor(
            self.kernel,
            self.output_kernel,
            loss,
            lam,
            representation=self.representation,
            n_components=self.n_components,
            center=self.center,
            channels=self.channels,
            tol=self.tol,
            approximation=self.approximation,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self._estimator("square", 1.0).__sklearn_tags__()
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags
