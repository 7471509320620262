"""``status_``, the warning and ``duality_gap_`` speak of the same problem."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel import (
    CostSensitiveClassifier,
    FunctionalRegressor,
    FunctionalRegressorCV,
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

KERNEL = Gaussian(2.0)
GRID = {"losses": ["huber"], "lams": [1e-4], "cv": 2}
ESTIMATORS = {
    "vectors": lambda **parts: OperatorKernelRegressor(KERNEL, loss="huber", lam=1e-4, **parts),
    "square": lambda **parts: OperatorKernelRegressor(KERNEL, lam=1e-4, **parts),
    "search": lambda **parts: OperatorKernelRegressorCV(KERNEL, **GRID, **parts),
    "curves": lambda **parts: FunctionalRegressor(KERNEL, loss="huber", lam=1e-4, **parts),
    "curve search": lambda **parts: FunctionalRegressorCV(KERNEL, **GRID, **parts),
    "structured": lambda **parts: StructuredPredictor(KERNEL, loss="huber", lam=1e-4, **parts),
    "structured search": lambda **parts: StructuredPredictorCV(KERNEL, **GRID, **parts),
    "costs": lambda **parts: CostSensitiveClassifier(KERNEL, lam=1e-4, **parts),
    "quantiles": lambda **parts: QuantileFunctionRegressor(KERNEL, lam=1e-4, **parts),
    "quantile search": lambda **parts: QuantileFunctionRegressorCV(KERNEL, lams=[1e-4], cv=2, **parts),
    "path": lambda **parts: ESTIMATORS["vectors"](**parts),
}


def _sample(rng):
    X = rng.standard_normal((60, 2))
    return X, np.sin(3 * X) @ rng.standard_normal((2, 5))


def _fitted(name, X, Y, **parts):
    """Return the model, and the texts of its convergence warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ESTIMATORS[name](**parts)
        Y = np.sign(Y[:, 0]) if name == "costs" else Y[:, 0] if "quantile" in name else Y
        model = path(model, X, Y, [1e-4]).model(0, 0) if name == "path" else model.fit(X, Y)
    return model, [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]


@pytest.mark.parametrize("kind", ["exact", "sampled"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_too_few_landmarks(rng, name, kind):
    model, texts = _fitted(name, *_sample(rng), approximation=Nystrom(5), certificate=kind)
    assert model.certificate_ == kind and model.duality_gap_ > 1e-2
    assert model.status_.startswith("not converged: solved for the approximate kernel")
    assert len(texts) == 1 and f"{model.duality_gap_:.1e} > tol 1e-06" in texts[0] and "landmarks" in texts[0]


@pytest.mark.parametrize("parts", [{}, {"certificate": "exact", "tol": 1e4}], ids=["approximate", "within tol"])
def test_a_gap_within_tol(rng, parts):
    model, texts = _fitted("vectors", *_sample(rng), approximation=Nystrom(5), **parts)
    assert model.duality_gap_ <= model.tol
    assert model.status_.startswith("converged") and texts == []


def test_a_solve_that_stopped_early(rng):
    """The status is that of the solver, the gap of the warning that of the model."""
    settings = {"approximation": Nystrom(5), "certificate": "exact", "solver": "apgd", "max_iter": 30}
    model, texts = _fitted("vectors", *_sample(rng), **settings)
    assert model.status_ == "not converged: stopped at max_iter"
    assert len(texts) == 1 and f"{model.duality_gap_:.1e} > tol 1e-06" in texts[0]
