"""Conformal prediction around any regressor."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Outputs
from fenchel._check import Interval, Options, check_parameter
from fenchel.conformal.band import PredictionBand
from fenchel.conformal.samples import (
    IntervalRegressor,
    Regressor,
    Residuals,
    inputs_for,
    length,
    numbers,
    take,
    vectors,
)
from fenchel.conformal.widths import Widths, constant, deviations, local
from fenchel.datasets.functional import Curves, is_fdata, to_fdata
from fenchel.estimators import OperatorKernelRegressor, OperatorKernelRegressorCV

__all__ = ["ConformalRegressor"]

_BLOCK = 2**24  # numbers in the array of all ends of CV+ for one block of inputs


@dataclass(frozen=True, eq=False)
class _Calibration:
    """Scores of the calibration sample, and how they become a quantile."""

    scores: np.ndarray  # (m, q): one column if the band is joint
    labels: np.ndarray  # (m,)
    weights: np.ndarray  # (m,)
    contamination: float

    def quantiles(self, coverage: float, labels: np.ndarray) -> np.ndarray:
        """Return the quantile of each new sample, (n, q); infinity where the group is too small."""
        out = np.full((len(labels), self.scores.shape[1]), np.inf)
        for label in np.unique(labels):
            is_in = self.labels == label
            if is_in.any():
                out[labels == label] = self.quantile(self.scores[is_in], self.weights[is_in], coverage)
        return out

    def quantile(self, scores: np.ndarray, weights: np.ndarray, coverage: float) -> np.ndarray:
        """Return the least score below which the stated share lies, a new sample counting as infinite."""
        order = np.argsort(scores, axis=0)
        ranked = np.concatenate([np.take_along_axis(scores, order, axis=0), np.full((1, scores.shape[1]), np.inf)])
        correct = (1 - self.contamination) * weights.sum()  # the rest of the weight is that of wrong samples
        needed = coverage * (correct + weights.max(initial=1.0))
        place = np.sum(np.cumsum(weights[order], axis=0) < needed * (1 - 1e-12), axis=0)
        return np.take_along_axis(ranked, place[None, :], axis=0)[0]


@dataclass(frozen=True, eq=False)
class _Folds:
    """The models of CV+, and the one of each calibration sample."""

    models: list[Regressor]
    place: np.ndarray
    widths: Widths


class ConformalRegressor(RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Prediction bands with guaranteed coverage, around any regressor.

    The regressor is fitted on one part of the sample. On the other, the calibration part, each output has the score

    .. math:: R_i = \max_t \frac{|y_i(t) - \hat y_i(t)|}{s(x_i, t)},

    and the band is :math:`\hat y(t) \pm q \, s(x, t)` with :math:`q` the :math:`\lceil (m + 1) c \rceil`-th smallest of
    the m scores for a coverage c. It contains a new output *at all points at once* with at least that probability,
    whatever the distribution, if the samples are exchangeable.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Any regressor with ``fit`` and ``predict``: of this library, a pipeline, a grid search. ``None`` is
        ``OperatorKernelRegressorCV()``. One with a ``predict_interval`` of its own (``QuantileFunctionRegressor``) has
        its intervals moved by the same amount at both ends.
    coverage : float, default=0.9
        Probability that the band contains the output.
    method : {"split", "cv+"}, default="split"
        ``"split"``: one fit, with a part of the sample set aside. ``"cv+"``: each sample is calibrated by the fit
        without its fold. It uses the whole sample; its coverage is close to the nominal one, and never below
        ``2 * coverage - 1`` (up to a term of order one over the size of a fold).
    modulation : {"constant", "std", "local"} or regressor, default="std"
        The width :math:`s`: the same everywhere; the deviation of the residuals at each output or point; or that times
        a factor of the input, from a model of the size of the residuals (a regressor is taken as that model).
        Estimated from residuals out of sample on the training part.
    joint : bool, default=True
        Whether a band covers all outputs of a sample at once; ``False`` gives each output an interval of its own.
    contamination : float, default=0.0
        Share of the samples that may be grossly wrong. The largest scores, up to this share, are then taken for those
        of wrong samples, and the band covers *correct* outputs with the stated probability.
    calibration_size : float, default=0.25
        Share of the sample that is set aside for the calibration.
    cv : int, default=5
        Folds of ``"cv+"``, and of the residuals out of sample.
    random_state : int, RandomState or None, default=0
        How the sample is split.

    Attributes
    ----------
    estimator_ : regressor
        The fitted regressor.
    scores_ : ndarray of shape (m,), or (m, q) if not ``joint``
        Scores of the calibration samples.

    References
    ----------
    [Lei2018]_ for the split; [Diquigiovanni2022]_ for curves and their modulation; [Barber2021]_ for CV+ (the band at
    each point contains the set of that paper, so that it is simultaneous too); [Romano2019]_ for quantiles;
    [Vovk2005]_ for groups and [Tibshirani2019]_ for weights.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import ConformalRegressor, OperatorKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (400, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    >>> model = ConformalRegressor(OperatorKernelRegressor(lam=1e-3)).fit(X[:300], y[:300])
    >>> band = model.predict_interval(X[300:])
    >>> bool(0.82 <= band.contains(y[300:]).mean() <= 0.98)
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "coverage": Interval(0, 1),
        "method": Options(("split", "cv+")),
        "joint": Options((True, False)),
        "contamination": Interval(0, 0.5, "left"),
        "calibration_size": Interval(0, 1),
        "cv": Interval(2, math.inf, "left", integer=True),
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        coverage: float = 0.9,
        method: str = "split",
        modulation: str | BaseEstimator = "std",
        joint: bool = True,
        contamination: float = 0.0,
        calibration_size: float = 0.25,
        cv: int = 5,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.method = method
        self.modulation = modulation
        self.joint = joint
        self.contamination = contamination
        self.calibration_size = calibration_size
        self.cv = cv
        self.random_state = random_state

    def fit(
        self, X: object, y: object, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the regressor on one part of the sample, and calibrate it on the other.

        Parameters
        ----------
        X, y
            The sample, as for the regressor.
        groups : array of shape (n,) or None, default=None
            Labels; each group is calibrated on its own, so that the coverage holds in each.
        sample_weight : array of shape (n,) or None, default=None
            Ratio of the density of new inputs to that of the sample, for a shift of the inputs. The regressor does not
            see it.

        Returns
        -------
        self : ConformalRegressor
            The calibrated model.
        """
        self._validate()
        n = length(X)
        if n != length(y):
            raise ValueError(f"X and y must have as many samples. Got {n} and {length(y)}.")
        everyone = np.arange(n)
        if self.method == "cv+":
            return self._fit_folds(X, y, everyone, groups, sample_weight)
        train, rest = train_test_split(everyone, test_size=self.calibration_size, random_state=self.random_state)
        self.estimator_ = self._fitted(X, y, train)
        widths = None
        if self._needs_widths:
            widths = self._widths(self._out_of_sample(X, y, train)[0], inputs_for(self.estimator_, X, train, train))
        calibration = inputs_for(self.estimator_, X, rest, train), take(y, rest)
        return self._calibrated(*calibration, widths, _part(groups, rest), _part(sample_weight, rest))

    def conformalize(
        self, X: object, y: object, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Calibrate a regressor that is fitted already, on samples that it has not seen.

        Parameters
        ----------
        X, y, groups, sample_weight
            The calibration sample, as for ``fit``. Widths other than the constant one are estimated on half of it.

        Returns
        -------
        self : ConformalRegressor
            The calibrated model.
        """
        self._validate()
        if self.method == "cv+":
            raise ValueError("method='cv+' fits the regressor on folds. Use fit, or method='split'.")
        try:
            check_is_fitted(self.estimator)
        except (NotFittedError, TypeError):
            raise NotFittedError(
                f"The 'estimator' parameter of ConformalRegressor must be fitted before conformalize. Got "
                f"{self.estimator!r}. Use fit, which fits it and calibrates."
            ) from None
        self.estimator_, widths, rest = cast(Regressor, self.estimator), None, np.arange(length(X))
        if self._needs_widths:
            part, rest = train_test_split(rest, test_size=0.5, random_state=self.random_state)
            inputs = take(X, part)
            widths = self._widths(Residuals.of(self.estimator_, inputs, take(y, part)), inputs)
        return self._calibrated(take(X, rest), take(y, rest), widths, _part(groups, rest), _part(sample_weight, rest))

    def predict(self, X: object) -> Outputs:
        """Return the predictions of the regressor."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_interval(
        self, X: object, coverage: float | None = None, groups: ArrayLike | None = None
    ) -> PredictionBand:
        """Return bands that contain new outputs with the stated probability.

        Parameters
        ----------
        X : array
            Inputs, as for the regressor.
        coverage : float or None, default=None
            Another coverage than that of the model.
        groups : array of shape (n,) or None, default=None
            Labels of the inputs, for a model that was calibrated by groups.

        Returns
        -------
        band : PredictionBand
            With ``lower``, ``upper``, ``contains(Y)`` and ``plot()``. Ends are infinite where the calibration sample
            is too small for the coverage.
        """
        check_is_fitted(self)
        coverage = self.coverage if coverage is None else coverage
        check_parameter("ConformalRegressor.predict_interval", "coverage", coverage, self._limits["coverage"])
        labels = _labels(groups, length(X), self._is_grouped)
        grid: np.ndarray | None = getattr(self.estimator_, "grid_", None)
        template = self.estimator_.predict(X)
        ends = self._ends(X, numbers(template), grid, coverage, labels)
        if grid is not None and is_fdata(template):
            ends = [to_fdata(Curves(grid, end)) for end in ends]
        return PredictionBand(ends[0], ends[1], coverage, grid, self.joint)

    def _validate(self) -> None:
        for name, limit in self._limits.items():
            check_parameter("ConformalRegressor", name, getattr(self, name), limit)
        if isinstance(self.modulation, str):
            check_parameter("ConformalRegressor", "modulation", self.modulation, Options(("constant", "std", "local")))

    @property
    def _has_intervals(self) -> bool:
        return hasattr(self.estimator_, "predict_interval")

    @property
    def _needs_widths(self) -> bool:
        is_constant = isinstance(self.modulation, str) and self.modulation == "constant"
        return not is_constant and not self._has_intervals

    def _fitted(self, X: object, y: object, index: np.ndarray) -> Regressor:
        model = clone(OperatorKernelRegressorCV() if self.estimator is None else self.estimator)
        return model.fit(inputs_for(model, X, index, index), take(y, index))

    def _out_of_sample(self, X: object, y: object, train: np.ndarray) -> tuple[Residuals, list[Regressor], np.ndarray]:
        """Return residuals out of sample of the training part, the models of the folds, and each sample's fold."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        folds = KFold(min(self.cv, len(train)), shuffle=True, random_state=seed)
        models, place, parts = [], np.zeros(len(train), dtype=int), []
        for k, (inside, outside) in enumerate(folds.split(train)):
            models.append(self._fitted(X, y, train[inside]))
            inputs = inputs_for(models[-1], X, train[outside], train[inside])
            parts.append((outside, Residuals.of(models[-1], inputs, take(y, train[outside]))))
            place[outside] = k
        first = parts[0][1]
        values = np.empty((len(train), first.values.shape[1]))
        for outside, residuals in parts:
            values[outside] = residuals.values
        return Residuals(values, first.grid, first.shape), models, place

    def _widths(self, residuals: Residuals, X: object) -> Widths:
        """Return the widths that ``modulation`` names."""
        widths = deviations(residuals, self.contamination)
        if isinstance(self.modulation, str) and self.modulation == "std":
            return widths
        model = self._size_model() if isinstance(self.modulation, str) else self.modulation
        return local(widths, residuals, model, X, self.contamination)

    def _size_model(self) -> Regressor:
        """Return the model of the size of residuals: a kernel machine on the inputs as vectors."""
        if get_tags(self.estimator_).input_tags.pairwise:
            return OperatorKernelRegressorCV("precomputed")
        return make_pipeline(FunctionTransformer(vectors), OperatorKernelRegressorCV())

    def _scores(self, model: Regressor, X: object, y: object, widths: Widths | None) -> np.ndarray:
        """Return the score of each sample, (m, 1) for a joint band and else (m, q)."""
        if self._has_intervals:
            lower, upper = self._own_ends(model, X, self.coverage)
            truth = numbers(y)
            excess = np.maximum(lower - truth, truth - upper).reshape(len(truth), -1)
        else:
            residuals = Residuals.of(model, X, y)
            chosen = constant(residuals) if widths is None else widths
            excess = np.abs(residuals.values) / chosen.at(X, residuals.grid)
        return np.nanmax(excess, axis=1, keepdims=True) if self.joint else excess

    def _calibrated(
        self, X: object, y: object, widths: Widths | None, groups: ArrayLike | None, weights: ArrayLike | None
    ) -> Self:
        self._folds: _Folds | None = None
        return self._keep(self._scores(self.estimator_, X, y, widths), widths, groups, weights)

    def _keep(
        self, scores: np.ndarray, widths: Widths | None, groups: ArrayLike | None, weights: ArrayLike | None
    ) -> Self:
        n = len(scores)
        self._is_grouped, self._calibration_widths = groups is not None, widths
        counts = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
        if counts.shape != (n,) or not np.all((counts >= 0) & np.isfinite(counts)):
            raise ValueError(f"sample_weight must be {n} non-negative finite numbers. Got {weights!r}.")
        labels = _labels(groups, n, self._is_grouped)
        self._calibration = _Calibration(scores, labels, counts, self.contamination)
        self.scores_ = scores[:, 0] if self.joint else scores
        return self

    def _ends(
        self, X: object, center: np.ndarray, grid: np.ndarray | None, coverage: float, labels: np.ndarray
    ) -> list[np.ndarray]:
        """Return the lower and the upper ends, of the shape of the predictions."""
        if self._folds is not None:
            return self._fold_ends(self._folds, X, center.shape, grid, coverage, labels)
        quantiles = self._calibration.quantiles(coverage, labels)
        if self._has_intervals:
            lower, upper = self._own_ends(self.estimator_, X, self.coverage)
            moves = np.broadcast_to(quantiles, lower.reshape(len(lower), -1).shape).reshape(lower.shape)
            middle = (lower + upper) / 2  # ends that would cross meet there
            return [np.minimum(lower - moves, middle), np.maximum(upper + moves, middle)]
        flat = center.reshape(len(center), -1)
        widths = np.ones_like(flat) if self._calibration_widths is None else self._calibration_widths.at(X, grid)
        return [(flat + sign * quantiles * widths).reshape(center.shape) for sign in (-1, 1)]

    def _own_ends(self, model: Regressor, X: object, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        ends = numbers(cast(IntervalRegressor, model).predict_interval(X, coverage))
        return ends[:, 0], ends[:, 1]

    def _fit_folds(
        self, X: object, y: object, everyone: np.ndarray, groups: ArrayLike | None, weights: ArrayLike | None
    ) -> Self:
        """Calibrate each sample by the model without its fold."""
        self.estimator_ = self._fitted(X, y, everyone)
        if self._has_intervals:
            raise ValueError("method='cv+' is for predictions, not for intervals. Use method='split'.")
        if get_tags(self.estimator_).input_tags.pairwise:
            raise ValueError("method='cv+' needs inputs, not their Gram matrix. Use method='split'.")
        residuals, models, place = self._out_of_sample(X, y, everyone)
        widths = self._widths(residuals, X) if self._needs_widths else constant(residuals)
        self._folds = _Folds(models, place, widths)
        excess = np.abs(residuals.values) / widths.at(X, residuals.grid)
        return self._keep(np.nanmax(excess, axis=1, keepdims=True) if self.joint else excess, widths, groups, weights)

    def _fold_ends(
        self,
        folds: _Folds,
        X: object,
        shape: tuple[int, ...],
        grid: np.ndarray | None,
        coverage: float,
        labels: np.ndarray,
    ) -> list[np.ndarray]:
        """Return the quantiles of the ends that the models of all folds give, as CV+ does."""
        predictions = np.stack([numbers(model.predict(X)).reshape(shape[0], -1) for model in folds.models])
        widths, calibration = folds.widths.at(X, grid), self._calibration
        ends = [np.empty_like(widths), np.empty_like(widths)]
        rows = max(1, _BLOCK // (len(folds.place) * widths.shape[1]))
        for label in np.unique(labels):
            members, where = np.flatnonzero(labels == label), calibration.labels == label
            scores, weights = calibration.scores[where], calibration.weights[where]
            for first in range(0, len(members), rows):
                part = members[first : first + rows]
                centers = predictions[:, part][folds.place[where]]  # (m, rows, q)
                moves = scores[:, None, :] * widths[part][None]
                for end, sign in zip(ends, (-1.0, 1.0), strict=True):
                    reached = (sign * centers + moves).reshape(len(scores), -1)
                    ranked = calibration.quantile(reached, weights, coverage)
                    end[part] = sign * ranked.reshape(len(part), -1)
        return [end.reshape(shape) for end in ends]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(OperatorKernelRegressor() if self.estimator is None else self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _part(given: ArrayLike | None, index: np.ndarray) -> np.ndarray | None:
    return None if given is None else np.asarray(given)[index]


def _labels(groups: ArrayLike | None, n: int, is_grouped: bool) -> np.ndarray:
    """Return the label of each sample; one for all where there are no groups."""
    if (groups is not None) != is_grouped:
        raise ValueError(f"groups must be {'given, as in fit' if is_grouped else 'None, as in fit'}. Got {groups!r}.")
    labels = np.zeros(n, dtype=int) if groups is None else np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups must be {n} labels, one for each sample. Got shape {labels.shape}.")
    return labels
