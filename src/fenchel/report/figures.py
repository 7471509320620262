"""Figures with matplotlib; each function draws on the given Axes, or on new ones, and returns them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from fenchel._array import Array, Outputs
from fenchel._check import require
from fenchel.data.functional import as_curves
from fenchel.report.axes import COLOURS as COLOURS
from fenchel.report.axes import MARKERS, axes_of, figure, legend_above, svg, title_above
from fenchel.report.axes import Axes as Axes
from fenchel.report.axes import Figure as Figure
from fenchel.report.drawn_data import attribute, cell_edges, on_host, one_channel, rows_of
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

CLIPPED = 1 - 1e-6  # outlier score above which a dual variable is on its bound


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
    ax, places = axes_of(ax), np.arange(len(names))
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
    ax, scores = axes_of(ax), on_host(attribute(scores, "outlier_score_"))
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
    ax = axes_of(ax)
    colours = require("matplotlib", extra="plot").colormaps["viridis"](np.linspace(0, 0.9, max(2, len(lines))))
    for colour, (name, y) in zip(colours, lines.items(), strict=False):
        ax.plot(x, y, label=name, color=colour)
    ax.set_xscale("log")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.legend(fontsize="small")
    return ax


def plot_curves(
    values: Outputs,
    ax: Axes | None = None,
    *,
    predicted: Outputs = None,
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
    ax = axes_of(ax, "Predictions are given by name: plot_curves(Y, predicted=P)")
    curves = as_curves(rows_of(values), grid, "values")
    observed = one_channel(curves.values, "values")
    points, found = curves.grid, None
    if predicted is not None:
        guesses = as_curves(rows_of(predicted), curves.grid if predicted_grid is None else predicted_grid, "predicted")
        points, found = guesses.grid, one_channel(guesses.values, "predicted")
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


def plot_surface(surface: Any, ax: Axes | None = None, *, values: Outputs = None, label: str | None = None) -> Axes:
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
    found, ax = Surface.of(surface, values), axes_of(ax)
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
    ax, scores = axes_of(ax), one_channel(on_host(attribute(scores, "point_outlier_score_")), "scores")
    points = np.linspace(0, 1, scores.shape[1]) if grid is None else np.asarray(grid, dtype=np.float64)
    if points.shape != scores.shape[1:]:
        raise ValueError(
            f"grid must have {scores.shape[1]} points, as the scores do. Got shape {points.shape} instead."
        )
    ax.set_facecolor("0.6")
    mesh = ax.pcolormesh(cell_edges(points), np.arange(len(scores) + 1), scores, cmap="Blues", vmin=0, vmax=1)
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


def plot_sparsity(estimator: BaseEstimator, ax: Axes | None = None) -> Axes:
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
    ax, duals = axes_of(ax), on_host(attribute(estimator, "dual_coef_"))
    duals = duals.reshape(len(duals), -1)
    kinds = (duals != 0).astype(int)
    by_point = getattr(estimator, "point_outlier_score_", None)
    by_row = getattr(estimator, "outlier_score_", None)
    if by_point is not None:
        ratios = on_host(by_point).reshape(kinds.shape)
        kinds[ratios >= CLIPPED] = 2
        kinds[np.isnan(ratios)] = 3
    elif by_row is not None:
        kinds[(on_host(by_row) >= CLIPPED)[:, None] & (kinds == 1)] = 2
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


def plot_relevances(
    model: BaseEstimator, ax: Axes | None = None, *, names: Sequence[str] | None = None, most: int = 20
) -> Axes:
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
    shares = on_host(attribute(model, "relevances_"))
    if names is None:
        names = getattr(model, "feature_names_in_", [f"column {k}" for k in range(len(shares))])
    return _bars(axes_of(ax), shares, names, most, "relevance", "inputs")


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
    shares = on_host(attribute(found, "weights_"))
    if names is None:
        names = getattr(found, "names", [f"kernel {k}" for k in range(len(shares))])
    return _bars(axes_of(ax), shares, names, most, "weight", "kernels")


def _bars(ax: Axes, shares: np.ndarray, names: Sequence[str], most: int, label: str, of: str) -> Axes:
    """Draw shares of inputs or kernels as bars, largest first; those after the first ``most`` are added up in one."""
    if len(names) != len(shares):
        raise ValueError(f"names must hold one name for each of the {len(shares)} {of}. Got {len(names)}.")
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
