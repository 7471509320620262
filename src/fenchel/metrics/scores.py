"""Goodness of fit: the coefficient of determination, and errors compared with those of the mean."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fenchel._array import Outputs
from fenchel.data.quadrature import trapezoid_weights

__all__ = ["Scores"]


class Predictor(Protocol):
    """Interface of a fitted estimator for scorers; ``options`` are passed to ``predict``."""

    def predict(self, X: object, **options: object) -> Outputs:
        """Return the predictions."""


@dataclass(frozen=True)
class Scores:
    """Scores of predictions on some rows.

    Attributes
    ----------
    n_rows : int
        Number of scored rows.
    r2 : float
        Coefficient of determination: the mean over the outputs, or for curves the share of the integrated variance. NaN
        for a single row.
    rmse : float
        Root mean squared error over all observed values.
    rmse_of_mean : float
        Root mean squared error of predicting the mean of the training targets for every row.
    rmse_of_linear : float or None
        Root mean squared error of a linear model fitted to the training rows, if there is one.
    output_r2, output_rmse, output_median : tuple of float or None
        R2, root mean squared error and median absolute error of each output, in its own units; wrong values hardly move
        the last. ``None`` for curves.
    median : float or None
        Median absolute error of one output, or of all points of curves; ``None`` for several outputs, which may have
        different units.
    """

    n_rows: int
    r2: float
    rmse: float
    rmse_of_mean: float
    rmse_of_linear: float | None = None
    output_r2: tuple[float, ...] | None = None
    output_rmse: tuple[float, ...] | None = None
    output_median: tuple[float, ...] | None = None
    median: float | None = None

    @classmethod
    def of(
        cls,
        observed: np.ndarray,
        predicted: np.ndarray,
        mean: np.ndarray,
        grid: np.ndarray | None = None,
        linear: np.ndarray | None = None,
    ) -> "Scores":
        """Return the scores of predictions, (n, p); NaN means not observed.

        Parameters
        ----------
        observed, predicted : array of shape (n, p)
            Outputs.
        mean : array of shape (p,)
            Mean of the training targets.
        grid : array of shape (p,) or None, default=None
            Points of the curves, if the rows are curves.
        linear : array of shape (n, p) or None, default=None
            Predictions of a linear model.

        Returns
        -------
        scores : Scores
            Numbers in float64.
        """
        observed = np.asarray(observed, dtype=np.float64)
        errors = _sums_of_squares(observed - predicted)
        spread = _sums_of_squares(observed - mean_of_columns(observed))
        seen = np.maximum(np.sum(~np.isnan(observed), axis=0), 1)
        output_rmse = None if grid is not None else tuple(np.sqrt(errors / seen).tolist())
        medians = [_median(column) for column in (observed - predicted).T]
        if grid is not None:  # a single functional output: integrate over the points
            weights = trapezoid_weights(grid)
            errors, spread = np.atleast_1d(weights @ errors), np.atleast_1d(weights @ spread)
        r2 = _determination(errors, spread) if len(observed) > 1 else np.full(len(errors), np.nan)
        return cls(
            len(observed),
            float(np.mean(r2)),
            _root_mean_square(observed - predicted),
            _root_mean_square(observed - mean),
            None if linear is None else _root_mean_square(observed - linear),
            None if grid is not None else tuple(r2.tolist()),
            output_rmse,
            None if grid is not None else tuple(medians),
            medians[0] if len(medians) == 1 else None if grid is None else _median(observed - predicted),
        )


def _sums_of_squares(residuals: np.ndarray) -> np.ndarray:
    return np.asarray(np.nansum(residuals**2, axis=0))


def _median(residuals: np.ndarray) -> float:
    """Return the median absolute residual, 0 if there are none."""
    seen = np.abs(residuals[~np.isnan(residuals)])
    return float(np.median(seen)) if len(seen) else 0.0


def mean_of_columns(values: np.ndarray) -> np.ndarray:
    """Return the mean of the observed values of each column, or 0 if there are none."""
    seen = ~np.isnan(values)
    return np.asarray(np.where(seen, values, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1))


def _determination(errors: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return 1 - errors / spread; a constant output scores 1 if it is predicted exactly, else 0."""
    varies = spread > 0
    return np.where(varies, 1 - errors / np.where(varies, spread, 1.0), np.where(errors > 0, 0.0, 1.0))


def _root_mean_square(residuals: np.ndarray) -> float:
    return float(np.sqrt(np.nanmean(residuals**2)))
