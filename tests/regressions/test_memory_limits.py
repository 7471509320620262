"""A request beyond the memory, or beyond ``ulimit -v``, is refused before the allocation."""

import subprocess
import sys

import numpy as np
import pytest

from fenchel import OperatorKernelRegressor, _check
from fenchel.exceptions import NotFeasibleError
from fenchel.representations import KernelOutputs

pytest.importorskip("resource")


def test_the_limit_of_the_address_space():
    """In a process of its own, whose limit leaves 1 GiB."""
    code = """
import resource
from fenchel._check import check_memory, free_memory
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, resource.RLIM_INFINITY))
assert 0.9 * 2**30 < free_memory() <= 2**30, free_memory()
check_memory(2**31, "An array", "Use less")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "NotFeasibleError: An array needs about 2.0 GiB; 1.0 GiB of memory is free. Use less." in done.stderr


@pytest.fixture
def one_mebibyte(monkeypatch):
    monkeypatch.setattr(_check, "_free_memory", lambda: 2**20)


def test_a_gram_matrix_of_outputs(one_mebibyte, rng):
    with pytest.raises(NotFeasibleError, match=r"The Gram matrix of 400 outputs needs .* output_approximation=Nystrom"):
        KernelOutputs("gaussian").fit(rng.standard_normal((400, 2)))


def test_a_covariance_of_outputs(one_mebibyte, rng):
    with pytest.raises(NotFeasibleError, match=r"The covariance of 400 outputs needs .* Use operator=None"):
        OperatorKernelRegressor(operator="covariance").fit(np.arange(3.0)[:, None], rng.standard_normal((3, 400)))
