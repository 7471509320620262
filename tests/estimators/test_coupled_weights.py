"""The loss trick with an output operator on the weights: by its formula, by one linear system, by vector regression."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

from fenchel import LossTrickPredictor, OperatorKernelRegressor
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Linear, Matrix
from fenchel.task_losses import Hamming, LeastSquares

KERNEL, OUTPUT_KERNEL, LAM = Gaussian(0.5), Gaussian(0.7), 1e-2


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((24, 2))
    Y = (X @ rng.standard_normal((2, 4)) + 0.5 * rng.standard_normal((24, 4)) > 0).astype(int)
    return X, Y, rng.standard_normal((5, 2))


def operator(Y, power):
    """Return (K / |K|)^power by the singular values of the Gram matrix."""
    distinct, owner = np.unique(Y, axis=0, return_inverse=True)
    indicators = np.eye(len(distinct))[owner]  # equal outputs share a direction
    root = np.linalg.cholesky(OUTPUT_KERNEL(distinct.astype(float)))
    left, sizes, _ = np.linalg.svd(indicators @ root, full_matrices=False)
    return (left * (sizes / sizes[0]) ** (2 * power)) @ left.T if power else np.eye(len(Y))


def weights(X, Y, X_new, power, lam=LAM):
    """Return the weights by the linear system of all n * n unknowns."""
    n, B = len(X), operator(Y, power)
    duals = np.linalg.solve(np.kron(KERNEL(X), B) + lam * n * np.eye(n * n), np.eye(n).ravel()).reshape(n, n)
    return KERNEL(X_new, X) @ duals @ B


def predictor(power, **settings):
    defaults = {"task_loss": "hamming", "lam": LAM, "output_kernel": OUTPUT_KERNEL, "coupling": power, "tol": 1e-10}
    return LossTrickPredictor(KERNEL, **{**defaults, **settings})


@pytest.mark.parametrize("power", [0.25, 1.0, 2.0])
def test_weights_by_one_linear_system(sample, power):
    X, Y, X_new = sample
    model = predictor(power).fit(X, Y)
    assert_allclose(model.weights(X_new), weights(X, Y, X_new, power), atol=1e-9)
    assert model.duality_gap_ <= 1e-9 and model.coupling_ == power


def test_without_a_power_the_weights_are_those_of_the_paper(sample):
    X, Y, X_new = sample
    plain = LossTrickPredictor(KERNEL, "hamming", LAM).fit(X, Y)
    assert_array_equal(predictor(0.0).fit(X, Y).weights(X_new), plain.weights(X_new))
    K = KERNEL(X)
    assert_allclose(plain.weights(X_new), KERNEL(X_new, X) @ np.linalg.inv(K + LAM * len(X) * np.eye(len(X))))


def test_with_power_one_it_is_regression_with_the_covariance(sample, rng):
    """For a linear kernel of the outputs, the weighted mean of the outputs is that of multi-task regression."""
    X, _, X_new = sample
    Y = rng.standard_normal((24, 3)) @ np.diag([2.0, 1.0, 0.2])
    covariance = Y.T @ Y / np.linalg.norm(Y.T @ Y, 2)
    model = predictor(1.0, task_loss=LeastSquares(), output_kernel=Linear()).fit(X, Y)
    vectors = OperatorKernelRegressor(KERNEL, Matrix(covariance), lam=LAM, center=False, tol=1e-10).fit(X, Y)
    assert_allclose(model.weights(X_new) @ Y, vectors.predict(X_new), atol=1e-8)


def test_sample_weights_are_repetitions(sample):
    X, Y, X_new = sample
    counts = np.ones(24)
    counts[:5] = 0
    model = predictor(0.5).fit(X, Y, counts)
    fewer = predictor(0.5).fit(X[5:], Y[5:])
    assert_allclose(model.weights(X_new)[:, 5:], fewer.weights(X_new), atol=1e-9)
    assert not model.weights(X_new)[:, :5].any()
    assert_array_equal(model.predict(X_new), fewer.predict(X_new))


def test_power_and_lam_are_chosen_by_the_task_loss(sample):
    """Held-out losses are those of the system without the samples of each fold; the operator knows all outputs."""
    X, Y, X_new = sample
    folds, lams = KFold(3), [1e-3, 1e-1]
    model = predictor("auto", lams=lams, cv=folds).fit(X, Y)
    errors = {}
    for power in (0.0, 0.25, 0.5, 1.0):
        B = operator(Y, power)
        for lam in lams:
            losses = []
            for train, test in folds.split(X):
                n, p = len(train), len(X)
                system = np.kron(KERNEL(X[train]), B) + lam * n * np.eye(n * p)
                duals = np.linalg.solve(system, np.eye(p)[train].ravel()).reshape(n, p)
                known = KERNEL(X[test], X[train]) @ duals @ B
                votes = known @ (2 * Y - 1)
                losses.append(np.mean((votes > 0) != Y[test]))
            errors[power, lam] = np.mean(losses)
    best = min(errors, key=lambda pair: errors[pair])
    assert errors[model.coupling_, model.lam_] == pytest.approx(errors[best])
    assert model.cv_errors_.min() == pytest.approx(errors[best])
    alone = predictor(model.coupling_, lam=model.lam_).fit(X, Y)
    assert_array_equal(model.predict(X_new), alone.predict(X_new))
    assert predictor("auto", cv=folds).fit(X, Y).lam_ == LAM  # a given lam stays


def test_torch(sample, torch):
    X, Y, X_new = sample
    there = predictor(0.5).fit(torch.tensor(X), torch.tensor(Y))
    assert_allclose(there.weights(torch.tensor(X_new)).numpy(), weights(X, Y, X_new, 0.5), atol=1e-9)


def test_messages(sample):
    X, Y, _ = sample
    with pytest.raises(ValueError, match=r"'coupling' parameter of LossTrickPredictor must be a float in \[0, inf\)"):
        predictor(-1.0).fit(X, Y)
    with pytest.raises(IncompatibleError, match="coupling is for surrogate='square'"):
        predictor(0.5, surrogate="huber").fit(X, Y)
    with pytest.raises(ValueError, match="coupling needs outputs whose kernel is not zero"):
        predictor(0.5, task_loss=Hamming(), output_kernel=Linear()).fit(X, 0 * Y)
