"""Errors of a model of a table beside those of the mean and of a linear model, for each target."""

import math

import numpy as np

from fenchel.app.cli.terminal import echo
from fenchel.app.tables import TableRegressor
from fenchel.data.frames import with_arrays
from fenchel.datasets.tables import Table
from fenchel.metrics import Scores

__all__ = ["scores_by_target", "scores_of", "show_targets"]

_MOST_TARGETS = 20  # whose errors are printed
_NAMES = ("r2", "rmse", "rmse_of_mean", "rmse_of_linear")
_MEDIANS = ("median_error", "median_error_of_mean", "median_error_of_linear")


def scores_of(part: str, model: TableRegressor, table: Table | None) -> dict[str, float | None]:
    """Return the scores over all targets by name, None where there is no such part of the rows.

    The median of the absolute errors of several targets would mix their units; it is None.
    """
    if table is None:
        return {f"{part}_{name}": None for name in (*_NAMES, *_MEDIANS)}
    scores = model.evaluate(table)
    medians: list[float | None] = [None, None, None]
    if model.curves or len(model.target_names_) == 1:
        observed, predictions = _predictions(model, table)
        medians = [float(np.nanmedian(np.abs(observed - predicted))) for predicted in predictions.values()]
    squares = (scores.r2, scores.rmse, scores.rmse_of_mean, scores.rmse_of_linear)
    found = dict(zip(_NAMES + _MEDIANS, (*squares, *medians), strict=True))
    return {f"{part}_{name}": value for name, value in found.items()}


def scores_by_target(
    model: TableRegressor, parts: dict[str, Table | None]
) -> dict[str, dict[str, float | None]] | None:
    """Return the scores of each of several targets, in its own units; None for one target and for curves."""
    if model.curves or len(model.target_names_) < 2:
        return None
    found: dict[str, dict[str, float | None]] = {name: {} for name in model.target_names_}
    for part, table in parts.items():
        if table is None:
            continue
        observed, predictions = _predictions(model, table)
        for suffix, predicted in predictions.items():
            scores = Scores.of(observed, predicted, model.target_mean_)
            rows = zip(found, scores.output_rmse or (), scores.output_r2 or (), scores.output_median or (), strict=True)
            for name, rmse, r2, median in rows:
                found[name] |= {
                    f"{part}_rmse{suffix}": rmse,
                    f"{part}_r2{suffix}": r2 if math.isfinite(r2) else None,
                    f"{part}_median_error{suffix}": median,
                }
    return found


def show_targets(by_target: dict[str, dict[str, float | None]], part: str) -> None:
    """Print the scores of each target on a part of the rows."""
    echo(f"{part + ' scores':<12} of each target in its own units, next to those of the mean and of a linear model")
    for name, scores in list(by_target.items())[:_MOST_TARGETS]:
        told = ", ".join(_told(scores, f"{part}_{score}", score) for score in ("rmse", "r2", "median_error"))
        echo(f"  {name:<10} {told}")
    if len(by_target) > _MOST_TARGETS:
        echo(f"  ...        {len(by_target) - _MOST_TARGETS} more targets, all with --json")


def _told(scores: dict[str, float | None], key: str, score: str) -> str:
    """Return a score with those of the mean and of the linear model; R² of the mean is 0 by definition."""
    others = {} if score == "r2" else {"mean": scores[f"{key}_of_mean"]}
    others["linear"] = scores[f"{key}_of_linear"]
    beside = ", ".join(f"{name} {_digits(value)}" for name, value in others.items())
    return f"{score.replace('_', ' ')} {_digits(scores[key])} ({beside})"


def _digits(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


def _predictions(model: TableRegressor, table: Table) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the targets of the rows that can be compared, and the predictions of the model and of simple ones."""
    X, observed, numbers = model.sample(table)
    rows = table.take(np.flatnonzero(np.isin(table.numbers, numbers)))
    mean = np.broadcast_to(model.target_mean_, observed.shape)
    return observed, {"": with_arrays(model).predict(rows), "_of_mean": mean, "_of_linear": model.predict_linear(X)}
