"""Solved dual problems: the duals, the certificate, and the model used for prediction."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel._array import Array, as_index, as_like, device, eps, host, is_single, joined, namespace
from fenchel._check import free_memory
from fenchel.estimators.certificates import exact_certificate, sampled_certificate
from fenchel.estimators.scale_warnings import (
    far_inputs,
    warn_of_clipping,
    warn_of_distance,
    warn_of_duplicates,
    warn_of_kernel,
)
from fenchel.estimators.training_set import Encoded, TrainingSet
from fenchel.estimators.validation import DualSettings, warn_user
from fenchel.exceptions import IndefiniteError
from fenchel.feasibility import loss_radius, pulled_inside, round_off
from fenchel.kernels.base import BoundKernel
from fenchel.losses import Loss, Square
from fenchel.losses.base import row_saturation
from fenchel.operators import Thin, is_thin, kronecker
from fenchel.problem import Certificate, DualProblem, arithmetic
from fenchel.solvers import Auto, Solution, Solver, Status
from fenchel.solvers.base import keeping_best
from fenchel.solvers.costs import trace

__all__ = [
    "FITTED",
    "DualEstimator",
    "Duals",
    "FittedDual",
    "KernelExpansion",
    "as_fitted",
    "expose",
    "expose_certificate",
    "expose_solution",
    "fit_dual",
    "fit_refined",
    "warn_of_scales",
    "warn_unless_converged",
]

E = TypeVar("E", bound=Encoded)

FITTED = (  # attributes that a fitted estimator of one dual problem has or may have
    "X_fit_",
    "approximation_",
    "center_",
    "certificate_",
    "dual_coef_",
    "dual_objective_",
    "duality_gap_",
    "duality_gap_standard_error_",
    "feature_names_in_",
    "history_",
    "loss_",
    "n_features_in_",
    "n_iter_",
    "outlier_score_",
    "point_outlier_score_",
    "primal_objective_",
    "representation_",
    "scale_",
    "solver_info_",
    "sparsity_",
    "status_",
    "support_",
)

_MARGINS = (1e-2, 1, 1e2, 1e4)  # margins by which predictions are pulled inside the domain of a loss, tried in turn
_BLOCK_BYTES = 2**28  # Gram blocks of a prediction stay below 256 MiB


@dataclass(frozen=True)
class KernelExpansion:
    r"""The function :math:`\sum_i K(\cdot, x_i) c_i` over the support, in coordinates."""

    kernel: BoundKernel
    X: Array  # inputs of the support
    coef: Array  # (support, p)
    columns: np.ndarray | None  # columns of the support in a Gram matrix of new inputs with all samples
    features_coef: Array | None = None  # coefficients of the features of a kernel with few features, (D, p)
    tells_far: bool = False  # whether inputs whose kernel values vanish are far from the whole sample

    @classmethod
    def over(
        cls,
        training_set: TrainingSet,
        support: np.ndarray,
        coef: Array,
        columns: np.ndarray | None,
        features_coef: Array | None = None,
    ) -> "KernelExpansion":
        """Return the expansion over samples of a training set; coefficients of features are computed unless given."""
        kernel: Any = training_set.kernel
        X = training_set.X
        has_features = is_thin(training_set.ridge.gram)
        if not (has_features and len(support) == X.shape[0]):  # features predict without the inputs: no copy is made
            X = namespace(X).take(X, as_index(support, X), axis=0)
        if features_coef is None and has_features and coef.shape[0] > 0:
            features_coef = kernel.terms[0][0].features(X).T @ coef
        is_plain = training_set.is_exact and columns is None and features_coef is None
        tells_far = is_plain and len(getattr(kernel, "terms", ())) == 1 and len(support) == training_set.n_samples
        return cls(kernel, X, coef, columns, features_coef, tells_far)

    def predict_coordinates(self, X: Array) -> Array:
        """Return the values at checked inputs, (m, p)."""
        return self._joined_values(X, None)

    def evaluate(self, X: Array, matrix: Array) -> Array:
        """Return the values at checked inputs, multiplied by a matrix (p, points) that includes the output operator."""
        return self._joined_values(X, matrix)

    def _joined_values(self, X: Array, matrix: Array | None) -> Array:
        """Return the values of all blocks; warn about inputs that are far from the sample."""
        blocks = [self._values(block, matrix) for block in self._blocks(X)]
        warn_of_distance(np.concatenate([is_far for _, is_far in blocks]))
        return _joined([values for values, _ in blocks])

    def _blocks(self, X: Array) -> Iterator[Array]:
        """Yield inputs in blocks with small Gram matrices with the support, in the dtype of the model."""
        xp = namespace(X)
        X = xp.astype(X, self.coef.dtype, copy=False)
        if self.columns is not None:
            X = xp.take(X, as_index(self.columns, X), axis=1)
        width = (self.coef if self.features_coef is None else self.features_coef).shape[0]
        free = free_memory(X)
        budget = _BLOCK_BYTES if free is None else min(_BLOCK_BYTES, free // 8)  # a kernel holds a few such arrays
        rows = max(1, budget // (8 * max(1, width)))
        for first in range(0, X.shape[0], rows):
            yield X[first : min(first + rows, X.shape[0]), ...]

    def _values(self, X: Array, matrix: Array | None) -> tuple[Array, np.ndarray]:
        """Return the values at some inputs, and a mask of those that are far from the sample."""
        is_far = np.zeros(X.shape[0], dtype=bool)
        if self.coef.shape[0] == 0:
            width = self.coef.shape[1] if matrix is None else matrix.shape[1]
            return namespace(X).zeros((X.shape[0], width), dtype=X.dtype, device=device(X)), is_far
        gram, coef = self._gram(X)
        kernel: Any = self.kernel
        if self.tells_far:
            is_far = far_inputs(kernel.terms[0][0], gram.terms[0][0], X, self.X)
        if matrix is None:
            return gram.matmul(as_like(coef, X)), is_far
        return gram.terms[0][0].matmul(as_like(coef, X) @ as_like(matrix, X)), is_far

    def _gram(self, X: Array) -> tuple[Any, Array]:
        """Return the Gram operator between inputs and the model, and the coefficients that it acts on."""
        if self.features_coef is None:
            return self.kernel.gram(X, self.X), self.coef
        kernel: Any = self.kernel
        scalar, operator = kernel.terms[0]
        eye = namespace(X).eye(self.features_coef.shape[0], dtype=X.dtype, device=device(X))
        return kronecker(Thin(scalar.features(X), eye), operator), self.features_coef


@dataclass(frozen=True)
class Duals:
    """Dual variables of a solution, one row for each given sample, and the outlier scores that follow from them."""

    coef: Array  # (n, p)
    support: np.ndarray  # indices of the non-zero rows
    outlier_score: Array | None  # (n,): dual norm divided by its bound, for losses with bounded duals
    point_outlier_score: Array | None  # (n, p)

    @classmethod
    def of(cls, problem: DualProblem, solution: Solution) -> "Duals":
        """Return the duals of the samples of a problem."""
        coef = problem.unscale(solution.duals)
        least = 1 - eps(coef) ** 0.5

        def clipped(ratios: Array | None) -> Array | None:
            if ratios is None:
                return None  # otherwise the score of a clipped sample is exactly 1, whatever its round-off
            return namespace(ratios).where(ratios >= least, namespace(ratios).ones_like(ratios), ratios)

        ratios = problem.loss.saturation(coef)
        points = ratios if ratios is not None and ratios.ndim == 2 else None
        return cls(coef, _support(coef), clipped(row_saturation(problem.loss, coef)), clipped(points))

    def given(self, training_set: TrainingSet) -> "Duals":
        """Return the duals of all given samples: zero for those of weight zero."""
        if training_set.index is None:
            return self
        rows = [
            None if part is None else training_set.given(part)
            for part in (self.coef, self.outlier_score, self.point_outlier_score)
        ]
        return Duals(rows[0], training_set.index[self.support], *rows[1:])


@dataclass(frozen=True)
class FittedDual:
    """The solution of one dual problem on a training set, certified by the predictions of its model."""

    training_set: TrainingSet = field(repr=False)
    problem: DualProblem = field(repr=False)
    solution: Solution = field(repr=False)  # of the samples with a positive weight, as returned by the solver
    duals: Duals = field(repr=False)  # of all given samples
    expansion: KernelExpansion = field(repr=False)

    @property
    def certificate(self) -> Certificate:
        """Primal value, dual value and gap."""
        return self.solution.certificate

    @property
    def status(self) -> Status:
        """Why the solver stopped."""
        return self.solution.status

    @property
    def residuals(self) -> Array:
        """Residuals of the samples with a positive weight, in coordinates (n, p); zero where outputs are missing."""
        residuals = self.problem.unscale(self.problem.targets - self.solution.predictions)
        return residuals if self.problem.mask is None else residuals * self.problem.mask

    def predict_coordinates(self, X: Array) -> Array:
        """Return the predictions for checked inputs, in coordinates (m, p)."""
        return self.expansion.predict_coordinates(X)

    def with_coefficients(self, coef: Array, active: np.ndarray) -> "FittedDual":
        """Return the fit with other coefficients, (active, q), of samples in the support."""
        support = _support(self.problem.unscale(self.solution.duals))
        if len(active) < len(support):  # a non-zero dual may have zero norm: the other samples get a row of zeros
            xp = namespace(coef)
            place = np.full(self.training_set.n_samples, len(active))
            place[active] = np.arange(len(active))
            zeros = xp.zeros((1, coef.shape[1]), dtype=coef.dtype, device=device(coef))
            coef = xp.take(xp.concat([coef, zeros]), as_index(place[support], coef), axis=0)
        return replace(self, expansion=KernelExpansion.over(self.training_set, support, coef, self.expansion.columns))


class DualEstimator(Protocol):
    """Interface of the estimators of one dual problem that searches and paths use."""

    tol: float

    def _settings(self) -> DualSettings:
        """Return the settings of the dual problem and its solver."""

    def _set_loss_and_lam(self, loss: Loss, lam: float) -> Self:
        """Set the parameters to one pair of a grid."""

    def _encode(self, X: Any, y: Any, sample_weight: Array | None, settings: DualSettings, double: bool = False) -> Any:
        """Return the data in coordinates, an ``Encoded``; in float64 with ``double``."""

    def _expose(self, encoded: Any, fitted: FittedDual) -> Self:
        """Set the fitted attributes."""


def fit_dual(
    training_set: TrainingSet,
    loss: Loss,
    lam: float,
    solver: Solver,
    tol: float,
    start: Array | None = None,
    largest: float | None = None,
) -> FittedDual:
    """Solve the dual problem for a loss and lam to a relative gap ``tol``, optionally from the duals ``start``.

    If predictions exceed ``largest`` or overflow, the zero model is returned instead.

    A threshold that is relative to the residuals is resolved with the residuals of the square loss at the same lam.
    ``KeyboardInterrupt`` ends the solve with the best certified point, once there is one.
    """
    if loss.is_relative:
        pilot = fit_dual(training_set, Square(), lam, Auto(), tol)
        if pilot.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # no point of the problem itself is known yet
        loss = loss.resolve(pilot.residuals, training_set.weights, training_set.representation.point_scale)
    problem = training_set.problem(loss, lam)
    with arithmetic(problem), keeping_best():
        solution = _finite(solver.solve(problem, tol=tol, start=start), problem, largest)
    return as_fitted(training_set, problem, solution, tol)


def fit_refined(encode: Callable[[bool], E], settings: DualSettings) -> tuple[E, FittedDual]:
    """Fit in the dtype of the data, and again in float64 if that is not precise enough for the gap.

    ``encode(double)`` encodes the data, in float64 if ``double``.
    """
    how = settings.loss, settings.lam, settings.solver, settings.tol
    encoded = encode(False)
    largest = _largest(encoded.training_set.targets)
    if is_single(encoded.training_set.targets) and not _trace(encoded.training_set, settings.lam) < largest:
        encoded = encode(True)  # K / (lam n), which solvers factorise, overflows this dtype
    fitted = fit_dual(encoded.training_set, *how, None, largest)
    is_over = fitted.status in (Status.CONVERGED, Status.INTERRUPTED)
    if not is_over and is_single(encoded.training_set.targets):
        try:
            refined = encode(True)
            start = _usable_start(fitted.solution.duals, refined.training_set.targets)
            encoded, fitted = refined, fit_dual(refined.training_set, *how, start, largest)
        except IndefiniteError:
            pass  # a float32 Gram matrix has no more digits
        except KeyboardInterrupt:  # before the first point in float64: keep the one in float32
            fitted = replace(fitted, solution=replace(fitted.solution, status=Status.INTERRUPTED))
    warn_of_scales(fitted)
    return encoded, fitted


def _largest(array: Array) -> float:
    return float(namespace(array).finfo(array.dtype).max)


def _trace(training_set: TrainingSet, lam: float) -> float:
    """Return the trace of K / (lam n), infinity if it overflows."""
    problem = training_set.ridge.with_(lam=lam)
    with arithmetic(problem):
        return trace(problem)


def as_fitted(training_set: TrainingSet, problem: DualProblem, solution: Solution, tol: float) -> FittedDual:
    """Return the fit of a solution, certified with the predictions of ``predict`` where round-off matters.

    A solver computes predictions from its own factorisation. They agree with those of ``predict`` to the round-off of
    K a / (lam n), which is large where lam is tiny or the kernel is large.
    """
    expansion = _expansion(training_set, problem, solution)
    with arithmetic(problem):
        errors = round_off(problem, solution.duals, solution.predictions)
        if not errors <= 0.1 * tol * abs(solution.certificate.primal) or training_set.is_pairwise:
            solution, expansion = _recertified(training_set, problem, solution, expansion, tol)
    duals = Duals.of(problem, solution).given(training_set)
    if training_set.is_pairwise:
        expansion = replace(expansion, columns=duals.support)
    return FittedDual(training_set, problem, solution, duals, expansion)


def _recertified(
    training_set: TrainingSet, problem: DualProblem, solution: Solution, expansion: KernelExpansion, tol: float
) -> tuple[Solution, KernelExpansion]:
    """Return the solution certified with the predictions of ``predict``, and its expansion."""
    for margin in (*_MARGINS, None):
        predictions = expansion.predict_coordinates(training_set.X)
        for factor in (training_set.representation.row_scale_, problem.root):
            predictions = predictions if factor is None else predictions * factor
        certificate = problem.certificate(solution.duals, predictions)
        if margin is None or math.isfinite(certificate.primal) or math.isinf(loss_radius(problem)):
            break
        duals, _ = pulled_inside(problem, solution.duals, predictions, margin)
        solution = replace(solution, duals=duals)
        expansion = _expansion(training_set, problem, solution)
    return replace(solution.certified(certificate, tol, Status.STALLED), predictions=predictions), expansion


def _expansion(training_set: TrainingSet, problem: DualProblem, solution: Solution) -> KernelExpansion:
    """Return the model of a solution as an expansion over its support."""
    duals = problem.unscale(solution.duals)
    support = _support(duals)
    weighted = duals if training_set.weights is None else duals * training_set.weights[:, None]
    if training_set.representation.row_scale_ is not None:
        weighted = weighted * training_set.representation.row_scale_
    coef = namespace(duals).take(weighted, as_index(support, duals), axis=0) / (problem.lam * problem.total)
    features_coef = None
    if is_thin(problem.gram) and len(support):
        thin: Any = problem.gram.terms[0][0]  # its rows are scaled like the duals of the solver
        features_coef = thin.left.T @ solution.duals / (problem.lam * problem.total)
    columns = support if training_set.is_pairwise else None
    return KernelExpansion.over(training_set, support, coef, columns, features_coef)


def _joined(blocks: list[Array]) -> Array:
    return blocks[0] if len(blocks) == 1 else joined(blocks)


def _support(duals: Array) -> np.ndarray:
    """Return the indices of the non-zero rows."""
    return np.flatnonzero(~host(namespace(duals).all(duals == 0, axis=1)))


def _finite(solution: Solution, problem: DualProblem, largest: float | None) -> Solution:
    """Return the solution, or the zero model if it overflowed."""
    xp, predictions = namespace(solution.duals), problem.unscale(solution.predictions)
    most = _largest(predictions) if largest is None else largest
    if bool(xp.all(xp.isfinite(solution.duals)) & xp.all(xp.abs(predictions) <= most)):
        return solution
    zero = xp.zeros_like(problem.targets)
    certificate = problem.certificate(zero, zero)
    return replace(solution, duals=zero, predictions=zero, certificate=certificate, status=Status.STALLED)


def _usable_start(duals: Array, targets: Array) -> Array | None:
    """Return the duals of a float32 fit as a start in float64, ``None`` if they cannot be used."""
    is_usable = duals.shape == targets.shape and bool(namespace(duals).all(namespace(duals).isfinite(duals)))
    return as_like(duals, targets) if is_usable else None  # the rank of a factor, hence the shape, depends on dtype


def warn_unless_converged(solution: Solution, lam: float, tol: float) -> None:
    """Warn about a solution whose gap is above ``tol``."""
    if solution.status is Status.CONVERGED:
        return
    gap, plural = solution.certificate.relative_gap, "" if solution.n_iter == 1 else "s"
    text = f"{solution.solver} stopped after {solution.n_iter} iteration{plural} with gap {gap:.1e} > tol {tol:g}"
    advice = {
        Status.MAX_ITER: f"Raise max_iter, or lam (now {lam:g}).",
        Status.STALLED: f"Limited by round-off: scale the inputs, use float64, raise lam ({lam:g}) or tol.",
        Status.COARSE: "The gap is that of the exact kernel; with the approximate kernel the fit converged. Use more "
        f"landmarks (n_components), raise lam (now {lam:g}) or tol, or use approximation=None.",
        Status.INFEASIBLE: "No finite primal value was found: the loss may admit no solution on these data.",
    }
    warn_user(f"{text}. {advice.get(solution.status, solution.status.value)}", ConvergenceWarning, "not-converged")


def warn_of_scales(fitted: FittedDual) -> None:
    """Warn about a kernel or a loss whose scale does not fit the data, and about repeated inputs."""
    warn_of_kernel(fitted.training_set)
    if fitted.problem.loss.curvature > 0:  # quantiles and classes at one input may well differ
        warn_of_duplicates(fitted.training_set)
    warn_of_clipping(fitted.problem.loss, fitted.duals.outlier_score)


def expose(estimator: Any, fitted: FittedDual) -> None:
    """Set the fitted attributes common to all estimators of one dual problem, listed in ``FITTED``.

    Warn if the gap that the estimator reports is above its ``tol``.
    """
    solution = _certified_for(estimator, fitted)
    warn_unless_converged(solution, fitted.problem.lam, estimator.tol)
    expose_solution(estimator, solution, fitted.duals)
    estimator.loss_ = clone(fitted.problem.loss)
    estimator._expansion = fitted.expansion
    estimator.X_fit_ = fitted.expansion.X
    estimator.representation_ = fitted.training_set.representation
    estimator.approximation_ = fitted.training_set.approximation


def _certified_for(estimator: Any, fitted: FittedDual) -> Solution:
    """Return the solution with the kind of certificate that an estimator requests, and set ``certificate_``."""
    gram, solution = fitted.training_set.exact_gram, fitted.solution
    estimator.__dict__.pop("duality_gap_standard_error_", None)
    kind = "exact" if gram is None else getattr(estimator, "certificate", "approximate")
    estimator.certificate_ = kind
    if gram is None or kind == "approximate":
        return solution
    arguments = fitted.problem, gram, solution.certificate, (solution.duals, solution.predictions)
    with arithmetic(fitted.problem):
        if kind == "exact":
            certificate = exact_certificate(*arguments)
        else:
            certificate, estimator.duality_gap_standard_error_ = sampled_certificate(*arguments)
    return solution.certified(certificate, estimator.tol, Status.COARSE)


def expose_solution(estimator: Any, solution: Solution, duals: Duals) -> None:
    """Set the fitted attributes of a solution: duals, scores and certificate."""
    n = duals.coef.shape[0]
    expose_certificate(estimator, solution)
    estimator.dual_coef_ = duals.coef
    estimator.support_ = duals.support
    estimator.sparsity_ = (n - len(duals.support)) / n
    scores = {"outlier_score_": duals.outlier_score, "point_outlier_score_": duals.point_outlier_score}
    for name, values in scores.items():
        estimator.__dict__.pop(name, None)  # from an earlier fit with another loss
        if values is not None:
            setattr(estimator, name, values)


def expose_certificate(estimator: Any, solution: Solution) -> None:
    """Set the fitted attributes of a solution that describe its accuracy and the solver."""
    estimator.primal_objective_ = solution.certificate.primal
    estimator.dual_objective_ = solution.certificate.dual
    estimator.duality_gap_ = solution.certificate.relative_gap
    estimator.n_iter_ = max(1, solution.n_iter)  # the first point counts as an iteration
    estimator.status_ = solution.status.value
    estimator.history_ = [(n_iter, certificate.relative_gap) for n_iter, certificate in solution.history]
    estimator.solver_info_ = _solver_info(solution)


def _solver_info(solution: Solution) -> dict[str, Any]:
    """Return which solver found the duals, why it ran, and every solver that ran before or after it."""
    reasons = [stage.reason for stage in solution.stages if stage.solver == solution.solver]
    return {
        "solver": solution.solver,
        "reason": reasons[0] if reasons else "chosen by the user",
        "stages": [asdict(stage) for stage in solution.stages],
    }
