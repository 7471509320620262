"""File utilities: atomic writes, archives read within a size limit, cells of CSV files."""

import io
import math
import os
import secrets
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np

__all__ = ["DAMAGE", "MeteredBytes", "SizeError", "csv_line", "replaced", "unpacked", "write_whole"]

# errors raised when reading a damaged zip archive, its JSON or its arrays
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, KeyError, TypeError,
          AttributeError, ImportError, NotImplementedError, IndexError)  # fmt: skip

_BLOCK = 2**20  # bytes of an archive that are decompressed at a time
_TEXT_GROWTH = 24  # objects of a JSON text take up to this many times the memory of the text
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # for other methods Python decompresses a whole block at once
_ARCHIVE_MARKS = (b"PK\x03\x04", b"PK\x05\x06")
# readers of the header of an NPY file, by the version of the format
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")


class SizeError(ValueError):
    """An archive holds more than the limit allows."""

    def __init__(self, size: int) -> None:
        super().__init__(f"its content takes {size} bytes or more")
        self.size = size


class MeteredBytes(io.BytesIO):
    """Bytes in memory with a limit on the number of bytes read, including repeated reads."""

    def __init__(self, content: bytes | memoryview, limit: float) -> None:
        super().__init__(content)
        self._limit = limit
        self._count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes, or raise if the limit is exceeded."""
        block = super().read(size)
        self._count += len(block)
        if self._count > self._limit:
            raise SizeError(self._count)
        return block


def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write bytes to a file atomically, as ``replaced`` does."""
    with replaced(path) as stream:
        stream.write(content)


@contextmanager
def replaced(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a stream whose content atomically replaces the file at the end of a ``with`` block.

    A reader sees the old file or the new one, never a part. If the block raises, the old file remains.

    Parameters
    ----------
    path : str or path
        A regular file, which need not exist. An existing file keeps its permissions. A symbolic link remains, and the
        file that it points to is replaced.

    Raises
    ------
    ValueError
        If the path is a folder, a device, a pipe or a socket.
    """
    file = Path(os.path.realpath(path))
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"{path} is not a regular file and cannot be replaced. Name a file.")
    permissions = 0o666 if mode is None else stat.S_IMODE(mode)
    partial = file.with_name(f".{secrets.token_hex(16)}.part")  # a unique name, since other threads may write here too
    stream = _created(partial, permissions, path)
    try:
        with stream:
            if mode is not None:
                os.chmod(partial, permissions)  # regardless of the umask
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)


def _created(partial: Path, permissions: int, path: str | PathLike[str]) -> BinaryIO:
    """Create a file, open for writing; errors name the file that the user asked for."""
    try:
        return open(partial, "xb", opener=lambda name, flags: os.open(name, flags, permissions))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def unpacked(stream: BinaryIO, limit: float, only_arrays: bool = False) -> bytes:
    """Return an uncompressed copy of a zip archive, so that reading it takes no more memory than its size.

    Parameters
    ----------
    stream : binary file
        The archive.
    limit : float
        Maximum size of the copy in bytes. JSON counts as much as its objects take in memory; a nested archive counts
        twice, as it is and unpacked.
    only_arrays : bool, default=False
        Whether to reject entries that are not NumPy arrays, including nested archives.

    Returns
    -------
    archive : bytes
        A zip archive with the same entries.

    Raises
    ------
    SizeError
        If the entries take more than ``limit`` bytes, declared or actual. No more than that is ever decompressed.
    ValueError and others of ``DAMAGE``
        If the archive is damaged, or an array in it does not have its declared size.
    """
    with zipfile.ZipFile(stream) as source:
        entries = source.infolist()
        if len({entry.filename for entry in entries}) < len(entries):
            raise ValueError("it has two entries with the same name")
        declared = sum(entry.file_size * _growth(entry.filename) for entry in entries)
        if declared > limit:
            raise SizeError(declared)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as copy:
            for entry in entries:
                if entry.compress_type not in _PACKINGS:
                    raise ValueError(f"{entry.filename} is compressed in an unknown way")
                _copy(source, entry, copy)
    size = buffer.getbuffer().nbytes
    with zipfile.ZipFile(buffer) as copy:
        for entry in copy.infolist():
            size += _checked_content(copy, entry, limit - size, only_arrays)
    if size > limit:
        raise SizeError(size)
    return buffer.getvalue()


def _growth(name: str) -> int:
    return _TEXT_GROWTH if name.endswith(".json") else 1


def _copy(source: zipfile.ZipFile, entry: zipfile.ZipInfo, target: zipfile.ZipFile) -> None:
    """Copy an entry in blocks, without decompressing anything beyond its declared size."""
    same = zipfile.ZipInfo(entry.filename)
    same.file_size = entry.file_size  # distinguishes large files from small ones
    with source.open(entry) as packed, target.open(same, "w") as plain:
        while block := packed.read(_BLOCK):
            plain.write(block)


def _checked_content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: float, only_arrays: bool) -> int:
    """Check that an array has its declared size; return the unpacked size of a nested archive, else 0."""
    magic = np.lib.format.MAGIC_PREFIX
    with archive.open(entry) as stream:
        head = stream.read(len(magic))
        if head == magic:
            stream.seek(0)
            shape, _, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
            declared, rest = math.prod(shape) * dtype.itemsize, entry.file_size - stream.tell()
            if declared != rest:
                raise ValueError(f"the array {entry.filename} declares {declared} bytes and has {rest}")
        elif only_arrays:
            raise ValueError(f"{entry.filename} is not an array")
    if head.startswith(_ARCHIVE_MARKS):  # a sparse matrix is an archive of arrays
        return len(unpacked(io.BytesIO(archive.read(entry)), limit, only_arrays=True))
    return 0


def csv_line(cells: Sequence[str]) -> str:
    """Return a line of a CSV file, without the line end.

    Text that a spreadsheet would read as a formula is prefixed with an apostrophe; numbers are unchanged.
    """
    return ",".join(_quoted(cell) for cell in cells)


def _quoted(cell: str) -> str:
    if cell.startswith(_FORMULA_MARKS) and not _is_number(cell):
        cell = f"'{cell}"
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\r\n') else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
