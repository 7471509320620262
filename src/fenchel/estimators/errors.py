"""Errors of held-out samples: how they become one number, and how they are kept in a file."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fenchel._array import host
from fenchel.estimators.core import Sample
from fenchel.losses import Loss

__all__ = ["AGGREGATES", "Checkpoint", "key_of"]

_TRIM = 0.2  # share of the largest errors that a trimmed mean drops


class Checkpoint:
    """Errors of finished losses, in a file that is replaced as a whole and belongs to one set of data and grid."""

    def __init__(self, file: Any, key: str, shape: tuple[int, int, int]) -> None:
        self.file = None if file is None else Path(file)
        self.key = key
        self.errors, self.gaps, self.scores = (np.full(s, np.nan) for s in (shape, shape[:2], shape[:2]))
        if self.file is not None and self.file.exists():
            with np.load(self.file, allow_pickle=False) as stored:
                if str(stored["key"]) != key:
                    raise ValueError(
                        f"The checkpoint {self.file} belongs to other data or another grid. Remove it or name another."
                    )
                self.errors, self.gaps, self.scores = (stored[name] for name in ("errors", "gaps", "scores"))

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.file is None:
            return
        partial = self.file.with_name(f"{self.file.name}.{os.getpid()}.part")
        with open(partial, "wb") as stream:
            np.savez(stream, key=self.key, errors=self.errors, gaps=self.gaps, scores=self.scores)
        os.replace(partial, self.file)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the median of values that count so many times; samples that no fold holds out are NaN and do not count."""
    ordered, mass = _ordered(values, weights)
    low, high = np.searchsorted(mass, mass[-1] / 2, "left"), np.searchsorted(mass, mass[-1] / 2, "right")
    return float((ordered[low] + ordered[min(high, len(ordered) - 1)]) / 2)


def _trimmed_mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean of the smallest four fifths of values that count so many times."""
    ordered, mass = _ordered(values, weights)
    below = np.clip(mass, None, (1 - _TRIM) * mass[-1])
    return float(np.average(ordered, weights=np.diff(below, prepend=0.0)))


def _ordered(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values in order, without NaN, and the weight of each and all before."""
    seen = ~np.isnan(values)
    order = np.argsort(values[seen], kind="stable")
    return values[seen][order], np.cumsum(weights[seen][order])


# from the errors of the held-out samples, their weights, and the mean errors of the folds
AGGREGATES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "mean": lambda errors, weights, folds: float(np.mean(folds)),
    "median": lambda errors, weights, folds: _weighted_median(errors, weights),
    "trimmed_mean": lambda errors, weights, folds: _trimmed_mean(errors, weights),
    "fold_median": lambda errors, weights, folds: float(np.median(folds)),
}


def key_of(sample: Sample, losses: list[Loss], lams: list[float], folds: list[np.ndarray], rest: Any) -> str:
    """Return what tells one selection from another: the numbers of the sample, the grid, the folds and the rest."""
    digest = hashlib.sha256(repr(([repr(loss) for loss in losses], lams, [f.tolist() for f in folds], rest)).encode())
    problem = sample.problem  # the predictions depend on every number of the kernel and of the operator
    for array in (problem.targets, problem.predictions(problem.targets), problem.kept):
        digest.update(b"" if array is None else np.ascontiguousarray(host(array)).tobytes())
    return digest.hexdigest()
