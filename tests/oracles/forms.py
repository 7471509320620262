"""The primal problem of each loss, written for cvxpy from its definition: shares no code with the library."""

import cvxpy as cp
import numpy as np

from fenchel import losses

FORMS = {}


def form(kind):
    """Register the cvxpy form of a loss class; a class without one is held against a direct minimisation."""

    def register(function):
        FORMS[kind] = function
        return function

    return register


POWER_CONES = [True]  # how cvxpy writes a p-norm: by power cones, or exactly by second-order cones for a rational p


def norms(rows, p=2):
    """The p-norms of the rows of an expression, one scalar for each."""
    if p in (1, 2, np.inf):
        return [cp.norm(rows[i, :], p) for i in range(rows.shape[0])]
    return [cp.pnorm(rows[i, :], p, approx=not POWER_CONES[0]) for i in range(rows.shape[0])]


def half_squares(rows):
    return [cp.sum_squares(rows[i, :]) / 2 for i in range(rows.shape[0])]


def add(*lists):
    return [cp.sum([cp.reshape(term, (), order="C") for term in terms]) for terms in zip(*lists, strict=True)]


@form(losses.Square)
def square(loss, residuals, targets):
    return half_squares(residuals), []


@form(losses.Huber)
def huber(loss, residuals, targets):
    part = cp.Variable(residuals.shape)
    linear = [loss.kappa * norm for norm in norms(part, loss.p)]
    return add(half_squares(residuals - part), linear), []


@form(losses.EpsilonRidge)
def epsilon_ridge(loss, residuals, targets):
    part = cp.Variable(residuals.shape)
    return half_squares(residuals - part), [norm <= loss.epsilon for norm in norms(part, loss.p)]


@form(losses.EpsilonSVR)
def epsilon_svr(loss, residuals, targets):
    return [cp.pos(norm - loss.epsilon) for norm in norms(residuals, loss.p)], []


@form(losses.Norm)
def norm(loss, residuals, targets):
    return [loss.scale * value for value in norms(residuals)], []


@form(losses.Power)
def power(loss, residuals, targets):
    return [loss.scale / loss.eta * cp.power(value, loss.eta) for value in norms(residuals)], []


@form(losses.Exponential)
def exponential(loss, residuals, targets):
    return [loss.scale * (cp.exp(value) - 1) for value in norms(residuals)], []


@form(losses.NormLog)
def norm_log(loss, residuals, targets):
    sizes = cp.Variable(residuals.shape[0])
    bounds = [norm <= sizes[i] for i, norm in enumerate(norms(residuals))]
    return [-loss.scale * cp.entr(sizes[i]) for i in range(residuals.shape[0])], [*bounds, sizes >= np.exp(-1)]


@form(losses.Ball)
def ball(loss, residuals, targets):
    return [cp.Constant(0)] * residuals.shape[0], [norm <= loss.radius for norm in norms(residuals)]


@form(losses.MaxMargin)
def max_margin(loss, residuals, targets):
    predictions = targets - residuals
    return [cp.pos(1 - targets[i] @ predictions[i, :]) for i in range(residuals.shape[0])], []


@form(losses.InnerProduct)
def inner_product(loss, residuals, targets):
    margins = [cp.pos(1 - targets[i] @ (targets - residuals)[i, :]) for i in range(residuals.shape[0])]
    return ([cp.square(margin) / 2 for margin in margins] if loss.f else margins), []


@form(losses.Pinball)
def pinball(loss, residuals, targets):
    rows = cp.maximum(loss.levels * residuals, (loss.levels - 1) * residuals)
    return [cp.sum(rows[i, :]) for i in range(residuals.shape[0])], []


@form(losses.CostSensitiveHinge)
def cost_sensitive_hinge(loss, residuals, targets):
    costs = np.abs(loss.levels - (targets < 0)) * (targets != 0)  # a target 0 has no loss
    rows = cp.multiply(costs, cp.pos(1 - cp.multiply(targets, targets - residuals)))
    return [cp.sum(rows[i, :]) for i in range(residuals.shape[0])], []


@form(losses.IntegralLoss)
def integral(loss, residuals, targets):
    assert isinstance(loss.point, losses.AsymmetricSquare)
    rows = loss.levels * cp.square(cp.pos(residuals)) + (1 - loss.levels) * cp.square(cp.neg(residuals))
    return [cp.sum(rows[i, :]) for i in range(residuals.shape[0])], []


@form(losses.InfimalConvolution)
def convolution(loss, residuals, targets):
    part = cp.Variable(residuals.shape)
    first, some = FORMS[type(loss.f)](loss.f, part, targets)
    second, others = FORMS[type(loss.g)](loss.g, residuals - part, targets)
    return add(first, second), [*some, *others]


def optimum(gram, targets, loss, lam, scale, weights=None):
    """The optimal value of the primal problem over ``scale``, which should be near 1 for cvxpy's sake.

    ``gram`` is the full (n p) × (n p) matrix; the model is a linear one in the features of its factor.
    """
    n, p = targets.shape
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    kept = values > 1e-13 * max(values.max(), 1e-300)
    factor = vectors[:, kept] * np.sqrt(values[kept])
    weights = np.ones(n) if weights is None else weights
    size = np.sqrt(2 * scale / lam)  # so that the penalty is |w|^2
    if factor.shape[1] == 0:
        w, predictions = None, np.zeros(targets.shape)
        penalty = 0
    else:
        w = cp.Variable(factor.shape[1])
        predictions = cp.reshape((size * factor) @ w, (n, p), order="C")
        penalty = cp.sum_squares(w)
    residuals = targets - predictions
    if w is None:
        residuals = cp.Constant(residuals)
    terms, constraints = FORMS[type(loss)](loss, residuals, targets)
    data = cp.sum(
        [float(weight) * cp.reshape(value, (), order="C") for weight, value in zip(weights, terms, strict=True)]
    )
    problem = cp.Problem(cp.Minimize(data / (weights.sum() * scale) + penalty), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_iter=400)
    return problem.value, problem.status
