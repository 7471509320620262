"""What estimators around another estimator share."""

from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Inputs
from fenchel._progress import CallbacksMixin
from fenchel.data.containers import columns_for
from fenchel.estimators.regression_cv import OperatorKernelRegressorCV

__all__ = ["AroundMixin"]


class AroundMixin(CallbacksMixin):
    """Estimator around ``estimator``, or around one of the class ``default`` for ``None``; it takes the same data."""

    default: ClassVar[type[BaseEstimator]] = OperatorKernelRegressorCV

    estimator: BaseEstimator | None
    estimator_: BaseEstimator
    _columns: np.ndarray | None = None  # of a Gram matrix: the samples that the estimator was fitted to

    @property
    def _inner(self) -> BaseEstimator:
        return self.default() if self.estimator is None else self.estimator

    def _read(self, X: Inputs) -> Inputs:
        """Return new inputs for the fitted estimator."""
        check_is_fitted(self)
        return columns_for(X, self._columns)

    def _with_columns(self, train: np.ndarray | None = None, n: int | None = None) -> Self:
        """Note the number of features and, of a Gram matrix of n samples, the columns that the estimator knows."""
        self._columns = None
        if train is not None and get_tags(self.estimator_).input_tags.pairwise:
            self._columns, self.n_features_in_ = train, n
        elif hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self._inner)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags
