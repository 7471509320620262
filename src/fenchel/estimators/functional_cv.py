"""``FunctionalRegressor`` with kernels, loss and lam chosen by cross-validation."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, as_like, host
from fenchel.estimators.functional import FunctionalRegressor
from fenchel.estimators.kernel_choice import KernelChoice, check_metric, choose_kernel, is_auto
from fenchel.estimators.named_parts import NamedPartsMixin
from fenchel.estimators.scoring import Scoring
from fenchel.estimators.search import Measure, Progress, Search, expose_best, squared_distance
from fenchel.estimators.training_set import TrainingSet
from fenchel.estimators.validation import all_or_nothing, warn_user
from fenchel.exceptions import SlowFitWarning
from fenchel.kernels import Constant, Laplacian
from fenchel.losses import Loss, Square
from fenchel.representations import Spline

__all__ = ["FunctionalRegressorCV"]

_LOG = logging.getLogger("fenchel")
_SECONDS = 15.0  # time of the search on a union of 1000 points; it grows with the cube of their number
_SHARES = (0.05, 0.1, 0.2, 0.5)  # lengths of the output kernel, as fractions of the domain
_FEWEST_POINTS = 3  # with fewer points on the grid, the output kernel is not searched for
_MOST_SAMPLES = 2000  # with more samples, the output kernel is not searched for
_PILOT_TOL = 1e-4  # gap to which candidates for the output kernel are solved
_DECADES = 10.0 ** np.arange(-4, 2)  # lam, relative to that of the kernel search without an output kernel
_STEPS = 10.0 ** np.array([-0.5, 0.0, 0.5])  # lam, relative to the best of those
_FITTED = ("grid_", "representation_error_")  # attributes of the best estimator besides the common ones


class FunctionalRegressorCV(NamedPartsMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """``FunctionalRegressor`` with kernels, loss and lam chosen by cross-validation.

    The defaults need no knowledge of the data: see ``OperatorKernelRegressorCV``. Columns of vectors (n, d) and
    channels of curves (n, m, c) are scaled separately, and the results do not depend on the unit of the grid. Pass
    input curves with one channel as (n, m, 1) or as scikit-fda objects, since separate scales for their points would
    distort their shape.

    Folds are solved as in ``OperatorKernelRegressorCV``. The error of a held-out curve is its mean squared distance to
    the prediction over the points at which it was observed. The chosen pair is then fitted on the whole sample.
    Quantities that are estimated from the data (a median bandwidth, the centre) are computed once, from the whole
    sample.

    Parameters
    ----------
    kernel : "auto", kernel, str, callable or None, default="auto"
        ``"auto"`` searches for a kernel of the inputs, using at most 2000 samples; other values are as for
        ``FunctionalRegressor``.
    output_kernel : kernel, str, callable, list of these, or None, default=None
        As for ``FunctionalRegressor``. With ``kernel="auto"``, ``None`` means a Laplacian kernel whose length, 0.05,
        0.1, 0.2 or 0.5 of the domain, is chosen by the held-out errors of the square loss, or of all losses if one of
        them is robust.
    lams, losses
        As for ``OperatorKernelRegressorCV``.
    representation : {"spline", "eigen", "fourier"} or CurveRepresentation, default="spline"
        As for ``FunctionalRegressor``. With ``kernel="auto"``, ``"spline"`` is ``Spline(quadrature="mean")``, whose
        integrals are means over the domain.
    n_components
        As for ``FunctionalRegressor``.
    center : bool, "median" or "auto", default="auto"
        As for ``FunctionalRegressor``. ``"auto"`` is the mean, or the median if ``kernel="auto"`` selects a robust
        loss.
    channels
        As for ``FunctionalRegressor``.
    cv, aggregate
        As for ``OperatorKernelRegressorCV``. With contaminated curves ``aggregate="trimmed_mean"`` or ``"median"`` is
        the robust choice.
    tol
        As for ``FunctionalRegressor``.
    n_jobs, checkpoint, progress
        As for ``OperatorKernelRegressorCV``.
    approximation
        As for ``FunctionalRegressor``.
    scale : bool, "robust" or "auto", default="auto"
        As for ``FunctionalRegressor``. ``"auto"`` divides each output channel by its scale with ``kernel="auto"``,
        unless a threshold of a loss is a number; ``channels`` then couples the scaled channels. Held-out errors are in
        these units.
    scoring : str, callable or None, default=None
        As for ``OperatorKernelRegressorCV``, for curves at the points of the grid, (n, m) or (n, m, c). Scores given by
        name do not support missing values: use ``fenchel.metrics.curve_scorer``.
    certificate : {"approximate", "sampled", "exact"}, default="approximate"
        As for ``OperatorKernelRegressor``.
    metric : array of shape (d,) or (d, k), or None, default=None
        As for ``OperatorKernelRegressorCV``, for inputs that are vectors.

    Attributes
    ----------
    best_kernel_, best_loss_, best_lam_ : kernel, Loss, float
        The chosen kernel, loss and lam, with data-dependent parameters resolved to numbers.
    search_ : dict of lists or None
        Results of the kernel search, as for ``OperatorKernelRegressorCV``.
    losses_, lams_ : list
        The losses and the values of lam that were compared.
    cv_errors_ : array of shape (n_losses, n_lams)
        Errors of held-out curves, aggregated over curves and folds.
    fold_errors_ : array of shape (n_losses, n_lams, n_folds)
        Mean error over the curves of each fold.
    cv_gaps_ : array of shape (n_losses, n_lams)
        Largest relative duality gap over the folds.
    best_estimator_ : FunctionalRegressor
        The model fitted on the whole sample; its fitted attributes are also available on this object.

    Examples
    --------
    >>> from fenchel import FunctionalRegressorCV
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.losses import Huber
    >>> data = make_functional(30, 20, random_state=0)
    >>> FunctionalRegressorCV().fit(data.X, data.Y).predict(data.X[:2]).shape
    (2, 20)
    >>> model = FunctionalRegressorCV(None, lams=[1e-4, 1e-2], losses=["square", Huber(0.5, p=1)]).fit(data.X, data.Y)
    >>> model.cv_errors_.shape, bool(model.cv_gaps_.max() <= 1e-6)
    ((2, 2), True)
    """

    def __init__(
        self,
        kernel: Any = "auto",
        output_kernel: Any = None,
        lams: Any = None,
        losses: Sequence[Loss | str] | str = "auto",
        representation: Any = "spline",
        n_components: float | None = None,
        center: bool | str = "auto",
        channels: Array | None = None,
        cv: Any = 5,
        aggregate: str = "auto",
        tol: float = 1e-6,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        progress: Progress | None = None,
        approximation: Any = None,
        scale: bool | str = "auto",
        scoring: str | Callable[..., Any] | None = None,
        certificate: str = "approximate",
        metric: Array | None = None,
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
        self.scale = scale
        self.scoring = scoring
        self.certificate = certificate
        self.metric = metric

    @all_or_nothing
    def fit(
        self, X: Any, y: Any, grid: Array | None = None, sample_weight: Array | None = None, groups: Any = None
    ) -> Self:
        """Choose loss and lam, then fit on the whole sample.

        Parameters
        ----------
        X, y, grid, sample_weight
            As for ``FunctionalRegressor.fit``.
        groups : array of shape (n,) or None, default=None
            Groups of samples that are held out together, such as replicates. They are passed to ``cv`` if it is a
            splitter; a number of folds means ``GroupKFold``. The kernel search leaves out one group at a time.

        Returns
        -------
        self : FunctionalRegressorCV
            The fitted model.
        """
        check_metric(self)
        scoring = Scoring.of(self)
        search = Search.of(self, ["square"] if is_auto(self.losses) else self.losses, groups)
        if is_auto(self.kernel):
            estimator, encoded, search, choice = self._chosen(search, X, y, sample_weight, grid)
        else:
            estimator, choice = self._estimator(search.losses).set_params(lam=min(search.lams)), None
            encoded = self._encoded(estimator, X, y, sample_weight, grid)
        training_set = encoded.training_set
        folds = search.folds(training_set)
        measure = (
            squared_distance(training_set, search.ceiling) if scoring is None else _scored(encoded, scoring, folds)
        )
        result = search(training_set, folds, measure, settings=f"{scoring or ''}")
        expose_best(self, estimator, encoded, result, _FITTED, choice)
        return self

    def predict(self, X: Any, grid: Array | None = None, derivative: bool = False) -> Any:
        """Predict with the chosen model; see ``FunctionalRegressor.predict``."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, grid, derivative)

    def gradient(self, X: Any, grid: Array | None = None, almost_everywhere: bool = False) -> Array:
        """Return the derivatives of the predictions with respect to X; see ``FunctionalRegressor.gradient``."""
        check_is_fitted(self)
        return self.best_estimator_.gradient(X, grid, almost_everywhere)

    def score(self, X: Any, y: Any, sample_weight: Array | None = None, grid: Array | None = None) -> float:
        """Return the fraction of the variance of the curves that the chosen model explains."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight, grid)

    def _chosen(
        self, search: Search, X: Any, y: Any, sample_weight: Array | None, grid: Array | None
    ) -> tuple[FunctionalRegressor, Any, Search, KernelChoice]:
        """Return the estimator and its data with the chosen kernels, and the remaining grid of losses and lams."""
        estimators = {is_robust: self._estimator(search.losses, is_robust) for is_robust in (False, True)}

        @cache
        def encode(is_robust: bool) -> Any:
            estimator = estimators[is_robust].set_params(kernel=Constant(), approximation=None)
            encoded = self._encoded(estimator, X, y, sample_weight, grid)
            search.folds(encoded.training_set)  # raises if there are too few samples
            return encoded

        if self._output_lengths(encode(False).training_set):
            _warn_of_points(encode(False).training_set)
        input_grid = estimators[False]._input_grid
        choice = choose_kernel(encode, self.losses, input_grid is not None, input_grid, self.metric, search.groups)
        losses = choice.resolved_losses() if choice.is_robust else choice.losses
        search = search.chosen(choice, losses, self)
        estimator = estimators[choice.is_robust]
        lam = min(search.lams)
        estimator.set_params(kernel=choice.search.kernel, approximation=self.approximation, lam=lam)
        lams = choice.search.lam * _DECADES if self.lams is None else search.lams
        pilot, trials = search.pilot([Square()], lams), list[Any]()
        pilot = replace(pilot, is_open=self.lams is None, tol=max(self.tol, _PILOT_TOL))
        for share in self._output_lengths(choice.encoded.training_set):
            candidate = clone(estimator).set_params(output_kernel=_laplacian(share, choice.encoded.training_set))
            encoded = self._encoded(candidate, X, y, sample_weight, grid)
            training_set = choice.cleaned(encoded.training_set) if choice.is_robust else encoded.training_set
            result = pilot(training_set, search.folds(training_set), squared_distance(training_set))
            _LOG.info(
                f"FunctionalRegressorCV: output kernel {len(trials) + 1} of {len(_SHARES)}, {candidate.output_kernel!r}"
            )
            trials.append((float(np.min(result.cv_errors)), len(trials), candidate, encoded, result))
        if not trials:
            return estimator, self._encoded(estimator, X, y, sample_weight, grid), search, choice
        _, _, estimator, encoded, result = min(trials)
        best = result.lams[result.best[1]]
        if choice.is_robust:
            search = replace(search, losses=choice.losses_at(encoded.training_set, best, self.tol))
        lams = (best * _STEPS).tolist() if self.lams is None else search.lams
        return estimator, encoded, replace(search, lams=lams), choice

    def _output_lengths(self, training_set: TrainingSet) -> tuple[float, ...]:
        """Return the lengths of the output kernel to choose from, none if the kernel is given."""
        representation: Any = training_set.representation
        is_given = self.output_kernel is not None or representation.has_eigenvalues
        if is_given or len(representation.grid_) < _FEWEST_POINTS or training_set.n_samples > _MOST_SAMPLES:
            return ()
        return _SHARES

    @staticmethod
    def _encoded(
        estimator: FunctionalRegressor, X: Any, y: Any, sample_weight: Array | None, grid: Array | None
    ) -> Any:
        return estimator._encode(X, y, sample_weight, estimator._settings().swept(), double=True, grid=grid)

    def _estimator(self, losses: Sequence[Loss], is_robust: bool = False) -> FunctionalRegressor:
        """Return the estimator with the first loss, with outputs scaled as the losses require."""
        is_free = is_auto(self.kernel) and all(loss.is_unit_free for loss in losses)
        representation = self.representation
        if is_auto(self.kernel) and isinstance(representation, str) and representation == "spline":
            representation = Spline(quadrature="mean")
        return FunctionalRegressor(
            self.kernel,
            self.output_kernel,
            losses[0],
            1.0,
            representation=representation,
            n_components=self.n_components,
            center=("median" if is_robust else True) if is_auto(self.center) else self.center,
            channels=self.channels,
            tol=self.tol,
            approximation=self.approximation,
            certificate=self.certificate,
            scale=(is_free and ("robust" if is_robust else True)) if is_auto(self.scale) else self.scale,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self._estimator([Square()]).__sklearn_tags__()
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _warn_of_points(training_set: TrainingSet) -> None:
    """Warn if the curves have so many points in all that the search is estimated to take more than a minute."""
    representation: Any = training_set.representation
    n_points = len(representation.grid_)
    minutes = _SECONDS * (n_points / 1000) ** 3 / 60
    if representation.observed_ is not None and minutes > 1:
        warn_user(
            f"The curves were observed at {n_points} points in all: the search takes {minutes:.1f} minutes or more. "
            "Give output_kernel, which is then not searched for, or smooth the curves to a basis first (to_basis of "
            "scikit-fda). The logger 'fenchel' tells how far it is.",
            SlowFitWarning,
            "slow-fit",
        )


def _laplacian(share: float, training_set: TrainingSet) -> Laplacian:
    """Return the output kernel whose length is a fraction of the domain."""
    representation: Any = training_set.representation
    grid = representation.grid_
    return Laplacian(1 / (share * float(grid[-1] - grid[0])))


def _scored(encoded: Any, scoring: Scoring, folds: list[np.ndarray]) -> Measure:
    """Return ``scoring`` as a measure of curves at the points of the grid, (n, m) or (n, m, c)."""
    training_set = encoded.training_set
    representation, index = training_set.representation, training_set.index
    given = host(encoded.given.values)
    truth = given if index is None else given[index]

    def decode(coordinates: np.ndarray) -> np.ndarray:
        if representation.row_scale_ is not None:  # curves with gaps
            coordinates = coordinates / host(representation.row_scale_)
        values = host(representation.decode(as_like(coordinates, training_set.targets))).reshape(truth.shape)
        values = values if encoded.scale is None else values * encoded.scale
        return values if encoded.center is None else values + encoded.center.values.reshape(truth.shape[1:])

    weights = None if training_set.weights is None else training_set.counts
    return scoring.measure(truth, decode, folds, weights, representation.grid_)
