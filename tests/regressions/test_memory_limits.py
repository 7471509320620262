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


LIMITED = """
import resource
import numpy as np
from fenchel import OperatorKernelRegressor
from fenchel._check import free_memory
from fenchel.losses import Huber
from fenchel.model.memory import preconditioner
from fenchel.model.spec import Spec
from fenchel.solvers import Auto
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
"""


def test_the_features_of_a_preconditioner_under_a_limit():
    """200 000 samples and 8 GiB: the features, with two copies, and the iterates leave memory free."""
    code = """
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, resource.RLIM_INFINITY))
n = 200_000
spec = Spec("OperatorKernelRegressor", Huber(0.5), 1e-3, Auto(), 1e-6)
count = preconditioner(np.zeros((n, 5)), spec, 1).n_components
assert n**0.5 <= count + 1 and 8 * n * (3 * count + 32) <= free_memory() / 2 < 4 * 2**30, count
"""
    done = subprocess.run([sys.executable, "-c", LIMITED + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_fit_under_a_limit():
    """The stored matrix of 8000 samples takes 512 MB, the features of the solver 34 MB each; 200 MB are left."""
    code = """
rng = np.random.default_rng(0)
X = rng.standard_normal((8000, 3))
resource.setrlimit(resource.RLIMIT_AS, (used + 200 * 10**6, resource.RLIM_INFINITY))
model = OperatorKernelRegressor(loss=Huber(0.5), lam=1e-2, tol=1e-2).fit(X, np.sin(X[:, 0]))
assert model.duality_gap_ <= 1e-2, model.status_
"""
    done = subprocess.run([sys.executable, "-c", LIMITED + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
