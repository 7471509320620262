"""Prediction bands with guaranteed coverage, around any regressor."""

from fenchel.conformal.band import PredictionBand
from fenchel.conformal.regressor import ConformalRegressor

__all__ = ["ConformalRegressor", "PredictionBand"]
