"""Extreme units: a fit ends with a certificate or a ConvergenceWarning, never with LinAlgError."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel import (
    CostSensitiveClassifier,
    FunctionalRegressor,
    KernelAutoencoder,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    StructuredPredictor,
)
from fenchel._array import cholesky_solver, spd_inverse
from fenchel.losses import Exponential, Huber, NormLog, Power

ESTIMATORS = {
    "square": lambda: OperatorKernelRegressor("polynomial"),
    "huber": lambda: OperatorKernelRegressor("polynomial", loss="huber"),
    "epsilon_svr": lambda: OperatorKernelRegressor("polynomial", loss="epsilon_svr"),
    "cross-validated": lambda: OperatorKernelRegressorCV("polynomial", losses=[Huber(0.5)], lams=[1e-3, 1e-1], cv=2),
    "curves": lambda: FunctionalRegressor("polynomial", loss="huber"),
    "structured": lambda: StructuredPredictor("polynomial", loss="epsilon_ridge"),
    "loss trick": lambda: LossTrickPredictor("polynomial", task_loss="least_squares", surrogate="huber"),
    "autoencoder": lambda: KernelAutoencoder(2, "polynomial", hidden_kernel="polynomial", loss="huber"),
    "quantiles": lambda: QuantileFunctionRegressor("polynomial"),
    "costs": lambda: CostSensitiveClassifier("polynomial"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_kernel_beyond_round_off(rng, name):
    """Eigenvalues of 1e18 and of 1 in one matrix: no Cholesky factor exists in float64."""
    X, Y = 1000 * rng.standard_normal((25, 3)), rng.standard_normal((25, 4))
    Y = Y[:, 0] if name == "quantiles" else np.sign(Y[:, 0]) if name == "costs" else Y
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ESTIMATORS[name]().fit(X) if name == "autoencoder" else ESTIMATORS[name]().fit(X, Y)
    assert {type(one.message) for one in caught} <= {ConvergenceWarning}
    assert bool(caught) == (not abs(model.duality_gap_) <= 1e-6)
    assert np.all(np.isfinite(model.dual_coef_))


@pytest.mark.parametrize(
    ("loss", "height", "dtype"),
    [
        (Power(1.5, 1.0), 1e8, np.float32),
        (Power(1.5, 1.0), 1e-8, np.float64),
        (Exponential(1.0), 1e8, np.float64),
        (NormLog(1.0), 1e8, np.float32),
    ],
    ids=str,
)
def test_losses_that_overflow(rng, loss, height, dtype):
    """A certificate or a warning, and none of NumPy's."""
    X, Y = (array.astype(dtype) for array in (rng.standard_normal((8, 3)), height * rng.standard_normal((8, 2))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = OperatorKernelRegressor("linear", loss=loss, lam=1e-8).fit(1e4 * X, Y)
    assert {type(one.message) for one in caught} <= {ConvergenceWarning}
    assert bool(caught) == (not abs(model.duality_gap_) <= 1e-6)


def test_a_run_ends_when_round_off_explains_its_gap(rng):
    """262 iterations; the splitting's patience alone lets it go on for 2067."""
    X, Y = 1000 * rng.standard_normal((25, 3)), rng.standard_normal((25, 2))
    with pytest.warns(ConvergenceWarning, match="Limited by round-off: scale the inputs"):
        model = OperatorKernelRegressor("polynomial", loss="huber").fit(X, Y)
    assert model.n_iter_ < 1000


def test_a_kernel_that_overflows_is_named(rng):
    X = 1e200 * rng.standard_normal((10, 3))
    with pytest.raises(
        ValueError, match=r"The Gram matrix of Polynomial\(.*must be finite\. Entries exceed 1\.8e\+308"
    ):
        OperatorKernelRegressor("polynomial").fit(X, np.arange(10.0))


def test_a_matrix_that_round_off_has_made_indefinite(rng):
    """Judged by the residual: what the matrix does not determine may be anything."""
    U = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    values = np.r_[np.logspace(18, 16, 10), np.full(20, -1.0)]
    A = (U * values) @ U.T
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(A)
    b = A @ U[:, :10] @ rng.standard_normal((10, 2))
    np.testing.assert_allclose(A @ cholesky_solver(A)(b), b, rtol=0, atol=1e-12 * np.abs(b).max())
    inverse = spd_inverse(A.copy())
    small = slice(6, 10)  # an inverse with entries of 1e-3 holds eigenvalues of 1e-17 to a digit
    np.testing.assert_allclose(np.diag(U[:, small].T @ inverse @ U[:, small]) * values[small], 1, rtol=0.1)
    assert np.linalg.eigvalsh(inverse)[0] > -1e-17


def test_none_among_the_targets_is_not_observed(rng):
    """A list with None is an array of objects: its NaN came after the check for NaN, and the fit predicted zero."""
    X = rng.standard_normal((10, 2))
    found = OperatorKernelRegressor().fit(X, [None, *X[1:, 0].tolist()]).predict(X)
    np.testing.assert_array_equal(found, OperatorKernelRegressor().fit(X[1:], X[1:, 0]).predict(X))
