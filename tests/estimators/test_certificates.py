"""The exact gap of a model with an approximate kernel, and its estimate from rows, against the stored matrix."""

import numpy as np
import pytest

from fenchel import FunctionalRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.approximations import Nystrom, RandomFeatures
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Laplacian, Separable
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.model.certificates import exact_certificate, sampled_certificate
from fenchel.operators import Dense, Thin
from fenchel.problem import DualProblem

pytestmark = pytest.mark.filterwarnings("ignore:.*that of the exact kernel:sklearn.exceptions.ConvergenceWarning")

N = 60
MATRIX = np.array([[1.0, 0.4], [0.4, 0.7]])


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((N, 2))
    Y = np.tanh(X @ rng.standard_normal((2, 2))) + 0.1 * rng.standard_normal((N, 2))
    Y[::8] += 3
    return X, Y, rng.uniform(0.5, 2, N)


@pytest.mark.parametrize("operator", [None, MATRIX], ids=["identity", "matrix"])
@pytest.mark.parametrize("loss", [Square(), Huber(0.3), EpsilonRidge(0.2), EpsilonSVR(0.2)], ids=repr)
def test_it_is_the_gap_of_the_kernel(sample, loss, operator):
    """P(h) with the norm of h in the space of the kernel, less D(a) with the kernel: from the definitions."""
    X, Y, weights = sample
    K, M, lam, total = Gaussian(0.5)(X), np.eye(2) if operator is None else MATRIX, 1e-3, weights.sum()
    settings = {"operator": operator, "loss": loss, "lam": lam, "approximation": Nystrom(8)}
    approximate = OperatorKernelRegressor(Gaussian(0.5), **settings).fit(X, Y, weights).duality_gap_
    exact = OperatorKernelRegressor(Gaussian(0.5), **settings, certificate="exact").fit(X, Y, weights)
    a, h = exact.dual_coef_, exact.predict(X)
    weighted = weights[:, None] * a
    features = Nystrom(8).approximate(Gaussian(0.5), X, weights)(X)
    norm = np.sum(weighted * (features @ weighted @ M)) / (lam * total)  # lam total |h|^2
    primal = np.sum(weights * loss.value(Y - h)) / total + norm / (2 * total)
    gains = np.sum(a * Y, axis=1) - loss.conjugate(a)
    dual = np.sum(weights * gains) / total - np.sum(weighted * (K @ weighted @ M)) / (2 * lam * total**2)
    assert exact.duality_gap_ == pytest.approx((primal - dual) / primal, rel=1e-6)
    trace = np.sum(weighted * ((K - features) @ weighted @ M)) / (2 * lam * total**2)
    assert exact.duality_gap_ == pytest.approx(approximate + trace / primal, rel=1e-6)
    assert exact.dual_objective_ == pytest.approx(dual, rel=1e-8)
    assert exact.certificate_ == "exact" and approximate <= 1e-6 < exact.duality_gap_


def test_all_samples_as_landmarks_leave_nothing(sample):
    X, Y, _ = sample
    settings = {"loss": Huber(0.3), "lam": 1e-3, "tol": 1e-8, "certificate": "exact"}
    model = OperatorKernelRegressor(Laplacian(0.5), approximation=Nystrom(N), **settings).fit(X, Y)
    exact = OperatorKernelRegressor(Laplacian(0.5), **settings).fit(X, Y)
    assert model.duality_gap_ <= 1e-6 and exact.certificate_ == model.certificate_ == "exact"
    assert model.dual_objective_ == pytest.approx(exact.dual_objective_, rel=1e-6)


def test_an_estimate_is_within_three_standard_errors(rng):
    """In 95 of 100 draws of 60 rows of 400, and of nearly the right size."""
    X = rng.standard_normal((400, 2))
    K, features = Gaussian(0.5)(X), Nystrom(15).approximate(Gaussian(0.5), X).features(X)
    problem = DualProblem.build(Thin(features), np.tanh(X), Huber(0.3), 1e-4)
    duals = np.clip(rng.standard_normal((400, 2)), -0.2, 0.2)
    predictions = problem.predictions(duals)
    arguments = problem, Dense(K), problem.certificate(duals, predictions), (duals, predictions)
    exact = exact_certificate(*arguments).relative_gap
    draws = [sampled_certificate(*arguments, np.arange(400), 60, seed) for seed in range(100)]
    gaps, errors = np.array([(found.relative_gap, error) for found, error in draws]).T
    assert np.sum(np.abs(gaps - exact) <= 3 * errors) >= 95
    assert errors.mean() == pytest.approx(gaps.std(), rel=0.25)


def test_small_samples_are_not_estimated(sample):
    X, Y, _ = sample
    settings = {"kernel": Gaussian(0.5), "loss": "huber", "approximation": Nystrom(8)}
    sampled, exact = (OperatorKernelRegressor(**settings, certificate=c).fit(X, Y) for c in ("sampled", "exact"))
    assert sampled.certificate_ == "sampled" and sampled.duality_gap_standard_error_ == 0
    assert sampled.duality_gap_ == exact.duality_gap_ and not hasattr(exact, "duality_gap_standard_error_")


def test_other_estimators(sample, rng):
    X, Y, _ = sample
    curves = np.cumsum(rng.standard_normal((N, 6)), axis=1)
    search = OperatorKernelRegressorCV(
        Gaussian(0.5), lams=[1e-3], losses=["huber"], approximation=Nystrom(8), certificate="exact"
    ).fit(X, Y)
    assert search.certificate_ == "exact" and search.duality_gap_ > 1e-6
    model = FunctionalRegressor(Gaussian(0.5), loss=Huber(0.2, p=1), approximation=Nystrom(8), certificate="sampled")
    assert model.fit(X, curves).duality_gap_standard_error_ == 0
    kernel = Separable(Gaussian(0.5), MATRIX) + Separable(Laplacian(0.3))
    model = OperatorKernelRegressor(kernel, loss="huber", approximation=Nystrom(8), certificate="exact").fit(X, Y)
    assert model.duality_gap_ > 1e-6


def test_refusals(sample):
    X, Y, _ = sample
    with pytest.raises(ValueError, match="The 'certificate' parameter of OperatorKernelRegressor must be one of"):
        OperatorKernelRegressor(certificate="thin").fit(X, Y)
    with pytest.raises(IncompatibleError, match=r"certificate='sampled' needs .* projection"):
        OperatorKernelRegressor(Gaussian(0.5), approximation=RandomFeatures(4), certificate="sampled").fit(X, Y)
    model = OperatorKernelRegressor(Gaussian(0.5), approximation=RandomFeatures(4)).fit(X, Y)
    assert model.certificate_ == "approximate"
