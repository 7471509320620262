"""Tables in files: CSV and Parquet through pandas, NPZ through NumPy, as named columns of numbers or text."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from numbers import Real
from pathlib import Path

import numpy as np

from fenchel._array import Inputs, Outputs
from fenchel._check import require
from fenchel.data.fdata import classes_of
from fenchel.data.frames import column_names

__all__ = ["Table", "as_table", "read_table"]

_SEPARATORS = (",", ";", "\t", "|")
_GRIDS = ("t", "grid")  # arrays of an NPZ file that hold the points of curves
# strings for missing values besides those that pandas knows ("", NA, N/A, nan, null, None, ...)
_MISSING = ["?", "-", "--", ".", "na"]
_COMMA, _POINT = (re.compile(rf"[+-]?\d*{mark}\d+([eE][+-]?\d+)?") for mark in (",", r"\."))
_TRUE, _FALSE = ["yes", "Yes", "YES"], ["no", "No", "NO"]  # besides true and false
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8-sig"))  # first bytes and their encoding


@dataclass(frozen=True)
class Table:
    """Columns of equal length, each of numbers (missing: NaN), dates (missing: NaT) or text (missing: None).

    Attributes
    ----------
    columns : dict of str to array of shape (n,)
        In the order of the file.
    name : str
        Origin of the table, for messages.
    grid : array or None
        Points of curves, if the file contains them.
    notes : list of str
        Assumptions made while reading.
    rows : array of int of shape (n,) or None
        Row numbers in the file, if these are only some of its rows.

    Examples
    --------
    >>> from fenchel.datasets import as_table
    >>> table = as_table({"x": [1.0, 2.0], "side": ["left", "right"]})
    >>> len(table), list(table.columns)
    (2, ['x', 'side'])
    """

    columns: dict[str, np.ndarray]
    name: str = "the table"
    grid: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def take(self, rows: np.ndarray) -> "Table":
        """Return the selected rows."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Table(columns, self.name, self.grid, self.notes, self.numbers[rows])

    @property
    def numbers(self) -> np.ndarray:
        """The number of each row, counting from 1 for the first row of a file."""
        return np.arange(1, len(self) + 1) if self.rows is None else self.rows

    def select(self, patterns: Iterable[str], argument: str) -> list[str]:
        """Return the names matched by selectors, in the order of the table for ranges and patterns.

        A selector is a name, a range of names ``"y_1:y_9"``, a pattern ``"y_*"``, or several of these with commas.
        """
        names: dict[str, None] = {}
        for pattern in patterns:
            for part in [pattern] if pattern in self.columns else [part.strip() for part in pattern.split(",")]:
                names.update(dict.fromkeys(self._meant(part, argument)))
        return list(names)

    def _meant(self, part: str, argument: str) -> list[str]:
        names = list(self.columns)
        if part in self.columns:
            return [part]
        first, colon, last = part.partition(":")
        if colon and (first in self.columns or last in self.columns):
            low, high = names.index(self.known(first, argument)), names.index(self.known(last, argument))
            if low > high:
                raise ValueError(f"{argument}: the range {part!r} is empty: {last!r} comes before {first!r}.")
            return names[low : high + 1]
        matching = [name for name in names if fnmatchcase(name, part)]
        return matching or [self.known(part, argument)]

    def known(self, name: str, argument: str) -> str:
        """Return the name of a column, or raise with a suggestion."""
        if name in self.columns:
            return name
        near = get_close_matches(name, self.columns, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        why = "".join(f" ({note})" for note in self.notes if repr(name) in note)
        have = _listed(list(self.columns))
        raise ValueError(f"{argument}: {self.name} has no column {name!r}{why}.{hint} It has {have}.")


def read_table(path: str | Path) -> Table:
    """Read a table from a CSV, NPZ or Parquet file.

    Parameters
    ----------
    path : str or path
        The file; its suffix determines the format. The separator of a CSV file (comma, semicolon, tab or bar) is
        detected from its first line; byte-order marks and Windows line endings are handled. An empty cell and ``?``,
        ``NA``, ``N/A``, ``-``, ``.``, ``null`` and ``nan`` are missing values. An array (n, d) of an NPZ file becomes
        the columns ``name_0`` to ``name_{d-1}``; arrays ``t`` or ``grid`` of another length are the points of curves.

    Returns
    -------
    table : Table
        The columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from fenchel.datasets.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "data.npz", X=np.eye(3), y=np.ones(3))
    ...     table = read_table(Path(folder) / "data.npz")
    >>> list(table.columns)
    ['X_0', 'X_1', 'X_2', 'y']
    """
    file = Path(path)
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".txt": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise ValueError(f"{path} has the suffix {file.suffix!r}. A table is a {', '.join(readers)} file.")
    if not file.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if file.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    table = reader(file)
    if not table.columns or len(table) == 0:
        raise ValueError(f"{path} has no rows.")
    return table


def as_table(value: Outputs, name: str = "the table") -> Table:
    """Convert a DataFrame or a mapping of names to columns to a table.

    Parameters
    ----------
    value : Table, DataFrame or mapping of str to array
        The data.
    name : str, default="the table"
        Name of the table in error messages.

    Returns
    -------
    table : Table
        ``value`` itself if it is a table.

    Examples
    --------
    >>> from fenchel.datasets import as_table
    >>> as_table({"x": [1.0, 2.0], "side": ["left", "right"]}).columns["x"].tolist()
    [1.0, 2.0]
    """
    if isinstance(value, Table):
        return value
    if "DataFrame" in classes_of(value, "pandas"):
        return _from_frame(value, name)
    if (names := column_names(value)) is not None:
        value = {name: value[name] for name in names}  # polars and pyarrow
    arrays = {str(key): np.asarray(column) for key, column in dict(value).items()}
    columns = {key: _plain(array, key, name) for key, array in arrays.items()}
    return Table(columns, name, None, _truth_notes(key for key, array in arrays.items() if array.dtype == bool))


def _text_of(file: Path) -> str:
    """Return the text of a CSV file, or raise."""
    data = file.read_bytes()
    encoding = next(name for mark, name in _MARKS if data.startswith(mark))
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not UTF-8 text. Save it as CSV in UTF-8.") from None
    if "\0" in text:
        raise ValueError(f"{file} contains NUL characters: it is damaged, or not UTF-8 text. Save it as CSV in UTF-8.")
    if not text.strip():
        raise ValueError(f"{file} is empty.")
    return text.lstrip()


def _read_csv(file: Path) -> Table:
    pandas = require("pandas", extra="pandas")
    text = _text_of(file)
    lines = text.splitlines()
    try:
        separator = max(_SEPARATORS, key=lambda separator: _count(lines[0], separator))
        decimal = "," if separator != "," and _has_decimal_commas(lines[1:50], separator) else "."
    except csv.Error as error:
        raise ValueError(f"{file} is not a regular table: its first lines cannot be read ({error}).") from None
    notes = [] if separator == "," else [f"columns are separated by {separator!r}"]
    notes += ["numbers have a decimal comma"] if decimal == "," else []
    header = [name.strip() for name in next(csv.reader([lines[0]], delimiter=separator))]
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise ValueError(f"{file} has more than one column {twice[0]!r}. Give each column a unique name.")
    try:
        frame = pandas.read_csv(
            io.StringIO(text),
            sep=separator,
            decimal=decimal,
            skipinitialspace=True,
            index_col=False,
            na_values=_MISSING,
            true_values=_TRUE,
            false_values=_FALSE,
        )
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise ValueError(f"{file} is not a regular table: {reason}.") from None
    table = _from_frame(frame, str(file), notes)
    if decimal == ",":  # pandas reads no number of a column in which one cell is text
        table.columns.update({name: _with_points(column) for name, column in table.columns.items()})
    return table


def _read_parquet(file: Path) -> Table:
    pandas = require("pandas", extra="pandas")
    require("pyarrow", extra="parquet")
    try:
        frame = pandas.read_parquet(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} is not a Parquet file: {str(error).splitlines()[0]}") from None
    return _from_frame(frame, str(file))


def _read_npz(file: Path) -> Table:
    try:
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise ValueError(f"{file} is not an NPZ file of plain arrays: {str(error).splitlines()[0]}") from None
    length = max((len(array) for array in arrays.values() if array.ndim == 2), default=None)
    if length is None:
        length = max((len(array) for array in arrays.values() if array.ndim == 1), default=0)
    columns: dict[str, np.ndarray] = {}
    notes: list[str] = []
    grid = None
    for name, array in arrays.items():
        if array.ndim == 1 and name in _GRIDS and len(array) != length:
            grid = array.astype(np.float64)
        elif array.ndim > 2:
            raise ValueError(
                f"{file}: the array {name!r} has shape {array.shape}; a table takes ({length},) or ({length}, d). Use "
                "the library itself for other data."
            )
        elif array.ndim == 0 or len(array) != length:  # metadata such as names or a date
            notes.append(f"the array {name!r} of shape {array.shape} does not have {length} rows and is ignored")
        elif array.ndim == 1:
            columns[name] = _plain(array, name, str(file))
        else:
            columns.update({f"{name}_{k}": _plain(array[:, k], name, str(file)) for k in range(array.shape[1])})
    return Table(columns, str(file), grid, notes)


def _from_frame(frame: Inputs, name: str, notes: Sequence[str] = ()) -> Table:
    """Return the columns of a DataFrame: numbers with NaN, dates with NaT, or text with None."""
    columns = {str(key).strip(): frame[key] for key in frame.columns}
    truth = [key for key, column in columns.items() if _is_truth(column)]
    plain = {key: _from_series(column) for key, column in columns.items()}
    return Table(plain, name, None, [*notes, *_truth_notes(truth)])


def _from_series(column: Inputs) -> np.ndarray:
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        single = column.dtype == np.float32
        return np.asarray(column.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan))
    if kind in "Mm":
        has_zone = getattr(column.dtype, "tz", None) is not None
        return np.asarray((column.dt.tz_convert(None) if has_zone else column).to_numpy())
    return _objects(column.to_numpy(dtype=object), column.isna().to_numpy())


def _is_truth(column: Inputs) -> bool:
    """Whether a Series holds booleans, possibly with missing values."""
    values = column.dropna()
    return len(values) > 0 and all(isinstance(value, bool | np.bool_) for value in values)


def _truth_notes(names: Iterable[str]) -> list[str]:
    listed = ", ".join(names)
    return [f"true and false are read as 1 and 0: {listed}"] if listed else []


def _plain(array: np.ndarray, name: str, file: str) -> np.ndarray:
    """Return a numeric column as floats, a text column as objects."""
    if array.dtype.kind in "biuf":
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    if array.dtype.kind in "US":
        return array.astype(str).astype(object)
    if array.dtype.kind in "Mm":
        return array
    if array.dtype.kind == "O":
        return _objects(array, np.array([value is None or value != value for value in array], dtype=bool))
    raise ValueError(f"{file}: the array {name!r} has dtype {array.dtype}, neither real numbers nor text.")


def _objects(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return objects as numbers if all are numbers or booleans, else as text."""
    if all(isinstance(value, Real | np.bool_) for value in values[~missing]):
        return np.array([np.nan if gone else float(value) for value, gone in zip(values, missing, strict=True)])
    return np.array([None if gone else str(v).strip() for v, gone in zip(values, missing, strict=True)], dtype=object)


def _count(line: str, separator: str) -> int:
    """Return how often a separator occurs outside quotes."""
    return len(next(csv.reader([line], delimiter=separator))) - 1


def _has_decimal_commas(lines: Sequence[str], separator: str) -> bool:
    """Whether some cells are numbers with a decimal comma, and none is a number with a decimal point."""
    cells = [cell.strip() for row in csv.reader(lines, delimiter=separator) for cell in row]
    return any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))


def _with_points(column: np.ndarray) -> np.ndarray:
    """Return a text column with decimal points for decimal commas if most of its cells are numbers, else as it is."""
    if column.dtype != object:
        return column
    points = [
        None if value is None else value.replace(",", ".") if _COMMA.fullmatch(value) else value for value in column
    ]
    known = [value for value in points if value is not None]
    is_numbers = 2 * sum(bool(_POINT.fullmatch(value) or value.isdecimal()) for value in known) > len(known)
    return np.array(points, dtype=object) if is_numbers else column


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
