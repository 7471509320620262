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
    """Base class of the errors that are particular to this library; a note leads to the page on troubleshooting."""

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
    """A file is not a saved model, or one that cannot be loaded here."""

    _entry = "model-file"


class SlowFitWarning(UserWarning):
    """A fit that will take minutes, and that another choice would make short."""


class ScaleWarning(UserWarning):
    """A kernel, a loss or a grid whose scale does not fit the data, so that the model says little about them."""


class DataWarning(UserWarning):
    """Data that a model can say little about: inputs that occur with different outputs, or far from those it knows."""
