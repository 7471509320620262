"""Exact fits of Dask arrays: the kernel is computed between pairs of chunks, and never stored."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, Huber
from fenchel.solvers import Krylov, watched
from tests.dask.conftest import chunked, drawn, killing

MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])

KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[3])
from distributed import Client
from tests.dask.test_exact import data, thin_model
from fenchel.solvers import checkpoint, watched

checkpoint._SHARE = 1e9  # every state is written

def kill(n_iter, certificate):
    if n_iter >= 20:
        os.kill(os.getpid(), signal.SIGKILL)

with Client(sys.argv[1]), watched(kill):
    thin_model(sys.argv[2]).fit(*data())
"""


def data():
    return chunked(*drawn(np.random.default_rng(0)))


def thin_model(checkpoint=None):
    """Krylov leaves features to the splitting, which keeps its state as well."""
    settings = {"approximation": Nystrom(30, "uniform"), "solver": Krylov(checkpoint=checkpoint)}
    return OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.3), lam=1e-5, tol=1e-9, **settings)


def test_equal_to_a_fit_in_memory_though_a_worker_dies(cluster, rng):
    """The same iterations, one of two processes being killed in the middle."""
    X, Y = drawn(rng, 120)
    model = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.3), lam=1e-3, tol=1e-8, solver=Krylov(n_components=60))
    here, n_iter = model.fit(X, Y).predict(X), model.n_iter_
    kill, killed = killing(cluster)
    with watched(kill):
        model.fit(*chunked(X, Y, rows=50))
    assert killed and model.n_iter_ == n_iter > 2
    assert model.certificate_ == "exact" and model.duality_gap_ <= 1e-8 and model.approximation_ is None
    assert_allclose(model.predict(X), here, rtol=0, atol=1e-8)
    there = model.predict(chunked(X, rows=70)[0])
    assert_allclose(there.compute(), here, rtol=0, atol=1e-8)
    K = Gaussian(0.3)(X) / (1e-3 * 120)
    assert_allclose(K @ model.dual_coef_.compute(), here, rtol=0, atol=1e-8)


def test_operators_weights_and_float32_tiles(cluster, rng):
    """Numbers with a sparse loss and weights, then vectors with an operator; both to the certified gap."""
    X, Y = drawn(rng, 100)
    weights = rng.uniform(0.5, 2, 100)
    settings = {
        "kernel": Gaussian(0.3),
        "lam": 1e-2,
        "center": True,
        "solver": Krylov(n_components=50, tiles="float32"),
    }
    for loss, operator, y in [(EpsilonRidge(0.2), None, Y[:, 0]), (Huber(0.3), MATRIX, Y)]:
        stored = OperatorKernelRegressor(**{**settings, "solver": "auto"}, loss=loss, operator=operator, tol=1e-9)
        stored.fit(X, y, weights)
        model = OperatorKernelRegressor(**settings, loss=loss, operator=operator).fit(*chunked(X, y, rows=60), weights)
        assert model.duality_gap_ <= 1e-6
        assert abs(model.primal_objective_ - stored.primal_objective_) <= 1.01e-6 * stored.primal_objective_
        # strong convexity: the norm of the difference of two models is bounded by their gaps
        bound = np.sqrt(2 * 1.01e-6 * stored.primal_objective_ / 1e-2 * 2.3)
        assert np.abs(model.predict(X) - stored.predict(X)).max() <= bound
        assert model.dual_coef_.shape == y.shape


def test_a_killed_client_goes_on(cluster, tmp_path):
    """The process that started the fit is killed, and another one goes on with far fewer iterations."""
    file, root = tmp_path / "fit.npz", Path(__file__).parents[2]
    arguments = [sys.executable, "-c", KILLED, cluster.scheduler.address, str(file), str(root)]
    ended = subprocess.run(arguments, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL and file.exists()
    whole, resumed = thin_model().fit(*data()), thin_model(file).fit(*data())
    assert resumed.duality_gap_ <= 1e-9 and resumed.history_[0][1] < 0.1 * whole.history_[0][1]
    assert resumed.n_iter_ < whole.n_iter_ > 20
    assert_allclose(resumed.primal_objective_, whole.primal_objective_, rtol=2e-9)
    X, Y = data()
    with pytest.raises(ValueError, match="belongs to another problem"):
        thin_model(file).fit(X, Y + 1)


def test_an_exact_fit_goes_on(cluster, rng, tmp_path):
    X, Y = chunked(*drawn(rng, 100), rows=60)
    solver = Krylov(n_components=30, checkpoint=tmp_path / "fit.npz")
    model = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.3), lam=1e-3, tol=1e-2, solver=solver)
    first = model.fit(X, Y).history_
    assert first[0][1] > 0.1 and len(first) > 1
    assert model.set_params(tol=1e-3).fit(X, Y).history_[0][1] < 0.1 * first[0][1]
