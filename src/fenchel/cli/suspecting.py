"""Implementation of ``fenchel outliers``: rank the rows of a table, and print or write the ranking."""

import json
from pathlib import Path

from fenchel._files import csv_line, write_whole
from fenchel.cli.predicting import table_model
from fenchel.cli.terminal import ROWS, click, echo
from fenchel.datasets.tables import read_table
from fenchel.outliers.tables import outliers_of_table

__all__ = ["run"]


def run(model: Path, data: Path, fdr: float, n_rows: int, output: Path | None, as_json: bool) -> None:
    """Rank the rows of a table."""
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
