"""Implementation of ``fenchel predict``: read, predict and write."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from fenchel._check import require
from fenchel._files import csv_line, write_whole
from fenchel.cli.terminal import ROWS, click, names_rows
from fenchel.datasets.tables import read_table
from fenchel.estimators import TableRegressor
from fenchel.persistence import load

__all__ = ["run", "table_model"]


def run(model: Path, data: Path, output: Path | None, as_json: bool) -> None:
    """Predict the targets of a table, and write or print them."""
    regressor = table_model(model)
    table = read_table(data)
    predicted = regressor.predict(table)
    names, notes = list(regressor.target_names_), regressor.input_notes(table)
    found: dict[str, Any] = {"rows": len(predicted), "targets": regressor.target_names_, "notes": notes}
    if regressor.conformal_ is not None:
        predicted = np.hstack([predicted, *regressor.predict_interval(table)])
        names += [f"{name}_{end}" for end in ("lower", "upper") for name in regressor.target_names_]
        found |= {"columns": names, "coverage": regressor.conformal_.coverage}
    if output is not None:
        write_whole(output, _content(output, predicted, names, regressor))
    elif not as_json:
        click.echo(_csv(predicted, names).decode(), nl=False)
    if as_json:
        found |= {"predictions": predicted.tolist()} if output is None else {"output": str(output)}
        click.echo(json.dumps(found))
    notes = [*notes, ROWS] if any(map(names_rows, notes)) else notes
    for note in [] if as_json else notes:
        click.echo(f"note         {note}", err=True)


def table_model(path: Path) -> TableRegressor:
    """Return the model of a file; raise if it is not a model of a table."""
    model = load(path)
    if not isinstance(model, TableRegressor):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which knows no columns. Load it in Python, with fenchel.load."
        )
    return model


def _content(file: Path, predicted: np.ndarray, names: list[str], model: TableRegressor) -> bytes:
    """Return the bytes of a file in the format given by its suffix."""
    n_targets = len(model.target_names_)
    writers = {".csv": lambda: _csv(predicted, names),
               ".npz": lambda: _npz(predicted, names, model.grid_, n_targets),
               ".parquet": lambda: _parquet(predicted, names)}  # fmt: skip
    writer = writers.get(file.suffix.lower())
    if writer is None:
        raise click.BadParameter(f"{file} must end in {', '.join(writers)}", param_hint="--output")
    return writer()


def _csv(predicted: np.ndarray, names: list[str]) -> bytes:
    # repr is the shortest text that reads back as the same number
    rows = [names, *([repr(value) for value in row] for row in predicted.tolist())]
    return ("\n".join(csv_line(row) for row in rows) + "\n").encode()


def _npz(predicted: np.ndarray, names: list[str], grid: np.ndarray | None, n_targets: int) -> bytes:
    buffer = io.BytesIO()
    more: dict[str, Any] = {} if grid is None else {"grid": grid}
    values, *ends = np.split(predicted, range(n_targets, predicted.shape[1], n_targets), axis=1)
    more |= dict(zip(("lower", "upper"), ends, strict=False))
    np.savez(buffer, Y=values, names=np.array(names[:n_targets]), **more)
    return buffer.getvalue()


def _parquet(predicted: np.ndarray, names: list[str]) -> bytes:
    pandas = require("pandas", extra="parquet")
    require("pyarrow", extra="parquet")
    buffer = io.BytesIO()
    pandas.DataFrame(predicted, columns=names).to_parquet(buffer, index=False)
    return buffer.getvalue()
