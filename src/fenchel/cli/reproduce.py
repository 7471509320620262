"""``fenchel reproduce``."""

from inspect import signature
from pathlib import Path
from typing import Any

from fenchel.cli.terminal import click, command, print_table, rich_progress
from fenchel.experiments import EXPERIMENTS

__all__ = ["reproduce_command"]


@command("reproduce")
@click.argument("names", nargs=-1, type=click.Choice(sorted(EXPERIMENTS)))
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("reproduce"), show_default=True
)
def reproduce_command(names: tuple[str, ...], output: Path) -> None:
    """Compute published numbers anew, print them beside ours, draw the figures."""
    output.mkdir(parents=True, exist_ok=True)
    missed = 0
    for name in names or sorted(EXPERIMENTS):
        with rich_progress.Progress() as bar:
            tasks: dict[str, Any] = {}

            def advance(what: str, done: int, total: int, bar: Any = bar, tasks: dict[str, Any] = tasks) -> None:
                if what not in tasks:
                    tasks[what] = bar.add_task(what, total=total)
                bar.update(tasks[what], completed=done)

            try:
                rows, surfaces = _run(EXPERIMENTS[name], advance, output / "parts")
            except FileNotFoundError as error:
                raise click.ClickException(str(error)) from error
        EXPERIMENTS[name].draw(surfaces).savefig(output / f"{name}.png", dpi=110)
        header = ["number", "wanted", "ours", "tolerance", "", "note"]
        cells = [
            [
                row.name,
                f"{row.published:.4g}",
                f"{row.ours:.4g}",
                f"at most +{row.tolerance:g}" if row.at_most else f"{row.tolerance:g}",
                "PASS" if row.passes else "MISS",
                row.note,
            ]
            for row in rows
        ]
        missed += sum(not row.passes for row in rows)
        print_table(name, header, cells)
    raise SystemExit(1 if missed else 0)


def _run(experiment: Any, advance: Any, folder: Path) -> Any:
    """Run an experiment; a long one keeps its finished parts in a folder, and goes on from there."""
    is_long = "folder" in signature(experiment.run).parameters
    return experiment.run(advance, folder=folder) if is_long else experiment.run(advance)
