"""Scores of regressors whose weights may have any unit, and of regressors of curves."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score

from fenchel._array import Array, Inputs, Outputs, host, is_host
from fenchel.data.frames import with_arrays
from fenchel.data.functional import as_curves, brings_points
from fenchel.data.quadrature import trapezoid_weights
from fenchel.model.curve_center import CurveCenter
from fenchel.model.forms import plain
from fenchel.model.sample import sample_counts

__all__ = ["R2ScoreMixin", "curve_score"]


class R2ScoreMixin(RegressorMixin):
    """Regressor whose score takes weights of any unit."""

    def score(self, X: Inputs, y: Outputs, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination R² of the predictions.

        Parameters
        ----------
        X, y, sample_weight : array
            A sample, as for ``fit``; outputs that are NaN do not count.

        Returns
        -------
        score : float
            One minus the ratio of squared errors to squared distances from the means, averaged over the outputs.
        """
        weights = None if sample_weight is None else sample_counts(sample_weight, np.empty((len(y), 1)))
        given = plain(y, "y")
        values = np.asarray(given) if is_host(given) else host(given)
        values = values.astype(np.float64) if values.dtype.kind == "O" else values
        if not np.isnan(values).any():
            return float(super().score(X, y, weights))
        return _score_of_observed(values, host(with_arrays(self).predict(X)), weights)


def _score_of_observed(values: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the mean over the outputs of R² on the samples that have this output, if at least two do."""
    pairs = zip(values.reshape(len(values), -1).T, predicted.reshape(len(values), -1).T, strict=True)
    scores = []
    for column, other in pairs:
        seen = ~np.isnan(column)
        if np.sum(seen) > 1:
            scores.append(r2_score(column[seen], other[seen], sample_weight=None if weights is None else weights[seen]))
    if not scores:
        raise ValueError("y must have at least two values of an output. Score on more samples.")
    return float(np.mean(scores))


def curve_score(model: BaseEstimator, X: Array, y: Outputs, sample_weight: Array | None, grid: Array | None) -> float:
    """Return the coefficient of determination: one minus the ratio of integrated squared errors to the total.

    The total is the integrated squared distance from the mean curve. Missing values are ignored.
    """
    points = model.grid_ if grid is None and not brings_points(y) else grid
    curves = as_curves(y, points, "y")
    values = host(curves.values).astype(np.float64).reshape(len(curves), len(curves.grid), -1)
    predicted = as_curves(with_arrays(model).predict(X, curves.grid)).values
    if predicted.shape != curves.values.shape:
        what = "samples" if len(predicted) != len(curves) else "channels"
        raise ValueError(f"X and y must have the same number of {what}. Got {predicted.shape[0]} and {len(curves)} "
                         f"samples, shapes {tuple(predicted.shape)} and {tuple(curves.values.shape)}.")  # fmt: skip
    predictions = host(predicted).reshape(values.shape)
    counts = sample_counts(sample_weight, curves.values)
    seen = ~np.isnan(values)
    weights = trapezoid_weights(curves.grid)[None, :, None] * counts[:, None, None] * seen
    center = CurveCenter.of(curves, values[counts > 0], counts[counts > 0], "mean").values
    known = np.where(seen, values, 0.0)
    total = float(np.sum(weights * (known - center) ** 2))
    error = float(np.sum(weights * (known - predictions) ** 2))
    round_off = 64 * np.finfo(np.float64).eps ** 2 * float(np.sum(weights * known**2))
    if total <= round_off:
        return 1.0 if error <= round_off else 0.0
    return 1 - error / total
