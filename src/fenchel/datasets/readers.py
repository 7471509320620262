"""Readers of data files that check for the required arrays and columns."""

import csv
import gzip
from pathlib import Path

import numpy as np

from fenchel.datasets.store import locate

__all__ = ["arrays", "stored_arrays", "table"]


def arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the named arrays of a file as float64."""
    return {name: array.astype(np.float64) for name, array in stored_arrays(path, *names).items()}


def stored_arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the named arrays of a file with their stored dtype."""
    with np.load(path, allow_pickle=False) as stored:
        missing = [name for name in names if name not in stored]
        if missing:
            raise ValueError(f"{path} must hold the arrays {', '.join(names)}. It lacks {', '.join(missing)}.")
        return {name: stored[name] for name in names}


def table(folder: str, name: str, *columns: str) -> dict[str, np.ndarray]:
    """Return the named columns of a compressed table, as strings."""
    path = locate(folder, name)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"{path} must have the columns {', '.join(columns)}. It lacks {', '.join(missing)}.")
        rows = [[row[column] for column in columns] for row in reader]
    return {column: np.array([row[k] for row in rows]) for k, column in enumerate(columns)}
