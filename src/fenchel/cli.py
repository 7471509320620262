"""The command line; the only module that prints."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fenchel._check import require
from fenchel.experiments import EXPERIMENTS, demo
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
    """Robust multi-output regression on built-in data: a table, a picture and a page."""
    rows, sample = demo.run()
    header = ["data", "model", "test error", "gap", "null duals", "seconds"]
    cells = [
        [
            row.data,
            row.model,
            f"{row.error:.4f}",
            "" if row.gap is None else f"{max(row.gap, 0):.1e}",
            "" if row.sparsity is None else f"{row.sparsity:.0%}",
            f"{row.seconds:.3f}",
        ]
        for row in rows
    ]
    _print_table("Robust multi-output regression", header, cells)
    output.mkdir(parents=True, exist_ok=True)
    fig, (left, right) = plots.figure(2)
    names = list(dict.fromkeys(row.model for row in rows))
    groups = {data: [row.error for row in rows if row.data == data] for data in dict.fromkeys(row.data for row in rows)}
    plots.plot_errors(left, names, groups, "mean squared distance to the noise-free outputs")
    robust = next(row for row in rows if row.model == "fenchel Huber" and row.data != "clean")
    plots.plot_outlier_scores(right, robust.scores, sample.is_outlier)
    right.set_title("Huber loss, contaminated data")
    fig.savefig(output / "demo.png", dpi=120)
    intro = (
        "Test error of models fitted on 300 samples with five outputs, on clean data and with 15 % of the output "
        "vectors replaced by gross errors. The gap is the relative duality gap that certifies each fit."
    )
    drawing = f"<figure>{plots.svg(fig)}<figcaption>Errors, and outlier scores of the Huber fit.</figcaption></figure>"
    text = pages.page("fenchel: robust multi-output regression", intro, pages.table(header, cells), drawing)
    (output / "demo.html").write_text(text, encoding="utf-8")
    rich.print(f"Picture: {output / 'demo.png'}\nPage:    {output / 'demo.html'}")


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
                rows, surfaces = EXPERIMENTS[name].run(advance)
            except FileNotFoundError as error:
                raise click.ClickException(str(error)) from error
        EXPERIMENTS[name].draw(surfaces).savefig(output / f"{name}.png", dpi=110)
        header = ["number", "published", "ours", "tolerance", "", "note"]
        cells = [
            [
                row.name,
                f"{row.published:g}",
                f"{row.ours:.4f}",
                f"{row.tolerance:g}",
                "PASS" if row.passes else "MISS",
                row.note,
            ]
            for row in rows
        ]
        missed += sum(not row.passes for row in rows)
        _print_table(name, header, cells)
    raise SystemExit(1 if missed else 0)


def _print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    table = rich_table.Table(title=title)
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k < 2 else "right", no_wrap=k > 1 and name != "note")
    for row in rows:
        table.add_row(*row)
    rich.print(table)


if __name__ == "__main__":
    main()
