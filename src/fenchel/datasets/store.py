"""Local data folder, filled from a mirror on demand, with checksums of all files."""

import functools
import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import BinaryIO, ParamSpec
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import urlopen

from sklearn.utils import Bunch

__all__ = ["KnownFile", "check_files", "data_folder", "described", "digests", "fetch", "known_files", "locate"]

_BLOCK = 2**16  # bytes of a download in memory at a time, after each of which progress is shown
_TIMEOUT = 30  # seconds without receiving a byte

P = ParamSpec("P")
Progress = Callable[[str, int, int], None]  # file name, bytes so far, total bytes


@dataclass(frozen=True)
class KnownFile:
    """A file of a dataset: its name relative to the data folder, its size in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str

    @property
    def data_set(self) -> str:
        """The dataset that it belongs to."""
        return self.name.split("/", 1)[0]


@functools.cache
def known_files() -> dict[str, KnownFile]:
    """Return the files that the loaders read, by name.

    Examples
    --------
    >>> from fenchel.datasets import known_files
    >>> known_files()["yeast/yeast.npz"].data_set
    'yeast'
    """
    lines = resources.files("fenchel.datasets").joinpath("checksums.txt").read_text(encoding="ascii").splitlines()
    files = {}
    for line in lines:
        sha256, size, name = line.split(" ", 2)
        files[name] = KnownFile(name, int(size), sha256)
    return files


def data_folder() -> Path:
    """Return the folder that holds the datasets.

    Returns
    -------
    folder : Path
        The folder named by ``FENCHEL_DATA``, else ``~/fenchel_data``.

    Examples
    --------
    >>> from fenchel.datasets import data_folder
    >>> data_folder().is_absolute()
    True
    """
    return Path(os.environ.get("FENCHEL_DATA", "~/fenchel_data")).expanduser()


def locate(*parts: str) -> Path:
    """Return the path of a data file, downloading it if it is missing and a mirror is known.

    An existing file is not verified: ``check_files`` compares checksums.
    """
    path, name = data_folder().joinpath(*parts), "/".join(parts)
    if path.is_file():
        return path
    if os.environ.get("FENCHEL_DATA_URL"):
        return fetch(name)
    raise FileNotFoundError(
        f"There is no data file {path}. Put it there, or set FENCHEL_DATA to the folder that holds it as {name}, or "
        f"FENCHEL_DATA_URL to the address of a copy. To see how to get the data, run: fenchel datasets source "
        f"{parts[0]}"
    )


def fetch(name: str, url: str | None = None, progress: Progress | None = None) -> Path:
    """Download a data file into the data folder and verify its size and checksum.

    Parameters
    ----------
    name : str
        Name of the file relative to the data folder, one of ``known_files()``.
    url : str or None, default=None
        Base address of a copy with these file names; ``None`` means ``FENCHEL_DATA_URL``.
    progress : callable or None, default=None
        Called with the file name, the bytes so far and the total bytes.

    Returns
    -------
    path : Path
        The file. A failed download never leaves a partial file under that name.

    Examples
    --------
    >>> from fenchel.datasets import fetch
    >>> fetch("yeast/yeast.npz", "https://example.org/fenchel_data")  # doctest: +SKIP
    """
    known = known_files().get(name)
    if known is None:
        raise ValueError(f"There is no data file named {name!r}. `fenchel datasets list` shows them.")
    base = url or os.environ.get("FENCHEL_DATA_URL")
    if not base:
        raise ValueError("There is no address to download from. Set FENCHEL_DATA_URL to that of a copy of the data.")
    path, address = data_folder() / name, f"{base.rstrip('/')}/{quote(name)}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise OSError(
            f"{path.parent} cannot be written to ({error.strerror}). Set FENCHEL_DATA to a writable folder."
        ) from error
    try:
        with os.fdopen(handle, "wb") as out:
            digest = _copy(address, out, known, progress)
        if digest != known.sha256:
            raise ValueError(
                f"{address} is not the expected file: its SHA-256 is {digest[:12]}..., not {known.sha256[:12]}"
                "... Nothing was kept."
            )
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return path


def _copy(address: str, out: BinaryIO, known: KnownFile, progress: Progress | None) -> str:
    """Download an address to a file, and return its SHA-256."""
    digest, done = hashlib.sha256(), 0
    try:
        with urlopen(address, timeout=_TIMEOUT) as stream:  # the address is given by the user
            while block := stream.read(_BLOCK):
                out.write(block)
                digest.update(block)
                done += len(block)
                if progress is not None:
                    progress(known.name, done, known.size)
                if done > known.size:
                    break
    except HTTPError as error:
        raise ConnectionError(f"{address} cannot be read: the server returned {error.code} {error.reason}.") from error
    except (URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise ConnectionError(
            f"{address} cannot be read: {reason}. Check the network and FENCHEL_DATA_URL, or put the file into "
            f"{data_folder()} by hand."
        ) from error
    if done != known.size:
        raise ConnectionError(
            f"{address} sent {done} bytes{' or more' if done > known.size else ''} instead of {known.size}. Nothing "
            "was kept; try again."
        )
    return digest.hexdigest()


def check_files(data_sets: list[str] | None = None) -> Iterator[tuple[KnownFile, str]]:
    """Compare files with their checksums.

    Parameters
    ----------
    data_sets : list of str or None, default=None
        Names of datasets; ``None`` means all of them.

    Yields
    ------
    known : KnownFile
        An expected file.
    state : {"ok", "absent", "damaged"}
        State of the file.

    Examples
    --------
    >>> from fenchel.datasets import check_files
    >>> [state for known, state in check_files(["no such set"])]
    []
    """
    for known in known_files().values():
        if data_sets and known.data_set not in data_sets:
            continue
        path = data_folder() / known.name
        if not path.is_file():
            yield known, "absent"
        else:
            same = path.stat().st_size == known.size and _sha256(path) == known.sha256
            yield known, "ok" if same else "damaged"


def digests(data_sets: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of every known file of some datasets; for a missing file, the expected one."""
    files = [known for known in known_files().values() if known.data_set in set(data_sets)]
    paths = {known: data_folder() / known.name for known in files}
    return {known.name: _digest(path, path.stat()) if path.is_file() else known.sha256 for known, path in paths.items()}


def described(load: Callable[P, Bunch]) -> Callable[P, Bunch]:
    """Decorate a loader to add ``DESCR``, its docstring, and ``citation``, its references, to its data."""
    text = inspect.cleandoc(load.__doc__ or "")
    citation = text.partition("References\n----------\n")[2].strip()

    @functools.wraps(load)
    def loader(*args: P.args, **kwargs: P.kwargs) -> Bunch:
        data = load(*args, **kwargs)
        data.update(DESCR=text, citation=citation)
        return data

    return loader


def _digest(path: Path, state: os.stat_result) -> str:
    """Return the SHA-256 of a file, cached for each version of it."""
    return _remembered(path, state.st_size, state.st_mtime_ns)


@functools.cache
def _remembered(path: Path, size: int, modified: int) -> str:
    return _sha256(path)


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
