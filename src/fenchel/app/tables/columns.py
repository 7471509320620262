"""Input columns of a table: how each is encoded as features, and notes on what was assumed."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from fenchel.app.tables.cells import TRUTH, check_text, is_missing, is_number, is_truth, text_cells, which_rows
from fenchel.datasets.tables import Table

__all__ = [
    "DateColumn",
    "InputColumn",
    "NumberColumn",
    "TextColumn",
    "encoding_notes",
    "lacking",
    "learn_column",
    "numbers_of",
    "range_notes",
]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_DAY = np.timedelta64(1, "D")  # the unit in which dates become numbers
_TRUTH_READ = "true and false, yes and no are read as 1 and 0"
_FILLED = "missing values are replaced by the median, and a 0/1 column says where"


class InputColumn(ABC):
    """An input column with the encoding learned from the training rows."""

    name: str

    @property
    @abstractmethod
    def feature_names(self) -> list[str]:
        """Names of the features."""

    @abstractmethod
    def encode(self, table: Table) -> np.ndarray:
        """Return the features, (m, k)."""

    @abstractmethod
    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return the kinds of encoding that are used, each with its details for this column."""

    @abstractmethod
    def notes(self, table: Table) -> list[str]:
        """Return what was assumed about rows that the model was not fitted to."""

    def outside(self, table: Table) -> np.ndarray:
        """Return the places of the rows outside the training range, if the column has one."""
        return np.empty(0, dtype=int)


@dataclass(frozen=True)
class NumberColumn(InputColumn):
    """A column of numbers, optionally standardised, with missing values replaced by the median.

    If a training row has a missing value, a second feature is 1 where values are missing and 0 elsewhere.
    """

    name: str
    median: float
    shift: float
    width: float
    has_indicator: bool
    low: float = -np.inf  # range of the training values; models of earlier releases have none
    high: float = np.inf

    @classmethod
    def learn(cls, name: str, values: np.ndarray, scale: bool) -> "NumberColumn":
        """Learn the encoding from training values."""
        missing = np.isnan(values)
        median = float(np.median(values[~missing]))
        filled = np.where(missing, median, values).astype(np.float64)
        shift, width = (float(np.mean(filled)), float(np.std(filled)) or 1.0) if scale else (0.0, 1.0)
        return cls(name, median, shift, width, bool(missing.any()), float(np.min(filled)), float(np.max(filled)))

    @property
    def feature_names(self) -> list[str]:
        """The name and, if there is one, that of the indicator of missing values."""
        return [self.name, f"{self.name} is missing"] if self.has_indicator else [self.name]

    def encode(self, table: Table) -> np.ndarray:
        """Return the numbers and, if there is one, the indicator of missing values."""
        return self.encode_numbers(numbers_of(table, self.name))

    def encode_numbers(self, values: np.ndarray) -> np.ndarray:
        """Return the features of numbers that have been read."""
        missing = np.isnan(values)
        filled = (np.where(missing, self.median, values) - self.shift) / self.width
        features = np.column_stack([filled, missing]) if self.has_indicator else filled[:, None]
        return features.astype(values.dtype)

    def outside(self, table: Table) -> np.ndarray:
        """Return the rows whose number is outside the training range."""
        return self.outside_numbers(numbers_of(table, self.name))

    def outside_numbers(self, values: np.ndarray) -> np.ndarray:
        """Return the places of numbers outside the training range; a missing one is not outside."""
        return np.flatnonzero((values < self.low) | (values > self.high))

    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return how many values are missing, if any is."""
        column = table.columns[table.known(self.name, "inputs")]
        truth = [(_TRUTH_READ, "text")] if is_truth(column) else []
        count = int(is_missing(column).sum())
        return [*truth, (_FILLED, f"{count} missing")] if count else truth

    def notes(self, table: Table) -> list[str]:
        """Return which values are missing, if any is."""
        places = np.flatnonzero(is_missing(table.columns[table.known(self.name, "inputs")]))
        where = which_rows(table, places)
        return [f"{self.name}: missing in {where}; replaced by the training median"] if len(places) else []


@dataclass(frozen=True)
class DateColumn(InputColumn):
    """A column of dates or times, encoded as days since the earliest training row."""

    origin: str
    days: NumberColumn

    @classmethod
    def learn(cls, name: str, values: np.ndarray, scale: bool) -> "DateColumn":
        """Learn the encoding from training dates."""
        origin = np.nanmin(values)
        return cls(str(origin), NumberColumn.learn(name, (values - origin) / _DAY, scale))

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the column."""
        return self.days.name

    @property
    def feature_names(self) -> list[str]:
        """Names of the features of the days."""
        return self.days.feature_names

    def encode(self, table: Table) -> np.ndarray:
        """Return the days as numbers, and where they were missing."""
        return self.days.encode_numbers(self._days(table))

    def outside(self, table: Table) -> np.ndarray:
        """Return the rows whose date is outside the training range."""
        return self.days.outside_numbers(self._days(table))

    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return the first date, and the number of missing dates, if any."""
        first = self.origin.removesuffix(".000000").removesuffix("T00:00:00")
        return [("dates are counted in days since the first one", first), *self.days.encoding(table)]

    def notes(self, table: Table) -> list[str]:
        """Note the rows with missing dates, if any."""
        return self.days.notes(table)

    def _days(self, table: Table) -> np.ndarray:
        return np.asarray((_dates_of(table, self.name) - np.datetime64(self.origin)) / _DAY)


@dataclass(frozen=True)
class TextColumn(InputColumn):
    """A text column, one-hot encoded; a missing value is a level of its own if a training row has one.

    A value that no training row has is 0 in all features.
    """

    name: str
    levels: list[str | None]

    @classmethod
    def learn(cls, name: str, values: list[str | None]) -> "TextColumn":
        """Learn the encoding from training values."""
        return cls(name, sorted(set(values), key=lambda value: (value is None, str(value))))

    @property
    def feature_names(self) -> list[str]:
        """One name for each level."""
        return [f"{self.name} is missing" if level is None else f"{self.name}={level}" for level in self.levels]

    def encode(self, table: Table) -> np.ndarray:
        """Return the one-hot encoding."""
        places = self._places(table)
        known = np.flatnonzero(places >= 0)
        features = np.zeros((len(places), len(self.levels)), dtype=np.uint8)
        features[known, places[known]] = 1
        return features

    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return the number of levels, and the number of missing values, if any."""
        ways = [("text columns are encoded, one 0/1 column for each value", f"{len(self.levels)} values")]
        count = _count_missing(table, self.name)
        return [*ways, ("missing text is a value of its own", f"{count} missing")] if count else ways

    def notes(self, table: Table) -> list[str]:
        """Note the values that no training row has."""
        new = np.flatnonzero(self._places(table) < 0)
        if not len(new):
            return []
        counts = Counter("missing" if v is None else repr(str(v)) for v in table.columns[self.name][new])
        shown = ", ".join(value for value, _ in counts.most_common(5)) + (", ..." if len(counts) > 5 else "")
        first = f"{shown}, first in row {table.numbers[new[0]]}"
        who = f"{len(new)} rows have" if len(new) > 1 else f"row {table.numbers[new[0]]} has"
        return [
            f"{self.name}: {who} a value not seen in training ({first if len(new) > 1 else shown}); treated as 'other'"
        ]

    def _places(self, table: Table) -> np.ndarray:
        """Return the index of each value among the levels, -1 for an unknown value."""
        column = table.columns[table.known(self.name, "inputs")]
        place: dict[object, int] = {level: k for k, level in enumerate(self.levels)}
        values = column.tolist()
        if column.dtype != object:  # this table has only numbers: compare them with the levels that are numbers
            place = {_as_number(level): k for k, level in enumerate(self.levels)}
            values = [None if gone else value for value, gone in zip(values, is_missing(column), strict=True)]
        return np.array([place.get(value, -1) for value in values], dtype=int)


def learn_column(table: Table, name: str, scale: bool) -> InputColumn | None:
    """Learn the encoding of a column from the training rows; return ``None`` if the column is constant."""
    column = table.columns[name]
    missing = is_missing(column)
    if missing.all() or (not missing.any() and len(set(column.tolist())) == 1):
        return None
    if column.dtype.kind == "M" or (column.dtype == object and all(map(_is_date, column[~missing]))):
        return DateColumn.learn(name, _dates_of(table, name), scale)
    if column.dtype == object and not is_truth(column) and not all(map(is_number, column[~missing])):
        check_text(table, name)
        return TextColumn.learn(name, column.tolist())
    return NumberColumn.learn(name, numbers_of(table, name), scale)


def numbers_of(table: Table, name: str) -> np.ndarray:
    """Return a column of finite numbers, NaN where missing; raise at the first entry that is not a number."""
    column = table.columns[table.known(name, "inputs")]
    if column.dtype.kind == "m":
        return np.asarray(column / _DAY)
    if column.dtype.kind == "M":
        raise ValueError(f"The column {name!r} of {table.name} must hold numbers. It holds dates.")
    if is_truth(column):
        return np.array([np.nan if value is None else TRUTH[value.lower()] for value in column])
    if column.dtype == object:
        bad = np.flatnonzero([value is not None and not is_number(value) for value in column])
        if len(bad):
            raise ValueError(
                f"The column {name!r} of {table.name} must hold numbers. It has {text_cells(table, name, bad)}"
            )
        column = np.array([np.nan if value is None else float(value) for value in column])
    infinite = np.flatnonzero(np.isinf(column))
    if len(infinite):
        raise ValueError(
            f"The column {name!r} of {table.name} is infinite in {which_rows(table, infinite)}. Correct it, or leave "
            "the cell empty if the value is missing."
        )
    return column


def encoding_notes(columns: Sequence[InputColumn], table: Table) -> list[str]:
    """Return how columns are encoded, one line for each kind of encoding."""
    columns_of: dict[str, list[str]] = {}
    for column in columns:
        for way, detail in column.encoding(table):
            columns_of.setdefault(way, []).append(f"{column.name} ({detail})")
    return [f"{way}: {', '.join(details)}" for way, details in columns_of.items()]


def range_notes(columns: Sequence[InputColumn], table: Table) -> list[str]:
    """Return in one line which columns have rows outside their training range; nothing if none has."""
    places = {column.name: column.outside(table) for column in columns}
    parts = [f"{name} in {which_rows(table, rows)}" for name, rows in places.items() if len(rows)]
    return [f"outside the range of the training rows: {', '.join(parts)}"] if parts else []


def lacking(table: Table, names: Sequence[str]) -> np.ndarray:
    """Return a mask of the rows with a missing entry in any of the columns."""
    missing = [is_missing(table.columns[table.known(name, "inputs")]) for name in names]
    return np.any(missing, axis=0) if missing else np.zeros(len(table), dtype=bool)


def _count_missing(table: Table, name: str) -> int:
    return int(is_missing(table.columns[table.known(name, "inputs")]).sum())


def _dates_of(table: Table, name: str) -> np.ndarray:
    """Return a column of dates and times in microseconds, NaT where missing; raise if an entry is not a date."""
    column = table.columns[table.known(name, "inputs")]
    if column.dtype.kind == "M":
        return column.astype("datetime64[us]")
    missing = is_missing(column)
    bad = [i for i in np.flatnonzero(~missing) if not _is_date(column[i])]
    if bad:
        raise ValueError(
            f"The column {name!r} of {table.name} must hold dates such as 2026-01-31 or 2026-01-31T12:30. Row "
            f"{table.numbers[bad[0]]} has {column[bad[0]]!r}."
        )
    dates = [None if gone else _date(value) for value, gone in zip(column, missing, strict=True)]
    return np.array(dates, dtype="datetime64[us]")


def _date(text: str) -> datetime:
    """Parse an ISO date or time; a time with an offset is converted to UTC."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _is_date(value: object) -> bool:
    try:
        return bool(_DATE.fullmatch(str(value))) and _date(str(value)) is not None
    except ValueError:
        return False


def _as_number(level: str | None) -> float | str | None:
    """Return the number or truth value that a level stands for, else the level itself."""
    if level is None:
        return None
    return float(level) if is_number(level) else TRUTH.get(level.lower(), level)
