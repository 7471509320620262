"""Regression on tables: named columns become inputs and outputs, and the way they do is part of the model."""

import re
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from fenchel._array import host
from fenchel._check import Options, check_parameter
from fenchel.data.tables import Table, as_table
from fenchel.estimators.base import all_or_nothing

__all__ = ["TableRegressor"]

_POINT = re.compile(r"(.*[_=]|[^\d.+-]*)([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")  # name of a column, with a point
_ROW_NAMES = 20  # a text column of more rows than these, all different, names the rows


class TableRegressor(BaseEstimator):
    """An estimator on the columns of a table.

    Text columns are encoded with one column of zeros and ones for each value, columns that are constant are left out,
    numbers are brought to mean 0 and standard deviation 1. All this is learned by ``fit`` and kept, so that ``predict``
    takes a raw table with the same columns.

    Parameters
    ----------
    estimator : estimator
        ``OperatorKernelRegressor``, ``FunctionalRegressor``, or their versions with cross-validation.
    targets : sequence of str
        Output columns: names, ranges of names ``"y_1:y_9"``, patterns ``"y_*"``.
    inputs : sequence of str or None, default=None
        Input columns, as ``targets``; ``None`` is all others.
    drop : sequence of str, default=()
        Columns to leave out of the inputs.
    curves : bool, default=False
        Whether the targets of a row are one curve, its missing values being points that were not observed. Else rows
        with a missing target are left out.
    center : {"mean", "median", "none"}, default="mean"
        What is subtracted from the targets before the fit and added to predictions. Curves are centred by their
        estimator instead.
    scale : bool, default=True
        Whether input numbers are standardised.
    drop_missing : bool, default=False
        Whether rows with a missing input are left out; else they are an error.

    Attributes
    ----------
    estimator_ : estimator
        The fitted one, which has the certificate.
    target_names_, input_names_ : list of str
        The columns that are used.
    feature_names_ : list of str
        The columns of the matrix that the estimator sees.
    grid_ : array of shape (m,) or None
        Points of the curves: from the table, from numbers in the names of the columns, else [0, 1] in equal steps.
    rows_ : array of int
        Rows of the table that were fitted, the first being 1.
    notes_ : list of str
        What was left out, encoded or taken for granted.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.tables import TableRegressor
    >>> table = {"x": np.arange(20.0), "side": ["left", "right"] * 10, "y": np.sin(np.arange(20.0))}
    >>> model = TableRegressor(OperatorKernelRegressor(), targets=["y"]).fit(table)
    >>> model.feature_names_
    ['x', 'side=left', 'side=right']
    >>> model.predict({"x": [3.0], "side": ["left"]}).shape
    (1, 1)
    """

    def __init__(
        self,
        estimator: Any,
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

    @all_or_nothing
    def fit(self, table: Any, y: Any = None) -> Self:
        """Learn the encoding of the columns, then fit the estimator.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            Inputs and targets.
        y : None
            Not used: the targets are columns.

        Returns
        -------
        self : TableRegressor
            The fitted model.
        """
        check_parameter(type(self).__name__, "center", self.center, Options(("mean", "median", "none")))
        table = as_table(table)
        self.notes_ = list(table.notes)
        self.target_names_ = table.select(self.targets, "targets")
        inputs = self._inputs(table)
        Y = np.column_stack([_numbers(table, name) for name in self.target_names_])
        kept = self._kept(table, inputs, Y)
        self.rows_ = table.numbers[kept]
        if len(self.rows_) < 2:
            raise ValueError(f"{table.name} has {len(self.rows_)} usable rows; at least 2 are needed.")
        used, Y = table.take(np.flatnonzero(kept)), Y[kept]
        self._learn(used, inputs)
        X = self.encode(used)
        Y = Y.astype(X.dtype)
        self.grid_ = self._grid(table) if self.curves else None
        self.offset_ = self._offset(Y)
        self.estimator_ = clone(self.estimator)
        if self.curves:
            self.estimator_.fit(X, Y, grid=self.grid_)
        else:
            centred = Y - self.offset_
            self.estimator_.fit(X, centred[:, 0] if Y.shape[1] == 1 else centred)
        return self

    def predict(self, table: Any) -> np.ndarray:
        """Predict the targets of the rows of a table that has the input columns.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            The input columns, in any order, with others or without.

        Returns
        -------
        y : array of shape (m, n_targets)
            One column for each target.
        """
        check_is_fitted(self)
        X = self.encode(as_table(table))
        found = host(self.estimator_.predict(X)).reshape(len(X), -1)
        return found + self.offset_.astype(found.dtype)

    def score(self, table: Any, y: Any = None) -> float:
        """Return the coefficient of determination on the rows whose targets are known.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            Inputs and targets.
        y : None
            Not used.

        Returns
        -------
        score : float
            At most 1.
        """
        X, Y, _ = self.sample(table)
        if self.curves:
            return float(self.estimator_.score(X, Y, grid=self.grid_))
        return float(self.estimator_.score(X, Y - self.offset_))

    def sample(self, table: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return encoded inputs, targets and row numbers of the rows of a table that can be compared.

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            Inputs and targets.

        Returns
        -------
        X : array of shape (m, d)
            What the estimator sees.
        Y : array of shape (m, n_targets)
            The targets.
        rows : array of int of shape (m,)
            Rows of the table, the first being 1.
        """
        check_is_fitted(self)
        table = as_table(table)
        Y = np.column_stack([_numbers(table, table.known(name, "targets")) for name in self.target_names_])
        missing = np.isnan(Y)
        gone = missing.all(axis=1) if self.curves else missing.any(axis=1)
        if self.drop_missing:
            gone |= _lacking(table, self.input_names_)
        kept = np.flatnonzero(~gone)
        if not len(kept):
            raise ValueError(f"{table.name} has no row with known targets.")
        return self.encode(table.take(kept)), Y[kept], table.numbers[kept]

    def encode(self, table: Any) -> np.ndarray:
        """Return the matrix that the estimator sees, (m, d).

        Parameters
        ----------
        table : Table, DataFrame or mapping of names to columns
            The input columns.

        Returns
        -------
        X : array of shape (m, d)
            Numbers, standardised if so wanted, and zeros and ones for text.
        """
        table = as_table(table)
        blocks = []
        for name in self.input_names_:
            column = table.columns[table.known(name, "inputs")]
            if name in self.categories_:
                blocks.append(_one_hot(column, self.categories_[name], name, table))
            else:
                mean, width = self.scales_[name]
                numbers = _numbers(table, name)
                _refuse_missing(numbers, name, table)
                blocks.append(((numbers - mean) / width).astype(numbers.dtype)[:, None])
        dtypes = [block.dtype for block, name in zip(blocks, self.input_names_, strict=True) if name in self.scales_]
        return np.hstack(blocks).astype(np.result_type(*dtypes) if dtypes else np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def _inputs(self, table: Table) -> list[str]:
        """Return the names of the input columns."""
        away = {*self.target_names_, *table.select(self.drop, "drop")}
        named = list(table.columns) if self.inputs is None else table.select(self.inputs, "inputs")
        both = [name for name in named if name in self.target_names_]
        if both and self.inputs is not None:
            raise ValueError(f"The column {both[0]!r} is an input and a target.")
        return [name for name in named if name not in away]

    def _kept(self, table: Table, inputs: Sequence[str], Y: np.ndarray) -> np.ndarray:
        """Tell which rows are fitted, and note how many are not."""
        missing = np.isnan(Y)
        without = missing.all(axis=1) if self.curves else missing.any(axis=1)
        if without.any():
            what = "no point of the curve" if self.curves else "a missing target"
            self.notes_.append(f"{without.sum()} of {len(Y)} rows have {what} and are left out")
        if self.curves and (missing & ~without[:, None]).any():
            share = np.mean(missing[~without])
            self.notes_.append(f"{share:.0%} of the points of the curves are not observed")
        if not self.drop_missing:
            return ~without
        gone = _lacking(table, inputs) & ~without
        if gone.any():
            self.notes_.append(f"{gone.sum()} of {len(Y)} rows have a missing input and are left out")
        return ~without & ~gone

    def _learn(self, table: Table, inputs: Sequence[str]) -> None:
        """Learn categories and scales of the columns that are not constant."""
        self.input_names_, self.categories_, self.scales_, constant = [], {}, {}, []
        self.feature_names_: list[str] = []
        for name in inputs:
            column = table.columns[name]
            if column.dtype != object:
                column = _numbers(table, name)
            _refuse_missing(column, name, table)
            if len(set(column.tolist())) == 1:
                constant.append(name)
                continue
            self.input_names_.append(name)
            if column.dtype == object:
                self.categories_[name] = _categories(column, name, table)
                self.feature_names_ += [f"{name}={value}" for value in self.categories_[name]]
            else:
                width = float(np.std(column, dtype=np.float64)) if self.scale else 1.0
                self.scales_[name] = (float(np.mean(column, dtype=np.float64)) if self.scale else 0.0, width)
                self.feature_names_.append(name)
        if constant:
            self.notes_.append(f"constant columns are left out: {', '.join(constant)}")
        if self.categories_:
            counts = [f"{name} ({len(values)} values)" for name, values in self.categories_.items()]
            self.notes_.append(f"text columns are encoded, one 0/1 column for each value: {', '.join(counts)}")
        if not self.input_names_:
            raise ValueError(f"{table.name} has no input column that varies beside the targets.")

    def _offset(self, Y: np.ndarray) -> np.ndarray:
        """Return what is subtracted from the targets."""
        if self.curves or self.center == "none":
            return np.zeros(Y.shape[1], dtype=Y.dtype)
        return np.mean(Y, axis=0) if self.center == "mean" else np.median(Y, axis=0)

    def _grid(self, table: Table) -> np.ndarray | None:
        """Return the points of the curves, or None for equal steps."""
        names = self.target_names_
        if table.grid is not None and len(table.grid) == len(names):
            return table.grid
        points = _points_in(names)
        if points is None:
            self.notes_.append("the points of the curves are taken to be equally spaced in [0, 1]")
        else:
            self.notes_.append(f"the points of the curves are those in the names, {points[0]:g} to {points[-1]:g}")
        return points


def _points_in(names: Sequence[str]) -> np.ndarray | None:
    """Return increasing numbers that end the names, after one common beginning or alone, or None."""
    found = [_POINT.fullmatch(name) for name in names]
    beginnings = {match[1] for match in found if match is not None}
    if None in found or len(beginnings) != 1 or len(names) < 2:
        return None
    points = np.array([float(match[2]) for match in found if match is not None])
    return points if np.all(np.diff(points) > 0) else None


def _numbers(table: Table, name: str) -> np.ndarray:
    """Return a column of numbers, or raise with the first entry that is none."""
    column = np.asarray(table.columns[name])
    if column.dtype.kind in "biuf":
        return column if column.dtype in (np.float32, np.float64) else column.astype(np.float64)
    if column.dtype.kind in "Mm":
        raise ValueError(f"The column {name!r} of {table.name} holds dates. Leave it out, or make numbers of them.")
    place = next((i for i, value in enumerate(column) if value is not None and not _is_number(value)), 0)
    raise ValueError(
        f"The column {name!r} of {table.name} must hold numbers. Row {table.numbers[place]} has {column[place]!r}."
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_missing(column: np.ndarray) -> np.ndarray:
    if column.dtype == object:
        return np.array([value is None for value in column])
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def _lacking(table: Table, names: Sequence[str]) -> np.ndarray:
    """Tell which rows have a missing entry in some columns."""
    found = [_is_missing(table.columns[table.known(name, "inputs")]) for name in names]
    return np.any(found, axis=0) if found else np.zeros(len(table), dtype=bool)


def _refuse_missing(column: np.ndarray, name: str, table: Table) -> None:
    missing = np.flatnonzero(_is_missing(column))
    if len(missing):
        raise ValueError(
            f"The input column {name!r} of {table.name} has {len(missing)} missing values, the first in row "
            f"{table.numbers[missing[0]]}. Fill them in, leave the column out, or drop those rows (drop_missing)."
        )


def _categories(column: np.ndarray, name: str, table: Table) -> list[str]:
    """Return the different values of a text column, in order."""
    values = sorted(set(column.tolist()))
    if len(values) == len(column) > _ROW_NAMES:
        raise ValueError(
            f"The text column {name!r} of {table.name} has another value in each row: it names the rows. Leave it out "
            "(drop)."
        )
    return values


def _one_hot(column: np.ndarray, categories: list[str], name: str, table: Table) -> np.ndarray:
    """Return zeros and ones, or raise for a value that the model has not seen."""
    _refuse_missing(column, name, table)
    place = {value: k for k, value in enumerate(categories)}
    values = [str(value) for value in column]
    new = next((i for i, value in enumerate(values) if value not in place), None)
    if new is not None:
        known = ", ".join(map(repr, categories[:8])) + (", ..." if len(categories) > 8 else "")
        raise ValueError(
            f"The column {name!r} of {table.name} has {values[new]!r} in row {table.numbers[new]}, which the model has "
            f"not seen. It knows {known}."
        )
    found = np.zeros((len(values), len(categories)))
    found[np.arange(len(values)), [place[value] for value in values]] = 1.0
    return found
