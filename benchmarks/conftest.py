"""One BLAS thread for all, and the report at the end."""

import pytest
import report
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    with threadpool_limits(1):
        yield


def pytest_sessionstart(session):
    report.start()


def pytest_sessionfinish(session):
    report.write()
