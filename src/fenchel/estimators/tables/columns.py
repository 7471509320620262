"""Input columns of a table: how each is encoded as features, and notes on what was assumed."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import SupportsFloat

import numpy as np

from fenchel.datasets.tables import Table
from fenchel.estimators.validation import warn_user
from fenchel.exceptions import DataWarning

__all__ = [
    "DateColumn",
    "InputColumn",
    "NumberColumn",
    "TextColumn",
    "encoding_notes",
    "is_missing",
    "lacking",
    "learn_column",
    "numbers_of",
]

_ROW_NAMES = 20  # a text column with more rows than this and mostly distinct values is taken to name the rows
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_DAY = np.timedelta64(1, "D")
_FILLED = "missing values are replaced by the median, and a 0/1 column says where"
_TRUTH = {"true": 1.0, "false": 0.0}


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

    @classmethod
    def learn(cls, name: str, values: np.ndarray, scale: bool) -> "NumberColumn":
        """Learn the encoding from training values."""
        missing = np.isnan(values)
        median = float(np.median(values[~missing]))
        filled = np.where(missing, median, values).astype(np.float64)
        shift, width = (float(np.mean(filled)), float(np.std(filled)) or 1.0) if scale else (0.0, 1.0)
        return cls(name, median, shift, width, bool(missing.any()))

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

    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return the number of missing values, if any."""
        count = _count_missing(table, self.name)
        return [(_FILLED, f"{count} missing")] if count else []

    def notes(self, table: Table) -> list[str]:
        """Note the rows with missing values, if any."""
        places = np.flatnonzero(is_missing(table.columns[table.known(self.name, "inputs")]))
        where = _rows(table, places)
        return [f"{self.name}: missing in {where}; the median of the training rows stands in"] if len(places) else []


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
        """Return the days and, if there is one, the indicator of missing values."""
        return self.days.encode_numbers((_dates_of(table, self.name) - np.datetime64(self.origin)) / _DAY)

    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return the first date, and the number of missing dates, if any."""
        first = self.origin.removesuffix(".000000").removesuffix("T00:00:00")
        return [("dates are counted in days since the first one", first), *self.days.encoding(table)]

    def notes(self, table: Table) -> list[str]:
        """Note the rows with missing dates, if any."""
        return self.days.notes(table)


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
        return [f"{self.name}: no training row has the value in {_rows(table, new)}; it counts as other ({shown})"]

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
    if column.dtype == object and not all(map(_is_number, column[~missing])):
        spoiled = _spoiled_numbers(table, name)
        _refuse_row_names(table, name, spoiled)
        if spoiled:
            warn_user(f"{spoiled} Until then it is encoded as text.", DataWarning, "numbers-and-text")
        return TextColumn.learn(name, column.tolist())
    return NumberColumn.learn(name, numbers_of(table, name), scale)


def numbers_of(table: Table, name: str) -> np.ndarray:
    """Return a column of finite numbers, NaN where missing; raise at the first entry that is not a number."""
    column = table.columns[table.known(name, "inputs")]
    if column.dtype.kind == "m":
        return np.asarray(column / _DAY)
    if column.dtype.kind == "M":
        raise ValueError(f"The column {name!r} of {table.name} must hold numbers. It holds dates.")
    if column.dtype == object:
        bad = np.flatnonzero([value is not None and not _is_number(value) for value in column])
        if len(bad):
            raise ValueError(
                f"The column {name!r} of {table.name} must hold numbers. Row {table.numbers[bad[0]]} has "
                f"{column[bad[0]]!r}."
            )
        column = np.array([np.nan if value is None else float(value) for value in column])
    infinite = np.flatnonzero(np.isinf(column))
    if len(infinite):
        raise ValueError(
            f"The column {name!r} of {table.name} is infinite in {_rows(table, infinite)}. Correct it, or leave the "
            "cell empty if the value is missing."
        )
    return column


def encoding_notes(columns: Sequence[InputColumn], table: Table) -> list[str]:
    """Return how columns are encoded, one line for each kind of encoding."""
    columns_of: dict[str, list[str]] = {}
    for column in columns:
        for way, detail in column.encoding(table):
            columns_of.setdefault(way, []).append(f"{column.name} ({detail})")
    return [f"{way}: {', '.join(details)}" for way, details in columns_of.items()]


def lacking(table: Table, names: Sequence[str]) -> np.ndarray:
    """Return a mask of the rows with a missing entry in any of the columns."""
    missing = [is_missing(table.columns[table.known(name, "inputs")]) for name in names]
    return np.any(missing, axis=0) if missing else np.zeros(len(table), dtype=bool)


def is_missing(column: np.ndarray) -> np.ndarray:
    """Return a mask of the missing entries of a column."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.asarray(np.isnat(column) if column.dtype.kind in "Mm" else np.isnan(column))


def _count_missing(table: Table, name: str) -> int:
    return int(is_missing(table.columns[table.known(name, "inputs")]).sum())


def _rows(table: Table, places: np.ndarray) -> str:
    """Describe rows by number: a single row, or the count and the first row."""
    numbers = table.numbers[places]
    return f"{len(numbers)} rows, the first {numbers[0]}" if len(numbers) > 1 else f"row {''.join(map(str, numbers))}"


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


def _is_number(value: SupportsFloat | str) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _as_number(level: str | None) -> float | str | None:
    """Return the number or truth value that a level stands for, else the level itself."""
    if level is None:
        return None
    return float(level) if _is_number(level) else _TRUTH.get(level.lower(), level)


def _spoiled_numbers(table: Table, name: str) -> str:
    """Return what is wrong with a text column if most of its cells are numbers, else an empty string."""
    column = table.columns[name]
    known = np.flatnonzero(~is_missing(column))
    others = [i for i in known if not _is_number(column[i])]
    if 2 * len(others) >= len(known):
        return ""
    cells = f"{len(others)} other cell{'s' if len(others) > 1 else ''}"
    return (
        f"The column {name!r} of {table.name} has {len(known) - len(others)} numbers and {cells}, such as "
        f"{column[others[0]]!r} in row {table.numbers[others[0]]}. Write a number there, or leave the cell empty."
    )


def _refuse_row_names(table: Table, name: str, spoiled: str) -> None:
    """Raise if all values differ, or most of those of a spoiled column of numbers; warn if most of them differ."""
    counts = Counter(table.columns[name].tolist())
    alone = sum(count == 1 for count in counts.values())
    if len(table) <= _ROW_NAMES or 2 * alone <= len(table):
        return
    if spoiled:
        raise ValueError(spoiled)
    told = f"The text column {name!r} of {table.name} has a value of its own in {alone} of {len(table)} rows"
    if alone == len(table):
        raise ValueError(
            f"{told}: it names the rows. Leave it out (drop). If it holds dates, write them as 2026-01-31."
        )
    warn_user(f"{told}. If it names the rows, leave it out (drop).", DataWarning, "row-names")
