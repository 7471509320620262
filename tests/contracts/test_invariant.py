"""Kernels averaged over a group of permutations: against the average written out, and what they refuse."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import OperatorKernelRegressor
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Invariant, Standardized

SHIFTS = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
CASES = {
    "shifts": (SHIFTS, 1),
    "reflections": ([*SHIFTS, [2, 1, 0], [0, 2, 1], [1, 0, 2]], 1),
    "permutations": (list(itertools.permutations(range(3))), 2),
}


@pytest.mark.parametrize("group", CASES)
def test_it_is_the_average_over_the_images(group, rng):
    orders, size = CASES[group]
    X, Z, base = rng.standard_normal((5, 3, size)), rng.standard_normal((4, 3, size)), Gaussian(0.3)
    kernel = Invariant(base, group, size)
    flat = X.reshape(5, -1)
    expected = np.mean([base(flat, Z[:, list(order)].reshape(4, -1)) for order in orders], axis=0)
    assert_allclose(kernel(flat, Z.reshape(4, -1)), expected, atol=1e-14)
    assert_allclose(kernel.diag(flat), np.diag(kernel(flat)), atol=1e-14)
    assert np.linalg.eigvalsh(kernel(flat)).min() > -1e-12
    rows = np.array([[size * k + j for k in order for j in range(size)] for order in orders])
    assert_allclose(Invariant(base, rows)(flat, Z.reshape(4, -1)), expected, atol=1e-14)


def test_a_fit_is_training_on_all_images(rng):
    X, new, lam = rng.standard_normal((8, 3)), rng.standard_normal((4, 3)), 1e-2
    y = X.max(axis=1)
    images = np.concatenate([X[:, order] for order in SHIFTS])
    K = Gaussian(0.3)(images)
    expected = Gaussian(0.3)(new, images) @ np.linalg.solve(K + 24 * lam * np.eye(24), np.tile(y, 3))
    model = OperatorKernelRegressor(Invariant(Gaussian(0.3)), lam=lam).fit(X, y)
    assert_allclose(model.predict(new), expected, atol=1e-8)
    assert_allclose(model.predict(new[:, SHIFTS[1]]), expected, atol=1e-8)
    step = 1e-6 * np.eye(3)
    differences = [(model.predict(new + row) - model.predict(new - row)) / 2e-6 for row in step]
    assert_allclose(model.gradient(new), np.stack(differences, axis=-1), atol=1e-7)


def test_what_it_refuses(rng):
    X = rng.standard_normal((6, 4))
    with pytest.raises(IncompatibleError, match="does not change when both inputs are permuted"):
        Invariant(Standardized(Gaussian(), scale=[1.0, 2, 3, 4])).resolve(X)
    with pytest.raises(ValueError, match="that form a group"):
        Invariant(Gaussian(), [[0, 1, 2, 3], [1, 2, 3, 0]])(X)
    with pytest.raises(ValueError, match="4 columns of the inputs are not elements of size=3"):
        Invariant(Gaussian(), "shifts", 3)(X)
    with pytest.raises(ValueError, match=r"takes at most 6 elements. Got 7"):
        Invariant(Gaussian(), "permutations")(np.zeros((2, 7)))
