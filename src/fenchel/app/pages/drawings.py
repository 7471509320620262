"""Figures of a page about a model: charts with their data, one at a time where there are many; predictions."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape

import numpy as np

from fenchel.app.pages.charts import Axis, Chart
from fenchel.app.pages.model import Pairs
from fenchel.data.files import csv_line
from fenchel.metrics.scores import mean_of_columns

__all__ = [
    "CURVE_KEYS",
    "DOTS",
    "POINT_KEYS",
    "WORST",
    "figure",
    "figures",
    "pairs_csv",
    "predictions",
    "sample_chart",
    "thinned",
    "viewer",
]

WORST = 12  # number of samples that can be shown, one at a time
DOTS = 1500  # maximum number of dots in a chart; its data have all of them
CURVE_KEYS = '<span class="key">observed</span><span class="key dashed">predicted</span>'
POINT_KEYS = '<span class="key spot">observed</span><span class="key short">predicted</span>'


def predictions(pairs: Pairs | None) -> str:
    """Return the predictions beside what was observed, and the errors of the samples."""
    if pairs is None:
        return "<p>The outputs of this model are not plain numbers, or it keeps no training sample to compare with.</p>"
    if pairs.grid is None:
        chosen = list(range(min(pairs.observed.shape[1], WORST)))
        panels = [(str(k), pairs.names[k], _scatter(pairs, k)) for k in chosen]
        text = f"Predicted against observed, for {pairs.text}; on the grey line both are equal."
        if len(chosen) < pairs.observed.shape[1]:
            text += f" {len(chosen)} of {pairs.observed.shape[1]} outputs are drawn."
    else:
        order = np.argsort(-pairs.errors, kind="stable")
        ranks = np.unique(np.linspace(0, len(order) - 1, min(len(order), WORST)).astype(int))
        panels = [
            (str(pairs.rows[order[rank]]), f"{pairs.rows[order[rank]]}, error {pairs.errors[order[rank]]:.3g}",
             sample_chart(pairs, int(order[rank])))
            for rank in ranks
        ]  # fmt: skip
        text = f"Curves of {pairs.text}, from the largest root mean squared error to the least."
        chosen = [int(order[rank]) for rank in ranks]
    table = pairs_csv(pairs, list(range(len(pairs.rows))) if pairs.grid is None else chosen)
    what, keys = ("output", "") if pairs.grid is None else ("curve", CURVE_KEYS)
    return figures(viewer("pairs", what, keys, panels, text, "predictions", table), _error_figure(pairs))


def _error_figure(pairs: Pairs) -> str:
    """Return charts of the sorted errors of the samples: one chart for each of several targets, in its own unit."""
    if not pairs.has_units:
        drawn, caption, table = _errors(pairs.rows, pairs.errors, pairs.error_name)
        return figure(drawn, f"Errors of {pairs.text}: {caption}.", "errors", table)
    panels, captions, rows = [], [], [["target", "sample", "error"]]
    for name, column in list(zip(pairs.names, (pairs.observed - pairs.predicted).T, strict=True))[:WORST]:
        known = ~np.isnan(column)
        if known.any():
            drawn, caption, table = _errors(pairs.rows[known], np.abs(column[known]), f"absolute error of {name}")
            panels.append((name, name, drawn))
            captions.append(f"{name}: {caption}")
            rows += [[name, *row] for row in table[1:]]
    text = f"Errors of {pairs.text}, of each target in its own unit. {'; '.join(captions)}."
    return viewer("errors", "target", "", panels, text, "errors", rows)


def _errors(rows: np.ndarray, errors: np.ndarray, label: str) -> tuple[str, str, list[list[str]]]:
    """Return a chart of the errors of samples, a sentence about them, and their table."""
    order = np.argsort(-errors, kind="stable")
    names, errors, drawn = rows[order], errors[order], thinned(len(errors), DOTS)
    chart = Chart(Axis.of(drawn + 1, "samples, the worst first"), Axis.of([0.0, *errors], label))
    chart.dots(drawn + 1, errors[drawn], [f"sample {names[k]}: {errors[k]:.4g}" for k in drawn])
    table = [["sample", "error"], *([str(r), repr(float(e))] for r, e in zip(names, errors, strict=True))]
    return chart.svg("Errors"), f"median {np.median(errors):.3g}, largest {errors[0]:.3g}", table


def _scatter(pairs: Pairs, k: int) -> str:
    known = np.flatnonzero(~np.isnan(pairs.observed[:, k]))
    rows, observed, predicted = pairs.rows[known], pairs.observed[known, k], pairs.predicted[known, k]
    drawn = thinned(len(observed), DOTS)
    both = [*observed, *predicted]
    x, y = Axis.of(both, f"observed {pairs.names[k]}"), Axis.of(both, "predicted")
    chart = Chart(x, y)
    chart.line([x.low, x.high], [y.low, y.high], "diagonal")
    tips = [f"sample {rows[i]}: observed {observed[i]:.4g}, predicted {predicted[i]:.4g}" for i in drawn]
    chart.dots(observed[drawn], predicted[drawn], tips)
    return chart.svg(f"Predicted against observed {pairs.names[k]}")


def sample_chart(pairs: Pairs, k: int) -> str:
    """Return a chart of the observed and predicted outputs of a sample, over the grid or side by side."""
    observed, predicted, units = pairs.observed[k], pairs.predicted[k], pairs.units
    centers = mean_of_columns(pairs.observed) if pairs.has_units else 0.0
    seen, guessed = ((values - centers) / units for values in (observed, predicted))
    y = Axis.of([*seen, *guessed], "value, in deviations from the mean" if pairs.has_units else "value")
    if pairs.grid is None:  # separate outputs are not joined by a line
        places, names = np.arange(1, len(observed) + 1), pairs.names
        chart = Chart(Axis.of_names(names, "output"), y)
        chart.strokes(places, guessed)
    else:
        places, names = pairs.grid, [f"t = {t:.4g}" for t in pairs.grid]
        chart = Chart(Axis.of(places, "t"), y)
        chart.line(places, seen)
        chart.line(places, guessed, "dash")
    chart.dots(places, seen, [
        f"{name}: observed {value:.4g}, predicted {guess:.4g}"
        for name, value, guess in zip(names, observed, predicted, strict=True)
    ])  # fmt: skip
    return chart.svg(f"Sample {pairs.rows[k]}")


def figures(*drawn: str) -> str:
    """Return figures side by side if there is room."""
    return f'<div class="figures">{"".join(drawn)}</div>'


def figure(drawing: str, caption: str, name: str, table: Sequence[Sequence[str]], controls: str = "") -> str:
    """Return a chart with its caption and a link to save its data."""
    text = "\n".join(csv_line(row) for row in table) + "\n"
    link = f"data:text/csv;base64,{b64encode(text.encode()).decode('ascii')}"
    save = f'<a download="{escape(name)}.csv" href="{link}">data (CSV)</a>'
    return f"<figure>{controls}{drawing}<figcaption>{escape(caption)} {save}</figcaption></figure>"


def viewer(
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
    return f'<div class="viewer" id="{name}">{figure(shown, caption, file, table, controls)}</div>'


def pairs_csv(pairs: Pairs, chosen: Sequence[int]) -> list[list[str]]:
    """Return observed and predicted outputs of some samples, one row for each output."""
    names = pairs.names if pairs.grid is None else [repr(float(t)) for t in pairs.grid]
    rows = [["sample", "output" if pairs.grid is None else "t", "observed", "predicted"]]
    for k in chosen:
        numbers = zip(names, pairs.observed[k].tolist(), pairs.predicted[k].tolist(), strict=True)
        rows += [[str(pairs.rows[k]), name, repr(seen), repr(guess)] for name, seen, guess in numbers]
    return rows


def thinned(count: int, most: int) -> np.ndarray:
    """Return the indices to draw: the first half of the maximum number, and evenly spaced ones of the rest."""
    if count <= most:
        return np.arange(count)
    head = most // 2
    return np.concatenate([np.arange(head), np.linspace(head, count - 1, most - head).astype(int)])
