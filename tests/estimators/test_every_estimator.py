"""scikit-learn's checks and habits on every public estimator and every loss, without an exception."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import fenchel
from fenchel.kernels import Gaussian
from fenchel.losses import NormLog
from tests.parts import LOSSES

ONE = {"lams": [1e-2], "cv": 2}
PAIR = fenchel.OperatorKernelRegressor(Gaussian(0.5))
QUICK = {
    "ConformalRegressor": {"estimator": PAIR},
    "FunctionalRegressorCV": ONE | {"kernel": "gaussian"},
    "KernelAutoencoder": {"max_inner_iter": 5},
    "LearnedMetricRegressor": {
        "estimator": fenchel.OperatorKernelRegressorCV(losses=["square"], lams=[1e-3], cv=2),
        "max_rounds": 1,
        "cv": 2,
    },
    "LossTrickPredictor": {"lam": 1e-2},  # the splits of the weight check leave copies: the best lam is round-off
    "OperatorKernelRegressorCV": {"kernel": "gaussian", "lams": [1e-4], "cv": 2},
    "RobustRefit": {"estimator": Ridge(), "cv": 2},
    "QuantileFunctionRegressorCV": {"kernel": "gaussian", "lams": [1e-4], "cv": 2, "levels": 3},
    "StructuredPredictorCV": ONE,
}


def public():
    """Return the public classes of estimators."""
    named = (getattr(fenchel, name) for name in fenchel.__all__)
    return [one for one in named if isinstance(one, type) and issubclass(one, BaseEstimator)]


def quick(estimator):
    """Return an instance that is fitted in a moment; the defaults of a class without an entry."""
    return estimator(**QUICK.get(estimator.__name__, {}))


ALL = [quick(one) for one in public()]
OTHERS = [  # than the defaults; the core run shares the checks of a class among its instances
    *(
        # a check compares nine digits, which a gap of 1e-6 leaves open for a loss that is flat around its minimum
        fenchel.OperatorKernelRegressor(loss=loss, solver="row_newton" if isinstance(loss, NormLog) else "auto")
        for loss in {type(loss): type(loss).examples()[0] for loss in LOSSES}.values()
    ),
    fenchel.OperatorKernelRegressor(kernel="laplacian", operator="covariance", loss="huber"),
    fenchel.OperatorKernelRegressor(solver="apgd", loss="epsilon_ridge", lam=1e-2, tol=1e-13),
    fenchel.OperatorKernelRegressorCV(tol=1e-9),
    fenchel.OperatorKernelRegressorCV("gaussian", lams=[1e-3, 1e-1], losses=["square", "huber"], cv=2),
    fenchel.FunctionalRegressor(Gaussian(0.5), loss="huber", center="median", representation="eigen"),
    fenchel.FunctionalRegressor(Gaussian(0.5), loss="epsilon_ridge"),
    fenchel.FunctionalRegressorCV(tol=1e-10),
    fenchel.FunctionalRegressorCV(cv=2, representation="eigen", tol=1e-10),
    fenchel.FunctionalRegressorCV(None, cv=2, lams=[1e-2], losses=["square"], representation="eigen"),
    fenchel.LossTrickPredictor(Gaussian(0.5)),
    fenchel.LossTrickPredictor(Gaussian(0.5), "cauchy", lams=[1e-3, 1e-2], cv=2),
    fenchel.LossTrickPredictor(Gaussian(0.5), "absolute", surrogate="huber", output_kernel=Gaussian(0.5)),
    fenchel.LossTrickPredictor(Gaussian(0.5), "zero_one"),
    fenchel.StructuredPredictor(output_kernel="gaussian", loss="huber"),
    fenchel.StructuredPredictor(decoder="clamp"),
    fenchel.QuantileFunctionRegressor(levels=5, tol=1e-9),
    fenchel.QuantileFunctionRegressor(levels=3, non_crossing=True, lam=1e-4),
    fenchel.CostSensitiveClassifier(levels=5, tol=1e-9),
    fenchel.KernelAutoencoder(2, "linear", "linear", loss="huber", max_inner_iter=5),
    fenchel.KernelAutoencoder((3, 1), loss="epsilon_ridge", lam=1e-2, center=True, max_inner_iter=3),
    fenchel.FieldRegressor(fenchel.OperatorKernelRegressor(lam=1e-3)),
    fenchel.ConformalRegressor(fenchel.OperatorKernelRegressor(), modulation="std"),
    fenchel.ConformalRegressor(Ridge(), method="cv+"),
    fenchel.ConformalRegressor(fenchel.OperatorKernelRegressor(), method="jackknife+"),
    fenchel.ConformalPredictor(LogisticRegression()),
]
every = pytest.mark.parametrize("estimator", ALL, ids=lambda one: type(one).__name__)


def expected_to_fail(estimator):
    """Return the checks that an estimator fails, with the reason."""
    if not isinstance(estimator, fenchel.RobustRefit):
        return {}
    reason = "its cv is a number of folds, not a list; tests/outliers/test_weights.py compares weights with copies"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.apart("estimator", "check")
@parametrize_with_checks(ALL + OTHERS, expected_failed_checks=expected_to_fail)
def test_scikit_learn(estimator, check):
    check(estimator)


def drawn(estimator, n=24):
    """Return a small sample that the estimator takes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    if is_classifier(getattr(estimator, "estimator", None) or estimator):
        return X, np.where(X[:, 0] > 0, "b", "a")
    if is_outlier_detector(estimator) or not estimator.__sklearn_tags__().target_tags.required:
        return X, None
    y = np.sin(X[:, 0])
    return X, y if estimator.__sklearn_tags__().target_tags.single_output else y[:, None]


def output(estimator, X):
    """Return what a fitted estimator makes of X."""
    return estimator.predict(X) if hasattr(estimator, "predict") else estimator.transform(X)


@every
@pytest.mark.filterwarnings("ignore")
def test_the_life_of_an_estimator(estimator):
    """Absent attributes before ``fit``; copies; parameters after it; names of columns; a fit that fails."""
    X, y = drawn(estimator)
    model = clone(estimator)
    assert not hasattr(model, "dual_coef_") and not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    frame = pd.DataFrame(X, columns=["a", "b"])
    check_is_fitted(model.fit(frame, y))
    assert list(getattr(model, "feature_names_in_", "ab")) == ["a", "b"]
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 2
    wanted = output(model, X)
    for same in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model), FrozenEstimator(model)):
        np.testing.assert_array_equal(output(same, X), wanted)
    before = model.get_params(deep=False)
    assert {name: model.get_params()[name] for name in before}.keys() == before.keys()
    model.set_params(**before)
    with pytest.raises(ValueError, match=r"inf|finite"):
        model.fit(np.full_like(frame, np.inf), y)
    np.testing.assert_array_equal(output(model, X), wanted)
    assert "estimator" in model._repr_html_()
    fresh = clone(model)
    assert not [name for name in vars(fresh) if name.endswith("_")] and repr(fresh) == repr(estimator)


@pytest.mark.filterwarnings("ignore")
def test_grids_over_nested_parameters_and_processes():
    X, y = drawn(fenchel.OperatorKernelRegressor())
    model = fenchel.OperatorKernelRegressor(Gaussian(0.5))
    search = GridSearchCV(model, {"kernel__gamma": [0.1, 1.0], "lam": [1e-3, 1e-1]}, cv=2).fit(X, y)
    assert search.best_estimator_.kernel.gamma == search.best_params_["kernel__gamma"]
    assert model.kernel.gamma == 0.5
    np.testing.assert_array_equal(cross_val_score(model, X, y, cv=2, n_jobs=2), cross_val_score(model, X, y, cv=2))
