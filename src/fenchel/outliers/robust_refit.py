"""A regressor that is fitted again without the samples that its first fit shows to be wrong."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from fenchel._check import Interval, check_parameter
from fenchel._sparse import as_rows, is_sparse
from fenchel.conformal.samples import Residuals, columns_for, inputs_for, length, numbers, on_one_grid, take
from fenchel.datasets.functional import Curves, as_curves, brings_points, is_fdata, is_pairs
from fenchel.estimators import OperatorKernelRegressorCV
from fenchel.outliers.report import OutlierReport

__all__ = ["RobustRefit"]

_MOST = 0.2  # share of curves that can be unlike the others


class RobustRefit(RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit, flag the samples whose held-out residuals are outliers, and fit again without them.

    A robust loss bounds how much a wrong sample pulls, and a bounded pull is still a pull. Both fits have a certificate
    of their own where the estimator is one of this library.

    A curve is also flagged if it is unlike the other curves and its residual is above the median: wrong curves that
    pull the first fit towards themselves may have residuals that are not conspicuous. This second test is left out
    where it would flag more than a fifth of the curves, which then have no bulk. Each test has half of the rate.

    Parameters
    ----------
    estimator : regressor or None, default=None
        A robust regressor, for both fits; ``None`` is ``OperatorKernelRegressorCV()``.
    final_estimator : regressor or None, default=None
        Regressor of the second fit; ``None`` is ``estimator``.
    fdr : float, default=0.1
        False discovery rate at which samples are flagged.
    max_rounds : int, default=1
        Most fits without flagged samples. After each but the last all samples are looked at again: what the first fit
        had hidden is found, and what it had distorted comes back. It ends when the flags stay the same.
    cv : int or None, default=None
        Folds of the held-out residuals, as for ``OutlierReport.of``.

    Attributes
    ----------
    first_estimator_ : regressor
        The fit to all samples.
    estimator_ : regressor
        The fit to the samples that were kept.
    report_ : OutlierReport
        The last report on all samples.
    is_outlier_ : ndarray of bool, shape (n,)
        The samples that were left out.

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
    }

    def __init__(
        self,
        estimator: Any = None,
        final_estimator: Any = None,
        fdr: float = 0.1,
        max_rounds: int = 1,
        cv: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.final_estimator = final_estimator
        self.fdr = fdr
        self.max_rounds = max_rounds
        self.cv = cv

    def fit(self, X: Any, y: Any) -> Self:
        """Fit twice.

        Parameters
        ----------
        X, y : array, or what else the estimator takes
            Training data.

        Returns
        -------
        self : RobustRefit
            The fitted model.
        """
        for name, limits in self._limits.items():
            check_parameter(type(self).__name__, name, getattr(self, name), limits)
        if y is None:
            raise ValueError("RobustRefit requires y to be passed, but the target y is None.")
        first = OperatorKernelRegressorCV() if self.estimator is None else self.estimator
        X, y = _as_samples(X), _as_samples(on_one_grid(y))
        final = first if self.final_estimator is None else self.final_estimator
        self.first_estimator_ = clone(first).fit(X, y)
        self.report_ = OutlierReport.of(self.first_estimator_, X, y, self.cv)
        is_unlike = _unlike_others(y, self.report_, self.fdr / 2)
        for done in range(self.max_rounds):
            self.is_outlier_ = self._flags(is_unlike)
            kept = np.flatnonzero(~self.is_outlier_)
            self.estimator_ = clone(final).fit(inputs_for(final, X, kept, kept), take(y, kept))
            if done + 1 == self.max_rounds or not self.is_outlier_.any():
                break
            self.report_ = OutlierReport.of(self.estimator_, X, y, self.cv, ~self.is_outlier_)
            if np.array_equal(self._flags(is_unlike), self.is_outlier_):
                break
        self._columns = kept if get_tags(final).input_tags.pairwise and len(kept) < length(y) else None
        self.n_features_in_ = self.first_estimator_.n_features_in_
        return self

    def _flags(self, is_unlike: np.ndarray) -> np.ndarray:
        """Return the samples with outlying residuals, and those with outlying outputs and a large residual."""
        sizes = np.nanmean(self.report_.residuals.reshape(len(is_unlike), -1) ** 2, axis=1)
        return np.asarray(self.report_.flagged(self.fdr / 2) | (is_unlike & (sizes > np.median(sizes))))

    def predict(self, X: Any, **options: Any) -> Any:
        """Predict with the second fit; options are those of its ``predict``."""
        check_is_fitted(self)
        return self.estimator_.predict(columns_for(X, self._columns), **options)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the second fit."""
        check_is_fitted(self)
        return float(self.estimator_.score(columns_for(X, self._columns), y, sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(OperatorKernelRegressorCV() if self.estimator is None else self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _as_samples(sample: Any) -> Any:
    """Return something that has samples which can be taken; what is none of the usual forms becomes an array."""
    if is_sparse(sample):
        return as_rows(sample)
    is_usual = hasattr(sample, "shape") or is_pairs(sample) or is_fdata(sample) or isinstance(sample, Curves)
    return sample if is_usual else np.asarray(sample)


def _unlike_others(y: Any, report: OutlierReport, fdr: float) -> np.ndarray:
    """Return which curves are unlike the others; none where outputs are no curves or have no bulk."""
    if report.grid is None:
        return np.zeros(len(report), dtype=bool)
    values = numbers(as_curves(y, None if brings_points(y) else report.grid).values)
    rows = values.reshape(len(values), -1)
    residuals = Residuals(rows - np.nanmedian(rows, axis=0), report.grid, values.shape[1:])
    is_unlike = OutlierReport.of_residuals(residuals, is_marginal=False).flagged(fdr)
    return is_unlike & (is_unlike.mean() <= _MOST)
