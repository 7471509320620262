"""Approximations of kernels against their formulas in plain NumPy, and against the kernel on average."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel.approximations import Nystrom, PSparsified, RandomFeatures
from fenchel.approximations.landmarks import RULES
from fenchel.approximations.partial_factor import PartialFactor, Sample
from fenchel.data.content import contents
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Part, Polynomial, Standardized, Tanimoto

N = 40


@pytest.fixture
def sample(rng):
    return rng.standard_normal((N, 3))


@pytest.fixture
def weights(rng):
    return rng.uniform(0.5, 2.0, N)


SHIFT_INVARIANT = [
    Gaussian(0.3),
    Gaussian(),
    Laplacian(0.4),
    Matern(1.3, 0.5),
    Matern(1.3, 0.8),
    Matern(1.3, 2.5),
    Matern(1.3, math.inf),
    2.0 * Gaussian(0.2) + Laplacian(0.3),
    Standardized(Gaussian(0.3) + 0.5 * Linear()),
    Part(Matern(1.0, 1.5), [0, 2]) + Linear(),
]


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=repr)
def test_random_features_are_the_kernel_on_average(sample, kernel, orthogonal):
    """The mean over 300 seeds is within 4.5 standard errors of the kernel at each of 190 pairs."""
    X = sample
    points = X[:20]
    kernel = kernel.resolve(points)
    draws = np.stack([RandomFeatures(12, orthogonal, seed).approximate(kernel, points)(points) for seed in range(300)])
    above = np.triu_indices(20, k=1)
    scores = (draws.mean(axis=0) - kernel(points))[above] / (draws.std(axis=0)[above] / math.sqrt(300))
    assert 0 < np.abs(scores).max() < 4.5
    diagonal = [kernel.diag(points), draws[0].diagonal()]
    assert_allclose(*diagonal, rtol=1e-12)


def test_orthogonal_frequencies_have_a_smaller_error(sample):
    X = sample
    K = Gaussian(0.3)(X)

    def error(orthogonal):
        draws = (RandomFeatures(6, orthogonal, seed).approximate(Gaussian(0.3), X)(X) for seed in range(60))
        return np.mean([np.linalg.norm(draw - K) ** 2 for draw in draws])

    assert error(True) < 0.8 * error(False)


@pytest.mark.parametrize("kernel", [Polynomial(2), Tanimoto(), Gaussian(0.3) * Laplacian(0.2)], ids=repr)
def test_kernels_without_a_spectral_density_are_named(sample, kernel):
    X = sample
    with pytest.raises(IncompatibleError, match=r"has no spectral density to draw random features from. Use Gaussian"):
        RandomFeatures(10).approximate(kernel, np.abs(X))


@pytest.mark.parametrize("density", [None, 0.1, 1.0])
def test_sketches_against_their_formula(sample, weights, density):
    """k(x, X) S' (S K S')^+ S k(X, z); about n times the density of the entries of each combination are not null."""
    X = sample
    approximation, kernel = PSparsified(9, density), Laplacian(0.5)
    places, sketch = approximation._sketch(N, 9)
    index = np.argsort(contents(X, weights))[places]
    S = np.zeros((9, N))
    S[:, index] = (sketch * np.sqrt(weights[index, None])).T
    K = kernel(X)
    thin = approximation.approximate(kernel, X, weights)
    assert_allclose(thin(X), K @ S.T @ np.linalg.pinv(S @ K @ S.T) @ S @ K, rtol=0, atol=1e-9)
    assert len(thin.points) == np.sum(S.any(axis=0))
    share = 20 / N if density is None else density
    _, many = PSparsified(2000, density)._sketch(N, 2000)
    assert np.mean(many != 0) == pytest.approx(share, rel=0.03)
    assert np.mean(many**2) * 2000 == pytest.approx(1.0, rel=0.03)  # E S'S = I


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.5), Linear()], ids=repr)
def test_what_a_partial_factor_leaves(sample, weights, kernel):
    """Landmarks that come in three rounds, more of them than the rank of the linear kernel, against dense matrices."""
    X = sample
    rounds = np.array([3, 8]), np.array([0, 1, 20, 21]), np.array([30])
    factor = PartialFactor.empty(Sample.of(kernel, X, weights, 1e-2))
    for index in rounds:
        factor = factor.extended(index)
    K, J = kernel(X), np.concatenate(rounds)
    left = np.diag(K - K[:, J] @ np.linalg.pinv(K[np.ix_(J, J)]) @ K[J])
    assert_allclose(factor.unexplained, left, rtol=0, atol=1e-10)
    assert factor.predicted_gap == pytest.approx(weights @ left / (1e-2 * weights.sum() ** 2), abs=1e-10)


def test_odds_of_landmarks_against_their_definitions(sample, weights):
    X = sample
    kernel, lam, J = Gaussian(0.3), 1e-2, np.array([3, 8, 20])
    K, some = kernel(X), PartialFactor.empty(Sample.of(kernel, X, weights, lam)).extended(J[:2]).extended(J[2:])
    nearest = np.min(np.diag(K)[:, None] + np.diag(K)[J] - 2 * K[:, J], axis=1)
    assert_allclose(RULES["kmeans++"](some), weights * nearest, rtol=0, atol=1e-12)
    root = np.sqrt(weights)
    weighted = root[:, None] * K * root
    exact = np.diag(weighted @ np.linalg.inv(weighted + lam * weights.sum() * np.eye(N)))
    full = PartialFactor.empty(some.sample).extended(np.arange(N))
    assert_allclose(RULES["leverage"](full), exact, rtol=1e-8)
    thin = K[:, J] @ np.linalg.inv(K[np.ix_(J, J)]) @ K[J]
    scores = np.diag(thin @ np.linalg.inv(np.diag(weights) @ thin + lam * weights.sum() * np.eye(N)))
    scores = scores + np.diag(K - thin) / (lam * weights.sum())
    assert_allclose(RULES["leverage"](some), weights * np.minimum(scores, 1), rtol=1e-8)


@pytest.mark.parametrize("landmarks", RULES)
def test_auto_stops_where_the_trace_allows(sample, landmarks):
    """tr(K - K^) / (lam n^2) is below a tenth of n^-1/2, and was not with half as many landmarks."""
    X = sample
    X = np.concatenate([X + shift for shift in np.linspace(0, 4, 25)])
    kernel, n, sizes = Gaussian(0.2), len(X), []
    for lam in (1e-2, 1e-5):
        thin = Nystrom("auto", landmarks).approximate(kernel, X, None, lam)
        sizes.append(len(thin.points))
        assert np.sum(kernel.diag(X) - thin.diag(X)) / (lam * n**2) <= 0.1 / math.sqrt(n)
    half = Nystrom(sizes[1] // 2, landmarks).approximate(kernel, X, None, 1e-5)
    assert np.sum(kernel.diag(X) - half.diag(X)) / (1e-5 * n**2) > 0.1 / math.sqrt(n)
    assert 64 == sizes[0] < sizes[1] < 0.6 * n
