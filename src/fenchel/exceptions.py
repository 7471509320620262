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
    """Base class of the errors that are particular to this library."""


class IncompatibleError(FenchelError, ValueError):
    """Two parts (loss, kernel, representation, solver) do not fit together."""


class IndefiniteError(FenchelError, ValueError):
    """A matrix that must be positive semidefinite is not."""


class NotFeasibleError(FenchelError, MemoryError):
    """The request is too large for the memory of this machine."""


class ModelFileError(FenchelError, ValueError):
    """A file is not a saved model, or one that cannot be loaded here."""


class SlowFitWarning(UserWarning):
    """A fit that will take minutes, and that another choice would make short."""


class ScaleWarning(UserWarning):
    """A kernel, a loss or a grid whose scale does not fit the data, so that the model says little about them."""


class DataWarning(UserWarning):
    """Data that a model can say little about: inputs that occur with different outputs, or far from those it knows."""
