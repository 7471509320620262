"""The command line; the only module that prints."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fenchel._check import require
from fenchel.experiments import EXPERIMENTS, demo
from fenchel.experiments.base import run
from fenchel.report import page as pages
from fenchel.report import plots

if TYPE_CHECKING:
    import click
    import rich
    from rich import progress as rich_progress
    from rich import table as rich_table
else:
    click = require("click", extra="cli")
    rich = require("rich", extra="cli")
    rich_progress = require("rich.progress", extra="cli")
    rich_table = require("rich.table", extra="cli")

__all__ = ["main"]


@click.group()
@click.version_option(package_name="fenchel")
def main() -> None:
    """Operator-valued kernel machines with certified duality gaps."""


@main.command("demo")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"), show_default=True)
def demo_command(output: Path) -> None:
    """Curves from curves, on made data with and without outliers: a table, a picture and a page."""
    with rich_progress.Progress(transient=True) as bar:
        task = bar.add_task("models chosen and fitted", total=None)
        found = demo.run(lambda done, total: bar.update(task, completed=done, total=total))
    title = "Regression of curves on curves, with and without outliers"
    header = ["data", "model", "test error", "gap", "null duals", "seconds"]
    cells = [
        [
            row.data,
            row.model,
            f"{row.error:.4f}",
            "" if row.gap is None else f"{max(row.gap, 0):.1e}",
            "" if row.nulls is None else f"{row.nulls:.0%}",
            f"{row.seconds:.2f}",
        ]
        for row in found.rows
    ]
    _print_table(title, [name.replace(" ", "\n") for name in header], cells, parted=True)
    output.mkdir(parents=True, exist_ok=True)
    fig, axes = plots.figure(3, rows=2)
    for panel, ax in zip(demo.PANELS, axes, strict=True):
        panel(ax, found)
    fig.savefig(output / "demo.png", dpi=110)
    (output / "demo.html").write_text(_demo_page(title, found, header, cells), encoding="utf-8")
    rich.print(f"Picture: {output / 'demo.png'}\nPage:    {output / 'demo.html'}")


def _demo_page(title: str, found: demo.Demo, header: list[str], cells: list[list[str]]) -> str:
    """Return the page of the demonstration."""
    intro = (
        f"Models of curves as functions of curves, fitted to {demo.N_TRAIN} pairs of curves at {demo.N_POINTS} points, "
        "with a link that is not linear. The training outputs are clean but for noise; or one curve in ten is replaced "
        "by another kind of curve; or three in ten are wrong at a tenth of their points. Every model chooses its "
        "parameters on the training curves, by the median error of held-out curves. The test error is the mean squared "
        "distance to the true curves. The gap is the relative duality gap, which certifies that a fit is the optimum. "
        "The seconds include the choice of the parameters."
    )
    chosen = [[*row, one.chosen] for row, one in zip(cells, found.rows, strict=True)]
    drawings = []
    for panel in demo.PANELS:
        fig, (ax,) = plots.figure()
        caption = panel(ax, found)
        drawings.append((plots.svg(fig), caption))
    return pages.page(
        f"fenchel: {title[0].lower()}{title[1:]}",
        intro,
        pages.items(demo.findings(found)),
        pages.table([*header, "chosen"], chosen),
        pages.figures(drawings),
    )


@main.command("reproduce")
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
                outcome = run(EXPERIMENTS[name], EXPERIMENTS[name].units(), output / "parts", advance)
            except FileNotFoundError as error:
                raise click.ClickException(str(error)) from error
        EXPERIMENTS[name].draw(outcome.found).savefig(output / f"{name}.png", dpi=110)
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
            for row in outcome.rows
        ]
        missed += sum(not row.passes for row in outcome.rows)
        _print_table(name, header, cells)
    raise SystemExit(1 if missed else 0)


def _print_table(title: str, header: list[str], rows: list[list[str]], parted: bool = False) -> None:
    """Print a table; if it is parted, with a line between rows that differ in the first column."""
    table = rich_table.Table(title=title)
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k < 2 else "right", no_wrap=k > 1 and name != "note")
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(*row, end_section=parted and following is not None and following[0] != row[0])
    rich.print(table)


if __name__ == "__main__":
    main()
