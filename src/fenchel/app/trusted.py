"""Names of the objects that a saved model may contain besides those that skops trusts."""

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from inspect import isclass, signature
from types import ModuleType

import numpy as np
from scipy.sparse import csr_array
from sklearn import gaussian_process, model_selection
from sklearn import metrics as sklearn_metrics
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector
from sklearn.feature_selection import (
    chi2,
    f_classif,
    f_regression,
    mutual_info_classif,
    mutual_info_regression,
    r_regression,
)
from sklearn.metrics.pairwise import kernel_metrics
from sklearn.utils import Bunch

from fenchel import estimators, metrics

__all__ = ["name_of", "trusted_names"]

_ROOMS = (
    "app.tables",
    "approximations",
    "chunks",
    "conformal",
    "decoders",
    "estimators",
    "kernels",
    "losses",
    "metrics",
    "model",
    "outliers",
    "representations",
    "resample",
    "search",
    "solvers",
    "task_losses",
)
_SCORE_ENDINGS = ("_score", "_error", "_loss", "_deviance", "_corrcoef")
_FEATURE_SCORES = (chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression, r_regression)
_HELPERS = {
    "fenchel.data.containers.vectors",
    "fenchel.operators.eigenbasis.KroneckerBasis",
    "fenchel.representations.kernel_outputs._Pivots",
    "fenchel.task_losses.task_loss.TaskSpace",
}


@cache
def trusted_names() -> frozenset[str]:
    """Return the full names of the objects that a model may contain besides those that skops trusts.

    These are single names of classes that hold parameters and numbers and of functions of two samples: trusting a whole
    module would let a file call any function that the module imports.
    """
    names = set(_HELPERS)
    for room in (import_module(f"fenchel.{room}") for room in _ROOMS):
        for module in _modules(room):
            own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
            classes = [value for value in own if isclass(value)]
            names |= {name_of(one) for one in classes if issubclass(one, BaseEstimator) or is_dataclass(one)}
    names |= {name_of(getattr(metrics, name)) for name in metrics.__all__}
    names |= {name_of(function) for function in kernel_metrics().values()}
    names |= {name_of(type(scorer)) for scorer in _sklearn_scorers()}
    names |= {name_of(function) for function in (*_sklearn_scores(), *_FEATURE_SCORES)}
    names.add(name_of(csr_array))  # for sparse inputs
    names.add(name_of(np.dtype))  # stored by SimpleImputer
    names.add(name_of(Bunch))  # named estimators of a stack
    names |= {name_of(one) for one in (make_column_selector, object, np.number)}  # columns by their dtype
    for module in (gaussian_process.kernels, model_selection):
        names |= {name_of(one) for one in vars(module).values() if isclass(one) and _is_sklearn(one)}
    return frozenset(names)


def _sklearn_scorers() -> list[object]:
    """Return the scorer that a search makes from a name, and the one for the estimator's own score."""
    return [sklearn_metrics.get_scorer("r2"), sklearn_metrics.check_scoring(estimators.OperatorKernelRegressor())]


def _sklearn_scores() -> list[Callable[..., object]]:
    """Return scikit-learn's metrics of true and predicted outputs that return one number."""
    functions = [getattr(sklearn_metrics, name) for name in sklearn_metrics.__all__ if name.endswith(_SCORE_ENDINGS)]
    return [function for function in functions if next(iter(signature(function).parameters)) == "y_true"]


def _modules(room: ModuleType) -> Iterator[ModuleType]:
    """Yield a module and, if it is a package, its submodules."""
    yield room
    for info in pkgutil.walk_packages(getattr(room, "__path__", []), f"{room.__name__}."):
        if not info.name.endswith("._triton"):  # is imported on machines with CUDA only
            yield import_module(info.name)


def _is_sklearn(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "sklearn"


def name_of(value: type | Callable[..., object]) -> str:
    """Return the full name of a class or a function."""
    return f"{value.__module__}.{value.__name__}"
