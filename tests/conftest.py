import os
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from tests.browser import summarise
from tests.covering import core
from tests.rooms import files_of

pytest_plugins = ["tests.extras"]

ROOM = pytest.StashKey()

settings.register_profile("core", derandomize=True, deadline=None, max_examples=15)
settings.register_profile("exhaustive", derandomize=True, deadline=None, max_examples=50)


def pytest_addoption(parser):
    parser.addoption("--room", help="run the tests of one package of the library, such as losses")
    parser.addoption("--exhaustive", action="store_true", help="run every case of every test, not only the core")


def pytest_configure(config):
    settings.load_profile("exhaustive" if config.option.exhaustive else "core")
    if config.option.room is not None:
        config.stash[ROOM] = files_of(config.option.room)
        if not config.stash[ROOM]:
            raise pytest.UsageError(
                f"No tests are about {config.option.room!r}. Pass the name of a package of fenchel."
            )


def pytest_ignore_collect(collection_path, config):
    """With ``--room``, leave out files of tests that are about other packages."""
    if ROOM in config.stash and collection_path.name.startswith("test_"):
        return True if collection_path not in config.stash[ROOM] else None
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave the cases that the core does not need, and what is marked, to the exhaustive run."""
    if config.option.exhaustive:
        return
    tests = defaultdict(list)
    for item in items:
        if not any(item.iter_markers("exhaustive")):
            tests[item.nodeid.partition("[")[0]].append(item)
    kept = {item for cases in tests.values() for item in core_cases(cases)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def core_cases(items):
    """Return those cases of a test that the core run takes; cases that are expected to fail cover nothing."""
    items = [item for item in items if not any(item.iter_markers("xfail"))] or items
    if not hasattr(items[0], "callspec"):
        return items
    cases = [item.callspec.params for item in items]
    apart = {name for mark in items[0].iter_markers("apart") for name in mark.args}
    lists = {name: (name,) for name in cases[0]}
    for mark in items[0].iter_markers("parametrize"):
        names = [name.strip() for name in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
        lists |= {name: tuple(names) for name in names if name not in apart}
    chosen = core(cases, list(dict.fromkeys(lists.values())))
    return [item for place, item in enumerate(items) if place in chosen]


def pytest_terminal_summary(terminalreporter):
    summarise(terminalreporter)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=["numpy", "array_api_strict", "torch"])
def xp(request):
    """Each array library in turn; those that are not installed are skipped."""
    return pytest.importorskip(
        f"array_api_compat.{request.param}" if request.param != "array_api_strict" else request.param
    )


@pytest.fixture
def data_folder():
    """The local copy of the real data sets, or a skip."""
    folder = Path(os.environ.get("FENCHEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data folder at FENCHEL_DATA ({folder})")
    return folder


@pytest.fixture(autouse=True)
def no_open_figures():
    """Close the figures that a test has made."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
