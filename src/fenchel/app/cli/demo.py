"""Options of ``fenchel demo``, implemented in ``papers.demonstration``, imported when the command runs."""

from importlib import import_module
from pathlib import Path

from fenchel.app.cli.groups import click, command

__all__ = ["demo_command"]


@command("demo")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"),
              show_default=True, help="Folder of the picture and the page.")  # fmt: skip
def demo_command(output: Path) -> None:
    """Predict curves from curves on simulated data, with and without outliers: a table, a picture and a page.

    \b
      fenchel demo
      fenchel demo --output /tmp/demo
    """
    import_module("fenchel.papers.demonstration").run(output)
