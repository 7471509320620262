"""Checkpoints of a search: the errors of held-out samples, stored in a file."""

import hashlib
import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from threading import Lock

import numpy as np

from fenchel._array import has_shape, host
from fenchel.data.files import DAMAGE, unpacked, write_whole
from fenchel.losses import Loss
from fenchel.model.training_set import TrainingSet

__all__ = ["Checkpoint", "search_key"]


class Checkpoint:
    """Errors of finished losses, stored in a file for one combination of data and grid. Writes are atomic.

    Threads may record and save concurrently: a pair is written completely or not at all.
    """

    def __init__(self, file: str | PathLike[str], key: str, shape: tuple[int, int, int]) -> None:
        self.file = None if file is None else Path(file)
        self.key = key
        self._lock = Lock()
        shapes = (shape, shape[:2], shape[:2])
        self.errors, self.gaps, self.scores = (np.full(s, np.nan) for s in shapes)
        if self.file is not None and self.file.exists():
            self.errors, self.gaps, self.scores = _stored(self.file, key, shapes)
        self.todo = [i for i in range(shape[0]) if np.isnan(self.errors[i]).any()]  # losses that are not finished
        self.n_done = (shape[0] - len(self.todo)) * shape[1]

    def record(self, loss: int, lam: int, errors: list[float], gap: float, score: float) -> None:
        """Store the results of one pair."""
        with self._lock:
            self.errors[loss, lam], self.gaps[loss, lam], self.scores[loss, lam] = errors, gap, score
            self.n_done += 1

    def account(self) -> str:
        """Describe how much of the search is finished and stored."""
        done = f"{self.n_done} of {self.gaps.size} pairs of the grid were done."
        if self.file is None:
            return f"{done} Set checkpoint to keep the finished part of a search."
        n_kept = int(np.sum(~np.isnan(self.errors).any(axis=(1, 2))))
        return f"{done} {n_kept} of {len(self.errors)} losses are in the checkpoint {self.file}; fit again to resume."

    def save(self, loss: int) -> None:
        """Write the file if the loss is finished."""
        with self._lock:
            if self.file is None or np.isnan(self.errors[loss]).any():
                return
            buffer = io.BytesIO()
            np.savez(buffer, key=self.key, errors=self.errors, gaps=self.gaps, scores=self.scores)
            write_whole(self.file, buffer.getvalue())


def _stored(file: Path, key: str, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Read the errors, gaps and scores of a checkpoint; raise if it does not fit."""
    if not file.is_file():
        raise ValueError(f"The checkpoint {file} is not a regular file. Use another file.")
    content = io.BytesIO(file.read_bytes())
    try:
        with np.load(io.BytesIO(unpacked(content, float("inf"), only_arrays=True)), allow_pickle=False) as archive:
            owner, *arrays = (archive[name] for name in ("key", "errors", "gaps", "scores"))
    except DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"The checkpoint {file} is damaged ({reason}). Remove it or use another file.") from error
    if str(owner) != key:
        raise ValueError(f"The checkpoint {file} belongs to other data or another grid. Remove it or use another file.")
    if [(array.shape, array.dtype.kind) for array in arrays] != [(shape, "f") for shape in shapes]:
        raise ValueError(f"The checkpoint {file} is damaged (its arrays do not fit). Remove it or use another file.")
    return arrays


def search_key(
    training_set: TrainingSet, losses: list[Loss], lams: list[float], folds: list[np.ndarray], settings: object
) -> str:
    """Return a key that identifies a search by its data, grid, folds and other settings."""
    grid = ([repr(loss) for loss in losses], lams, [fold.tolist() for fold in folds], settings)
    digest = hashlib.sha256(repr(grid).encode())
    values = [value for loss in losses for value in loss.get_params().values() if has_shape(value)]
    problem = training_set.problem(losses[0], lams[0])
    # predictions depend on every parameter of the kernel and of the operator
    for array in (problem.targets, problem.predictions(problem.targets), problem.mask, *values):
        digest.update(b"" if array is None else np.ascontiguousarray(host(array)).tobytes())
    return digest.hexdigest()
