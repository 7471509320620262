"""Kernels as sums of functions of one distance, against the kernels themselves; the fused product on a GPU."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Standardized
from fenchel.kernels.fused import distance_terms
from fenchel.operators.products import fused_products

KERNELS = [
    Gaussian(0.3),
    Gaussian(),
    Laplacian(0.2),
    Linear(),
    Matern(2.0, 0.5),
    Matern(2.0, 1.5),
    Matern(2.0, 2.5),
    Matern(2.0, np.inf),
    Standardized(0.7 * Gaussian("median") + 0.1 * Linear()),
]
PROFILES = {
    "gaussian": lambda x, z: np.exp(-cdist(x, z, "sqeuclidean")),
    "exponential": lambda x, z: np.exp(-cdist(x, z)),
    "matern32": lambda x, z: (1 + cdist(x, z)) * np.exp(-cdist(x, z)),
    "matern52": lambda x, z: (1 + cdist(x, z) + cdist(x, z) ** 2 / 3) * np.exp(-cdist(x, z)),
    "laplacian": lambda x, z: np.exp(-cdist(x, z, "cityblock")),
    "linear": lambda x, z: x @ z.T,
}


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_terms_add_up_to_the_kernel(kernel):
    rng = np.random.default_rng(0)
    X, Z = 10 + 3 * rng.normal(size=(7, 3)), 10 + 3 * rng.normal(size=(5, 3))
    kernel = kernel.resolve(X)
    pairs = zip(distance_terms(kernel, X), distance_terms(kernel, Z), strict=True)
    total = sum(one.weight * PROFILES[one.profile](one.points, other.points) for one, other in pairs)
    np.testing.assert_allclose(total, kernel(X, Z), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [Polynomial(2), Matern(2.0, 0.8), Gaussian(0.3) + Polynomial(2)], ids=repr)
def test_other_kernels_have_none(kernel):
    assert distance_terms(kernel, np.ones((3, 2))) is None


def test_two_samples_of_the_host_have_no_fused_product():
    assert fused_products(Gaussian(0.3), np.ones((3, 2)), np.ones((1, 2)), True) == []


@pytest.mark.parametrize("sizes", [(1000, 700, 5, 70), (130, None, 20, 3), (1, 1, 1, 1), (300, 257, 126, 20)], ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fused_products_are_those_of_the_matrix(kernel, sizes):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    generator = torch.Generator(device="cuda").manual_seed(0)
    n, m, d, p = sizes
    X, Z, A = (
        torch.randn(shape, generator=generator, device="cuda", dtype=torch.float64)
        for shape in ((n, d), (m or n, d), (m or n, p))
    )
    Z, kernel = None if m is None else Z, kernel.resolve(torch.cat([X, X + 1]))
    size, sums = (kernel(X, Z).abs() @ A.abs()).max(), A.abs().sum(0).max()
    # exponents, and with them their errors, grow with the number of coordinates; halves end at 2^-36
    for is_single, digits, least in ((True, 2e-7 * max(5, d), 2.0**-36), (False, 1e-14, 0.0)):
        ways = fused_products(kernel, X, Z, is_single)
        assert len(ways) == (2 if is_single else 1)
        for way in ways:
            error = way(A) - kernel(X, Z) @ A
            assert float(error.abs().max()) <= float(digits * size + least * sums)
