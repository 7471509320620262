"""Options of ``fenchel report``, implemented in ``reporting``, which is imported when the command runs."""

from importlib import import_module
from pathlib import Path

from fenchel.cli.groups import click, command

__all__ = ["report_command"]


@command("report")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--data", type=click.Path(path_type=Path), help="A table with inputs and targets to compare predictions with."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="The HTML file.  [default: the name of the model with .html]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the path of the report as JSON.")
def report_command(model: Path, data: Path | None, output: Path | None, as_json: bool) -> None:
    """Write an HTML report on a fitted model: certificate, outliers, sparsity, grid, predictions.

    The report is one self-contained file with a light and a dark theme. MODEL is a file written by
    "fenchel fit --model" or fenchel.save.

    \b
      fenchel report model.fenchel --data test.csv --output report.html
    """
    import_module("fenchel.cli.reporting").run(model, data, output, as_json)
