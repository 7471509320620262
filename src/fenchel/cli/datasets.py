"""``fenchel datasets``: its commands. The work is in ``data_files``, which is imported when one of them runs."""

from importlib import import_module

from fenchel.cli.groups import OneLineGroup, click, command

__all__ = ["datasets_command"]

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("datasets", cls=OneLineGroup)
def datasets_command() -> None:
    """Data files that the experiments and the loaders of fenchel.datasets read.

    They are looked for in the folder FENCHEL_DATA, ~/fenchel_data by default, and fetched from the address
    FENCHEL_DATA_URL if it is set.

    \b
      fenchel datasets list
      fenchel datasets check dti usps
    """


@command("list")
@_JSON
def list_command(as_json: bool) -> None:
    """List the data sets with their sizes and how many of their files are there.

    \b
      fenchel datasets list
    """
    import_module("fenchel.cli.data_files").list_files(as_json)


@command("path")
@click.argument("name", required=False)
def path_command(name: str | None) -> None:
    """Print the folder of the data, or that of one data set.

    \b
      fenchel datasets path dti
    """
    import_module("fenchel.cli.data_files").path(name)


@command("check")
@click.argument("names", nargs=-1)
@_JSON
def check_command(names: tuple[str, ...], as_json: bool) -> None:
    """Compare files with their checksums.

    Without NAMES, those of all data sets. The exit status is 1 if one is damaged; an absent file is not an error.

    \b
      fenchel datasets check
      fenchel datasets check dti usps --json
    """
    import_module("fenchel.cli.data_files").check(names, as_json)


@command("fetch")
@click.argument("names", nargs=-1, required=True)
@click.option("--url", help="Where the files are.  [default: FENCHEL_DATA_URL]")
def fetch_command(names: tuple[str, ...], url: str | None) -> None:
    """Download absent and damaged files from a copy of the data folder.

    \b
      fenchel datasets fetch dti --url https://example.org/fenchel_data
    """
    import_module("fenchel.cli.data_files").fetch_files(names, url)


for _command in (list_command, path_command, check_command, fetch_command):
    datasets_command.add_command(_command)
