"""Splits that keep the samples of a group together, and depend on what samples contain, not on their order."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import has_fit_parameter

from fenchel._array import Inputs, Outputs
from fenchel.data.containers import length
from fenchel.data.content import contents, ranks_of_groups

__all__: list[str] = []

_BLOCK = 20  # samples of a block of time, of which the two at its ends have neighbours in others
_FEWEST_BLOCKS = 10  # two for each of the folds of a search by default
_MOST_BLOCKS = 100  # each group is left out once when kernels are compared


def label_codes(labels: ArrayLike | None, n: int, name: str) -> np.ndarray | None:
    """Return the labels as numbers from 0, in the order of their ``repr``; ``None`` if no labels are given."""
    if labels is None:
        return None
    values = np.asarray(labels)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one label for each sample. Got {values.shape}.")
    for place, label in enumerate(values.tolist()):
        if _is_missing(label):
            raise ValueError(f"{name} must have a label for each sample. That of sample {place} is missing.")
    codes = {label: code for code, label in enumerate(sorted(set(values.tolist()), key=repr))}
    if len(codes) < 2:
        raise ValueError(f"{name} must have at least 2 different labels. All samples have the same one.")
    return np.array([codes[label] for label in values.tolist()])


def times_of(order: ArrayLike, n: int) -> np.ndarray:
    """Return the times of n samples as an array that can be sorted; raise if one is missing, infinite or text."""
    times, wanted = np.asarray(order), "order must have one time or number for each sample."
    if times.shape != (n,):
        raise ValueError(f"{wanted} Its shape must be ({n},). Got {times.shape}.")
    entries = list(times)
    if len(missing := [place for place, time in enumerate(entries) if _is_missing(time)]):
        raise ValueError(f"{wanted} {len(missing)} of {n} are missing, the first at index {missing[0]}.")
    if len(text := [time for time in entries if isinstance(time, str | bytes)]):
        raise ValueError(
            f"{wanted} Got text, such as {str(text[0])!r}, which does not sort by time. Convert dates by "
            "pandas.to_datetime, and others to numbers."
        )
    infinite = [place for place, time in enumerate(entries) if isinstance(time, Real) and abs(time) == np.inf]
    if infinite:
        raise ValueError(f"{wanted} {len(infinite)} of {n} are infinite, the first at index {infinite[0]}.")
    try:
        np.sort(times)
    except TypeError as error:
        raise ValueError(f"{wanted} These cannot be compared: {error}.") from error
    return times


def blocks_of(order: ArrayLike | None, groups: ArrayLike | None, X: Inputs, cv: object = None) -> ArrayLike | None:
    """Return the groups that are held out together: as given, or blocks of samples that follow one another.

    Samples next to each other in time are alike: were one held out alone, its neighbours would give it away. Samples of
    one time are in one block. A number ``cv`` of folds needs as many blocks.
    """
    if order is None:
        return groups
    if groups is not None:
        raise ValueError("Pass either groups or order, not both: blocks of time are the groups.")
    times = times_of(order, length(X))
    ordered = np.sort(times)
    places = np.searchsorted(ordered, times)
    blocks = places * min(max(_FEWEST_BLOCKS, len(times) // _BLOCK), _MOST_BLOCKS) // len(times)
    if isinstance(cv, Integral) and (count := len(np.unique(blocks))) < int(cv):
        different = 1 + int(np.sum(ordered[1:] != ordered[:-1]))
        raise ValueError(
            f"order has {different} different time{'s' * (different > 1)}, and {count} block{'s' * (count > 1)} of "
            f"samples that follow one another; {cv} folds need at least {cv}."
        )
    return np.asarray(blocks)


def ranks_of(estimator: BaseEstimator, X: Inputs, y: Outputs) -> np.ndarray:
    """Return the ranks of the samples of an estimator by what they contain."""
    return contents(y, grams=[X]) if get_tags(estimator).input_tags.pairwise else contents(y, X)


def seeded(random_state: Any, estimator: BaseEstimator, X: Inputs, y: Outputs) -> np.random.RandomState:
    """Return the random state for draws from a sample; a seed gives different ones for different samples.

    With ranks drawn from a seed alone, all samples of one size would set aside the same order statistics, such as the
    smallest input, and the guarantees of calibration are for samples set aside at random.
    """
    if not isinstance(random_state, Integral):
        return check_random_state(random_state)
    inputs = contents(grams=[X]) if get_tags(estimator).input_tags.pairwise else contents(X)
    return np.random.RandomState([int(inputs @ contents(y)) % 2**32, int(random_state)])


def whole_folds(
    ranks: np.ndarray, count: int, codes: np.ndarray | None = None, seed: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return both parts of so many shuffled folds of whole groups; with as many folds as groups, each is one.

    ``ranks`` are those of the samples by what they contain. Without labels each sample is a group.
    """
    order, labels = _ordered(ranks, codes)
    groups = np.arange(labels.max() + 1)
    if count < len(groups):
        splits = list(KFold(count, shuffle=True, random_state=seed).split(groups))
    else:
        splits = [(np.delete(groups, k), groups[k : k + 1]) for k in groups]
    return [(order[rows_with(labels, inside)], order[rows_with(labels, outside)]) for inside, outside in splits]


def split_whole(
    ranks: np.ndarray, codes: np.ndarray | None, size: float, random_state: object
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of two parts, the second with a number or a share of the groups; arguments as above."""
    order, labels = _ordered(ranks, codes)
    first, second = train_test_split(np.arange(labels.max() + 1), test_size=size, random_state=random_state)
    return order[rows_with(labels, first)], order[rows_with(labels, second)]


def whole_part(ranks: np.ndarray, most: int, groups: np.ndarray | None = None, least: int = 2) -> np.ndarray:
    """Return the places of at most so many samples, drawn as whole groups, of which there are at least ``least``."""
    order, labels = _ordered(ranks, groups)
    drawn = np.random.default_rng(0).permutation(labels.max() + 1)
    count = int(np.searchsorted(np.cumsum(np.bincount(labels)[drawn]), most, side="right"))
    return np.sort(order[rows_with(labels, drawn[: max(count, least)])])


def _ordered(ranks: np.ndarray, codes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples in the order of their ranks, and the rank of the group of each of these."""
    order = np.argsort(ranks, kind="stable")
    return order, np.arange(len(order)) if codes is None else ranks_of_groups(ranks, codes)[order]


def rows_with(codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the indices of the samples with some labels, in the order of these."""
    place = np.full(codes.max() + 1, -1)
    place[labels] = np.arange(len(labels))
    rows = np.flatnonzero(place[codes] >= 0)
    return np.asarray(rows[np.argsort(place[codes[rows]], kind="stable")])


def weights_argument(estimator: BaseEstimator) -> str | None:
    """Return the argument of ``fit`` that weights the samples of an estimator, ``None`` if there is none."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = weights_argument(last)
        return None if inner is None else f"{step}__{inner}"
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return weights_argument(estimator.estimator)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def weighted(estimator: BaseEstimator, weights: np.ndarray | None, index: np.ndarray) -> dict[str, np.ndarray]:
    """Return the weights of the selected samples as arguments of ``fit``, if the estimator takes weights."""
    name = None if weights is None else weights_argument(estimator)
    return {} if weights is None or name is None else {name: weights[index]}


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
