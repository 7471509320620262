"""Regression on tables: named columns become inputs and outputs, and the way they do is part of the model."""

from fenchel.tables.regressor import TableRegressor
from fenchel.tables.scores import Scores

__all__ = ["Scores", "TableRegressor"]
