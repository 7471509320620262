"""Widths, scores and bounds of the bands of a conformal regressor."""

from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from fenchel._array import Inputs, Outputs
from fenchel._progress import part
from fenchel.conformal.calibration import Calibration, Given
from fenchel.conformal.folds import CrossRegions, HeldOutModels, Trainer
from fenchel.conformal.order import exchangeability_p_value, warn_of_drift
from fenchel.conformal.widths import (
    Widths,
    constant,
    correlated,
    deviations,
    modulated,
    without_each,
    without_own,
    without_own_shape,
)
from fenchel.data.containers import largest, length, numbers
from fenchel.estimators.around import AroundMixin
from fenchel.model.machine import near_of
from fenchel.resample.jackknife import left_out_models
from fenchel.resample.residuals import Residuals

__all__ = ["FIT_SHARE", "BandsMixin"]

FIT_SHARE = 0.8  # of the fit of the regressor; the rest are residuals of samples that it has not seen


class BandsMixin(AroundMixin):
    """What bands are made of, from the parameters of a ``ConformalRegressor``."""

    method: str
    modulation: Any
    joint: bool | str
    contamination: float
    cv: Any
    random_state: object
    _calibration: Calibration
    _calibration_widths: Widths | None
    _models: HeldOutModels | None

    @property
    def _is_ellipsoid(self) -> bool:
        return isinstance(self.joint, str)

    @property
    def _has_intervals(self) -> bool:
        return hasattr(self.estimator_, "predict_interval")

    @property
    def _needs_widths(self) -> bool:
        return not self._has_intervals and not (isinstance(self.modulation, str) and self.modulation == "constant")

    def _widths_on(self, part: Given) -> Widths:
        """Return the widths of the residuals of samples that the regressor has not seen."""
        return self._widths(Residuals.of(self.estimator_, part.X, part.y), part.X, part.groups)

    def _widths(self, residuals: Residuals, X: Inputs, groups: np.ndarray | None = None) -> Widths:
        is_pairwise = get_tags(self.estimator_).input_tags.pairwise
        shape = correlated if self._is_ellipsoid else deviations
        return modulated(self.modulation, residuals, X, self.contamination, shape, is_pairwise, groups)

    def _calibrate(self, part: Given, widths: Widths | None) -> None:
        """Calibrate on samples that the regressor has not seen."""
        self._calibration_widths = widths
        self._keep(self._scores(part.X, part.y), widths, part, None)

    def _scores(self, X: Inputs, y: Outputs) -> np.ndarray:
        """Return the scores of samples, (m, 1) for a joint band, else (m, q)."""
        widths = self._calibration_widths
        if not self._has_intervals:
            residuals = Residuals.of(self.estimator_, X, y)
            return (constant(residuals) if widths is None else widths).scores(residuals, X, bool(self.joint))
        if self._is_ellipsoid:
            raise ValueError("joint='ellipsoid' is for predictions, not for intervals. Use joint=True.")
        (lower, upper), truth = self._own_ends(X), numbers(y)
        excess = np.maximum(lower - truth, truth - upper).reshape(len(truth), -1)
        return largest(excess)[:, None] if self.joint else excess

    def _keep(self, scores: np.ndarray, widths: Widths | None, part: Given, models: HeldOutModels | None) -> None:
        """Keep the scores of samples."""
        self._calibration = Calibration.of(scores, part, self.contamination)
        self._calibration_widths, self._models = widths, models
        self.scores_ = scores[:, 0] if self.joint else scores
        if part.places is not None:
            self.exchangeability_p_value_ = exchangeability_p_value(scores[np.argsort(part.places)])
            warn_of_drift(self.exchangeability_p_value_)

    def _fit_held_out(self, trainer: Trainer, given: Given) -> Self:
        """Calibrate each sample by a model fitted without it."""
        X, everyone = given.X, np.arange(length(given.X))
        if given.places is not None and (self.method == "jackknife+" or not isinstance(self.cv, Integral)):
            raise ValueError("order= requires method='split', or method='cv+' with a number of folds as cv.")
        trainer.check_method(self.method)
        if self.method == "jackknife+" and "leaves" in trainer.estimator.get_params(deep=False):
            trainer = replace(trainer, estimator=clone(trainer.estimator).set_params(leaves=False))
        folds = [] if self.method == "jackknife+" else trainer.folds(everyone, self.cv, self.random_state)
        with part(1 / (1 + len(folds)) if folds else FIT_SHARE):
            self.estimator_ = trainer.fit_on(everyone)
        models: HeldOutModels
        if self.method == "jackknife+":
            models = left_out_models(self.estimator_, X, given.y, trainer.weights)
        else:
            models = trainer.fit_folds(everyone, folds)
        residuals = models.residuals
        widths, ratios, own = constant(residuals), np.ones((1, 1)), np.ones((1, 1))
        if self._needs_widths:
            widths = self._widths(residuals, X, given.groups)
            ratios = ratios if self._is_ellipsoid else without_each(widths, residuals, X, given.groups)
            own = without_own(widths, residuals, X, given.groups)
            own = own * without_own_shape(widths, residuals, X, self.contamination, given.groups)
        even = replace(residuals, values=residuals.values / (ratios * own))
        scores = widths.scores(even, X, bool(self.joint))
        self._keep(scores, widths, given, models)
        self._calibration = replace(self._calibration, scores=scores * ratios)  # relative to the widths of all samples
        return self._with_columns()

    def _ends(
        self,
        X: Inputs,
        center: np.ndarray,
        grid: np.ndarray | None,
        coverage: float,
        labels: np.ndarray,
        new: np.ndarray | None,
    ) -> list[np.ndarray]:
        """Return the lower and upper bounds, with the shape of the predictions."""
        rows, widths = center.reshape(len(center), -1), self._calibration_widths
        if self._models is not None and widths is not None:
            regions = CrossRegions(self._models, widths, self._calibration, X, rows, near_of(self.estimator_))
            if widths.whitening is None:
                return [end.reshape(center.shape) for end in regions.ends(grid, coverage, labels, new)]
            half = regions.radii(widths.whitening, coverage, labels, new)[:, None] * widths.base
            return [(rows + sign * half).reshape(center.shape) for sign in (-1, 1)]
        quantiles = self._calibration.quantiles(coverage, labels, new)
        if self._has_intervals:
            lower, upper = self._own_ends(X)
            moves = np.broadcast_to(quantiles, lower.reshape(len(lower), -1).shape).reshape(lower.shape)
            middle = (lower + upper) / 2  # bounds that would cross meet here
            return [np.minimum(lower - moves, middle), np.maximum(upper + moves, middle)]
        half = quantiles * (np.ones_like(rows) if widths is None else widths.at(X, grid))
        return [(rows + sign * half).reshape(center.shape) for sign in (-1, 1)]

    def _own_ends(self, X: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the regressor's own intervals."""
        ends = numbers(self.estimator_.predict_interval(X, self.coverage))
        return ends[:, 0], ends[:, 1]
