"""All leave-one-out models of a kernel machine at the cost of one fit."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from fenchel._array import Array, Inputs, Outputs, as_index, as_like, host, namespace
from fenchel._check import check_memory
from fenchel.data.containers import length
from fenchel.exceptions import IncompatibleError
from fenchel.kernels.scalar_kernel import BoundKernel
from fenchel.losses.loss import is_square
from fenchel.model.machine import KernelMachine, best_of, is_machine, sees_outputs, training_set_of
from fenchel.model.model import Model
from fenchel.model.training_set import TrainingSet
from fenchel.operators.eigenbasis import KroneckerBasis
from fenchel.operators.output import Output
from fenchel.problem import DualProblem
from fenchel.problem.derived import holding_out
from fenchel.problem.dual_problem import arithmetic
from fenchel.resample.held_out import ridge_filter
from fenchel.resample.residuals import Residuals
from fenchel.resample.surface import batch_size
from fenchel.solvers import ClosedForm, DouglasRachford

__all__: list[str] = []


class LeftOut(ABC):
    """The leave-one-out models, in coordinates."""

    @abstractmethod
    def images(self, gram: Any) -> np.ndarray:
        """Return the values of all models, without the output operator, at the rows of a Gram matrix, (n, m, p)."""


@dataclass(frozen=True, eq=False)
class RidgeLeftOut(LeftOut):
    r"""Leave-one-out of the square loss.

    With :math:`G = I + K / \lambda (n - 1)` and :math:`a = G^{-1} y`, the residual of sample i without it is
    :math:`r_i = a_i / (G^{-1})_{ii}`, and the duals of the others are :math:`a - G^{-1} e_i \, r_i`; with an output
    operator, one G for each of its eigenvalues, all in a common eigenbasis.
    """

    scale: float  # 1 / (lam (n - 1))
    basis: KroneckerBasis
    duals: Array  # (n, p)
    residuals: Array  # (n, p)

    @classmethod
    def of(cls, training_set: TrainingSet, lam: float) -> "RidgeLeftOut":
        """Return the models of a training set with complete outputs and equal weights."""
        basis = cast(KroneckerBasis, training_set.ridge.shared.factorize())
        scale = 1 / (lam * (training_set.n_samples - 1))
        ridge = partial(ridge_filter, scale)
        duals = basis.function(ridge)(training_set.targets.rows)
        return cls(scale, basis, duals, basis.left_out(ridge, duals))

    def images(self, gram: Any) -> np.ndarray:
        """Return the values of the model of all samples minus one column of G^-1 for each sample."""
        right = self.basis.right
        residuals = host(self.residuals if right is None else self.residuals @ right)
        duals = self.duals if right is None else self.duals @ right
        images = np.repeat(host(gram.matmul(duals))[None], len(residuals), axis=0)
        for k, weights in enumerate(self.basis.columns(gram, partial(ridge_filter, self.scale))):
            part = slice(None) if self.basis.right_values is None else slice(k, k + 1)
            images[:, :, part] -= host(weights).T[:, :, None] * residuals[:, None, part]
        images *= self.scale
        return images if right is None else np.asarray(images @ host(right).T)


@dataclass(frozen=True, eq=False)
class SolvedLeftOut(LeftOut):
    """Leave-one-out of any loss: one solve per sample, on a common eigenbasis."""

    coef: Array  # (n, n, p): sample, model, coordinate

    @classmethod
    def of(cls, training_set: TrainingSet, model: Model) -> "SolvedLeftOut":
        """Return the models of a training set, each solved from the duals of all samples."""
        problem, index = training_set.problem(model.spec.loss, model.spec.lam), training_set.sample.index
        (n, p), root = problem.targets.shape, problem.root
        check_memory(24 * n * n * p, f"The models without one of {n} samples", "Use method='cv+'")
        problem.shared.factorize()
        duals = as_like(host(model.duals.coef)[slice(None) if index is None else index], problem.targets)
        duals = duals if root is None else duals * root
        columns: list[Array] = []
        for first in range(0, n, batch_size(problem)):
            part = [holding_out(problem, np.array([i])) for i in range(first, min(first + batch_size(problem), n))]
            starts = [duals * single.mask for single in part]
            for single, solution in zip(part, DouglasRachford().solve_all(part, model.spec.tol, starts), strict=True):
                columns.append((solution.duals if root is None else solution.duals * root) * single.scale)
        coef, rows = namespace(problem.targets).stack(columns, axis=1), training_set.targets.row_scale
        return cls(coef if rows is None else coef * rows[:, None, :])

    def images(self, gram: Any) -> np.ndarray:
        """Return one product for all models."""
        return np.moveaxis(host(gram.matmul(self.coef)), 1, 0)

    def own(self, gram: Any) -> Array:
        """Return the value of each model at the sample that it leaves out, without the output operator, (n, p)."""
        rows = np.einsum("ij,jip->ip", host(gram.matrix), host(self.coef))
        return as_like(rows, self.coef)


@dataclass(frozen=True, eq=False)
class LeftOutExpansion:
    """The expansions of all leave-one-out models; rows of the first model come first."""

    kernel: BoundKernel
    X: Array
    left_out: LeftOut
    columns: np.ndarray | None = None  # columns of the samples in a Gram matrix of new inputs with all samples

    def coordinates(self, X: Array) -> Array:
        """Return the values at checked inputs, in coordinates."""
        images, output = self._images(X)
        return output.times(images)

    def evaluate(self, X: Array, matrices: Sequence[Array]) -> Array:
        """Return the values times the matrix (p, points) of the only term, which includes the output operator."""
        images = self._images(X)[0]
        return images @ as_like(matrices[0], images)

    def _images(self, X: Array) -> tuple[Array, Output]:
        xp = namespace(X)
        X = X if self.columns is None else xp.take(X, as_index(self.columns, X), axis=1)
        gram, output = self.kernel.gram(xp.astype(X, self.X.dtype, copy=False), self.X).terms[0]
        images = self.left_out.images(gram)
        return as_like(images.reshape(-1, images.shape[-1]), self.X), output


@dataclass(frozen=True, eq=False)
class LeftOutModels:
    """The models fitted without each sample of a fitted kernel machine."""

    machine: KernelMachine
    expansion: LeftOutExpansion
    residuals: Residuals  # of each sample, under the model without it; NaN for samples of weight zero
    place: np.ndarray  # the index of the model of each sample

    def predict(self, X: Inputs) -> np.ndarray:
        """Return the predictions of all models, (n, m, q)."""
        model, n = self.machine.model_, self.expansion.X.shape[0]
        values = host(model.codec.read(self.expansion, model.inputs.read(self.machine, X)))
        return values.reshape(n, length(X), -1)


def left_out_models(
    estimator: BaseEstimator, X: Inputs, y: Outputs, sample_weight: ArrayLike | None = None, only_closed: bool = False
) -> LeftOutModels:
    """Return the leave-one-out models of a fitted estimator from its training data.

    The square loss with complete outputs has a closed form. Other losses, curves with gaps and sample weights need one
    solve per sample, on a common eigenbasis. Everything that the estimator took from the sample (a bandwidth, a
    threshold, the centre and the scale of the outputs, the choices of a cross-validation) is that of the whole sample.
    With ``only_closed=True`` an ``IncompatibleError`` is raised if there is no closed form.
    """
    machine = _machine_of(estimator)
    model: Model = machine.model_
    training_set = training_set_of(machine, X, y, sample_weight)
    sample, targets, ridge = training_set.sample, training_set.targets, training_set.ridge
    if len(ridge.gram.terms) != 1 or ridge.gram.why_not_factorize is not None:
        raise IncompatibleError(
            "method='jackknife+' needs a kernel with one output operator and a Gram matrix in memory. "
            "Use method='cv+', or 'split' for a large sample."
        )
    sample.check_folds(np.arange(training_set.n_samples)[:, None])
    problem: DualProblem = training_set.problem(model.spec.loss, model.spec.lam)
    is_closed = sample.weights is None and ClosedForm().why_not(problem) is None
    if only_closed and not is_closed:
        raise IncompatibleError("Leave-one-out has a closed form for the square loss of complete outputs only.")
    with arithmetic(ridge):
        if is_closed:
            left_out: LeftOut = (ridge_models := RidgeLeftOut.of(training_set, model.spec.lam))
            predictions = targets.rows - ridge_models.residuals
        else:
            left_out = (solved := SolvedLeftOut.of(training_set, model))
            gram, output = training_set.kernel.gram(sample.X).terms[0]
            predictions = output.times(solved.own(gram))
    expansion = LeftOutExpansion(
        training_set.kernel, sample.X, left_out, sample.index if sample.inputs.is_pairwise else None
    )
    kept = np.arange(sample.n_given) if sample.index is None else sample.index
    place = np.zeros(sample.n_given, dtype=int)
    place[kept] = np.arange(len(kept))
    residuals = Residuals.decoded(training_set, predictions).among(kept, sample.n_given)
    return LeftOutModels(machine, expansion, residuals, place)


def _machine_of(estimator: BaseEstimator) -> KernelMachine:
    """Return the kernel machine of an estimator; raise if its leave-one-out models cannot be computed."""
    machine = best_of(estimator)
    if not is_machine(machine):
        raise IncompatibleError(
            f"method='jackknife+' needs a kernel machine of this library. Got {type(machine).__name__}. "
            "Use method='cv+'."
        )
    if sees_outputs(machine):
        raise IncompatibleError(
            "method='jackknife+' keeps the kernel, but this one was learned from the outputs, those left out included. "
            "Use method='cv+', or leaves=False in OperatorKernelRegressorCV."
        )
    return machine


def has_closed_form(estimator: BaseEstimator) -> bool:
    """Whether leave-one-out of a fitted estimator can have a closed form: a kernel machine with the square loss."""
    return is_machine(estimator) and is_square(estimator.model_.spec.loss)
