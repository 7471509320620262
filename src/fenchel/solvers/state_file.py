"""Checkpoint file with the state of the splitting, for long fits."""

import pickle
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeVar

import joblib
import numpy as np

from fenchel._array import Array, has_shape, host, is_lazy, is_sparse
from fenchel.data.files import DAMAGE, replaced
from fenchel.exceptions import IncompatibleError

__all__ = ["StateFile", "chunks_of", "key_of"]

T = TypeVar("T")

_SHARE = 0.05  # largest share of the time spent writing


class StateFile:
    """The penalty rho and the rows of z, chunk by chunk, in an archive that is replaced atomically.

    Parameters
    ----------
    file : path
        The archive.
    key : str
        Identifies the problem. An archive of another problem is an error.
    """

    def __init__(self, file: str | PathLike[str], key: str) -> None:
        self.file = Path(file)
        self.key = key
        self._next = 0.0  # time of the next write

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last write."""
        return time.perf_counter() >= self._next

    def save(self, rho: float, chunks: Iterable[np.ndarray]) -> None:
        """Write the state, holding one chunk in memory at a time."""
        begin = time.perf_counter()
        with replaced(self.file) as stream, zipfile.ZipFile(stream, "w") as archive:
            _add(archive, "key", np.asarray(self.key))
            _add(archive, "rho", np.asarray(rho))
            for k, rows in enumerate(chunks):
                _add(archive, f"z{k}", rows)
        end = time.perf_counter()
        self._next = end + (end - begin) / _SHARE

    def load(self, shapes: Sequence[tuple[int, int]]) -> tuple[float, Iterator[np.ndarray]] | None:
        """Return rho and an iterator over chunks of the given shapes, or ``None`` if there is no file."""
        if not self.file.exists():
            return None
        if not self.file.is_file():
            raise ValueError(f"The checkpoint {self.file} is not a regular file. Choose another path.")
        owner, rho = (self._array(name) for name in ("key", "rho"))
        if str(owner) != self.key:
            raise ValueError(
                f"The checkpoint {self.file} belongs to another problem: its data, kernel, loss or lam differ. "
                "Remove it or choose another path."
            )
        return float(rho), self._chunks(shapes)

    def _chunks(self, shapes: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        for k, shape in enumerate(shapes):
            rows = self._array(f"z{k}")
            if rows.shape != shape or rows.dtype.kind != "f":
                raise self._damage("its arrays have unexpected shapes")
            yield rows

    def _array(self, name: str) -> np.ndarray:
        try:
            with self.file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return np.asarray(archive[name])
        except DAMAGE as error:
            raise self._damage(" ".join(str(error).split()) or type(error).__name__) from error

    def _damage(self, reason: str) -> ValueError:
        return ValueError(f"The checkpoint {self.file} is damaged ({reason}). Remove it or choose another path.")


def chunks_of(array: Array, function: Callable[[Array], T]) -> Iterator[T]:
    """Yield a function of each chunk of rows of a lazy array, or of the array itself."""
    yield from array.each(function) if is_lazy(array) else (function(array),)


def key_of(*parts: object) -> str:
    """Return a digest of objects and arrays."""
    try:
        return str(joblib.hash([_plain(part) for part in parts]))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise IncompatibleError(
            f"A checkpoint needs a kernel, a loss and inputs that can be pickled ({error}). Use checkpoint=None."
        ) from error


def _plain(part: object) -> object:
    """Return an array as a contiguous NumPy array, whose digest depends on its values alone; or digests of chunks."""
    if has_shape(part) and is_lazy(part):
        return list(chunks_of(part, key_of))
    return np.ascontiguousarray(host(part)) if has_shape(part) and not is_sparse(part) else part


def _add(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, array, allow_pickle=False)
