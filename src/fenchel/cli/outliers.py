"""Options of ``fenchel outliers``, implemented in ``suspecting``, which is imported when the command runs."""

from importlib import import_module
from pathlib import Path

from fenchel.cli.groups import click, command

__all__ = ["outliers_command"]


@command("outliers")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--fdr", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.1, show_default=True,
              help="False discovery rate of the rows that are flagged; in small samples it does not hold.")  # fmt: skip
@click.option("-n", "--rows", type=click.IntRange(1), default=20, show_default=True, help="Number of rows to print.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write all rows to this .csv file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the flagged rows as JSON.")
def outliers_command(model: Path, data: Path, fdr: float, rows: int, output: Path | None, as_json: bool) -> None:
    """Find the wrong rows of a table with a model that "fenchel fit --model" saved.

    DATA is the table that MODEL was fitted to. Each row is compared with the prediction of a model of the other
    rows, so that a row with plausible inputs and the targets of another row is found too. Each line names the targets
    that look wrong. Rows are counted from 1, the first row below the header.

    \b
      fenchel outliers model.fenchel train.csv
      fenchel outliers model.fenchel train.csv --fdr 0.05 --output ranked.csv
    """
    import_module("fenchel.cli.suspecting").run(model, data, fdr, rows, output, as_json)
