"""Moved to ``fenchel.app.tables``; this name goes with the next release."""

from fenchel.app.tables import TableRegressor

__all__ = ["TableRegressor"]
