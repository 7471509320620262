"""Learned weights of kernels: the error and its gradient against refits and differences, and planted groups."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import OperatorKernelRegressor, StructuredPredictor, learn_kernel_weights
from fenchel.kernels import Gaussian, GaussianTanimoto, Laplacian, Linear, MultipleKernel
from fenchel.representations import KernelOutputs
from fenchel.search.weights import LeftOutError

NAMES = ("one", "two", "three")
LAM = 0.03


def kernel_of(weights=None, normalize=False):
    parts = (Gaussian(0.5), slice(0, 2)), (Linear(), slice(2, 4)), (Laplacian("median"), slice(4, 6))
    return MultipleKernel([(name, *part) for name, part in zip(NAMES, parts, strict=True)], weights, None, normalize)


@pytest.fixture
def sample(rng):
    X = rng.uniform(-1, 1, (14, 6))
    Y = np.stack([np.sin(3 * X[:, 0]) + X[:, 2], X[:, 4] * X[:, 5]], axis=1)
    return X, Y


def missing(X):
    X = X.copy()
    X[:4, :2], X[3:7, 2:4] = np.nan, np.nan
    return X


def planted(rng, n=160):
    """Only the columns of the second of three groups matter; two outputs."""
    X = rng.uniform(-1, 1, (n, 9))
    Y = np.stack([np.sin(3 * X[:, 3]) * X[:, 4], np.abs(X[:, 5])], axis=1) + 0.05 * rng.standard_normal((n, 2))
    groups = [(name, Gaussian("median"), slice(3 * m, 3 * m + 3)) for m, name in enumerate(NAMES)]
    return MultipleKernel(groups), X, Y


CASES = pytest.mark.parametrize(("change", "normalize"), [(np.copy, True), (missing, False), (missing, True)])


@CASES
def test_the_gradient(sample, rng, change, normalize):
    X, Y = sample
    error = LeftOutError(*kernel_of().terms(change(X)), Y, normalize)
    theta = np.append(0.7 * rng.standard_normal(3), np.log(0.2))
    differences = [(error(theta + step)[0] - error(theta - step)[0]) / 2e-6 for step in 1e-6 * np.eye(4)]
    assert_allclose(error(theta)[1], differences, rtol=0, atol=1e-8)


@CASES
def test_the_error_is_that_of_refits(sample, change, normalize):
    """Of the estimator, without each sample in turn, with the kernel that the weights stand for."""
    X, Y = change(sample[0]), sample[1]
    weights, n = np.array([0.5, 0.2, 0.3]), len(Y)
    kernel = kernel_of(weights, normalize).resolve(X)
    refits = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        model = OperatorKernelRegressor(kernel, loss="square", lam=LAM, tol=1e-12).fit(X[rest], Y[rest])
        refits.append(np.sum((model.predict(X[i : i + 1]) - Y[i]) ** 2))
    theta = np.log(np.append(weights, LAM * (n - 1)))
    assert_allclose(LeftOutError(*kernel_of().terms(X), Y, normalize).errors(theta), refits, rtol=1e-8)


@pytest.mark.parametrize("options", [{"max_iter": 0}, {"n_draws": 0}, {}])
def test_a_planted_group(rng, options):
    """By draws alone, by the gradient alone and by both; the error is that of new samples."""
    kernel, X, Y = planted(rng)
    found = learn_kernel_weights(kernel, X[:100], Y[:100], **options)
    assert found.weights_[1] > 0.9
    assert_allclose(np.sum(found.weights_), 1)
    assert found.errors["two"] < 0.5 * found.errors["equal"]
    for loss in ("square", "huber", "epsilon_ridge"):
        model = OperatorKernelRegressor(found.kernel, loss=loss, lam=found.lam, center=True).fit(X[:100], Y[:100])
        assert model.duality_gap_ <= 1e-6
        errors = np.sum((model.predict(X[100:]) - Y[100:]) ** 2, axis=1)
        assert 0.5 < np.mean(errors) / found.error < 2 or loss != "square"


def test_units_do_not_matter(rng):
    kernel, X, Y = planted(rng, 60)
    found, other = (learn_kernel_weights(kernel, a * X, b * Y, n_draws=5) for a, b in ((1.0, 1.0), (1e3, 1e-4)))
    assert_allclose(other.weights_, found.weights_, atol=1e-3)
    assert_allclose(other.error, 1e-8 * found.error, rtol=1e-3)


def test_wrong_outputs_are_left_out(rng):
    kernel, X, Y = planted(rng, 100)
    wrong = rng.choice(100, 10, replace=False)
    Y[wrong] += 10 * rng.standard_normal((10, 2))
    found = learn_kernel_weights(kernel, X, Y, n_draws=5, outliers=True)
    assert len(set(wrong) & set(found.index)) <= 1
    assert found.weights_[1] > 0.9


def test_gram_matrices_of_structured_outputs(rng):
    """Gram matrices by name give the weights that kernels give; outputs may be many coordinates."""
    kernel, X, _ = planted(rng, 60)
    Y = (X[:, 3:6] @ rng.standard_normal((3, 80)) > 0).astype(float)
    resolved, coordinates = kernel.resolve(X), KernelOutputs(GaussianTanimoto(1.0)).fit(Y).targets_
    grams = {name: 7.0 * gram for name, gram in zip(NAMES, resolved.terms(X)[0], strict=True)}
    settings = {"n_draws": 5, "center": False}
    found = learn_kernel_weights("precomputed", grams, coordinates, **settings)
    assert_allclose(found.weights_, learn_kernel_weights(kernel, X, coordinates, **settings).weights_, atol=1e-6)
    assert found.weights_[1] > 0.9
    model = StructuredPredictor(found.kernel, GaussianTanimoto(1.0), lam=found.lam).fit(found.combine(grams), Y)
    assert model.duality_gap_ <= 1e-6
    with pytest.raises(ValueError, match="groups"):
        found.combine({"one": grams["one"]})


def test_a_group_that_is_missing_for_half_of_the_samples(rng):
    kernel, X, Y = planted(rng)
    X[::2, :3] = np.nan
    X[1::3, 6:] = np.nan
    found = learn_kernel_weights(kernel, X, Y, n_draws=5)
    assert found.weights_[1] > 0.9


def test_torch(rng):
    torch = pytest.importorskip("torch")
    kernel, X, Y = planted(rng, 60)
    X[::3, :3] = np.nan
    kernel.set_params(normalize=True)
    found, other = (learn_kernel_weights(kernel, a, b, n_draws=5) for a, b in ((X, Y), map(torch.asarray, (X, Y))))
    assert_allclose(other.weights_, found.weights_, atol=1e-6)
    model = OperatorKernelRegressor(other.kernel, lam=other.lam).fit(torch.asarray(X), torch.asarray(Y))
    assert isinstance(model.predict(torch.asarray(X)), torch.Tensor) and model.duality_gap_ <= 1e-6


def test_wrong_arguments(rng):
    kernel, X, Y = planted(rng, 20)
    with pytest.raises(ValueError, match="the same number of samples"):
        learn_kernel_weights(kernel, X, Y[1:])
    with pytest.raises(TypeError, match="must be a MultipleKernel, or 'precomputed'"):
        learn_kernel_weights("gaussian", X, Y)
    with pytest.raises(ValueError, match=r"shape \(20, 20\)"):
        learn_kernel_weights("precomputed", {"a": X}, Y)
