"""Losses and conjugates by their definitions, as functions of rows: plain NumPy, no code of the library.

A class that has no definition here is taken at its word: its own value and conjugate, which the contract of losses has
held against each other.
"""

import math

import numpy as np

from fenchel import losses

FEASIBLE = 1e-12  # slack of the domain of a conjugate
VALUES, CONJUGATES = {}, {}  # of residuals or duals and targets
SCALAR_VALUES, SCALAR_CONJUGATES = {}, {}  # of norms, for losses of the Euclidean norm
RADII = {}  # beyond which a loss is infinite


def define(table, kind):
    """Register the definition of a loss class in a table."""

    def register(function):
        table[kind] = function
        return function

    return register


def value(loss, residuals, targets):
    """The loss of each row."""
    kind = type(loss)
    if kind in SCALAR_VALUES and loss.profile is not None:
        return SCALAR_VALUES[kind](loss, p_norm(residuals, 2))
    return VALUES[kind](loss, residuals, targets) if kind in VALUES else loss.bind(targets).value(residuals)


def conjugate(loss, duals, targets):
    """The conjugate at each row."""
    kind = type(loss)
    if kind in SCALAR_CONJUGATES and loss.profile is not None:
        return SCALAR_CONJUGATES[kind](loss, p_norm(duals, 2))
    return CONJUGATES[kind](loss, duals, targets) if kind in CONJUGATES else loss.bind(targets).conjugate(duals)


def p_norm(rows, p):
    magnitudes = np.abs(rows)
    return np.max(magnitudes, axis=1) if math.isinf(p) else np.sum(magnitudes**p, axis=1) ** (1 / p)


def conjugate_order(p):
    return math.inf if p == 1 else 1.0 if math.isinf(p) else p / (p - 1)


def shrink(values, mu, p):
    """The x >= 0 with x + mu x^(p-1) = values, by a bisection."""
    low, high = np.zeros_like(values), values
    for _ in range(55):
        middle = (low + high) / 2
        above = middle + mu * middle ** (p - 1) > values
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def project(rows, radius, p):
    """The Euclidean projection of rows on the ball of a p-norm."""
    if math.isinf(p):
        return np.clip(rows, -radius, radius)
    norms = p_norm(rows, p)
    outside = norms > radius
    if p == 2:
        return np.where(outside, radius / np.where(outside, norms, 1), 1)[:, None] * rows
    if radius == 0 or not np.any(outside):
        return np.where(outside[:, None], 0 * rows, rows)
    values = np.abs(rows[outside])
    low, high = np.zeros((len(values), 1)), np.full((len(values), 1), 1e-3)

    def inner(mu):
        return np.clip(values - mu, 0, None) if p == 1 else shrink(values, mu, p)

    while np.any(p_norm(inner(high), p) > radius):
        high = high * 8
    for _ in range(60):
        middle = (low + high) / 2
        far = (p_norm(inner(middle), p) > radius)[:, None]
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    out = rows.copy()
    out[outside] = np.sign(rows[outside]) * inner(high)
    return out


SCALAR_VALUES[losses.Square] = SCALAR_CONJUGATES[losses.Square] = lambda loss, t: t**2 / 2


@define(SCALAR_VALUES, losses.Norm)
def norm_value(loss, t):
    return loss.scale * t


@define(SCALAR_CONJUGATES, losses.Norm)
def norm_conjugate(loss, s):
    return np.where(s <= loss.scale * (1 + FEASIBLE), 0.0, np.inf)


@define(SCALAR_VALUES, losses.Power)
def power_value(loss, t):
    return loss.scale / loss.eta * t**loss.eta


@define(SCALAR_CONJUGATES, losses.Power)
def power_conjugate(loss, s):
    order = conjugate_order(loss.eta)
    return loss.scale / order * (s / loss.scale) ** order


@define(SCALAR_VALUES, losses.Exponential)
def exponential_value(loss, t):
    return loss.scale * np.expm1(t)


@define(SCALAR_CONJUGATES, losses.Exponential)
def exponential_conjugate(loss, s):
    ratio = np.maximum(s / loss.scale, 1)
    return loss.scale * (ratio * np.log(ratio) - ratio + 1)


@define(SCALAR_VALUES, losses.NormLog)
def norm_log_value(loss, t):
    return loss.scale * np.maximum(t, 1 / np.e) * np.log(np.maximum(t, 1 / np.e))


@define(SCALAR_CONJUGATES, losses.NormLog)
def norm_log_conjugate(loss, s):
    return loss.scale * np.exp(s / loss.scale - 1)


@define(RADII, losses.Ball)
def ball_radius(loss):
    return loss.radius


@define(SCALAR_VALUES, losses.Ball)
def ball_value(loss, t):
    return np.where(t <= loss.radius * (1 + FEASIBLE), 0.0, np.inf)


@define(SCALAR_CONJUGATES, losses.Ball)
def ball_conjugate(loss, s):
    return loss.radius * s


@define(RADII, losses.InfimalConvolution)
def convolution_radius(loss):
    return radius_of(loss.f) + radius_of(loss.g)


def radius_of(loss):
    return RADII.get(type(loss), lambda _: math.inf)(loss)


@define(SCALAR_VALUES, losses.InfimalConvolution)
def convolution_value(loss, t):
    """min over s of f(s) + g(t - s), by golden section between the ends of the domain and at them."""

    def total(s):
        return SCALAR_VALUES[type(loss.f)](loss.f, s) + SCALAR_VALUES[type(loss.g)](loss.g, t - s)

    low = np.clip(t - radius_of(loss.g), 0, None)
    high = np.maximum(np.minimum(t, radius_of(loss.f)), low)
    best = np.minimum(total(low), total(high))
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        at_left, at_right = total(left), total(right)
        best = np.minimum(best, np.minimum(at_left, at_right))
        low, high = np.where(at_left <= at_right, low, left), np.where(at_left <= at_right, right, high)
    return best


@define(SCALAR_CONJUGATES, losses.InfimalConvolution)
def convolution_conjugate(loss, s):
    return SCALAR_CONJUGATES[type(loss.f)](loss.f, s) + SCALAR_CONJUGATES[type(loss.g)](loss.g, s)


@define(CONJUGATES, losses.InfimalConvolution)
def convolution_conjugate_of_rows(loss, duals, targets):
    return conjugate(loss.f, duals, targets) + conjugate(loss.g, duals, targets)


@define(VALUES, losses.Huber)
def huber_value(loss, residuals, targets):
    inner = project(residuals, loss.kappa, conjugate_order(loss.p))
    return np.sum(inner**2, axis=1) / 2 + loss.kappa * p_norm(residuals - inner, loss.p)


@define(CONJUGATES, losses.Huber)
def huber_conjugate(loss, duals, targets):
    inside = p_norm(duals, conjugate_order(loss.p)) <= loss.kappa * (1 + FEASIBLE)
    return np.where(inside, np.sum(duals**2, axis=1) / 2, np.inf)


@define(VALUES, losses.EpsilonRidge)
def epsilon_ridge_value(loss, residuals, targets):
    return np.sum((residuals - project(residuals, loss.epsilon, loss.p)) ** 2, axis=1) / 2


@define(CONJUGATES, losses.EpsilonRidge)
def epsilon_ridge_conjugate(loss, duals, targets):
    return np.sum(duals**2, axis=1) / 2 + loss.epsilon * p_norm(duals, conjugate_order(loss.p))


@define(VALUES, losses.EpsilonSVR)
def epsilon_svr_value(loss, residuals, targets):
    return np.clip(p_norm(residuals, loss.p) - loss.epsilon, 0, None)


@define(CONJUGATES, losses.EpsilonSVR)
def epsilon_svr_conjugate(loss, duals, targets):
    norms = p_norm(duals, conjugate_order(loss.p))
    return np.where(norms <= 1 + FEASIBLE, loss.epsilon * norms, np.inf)


@define(VALUES, losses.MaxMargin)
def max_margin_value(loss, residuals, targets):
    return np.clip(1 - np.sum((targets - residuals) * targets, axis=1), 0, None)


@define(CONJUGATES, losses.MaxMargin)
def max_margin_conjugate(loss, duals, targets):
    squared = np.sum(targets**2, axis=1)
    t = np.sum(duals * targets, axis=1) / squared
    off = p_norm(duals - t[:, None] * targets, 2) > FEASIBLE * np.sqrt(squared)
    return np.where(off | (t < -FEASIBLE) | (t > 1 + FEASIBLE), np.inf, t * (squared - 1))


@define(VALUES, losses.Pinball)
def pinball_value(loss, residuals, targets):
    return np.sum(np.where(residuals > 0, loss.levels, loss.levels - 1) * residuals, axis=1)


@define(CONJUGATES, losses.Pinball)
def pinball_conjugate(loss, duals, targets):
    inside = (duals >= loss.levels - 1 - FEASIBLE) & (duals <= loss.levels + FEASIBLE)
    return np.where(np.all(inside, axis=1), 0.0, np.inf)


def cost(loss, targets):
    """The weight of an error on each target."""
    return np.abs(loss.levels - (targets < 0))


@define(VALUES, losses.CostSensitiveHinge)
def cost_sensitive_hinge_value(loss, residuals, targets):
    margins = np.clip(1 - targets * (targets - residuals), 0, None)
    return np.sum(cost(loss, targets) * margins, axis=1)


@define(CONJUGATES, losses.CostSensitiveHinge)
def cost_sensitive_hinge_conjugate(loss, duals, targets):
    t = duals / targets
    inside = (t >= -FEASIBLE) & (t <= cost(loss, targets) + FEASIBLE)
    return np.where(np.all(inside, axis=1), np.sum(t * (targets**2 - 1), axis=1), np.inf)


@define(VALUES, losses.IntegralLoss)
def integral_value(loss, residuals, targets):
    assert isinstance(loss.point, losses.AsymmetricSquare)
    return np.sum(np.where(residuals > 0, loss.levels, 1 - loss.levels) * residuals**2, axis=1)


@define(CONJUGATES, losses.IntegralLoss)
def integral_conjugate(loss, duals, targets):
    return np.sum(duals**2 / (4 * np.where(duals > 0, loss.levels, 1 - loss.levels)), axis=1)
