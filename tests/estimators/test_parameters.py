"""Nested parameters of parts given by a short name, and inputs that are not finite."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import fenchel
from fenchel.kernels import Gaussian, Separable
from fenchel.losses import EpsilonRidge, Huber


@pytest.mark.parametrize(
    ("estimator", "params", "expected"),
    [
        (fenchel.OperatorKernelRegressor(loss="huber"), {"loss__kappa": 0.3}, {"loss": Huber(0.3)}),
        (fenchel.OperatorKernelRegressor("gaussian"), {"kernel__gamma": 0.3}, {"kernel": Gaussian(0.3)}),
        (
            fenchel.OperatorKernelRegressor(),
            {"loss__epsilon": 0.3, "loss": "epsilon_ridge", "lam": 0.1},
            {"loss": EpsilonRidge(0.3), "lam": 0.1},
        ),
        (fenchel.OperatorKernelRegressorCV("gaussian"), {"kernel__gamma": 0.3}, {"kernel": Gaussian(0.3)}),
        (fenchel.FunctionalRegressor(loss="huber"), {"loss__p": 1}, {"loss": Huber(p=1)}),
        (fenchel.LossTrickPredictor(task_loss="cauchy"), {"task_loss__gamma": 0.3}, {}),
        (fenchel.StructuredPredictor(output_kernel="gaussian"), {"output_kernel__gamma": 2.0}, {}),
        (fenchel.KernelAutoencoder(kernel="gaussian"), {"kernel__gamma": 2.0}, {}),
        (fenchel.QuantileFunctionRegressor("gaussian"), {"kernel__gamma": 2.0}, {}),
        (fenchel.OperatorKernelRegressor(solver="apgd"), {"solver__max_iter": 7}, {}),
    ],
)
def test_parameters_of_a_part_given_by_name(estimator, params, expected):
    model = clone(estimator).set_params(**params)
    values = model.get_params()
    for name, value in ({name: value for name, value in params.items() if name != "loss"} | expected).items():
        assert repr(values[name]) == repr(value)
    assert repr(clone(model)) == repr(model)


def test_a_short_name_stays_one_until_a_parameter_is_set():
    model = fenchel.OperatorKernelRegressor(loss="huber").set_params(lam=0.1)
    assert model.loss == "huber"
    assert clone(model).loss == "huber"


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_over_parameters_of_a_part_given_by_name(in_pipeline, rng):
    X = rng.normal(size=(30, 2))
    model = fenchel.OperatorKernelRegressor("gaussian", loss="huber")
    prefix = "operatorkernelregressor__" if in_pipeline else ""
    grid = {f"{prefix}loss__kappa": [0.1, 10.0], f"{prefix}kernel__gamma": [0.5, 50.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), model) if in_pipeline else model, grid, cv=3)
    search.fit(X, np.sin(X[:, 0]))
    assert search.best_params_[f"{prefix}kernel__gamma"] == 0.5
    assert model.loss == "huber"


def test_unknown_nested_parameters_and_names_are_named():
    with pytest.raises(ValueError, match="Invalid parameter 'kapa' for estimator Huber"):
        fenchel.OperatorKernelRegressor(loss="huber").set_params(loss__kapa=1)
    with pytest.raises(ValueError, match="Unknown loss 'hubert'"):
        fenchel.OperatorKernelRegressor(loss="hubert").set_params(loss__kappa=1)
    with pytest.raises(ValueError, match=r"'kernel__gamma' needs an instance .* of Separable\. Got the short name"):
        fenchel.OperatorKernelRegressor(Separable("gaussian")).set_params(kernel__kernel__gamma=1)


ESTIMATORS = [
    fenchel.OperatorKernelRegressor(),
    fenchel.OperatorKernelRegressorCV(lams=[1.0]),
    fenchel.FunctionalRegressor(),
    fenchel.StructuredPredictor(),
    fenchel.QuantileFunctionRegressor(),
    fenchel.CostSensitiveClassifier(),
    fenchel.LossTrickPredictor(),
    fenchel.KernelAutoencoder(1),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize(("bad", "text"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_the_first_input_that_is_not_finite_is_named(estimator, bad, text, rng):
    if bad != bad and get_tags(estimator).input_tags.allow_nan:
        pytest.skip("missing inputs become medians and indicators")  # tested in test_missing_inputs.py
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 2
    broken = X.copy()
    broken[7, 0] = broken[4, 2] = bad
    y = X if isinstance(estimator, fenchel.FunctionalRegressor) else y
    message = rf"X must be finite\. It contains {text}, the first at index \[4, 2\]"
    with pytest.raises(ValueError, match=message) as error:
        clone(estimator).fit(broken, y)
    assert "HistGradientBoosting" not in str(error.value)
    model = clone(estimator).fit(X, y)
    with pytest.raises(ValueError, match=message):
        getattr(model, "predict", getattr(model, "transform", None))(broken)
