"""A fit that is interrupted or fails leaves the estimator as it was: without a fit, or with the one that it had."""

import inspect
import warnings
from inspect import isclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import fenchel
from fenchel import estimators, solvers
from fenchel.app.tables import TableRegressor
from fenchel.decoders import Candidates
from fenchel.kernels import Gaussian

FAST = {"lams": [1e-2, 1e-1], "cv": 2}
# an estimator of each class, and how its outputs follow from inputs in [-1, 1]
MODELS = {
    "CostSensitiveClassifier": (fenchel.CostSensitiveClassifier(levels=3), lambda X: (X[:, 0] > 0).astype(int)),
    "FunctionalRegressor": (fenchel.FunctionalRegressor(Gaussian(0.5)), lambda X: np.sin(X[:, :1] + np.arange(6))),
    "FunctionalRegressorCV": (
        fenchel.FunctionalRegressorCV(Gaussian(0.5), **FAST),
        lambda X: np.sin(X[:, :1] + np.arange(6)),
    ),
    "FieldRegressor": (fenchel.FieldRegressor(fenchel.OperatorKernelRegressor()), lambda X: X[:, :2] ** 2),
    "KernelAutoencoder": (fenchel.KernelAutoencoder(1, max_inner_iter=3, random_state=0), lambda X: None),
    "LearnedMetricRegressor": (
        fenchel.LearnedMetricRegressor(fenchel.OperatorKernelRegressorCV(**FAST), max_rounds=1, cv=2),
        lambda X: X[:, :2] ** 2,
    ),
    "LossTrickPredictor": (fenchel.LossTrickPredictor(), lambda X: X[:, 0]),
    "OperatorKernelRegressor": (fenchel.OperatorKernelRegressor(loss="huber"), lambda X: X[:, :2] ** 2),
    "OperatorKernelRegressorCV": (fenchel.OperatorKernelRegressorCV(**FAST), lambda X: X[:, :2] ** 2),
    "QuantileFunctionRegressor": (fenchel.QuantileFunctionRegressor(levels=3), lambda X: X[:, 0]),
    "QuantileFunctionRegressorCV": (fenchel.QuantileFunctionRegressorCV(levels=3, **FAST), lambda X: X[:, 0]),
    "StructuredPredictor": (
        fenchel.StructuredPredictor(decoder=Candidates(np.eye(2))),
        lambda X: np.eye(2)[(X[:, 0] > 0).astype(int)],
    ),
    "StructuredPredictorCV": (
        fenchel.StructuredPredictorCV(decoder="threshold", **FAST),
        lambda X: (X[:, :2] > 0).astype(float),
    ),
    "TableRegressor": (TableRegressor(fenchel.OperatorKernelRegressor(), targets=["y"]), None),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_every_estimator_is_here():
    classes = [getattr(estimators, name) for name in estimators.__all__]
    assert {kind.__name__ for kind in classes if isclass(kind) and hasattr(kind, "fit")} | {"TableRegressor"} == set(
        MODELS
    )


def arguments(name, rng, columns=3):
    """Return what ``fit`` and ``predict`` of an estimator take."""
    X = rng.uniform(-1, 1, size=(16, columns))
    if name == "TableRegressor":
        table = {f"x{k}": X[:, k] for k in range(columns)} | {"y": X[:, 0] ** 2}
        return (table,), (table,)
    y = MODELS[name][1](X)
    return (X,) if y is None else (X, y), (X,)


def predictions(model, args):
    return model.transform(*args) if hasattr(model, "transform") else model.predict(*args)


@pytest.fixture
def broken_solvers(monkeypatch):
    """Return a function after which every solver raises an error."""

    def breaks(error):
        def solve(*args, **kwargs):
            raise error

        classes = [kind for kind in vars(solvers).values() if isclass(kind) and issubclass(kind, solvers.Solver)]
        for kind in {base for one in classes for base in one.__mro__ if "solve" in vars(base)}:
            monkeypatch.setattr(kind, "solve", solve)

    return breaks


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_first_fit_is_none(name, error, rng, broken_solvers):
    model = clone(MODELS[name][0])
    given, new = arguments(name, rng)
    before = dict(vars(model))
    broken_solvers(error)
    with pytest.raises(error):
        model.fit(*given)
    assert vars(model) == before
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        check_is_fitted(model)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        predictions(model, new)


@pytest.mark.parametrize("name", MODELS)
def test_a_refit_that_fails_leaves_the_model(name, rng, broken_solvers):
    model = clone(MODELS[name][0])
    given, new = arguments(name, rng)
    assert model.fit(*given) is model
    before, expected = dict(vars(model)), np.asarray(predictions(model, new)).copy()
    values = {key: value.copy() for key, value in before.items() if isinstance(value, np.ndarray)}
    n_features = getattr(model, "n_features_in_", None)
    wider, _ = arguments(name, rng, columns=5)
    broken_solvers(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*wider)
    assert list(vars(model)) == list(before)
    assert all(vars(model)[key] is before[key] for key in before)
    assert all(vars(model)[key].tobytes() == value.tobytes() for key, value in values.items())
    assert getattr(model, "n_features_in_", None) == n_features
    assert np.asarray(predictions(model, new)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", [name for name in MODELS if name != "TableRegressor"])
def test_a_refit_on_wrong_data_leaves_the_model(name, rng):
    model = clone(MODELS[name][0])
    given, new = arguments(name, rng)
    expected = np.asarray(predictions(model.fit(*given), new)).copy()
    (X, *rest), _ = arguments(name, rng, columns=5)
    if rest:  # checked after X, of which the features have been noted
        rest[0] = np.asarray(rest[0])[:-1]
    else:
        X[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples|the same number of samples|NaN|samples"):
        model.fit(X, *rest)
    assert np.asarray(predictions(model, new)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_keeps_its_signature(name):
    fit = inspect.signature(type(MODELS[name][0]).fit)
    assert next(iter(fit.parameters)) == "self"
    assert len(fit.parameters) >= 2


@pytest.mark.parametrize("name", ["OperatorKernelRegressor", "KernelAutoencoder"])
def test_a_warning_points_at_the_call(name, rng):
    model = clone(MODELS[name][0]).set_params(solver="pgd", max_iter=1, tol=1e-14)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*arguments(name, rng)[0])
    files = [warning.filename for warning in caught if issubclass(warning.category, ConvergenceWarning)]
    assert files == [__file__]
