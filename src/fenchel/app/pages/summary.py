"""One page about a fitted model: certificate, convergence, outliers, sparsity, grid of the selection, predictions."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import has_shape
from fenchel.app.pages import page as pages
from fenchel.app.pages.assets import SCRIPT, STYLE
from fenchel.app.pages.charts import Axis, Chart, bar, heatmap, number
from fenchel.app.pages.drawings import (
    CURVE_KEYS,
    DOTS,
    POINT_KEYS,
    WORST,
    figure,
    figures,
    pairs_csv,
    predictions,
    sample_chart,
    thinned,
    viewer,
)
from fenchel.app.pages.model import ModelFacts, Pairs
from fenchel.datasets.tables import Table, as_table
from fenchel.metrics.scores import Scores
from fenchel.report.figures import CLIPPED
from fenchel.report.surface import Surface

__all__ = ["kernel_text", "model_page"]

_FLOOR = 1e-17  # a gap below this is round-off, and may be negative


def model_page(
    model: BaseEstimator, data: object = None, source: str = "", versions: Mapping[str, object] | None = None
) -> str:
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
        _section("Predictions against observations", predictions(pairs)),
        _section("Settings", _settings(facts, versions, notes)),
    ]
    return pages.page(f"fenchel: {name}", intro, *blocks, style=STYLE, script=SCRIPT)


def kernel_text(kernel: object) -> str:
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
    if not isinstance(kernel, BaseEstimator):
        return f"{kernel:.4g}" if isinstance(kernel, float) else repr(kernel)
    parts = [
        kernel_text(value) if isinstance(value, BaseEstimator) else f"{name}={kernel_text(value)}"
        for name, value in kernel.get_params(deep=False).items()
        if value is not None and not has_shape(value)
    ]
    return f"{type(kernel).__name__}({', '.join(parts)})"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _verdict(facts: ModelFacts) -> str:
    gap, tol = max(facts.estimator.duality_gap_, 0.0), facts.estimator.tol
    if facts.is_certified:
        kind, approximation = facts.estimator.certificate_, facts.estimator.get_params(deep=False).get("approximation")
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
    columns = _columns(
        facts.has_outliers,
        {
            "median error": [s.median for _, s in quality],
            "R²": [s.r2 for _, s in quality],
            "RMSE": [s.rmse for _, s in quality],
            "RMSE of the mean": [s.rmse_of_mean for _, s in quality],
            "RMSE of a linear model": [s.rmse_of_linear for _, s in quality],
        },
    )
    heads = ["rows", *columns]
    rows = [[name, *cells] for (name, _), *cells in zip(quality, *columns.values(), strict=True)]
    text = (
        "The certificate says that the model is the optimum of its objective, these numbers how well it predicts. "
        "RMSE is the root mean squared error, the mean is that of the training targets, and a linear model is a ridge "
        "regression with its penalty chosen by leave-one-out."
    )
    if facts.has_outliers:
        text += (
            " Some rows are clipped as outliers: they dominate R² and RMSE, and hardly move the median absolute error."
        )
    names = facts.table.target_names_ if facts.table is not None else [] if pairs is None else pairs.names
    return f"{pages.table(heads, rows, n_texts=1)}<p>{text}</p>{_fit_by_target(quality, names, facts.has_outliers)}"


def _columns(are_medians_first: bool, found: Mapping[str, Sequence[float | None]]) -> dict[str, list[str]]:
    """Return the columns of scores that are known as text, the median errors first or last."""
    order = sorted(found, key=lambda name: (name == "median error") is not are_medians_first)
    digits = {"R²": ".4f"}
    return {
        name: ["" if value is None else format(value, digits.get(name, ".4g")) for value in found[name]]
        for name in order
        if any(value is not None for value in found[name])
    }


def _fit_by_target(quality: Sequence[tuple[str, Scores]], names: Sequence[str], are_medians_first: bool) -> str:
    """Return the scores of each of several targets."""
    if len(names) < 2 or any(s.output_rmse is None for _, s in quality):
        return ""
    places = [(k, part, s) for k in range(len(names)) for part, s in quality]
    columns = _columns(
        are_medians_first,
        {
            "median error": [s.output_median[k] for k, _, s in places if s.output_median is not None],
            "R²": [s.output_r2[k] for k, _, s in places if s.output_r2 is not None],
            "RMSE": [s.output_rmse[k] for k, _, s in places if s.output_rmse is not None],
        },
    )
    rows = [[names[k], part, *cells] for (k, part, _), *cells in zip(places, *columns.values(), strict=True)]
    text = "Each target in its own units. The RMSE above is over all targets: those with large numbers dominate it."
    return f"{pages.table(['target', 'rows', *columns], rows)}<p>{text}</p>"


def _certificate(facts: ModelFacts) -> str:
    fitted = facts.estimator
    is_chosen = facts.is_search
    parameters = fitted.get_params(deep=False)  # the loss of LossTrickPredictor is called surrogate
    loss = fitted.best_loss_ if is_chosen else parameters.get("loss", parameters.get("surrogate", "built in"))
    logarithms = getattr(fitted, "logarithms_", None)
    rows = [
        ("primal objective", f"{fitted.primal_objective_:.10g}"),
        ("dual objective", f"{fitted.dual_objective_:.10g}"),
        ("relative gap", f"{max(fitted.duality_gap_, 0):.2e} (tol {fitted.tol:g})"),
        ("status", fitted.status_),
        ("solver", f"{fitted.solver_info_['solver']}: {fitted.solver_info_['reason']}"),
        ("iterations", str(fitted.n_iter_)),
        ("loss", f"{loss!r}{', chosen' if is_chosen else ''}"),
        *([] if logarithms is None else [("targets", f"logarithms of {np.sum(logarithms.is_used)} outputs")]),
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
    return figures(figure(chart.svg("Convergence"), caption, "convergence", table))


def _outliers(facts: ModelFacts) -> str:
    scores = facts.scores
    if scores is None:
        return (
            "<p>The loss of this model does not bound the dual variables, so there are no outlier scores. "
            "A Huber loss has them.</p>"
        )
    order = facts.suspects()
    clipped = int(np.sum(scores >= CLIPPED))
    drawn = thinned(len(order), DOTS)
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
    drawn_scores = figure(chart.svg("Outlier scores"), caption, "outlier_scores", table)
    worst = _worst_viewer(facts, drawable)
    return figures(drawn_scores, *([worst] if worst else [])) + _worst_table(facts, order[:WORST], drawable)


def _held_out(facts: ModelFacts, table: Table | None) -> str:
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
        for row in ranked[: max(WORST, int(ranked["flagged"].sum()))]
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
    return {int(i): place[facts.rows[i]] for i in order[:WORST] if facts.rows[i] in place}


def _worst_viewer(facts: ModelFacts, drawable: dict[int, int]) -> str:
    if not drawable or facts.training is None or facts.scores is None:
        return ""
    panels = [
        (str(facts.rows[i]), f"{facts.rows[i]}, score {facts.scores[i]:.3f}", sample_chart(facts.training, k))
        for i, k in drawable.items()
    ]
    table = pairs_csv(facts.training, list(drawable.values()))
    keys = POINT_KEYS if facts.training.grid is None else CURVE_KEYS
    text = "The samples with the highest scores, one at a time."
    return viewer("worst", "sample", keys, panels, text, "worst", table)


def _worst_table(facts: ModelFacts, worst: np.ndarray, drawable: dict[int, int]) -> str:
    errors = None if facts.training is None else dict(zip(facts.training.rows, facts.training.errors, strict=True))
    body = ""
    for i in worst:
        row, score = facts.rows[i], 0.0 if facts.scores is None else facts.scores[i]
        error = "" if errors is None or row not in errors else f"{errors[row]:.4g}"
        show = f' data-show="worst {row}" tabindex="0"' if int(i) in drawable else ""
        body += f"<tr{show}><td>{row}</td><td>{score:.4f}</td><td>{error}</td></tr>"
    what = "root mean squared error" if facts.training is None else facts.training.error_name
    head = f"<tr><th>sample</th><th>outlier score</th><th>{what}</th></tr>"
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
    return figures(figure(drawn, caption, "dual_norms", table))


def _surfaces(facts: ModelFacts) -> str:
    if facts.errors is None or facts.gaps is None:
        return ""
    best = np.unravel_index(int(np.nanargmin(facts.errors.values)), facts.errors.values.shape)
    return figures(*(_surface(surface, (int(best[0]), int(best[1]))) for surface in (facts.errors, facts.gaps)))


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
    return figure(drawn, caption, surface.text.replace(" ", "_"), table)


def _settings(facts: ModelFacts, versions: Mapping[str, object] | None, notes: Sequence[str]) -> str:
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
