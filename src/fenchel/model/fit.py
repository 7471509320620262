"""Solving a dual problem: from a training set to a certified fit."""

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel._array import Array, as_index, as_like, device, eps, host, is_single, namespace
from fenchel._progress import part
from fenchel.exceptions import IndefiniteError, warn_user
from fenchel.losses import Square
from fenchel.losses.loss import row_saturation
from fenchel.model.certificates import exact_certificate, sampled_certificate
from fenchel.model.codec import Task
from fenchel.model.expansion import KernelExpansion
from fenchel.model.model import Duals, Model, Record
from fenchel.model.sample import Sample
from fenchel.model.spec import Spec
from fenchel.model.training_set import TrainingSet
from fenchel.model.warnings import warn_of_clipping, warn_of_duplicates, warn_of_kernel
from fenchel.operators import Thin, is_thin
from fenchel.problem import DualProblem
from fenchel.problem.dual_problem import arithmetic
from fenchel.problem.feasibility import loss_radius, pulled_inside, round_off
from fenchel.solvers import Auto, Solution, Status
from fenchel.solvers.costs import trace
from fenchel.solvers.solver import approaching, keeping_best

__all__ = ["Fit", "certified_fit", "learn", "solve", "warn_unless_converged"]

_PILOT = 0.3  # share of a fit that resolves a threshold: its factorisation is used again
_MARGINS = (1e-2, 1, 1e2, 1e4)  # margins by which predictions are pulled inside the domain of a loss, tried in turn


@dataclass(frozen=True)
class Fit:
    """A solved dual problem on its training set. Transient: it holds the Gram matrix."""

    training_set: TrainingSet = field(repr=False)
    spec: Spec  # with the thresholds of the loss resolved to numbers
    problem: DualProblem = field(repr=False)
    solution: Solution = field(repr=False)  # of the samples with a positive weight, certified by the expansion
    duals: Duals = field(repr=False)  # of all given samples
    expansion: KernelExpansion = field(repr=False)

    @property
    def residuals(self) -> Array:
        """Residuals of the samples with a positive weight, in coordinates (n, p); zero where outputs are missing."""
        residuals = self.problem.unscale(self.problem.targets - self.solution.predictions)
        return residuals if self.problem.mask is None else residuals * self.problem.mask

    @property
    def predictions(self) -> Array:
        """Predictions for the samples with a positive weight, in coordinates without the factors of the rows."""
        return self.training_set.targets.unscaled(self.problem.unscale(self.solution.predictions))

    def with_coefficients(self, coef: Array, active: np.ndarray) -> Self:
        """Return the fit with other coefficients, (active, q), of samples in the support."""
        support = _support(self.problem.unscale(self.solution.duals))
        if len(active) < len(support):  # a non-zero dual may have zero norm: the other samples get a row of zeros
            xp = namespace(coef)
            place = np.full(self.training_set.n_samples, len(active))
            place[active] = np.arange(len(active))
            zeros = xp.zeros((1, coef.shape[1]), dtype=coef.dtype, device=device(coef))
            coef = xp.take(xp.concat([coef, zeros]), as_index(place[support], coef), axis=0)
        return replace(self, expansion=KernelExpansion.over(self.training_set, support, coef))

    def model(self) -> Model:
        """Return what remains of the fit; warn if the gap of the requested kind is above ``tol``."""
        training_set = self.training_set
        return Model(
            self.spec,
            training_set.sample.inputs,
            training_set.sample.outputs,
            training_set.codec,
            training_set.targets,
            self.expansion,
            self.duals,
            self._record(),
            training_set.approximation,
            training_set.sample.weights,
        )

    def _record(self) -> Record:
        """Return the certificate of the kind that was requested, and the history of the solve."""
        solution, gram, standard_error = self.solution, self.training_set.exact_gram, None
        kind = "exact" if gram is None else self.spec.certificate
        if gram is not None and kind != "approximate":
            arguments = self.problem, gram, solution.certificate, (solution.duals, solution.predictions)
            with arithmetic(self.problem):
                if kind == "exact":
                    certificate = exact_certificate(*arguments)
                else:
                    certificate, standard_error = sampled_certificate(*arguments, self.training_set.sample.contents())
            solution = solution.certified(certificate, self.spec.tol, Status.COARSE)
        warn_unless_converged(solution, self.spec)
        return Record.of(solution, kind, standard_error)


def learn(task: Task, sample: Sample, spec: Spec) -> Fit:
    """Fit in the dtype of the data, and again in float64 if that is not precise enough for the gap.

    What is learned from the outputs is learned again in float64 too.
    """
    training_set = TrainingSet.learn(task, sample, spec)
    largest = _largest(training_set.targets.rows)
    if is_single(training_set.targets.rows) and not _trace(training_set, spec.lam) < largest:
        training_set = TrainingSet.learn(task, sample.double(), spec)  # K / (lam n) overflows this dtype
    fit = solve(training_set, spec, None, largest)
    is_over = fit.solution.status in (Status.CONVERGED, Status.INTERRUPTED)
    if not is_over and is_single(training_set.targets.rows):
        try:
            refined = TrainingSet.learn(task, sample.double(), spec)
            fit = solve(refined, spec, _usable_start(fit.solution.duals, refined.targets.rows), largest)
        except IndefiniteError:
            pass  # a float32 Gram matrix has no more digits
        except KeyboardInterrupt:  # before the first point in float64: keep the one in float32
            fit = replace(fit, solution=replace(fit.solution, status=Status.INTERRUPTED))
    return warned(fit)


def warned(fit: Fit) -> Fit:
    """Return a fit; warn about scales that do not fit the data."""
    warn_of_kernel(fit.training_set)
    if fit.problem.loss.curvature > 0:  # quantiles and classes at one input may well differ
        warn_of_duplicates(fit.training_set)
    warn_of_clipping(fit.problem.loss, fit.duals.outlier_score)
    return fit


def solve(training_set: TrainingSet, spec: Spec, start: Array | None = None, largest: float | None = None) -> Fit:
    """Solve the dual problem to a relative gap ``spec.tol``, optionally from the duals ``start``.

    If predictions exceed ``largest`` or overflow, the zero model is returned instead. A threshold that is relative to
    the residuals is resolved with the residuals of the square loss at the same lam.
    ``KeyboardInterrupt`` ends the solve with the best certified point, once there is one.
    """
    loss = spec.loss
    if loss.is_relative:
        with part(_PILOT):
            pilot = solve(training_set, replace(spec, loss=Square(), solver=Auto()))
        if pilot.solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # no point of the problem itself is known yet
        loss = training_set.resolved(loss, pilot.residuals)
    problem = training_set.problem(loss, spec.lam)
    with arithmetic(problem), keeping_best(), approaching(spec.tol):
        solution = _finite(spec.solver.solve(problem, tol=spec.tol, start=start), problem, largest)
    return certified_fit(training_set, problem, solution, spec)


def certified_fit(training_set: TrainingSet, problem: DualProblem, solution: Solution, spec: Spec) -> Fit:
    """Return the fit of a solution, certified with the predictions of ``predict`` where round-off matters.

    A solver computes predictions from its own factorisation. They agree with those of ``predict`` to the round-off of
    K a / (lam n), which is large where lam is tiny or the kernel is large. If ``predict`` rounds them to a shorter
    dtype, the certificate is that of the rounded numbers.
    """
    expansion = _expansion(training_set, problem, solution)
    with arithmetic(problem):
        errors = round_off(problem, solution.duals, solution.predictions)
        is_rounded = training_set.sample.rounding is not None or training_set.is_pairwise
        if is_rounded or not errors <= 0.1 * spec.tol * abs(solution.certificate.primal):
            solution, expansion = _recertified(training_set, problem, solution, expansion, spec.tol)
        if solution.status is Status.STALLED and not solution.certificate.primal <= problem.value_at_zero:
            zero = _zero(solution, problem)  # round-off made it worse than no model
            solution = zero.certified(zero.certificate, spec.tol, Status.STALLED)
            expansion = _expansion(training_set, problem, solution)
    spec = replace(spec, loss=clone(problem.loss))
    return Fit(training_set, spec, problem, solution, _given_duals(training_set, problem, solution), expansion)


def warn_unless_converged(solution: Solution, spec: Spec) -> None:
    """Warn about a solution whose gap is above ``tol``."""
    if solution.status is Status.CONVERGED:
        return
    gap, plural = solution.certificate.relative_gap, "" if solution.n_iter == 1 else "s"
    text = f"{solution.solver} stopped after {solution.n_iter} iteration{plural} with gap {gap:.1e} > tol {spec.tol:g}"
    advice = {
        Status.MAX_ITER: f"Raise max_iter, or lam (now {spec.lam:g}).",
        Status.STALLED: f"Limited by round-off: scale the inputs, use float64, raise lam ({spec.lam:g}) or tol.",
        Status.COARSE: "The gap is that of the exact kernel; with the approximate kernel the fit converged. Use more "
        f"landmarks (n_components), raise lam (now {spec.lam:g}) or tol, or use approximation=None.",
        Status.INFEASIBLE: "No finite primal value was found: the loss may admit no solution on these data.",
    }
    warn_user(f"{text}. {advice.get(solution.status, solution.status.value)}", ConvergenceWarning, "not-converged")


def duals_of(problem: DualProblem, solution: Solution) -> Duals:
    """Return the duals of the samples of a problem, and the outlier scores that follow from them."""
    coef = problem.unscale(solution.duals)
    least = 1 - eps(coef) ** 0.5

    def clipped(ratios: Array | None) -> Array | None:
        if ratios is None:
            return None  # otherwise the score of a clipped sample is exactly 1, whatever its round-off
        return namespace(ratios).where(ratios >= least, namespace(ratios).ones_like(ratios), ratios)

    ratios = problem.loss.saturation(coef)
    points = ratios if ratios is not None and ratios.ndim == 2 else None
    return Duals(coef, _support(coef), clipped(row_saturation(problem.loss, coef)), clipped(points))


def _given_duals(training_set: TrainingSet, problem: DualProblem, solution: Solution) -> Duals:
    """Return the duals of all given samples: zero for those of weight zero."""
    duals, sample, observed = duals_of(problem, solution), training_set.sample, training_set.targets.observed
    if observed is not None and duals.point_outlier_score is not None:
        scores, xp = duals.point_outlier_score, namespace(observed)
        missing = xp.zeros_like(scores) + math.nan
        duals = replace(duals, point_outlier_score=xp.where(observed > 0, scores, missing))
    return duals.among(sample.index, sample.n_given)


def _recertified(
    training_set: TrainingSet, problem: DualProblem, solution: Solution, expansion: KernelExpansion, tol: float
) -> tuple[Solution, KernelExpansion]:
    """Return the solution certified with the predictions of ``predict``, and its expansion."""
    for margin in (*_MARGINS, None):
        exact, predictions = training_set.as_returned(problem, expansion.on_training_inputs(training_set))
        for factor in (training_set.targets.row_scale, problem.root):
            predictions = predictions if factor is None else predictions * factor
        certificate = exact.certificate(solution.duals, predictions)
        if margin is None or math.isfinite(certificate.primal) or math.isinf(loss_radius(problem)):
            break
        duals, _ = pulled_inside(problem, solution.duals, predictions, margin)
        solution = replace(solution, duals=duals)
        expansion = _expansion(training_set, problem, solution)
    return replace(solution.certified(certificate, tol, Status.STALLED), predictions=predictions), expansion


def _expansion(training_set: TrainingSet, problem: DualProblem, solution: Solution) -> KernelExpansion:
    """Return the model of a solution as an expansion over its support."""
    duals = problem.unscale(solution.duals)
    support, weights, row_scale = _support(duals), training_set.sample.weights, training_set.targets.row_scale
    weighted = duals if weights is None else duals * weights[:, None]
    weighted = weighted if row_scale is None else weighted * row_scale
    coef = namespace(duals).take(weighted, as_index(support, duals), axis=0) / (problem.lam * problem.total)
    features_coef = None
    if is_thin(problem.gram) and len(support):
        thin = problem.gram.terms[0][0]  # its rows are scaled like the duals of the solver
        assert isinstance(thin, Thin)  # the only operator with fewer features than samples
        features_coef = thin.left.T @ solution.duals / (problem.lam * problem.total)
    return KernelExpansion.over(training_set, support, coef, features_coef)


def _support(duals: Array) -> np.ndarray:
    """Return the indices of the non-zero rows."""
    return np.flatnonzero(~host(namespace(duals).all(duals == 0, axis=1)))


def _finite(solution: Solution, problem: DualProblem, largest: float | None) -> Solution:
    """Return the solution, or the zero model if it overflowed."""
    xp, predictions = namespace(solution.duals), problem.unscale(solution.predictions)
    most = _largest(predictions) if largest is None else largest
    if bool(xp.all(xp.isfinite(solution.duals)) & xp.all(xp.abs(predictions) <= most)):
        return solution
    return _zero(solution, problem)


def _zero(solution: Solution, problem: DualProblem) -> Solution:
    """Return the zero model in place of a solution that is no better."""
    zero = namespace(solution.duals).zeros_like(problem.targets)
    certificate = problem.certificate(zero, zero)
    return replace(solution, duals=zero, predictions=zero, certificate=certificate, status=Status.STALLED)


def _usable_start(duals: Array, targets: Array) -> Array | None:
    """Return the duals of a float32 fit as a start in float64, ``None`` if they cannot be used."""
    is_usable = duals.shape == targets.shape and bool(namespace(duals).all(namespace(duals).isfinite(duals)))
    return as_like(duals, targets) if is_usable else None  # the rank of a factor, hence the shape, depends on dtype


def _largest(array: Array) -> float:
    return float(namespace(array).finfo(array.dtype).max)


def _trace(training_set: TrainingSet, lam: float) -> float:
    """Return the trace of K / (lam n), infinity if it overflows."""
    problem = training_set.ridge.with_(lam=lam)
    with arithmetic(problem):
        return trace(problem)
