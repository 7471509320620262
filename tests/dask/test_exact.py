"""Exact fits of Dask arrays: the kernel is computed between pairs of chunks, and never stored."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import OperatorKernelRegressor
from fenchel.approximations import Nystrom
from fenchel.exceptions import SlowFitWarning
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.solvers import Krylov, watched
from fenchel.solvers import state_file as checkpoint
from tests.dask.conftest import Done, Here, chunked, drawn, killing

MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])


def test_equal_to_a_fit_in_memory_though_a_worker_dies(cluster, rng):
    """The same iterations, one of two processes being killed in the middle.

    In float64: tiles in float32 are rounded in another order than a stored matrix.
    """
    X, Y = drawn(rng, 100)
    solver = Krylov(n_components=20, tiles="float64")
    model = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.3), lam=1e-2, tol=1e-5, solver=solver)
    here, n_iter = model.fit(X, Y).predict(X), model.n_iter_
    kill, killed = killing(cluster)
    with watched(kill):
        model.fit(*chunked(X, Y, rows=50))
    assert killed and model.n_iter_ == n_iter > 1
    assert model.certificate_ == "exact" and model.duality_gap_ <= 1e-5 and model.approximation_ is None
    assert_allclose(model.predict(X), here, rtol=0, atol=1e-8)
    there = model.predict(chunked(X, rows=70)[0])
    assert_allclose(there.compute(), here, rtol=0, atol=1e-8)
    K = Gaussian(0.3)(X) / (1e-2 * 100)
    assert_allclose(K @ model.dual_coef_.compute(), here, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "loss, operator",
    [
        (Square(), None),
        (Huber(0.3, p=1), MATRIX),
        (Huber("auto"), None),
        (EpsilonRidge(0.2), MATRIX),
        (EpsilonSVR(0.3), np.array([1.0, 0.3])),
    ],
    ids=str,
)
def test_it_is_the_solution_of_the_stored_matrix(here, rng, loss, operator):
    """With weights, centred outputs and float32 tiles."""
    X, Y = drawn(rng, 60)
    weights = rng.uniform(0.5, 2, 60)
    settings = {"kernel": Gaussian(0.3), "lam": 1e-2, "center": True, "loss": loss, "operator": operator}
    model = OperatorKernelRegressor(**settings, tol=1e-7, solver=Krylov(n_components=20, tiles="float32"))
    model.fit(*chunked(X, Y, rows=25), weights)
    stored = OperatorKernelRegressor(**settings, tol=1e-9).fit(X, Y, weights)
    if loss.is_relative:  # from a pilot that has a gap of its own
        assert model.loss_.kappa == pytest.approx(stored.loss_.kappa, rel=1e-3)
        stored.set_params(loss=model.loss_).fit(X, Y, weights)
    assert model.duality_gap_ <= 1e-7 and model.certificate_ == "exact"
    size = stored.primal_objective_
    assert abs(model.primal_objective_ - size) <= 1.01e-7 * size
    # strong convexity: the norm of the difference of two models is bounded by their gaps
    bound = np.sqrt(2 * 1.01e-7 * size / 1e-2 * (1.0 if operator is None else np.abs(operator).sum()))
    assert np.abs(model.predict(X) - stored.predict(X)).max() <= bound


def test_numbers(here, rng):
    X, Y = drawn(rng, 60)
    settings = {
        "kernel": Gaussian(0.3),
        "loss": Huber(0.3),
        "lam": 1e-2,
        "tol": 1e-8,
        "solver": Krylov(n_components=20, tiles="float64"),
    }
    model = OperatorKernelRegressor(**settings)
    expected = model.fit(X, Y[:, 0]).predict(X)
    model.fit(*chunked(X, Y[:, 0], rows=25))
    assert_allclose(model.predict(X), expected, rtol=0, atol=1e-8)
    assert model.dual_coef_.shape == model.predict(chunked(X)[0]).shape == (60,)


@pytest.mark.parametrize("approximation", [None, Nystrom(10, "uniform")], ids=["exact", "features"])
def test_a_fit_goes_on(here, rng, tmp_path, monkeypatch, approximation):
    """Krylov leaves features to the splitting, which keeps its state as well."""
    monkeypatch.setattr(checkpoint, "_SHARE", 1e9)  # every state is written
    X, Y = chunked(*drawn(rng, 60), rows=25)
    settings = {
        "lam": 1e-3,
        "solver": Krylov(n_components=10, checkpoint=tmp_path / "fit.npz"),
        "approximation": approximation,
    }
    model = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.3), tol=1e-2, **settings)
    first = model.fit(X, Y).history_
    assert first[0][1] > 0.1 and len(first) > 1
    assert model.set_params(tol=1e-3).fit(X, Y).history_[0][1] < 0.1 * first[0][1]
    with pytest.raises(ValueError, match="belongs to another problem"):
        model.fit(X, Y + 1)


@pytest.mark.parametrize("approximation", [None, Nystrom(50, "uniform")], ids=["exact", "features"])
def test_the_client_sees_no_more_than_the_coefficients_of_the_features(here, rng, approximation):
    X, Y = chunked(*drawn(rng, 1000), rows=250)
    settings = {"loss": Huber("auto"), "operator": "covariance", "lam": 1e-2, "tol": 1e-2, "center": True}
    OperatorKernelRegressor(Gaussian(0.3), **settings, approximation=approximation, solver=Krylov(n_components=50)).fit(
        X, Y
    )
    assert len(Done.seen) > 3
    assert max(Done.seen) <= 8 * 50 * 2 + 1000  # numbers, and what a pickle adds; rows would be 16 000 bytes


def test_a_slow_fit_that_nobody_asked_for(here, rng, monkeypatch):
    X, Y = chunked(*drawn(rng, 60), rows=25)
    monkeypatch.setattr(Here, "nthreads", lambda self: {"here": 1e-9})
    with pytest.warns(SlowFitWarning, match="takes about"):
        OperatorKernelRegressor(Gaussian(0.3), lam=1e-2).fit(X, Y)
