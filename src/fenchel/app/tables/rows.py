"""Rows of a table: those left out of a fit, fits to groups of rows, and the points of curves that are rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GroupKFold, PredefinedSplit
from sklearn.utils.validation import has_fit_parameter

from fenchel.app.tables.cells import is_missing
from fenchel.app.tables.columns import numbers_of
from fenchel.conformal import ConformalRegressor
from fenchel.datasets.tables import Table, as_table
from fenchel.estimators import OperatorKernelRegressorCV
from fenchel.model.machine import best_of, sees_outputs

__all__ = ["LeftOut", "check_folds", "fitted", "grid_of", "labels_of", "logarithm_notes", "weights_of"]

_FOLDS = 5  # of groups, for intervals; as many as ConformalRegressor has by default
_POINT = re.compile(r"(.*[_=]|[^\d.+-]*)([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")  # name of a column, with a point


@dataclass(frozen=True)
class LeftOut:
    """Rows that are neither fitted nor scored, by reason."""

    masks: dict[str, np.ndarray]

    @classmethod
    def of(cls, Y: np.ndarray, curves: bool, is_lacking: np.ndarray | None) -> "LeftOut":
        """Return the rows without any target, and those that lack an input unless such rows are kept."""
        without = np.isnan(Y).all(axis=1)
        lacking = np.zeros_like(without) if is_lacking is None else is_lacking & ~without
        what = "no point of the curve" if curves else "a missing target" if Y.shape[1] == 1 else "no target"
        return cls({what: without, "a missing input": lacking})

    @property
    def kept(self) -> np.ndarray:
        """Mask of the other rows."""
        return np.asarray(~np.any(list(self.masks.values()), axis=0))

    def notes(self) -> list[str]:
        """Return how many rows are left out, and why."""
        counts = {what: (rows.sum(), len(rows)) for what, rows in self.masks.items() if rows.any()}
        return [f"{count} of {total} rows have {what} and are left out" for what, (count, total) in counts.items()]


def labels_of(table: Table, groups: ArrayLike, targets: Sequence[str]) -> np.ndarray:
    """Return the group of each row as an integer; the groups are labels, or the column that holds them."""
    is_column = np.ndim(groups) == 0
    if is_column and table.known(str(groups), "groups") in targets:
        raise ValueError(f"The column {groups!r} is a target and cannot hold the groups.")
    given = as_table({"groups": table.columns[str(groups)] if is_column else groups}).columns["groups"]
    if len(given) != len(table):
        raise ValueError(f"groups must have one label for each of the {len(table)} rows. Got {len(given)}.")
    missing = np.flatnonzero(is_missing(given))
    if len(missing):
        raise ValueError(f"Each row needs a group. That of row {table.numbers[missing[0]]} is missing.")
    labels: np.ndarray = np.unique(given, return_inverse=True)[1]
    if labels.max() == 0:
        raise ValueError(f"All rows of {table.name} are in one group; at least 2 groups are needed.")
    return labels


def weights_of(table: Table, sample_weight: ArrayLike, targets: Sequence[str]) -> np.ndarray:
    """Return the weight of each row; the weights are numbers, or the column that holds them."""
    if isinstance(sample_weight, str):
        if table.known(sample_weight, "sample_weight") in targets:
            raise ValueError(f"The column {sample_weight!r} is a target and cannot hold the weights.")
        sample_weight = numbers_of(table, sample_weight)
    weights = np.asarray(sample_weight, dtype=float)
    if weights.shape != (len(table),):
        raise ValueError(f"sample_weight must have one number for each of the {len(table)} rows. Got {weights.shape}.")
    for place in np.flatnonzero(~(weights >= 0))[:1]:
        raise ValueError(
            f"Each row needs a weight that is not negative. That of row {table.numbers[place]} is {weights[place]}."
        )
    return weights


def check_folds(estimator: BaseEstimator, table: str, rows: np.ndarray, labels: np.ndarray | None) -> None:
    """Raise if a search has more folds than there are rows, or groups, to hold out."""
    search = estimator.get_params(deep=False).get("estimator", estimator) or estimator
    n_folds = search.get_params(deep=False).get("cv")
    count, what = (len(rows), "usable rows") if labels is None else (len(np.unique(labels)), "groups")
    if isinstance(n_folds, int | np.integer) and n_folds > count:
        raise ValueError(
            f"cv={n_folds} needs at least {n_folds} {what}. {table} has {count}. Use a smaller cv (--cv on the command "
            "line)."
        )


def _group_folds(labels: np.ndarray) -> PredefinedSplit:
    """Return shuffled folds of whole groups: five, or each group if there are fewer."""
    n_folds = min(_FOLDS, len(np.unique(labels)))
    places = np.empty(len(labels), dtype=int)
    splitter = GroupKFold(n_folds, shuffle=True, random_state=0)
    for fold, (_, outside) in enumerate(splitter.split(labels, groups=labels)):
        places[outside] = fold
    return PredefinedSplit(places)


def grid_of(table: Table, names: Sequence[str]) -> tuple[np.ndarray | None, list[str]]:
    """Return the points of the curves in these columns, ``None`` for equal steps, and where they come from."""
    if table.grid is not None and len(table.grid) == len(names):
        return table.grid, []
    found = [match for match in map(_POINT.fullmatch, names) if match is not None]
    if len(found) == len(names) > 1 and len({match[1] for match in found}) == 1:
        points = np.array([float(match[2]) for match in found])
        if np.all(np.diff(points) > 0):
            return points, [f"the points of the curves are those in the names, {points[0]:g} to {points[-1]:g}"]
    return None, ["the points of the curves are taken to be equally spaced in [0, 1]"]


def logarithm_notes(estimator: BaseEstimator, names: Sequence[str]) -> list[str]:
    """Return in one line the targets whose logarithms an estimator has learned; nothing if there are none."""
    logarithms = getattr(estimator, "logarithms_", None)
    if logarithms is None:
        return []
    which = ", ".join(name for name, is_used in zip(names, logarithms.is_used, strict=True) if is_used)
    return [f"loss and gap are those of logarithms, predictions means in the units of the table: {which}"]


def fitted(
    given: BaseEstimator, X: np.ndarray, y: np.ndarray, labels: np.ndarray | None, arguments: dict[str, Any]
) -> tuple[BaseEstimator, ConformalRegressor | None]:
    """Return an estimator fitted to rows with labels and, if there is one, the fitted model of the intervals."""
    is_conformal = isinstance(given, ConformalRegressor)
    if labels is None:
        model = clone(given).fit(X, y, **arguments)
        return (model.estimator_, model) if is_conformal else (model, None)
    inner = given.estimator if is_conformal else given
    estimator = OperatorKernelRegressorCV() if inner is None else clone(inner)
    by_group = {"groups": labels} if has_fit_parameter(estimator, "groups") else {}
    estimator.fit(X, y, **arguments, **by_group)
    if not is_conformal:
        return estimator, None
    best = estimator if sees_outputs(estimator) else best_of(estimator)
    conformal = clone(given).set_params(estimator=best, method="cv+", cv=_group_folds(labels))
    return estimator, conformal.fit(X, y, **arguments)
