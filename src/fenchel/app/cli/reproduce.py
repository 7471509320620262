"""Options of ``fenchel reproduce``, implemented in ``papers.reproduce``, imported when the command runs."""

from importlib import import_module
from pathlib import Path

from fenchel.app.cli.groups import click, command

__all__ = ["EXPERIMENT_NAMES", "reproduce_command"]

EXPERIMENT_NAMES = (
    "bibtex",
    "dti",
    "fp490",
    "kae",
    "lip",
    "metabolites",
    "missing",
    "movielens",
    "operators",
    "robust-sine",
    "speech",
    "synthetic",
    "usps",
    "yeast-curves",
    "yeast-hamming",
)


@command("reproduce")
@click.argument("names", nargs=-1, type=click.Choice(EXPERIMENT_NAMES))
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("reproduce"),
              show_default=True, help="Folder for the report, the figures and the finished parts.")  # fmt: skip
@click.option("--quick", is_flag=True, help="A reduced version of each, labelled as such: minutes for all of them.")
@click.option("--full", is_flag=True, help="Grids of the papers where they are finer: a day for speech.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes.")
@click.option("--dask", metavar="ADDRESS", help="Compute on the workers of this Dask scheduler instead.")
@click.option("--fresh", is_flag=True, help="Compute all parts again, including those that are finished.")
@click.option(
    "--markdown",
    "table",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the tables to this Markdown file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON, and nothing else.")
def reproduce_command(
    names: tuple[str, ...],
    output: Path,
    quick: bool,
    full: bool,
    jobs: int,
    dask: str | None,
    fresh: bool,
    table: Path | None,
    as_json: bool,
) -> None:
    """Recompute published numbers, print them next to ours, draw the figures and write an HTML report.

    Without NAMES, all experiments whose data are available. Each part is stored in OUTPUT as soon as it is computed, so
    that an interrupted run resumes where it stopped. The data are read from the folder FENCHEL_DATA; "fenchel datasets"
    says how to get them. The exit status is 1 if a number misses; a tie is not a miss.

    \b
      fenchel reproduce robust-sine synthetic
      fenchel reproduce --quick --jobs 2
      fenchel reproduce --dask tcp://scheduler:8786
    """
    if quick and full:
        raise click.UsageError("Use either --quick or --full: one has fewer candidates, the other more.")
    import_module("fenchel.papers.reproduce").run(names, output, quick, jobs, dask, fresh, table, as_json, full)
