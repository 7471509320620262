"""Conformal prediction: bands and sets around any predictor, with a coverage that holds for exchangeable samples."""

from fenchel.conformal.band import PredictionBand
from fenchel.conformal.candidates import ConformalPredictor, PredictionSet
from fenchel.conformal.regressor import ConformalRegressor

__all__ = ["ConformalPredictor", "ConformalRegressor", "PredictionBand", "PredictionSet"]
