"""Kernels with the symmetries of a square against the sum over the group, and against training on all images."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import OperatorKernelRegressor
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Blocks, Gaussian, SquareEquivariant, Standardized
from fenchel.losses import EpsilonRidge, Huber, Square
from fenchel.operators import Isotypic, scaled

N = 5


def images(rows, channels=1):
    """Return the eight images of fields that are given by rows."""
    side = round((rows.shape[1] / channels) ** 0.5)
    fields = rows.reshape(len(rows), side, side, channels)
    turns = [np.rot90(each, k, axes=(1, 2)) for each in (fields, fields[:, ::-1]) for k in range(4)]
    return [each.reshape(rows.shape) for each in turns]


def blocks_of(kernel, p, X, Z, channels=1, output_channels=1):
    """Return (1 / 8) sum_g k(x_i, g z_j) rho(g) by loops."""
    turns = zip(images(Z, channels), images(np.eye(p), output_channels), strict=True)
    return sum(kernel(X, z)[:, :, None, None] * rho.T for z, rho in turns) / 8


def flat(blocks):
    n, m, p, _ = blocks.shape
    return blocks.transpose(0, 2, 1, 3).reshape(n * p, m * p)


@pytest.fixture(params=[(3, 1, 3, 1), (4, 1, 2, 1), (2, 2, 4, 1), (3, 1, 1, 1), (2, 1, 3, 2)], ids=str)
def case(request, rng):
    """An Isotypic operator, one across samples, and their full matrices."""
    side, channels, output_side, output_channels = request.param
    m, p, kernel = side**2 * channels, output_side**2 * output_channels, Gaussian(0.1)
    X, Z = rng.standard_normal((N, m)), rng.standard_normal((3, m))

    class Space:
        targets = np.zeros((N, p))

    bound = SquareEquivariant(kernel, channels, output_channels).bind(X, Space)
    full, cross = (flat(blocks_of(kernel, p, each, X, channels, output_channels)) for each in (X, Z))
    return bound.gram(X), full, bound.gram(Z, X), cross, p


def test_products_and_functions(case, rng):
    gram, full, across, cross, p = case
    A = rng.standard_normal((N, p))
    assert isinstance(gram, Isotypic) and gram.shape == (N, N) and across.shape == (3, N)
    assert_allclose(gram.matmul(A).ravel(), full @ A.ravel(), atol=1e-12)
    assert_allclose(across.matmul(A).ravel(), cross @ A.ravel(), atol=1e-12)
    several = rng.standard_normal((N, 2, p))
    assert_allclose(gram.matmul(several)[:, 1], gram.matmul(several[:, 1]), atol=1e-12)
    assert_allclose(gram.solver(2.0, 0.5)(A).ravel(), np.linalg.solve(0.5 * np.eye(N * p) + 2 * full, A.ravel()))
    shifts = np.linspace(0.5, 2, N)
    expected = np.linalg.solve(np.diag(np.repeat(shifts, p)) + 2 * full, A.ravel())
    assert_allclose(gram.solver(2.0, shifts)(A).ravel(), expected, atol=1e-10)
    blocks = full.reshape(N, p, N, p)
    assert_allclose(gram.diag(), [np.linalg.norm(blocks[i, :, i], 2) for i in range(N)])
    assert 1 <= gram.norm() / np.linalg.norm(full, 2) <= 1.001
    root = np.linspace(0.5, 1.5, N)[:, None]
    assert_allclose(scaled(gram, root).matmul(A), root * gram.matmul(root * A), atol=1e-12)
    index = np.array([4, 1])
    assert_allclose(gram.block(index).matmul(A[:2]), gram.matmul(np.eye(N)[:, index] @ A[:2])[index], atol=1e-12)


def test_the_eigenbasis(case, rng):
    gram, full, across, cross, p = case
    basis, A = gram.factorize(), rng.standard_normal((N, p))
    assert_allclose(np.sort(basis.values.ravel()), np.sort(np.linalg.eigvalsh(full)), atol=1e-12)
    inverse = np.linalg.inv(np.eye(N * p) + 3 * full)

    def f(values):
        return 1 / (1 + 3 * values)

    blocks = inverse.reshape(N, p, N, p)
    left_out = np.stack([np.linalg.solve(blocks[i, :, i], A[i]) for i in range(N)])
    assert_allclose(basis.left_out(f, A), left_out, atol=1e-10)
    assert_allclose(basis.function(f)(A).ravel(), inverse @ A.ravel(), atol=1e-12)
    assert_allclose(basis.images(across, A)(f).ravel(), cross @ inverse @ A.ravel(), atol=1e-12)


@pytest.mark.parametrize("loss", [Square(), Huber(0.3), EpsilonRidge(0.2)], ids=repr)
def test_a_fit_is_that_of_the_blocks(loss, rng):
    """The same certified model as by the general kernel, with weights, and predictions that turn."""
    X, new, weights = rng.standard_normal((10, 9)), rng.standard_normal((3, 9)), rng.uniform(0.5, 2, 10)
    Y = (np.tanh(X).reshape(10, 3, 3) + np.arange(3) * X[:, :1, None] ** 2).reshape(10, 9)
    kernel, settings = Gaussian(0.1), {"loss": loss, "lam": 1e-2, "tol": 1e-9}
    model = OperatorKernelRegressor(SquareEquivariant(kernel), **settings).fit(X, Y, sample_weight=weights)
    blocks = Blocks(lambda X, Z: blocks_of(kernel, 9, X, Z))
    other = OperatorKernelRegressor(blocks, **settings).fit(X, Y, sample_weight=weights)
    assert model.duality_gap_ <= 1e-9
    assert_allclose(model.predict(new), other.predict(new), atol=1e-4)
    for turned, expected in zip(images(new), images(model.predict(new)), strict=True):
        assert_allclose(model.predict(turned), expected, atol=1e-10)


def test_it_is_training_on_all_images(rng):
    """Kernel ridge regression of all 8 n images of the pairs, with the plain kernel, predicts the same."""
    X, new, lam = rng.standard_normal((6, 16)), rng.standard_normal((4, 16)), 1e-2
    Y = rng.standard_normal((6, 4))
    all_X, all_Y = (np.concatenate(images(each)) for each in (X, Y))
    expected = Gaussian(0.1)(new, all_X) @ np.linalg.solve(Gaussian(0.1)(all_X) + 48 * lam * np.eye(48), all_Y)
    model = OperatorKernelRegressor(SquareEquivariant(Gaussian(0.1)), lam=lam).fit(X, Y)
    assert_allclose(model.predict(new), expected, atol=1e-8)


def test_torch(rng):
    torch = pytest.importorskip("torch")
    X, Y = rng.standard_normal((8, 9)), rng.standard_normal((8, 4))
    model = OperatorKernelRegressor(SquareEquivariant(Gaussian(0.1)), loss=Huber(0.3), lam=1e-2, tol=1e-9)
    expected = model.fit(X, Y).predict(X)
    found = model.fit(torch.as_tensor(X), torch.as_tensor(Y)).predict(torch.as_tensor(X))
    assert_allclose(found.numpy(), expected, atol=1e-4)


def test_what_cannot_be_equivariant(rng):
    X = rng.standard_normal((8, 4))
    with pytest.raises(IncompatibleError, match="does not change when both fields are turned"):
        OperatorKernelRegressor(SquareEquivariant(Standardized(Gaussian(0.3), scale=np.arange(1.0, 5)))).fit(X, X)
    with pytest.raises(ValueError, match=r"inputs of shape \(8, 4\) and outputs of 3 values"):
        OperatorKernelRegressor(SquareEquivariant(Gaussian(0.3))).fit(X, X[:, :3])
    with pytest.raises(ValueError, match="n_channels=3"):
        OperatorKernelRegressor(SquareEquivariant(Gaussian(0.3), 3)).fit(X, X)
    with pytest.raises(TypeError, match="must be a ScalarKernel"):
        OperatorKernelRegressor(SquareEquivariant("gaussian")).fit(X, X)
