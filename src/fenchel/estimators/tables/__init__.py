"""Regression on tables: named columns become inputs and outputs, and the way they do is part of the model."""

from fenchel.estimators.tables.regressor import TableRegressor

__all__ = ["TableRegressor"]
