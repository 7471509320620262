"""The canvas of all figures: figures and Axes, the palette, legends and titles above the Axes, files."""

import io
from typing import Any

import numpy as np

from fenchel._check import require
from fenchel._optional import Axes, new_axes

__all__ = ["COLOURS", "MARKERS", "Axes", "Figure", "axes_of", "figure", "legend_above", "svg", "title_above"]

Figure = Any  # of matplotlib

# Okabe and Ito's palette, safe for colour-blind readers
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
_LEGEND_COLUMNS = 3  # that fit the width of a figure


def figure(columns: int = 1, width: float = 6.0, height: float = 4.0, rows: int = 1) -> tuple[Figure, np.ndarray]:
    """Return a figure and its Axes, row by row.

    Parameters
    ----------
    columns : int, default=1
        Number of columns of Axes.
    width, height : float, default=6.0 and 4.0
        Size of one Axes in inches.
    rows : int, default=1
        Number of rows of Axes.

    Returns
    -------
    fig : Figure
        The figure.
    axes : ndarray of Axes
        Its Axes in one dimension.
    """
    matplotlib = require("matplotlib.figure", extra="plot")
    fig = matplotlib.Figure(figsize=(width * columns, height * rows), layout="constrained")
    return fig, np.atleast_1d(fig.subplots(rows, columns)).ravel()


def svg(fig: Figure) -> str:
    """Return a figure as SVG text, which is reproducible.

    Parameters
    ----------
    fig : Figure
        The figure.

    Returns
    -------
    text : str
        The SVG file.
    """
    buffer = io.StringIO()
    with require("matplotlib", extra="plot").rc_context({"svg.hashsalt": "fenchel"}):
        fig.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def legend_above(ax: Axes) -> None:
    """Put the legend above the Axes, where it does not cover the plot.

    Parameters
    ----------
    ax : Axes
        Axes with labelled artists.
    """
    columns = len(ax.get_legend_handles_labels()[0])
    style = {"ncols": min(columns, _LEGEND_COLUMNS), "frameon": False, "fontsize": "small"}
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), **style)


def title_above(ax: Axes, title: str) -> None:
    """Put a title above the Axes and above a legend placed by ``legend_above``.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The Axes, with all labelled artists already drawn.
    title : str
        The title.
    """
    rows = -(-len(ax.get_legend_handles_labels()[0]) // _LEGEND_COLUMNS)
    ax.set_title(title, pad=12 + 13 * rows)


def axes_of(ax: Axes, advice: str = "All but the first argument and ax are given by name") -> Axes:
    """Return the Axes, or new ones for ``None``; raise for anything else."""
    if ax is not None and not hasattr(ax, "set_xlabel"):
        raise TypeError(f"ax must be Axes of matplotlib or None. Got a {type(ax).__name__}. {advice}.")
    return new_axes() if ax is None else ax
