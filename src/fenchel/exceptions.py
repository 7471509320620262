"""Exceptions and warnings of the library; a run that stopped early is scikit-learn's ``ConvergenceWarning``."""

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


class FenchelError(Exception):
    """Base class of the errors of this library."""


class IncompatibleError(FenchelError, ValueError):
    """Two parts (loss, kernel, representation, solver) do not fit together."""


class IndefiniteError(FenchelError, ValueError):
    """A matrix that must be positive semidefinite is not."""


class NotFeasibleError(FenchelError, MemoryError):
    """The request is too large for the memory of this machine."""


class ModelFileError(FenchelError, ValueError):
    """A file is not a saved model, or cannot be loaded here."""


class SlowFitWarning(UserWarning):
    """A fit will take minutes, and another choice would be fast."""


class ScaleWarning(UserWarning):
    """The scale of a kernel, a loss or a grid does not fit the data."""


class DataWarning(UserWarning):
    """Data about which a model can say little: contradictory outputs, or inputs far from the training data."""
