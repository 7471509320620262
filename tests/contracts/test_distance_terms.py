"""Kernels as sums of functions of one distance, against the kernels themselves; the fused product on a GPU."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Standardized
from fenchel.kernels.fused import distance_terms
from fenchel.operators.products import fused_product

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


def test_arrays_of_the_host_have_no_fused_product():
    assert fused_product(Gaussian(0.3), np.ones((3, 2)), None, np.ones((3, 1))) is None


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fused_product_is_that_of_the_matrix(kernel):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    generator = torch.Generator(device="cuda").manual_seed(0)
    X, Z, A = (
        torch.randn(shape, generator=generator, device="cuda", dtype=torch.float64)
        for shape in ((1000, 5), (700, 5), (700, 70))
    )
    kernel = kernel.resolve(X)
    error = fused_product(kernel, X, Z, A) - kernel(X, Z) @ A
    size = (kernel(X, Z).abs() @ A.abs()).max()
    assert float(error.abs().max() / size) < 1e-6
