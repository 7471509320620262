"""The model of the sizes of residuals has a Gram matrix in float64, also for inputs in float32."""

import numpy as np
import pytest

from fenchel import OperatorKernelRegressor, OutlierReport
from fenchel.kernels import Linear, Polynomial


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, coef0=1.0)], ids=repr)
def test_a_kernel_with_few_features(rng, kernel):
    """Its matrix is singular: in float32 it has eigenvalues of -1e-7 times the largest."""
    X = rng.standard_normal((60, 3)).astype(np.float32)
    y = (X @ np.ones(3, dtype=np.float32)).astype(np.float32)
    model = OperatorKernelRegressor(kernel, loss="huber", lam=1e-2)
    single = OutlierReport.of(model.fit(X, y), X, y)
    double = OutlierReport.of(model.fit(X.astype(float), y.astype(float)), X.astype(float), y.astype(float))
    np.testing.assert_allclose(single.scores, double.scores, rtol=1e-2)
