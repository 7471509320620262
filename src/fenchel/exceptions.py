"""Exceptions of the library; warnings are scikit-learn's ``ConvergenceWarning``."""

__all__ = ["FenchelError", "IncompatibleError", "IndefiniteError", "ModelFileError", "NotFeasibleError"]


class FenchelError(Exception):
    """Base class of the errors that are particular to this library."""


class IncompatibleError(FenchelError, ValueError):
    """Two parts (loss, kernel, representation, solver) do not fit together."""


class IndefiniteError(FenchelError, ValueError):
    """A matrix that must be positive semidefinite is not."""


class NotFeasibleError(FenchelError, MemoryError):
    """The request is too large for the memory of this machine."""


class ModelFileError(FenchelError, ValueError):
    """A file is not a saved model, or one that cannot be loaded here."""
