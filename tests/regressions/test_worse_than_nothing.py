"""A fit that round-off makes worse than the zero model is the zero model, and says so."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from fenchel import OperatorKernelRegressor
from fenchel.kernels import Linear
from fenchel.losses import EpsilonRidge


@pytest.mark.parametrize("loss, lam", [("square", 1e-30), (EpsilonRidge(0.1), 1e-300)], ids=repr)
def test_no_worse_than_the_zero_model(rng, loss, lam):
    X, Y = 1e3 * rng.standard_normal((12, 2)), rng.standard_normal((12, 2))
    model = OperatorKernelRegressor(Linear(), loss=loss, lam=lam)
    with pytest.warns(ConvergenceWarning, match="gap 1.0e.00"):
        predictions = model.fit(X, Y).predict(X)
    assert np.mean((predictions - Y) ** 2) <= (1 + 1e-6) * np.mean(Y**2)  # was 1e40
    assert_allclose(model.duality_gap_, 1)
    assert "round-off" in model.status_
