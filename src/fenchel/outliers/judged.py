"""Samples that can be judged, which have some output, among others that have none."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Inputs
from fenchel.data.containers import inputs_for
from fenchel.outliers.tails import conformal_p_values
from fenchel.resample.residuals import Residuals

__all__: list[str] = []


def check_observed(residuals: np.ndarray) -> None:
    """Raise if a sample has no output."""
    empty = np.delete(np.arange(len(residuals)), observed(residuals))
    if len(empty):
        raise ValueError(
            f"Samples without outputs cannot be ranked. y is NaN in {len(empty)} of {len(residuals)}, the first "
            f"at index {empty[0]}. Drop them."
        )


def observed(residuals: np.ndarray) -> np.ndarray:
    """Return the places of the samples with some output."""
    return np.flatnonzero(~np.isnan(residuals.reshape(len(residuals), -1)).all(axis=1))


def compared(residuals: Residuals, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the samples with some output that are compared, and of those whose weight is zero."""
    seen = observed(residuals.values)
    return (seen, seen[:0]) if weights is None else (seen[weights[seen] > 0], seen[weights[seen] == 0])


def judged(
    residuals: Residuals, model: BaseEstimator, X: Inputs, places: np.ndarray, columns: np.ndarray
) -> tuple[Residuals, Inputs]:
    """Return the residuals and the inputs of samples at some places; ``columns`` are those of a Gram matrix."""
    if len(places) == len(columns) == len(residuals.values):
        return residuals, X
    return replace(residuals, values=residuals.values[places]), inputs_for(model, X, places, columns)


def among(report: Any, places: np.ndarray, n: int) -> Any:
    """Return a report on n samples, of which those at some places are judged; others have no scores."""
    if len(places) == n and np.array_equal(places, np.arange(n)):
        return report

    def spread(values: np.ndarray, rest: float = np.nan) -> np.ndarray:
        out = np.full((n, *values.shape[1:]), rest)
        out[places] = values
        return out

    return replace(
        report,
        outlyingness=replace(report.outlyingness, deviates=spread(report.outlyingness.deviates)),
        conformal_p_values=spread(report.conformal_p_values, 1.0),
        residuals=spread(report.residuals),
        expected_sizes=spread(report.expected_sizes),
    )


def on_new(report: Any, residuals: Residuals, X: Inputs) -> Any:
    """Return the report on residuals of new samples."""
    sizes, known = report.sizes, report.outlyingness
    expected = np.ones(len(residuals.values)) if sizes is None else sizes.at(X)
    outlyingness = known.of_new(residuals.filled() / expected[:, None])
    return replace(
        report,
        outlyingness=outlyingness,
        conformal_p_values=conformal_p_values(outlyingness.scores, known.own_scores),
        residuals=residuals.values.reshape(len(expected), *residuals.shape),
        expected_sizes=expected,
    )


def followed_by(report: Any, other: Any) -> Any:
    """Return a report on the samples of two reports, the second on new samples of the first."""
    names = "conformal_p_values", "residuals", "expected_sizes"
    both = {name: np.concatenate([getattr(one, name) for one in (report, other)]) for name in names}
    deviates = np.concatenate([one.outlyingness.deviates for one in (report, other)])
    return replace(report, outlyingness=replace(report.outlyingness, deviates=deviates), **both)


def root_mean_squares(residuals: np.ndarray) -> np.ndarray:
    """Return the root mean square of the observed values of each sample, NaN where there are none, (n,)."""
    squares = residuals.reshape(len(residuals), -1) ** 2
    counts = np.sum(~np.isnan(squares), axis=1)
    return np.sqrt(np.nansum(squares, axis=1) / np.where(counts, counts, np.nan))
