"""``fenchel report``."""

import json
from pathlib import Path

from fenchel._files import write_whole
from fenchel.cli.terminal import click, command
from fenchel.data.tables import read_table
from fenchel.persistence import describe, load
from fenchel.report.summary import model_page
from fenchel.tables import TableRegressor

__all__ = ["report_command"]


@command("report")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="A table with inputs and targets to compare with.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="The page.  [default: the model's name with .html]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print where the page is as JSON.")
def report_command(model: Path, data: Path | None, output: Path | None, as_json: bool) -> None:
    """Write one page about a fitted model: certificate, outliers, sparsity, grid, predictions.

    The page is one file, with no network; it has a light and a dark form, and prints. MODEL is a file of
    "fenchel fit --model" or of fenchel.save.

    \b
      fenchel report model.fenchel --data test.csv --output page.html
    """
    fitted = load(model)
    table = None
    if data is not None:
        if not isinstance(fitted, TableRegressor):
            raise ValueError(f"{model} holds a {type(fitted).__name__}, which knows no columns; leave out --data.")
        table = read_table(data)
    page = model_page(fitted, data=table, source=model.name, versions=describe(model))
    output = model.with_suffix(".html") if output is None else output
    write_whole(output, page.encode())
    click.echo(json.dumps({"model": str(model), "report": str(output)}) if as_json else f"Page: {output}")
