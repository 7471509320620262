"""Implementation of ``fenchel datasets``."""

import json
import os
from pathlib import Path
from typing import Any

from fenchel.app.cli.terminal import echo, print_table, rich_progress
from fenchel.data.files import DAMAGE
from fenchel.datasets.store import KnownFile, check_files, data_folder, fetch, known_files
from fenchel.papers.datasets.building import build, differences, read_columns
from fenchel.papers.datasets.sources import SOURCES

__all__ = ["build_files", "check", "fetch_files", "list_files", "path", "source"]


def list_files(as_json: bool) -> None:
    """Print each data set with its size and the number of its files that are present."""
    rows: dict[str, list[int]] = {}
    for known in known_files().values():
        is_there = (data_folder() / known.name).is_file()
        files, size, found = rows.get(known.data_set, [0, 0, 0])
        rows[known.data_set] = [files + 1, size + known.size, found + is_there]
    if as_json:
        keys = ("files", "bytes", "there")
        echo(json.dumps({name: dict(zip(keys, row, strict=True)) for name, row in rows.items()}))
        return
    cells = [
        [name, f"{found} of {files}", f"{size / 1e6:.1f} MB", "" if found == files else _how_to_get(name)]
        for name, (files, size, found) in rows.items()
    ]
    print_table(str(data_folder()), ["data set", "files there", "size", "how to get it"], cells)


def _how_to_get(name: str) -> str:
    return f"build {name}" if name in SOURCES and SOURCES[name].recipes else f"no public copy; see source {name}"


def source(name: str) -> None:
    """Print where a data set comes from."""
    _known((name,))
    one = SOURCES[name]
    echo(f"{one.title}\nsource     {one.url}\nlicence    {one.licence}\ncitation   {one.citation}")
    if one.recipes:
        echo(f"originals  {', '.join(one.originals)}\nbuild      fenchel datasets build {name} --from FOLDER")
    if one.note:
        echo(f"note       {one.note}")


def build_files(names: tuple[str, ...], folder: Path) -> None:
    """Build the files of some data sets from originals in a folder."""
    _known(names)
    for name in names:
        built, absent = build(name, folder)
        echo(f"{name}: built and checked {', '.join(str(file) for file in built)}")
        if absent:
            echo(f"{name}: not in {folder}: {', '.join(absent)}")


def path(name: str | None) -> None:
    """Print the folder of the data, or that of one data set."""
    _known(() if name is None else (name,))
    echo(str(data_folder() if name is None else data_folder() / name))


def check(names: tuple[str, ...], as_json: bool) -> None:
    """Compare the files of some data sets, or of all, with their checksums; exit with 1 if one differs or is absent."""
    _known(names)
    states = {known.name: _state(known, state) for known, state in check_files(list(names))}
    if as_json:
        echo(json.dumps(states))
    else:
        print_table(str(data_folder()), ["file", "state"], [[name, state] for name, state in states.items()])
    raise SystemExit(1 if {"damaged", "absent"} & set(states.values()) else 0)


def _state(known: KnownFile, state: str) -> str:
    """Return the state of a file; a built file has the content of the known file, but other bytes."""
    if state != "damaged":
        return state
    try:
        return "damaged" if differences(known.name, read_columns(data_folder() / known.name)) else "built"
    except DAMAGE:
        return state


def fetch_files(names: tuple[str, ...], url: str | None) -> None:
    """Download the missing and damaged files of some data sets."""
    _known(names)
    wrong = [known for known, state in check_files(list(names)) if _state(known, state) not in ("ok", "built")]
    if wrong and not (url or os.environ.get("FENCHEL_DATA_URL")):
        raise ValueError(_without_address(wrong[0].data_set))
    with rich_progress.Progress(transient=True) as bar:
        for known in wrong:
            _fetch_one(known.name, known.size, url, bar)
    echo(f"{', '.join(names)}: complete in {data_folder()}")


def _without_address(name: str) -> str:
    """Return what to do about files that have no address."""
    source = SOURCES.get(name)
    if source is not None and source.recipes:
        return (
            f"There is no address to download {name} from. Build it from public originals, as shown by: fenchel "
            f"datasets source {name}"
        )
    origin = "" if source is None else f" The data come from {source.url}."
    return (
        f"There is no address to download {name} from, and no public copy of the prepared files.{origin} If somebody "
        f"gives you the files, put them into {data_folder() / name}, or give the address of their folder with --url."
    )


def _fetch_one(name: str, size: int, url: str | None, bar: Any) -> None:
    task = bar.add_task(name, total=size)
    fetch(name, url, lambda _, done, total: bar.update(task, completed=done))


def _known(names: tuple[str, ...]) -> None:
    sets = sorted({known.data_set for known in known_files().values()})
    for name in names:
        if name not in sets:
            raise ValueError(f"There is no data set {name!r}. Known ones: {', '.join(sets)}.")
