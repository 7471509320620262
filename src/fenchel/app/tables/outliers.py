"""Outliers among the rows of a table."""

from dataclasses import replace

import numpy as np

from fenchel.app.tables import TableRegressor
from fenchel.data.frames import index_of
from fenchel.outliers.held_out_residuals import are_training_inputs
from fenchel.outliers.report import OutlierReport
from fenchel.outliers.sample_facts import FEWEST

__all__ = ["outliers_of_table"]


def outliers_of_table(regressor: TableRegressor, table: object) -> tuple[OutlierReport, np.ndarray] | None:
    """Return the report on the rows of a table, and the row numbers; ``None`` if the model was not fitted to the table.

    Rows that the model was not fitted to, such as those of a test part, are ranked together with the others.
    """
    X, targets, rows = regressor.sample(table)
    fitted, estimator = np.isin(rows, regressor.rows_), regressor.estimator_
    if fitted.sum() != len(regressor.rows_) or len(rows) < FEWEST:
        return None
    if not are_training_inputs(estimator, X, fitted):
        return None
    report = OutlierReport.of(estimator, X, targets - regressor.offset_, fitted=fitted)
    names = None if report.output_names is None else regressor.target_names_
    index = index_of(table)
    return replace(report, output_names=names, index=None if index is None else index[rows - 1]), rows
