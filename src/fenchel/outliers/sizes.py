"""Expected size of the residuals at each input."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import LeaveOneGroupOut

from fenchel._array import Inputs, host, namespace
from fenchel._statistics import weighted_median
from fenchel.estimators import OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.kernels.separable import BoundTerms
from fenchel.model.machine import best_of, is_machine
from fenchel.outliers.held_out_residuals import MOST_SAMPLES, held_out_residuals
from fenchel.resample.residuals import Residuals

__all__ = ["Sizes"]

_LEAST = 0.1  # smallest expected size, relative to the median


@dataclass(frozen=True, eq=False)
class Sizes:
    """Model of the log size of residuals, with the kernel of the model that they come from.

    Without it, samples at inputs where the model is inaccurate would be taken for outliers, and outliers at inputs
    where it is accurate would be missed.
    """

    machine: BaseEstimator
    X: Inputs
    model: BaseEstimator
    held_out: np.ndarray  # (n,): expected size of the residuals of each sample, predicted without it
    groups: np.ndarray | None = None  # (n,): labels of samples that are left out together
    weights: np.ndarray | None = None  # (n,): those of the fit of the machine

    @classmethod
    def of(
        cls,
        model: BaseEstimator,
        X: Inputs,
        residuals: Residuals,
        groups: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> "Sizes | None":
        """Fit the model of the sizes of residuals; ``None`` for a regressor whose kernel is not known.

        Groups are left out together: otherwise wrong replicates would make each other's large residuals expected.
        """
        machine = best_of(model)
        if not is_machine(machine) or len(residuals.values) > MOST_SAMPLES:
            return None
        X = _read(machine, X)
        gram = _gram(machine, X, X)
        if gram is None:
            return None
        sizes = np.sqrt(np.nanmean(residuals.values**2, axis=1))
        logs = _logs(sizes, weights)
        cv = "loo" if groups is None else LeaveOneGroupOut()
        search = OperatorKernelRegressorCV("precomputed", losses=["square"], cv=cv)
        fitted = search.fit(gram, logs, sample_weight=weights, groups=groups)
        held_out = logs - held_out_residuals(fitted, gram, logs, None, groups, weights).values[:, 0]
        return cls(machine, X, fitted, _size(held_out), groups, weights)

    def residuals_of(self, noise: np.ndarray) -> np.ndarray:
        """Return the residuals of several samples of noise (count, n, q), each divided by its expected size.

        All samples are held out of a model with the square loss, with the kernel and the lam of the model; lam of the
        model of the sizes is that of its own sample, too.
        """
        gram, (count, n, q) = _gram(self.machine, self.X, self.X), noise.shape
        columns = np.moveaxis(noise, 0, 1).reshape(n, -1)
        together = self.groups, self.weights
        model = OperatorKernelRegressor("precomputed", lam=self.machine.model_.spec.lam)
        model = model.fit(gram, columns, sample_weight=self.weights)
        rows = held_out_residuals(model, gram, columns, None, *together).values.reshape(n, count, q)
        logs = _logs(np.sqrt(np.mean(rows**2, axis=2)), self.weights)
        again = clone(best_of(self.model)).fit(gram, logs, sample_weight=self.weights)
        expected = _size(logs - held_out_residuals(again, gram, logs, None, *together).values)
        return np.moveaxis(rows / expected[:, :, None], 1, 0)

    def at(self, X: Inputs) -> np.ndarray:
        """Return the expected sizes at new inputs."""
        gram = _gram(self.machine, _read(self.machine, X), self.X)
        return _size(host(self.model.predict(gram)))


def _read(machine: BaseEstimator, X: Inputs) -> Any:
    """Return checked inputs; a Gram matrix is that of all samples, of which a model may know a part."""
    return X if machine.model_.inputs.is_pairwise else machine.model_.inputs.read(machine, X)


def _gram(machine: BaseEstimator, X: Inputs, Z: Inputs) -> np.ndarray | None:
    """Return the Gram matrix of the first kernel of a model, in float64."""
    model = machine.model_
    if model.inputs.is_pairwise:
        return np.asarray(host(X), dtype=float)
    kernel = model.expansion.kernel
    return host(kernel.terms[0][0](_double(X), _double(Z))) if isinstance(kernel, BoundTerms) else None


def _double(X: Inputs) -> Any:
    """Return inputs in float64: a matrix from float32 inputs is indefinite by more than the round-off of float64."""
    return namespace(X).astype(X, namespace(X).float64, copy=False)


def _logs(sizes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the logarithms of sizes (n,) or (n, k) relative to their weighted medians."""
    medians = weighted_median(sizes, np.ones(len(sizes)) if weights is None else weights)
    return np.asarray(np.log(np.maximum(sizes / np.where(medians > 0, medians, 1.0), _LEAST)))


def _size(logs: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(np.clip(logs, np.log(_LEAST), -np.log(_LEAST))))
