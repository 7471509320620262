"""Regression on tables: named columns are encoded as inputs and outputs, and the encoding is part of the model."""

from fenchel.app.tables.regressor import TableRegressor

__all__ = ["TableRegressor"]
