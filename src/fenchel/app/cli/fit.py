"""Options of ``fenchel fit``, implemented in ``fitting``, which is imported when the command runs."""

from importlib import import_module
from pathlib import Path
from typing import Any

from fenchel.app.cli.groups import LazyType, click, command

__all__ = ["fit_command"]

_CHOSEN = "  [default: chosen by cross-validation]"
_HELP = """Fit a model to a table (CSV, NPZ or Parquet) and print its certificate.

    \b
    One output, predicted from all other columns:
      fenchel fit houses.csv --target price
    \b
    Several outputs, a single fit with a given loss and lam, with a model file and a report:
      fenchel fit data.csv -t "y_*" --loss huber:kappa=0.5 --lam 1e-3 \\
          --model model.fenchel --report report.html
    \b
    Loss and lam chosen from your own grid:
      fenchel fit data.csv -t y --loss square --loss huber:kappa=auto --lams 1e-6:1:13
    \b
    Each row is a curve; an empty cell is a point that was not observed:
      fenchel fit spectra.csv -t "w_400:w_700" --curves --loss huber:kappa=0.1,p=1
    \b
    Replicates of a specimen held out together, a quarter of the specimens for a test:
      fenchel fit wear.csv -t wear --groups specimen --test-size 0.25 --coverage 0.9
    \b
    JSON output for a program:
      fenchel fit data.npz -t "Y_*" --inputs "X_*" --test-size 0.25 --json

    Kernel, loss and lam are chosen by cross-validation unless you set them. With --lam there is a single fit, with a
    Gaussian kernel and the square loss unless you set others. Errors are printed next to those of the mean and of a
    linear model.

    The first line of DATA has the column names. Text and dates are encoded, constant columns are left out, numbers are
    standardised, and missing inputs are replaced by the median. The model stores these steps, so that "fenchel predict"
    takes a raw table, and the output lists them.
    """


@command("fit", help=_HELP)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-t", "--target", "targets", multiple=True, metavar="COLUMNS",
              help="Output columns: a name, a range a:b, a pattern such as 'y_*'; repeatable.  [required]")  # fmt: skip
@click.option("--inputs", multiple=True, metavar="COLUMNS", help="Input columns; by default all others.")
@click.option("--drop", multiple=True, metavar="COLUMNS", help="Columns to leave out of the inputs.")
@click.option("--groups", metavar="COLUMN",
              help="Column of groups: rows with the same value are held out together. It is not an input.")  # fmt: skip
@click.option("--weights", metavar="COLUMN", help="Column with the weights of the rows. It is not an input.")
@click.option(
    "--curves",
    is_flag=True,
    help="The targets of a row are one curve; missing values are points that were not observed.",
)
@click.option("--loss", "losses", type=LazyType("loss"), multiple=True,
              metavar="LOSS", help="square, huber:kappa=0.5, huber:kappa=auto, ..." + _CHOSEN)  # fmt: skip
@click.option("--kernel", type=LazyType("kernel"), metavar="KERNEL",
              help="gaussian:gamma=0.1, gaussian:gamma=median, laplacian, linear, ..." + _CHOSEN)  # fmt: skip
@click.option("--lam", type=click.FloatRange(0, min_open=True), help="Weight of the squared norm." + _CHOSEN)
@click.option("--lams", type=LazyType("grid"), metavar="LAMS",
              help="Choose among these by cross-validation: '1e-4,1e-2,1' or 'from:to:count'.")  # fmt: skip
@click.option("--cv", default="5", show_default=True, metavar="N|loo", help="Number of folds, or leave-one-out.")
@click.option("--aggregate", type=click.Choice(["auto", "mean", "median", "trimmed_mean", "fold_median"]),
              default="auto", show_default=True, help="How the errors of held-out rows are averaged.")  # fmt: skip
@click.option("--center", type=click.Choice(["auto", "mean", "median", "none"]), default="auto", show_default=True,
              help="What is subtracted from the targets; auto: their mean, or median if --loss is robust.")  # fmt: skip
@click.option("--scale/--no-scale", default=True, show_default=True, help="Standardise the inputs.")
@click.option(
    "--drop-missing", is_flag=True, help="Leave out rows with a missing input; by default it is replaced by the median."
)
@click.option("--coverage", type=click.FloatRange(0, 1, min_open=True, max_open=True),
              help="Store prediction intervals with this coverage; fenchel predict writes them.")  # fmt: skip
@click.option("--test-size", type=click.FloatRange(0, 1, max_open=True), default=0.0,
              help="Share of the rows, or groups, to hold out for a test.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the test split.")
@click.option(
    "--tol",
    type=click.FloatRange(0, min_open=True),
    default=1e-6,
    show_default=True,
    help="Relative duality gap at which the solver stops.",
)
@click.option("--max-iter", type=click.IntRange(1), help="Maximum number of solver iterations; not with --lams.")
@click.option(
    "--model", "model_file", type=click.Path(dir_okay=False, path_type=Path), help="Save the model to this file."
)
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an HTML report to this file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def fit_command(data: Path, test_size: float, seed: int, model_file: Path | None, report_file: Path | None,
                as_json: bool, **options: Any) -> None:  # fmt: skip
    """Fit a model to a table."""
    for file in (model_file, report_file):  # fail before the fit, not after it
        if file is not None and not file.absolute().parent.is_dir():
            raise click.UsageError(f"There is no folder {file.parent} for {file.name}.")
    import_module("fenchel.app.cli.fitting").run(data, test_size, seed, model_file, report_file, as_json, options)
