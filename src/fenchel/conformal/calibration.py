"""Calibration scores and their quantiles."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from fenchel._array import Inputs, Outputs
from fenchel._check import shown
from fenchel._statistics import weight_unit
from fenchel.conformal.labels import Labels
from fenchel.conformal.order import kept, places_in_time, recency, stepped
from fenchel.data.containers import checked_length, indexable, inputs_for, length, numbers, take
from fenchel.resample.folds import blocks_of, label_codes, ranks_of, seeded, split_whole

__all__: list[str] = []

_ROUND_OFF = 1e-12  # of a sum of weights
_CENTRAL = np.array([0.5, 0.8])  # shares of the scores from which their tail is extrapolated
_BEYOND = 0.01  # share of correct scores beyond the cut, at most: .032 of Cauchy's law, 3e-4 of the normal law
_POWER = np.log((1 - _CENTRAL[1]) / _BEYOND) / np.log((1 - _CENTRAL[0]) / (1 - _CENTRAL[1]))


def are_splits(cv: object) -> TypeGuard[Iterable[tuple[ArrayLike, ArrayLike]]]:
    """Whether splits are given one by one, not as a number or a splitter."""
    return isinstance(cv, Iterable) and not hasattr(cv, "split")


@dataclass(frozen=True, eq=False)
class Given:
    """A sample as it was given to ``fit`` or ``conformalize``, with the labels and the weights of its rows."""

    X: Inputs
    y: Outputs
    strata: np.ndarray | None
    weights: np.ndarray | None
    groups: np.ndarray | None  # labels as numbers from 0
    places: np.ndarray | None = None  # in the order of time, from 0

    @classmethod
    def of(
        cls,
        owner: str,
        X: Inputs,
        y: Outputs,
        labels: Labels,
        weights: ArrayLike | None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Return a sample that can be split."""
        X, y = indexable(X), indexable(y)
        n, labels = checked_length(X, y, owner), labels.renamed()
        codes = label_codes(labels.groups, n, "groups")
        rows = checked(labels.strata, n, "strata"), checked(weights, n, "sample_weight"), codes
        return cls(X, y, *rows, places_in_time(order, n))

    @property
    def codes(self) -> np.ndarray:
        """Labels of the samples that are never separated, (n,)."""
        return np.arange(length(self.X)) if self.groups is None else self.groups

    @property
    def held_together(self) -> np.ndarray | None:
        """Labels of the samples that are held out together: groups, or blocks of time."""
        labels = blocks_of(self.places, None, self.X) if self.groups is None else self.groups
        return None if labels is None else np.asarray(labels)

    def split(
        self, model: BaseEstimator, share: float, coverage: float, random_state: object, cv: object = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the samples to fit and to calibrate on: the first of given splits, or drawn."""
        codes = self.codes
        if not are_splits(cv):
            return self.parted(model, calibration_number(int(codes.max()) + 1, share, coverage), random_state)
        train, rest = (np.asarray(part) for part in next(iter(cv)))
        if not len(rest) or np.isin(codes[train], codes[rest]).any():
            raise ValueError(
                "The first split in cv must have a calibration part, which shares no sample and no group "
                "with the training part."
            )
        return train, rest

    def parted(self, model: BaseEstimator, size: float, random_state: object) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of two parts, the second with a number or a share of the samples or groups.

        The second part is drawn at random, or it is the later one.
        """
        if self.places is not None:
            firsts = np.full(self.codes.max() + 1, len(self.places))
            np.minimum.at(firsts, self.codes, self.places)
            count = size if size >= 1 else math.ceil(size * len(firsts))
            by_time, is_late = np.argsort(self.places), firsts >= np.sort(firsts)[-int(count)]
            return by_time[~is_late[self.codes[by_time]]], by_time[is_late[self.codes[by_time]]]
        ranks, state = ranks_of(model, self.X, self.y), seeded(random_state, model, self.X, self.y)
        return split_whole(ranks, self.groups, size, state)

    def part(self, index: np.ndarray, model: BaseEstimator, train: np.ndarray | None = None) -> Self:
        """Return some samples, with the columns of a Gram matrix that belong to a model of others."""
        known = self.strata, self.weights, self.groups, self.places
        rows = (None if one is None else one[index] for one in known)
        return type(self)(inputs_for(model, self.X, index, train), take(self.y, index), *rows)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of the calibration sample, and their quantiles."""

    scores: np.ndarray  # (m, q): one column if the band is joint; NaN where nothing was observed
    labels: np.ndarray  # (m,)
    weights: np.ndarray  # (m,), in units of ``unit``
    contamination: float
    has_strata: bool
    new_weight: float | None = None  # of a new sample; None: the largest of the weights that count
    unit: float = 1.0  # of the weights
    half_life: float | None = None  # of the weights of samples in the order of time, in samples
    level: float = 1.0  # share of outputs to miss, relative to the nominal one; follows the coverage of new blocks

    @classmethod
    def of(cls, scores: np.ndarray, given: Given, contamination: float) -> "Calibration":
        """Return the calibration from the scores of samples.

        A group shares the weight of one sample: a new sample is exchangeable with the groups.
        """
        n, has_strata, new_weight = len(scores), given.strata is not None, None
        weights = np.ones(n) if given.weights is None else checked_weights(given.weights)
        unit = 1.0 if given.weights is None else weight_unit(weights)
        counts, labels = weights / unit, labels_of(given.strata, n, has_strata)
        if given.groups is not None:
            new_weight = float(counts.max())
            counts = counts / _sizes_of_groups(given.groups, labels)
        half_life = None if given.places is None else n / 2
        if given.places is not None and half_life is not None:
            new_weight = float(counts.max()) if new_weight is None else new_weight
            counts = counts * recency(np.argsort(np.argsort(given.places)), half_life)
        return cls(scores, labels, counts, contamination, has_strata, new_weight, unit, half_life)

    def followed_by(self, scores: np.ndarray, labels: np.ndarray, missed: float, coverage: float) -> "Calibration":
        """Return the calibration after a block of new samples, in the order of time, of which a share was missed."""
        if self.half_life is None:
            raise ValueError("update is for samples in the order of time. Pass order= to fit or conformalize.")
        n = len(scores)
        newest = (self.new_weight or 1.0) * recency(np.arange(n), self.half_life)
        weights = np.concatenate([self.weights * 0.5 ** (n / self.half_life), newest])
        rows, is_kept = np.concatenate([self.scores, scores]), kept(weights)
        names, level = np.concatenate([self.labels, labels]), stepped(self.level, missed, 1 - coverage, n)
        return replace(self, scores=rows[is_kept], labels=names[is_kept], weights=weights[is_kept], level=level)

    def adapted(self, coverage: float) -> float:
        """Return the coverage at which to take quantiles, at most that of the largest score."""
        if self.half_life is None:
            return coverage
        total = self.weights.sum() / (self.new_weight or 1.0)
        return min(1 - (1 - coverage) * self.level, max(coverage, (1 - _ROUND_OFF) * total / (total + 1)))

    def relative(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Return weights of new samples in units of this sample; one that outweighs it all may be infinite."""
        with np.errstate(over="ignore"):
            return None if weights is None else checked_weights(weights) / self.unit

    def quantiles(self, coverage: float, labels: np.ndarray, new: np.ndarray | None = None) -> np.ndarray:
        """Return the quantile of each new sample, (n, q); infinity if its stratum is too small.

        ``new`` are the ``relative`` weights of the new samples, (n,); ``None`` means the largest weight of this sample.
        """
        out = np.full((len(labels), self.scores.shape[1]), np.inf)
        for label in np.unique(labels):
            is_in, rows = self.labels == label, np.flatnonzero(labels == label)
            scores, weights = self.scores[is_in], self.weights[is_in]
            share = wrong_share(scores, weights, self.contamination)
            if new is None:
                out[rows] = self.quantile(scores, weights, coverage, share=share)
                continue
            for weight in np.unique(new[rows]):
                out[rows[new[rows] == weight]] = self.quantile(scores, weights, coverage, weight, share)
        return out

    def quantile(
        self,
        scores: np.ndarray,
        weights: np.ndarray,
        coverage: float,
        new: np.ndarray | float | None = None,
        share: np.ndarray | float = 0.0,
    ) -> np.ndarray:
        """Return the smallest score with the required share at or below it, counting a new sample as infinite, (q,).

        NaN scores are ignored. ``new`` is the weight of the new sample, one number or one per column; ``None`` means
        the largest of the weights that count, or ``new_weight``. ``share`` is that of wrong scores, likewise.
        """
        new = self.new_weight if new is None else new
        counts = np.where(np.isnan(scores), 0.0, weights[:, None])
        largest = counts.max(axis=0, initial=0.0)
        correct = (1 - share) * counts.sum(axis=0)
        needed = np.where(largest > 0, coverage * (correct + (largest if new is None else new)), np.inf)
        needed = needed * (1 - _ROUND_OFF)
        if np.all(counts == weights.max(initial=0.0)) and np.all(needed == needed[:1]) and np.isfinite(needed[:1]):
            place = math.ceil(needed[0] / largest[0]) - 1  # all samples have the same weight
            if place >= len(scores):
                return np.full(scores.shape[1], np.inf)
            return np.asarray(np.partition(scores, place, axis=0)[place])
        order = np.argsort(scores, axis=0)
        ranked = np.concatenate([np.take_along_axis(scores, order, axis=0), np.full((1, scores.shape[1]), np.inf)])
        reached = np.cumsum(np.take_along_axis(counts, order, axis=0), axis=0)
        place = np.sum(reached < needed, axis=0)
        return np.take_along_axis(ranked, place[None, :], axis=0)[0]

    def shortage(self, coverage: float, labels: np.ndarray) -> str | None:
        """Return why bands are infinite: which stratum has too few samples; ``None`` if bands are finite."""
        for label in np.unique(labels):
            is_in = (self.labels == label) & (self.weights > 0) & np.any(~np.isnan(self.scores), axis=1)
            share = np.min(wrong_share(self.scores[is_in], self.weights[is_in], self.contamination))
            wanted = math.ceil(coverage / (1 - coverage * (1 - share)) * (1 - _ROUND_OFF))
            largest = self.weights.max(initial=0.0, where=is_in) if self.new_weight is None else self.new_weight
            if (count := self.weights.sum(where=is_in) / largest if largest > 0 else 0) < wanted * (1 - _ROUND_OFF):
                is_of_groups = self.new_weight is not None and self.half_life is None
                where = " of different groups" if is_of_groups else ""
                where += f" in stratum {label!s}" if self.has_strata else ""
                where += " of equal weight" if self.new_weight is None and np.ptp(self.weights) > 0 else ""
                advice = "Calibrate on more samples, or ask for a smaller coverage."
                return (
                    f"Bands are infinite: a coverage of {coverage:g} requires at least {wanted} calibration samples"
                    f"{where}, and there are {self._number(count, int(is_in.sum()))}. {advice}"
                )
        return None

    def _number(self, count: float, n: int) -> str:
        """Return a number of samples as text, with what it is if n samples with weights count as a fraction."""
        if abs(count - round(count)) <= _ROUND_OFF * n:
            return f"{count:.0f}"
        lighter = "lighter" if self.half_life is None else "older"
        return f"effectively {math.floor(10 * count) / 10:g} ({n}, of which {lighter} ones count less)"


def wrong_share(scores: np.ndarray, weights: np.ndarray, contamination: float) -> np.ndarray:
    """Return the share of certainly wrong scores of each column, (q,), of at most ``contamination``.

    The share of wrong scores is not known. From the smallest scores, which are correct whatever it is up to
    ``contamination``, the tail is extrapolated by a power law, which is heavier than most tails. Only scores beyond the
    point where it ends at one per cent are wrong: too few rather than too many, so that bands never become too narrow.
    """
    shares = np.zeros(scores.shape[1])
    for k, column in enumerate(scores.T if contamination > 0 else ()):
        is_known = ~np.isnan(column) & (weights > 0)
        values, counts = column[is_known], weights[is_known]
        values = values - min(0.0, values.min(initial=0.0))  # those of intervals may be negative
        lower = np.sort(values)[: len(values) - int(contamination * len(values))]
        middle, upper = np.quantile(lower, _CENTRAL) if len(lower) else (0.0, 0.0)
        if middle > 0:
            is_far = values > upper * (upper / middle) ** _POWER
            shares[k] = min(counts[is_far].sum() / counts.sum(), contamination)
    return shares


def calibration_number(n: int, share: float, coverage: float) -> int:
    """Return how many of n samples to set aside: the share, or up to half more to make (m + 1) coverage an integer.

    A band calibrated on m samples covers with probability ceil((m + 1) coverage) / (m + 1).
    """
    least = math.ceil(n * share)
    for m in range(least, min(least + least // 2, n - 1) + 1):
        ranks = (m + 1) * coverage
        if abs(ranks - round(ranks)) <= _ROUND_OFF * ranks:
            return m
    return least


def checked_weights(weights: np.ndarray) -> np.ndarray:
    """Return the weights of the calibration sample, which must be non-negative and not all zero."""
    is_valid = (weights >= 0) & np.isfinite(weights)
    if not is_valid.all():
        raise ValueError(f"sample_weight must be non-negative finite numbers. Got {shown(weights[~is_valid][0])}.")
    if not np.any(weights > 0):
        raise ValueError("sample_weight must have a positive entry among the calibration samples. Got zeros only.")
    return weights


def _sizes_of_groups(groups: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the number of samples in the group of each sample, within its stratum."""
    _, strata = np.unique(labels, return_inverse=True)
    _, place, counts = np.unique(np.stack([groups, strata]), axis=1, return_inverse=True, return_counts=True)
    return np.asarray(counts[place.ravel()])


def labels_of(strata: ArrayLike | None, n: int, has_strata: bool) -> np.ndarray:
    """Return the stratum of each sample, the same for all if there are none."""
    if (strata is not None) != has_strata:
        raise ValueError(f"strata must be {'given' if has_strata else 'None'}, as in fit. Got {shown(strata)}.")
    labels = np.zeros(n, dtype=int) if strata is None else np.asarray(strata)
    if labels.shape != (n,):
        raise ValueError(f"strata must be {n} labels, one for each sample. Got shape {labels.shape}.")
    return labels


def checked(given: ArrayLike | None, n: int, name: str) -> np.ndarray | None:
    """Return strata or ``sample_weight`` as an array (n,), ``None`` if nothing is given."""
    if given is None:
        return None
    values = numbers(given) if name == "sample_weight" else np.asarray(given)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one entry for each sample. Got {values.shape}.")
    return values
