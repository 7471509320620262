"""Sparse inputs against the same inputs with their zeros, and inputs on disk that are never in memory as a whole."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_array, random_array

import fenchel
from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV, StructuredPredictor
from fenchel.approximations import Nystrom, RandomFeatures, landmark_features
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Tanimoto
from fenchel.losses import Huber

N = 40


@pytest.fixture
def sample(rng):
    X = rng.uniform(0, 2, (N, 6)) * (rng.random((N, 6)) < 0.4)
    return X, np.sin(X @ rng.standard_normal((6, 2)))


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Gaussian("median"), Gaussian(1e4), Tanimoto(), Laplacian(), Matern(), 2.0 * Gaussian(0.3) + Linear()],
    ids=repr,
)
def test_kernels(sample, kernel):
    X, _ = sample
    there, kernel = csr_array(X), kernel.resolve(X)
    K = kernel(X)
    assert_allclose(kernel.resolve(there)(there), K, rtol=0, atol=1e-12 * K.max())
    assert_allclose(kernel(there[:5], there[5:]), K[:5, 5:], rtol=0, atol=1e-12 * K.max())
    assert_allclose(kernel.diag(there), np.diag(K), rtol=1e-12)


@pytest.mark.parametrize("approximation", [None, Nystrom(12), Nystrom(12, "kmeans++"), RandomFeatures(12)], ids=repr)
def test_the_regressor(sample, approximation, tmp_path):
    X, Y = sample
    form = csc_matrix if approximation is None else csr_array
    weights = np.r_[0.0, np.ones(N - 1)]
    model = OperatorKernelRegressor(
        Gaussian("median"), loss=Huber(0.2), lam=1e-3, approximation=approximation, tol=1e-10
    )
    expected = model.fit(X, Y, sample_weight=weights).predict(X)
    assert_allclose(model.predict(form(X)), expected, rtol=0, atol=1e-12)
    model.fit(form(X), Y, sample_weight=weights)
    for inputs in (X, form(X)):
        assert_allclose(model.predict(inputs), expected, rtol=0, atol=1e-8)
    fenchel.save(model, tmp_path / "model")
    assert_array_equal(fenchel.load(tmp_path / "model").predict(form(X)), model.predict(form(X)))


@pytest.mark.parametrize("kernel", [Linear(), Tanimoto()], ids=repr)
def test_other_estimators(sample, kernel):
    X, Y = sample
    for model, outputs in (
        (StructuredPredictor(kernel, loss="huber", decoder="threshold"), 1.0 * (Y > 0)),
        (OperatorKernelRegressorCV(kernel, lams=[1e-3, 1e-1], losses=["square", "huber"]), Y),
    ):
        expected = model.fit(X, outputs).predict(X)
        assert_allclose(model.fit(csr_array(X), outputs).predict(csr_array(X)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("approximation", [None, Nystrom(10)])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.5), Tanimoto()], ids=repr)
def test_zeros_are_not_stored(rng, kernel, approximation):
    """Thirty documents and a million words: 240 MB with their zeros."""
    X = csr_array(random_array((30, 1_000_000), density=1e-5, rng=rng))
    y = rng.standard_normal(30)
    tracemalloc.start()
    model = OperatorKernelRegressor(kernel, approximation=approximation).fit(X, y)
    model.predict(X)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_refusals(sample):
    X, Y = sample
    with pytest.raises(TypeError, match=r"X must be dense here\. Got a sparse matrix: pass X.toarray\(\), or use"):
        OperatorKernelRegressor("auto").fit(csr_array(X), Y)
    broken = csr_array(X)
    broken.data[3] = np.nan
    with pytest.raises(ValueError, match="It contains NaN or infinity"):
        OperatorKernelRegressor().fit(broken, Y)


@pytest.mark.parametrize("kernel", [Gaussian(0.01), Linear(), Tanimoto()], ids=repr)
def test_inputs_on_disk_are_not_copied(tmp_path, rng, monkeypatch, kernel):
    """8 MB of inputs, in blocks of 64 kB: a fit and a prediction take less than half of it."""
    monkeypatch.setattr(landmark_features, "_BLOCK_BYTES", 2**16)
    X = np.memmap(tmp_path / "X.dat", dtype=np.float64, mode="w+", shape=(2000, 500))
    X[:] = rng.uniform(0, 1, X.shape)
    y = X[:, 0].copy()
    model = OperatorKernelRegressor(kernel, approximation=Nystrom(10, "uniform"))
    tracemalloc.start()
    model.fit(X, y).predict(X)
    assert tracemalloc.get_traced_memory()[1] < X.nbytes / 2
    tracemalloc.stop()
