"""Pilot estimates of quantile functions: closed-form kernel regressions, refined by the pinball loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from fenchel._array import Array, as_like, host, namespace
from fenchel._statistics import ranked, weighted_median
from fenchel.model.expansion import KernelExpansion
from fenchel.model.target_scale import TargetScale, standardized_targets
from fenchel.model.training_set import TrainingSet
from fenchel.search.race.ridge import Ridge, best_lam

__all__ = ["QuantilePilot", "fit_pilot", "pilot_targets", "pinball"]

_THRESHOLDS = 30  # thresholds at which a distribution function is estimated
_LEAST_SPREAD = 0.05  # smallest residual relative to the median, below which logarithms are uninformative
_LAST_RANK = 1e-15  # ranks nearer to 0 or 1 have infinite scores
_NOTHING = 1e-9  # corrections below this fraction of the spread are ignored
_SHARES = 10  # weights of the pilots are multiples of one tenth
_EQUAL = 20  # pseudo-samples for equal weights, since few samples do not tell which pilot is best


class Pilot(Protocol):
    """A quantile function computed from regressions, whose conditional means are columns."""

    def quantiles(self, columns: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles (n, levels) for predicted columns (n, k)."""


@dataclass(frozen=True)
class Scores:
    """Normal scores of an output: an increasing map that is linear between the values of the sample."""

    values: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray) -> "Scores":
        """Return the map to normal scores: the normal quantiles of mid-ranks, which weights may round to 0 or 1."""
        values, mass = _distribution(y, weights)
        return cls(values, ndtri(np.clip(np.cumsum(mass) - mass / 2, _LAST_RANK, 1 - _LAST_RANK)))

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Return the scores of outputs."""
        return np.interp(y, self.values, self.scores)

    def decode(self, scores: np.ndarray) -> np.ndarray:
        """Return the outputs with given scores, within the range of the sample."""
        return np.interp(scores, self.scores, self.values)


@dataclass(frozen=True)
class LocationScale:
    r"""Quantiles :math:`m(x) + s(x) z(\theta)` of a transformed output; the columns are m and log s."""

    positions: np.ndarray  # levels at which the quantile function z of standardised residuals is known
    residuals: np.ndarray
    least: float  # limits of log s
    most: float
    map: TargetScale | Scores

    @classmethod
    def of(
        cls, columns: np.ndarray, y: np.ndarray, spreads: np.ndarray, weights: np.ndarray, map: TargetScale | Scores
    ) -> "LocationScale":
        """Return the pilot of leave-one-out columns; ``spreads`` are the logarithms used as regression targets."""
        least, most = float(np.min(spreads)), float(np.max(spreads))
        residuals = (y - columns[:, 0]) / np.exp(np.clip(columns[:, 1], least, most))
        order = np.argsort(residuals, kind="stable")
        mass = np.cumsum(weights[order])
        return cls(mass / (mass[-1] + np.mean(weights)), residuals[order], least, most, map)

    def scale(self, columns: np.ndarray) -> np.ndarray:
        """Return s, (n,), in units of the transformed output."""
        return np.exp(np.clip(columns[:, 1], self.least, self.most))

    def quantiles(self, columns: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles, (n, levels)."""
        z = np.interp(levels, self.positions, self.residuals)
        return np.asarray(self.map.decode(columns[:, :1] + self.scale(columns)[:, None] * z))


@dataclass(frozen=True)
class Distribution:
    """Quantiles from the distribution function at some thresholds, whose values are the columns.

    Between two thresholds the distribution function is linear if the sample has values there; otherwise it is a step,
    and quantiles are values of the sample.
    """

    ends: np.ndarray  # smallest value, thresholds, largest value
    is_linear: np.ndarray  # of each interval

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray) -> "Distribution":
        """Return the pilot with thresholds equally spaced in probability, and below values that occur often."""
        values, mass = _distribution(y, weights)
        places = np.arange(len(values) - 1)
        if len(values) > _THRESHOLDS + 1:
            steps = np.arange(1, _THRESHOLDS + 1) / (_THRESHOLDS + 1)
            places = np.minimum(np.searchsorted(np.cumsum(mass), steps * (1 - 1e-12)), len(values) - 2)
            atoms = np.flatnonzero(mass >= 1 / _THRESHOLDS)
            places = np.unique(np.concatenate([places, np.maximum(atoms - 1, 0)]))
        ends = np.concatenate([[0], places, [len(values) - 1]])
        return cls(values[ends], np.diff(ends) > 1)

    def indicators(self, y: np.ndarray) -> np.ndarray:
        """Return indicators, 0 or 1, of outputs that do not exceed each threshold, (n, thresholds)."""
        return (y[:, None] <= self.ends[1:-1]).astype(np.float64)

    def quantiles(self, columns: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles, (n, levels)."""
        n = len(columns)
        values = np.sort(np.clip(columns, 0, 1), axis=1)
        values = np.concatenate([np.zeros((n, 1)), values, np.ones((n, 1))], axis=1)
        rows = 2.0 * np.arange(n)[:, None]  # one sorted vector for all samples
        places = np.searchsorted((values[:, 1:] + rows).ravel(), (levels - 1e-9 + rows).ravel()).reshape(n, -1)
        places = np.minimum(places - np.arange(n)[:, None] * (values.shape[1] - 1), values.shape[1] - 2)
        low, high = (np.take_along_axis(values, places + step, axis=1) for step in (0, 1))
        share = np.clip((levels - low) / np.where(high > low, high - low, 1.0), 0, 1)
        share = np.where(self.is_linear[places], share, 1.0)
        return self.ends[places] + share * (self.ends[places + 1] - self.ends[places])


@dataclass(frozen=True)
class OutputPilot:
    """The pilots of one output and their weights; quantiles are weighted means of those of the pilots."""

    unit: float  # standard deviation of the output
    location: LocationScale
    others: tuple[Pilot, ...]
    columns: tuple[np.ndarray, ...]  # indices of the columns of each pilot
    shares: np.ndarray  # weights of the pilots, which sum to 1

    def quantiles(self, columns: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles, (n, levels)."""
        parts = zip(self.shares, (self.location, *self.others), self.columns, strict=True)
        mean = sum(share * pilot.quantiles(columns[:, own], levels) for share, pilot, own in parts if share > 0)
        return np.asarray(mean)

    def scale(self, columns: np.ndarray) -> np.ndarray:
        """Return the spread of the output, (n,)."""
        return np.asarray(self.location.scale(columns[:, self.columns[0]]) * self.unit)


@dataclass(frozen=True)
class QuantilePilot:
    """Quantile functions and spreads of all outputs, from ridge regressions with one kernel."""

    expansion: KernelExpansion
    centers: np.ndarray  # (columns,)
    outputs: tuple[OutputPilot, ...]
    left_out: np.ndarray  # leave-one-out predictions of the columns for the training samples, (n, columns)

    def columns(self, X: Array) -> np.ndarray:
        """Return the regressions at checked inputs, (n, columns)."""
        return np.asarray(host(self.expansion.coordinates(X)), dtype=np.float64) + self.centers

    def quantiles(self, columns: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles, (n, levels, outputs)."""
        return np.stack([output.quantiles(columns, levels) for output in self.outputs], axis=2)

    def scale(self, columns: np.ndarray) -> np.ndarray:
        """Return the spreads, (n, 1, outputs)."""
        return np.stack([output.scale(columns) for output in self.outputs], axis=1)[:, None, :]

    def rest(self, Y: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return leave-one-out residuals of the training outputs (n, d) at every level, in units of the spread."""
        return (Y[:, None, :] - self.quantiles(self.left_out, levels)) / self.scale(self.left_out)

    def corrected(self, columns: np.ndarray, rest: Array, levels: np.ndarray) -> Array:
        """Add a model's prediction of the residuals to the quantiles; negligible corrections are ignored."""
        xp = namespace(rest)
        rest = xp.where(xp.abs(rest) > _NOTHING, rest, xp.zeros_like(rest))
        return as_like(self.scale(columns), rest) * rest + as_like(self.quantiles(columns, levels), rest)


def pilot_targets(Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the regression targets of the pilots of outputs (n, d), for the search for their kernel.

    Each output, its normal scores and the indicators of its thresholds are scaled to the same total mean square.
    """
    groups = [group for y in Y.T for group in _Preparation.of(y, weights).groups()]
    centred = [group - np.average(group, axis=0, weights=weights) for group in groups]
    sizes = [np.sqrt(np.average(np.sum(group**2, axis=1), weights=weights)) for group in centred]
    return np.hstack([group / (size or 1.0) for group, size in zip(centred, sizes, strict=True)])


def pinball(residuals: np.ndarray, levels: np.ndarray, level_weights: np.ndarray) -> np.ndarray:
    """Return the pinball loss of residuals (n, levels, d), integrated over the levels, (n, d)."""
    slopes = levels[:, None]
    return np.einsum("ild,l->id", np.maximum(slopes * residuals, (slopes - 1) * residuals), level_weights)


def fit_pilot(training_set: TrainingSet, levels: np.ndarray, level_weights: np.ndarray) -> QuantilePilot:
    """Fit the pilot of vector outputs; the weights minimise the leave-one-out pinball loss at the levels.

    The targets of the training set are the outputs.
    """
    ridge, fits = Ridge.shared(training_set.ridge), list[_Fit]()

    def fitted(columns: np.ndarray) -> np.ndarray:
        """Fit regressions, and return the indices of their columns."""
        first = sum(fit.left_out.shape[1] for fit in fits)
        fits.append(_fitted(ridge, columns))
        return np.arange(first, first + columns.shape[1])

    outputs = []
    for y in np.asarray(host(training_set.targets.rows), dtype=np.float64).T:
        one = _Preparation.of(y, training_set.sample.counts)
        places = [fitted(group) for group in one.groups()]
        spreads = one.spreads(fits[-3:-1])
        of_spreads = [fitted(spread) for spread in spreads]
        columns = (*(np.append(*pair) for pair in zip(places, of_spreads, strict=False)), places[2])
        left_out = np.hstack([fit.left_out for fit in fits])
        outputs.append(one.finished(left_out, columns, spreads, levels, level_weights))
    coef = as_like(np.hstack([fit.coef for fit in fits]), training_set.X)
    expansion = KernelExpansion.over(training_set, np.arange(training_set.n_samples), coef)
    return QuantilePilot(expansion, np.concatenate([fit.center for fit in fits]), tuple(outputs), left_out)


@dataclass(frozen=True)
class _Preparation:
    """Targets of the regressions of one output."""

    target_scale: TargetScale
    y: np.ndarray  # (n,)
    weights: np.ndarray
    scores: Scores
    distribution: Distribution

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray) -> "_Preparation":
        target_scale = standardized_targets(y[:, None], weights)
        return cls(target_scale, y, weights, Scores.of(y, weights), Distribution.of(y, weights))

    def groups(self) -> list[np.ndarray]:
        """Return the first columns of each pilot; each group has its own lam."""
        maps = (self.target_scale, self.scores)
        return [*(map.encode(self.y[:, None]) for map in maps), self.distribution.indicators(self.y)]

    def spreads(self, means: "Sequence[_Fit]") -> list[np.ndarray]:
        """Return the log absolute leave-one-out residuals of the output and of its scores, one column each."""
        found = []
        for group, fit in zip(self.groups(), means, strict=False):
            sizes = np.abs(group - fit.left_out)
            least = max(_LEAST_SPREAD * float(weighted_median(sizes, self.weights)[0]), 64 * np.finfo(np.float64).eps)
            found.append(np.log(np.maximum(sizes, least)))
        return found

    def finished(
        self,
        left_out: np.ndarray,
        columns: tuple[np.ndarray, ...],
        spreads: Sequence[np.ndarray],
        levels: np.ndarray,
        level_weights: np.ndarray,
    ) -> OutputPilot:
        """Return the pilots with their weights."""
        own, (y, scores, _) = [left_out[:, places] for places in columns], self.groups()
        location = LocationScale.of(own[0], y[:, 0], spreads[0], self.weights, self.target_scale)
        others = (LocationScale.of(own[1], scores[:, 0], spreads[1], self.weights, self.scores), self.distribution)
        pilots: tuple[Pilot, ...] = (location, *others)
        parts = [pilot.quantiles(part, levels) for pilot, part in zip(pilots, own, strict=True)]
        shares = _best_shares(self.y, self.weights, parts, levels, level_weights)
        if len(self.scores.values) > len(self.y) / 2:  # otherwise a mean of pilots would miss recurring values
            shares = (len(self.y) * shares + _EQUAL / len(shares)) / (len(self.y) + _EQUAL)
        return OutputPilot(float(self.target_scale.scale[0]), location, others, columns, shares)


@dataclass(frozen=True)
class _Fit:
    left_out: np.ndarray  # predictions, (n, k)
    coef: np.ndarray  # of the kernel expansion, (n, k)
    center: np.ndarray  # (k,)
    lam: float = math.inf


def _fitted(ridge: Ridge, columns: np.ndarray) -> _Fit:
    """Fit regressions with the lam that minimises the mean squared leave-one-out error over all columns."""
    center = np.average(columns, axis=0, weights=ridge.weights)
    rows = columns - center
    if columns.shape[1] == 0:
        return _Fit(columns, columns, center)
    with np.errstate(all="ignore"):  # a lam with non-finite errors is never the best
        lam, _ = best_lam(ridge.error_of(rows))
        left_out, coef = columns - ridge.left_out(lam, rows), ridge.coefficients(lam, rows)
    if not (np.all(np.isfinite(left_out)) and np.all(np.isfinite(coef))):  # round-off: fall back to the mean
        return _Fit(center + 0 * columns, 0 * columns, center)
    return _Fit(left_out, coef, center, lam * ridge.scale)


def _distribution(y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a sample and their probabilities."""
    values, places = np.unique(y, return_inverse=True)
    mass = np.bincount(places.ravel(), weights=weights)
    return values, mass / np.sum(mass)


def _best_shares(
    y: np.ndarray, weights: np.ndarray, parts: list[np.ndarray], levels: np.ndarray, level_weights: np.ndarray
) -> np.ndarray:
    """Return the weights, in tenths, of the average of quantiles (n, levels) with the smallest pinball loss."""
    tried, errors = list[np.ndarray](), list[float]()
    for counts in product(range(_SHARES + 1), repeat=len(parts) - 1):
        if sum(counts) > _SHARES:
            continue
        shares = np.array([*counts, _SHARES - sum(counts)]) / _SHARES
        residuals = y[:, None] - sum(share * part for share, part in zip(shares, parts, strict=True))
        losses = pinball(residuals[:, :, None], levels, level_weights)
        errors.append(float(np.average(losses, axis=0, weights=weights)[0]))
        tried.append(shares)
    return tried[int(ranked(errors)[0])]
