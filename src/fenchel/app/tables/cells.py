"""Cells of a column: missing values, numbers, true and false, and text that was probably meant to be something else."""

import re
import shlex
from collections import Counter
from typing import SupportsFloat

import numpy as np

from fenchel.datasets.tables import Table
from fenchel.exceptions import DataWarning, warn_user

__all__ = ["TRUTH", "check_text", "is_missing", "is_number", "is_truth", "text_cells", "which_rows"]

_ROW_NAMES = 20  # a text column of more rows than these, most of them different, names the rows
_OTHER_DATE = re.compile(r"(\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})|\d{4}[./]\d{1,2}[./]\d{1,2})([T ].*)?")
TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}  # words that are read as numbers


def is_missing(column: np.ndarray) -> np.ndarray:
    """Return which entries of a column are missing."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.asarray(np.isnat(column) if column.dtype.kind in "Mm" else np.isnan(column))


def is_truth(column: np.ndarray) -> bool:
    """Whether every cell of a text column is true, false, yes or no, in any case."""
    known = column[~is_missing(column)]
    return column.dtype == object and len(known) > 0 and all(str(value).lower() in TRUTH for value in known)


def is_number(value: SupportsFloat | str) -> bool:
    """Whether a cell can be read as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def which_rows(table: Table, places: np.ndarray) -> str:
    """Return which rows these are: the one, or how many and the first."""
    numbers = table.numbers[places]
    return (
        f"{len(numbers)} rows (first in row {numbers[0]})" if len(numbers) > 1 else f"row {''.join(map(str, numbers))}"
    )


def text_cells(table: Table, name: str, places: np.ndarray) -> str:
    """Return how many cells of a column are text, the first two of them, and what to do."""
    named = [f"{table.columns[name][i]!r} in row {table.numbers[i]}" for i in places[:2]]
    if len(places) == 1:
        return f"1 cell of text: {named[0]}. Write a number there, or leave the cell empty."
    more = ", ..." if len(places) > 2 else ""
    return f"{len(places)} cells of text: {', '.join(named)}{more}. Write numbers there, or leave the cells empty."


def check_text(table: Table, name: str) -> None:
    """Warn about a text column that was probably meant to be something else, or raise if it is of no use as text."""
    spoiled, dates = _spoiled_numbers(table, name), _other_dates(table, name)
    _refuse_row_names(table, name, spoiled, dates)
    if spoiled:
        warn_user(f"{spoiled} Until then it is encoded as text.", DataWarning, "numbers-and-text")
    if dates:
        warn_user(f"{dates} Until then it is encoded as text.", DataWarning, "other-dates")


def _spoiled_numbers(table: Table, name: str) -> str:
    """Return what is wrong with a text column if most of its cells are numbers, else nothing."""
    column = table.columns[name]
    known = np.flatnonzero(~is_missing(column))
    others = np.array([i for i in known if not is_number(column[i])])
    if 2 * len(others) >= len(known):
        return ""
    count = len(known) - len(others)
    return f"The column {name!r} of {table.name} has {count} numbers and {text_cells(table, name, others)}"


def _other_dates(table: Table, name: str) -> str:
    """Return what is wrong with a text column if most of its cells look like dates in another form, else nothing."""
    column = table.columns[name]
    known = np.flatnonzero(~is_missing(column))
    dates = [i for i in known if _OTHER_DATE.fullmatch(column[i])]
    if 2 * len(dates) <= len(known):
        return ""
    return (
        f"The column {name!r} of {table.name} looks like dates: row {table.numbers[dates[0]]} has "
        f"{column[dates[0]]!r}. Write dates as year-month-day, such as 2025-03-16."
    )


def _refuse_row_names(table: Table, name: str, spoiled: str, dates: str) -> None:
    """Raise if all rows have a value that no other row has, or most of a column of numbers; warn if most have."""
    counts = Counter(table.columns[name].tolist())
    alone = sum(count == 1 for count in counts.values())
    if len(table) <= _ROW_NAMES or 2 * alone <= len(table):
        return
    if spoiled:
        raise ValueError(spoiled)
    if dates:
        if alone == len(table):
            raise ValueError(dates)
        return
    told = f"The text column {name!r} of {table.name} has a value of its own in {alone} of {len(table)} rows"
    remedy = f"eave it out (drop=[{name!r}], on the command line --drop {shlex.quote(name)})."
    if alone == len(table):
        raise ValueError(f"{told}: it names the rows. L{remedy} If it holds dates, write them as 2026-01-31.")
    warn_user(f"{told}. If it names the rows, l{remedy}", DataWarning, "row-names")
