"""Errors of predicted curves, and the corresponding scorers for scikit-learn's searches."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fenchel._array import Array, Outputs, host
from fenchel._check import Options, check_parameter
from fenchel.data.functional import Curves, as_curves, brings_points
from fenchel.data.quadrature import trapezoid_weights
from fenchel.metrics.scores import Predictor

__all__ = ["curve_errors", "curve_scorer"]

_AGGREGATES: dict[str, Callable[..., np.ndarray]] = {"mean": np.mean, "median": np.median}


def curve_errors(Y: Outputs, predicted: Outputs, grid: Array | None = None) -> np.ndarray:
    r"""Return the mean squared error of each predicted curve over the observed points of the true curve.

    .. math:: e_i = \frac{C}{\sum_{jc} w_j s_{ijc}} \sum_{jc} w_j \, s_{ijc} \, (y_{ic}(t_j) - \hat y_{ic}(t_j))^2,

    with the weights :math:`w` of the trapezoid rule, :math:`s = 1` where a curve was observed and 0 elsewhere, and C
    channels. For a fully observed curve this is the squared norm of the error divided by the length of the domain;
    channels add up, as in the norm.

    Parameters
    ----------
    Y : array, list of pairs, DataFrame, scikit-fda object or Curves
        True curves, in any form accepted by ``fenchel.datasets.as_curves``; NaN means not observed.
    predicted : array of shape (n, m) or (n, m, c), scikit-fda object or Curves
        Predictions at the points of ``Y``: the grid, or the union of the points if each curve has its own.
    grid : array of shape (m,) or None, default=None
        Points of the curves; ``None`` takes them from ``Y``, or an equispaced grid on [0, 1].

    Returns
    -------
    errors : ndarray of shape (n,)
        One error per curve.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.metrics import curve_errors
    >>> Y = np.array([[0.0, 1.0, 2.0], [0.0, np.nan, 2.0]])
    >>> curve_errors(Y, Y + [1.0, 3.0, 1.0])  # of 1, 9, 1 with weights 1/4, 1/2, 1/4; and of 1, 1
    array([5., 1.])
    """
    curves = as_curves(Y, grid)
    guessed = as_curves(predicted, curves.grid, "predicted")
    if guessed.values.shape != curves.values.shape:
        raise ValueError(
            f"predicted must have the shape of the curves, {tuple(curves.values.shape)}. "
            f"Got {tuple(guessed.values.shape)} instead."
        )
    truth, guess = _values(curves), _values(guessed)
    seen = ~np.isnan(truth)
    absent = int(np.sum(seen & np.isnan(guess)))
    if absent:
        raise ValueError(f"predicted must hold a value wherever a curve was observed. {absent} of them are NaN.")
    weights = trapezoid_weights(curves.grid)[None, :, None] * seen
    squares = np.where(seen, truth - guess, 0.0) ** 2
    return truth.shape[2] * np.sum(weights * squares, axis=(1, 2)) / np.sum(weights, axis=(1, 2))


def _values(curves: Curves) -> np.ndarray:
    """Return the values as float64, (n, m, c) with one channel or more."""
    return host(curves.values).astype(np.float64).reshape(*curves.values.shape[:2], -1)


def curve_scorer(aggregate: str = "mean", grid: Array | None = None) -> "_CurveScorer":
    """Return a scorer of curves for ``GridSearchCV``, ``cross_val_score`` and the like; greater is better.

    Parameters
    ----------
    aggregate : {"mean", "median"}, default="mean"
        How to aggregate the errors of the curves. The median is robust to a minority of outlying curves.
    grid : array of shape (m,) or None, default=None
        Points of the curves; ``None`` takes those of the model, otherwise as in ``curve_errors``.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is minus the mean or the median of ``curve_errors``. The estimator may be any that
        predicts arrays with the shape of ``y``, from this library or another.

    Notes
    -----
    An array with NaN passes unchanged through scikit-learn's splits, and so does a list of pairs: predictions are then
    made at the points of the held-out curves.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from fenchel import FunctionalRegressor
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.metrics import curve_scorer
    >>> data = make_functional(30, 20, random_state=0)
    >>> scores = cross_val_score(FunctionalRegressor(lam=1e-5), data.X, data.Y, scoring=curve_scorer("median"))
    >>> bool(scores.min() > -0.01)
    True
    """
    check_parameter("curve_scorer", "aggregate", aggregate, Options(tuple(_AGGREGATES)))
    return _CurveScorer(aggregate, grid)


@dataclass(frozen=True, eq=False)
class _CurveScorer:
    """A scorer, as an object so that it can be pickled."""

    aggregate: str
    grid: Array | None = None

    def __call__(self, estimator: Predictor, X: object, y: Outputs) -> float:
        if brings_points(y):
            curves = as_curves(y, self.grid, "y")
            predicted = estimator.predict(X, grid=curves.grid)
        else:
            points = getattr(estimator, "grid_", None) if self.grid is None else self.grid
            curves = as_curves(y, points, "y")
            predicted = estimator.predict(X)
        return -float(_AGGREGATES[self.aggregate](curve_errors(curves, predicted)))
