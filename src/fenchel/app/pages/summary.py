"""One page about a fitted model: certificate, convergence, outliers, sparsity, grid of the selection, predictions."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from fenchel.app.pages import page as pages
from fenchel.app.pages.assets import SCRIPT, STYLE
from fenchel.app.pages.charts import Axis, Chart, bar, heatmap, number
from fenchel.app.pages.model import ModelFacts, Pairs
from fenchel.data.files import csv_line
from fenchel.datasets.tables import as_table
from fenchel.metrics.scores import Scores
from fenchel.report.figures import CLIPPED
from fenchel.report.surface import Surface

__all__ = ["kernel_text", "model_page"]

_WORST = 12  # number of samples that can be shown, one at a time
_DOTS = 1500  # maximum number of dots in a chart; its data have all of them
_CURVE_KEYS = '<span class="key">observed</span><span class="key dashed">predicted</span>'
_POINT_KEYS = '<span class="key spot">observed</span><span class="key short">predicted</span>'
_FLOOR = 1e-17  # a gap below this is round-off, and may be negative


def model_page(model: Any, data: Any = None, source: str = "", versions: dict[str, Any] | None = None) -> str:
    """Return a self-contained HTML page about a fitted model.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library with a certificate, or a ``TableRegressor``.
    data : Table, DataFrame or None, default=None
        For a ``TableRegressor``, a table with inputs and targets, whose predictions are drawn against observations.
        ``None`` takes the training samples that the model keeps, if its outputs are numbers.
    source : str, default=""
        Where the model comes from, for the title.
    versions : dict or None, default=None
        Versions of the libraries to name, such as ``fenchel.app.persistence.describe`` finds in the model's file.

    Returns
    -------
    page : str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.app.pages.summary import model_page
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> page = model_page(OperatorKernelRegressor(loss="huber").fit(X, np.sin(X)))
    >>> page.startswith("<!doctype html>"), "http://" in page.replace("http://www.w3.org/2000/svg", "")
    (True, False)
    """
    facts = ModelFacts.of(model)
    table = None if data is None else as_table(data)
    pairs = facts.training if table is None else facts.compared(table)
    notes = [] if table is None or facts.table is None else facts.table.comparison_notes(table)
    name = type(facts.estimator).__name__
    about = f" of {source}" if source else ""
    counted = "0, as in Python" if facts.table is None else "1, the first row of the table below its header"
    intro = (
        f"{name}{about}: {len(facts.rows)} training samples. Hover over a point to see its value; click on a sample to "
        f"draw it. Samples are counted from {counted}."
    )
    blocks = [
        _verdict(facts),
        _section("Fit", _fit_quality(facts, pairs)),
        _section("Certificate", _certificate(facts)),
        _section("Convergence", _convergence(facts)),
        _section("Outliers by held-out residuals", _held_out(facts, table)),
        _section("Clipped samples", _outliers(facts)),
        _section("Sparsity", _sparsity(facts)),
        _section("Regularisation surface", _surfaces(facts)),
        _section("Predictions against observations", _predictions(pairs)),
        _section("Settings", _settings(facts, versions, notes)),
    ]
    return pages.page(f"fenchel: {name}", intro, *blocks, style=STYLE, script=SCRIPT)


def kernel_text(kernel: Any) -> str:
    """Return a kernel in one line, with four digits and without its arrays.

    Parameters
    ----------
    kernel : kernel
        A kernel, or one of its parameters.

    Returns
    -------
    text : str
        The line.
    """
    if not hasattr(kernel, "get_params"):
        return f"{kernel:.4g}" if isinstance(kernel, float) else repr(kernel)
    parts = [
        kernel_text(value) if hasattr(value, "get_params") else f"{name}={kernel_text(value)}"
        for name, value in kernel.get_params(deep=False).items()
        if value is not None and not hasattr(value, "shape")
    ]
    return f"{type(kernel).__name__}({', '.join(parts)})"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _verdict(facts: ModelFacts) -> str:
    gap, tol = max(facts.estimator.duality_gap_, 0.0), facts.estimator.tol
    if facts.is_certified:
        kind = getattr(facts.estimator, "certificate_", "exact")
        approximation = getattr(facts.estimator, "approximation", None)
        of = {
            "approximate": f" It is that of the approximate kernel, {approximation!r}.",
            "sampled": " It is estimated from some rows of the kernel.",
        }
        text = f"✓ Certified: the relative duality gap {gap:.1e} is within tol {tol:g}.{of.get(kind, '')}"
        return f'<p class="verdict">{escape(text)}</p>'
    text = f"✗ Not certified: the relative duality gap {gap:.1e} is above tol {tol:g}. {facts.estimator.status_}"
    return f'<p class="verdict bad">{escape(text)}</p>'


def _fit_quality(facts: ModelFacts, pairs: Pairs | None) -> str:
    quality = facts.fit_quality(pairs)
    if not quality:
        return ""
    has_linear = any(s.rmse_of_linear is not None for _, s in quality)
    rows = [
        [name, f"{s.r2:.4f}", f"{s.rmse:.4g}", f"{s.rmse_of_mean:.4g}"]
        + ([] if not has_linear else ["" if s.rmse_of_linear is None else f"{s.rmse_of_linear:.4g}"])
        for name, s in quality
    ]
    heads = ["rows", "R²", "RMSE", "RMSE of the mean", *(["RMSE of a linear model"] if has_linear else [])]
    text = (
        "The certificate says that the model is the optimum of its objective, these numbers how well it predicts. "
        "RMSE is the root mean squared error, the mean is that of the training targets, and a linear model is a ridge "
        "regression with its penalty chosen by leave-one-out."
    )
    names = facts.table.target_names_ if facts.table is not None else [] if pairs is None else pairs.names
    return f"{pages.table(heads, rows, n_texts=1)}<p>{text}</p>{_fit_by_target(quality, names)}"


def _fit_by_target(quality: Sequence[tuple[str, Scores]], names: Sequence[str]) -> str:
    """Return the scores of each of several targets."""
    if len(names) < 2 or any(s.output_rmse is None for _, s in quality):
        return ""
    rows = [
        [target, part, f"{s.output_r2[k]:.4f}", f"{s.output_rmse[k]:.4g}"]
        for k, target in enumerate(names)
        for part, s in quality
        if s.output_r2 is not None and s.output_rmse is not None
    ]
    text = "Each target in its own units. The RMSE above is over all targets: those with large numbers dominate it."
    return f"{pages.table(['target', 'rows', 'R²', 'RMSE'], rows)}<p>{text}</p>"


def _certificate(facts: ModelFacts) -> str:
    fitted = facts.estimator
    is_chosen = hasattr(fitted, "best_lam_")
    parameters = fitted.get_params(deep=False)  # the loss of LossTrickPredictor is called surrogate
    loss = fitted.best_loss_ if is_chosen else parameters.get("loss", parameters.get("surrogate", "built in"))
    rows = [
        ("primal objective", f"{fitted.primal_objective_:.10g}"),
        ("dual objective", f"{fitted.dual_objective_:.10g}"),
        ("relative gap", f"{max(fitted.duality_gap_, 0):.2e} (tol {fitted.tol:g})"),
        ("status", fitted.status_),
        ("solver", f"{fitted.solver_info_['solver']}: {fitted.solver_info_['reason']}"),
        ("iterations", str(fitted.n_iter_)),
        ("loss", f"{loss!r}{', chosen' if is_chosen else ''}"),
        *([("kernel", f"{kernel_text(fitted.best_kernel_)}, chosen")] if is_chosen else []),
        ("lam", f"{fitted.best_lam_ if is_chosen else fitted.lam:.6g}{', chosen' if is_chosen else ''}"),
    ]
    return _facts(rows)


def _convergence(facts: ModelFacts) -> str:
    history = facts.estimator.history_
    steps = np.array([step for step, _ in history], dtype=float)
    gaps = np.array([max(gap, _FLOOR) for _, gap in history], dtype=float)
    if len(steps) < 2:
        return "<p>The solver needed no iterations: the first point was within the tolerance, or a closed form.</p>"
    tol = facts.estimator.tol
    finite = np.isfinite(gaps)
    chart = Chart(Axis.of(steps, "iteration"), Axis.of([*gaps[finite], tol], "relative duality gap", is_log=True))
    chart.level(tol, f"tol {tol:g}")
    chart.line(steps, gaps)
    chart.dots(steps, gaps, [f"iteration {step:.0f}: gap {gap:.2e}" for step, gap in zip(steps, gaps, strict=True)])
    table = [["iteration", "gap"], *([f"{s:.0f}", repr(float(g))] for s, g in zip(steps, gaps, strict=True))]
    caption = "The gap each time it was checked. Below the dotted line the fit is within its tolerance of the optimum."
    return _figures(_figure(chart.svg("Convergence"), caption, "convergence", table))


def _outliers(facts: ModelFacts) -> str:
    scores = facts.scores
    if scores is None:
        return (
            "<p>The loss of this model does not bound the dual variables, so there are no outlier scores. "
            "A Huber loss has them.</p>"
        )
    order = facts.suspects()
    clipped = int(np.sum(scores >= CLIPPED))
    drawn = _thinned(len(order), _DOTS)
    place, shown = np.arange(1, len(order) + 1)[drawn], order[drawn]
    chart = Chart(Axis.of(place, "samples, the most suspicious first"), Axis(-0.03, 1.12, "outlier score"))
    chart.level(1.0, "clipped", at_end=True)
    drawable = _drawable(facts, order)
    for is_high in (False, True):
        mask = (scores[shown] >= CLIPPED) == is_high
        tips = [f"sample {facts.rows[i]}: score {scores[i]:.4f}" for i in shown[mask]]
        shows = [f"worst {facts.rows[i]}" if i in drawable else "" for i in shown[mask]]
        chart.dots(place[mask], scores[shown][mask], tips, "dot high" if is_high else "dot", shows)
    caption = (
        f"Dual norm over its bound, sorted. {clipped} of {len(scores)} samples are clipped: their influence is capped."
    )
    if len(drawn) < len(order):
        caption += f" {len(drawn)} of {len(order)} dots are drawn."
    table = [["sample", "score"], *([str(facts.rows[i]), repr(float(scores[i]))] for i in order)]
    figures = [_figure(chart.svg("Outlier scores"), caption, "outlier_scores", table)]
    viewer = _worst_viewer(facts, drawable)
    return _figures(*figures, *([viewer] if viewer else [])) + _worst_table(facts, order[:_WORST], drawable)


def _held_out(facts: ModelFacts, table: Any) -> str:
    """Return the rows that a model of the other rows predicts badly, if the table is the training table."""
    found = facts.outliers(table)
    if found is None:
        return ""
    report, rows = found
    ranked, has_outputs = report.table(), report.output_names is not None
    cells = [
        [
            str(rows[row["sample"]]),
            *([row["outputs"]] if has_outputs else []),
            f"{row['score']:.1f}",
            f"{row['p_value']:.1e}",
            "yes" if row["flagged"] else "no",
        ]
        for row in ranked[: max(_WORST, int(ranked["flagged"].sum()))]
    ]
    text = (
        f"{int(ranked['flagged'].sum())} of {len(rows)} rows are flagged at a false discovery rate of 0.1. Each row is "
        "compared with the prediction of a model that was not fitted to it; the score is in standard deviations."
    )
    heads = ["row", *(["targets"] if has_outputs else []), "score", "p-value", "flagged"]
    return f"{pages.table(heads, cells, n_texts=1 + has_outputs)}<p>{text}</p>"


def _drawable(facts: ModelFacts, order: np.ndarray) -> dict[int, int]:
    """Return the indices among the pairs of the worst samples that can be drawn."""
    if facts.training is None or facts.training.observed.shape[1] < 2:
        return {}
    place = {row: k for k, row in enumerate(facts.training.rows.tolist())}
    return {int(i): place[facts.rows[i]] for i in order[:_WORST] if facts.rows[i] in place}


def _worst_viewer(facts: ModelFacts, drawable: dict[int, int]) -> str:
    if not drawable or facts.training is None or facts.scores is None:
        return ""
    panels = [
        (str(facts.rows[i]), f"{facts.rows[i]}, score {facts.scores[i]:.3f}", _sample_chart(facts.training, k))
        for i, k in drawable.items()
    ]
    table = _pairs_csv(facts.training, list(drawable.values()))
    keys = _POINT_KEYS if facts.training.grid is None else _CURVE_KEYS
    text = "The samples with the highest scores, one at a time."
    return _viewer("worst", "sample", keys, panels, text, "worst", table)


def _worst_table(facts: ModelFacts, worst: np.ndarray, drawable: dict[int, int]) -> str:
    errors = None if facts.training is None else dict(zip(facts.training.rows, facts.training.errors, strict=True))
    body = ""
    for i in worst:
        row, score = facts.rows[i], 0.0 if facts.scores is None else facts.scores[i]
        error = "" if errors is None or row not in errors else f"{errors[row]:.4g}"
        show = f' data-show="worst {row}" tabindex="0"' if int(i) in drawable else ""
        body += f"<tr{show}><td>{row}</td><td>{score:.4f}</td><td>{error}</td></tr>"
    head = "<tr><th>sample</th><th>outlier score</th><th>root mean squared error</th></tr>"
    return f'<div class="scroll"><table class="worst"><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _sparsity(facts: ModelFacts) -> str:
    kinds, n = facts.kinds(), len(facts.rows)
    classes = {"null": "null", "inside": "inside", "not null": "inside", "on the bound": "bound"}
    shares = [(f"{name} ({count})", count / n, classes[name]) for name, count in kinds.items()]
    drawn = bar("Shares of dual variables", shares)
    entries = float(np.mean(facts.duals == 0))
    caption = (
        f"Samples by their dual variable: {kinds['null']} of {n} are null, and the model does without those samples. "
        f"Of the {facts.duals.size} single coordinates {entries:.1%} are zero."
    )
    norms = np.linalg.norm(facts.duals, axis=1)
    table = [["sample", "dual norm"], *([str(r), repr(float(v))] for r, v in zip(facts.rows, norms, strict=True))]
    return _figures(_figure(drawn, caption, "dual_norms", table))


def _surfaces(facts: ModelFacts) -> str:
    if facts.errors is None or facts.gaps is None:
        return ""
    best = np.unravel_index(int(np.nanargmin(facts.errors.values)), facts.errors.values.shape)
    return _figures(*(_surface(surface, (int(best[0]), int(best[1]))) for surface in (facts.errors, facts.gaps)))


def _surface(surface: Surface, best: tuple[int, int]) -> str:
    axis, names = surface.loss_names()
    lams = [number(lam) for lam in surface.lams]
    drawn = heatmap(surface.text, surface.values, lams, names, ("lam", axis), best)
    table = [[axis, "lam", surface.text]]
    for i, name in enumerate(names):
        table += [[name, repr(lam), repr(float(surface.values[i, j]))] for j, lam in enumerate(surface.lams)]
    low, high = np.nanmin(surface.values), np.nanmax(surface.values)
    caption = (
        f"{surface.text[0].upper()}{surface.text[1:]}, {low:.3g} (strong colour) to {high:.3g}. Framed: the choice."
    )
    return _figure(drawn, caption, surface.text.replace(" ", "_"), table)


def _predictions(pairs: Pairs | None) -> str:
    if pairs is None:
        return "<p>The outputs of this model are not plain numbers, or it keeps no training sample to compare with.</p>"
    if pairs.grid is None:
        chosen = list(range(min(pairs.observed.shape[1], _WORST)))
        panels = [(str(k), pairs.names[k], _scatter(pairs, k)) for k in chosen]
        text = f"Predicted against observed, for {pairs.text}; on the grey line both are equal."
        if len(chosen) < pairs.observed.shape[1]:
            text += f" {len(chosen)} of {pairs.observed.shape[1]} outputs are drawn."
    else:
        order = np.argsort(-pairs.errors, kind="stable")
        ranks = np.unique(np.linspace(0, len(order) - 1, min(len(order), _WORST)).astype(int))
        panels = [
            (str(pairs.rows[order[rank]]), f"{pairs.rows[order[rank]]}, error {pairs.errors[order[rank]]:.3g}",
             _sample_chart(pairs, int(order[rank])))
            for rank in ranks
        ]  # fmt: skip
        text = f"Curves of {pairs.text}, from the largest root mean squared error to the least."
        chosen = [int(order[rank]) for rank in ranks]
    table = _pairs_csv(pairs, list(range(len(pairs.rows))) if pairs.grid is None else chosen)
    what, keys = ("output", "") if pairs.grid is None else ("curve", _CURVE_KEYS)
    return _figures(_viewer("pairs", what, keys, panels, text, "predictions", table), _error_figure(pairs))


def _error_figure(pairs: Pairs) -> str:
    """Return a chart of the sorted errors of the samples."""
    errors = np.sort(pairs.errors)[::-1]
    names = pairs.rows[np.argsort(-pairs.errors, kind="stable")]
    drawn = _thinned(len(errors), _DOTS)
    chart = Chart(Axis.of(drawn + 1, "samples, the worst first"), Axis.of([0.0, *errors], "root mean squared error"))
    chart.dots(drawn + 1, errors[drawn], [f"sample {names[k]}: {errors[k]:.4g}" for k in drawn])
    table = [["sample", "error"], *([str(r), repr(float(e))] for r, e in zip(names, errors, strict=True))]
    caption = f"Errors of {pairs.text}: median {np.median(errors):.3g}, largest {errors[0]:.3g}."
    return _figure(chart.svg("Errors"), caption, "errors", table)


def _scatter(pairs: Pairs, k: int) -> str:
    observed, predicted = pairs.observed[:, k], pairs.predicted[:, k]
    drawn = _thinned(len(observed), _DOTS)
    both = [*observed, *predicted]
    x, y = Axis.of(both, f"observed {pairs.names[k]}"), Axis.of(both, "predicted")
    chart = Chart(x, y)
    chart.line([x.low, x.high], [y.low, y.high], "diagonal")
    tips = [f"sample {pairs.rows[i]}: observed {observed[i]:.4g}, predicted {predicted[i]:.4g}" for i in drawn]
    chart.dots(observed[drawn], predicted[drawn], tips)
    return chart.svg(f"Predicted against observed {pairs.names[k]}")


def _sample_chart(pairs: Pairs, k: int) -> str:
    """Return a chart of the observed and predicted outputs of a sample, over the grid or side by side."""
    observed, predicted = pairs.observed[k], pairs.predicted[k]
    y = Axis.of([*observed, *predicted], "value")
    if pairs.grid is None:  # separate outputs are not joined by a line
        places, names = np.arange(1, len(observed) + 1), pairs.names
        chart = Chart(Axis.of_names(names, "output"), y)
        chart.strokes(places, predicted)
    else:
        places, names = pairs.grid, [f"t = {t:.4g}" for t in pairs.grid]
        chart = Chart(Axis.of(places, "t"), y)
        chart.line(places, observed)
        chart.line(places, predicted, "dash")
    chart.dots(places, observed, [
        f"{name}: observed {value:.4g}, predicted {guess:.4g}"
        for name, value, guess in zip(names, observed, predicted, strict=True)
    ])  # fmt: skip
    return chart.svg(f"Sample {pairs.rows[k]}")


def _settings(facts: ModelFacts, versions: dict[str, Any] | None, notes: Sequence[str]) -> str:
    rows = list(facts.settings()) or [("parameters", "all at their defaults")]
    if facts.table is not None:
        rows.append(("inputs", ", ".join(facts.table.input_names_)))
        rows.append(("targets", ", ".join(facts.table.target_names_)))
        rows += [("note", note) for note in facts.table.notes_]
    rows += [("note on the compared rows", note) for note in notes]
    if versions is not None:
        rows.append(("versions", ", ".join(f"{name} {value}" for name, value in versions.items())))
    return _facts(rows)


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def _figures(*figures: str) -> str:
    return f'<div class="figures">{"".join(figures)}</div>'


def _figure(drawing: str, caption: str, name: str, table: Sequence[Sequence[str]], controls: str = "") -> str:
    """Return a chart with its caption and a link to save its data."""
    text = "\n".join(csv_line(row) for row in table) + "\n"
    link = f"data:text/csv;base64,{b64encode(text.encode()).decode('ascii')}"
    save = f'<a download="{escape(name)}.csv" href="{link}">data (CSV)</a>'
    return f"<figure>{controls}{drawing}<figcaption>{escape(caption)} {save}</figcaption></figure>"


def _viewer(
    name: str,
    what: str,
    keys: str,
    panels: Sequence[tuple[str, str, str]],
    caption: str,
    file: str,
    table: Sequence[Sequence[str]],
) -> str:
    """Return a viewer of several charts (key, title, chart) that shows one at a time."""
    options = "".join(f'<option value="{escape(key)}">{escape(title)}</option>' for key, title, _ in panels)
    controls = (
        f'<div class="controls"><label>{escape(what)} <select aria-label="{escape(what)}">{options}</select></label>'
        '<button type="button" class="back" aria-label="previous">◀</button>'
        f'<button type="button" class="next" aria-label="next">▶</button></div>{keys}'
    )
    shown = "".join(
        f'<div class="panel" data-key="{escape(key)}"{"" if k == 0 else " hidden"}>{drawing}</div>'
        for k, (key, _, drawing) in enumerate(panels)
    )
    return f'<div class="viewer" id="{name}">{_figure(shown, caption, file, table, controls)}</div>'


def _pairs_csv(pairs: Pairs, chosen: Sequence[int]) -> list[list[str]]:
    """Return observed and predicted outputs of some samples, one row for each output."""
    names = pairs.names if pairs.grid is None else [repr(float(t)) for t in pairs.grid]
    rows = [["sample", "output" if pairs.grid is None else "t", "observed", "predicted"]]
    for k in chosen:
        numbers = zip(names, pairs.observed[k].tolist(), pairs.predicted[k].tolist(), strict=True)
        rows += [[str(pairs.rows[k]), name, repr(seen), repr(guess)] for name, seen, guess in numbers]
    return rows


def _thinned(count: int, most: int) -> np.ndarray:
    """Return the indices to draw: the first half of the maximum number, and evenly spaced ones of the rest."""
    if count <= most:
        return np.arange(count)
    head = most // 2
    return np.concatenate([np.arange(head), np.linspace(head, count - 1, most - head).astype(int)])
