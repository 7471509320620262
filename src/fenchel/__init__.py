"""Operator-valued kernel machines with sparse and robust convex losses, each solved to a certified duality gap."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fenchel import datasets, decoders, kernels, losses, metrics, representations, solvers, task_losses, testing
    from fenchel.bounds import GeneralizationBound, generalization_bound
    from fenchel.conformal import ConformalPredictor, ConformalRegressor, PredictionBand, PredictionSet
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
    from fenchel.frequency_search import FrequencySearch, learn_frequencies
    from fenchel.outliers import OutlierReport, RobustRefit
    from fenchel.persistence import load, save
    from fenchel.weight_search import KernelWeights, learn_kernel_weights

__version__ = "0.2.0"

__all__ = [
    "ConformalPredictor",
    "ConformalRegressor",
    "CostCurve",
    "CostSensitiveClassifier",
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
    "datasets",
    "decoders",
    "generalization_bound",
    "kernels",
    "learn_frequencies",
    "learn_kernel_weights",
    "load",
    "losses",
    "metrics",
    "path",
    "representations",
    "save",
    "solvers",
    "task_losses",
    "testing",
]

_ROOMS = (
    "datasets",
    "decoders",
    "kernels",
    "losses",
    "metrics",
    "representations",
    "solvers",
    "task_losses",
    "testing",
)


def __getattr__(name: str) -> Any:
    # names are loaded on first access, which keeps `import fenchel` fast
    if name in _ROOMS:
        return import_module(f"fenchel.{name}")
    if name in ("load", "save"):
        return getattr(import_module("fenchel.persistence"), name)
    if name in ("FrequencySearch", "learn_frequencies"):
        return getattr(import_module("fenchel.frequency_search"), name)
    if name in ("KernelWeights", "learn_kernel_weights"):
        return getattr(import_module("fenchel.weight_search"), name)
    if name in ("GeneralizationBound", "generalization_bound"):
        return getattr(import_module("fenchel.bounds"), name)
    if name in ("ConformalPredictor", "ConformalRegressor", "PredictionBand", "PredictionSet"):
        return getattr(import_module("fenchel.conformal"), name)
    if name in ("OutlierReport", "RobustRefit"):
        return getattr(import_module("fenchel.outliers"), name)
    if name in __all__:
        return getattr(import_module("fenchel.estimators"), name)
    raise AttributeError(f"module 'fenchel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
