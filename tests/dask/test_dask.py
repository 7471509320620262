"""Fits of Dask arrays on a cluster of two processes, one of which is killed in the middle of a fit."""

import os
import signal

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom, RandomFeatures
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, Huber
from fenchel.solvers import watched

array = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N = 200


@pytest.fixture(scope="module")
def cluster():
    options = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def sample(rng):
    X = rng.uniform(-2, 2, (N, 3))
    Y = np.sin(X @ rng.standard_normal((3, 2))) + 0.1 * rng.standard_normal((N, 2))
    Y[::10] += 3
    return X, Y


def chunked(*arrays):
    return [array.from_array(one, chunks=(80, *one.shape[1:])) for one in arrays]


@pytest.mark.parametrize("is_flat", [False, True])
def test_equal_to_a_fit_in_memory(cluster, sample, is_flat):
    """A smooth loss with vectors, and a sparse one with numbers and weights."""
    X, Y = sample
    loss, approximation, weights = Huber(0.3, p=1), Nystrom(20, "uniform"), None
    if is_flat:
        loss, approximation, weights, Y = EpsilonRidge(0.1), RandomFeatures(20), np.linspace(0.5, 2, N), Y[:, 0]
    settings = {"loss": loss, "lam": 1e-2, "tol": 1e-11, "solver": "douglas_rachford", "approximation": approximation}
    model = OperatorKernelRegressor(Gaussian(0.3), **settings)
    here = model.fit(X, Y, weights).predict(X)
    expected = model.primal_objective_
    model.fit(*chunked(X, Y), weights)
    assert_allclose(model.predict(X), here, rtol=0, atol=1e-8)
    there = model.predict(chunked(X)[0])
    assert there.chunks[0] == (80, 80, 40) and there.shape == model.dual_coef_.shape == Y.shape
    assert_allclose(there.compute(), model.predict(X), rtol=0, atol=1e-13)
    assert model.primal_objective_ == pytest.approx(expected, rel=1e-9)
    assert model.duality_gap_ <= 1e-11 and model.certificate_ == "approximate"
    residuals = Y - model.predict(X)
    if is_flat:
        shrunk = np.sign(residuals) * np.maximum(np.abs(residuals) - 0.1, 0)
        assert_allclose(model.dual_coef_.compute(), shrunk, rtol=0, atol=1e-5)


def test_a_worker_dies_in_the_middle_of_a_fit(cluster, sample):
    """The fit takes the same steps as one in memory, though one of two processes is killed after ten."""
    X, Y = sample
    model = OperatorKernelRegressor(
        Gaussian(0.3), loss=Huber(0.3), lam=1e-4, tol=1e-10, solver="douglas_rachford",
        approximation=Nystrom(30, "uniform"),
    ).fit(X, Y)  # fmt: skip
    here, n_iter, killed = model.predict(X), model.n_iter_, []

    def kill(n_iter, certificate):
        if n_iter >= 10 and not killed:
            killed.append(next(iter(cluster.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with watched(kill):
        model.fit(*chunked(X, Y))
    assert killed and killed[0] not in cluster.run(os.getpid).values()
    assert model.n_iter_ == n_iter > 10
    assert_allclose(model.predict(X), here, rtol=0, atol=1e-8)


def test_a_grid_on_the_cluster(cluster, sample):
    X, Y = sample
    grid = {"lam": [1e-3, 1e-1]}
    here = GridSearchCV(OperatorKernelRegressor(Gaussian(0.3)), grid, cv=2).fit(X, Y)
    with joblib.parallel_backend("dask"):
        there = GridSearchCV(OperatorKernelRegressor(Gaussian(0.3)), grid, cv=2, n_jobs=2).fit(X, Y)
    assert_allclose(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], rtol=1e-9)


def test_refusals(cluster, sample):
    data = chunked(*sample)
    with pytest.raises(IncompatibleError, match=r"Dask arrays need approximation=Nystrom\(500, 'uniform'\)"):
        OperatorKernelRegressor().fit(*data)
    with pytest.raises(IncompatibleError, match="one scalar kernel and operator=None"):
        OperatorKernelRegressor(operator="covariance", approximation=Nystrom(5)).fit(*data)
    with pytest.raises(ValueError, match="X and y must have as many samples"):
        OperatorKernelRegressor(approximation=Nystrom(5)).fit(data[0], data[1][:50])
    X = sample[0].copy()
    X[100, 1] = np.nan
    with pytest.raises(ValueError, match="X must be finite"):
        OperatorKernelRegressor(approximation=RandomFeatures(4)).fit(*chunked(X, sample[1]))
