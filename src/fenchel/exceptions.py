"""Exceptions and warnings of the library; a run that stopped early is scikit-learn's ``ConvergenceWarning``."""

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

__all__ = [
    "DataWarning",
    "FenchelError",
    "IncompatibleError",
    "IndefiniteError",
    "ModelFileError",
    "NotFeasibleError",
    "ScaleWarning",
    "SlowFitWarning",
]


def see(entry: str) -> str:
    """Return the sentence that leads to an entry of the page on troubleshooting."""
    address = _documentation()
    return f"See {address}/troubleshooting.html#{entry}" if address else f"See troubleshooting.html#{entry} in the docs"


@cache
def _documentation() -> str:
    """Return the address of the documentation that the installed package names; empty if it names none."""
    try:
        addresses = metadata("fenchel").get_all("Project-URL", [])
    except PackageNotFoundError:  # a checkout that is not installed
        return ""
    return next((one.partition(", ")[2].rstrip("/") for one in addresses if one.startswith("Documentation,")), "")


class FenchelError(Exception):
    """Base class of the errors of this library; a note leads to the page on troubleshooting."""

    _entry = "errors"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.add_note(see(self._entry))


class IncompatibleError(FenchelError, ValueError):
    """Two parts (loss, kernel, representation, solver) do not fit together."""

    _entry = "incompatible-parts"


class IndefiniteError(FenchelError, ValueError):
    """A matrix that must be positive semidefinite is not."""

    _entry = "indefinite-matrix"


class NotFeasibleError(FenchelError, MemoryError):
    """The request is too large for the memory of this machine."""

    _entry = "not-enough-memory"


class ModelFileError(FenchelError, ValueError):
    """A file is not a saved model, or cannot be loaded here."""

    _entry = "model-file"


class SlowFitWarning(UserWarning):
    """A fit will take minutes, and another choice would be fast."""


class ScaleWarning(UserWarning):
    """The scale of a kernel, a loss or a grid does not fit the data."""


class DataWarning(UserWarning):
    """Data about which a model can say little: contradictory outputs, text among numbers, inputs far from others."""
