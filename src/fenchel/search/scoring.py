"""Held-out errors from a scikit-learn scorer, or from a function of outputs and predictions."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer

from fenchel._array import Array, Inputs, Outputs, as_like, host
from fenchel.model.training_set import TrainingSet

__all__ = ["Measure", "Scoring", "scored"]

ErrorsOf = Callable[[Outputs, Outputs], np.ndarray]  # from outputs and predictions to the error of each sample
Measure = Callable[[np.ndarray], np.ndarray]  # from held-out predictions (n, p) to the error of each sample (n,)


class _Known(RegressorMixin, BaseEstimator):
    """Stand-in for an estimator in a scorer: returns the held-out predictions."""

    def __init__(self, predictions: Any = None, grid: np.ndarray | None = None) -> None:
        self.predictions = predictions
        self.grid = grid

    @property
    def grid_(self) -> np.ndarray | None:
        """Points of predicted curves."""
        return self.grid

    def predict(self, X: Inputs) -> Outputs:
        """Return the predictions."""
        return self.predictions


@dataclass(frozen=True)
class Scoring:
    """The ``scoring`` parameter of a search.

    A name of ``sklearn.metrics.get_scorer_names()`` or a scorer ``scorer(estimator, X, y)`` gives one number for each
    fold, and larger is better; the estimator it receives has only ``predict``. A function ``scoring(y, predicted)``
    returns the error of each sample.
    """

    owner: str  # the estimator, for messages
    given: Any
    scorer: Callable[..., float] | None  # None for a function of outputs and predictions
    function: ErrorsOf | None = None

    @classmethod
    def of(cls, estimator: BaseEstimator, named: Mapping[str, ErrorsOf] | None = None) -> "Scoring | None":
        """Return the scoring from the parameter of an estimator; ``None`` if it is ``None``.

        ``named`` holds functions of outputs and predictions that come before the names of scikit-learn.
        """
        given, owner = estimator.get_params(deep=False).get("scoring"), type(estimator).__name__
        if given is None:
            return None
        if isinstance(given, str):
            function = None if named is None else named.get(given)
            return cls(owner, given, get_scorer(given) if function is None else None, function)
        if not callable(given):
            raise TypeError(
                f"The 'scoring' parameter of {owner} must be a name such as 'r2', a scorer(estimator, X, y), a "
                f"function (y, predicted) that returns the error of each sample, or None. Got {given!r} instead."
            )
        is_scorer = _n_arguments(given) == 3
        return cls(owner, given, given if is_scorer else None, None if is_scorer else given)

    def __str__(self) -> str:
        return self.given if isinstance(self.given, str) else getattr(self.given, "__qualname__", repr(self.given))

    def errors(
        self, truth: Outputs, predicted: Outputs, weights: np.ndarray | None = None, grid: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the error of each sample, or for each sample the negative score of all of them."""
        if self.scorer is None:
            return np.asarray(cast(ErrorsOf, self.function)(truth, predicted), dtype=np.float64)
        if isinstance(self.given, str):
            truth, predicted = self._rows(truth), self._rows(predicted)
        is_weighted = weights is not None and bool(np.any(weights != 1))
        options = {"sample_weight": weights} if is_weighted else {}
        try:
            score = float(self.scorer(_Known(predicted, grid), None, truth, **options))
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"scoring={self} does not accept the predictions of {self.owner}: {error}") from error
        if not np.isfinite(score):
            raise ValueError(f"scoring={self} is {score} for a fold of {len(truth)} samples. Use fewer folds.")
        return np.full(len(truth), -score)

    def measure(
        self,
        truth: Outputs,
        decode: Callable[[np.ndarray], Any],
        folds: list[np.ndarray],
        weights: np.ndarray | None = None,
        grid: np.ndarray | None = None,
    ) -> Measure:
        """Return the measure of a search; ``decode`` turns predictions in coordinates into outputs.

        A function of outputs sees the whole sample. A scorer sees one fold at a time, or all held-out samples if each
        fold is a single sample.
        """
        parts = folds
        if self.scorer is None:
            parts = [np.arange(len(truth))]
        elif all(len(fold) == 1 for fold in folds):
            parts = [np.concatenate(folds)]

        def errors(predictions: np.ndarray) -> np.ndarray:
            decoded, found = decode(predictions), np.full(len(truth), np.nan)
            for part in parts:
                rows = slice(None) if self.scorer is None else part
                found[part] = self.errors(truth[rows], decoded[rows], None if weights is None else weights[rows], grid)
            return found

        return errors

    def _rows(self, outputs: Outputs) -> np.ndarray:
        """Return outputs in the format of scikit-learn's scores: one row or one number for each sample."""
        values = outputs if isinstance(outputs, np.ndarray) else host(outputs)
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise ValueError(
                f"scoring={self} does not support missing values, and the outputs have some. Use scoring=None, or "
                "fenchel.metrics.curve_scorer()."
            )
        return values.reshape(len(values)) if values.size == len(values) else values.reshape(len(values), -1)


def _n_arguments(function: Callable[..., Any]) -> int:
    """Return the number of required positional arguments of a function; 2 if unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in by_place and one.default is one.empty for one in parameters)


def scored(training_set: TrainingSet, scoring: Scoring, folds: list[np.ndarray]) -> Measure:
    """Return ``scoring`` as a measure of outputs and decoded predictions, NaN where nothing was observed."""
    codec, targets, sample = training_set.codec, training_set.targets, training_set.sample

    def decode(rows: Array) -> Array:
        return host(codec.decode(targets.unscaled(as_like(rows, targets.rows))))

    weights = None if sample.weights is None else sample.counts
    return scoring.measure(host(codec.truth(sample.y)), decode, folds, weights, codec.grid)
