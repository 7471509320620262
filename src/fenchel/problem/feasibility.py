"""Round-off of predictions, and feasible points for losses that are infinite outside a ball."""

import math

from fenchel._array import Array, eps, namespace, row_norms
from fenchel.problem.dual_problem import DualProblem, observed_part, weighted_sum

__all__ = ["loss_radius", "pulled_inside", "round_off"]


def loss_radius(problem: DualProblem) -> float:
    """Return the norm of a residual beyond which the loss is infinite, ``inf`` if it is finite everywhere."""
    profile = problem.loss.profile
    return math.inf if profile is None else float(profile.radius)


def round_off(problem: DualProblem, duals: Array, predictions: Array) -> float:
    """Return how much round-off in the predictions of the duals may change the objective."""
    xp = namespace(duals)
    roots, sizes = xp.sqrt(problem.gram.diag())[:, None], row_norms(duals)
    errors = problem.unscale(eps(duals) * problem.scale * float(xp.sum(roots * sizes)) * roots)
    residuals = problem.unscale(observed_part(problem, problem.targets - predictions))
    norms = row_norms(residuals)
    units = xp.where(norms > 0, residuals / xp.where(norms > 0, norms, 1.0), residuals.shape[1] ** -0.5)
    before, after = problem.loss.value(residuals), problem.loss.value(residuals + errors * units)
    is_finite = xp.isfinite(before)
    rises = xp.where(is_finite, after, xp.zeros_like(after)) - xp.where(is_finite, before, xp.zeros_like(before))
    return float(weighted_sum(problem, rises + (problem.unscale(sizes) * errors)[:, 0])) / problem.total


def pulled_inside(problem: DualProblem, duals: Array, predictions: Array, margin: float = 1e-2) -> tuple[Array, Array]:
    """Return a pair whose residuals lie in the domain of a loss that is infinite outside a ball.

    Mixing with the interpolant, whose residuals are zero, shrinks all residuals by the same factor. For losses that are
    finite everywhere the pair is returned unchanged. ``margin``, in units of sqrt(eps), is the distance to the
    boundary, so that predictions computed in a different order are feasible too.
    """
    radius = loss_radius(problem)
    if math.isinf(radius) or problem.mask is not None:
        return duals, predictions
    xp = namespace(duals)
    worst = float(xp.max(row_norms(problem.unscale(problem.targets - predictions)))) / radius
    if worst <= 1:
        return duals, predictions
    share = 1 - (1 - margin * eps(duals) ** 0.5) / worst
    coef, exact = problem.shared.interpolant
    return duals + share * (coef / problem.scale - duals), predictions + share * (exact - predictions)
