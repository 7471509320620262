"""Exceptions and warnings of the library; an early stop is reported by scikit-learn's ``ConvergenceWarning``."""

import sys
import warnings
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
    """Return a sentence that points to an entry of the troubleshooting page, or to the command that prints it."""
    address = _documentation()
    return f"See {address}/troubleshooting.html#{entry}" if address else f"Run: python -m fenchel explain {entry}"


def page_of_class() -> str:
    """Return the address of the page of a class, with a gap for its name; empty if there is no published page."""
    address = _documentation()
    return f"{address}/api/generated/fenchel.{{estimator_name}}.html" if address else ""


@cache
def _documentation() -> str:
    """Return the documentation URL in the package metadata, or an empty string if there is none."""
    try:
        addresses = metadata("fenchel").get_all("Project-URL", [])
    except PackageNotFoundError:  # a checkout that is not installed
        return ""
    return next((one.partition(", ")[2].rstrip("/") for one in addresses if one.startswith("Documentation,")), "")


class FenchelError(Exception):
    """Base class of the errors of this library; a note points to the troubleshooting page."""

    _entry = "errors"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.add_note(see(self._entry))

    def __reduce__(
        self,
    ) -> str | tuple[object, ...]:  # tblib calls no __init__ and takes a wrong __new__ unless there is one
        return super().__reduce__()


class IncompatibleError(FenchelError, ValueError):
    """Two components (loss, kernel, representation, solver) are incompatible."""

    _entry = "incompatible-parts"


class IndefiniteError(FenchelError, ValueError):
    """A matrix that must be positive semidefinite is not."""

    _entry = "indefinite-matrix"


class NotFeasibleError(FenchelError, MemoryError):
    """The request needs more memory than this machine has."""

    _entry = "not-enough-memory"


class ModelFileError(FenchelError, ValueError):
    """A file is not a saved model, or cannot be loaded here."""

    _entry = "model-file"


class SlowFitWarning(UserWarning):
    """A fit will take minutes, and another choice would be fast."""


class ScaleWarning(UserWarning):
    """The scale of a kernel, a loss or a grid does not match the data."""


class DataWarning(UserWarning):
    """The data allow no useful model or prediction: contradictory outputs, text among numbers, far inputs."""


def warn_user(message: str, category: type[Warning], entry: str) -> None:
    """Warn at the line that called the library, with a link to an entry of the troubleshooting page."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("fenchel."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{message} {see(entry)}", category, stacklevel=level)
