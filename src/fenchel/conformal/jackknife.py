"""All leave-one-out models of a kernel machine at the cost of one fit."""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from sklearn.base import clone

from fenchel._array import Array, as_like, host, is_numpy, namespace
from fenchel._check import check_memory
from fenchel.conformal.samples import Residuals, length, numbers, take
from fenchel.derived_problems import holding_out
from fenchel.estimators.fitted_dual import (
    FittedDual,
    as_fitted,
    fit_dual,
    warn_of_scales,
)
from fenchel.estimators.training_set import TrainingSet
from fenchel.exceptions import IncompatibleError
from fenchel.kernels.base import BoundKernel
from fenchel.operators import Operator, is_thin
from fenchel.operators.eigenbasis import KroneckerBasis
from fenchel.operators.output import Output
from fenchel.problem import DualProblem, arithmetic
from fenchel.solvers import ClosedForm, DouglasRachford
from fenchel.solvers.closed_form import is_square
from fenchel.surfaces import batch_size

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class LeftOutModels:
    """A fitted model, and the models fitted without each of its samples."""

    model: Any  # with an expansion that predicts for all leave-one-out models, one after the other
    residuals: Residuals  # of each sample, under the model without it
    place: np.ndarray  # the index of the model of each sample

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions of all models, (n, m, q)."""
        return numbers(self.model.predict(X)).reshape(int(self.place.max()) + 1, length(X), -1)


class LeftOut(ABC):
    """Coefficients of the leave-one-out models, for the kernel on the inputs alone, without the output operator."""

    @abstractmethod
    def images(self, gram: Any) -> np.ndarray:
        """Return the values of all models at the inputs of the rows of a Gram matrix, (n, m, p)."""

    @abstractmethod
    def own_images(self, gram: Any) -> np.ndarray:
        """Return the values of each model at the sample that it leaves out, (n, p)."""


@dataclass(frozen=True, eq=False)
class InverseLeftOut(LeftOut):
    r"""Leave-one-out of the square loss with the identity operator.

    With :math:`G = I + K / \lambda (n - 1)` and :math:`a = G^{-1} y`, the duals without sample i are
    :math:`a - G^{-1} e_i \, a_i / (G^{-1})_{ii}`.
    """

    scale: float  # 1 / (lam (n - 1))
    inverse: Array  # (n, n)
    duals: Array  # (n, p)

    @property
    def residuals(self) -> np.ndarray:
        """Leave-one-out residuals in coordinates."""
        return host(self.duals) / np.diag(host(self.inverse))[:, None]

    def images(self, gram: Any) -> np.ndarray:
        """Return the values of the model of all samples minus one column of G^-1 for each sample."""
        whole, columns = host(gram.matmul(self.duals)), host(gram.matmul(self.inverse))
        return np.asarray(self.scale * (whole - columns.T[:, :, None] * self.residuals[:, None, :]))

    def own_images(self, gram: Any) -> np.ndarray:
        """Return the diagonal of the images, by scale K G^-1 = I - G^-1."""
        own = 1 - np.diag(host(self.inverse))
        return np.asarray(self.scale * host(gram.matmul(self.duals)) - own[:, None] * self.residuals)


@dataclass(frozen=True, eq=False)
class EigenLeftOut(LeftOut):
    """The same with an output operator: one G for each of its eigenvalues, all in a common eigenbasis."""

    scale: float
    left: Array  # eigenvectors of the Gram matrix, (n, r)
    left_values: Array  # its eigenvalues, (r,)
    right: Array | None  # eigenvectors of the operator, (p, p); None: the columns themselves
    values: Array  # products of both sets of eigenvalues, (r, p)
    targets: Array  # (n, p)

    @property
    def filters(self) -> np.ndarray:
        """Eigenvalues of G^-1, (r, p)."""
        filters = 1 / (1 + self.scale * host(self.values))
        return np.broadcast_to(filters, (len(filters), self.targets.shape[1]))

    @property
    def turned(self) -> tuple[np.ndarray, np.ndarray]:
        """The duals and the leave-one-out residuals, with columns in the eigenbasis of the operator."""
        left, right = host(self.left), self.right
        targets = host(self.targets) if right is None else host(self.targets) @ host(right)
        changes = self.filters - 1
        duals = targets + left @ (changes * (left.T @ targets))
        return duals, duals / (1 + left**2 @ changes)

    def images(self, gram: Any) -> np.ndarray:
        """Return the values in the eigenbasis of the operator, rotated back."""
        duals, residuals = self.turned
        like, left, filters = self.targets, host(self.left), self.filters
        products = host(gram.matmul(self.left))  # K vanishes outside the basis
        images = np.repeat(host(gram.matmul(as_like(duals, like)))[None], len(left), axis=0)
        for column in range(duals.shape[1]):
            weights = left @ (products * filters[:, column]).T
            images[:, :, column] -= weights * residuals[:, column, None]
        return self._back(self.scale * images)

    def own_images(self, gram: Any) -> np.ndarray:
        """Return the diagonal of the images."""
        duals, residuals = self.turned
        values = host(self.left_values)[:, None]
        own = host(self.left) ** 2 @ (values * self.filters)
        return self._back(self.scale * (host(gram.matmul(as_like(duals, self.targets))) - own * residuals))

    def _back(self, images: np.ndarray) -> np.ndarray:
        return images if self.right is None else np.asarray(images @ host(self.right).T)


@dataclass(frozen=True, eq=False)
class SolvedLeftOut(LeftOut):
    """Leave-one-out of any loss: one solve per sample, on a common eigenbasis."""

    coef: Array  # (n, n, p): sample, model, coordinate

    def images(self, gram: Any) -> np.ndarray:
        """Return one product for all models."""
        return np.moveaxis(host(gram.matmul(self.coef)), 1, 0)

    def own_images(self, gram: Any) -> np.ndarray:
        """Return the diagonal of the images, one row of the Gram matrix at a time."""
        return np.asarray(np.einsum("ij,jip->ip", host(gram.matrix), host(self.coef)))


@dataclass(frozen=True, eq=False)
class LeftOutExpansion:
    """Expansion with which an estimator predicts for all leave-one-out models; rows of the first model come first."""

    kernel: BoundKernel
    X: Array
    left_out: LeftOut
    is_own: bool = False  # predict each sample by the model without it, ignoring the inputs

    def predict_coordinates(self, X: Array) -> Array:
        """Return the predictions in coordinates."""
        images, output = self._images(X)
        return output.times(images)

    def evaluate(self, X: Array, matrix: Array) -> Array:
        """Return the predictions multiplied by a matrix (p, points) that includes the output operator."""
        return self._images(X)[0] @ matrix

    def _images(self, X: Array) -> tuple[Array, Output]:
        X = namespace(X).astype(X, self.X.dtype, copy=False)
        gram, output = self.kernel.gram(self.X if self.is_own else X, self.X).terms[0]
        images = self.left_out.own_images(gram) if self.is_own else self.left_out.images(gram)
        return as_like(images.reshape(-1, images.shape[-1]), self.X), output


def fit_left_out(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, only_closed: bool = False, **fit_arguments: Any
) -> tuple[Any, LeftOutModels]:
    """Return the fitted estimator, and the leave-one-out models.

    The square loss with complete outputs has a closed form. Other losses, curves with gaps and sample weights need one
    solve per sample, on a common eigenbasis. Everything that the estimator takes from the sample (a bandwidth, a
    threshold, the centre and the scale of the outputs, the choices of a cross-validation) is taken from the whole
    sample. With ``only_closed=True`` an ``IncompatibleError`` is raised if there is no closed form.
    """
    n = length(X)
    weighted = fit_arguments if sample_weight is None else {"sample_weight": sample_weight, **fit_arguments}
    search = None if _is_machine(estimator) else estimator.fit(X, y, **weighted)
    machine = estimator if search is None else clone(getattr(search, "best_estimator_", search))
    if not _is_machine(machine):
        raise IncompatibleError(
            f"method='jackknife+' needs a kernel machine of this library. Got {type(machine).__name__}. "
            "Use method='cv+'."
        )
    settings = machine._settings()
    encoded = machine._encode(X, y, sample_weight, settings, double=True, **fit_arguments)
    with arithmetic(encoded.training_set.ridge):
        fitted, left_out = _solved(encoded.training_set, settings, only_closed)
    warn_of_scales(fitted)
    machine._expose(encoded, fitted)
    training_set, stacked, own = encoded.training_set, copy(machine), copy(machine)
    stacked._expansion = LeftOutExpansion(training_set.kernel, training_set.X, left_out)
    own._expansion = LeftOutExpansion(training_set.kernel, training_set.X, left_out, is_own=True)
    if hasattr(machine, "_output_names"):
        stacked._output_names = {}  # its curves are those of all left-out models, not one for each name of an input
    kept = np.arange(n) if training_set.index is None else training_set.index
    residuals, place = Residuals.of(own, X, take(y, kept)), np.zeros(n, dtype=int)
    values = np.full((n, residuals.values.shape[1]), np.nan)  # samples of weight zero have no residual
    values[kept], place[kept] = residuals.values, np.arange(len(kept))
    models = LeftOutModels(stacked, replace(residuals, values=values), place)
    return (machine if search is None else search), models


def has_closed_form(estimator: Any) -> bool:
    """Whether leave-one-out of an estimator can have a closed form: a kernel machine with the square loss."""
    if not _is_machine(estimator):
        return False
    loss = estimator._settings().loss
    return not loss.is_relative and is_square(loss)


def _is_machine(estimator: Any) -> bool:
    """Whether an estimator solves a single dual problem and makes point predictions."""
    has_parts = all(hasattr(estimator, name) for name in ("_settings", "_encode", "_expose"))
    return has_parts and not hasattr(estimator, "predict_interval")


def _solved(training_set: TrainingSet, settings: Any, only_closed: bool) -> tuple[FittedDual, LeftOut]:
    """Return the fit of the whole sample, and the coefficients of the leave-one-out models."""
    loss, lam, tol = settings.loss, float(settings.lam), settings.tol
    n = training_set.n_samples
    ridge = training_set.ridge
    if len(ridge.gram.terms) != 1 or ridge.gram.why_not_factorize is not None:
        raise IncompatibleError(
            "method='jackknife+' needs a kernel with one output operator and a Gram matrix in memory. "
            "Use method='cv+', or 'split' for a large sample."
        )
    training_set.check_folds(np.arange(n)[:, None])
    scale = 1 / (lam * (n - 1))
    is_plain = not loss.is_relative and training_set.weights is None
    is_closed = is_plain and ClosedForm().why_not(training_set.problem(loss, lam)) is None
    if only_closed and not is_closed:
        raise IncompatibleError("Leave-one-out has a closed form for the square loss of complete outputs only.")
    if is_closed and ridge.gram.n_outputs is None and not is_thin(ridge.gram):
        inverse = _inverse(ridge.gram, scale, training_set.targets)
        fitted = fit_dual(training_set, loss, lam, settings.solver, tol)
        return fitted, InverseLeftOut(scale, inverse, inverse @ training_set.targets)
    if is_closed:
        problem, basis = training_set.problem(loss, lam), cast(KroneckerBasis, ridge.shared.factorize())
        eigenbasis = basis.left, basis.left_values, basis.right, basis.values
        solve = basis.function(partial(_ridge_filter, problem.scale))
        solution = ClosedForm().polished(problem, solve(problem.targets), tol, solve)
        return as_fitted(training_set, problem, solution, tol), EigenLeftOut(scale, *eigenbasis, training_set.targets)
    fitted = fit_dual(training_set, loss, lam, settings.solver, tol)
    return fitted, SolvedLeftOut(_solved_coefficients(training_set, fitted, tol))


def _inverse(gram: Operator, scale: float, like: Array) -> Array:
    """Return (I + scale K)^-1; for a dense matrix from its Cholesky factor, in a third of the time of n solves."""
    n = gram.shape[0]
    if not is_numpy(like):
        return gram.solver(scale, 1.0)(as_like(np.eye(n), like))
    factor, _ = dpotrf(scale * gram.terms[0][0].matrix + np.eye(n), lower=1)
    inverse, _ = dpotri(factor, lower=1)
    lower = np.tril(inverse)
    return lower + np.tril(lower, -1).T


def _solved_coefficients(training_set: TrainingSet, fitted: FittedDual, tol: float) -> Array:
    """Return the coefficients of the leave-one-out models, each solved from the duals of all samples, (n, n, p)."""
    problem: DualProblem = fitted.problem
    (n, p), root = problem.targets.shape, problem.root
    check_memory(24 * n * n * p, f"The models without one of {n} samples", "Use method='cv+'")
    problem.shared.factorize()
    problems = [holding_out(problem, np.array([i])) for i in range(n)]
    columns: list[Array] = []
    for first in range(0, n, batch_size(problem)):
        part = problems[first : first + batch_size(problem)]
        starts = [fitted.solution.duals * single.mask for single in part]
        for single, solution in zip(part, DouglasRachford().solve_all(part, tol, starts), strict=True):
            columns.append((solution.duals if root is None else solution.duals * root) * single.scale)
    coef = namespace(problem.targets).stack(columns, axis=1)
    rows = training_set.representation.row_scale_
    return coef if rows is None else coef * rows[:, None, :]


def _ridge_filter(scale: float, values: Array) -> Array:
    return 1 / (1 + scale * values)
