"""What the regressors share: a checked sample, its dual problem, the solve, predictions in coordinates."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from fenchel import approximations as approximation_room
from fenchel._array import Array, as_index, as_like, device, host, is_numpy, is_single, namespace
from fenchel._check import check_array, check_finite, check_memory
from fenchel.approximations import Approximation
from fenchel.estimators.base import CertifiedMixin, part_of
from fenchel.exceptions import IncompatibleError, IndefiniteError
from fenchel.feasibility import loss_radius, pulled_inside, round_off
from fenchel.kernels import OperatorKernel
from fenchel.kernels.separable import BoundTerms
from fenchel.losses import Loss
from fenchel.operators import Thin, is_thin, kronecker, scaled
from fenchel.problem import DualProblem, arithmetic
from fenchel.representations import Representation
from fenchel.solvers import APGD, Solution, Status

__all__ = [
    "KernelRegressorMixin",
    "Sample",
    "checked_inputs",
    "is_host",
    "is_regular",
    "new_inputs",
    "sample_weights",
    "validated",
]

_MARGINS = (
    1e-2,
    1,
    1e2,
    1e4,
)  # how far inside the domain of a loss predictions are pulled, one attempt after the other
_FEATURES = 500  # of an approximation that an error suggests
_ITERATES = 24  # arrays of the shape of the targets that a solver holds at once
_BLOCK_BYTES = 2**28  # Gram blocks of a prediction stay below 256 MiB


@dataclass(frozen=True)
class Sample:
    """A checked training sample: its dual problem, and what turns duals into predictions."""

    problem: DualProblem
    X: Array
    bound: Any
    representation: Representation
    is_pairwise: bool
    weights: Array | None
    kept: np.ndarray | None  # indices of the samples with a positive weight, None for all
    n: int
    extra: Any = None  # what else an estimator needs to predict


class KernelRegressorMixin(CertifiedMixin, ABC):
    """Encode, build the dual problem, solve, keep of the solution what prediction needs."""

    lam: float
    kernel: Any
    approximation: Any = None
    _is_swept = False  # whether a cross-validation solves the problem, on a factorisation whatever the solver

    @abstractmethod
    def _sample(
        self,
        X: Any,
        y: Any,
        loss: Loss,
        double: bool = False,
        sample_weight: Array | None = None,
        grid: Array | None = None,
    ) -> Sample:
        """Return the dual problem of a sample; in float64 with ``double``, else in the dtype of the data."""

    def _fit(self, X: Any, y: Any, sample_weight: Array | None = None, grid: Array | None = None) -> Self:
        """Fit in the dtype of the data; where that is too short for the gap, refine in float64."""
        loss, solver = self._parts()
        sample = self._sample(X, y, loss, False, sample_weight, grid)
        solution = self._certified_by_predict(sample, self._solve(sample.problem, solver))
        if solution.status is not Status.CONVERGED and is_single(sample.problem.targets):
            with suppress(IndefiniteError):  # a matrix of float32 numbers holds no more digits
                sample = self._sample(X, y, loss, True, sample_weight, grid)
                start = _usable_start(solution.duals, sample.problem.targets)
                solution = self._certified_by_predict(sample, self._solve(sample.problem, solver, start))
        return self._fitted(sample, solution, warn=True)

    def _prepared(
        self,
        X: Array,
        y: Any,
        sample_weight: Array | None,
        loss: Loss,
        kernel: OperatorKernel,
        representation: Representation,
        extra: Any = None,
        **more: Any,
    ) -> Sample:
        """Return the dual problem of checked data."""
        xp, n = namespace(X), X.shape[0]
        if loss.pointwise and not representation.has_points:
            raise IncompatibleError(
                f"{loss!r} looks at single values, and {type(representation).__name__} has none. Use p=2, or for "
                "curves representation='spline'."
            )
        weights, kept = sample_weights(sample_weight, X)
        if kernel.is_pairwise and X.shape[1] != n:
            raise ValueError(f"X must be a square Gram matrix with a precomputed kernel. Got shape {tuple(X.shape)}.")
        if kept is not None:
            index = as_index(kept, X)
            X, y = xp.take(X, index, axis=0), representation.take(y, index)
            X = xp.take(X, index, axis=1) if kernel.is_pairwise else X
        self._check_fits(X, kernel)
        targets = representation.fit(y, weights, **more).targets_
        self._check_fits(X, kernel, targets.shape[1])
        bound = kernel.bind(X, representation)
        if self.approximation is not None:
            bound = self._approximated(bound, X, weights)
        gram = bound.gram(X)
        if representation.row_scale_ is not None:
            gram = scaled(gram, representation.row_scale_)
        problem = DualProblem.build(
            gram, targets, loss, self.lam, weights, representation.point_scale, representation.observed_
        )
        return Sample(problem, X, bound, representation, kernel.is_pairwise, weights, kept, n, extra)

    def _approximation(self) -> Approximation:
        """Return the approximation as a checked instance."""
        part: Approximation = part_of(self.approximation, approximation_room, "approximation", Approximation)
        return part.validate()

    def _approximated(self, bound: Any, X: Array, weights: Array | None) -> BoundTerms:
        """Return the kernel with its scalar parts approximated."""
        approximation = self._approximation()
        if not isinstance(bound, BoundTerms) or any(kernel.is_pairwise for kernel, _ in bound.terms):
            raise IncompatibleError(
                f"{approximation!r} approximates scalar kernels on points. Got {self.kernel!r}. Use approximation=None."
            )
        return bound.mapped(lambda kernel: approximation.approximate(kernel, X, weights))

    def _check_fits(self, X: Array, kernel: OperatorKernel, n_outputs: int = 1) -> None:
        """Raise before the work starts if the Gram matrix, its factorisation and the iterates do not fit in memory."""
        if not str(device(X)).startswith("cpu"):
            return
        n, width, (_, solver) = X.shape[0], kernel.width(X), self._parts()
        if self.approximation is not None:
            width = min(width, self._approximation().n_components)

        def needed(width: int, copies: float) -> int:
            return int(8 * n * (width * copies + n_outputs * _ITERATES))

        lighter, parameters = {}, self.get_params(deep=False)  # type: ignore[attr-defined]
        if "approximation" in parameters and not kernel.is_pairwise:
            lighter[f"approximation=Nystrom({_FEATURES})"] = needed(min(width, _FEATURES), solver.gram_copies)
        if "solver" in parameters and not self._is_swept:
            lighter["solver='apgd'"] = needed(width, APGD.gram_copies)
        what = f"A fit of {n} samples" + (f" and {n_outputs} outputs" if n_outputs > 1 else "")
        check_memory(needed(width, solver.gram_copies), what, "Fit on a part of the sample", lighter)

    def _fitted(self, sample: Sample, solution: Solution, warn: bool = False) -> Self:
        """Set what an estimator has beside the model of a solution, which ``_certified_by_predict`` has kept."""
        self._finish(sample)
        if sample.kept is not None:
            self._restore(sample.n, sample.kept)
        if warn:
            self._warn_unless_converged(solution)
        return self

    def _keep(self, sample: Sample) -> None:
        """Set the coefficients of the support, and what else ``predict`` reads."""
        xp, index = namespace(sample.X), as_index(self.support_, sample.X)
        duals = self.dual_coef_ if sample.weights is None else self.dual_coef_ * sample.weights[:, None]
        if sample.representation.row_scale_ is not None:
            duals = duals * sample.representation.row_scale_
        self._bound, self._is_pairwise = sample.bound, sample.is_pairwise
        self.X_fit_ = xp.take(sample.X, index, axis=0)
        self._set_coefficients(xp.take(duals, index, axis=0) / (self.lam * sample.problem.total), sample)
        self.certificate_ = "exact" if self.approximation is None else "approximate"
        self.representation_ = sample.representation

    def _set_coefficients(self, coef: Array, sample: Sample) -> None:
        """Set the coefficients of the support; features make D rows of them, whatever the size of the sample."""
        self._coef, self._primal = coef, None
        if is_thin(sample.problem.gram) and coef.shape[0] > 0:
            self._primal = sample.bound.terms[0][0].features(self.X_fit_).T @ coef

    def _certified_by_predict(self, sample: Sample, solution: Solution) -> Solution:
        """Keep the model of a solution; return it with the certificate of ``predict`` where round-off matters.

        A solver computes predictions from its own factorisation. They agree with those of ``predict`` to the round-off
        of K a / (lam n), which is large where lam is tiny or the kernel is large.
        """
        self._keep(sample)
        with arithmetic(sample.problem):
            return self._recertified(sample, solution)

    def _recertified(self, sample: Sample, solution: Solution) -> Solution:
        """Return the solution as ``_certified_by_predict`` does, for a model that is kept."""
        problem = sample.problem
        errors = round_off(problem, solution.duals, solution.predictions)
        if errors <= 0.1 * self.tol * abs(solution.certificate.primal) and not sample.is_pairwise:
            return solution
        for margin in (*_MARGINS, None):
            predictions = self._training_predictions(sample)
            certificate = problem.certificate(solution.duals, predictions)
            if margin is None or math.isfinite(certificate.primal) or math.isinf(loss_radius(problem)):
                break
            duals, _ = pulled_inside(problem, solution.duals, predictions, margin)
            solution = replace(solution, duals=duals)
            self._certify(problem, solution)
            self._keep(sample)
        status = solution.status
        if abs(certificate.relative_gap) <= self.tol:
            status = Status.CONVERGED
        elif status is Status.CONVERGED:
            status = Status.STALLED
        solution = replace(solution, predictions=predictions, certificate=certificate, status=status)
        self._certify(problem, solution)
        return solution

    def _training_predictions(self, sample: Sample) -> Array:
        """Return what ``predict`` gives for the training inputs, in the scaling of the dual problem."""
        rows = self._coordinates(sample.X)
        for factor in (sample.representation.row_scale_, sample.problem.root):
            rows = rows if factor is None else rows * factor
        return rows

    def _finish(self, sample: Sample) -> None:
        """Set what an estimator has beside the common attributes."""

    def _blocks(self, X: Array) -> Iterator[Array]:
        """Yield checked inputs in blocks whose Gram matrices with the support are small, in the dtype of the model."""
        xp = namespace(X)
        X = xp.astype(X, self._coef.dtype, copy=False)
        if self._is_pairwise:
            X = xp.take(X, as_index(self.support_, X), axis=1)
        width = (self._coef if self._primal is None else self._primal).shape[0]
        rows = max(1, _BLOCK_BYTES // (8 * max(1, width)))
        for first in range(0, X.shape[0], rows):
            yield X[first : min(first + rows, X.shape[0]), ...]

    def _coordinates(self, X: Array) -> Array:
        """Return the predictions for checked inputs, in coordinates."""
        found = [self._predict_block(block) for block in self._blocks(X)]
        return found[0] if len(found) == 1 else namespace(X).concat(found)

    def _evaluated(self, X: Array, matrix: Array) -> Array:
        """Return the values of the predictions that a matrix (p, points) takes from their coordinates' duals."""
        xp, parts = namespace(X), []
        for block in self._blocks(X):
            if self._coef.shape[0] == 0:
                parts.append(xp.zeros((block.shape[0], matrix.shape[1]), dtype=block.dtype, device=device(block)))
                continue
            gram, coef = self._gram(block)
            parts.append(gram.terms[0][0].matmul(as_like(coef, block) @ as_like(matrix, block)))
        return parts[0] if len(parts) == 1 else xp.concat(parts)

    def _predict_block(self, X: Array) -> Array:
        if self._coef.shape[0] == 0:
            xp = namespace(X)
            return xp.zeros((X.shape[0], self._coef.shape[1]), dtype=X.dtype, device=device(X))
        gram, coef = self._gram(X)
        return gram.matmul(as_like(coef, X))

    def _gram(self, X: Array) -> tuple[Any, Array]:
        """Return the Gram operator between checked inputs and the model, and the coefficients that it acts on."""
        if self._primal is None:
            return self._bound.gram(X, self.X_fit_), self._coef
        kernel, operator = self._bound.terms[0]
        eye = namespace(X).eye(self._primal.shape[0], dtype=X.dtype, device=device(X))
        return kronecker(Thin(kernel.features(X), eye), operator), self._primal

    def _restore(self, n: int, kept: np.ndarray) -> None:
        """Put the samples of weight zero back: they have null duals."""
        place = np.full(n, len(kept))  # where each sample's row is; the last row is one of zeros
        place[kept] = np.arange(len(kept))
        self.support_ = kept[self.support_]
        self.sparsity_ = 1 - len(self.support_) / n
        for name in ("dual_coef_", "outlier_score_", "point_outlier_score_"):
            if hasattr(self, name):
                setattr(self, name, _padded_take(getattr(self, name), place))


def is_host(X: Any) -> bool:
    """Whether X is for scikit-learn's validation: NumPy, pandas, lists; not an array of another library."""
    try:
        return is_numpy(X)
    except TypeError:
        return True


def is_regular(y: Any) -> bool:
    """Whether a list is one of numbers, or of rows of numbers of one length."""
    with suppress(ValueError):
        return np.asarray(y).dtype.kind in "biuf"
    return False


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """Return ``X``, or ``X`` and ``y``, as scikit-learn checks them; entries of ``X`` that are not finite are named."""
    checked = validate_data(estimator, *data, dtype=[np.float64, np.float32], ensure_all_finite=False, **options)
    check_finite(checked[0] if len(data) == 2 else checked, "X")
    return checked


def checked_inputs(estimator: Any, X: Any, kernel: Any, double: bool) -> tuple[Array, Any]:
    """Return training inputs, of which the estimator keeps the features, and the kernel that knows their names."""
    if is_host(X):
        X = validated(estimator, X)
    else:
        X = check_array(X, "X")
        estimator.n_features_in_ = int(X.shape[1])
    if hasattr(estimator, "feature_names_in_"):
        kernel = kernel.named(estimator.feature_names_in_)
    return (namespace(X).astype(X, namespace(X).float64) if double else X), kernel


def new_inputs(estimator: Any, X: Any) -> Array:
    """Return inputs to predict for, with the features that the estimator was fitted with."""
    X = validated(estimator, X, reset=False) if is_host(X) else check_array(X, "X")
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but the model was fitted with {estimator.n_features_in_}.")
    return X


def _usable_start(duals: Array, targets: Array) -> Array | None:
    """Return duals of a float32 attempt to start from in float64, ``None`` where they are of no use."""
    is_usable = duals.shape == targets.shape and bool(namespace(duals).all(namespace(duals).isfinite(duals)))
    return as_like(duals, targets) if is_usable else None  # the rank of a factor depends on the dtype


def _padded_take(rows: Array, place: np.ndarray) -> Array:
    """Return the rows at the given places, the place past the last row being a row of zeros."""
    xp = namespace(rows)
    return xp.take(xp.concat([rows, 0 * rows[:1, ...]]), as_index(place, rows), axis=0)


def sample_weights(weights: Array | None, X: Array) -> tuple[Array | None, np.ndarray | None]:
    """Return positive weights and the indices that they belong to (``None``: all)."""
    if weights is None:
        return None, None
    n = X.shape[0]
    values = np.asarray(weights if is_host(weights) else host(weights), dtype=np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},). Got {values.shape} instead.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError("sample_weight must hold finite non-negative numbers. Got a negative, NaN or infinite one.")
    if not np.any(values > 0):
        raise ValueError("sample_weight must have at least one positive entry. Got zeros only.")
    kept = np.flatnonzero(values > 0)
    return as_like(values[kept], X), None if len(kept) == n else kept
