"""Rounds of a learned metric: a search for a kernel, a certified fit, the average outer product of its gradients."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from fenchel._array import as_like, host
from fenchel._progress import counted, evenly
from fenchel.data.content import contents, shuffled
from fenchel.estimators.regression import OperatorKernelRegressor
from fenchel.kernels.standardized import moments
from fenchel.losses import Huber, Loss, Square
from fenchel.losses.relative import RelativeSize
from fenchel.model.expansion import KernelExpansion
from fenchel.model.gradient import expansion_gradient
from fenchel.model.model import Model
from fenchel.search.race import KernelSearch, search_kernel

__all__ = ["MetricData", "MetricRound", "held_out_rounds", "outer_product"]

_MOST = 2000  # maximum number of samples over which gradients are averaged
_WRONG = 4.0  # robust deviations at which the errors of a robust fit are clipped
_LEAST = 1e-4  # squared weight of a direction in which the fit is constant, relative to the largest


@dataclass(frozen=True)
class MetricData:
    """A sample in coordinates, and the settings of its fits."""

    X: np.ndarray  # (n, d)
    Y: np.ndarray  # (n, p), NaN where nothing is known; gaps of curves are completed
    counts: np.ndarray
    observed: np.ndarray | None
    is_robust: bool
    kind: str  # "diagonal" or "full"
    settings: dict[str, Any]  # of the regressors
    groups: np.ndarray | None = None  # of samples that are held out together, as numbers

    def part(self, rows: np.ndarray) -> "MetricData":
        """Return a subset of the samples."""
        observed, groups = (None if one is None else one[rows] for one in (self.observed, self.groups))
        return replace(self, X=self.X[rows], Y=self.Y[rows], counts=self.counts[rows], observed=observed, groups=groups)

    @property
    def scale(self) -> np.ndarray:
        """Scales of the columns, infinite for constant ones."""
        return moments(self.X, self.counts, False)[1]

    def first_round(self) -> "MetricRound":
        """Return the round of the plain metric."""
        return self._round(None)

    def next_round(self, before: "MetricRound") -> "MetricRound":
        """Return the round whose metric comes from the gradients of the previous round."""
        M = outer_product(self, before.model.model_)
        values, vectors = (np.diag(M), None) if self.kind == "diagonal" else np.linalg.eigh(M)
        roots = np.sqrt(np.maximum(values, 0.0))
        weights = np.sqrt(roots / (float(np.max(roots)) or 1.0) + _LEAST)
        return self._round(weights if vectors is None else vectors * weights)

    def loss(self, search: KernelSearch) -> Loss:
        """Return the square loss, or Huber's with a threshold from the residuals of a search."""
        return Huber("auto").resolve(search.residuals, self.counts[search.index]) if self.is_robust else Square()

    def _round(self, weights: np.ndarray | None) -> "MetricRound":
        search = search_kernel(
            self.X,
            np.nan_to_num(self.Y),
            self.counts,
            robust=self.is_robust,
            observed=self.observed,
            metric=weights,
            groups=self.groups,
            imputed=not np.isnan(self.Y).any(),
        )
        model = OperatorKernelRegressor(search.kernel, loss=self.loss(search), lam=search.lam, **self.settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the regressor itself has warned about the data
            model.fit(self.X, self.Y, sample_weight=self.counts)
        return MetricRound(weights, search, model)


@dataclass(frozen=True)
class MetricRound:
    """A metric on the standardised columns, (d,), (d, d) or ``None``, the kernel found with it, and a fitted model."""

    weights: np.ndarray | None
    search: KernelSearch
    model: OperatorKernelRegressor


def outer_product(data: MetricData, model: Model) -> np.ndarray:
    """Return the average outer product of a fitted model's gradients in the standardised columns, (d, d)."""
    expansion = cast(KernelExpansion, model.expansion)
    rows = shuffled(contents(data.X, data.Y, data.counts))[:_MOST]
    points = as_like(data.X[rows], expansion.coef)
    gradients = host(expansion_gradient(expansion, points, almost_everywhere=True)).astype(np.float64)
    moved = gradients * np.where(np.isfinite(data.scale), data.scale, 0.0)
    shares = np.repeat(data.counts[rows] / np.sum(data.counts[rows]), moved.shape[1])
    flat = moved.reshape(-1, moved.shape[2])
    product: np.ndarray = flat.T @ (shares[:, None] * flat)
    return product


def held_out_rounds(data: MetricData, folds: list[np.ndarray], max_rounds: int) -> list[float]:
    """Return the held-out error of each round, the plain metric first, until it no longer decreases.

    A metric is fitted to the outputs that it was learned from, so each fold learns its own from the other samples.
    """
    parts = [data.part(np.setdiff1d(np.arange(len(data.X)), fold)) for fold in folds]
    rounds = _side_by_side((part.first_round() for part in parts), len(parts), max_rounds)
    ceiling, errors = np.inf, list[float]()
    held_out = data.part(np.concatenate(folds))
    while True:
        predicted = np.concatenate([one.model.predict(data.X[fold]) for one, fold in zip(rounds, folds, strict=True)])
        residuals = np.nan_to_num(predicted - held_out.Y)
        residuals = residuals if held_out.observed is None else residuals * held_out.observed
        norms = np.linalg.norm(residuals, axis=1)
        if data.is_robust and not errors:
            ceiling = RelativeSize("scale", _WRONG).of(norms, held_out.counts)
        errors.append(float(np.average(np.minimum(norms, ceiling) ** 2, weights=held_out.counts)))
        if len(errors) > max_rounds or (len(errors) > 1 and errors[-1] >= errors[-2]):
            return errors
        later = (part.next_round(before) for part, before in zip(parts, rounds, strict=True))
        rounds = _side_by_side(later, len(parts), max_rounds - len(errors))


def _side_by_side(rounds: Iterator[MetricRound], count: int, n_after: int) -> list[MetricRound]:
    """Return one round of each fold; as many rounds may follow."""
    return list(counted(evenly(rounds, count), 1 / (1 + n_after)))
