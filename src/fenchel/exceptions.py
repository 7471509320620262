"""Exceptions of the library; warnings are scikit-learn's ``ConvergenceWarning``."""

__all__ = ["FenchelError", "IncompatibleError", "NotFeasibleError"]


class FenchelError(Exception):
    """Base class of the errors that are particular to this library."""


class IncompatibleError(FenchelError, ValueError):
    """Two parts (loss, kernel, representation, solver) do not fit together."""


class NotFeasibleError(FenchelError, MemoryError):
    """The request is too large for the memory of this machine."""
