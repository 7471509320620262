"""Output of the commands: rich, tables and click."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fenchel._optional import require
from fenchel.app.cli.groups import OneLineGroup, click, command, echo
from fenchel.app.printable import printable

if TYPE_CHECKING:
    import rich
    from rich import console as rich_console
    from rich import progress as rich_progress
    from rich import table as rich_table
else:
    rich = require("rich", extra="cli")
    rich_console = require("rich.console", extra="cli")
    rich_progress = require("rich.progress", extra="cli")
    rich_table = require("rich.table", extra="cli")

__all__ = [
    "ROWS",
    "OneLineGroup",
    "click",
    "command",
    "echo",
    "names_rows",
    "print_table",
    "rich",
    "rich_console",
    "rich_progress",
]

ROWS = "Row 1 is the first row of data, below the header."


def names_rows(text: str) -> bool:
    """Whether a note names rows by their numbers."""
    return re.search(r"\brow \d", text) is not None


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], parted: bool = False) -> None:
    """Print a table, optionally with a line between rows that differ in the first column."""
    table = rich_table.Table(title=title)
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k < 2 else "right", no_wrap=k > 1 and name != "note")
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(*map(printable, row), end_section=parted and following is not None and following[0] != row[0])
    rich.print(table)
