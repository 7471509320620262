"""What an experiment is: independent units of work, a summary of their results, a figure."""

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

import fenchel
from fenchel._check import require
from fenchel._files import DAMAGE, write_whole
from fenchel.datasets.store import data_folder, digests, known_files
from fenchel.experiments.comparison import Comparison
from fenchel.persistence import versions

__all__ = ["Experiment", "Outcome", "Progress", "Unit", "absent_files", "on_device", "run"]

Result = dict[str, Any]  # what a unit returns: numbers, lists and arrays by name

Progress = Callable[[str, int, int], None]  # what is being done, how many units are finished, of how many


@dataclass(frozen=True)
class Unit:
    """A part of an experiment that needs no other part: a function of a module, and its arguments.

    What it returns is kept as JSON: numbers, strings, lists, arrays, dictionaries with strings as keys.
    """

    name: str
    compute: Callable[..., object]
    args: tuple[object, ...] = ()


class Experiment(Protocol):
    """A module of this package."""

    __name__: str
    DATA: tuple[str, ...]  # the data sets that its units read

    def units(self, quick: bool = False) -> list[Unit]:
        """Return the units of the experiment, or with ``quick`` those of a reduced version."""

    def summary(self, results: Result, /) -> tuple[list[Comparison], Any]:
        """Return the published numbers beside ours, and what the figure shows, from the results of some units."""

    def draw(self, found: Any, /) -> Any:
        """Return the figure."""


@dataclass(frozen=True)
class Outcome:
    """A finished experiment."""

    rows: list[Comparison]
    found: Any
    results: Result  # of the units, by name
    seconds: float  # of all units, added up
    reused: dict[str, str]  # units that were read back, and when they were computed


def run(
    experiment: Experiment,
    units: list[Unit],
    folder: Path | None = None,
    progress: Progress | None = None,
    jobs: int = 1,
    dask: str | None = None,
) -> Outcome:
    """Compute the units and sum them up.

    Parameters
    ----------
    experiment : module
        One of this package.
    units : list of Unit
        All that it has, or some.
    folder : path or None, default=None
        Where the result of each unit is kept as soon as it is there, in a file of its own that is written whole or not
        at all. Units that are there already, computed by the same code on the same data, are read.
    progress : callable or None, default=None
        Called with a title, the number of finished units and that of all.
    jobs : int, default=1
        Processes.
    dask : str or None, default=None
        Address of a Dask scheduler, whose workers compute the units instead.

    Returns
    -------
    outcome : Outcome
        The same, to the last bit, however the units were computed.
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
    rows, found = experiment.summary(results)
    return Outcome(rows, found, results, sum(kept[unit.name]["seconds"] for unit in units), reused)


def absent_files(experiment: Experiment) -> list[str]:
    """Return the data files that an experiment reads and that are not there: ``FILES``, or those of ``DATA``."""
    sets = getattr(experiment, "DATA", ())
    files = getattr(experiment, "FILES", [known.name for known in known_files().values() if known.data_set in sets])
    return [name for name in files if not (data_folder() / name).is_file()]


def _computed(units: list[Unit], jobs: int, dask: str | None) -> Iterator[tuple[str, str]]:
    """Yield the name of each unit and its result as text, as they come."""
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
    result = unit.compute(*unit.args)
    found = {
        "code": _code(unit),
        "computed": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": time.perf_counter() - start,
        "result": result,
    }
    return unit.name, json.dumps(found, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"A unit's result must be made of numbers, strings, lists and arrays. Got {type(value).__name__}.")


def _code(unit: Unit) -> str:
    """Return what the result of a unit depends on, as a digest: the library, what it stands on, and the data."""
    module = inspect.getmodule(unit.compute)
    parts = [_source(), inspect.getsource(module or unit.compute), str(versions())]
    parts += [f"{name} {digest}" for name, digest in digests(getattr(module, "DATA", ())).items()]
    return f"{fenchel.__version__} {hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


@cache
def _source() -> str:
    """Return the digest of all modules of the library."""
    folder, digest = Path(fenchel.__file__).parent, hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _read(folder: Path | None, unit: Unit) -> Any:
    """Return what is kept of a unit, or ``None`` where nothing whole is, or of other code."""
    file = None if folder is None else folder / f"{unit.name}.json"
    if file is None or not file.exists():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        is_ours = {"seconds", "result"} <= found.keys() and found["code"] == _code(unit)
    except DAMAGE:  # cut off or not written by us: computed again
        return None
    return found if is_ours else None


def _write(folder: Path | None, name: str, text: str) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{name}.json", text.encode())


def on_device(device: str | None, array: np.ndarray) -> Any:
    """Return the array in double precision, on the device if there is one."""
    array = np.ascontiguousarray(array, dtype=np.float64)
    return array if device is None else require("torch", extra="torch").as_tensor(array, device=device)
