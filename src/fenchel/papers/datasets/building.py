"""Building data files from downloaded originals, and checking them against what the loaders expect."""

import csv
import fnmatch
import functools
import gzip
import io
import json
import shlex
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import numpy as np

from fenchel.data.files import write_whole
from fenchel.datasets.store import data_folder
from fenchel.papers.datasets.sources import SOURCES, Recipe

__all__ = ["build", "differences", "read_columns", "summary"]

_ACCURACY = 1e-9  # of sums, since originals are rounded text and are interpolated
_GOLDEN = (5**0.5 - 1) / 2
_DEPTH = ("*", "*/*", "*/*/*", "*/*/*/*", "*/*/*/*/*")  # archives unpack into folders, repositories into deep ones

Columns = Mapping[str, np.ndarray]


def build(data_set: str, folder: Path) -> tuple[list[Path], list[str]]:
    """Build the files of a dataset from the originals in a folder.

    Parameters
    ----------
    data_set : str
        Name of the dataset.
    folder : path
        Folder with the originals, possibly in subfolders.

    Returns
    -------
    built : list of Path
        The files written to the data folder.
    absent : list of str
        Originals that were not found; files made from them are skipped.
    """
    source = SOURCES[data_set]
    if not source.recipes:
        raise ValueError(f"{data_set} cannot be built. {source.note} Source: {source.url}")
    there = {path.name: path for depth in reversed(_DEPTH) for path in folder.glob(depth) if path.is_file()}
    originals = {name: [there[match] for match in sorted(fnmatch.filter(there, name))] for name in source.originals}
    ready = [recipe for recipe in source.recipes if all(originals[name] for name in recipe.originals)]
    absent = [name for name in source.originals if not originals[name]]
    if not ready:
        raise FileNotFoundError(f"There is no {', '.join(absent)} in {folder.resolve()}. {_advice(data_set, folder)}")
    return [_build_file(data_set, recipe, originals) for recipe in ready], absent


def _advice(data_set: str, folder: Path) -> str:
    source, here = SOURCES[data_set], shlex.quote(str(folder.resolve()))
    what = "it" if len(source.originals) == 1 else "them"
    note = f" {source.note}" if source.note else ""
    return (
        f"Download {what} from {source.url} (licence: {source.licence}), and unpack archives into that folder.{note} "
        f"Then run: fenchel datasets build {data_set} --from {here}"
    )


def _build_file(data_set: str, recipe: Recipe, originals: dict[str, list[Path]]) -> Path:
    columns = recipe.make(*(path for name in recipe.originals for path in originals[name]))
    wrong = differences(f"{data_set}/{recipe.file}", columns)
    if wrong:
        raise ValueError(
            f"This is another version of {', '.join(recipe.originals)} than the one that {recipe.file} is made from; "
            f"nothing was written. Download it again from {SOURCES[data_set].url}. Differences: {'; '.join(wrong)}."
        )
    path = data_folder() / data_set / recipe.file
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, _as_table(columns) if path.name.endswith(".csv.gz") else _as_archive(columns))
    return path


def differences(name: str, columns: Columns) -> list[str]:
    """Describe how columns differ from those of a known file; empty if they agree."""
    known = _contents().get(name)
    if known is None:
        return [f"{name} is not a file that can be built"]
    lacking = [f"{key} is missing" for key in known if key not in columns]
    return lacking + [
        f"{key} has shape {found[0]} and sums {found[1:]} instead of {tuple(known[key])}"
        for key, found in summary({key: columns[key] for key in known if key in columns}).items()
        if not _agree(found, known[key])
    ]


def summary(columns: Columns) -> dict[str, list[object]]:
    """Return the shape of each column and, if it is numeric, three sums ignoring NaN: plain, squared, and weighted.

    The weights depend on the position in the column, so that reordered rows are detected.
    """
    found: dict[str, list[object]] = {}
    for name, column in columns.items():
        found[name] = [list(column.shape)]
        try:
            values = np.where(column == "", "nan", column).astype(float) if column.dtype.kind == "U" else column
            numbers = np.asarray(values, dtype=np.float64)
        except ValueError:
            continue  # text
        weights = (np.arange(numbers.size) * _GOLDEN % 1.0).reshape(numbers.shape)
        found[name] += [float(np.nansum(terms)) for terms in (numbers, numbers**2, weights * numbers)]
    return found


def _agree(found: list[object], known: list[object]) -> bool:
    if found[0] != known[0] or len(found) != len(known):
        return False
    sums, wanted = (np.array(one[1:], dtype=np.float64) for one in (found, known))
    if not len(sums):
        return True
    count = float(np.prod(np.array(known[0], dtype=np.float64)))
    size = np.sqrt(count * wanted[1])  # Cauchy-Schwarz bounds the sums
    scales = np.array([size, wanted[1], size])
    return bool(np.all(np.abs(sums - wanted) <= _ACCURACY * scales))


@functools.cache
def _contents() -> dict[str, dict[str, list[object]]]:
    """Return the summary of each file that can be built."""
    text = resources.files("fenchel.papers.datasets").joinpath("contents.json").read_text(encoding="ascii")
    found: dict[str, dict[str, list[object]]] = json.loads(text)
    return found


def read_columns(path: Path) -> Columns:
    """Return the arrays or the columns of a data file."""
    if path.name.endswith(".csv.gz"):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        return {name: np.array(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)}
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def _as_archive(columns: Columns) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **columns)
    return buffer.getvalue()


def _as_table(columns: Columns) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return gzip.compress(text.getvalue().encode(), mtime=0)
