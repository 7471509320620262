"""Import of optional libraries on demand."""

from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["Axes", "new_axes", "require"]

Axes = Any  # of matplotlib, which is imported when a figure is drawn


def require(module: str, extra: str) -> ModuleType:
    """Import an optional library, or report which extra of fenchel installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"This needs {module}, which is not installed. Run: pip install 'fenchel[{extra}]'"
        ) from error


def new_axes() -> Axes:
    """Return the Axes of a new pyplot figure, known to ``plt.show()`` and ``plt.savefig``."""
    return require("matplotlib.pyplot", extra="plot").subplots(layout="constrained")[1]
