"""Equivariant kernels against the sum over shifts, written out, and against training on all shifts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import OperatorKernelRegressor
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Blocks, Equivariant, Filtered, FunctionalGaussian, Gaussian, Linear, Standardized
from fenchel.losses import EpsilonRidge, Huber, Square
from fenchel.operators import Cyclic, scaled

N, P = 6, 5


def mirrored(X, sign, axis=1):
    """Return sign x_{-t}."""
    return sign * np.take(X, -np.arange(X.shape[axis]) % X.shape[axis], axis=axis)


def blocks_of(kernel, p, X, Z, sign=0):
    """Return (1 / p) sum_g k(x_i, T_g z_j) T_g by loops, and with a sign the mean with the same of reflections."""
    step, blocks = X.shape[1] // p, np.zeros((len(X), len(Z), p, p))
    for g in range(p):
        blocks += kernel(X, np.roll(Z, g * step, axis=1))[:, :, None, None] * np.roll(np.eye(p), g, axis=0) / p
        if sign:
            other = np.roll(mirrored(Z, sign), g * step, axis=1)
            moved = np.roll(mirrored(np.eye(p), sign, axis=0), g, axis=0)
            blocks += kernel(X, other)[:, :, None, None] * moved / p
    return blocks / 2 if sign else blocks


def flat(blocks):
    n, m, p, _ = blocks.shape
    return blocks.transpose(0, 2, 1, 3).reshape(n * p, m * p)


SHAPES = [(P, P, None), (6, 6, None), (10, P, None), (6, 6, 2), (1, 1, None)]
GROUPS = {"shifts": 0, "reflections": 1, "odd reflections": -1}


@pytest.fixture(params=[(*shape, group) for shape in SHAPES for group in GROUPS], ids=str)
def case(request, rng):
    """A Cyclic operator, one across samples, and their full matrices."""
    m, p, count, group = request.param
    X, Z, kernel = rng.standard_normal((N, m)), rng.standard_normal((4, m)), Gaussian(0.3)

    class Space:
        targets = np.zeros((N, p))

    bound = Equivariant(kernel, count, group=group).bind(X, Space)
    full, cross = (flat(blocks_of(kernel, p, each, X, GROUPS[group])) for each in (X, Z))
    if count is not None:  # the projection on the first frequencies
        kept = np.fft.irfft(
            np.pad(np.fft.rfft(np.eye(p), axis=0)[:count], ((0, p // 2 + 1 - count), (0, 0))), p, axis=0
        )
        full, cross = np.kron(np.eye(N), kept) @ full, np.kron(np.eye(4), kept) @ cross
    return bound.gram(X), full, bound.gram(Z, X), cross, p


def test_products_and_functions(case, rng):
    gram, full, across, cross, p = case
    A = rng.standard_normal((N, p))
    assert isinstance(gram, Cyclic) and gram.shape == (N, N) and across.shape == (4, N)
    assert_allclose(gram.matmul(A).ravel(), full @ A.ravel(), atol=1e-12)
    assert_allclose(across.matmul(A).ravel(), cross @ A.ravel(), atol=1e-12)
    several = rng.standard_normal((N, 3, p))
    assert_allclose(gram.matmul(several)[:, 1], gram.matmul(several[:, 1]), atol=1e-12)
    assert_allclose(gram.solver(2.0, 0.5)(A).ravel(), np.linalg.solve(0.5 * np.eye(N * p) + 2 * full, A.ravel()))
    shifts = np.linspace(0.5, 2, N)
    expected = np.linalg.solve(np.diag(np.repeat(shifts, p)) + 2 * full, A.ravel())
    assert_allclose(gram.solver(2.0, shifts)(A).ravel(), expected, atol=1e-10)
    assert np.all(
        gram.diag() >= [np.linalg.norm(full[i * p : i * p + p, i * p : i * p + p], 2) - 1e-12 for i in range(N)]
    )
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

    left_out = np.stack([np.linalg.solve(inverse[i * p : i * p + p, i * p : i * p + p], A[i]) for i in range(N)])
    assert_allclose(basis.left_out(f, A), left_out, atol=1e-10)
    assert_allclose(basis.images(across, A)(f).ravel(), cross @ inverse @ A.ravel(), atol=1e-12)


@pytest.mark.parametrize("loss", [Square(), Huber(0.3), EpsilonRidge(0.2)], ids=repr)
def test_a_fit_is_that_of_the_blocks(loss, rng):
    """The same certified model as by the general kernel, predictions that shift, and with weights."""
    X = rng.standard_normal((12, 6))
    Y, new, weights = np.tanh(X) + np.roll(X, 1, axis=1) ** 2, rng.standard_normal((3, 6)), rng.uniform(0.5, 2, 12)
    kernel = Gaussian(0.2)
    settings = {"loss": loss, "lam": 1e-2, "tol": 1e-9}
    model = OperatorKernelRegressor(Equivariant(kernel), **settings).fit(X, Y, sample_weight=weights)
    blocks = Blocks(lambda X, Z: blocks_of(kernel, 6, X, Z))
    other = OperatorKernelRegressor(blocks, **settings).fit(X, Y, sample_weight=weights)
    assert model.duality_gap_ <= 1e-9
    assert_allclose(model.predict(new), other.predict(new), atol=1e-4)
    assert_allclose(model.predict(np.roll(new, 2, axis=1)), np.roll(model.predict(new), 2, axis=1), atol=1e-10)


def test_it_is_training_on_all_shifts(rng):
    """Kernel ridge regression of all n p shifted pairs, with the plain kernel, predicts the same."""
    X, new, lam = rng.standard_normal((8, 5)), rng.standard_normal((4, 5)), 1e-2
    Y = np.sin(X) + 0.5 * np.roll(X, 1, axis=1)
    all_X, all_Y = (np.concatenate([np.roll(each, g, axis=1) for g in range(5)]) for each in (X, Y))
    K = Gaussian(0.3)(all_X)
    expected = Gaussian(0.3)(new, all_X) @ np.linalg.solve(K + 8 * 5 * lam * np.eye(40), all_Y)
    model = OperatorKernelRegressor(Equivariant(Gaussian(0.3)), lam=lam).fit(X, Y)
    assert_allclose(model.predict(new), expected, atol=1e-8)


@pytest.mark.parametrize("sign", [1, -1])
def test_it_is_training_on_mirror_images_too(rng, sign):
    X, new, lam, group = rng.standard_normal((6, 5)), rng.standard_normal((4, 5)), 1e-2, list(GROUPS)[sign]
    Y = np.sin(X) + 0.5 * np.roll(X, 1, axis=1)
    both = [np.concatenate([each, mirrored(each, sign)]) for each in (X, Y)]
    all_X, all_Y = (np.concatenate([np.roll(each, g, axis=1) for g in range(5)]) for each in both)
    K = Gaussian(0.3)(all_X)
    expected = Gaussian(0.3)(new, all_X) @ np.linalg.solve(K + 6 * 10 * lam * np.eye(60), all_Y)
    model = OperatorKernelRegressor(Equivariant(Gaussian(0.3), group=group), lam=lam).fit(X, Y)
    assert_allclose(model.predict(new), expected, atol=1e-8)
    moved = np.roll(mirrored(new, sign), 2, axis=1)
    assert_allclose(model.predict(moved), np.roll(mirrored(expected, sign), 2, axis=1), atol=1e-8)


@pytest.mark.parametrize("loss", [Huber(0.3), EpsilonRidge(0.2)], ids=repr)
def test_reflections_under_other_losses(loss, rng):
    X = rng.standard_normal((10, 6))
    Y, settings = np.tanh(X) + np.roll(X, 1, axis=1), {"loss": loss, "lam": 1e-2, "tol": 1e-9}
    model = OperatorKernelRegressor(Equivariant(Gaussian(0.2), group="odd reflections"), **settings).fit(X, Y)
    other = OperatorKernelRegressor(Blocks(lambda X, Z: blocks_of(Gaussian(0.2), 6, X, Z, -1)), **settings).fit(X, Y)
    assert model.duality_gap_ <= 1e-9
    assert_allclose(model.predict(X), other.predict(X), atol=1e-4)


def test_what_cannot_be_equivariant(rng):
    X = rng.standard_normal((8, 6))
    with pytest.raises(IncompatibleError, match="does not change when both signals are shifted"):
        OperatorKernelRegressor(Equivariant(Standardized(Gaussian(0.3), scale=np.arange(1.0, 7)))).fit(X, X)
    with pytest.raises(ValueError, match=r"inputs of shape \(8, 6\) and outputs of 4 points"):
        OperatorKernelRegressor(Equivariant(Gaussian(0.3))).fit(X, X[:, :4])
    with pytest.raises(TypeError, match="must be a ScalarKernel"):
        OperatorKernelRegressor(Equivariant("gaussian")).fit(X, X)


def test_filtered_signals(rng):
    """The same as filtering by hand, also with channels, and invariant under shifts of both."""
    X, Z = rng.standard_normal((4, 7, 2)), rng.standard_normal((3, 7, 2))

    def by_hand(X):
        spectrum = np.fft.fft(X, axis=1)
        weights = (1.0 + np.minimum(np.arange(7), 7 - np.arange(7))) ** -0.7
        return np.fft.ifft(spectrum * weights[:, None], axis=1).real

    kernel = Filtered(FunctionalGaussian(0.5), 0.7)
    assert_allclose(kernel(X, Z), FunctionalGaussian(0.5)(by_hand(X), by_hand(Z)), atol=1e-12)
    assert_allclose(kernel(np.roll(X, 2, axis=1), np.roll(Z, 2, axis=1)), kernel(X, Z), atol=1e-12)
    assert_allclose(kernel.diag(X), np.diag(kernel(X)))
    flat = X[:, :, 0]
    assert_allclose(Filtered(Linear(), 0.0)(flat), flat @ flat.T)
