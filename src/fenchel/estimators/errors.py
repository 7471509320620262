"""Errors of held-out samples: how they become one number, and how they are kept in a file."""

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from fenchel._array import host
from fenchel._files import DAMAGE, unpacked, write_whole
from fenchel._statistics import weighted_median
from fenchel.estimators.core import Sample
from fenchel.losses import Loss

__all__ = ["AGGREGATES", "Checkpoint", "key_of"]

_TRIM = 0.2  # share of the largest errors that a trimmed mean drops


class Checkpoint:
    """Errors of finished losses, in a file that is replaced as a whole and belongs to one set of data and grid.

    Threads may record and save at the same time: a pair is written with all that is known of it, or not at all.
    """

    def __init__(self, file: Any, key: str, shape: tuple[int, int, int]) -> None:
        self.file = None if file is None else Path(file)
        self.key = key
        self._lock = Lock()
        shapes = (shape, shape[:2], shape[:2])
        self.errors, self.gaps, self.scores = (np.full(s, np.nan) for s in shapes)
        if self.file is not None and self.file.exists():
            self.errors, self.gaps, self.scores = _stored(self.file, key, shapes)
        self.todo = [i for i in range(shape[0]) if np.isnan(self.errors[i]).any()]  # losses that are not finished
        self._n_done = (shape[0] - len(self.todo)) * shape[1]

    def record(self, loss: int, lam: int, errors: list[float], gap: float, score: float) -> int:
        """Keep what is known of one pair; return the number of pairs that are done."""
        with self._lock:
            self.errors[loss, lam], self.gaps[loss, lam], self.scores[loss, lam] = errors, gap, score
            self._n_done += 1
            return self._n_done

    def save(self, loss: int) -> None:
        """Write the file if a loss is finished."""
        with self._lock:
            if self.file is None or np.isnan(self.errors[loss]).any():
                return
            buffer = io.BytesIO()
            np.savez(buffer, key=self.key, errors=self.errors, gaps=self.gaps, scores=self.scores)
            write_whole(self.file, buffer.getvalue())


def _stored(file: Path, key: str, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Return the errors, gaps and scores of a checkpoint, or raise."""
    if not file.is_file():
        raise ValueError(f"The checkpoint {file} is not a regular file. Name another.")
    content = io.BytesIO(file.read_bytes())
    try:
        with np.load(io.BytesIO(unpacked(content, float("inf"), only_arrays=True)), allow_pickle=False) as archive:
            owner, *arrays = (archive[name] for name in ("key", "errors", "gaps", "scores"))
    except DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"The checkpoint {file} is damaged ({reason}). Remove it or name another.") from error
    if str(owner) != key:
        raise ValueError(f"The checkpoint {file} belongs to other data or another grid. Remove it or name another.")
    if [(array.shape, array.dtype.kind) for array in arrays] != [(shape, "f") for shape in shapes]:
        raise ValueError(f"The checkpoint {file} is damaged (its arrays do not fit). Remove it or name another.")
    return arrays


def _trimmed_mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted mean of the smallest four fifths of the values, ignoring NaN."""
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
    "median": lambda errors, weights, folds: float(weighted_median(errors, weights)),
    "trimmed_mean": lambda errors, weights, folds: _trimmed_mean(errors, weights),
    "fold_median": lambda errors, weights, folds: float(np.median(folds)),
}


def key_of(sample: Sample, losses: list[Loss], lams: list[float], folds: list[np.ndarray], rest: Any) -> str:
    """Return what tells one selection from another: the numbers of the sample, the grid, the folds and the rest."""
    digest = hashlib.sha256(repr(([repr(loss) for loss in losses], lams, [f.tolist() for f in folds], rest)).encode())
    problem = sample.problem  # the predictions depend on every number of the kernel and of the operator
    for array in (problem.targets, problem.predictions(problem.targets), problem.mask):
        digest.update(b"" if array is None else np.ascontiguousarray(host(array)).tobytes())
    return digest.hexdigest()
