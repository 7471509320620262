"""Samples that can be judged, which have some output, among others that have none."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Inputs
from fenchel.data.containers import inputs_for
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


def judged(
    residuals: Residuals, model: BaseEstimator, X: Inputs, codes: np.ndarray | None
) -> tuple[Residuals, Inputs, np.ndarray | None]:
    """Return residuals, inputs and labels of the samples with some output."""
    seen = observed(residuals.values)
    if len(seen) == len(residuals.values):
        return residuals, X, codes
    labels = None if codes is None else codes[seen]
    return replace(residuals, values=residuals.values[seen]), inputs_for(model, X, seen, seen), labels


def among(report: Any, places: np.ndarray, n: int) -> Any:
    """Return a report on n samples, of which those at some places are judged; others have no scores."""
    if len(places) == n:
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


def root_mean_squares(residuals: np.ndarray) -> np.ndarray:
    """Return the root mean square of the observed values of each sample, NaN where there are none, (n,)."""
    squares = residuals.reshape(len(residuals), -1) ** 2
    counts = np.sum(~np.isnan(squares), axis=1)
    return np.sqrt(np.nansum(squares, axis=1) / np.where(counts, counts, np.nan))
