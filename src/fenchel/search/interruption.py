"""Searches that end at an interrupt with the best pair so far."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sklearn.exceptions import ConvergenceWarning

from fenchel.exceptions import warn_user

__all__ = ["keeping_best_pair", "keeps_best_pair", "warn_interrupted"]

_KEEPS: ContextVar[bool] = ContextVar("_KEEPS", default=False)


@contextmanager
def keeping_best_pair() -> Iterator[None]:
    """Make Ctrl-C end a search inside a ``with`` block with its best pair of loss and lam so far.

    Once a pair of the grid is known, ``KeyboardInterrupt`` ends the search that is running, with a warning, and the
    best of the known pairs is fitted to the whole sample; errors of the others are NaN. An estimator that runs several
    searches, such as ``RobustRefit``, goes on with the next one. Outside of such a block a search raises, and a
    ``checkpoint`` keeps what is finished; a fit without a search keeps its best certified point everywhere.

    Yields
    ------
    None
        The block in which searches keep their best pair.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 3, (40, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40)
    >>> with fenchel.keeping_best_pair():  # Ctrl-C leaves a fitted model
    ...     model = fenchel.OperatorKernelRegressorCV().fit(X, y)
    >>> bool(np.isnan(model.cv_errors_).any())
    False
    """
    token = _KEEPS.set(True)
    try:
        yield
    finally:
        _KEEPS.reset(token)


def keeps_best_pair() -> bool:
    """Whether an interrupted search keeps its best pair."""
    return _KEEPS.get()


def warn_interrupted(n_known: int, n_pairs: int) -> None:
    """Warn about a search that has ended before all pairs of its grid were known."""
    known = f"{n_known} of {n_pairs} pairs of the grid are known" if n_known < n_pairs else "all given pairs are known"
    warn_user(f"Interrupted: {known}, and the best of them is fitted.", ConvergenceWarning, "not-converged")
