"""Groups of commands, with one-line errors, and commands that are imported when they are called."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fenchel._optional import require
from fenchel.app.printable import printable

if TYPE_CHECKING:
    import click
    from click import shell_completion

    ParamType = click.ParamType[Any]
else:
    click = require("click", extra="cli")
    shell_completion = require("click.shell_completion", extra="cli")
    ParamType = click.ParamType  # not a generic class in every release

__all__ = ["LazyGroup", "LazyType", "OneLineGroup", "ParamType", "click", "command", "echo", "shell_completion"]

_DEBUG = "fenchel.debug"  # key of the flag in a context


class OneLineGroup(click.Group):
    """A group of commands whose errors are one line on the error stream, with a traceback if ``--debug`` is set.

    Exit status: 0 success, 1 an error, 2 wrong usage, or the status that a command exits with.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, and exit if ``standalone_mode``."""
        run = partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        try:
            found: object = run()
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            echo(f"Error: {_one_line(error.format_message())}", err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("Aborted.", err=True)
            sys.exit(1)
        sys.exit(found if isinstance(found, int) else 0)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command, and turn any error into one line."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.meta.get(_DEBUG):
                raise
            raise click.ClickException(_described(error)) from error


class LazyGroup(OneLineGroup):
    """A group that lists its commands without importing them.

    The command ``name`` is ``name_command`` of the module ``fenchel.app.cli.name``.
    """

    def list_command(self, name: str, short_help: str) -> None:
        """Add a command by its name and its line in the list of commands."""
        self.add_command(click.Command(name, short_help=short_help))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command that is called."""
        name, listed, rest = super().resolve_command(ctx, args)
        if listed is None:
            return name, listed, rest
        return name, getattr(import_module(f"fenchel.app.cli.{listed.name}"), f"{listed.name}_command"), rest


class LazyType(ParamType):
    """A type of ``fenchel.app.cli.parts``, imported when a value is converted."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: object, param: "click.Parameter | None", ctx: "click.Context | None") -> object:
        """Return the value that the text stands for."""
        return self._loaded().convert(value, param, ctx)

    def shell_complete(
        self, ctx: "click.Context", param: "click.Parameter", incomplete: str
    ) -> "list[shell_completion.CompletionItem]":
        """Return the names that begin with the incomplete text."""
        completions: list[shell_completion.CompletionItem] = self._loaded().shell_complete(ctx, param, incomplete)
        return completions

    def _loaded(self) -> "ParamType":
        loaded: ParamType = getattr(import_module("fenchel.app.cli.parts"), f"{self.name}_type")
        return loaded


def command(name: str, **options: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that turns a function into a command with the option ``--debug``."""
    make: Callable[..., click.Command] = click.command(name, **options)
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error."
    )

    def decorate(function: Callable[..., None]) -> click.Command:
        return make(debug(function))

    return decorate


def echo(text: str, err: bool = False) -> None:
    """Print a text, with the control characters of names and cells as their escapes."""
    click.echo(printable(text), err=err)


def _set_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    ctx.meta[_DEBUG] = ctx.meta.get(_DEBUG, False) or value


def _described(error: Exception) -> str:
    """Return an error as one line, with the name of its class unless its message is meant for users."""
    text = _one_line(str(error))
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    if text and isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        return text
    return f"{type(error).__name__}: {text} (--debug shows where)"


def _one_line(text: str) -> str:
    return " ".join(text.split())
