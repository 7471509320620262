"""Figures with matplotlib; each function draws on Axes and returns them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fenchel._check import require

__all__ = ["figure", "plot_errors", "plot_lines", "plot_outlier_scores", "svg"]

# Okabe and Ito's colours, told apart by the colour-blind
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")


def figure(columns: int = 1, width: float = 6.0, height: float = 4.0) -> tuple[Any, Any]:
    """Return a figure and a row of Axes."""
    matplotlib = require("matplotlib.figure", extra="plot")
    fig = matplotlib.Figure(figsize=(width * columns, height), layout="constrained")
    return fig, np.atleast_1d(fig.subplots(1, columns))


def plot_errors(ax: Any, names: Sequence[str], groups: Mapping[str, Sequence[float]], label: str) -> Any:
    """Draw one bar for each name and group, on a logarithmic axis."""
    width = 0.8 / len(groups)
    for k, (group, values) in enumerate(groups.items()):
        ax.barh(np.arange(len(names)) + k * width, values, width, label=group, color=COLOURS[k % len(COLOURS)])
    ax.set_yticks(np.arange(len(names)) + width * (len(groups) - 1) / 2, names)
    ax.set_xscale("log")
    ax.set_xlabel(label)
    ax.invert_yaxis()
    ax.legend()
    return ax


def plot_outlier_scores(ax: Any, scores: Any, is_outlier: Any = None) -> Any:
    """Draw the sorted outlier scores; known outliers have another colour."""
    scores = np.asarray(scores)
    order = np.argsort(scores)
    known = np.zeros(len(scores), dtype=bool) if is_outlier is None else np.asarray(is_outlier)
    place = np.arange(len(scores))
    for mask, colour, label in ((~known, COLOURS[0], "sample"), (known, COLOURS[5], "known outlier")):
        chosen = mask[order]
        if chosen.any():
            ax.scatter(place[chosen], scores[order][chosen], s=14, color=colour, label=label)
    ax.set_xlabel("samples, sorted")
    ax.set_ylabel("outlier score (dual norm over its bound)")
    ax.legend(loc="upper left")
    return ax


def plot_lines(ax: Any, x: Any, lines: Mapping[str, Any], x_label: str, y_label: str) -> Any:
    """Draw lines over a logarithmic axis."""
    colours = require("matplotlib", extra="plot").colormaps["viridis"](np.linspace(0, 0.9, max(2, len(lines))))
    for colour, (name, y) in zip(colours, lines.items(), strict=False):
        ax.plot(x, y, label=name, color=colour)
    ax.set_xscale("log")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.legend(fontsize="small")
    return ax


def svg(fig: Any) -> str:
    """Return a figure as an SVG element to put into a page."""
    io = require("io", extra="plot")
    buffer = io.StringIO()
    fig.savefig(buffer, format="svg", metadata={"Date": None})
    text = str(buffer.getvalue())
    return text[text.index("<svg") :]
