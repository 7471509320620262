"""Implementation of ``fenchel report``: load the model and write its page."""

import json
from pathlib import Path

from fenchel._files import write_whole
from fenchel.cli.terminal import echo
from fenchel.datasets.tables import read_table
from fenchel.estimators import TableRegressor
from fenchel.persistence import describe, load
from fenchel.report.summary import model_page

__all__ = ["run"]


def run(model: Path, data: Path | None, output: Path | None, as_json: bool) -> None:
    """Write the page of a saved model."""
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
