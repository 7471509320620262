"""What the commands share: click and rich, the group that says errors in one line, tables."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fenchel._check import require

if TYPE_CHECKING:
    import click
    import rich
    from click import shell_completion
    from rich import console as rich_console
    from rich import progress as rich_progress
    from rich import table as rich_table

    ParamType = click.ParamType[Any]
else:
    click = require("click", extra="cli")
    shell_completion = require("click.shell_completion", extra="cli")
    ParamType = click.ParamType  # not a generic class in every release
    rich = require("rich", extra="cli")
    rich_console = require("rich.console", extra="cli")
    rich_progress = require("rich.progress", extra="cli")
    rich_table = require("rich.table", extra="cli")

__all__ = [
    "OneLineGroup",
    "ParamType",
    "click",
    "command",
    "print_table",
    "rich",
    "rich_console",
    "rich_progress",
    "shell_completion",
]

_DEBUG = "fenchel.debug"  # where a context keeps the flag


class OneLineGroup(click.Group):
    """A group of commands whose errors are one line on the error stream; with ``--debug``, the traceback too.

    Exit status: 0 done, 1 an error, 2 a wrong call, and what a command ends with by itself.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, and end the process if ``standalone_mode``."""
        run = partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        try:
            found: Any = run()
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            click.echo(f"Error: {_one_line(error.format_message())}", err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("Aborted.", err=True)
            sys.exit(1)
        sys.exit(found if isinstance(found, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; any error of it becomes one line."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.meta.get(_DEBUG):
                raise
            raise click.ClickException(_described(error)) from error


def command(name: str, **options: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command of a function, with the option ``--debug``."""
    make: Any = click.command(name, **options)
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error."
    )

    def decorate(function: Callable[..., Any]) -> click.Command:
        return make(debug(function))

    return decorate


def _set_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    ctx.meta[_DEBUG] = ctx.meta.get(_DEBUG, False) or value


def _described(error: Exception) -> str:
    """Return an error in a line; one that is no clear message of ours keeps its class."""
    text = _one_line(str(error))
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    if text and isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        return text
    return f"{type(error).__name__}: {text} (--debug shows where)"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], parted: bool = False) -> None:
    """Print a table; if it is parted, with a line between rows that differ in the first column."""
    table = rich_table.Table(title=title)
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k < 2 else "right", no_wrap=k > 1 and name != "note")
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(*row, end_section=parted and following is not None and following[0] != row[0])
    rich.print(table)
