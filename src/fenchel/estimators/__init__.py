"""Estimators with scikit-learn's interface, fitted through their dual problems."""

from importlib import import_module
from typing import Any

from fenchel.estimators import (
    autoencoder,
    cost_sensitive,
    field_regressor,
    functional,
    functional_cv,
    learned_metric,
    loss_trick,
    quantile,
    quantile_cv,
    regression,
    regression_cv,
    structured,
    structured_cv,
)
from fenchel.estimators.autoencoder import *  # noqa: F403
from fenchel.estimators.cost_sensitive import *  # noqa: F403
from fenchel.estimators.field_regressor import *  # noqa: F403
from fenchel.estimators.functional import *  # noqa: F403
from fenchel.estimators.functional_cv import *  # noqa: F403
from fenchel.estimators.learned_metric import *  # noqa: F403
from fenchel.estimators.loss_trick import *  # noqa: F403
from fenchel.estimators.quantile import *  # noqa: F403
from fenchel.estimators.quantile_cv import *  # noqa: F403
from fenchel.estimators.regression import *  # noqa: F403
from fenchel.estimators.regression_cv import *  # noqa: F403
from fenchel.estimators.structured import *  # noqa: F403
from fenchel.estimators.structured_cv import *  # noqa: F403
from fenchel.search import path as regularization_path
from fenchel.search.path import *  # noqa: F403

__all__ = [
    *autoencoder.__all__,
    *cost_sensitive.__all__,
    *field_regressor.__all__,
    *functional.__all__,
    *functional_cv.__all__,
    *learned_metric.__all__,
    *loss_trick.__all__,
    *quantile.__all__,
    *quantile_cv.__all__,
    *regression.__all__,
    *regression_cv.__all__,
    *regularization_path.__all__,
    *structured.__all__,
    *structured_cv.__all__,
]


def __getattr__(name: str) -> Any:
    if name == "TableRegressor":  # moved; this path goes with the next release
        return import_module("fenchel.app.tables").TableRegressor
    raise AttributeError(f"module 'fenchel.estimators' has no attribute {name!r}")
