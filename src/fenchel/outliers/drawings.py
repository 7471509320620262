"""Plots of flagged samples."""

import numpy as np

from fenchel._optional import Axes, new_axes

__all__: list[str] = []

_MOST_LABELS = 10  # of flagged samples; more of them cover each other


def draw_scores(scores: np.ndarray, is_flagged: np.ndarray, ranking: np.ndarray, fdr: float, ax: Axes | None) -> Axes:
    """Draw scores, the flagged ones in colour and labelled by their index."""
    ax, samples, n_flagged = new_axes() if ax is None else ax, np.arange(len(scores)), int(is_flagged.sum())
    ax.plot(samples[~is_flagged], scores[~is_flagged], ".", color="0.6", label="not flagged")
    ax.plot(samples[is_flagged], scores[is_flagged], "o", color="C3", label=f"flagged, FDR {fdr:g}")
    for i in ranking[: min(_MOST_LABELS, n_flagged)]:
        ax.annotate(str(i), (i, scores[i]), xytext=(4, 2), textcoords="offset points", fontsize="small")
    ax.set_xlabel("sample")
    ax.set_ylabel("score (standard deviations)")
    ax.set_title(f"{n_flagged} of {len(scores)} samples flagged")
    ax.legend()
    return ax


def draw_curves(
    grid: np.ndarray, curves: np.ndarray, is_flagged: np.ndarray, ranking: np.ndarray, ax: Axes | None
) -> Axes:
    """Draw curves (n, m), the flagged ones in colour, the most outlying one on top."""
    ax, n_flagged = new_axes() if ax is None else ax, int(is_flagged.sum())
    ax.plot(grid, curves[~is_flagged].T, color="0.8", lw=0.6)
    for i in ranking[:n_flagged][::-1]:
        ax.plot(grid, curves[i], lw=1.2)
    ax.set_xlabel("t")
    ax.set_title(f"{n_flagged} of {len(curves)} curves flagged")
    return ax
