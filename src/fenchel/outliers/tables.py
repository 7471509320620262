"""Outliers among the rows of a table."""

from dataclasses import replace
from typing import Any

import numpy as np

from fenchel._array import host
from fenchel.estimators import TableRegressor
from fenchel.outliers.report import FEWEST, OutlierReport

__all__ = ["outliers_of_table"]


def outliers_of_table(regressor: TableRegressor, table: Any) -> tuple[OutlierReport, np.ndarray] | None:
    """Return the report on the rows of a table, and the numbers of the rows; ``None`` if it is not that of the fit.

    Rows that were not fitted to, such as those of a test part, are ranked beside the others.
    """
    X, targets, rows = regressor.sample(table)
    fitted, estimator = np.isin(rows, regressor.rows_), regressor.estimator_
    if fitted.sum() != len(regressor.rows_) or len(rows) < FEWEST:
        return None
    known = np.asarray(host(estimator.X_fit_))
    inputs = np.asarray(X)[fitted][estimator.support_].reshape(known.shape)
    if not np.allclose(inputs, known, rtol=1e-5):
        return None
    report = OutlierReport.of(estimator, X, targets - regressor.offset_, fitted=fitted)
    names = None if report.output_names is None else regressor.target_names_
    return replace(report, output_names=names), rows
