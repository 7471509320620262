"""``QuantileFunctionRegressor`` with lam and the kernels chosen by cross-validation."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel._array import Array, as_index, as_like, host, namespace
from fenchel._check import Interval, Options, check_parameters
from fenchel._component import all_or_nothing
from fenchel._progress import Progress, Work, here, part, tracked
from fenchel.approximations import Approximation
from fenchel.estimators.quantile import QuantileFunctionRegressor, QuantileRegressor, Quantiles
from fenchel.estimators.quantile_pilot import QuantilePilot, pilot_targets, pinball
from fenchel.estimators.quantile_predictions import losses_of
from fenchel.estimators.search_machine import SearchMachine
from fenchel.kernels import KernelLike, ScalarKernel
from fenchel.losses import Loss
from fenchel.model.levels import LevelCodec
from fenchel.model.machine import Fitted, spec_of, task_of
from fenchel.model.memory import warn_of_last_fit
from fenchel.model.sample import Sample
from fenchel.model.training_set import TrainingSet
from fenchel.resample.folds import blocks_of
from fenchel.search.as_numbers import AsNumbers
from fenchel.search.choice import distinct, is_auto, trial_table
from fenchel.search.path import path
from fenchel.search.race import race_share, search_kernel
from fenchel.search.result import PairErrors, SearchResult
from fenchel.search.search import Search, grid_share

__all__ = ["QuantileFunctionRegressorCV"]

_LAMS = [1e15, *np.logspace(1, -3, 9).tolist()]  # for the residuals of a pilot; the first leaves the pilot unchanged
_LIMITS: dict[str, Interval | Options] = {
    "cv_tol": Interval(0, float("inf")),
    "pilot": Options((True, False, "auto")),
    "non_crossing": Options((True, False, "auto")),
}


class QuantileFunctionRegressorCV(QuantileRegressor, SearchMachine):
    """``QuantileFunctionRegressor`` with kernel and lam chosen by cross-validation.

    The defaults need no knowledge of the data. The kernel is chosen by closed-form leave-one-out errors
    (``fenchel.search.race``) of three regressions at once: of the output, of its normal scores and of its
    distribution function. A pilot built from their leave-one-out predictions gives a quantile function and a spread for
    each input; its residuals, in units of the spread, are fitted by the certified pinball problem. Predictions do not
    depend on the units of inputs and outputs.

    The error of a held-out sample is its pinball loss, integrated over the levels. With a given kernel there is no
    pilot, and each fold is solved as a separate path: one factorisation serves every lam, and the marginal quantiles
    are those of the training part, since marginal quantiles of all samples would favour models that add nothing to
    them.

    Parameters
    ----------
    kernel : "auto", kernel, str, callable, or list of these, default="auto"
        Kernel of the inputs, or a list to choose from. ``"auto"`` searches for a kernel on the columns of X, using at
        most 1000 samples.
    level_kernel : kernel, str, callable, None, or list of these, default=None
        Kernel of the levels, or a list to choose from.
    lams : sequence of float or None, default=None
        Regularisation weights. ``None`` means 13 values from 1e-6 to 1; with a pilot, 1e15, which leaves the pilot
        unchanged, and 9 values from 10 to 1e-3.
    levels, quadrature, intercept, coupling
        As for ``QuantileFunctionRegressor``.
    non_crossing : bool or "auto", default="auto"
        As for ``QuantileFunctionRegressor``; ``"auto"`` sorts predictions if there is a pilot.
    cv, aggregate
        As for ``OperatorKernelRegressorCV``.
    tol
        As for ``QuantileFunctionRegressor``.
    cv_tol : float, default=1e-3
        The relative duality gap to which the folds are solved. The chosen model is solved to ``tol``.
    n_jobs : int or None, default=None
        Number of threads over the folds.
    approximation : Approximation or None, default=None
        ``Nystrom(500)`` replaces the kernel of the inputs by one with 500 features.
    pilot : bool or "auto", default="auto"
        As for ``QuantileFunctionRegressor``; ``"auto"`` uses a pilot for ``kernel="auto"``.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.
    progress : bool, callable or None, default=None
        How far the fit has come, as for ``OperatorKernelRegressorCV``.

    Attributes
    ----------
    best_lam_ : float
        The chosen lam: the one with the smallest error or, with a pilot, the largest one whose error exceeds the
        smallest by at most 0.1 %.
    best_kernel_, best_level_kernel_ : kernel, str or callable
        The chosen kernels.
    search_ : dict of lists or None
        Results of the kernel search, as for ``OperatorKernelRegressorCV``; ``None`` for a given kernel.
    lams_ : list
        The values of lam that were compared.
    cv_errors_ : array of shape (1, n_lams)
        Integrated pinball losses of held-out samples for the chosen kernels, aggregated over folds. With a pilot, the
        losses of each output are divided by its mean spread.
    fold_errors_ : array of shape (1, n_lams, n_folds)
        The same for each fold.
    cv_gaps_ : array of shape (1, n_lams)
        Largest relative duality gap over the folds.
    kernel_errors_ : array of shape (n_kernels × n_level_kernels, n_lams)
        ``cv_errors_`` of every pair of kernels; the kernel of the levels varies fastest.
    best_estimator_ : QuantileFunctionRegressor
        The model fitted on the whole sample; its fitted attributes are also available on this object.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import QuantileFunctionRegressorCV
    >>> from fenchel.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (80, 1))
    >>> y = X[:, 0] + 0.2 * rng.standard_normal(80)
    >>> low, high = QuantileFunctionRegressorCV().fit(X, y).predict_interval(X, 0.9).T
    >>> bool(0.85 < np.mean((low <= y) & (y <= high)) < 0.98)
    True

    Given kernels are used as they are:

    >>> model = QuantileFunctionRegressorCV([Gaussian(0.3), Gaussian(300.0)], lams=[1e-4, 1e-2]).fit(X, y)
    >>> model.best_kernel_, model.kernel_errors_.shape
    (Gaussian(gamma=0.3), (2, 2))
    """

    kernel_errors_: np.ndarray
    crossing_rate_ = Fitted[float]("crossing_rate_", of="best_estimator_")

    def __init__(
        self,
        kernel: KernelLike | list[KernelLike] = "auto",
        level_kernel: KernelLike | list[KernelLike] | None = None,
        lams: ArrayLike | None = None,
        levels: int | ArrayLike = 20,
        quadrature: str = "gauss_legendre",
        intercept: float = 1.0,
        coupling: Array | None = None,
        non_crossing: bool | str = "auto",
        cv: object = 5,
        aggregate: str = "mean",
        tol: float = 1e-6,
        cv_tol: float = 1e-3,
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
        pilot: bool | str = "auto",
        certificate: str = "approximate",
        progress: Progress = None,
    ) -> None:
        self.kernel = kernel
        self.level_kernel = level_kernel
        self.lams = lams
        self.levels = levels
        self.quadrature = quadrature
        self.intercept = intercept
        self.coupling = coupling
        self.non_crossing = non_crossing
        self.cv = cv
        self.aggregate = aggregate
        self.tol = tol
        self.cv_tol = cv_tol
        self.n_jobs = n_jobs
        self.approximation = approximation
        self.pilot = pilot
        self.certificate = certificate
        self.progress = progress

    @tracked
    @all_or_nothing
    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        groups: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Choose lam and the kernel, then fit on the whole sample.

        Parameters
        ----------
        X, y, sample_weight : array
            As for ``QuantileFunctionRegressor.fit``.
        groups : array of shape (n,) or None, default=None
            Groups of samples that are held out together, such as replicates. They are passed to ``cv`` if it is a
            splitter; a number of folds means ``GroupKFold``. The kernel search leaves out one group at a time. The
            regressions of a pilot choose their lam by leaving out single samples; pass ``pilot=False`` if there are
            many replicates.
        order : array of shape (n,) or None, default=None
            When samples were taken, as times or numbers, instead of ``groups``: blocks of samples that follow one
            another are then held out together, 10 to 100 of them.

        Returns
        -------
        self : QuantileFunctionRegressorCV
            The fitted model.
        """
        check_parameters(self, _LIMITS)
        errors, best, kernels = list[np.ndarray](), None, self._kernels()
        for k, (kernel, level_kernel) in enumerate(kernels):
            machine, trials = self._machine(kernel, level_kernel), None
            whole = task_of(machine).sample(self, X, y, sample_weight).double()
            search, sample = self._search(machine, blocks_of(order, groups, X, self.cv)).on_part(whole)
            if k == 0:
                warn_of_last_fit(whole.X, spec_of(machine))
            if is_auto(kernel):
                with part(race_share(sample.n_samples) / (len(kernels) - k)):
                    kernel, trials = _found_kernel(search, sample)
                machine.set_params(kernel=kernel)
            machine.set_params(lam=min(search.lams))  # the smallest lam needs the most features
            training_set = TrainingSet.learn(task_of(machine), sample, spec_of(machine).for_search())
            with part(grid_share(len(kernels) - k - 1)):
                if _codec(training_set).pilot is None:
                    result = self._searched(search, machine, training_set)
                else:
                    result = _searched_rest(search, training_set)
            errors.append(result.cv_errors[0])
            if best is None or result.least < best[2].least:
                best = machine, training_set, result, trials
            if not result.is_whole:
                break
        assert best is not None  # _kernels returns at least one pair
        self.kernel_errors_ = np.stack(errors)
        self._fit_best(*best[:3], whole=whole)
        self.found_ = replace(self.found_, trials=best[3])
        return self

    def _kernels(self) -> list[tuple[KernelLike, KernelLike | None]]:
        """Return the pairs of kernels to choose from."""
        given = {"kernel": self.kernel, "level_kernel": self.level_kernel}
        lists = {name: list(one) if isinstance(one, list | tuple) else [one] for name, one in given.items()}
        for name, kernels in lists.items():
            if not kernels:
                raise ValueError(f"The {name!r} parameter must hold at least one kernel. Got none.")
        return list(product(lists["kernel"], lists["level_kernel"]))

    def _search(self, machine: QuantileFunctionRegressor, groups: ArrayLike | None) -> Search:
        """Return the search over lam, on a grid that depends on whether there is a pilot."""
        search = Search.of(self, [spec_of(machine).loss], groups)
        if machine.pilot and self.lams is None:
            search = replace(search, lams=_LAMS)
        return replace(search, tol=float(max(self.tol, self.cv_tol)), n_jobs=None)  # threads are over the folds

    def _searched(self, search: Search, machine: QuantileFunctionRegressor, training_set: TrainingSet) -> SearchResult:
        """Return the held-out errors of a path on the training part of each fold."""
        sample, lams = training_set.sample, search.lams
        folds, n, weights = search.folds(training_set), training_set.n_samples, sample.counts
        model = clone(machine).set_params(tol=search.tol, certificate="approximate")

        def fold_errors(test: np.ndarray, work: Work) -> tuple[np.ndarray, np.ndarray]:
            train = np.setdiff1d(np.arange(n), test)
            X, y = _rows(sample, train, train)
            with warnings.catch_warnings(), work.entered():
                warnings.simplefilter("ignore", ConvergenceWarning)  # one warning is given for all folds
                surface = path(model, X, y, lams, sample_weight=weights[train])
                if not surface.is_whole:
                    raise KeyboardInterrupt  # which a path survives
                models = [surface.model(0, k) for k in range(len(lams))]
            X, y = _rows(sample, test, train)
            return np.stack([losses_of(model, X, y) for model in models]), surface.gaps[0]

        def errors(losses: list[Loss]) -> Iterator[PairErrors]:
            jobs = zip(folds, here().split(len(folds)), strict=True)
            parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(fold_errors)(*job) for job in jobs)
            values = np.full((len(lams), n), np.nan)
            for fold, (losses_out, _) in zip(folds, parts, strict=True):
                values[:, fold] = losses_out
            gaps = np.max([gaps for _, gaps in parts], axis=0)
            yield from (PairErrors(0, k, values[k], float(gaps[k])) for k in range(len(lams)))

        return search.collect(training_set, folds, errors)

    @property
    def best_level_kernel_(self) -> KernelLike | None:
        """The chosen kernel of the levels."""
        kernel: KernelLike | None = self.best_estimator_.level_kernel
        return kernel

    def _task(self, **form: Any) -> Quantiles:
        return task_of(self._machine(*self._kernels()[0]))

    def _is_sorted(self) -> bool:
        return self.pilot_ is not None if is_auto(self.non_crossing) else bool(self.non_crossing)

    def _machine(self, kernel: KernelLike, level_kernel: KernelLike | None) -> QuantileFunctionRegressor:
        """Return the estimator for one pair of kernels."""
        pilot = is_auto(kernel) if is_auto(self.pilot) else bool(self.pilot)
        return self._with_shared(
            QuantileFunctionRegressor,
            kernel=kernel,
            level_kernel=level_kernel,
            non_crossing=pilot if is_auto(self.non_crossing) else bool(self.non_crossing),
            pilot=pilot,
        )


def _codec(training_set: TrainingSet) -> LevelCodec:
    """Return what was learned from the outputs."""
    assert isinstance(training_set.codec, LevelCodec)  # what ``Quantiles`` learns
    return training_set.codec


def _found_kernel(search: Search, sample: Sample) -> tuple[ScalarKernel, dict[str, list[Any]]]:
    """Return the kernel with the smallest leave-one-out error of the pilot's regressions, and the trials."""
    search.folds_of(sample)  # raises if there are too few samples
    given = AsNumbers.of(sample)
    once, _ = distinct(given.numbers, search.groups)
    targets = pilot_targets(host(once.y).reshape(once.n_samples, -1), once.counts)
    result = search_kernel(once.X, targets, once.weights, groups=once.kept(search.groups), blocks=once.inputs.blocks)
    return given.kernel(result.kernel), given.trials(trial_table({False: result}))


def _searched_rest(search: Search, training_set: TrainingSet) -> SearchResult:
    """Return the held-out errors of models of a pilot's residuals; the pilot's predictions are leave-one-out already.

    Spreads are divided by their means, so that outputs with different units count equally.
    """
    codec, rows = _codec(training_set), training_set.targets.rows
    pilot = codec.pilot
    assert isinstance(pilot, QuantilePilot)  # otherwise a path is solved for each fold
    folds, scale = search.folds(training_set), pilot.scale(pilot.left_out)
    scale = scale / np.average(scale, axis=0, weights=training_set.sample.counts)
    targets = host(codec.decode(rows))

    def measure(predictions: np.ndarray) -> np.ndarray:
        residuals = scale * (targets - host(codec.decode(as_like(predictions, rows))))
        return np.sum(pinball(residuals, codec.levels, codec.weights), axis=1)

    result = replace(search, cv=folds, is_open=False)(training_set, folds, measure)
    return replace(result, is_cautious=True)


def _rows(sample: Sample, rows: np.ndarray, columns: np.ndarray) -> tuple[Array, Array]:
    """Return inputs and outputs of some samples; of a Gram matrix, those rows and the given columns."""
    y = namespace(sample.y).take(sample.y, as_index(rows, sample.y), axis=0)
    return sample.inputs_of(rows, columns), y
