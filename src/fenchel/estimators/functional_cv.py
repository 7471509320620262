"""``FunctionalRegressor`` with loss and lam chosen by cross-validation."""

from collections.abc import Sequence
from typing import Any, Self

from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array
from fenchel.estimators.functional import FunctionalRegressor
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.search import Progress, Search, expose_best, squared_distance
from fenchel.estimators.validation import all_or_nothing
from fenchel.losses import Loss

__all__ = ["FunctionalRegressorCV"]

_FITTED = ("grid_", "representation_error_")  # of the best estimator, beside the common ones


class FunctionalRegressorCV(NamedPartsMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
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
    >>> from fenchel.datasets import make_functional
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
        search = Search.of(self, self.losses)
        estimator = self._estimator(search.losses[0], search.lams[0])
        encoded = estimator._encode(X, y, sample_weight, estimator._settings().swept(), double=True, grid=grid)
        training_set = encoded.training_set
        result = search(training_set, search.folds(training_set), squared_distance(training_set))
        expose_best(self, estimator, encoded, result, _FITTED)
        return self

    def predict(self, X: Any, grid: Array | None = None, derivative: bool = False) -> Any:
        """Predict with the chosen model, as ``FunctionalRegressor.predict`` does."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, grid, derivative)

    def score(self, X: Any, y: Any, sample_weight: Array | None = None, grid: Array | None = None) -> float:
        """Return the share of the variance of the curves that the chosen model explains."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight, grid)

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
