"""Coupled outputs of very different units, with wrong cells: the smallest output is not lost."""

import numpy as np
import pytest

from fenchel import OperatorKernelRegressorCV

UNITS = np.array([82.0, 8.0, 1.9])


def outputs(X):
    return np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1]), np.tanh(X[:, 2] + X[:, 0])])


@pytest.mark.parametrize("size", [10, 50])
@pytest.mark.parametrize("seed", range(2))
def test_wrong_cells_and_the_smallest_output(seed, size):
    """20 cells are wrong by many deviations of their output."""
    rng = np.random.default_rng(seed)
    X, new = rng.standard_normal((120, 3)), rng.standard_normal((300, 3))
    scales = UNITS / outputs(X).std(axis=0)
    Y = outputs(X) * scales + 0.1 * UNITS * rng.standard_normal((120, 3))
    wrong, columns = Y.copy(), rng.integers(0, 3, 20)
    wrong[rng.choice(120, 20, replace=False), columns] += size * UNITS[columns] * rng.choice([-1, 1], 20)
    truth = (outputs(new) * scales)[:, 2]
    model = OperatorKernelRegressorCV(operator="covariance", lams=[1e-4, 1e-3, 1e-2], cv=3)
    found = [1 - np.mean((model.fit(X, rows).predict(new)[:, 2] - truth) ** 2) / np.var(truth) for rows in (Y, wrong)]
    assert found[0] > 0.9 and found[1] > found[0] - 0.5
