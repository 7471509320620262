"""Operator-valued kernel machines with sparse and robust convex losses, each solved to a certified duality gap."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fenchel import (
        approximations,
        conformal,
        datasets,
        decoders,
        kernels,
        losses,
        metrics,
        operators,
        outliers,
        representations,
        solvers,
        task_losses,
        testing,
    )
    from fenchel.app.persistence import load, save
    from fenchel.conformal import ConformalPredictor, ConformalRegressor, PredictionBand, PredictionSet
    from fenchel.conformal.bounds import GeneralizationBound, generalization_bound
    from fenchel.conformal.excess_risk import ExcessRiskBound, excess_risk_bound
    from fenchel.estimators import (
        CostCurve,
        CostSensitiveClassifier,
        FieldRegressor,
        FunctionalRegressor,
        FunctionalRegressorCV,
        KernelAutoencoder,
        LearnedMetricRegressor,
        LossTrickPredictor,
        OperatorKernelRegressor,
        OperatorKernelRegressorCV,
        QuantileFunctionRegressor,
        QuantileFunctionRegressorCV,
        RegularizationPath,
        StructuredPredictor,
        StructuredPredictorCV,
        path,
    )
    from fenchel.outliers import OutlierReport, RobustRefit
    from fenchel.search.frequencies import FrequencySearch, learn_frequencies
    from fenchel.search.interruption import keeping_best_pair
    from fenchel.search.weights import KernelWeights, learn_kernel_weights

__version__ = "0.2.0"

__all__ = [
    "ConformalPredictor",
    "ConformalRegressor",
    "CostCurve",
    "CostSensitiveClassifier",
    "ExcessRiskBound",
    "FieldRegressor",
    "FrequencySearch",
    "FunctionalRegressor",
    "FunctionalRegressorCV",
    "GeneralizationBound",
    "KernelAutoencoder",
    "KernelWeights",
    "LearnedMetricRegressor",
    "LossTrickPredictor",
    "OperatorKernelRegressor",
    "OperatorKernelRegressorCV",
    "OutlierReport",
    "PredictionBand",
    "PredictionSet",
    "QuantileFunctionRegressor",
    "QuantileFunctionRegressorCV",
    "RegularizationPath",
    "RobustRefit",
    "StructuredPredictor",
    "StructuredPredictorCV",
    "__version__",
    "approximations",
    "conformal",
    "datasets",
    "decoders",
    "excess_risk_bound",
    "generalization_bound",
    "keeping_best_pair",
    "kernels",
    "learn_frequencies",
    "learn_kernel_weights",
    "load",
    "losses",
    "metrics",
    "operators",
    "outliers",
    "path",
    "representations",
    "save",
    "solvers",
    "task_losses",
    "testing",
]

_ROOMS = (
    "approximations",
    "conformal",
    "datasets",
    "decoders",
    "kernels",
    "losses",
    "metrics",
    "operators",
    "outliers",
    "representations",
    "solvers",
    "task_losses",
    "testing",
)
_HOMES = {  # the module of each name
    "ConformalPredictor": "conformal",
    "ConformalRegressor": "conformal",
    "CostCurve": "estimators",
    "CostSensitiveClassifier": "estimators",
    "ExcessRiskBound": "conformal.excess_risk",
    "FieldRegressor": "estimators",
    "FrequencySearch": "search.frequencies",
    "FunctionalRegressor": "estimators",
    "FunctionalRegressorCV": "estimators",
    "GeneralizationBound": "conformal.bounds",
    "KernelAutoencoder": "estimators",
    "KernelWeights": "search.weights",
    "LearnedMetricRegressor": "estimators",
    "LossTrickPredictor": "estimators",
    "OperatorKernelRegressor": "estimators",
    "OperatorKernelRegressorCV": "estimators",
    "OutlierReport": "outliers",
    "PredictionBand": "conformal",
    "PredictionSet": "conformal",
    "QuantileFunctionRegressor": "estimators",
    "QuantileFunctionRegressorCV": "estimators",
    "RegularizationPath": "estimators",
    "RobustRefit": "outliers",
    "StructuredPredictor": "estimators",
    "StructuredPredictorCV": "estimators",
    "excess_risk_bound": "conformal.excess_risk",
    "generalization_bound": "conformal.bounds",
    "keeping_best_pair": "search.interruption",
    "learn_frequencies": "search.frequencies",
    "learn_kernel_weights": "search.weights",
    "load": "app.persistence",
    "path": "estimators",
    "save": "app.persistence",
}


def __getattr__(name: str) -> object:
    # names are loaded on first access, which keeps `import fenchel` fast
    if name in _ROOMS:
        return import_module(f"fenchel.{name}")
    if name in _HOMES:
        return getattr(import_module(f"fenchel.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'fenchel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
