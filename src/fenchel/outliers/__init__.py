"""Which samples, and which points of curves, are wrong; and a regressor that is fitted again without them."""

from fenchel.outliers.report import OutlierReport
from fenchel.outliers.robust_refit import RobustRefit

__all__ = ["OutlierReport", "RobustRefit"]
