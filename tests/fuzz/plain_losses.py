"""Losses and their conjugates written out in NumPy, each from its definition.

Functions take rows of orthonormal coordinates (n, p) and ``roots`` (n, p), the square roots of the quadrature weights
(ones for vectors), and return one number for each row. The p-norm of a curve f is that of its values under the weights:
``(sum w |f|^p)^(1/p)`` with ``f = coordinates / roots``.
"""

import math

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

    def shrunk(multiplier):
        if q == 1:
            return np.maximum(values - multiplier, 0.0)
        low, high = np.zeros_like(values), values.copy()
        for _ in range(_STEPS):  # v + multiplier v^(q-1) = |value|
            middle = (low + high) / 2
            is_high = middle + multiplier * middle ** (q - 1) > values
            low, high = np.where(is_high, low, middle), np.where(is_high, middle, high)
        return (low + high) / 2

    low = np.zeros((len(rows), 1))
    largest = values.max(axis=1, initial=0.0, keepdims=True)
    high = np.maximum(largest, largest ** (2 - q) if q > 1 else largest) * 1e6 + 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_outside = (norms(shrunk(middle) * roots, roots, q) > radius)[:, None]
        low, high = np.where(is_outside, middle, low), np.where(is_outside, high, middle)
    inside = (norms(rows, roots, q) <= radius)[:, None]
    return np.where(inside, rows, np.sign(rows) * roots * shrunk(high))


class Plain:
    """A loss of ``fenchel`` by its public parameters, on given targets (n, p)."""

    def __init__(self, loss, targets, roots, eps):
        self.loss, self.targets, self.roots, self.eps = loss, targets, roots, eps
        self.name = type(loss).__name__

    @property
    def is_known(self):
        return hasattr(self, f"_{self.name}")

    def value(self, rows):
        return getattr(self, f"_{self.name}")(rows, None)

    def conjugate(self, duals):
        """Return the conjugate; infinity outside its domain, round-off apart."""
        return getattr(self, f"_{self.name}")(None, duals)

    def _within(self, sizes, bound, values):
        return np.where(sizes <= bound * (1 + _SLACK * self.eps), values, np.inf)

    def _Square(self, r, a):
        rows = r if a is None else a
        return np.sum(rows**2, axis=1) / 2

    def _Huber(self, r, a):
        kappa, q = self.loss.kappa, conjugate_exponent(self.loss.p)
        if a is not None:
            return self._within(norms(a, self.roots, q), kappa, np.sum(a**2, axis=1) / 2)
        nearest = projected(r, self.roots, kappa, q)
        return np.sum(nearest * (r - nearest / 2), axis=1)

    def _EpsilonRidge(self, r, a):
        epsilon, p = self.loss.epsilon, self.loss.p
        if a is not None:
            return np.sum(a**2, axis=1) / 2 + epsilon * norms(a, self.roots, conjugate_exponent(p))
        return np.sum((r - projected(r, self.roots, epsilon, p)) ** 2, axis=1) / 2

    def _EpsilonSVR(self, r, a):
        epsilon, p = self.loss.epsilon, self.loss.p
        if a is not None:
            size = norms(a, self.roots, conjugate_exponent(p))
            return self._within(size, 1.0, epsilon * size)
        return np.maximum(norms(r, self.roots, p) - epsilon, 0.0)

    def _Norm(self, r, a):
        if a is not None:
            return self._within(norms(a, self.roots, 2), self.loss.scale, np.zeros(len(a)))
        return self.loss.scale * norms(r, self.roots, 2)

    def _Power(self, r, a):
        scale, eta = self.loss.scale, self.loss.eta
        if a is not None:
            other = conjugate_exponent(eta)
            return scale / other * (norms(a, self.roots, 2) / scale) ** other
        return scale / eta * norms(r, self.roots, 2) ** eta

    def _Exponential(self, r, a):
        scale = self.loss.scale
        if a is not None:
            size = np.maximum(norms(a, self.roots, 2), scale)
            return size * np.log(size / scale) - size + scale
        return scale * np.expm1(norms(r, self.roots, 2))

    def _NormLog(self, r, a):
        scale = self.loss.scale
        if a is not None:
            return scale * np.exp(norms(a, self.roots, 2) / scale - 1)
        size = np.maximum(norms(r, self.roots, 2), 1 / math.e)
        return scale * size * np.log(size)

    def _Ball(self, r, a):
        if a is not None:
            return self.loss.radius * norms(a, self.roots, 2)
        return self._within(norms(r, self.roots, 2), self.loss.radius, np.zeros(len(r)))

    def _MaxMargin(self, r, a):
        y = self.targets
        squared = np.sum(y**2, axis=1)
        if a is None:
            return np.maximum(0.0, 1 - np.sum((y - r) * y, axis=1))
        t = np.where(squared > 0, np.sum(a * y, axis=1) / np.where(squared > 0, squared, 1.0), 1.0)
        off = norms(a - t[:, None] * y, self.roots, 2) / np.where(squared > 0, np.sqrt(squared), 1.0)
        is_on = (off <= _SLACK * self.eps) & (t >= -_SLACK * self.eps) & (t <= 1 + _SLACK * self.eps)
        return np.where(is_on, t * (squared - 1), np.inf)

    def _Pinball(self, r, a):
        levels = self._levels()
        if a is None:
            return np.sum(self.roots * np.maximum(levels * r, (levels - 1) * r), axis=1)
        return self._in_box(a, (levels - 1) * self.roots, levels * self.roots, 0 * a)

    def _CostSensitiveHinge(self, r, a):
        seen = np.where(self.roots > 0, self.roots, 1.0)
        y = self.targets / seen
        weight = np.where(y < 0, 1 - self._levels(), self._levels())
        if a is None:
            return np.sum(self.roots**2 * weight * np.maximum(0.0, 1 - y * (y - r / seen)), axis=1)
        end = weight * y * self.roots
        slope = self.roots * (y - 1 / np.where(y == 0, 1.0, y))
        return self._in_box(a, np.minimum(end, 0), np.maximum(end, 0), slope * a)

    def _IntegralLoss(self, r, a):  # of the asymmetric square
        rows, levels = (r if a is None else a), self._levels()
        weight = np.where(rows < 0, 1 - levels, levels)
        return np.sum(weight * r**2 if a is None else a**2 / (4 * weight), axis=1)

    def _InfimalConvolution(self, r, a):
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
