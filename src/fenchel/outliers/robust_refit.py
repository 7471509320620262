"""Refit of a regressor without the samples that its first fit shows to be outliers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import get_tags

from fenchel._array import Inputs, Outputs, as_rows, has_shape, is_sparse
from fenchel._check import Interval, check_parameters
from fenchel._progress import Progress, part, tracked
from fenchel._statistics import is_clearly_positive
from fenchel.data.containers import inputs_for, length, numbers, on_one_grid, take
from fenchel.data.frames import FramesOutMixin, column_names, in_container
from fenchel.data.functional import Curves, as_curves, brings_points, is_fdata
from fenchel.data.pairs import is_pairs
from fenchel.estimators.around import AroundMixin
from fenchel.losses.relative import RelativeSize
from fenchel.model.sample import spread
from fenchel.outliers.held_out_residuals import residuals_of
from fenchel.outliers.judged import among, check_observed
from fenchel.outliers.report import OutlierReport
from fenchel.outliers.sample_facts import check_count, weights_of
from fenchel.resample.folds import blocks_of, grouped, label_codes, weighted
from fenchel.resample.residuals import Residuals

__all__ = ["RobustRefit"]

_MOST = 0.2  # maximum fraction of curves that can be unlike the others
_COMPARED = 0.3  # share of the held-out residuals of a fit in what is left
_FOLDS = 10  # folds for the comparison of fits
_ERRORS = 1.5  # standard errors by which a fit must win, as in the choice of a loss
_CERTAINLY_WRONG = RelativeSize("scale", 4.0)  # norms are clipped at this size in mean squares, as in searches


class RobustRefit(AroundMixin, FramesOutMixin, RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Regressor that flags samples with outlying held-out residuals, refits without them, and keeps the better fit.

    A robust loss bounds the influence of a wrong sample, but does not remove it. Each fit has its own certificate if
    the estimator is from this library.

    A curve is also flagged if it is unlike the other curves and its residual is above the median: wrong curves that
    pull the first fit towards themselves may have inconspicuous residuals. This second test is skipped if it would flag
    more than a fifth of the curves, since there is no clear bulk then. Each test is run at half of the rate.

    Flags at a false discovery rate are conservative if correct samples have large residuals too. A further fit
    therefore leaves out a given fraction of the samples, those with the largest residuals.

    A fit without some samples can be worse: some of them may be correct, and rare samples are the most informative. The
    fits are compared by their residuals at *all* samples, each predicted by a fit that did not see it: first the fit to
    all samples, then the one without flagged samples, then the trimmed one. Each replaces the one kept so far if the
    mean norm of its residuals is smaller by more than 1.5 standard errors of the difference. For the trimmed fit the
    mean square is compared instead, in which samples that are hard to predict weigh most, since these are the samples
    that it leaves out, correct or wrong; norms are then clipped at four times their scale, so that samples which are
    certainly wrong cost the same for both fits.

    Parameters
    ----------
    estimator : regressor or None, default=None
        A robust regressor, used for all fits; ``None`` means ``OperatorKernelRegressorCV()``.
    final_estimator : regressor or None, default=None
        Regressor for the fits that are compared; ``None`` means ``estimator``.
    fdr : float, default=0.1
        False discovery rate at which samples are flagged.
    max_rounds : int, default=1
        Maximum number of fits without flagged samples. After each of them but the last, all samples are tested again,
        to find outliers that the first fit masked and to readmit samples that it flagged wrongly. Rounds end when the
        flags no longer change.
    cv : int or None, default=None
        Number of folds for the held-out residuals, as for ``OutlierReport.of``. The comparison of fits uses ten folds
        for ``None``.
    trim : float or None, default=0.1
        Fraction of the samples that the trimmed fit leaves out; ``None`` skips this fit.
    progress : bool, callable or None, default=None
        How far the fit has come, as for ``OperatorKernelRegressorCV``.

    Attributes
    ----------
    first_estimator_ : regressor
        The fit to all samples.
    estimator_ : regressor
        The fit that was kept.
    kept_fit_ : {"all", "unflagged", "trimmed"}
        Name of the fit that was kept.
    errors_ : dict of str to float
        Mean norm of the held-out residuals of each fit (root mean square over outputs or points), by name.
    left_out_ : ndarray of bool, shape (n,)
        The samples left out by the fit that was kept.
    report_ : OutlierReport
        The last outlier report on all samples.
    is_outlier_ : ndarray of bool, shape (n,)
        The samples that were flagged.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor, RobustRefit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (100, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(100)
    >>> y[:8] += 3
    >>> model = RobustRefit(OperatorKernelRegressor(loss="huber", lam=1e-3)).fit(X, y)
    >>> np.flatnonzero(model.is_outlier_).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """

    _limits: ClassVar[dict[str, Interval]] = {
        "fdr": Interval(0, 1),
        "max_rounds": Interval(1, np.inf, "left", integer=True),
        "trim": Interval(0, 0.5, also=(None,)),
    }

    left_out_: np.ndarray
    is_outlier_: np.ndarray
    report_: OutlierReport

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        final_estimator: BaseEstimator | None = None,
        fdr: float = 0.1,
        max_rounds: int = 1,
        cv: int | None = None,
        trim: float | None = 0.1,
        progress: Progress = None,
    ) -> None:
        self.estimator = estimator
        self.final_estimator = final_estimator
        self.fdr = fdr
        self.max_rounds = max_rounds
        self.cv = cv
        self.trim = trim
        self.progress = progress

    @tracked
    def fit(
        self,
        X: Inputs,
        y: Outputs,
        grid: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Fit to all samples and then without outliers, and keep the better fit.

        Parameters
        ----------
        X, y : array, or any other input of the estimator
            Training data.
        grid : array of shape (m,) or None, default=None
            Points of curves given as an array, for a regressor of curves.
        groups : array of shape (n,) or None, default=None
            Labels of samples that are held out together, such as replicates, also in the searches of the estimators.
        sample_weight : array of shape (n,) or None, default=None
            Sample weights, for all fits and for the means by which they are compared. Samples of weight zero take no
            part: they are left out and not judged.
        order : array of shape (n,) or None, default=None
            Times of the samples, instead of ``groups``: blocks of time are held out together.

        Returns
        -------
        self : RobustRefit
            The fitted model.
        """
        check_parameters(self, self._limits)
        if y is None:
            raise ValueError("RobustRefit requires y to be passed, but the target y is None.")
        self.output_names_ = column_names(y)
        X, y = _as_samples(X), _as_samples(on_one_grid(y if grid is None else as_curves(y, grid)))
        codes = label_codes(blocks_of(order, groups, X), length(y), "groups")
        weights = weights_of(sample_weight, length(y), self._inner, self._final)
        if weights is None or np.all(weights > 0):
            return self._fit(_Sample(X, y, codes, weights))
        index = np.flatnonzero(weights)
        check_count(len(index))
        labels = None if codes is None else codes[index]
        self._fit(_Sample(inputs_for(self._inner, X, index, index), take(y, index), labels, weights[index]))
        return self._among(index, length(y))

    @property
    def _final(self) -> BaseEstimator:
        return self._inner if self.final_estimator is None else self.final_estimator

    def _among(self, index: np.ndarray, n: int) -> Self:
        """Take a fit to some of n samples for one to all of them, of which the others are not used."""
        self.left_out_, self.is_outlier_ = ~spread(~self.left_out_, index, n), spread(self.is_outlier_, index, n)
        self.report_ = among(self.report_, index, n)
        if get_tags(self._final).input_tags.pairwise:
            self._columns, self.n_features_in_ = np.flatnonzero(~self.left_out_), n
        return self

    def _fit(self, sample: "_Sample") -> Self:
        """Fit to samples of positive weight."""
        refit = partial(sample.fit, self._final)

        def fitted(kept: np.ndarray, estimator: BaseEstimator | None = None) -> _Fit:
            return _Fit.of(refit(kept) if estimator is None else estimator, sample, self.cv, kept)

        n_fits = 2 + self.max_rounds + (self.trim is not None)  # and the comparison, which takes as long as a fit
        with part(1 / n_fits):
            self.first_estimator_ = sample.fit(self._inner, np.ones(length(sample.y), dtype=bool))
        with part(self.max_rounds / (n_fits - 1)):
            unflagged = self._without_flagged(refit, sample)
        everyone = np.ones(len(self.report_), dtype=bool)
        with part(_COMPARED):
            fits = {"all": fitted(everyone, self.first_estimator_ if self.final_estimator is None else None)}
        if unflagged is not None:
            with part(_COMPARED):
                fits["unflagged"] = fitted(~self.is_outlier_, unflagged)
        if self.trim is not None:
            fits["trimmed"] = fitted(fits["all"].smallest(1 - self.trim))
        self._keep(fits, sample.weights)
        index = np.flatnonzero(~self.left_out_)
        self._columns = index if get_tags(self._final).input_tags.pairwise and self.left_out_.any() else None
        self.n_features_in_ = self.first_estimator_.n_features_in_
        return self

    def _without_flagged(self, refit: Callable[[np.ndarray], Any], sample: "_Sample") -> Any:
        """Return the fit without the flagged samples, ``None`` if there are none; set the report and the flags."""
        with part(_COMPARED):
            self.report_ = sample.report(self.first_estimator_, self.cv)
            check_observed(self.report_.residuals)
        is_unlike = _unlike_others(sample.y, self.report_, self.fdr / 2)
        for done in range(self.max_rounds):
            self.is_outlier_ = self._flags(is_unlike)
            if not self.is_outlier_.any():
                return None
            with part(1 / (self.max_rounds - done)):
                estimator = refit(~self.is_outlier_)
            if done + 1 == self.max_rounds:
                break
            self.report_ = sample.report(estimator, self.cv, ~self.is_outlier_)
            if np.array_equal(self._flags(is_unlike), self.is_outlier_):
                break
        return estimator

    def _keep(self, fits: "dict[str, _Fit]", weights: np.ndarray | None) -> None:
        """Keep one of several fits, and set the attributes that describe it."""
        self.kept_fit_ = _last_that_is_better({name: fit.sizes for name, fit in fits.items()}, weights)
        self.errors_ = {name: float(np.average(fit.sizes, weights=weights)) for name, fit in fits.items()}
        self.estimator_, self.left_out_ = fits[self.kept_fit_].estimator, ~fits[self.kept_fit_].kept

    def _flags(self, is_unlike: np.ndarray) -> np.ndarray:
        """Return the samples with outlying residuals, and those with outlying outputs and a large residual."""
        sizes = np.nanmean(self.report_.residuals.reshape(len(is_unlike), -1) ** 2, axis=1)
        return np.asarray(self.report_.suspects(self.fdr / 2) | (is_unlike & (sizes > np.median(sizes))))

    @in_container
    def predict(self, X: Inputs, **options: Any) -> Outputs:
        """Predict with the fit that was kept; options are passed to its ``predict``."""
        X = self._read(X)
        return self.estimator_.predict(X, **options)

    def score(self, X: Inputs, y: Outputs, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of the fit that was kept."""
        X = self._read(X)
        return float(self.estimator_.score(X, y, sample_weight))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Samples of positive weight, with the labels of those that are held out together."""

    X: Inputs
    y: Outputs
    codes: np.ndarray | None
    weights: np.ndarray | None

    def fit(self, estimator: BaseEstimator, kept: np.ndarray) -> Any:
        """Return a regressor fitted to some of the samples."""
        index = np.flatnonzero(kept)
        arguments = grouped(estimator, self.codes, index) | weighted(estimator, self.weights, index)
        return clone(estimator).fit(inputs_for(estimator, self.X, index, index), take(self.y, index), **arguments)

    def report(self, estimator: BaseEstimator, cv: int | None, fitted: np.ndarray | None = None) -> OutlierReport:
        """Return the report of a regressor that was fitted to some of the samples, or to all of them."""
        return OutlierReport.of(estimator, self.X, self.y, cv, fitted, self.codes, self.weights)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fitted regressor, the samples that it was fitted to, and its residual norms at all samples."""

    estimator: BaseEstimator
    kept: np.ndarray  # (n,), bool
    sizes: np.ndarray  # (n,): root mean squares of residuals at samples that were held out

    @classmethod
    def of(cls, estimator: BaseEstimator, sample: _Sample, cv: int | None, kept: np.ndarray) -> "_Fit":
        """Return a fit with held-out residuals at its samples, and plain residuals at the samples that it left out."""
        cv, rows = _FOLDS if cv is None else cv, (sample.codes, sample.weights)
        residuals = residuals_of(estimator, sample.X, sample.y, cv, kept, *rows).values
        return cls(estimator, kept, np.sqrt(np.nanmean(residuals**2, axis=1)))

    def smallest(self, share: float) -> np.ndarray:
        """Return which samples belong to the given fraction with the smallest residuals."""
        kept = np.zeros(len(self.sizes), dtype=bool)
        kept[np.argsort(self.sizes, kind="stable")[: int(np.ceil(share * len(kept)))]] = True
        return kept


def _last_that_is_better(norms: dict[str, np.ndarray], weights: np.ndarray | None = None) -> str:
    """Return the name of the best norms (n,): the first, or a later one that is clearly smaller."""
    ceiling, kept = _CERTAINLY_WRONG.of(norms["all"], weights), "all"
    for name in list(norms)[1:]:
        old, new = norms[kept], norms[name]
        gain = np.minimum(old, ceiling) ** 2 - np.minimum(new, ceiling) ** 2 if name == "trimmed" else old - new
        if is_clearly_positive(gain, _ERRORS, weights):
            kept = name
    return kept


def _as_samples(sample: Any) -> Any:
    """Return data whose samples can be selected; unusual containers are converted to an array."""
    if is_sparse(sample):
        return as_rows(sample)
    is_usual = has_shape(sample) or is_pairs(sample) or is_fdata(sample) or isinstance(sample, Curves)
    return sample if is_usual else np.asarray(sample)


def _unlike_others(y: Outputs, report: OutlierReport, fdr: float) -> np.ndarray:
    """Return which curves are unlike the others; none if outputs are not curves or have no clear bulk."""
    if report.grid is None:
        return np.zeros(len(report), dtype=bool)
    values = numbers(as_curves(y, None if brings_points(y) else report.grid).values)
    rows = values.reshape(len(values), -1)
    residuals = Residuals(rows - np.nanmedian(rows, axis=0), report.grid, values.shape[1:])
    is_unlike = OutlierReport.of_residuals(residuals, is_marginal=False).suspects(fdr)
    return is_unlike & (is_unlike.mean() <= _MOST)
