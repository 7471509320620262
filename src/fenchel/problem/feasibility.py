"""Round-off of predictions, and feasible points for losses that are infinite outside a ball."""

import math

from fenchel._array import Array, eps, namespace, row_norms
from fenchel.problem.dual_problem import DualProblem, observed_part, weighted_sum

__all__ = ["loss_radius", "pulled_inside", "round_off"]

_NEAR = 1e-6  # a share of the radius: solvers reach 1e-8 to 1e-14 outside, and then only round-off changes
_TURNS = 50  # of conjugate gradients, which need as many as residuals are at the boundary: at most the rank


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

    Mixing with the interpolant, whose residuals are zero, shrinks all residuals by the same factor. If the kernel has
    too low a rank to interpolate, residuals that are outside by little more than round-off are moved instead. For
    losses that are finite everywhere the pair is returned unchanged. ``margin``, in units of sqrt(eps), is the distance
    to the boundary, so that predictions computed in a different order are feasible too.
    """
    radius = loss_radius(problem)
    if math.isinf(radius) or problem.mask is not None:
        return duals, predictions
    worst, margin = _worst(problem, predictions, radius), margin * eps(duals) ** 0.5
    if worst <= 1:
        return duals, predictions
    share = 1 - (1 - margin) / worst
    coef, exact = problem.shared.interpolant
    mixed = duals + share * (coef / problem.scale - duals), predictions + share * (exact - predictions)
    if not worst <= 1 + _NEAR or _worst(problem, mixed[1], radius) <= 1:
        return mixed
    change = _inward(problem, predictions, radius, worst, margin)
    moved = duals + change, predictions + problem.predictions(change)
    return moved if _worst(problem, moved[1], radius) <= 1 else mixed


def _worst(problem: DualProblem, predictions: Array, radius: float) -> float:
    """Return the largest norm of a residual, relative to the radius."""
    return float(namespace(predictions).max(row_norms(problem.unscale(problem.targets - predictions)))) / radius


def _inward(problem: DualProblem, predictions: Array, radius: float, worst: float, margin: float) -> Array:
    """Return the change of the duals that moves the residuals near the boundary to within it, by conjugate gradients.

    Row i of the change is t_i u_i, where u_i is the direction of the residual: the residuals are shortened by G t,
    where G is the positive semidefinite matrix of the products of the directions in the norm of H.
    """
    xp = namespace(predictions)
    residuals = problem.unscale(problem.targets - predictions)
    norms = row_norms(residuals)
    is_near = norms >= radius * (1 - 10 * (worst - 1) - margin)
    units = xp.where(is_near, residuals / xp.where(is_near, norms, xp.ones_like(norms)), xp.zeros_like(residuals))
    left = xp.where(is_near, norms - radius * (1 - margin), xp.zeros_like(norms))
    t, step, enough = xp.zeros_like(left), left, 1e-4 * float(xp.sum(left**2))  # a hundredth of the way is left
    for _ in range(_TURNS):
        before = float(xp.sum(left**2))
        shortened = xp.sum(units * problem.unscale(problem.predictions(problem.unscale(step * units))), axis=1)[:, None]
        slope = float(xp.sum(step * shortened))
        if before <= enough or not slope > 0:
            break
        t, left = t + before / slope * step, left - before / slope * shortened
        step = left + float(xp.sum(left**2)) / before * step
    return problem.unscale(t * units)
