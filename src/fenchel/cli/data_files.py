"""The work of ``fenchel datasets``."""

import json
from typing import Any

from fenchel.cli.terminal import click, print_table, rich_progress
from fenchel.datasets.store import check_files, data_folder, fetch, known_files

__all__ = ["check", "fetch_files", "list_files", "path"]


def list_files(as_json: bool) -> None:
    """Print each data set, its size and how many of its files are there."""
    rows: dict[str, list[int]] = {}
    for known in known_files().values():
        is_there = (data_folder() / known.name).is_file()
        files, size, found = rows.get(known.data_set, [0, 0, 0])
        rows[known.data_set] = [files + 1, size + known.size, found + is_there]
    if as_json:
        keys = ("files", "bytes", "there")
        click.echo(json.dumps({name: dict(zip(keys, row, strict=True)) for name, row in rows.items()}))
        return
    cells = [[name, f"{found} of {files}", f"{size / 1e6:.1f} MB"] for name, (files, size, found) in rows.items()]
    print_table(str(data_folder()), ["data set", "files there", "size"], cells)


def path(name: str | None) -> None:
    """Print the folder of the data, or that of one data set."""
    _known(() if name is None else (name,))
    click.echo(str(data_folder() if name is None else data_folder() / name))


def check(names: tuple[str, ...], as_json: bool) -> None:
    """Compare the files of some data sets, or of all, with their checksums; exit with 1 if one is damaged."""
    _known(names)
    states = {known.name: state for known, state in check_files(list(names))}
    if as_json:
        click.echo(json.dumps(states))
    else:
        print_table(str(data_folder()), ["file", "state"], [[name, state] for name, state in states.items()])
    raise SystemExit(1 if "damaged" in states.values() else 0)


def fetch_files(names: tuple[str, ...], url: str | None) -> None:
    """Download the absent and damaged files of some data sets."""
    _known(names)
    with rich_progress.Progress(transient=True) as bar:
        for known, state in list(check_files(list(names))):
            if state != "ok":
                _fetch_one(known.name, known.size, url, bar)
    click.echo(f"{', '.join(names)}: complete in {data_folder()}")


def _fetch_one(name: str, size: int, url: str | None, bar: Any) -> None:
    task = bar.add_task(name, total=size)
    fetch(name, url, lambda _, done, total: bar.update(task, completed=done))


def _known(names: tuple[str, ...]) -> None:
    sets = sorted({known.data_set for known in known_files().values()})
    for name in names:
        if name not in sets:
            raise ValueError(f"There is no data set {name!r}. Known ones: {', '.join(sets)}.")
