"""The store of data files against a real server on this machine."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fenchel.datasets import store
from fenchel.datasets.store import KnownFile, check_files, fetch, known_files, locate

BODY = bytes(range(256)) * 1000
GOOD = KnownFile("made/good.npz", len(BODY), hashlib.sha256(BODY).hexdigest())


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = {"/good": BODY, "/other": BODY[::-1], "/cut": BODY[:1000], "/long": BODY + b"more"}.get(
            self.path.removesuffix("/made/good.npz")
        )
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        if self.path.startswith("/cut"):
            self.send_header("Content-Length", str(len(BODY)))  # promises more than it gives
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def server():
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("FENCHEL_DATA_URL", raising=False)
    monkeypatch.setattr(store, "known_files", lambda: {GOOD.name: GOOD})
    return tmp_path / "data"


def left(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_a_good_file(server, folder):
    steps = []
    path = fetch(GOOD.name, f"{server}/good", lambda *step: steps.append(step))
    assert path == folder / GOOD.name
    assert path.read_bytes() == BODY
    assert left(folder) == ["made/good.npz"]
    assert steps[-1] == (GOOD.name, len(BODY), len(BODY)) and len(steps) > 1
    assert list(check_files()) == [(GOOD, "ok")]


def test_a_missing_file_is_fetched_when_it_is_asked_for(server, folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"set FENCHEL_DATA to the folder that holds it as made/good\.npz"):
        locate("made", "good.npz")
    monkeypatch.setenv("FENCHEL_DATA_URL", f"{server}/good/")
    assert locate("made", "good.npz").read_bytes() == BODY
    monkeypatch.setenv("FENCHEL_DATA_URL", "http://127.0.0.1:9")  # not asked again
    assert locate("made", "good.npz").read_bytes() == BODY


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("other", ValueError, r"is not the expected file: its SHA-256 is .*Nothing was kept"),
        ("cut", ConnectionError, rf"sent 1000 bytes instead of {len(BODY)}\. Nothing was kept"),
        ("long", ConnectionError, f"bytes or more instead of {len(BODY)}"),
        ("nowhere", ConnectionError, "the server returned 404"),
    ],
)
def test_nothing_is_kept_of_a_wrong_file(server, folder, where, error, message):
    with pytest.raises(error, match=message):
        fetch(GOOD.name, f"{server}/{where}")
    assert left(folder) == []
    assert list(check_files()) == [(GOOD, "absent")]


def test_a_wrong_file_does_not_replace_the_one_that_is_there(server, folder):
    fetch(GOOD.name, f"{server}/good")
    with pytest.raises(ValueError, match="SHA-256"):
        fetch(GOOD.name, f"{server}/other")
    assert (folder / GOOD.name).read_bytes() == BODY


def test_no_network(folder):
    with pytest.raises(ConnectionError, match=r"cannot be read: .*Check the network and FENCHEL_DATA_URL"):
        fetch(GOOD.name, "http://127.0.0.1:9")  # the port of a service that no machine runs
    assert left(folder) == []


def test_a_stop_in_the_middle_leaves_nothing(server, folder):
    def stop(*step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(GOOD.name, f"{server}/good", stop)
    assert left(folder) == []


def test_a_folder_that_cannot_be_written_to(server, tmp_path, monkeypatch, folder):
    blocked = tmp_path / "file"
    blocked.write_text("")  # no folder can be made below a file, not even by the administrator
    monkeypatch.setenv("FENCHEL_DATA", str(blocked / "data"))
    with pytest.raises(OSError, match=r"cannot be written to .* Set FENCHEL_DATA to a writable folder"):
        fetch(GOOD.name, f"{server}/good")


def test_unknown_names_and_addresses(folder):
    with pytest.raises(ValueError, match=r"no data file named 'made/bad\.npz'"):
        fetch("made/bad.npz", "http://127.0.0.1:9")
    with pytest.raises(ValueError, match="Set FENCHEL_DATA_URL"):
        fetch(GOOD.name)


def test_a_damaged_file_is_found(server, folder):
    path = fetch(GOOD.name, f"{server}/good")
    path.write_bytes(BODY[:-1] + b"x")
    assert list(check_files()) == [(GOOD, "damaged")]
    path.write_bytes(BODY[:-1])
    assert list(check_files(["made"])) == [(GOOD, "damaged")]
    assert list(check_files(["other"])) == []


def test_the_local_copy_is_the_one_that_is_known(data_folder, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    assert {state for _, state in check_files()} == {"ok"}
    assert len(known_files()) > 30
