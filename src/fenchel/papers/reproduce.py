"""Implementation of ``fenchel reproduce``: run experiments, print tables, draw figures, write a page."""

import json
import os
import platform
import shutil
import subprocess
import time
from dataclasses import replace
from datetime import date
from inspect import cleandoc
from pathlib import Path
from typing import Any

import fenchel
from fenchel.app.cli.terminal import echo, print_table, rich, rich_progress
from fenchel.app.persistence import versions
from fenchel.data.files import write_whole
from fenchel.datasets.store import data_folder
from fenchel.papers.catalogue import EXPERIMENTS
from fenchel.papers.comparison import MISS, Comparison
from fenchel.papers.experiment import Outcome, absent_files, units_of
from fenchel.papers.experiment import run as run_units
from fenchel.papers.page import (
    HEADER,
    Finished,
    by_kind,
    footnotes,
    markdown,
    origin,
    reproduction_page,
    row_cells,
    tally,
    told,
)
from fenchel.report import figures as plots

__all__ = ["run"]


def run(
    names: tuple[str, ...],
    output: Path,
    quick: bool,
    jobs: int,
    dask: str | None,
    fresh: bool,
    table: Path | None,
    as_json: bool,
    full: bool = False,
) -> None:
    """Run experiments, write their page, and exit with the status of the run."""
    start, commit = time.perf_counter(), _commit()  # a long run may end after the next commit
    parts = output / ("parts-quick" if quick else "parts")
    if fresh and parts.exists():
        shutil.rmtree(parts)
    chosen = _with_data(names)
    output.mkdir(parents=True, exist_ok=True)
    done = []
    for name in chosen:
        outcome = _run(name, quick, full, parts, jobs, dask, silent=as_json)
        fig = EXPERIMENTS[name].draw(outcome.found)
        fig.savefig(output / f"{name}.png", dpi=110)
        about = cleandoc(EXPERIMENTS[name].__doc__ or name)
        rows = [_explained(row) for row in outcome.rows] if quick else outcome.rows
        done.append(Finished(name, about, rows, plots.svg(fig), outcome.results, outcome.seconds, outcome.reused))
        if not as_json:
            _show(done[-1], quick)
    facts = {**_facts(done, quick, jobs, dask, time.perf_counter() - start), **commit}
    write_whole(output / "reproduce.html", reproduction_page(done, facts).encode())
    if table is not None:
        write_whole(table, markdown(done, facts).encode())
    _conclude(done, output / "reproduce.html", facts, as_json)


def _with_data(names: tuple[str, ...]) -> list[str]:
    """Return the experiments to run: raise if a named one lacks data, and skip the others with one line."""
    chosen = list(names or sorted(EXPERIMENTS))
    if os.environ.get("FENCHEL_DATA_URL"):
        return chosen  # absent files are fetched
    absent = {name: files for name in chosen if (files := absent_files(EXPERIMENTS[name]))}
    if not absent:
        return chosen
    files = sorted({file for some in absent.values() for file in some})
    sets = sorted({file.split("/")[0] for file in files})
    commands = "; ".join(f"fenchel datasets source {name}" for name in sets)
    line = (
        f"{', '.join(absent)}: {data_folder()} has no {', '.join(files)}. To see how to get the data, run: {commands}"
    )
    if names or len(absent) == len(chosen):
        raise FileNotFoundError(line)
    echo(f"Left out {line}", err=True)
    return [name for name in chosen if name not in absent]


def _run(name: str, quick: bool, full: bool, folder: Path, jobs: int, dask: str | None, silent: bool) -> Outcome:
    """Run one experiment with a progress bar."""
    experiment = EXPERIMENTS[name]
    units = units_of(experiment, quick, full)
    with rich_progress.Progress(disable=silent, transient=True) as bar:
        task = bar.add_task(name, total=len(units))
        return run_units(
            experiment, units, folder, lambda _, finished, total: bar.update(task, completed=finished), jobs, dask
        )


def _show(one: Finished, quick: bool) -> None:
    """Print the table of an experiment, and the choices made after seeing test data."""
    marks = footnotes(one.rows)
    print_table(f"{one.name}, reduced" if quick else one.name, HEADER, [row_cells(row, marks) for row in one.rows])
    for choice, mark in marks.items():
        echo(f"{mark} {choice}")


def _explained(row: Comparison) -> Comparison:
    """Return a row of a reduced run; if it misses, say in the note that only the full run is comparable."""
    if row.verdict != MISS:
        return row
    return replace(row, note=f"reduced: only the full run is comparable; {row.note}")


def _facts(done: list[Finished], quick: bool, jobs: int, dask: str | None, elapsed: float) -> dict[str, str]:
    """Return what a reader must know about a run; ``elapsed`` is its wall-clock time in seconds."""
    total, reused = sum(len(one.results) for one in done), sum(len(one.reused) for one in done)
    return {
        "kind": "reduced: fewer splits, draws or losses than published" if quick else "full",
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "workers": "those of a Dask cluster" if dask else f"{jobs} process{'' if jobs == 1 else 'es'}",
        "parts": f"{total}, of which {reused} reused from earlier runs",
        "computing": f"{sum(one.seconds for one in done) / 60:.1f} minutes, all parts added up",
        "wall-clock time of this run": f"{elapsed / 60:.1f} minutes",
        **{f"version of {name}": version for name, version in versions().items()},
    }


def _commit() -> dict[str, str]:
    """Return the commit of the source if it is a git checkout, else nothing."""
    folder = Path(fenchel.__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout

    try:
        if not git("ls-files", "__init__.py"):  # installed inside another project's checkout
            return {}
        commit, changes = git("rev-parse", "--short", "HEAD").strip(), git("diff", "--name-only", "HEAD", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"commit": f"{commit}, with local changes" if changes else commit}


def _conclude(done: list[Finished], page: Path, facts: dict[str, str], as_json: bool) -> None:
    """Print how many rows pass, tie and miss, and exit with status 1 if any row misses."""
    every = [row for one in done for row in one.rows]
    counts = tally(every)
    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "experiment": one.name,
                "number": row.name,
                "wanted": row.published,
                "ours": row.ours,
                "tolerance": row.tolerance,
                "at_most": row.at_most,
                "standard_error": row.standard_error,
                "trivial": row.trivial,
                "looked_at_test": row.looked_at_test,
                "passes": bool(row.passes),
                "verdict": row.verdict,
                "kind": row.kind,
                "note": row.note,
            }
            for one in done
            for row in one.rows
        ]
        reused = {one.name: one.reused for one in done if one.reused}
        found = {"facts": facts, "page": str(page), "counts": counts, "counts_by_kind": by_kind(every)}
        echo(json.dumps({**found, "reused": reused, "rows": rows}))
    else:
        rich.print(f"{told(every)}. {origin(done)} Page: {page}")
    raise SystemExit(1 if counts[MISS] else 0)
