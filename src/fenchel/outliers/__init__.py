"""Outlier detection for samples and points of curves, and a regressor that is refitted without outliers."""

from fenchel.outliers.report import OutlierReport
from fenchel.outliers.robust_refit import RobustRefit

__all__ = ["OutlierReport", "RobustRefit"]
