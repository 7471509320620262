"""scikit-learn's checks and habits on every public estimator, collected from the public names, without an exception."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import fenchel
from fenchel.kernels import Gaussian

ONE = {"lams": [1e-2], "cv": 2}
QUICK = {
    "FunctionalRegressorCV": ONE | {"kernel": "gaussian"},
    "KernelAutoencoder": {"max_inner_iter": 5},
    "LearnedMetricRegressor": {
        "estimator": fenchel.OperatorKernelRegressorCV(losses=["square"], cv=2, lams=[1e-2]),
        "max_rounds": 1,
        "cv": 2,
    },
    "OperatorKernelRegressorCV": ONE,
    "QuantileFunctionRegressorCV": ONE | {"kernel": "gaussian", "levels": 3},
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
every = pytest.mark.parametrize("estimator", ALL, ids=lambda one: type(one).__name__)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.apart("estimator", "check")
@parametrize_with_checks(ALL)
def test_scikit_learn(estimator, check):
    check(estimator)
