"""Interface of the experiments, and a runner that computes their units and reuses stored results."""

import ast
import hashlib
import inspect
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

import fenchel
from fenchel._array import Array
from fenchel._check import require
from fenchel.app.persistence import versions
from fenchel.data.files import DAMAGE, write_whole
from fenchel.datasets.store import data_folder, digests, known_files
from fenchel.exceptions import ScaleWarning
from fenchel.papers.comparison import Comparison
from fenchel.report.axes import COLOURS, Axes, Figure

__all__ = [
    "Experiment",
    "Outcome",
    "Progress",
    "Unit",
    "absent_files",
    "bars",
    "best_of",
    "on_device",
    "run",
    "units_of",
]

Result = dict[str, Any]  # of a unit: numbers, lists and arrays by name

Progress = Callable[[str, int, int], None]  # title, number of finished units, number of all units

_NOT_COMPUTING = ("cli", "report")  # folders of the library that no result of a unit depends on


@dataclass(frozen=True)
class Unit:
    """An independent part of an experiment: a module-level function and its arguments.

    The return value is stored as JSON: numbers, strings, lists, arrays, and dictionaries with strings as keys.
    """

    name: str
    compute: Callable[..., object]
    args: tuple[object, ...] = ()


class Experiment(Protocol):
    """Interface of the modules of this package that reproduce published results."""

    __name__: str
    DATA: tuple[str, ...]  # data sets read by its units

    def units(self, quick: bool = False) -> list[Unit]:
        """Return the units of the experiment, or of a reduced version if ``quick=True``."""

    def summary(self, results: Result, /) -> tuple[list[Comparison], object]:
        """Compare the results of the units with the published numbers; also return the data of the figure."""

    def draw(self, found: Any, /) -> Figure:
        """Draw the figure of what ``summary`` returns, which each experiment knows."""


@dataclass(frozen=True)
class Outcome:
    """A finished experiment."""

    rows: list[Comparison]
    found: object  # what the figure shows
    results: Result  # of the units, by name
    seconds: float  # sum over all units
    reused: dict[str, str]  # units read from an earlier run, with the time at which they were computed


def run(
    experiment: Experiment,
    units: list[Unit],
    folder: Path | None = None,
    progress: Progress | None = None,
    jobs: int = 1,
    dask: str | None = None,
) -> Outcome:
    """Compute the units and summarise their results.

    Parameters
    ----------
    experiment : module
        A module of this package.
    units : list of Unit
        All units of the experiment, or some of them.
    folder : path or None, default=None
        Folder for the results. Each unit is written atomically to its own file as soon as it is finished. Results
        that the same code computed on the same data are read instead of computed again.
    progress : callable or None, default=None
        Called with a title, the number of finished units and the number of all units.
    jobs : int, default=1
        Number of processes.
    dask : str or None, default=None
        Address of a Dask scheduler whose workers compute the units instead.

    Returns
    -------
    outcome : Outcome
        Identical to the last bit however the units were computed.
    """
    kept = {unit.name: found for unit in units if (found := _read(folder, unit)) is not None}
    reused = {name: found["computed"] for name, found in kept.items()}
    todo = [unit for unit in units if unit.name not in kept]
    title = experiment.__name__.rsplit(".", 1)[-1].replace("_", "-")
    for name, text in _computed(todo, jobs, dask):
        kept[name] = json.loads(text)
        _write(folder, name, text)
        if progress is not None:
            progress(title, len(kept), len(units))
    results = {unit.name: kept[unit.name]["result"] for unit in units}
    rows, shown = experiment.summary(results)
    return Outcome(rows, shown, results, sum(kept[unit.name]["seconds"] for unit in units), reused)


def units_of(experiment: Experiment, quick: bool = False, full: bool = False) -> list[Unit]:
    """Return the units of an experiment; with ``full``, its ``full_units`` if it has finer grids of the paper."""
    finer = getattr(experiment, "full_units", None) if full else None
    return experiment.units(quick) if finer is None else list(finer())


def absent_files(experiment: Experiment) -> list[str]:
    """Return the missing data files of an experiment: of ``FILES`` if it has them, else of ``DATA``."""
    said = vars(experiment)
    needed = [known.name for known in known_files().values() if known.data_set in said.get("DATA", ())]
    files = said.get("FILES", needed)
    return [name for name in files if not (data_folder() / name).is_file()]


def _computed(units: list[Unit], jobs: int, dask: str | None) -> Iterator[tuple[str, str]]:
    """Yield the name of each unit and its result as JSON, in order of completion."""
    if dask is not None:
        distributed = require("distributed", extra="dask")
        with distributed.Client(dask) as client:
            futures = [client.submit(_compute, unit, pure=False) for unit in units]
            for _, found in distributed.as_completed(futures, with_results=True):
                yield found
    elif jobs == 1 or len(units) < 2:
        for unit in units:
            yield _compute(unit)
    else:
        work = (delayed(_compute)(unit) for unit in units)
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(work)


def _compute(unit: Unit) -> tuple[str, str]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)  # grids hold extreme candidates on purpose
        result = unit.compute(*unit.args)
    found = {
        "code": _code(unit),
        "computed": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": time.perf_counter() - start,
        "result": result,
    }
    return unit.name, json.dumps(found, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"A unit's result must be made of numbers, strings, lists and arrays. Got {type(value).__name__}.")


def _code(unit: Unit) -> str:
    """Return a digest of everything that the result of a unit depends on: library, dependencies and data."""
    module = inspect.getmodule(unit.compute)
    parts = [_source(), _syntax_digest(inspect.getsource(module or unit.compute)), str(versions())]
    parts += [f"{name} {digest}" for name, digest in digests(vars(module).get("DATA", ())).items()]
    return f"{fenchel.__version__} {hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


@cache
def _source() -> str:
    """Return a digest of the code of the library, without the folders that no result depends on."""
    folder, digest = Path(fenchel.__file__).parent, hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        place = file.relative_to(folder)
        if place.parts[0] not in _NOT_COMPUTING:
            digest.update(f"{place.as_posix()} {_syntax_digest(file.read_text(encoding='utf-8'))}\n".encode())
    return digest.hexdigest()


@cache
def _syntax_digest(source: str) -> str:
    """Return a digest of a module's syntax tree without docstrings, so that comments and layout do not count."""
    tree = ast.parse(source)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _read(folder: Path | None, unit: Unit) -> Result | None:
    """Return the stored result of a unit, or ``None`` if it is absent, damaged or of other code."""
    file = None if folder is None else folder / f"{unit.name}.json"
    if file is None or not file.exists():
        return None
    try:
        found: Result = json.loads(file.read_text(encoding="utf-8"))
        is_ours = {"seconds", "result"} <= found.keys() and found["code"] == _code(unit)
    except DAMAGE:  # truncated or written by something else: compute again
        return None
    return found if is_ours else None


def _write(folder: Path | None, name: str, text: str) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{name}.json", text.encode())


class Searched(Protocol):
    """A fitted search over loss and lam."""

    cv_errors_: np.ndarray


def best_of(searches: Sequence[Searched]) -> int:
    """Return the place of the search with the lowest cross-validated error."""
    return int(np.argmin([search.cv_errors_.min() for search in searches]))


def bars(ax: Axes, values: Mapping[str, np.ndarray], ticks: Sequence[str], rotation: float = 0.0) -> None:
    """Draw three groups of repetitions (rows) as bars beside each other, with their deviations."""
    place = np.arange(len(ticks))
    for shift, ((name, rows), colour) in enumerate(zip(values.items(), COLOURS, strict=False)):
        height, spread = rows.mean(axis=0), rows.std(axis=0)
        ax.bar(place + 0.25 * (shift - 1), height, 0.25, yerr=spread, color=colour, label=name)
    ax.set_xticks(place, ticks, rotation=rotation)


def on_device(device: str | None, array: np.ndarray) -> Array:
    """Return the array in double precision, as a torch tensor if a device is given."""
    array = np.ascontiguousarray(array, dtype=np.float64)
    return array if device is None else require("torch", extra="torch").as_tensor(array, device=device)
