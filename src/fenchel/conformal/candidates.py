"""Conformal prediction sets of structured outputs or classes."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Inputs, Outputs, has_shape, host
from fenchel._check import Interval, Options, check_parameter, check_parameters
from fenchel._component import all_or_nothing
from fenchel._progress import tracked
from fenchel.conformal.calibration import Calibration, Given, labels_of
from fenchel.conformal.labels import Labels, strata_of_new
from fenchel.conformal.order import exchangeability_p_value, warn_of_drift
from fenchel.data.containers import indexable, inputs_for, length, numbers, take
from fenchel.data.fdata import classes_of
from fenchel.estimators.around import AroundMixin
from fenchel.estimators.structured import StructuredPredictor
from fenchel.exceptions import DataWarning, IncompatibleError, warn_user
from fenchel.model.machine import best_of
from fenchel.resample.folds import grouped

__all__ = ["ConformalPredictor", "PredictionSet"]


@dataclass(frozen=True, eq=False)
class PredictionSet:
    """Prediction sets of candidates, one per sample.

    Attributes
    ----------
    outputs : list of arrays
        The candidates in each set, best first.
    places : list of arrays of int
        Their indices among the candidates of the sample.
    coverage : float
        Nominal coverage.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import PredictionSet
    >>> found = PredictionSet([np.array(["a", "b"]), np.array(["c"])], [np.array([0, 1]), np.array([2])], 0.9)
    >>> found.contains(["b", "b"]), found.size
    (array([ True, False]), array([2, 1]))
    """

    outputs: list[Any]
    places: list[np.ndarray]
    coverage: float

    @property
    def size(self) -> np.ndarray:
        """Number of candidates in each set, (n,)."""
        return np.array([len(places) for places in self.places])

    def contains(self, Y: Outputs) -> np.ndarray:
        """Whether each output is in its set, (n,)."""
        if length(Y) != len(self.outputs):
            raise ValueError(f"Y must have one output for each of the {len(self.outputs)} sets. Got {length(Y)}.")
        return np.array([any(np.array_equal(c, y) for c in inside) for inside, y in zip(self.outputs, Y, strict=True)])


class ConformalPredictor(AroundMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Conformal prediction sets of structured outputs or classes, with the coverage of exchangeable samples.

    Each candidate c has a score :math:`S(x, c)`: its squared distance to the prediction in the output space, by default
    minus the distance of the nearest candidate. With q the :math:`\lceil (m + 1) \gamma \rceil`-th smallest score of
    the m true outputs of a calibration sample, the set :math:`\{c : S(x, c) \le q\}` contains the true output of a new
    sample with a probability of at least :math:`\gamma`, if it is among the candidates.

    Parameters
    ----------
    estimator : StructuredPredictor, StructuredPredictorCV, classifier or None, default=None
        A predictor with ``decision_scores``, or a classifier with ``predict_proba`` or ``decision_function``. ``None``
        means ``StructuredPredictor()``.
    coverage : float, default=0.9
        Probability that the set contains the output.
    measure : {"margin", "distance"}, default="margin"
        ``"margin"``: how much farther a candidate is than the nearest one, so that no set is empty. ``"distance"``: the
        distance itself; an empty set means that no candidate is near.
    contamination, calibration_size, random_state
        As for ``ConformalRegressor``.
    cv : list of splits or None, default=None
        The first split sets the training and the calibration part instead of ``calibration_size``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted predictor.
    scores_ : ndarray of shape (m,)
        Scores of the calibration samples.
    exchangeability_p_value_ : float
        With ``order``: p-value that the scores do not change with time.

    References
    ----------
    [Vovk2005]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import ConformalPredictor, StructuredPredictor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> Y = (X + 0.3 * rng.standard_normal(X.shape) > 0).astype(int)  # four label sets
    >>> model = ConformalPredictor(StructuredPredictor(lam=1e-2)).fit(X[:200], Y[:200])
    >>> inside = model.predict_set(X[200:])
    >>> bool(inside.contains(Y[200:]).mean() > 0.8), bool(inside.size.max() <= 4)
    (True, True)
    """

    default = StructuredPredictor
    _calibration: Calibration
    _limits: ClassVar[dict[str, Interval | Options]] = {
        "coverage": Interval(0, 1),
        "measure": Options(("margin", "distance")),
        "contamination": Interval(0, 0.5, "left"),
        "calibration_size": Interval(0, 1),
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        coverage: float = 0.9,
        measure: str = "margin",
        contamination: float = 0.0,
        calibration_size: float = 0.25,
        random_state: object = 0,
        cv: object = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.measure = measure
        self.contamination = contamination
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.cv = cv

    @tracked
    @all_or_nothing
    def fit(
        self,
        X: Inputs,
        y: Outputs,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        candidates: Outputs = None,
        replicates: ArrayLike | None = None,
        order: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> Self:
        """Fit the predictor on one part of the sample, and calibrate it on the other.

        Parameters
        ----------
        X, y
            The sample, as for the predictor.
        groups, sample_weight : array of shape (n,) or None, default=None
            As for ``ConformalRegressor.fit``; the weights are not passed to the predictor.
        candidates : array, list of arrays or None, default=None
            Candidates for every sample, or a list with a set for each sample; then ``predict_set`` needs such a list
            too. ``None`` means those of the decoder, by default the training outputs, or the classes.
        replicates, order, strata : array of shape (n,) or None, default=None
            As for ``ConformalRegressor.fit``.

        Returns
        -------
        self : ConformalPredictor
            The calibrated model.
        """
        check_parameters(self, self._limits)
        given = Given.of(type(self).__name__, X, _objects(y), Labels(groups, strata, replicates), sample_weight, order)
        model, n = clone(self._inner), length(given.X)
        train, rest = given.split(model, self.calibration_size, self.coverage, self.random_state, self.cv)
        own = grouped(model, given.held_together, train)
        self.estimator_ = model.fit(inputs_for(model, given.X, train, train), take(given.y, train), **own)
        self._calibrate(given.part(rest, model, train), _sets_of(candidates, rest, n, model))
        return self._with_columns(train, n)

    @all_or_nothing
    def conformalize(
        self,
        X: Inputs,
        y: Outputs,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        candidates: Outputs = None,
        replicates: ArrayLike | None = None,
        order: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> Self:
        """Calibrate a predictor that is already fitted, on samples that it has not seen; arguments as for ``fit``."""
        check_parameters(self, self._limits)
        check_is_fitted(self.estimator)
        given = Given.of(type(self).__name__, X, _objects(y), Labels(groups, strata, replicates), sample_weight, order)
        self.estimator_, everyone = self.estimator, np.arange(length(given.X))
        self._calibrate(given, _sets_of(candidates, everyone, len(everyone), self.estimator_))
        return self._with_columns()

    def update(
        self,
        X: Inputs,
        y: Outputs,
        strata: ArrayLike | None = None,
        candidates: Outputs = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn from the outputs of a block of new samples, as ``ConformalRegressor.update`` does.

        Parameters
        ----------
        X, y, strata, candidates
            The block, in the order of time, as for ``fit`` and ``predict_set``.
        groups : array of shape (n,) or None, default=None
            The former name of ``strata``.

        Returns
        -------
        self : ConformalPredictor
            The updated model.
        """
        strata = strata_of_new(strata, groups, self._calibration.has_strata)
        missed = 1 - float(np.mean(self.predict_set(X, strata=strata, candidates=candidates).contains(y)))
        chosen = self._candidates if candidates is None else candidates
        scores = self._scores(self._read(indexable(X)), _objects(y), chosen)
        labels = labels_of(strata, len(scores), self._calibration.has_strata)
        self._calibration = self._calibration.followed_by(scores[:, None], labels, missed, self.coverage)
        self.scores_ = self._calibration.scores[:, 0]
        return self

    def predict(self, X: Inputs) -> Outputs:
        """Return the predictions of the predictor."""
        X = self._read(X)
        return self.estimator_.predict(X)

    def predict_set(
        self,
        X: Inputs,
        coverage: float | None = None,
        strata: ArrayLike | None = None,
        candidates: Outputs = None,
        groups: ArrayLike | None = None,
    ) -> PredictionSet:
        """Return sets of candidates that contain new outputs with the required probability.

        Parameters
        ----------
        X : array
            Inputs, as for the predictor.
        coverage : float or None, default=None
            Coverage to use instead of that of the model.
        strata : array of shape (n,) or None, default=None
            Labels of the inputs, for a model calibrated by strata.
        candidates : array, list of arrays or None, default=None
            Candidates to use instead of those passed to ``fit``: for every sample, or a list with a set for each.
        groups : array of shape (n,) or None, default=None
            The former name of ``strata``.

        Returns
        -------
        sets : PredictionSet
            With ``outputs``, ``size`` and ``contains(Y)``. If the calibration sample is too small for the coverage, the
            sets contain all candidates.
        """
        X, coverage = self._read(indexable(X)), self.coverage if coverage is None else coverage
        check_parameter("ConformalPredictor.predict_set", "coverage", coverage, self._limits["coverage"])
        n, candidates = length(X), self._candidates if candidates is None else candidates
        if candidates is self._candidates and _is_list_of_sets(candidates, self.estimator_):
            raise ValueError("The samples of fit had their own candidates. Pass a list with a set for each new sample.")
        candidates = _sets_of(candidates, np.arange(n), n, self.estimator_)
        labels = labels_of(strata_of_new(strata, groups, self._calibration.has_strata), n, self._calibration.has_strata)
        adapted = self._calibration.adapted(coverage)
        thresholds = self._calibration.quantiles(adapted, labels)
        if (shortage := self._calibration.shortage(adapted, labels)) is not None:
            shortage = shortage.replace("Bands are infinite", "Sets hold all candidates")
            warn_user(shortage, DataWarning, "few-calibration-samples")
        scores = _candidate_scores(self.estimator_, X, candidates)
        places = []
        for row, threshold in zip(scores, thresholds[:, 0], strict=True):
            values = row - row.min() if self.measure == "margin" else row
            order = np.argsort(values, kind="stable")
            places.append(order[values[order] <= threshold])
        known = _known_candidates(self.estimator_, candidates)
        sets = known if _is_list_of_sets(candidates, self.estimator_) else [known] * n
        outputs = [_chosen(candidate_set, place) for candidate_set, place in zip(sets, places, strict=True)]
        return PredictionSet(outputs, places, coverage)

    def _calibrate(self, part: Given, candidates: Outputs) -> None:
        self._candidates = candidates
        self.scores_ = self._scores(part.X, part.y, candidates)
        self._calibration = Calibration.of(self.scores_[:, None], part, self.contamination)
        if part.places is not None:
            self.exchangeability_p_value_ = exchangeability_p_value(self.scores_[np.argsort(part.places), None])
            warn_of_drift(self.exchangeability_p_value_)

    def _scores(self, X: Inputs, y: Outputs, candidates: Outputs) -> np.ndarray:
        scores = _own_scores(self.estimator_, X, y)
        if self.measure == "distance":
            return scores
        nearest = np.array([row.min() for row in _candidate_scores(self.estimator_, X, candidates)])
        return np.asarray(scores - np.minimum(scores, nearest))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = None
        return tags


def _objects(y: Outputs) -> Any:
    """Return outputs that can be indexed one by one, with tables as arrays."""
    return np.asarray(y) if classes_of(y, "pandas") else indexable(y)


def _has_scores(model: BaseEstimator) -> bool:
    """Whether a model scores any candidates, not only the classes that it knows."""
    return hasattr(model, "decision_scores")


def _is_list_of_sets(candidates: Outputs, model: BaseEstimator) -> bool:
    """Whether candidates are a list with a set for each sample: arrays, lists or, for a precomputed kernel, pairs."""
    if not isinstance(candidates, list) or not candidates or not _has_scores(model):
        return False
    first = candidates[0]
    is_pair = isinstance(first, tuple) and len(first) == 2 and has_shape(first[0])
    return is_pair or isinstance(first, list) or has_shape(first)


def _sets_of(candidates: Outputs, index: np.ndarray, n: int, model: BaseEstimator) -> Any:
    """Return the candidates of the selected samples; one set for all is returned unchanged."""
    if not _is_list_of_sets(candidates, model):
        return candidates
    if len(candidates) != n:
        raise ValueError(
            f"candidates must be one set, or a list of {n} sets, one for each sample. Got {len(candidates)}."
        )
    return take(candidates, index)


def _chosen(candidate_set: Outputs, place: np.ndarray) -> Any:
    """Return the chosen candidates; those of a precomputed kernel, given as a pair, have no form but their place."""
    return place if isinstance(candidate_set, tuple) else take(candidate_set, place)


def _candidate_scores(model: BaseEstimator, X: Inputs, candidates: Outputs) -> Any:
    """Return the score of each candidate for each sample, (n, C) or a list of n arrays; lower is better."""
    if _has_scores(model):
        scores = model.decision_scores(X, candidates)
        return [numbers(host(row)) for row in scores] if isinstance(scores, list) else numbers(host(scores))
    if not is_classifier(model):
        raise IncompatibleError(
            f"ConformalPredictor needs a predictor with decision_scores, or a classifier. Got {type(model).__name__}. "
            "For numbers and curves use ConformalRegressor."
        )
    values = numbers(model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X))
    return -np.stack([-values, values], axis=1) if values.ndim == 1 else -values


def _own_scores(model: BaseEstimator, X: Inputs, y: Outputs) -> np.ndarray:
    """Return the score of the true output of each sample, (n,)."""
    if _has_scores(model):
        sets = [take(y, np.array([i])) for i in range(length(y))]
        return np.array([float(host(row)[0]) for row in model.decision_scores(X, sets)])
    scores, y = _candidate_scores(model, X, None), np.asarray(y)
    place = np.searchsorted(model.classes_, y)
    known = model.classes_[np.minimum(place, len(model.classes_) - 1)] == y  # an unseen class is never in a set
    return np.where(known, scores[np.arange(len(y)), np.where(known, place, 0)], np.inf)


def _known_candidates(model: BaseEstimator, given: Any) -> Any:
    """Return the candidates as objects."""
    if given is not None:
        return given
    if not _has_scores(model):
        return model.classes_
    decoder = best_of(model).decoder_
    return getattr(decoder, "inner_", decoder).candidates
