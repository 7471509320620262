"""Single wrong values of several outputs: whether there are some, and whether to clean by value or by row."""

import numpy as np

from fenchel._array import host
from fenchel.losses.relative import RelativeSize
from fenchel.model.training_set import TrainingSet
from fenchel.search.aggregates import clipped
from fenchel.search.contamination import total_with_error
from fenchel.search.race import KernelSearch

__all__ = ["CERTAINLY_WRONG", "ceilings_of", "has_values", "is_better_by_value", "seen_values", "value_sizes"]

CERTAINLY_WRONG = RelativeSize("scale", 4.0)  # robust deviations; one normal error in 16 000 is larger
_MOST_OUTPUTS = 16  # of a race by value, where each output has errors of its own that count: its cost grows with them
_ERRORS = 1.5  # standard errors by which cleaning by value must win


def has_values(training_set: TrainingSet) -> bool:
    """Whether outputs are several numbers, of which single ones may be wrong."""
    codec = training_set.codec
    return 1 < training_set.targets.width <= _MOST_OUTPUTS and codec.grid is None and codec.representation.has_points


def seen_values(training_set: TrainingSet, search: KernelSearch) -> np.ndarray:
    """Return which values of the samples of a search are known, (n, p) of bool."""
    observed = training_set.targets.observed
    return np.ones(search.left_out.shape, bool) if observed is None else host(observed)[search.index] > 0


def ceilings_of(training_set: TrainingSet, search: KernelSearch) -> np.ndarray:
    """Return the squared error of each output beyond which a value is certainly wrong, (p,)."""
    counts = training_set.sample.counts[search.index]
    columns = zip(np.abs(search.left_out).T, seen_values(training_set, search).T, strict=True)
    return np.array([CERTAINLY_WRONG.of(sizes[known], counts[known]) for sizes, known in columns]) ** 2


def value_sizes(
    training_set: TrainingSet, search: KernelSearch, places: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes of single residuals, relative to their output and to what is expected, and their weights."""
    seen = seen_values(training_set, search)[places]
    left_out, sizes = search.left_out[places], search.sizes[places]
    norms = np.linalg.norm(left_out, axis=1)
    expected = np.divide(norms, sizes, out=np.ones_like(norms), where=sizes > 0)
    found = np.abs(left_out) / np.sqrt(ceilings_of(training_set, search)) / expected[:, None]
    return found[seen], np.broadcast_to(weights[:, None], seen.shape)[seen]


def is_better_by_value(values: np.ndarray, rows: np.ndarray, weights: np.ndarray, ceilings: np.ndarray) -> bool:
    """Whether leave-one-out residuals (n, p) after cleaning by value are clearly smaller than after cleaning by rows.

    Where values are wrong, they cost the same whatever is predicted: squared errors are clipped at the ceilings.
    """
    gain, spread = total_with_error(clipped(rows**2, ceilings) - clipped(values**2, ceilings), weights)
    return gain > _ERRORS * spread
