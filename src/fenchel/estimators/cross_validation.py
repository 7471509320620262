"""Model selection by cross-validation on one factorisation."""

from collections.abc import Sequence
from typing import Any, Self

from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array
from fenchel.estimators.base import all_or_nothing
from fenchel.estimators.functional import CurveScoreMixin, FunctionalRegressor
from fenchel.estimators.regression import OperatorKernelRegressor
from fenchel.estimators.search import CrossValidatedMixin
from fenchel.estimators.selection import Progress
from fenchel.losses import Loss

__all__ = ["FunctionalRegressorCV", "OperatorKernelRegressorCV"]


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
