"""Metrics for predicted quantiles and intervals, and the corresponding scorers for scikit-learn's searches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, Outputs, host
from fenchel._check import unmasked
from fenchel.metrics.scores import Predictor

__all__ = ["coverage", "crossing_rate", "crps", "crps_scorer", "pinball_loss", "pinball_scorer"]

_LEVELS = tuple(k / 20 for k in range(1, 20))  # probabilities, equally spaced: the mean loss is about half the CRPS


def pinball_loss(y: Array, predicted: Array, levels: float | Array) -> float:
    r"""Return the mean pinball loss of predicted quantiles over samples and levels.

    .. math:: \rho_\theta(r) = \max(\theta r, (\theta - 1) r), \qquad r = y - \hat q(\theta).

    Parameters
    ----------
    y : array of shape (n,) or (n, d)
        Outputs.
    predicted : array of shape (n, q) or (n, q, d)
        Predicted quantiles.
    levels : array of shape (q,)
        Levels of the quantiles, in (0, 1).

    Returns
    -------
    loss : float
        The mean loss.

    Examples
    --------
    >>> from fenchel.metrics import pinball_loss
    >>> pinball_loss([1.0, 0.0], [[0.0, 2.0], [0.0, 2.0]], [0.25, 0.75])  # of 0.25, 0.25 and 0, 0.5
    0.25
    """
    return float(np.mean(_losses(y, predicted, levels)))


def crps(y: Array, predicted: Array, levels: float | Array, weights: ArrayLike | None = None) -> np.ndarray:
    r"""Return the continuous ranked probability score of each sample, computed from its quantiles.

    .. math:: \mathrm{CRPS}(F, y) = \int (F(t) - \mathbb 1_{t \ge y})^2 \, dt
        = 2 \int_0^1 \rho_\theta(y - F^{-1}(\theta)) \, d\theta .

    Parameters
    ----------
    y, predicted, levels
        As for ``pinball_loss``.
    weights : array of shape (q,) or None, default=None
        Weights of the levels in the integral, such as ``level_weights_`` of a model; ``None`` means equal weights.

    Returns
    -------
    scores : ndarray of shape (n,) or (n, d)
        One score per output; lower is better.

    References
    ----------
    T. Gneiting and A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 2007.

    Examples
    --------
    >>> from fenchel.metrics import crps
    >>> crps([1.0], [[0.0, 2.0]], [0.25, 0.75])  # twice the mean of 0.25 and 0.25
    array([0.5])
    """
    losses = _losses(y, predicted, levels)
    shares = np.ones(losses.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (losses.shape[1],):
        raise ValueError(f"weights must have shape ({losses.shape[1]},). Got {shares.shape} instead.")
    return np.asarray(2 * np.average(losses, axis=1, weights=shares))


def crossing_rate(predicted: Array) -> float:
    """Return the share of neighbouring quantiles that cross.

    Parameters
    ----------
    predicted : array of shape (n, q) or (n, q, d)
        Quantiles at increasing levels.

    Returns
    -------
    rate : float
        Between 0 and 1; decreases below the round-off of the dtype do not count.

    Examples
    --------
    >>> from fenchel.metrics import crossing_rate
    >>> crossing_rate([[0.0, 1.0, 0.5], [0.0, 1.0, 2.0]])
    0.25
    """
    values = _values(predicted, "predicted")
    falls = np.diff(values, axis=1)
    round_off = 64 * np.finfo(values.dtype).eps * np.max(np.abs(values), initial=0.0)
    return float(np.mean(falls < -round_off)) if falls.size else 0.0


def coverage(y: Array, low: Array, high: Array) -> float:
    """Return the share of outputs inside their intervals, ends included.

    Parameters
    ----------
    y, low, high : array of the same shape
        Outputs, and the ends of their intervals.

    Returns
    -------
    share : float
        Between 0 and 1.

    Examples
    --------
    >>> from fenchel.metrics import coverage
    >>> coverage([1.0, 2.0], [0.0, 0.0], [1.0, 1.0])
    0.5
    """
    y, low, high = (_values(part, name) for part, name in ((y, "y"), (low, "low"), (high, "high")))
    if not y.shape == low.shape == high.shape:
        raise ValueError(f"y, low and high must have the same shape. Got {y.shape}, {low.shape} and {high.shape}.")
    return float(np.mean((low <= y) & (y <= high)))


def pinball_scorer(levels: float | Array = _LEVELS) -> "_Scorer":
    """Return a scorer of quantiles for ``GridSearchCV``, ``cross_val_score`` and the like; greater is better.

    Parameters
    ----------
    levels : array of shape (q,), default=(0.05, 0.1, ..., 0.95)
        Levels at which to evaluate the model.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is minus the mean pinball loss.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import QuantileFunctionRegressor
    >>> from fenchel.metrics import pinball_scorer
    >>> X, rng = np.linspace(0, 3, 40)[:, None], np.random.default_rng(0)
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(40)
    >>> model = QuantileFunctionRegressor(lam=1e-2).fit(X, y)
    >>> bool(pinball_scorer([0.1, 0.5, 0.9])(model, X, y) > -0.3)
    True
    """
    return _Scorer(tuple(np.atleast_1d(np.asarray(levels, dtype=float)).tolist()), 1.0)


def crps_scorer(n_levels: int = 50) -> "_Scorer":
    """Return a scorer of predicted distributions; greater is better.

    Parameters
    ----------
    n_levels : int, default=50
        Number of equal intervals at whose midpoints the model is evaluated.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is minus the mean continuous ranked probability score.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import QuantileFunctionRegressor
    >>> from fenchel.metrics import crps_scorer
    >>> X, rng = np.linspace(0, 3, 40)[:, None], np.random.default_rng(0)
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(40)
    >>> model = QuantileFunctionRegressor(lam=1e-2).fit(X, y)
    >>> bool(crps_scorer()(model, X, y) > -0.3)
    True
    """
    return _Scorer(tuple(((np.arange(n_levels) + 0.5) / n_levels).tolist()), 2.0)


@dataclass(frozen=True)
class _Scorer:
    """A scorer, as an object so that it can be pickled."""

    levels: tuple[float, ...]
    factor: float

    def __call__(self, estimator: Predictor, X: object, y: Outputs) -> float:
        return -self.factor * pinball_loss(y, estimator.predict(X, quantiles=list(self.levels)), self.levels)


def _losses(y: Outputs, predicted: Outputs, levels: float | Array) -> np.ndarray:
    """Return the pinball losses, (n, q) or (n, q, d)."""
    truth, guess = _values(y, "y"), _values(predicted, "predicted")
    at = np.asarray(levels, dtype=np.float64)
    if at.ndim != 1 or not np.all((at > 0) & (at < 1)):
        raise ValueError(f"levels must be a vector of numbers in (0, 1). Got {levels!r} instead.")
    shape = (truth.shape[0], len(at), *truth.shape[1:])
    if guess.shape != shape:
        raise ValueError(f"predicted must have shape {shape}. Got {guess.shape} instead.")
    residuals = truth[:, None, ...] - guess
    at = at.reshape(-1, *(1,) * (truth.ndim - 1))
    return np.asarray(np.maximum(at * residuals, (at - 1) * residuals))


def _values(array: Outputs, name: str) -> np.ndarray:
    values = host(unmasked(array, name))
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite. It contains NaN or infinity.")
    return values
