"""Tests of pages that were skipped for want of a browser are named at the end of a run."""

from types import SimpleNamespace

from tests.browser import NO_BROWSER, summarise


def printed(*reasons):
    lines = []
    terminal = SimpleNamespace(
        stats={"skipped": [SimpleNamespace(longrepr=("conftest.py", 1, f"Skipped: {reason}")) for reason in reasons]},
        section=lambda title, **_: lines.append(title),
        line=lines.append,
    )
    summarise(terminal)
    return lines


def test_they_are_counted():
    title, line = printed(f"{NO_BROWSER}: no Chromium", "torch is not installed", f"{NO_BROWSER}: no playwright")
    assert title == "BROWSER TESTS DID NOT RUN"
    assert line.startswith("2 tests of pages need Chromium")


def test_nothing_is_said_where_they_ran():
    assert printed() == []
    assert printed("torch is not installed") == []
