"""Commands of ``fenchel datasets``, implemented in ``papers.datasets.data_files``, imported when one of them runs."""

from importlib import import_module
from pathlib import Path

from fenchel.app.cli.groups import OneLineGroup, click, command

__all__ = ["datasets_command"]

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("datasets", cls=OneLineGroup)
def datasets_command() -> None:
    """Data files that the experiments and the loaders of fenchel.datasets read.

    They are looked for in the folder FENCHEL_DATA, ~/fenchel_data by default, and fetched from the address
    FENCHEL_DATA_URL if it is set. Most of them can be built from public originals; for the others, "source" says where
    the data come from.

    \b
      fenchel datasets list
      fenchel datasets source yeast
      fenchel datasets build yeast --from ~/Downloads
    """


@command("list")
@_JSON
def list_command(as_json: bool) -> None:
    """List the data sets with their sizes and how many of their files you have.

    \b
      fenchel datasets list
    """
    import_module("fenchel.papers.datasets.data_files").list_files(as_json)


@command("path")
@click.argument("name", required=False)
def path_command(name: str | None) -> None:
    """Print the folder of the data, or that of one data set.

    \b
      fenchel datasets path dti
    """
    import_module("fenchel.papers.datasets.data_files").path(name)


@command("check")
@click.argument("names", nargs=-1)
@_JSON
def check_command(names: tuple[str, ...], as_json: bool) -> None:
    """Compare files with their checksums.

    Without NAMES, those of all data sets. The exit status is 1 if a file is damaged or absent.

    \b
      fenchel datasets check
      fenchel datasets check dti usps --json
    """
    import_module("fenchel.papers.datasets.data_files").check(names, as_json)


@command("source")
@click.argument("name")
def source_command(name: str) -> None:
    """Print the public source, the licence and the citation of a data set.

    \b
      fenchel datasets source dti
    """
    import_module("fenchel.papers.datasets.data_files").source(name)


@command("build")
@click.argument("names", nargs=-1, required=True)
@click.option("--from", "folder", type=click.Path(path_type=Path), default=Path("."),
              show_default=True, help="Folder of the unpacked originals.")  # fmt: skip
def build_command(names: tuple[str, ...], folder: Path) -> None:
    """Build data files from downloaded originals, and check them.

    The shapes and sums of the result are compared with those of the known file; nothing is written if they differ.
    "fenchel datasets source NAME" says which originals are needed and where to get them.

    \b
      fenchel datasets build dti
      fenchel datasets build yeast mulan_mtr --from .
    """
    import_module("fenchel.papers.datasets.data_files").build_files(names, folder)


@command("fetch")
@click.argument("names", nargs=-1, required=True)
@click.option("--url", help="Address of a copy of the data folder.  [default: FENCHEL_DATA_URL]")
def fetch_command(names: tuple[str, ...], url: str | None) -> None:
    """Download missing and damaged files from a copy of the data folder.

    \b
      fenchel datasets fetch dti --url https://example.org/fenchel_data
    """
    import_module("fenchel.papers.datasets.data_files").fetch_files(names, url)


for _command in (list_command, path_command, source_command, build_command, check_command, fetch_command):
    datasets_command.add_command(_command)
