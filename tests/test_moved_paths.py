"""Rooms load as attributes of the library, and documented paths of the last release still import."""

import subprocess
import sys
from importlib import import_module

import pytest

MOVED = {
    "fenchel.persistence": "fenchel.app.persistence",
    "fenchel.kernel_search": "fenchel.search.race",
    "fenchel.report.plots": "fenchel.report.figures",
    "fenchel.report.summary": "fenchel.app.pages.summary",
    "fenchel.estimators.tables": "fenchel.app.tables",
}


@pytest.mark.parametrize("old", MOVED)
def test_a_path_of_the_last_release(old):
    module, new = import_module(old), import_module(MOVED[old])
    assert {*module.__all__} == {*new.__all__}
    assert all(getattr(module, name) is getattr(new, name) for name in module.__all__)


def test_tables_among_the_estimators():
    from fenchel import estimators
    from fenchel.app.tables import TableRegressor

    assert estimators.TableRegressor is TableRegressor
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = estimators.Nothing


@pytest.mark.parametrize("room", ["approximations", "conformal", "operators", "outliers"])
def test_a_room_loads_as_an_attribute(room):
    code = f"import sys, fenchel; assert 'fenchel.{room}' not in sys.modules; print(fenchel.{room}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"fenchel.{room}"]
