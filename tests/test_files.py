"""Files are written whole, by many threads at a time; archives are read within a limit; cells are no formulas."""

import io
import os
import stat
import struct
import threading
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from scipy import sparse

from fenchel.data import files as _files
from fenchel.data.files import MeteredBytes, SizeError, csv_line, unpacked, write_whole

is_posix = pytest.mark.skipif(os.name != "posix", reason="permissions and pipes of POSIX")


def in_threads(count, work):
    """Run some work in threads that start together; return their errors."""
    errors, barrier = [], threading.Barrier(count)

    def run(k):
        barrier.wait()
        try:
            work(k)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


# writing


def test_threads_write_one_file_at_the_same_time(tmp_path):
    contents = [bytes([k]) * 200_000 for k in range(8)]

    def work(k):
        for _ in range(5):
            write_whole(tmp_path / "file", contents[k])

    assert in_threads(8, work) == []
    assert (tmp_path / "file").read_bytes() in contents
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@is_posix
def test_a_file_keeps_its_permissions(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    for mode in (0o600, 0o664):  # the second has more than the umask allows
        os.chmod(tmp_path / "file", mode)
        write_whole(tmp_path / "file", b"new")
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


@is_posix
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~umask


@is_posix
def test_a_private_file_is_private_while_it_is_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    os.chmod(tmp_path / "file", 0o600)
    modes = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode)))
    write_whole(tmp_path / "file", b"new")
    assert modes == [0o600]


@is_posix
def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    target.write_bytes(b"old")
    for name in ("link", "dangling"):
        link = tmp_path / name
        link.symlink_to(target)
        write_whole(link, b"new")
        assert link.is_symlink()
        assert target.read_bytes() == b"new"
        target.unlink()


@is_posix
def test_only_regular_files_are_written(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for path in (tmp_path / "folder", tmp_path / "pipe", tmp_path / "link", "/dev/null"):
        with pytest.raises(ValueError, match="is not a regular file and cannot be replaced"):
            write_whole(path, b"new")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_partial_file_cannot_be_foreseen_nor_taken_over(tmp_path, monkeypatch):
    names = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (names.append(old), replace(old, new)))
    for _ in range(2):
        write_whole(tmp_path / "file", b"new")
    assert names[0] != names[1]
    (tmp_path / "other").write_bytes(b"theirs")
    (tmp_path / ".taken.part").symlink_to(tmp_path / "other")
    monkeypatch.setattr(_files.secrets, "token_hex", lambda size: "taken")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", b"newer")
    assert (tmp_path / ".taken.part").read_bytes() == b"theirs"
    assert (tmp_path / "file").read_bytes() == b"new"


def test_an_error_names_the_file_that_the_user_knows(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file") as error:
        write_whole(tmp_path / "missing" / "file", b"new")
    assert error.value.filename == str(tmp_path / "missing" / "file")


def test_a_long_name_can_be_written(tmp_path):
    write_whole(tmp_path / ("n" * 255), b"new")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"new"


# archives


def archive(compression=zipfile.ZIP_DEFLATED, **entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as target:
        for name, content in entries.items():
            target.writestr(name, content)
    return buffer


def array_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_an_unpacked_archive_has_the_same_entries():
    entries = {"a": b"x" * 3_000_000, "b.npy": array_bytes(np.eye(3)), "c.json": b"{}"}
    with zipfile.ZipFile(io.BytesIO(unpacked(archive(**entries), 2**22))) as copy:
        assert {name: copy.read(name) for name in copy.namelist()} == entries
        assert {entry.compress_type for entry in copy.infolist()} == {zipfile.ZIP_STORED}


def test_a_declared_size_above_the_limit_is_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(_files, "_copy", lambda *args: pytest.fail("an entry was read"))
    with pytest.raises(SizeError, match="takes 5000000 bytes or more"):
        unpacked(archive(a=bytes(3_000_000), b=bytes(2_000_000)), 4_000_000)


def test_the_records_of_an_archive_count_too():
    many = {f"{k:030}": b"" for k in range(100)}
    with pytest.raises(SizeError, match="bytes or more"):
        unpacked(archive(**many), 1000)


def test_json_counts_as_much_as_its_objects_take():
    with pytest.raises(SizeError, match="bytes or more"):
        unpacked(archive(**{"schema.json": b"[" + b"[]," * 10_000 + b"[]]"}), 400_000)


def lying(size, content):
    """Return an archive whose only entry declares a size, with the checksum of as many bytes of its content."""
    data = bytearray(archive(entry=content).getvalue())
    checksum = zlib.crc32(content[:size])
    central = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, 14, checksum)
    struct.pack_into("<I", data, 22, size)
    struct.pack_into("<I", data, central + 16, checksum)
    struct.pack_into("<I", data, central + 24, size)
    return io.BytesIO(bytes(data))


def test_what_lies_beyond_a_declared_size_is_not_decompressed():
    """Python's own reader decompresses all of it in one go, and then cuts it off."""
    file = lying(100, bytes(200_000_000))
    tracemalloc.start()
    try:
        with zipfile.ZipFile(io.BytesIO(unpacked(file, 2**20))) as copy:
            assert copy.read("entry") == bytes(100)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_without_a_bound_are_refused(compression):
    with pytest.raises(ValueError, match="is compressed in an unknown way"):
        unpacked(archive(compression, entry=b"content"), 2**20)


def test_two_entries_of_one_name_are_refused():
    buffer = archive(a=b"1")
    with zipfile.ZipFile(buffer, "a") as target, pytest.warns(UserWarning, match="Duplicate name"):
        target.writestr("a", b"2")
    with pytest.raises(ValueError, match="two entries with the same name"):
        unpacked(buffer, 2**20)


@pytest.mark.parametrize("shape", [(2**40,), (10, 3), (0,)])
def test_an_array_that_declares_another_size_than_it_has_is_refused(shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with pytest.raises(ValueError, match=r"the array a\.npy declares \d+ bytes and has 800"):
        unpacked(archive(**{"a.npy": buffer.getvalue() + bytes(800)}), 2**20)


def test_archives_inside_count_and_hold_arrays_only():
    buffer = io.BytesIO()
    sparse.save_npz(buffer, sparse.csr_array(np.ones((400, 400))))
    inside = buffer.getvalue()
    assert len(inside) < 100_000
    unpacked(archive(a=inside), 2**22)
    with pytest.raises(SizeError, match="bytes or more"):
        unpacked(archive(a=inside), 1_000_000)
    with pytest.raises(SizeError, match="bytes or more"):
        unpacked(archive(**{str(k): inside for k in range(3)}), 2**22)
    for content in (b"text", inside):
        with pytest.raises(ValueError, match="entry is not an array"):
            unpacked(archive(a=archive(entry=content).getvalue()), 2**22)


def test_bytes_that_are_read_again_count_again():
    stream = MeteredBytes(b"0123456789", 25)
    for _ in range(2):
        stream.seek(0)
        assert stream.read() == b"0123456789"
    stream.seek(0)
    with pytest.raises(SizeError, match="takes 30 bytes or more"):
        stream.read()


# CSV


@pytest.mark.parametrize("text", ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx"])
def test_text_that_a_spreadsheet_would_compute_is_neutralised(text):
    cell = csv_line([text])
    assert cell.lstrip('"').startswith("'" + text[0])


@pytest.mark.parametrize("text", ["-1.5", "+2", "-1e-07", "-inf", "y", "", "a=b", "1-2"])
def test_numbers_and_other_text_stay(text):
    assert csv_line([text]) == text


def test_cells_are_quoted_where_they_must():
    assert csv_line(["a,b", 'say "x"', "two\nlines", "return\r", "=1,2"]) == (
        '"a,b","say ""x""","two\nlines","return\r","\'=1,2"'
    )
