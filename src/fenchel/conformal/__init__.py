"""Conformal prediction: bands and sets with guaranteed coverage, around any predictor."""

from fenchel.conformal.band import PredictionBand
from fenchel.conformal.candidates import ConformalPredictor, PredictionSet
from fenchel.conformal.regressor import ConformalRegressor

__all__ = ["ConformalPredictor", "ConformalRegressor", "PredictionBand", "PredictionSet"]
