"""Moved to ``fenchel.report.figures``; this name goes with the next release."""

from fenchel.report.figures import (
    figure,
    legend_above,
    plot_curves,
    plot_errors,
    plot_kernel_weights,
    plot_lines,
    plot_outlier_scores,
    plot_point_scores,
    plot_relevances,
    plot_sparsity,
    plot_surface,
    svg,
    title_above,
)

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
