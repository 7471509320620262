"""Fits of Dask arrays, in this process or on a cluster of two."""

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.approximations import Nystrom, RandomFeatures
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Diagonal, Gaussian, Laplacian, Matrix
from fenchel.losses import EpsilonRidge, Huber
from fenchel.solvers import DouglasRachford, watched
from tests.dask.conftest import array, chunked

N = 200


@pytest.mark.parametrize("is_flat", [False, True])
def test_equal_to_a_fit_in_memory(here, sample, is_flat):
    """A smooth loss with vectors, and a sparse one with numbers and weights."""
    X, Y = sample
    loss, approximation, weights = Huber(0.3, p=1), Nystrom(20, "uniform"), None
    if is_flat:
        loss, approximation, weights, Y = EpsilonRidge(0.1), RandomFeatures(20), np.linspace(0.5, 2, N), Y[:, 0]
    settings = {"loss": loss, "lam": 1e-2, "tol": 1e-11, "solver": "douglas_rachford", "approximation": approximation}
    model = OperatorKernelRegressor(Gaussian(0.3), **settings)
    wanted = model.fit(X, Y, weights).predict(X)
    expected = model.primal_objective_
    model.fit(*chunked(X, Y), weights)
    assert_allclose(model.predict(X), wanted, rtol=0, atol=1e-8)
    there = model.predict(chunked(X)[0])
    assert there.chunks[0] == (80, 80, 40) and there.shape == model.dual_coef_.shape == Y.shape
    assert_allclose(there.compute(), model.predict(X), rtol=0, atol=1e-13)
    assert model.primal_objective_ == pytest.approx(expected, rel=1e-9)
    assert model.duality_gap_ <= 1e-11 and model.certificate_ == "approximate"
    residuals = Y - model.predict(X)
    if is_flat:
        shrunk = np.sign(residuals) * np.maximum(np.abs(residuals) - 0.1, 0)
        assert_allclose(model.dual_coef_.compute(), shrunk, rtol=0, atol=1e-5)


def test_a_grid_on_the_cluster(cluster, sample):
    X, Y = sample
    grid = {"lam": [1e-3, 1e-1]}
    here = GridSearchCV(OperatorKernelRegressor(Gaussian(0.3)), grid, cv=2).fit(X, Y)
    with joblib.parallel_backend("dask"):
        there = GridSearchCV(OperatorKernelRegressor(Gaussian(0.3)), grid, cv=2, n_jobs=2).fit(X, Y)
    assert_allclose(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], rtol=1e-9)


def test_a_search_within_joblib_s_backend(cluster, sample):
    """A search of ours shares a factorisation between its pairs: it stays in threads, whatever joblib's backend."""
    X, Y = sample
    grid = {"lams": [1e-3, 1e-1], "losses": [Huber(0.3)], "cv": 2}
    here = OperatorKernelRegressorCV(Gaussian(0.3), **grid).fit(X, Y)
    with joblib.parallel_backend("dask"):
        there = OperatorKernelRegressorCV(Gaussian(0.3), **grid, n_jobs=2).fit(X, Y)
    assert there.best_lam_ == here.best_lam_
    assert_allclose(there.predict(X), here.predict(X), rtol=1e-9)


@pytest.mark.parametrize("operator", ["covariance", np.array([1.0, 0.3])], ids=["covariance", "diagonal"])
def test_operators_centres_scales_and_relative_thresholds(here, sample, rng, operator):
    """All of them at once, with weights, as in memory."""
    X, Y = sample
    weights = rng.uniform(0.5, 2, N)
    model = OperatorKernelRegressor(
        Gaussian(0.3), operator, Huber("auto", p=1), lam=1e-2, tol=1e-10, approximation=RandomFeatures(20),
        center=True, scale=True, solver="douglas_rachford",
    ).fit(X, 7 + 3 * Y, weights)  # fmt: skip
    expected, kappa, center, scale = model.predict(X), model.loss_.kappa, model.center_, model.scale_
    model.fit(*chunked(X, 7 + 3 * Y, rows=100), weights)
    assert model.loss_.kappa == pytest.approx(kappa, rel=1e-10)
    assert_allclose([model.center_, model.scale_], [center, scale], rtol=1e-12)
    assert_allclose(model.predict(X), expected, rtol=0, atol=1e-7)
    assert_allclose(model.predict(chunked(X)[0]).compute(), model.predict(X), rtol=0, atol=1e-12)


def test_an_interrupt_keeps_the_best_point(here, sample):
    X, Y = sample
    seen = []

    def interrupt(n_iter, certificate):
        seen.append(certificate.relative_gap)
        if len(seen) == 3:
            raise KeyboardInterrupt

    model = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.3), lam=1e-4, approximation=Nystrom(30, "uniform"))
    with watched(interrupt), pytest.warns(ConvergenceWarning, match="best point that was certified"):
        model.fit(*chunked(X, Y))
    assert model.duality_gap_ == min(seen[:2]) and "interrupted" in model.status_
    assert model.dual_coef_.compute().shape == model.predict(X).shape == (N, 2)


def test_arrays_in_a_zarr_store(cluster, sample, tmp_path):
    pytest.importorskip("zarr")
    for name, rows in zip("XY", chunked(*sample), strict=True):
        rows.to_zarr(str(tmp_path / name))
    stored = [array.from_zarr(str(tmp_path / name)) for name in "XY"]
    model = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.3), approximation=Nystrom(20, "uniform"), tol=1e-10)
    here = model.fit(*sample).predict(sample[0])
    assert_allclose(model.fit(*stored).predict(sample[0]), here, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "settings, reason",
    [
        ({"solver": DouglasRachford()}, r"need approximation=Nystrom\(500, 'uniform'\) or solver='krylov'"),
        ({"solver": "apgd"}, r"need solver='auto', 'krylov' or DouglasRachford\(\)"),
        ({"center": "robust"}, "need center=True or center=False"),
        ({"approximation": Nystrom(5), "certificate": "exact"}, "need certificate='approximate'"),
        ({"loss": "ball"}, "need a loss that is finite everywhere"),
        ({"kernel": "precomputed"}, "need a kernel on points"),
        (
            {"kernel": Gaussian() * Matrix(np.eye(2)) + Laplacian() * Diagonal([1.0, 2.0])},
            "one scalar kernel times one operator",
        ),
    ],
    ids=str,
)
def test_what_is_not_taken(here, sample, settings, reason):
    with pytest.raises(IncompatibleError, match=reason):
        OperatorKernelRegressor(**settings).fit(*chunked(*sample))


def test_bad_data(here, sample):
    X, Y = chunked(*sample)
    model = OperatorKernelRegressor(approximation=RandomFeatures(4))
    with pytest.raises(ValueError, match="X and y must have the same number of samples"):
        model.fit(X, Y[:50])
    for weights in (np.arange(N) - 1.0, np.full(N, np.nan), np.full(N, np.inf)):
        with pytest.raises(ValueError, match="must hold finite non-negative numbers"):
            model.fit(X, Y, weights)
    with pytest.raises(ValueError, match=r"must have at least one positive entry\. Got zeros only\."):
        model.fit(X, Y, np.zeros(N))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(200,\)"):
        model.fit(X, Y, np.ones(10))
    broken = sample[0].copy()
    broken[100, 1] = np.nan
    with pytest.raises(ValueError, match="X must be finite"):
        model.fit(*chunked(broken, sample[1]))


def test_the_unit_of_weights(here, sample):
    X, Y = sample
    weights = np.arange(len(X)) % 3 + 1.0
    model = OperatorKernelRegressor(Gaussian(0.5), loss=Huber(0.3), lam=1e-2, approximation=Nystrom(20, "uniform"))
    wanted, *others = (model.fit(*chunked(X, Y), unit * weights).predict(X) for unit in (1.0, 5e-324, 2.0**664))
    for found in others:
        assert_allclose(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("solver", ["features", "exact"])
def test_rows_of_weight_zero_are_left_out(here, sample, solver):
    """One in the first chunk, all of the second and some of the third; the outputs there are far away."""
    X, Y = sample
    weights = np.arange(N) % 3 + 1.0
    weights[[5, *range(80, 160), 170, 199]] = 0
    kept = weights > 0
    Y[~kept] = 1e6
    approximation = Nystrom(20, "uniform") if solver == "features" else None
    settings = {"lam": 1e-2, "tol": 1e-8, "center": True, "scale": True, "approximation": approximation}
    model = OperatorKernelRegressor(Gaussian(0.3), loss=Huber(0.3), **settings)
    wanted = model.fit(*chunked(X[kept], Y[kept]), weights[kept]).predict(X)
    coef = model.dual_coef_.compute()
    model.fit(*chunked(X, Y), weights)
    assert_allclose(model.predict(X), wanted, rtol=0, atol=1e-5)
    assert_allclose(model.predict(chunked(X)[0]).compute(), wanted, rtol=0, atol=1e-5)
    found = model.dual_coef_
    assert found.shape == Y.shape and found.chunks[0] == (80, 80, 40)
    found = found.compute()
    assert not found[~kept].any()
    assert_allclose(found[kept], coef, rtol=0, atol=1e-4)


def test_weights_of_zero_on_the_cluster(cluster, sample):
    X, Y = sample
    weights = np.repeat([1.0, 0.0], N // 2)
    model = OperatorKernelRegressor(Gaussian(0.3), lam=1e-2, approximation=RandomFeatures(20))
    wanted = model.fit(X[: N // 2], Y[: N // 2, 0]).predict(X)
    model.fit(*chunked(X, Y[:, 0]), chunked(weights, rows=60)[0])
    assert_allclose(model.predict(X), wanted, rtol=0, atol=1e-4)
    assert not model.dual_coef_.compute()[N // 2 :].any()
