"""Implementation of ``fenchel predict``: read, predict and write."""

import io
import json
import math
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from fenchel._check import require
from fenchel.app.cli.terminal import ROWS, click, echo, names_rows
from fenchel.app.persistence import load
from fenchel.app.tables import TableRegressor
from fenchel.data.files import csv_line, write_whole
from fenchel.data.frames import with_arrays
from fenchel.datasets.tables import Table, read_table

__all__ = ["run", "table_model"]

Columns = dict[str, np.ndarray]


def run(model: Path, data: Path, output: Path | None, keep: tuple[str, ...], as_json: bool) -> None:
    """Predict the targets of a table, and write or print them."""
    regressor = table_model(model)
    table = read_table(data)
    predicted = {"": with_arrays(regressor).predict(table)}
    notes = [*regressor.input_notes(table), *regressor.range_notes(table)]
    found: dict[str, object] = {"rows": len(table), "targets": regressor.target_names_, "notes": notes}
    if regressor.conformal_ is not None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            predicted |= dict(zip(("_lower", "_upper"), regressor.predict_interval(table), strict=True))
        notes += [" ".join(str(one.message).split()) for one in caught]
    columns = _named(predicted, regressor.target_names_)
    if regressor.conformal_ is not None:
        found |= {"columns": list(columns), "coverage": regressor.conformal_.coverage}
    kept = _kept(table, keep, columns)
    if output is not None:
        write_whole(output, _content(output, kept, columns, predicted, regressor))
    elif not as_json:
        click.echo(_csv(kept | columns).decode(), nl=False)
    if as_json:
        found |= {"kept": {name: [_cell(value) for value in values] for name, values in kept.items()}} if kept else {}
        rows = [[_finite(value) for value in row] for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
        found |= {"predictions": rows} if output is None else {"output": str(output)}
        echo(json.dumps(found))
    notes = [*notes, ROWS] if any(map(names_rows, notes)) else notes
    for note in [] if as_json else notes:
        echo(f"note         {note}", err=True)


def _named(predicted: Columns, targets: list[str]) -> Columns:
    """Return the columns of the output, those of an interval after their target; raise if two have the same name."""
    ends = [(f"{name}{end}", values[:, k]) for k, name in enumerate(targets) for end, values in predicted.items()]
    twice = [name for name, count in Counter(name for name, _ in ends).items() if count > 1]
    if twice:
        raise ValueError(
            f"Two columns of the output would be called {twice[0]!r}, a target and an end of an interval. Rename the "
            "target in the training table, or fit without --coverage."
        )
    return dict(ends)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON has neither NaN nor infinity


def table_model(path: Path) -> TableRegressor:
    """Return the model of a file; raise if it is not a model of a table."""
    model = load(path)
    if not isinstance(model, TableRegressor):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which has no columns. Load it in Python, with fenchel.load."
        )
    return model


def _kept(table: Table, keep: tuple[str, ...], columns: Columns) -> Columns:
    """Return the columns of a table to copy into the output."""
    names = table.select(keep, "--keep")
    both = [name for name in names if name in columns]
    if both:
        raise click.UsageError(f"--keep {both[0]}: the predictions have that name. Rename the column of {table.name}.")
    return {name: _copied(table.columns[name]) for name in names}


def _copied(column: np.ndarray) -> np.ndarray:
    """Return whole numbers, such as identifiers, as integers, and dates to the microsecond."""
    if column.dtype.kind == "M":
        return column.astype("datetime64[us]")  # nanoseconds have no equivalent in Python
    is_whole = column.dtype.kind == "f" and np.all(np.isfinite(column)) and np.all(column == np.round(column))
    return column.astype(np.int64) if is_whole else column


def _content(file: Path, kept: Columns, columns: Columns, predicted: Columns, model: TableRegressor) -> bytes:
    """Return the bytes of a file of the kind that its suffix says."""
    writers = {".csv": lambda: _csv(kept | columns),
               ".npz": lambda: _npz(kept, predicted, model),
               ".parquet": lambda: _parquet(kept | columns)}  # fmt: skip
    writer = writers.get(file.suffix.lower())
    if writer is None:
        raise click.BadParameter(f"{file} must end in {', '.join(writers)}", param_hint="--output")
    return writer()


def _csv(columns: Columns) -> bytes:
    cells = ([_cell(value) for value in values.tolist()] for values in columns.values())
    rows = [list(columns), *zip(*cells, strict=True)]
    return ("\n".join(csv_line(row) for row in rows) + "\n").encode()


def _cell(value: object) -> str:
    """Return the text of a cell, from which the same number is read again; a missing one is empty."""
    return "" if value is None or value != value else str(value)


def _npz(kept: Columns, predicted: Columns, model: TableRegressor) -> bytes:
    buffer = io.BytesIO()
    arrays = {name: values.astype(str) if values.dtype == object else values for name, values in kept.items()}
    arrays |= {end.removeprefix("_") or "Y": values for end, values in predicted.items()}
    arrays |= {"names": np.array(model.target_names_)} | ({} if model.grid_ is None else {"grid": model.grid_})
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _parquet(columns: Columns) -> bytes:
    pandas = require("pandas", extra="parquet")
    require("pyarrow", extra="parquet")
    buffer = io.BytesIO()
    pandas.DataFrame(columns).to_parquet(buffer, index=False)
    return buffer.getvalue()
