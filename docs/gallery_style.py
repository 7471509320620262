"""The style that the figures of the gallery share, and their thumbnails."""

import re
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from PIL import Image, ImageOps

from fenchel.exceptions import ScaleWarning
from fenchel.report.figures import COLOURS

BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, BLACK = COLOURS
THUMBNAIL = (400, 280)
NARROWEST, WIDEST = 0.85, 1.75  # width over height of what a thumbnail shows
NUMBER = re.compile(r"^# sphinx_gallery_thumbnail_number = (\d+)", flags=re.MULTILINE)


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Set the style before each example: the colours of ``fenchel.report.figures``, open Axes, a light grid."""
    warnings.simplefilter("default", ScaleWarning)  # the example before may have turned it off
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


def write_thumbnails(app: Any) -> None:
    """Let the thumbnail of a wide figure show its first panels only; the whole figure would be too small to read."""
    folder = Path(app.srcdir) / "auto_examples"
    for script in sorted(folder.rglob("plot_*.py")):
        number = NUMBER.search(script.read_text(encoding="utf-8"))
        images = script.parent / "images"
        figure = images / f"sphx_glr_{script.stem}_{int(number[1]) if number else 1:03d}.png"
        if figure.exists():  # not without running the examples
            thumbnail(Image.open(figure)).save(images / "thumb" / f"sphx_glr_{script.stem}_thumb.png")


def thumbnail(figure: Image.Image) -> Image.Image:
    """Return the first panels of a figure, up to the first wide gap where it may be cut, without its margin."""
    ground = Image.new("RGBA", figure.size, "white")
    whole = Image.alpha_composite(ground, figure.convert("RGBA")).convert("RGB")
    whole = whole.crop(ImageOps.invert(whole.convert("L")).getbbox())
    width, height = whole.size
    if width > WIDEST * height:
        is_blank = (np.asarray(whole) > 250).all(axis=(0, 2))
        ends = np.flatnonzero(np.diff(np.concatenate([[False], is_blank, [False]]).astype(int))).reshape(-1, 2)
        gaps = [(start, end - start) for start, end in ends if NARROWEST * height <= start <= WIDEST * height]
        wide = max((size for _, size in gaps), default=0) / 2
        whole = whole.crop((0, 0, next((int(start) for start, size in gaps if size >= wide), width), height))
    return ImageOps.pad(whole, THUMBNAIL, method=Image.Resampling.LANCZOS, color="white")
