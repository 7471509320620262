"""The command ``fenchel outliers``; what it imports is loaded when it runs."""

import json
from pathlib import Path

from fenchel.app.cli.groups import click, command

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
    _run(model, data, fdr, rows, output, as_json)


def _run(model: Path, data: Path, fdr: float, n_rows: int, output: Path | None, as_json: bool) -> None:
    """Rank the rows of a table."""
    from fenchel.app.cli.predicting import table_model
    from fenchel.app.cli.terminal import ROWS, echo
    from fenchel.app.tables.outliers import outliers_of_table
    from fenchel.data.files import csv_line, write_whole
    from fenchel.datasets.tables import read_table

    found = outliers_of_table(table_model(model), read_table(data))
    if found is None:
        raise ValueError(
            f"{data} is not the table that {model} was fitted to. Give that one, or fit a model to {data}."
        )
    report, numbers = found
    table = report.table(fdr)
    table["sample"] = numbers[table["sample"]]
    names = ["row", *(table.dtype.names or ())[1:]]
    if output is not None:
        if output.suffix.lower() != ".csv":
            raise click.BadParameter(f"{output} must end in .csv", param_hint="--output")
        lines = [csv_line(names), *(csv_line([str(value) for value in row.tolist()]) for row in table)]
        write_whole(output, ("\n".join(lines) + "\n").encode())
    flagged, reason = table[table["flagged"]], "outputs" if "outputs" in names else "kind"
    if as_json:
        more = {"targets": flagged[reason].tolist()} if reason == "outputs" else {}
        echo(json.dumps({"rows": len(table), "fdr": fdr, "flagged": flagged["sample"].tolist(), **more}))
        return
    echo(f"{len(flagged)} of {len(table)} rows flagged at a false discovery rate of {fdr:g}. {ROWS}")
    for row in table[:n_rows]:
        mark = "*" if row["flagged"] else " "
        echo(f"{mark} row {row['sample']:>6}  score {row['score']:6.1f}  p-value {row['p_value']:.1e}  {row[reason]}")
