"""Models fitted without some samples, and the resulting cross-conformal bands."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags

from fenchel._array import Inputs, Outputs
from fenchel._progress import part
from fenchel.conformal.calibration import Calibration, are_splits, checked_weights, wrong_share
from fenchel.conformal.widths import Widths
from fenchel.data.containers import inputs_for, length, numbers, take
from fenchel.exceptions import IncompatibleError
from fenchel.model.machine import Near, best_of, sees_outputs
from fenchel.resample.folds import grouped, ranks_of, seeded, weighted, whole_folds
from fenchel.resample.jackknife import has_closed_form, left_out_models
from fenchel.resample.residuals import Residuals

__all__: list[str] = []

Bounds = Callable[[np.ndarray, np.ndarray, np.ndarray], list[np.ndarray]]  # of predictions, places and scores

_FOLDS = 5  # of the training part, where the calibration part was given
_BLOCK = 2**22  # numbers in the array of all bounds for one block of inputs


class HeldOutModels(Protocol):
    """Models that each leave out some samples."""

    @property
    def residuals(self) -> Residuals:
        """Residuals of each sample under the model fitted without it."""

    @property
    def place(self) -> np.ndarray:
        """Index of the model of each sample, (n,)."""

    def predict(self, X: Inputs) -> np.ndarray:
        """Return the predictions of all models, (models, m, q)."""


@dataclass(frozen=True, eq=False)
class FoldModels:
    """One model for each fold, fitted without it."""

    models: list[Any]
    residuals: Residuals
    place: np.ndarray

    def predict(self, X: Inputs) -> np.ndarray:
        """Return the predictions of all models."""
        return np.stack([numbers(model.predict(X)).reshape(length(X), -1) for model in self.models])


@dataclass(frozen=True, eq=False)
class Trainer:
    """An unfitted regressor, and the sample to fit it on."""

    estimator: BaseEstimator
    X: Inputs
    y: Outputs
    weights: np.ndarray | None = None  # (n,), for a regressor that takes sample weights
    arguments: dict[str, Any] = field(default_factory=dict)  # passed to its fit
    groups: np.ndarray | None = None  # (n,), labels from 0 of samples that are never separated

    @cached_property
    def ranks(self) -> np.ndarray:
        """Ranks of the samples by what they contain."""
        return ranks_of(self.estimator, self.X, self.y)

    def check_method(self, method: str) -> None:
        """Raise if the models that "cv+" or "jackknife+" needs cannot be fitted."""
        if method == "jackknife+" and self.groups is not None:
            raise ValueError(
                "method='jackknife+' leaves out single samples, not whole groups. Use method='cv+', with "
                "cv=LeaveOneGroupOut() for one fold for each group."
            )
        if method == "cv+" and hasattr(self.estimator, "predict_interval"):
            raise ValueError("method='cv+' is for predictions, not for intervals. Use method='split'.")
        if method == "cv+" and get_tags(self.estimator).input_tags.pairwise:
            raise ValueError("method='cv+' needs inputs, not their Gram matrix. Use method='split'.")

    def fit_on(self, index: np.ndarray) -> Any:
        """Return the regressor fitted on the selected samples."""
        model = clone(self.estimator)
        weights = weighted(model, self.weights, index)
        arguments = self.arguments | grouped(model, self.groups, index) | weights
        for values in weights.values():
            checked_weights(values)
        return model.fit(inputs_for(model, self.X, index, index), take(self.y, index), **arguments)

    def out_of_sample(self, model: BaseEstimator, train: np.ndarray, cv: object, random_state: object) -> Residuals:
        """Return out-of-sample residuals on the training part of a model; choices made by a search are kept."""
        is_fixed = not sees_outputs(model)
        best = best_of(model) if is_fixed else model
        if is_fixed and has_closed_form(best) and self.weights is None and self.groups is None:
            inputs, outputs = inputs_for(model, self.X, train, train), take(self.y, train)
            with suppress(IncompatibleError):  # curves with gaps have no closed form
                return left_out_models(model, inputs, outputs, only_closed=True).residuals
        return replace(self, estimator=best).fit_folds(train, self.folds(train, cv, random_state)).residuals

    def fit_folds(self, train: np.ndarray, folds: Sequence[tuple[np.ndarray, np.ndarray]]) -> FoldModels:
        """Return the models of the folds, which are places in the training part."""
        models, place, parts = [], np.zeros(len(train), dtype=int), []
        for k, (inside, outside) in enumerate(folds):
            with part(1 / (len(folds) - k)):
                models.append(self.fit_on(train[inside]))
            inputs = inputs_for(models[-1], self.X, train[outside], train[inside])
            parts.append((outside, Residuals.of(models[-1], inputs, take(self.y, train[outside]))))
            place[outside] = k
        first = parts[0][1]
        values = np.full((len(train), first.values.shape[1]), np.nan)
        for outside, residuals in parts:
            values[outside] = residuals.values
        return FoldModels(models, Residuals(values, first.grid, first.shape), place)

    def folds(self, train: np.ndarray, cv: object, random_state: object) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return both parts of each fold, as places in the training part; groups stay together."""
        codes = None if self.groups is None else self.groups[train]
        cv = _FOLDS if len(train) < length(self.X) and are_splits(cv) else cv  # its splits are of the whole sample
        if isinstance(cv, int | np.integer):
            n = len(train if codes is None else np.unique(codes))
            if n < 2:
                raise ValueError(f"The widths need at least 2 training samples. Got {n}. Use modulation='constant'.")
            state = seeded(random_state, self.estimator, self.X, self.y)
            return whole_folds(self.ranks[train], int(cv), codes, state.randint(2**31 - 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of splitters that ignore groups, which may be suitable
            folds = list(check_cv(cv).split(train, groups=codes))
        for inside, outside in folds:
            if max(np.max(inside, initial=0), np.max(outside, initial=0)) >= len(train):
                raise ValueError(f"The splits in cv must be of the {len(train)} samples. They have more.")
            if codes is not None and np.isin(codes[inside], codes[outside]).any():
                raise ValueError(
                    "The folds of cv separate samples of a group. Use a number of folds, or a "
                    "splitter that takes groups, such as GroupKFold()."
                )
        return folds


@dataclass(frozen=True, eq=False)
class CrossRegions:
    """Regions of CV+ and jackknife+: outputs that are not too far from the predictions of too many models."""

    models: HeldOutModels
    widths: Widths
    calibration: Calibration
    X: Inputs
    center: np.ndarray  # (n, q): predictions of the model of all samples, from which the models' are named
    near: Near

    def ends(
        self, grid: np.ndarray | None, coverage: float, labels: np.ndarray, new: np.ndarray | None
    ) -> list[np.ndarray]:
        """Return the lower and upper quantiles of the bounds of all models, (n, q)."""
        sizes = self.widths.at(self.X, grid)

        def bounds(centers: np.ndarray, part: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
            moves = scores[:, None, :] * sizes[part][None]
            return [sign * centers + moves for sign in (-1.0, 1.0)]

        lower, upper = self._quantiles(bounds, 2, sizes.shape[1], coverage, labels, new)
        return [-lower, upper]

    def radii(self, whitening: np.ndarray, coverage: float, labels: np.ndarray, new: np.ndarray | None) -> np.ndarray:
        """Return the radii (n,) of ellipsoids around ``center`` that contain the regions.

        An output at a distance r from a model's prediction is at most r plus the distance of that prediction away from
        the center, so that quantiles of these sums bound the distance of each output of the region.
        """
        factors = self.widths.factors(self.X)

        def bounds(centers: np.ndarray, part: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
            away = np.linalg.norm((centers - self.center[part]) @ whitening.T, axis=2)
            return [(away + scores * factors[part])[:, :, None]]

        (radii,) = self._quantiles(bounds, 1, 1, coverage, labels, new)
        return np.asarray(radii[:, 0])

    def _quantiles(
        self, bounds: Bounds, count: int, q: int, coverage: float, labels: np.ndarray, new: np.ndarray | None
    ) -> list[np.ndarray]:
        """Return the quantiles over the samples of each array of bounds, (n, q)."""
        known, found = self.calibration, [np.full((len(self.center), q), np.inf) for _ in range(count)]
        rows = max(1, _BLOCK // (len(self.models.place) * self.center.shape[1]))
        for label in np.unique(labels):
            members, where = np.flatnonzero(labels == label), known.labels == label
            if not where.any():
                continue
            scores, weights, place = known.scores[where], known.weights[where], self.models.place[where]
            share = np.broadcast_to(wrong_share(scores, weights, known.contamination), q)
            for first in range(0, len(members), rows):
                part = members[first : first + rows]
                predictions = self.near(self.models.predict(take(self.X, part)), self.center[part])
                heaviest, shares = None if new is None else np.repeat(new[part], q), np.tile(share, len(part))
                for out, reached in zip(found, bounds(predictions[place], part, scores), strict=True):
                    flat = reached.reshape(len(scores), -1)
                    quantiles = known.quantile(flat, weights, coverage, heaviest, shares)
                    out[part] = quantiles.reshape(len(part), -1)
        return found
