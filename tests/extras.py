"""Skip a test, or a whole file, where an optional library that it imports is not installed."""

import pytest

OPTIONAL = {
    "array_api_strict", "clarabel", "click", "cvxpy", "dask", "distributed", "matplotlib", "pandas", "playwright",
    "polars", "pyarrow", "rdkit", "rich", "skfda", "skops", "torch",
}  # fmt: skip


def absent_library(error):
    """Return the name of the optional library whose absence raised the error, or None."""
    while error is not None:
        name = (getattr(error, "name", None) or "").partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and name in OPTIONAL:
            return name
        error = error.__cause__ or error.__context__
    return None


def skip_if_absent(report, excinfo):
    """Turn the report of a failure into a skip if an optional library is absent."""
    name = absent_library(excinfo.value) if excinfo is not None else None
    if name is not None and report.failed:
        report.outcome, report.longrepr = "skipped", (report.nodeid, 0, f"Skipped: {name} is not installed")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return skip_if_absent(report, report.call.excinfo)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    return skip_if_absent(report, call.excinfo)
