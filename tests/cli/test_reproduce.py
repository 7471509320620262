"""``fenchel reproduce`` and ``fenchel datasets``, on small experiments and small files."""

import hashlib
import importlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fenchel
from fenchel.datasets import store
from fenchel.datasets.store import KnownFile
from fenchel.papers.catalogue import EXPERIMENTS
from fenchel.papers.comparison import Comparison
from fenchel.papers.experiment import Unit

click_testing = pytest.importorskip("click.testing")
pytest.importorskip("rich")
plt = pytest.importorskip("matplotlib.pyplot")

REPRODUCE = [sys.executable, "-m", "fenchel", "reproduce"]


def call(*arguments):
    from fenchel.app.cli import main

    return click_testing.CliRunner().invoke(main, [str(argument) for argument in arguments])


def cube(k):
    """Return a number."""
    return {"k": k, "cube": float(k**3)}


class Cubes:
    """Cubes of numbers.

    They are computed <one> by one.
    """

    __name__ = "fenchel.papers.cubes"
    more = ()

    @staticmethod
    def units(quick=False):
        return [Unit(f"cubes-{k}", cube, (k,)) for k in range(1, 3 if quick else 5)]

    @staticmethod
    def summary(results):
        rows = [
            Comparison(f"cube of {one['k']}", one["k"] ** 3, one["cube"], 1e-9, "a & b", target="published")
            for one in results.values()
        ]
        total = Comparison("sum", 100.0, sum(one["cube"] for one in results.values()), 0.0)
        return [*rows, total, *Cubes.more], results

    @staticmethod
    def draw(found):
        fig, ax = plt.subplots()
        ax.plot([one["cube"] for one in found.values()])
        return fig


@pytest.fixture
def cubes(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "cubes", Cubes())
    from fenchel.app.cli.reproduce import reproduce_command

    names = next(parameter for parameter in reproduce_command.params if parameter.name == "names")
    monkeypatch.setattr(names.type, "choices", (*names.type.choices, "cubes"))


def test_table_page_and_figure(cubes, tmp_path):
    result = call("reproduce", "cubes", "--output", tmp_path)
    assert result.exit_code == 0, result.output
    told = "published: 4 PASS, 0 TIE, 0 MISS; own bar: 1 PASS, 0 TIE, 0 MISS. This run computed all parts."
    assert told in " ".join(result.output.split())
    page = (tmp_path / "reproduce.html").read_text(encoding="utf-8")
    assert (
        "4 PASS, 0 TIE, 0 MISS (published target, nothing chosen on test data)." in page
        and "This run computed all parts." in page
    )
    assert "Cubes of numbers." in page and "&lt;one&gt;" in page and "a &amp; b" in page
    assert page.count('class="PASS"') == 5 and 'class="MISS"' not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert (tmp_path / "cubes.png").stat().st_size > 1000
    assert len(list((tmp_path / "parts").glob("*.json"))) == 4


def test_a_reduced_run_says_so_and_a_miss_is_status_1(cubes, tmp_path):
    result = call("reproduce", "cubes", "--quick", "--output", tmp_path, "--markdown", tmp_path / "results.md")
    assert result.exit_code == 1
    assert "cubes, reduced" in result.output and "own bar: 0 PASS, 0 TIE, 1 MISS" in " ".join(result.output.split())
    assert "reduced: fewer" in (tmp_path / "reproduce.html").read_text(encoding="utf-8")
    table = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "- kind: reduced" in table
    assert "| sum | 100 | 9 | 0 | MISS | own bar | reduced: only the full run is comparable;  |" in table
    assert not (tmp_path / "parts").exists()


def test_full_runs_compute_the_finer_grids_where_there_are_any(cubes, tmp_path, monkeypatch):
    both = call("reproduce", "cubes", "--quick", "--full", "--output", tmp_path)
    assert both.exit_code == 2 and "Use either --quick or --full" in both.output
    assert call("reproduce", "cubes", "--full", "--output", tmp_path / "same").exit_code == 0
    assert len(list((tmp_path / "same" / "parts").glob("cubes-*.json"))) == 4
    finer = [Unit(f"cubes-full-{k}", cube, (k,)) for k in range(1, 5)]
    monkeypatch.setattr(Cubes, "full_units", staticmethod(lambda: finer), raising=False)
    assert call("reproduce", "cubes", "--full", "--output", tmp_path / "finer").exit_code == 0
    assert sorted(file.stem for file in (tmp_path / "finer" / "parts").iterdir()) == [unit.name for unit in finer]


@pytest.fixture
def more(cubes, monkeypatch):
    """A tie, a row that needs no inputs, and two rows after a look at test data."""
    looked = {"looked_at_test": "The grid was chosen after a look."}
    rows = (
        Comparison("counted elsewhere", 1.0, 1.0, 0.0, target="published", counted=False),
        Comparison("a tie", 1.0, 1.1, 0.0, at_most=True, standard_error=0.06, target="published", **looked),
        Comparison("an easy bar", 1.0, 0.5, 0.0, at_most=True, trivial=0.9, **looked),
    )
    monkeypatch.setattr(Cubes, "more", rows)


def test_ties_and_rows_for_reference_are_counted_apart_and_are_no_miss(more, tmp_path):
    table = tmp_path / "results.md"
    result = call("reproduce", "cubes", "--output", tmp_path, "--markdown", table)
    assert result.exit_code == 0, result.output
    page, text = (file.read_text(encoding="utf-8") for file in (tmp_path / "reproduce.html", table))
    for found in (result.output, page, text):
        found = " ".join(found.split())
        assert "published: 4 PASS, 0 TIE, 0 MISS, 1 for reference; published †: 0 PASS, 1 TIE, 0 MISS; own bar" in found
        assert "†1 The grid was chosen after a look." in found
    assert 'class="TIE"' in page and 'class="reference"' in page
    assert "| a tie †1 | 1 | 1.1 ± 0.06 | at most +0 | TIE | published † |  |" in text
    assert "| an easy bar †1 | 1 | 0.5 | at most +0 | reference | own bar | baseline without inputs 0.9 |" in text
    found = json.loads(call("reproduce", "cubes", "--json", "--output", tmp_path).output)
    assert found["counts"] == {"PASS": 5, "TIE": 1, "MISS": 0, "reference": 2}
    assert found["counts_by_kind"]["published"] == {"PASS": 4, "TIE": 0, "MISS": 0, "reference": 1}
    assert "| published target, nothing chosen on test data | 4 | 0 | 0 | 1 |" in text
    tie, easy = found["rows"][-2:]
    assert (tie["verdict"], tie["standard_error"], tie["passes"]) == ("TIE", 0.06, False)
    assert (easy["verdict"], easy["trivial"], easy["looked_at_test"]) == (
        "reference",
        0.9,
        "The grid was chosen after a look.",
    )


def test_all_that_a_module_says_is_in_the_markdown(cubes, tmp_path):
    call("reproduce", "cubes", "--output", tmp_path, "--markdown", tmp_path / "results.md")
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "\n\nCubes of numbers.\n\nThey are computed <one> by one.\n\npublished: 4 PASS" in text


def test_parts_that_were_read_back_are_told(cubes, tmp_path):
    arguments = ("reproduce", "cubes", "--output", tmp_path, "--markdown", tmp_path / "results.md")
    call(*arguments)
    (tmp_path / "parts" / "cubes-3.json").unlink()
    times = {
        file.stem: json.loads(file.read_text())["computed"] for file in sorted((tmp_path / "parts").glob("*.json"))
    }
    assert len(times) == 3
    result = call(*arguments)
    page, text = (tmp_path / name for name in ("reproduce.html", "results.md"))
    told = "3 of 4 parts were reused from earlier runs of the same code on the same data"
    for found in (" ".join(result.output.split()), page.read_text(encoding="utf-8"), text.read_text(encoding="utf-8")):
        assert told in found and times["cubes-1"] in found and "all parts." not in found
        assert "this run computed the others." in found
    result = call(*arguments)
    for found in (" ".join(result.output.split()), page.read_text(encoding="utf-8"), text.read_text(encoding="utf-8")):
        assert "4 of 4 parts were reused" in found and "this run computed none." in found
    (tmp_path / "parts" / "cubes-3.json").unlink()
    found = json.loads(call("reproduce", "cubes", "--json", "--output", tmp_path).output)
    assert found["reused"] == {"cubes": times}
    assert found["facts"]["parts"] == "4, of which 3 reused from earlier runs"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_version_the_commit_and_the_time_of_a_run_are_told(cubes, tmp_path, monkeypatch):
    from fenchel.papers import reproduce as reproducing

    facts = json.loads(call("reproduce", "cubes", "--json", "--output", tmp_path / "out").output)["facts"]
    assert facts["version of fenchel"] == fenchel.__version__
    assert re.fullmatch(r"\d+\.\d minutes", facts["wall-clock time of this run"])
    monkeypatch.setattr(reproducing.fenchel, "__file__", str(tmp_path / "__init__.py"))
    (tmp_path / "__init__.py").touch()
    assert reproducing._commit() == {}  # no checkout
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    assert reproducing._commit() == {}  # the checkout of something else
    for arguments in (["add", "__init__.py"], ["commit", "-q", "-m", "two"]):
        subprocess.run([*git, *arguments], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    commit = reproducing._commit()["commit"]
    assert len(commit) >= 7 and head.startswith(commit)
    (tmp_path / "__init__.py").write_text("x = 1")
    assert reproducing._commit() == {"commit": f"{commit}, with local changes"}


def test_json(cubes, tmp_path):
    result = call("reproduce", "cubes", "--json", "--output", tmp_path)
    found = json.loads(result.output)
    assert result.exit_code == 0
    assert [row["ours"] for row in found["rows"]] == [1, 8, 27, 64, 100]
    assert found["rows"][0]["passes"] is True and found["facts"]["kind"] == "full"
    assert Path(found["page"]).exists()


def test_fresh_computes_anew(cubes, tmp_path):
    call("reproduce", "cubes", "--output", tmp_path)
    file = tmp_path / "parts" / "cubes-2.json"
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "result": {"k": 2, "cube": 9.0}}))
    again = call("reproduce", "cubes", "--output", tmp_path)  # a finished part is read
    assert " ".join(again.output.split()).count("1 MISS") == 2
    fresh = call("reproduce", "cubes", "--output", tmp_path, "--fresh")
    assert " ".join(fresh.output.split()).count("0 MISS") == 2


def test_a_killed_run_goes_on(data_folder, tmp_path, monkeypatch):
    """kill -9 in the middle of a real experiment; the second run reads what was kept, and gives the same table."""
    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    stopped = subprocess.Popen([*REPRODUCE, "lip", "--output", str(tmp_path / "a")])
    parts = tmp_path / "a" / "parts"
    deadline = time.monotonic() + 120
    while not list(parts.glob("*.json")) and stopped.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    stopped.send_signal(signal.SIGKILL)
    assert stopped.wait() == -signal.SIGKILL
    before = {file.name: file.stat().st_mtime_ns for file in parts.glob("*.json")}
    assert 1 <= len(before) < 5
    resumed, whole = (
        json.loads(call("reproduce", "lip", "--json", "--output", tmp_path / folder).stdout)["rows"] for folder in "ab"
    )
    assert resumed == whole
    assert all((parts / name).stat().st_mtime_ns == stamp for name, stamp in before.items())


class TestDatasets:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        body = b"some numbers"
        known = KnownFile("made/one.npz", len(body), hashlib.sha256(body).hexdigest())
        other = KnownFile("other/two.npz", 5, "0" * 64)
        both = {one.name: one for one in (known, other)}
        for module in (store, importlib.import_module("fenchel.papers.datasets.data_files")):
            monkeypatch.setattr(module, "known_files", lambda: both)
        monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "one.npz").write_bytes(body)
        return SimpleNamespace(path=tmp_path, body=body)

    def test_list(self, folder):
        result = call("datasets", "list")
        assert result.exit_code == 0 and "1 of 1" in result.output and "0 of 1" in result.output
        found = json.loads(call("datasets", "list", "--json").output)
        assert found == {
            "made": {"files": 1, "bytes": len(folder.body), "there": 1},
            "other": {"files": 1, "bytes": 5, "there": 0},
        }

    def test_path(self, folder):
        assert call("datasets", "path").output.strip() == str(folder.path)
        assert call("datasets", "path", "made").output.strip() == str(folder.path / "made")
        result = call("datasets", "path", "mode")
        assert result.exit_code == 1 and "There is no data set 'mode'. Known ones: made, other." in result.output

    def test_check(self, folder):
        assert json.loads(call("datasets", "check", "--json").output) == {
            "made/one.npz": "ok",
            "other/two.npz": "absent",
        }
        assert call("datasets", "check").exit_code == 1  # a file is absent
        assert call("datasets", "check", "made").exit_code == 0
        (folder.path / "made" / "one.npz").write_bytes(b"some nombers")
        result = call("datasets", "check", "made")
        assert result.exit_code == 1 and "damaged" in result.output

    def test_source_and_build(self, folder, tmp_path, monkeypatch):
        dti = KnownFile("dti/dti_ms_first_visit.npz", 5, "0" * 64)
        for module in (store, importlib.import_module("fenchel.papers.datasets.data_files")):
            monkeypatch.setattr(module, "known_files", lambda: {dti.name: dti})
        text = call("datasets", "source", "dti").output
        assert "cran.r-project.org" in text and "GPL" in text and "DTI.csv" in text
        result = call("datasets", "build", "dti", "--from", tmp_path)
        assert result.exit_code == 1 and result.output.startswith(
            f"Error: There is no DTI.csv in {tmp_path}. Download it "
        )
        assert result.output.strip().endswith(f"fenchel datasets build dti --from {tmp_path}")
        monkeypatch.chdir(tmp_path)
        assert f"There is no DTI.csv in {tmp_path}. " in call("datasets", "build", "dti").output
        assert "build" in call("datasets", "list").output

    def test_fetch_without_an_address(self, folder, monkeypatch):
        monkeypatch.delenv("FENCHEL_DATA_URL", raising=False)
        assert "complete" in call("datasets", "fetch", "made").output  # nothing to do
        result = call("datasets", "fetch", "other")
        assert result.exit_code == 1 and result.output.strip().startswith(
            "Error: There is no address to download other from"
        )
        assert "no public copy of the prepared files" in result.output and str(folder.path / "other") in result.output

    def test_fetch_without_an_address_says_how_to_get_the_data(self, monkeypatch, tmp_path):
        monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
        monkeypatch.delenv("FENCHEL_DATA_URL", raising=False)
        assert call("datasets", "fetch", "dti").output.strip().endswith("fenchel datasets source dti")
        assert "The data come from https://github.com/MassBank" in call("datasets", "fetch", "massbank_msms").output
        monkeypatch.setenv("COLUMNS", "200")
        assert "no public copy; see source massbank_msms" in call("datasets", "list").output


def test_experiments_without_their_data(cubes, tmp_path, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path / "none"))
    monkeypatch.delenv("FENCHEL_DATA_URL", raising=False)
    result = call("reproduce", "dti", "cubes", "--output", tmp_path)
    (line,) = result.output.splitlines()
    assert result.exit_code == 1 and line.startswith("Error: dti: ") and "has no dti/dti_ms_first_visit.npz" in line
    for name in [name for name in EXPERIMENTS if name not in ("cubes", "dti")]:
        monkeypatch.delitem(EXPERIMENTS, name)
    result = call("reproduce", "--output", tmp_path)
    assert result.exit_code == 0 and result.stderr.startswith("Left out dti: ")
    assert "4 PASS" in result.output


def test_loaders_describe_their_data(data_folder, monkeypatch):
    from fenchel import datasets

    monkeypatch.setenv("FENCHEL_DATA", str(data_folder))
    data = datasets.load_air_quality()
    assert data.X.shape == (355, 24, 6) and data.Y.shape == (355, 24) and data.t.tolist() == list(np.arange(24.0))
    assert data.DESCR.startswith("Load daily curves of air quality") and data.citation.startswith("S. De Vito")
    images = datasets.load_corel5k()
    assert images.X_train.shape == (4500, 499) and images.Y_test.shape == (500, 374)
    assert images.Y_train.sum(axis=1).mean() == pytest.approx(3.522, abs=0.01)
    assert {"load_usps", "load_nci_cancer", "make_functional", "fetch"} <= set(datasets.__all__)
