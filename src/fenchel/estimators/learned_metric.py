"""Regression with a metric on the inputs that is learned from the gradients of the fit."""

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Array, Inputs, Outputs, host, is_host, is_sparse
from fenchel._check import Interval, Options, check_finite, check_parameter, check_parameters
from fenchel._component import all_or_nothing
from fenchel._progress import Progress, part, tracked
from fenchel._statistics import ranked
from fenchel.data.containers import length
from fenchel.data.content import contents
from fenchel.data.frames import FramesOutMixin, in_container
from fenchel.estimators.around import AroundMixin
from fenchel.estimators.metric_rounds import MetricData, MetricRound, held_out_rounds, outer_product
from fenchel.exceptions import IncompatibleError
from fenchel.losses import Huber
from fenchel.model.curve_gaps import completed_targets
from fenchel.model.machine import training_set_of
from fenchel.resample.folds import blocks_of, label_codes, whole_folds
from fenchel.search.choice import is_auto

__all__ = ["LearnedMetricRegressor"]

_SEARCH, _ROUNDS = 0.15, 0.7  # shares of the first search, and of the rounds of the folds in what is left


class LearnedMetricRegressor(AroundMixin, FramesOutMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Regression with a metric on the inputs that is learned from the gradients of the fit.

    Starting from the plain metric, each round fits a model, computes the average outer product of its gradients over
    the sample,

    .. math:: M = \frac1n \sum_i J(x_i)^\top J(x_i), \qquad J(x) = \frac{\partial \hat h(x)}{\partial x},

    with standardised columns and outputs, and searches for the next kernel with distances
    :math:`(x - z)^\top M^{1/2} (x - z)`. Rounds end when the held-out error no longer decreases. The best round is
    kept, which may be that of the plain metric.

    Parameters
    ----------
    estimator : OperatorKernelRegressorCV, FunctionalRegressorCV or None, default=None
        The regressor, with ``kernel="auto"``; ``None`` means ``OperatorKernelRegressorCV()``.
    metric : {"diagonal", "full"}, default="diagonal"
        Whether to learn a weight for each column, from the diagonal of M, or a full matrix.
    max_rounds : int, default=5
        Maximum number of rounds after that of the plain metric.
    cv : int, splitter or iterable of pairs of indices, default=3
        Folds used to choose the number of rounds; each fold learns its own metric. An integer is the number of folds,
        drawn as by ``OperatorKernelRegressorCV``.
    progress : bool, callable or None, default=None
        How far the fit has come, as for ``OperatorKernelRegressorCV``.

    Attributes
    ----------
    best_estimator_ : estimator
        The fitted regressor of the best round.
    relevances_ : array of shape (d,)
        The share of each column in the trace of M, computed from the gradients of ``best_estimator_``. They sum to 1.
    metric_ : array of shape (d,) or (d, d)
        The metric that gives the squared distance of two inputs in their original units: weights of the squared
        differences, or a matrix.
    history_ : list of float
        Mean squared held-out error of each round, the plain metric first, with outputs in units of their scales.
    gaps_ : list of float
        Relative duality gap of the fit of each round on the whole sample; empty if the plain metric was kept.
    best_round_ : int
        The round that was kept; 0 is the plain metric.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    A metric is fitted to the outputs that it was learned from, so leave-one-out errors with it are too small: they may
    fall by two thirds while errors on other samples rise. Each fold therefore learns its own metrics, and the best
    number of rounds is then repeated on the whole sample.

    If the regressor has chosen a robust loss, the gradients are those of robust fits, and held-out errors are clipped
    at four robust deviations. For kernels with kinks, derivatives at a kink are the mean of both sides.

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

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        metric: str = "diagonal",
        max_rounds: int = 5,
        cv: object = 3,
        progress: Progress = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.max_rounds = max_rounds
        self.cv = cv
        self.progress = progress

    @tracked
    @all_or_nothing
    def fit(
        self,
        X: Array,
        y: Outputs,
        sample_weight: Array | None = None,
        grid: Array | None = None,
        groups: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Learn the metric, and fit the regressor with it.

        Parameters
        ----------
        X : array of shape (n, d)
            Input vectors.
        y, sample_weight
            As for the ``fit`` of the regressor.
        grid : array of shape (m,) or None, default=None
            Points at which the output curves are known, for ``FunctionalRegressorCV``.
        groups, order : array of shape (n,) or None, default=None
            Labels of samples that are held out together, or when samples were taken, as for the ``fit`` of the
            regressor; also in the folds that choose the number of rounds.

        Returns
        -------
        self : LearnedMetricRegressor
            The fitted model.
        """
        check_parameters(self, self._limits)
        given = self._search()
        blocks = blocks_of(order, groups, X, self.cv)
        codes = None if blocks is None else label_codes(blocks, length(X), "groups")
        given_too = {"grid": grid, "groups": codes}
        arguments = {"sample_weight": sample_weight} | {k: v for k, v in given_too.items() if v is not None}
        with part(_SEARCH):
            first = clone(given).fit(X, y, **arguments)
        if "gaps" in first.search_:
            raise ValueError(
                "X must be complete. It contains NaN, and a metric weighs its columns. Impute missing values."
            )
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if name in vars(first):
                self.__dict__[name] = vars(first)[name]
        data, is_used = _data(first, self.metric, X, y, sample_weight, codes)
        with part(_ROUNDS):
            self.history_ = held_out_rounds(data, self._folds(data, is_used, codes), int(self.max_rounds))
        self.best_round_ = int(ranked(self.history_)[0])
        self.gaps_, weights, self.best_estimator_ = [], None, first
        if self.best_round_:
            rounds = _rounds(data, self.best_round_)
            self.gaps_, weights = [one.model.duality_gap_ for one in rounds], rounds[-1].weights
            if is_auto(given.losses):  # errors with a learned metric are too optimistic for this choice
                given.set_params(losses=[Huber("auto") if data.is_robust else "square"])
            self.best_estimator_ = given.set_params(metric=weights).fit(X, y, **arguments)
        shares = np.diag(outer_product(data, self.best_estimator_.model_))
        self.relevances_ = shares / np.sum(shares) if np.any(shares) else np.full(len(shares), 1 / len(shares))
        self.metric_ = _in_units(data, weights)
        return self

    @in_container
    def predict(self, X: Array, **params: Any) -> Outputs:
        """Predict with the regressor of the best round."""
        check_is_fitted(self)
        return self.best_estimator_.predict(_complete(X), **params)

    def gradient(self, X: Array, almost_everywhere: bool = False, **params: Any) -> Array:
        """Return the derivatives of the predictions with respect to X; see ``OperatorKernelRegressor.gradient``."""
        check_is_fitted(self)
        return self.best_estimator_.gradient(_complete(X), almost_everywhere=almost_everywhere, **params)

    def score(self, X: Array, y: Outputs, sample_weight: Array | None = None, **params: Any) -> float:
        """Return the score of the regressor of the best round."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(_complete(X), y, sample_weight=sample_weight, **params))

    def _search(self) -> BaseEstimator:
        """Return the regressor, unfitted; raise if it does not search for its kernel."""
        given = clone(self._inner)
        if not is_auto(given.get_params(deep=False).get("kernel")):
            raise IncompatibleError(
                "The 'estimator' parameter must be a regressor that searches for its kernel, with kernel='auto'. "
                f"Got {given!r}."
            )
        if "leaves" in given.get_params(deep=False):
            given.set_params(leaves=False)  # a metric is learned from gradients, which trees do not have
        return given

    def _folds(self, data: MetricData, is_used: np.ndarray, groups: np.ndarray | None) -> list[np.ndarray]:
        """Return the held-out samples of each fold, as indices into the samples with a positive weight."""
        if isinstance(self.cv, Integral):
            check_parameter(type(self).__name__, "cv", self.cv, Interval(2, np.inf, "left", integer=True))
            folds = whole_folds(contents(data.X, data.Y, data.counts), int(self.cv), data.groups)
            return [test for _, test in folds]
        places = np.cumsum(is_used) - 1
        tests = [np.asarray(test) for _, test in check_cv(self.cv).split(is_used, groups=groups)]
        return [places[test[is_used[test]]] for test in tests]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = False
        tags.input_tags.allow_nan = False
        return tags


def _complete(X: Inputs) -> Inputs:
    """Return new inputs as they are; raise if some are missing, as at training inputs."""
    if is_host(X) and not is_sparse(X) and (values := np.asarray(X)).dtype.kind == "f":
        check_finite(values, "X")
    return X


def _rounds(data: MetricData, last: int) -> list[MetricRound]:
    """Return the rounds up to the last one, from the first, which has no metric."""
    with part(1 / (last + 2)):
        rounds = [data.first_round()]
    for left in range(last, 0, -1):
        with part(1 / (left + 1)):
            rounds.append(data.next_round(rounds[-1]))
    return rounds


def _data(
    first: BaseEstimator,
    kind: str,
    X: Inputs,
    y: Outputs,
    sample_weight: Array | None,
    groups: np.ndarray | None,
) -> tuple[MetricData, np.ndarray]:
    """Return the data of a fitted regressor in the coordinates of its outputs, and which samples it was fitted to."""
    if getattr(X, "ndim", 2) != 2:
        raise IncompatibleError(f"A learned metric needs vectors, of shape (n, d). Got inputs of shape {X.shape}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the regressor itself has warned about the data
        training_set = training_set_of(first.best_estimator_, X, y, sample_weight)
    sample, targets = training_set.sample, training_set.targets
    Y, observed = host(targets.unscaled(targets.rows)).astype(np.float64), None
    if targets.observed is not None:
        observed = host(targets.observed).astype(np.float64)
        is_of_curves = targets.row_scale is not None
        Y = completed_targets(training_set.codec, targets) if is_of_curves else np.where(observed > 0, Y, np.nan)
    used = np.zeros(sample.n_given, dtype=bool)
    used[slice(None) if sample.index is None else sample.index] = True
    settings = {"approximation": first.approximation, "tol": first.tol}
    is_robust = first.model_.duals.outlier_score is not None
    points = host(sample.X).astype(np.float64)
    return MetricData(points, Y, sample.counts, observed, is_robust, kind, settings, sample.kept(groups)), used


def _in_units(data: MetricData, weights: np.ndarray | None) -> np.ndarray:
    """Return the metric of squared distances in the original units of the columns."""
    inverse: np.ndarray = 1 / data.scale
    if weights is not None and weights.ndim == 2:
        return inverse[:, None] * (weights @ weights.T) * inverse
    return inverse**2 if weights is None else (weights * inverse) ** 2
