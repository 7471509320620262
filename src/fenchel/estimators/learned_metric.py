"""Regression with a metric of the inputs that is learned from the gradients of the fit."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, host
from fenchel._check import Interval, Options, check_parameter
from fenchel.estimators.kernel_choice import is_auto
from fenchel.estimators.metric_rounds import MetricData, held_out_rounds, outer_product
from fenchel.estimators.regression_cv import OperatorKernelRegressorCV
from fenchel.estimators.validation import all_or_nothing, new_inputs, sample_counts
from fenchel.exceptions import IncompatibleError
from fenchel.losses import Huber

__all__ = ["LearnedMetricRegressor"]


class LearnedMetricRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Regression with a metric on the inputs that is learned from the gradients of the fit.

    From the plain metric on, each round fits a model, takes the average over the sample of the outer products of its
    gradients,

    .. math:: M = \frac1n \sum_i J(x_i)^\top J(x_i), \qquad J(x) = \frac{\partial \hat h(x)}{\partial x},

    of standardised columns and outputs, and searches for the next kernel with distances
    :math:`(x - z)^\top M^{1/2} (x - z)`. Rounds end when the error of held-out samples no longer falls; the best round
    is kept, which may be that of the plain metric.

    Parameters
    ----------
    estimator : OperatorKernelRegressorCV, FunctionalRegressorCV or None, default=None
        The regression, with ``kernel="auto"``; ``None`` is ``OperatorKernelRegressorCV()``.
    metric : {"diagonal", "full"}, default="diagonal"
        A weight for each column, from the diagonal of M, or a matrix.
    max_rounds : int, default=5
        Largest number of rounds after that of the plain metric.
    cv : int, splitter or iterable of pairs of indices, default=3
        Folds on which the number of rounds is chosen; each learns a metric of its own. A number means that many folds
        of samples in random order.

    Attributes
    ----------
    best_estimator_ : estimator
        The regression of the best round, fitted.
    relevances_ : array of shape (d,)
        The share of each column in the trace of M, of the best round's own gradients. They sum to 1.
    metric_ : array of shape (d,) or (d, d)
        The squared distance of two inputs, in their own units: weights of the squared differences, or a matrix.
    history_ : list of float
        Mean squared error of held-out samples in each round, the plain metric first, in units of the outputs' scales.
    gaps_ : list of float
        Relative duality gap of the fit of each round on the whole sample; empty if the plain metric was kept.
    best_round_ : int
        Which of them was kept; 0 is the plain metric.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    A metric follows the outputs that it was learned from, so that leave-one-out errors with it are too small: they
    may fall by two thirds while those of other samples rise. Each fold therefore learns its own metrics, and the
    rounds that were best are then repeated on the whole sample.

    Where the regression has chosen a robust loss, gradients are those of robust fits, and held-out errors count up to
    four robust deviations. Derivatives of kernels with kinks are those beside the kinks.

    References
    ----------
    [Radhakrishnan2024]_; [Beaglehole2025]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LearnedMetricRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (150, 6))
    >>> model = LearnedMetricRegressor().fit(X, np.sin(4 * X[:, 2]))
    >>> int(np.argmax(model.relevances_)), bool(model.relevances_[2] > 0.9)
    (2, True)
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "metric": Options(("diagonal", "full")),
        "max_rounds": Interval(0, np.inf, "left", integer=True),
    }

    def __init__(self, estimator: Any = None, metric: str = "diagonal", max_rounds: int = 5, cv: Any = 3) -> None:
        self.estimator = estimator
        self.metric = metric
        self.max_rounds = max_rounds
        self.cv = cv

    @all_or_nothing
    def fit(self, X: Array, y: Any, sample_weight: Array | None = None, grid: Array | None = None) -> Self:
        """Fit the regression, learn the metric and fit the regression with it.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, vectors.
        y, sample_weight
            As for the regression.
        grid : array of shape (m,) or None, default=None
            Points of the curves that ``FunctionalRegressorCV`` predicts.

        Returns
        -------
        self : LearnedMetricRegressor
            The fitted model.
        """
        for name, limits in self._limits.items():
            check_parameter(type(self).__name__, name, getattr(self, name), limits)
        given = OperatorKernelRegressorCV() if self.estimator is None else clone(self.estimator)
        if not is_auto(getattr(given, "kernel", None)):
            raise IncompatibleError(
                "The 'estimator' parameter must be a regression that searches for its kernel, with kernel='auto'. "
                f"Got {given!r}."
            )
        arguments = {"sample_weight": sample_weight} | ({} if grid is None else {"grid": grid})
        first = clone(given).fit(X, y, **arguments)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        data, is_used = _data(first, self.metric, X, sample_weight)
        self.history_ = held_out_rounds(data, self._folds(is_used), int(self.max_rounds))
        self.best_round_ = int(np.argmin(self.history_))
        self.gaps_, weights, self.best_estimator_ = [], None, first
        if self.best_round_:
            rounds = [data.first_round()]
            for _ in range(self.best_round_):
                rounds.append(data.next_round(rounds[-1]))
            self.gaps_, weights = [one.model.duality_gap_ for one in rounds], rounds[-1].weights
            if is_auto(given.losses):  # errors with a learned metric are no basis for that choice
                given.set_params(losses=[Huber("auto") if data.is_robust else "square"])
            self.best_estimator_ = given.set_params(metric=weights).fit(X, y, **arguments)
        shares = np.diag(outer_product(data, self.best_estimator_.best_estimator_))
        self.relevances_ = shares / np.sum(shares) if np.any(shares) else np.full(len(shares), 1 / len(shares))
        self.metric_ = _in_units(data, weights)
        return self

    def predict(self, X: Array, **params: Any) -> Any:
        """Predict with the regression of the best round."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, **params)

    def gradient(self, X: Array, almost_everywhere: bool = False, **params: Any) -> Array:
        """Return the derivatives of predictions in the columns of X, as ``OperatorKernelRegressor.gradient`` does."""
        check_is_fitted(self)
        return self.best_estimator_.gradient(X, almost_everywhere=almost_everywhere, **params)

    def score(self, X: Array, y: Any, sample_weight: Array | None = None, **params: Any) -> float:
        """Return the score of the regression of the best round."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight=sample_weight, **params))

    def _folds(self, is_used: np.ndarray) -> list[np.ndarray]:
        """Return the places of the held-out samples of each fold, among those with a positive weight."""
        if isinstance(self.cv, Integral):
            check_parameter(type(self).__name__, "cv", self.cv, Interval(2, np.inf, "left", integer=True))
            n = int(np.sum(is_used))
            return np.array_split(np.random.default_rng(0).permutation(n), min(int(self.cv), n))
        places = np.cumsum(is_used) - 1
        tests = [np.asarray(test) for _, test in check_cv(self.cv).split(is_used)]
        return [places[test[is_used[test]]] for test in tests]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = (OperatorKernelRegressorCV() if self.estimator is None else self.estimator).__sklearn_tags__()
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.input_tags.three_d_array = False
        return tags


def _data(first: Any, kind: str, X: Any, sample_weight: Array | None) -> tuple[MetricData, np.ndarray]:
    """Return the data of a fitted regression in the coordinates of its outputs, and which samples are there."""
    if getattr(X, "ndim", 2) != 2:
        raise IncompatibleError(f"A learned metric is for vectors, shape (n, d). Got inputs of shape {X.shape}.")
    fitted = first.best_estimator_
    points = host(new_inputs(fitted, X)).astype(np.float64)
    counts = sample_counts(sample_weight, points)
    representation = fitted.representation_
    targets = representation.targets_
    targets = targets if representation.row_scale_ is None else targets / representation.row_scale_
    observed = None if representation.observed_ is None else host(representation.observed_).astype(np.float64)
    settings = {"approximation": first.approximation, "tol": first.tol}
    Y, used = host(targets).astype(np.float64), counts > 0
    is_robust = hasattr(first, "outlier_score_")
    return MetricData(points[used], Y, counts[used], observed, is_robust, kind, settings), used


def _in_units(data: MetricData, weights: np.ndarray | None) -> np.ndarray:
    """Return a metric of the columns in their own units, of squared distances."""
    inverse: np.ndarray = 1 / data.scale
    if weights is not None and weights.ndim == 2:
        return inverse[:, None] * (weights @ weights.T) * inverse
    return inverse**2 if weights is None else (weights * inverse) ** 2
