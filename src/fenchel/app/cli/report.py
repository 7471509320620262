"""The command ``fenchel report``; what it imports is loaded when it runs."""

import json
from pathlib import Path

from fenchel.app.cli.groups import click, command

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
    _run(model, data, output, as_json)


def _run(model: Path, data: Path | None, output: Path | None, as_json: bool) -> None:
    """Write the page of a saved model."""
    from fenchel.app.cli.terminal import echo
    from fenchel.app.pages.summary import model_page
    from fenchel.app.persistence import describe, load
    from fenchel.app.tables import TableRegressor
    from fenchel.data.files import write_whole
    from fenchel.datasets.tables import read_table

    fitted = load(model)
    table = None
    if data is not None:
        if not isinstance(fitted, TableRegressor):
            raise ValueError(f"{model} holds a {type(fitted).__name__}, which has no columns; leave out --data.")
        table = read_table(data)
    page = model_page(fitted, data=table, source=model.name, versions=describe(model))
    output = model.with_suffix(".html") if output is None else output
    write_whole(output, page.encode())
    echo(json.dumps({"model": str(model), "report": str(output)}) if as_json else f"Page: {output}")
