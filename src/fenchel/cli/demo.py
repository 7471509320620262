"""``fenchel demo``: its options. The work is in ``demonstration``, which is imported when the command runs."""

from importlib import import_module
from pathlib import Path

from fenchel.cli.groups import click, command

__all__ = ["demo_command"]


@command("demo")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"), show_default=True)
def demo_command(output: Path) -> None:
    """Curves from curves, on made data with and without outliers: a table, a picture and a page."""
    import_module("fenchel.cli.demonstration").run(output)
