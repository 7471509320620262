"""Options of ``fenchel predict``, implemented in ``predicting``, which is imported when the command runs."""

from importlib import import_module
from pathlib import Path

from fenchel.app.cli.groups import click, command

__all__ = ["predict_command"]


@command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="A .csv, .npz or .parquet file; without it, CSV is printed.")  # fmt: skip
@click.option("--keep", multiple=True, metavar="COLUMNS",
              help="Columns of DATA to copy into the output, before the predictions; as --target of fit.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the predictions as JSON instead of CSV.")
def predict_command(model: Path, data: Path, output: Path | None, keep: tuple[str, ...], as_json: bool) -> None:
    """Predict the targets of a table with a model that "fenchel fit --model" saved.

    DATA has the input columns that the model was fitted with, in any order; other columns are ignored. A missing number
    is replaced by the median of the training rows, and text that was not seen in training is treated as "other"; notes
    on the error stream say where, and which numbers are outside the range of the training rows. A model that was fitted
    with --coverage also writes the columns TARGET_lower and TARGET_upper, the ends of prediction intervals.

    \b
      fenchel predict model.fenchel new.csv --output predicted.csv
      fenchel predict model.fenchel new.csv --keep id,date --output predicted.csv
      fenchel predict model.fenchel new.parquet | head
    """
    import_module("fenchel.app.cli.predicting").run(model, data, output, keep, as_json)
