import inspect
import json
import re
import warnings
from datetime import datetime

import numpy as np
import pytest

from fenchel.datasets import store
from fenchel.datasets.store import KnownFile
from fenchel.exceptions import ScaleWarning
from fenchel.papers import experiment as base
from fenchel.papers.catalogue import EXPERIMENTS
from fenchel.papers.comparison import Comparison
from fenchel.papers.experiment import Unit, run


@pytest.mark.parametrize(
    ("ours", "passes"), [(0.1, True), (2.5, True), (2.69, True), (2.7, False), (float("nan"), False)]
)
def test_a_bar_from_above_has_an_absolute_tolerance(ours, passes):
    assert Comparison("a", 2.5, ours, 0.19, at_most=True).passes is passes


def test_a_relative_tolerance_holds_on_both_sides():
    assert Comparison("a", 2.0, 1.5, 0.25).passes
    assert not Comparison("a", 2.0, 1.49, 0.25).passes
    assert not Comparison("a", 2.0, 2.51, 0.25).passes


class Squares:
    """An experiment of three units; the second may fail."""

    __name__ = "fenchel.papers.some_squares"

    @staticmethod
    def summary(results):
        """Return one row for each unit."""
        return [Comparison(name, 0.0, sum(found["values"]), 1.0) for name, found in results.items()], results


def square(k, broken=None):
    """Return numbers of every kind that a unit may give."""
    if broken is not None and broken.exists():
        raise RuntimeError("stopped")
    return {"values": np.array([k**2, 1 / 3]), "k": np.int64(k), "name": f"unit {k}"}


def units(*more):
    return [Unit(f"square-{k}", square, (k, *(more if k == 2 else ()))) for k in (1, 2, 3)]


def test_units_are_summed_up_in_their_order():
    steps = []
    outcome = run(Squares(), units(), progress=lambda *step: steps.append(step))
    assert [row.name for row in outcome.rows] == ["square-1", "square-2", "square-3"]
    assert [row.ours for row in outcome.rows] == [1 + 1 / 3, 4 + 1 / 3, 9 + 1 / 3]  # to the last bit
    assert outcome.found["square-2"] == {"values": [4.0, 1 / 3], "k": 2, "name": "unit 2"}
    assert steps == [("some-squares", 1, 3), ("some-squares", 2, 3), ("some-squares", 3, 3)]
    assert outcome.seconds >= 0


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"null", b"[]", b"3", b"{}", b'{"code": "CODE"}', b'{"code": "CODE", "seconds": 1.0}'],
)
def test_a_damaged_part_is_computed_again(tmp_path, content):
    expected = run(Squares(), units(), tmp_path).results
    code = json.loads((tmp_path / "square-2.json").read_text())["code"]
    (tmp_path / "square-2.json").write_bytes(content.replace(b"CODE", code.encode()))
    steps = []
    assert run(Squares(), units(), tmp_path, progress=lambda *step: steps.append(step)).results == expected
    assert len(steps) == 1  # the others are read
    assert json.loads((tmp_path / "square-2.json").read_text())["result"] == expected["square-2"]


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    flag = tmp_path / "flag"
    flag.touch()
    with pytest.raises(RuntimeError, match="stopped"):
        run(Squares(), units(flag), tmp_path / "parts")
    assert [file.name for file in (tmp_path / "parts").iterdir()] == ["square-1.json"]
    flag.unlink()
    before = (tmp_path / "parts" / "square-1.json").stat().st_mtime_ns
    outcome = run(Squares(), units(flag), tmp_path / "parts")
    assert (tmp_path / "parts" / "square-1.json").stat().st_mtime_ns == before
    assert outcome.rows == run(Squares(), units()).rows
    assert sorted(file.name for file in (tmp_path / "parts").iterdir()) == [f"square-{k}.json" for k in (1, 2, 3)]
    steps = []
    monkeypatch.setattr(base, "_compute", None)  # would fail if it were called
    assert run(Squares(), units(flag), tmp_path / "parts", lambda *s: steps.append(s)).rows == outcome.rows
    assert steps == []


def test_results_of_other_code_are_computed_anew(tmp_path):
    run(Squares(), units(), tmp_path)
    file = tmp_path / "square-2.json"
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "code": "0.0.1 0", "result": {"values": [99.0], "k": 2, "name": ""}}))
    assert run(Squares(), units(), tmp_path).rows[1].ours == 4 + 1 / 3
    assert json.loads(file.read_text())["code"] == kept["code"]


class TestWhatIsReadBack:
    def test_it_is_told_with_its_time(self, tmp_path):
        first = run(Squares(), units()[:2], tmp_path)
        assert first.reused == {}
        again = run(Squares(), units(), tmp_path)
        times = {name: json.loads((tmp_path / f"{name}.json").read_text())["computed"] for name in again.results}
        assert again.reused == {name: times[name] for name in ("square-1", "square-2")}
        assert all(datetime.strptime(time, "%Y-%m-%d %H:%M UTC") for time in times.values())

    def test_a_change_anywhere_in_the_library_computes_anew(self, tmp_path, monkeypatch):
        """A solver that is edited: a module that is not the experiment's."""
        package = tmp_path / "fenchel"
        (package / "solvers").mkdir(parents=True)
        for name in ("__init__.py", "solvers/auto.py"):
            (package / name).write_text("x = 1\n")
        monkeypatch.setattr(base.fenchel, "__file__", str(package / "__init__.py"))
        base._source.cache_clear()
        run(Squares(), units(), tmp_path / "parts")
        assert len(run(Squares(), units(), tmp_path / "parts").reused) == 3
        (package / "solvers" / "auto.py").write_text("x = 2\n")
        base._source.cache_clear()
        assert run(Squares(), units(), tmp_path / "parts").reused == {}
        monkeypatch.undo()
        base._source.cache_clear()

    @pytest.mark.parametrize(
        ("edited", "same"),
        [
            ('"""Words."""\n\n\nclass A:\n    """More."""\n\n    def f(self):  # why\n        return 1\n', True),
            ("class A:\n    def f(self):\n        return 2\n", False),
            ('class A:\n    def f(self):\n        """Words."""\n        return "1"\n', False),
        ],
    )
    def test_docstrings_and_comments_are_not_code(self, edited, same):
        source = '"""Text."""\nclass A:\n    def f(self):\n        """Old."""\n        return 1\n'
        assert (base._syntax_digest(edited) == base._syntax_digest(source)) is same

    def test_command_line_and_report_are_not_code_of_a_unit(self, tmp_path, monkeypatch):
        monkeypatch.setattr(base.fenchel, "__file__", str(tmp_path / "__init__.py"))
        digests = []
        for name in ("__init__.py", "cli/main.py", "report/page.py", "losses.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("x = 1\n")
            base._source.cache_clear()
            digests.append(base._source())
        monkeypatch.undo()
        base._source.cache_clear()
        assert digests[0] == digests[1] == digests[2] != digests[3]

    def test_another_data_file_computes_anew(self, tmp_path, monkeypatch):
        known = KnownFile("made/one.npz", 3, "0" * 64)
        monkeypatch.setattr(store, "known_files", lambda: {known.name: known})
        monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
        monkeypatch.setitem(globals(), "DATA", ("made",))
        file = tmp_path / "made" / "one.npz"
        file.parent.mkdir()
        file.write_bytes(b"abc")
        run(Squares(), units(), tmp_path / "parts")
        assert len(run(Squares(), units(), tmp_path / "parts").reused) == 3
        file.write_bytes(b"abd")
        assert run(Squares(), units(), tmp_path / "parts").reused == {}

    def test_other_versions_of_the_libraries_compute_anew(self, tmp_path, monkeypatch):
        run(Squares(), units(), tmp_path)
        monkeypatch.setattr(base, "versions", lambda: {"numpy": "0.1"})
        assert run(Squares(), units(), tmp_path).reused == {}


def test_processes_give_the_same(tmp_path):
    assert run(Squares(), units(), tmp_path, jobs=2).rows == run(Squares(), units()).rows
    assert len(list(tmp_path.glob("*.json"))) == 3


def test_workers_of_dask_give_the_same():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        found = run(Squares(), units(), dask=cluster.scheduler_address)
    assert found.rows == run(Squares(), units()).rows


def warned(category):
    warnings.warn("Huber(1e-9) clips 100% of the samples", category, stacklevel=2)
    return {"value": 1.0}


def test_only_warnings_of_the_scale_are_silent():
    """Tests turn warnings into errors."""
    assert base._compute(Unit("one", warned, (ScaleWarning,)))[0] == "one"
    with pytest.raises(UserWarning, match="clips"):
        base._compute(Unit("one", warned, (UserWarning,)))


def imaginary():
    return 1j


def test_a_result_that_json_cannot_hold():
    with pytest.raises(TypeError, match=r"numbers, strings, lists and arrays\. Got complex"):
        run(Squares(), [Unit("one", imaginary)])


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_experiment_has_units_of_different_names(name):
    module = EXPERIMENTS[name]
    full, quick = module.units(), module.units(quick=True)
    for found in (full, quick):
        assert found
        assert len({unit.name for unit in found}) == len(found)
        assert all(unit.name.startswith(name) for unit in found)
    assert len(quick) <= len(full)
    assert module.__doc__


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_experiment_names_its_data(name):
    """The data sets are those of the files that its loaders look for: results are kept for these data only."""
    module = EXPERIMENTS[name]
    bodies = [inspect.getsource(inspect.unwrap(load)) for key, load in vars(module).items() if key.startswith("load_")]
    words = {word for body in bodies for word in re.findall(r'"(\w+)"', body)}
    assert set(module.DATA) == words & {known.data_set for known in store.known_files().values()}
