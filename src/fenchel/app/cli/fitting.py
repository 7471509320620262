"""Implementation of ``fenchel fit``: read, fit, save and print."""

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import LeaveOneGroupOut

from fenchel._optional import require
from fenchel._progress import reporting
from fenchel.app.cli.scoring import scores_by_target, scores_of, show_targets
from fenchel.app.cli.terminal import ROWS, click, echo, names_rows, rich_console, rich_progress
from fenchel.app.pages.summary import kernel_text, model_page
from fenchel.app.persistence import save, versions
from fenchel.app.tables import TableRegressor
from fenchel.conformal import ConformalRegressor
from fenchel.data.files import write_whole
from fenchel.datasets.tables import Table, read_table
from fenchel.estimators import (
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
)
from fenchel.losses.loss import is_square
from fenchel.report.figures import CLIPPED
from fenchel.solvers import watched

__all__ = ["run"]

Options = dict[str, Any]  # of the command, by name
Facts = dict[str, Any]  # what is printed, by name: numbers and text

_POOR = 0.1  # R² below which a loss that clips most rows is taken for one in the wrong units
_JACKKNIFE = 2000  # most rows for which intervals leave out one row at a time: the model holds a square of them
_SEARCHES = (OperatorKernelRegressorCV, FunctionalRegressorCV)
_NOT_CONVERGED = 3  # exit status of a fit that was kept, but is not within tol


def run(
    data: Path,
    test_size: float,
    seed: int,
    model_file: Path | None,
    report_file: Path | None,
    as_json: bool,
    options: Options,
) -> None:
    """Fit the model that the options describe, and exit with its status."""
    if model_file is not None:
        require("skops.io", extra="persist")  # fail before the fit, not after it
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        regressor = _regressor(options)
        table = read_table(data)
        if not options["targets"]:
            raise click.UsageError(
                f"Name the columns to predict with --target. {data} has {_names(list(table.columns))}."
            )
        train, test = _split(table, test_size, seed, options["groups"])
        start, estimator = time.perf_counter(), regressor.estimator
        with _progress(estimator):
            if options["coverage"] is not None:
                regressor.set_params(estimator=_conformal(estimator, options, len(train)))
            regressor.fit(train, groups=options["groups"], sample_weight=options["weights"])
        seconds = time.perf_counter() - start
        found = _result(regressor, train, test, seconds)
    found["warnings"] = [" ".join(str(one.message).split()) for one in caught]
    found |= _written(regressor, model_file, report_file, train if test is None else test, data.name)
    echo(json.dumps(found, indent=1)) if as_json else _show(found)
    not_converged = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    raise SystemExit(_NOT_CONVERGED if not_converged else 0)


def _written(
    regressor: TableRegressor, model_file: Path | None, report_file: Path | None, table: Table, source: str
) -> dict[str, str]:
    """Write the files that are asked for, and return their names."""
    names: dict[str, str] = {}
    if model_file is not None:
        save(regressor, model_file)
        names["model"] = str(model_file)
    if report_file is not None:
        page = model_page(regressor, data=table, source=source, versions=versions())
        write_whole(report_file, page.encode())
        names["report"] = str(report_file)
    return names


def _regressor(options: Options) -> TableRegressor:
    """Return the model that the options describe."""
    lams, losses, lam, max_iter = options["lams"], list(options["losses"]), options["lam"], options["max_iter"]
    is_one_fit = lam is not None or max_iter is not None
    if is_one_fit and len(losses) > 1:
        raise click.UsageError("Cross-validation chooses among several --loss; leave out --lam and --max-iter.")
    if is_one_fit and lams is not None:
        raise click.UsageError("--lams chooses lam by cross-validation; leave out --lam and --max-iter.")
    curves, center = options["curves"], options["center"]
    is_robust = is_one_fit and bool(losses) and not is_square(losses[0])  # a search centres by itself
    settings: Facts = {"tol": options["tol"]}
    if options["kernel"] is not None:
        settings["kernel"] = options["kernel"]
    if curves and center != "auto":
        settings["center"] = {"mean": True, "median": "median", "none": False}[center]
    elif center != "auto":
        settings["center"] = False  # TableRegressor centres the targets
    if is_one_fit:
        settings.update(loss=losses[0] if losses else "square", lam=1e-3 if lam is None else lam, max_iter=max_iter)
        estimator: BaseEstimator = (FunctionalRegressor if curves else OperatorKernelRegressor)(**settings)
    else:
        settings.update(
            losses=losses or "auto",
            lams=lams,
            cv=_folds(options["cv"], options["groups"]),
            aggregate=options["aggregate"],
        )
        estimator = (FunctionalRegressorCV if curves else OperatorKernelRegressorCV)(**settings)
    return TableRegressor(
        estimator,
        targets=list(options["targets"]),
        inputs=list(options["inputs"]) or None,
        drop=list(options["drop"]),
        curves=curves,
        center="none" if curves else center if center != "auto" else "median" if is_robust else "mean",
        scale=options["scale"],
        drop_missing=options["drop_missing"],
    )


def _conformal(estimator: BaseEstimator, options: Options, n_rows: int) -> ConformalRegressor:
    """Return a model with intervals: one for each target, or one band for all points of a curve."""
    method = "jackknife+" if n_rows <= _JACKKNIFE else "cv+"
    return ConformalRegressor(estimator, options["coverage"], method=method, joint=options["curves"])


def _folds(text: str, groups: str | None) -> str | int | LeaveOneGroupOut:
    """Return the folds of the search: a number, or leave one row or one group out."""
    if text == "loo":
        return text if groups is None else LeaveOneGroupOut()
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number of folds nor 'loo'", param_hint="--cv") from None


def _split(table: Table, share: float, seed: int, groups: str | None) -> tuple[Table, Table | None]:
    """Return the rows to fit and the rows to test; groups of rows are not divided."""
    if share == 0:
        return table, None
    labels = np.arange(len(table))
    if groups is not None:
        labels = np.unique(table.columns[table.known(groups, "groups")].astype(str), return_inverse=True)[1]
    units = int(labels.max()) + 1
    count = math.ceil(share * units)
    if count >= units:
        what = "rows" if groups is None else "groups"
        raise ValueError(f"--test-size {share:g} leaves none of the {units} {what} of {table.name} to fit.")
    is_test = np.isin(labels, np.random.default_rng(seed).permutation(units)[:count])
    return table.take(np.flatnonzero(~is_test)), table.take(np.flatnonzero(is_test))


@contextmanager
def _progress(estimator: BaseEstimator) -> Iterator[None]:
    """Show a progress bar with the work that is done, and the current gap of the solver."""
    columns = (
        rich_progress.SpinnerColumn(),
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.fields[gap]}"),
        rich_progress.TimeElapsedColumn(),
    )
    console = rich_console.Console(stderr=True)
    with rich_progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        is_chosen = isinstance(estimator, _SEARCHES)
        task = bar.add_task("choosing kernel, loss and lam" if is_chosen else "fitting", total=None, gap="")
        with (
            reporting(lambda done, total: bar.update(task, completed=done, total=total)),
            watched(lambda n_iter, found: bar.update(task, gap=f"step {n_iter}, gap {found.relative_gap:.1e}")),
        ):
            yield


def _result(model: TableRegressor, train: Table, test: Table | None, seconds: float) -> Facts:
    """Return what is printed, as plain numbers and text."""
    fitted = model.estimator_
    is_chosen = isinstance(fitted, _SEARCHES)
    found: Facts = {
        "estimator": type(fitted).__name__,
        "rows": len(model.rows_),
        "inputs": model.input_names_,
        "features": len(model.feature_names_),
        "targets": model.target_names_,
        "loss": repr(fitted.loss_),
        "kernel": kernel_text(fitted.best_kernel_ if is_chosen else fitted.kernel),
        "lam": float(fitted.best_lam_ if is_chosen else fitted.lam),
        "solver": fitted.solver_info_["solver"],
        "iterations": int(fitted.n_iter_),
        "status": fitted.status_,
        "primal": float(fitted.primal_objective_),
        "dual": float(fitted.dual_objective_),
        "gap": float(fitted.duality_gap_),
        "null_duals": float(fitted.sparsity_),
        "clipped": None,
        "cv_error": float(np.min(fitted.cv_errors_)) if is_chosen else None,
        **scores_of("train", model, train),
        "test_rows": None if test is None else len(model.sample(test)[2]),
        **scores_of("test", model, test),
        "by_target": scores_by_target(model, {"train": train, "test": test}),
        **_intervals(model, train, test),
        "seconds": round(seconds, 3),
        "notes": [*model.notes_, *([] if test is None else _test_notes(model, test))],
    }
    if hasattr(fitted, "outlier_score_"):
        _note_clipped(found, int(np.sum(fitted.outlier_score_ >= CLIPPED)), len(model.rows_))
    numbers = [name for name, value in found.items() if isinstance(value, float)]
    return found | {name: None for name in numbers if not math.isfinite(found[name])}  # JSON has no NaN


def _note_clipped(found: Facts, clipped: int, n_rows: int) -> None:
    """Add the number of rows that the loss clips as outliers, and what it means for the scores."""
    found["clipped"] = clipped
    if clipped:
        found["notes"].append(
            f"r2 and rmse include the rows that the loss clips as outliers (clipped: {clipped} of {n_rows}); the "
            "median error is less affected"
        )
    if clipped > n_rows / 2 and found["train_r2"] < _POOR:
        found["notes"].append(
            f"{clipped} of {n_rows} rows are clipped like outliers and the fit explains little: the parameter of the "
            "loss is in units of the targets, whose deviation from the mean is "
            f"{found['train_rmse_of_mean']:.4g}"
        )


def _intervals(model: TableRegressor, train: Table, test: Table | None) -> dict[str, float | None]:
    """Return the requested coverage, and the share of the test targets, or curves, that lie inside."""
    coverage = None if model.conformal_ is None else model.conformal_.coverage
    found: dict[str, float | None] = {"coverage": coverage, "test_coverage": None}
    if model.conformal_ is not None and test is None:
        model.predict_interval(train.take(np.arange(1)))  # warns if there are too few rows for the coverage
    if model.conformal_ is not None and test is not None:
        _, observed, numbers = model.sample(test)
        lower, upper = model.predict_interval(test.take(np.flatnonzero(np.isin(test.numbers, numbers))))
        is_inside = ~((observed < lower) | (observed > upper))  # missing values of a curve count as inside
        found["test_coverage"] = float(
            np.mean(np.all(is_inside, axis=1) if model.curves else is_inside[~np.isnan(observed)])
        )
    return found


def _test_notes(model: TableRegressor, test: Table) -> list[str]:
    return [f"test rows, {note}" for note in model.comparison_notes(test)]


def _show(found: Facts) -> None:
    """Print the result as text."""
    found = dict(found)
    for part, score in product(("train", "test"), ("rmse", "median_error")):
        key = f"{part}_{score}"
        mean, linear = found.pop(f"{key}_of_mean"), found.pop(f"{key}_of_linear")
        if found["by_target"] is not None:
            found[key] = None  # it would mix the units of the targets
        elif found[key] is not None:
            found[key] = f"{found[key]:.4g} (of the mean: {mean:.4g}, of a linear model: {linear:.4g})"
    formats: dict[str, Callable[..., str]] = {
        "inputs": _names, "targets": _names, "lam": lambda v: f"{v:.4g}", "gap": lambda v: f"{max(v, 0):.1e}",
        "primal": lambda v: f"{v:.8g}", "dual": lambda v: f"{v:.8g}", "null_duals": lambda v: f"{v:.0%}",
        "cv_error": lambda v: f"{v:.4g}", "train_r2": lambda v: f"{v:.4f}", "test_r2": lambda v: f"{v:.4f}",
        "test_coverage": lambda v: f"{v:.4g}",
    }  # fmt: skip
    for name, value in found.items():
        if value is None or name in ("notes", "warnings", "by_target"):
            continue
        echo(f"{name.replace('_', ' '):<12} {formats.get(name, str)(value)}")
        if name in ("train_r2", "test_r2") and found["by_target"] is not None:
            show_targets(found["by_target"], name.removesuffix("_r2"))
    for note in found["notes"]:
        echo(f"note         {note}")
    if any(names_rows(text) for text in [*found["notes"], *found["warnings"]]):
        echo(f"note         {ROWS}")
    for warning in found["warnings"]:
        click.echo(click.style("warning", fg="yellow"), nl=False)
        echo(f"      {warning}")


def _names(names: list[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return f"{len(names)}: {shown}" if len(names) <= most else f"{len(names)}: {shown}, ..."
