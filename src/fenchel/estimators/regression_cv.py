"""``OperatorKernelRegressor`` with loss and lam chosen by cross-validation."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, as_like
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.regression import OperatorKernelRegressor
from fenchel.estimators.search import Measure, Progress, Search, expose_best, squared_distance
from fenchel.estimators.training_set import TrainingSet
from fenchel.estimators.validation import all_or_nothing
from fenchel.losses import Loss

__all__ = ["OperatorKernelRegressorCV"]


class OperatorKernelRegressorCV(NamedPartsMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
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
        exact for the square loss; ``fenchel.reweighted_ridge.approximate_loo`` states its error with others.
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
    scoring : callable or None, default=None
        ``scoring(y, predicted)`` gives the error of each sample, shape (n,), from the outputs and their predictions out
        of sample, in the order of the sample; ``None`` is the squared distance.

    Attributes
    ----------
    best_loss_, best_lam_ : Loss, float
        The chosen pair.
    losses_, lams_ : list
        The grid.
    cv_errors_ : array of shape (n_losses, n_lams)
        Errors of the held-out samples, aggregated over folds.
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
        scoring: Callable[[Array, Array], Any] | None = None,
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
        self.scoring = scoring

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
        search = Search.of(self, self.losses)
        estimator = self._estimator(search.losses[0], search.lams[0])
        encoded = estimator._encode(X, y, sample_weight, estimator._settings().swept(), double=True)
        training_set = encoded.training_set
        measure = squared_distance(training_set) if self.scoring is None else self._scored(training_set, self.scoring)
        settings = "" if self.scoring is None else getattr(self.scoring, "__qualname__", repr(self.scoring))
        result = search(training_set, search.folds(training_set), measure, settings=settings)
        expose_best(self, estimator, encoded, result)
        return self

    def predict(self, X: Array) -> Array:
        """Predict with the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @staticmethod
    def _scored(training_set: TrainingSet, scoring: Callable[[Array, Array], Any]) -> Measure:
        """Return the measure that ``scoring`` is, of decoded outputs and predictions."""
        decode = training_set.representation.decode
        y = decode(training_set.targets)
        return lambda predictions: np.asarray(scoring(y, decode(as_like(predictions, y))), dtype=np.float64)

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
