"""Auto said that a problem has no solution when the first solver was cut short before it had a finite value.

It also said so when every solver ended at the boundary, but outside by round-off (seeds 2 and 7; 0 with other steps).
"""

import numpy as np
import pytest

from fenchel import OperatorKernelRegressor
from fenchel.losses import Ball


@pytest.mark.parametrize(("seed", "n", "p"), [(0, 60, 3), (1, 60, 3), (2, 60, 3), (7, 60, 3)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_hard_constraints_that_can_be_kept_are_kept(seed, n, p, is_weighted):
    rng = np.random.default_rng(seed)
    X, directions = rng.normal(size=(n, 3)), rng.normal(size=(n, p))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    noise = 0.29 * directions * rng.uniform(size=(n, 1)) ** 0.1
    Y = X @ rng.normal(size=(3, p)) + noise  # within 0.3 of a linear function
    model = OperatorKernelRegressor("linear", loss=Ball(0.3), lam=0.1)
    model.fit(X, Y, sample_weight=rng.uniform(0.2, 2.0, n) if is_weighted else None)
    assert model.duality_gap_ <= 1e-6
    assert np.all(np.linalg.norm(Y - model.predict(X).reshape(n, p), axis=1) <= 0.3 * (1 + 1e-9))
