"""Splits that keep the samples of a group together."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

__all__: list[str] = []


def label_codes(labels: ArrayLike | None, n: int, name: str) -> np.ndarray | None:
    """Return the labels as numbers from 0, in the order in which they appear; ``None`` if no labels are given."""
    if labels is None:
        return None
    values = np.asarray(labels)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one label for each sample. Got {values.shape}.")
    codes: dict[Any, int] = {}
    for place, label in enumerate(values.tolist()):
        if _is_missing(label):
            raise ValueError(f"{name} must have a label for each sample. That of sample {place} is missing.")
        codes.setdefault(label, len(codes))
    if len(codes) < 2:
        raise ValueError(f"{name} must have at least 2 different labels. All samples have the same one.")
    return np.array([codes[label] for label in values.tolist()])


def whole_folds(
    n: int, count: int, codes: np.ndarray | None = None, seed: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return both parts of so many shuffled folds of whole groups; with as many folds as groups, each is one.

    Without labels each sample is a group.
    """
    labels = np.arange(n) if codes is None else np.unique(codes, return_inverse=True)[1]
    groups = np.arange(labels.max() + 1)
    if count < len(groups):
        splits = list(KFold(count, shuffle=True, random_state=seed).split(groups))
    else:
        splits = [(np.delete(groups, k), groups[k : k + 1]) for k in groups]
    return [(rows_with(labels, inside), rows_with(labels, outside)) for inside, outside in splits]


def split_whole(codes: np.ndarray, size: float, random_state: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of two parts, the second with a number or a share of the labels."""
    first, second = train_test_split(np.arange(codes.max() + 1), test_size=size, random_state=random_state)
    return rows_with(codes, first), rows_with(codes, second)


def rows_with(codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the indices of the samples with some labels, in the order of these."""
    place = np.full(codes.max() + 1, -1)
    place[labels] = np.arange(len(labels))
    rows = np.flatnonzero(place[codes] >= 0)
    return np.asarray(rows[np.argsort(place[codes[rows]], kind="stable")])


def groups_argument(estimator: BaseEstimator) -> str | None:
    """Return the argument of ``fit`` that makes the search of an estimator hold out groups, ``None`` if there is none.

    Folds given to a grid search as a number do not take groups.
    """
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = groups_argument(last)
        return None if inner is None else f"{step}__{inner}"
    is_search = isinstance(estimator, GridSearchCV | RandomizedSearchCV)
    takes_groups = not isinstance(estimator.cv, int | None) if is_search else has_fit_parameter(estimator, "groups")
    return "groups" if takes_groups else None


def grouped(estimator: BaseEstimator, codes: np.ndarray | None, index: np.ndarray) -> dict[str, np.ndarray]:
    """Return the labels of the selected samples as arguments of ``fit``, if the estimator takes groups."""
    name = None if codes is None else groups_argument(estimator)
    return {} if codes is None or name is None else {name: codes[index]}


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label
