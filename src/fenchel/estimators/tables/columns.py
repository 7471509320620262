"""Input columns of a table: what each becomes in the matrix that an estimator sees, and what is noted about it."""

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

_ROW_NAMES = 20  # a text column of more rows than these, most of them different, names the rows
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_DAY = np.timedelta64(1, "D")
_TRUTH_READ = "true and false, yes and no are read as 1 and 0"
_FILLED = "missing values are replaced by the median, and a 0/1 column says where"
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


class InputColumn(ABC):
    """An input column as the training rows define it."""

    name: str

    @property
    @abstractmethod
    def feature_names(self) -> list[str]:
        """Names of the columns of the matrix."""

    @abstractmethod
    def encode(self, table: Table) -> np.ndarray:
        """Return the columns of the matrix, (m, k)."""

    @abstractmethod
    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return each way in which training rows are changed, and its detail for this column."""

    @abstractmethod
    def notes(self, table: Table) -> list[str]:
        """Return what had to be assumed about rows that the model was not fitted to."""


@dataclass(frozen=True)
class NumberColumn(InputColumn):
    """A column of numbers: standardised; a missing value becomes the median, and a column of 0 and 1 says where.

    That second column is there if a training row had a missing value.
    """

    name: str
    median: float
    shift: float
    width: float
    has_indicator: bool

    @classmethod
    def learn(cls, name: str, values: np.ndarray, scale: bool) -> "NumberColumn":
        """Return the column that training values define."""
        missing = np.isnan(values)
        median = float(np.median(values[~missing]))
        filled = np.where(missing, median, values).astype(np.float64)
        shift, width = (float(np.mean(filled)), float(np.std(filled)) or 1.0) if scale else (0.0, 1.0)
        return cls(name, median, shift, width, bool(missing.any()))

    @property
    def feature_names(self) -> list[str]:
        """The name, and that of the column that says where a value is missing."""
        return [self.name, f"{self.name} is missing"] if self.has_indicator else [self.name]

    def encode(self, table: Table) -> np.ndarray:
        """Return the numbers, standardised if the model does so, and where they were missing."""
        return self.encode_numbers(numbers_of(table, self.name))

    def encode_numbers(self, values: np.ndarray) -> np.ndarray:
        """Return the features of numbers that are read already."""
        missing = np.isnan(values)
        filled = (np.where(missing, self.median, values) - self.shift) / self.width
        features = np.column_stack([filled, missing]) if self.has_indicator else filled[:, None]
        return features.astype(values.dtype)

    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return how many values are missing, if any is."""
        column = table.columns[table.known(self.name, "inputs")]
        truth = [(_TRUTH_READ, "text")] if _is_truth(column) else []
        count = int(is_missing(column).sum())
        return [*truth, (_FILLED, f"{count} missing")] if count else truth

    def notes(self, table: Table) -> list[str]:
        """Return which values are missing, if any is."""
        places = np.flatnonzero(is_missing(table.columns[table.known(self.name, "inputs")]))
        where = _rows(table, places)
        return [f"{self.name}: missing in {where}; replaced by the training median"] if len(places) else []


@dataclass(frozen=True)
class DateColumn(InputColumn):
    """A column of dates or times: days since the first of the training rows, then as numbers."""

    origin: str
    days: NumberColumn

    @classmethod
    def learn(cls, name: str, values: np.ndarray, scale: bool) -> "DateColumn":
        """Return the column that training dates define."""
        origin = np.nanmin(values)
        return cls(str(origin), NumberColumn.learn(name, (values - origin) / _DAY, scale))

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the column."""
        return self.days.name

    @property
    def feature_names(self) -> list[str]:
        """Those of the days."""
        return self.days.feature_names

    def encode(self, table: Table) -> np.ndarray:
        """Return the days as numbers, and where they were missing."""
        return self.days.encode_numbers((_dates_of(table, self.name) - np.datetime64(self.origin)) / _DAY)

    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return the first date, and how many are missing."""
        first = self.origin.removesuffix(".000000").removesuffix("T00:00:00")
        return [("dates are counted in days since the first one", first), *self.days.encoding(table)]

    def notes(self, table: Table) -> list[str]:
        """Return how many dates are missing, if any is."""
        return self.days.notes(table)


@dataclass(frozen=True)
class TextColumn(InputColumn):
    """A text column: a column of 0 and 1 for each value; a missing value is one of them if a training row has one.

    A value that no training row has is 0 in all of them.
    """

    name: str
    levels: list[str | None]

    @classmethod
    def learn(cls, name: str, values: list[str | None]) -> "TextColumn":
        """Return the column that training values define."""
        return cls(name, sorted(set(values), key=lambda value: (value is None, str(value))))

    @property
    def feature_names(self) -> list[str]:
        """One for each value."""
        return [f"{self.name} is missing" if level is None else f"{self.name}={level}" for level in self.levels]

    def encode(self, table: Table) -> np.ndarray:
        """Return zeros and ones."""
        places = self._places(table)
        known = np.flatnonzero(places >= 0)
        features = np.zeros((len(places), len(self.levels)), dtype=np.uint8)
        features[known, places[known]] = 1
        return features

    def encoding(self, table: Table) -> list[tuple[str, str]]:
        """Return how many values there are, and how many are missing."""
        ways = [("text columns are encoded, one 0/1 column for each value", f"{len(self.levels)} values")]
        count = _count_missing(table, self.name)
        return [*ways, ("missing text is a value of its own", f"{count} missing")] if count else ways

    def notes(self, table: Table) -> list[str]:
        """Return the values that no training row has."""
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
        """Return the place of each value among the levels, -1 for a value that is not there."""
        column = table.columns[table.known(self.name, "inputs")]
        place: dict[object, int] = {level: k for k, level in enumerate(self.levels)}
        values = column.tolist()
        if column.dtype != object:  # every value of this table is a number, as some of the levels are
            place = {_as_number(level): k for k, level in enumerate(self.levels)}
            values = [None if gone else value for value, gone in zip(values, is_missing(column), strict=True)]
        return np.array([place.get(value, -1) for value in values], dtype=int)


def learn_column(table: Table, name: str, scale: bool) -> InputColumn | None:
    """Return the column of that name as training rows define it, or None if it does not vary."""
    column = table.columns[name]
    missing = is_missing(column)
    if missing.all() or (not missing.any() and len(set(column.tolist())) == 1):
        return None
    if column.dtype.kind == "M" or (column.dtype == object and all(map(_is_date, column[~missing]))):
        return DateColumn.learn(name, _dates_of(table, name), scale)
    if column.dtype == object and not _is_truth(column) and not all(map(_is_number, column[~missing])):
        spoiled = _spoiled_numbers(table, name)
        _refuse_row_names(table, name, spoiled)
        if spoiled:
            warn_user(f"{spoiled} Until then it is encoded as text.", DataWarning, "numbers-and-text")
        return TextColumn.learn(name, column.tolist())
    return NumberColumn.learn(name, numbers_of(table, name), scale)


def numbers_of(table: Table, name: str) -> np.ndarray:
    """Return a column of finite numbers, NaN where they are missing, or raise with the first entry that is none."""
    column = table.columns[table.known(name, "inputs")]
    if column.dtype.kind == "m":
        return np.asarray(column / _DAY)
    if column.dtype.kind == "M":
        raise ValueError(f"The column {name!r} of {table.name} must hold numbers. It holds dates.")
    if _is_truth(column):
        return np.array([np.nan if value is None else _TRUTH[value.lower()] for value in column])
    if column.dtype == object:
        bad = np.flatnonzero([value is not None and not _is_number(value) for value in column])
        if len(bad):
            raise ValueError(
                f"The column {name!r} of {table.name} must hold numbers. It has {_cells(table, name, bad)}"
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
    """Return how columns are encoded, one line for each way."""
    columns_of: dict[str, list[str]] = {}
    for column in columns:
        for way, detail in column.encoding(table):
            columns_of.setdefault(way, []).append(f"{column.name} ({detail})")
    return [f"{way}: {', '.join(details)}" for way, details in columns_of.items()]


def lacking(table: Table, names: Sequence[str]) -> np.ndarray:
    """Return which rows have a missing entry in some columns."""
    missing = [is_missing(table.columns[table.known(name, "inputs")]) for name in names]
    return np.any(missing, axis=0) if missing else np.zeros(len(table), dtype=bool)


def is_missing(column: np.ndarray) -> np.ndarray:
    """Return which entries of a column are missing."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.asarray(np.isnat(column) if column.dtype.kind in "Mm" else np.isnan(column))


def _count_missing(table: Table, name: str) -> int:
    return int(is_missing(table.columns[table.known(name, "inputs")]).sum())


def _rows(table: Table, places: np.ndarray) -> str:
    """Return which rows these are: the one, or how many and the first."""
    numbers = table.numbers[places]
    return (
        f"{len(numbers)} rows (first in row {numbers[0]})" if len(numbers) > 1 else f"row {''.join(map(str, numbers))}"
    )


def _cells(table: Table, name: str, places: np.ndarray) -> str:
    """Return how many cells of a column are text, the first two of them, and what to do."""
    named = [f"{table.columns[name][i]!r} in row {table.numbers[i]}" for i in places[:2]]
    if len(places) == 1:
        return f"1 cell of text: {named[0]}. Write a number there, or leave the cell empty."
    more = ", ..." if len(places) > 2 else ""
    return f"{len(places)} cells of text: {', '.join(named)}{more}. Write numbers there, or leave the cells empty."


def _dates_of(table: Table, name: str) -> np.ndarray:
    """Return a column of dates and times to the microsecond, NaT where they are missing, or raise."""
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
    """Return the time that an ISO text means; one with an offset in universal time."""
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


def _is_truth(column: np.ndarray) -> bool:
    """Whether every cell of a text column is true, false, yes or no, in any case."""
    known = column[~is_missing(column)]
    return column.dtype == object and len(known) > 0 and all(str(value).lower() in _TRUTH for value in known)


def _as_number(level: str | None) -> float | str | None:
    """Return the number that a level means if a table has nothing but numbers there, else the level."""
    if level is None:
        return None
    return float(level) if _is_number(level) else _TRUTH.get(level.lower(), level)


def _spoiled_numbers(table: Table, name: str) -> str:
    """Return what is wrong with a text column if most of its cells are numbers, else nothing."""
    column = table.columns[name]
    known = np.flatnonzero(~is_missing(column))
    others = np.array([i for i in known if not _is_number(column[i])])
    if 2 * len(others) >= len(known):
        return ""
    count = len(known) - len(others)
    return f"The column {name!r} of {table.name} has {count} numbers and {_cells(table, name, others)}"


def _refuse_row_names(table: Table, name: str, spoiled: str) -> None:
    """Raise if all rows have a value that no other row has, or most of a column of numbers; warn if most have."""
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
