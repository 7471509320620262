"""Figures with matplotlib; each function draws on the given Axes, or on new ones, and returns them."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fenchel._array import Array, host, is_host
from fenchel._check import require
from fenchel._optional import new_axes
from fenchel.data.functional import as_curves, is_fdata
from fenchel.data.quadrature import trapezoid_weights
from fenchel.report.surface import Surface

__all__ = [
    "figure",
    "legend_above",
    "plot_curves",
    "plot_errors",
    "plot_kernel_weights",
    "plot_lines",
    "plot_outlier_scores",
    "plot_point_scores",
    "plot_relevances",
    "plot_sparsity",
    "plot_surface",
    "svg",
    "title_above",
]

Axes = Any  # of matplotlib, which is imported when a figure is drawn
Figure = Any

# Okabe and Ito's palette, safe for colour-blind readers
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
LEGEND_COLUMNS = 3  # that fit the width of a figure
CLIPPED = 1 - 1e-6  # outlier score above which a dual variable is on its bound


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


def plot_errors(
    groups: Mapping[str, Sequence[float]], ax: Axes | None = None, *, names: Sequence[str], label: str
) -> Axes:
    """Draw one row of dots for each name, with one dot for each group, on a logarithmic axis.

    Parameters
    ----------
    groups : mapping of str to sequence of float
        Values of each group, one for each name.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.
    names : sequence of str
        Labels of the rows, from top to bottom.
    label : str
        Label of the axis.

    Returns
    -------
    ax : Axes
        The Axes with the plot.
    """
    ax, places = _axes(ax), np.arange(len(names))
    ax.hlines(places, 0, 1, transform=ax.get_yaxis_transform(), colors="0.85", linewidths=0.8, zorder=0)
    for k, (group, values) in enumerate(groups.items()):
        style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}
        ax.plot(values, places, linestyle="none", markersize=8, alpha=0.85, label=group, **style)
    ax.set_yticks(places, names)
    ax.set_xscale("log")
    ax.set_xlabel(label)
    ax.invert_yaxis()
    legend_above(ax)
    return ax


def plot_outlier_scores(scores: Any, ax: Axes | None = None, *, is_outlier: Any = None) -> Axes:
    """Draw the sorted outlier scores, with known outliers in another colour.

    Parameters
    ----------
    scores : fitted estimator, or array of shape (n,)
        A model with ``outlier_score_``, or the scores themselves.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.
    is_outlier : array of bool of shape (n,) or None, default=None
        Mask of the samples that are known to be outliers.

    Returns
    -------
    ax : Axes
        The Axes with the plot.
    """
    ax, scores = _axes(ax), _numbers(_attribute(scores, "outlier_score_"))
    order = np.argsort(scores, kind="stable")
    known = np.zeros(len(scores), dtype=bool) if is_outlier is None else np.asarray(is_outlier)
    place = np.arange(len(scores))
    for mask, colour, label in ((~known, COLOURS[0], "sample"), (known, COLOURS[5], "known outlier")):
        chosen = mask[order]
        if chosen.any():
            ax.scatter(place[chosen], scores[order][chosen], s=14, color=colour, label=label)
    ax.set_xlabel("samples, sorted")
    ax.set_ylabel("outlier score (dual norm over its bound)")
    legend_above(ax)
    return ax


def plot_lines(lines: Mapping[str, Any], ax: Axes | None = None, *, x: Any, x_label: str, y_label: str) -> Axes:
    """Draw lines over a logarithmic x axis.

    Parameters
    ----------
    lines : mapping of str to array of shape (k,)
        Values of each line.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.
    x : array of shape (k,)
        Positive x values.
    x_label, y_label : str
        Labels of the axes.

    Returns
    -------
    ax : Axes
        The Axes with the plot.
    """
    ax = _axes(ax)
    colours = require("matplotlib", extra="plot").colormaps["viridis"](np.linspace(0, 0.9, max(2, len(lines))))
    for colour, (name, y) in zip(colours, lines.items(), strict=False):
        ax.plot(x, y, label=name, color=colour)
    ax.set_xscale("log")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.legend(fontsize="small")
    return ax


def plot_curves(
    values: Any,
    ax: Axes | None = None,
    *,
    predicted: Any = None,
    grid: Array | None = None,
    predicted_grid: Array | None = None,
    label: str = "observed",
    predicted_label: str = "predicted",
) -> Axes:
    """Draw a few curves, each with its prediction in the same colour.

    A complete curve is drawn as a line, a curve with gaps as points, so that nothing suggests values that were not
    observed. Predictions are dashed.

    Parameters
    ----------
    values : array of shape (m,) or (n, m), or any other input of ``fenchel.datasets.as_curves``
        Curves with one channel; NaN means not observed.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.
    predicted : array of shape (points,) or (n, points), FDataGrid, or None, default=None
        Their predictions.
    grid : array of shape (m,) or None, default=None
        Points of the curves; ``None`` takes them from the curves, or equally spaced points in [0, 1].
    predicted_grid : array of shape (points,) or None, default=None
        Points of the predictions; ``None`` means those of the curves.
    label, predicted_label : str
        Labels of the curves and of the predictions in the legend.

    Returns
    -------
    ax : Axes
        The Axes with the plot.
    """
    ax = _axes(ax, "Predictions are given by name: plot_curves(Y, predicted=P)")
    curves = as_curves(_rows(values), grid, "values")
    observed = _one_channel(curves.values, "values")
    points, found = curves.grid, None
    if predicted is not None:
        guesses = as_curves(_rows(predicted), curves.grid if predicted_grid is None else predicted_grid, "predicted")
        points, found = guesses.grid, _one_channel(guesses.values, "predicted")
        if len(found) != len(observed):
            raise ValueError(f"predicted must hold as many curves as values, {len(observed)}. Got {len(found)}.")
    for i, row in enumerate(observed):
        colour, name = COLOURS[i % len(COLOURS)], label if i == 0 else None
        if np.isnan(row).any():
            ax.plot(curves.grid, row, "o", markersize=3.5, color=colour, label=name)
        else:
            ax.plot(curves.grid, row, color=colour, linewidth=1.2, alpha=0.75, label=name)
        if found is not None:
            name = predicted_label if i == 0 else None
            ax.plot(points, found[i], "--", linewidth=1.8, color=colour, label=name)
    ax.set_xlabel("t")
    ax.set_ylabel("y(t)")
    if found is not None:
        legend_above(ax)
    return ax


def plot_surface(surface: Any, ax: Axes | None = None, *, values: Any = None, label: str | None = None) -> Axes:
    """Draw a quantity over the (loss, lam) grid of a regularisation path or of a model selection.

    Parameters
    ----------
    surface : RegularizationPath, or a fitted estimator whose name ends in CV
        The path or the model selection.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.
    values : str, array of shape (n_losses, n_lams) or None, default=None
        What to draw. For a model selection ``"errors"`` (the default) or ``"gaps"``, for a path ``"gaps"`` (the
        default), ``"sparsity"``, ``"primal_objectives"``, ``"dual_objectives"`` or ``"n_iter"``. Or numbers of your
        own, such as test errors.
    label : str or None, default=None
        Label of the quantity; ``None`` derives it from ``values``.

    Returns
    -------
    ax : Axes
        The Axes with the plot. Colours are logarithmic if the numbers are positive and span more than a factor of ten;
        a star marks the smallest error.

    Notes
    -----
    Losses of one class that differ in one parameter are named by that parameter, others by their ``repr``.
    """
    found, ax = Surface.of(surface, values), _axes(ax)
    colours = require("matplotlib.colors", extra="plot")
    low, high = np.nanmin(found.values), np.nanmax(found.values)
    norm = colours.LogNorm if 0 < 10 * low < high else colours.Normalize
    mesh = ax.pcolormesh(found.values, cmap="viridis", norm=norm(), rasterized=True)
    lams = [np.format_float_scientific(lam, 2, trim="-", exp_digits=1) for lam in found.lams]
    ax.set_xticks(np.arange(len(lams)) + 0.5, lams, rotation=45 if len(lams) > 5 else 0)
    axis, names = found.loss_names()
    ax.set_yticks(np.arange(len(names)) + 0.5, names)
    ax.set_xlabel("lam")
    ax.set_ylabel(axis)
    ax.figure.colorbar(mesh, ax=ax, label=label or found.text)
    if found.is_error:
        i, j = np.unravel_index(np.nanargmin(found.values), found.values.shape)
        ax.plot([j + 0.5], [i + 0.5], "*", markersize=15, color="white", markeredgecolor="black", label="least error")
        legend_above(ax)
    return ax


def plot_point_scores(
    scores: Any, ax: Axes | None = None, *, is_outlier: Any = None, grid: Array | None = None
) -> Axes:
    """Draw the outlier score of each point of each curve as a heatmap with one row per curve.

    Parameters
    ----------
    scores : fitted estimator, or array of shape (n, m)
        A model with ``point_outlier_score_``, as given by losses with p = 1, or the scores themselves. Points that were
        not observed (NaN) are grey.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.
    is_outlier : array of bool of shape (n, m) or None, default=None
        Mask of the points that are known to be wrong; they are circled.
    grid : array of shape (m,) or None, default=None
        Points of the curves; ``None`` takes those of the model, or equally spaced points in [0, 1].

    Returns
    -------
    ax : Axes
        The Axes with the plot.
    """
    grid = getattr(scores, "grid_", None) if grid is None else grid
    ax, scores = _axes(ax), _one_channel(_numbers(_attribute(scores, "point_outlier_score_")), "scores")
    points = np.linspace(0, 1, scores.shape[1]) if grid is None else np.asarray(grid, dtype=np.float64)
    if points.shape != scores.shape[1:]:
        raise ValueError(
            f"grid must have {scores.shape[1]} points, as the scores do. Got shape {points.shape} instead."
        )
    ax.set_facecolor("0.6")
    mesh = ax.pcolormesh(_edges(points), np.arange(len(scores) + 1), scores, cmap="Blues", vmin=0, vmax=1)
    mesh.set_rasterized(True)
    if is_outlier is not None:
        row, column = np.nonzero(np.asarray(is_outlier))
        ring = {"facecolors": "none", "edgecolors": COLOURS[5], "linewidths": 1.3}
        ax.scatter(points[column], row + 0.5, s=22, label="known outlier", **ring)
        legend_above(ax)
    ax.set_xlabel("t")
    ax.set_ylabel("curve")
    ax.figure.colorbar(mesh, ax=ax, label="outlier score of the point")
    return ax


def plot_sparsity(estimator: Any, ax: Axes | None = None) -> Axes:
    """Draw which dual variables of a fitted model are zero, non-zero, or on their bound.

    Parameters
    ----------
    estimator : fitted estimator, or array of shape (n, p)
        A model with ``dual_coef_``, or dual variables: one row for each sample and one column for each coordinate.
        Bounds are those of ``point_outlier_score_`` if the model has it, else those of whole rows.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.

    Returns
    -------
    ax : Axes
        The Axes with the plot; the legend gives the share of each kind.
    """
    ax, duals = _axes(ax), _numbers(_attribute(estimator, "dual_coef_"))
    duals = duals.reshape(len(duals), -1)
    kinds = (duals != 0).astype(int)
    by_point = getattr(estimator, "point_outlier_score_", None)
    by_row = getattr(estimator, "outlier_score_", None)
    if by_point is not None:
        ratios = _numbers(by_point).reshape(kinds.shape)
        kinds[ratios >= CLIPPED] = 2
        kinds[np.isnan(ratios)] = 3
    elif by_row is not None:
        kinds[(_numbers(by_row) >= CLIPPED)[:, None] & (kinds == 1)] = 2
    colours = require("matplotlib.colors", extra="plot").ListedColormap(["#F0F0F0", COLOURS[0], COLOURS[5], "#999999"])
    ax.pcolormesh(kinds, cmap=colours, vmin=-0.5, vmax=3.5, rasterized=True)
    names = ("null", "not null", "on the bound", "not observed")
    for kind, name in enumerate(names):
        share = float(np.mean(kinds == kind))
        if share > 0 or kind < 2:
            text = f"{name}, {share:.0%}"
            ax.plot([], [], "s", color=colours(kind), markeredgecolor="0.5", markersize=9, label=text)
    ax.set_xlabel("coordinate")
    ax.set_ylabel("sample")
    legend_above(ax)
    return ax


def plot_relevances(model: Any, ax: Axes | None = None, *, names: Sequence[str] | None = None, most: int = 20) -> Axes:
    """Draw the relevance of each input as a bar, the largest first.

    Parameters
    ----------
    model : fitted estimator, or array of shape (d,)
        A model with ``relevances_``, such as ``LearnedMetricRegressor``, or the relevances.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.
    names : sequence of str or None, default=None
        Names of the inputs; ``None`` means those that the model was fitted with, or their indices.
    most : int, default=20
        Maximum number of bars; the remaining values are added up in one more.

    Returns
    -------
    ax : Axes
        The Axes with the plot.
    """
    ax, shares = _axes(ax), _numbers(_attribute(model, "relevances_"))
    if names is None:
        names = getattr(model, "feature_names_in_", [f"column {k}" for k in range(len(shares))])
    if len(names) != len(shares):
        raise ValueError(f"names must hold one name for each of the {len(shares)} inputs. Got {len(names)}.")
    return _bars(ax, shares, names, most, "relevance")


def plot_kernel_weights(
    found: Any, ax: Axes | None = None, *, names: Sequence[str] | None = None, most: int = 20
) -> Axes:
    """Draw the weight of each kernel as a bar, the largest first.

    Parameters
    ----------
    found : KernelWeights, or array of shape (M,)
        The result of ``learn_kernel_weights``, or the weights.
    ax : Axes or None, default=None
        Axes to draw on; ``None`` creates a figure.
    names : sequence of str or None, default=None
        Names of the kernels; ``None`` means those of the groups, or their indices.
    most : int, default=20
        Maximum number of bars; the remaining values are added up in one more.

    Returns
    -------
    ax : Axes
        The Axes with the plot.
    """
    ax, shares = _axes(ax), _numbers(_attribute(found, "weights_"))
    if names is None:
        names = getattr(found, "names", [f"kernel {k}" for k in range(len(shares))])
    if len(names) != len(shares):
        raise ValueError(f"names must hold one name for each of the {len(shares)} kernels. Got {len(names)}.")
    return _bars(ax, shares, names, most, "weight")


def _bars(ax: Axes, shares: np.ndarray, names: Sequence[str], most: int, label: str) -> Axes:
    """Draw shares as bars, largest first; those after the first ``most`` are added up in one bar."""
    order = np.argsort(-shares, kind="stable")
    bars = [(str(names[k]), float(shares[k])) for k in order[:most]]
    if len(order) > most:
        bars.append((f"{len(order) - most} others", float(np.sum(shares[order[most:]]))))
    labels, values = zip(*bars, strict=True)
    ax.barh(range(len(bars)), values, color=COLOURS[0])
    ax.set_yticks(range(len(bars)), labels)
    ax.invert_yaxis()
    ax.set_xlabel(label)
    return ax


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


def _attribute(model: Any, name: str) -> Any:
    """Return an attribute of a fitted model; data are returned unchanged."""
    if hasattr(model, name) or not hasattr(model, "get_params"):
        return getattr(model, name, model)
    raise ValueError(
        f"{type(model).__name__} has no {name}. Fit it first; only losses that bound the dual variables, such as "
        "Huber, give outlier scores, and those of order 1 give them for points."
    )


def _axes(ax: Axes, advice: str = "All but the first argument and ax are given by name") -> Any:
    """Return the Axes, or new ones for ``None``; raise for anything else."""
    if ax is not None and not hasattr(ax, "set_xlabel"):
        raise TypeError(f"ax must be Axes of matplotlib or None. Got a {type(ax).__name__}. {advice}.")
    return new_axes() if ax is None else ax


def legend_above(ax: Axes) -> None:
    """Put the legend above the Axes, where it does not cover the plot.

    Parameters
    ----------
    ax : Axes
        Axes with labelled artists.
    """
    columns = len(ax.get_legend_handles_labels()[0])
    style = {"ncols": min(columns, LEGEND_COLUMNS), "frameon": False, "fontsize": "small"}
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
    rows = -(-len(ax.get_legend_handles_labels()[0]) // LEGEND_COLUMNS)
    ax.set_title(title, pad=12 + 13 * rows)


def _numbers(values: Any) -> np.ndarray:
    """Return an array of any library as a NumPy array."""
    return np.asarray(values) if is_host(values) else host(values)


def _rows(values: Any) -> Any:
    """Return curves as rows; a single curve becomes one row."""
    return values[None, :] if getattr(values, "ndim", 2) == 1 and not is_fdata(values) else values


def _one_channel(values: Array, name: str) -> np.ndarray:
    rows = host(values)
    if rows.ndim == 3 and rows.shape[2] == 1:
        rows = rows[:, :, 0]
    if rows.ndim != 2:
        raise ValueError(
            f"{name} must hold curves of one channel, shape (n, m). Got {rows.shape}; take one, as in {name}[:, :, 0]."
        )
    return rows


def _edges(points: np.ndarray) -> np.ndarray:
    """Return the edges of the cells around increasing points."""
    trapezoid_weights(points)  # checks them
    if len(points) == 1:
        return np.array([points[0] - 0.5, points[0] + 0.5])
    middles = (points[1:] + points[:-1]) / 2
    return np.concatenate([[2 * points[0] - middles[0]], middles, [2 * points[-1] - middles[-1]]])
