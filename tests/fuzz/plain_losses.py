"""Losses and their conjugates written out in NumPy, each from its definition.

Functions take rows of orthonormal coordinates (n, p) and ``roots`` (n, p), the square roots of the quadrature weights
(ones for vectors), and return one number for each row. The p-norm of a curve f is that of its values under the weights:
``(sum w |f|^p)^(1/p)`` with ``f = coordinates / roots``.
"""

import math
import re

import numpy as np

_STEPS = 200  # of a bisection: enough for every float64
_SLACK = 1e4  # multiples of eps by which a dual may leave the domain of the conjugate


def conjugate_exponent(p):
    return math.inf if p == 1 else 1.0 if math.isinf(p) else p / (p - 1)


def norms(rows, roots, p):
    """Return the p-norm of each row."""
    if p == 2:
        return scaled_norm(rows, 2)
    seen = roots > 0
    values = np.where(seen, np.abs(rows) / np.where(seen, roots, 1.0), 0.0)
    if math.isinf(p):
        return values.max(axis=1, initial=0.0)
    return scaled_norm(values * roots ** (2 / p), p)


def scaled_norm(rows, p):
    """Return norms that neither overflow nor underflow."""
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    safe = np.where(largest > 0, largest, 1.0)
    return largest[:, 0] * np.sum(np.abs(rows / safe) ** p, axis=1) ** (1 / p)


def projected(rows, roots, radius, q):
    """Return the nearest points of the ball of the q-norm, by bisection on the multiplier of the constraint."""
    if q == 2:
        size = norms(rows, roots, 2)[:, None]
        return rows * np.minimum(1.0, radius / np.where(size > 0, size, 1.0))
    seen = np.where(roots > 0, roots, 1.0)
    values = np.where(roots > 0, np.abs(rows) / seen, 0.0)
    if math.isinf(q):
        return np.sign(rows) * roots * np.minimum(values, radius)

    largest = values.max(axis=1, initial=0.0, keepdims=True)
    shrunk, high = (_soft(values, largest), largest) if q == 1 else (_powers(values, q), _most(largest, radius, q))
    low = np.zeros((len(rows), 1))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_inside = (norms(shrunk(middle) * roots, roots, q) <= radius)[:, None]
        low, high = np.where(is_inside, middle, low), np.where(is_inside, high, middle)
    inside = (norms(rows, roots, q) <= radius)[:, None]
    return np.where(inside, rows, np.sign(rows) * roots * shrunk(low))


def _soft(values, largest):
    """Return the soft threshold that leaves a given amount of the largest value."""
    return lambda left: np.maximum(values - largest + left, 0.0)


def _powers(values, q):
    """Return the solutions v of v + v^(q - 1) / parameter = value."""

    def solved(parameter):
        low, high = np.zeros_like(values), values.copy()
        for _ in range(_STEPS):
            middle = (low + high) / 2
            is_high = middle + middle ** (q - 1) / np.maximum(parameter, 1e-300) > values
            low, high = np.where(is_high, low, middle), np.where(is_high, middle, high)
        return low

    return solved


def _most(largest, radius, q):
    """Return a parameter for which the solution leaves the ball, if the values do: the multiplier is tiny."""
    return 1e20 * np.maximum(largest, radius) ** (q - 2)


class Plain:
    """A loss of ``fenchel`` by its public parameters, on given targets (n, p).

    Residuals are known to ``errors`` (n, p), targets to ``target_errors``: predictions may be far larger than targets.
    """

    def __init__(self, loss, targets, roots, eps, errors=0.0, target_errors=0.0):
        self.loss, self.targets, self.roots, self.eps = loss, targets, roots, eps
        self.errors, self.target_errors = (np.broadcast_to(each, targets.shape) for each in (errors, target_errors))
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(loss).__name__).lower()
        self._form = getattr(self, f"_{name}", None)

    @property
    def is_known(self):
        return self._form is not None

    def value(self, rows):
        return self._form(rows, None)

    def conjugate(self, duals):
        """Return the conjugate; infinity outside its domain, round-off apart."""
        return self._form(None, duals)

    def _within(self, sizes, bound, values):
        return np.where(sizes <= bound * (1 + _SLACK * self.eps), values, np.inf)

    def _square(self, r, a):
        rows = r if a is None else a
        return np.sum(rows**2, axis=1) / 2

    def _huber(self, r, a):
        kappa, q = self.loss.kappa, conjugate_exponent(self.loss.p)
        if a is not None:
            return self._within(norms(a, self.roots, q), kappa, np.sum(a**2, axis=1) / 2)
        nearest = projected(r, self.roots, kappa, q)
        return np.sum(nearest * (r - nearest / 2), axis=1)

    def _epsilon_ridge(self, r, a):
        epsilon, p = self.loss.epsilon, self.loss.p
        if a is not None:
            return np.sum(a**2, axis=1) / 2 + epsilon * norms(a, self.roots, conjugate_exponent(p))
        return np.sum((r - projected(r, self.roots, epsilon, p)) ** 2, axis=1) / 2

    def _epsilon_svr(self, r, a):
        epsilon, p = self.loss.epsilon, self.loss.p
        if a is not None:
            size = norms(a, self.roots, conjugate_exponent(p))
            return self._within(size, 1.0, epsilon * size)
        return np.maximum(norms(r, self.roots, p) - epsilon, 0.0)

    def _norm(self, r, a):
        if a is not None:
            return self._within(norms(a, self.roots, 2), self.loss.scale, np.zeros(len(a)))
        return self.loss.scale * norms(r, self.roots, 2)

    def _power(self, r, a):
        scale, eta = self.loss.scale, self.loss.eta
        if a is not None:
            other = conjugate_exponent(eta)
            return scale / other * (norms(a, self.roots, 2) / scale) ** other
        return scale / eta * norms(r, self.roots, 2) ** eta

    def _exponential(self, r, a):
        scale = self.loss.scale
        if a is not None:
            size = np.maximum(norms(a, self.roots, 2), scale)
            return size * np.log(size / scale) - size + scale
        return scale * np.expm1(norms(r, self.roots, 2))

    def _norm_log(self, r, a):
        scale = self.loss.scale
        if a is not None:
            return scale * np.exp(norms(a, self.roots, 2) / scale - 1)
        size = np.maximum(norms(r, self.roots, 2), 1 / math.e)
        return scale * size * np.log(size)

    def _ball(self, r, a):
        if a is not None:
            return self.loss.radius * norms(a, self.roots, 2)
        return self._within(
            norms(r, self.roots, 2), self.loss.radius + norms(self.errors, self.roots, 2), np.zeros(len(r))
        )

    def _max_margin(self, r, a):
        y = np.where(np.abs(self.targets) <= self.target_errors, 0.0, self.targets)
        squared = np.sum(y**2, axis=1)
        if a is None:
            return np.maximum(0.0, 1 - np.sum((y - r) * y, axis=1))
        t = np.where(squared > 0, np.sum(a * y, axis=1) / np.where(squared > 0, squared, 1.0), 1.0)
        off = norms(a - t[:, None] * y, self.roots, 2)
        slack = _SLACK * self.eps * np.sqrt(squared) + 8 * norms(self.target_errors, self.roots, 2)
        share = np.where(squared > 0, slack / np.where(squared > 0, np.sqrt(squared), 1.0), 0.0)
        is_on = (off <= slack) & (t >= -share) & (t <= 1 + share)
        return np.where(is_on, t * (squared - 1), np.inf)

    def _pinball(self, r, a):
        levels = self._levels()
        if a is None:
            return np.sum(self.roots * np.maximum(levels * r, (levels - 1) * r), axis=1)
        return self._in_box(a, (levels - 1) * self.roots, levels * self.roots, 0 * a)

    def _cost_sensitive_hinge(self, r, a):
        seen = np.where(self.roots > 0, self.roots, 1.0)
        y = self.targets / seen
        weight = np.where(y < 0, 1 - self._levels(), self._levels())
        if a is None:
            return np.sum(self.roots**2 * weight * np.maximum(0.0, 1 - y * (y - r / seen)), axis=1)
        end = weight * y * self.roots
        slope = self.roots * (y - 1 / np.where(y == 0, 1.0, y))
        return self._in_box(a, np.minimum(end, 0), np.maximum(end, 0), slope * a)

    def _integral_loss(self, r, a):  # of the asymmetric square
        rows, levels = (r if a is None else a), self._levels()
        weight = np.where(rows < 0, 1 - levels, levels)
        return np.sum(weight * r**2 if a is None else a**2 / (4 * weight), axis=1)

    def _infimal_convolution(self, r, a):
        parts = [Plain(part, self.targets, self.roots, self.eps) for part in (self.loss.f, self.loss.g)]
        if a is not None:
            return parts[0].conjugate(a) + parts[1].conjugate(a)
        low, high = np.zeros((len(r), 1)), np.ones((len(r), 1))

        def total(share):
            return (parts[0].value(share * r) + parts[1].value((1 - share) * r))[:, None]

        for _ in range(_STEPS):  # ternary search for the share of the residual that the first part takes
            left, right = low + (high - low) / 3, high - (high - low) / 3
            is_right = total(left) > total(right)
            low, high = np.where(is_right, left, low), np.where(is_right, high, right)
        ends = np.minimum(total(0 * low), total(0 * low + 1))
        return np.minimum(total((low + high) / 2), ends)[:, 0]

    def _levels(self):
        levels = np.atleast_1d(np.asarray(self.loss.levels, dtype=float))
        return np.repeat(levels, self.targets.shape[1] // len(levels)) if len(levels) > 1 else levels

    def _in_box(self, a, low, high, values):
        slack = _SLACK * self.eps * self.roots
        is_inside = np.all((a >= low - slack) & (a <= high + slack), axis=1)
        return np.where(is_inside, np.sum(values, axis=1), np.inf)
