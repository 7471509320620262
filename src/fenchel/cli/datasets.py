"""``fenchel datasets``."""

import json
from typing import Any

from fenchel.cli.terminal import OneLineGroup, click, command, print_table, rich_progress
from fenchel.datasets.store import check_files, data_folder, fetch, known_files

__all__ = ["datasets_command"]


@click.group("datasets", cls=OneLineGroup)
def datasets_command() -> None:
    """Data files that the experiments and the loaders of fenchel.datasets read.

    They are looked for in the folder FENCHEL_DATA, ~/fenchel_data by default, and fetched from the address
    FENCHEL_DATA_URL where that is set.
    """


@command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """Show every data set, its size, and whether it is there."""
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


@command("path")
@click.argument("name", required=False)
def path_command(name: str | None) -> None:
    """Print the folder of the data, or that of one data set."""
    _known(() if name is None else (name,))
    click.echo(str(data_folder() if name is None else data_folder() / name))


@command("check")
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_command(names: tuple[str, ...], as_json: bool) -> None:
    """Compare the files of some data sets, or of all, with their checksums.

    The exit status is 1 if one is damaged; a file that is not there is no error.
    """
    _known(names)
    states = {known.name: state for known, state in check_files(list(names))}
    if as_json:
        click.echo(json.dumps(states))
    else:
        print_table(str(data_folder()), ["file", "state"], [[name, state] for name, state in states.items()])
    raise SystemExit(1 if "damaged" in states.values() else 0)


@command("fetch")
@click.argument("names", nargs=-1, required=True)
@click.option("--url", help="Where the files are.  [default: FENCHEL_DATA_URL]")
def fetch_command(names: tuple[str, ...], url: str | None) -> None:
    """Download the files of some data sets that are not there, or are damaged."""
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


for _command in (list_command, path_command, check_command, fetch_command):
    datasets_command.add_command(_command)
