"""Numbers beyond float64, and parameters of losses close to zero: a clear error, or the right result at once."""

import numpy as np
import pytest

from fenchel import (
    ConformalRegressor,
    FieldRegressor,
    FunctionalRegressor,
    KernelAutoencoder,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    StructuredPredictor,
)
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, Huber
from fenchel.losses._balls import PNorm

X = np.linspace(0, 1, 4)[:, None]
Y = np.sin(X)
HUGE = 10**400
CASES = {
    "lam": lambda: OperatorKernelRegressor("gaussian", lam=HUGE).fit(X, Y),
    "a lam of 5000 digits": lambda: OperatorKernelRegressor("gaussian", lam=-(10**5000)).fit(X, Y),
    "lams": lambda: OperatorKernelRegressorCV("gaussian", lams=[HUGE]).fit(X, Y),
    "gamma": lambda: OperatorKernelRegressor(Gaussian(HUGE)).fit(X, Y),
    "X": lambda: OperatorKernelRegressor("gaussian").fit([[HUGE], [1], [2], [3]], Y),
    "y": lambda: OperatorKernelRegressor("gaussian").fit(X, [HUGE, 1, 2, 3]),
    "objects": lambda: OperatorKernelRegressor("gaussian").fit(X, np.array([HUGE, 1, 2, 3], dtype=object)),
    "new X": lambda: OperatorKernelRegressor("gaussian").fit(X, Y).predict([[HUGE]]),
    "curves": lambda: FunctionalRegressor("gaussian").fit(X, [[HUGE, 1]] + 3 * [[1, 2]]),
    "fields": lambda: FieldRegressor().fit([[[HUGE, 1], [1, 1]]] * 4, np.ones((4, 2, 2))),
    "quantiles": lambda: QuantileFunctionRegressor("gaussian").fit(X, [HUGE, 1, 2, 3]),
    "outputs of fields": lambda: FieldRegressor().fit(X, [HUGE, 1, 2, 3]),
    "structured outputs": lambda: StructuredPredictor("gaussian").fit(X, np.array([HUGE, 1, 2, 3], dtype=object)),
    "bands": lambda: ConformalRegressor().fit([[HUGE], *X[1:].tolist()] * 4, np.ones(16)),
    "outputs of bands": lambda: ConformalRegressor(method="cv+", cv=2).fit(np.tile(X, (4, 1)), [HUGE, 1, 2, 3] * 4),
    "task loss": lambda: LossTrickPredictor("gaussian", task_loss="least_squares").fit(X, [[HUGE], [1], [2], [3]]),
}


@pytest.mark.parametrize("name", CASES)
def test_an_int_beyond_float64(name):
    with pytest.raises(ValueError, match=r"must be|must hold|takes numeric"):
        CASES[name]()


@pytest.mark.parametrize("p", [1, 1.3, 1.5, 3, np.inf])
def test_an_insensitive_zone_of_almost_nothing(rng, p):
    """It is the square loss: the powers in the projection on a ball of radius 1e-300 do not overflow."""
    inputs, outputs = rng.standard_normal((30, 2)), rng.standard_normal((30, 3))
    square = OperatorKernelRegressor("matern", lam=1e-6).fit(inputs, outputs)
    model = OperatorKernelRegressor("matern", loss=EpsilonRidge(1e-300, p=p), lam=1e-6).fit(inputs, outputs)
    assert abs(model.duality_gap_) <= 1e-6 and model.primal_objective_ == pytest.approx(square.primal_objective_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 1.3, 1.5, 3, 7])
def test_projections_of_far_points(rng, p, dtype):
    """Only the direction counts, and the projection is on the sphere."""
    rows = rng.standard_normal((8, 5)).astype(dtype)
    norm, largest = PNorm(p), 0.01 * np.finfo(dtype).max
    far = norm.project(rows, 1 / np.array(largest, dtype))
    near = norm.project(rows * np.array(1e8 if dtype is np.float64 else 1e4, dtype), 1.0)
    np.testing.assert_allclose(far * largest, near, atol=1e-3)
    np.testing.assert_allclose(norm.norm(far) * largest, 1, rtol=1e-3)


def test_a_relative_threshold_of_an_autoencoder(rng):
    with pytest.raises(ValueError, match=r"KernelAutoencoder needs a threshold as a number, such as Huber\(0.5\)"):
        KernelAutoencoder(2, "gaussian", loss=Huber("auto")).fit(rng.standard_normal((20, 3)))


@pytest.mark.parametrize("unit", [2.0**-560, 2.0**-1000])
def test_inputs_in_tiny_units(unit):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    Y = np.stack([np.sin(2 * X[:, 0]), X[:, 1]], axis=1) + 0.1 * rng.standard_normal((40, 2))
    wanted = OperatorKernelRegressorCV().fit(X, Y).predict(X)
    for units in (unit, np.array([unit, 1.0])):  # the squares of such numbers are zero
        found = OperatorKernelRegressorCV().fit(X * units, Y).predict(X * units)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
