"""Implementation of ``fenchel demo``: fit, print and draw."""

from pathlib import Path

from fenchel.app.cli.terminal import print_table, rich, rich_progress
from fenchel.app.pages import page as pages
from fenchel.data.files import write_whole
from fenchel.papers import demo
from fenchel.report import figures as plots

__all__ = ["run"]


def run(output: Path) -> None:
    """Run the demonstration, print its table, and write its picture and its page."""
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
    print_table(title, [name.replace(" ", "\n") for name in header], cells, parted=True)
    output.mkdir(parents=True, exist_ok=True)
    fig, axes = plots.figure(3, rows=2)
    for panel, ax in zip(demo.PANELS, axes, strict=True):
        panel(ax, found)
    fig.savefig(output / "demo.png", dpi=110)
    write_whole(output / "demo.html", _demo_page(title, found, header, cells).encode())
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
