"""Sample weights of any unit: the loss is a weighted mean, so their unit has no effect on any estimator."""

import warnings

import numpy as np
import pytest

from fenchel import (
    ConformalRegressor,
    CostSensitiveClassifier,
    FieldRegressor,
    FunctionalRegressor,
    FunctionalRegressorCV,
    LearnedMetricRegressor,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    QuantileFunctionRegressorCV,
    StructuredPredictor,
    StructuredPredictorCV,
    path,
)
from fenchel.approximations import Nystrom
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonSVR, Huber

KERNEL = Gaussian(0.5)
GRID = {"losses": [Huber(0.5)], "lams": [1e-3, 1e-1], "cv": 2}
ESTIMATORS = {
    "square": lambda: OperatorKernelRegressor(KERNEL, lam=1e-2),
    "huber": lambda: OperatorKernelRegressor(KERNEL, loss="huber", lam=1e-3),
    "relative": lambda: OperatorKernelRegressor("gaussian", loss=Huber("auto"), lam=1e-3, center=True, scale=True),
    "epsilon": lambda: OperatorKernelRegressor(KERNEL, loss=EpsilonSVR(0.1), lam=1e-2),
    "blocks": lambda: OperatorKernelRegressor(KERNEL, loss="huber", lam=1e-1, solver="bcd"),
    "landmarks": lambda: OperatorKernelRegressor(KERNEL, loss="huber", lam=1e-2, approximation=Nystrom(5)),
    "search": lambda: OperatorKernelRegressorCV(KERNEL, **GRID),
    "kernel search": lambda: OperatorKernelRegressorCV("auto", losses=["square"], cv=2),
    "curves": lambda: FunctionalRegressor(KERNEL, loss="huber", lam=1e-2, center=True, scale=True),
    "curve search": lambda: FunctionalRegressorCV(KERNEL, **GRID),
    "fields": lambda: FieldRegressor(FunctionalRegressor(KERNEL, lam=1e-2)),
    "structured": lambda: StructuredPredictor(KERNEL, lam=1e-2),
    "structured search": lambda: StructuredPredictorCV(KERNEL, **GRID),
    "loss trick": lambda: LossTrickPredictor(KERNEL, task_loss="least_squares", lam=1e-2),
    "quantiles": lambda: QuantileFunctionRegressor(KERNEL, lam=1e-2),
    "quantile search": lambda: QuantileFunctionRegressorCV(KERNEL, lams=[1e-2, 1e-1], cv=2),
    "costs": lambda: CostSensitiveClassifier(KERNEL, lam=1e-2),
    "metric": lambda: LearnedMetricRegressor(OperatorKernelRegressorCV(losses=["square"], cv=2), max_rounds=1),
    "band": lambda: ConformalRegressor(OperatorKernelRegressor(KERNEL, lam=1e-2), random_state=0),
    "band of folds": lambda: ConformalRegressor(
        OperatorKernelRegressor(KERNEL, lam=1e-2), method="cv+", random_state=0
    ),
}


def _sample(rng, name):
    X = rng.uniform(-1, 1, (20, 2))
    Y = np.sin(3 * X @ rng.standard_normal((2, 4))) + 0.1 * rng.standard_normal((20, 4))
    Y = {"quantiles": Y[:, 0], "quantile search": Y[:, 0], "costs": np.sign(Y[:, 0])}.get(name, Y)
    return X, np.tile(Y[:, :, None], (1, 1, 4)) if name == "fields" else Y


def _results(name, X, Y, weights):
    """Return the predictions of a model, its score and its bands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ESTIMATORS[name]().fit(X, Y, sample_weight=weights)
        results = [model.predict(X)]
        if name in ("band", "band of folds"):
            bands = [model.predict_interval(X, 0.5), model.predict_interval(X, 0.5, sample_weight=weights)]
            results += [end for band in bands for end in (band.lower, band.upper)]
        if name not in ("loss trick", "structured", "structured search"):
            results.append(model.score(X, Y, sample_weight=weights))
    return results


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_unit_of_weights(rng, name):
    X, Y = _sample(rng, name)
    weights = rng.integers(1, 4, 20).astype(np.float64)
    wanted = _results(name, X, Y, weights)
    for unit in (5e-324, 2.0**-700, 2.0**664):  # multiples of them by 1, 2 and 3 have no round-off
        for got, value in zip(_results(name, X, Y, unit * weights), wanted, strict=True):
            np.testing.assert_array_equal(got, value, f"unit {unit}")


@pytest.mark.parametrize("unit", [np.exp(-500.0), 1e200, 1e308])
def test_equal_weights_of_any_size(rng, unit):
    X, Y = _sample(rng, "huber")
    plain = ESTIMATORS["huber"]().fit(X, Y)
    model = ESTIMATORS["huber"]().fit(X, Y, sample_weight=np.full(20, unit))
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-5)
    assert model.primal_objective_ == pytest.approx(plain.primal_objective_, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["square", "huber", "epsilon", "blocks", "landmarks", "curves", "loss trick"])
def test_weights_over_hundreds_of_decades(rng, name, dtype):
    """Samples of negligible weight change nothing, as if they were left out."""
    X, Y = (part.astype(dtype) for part in _sample(rng, name))
    spread = np.concatenate([np.ones(10), 10.0 ** -np.linspace(30, 310, 10)])
    for unit in (1.0, 1e150):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = ESTIMATORS[name]().fit(X, Y, sample_weight=unit * spread)
            few = ESTIMATORS[name]().fit(X, Y, sample_weight=np.where(spread == 1, 1.0, 0.0))
        assert abs(model.duality_gap_) <= 1e-6
        np.testing.assert_allclose(model.predict(X), few.predict(X), atol=2e-3)


def test_a_path(rng):
    X, Y = _sample(rng, "huber")
    wanted, got = (
        path(ESTIMATORS["huber"](), X, Y, [1e-3, 1e-1], sample_weight=unit * np.ones(20)) for unit in (1.0, 5e-324)
    )
    np.testing.assert_array_equal(got.predict(X), wanted.predict(X))


def test_a_weight_beyond_float64(rng):
    X, Y = _sample(rng, "huber")
    with pytest.raises(ValueError, match="sample_weight must hold finite"):
        ESTIMATORS["huber"]().fit(X, Y, sample_weight=[10**400] + [1] * 19)
