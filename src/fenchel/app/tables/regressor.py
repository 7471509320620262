"""Regression on the columns of a table."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fenchel._array import Outputs, host
from fenchel._check import Options, check_parameter
from fenchel._component import all_or_nothing
from fenchel._progress import CallbacksMixin, tracked
from fenchel.app.tables.columns import encoding_notes, lacking, learn_column, numbers_of, range_notes
from fenchel.app.tables.linear_model import linear_model, offset_of
from fenchel.app.tables.rows import LeftOut, check_folds, fitted, grid_of, labels_of, logarithm_notes, weights_of
from fenchel.conformal import ConformalRegressor
from fenchel.data.frames import FramesOutMixin, in_container, with_arrays
from fenchel.datasets.tables import Table, as_table
from fenchel.metrics.scores import Scores, mean_of_columns

__all__ = ["TableRegressor"]


class TableRegressor(FramesOutMixin, CallbacksMixin, BaseEstimator):
    """Regression on the columns of a table, which are encoded as part of the model.

    Text is one-hot encoded, dates become days since the earliest one, numbers are scaled to mean 0 and standard
    deviation 1, and constant columns are left out. A missing number or date is replaced by the median of its column; if
    any training row lacks it, an indicator column is added. Missing text is a category of its own, and text that no
    training row has is zero in all columns. ``fit`` learns and stores the encoding, so ``predict`` takes a raw table
    with the same columns.

    Parameters
    ----------
    estimator : estimator
        ``OperatorKernelRegressor``, ``FunctionalRegressor`` or their ``CV`` classes; or a
        ``ConformalRegressor`` around one of them, for ``predict_interval``.
    targets : sequence of str
        Output columns: names, ranges of names such as ``"y_1:y_9"``, or patterns such as ``"y_*"``.
    inputs : sequence of str or None, default=None
        Input columns, selected as ``targets``; ``None`` means all other columns.
    drop : sequence of str, default=()
        Columns to leave out of the inputs.
    curves : bool, default=False
        Whether the targets of a row are one curve. Missing values are points, or targets, that were not observed; rows
        without any are left out.
    center : {"mean", "median", "none"}, default="mean"
        What is subtracted from the targets before the fit and added back to predictions. Curves are centred by their
        estimator instead.
    scale : bool, default=True
        Whether to standardise numeric inputs and dates.
    drop_missing : bool, default=False
        Whether ``fit`` and the scores leave out rows with a missing input. ``predict`` predicts every row.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, with its certificate.
    conformal_ : ConformalRegressor or None
        The fitted ``ConformalRegressor``, if ``estimator`` is one.
    target_names_, input_names_ : list of str
        The target and input columns that are used.
    columns_ : list of InputColumn
        How each input column is encoded.
    feature_names_ : list of str
        Names of the features that the estimator is fitted on.
    grid_ : array of shape (m,) or None
        Points of the curves: those of the table, or numbers in the column names, or ``None`` for equal steps in [0, 1].
    rows_ : array of int
        Numbers of the rows that were fitted, counting from 1.
    train_scores_ : Scores
        Scores on these rows.
    notes_ : list of str
        What was left out, encoded or assumed.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.app.tables import TableRegressor
    >>> table = {"x": np.arange(20.0), "side": ["left", "right"] * 10, "y": np.sin(np.arange(20.0))}
    >>> model = TableRegressor(OperatorKernelRegressor(), targets=["y"]).fit(table)
    >>> model.feature_names_
    ['x', 'side=left', 'side=right']
    >>> model.predict({"x": [3.0], "side": ["left"]}).shape
    (1, 1)
    """

    conformal_: ConformalRegressor | None = None  # for models saved by earlier releases

    def __init__(
        self,
        estimator: BaseEstimator,
        targets: Sequence[str],
        inputs: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        curves: bool = False,
        center: str = "mean",
        scale: bool = True,
        drop_missing: bool = False,
    ) -> None:
        self.estimator = estimator
        self.targets = targets
        self.inputs = inputs
        self.drop = drop
        self.curves = curves
        self.center = center
        self.scale = scale
        self.drop_missing = drop_missing

    @tracked
    @all_or_nothing
    def fit(
        self,
        table: object,
        y: object = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the encoding of the columns, then fit the estimator.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            Inputs and targets.
        y : None
            Not used: the targets are columns.
        groups : str, array of shape (n,) or None, default=None
            Labels of rows that belong together, such as replicates, or the column that holds them, which is then not an
            input. The folds of a search and of a ``ConformalRegressor`` hold out whole groups; its intervals are then
            those of ``method="cv+"``, with the choices of a search made on all rows.
        sample_weight : str, array of shape (n,) or None, default=None
            Weights of the rows, or the column that holds them, which is then not an input.

        Returns
        -------
        self : TableRegressor
            The fitted model.
        """
        check_parameter(type(self).__name__, "center", self.center, Options(("mean", "median", "none")))
        table = as_table(table)
        self.notes_ = list(table.notes)
        self.target_names_ = table.select(self.targets, "targets")
        labels = None if groups is None else labels_of(table, groups, self.target_names_)
        weights = None if sample_weight is None else weights_of(table, sample_weight, self.target_names_)
        about_rows = [value for value in (groups, sample_weight) if isinstance(value, str)]
        inputs = [name for name in self._inputs(table) if name not in about_rows]
        Y = self._targets(table)
        left_out = self._left_out(table, inputs, Y)
        self.notes_ += left_out.notes()
        missing = np.isnan(Y[~np.isnan(Y).all(axis=1)])
        if missing.any():
            what = "points of the curves" if self.curves else "targets"
            self.notes_.append(f"{np.mean(missing):.0%} of the {what} are not observed")
        kept = left_out.kept
        self.rows_ = table.numbers[kept]
        if len(self.rows_) < 2:
            raise ValueError(f"{table.name} has {len(self.rows_)} usable rows; at least 2 are needed.")
        check_folds(self.estimator, table.name, self.rows_, None if labels is None else labels[kept])
        used, Y = table.take(np.flatnonzero(kept)), Y[kept]
        self._learn(used, inputs)
        X = self.encode(used)
        Y = Y.astype(X.dtype)
        self.target_mean_ = mean_of_columns(Y)
        self.grid_, notes = grid_of(table, self.target_names_) if self.curves else (None, [])
        weights = None if weights is None else weights[kept]
        self.offset_ = offset_of(Y, "none" if self.curves else self.center, weights)
        self.estimator_, self.conformal_ = self._fitted(X, Y, None if labels is None else labels[kept], weights)
        self.notes_ += [*notes, *logarithm_notes(self.estimator_, self.target_names_)]
        self._linear = linear_model(X, Y, self.target_mean_)
        self.train_scores_ = self._scores(X, Y)
        return self

    @in_container
    def predict(self, table: object) -> Outputs:
        """Predict the targets of the rows of a table.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            A table with the input columns, in any order; other columns are ignored.

        Returns
        -------
        y : array of shape (m, n_targets)
            One column for each target.
        """
        check_is_fitted(self)
        return self._predict(self.encode(as_table(table)))

    def predict_interval(self, table: object) -> tuple[np.ndarray, np.ndarray]:
        """Return prediction intervals for the rows of a table.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            As for ``predict``.

        Returns
        -------
        lower, upper : array of shape (m, n_targets)
            The lower and upper ends, with the coverage of the fitted ``ConformalRegressor``.
        """
        check_is_fitted(self)
        if self.conformal_ is None:
            raise ValueError("This model has no intervals. Fit TableRegressor(ConformalRegressor(...), ...).")
        X = self.encode(as_table(table))
        band = self.conformal_.predict_interval(X)
        lower, upper = (host(end).reshape(len(X), -1) + self.offset_ for end in (band.lower, band.upper))
        return lower, upper

    def score(self, table: object, y: object = None) -> float:
        """Return the coefficient of determination on the rows whose targets are known.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            Inputs and targets.
        y : None
            Ignored.

        Returns
        -------
        score : float
            At most 1.
        """
        return self.evaluate(table).r2

    def evaluate(self, table: object) -> Scores:
        """Return the scores on the rows whose targets are known, compared with those of the mean.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            Inputs and targets.

        Returns
        -------
        scores : Scores
            Number of rows, coefficient of determination and errors.
        """
        X, Y, _ = self.sample(table)
        return self._scores(X, Y)

    def predict_linear(self, X: np.ndarray) -> np.ndarray:
        """Return the predictions of a ridge regression on the training rows, as a baseline.

        Parameters
        ----------
        X : array of shape (m, d)
            Encoded inputs.

        Returns
        -------
        y : array of shape (m, n_targets)
            One column for each target.
        """
        coef, intercept = self._linear
        return np.asarray(X @ coef + intercept)

    def sample(self, table: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the encoded inputs, the targets and the row numbers of the rows of a table that can be scored.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            Inputs and targets.

        Returns
        -------
        X : array of shape (m, d)
            Encoded inputs.
        Y : array of shape (m, n_targets)
            The targets.
        rows : array of int of shape (m,)
            Row numbers, counting from 1.
        """
        check_is_fitted(self)
        table = as_table(table)
        Y = self._targets(table)
        kept = np.flatnonzero(self._left_out(table, self.input_names_, Y).kept)
        if not len(kept):
            raise ValueError(f"{table.name} has no row with known targets.")
        return self.encode(table.take(kept)), Y[kept], table.numbers[kept]

    def encode(self, table: object) -> np.ndarray:
        """Return the encoded inputs, (m, d).

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            The input columns.

        Returns
        -------
        X : array of shape (m, d)
            Numbers, standardised if ``scale=True``, and zeros and ones.
        """
        table = as_table(table)
        X = np.hstack([column.encode(table) for column in self.columns_])
        return X if X.dtype.kind == "f" else X.astype(np.float64)

    def input_notes(self, table: object) -> list[str]:
        """Return what ``encode`` assumes about a table: missing values, and text that no training row has.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            The input columns.

        Returns
        -------
        notes : list of str
            One line for each column concerned.
        """
        table = as_table(table)
        return [note for column in self.columns_ for note in column.notes(table)]

    def range_notes(self, table: object) -> list[str]:
        """Return which numbers and dates of a table lie outside the range of the training rows.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            The input columns.

        Returns
        -------
        notes : list of str
            One line that names columns and rows, or nothing.
        """
        return range_notes(self.columns_, as_table(table))

    def comparison_notes(self, table: object) -> list[str]:
        """Return the rows that ``sample`` leaves out, and what ``encode`` assumes about the others.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            Inputs and targets.

        Returns
        -------
        notes : list of str
            One line for each reason and for each column concerned.
        """
        table = as_table(table)
        left_out = self._left_out(table, self.input_names_, self._targets(table))
        return [*left_out.notes(), *self.input_notes(table.take(np.flatnonzero(left_out.kept)))]

    def _fitted(
        self, X: np.ndarray, Y: np.ndarray, labels: np.ndarray | None, weights: np.ndarray | None
    ) -> tuple[BaseEstimator, ConformalRegressor | None]:
        """Return the fitted estimator and, if there is one, the fitted model of the intervals."""
        Y = Y if self.curves else Y - self.offset_
        targets = Y[:, 0] if Y.shape[1] == 1 and not self.curves else Y
        arguments: dict[str, Any] = {"grid": self.grid_} if self.curves else {}
        arguments |= {} if weights is None else {"sample_weight": weights}
        return fitted(self.estimator, X, targets, labels, arguments)

    def _output_names(self, *args: Any, **kwargs: Any) -> Sequence[object]:
        return self.target_names_

    def _targets(self, table: Table) -> np.ndarray:
        return np.column_stack([numbers_of(table, table.known(name, "targets")) for name in self.target_names_])

    def _predict(self, X: np.ndarray) -> np.ndarray:
        predicted = host(with_arrays(self.estimator_).predict(X)).reshape(len(X), -1)
        return predicted + self.offset_.astype(predicted.dtype)

    def _scores(self, X: np.ndarray, Y: np.ndarray) -> Scores:
        grid = self.estimator_.grid_ if self.curves else None
        return Scores.of(Y, self._predict(X), self.target_mean_, grid, self.predict_linear(X))

    def _inputs(self, table: Table) -> list[str]:
        """Return the names of the input columns."""
        away = {*self.target_names_, *table.select(self.drop, "drop")}
        named = list(table.columns) if self.inputs is None else table.select(self.inputs, "inputs")
        both = [name for name in named if name in self.target_names_]
        if both and self.inputs is not None:
            raise ValueError(f"The column {both[0]!r} is an input and a target.")
        return [name for name in named if name not in away]

    def _left_out(self, table: Table, inputs: Sequence[str], Y: np.ndarray) -> LeftOut:
        return LeftOut.of(Y, self.curves, lacking(table, inputs) if self.drop_missing else None)

    def _learn(self, table: Table, inputs: Sequence[str]) -> None:
        """Learn the encoding of the columns that are not constant."""
        learned = {name: learn_column(table, name, self.scale) for name in inputs}
        self.columns_ = [column for column in learned.values() if column is not None]
        self.input_names_ = [column.name for column in self.columns_]
        self.feature_names_ = [name for column in self.columns_ for name in column.feature_names]
        constant = [name for name, column in learned.items() if column is None]
        if constant:
            self.notes_.append(f"constant columns are left out: {', '.join(constant)}")
        self.notes_ += encoding_notes(self.columns_, table)
        if not self.columns_:
            raise ValueError(f"{table.name} has no input column that varies beside the targets.")
