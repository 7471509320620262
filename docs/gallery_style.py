"""The style that the figures of the gallery share."""

from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler

from fenchel.report.plots import COLOURS

BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, BLACK = COLOURS


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Set the style before each example: the colours of ``fenchel.report.plots``, open Axes, a light grid."""
    plt.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=(BLUE, ORANGE, GREEN, VERMILION, SKY, PINK, BLACK)),  # C3: the red one
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            "font.size": 10.0,
            "legend.frameon": False,
            "savefig.dpi": 110,
        }
    )
