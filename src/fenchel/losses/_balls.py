"""Row-wise p-norms and Euclidean projections on their balls."""

import math
from dataclasses import dataclass, replace

import numpy as np

from fenchel._array import Array, Index, as_like, device, eps, host, is_numpy, namespace, row_norms

__all__ = ["PNorm", "take_rows"]

_BLOCK = 2**16  # entries processed at once on a CPU, to fit in its cache
_PATIENCE = 12  # steps before a bracket is kept: plain Newton needs 3 to 8, but has no convergence proof for p < 2
_MAX_ITER = 200  # safeguard; at most about 60 have been observed


@dataclass(frozen=True, eq=False)
class PNorm:
    r"""The norm of order ``p`` of point values, computed from orthonormal coordinates.

    A row :math:`c` holds :math:`c_j = \sqrt{w_j} f_j`, where :math:`f_j` is the value at a point of weight :math:`w_j`:

    .. math:: |f|_p = \bigl(\sum_j w_j |f_j|^p\bigr)^{1/p}, \qquad |f|_\infty = \max_j |f_j|.

    Its dual norm, for the Euclidean product of coordinates, is the norm of order :math:`q`, :math:`1/p + 1/q = 1`.

    Parameters
    ----------
    p : float
        Order of the norm, in [1, inf].
    scale : array of shape (m,) or (n, m), default=None
        Square roots of the weights, shared by all rows or row by row; ``None`` means one. Zero means that the point
        was not observed: its coordinate must be zero in all rows.
    """

    p: float
    scale: Array | None = None

    def norm(self, rows: Array) -> Array:
        """Return the norms of the rows, shape (n, 1)."""
        if self.p == 2:
            return row_norms(rows)
        scale = self._scale_like(rows)
        return _norm(_magnitudes(rows, scale), _weights(scale), self.p)

    def magnitudes(self, rows: Array) -> Array:
        """Return the absolute point values, shape (n, m); zero at unobserved points."""
        return _magnitudes(rows, self._scale_like(rows))

    def dual(self) -> "PNorm":
        """Return the dual norm, of order ``p / (p - 1)``."""
        return PNorm(_conjugate_exponent(self.p), self.scale)

    def per_euclidean(self, n_coordinates: int) -> float:
        """Return the largest norm of a row of Euclidean norm one.

        By Hölder's inequality it is that of a constant for p < 2, and of a single point of least weight for p > 2.
        """
        weights = np.ones(n_coordinates) if self.scale is None else host(self.scale) ** 2
        weights = weights[weights > 0]
        return float((np.sum(weights) if self.p < 2 else np.min(weights)) ** (1 / self.p - 0.5))

    def project(self, rows: Array, radius: float | Array) -> Array:
        """Return the Euclidean projection of each row on the ball of radius at least 0, a float or (n, 1).

        Rows inside the ball are returned unchanged, bit for bit.
        """
        xp = namespace(rows)
        if isinstance(radius, float | int) or radius.ndim == 0:
            radius = xp.full_like(rows[:, :1], float(radius))
        radius = as_like(radius, rows)
        positive = radius > 0
        if not bool(xp.all(positive)):  # a zero row lies inside a ball of any radius
            rows, radius = xp.where(positive, rows, xp.zeros_like(rows)), xp.where(positive, radius, 1.0)
        if self.p == 2:
            return rows * (radius / xp.maximum(row_norms(rows), radius))
        scale = self._scale_like(rows)
        if math.isinf(self.p):
            bound = radius if scale is None else radius * scale
            return xp.clip(rows, -bound, bound)
        size = rows.shape[0]
        if is_numpy(rows) and rows.size > 2 * _BLOCK:
            size = max(1, _BLOCK // rows.shape[1])
        parts = [slice(first, first + size) for first in range(0, rows.shape[0], size)]
        done = [_project_outside(rows[part, :], take_rows(scale, part), self.p, radius[part, :]) for part in parts]
        return done[0] if len(done) == 1 else xp.concat(done)

    def _scale_like(self, rows: Array) -> Array | None:
        """Return the scale with the dtype and device of the rows."""
        return None if self.scale is None else as_like(self.scale, rows)


def _conjugate_exponent(p: float) -> float:
    """Return q with 1/p + 1/q = 1."""
    if p == 1:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1)


def _magnitudes(rows: Array, scale: Array | None) -> Array:
    """Return the absolute point values; zero where the scale is zero."""
    xp = namespace(rows)
    if scale is None:
        return xp.abs(rows)
    return xp.abs(rows) / xp.where(scale > 0, scale, xp.zeros_like(scale) + math.inf)


def _weights(scale: Array | None) -> Array | None:
    """Return the weights, the squares of the scale."""
    return None if scale is None else scale * scale


def _weighted(values: Array, weights: Array | None) -> Array:
    """Return the values times their weights."""
    return values if weights is None else values * weights


def _power(base: Array, exponent: float) -> Array:
    """Return a power of a non-negative array; small half-integers use products and a square root, not a logarithm."""
    if exponent not in (0.5, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0):
        return base**exponent
    out = namespace(base).sqrt(base) if exponent % 1 else base
    for _ in range(math.ceil(exponent) - 1):
        out = out * base
    return out


def _norm(magnitudes: Array, weights: Array | None, p: float) -> Array:
    """Return the p-norms, shape (n, 1), scaled by the largest value to avoid overflow."""
    xp = namespace(magnitudes)
    if p == 1:
        return xp.sum(_weighted(magnitudes, weights), axis=1, keepdims=True)
    top = xp.max(magnitudes, axis=1, keepdims=True)
    if math.isinf(p):
        return top
    ratios = magnitudes / xp.where(top > 0, top, 1.0)
    return top * xp.sum(_weighted(_power(ratios, p), weights), axis=1, keepdims=True) ** (1 / p)


def _project_outside(rows: Array, scale: Array | None, p: float, radius: Array) -> Array:
    """Project the rows that are outside the ball of finite order ``p``; leave the others unchanged."""
    xp = namespace(rows)
    values, weights = _magnitudes(rows, scale), _weights(scale)
    size = _norm(values, weights, p)
    outside = (size > radius)[:, 0]
    if not bool(xp.any(outside)):
        return rows
    if bool(xp.all(outside)):
        return _shrink(rows, scale, values, weights, p, radius, size)
    out = xp.asarray(rows, copy=True)
    parts = (take_rows(array, outside) for array in (rows, scale, values, weights, radius, size))
    rows, scale, values, weights, radius, size = parts
    out[outside] = _shrink(rows, scale, values, weights, p, radius, size)
    return out


def _shrink(
    rows: Array, scale: Array | None, values: Array, weights: Array | None, p: float, radius: Array, size: Array
) -> Array:
    """Project rows outside the ball of finite order, given their absolute point values and p-norms.

    Rows so far away that only their direction counts are moved closer, since their powers overflow.
    """
    xp, limit = namespace(rows), eps(rows) ** -2
    is_far = size * (1 / limit) > radius
    norms = xp.where(is_far, limit, size / radius)
    scaled = xp.where(is_far, limit * (values / size), values / radius)
    solved = _unit_ball_one(scaled, weights) if p == 1 else _unit_ball(scaled, weights, p, norms)
    solved *= radius
    return xp.copysign(_weighted(xp.minimum(solved, values), scale), rows)


def take_rows(array: Array | None, index: Index) -> Array:
    """Return the rows selected by a slice, a mask or integers; an array shared by all rows is returned unchanged."""
    if array is None or array.ndim == 1:
        return array
    if isinstance(index, slice):
        return array[index, ...]
    xp = namespace(array)
    index = xp.asarray(index, device=device(array))
    return array[index] if xp.isdtype(index.dtype, "bool") else xp.take(array, index, axis=0)


def _unit_ball_one(values: Array, weights: Array | None) -> Array:
    """Project non-negative values of 1-norm above 1 on the unit ball of order 1: a soft threshold.

    Newton's method on the weighted sum of ``max(height - depth, 0)``, where the depth is measured from the largest
    value to avoid cancellation. The sum is convex and piecewise linear in the height, so the iteration is finite and
    monotone.
    """
    xp = namespace(values)
    depth = xp.max(values, axis=1, keepdims=True) - values
    weights = xp.ones_like(depth) if weights is None else xp.broadcast_to(weights, depth.shape)
    height = xp.full_like(depth[:, :1], math.inf)
    while True:
        active = weights * xp.astype(depth < height, depth.dtype)
        lower = (1 + xp.vecdot(active, depth)) / xp.sum(active, axis=1)
        if not bool(xp.any(lower < height[:, 0])):
            break
        height = xp.minimum(height, lower[:, None])
    solved = xp.clip(height - depth, min=0.0)
    return solved / xp.clip(xp.sum(weights * solved, axis=1, keepdims=True), min=1.0)


@dataclass(frozen=True, eq=False)
class _Multipliers:
    r"""State of a Newton iteration that projects rows on the unit sphere of order ``p``, in all unknowns at once.

    The projection of ``values`` :math:`g` solves :math:`x + \mu x^{p-1} = g` entry by entry and
    :math:`\sum_j w_j x_j^p = 1`. With :math:`y = x^{p-1}` the entries read :math:`\alpha v^e + \beta v = g`, where
    the exponent ``power`` :math:`e = \max(p, q) - 1 \ge 1` makes the left side convex:
    :math:`v = x, (\alpha, \beta) = (\mu, 1)` for :math:`p \ge 2`, and :math:`v = y, (\alpha, \beta) = (1, \mu)` for
    :math:`p < 2`. In both cases :math:`x^p = v^{1+e}`.

    Parameters
    ----------
    p, power : float
        Order of the norm; the exponent :math:`e`.
    values, roots : array of shape (n, m)
        The right-hand side :math:`g`, and :math:`g^{1/e}`.
    weights : array of shape (m,) or (n, m), or None
        Weights of the points.
    unknowns : array of shape (n, m)
        The current :math:`v`.
    mu, low, high : array of shape (n, 1)
        The current multiplier and its bracket.
    """

    p: float
    power: float
    values: Array
    roots: Array
    weights: Array | None
    unknowns: Array
    mu: Array
    low: Array
    high: Array

    def take(self, keep: Array) -> "_Multipliers":
        """Return the state restricted to the rows where ``keep`` holds."""
        arrays = {name: value for name, value in vars(self).items() if name not in ("p", "power")}
        return _Multipliers(self.p, self.power, **{name: take_rows(array, keep) for name, array in arrays.items()})

    def bound(self, mu: Array) -> Array:
        """Return an upper bound on the unknowns, less than twice their value: either term alone equals ``g``."""
        xp = namespace(mu)
        if self.p >= 2:
            return xp.minimum(self.values, self.roots * mu ** (-1 / self.power))
        return xp.minimum(self.roots, self.values / mu)

    def step(self, careful: bool) -> tuple["_Multipliers", Array]:
        """Return the next state, and a mask of the rows that have not converged, shape (n,).

        It writes in place, but only to arrays created here: allocating new ones would take half of the time.
        """
        xp, e = namespace(self.mu), self.power
        powers = _power(self.unknowns, e)
        reply = self.mu * (self.unknowns if self.p < 2 else powers)  # the term of the equation that contains mu
        first, second = (powers, reply) if self.p < 2 else (reply, self.unknowns)
        slope = e * first
        slope += second
        change = self.values - first
        change -= second
        change /= slope  # relative change of v by Newton's method at fixed mu
        reply /= slope  # minus the derivative of log v in log mu
        powers *= self.unknowns
        powers = _weighted(powers, self.weights)
        total = xp.sum(powers, axis=1)[:, None]
        shift = (1 + e) * xp.vecdot(powers, change)[:, None]
        gain = (1 + e) * xp.vecdot(powers, reply)[:, None]
        error = xp.sqrt(xp.vecdot(change, change))[:, None]
        done = self._is_last(total + shift, error)
        mu, low, high = self._next_multiplier(total, shift, gain, done, careful)
        change += 1
        change *= self.unknowns
        reply *= mu / self.mu - 1
        reply += 1
        change /= reply
        return replace(self, unknowns=xp.minimum(change, self.bound(mu)), mu=mu, low=low, high=high), ~done[:, 0]

    def _is_last(self, size: Array, error: Array) -> Array:
        """Where this step leaves only rounding errors, since convergence is quadratic."""
        root, rounding, spread = 0.1 * math.sqrt(eps(size)), 16 * eps(size), 1 + self.power
        is_on_sphere = abs(size - 1) <= root + rounding * spread
        return is_on_sphere & (error <= root / max(1.0, spread / 10) + rounding * math.sqrt(self.values.shape[1]))

    def _next_multiplier(
        self, total: Array, shift: Array, gain: Array, done: Array, careful: bool
    ) -> tuple[Array, Array, Array]:
        r"""Return the next multiplier and its bracket, by a Newton step on :math:`|x(\mu)|_p^{-(p-1)} = 1`.

        The left side is close to linear in the multiplier when it is small, when it is large, and for any multiplier
        when p = 2 (the secular equation of trust regions); it is concave for p > 2. Rows whose entries are still far
        from :math:`x(\mu)` keep their multiplier.
        """
        xp, q, mu, low, high = namespace(total), self.p / (self.p - 1), self.mu, self.low, self.high
        size = total + shift
        rounding = 16 * (1 + self.power) * eps(mu)
        settled = done | (xp.abs(shift) <= (xp.abs(size - 1) / 100 + rounding if careful else total / 2))
        size = xp.where(settled, size, 1.0)
        rise = q * (size ** (1 / q) - 1) * size / xp.where(gain > 0, gain, 1.0)
        step = mu * (1 + xp.where(gain > 0, xp.clip(rise, -0.9, 100.0), -0.9))
        if careful:
            low = xp.where(size > 1, xp.maximum(low, mu), low)
            high = xp.where(size < 1, xp.minimum(high, mu), high)
            astray = ((step < low) | (step > high)) & settled & ~done
            middle = xp.sqrt(xp.maximum(low, mu / 100)) * xp.sqrt(xp.minimum(high, mu * 100))
            step = xp.where(astray, middle, step)
        return step, low, high


def _unit_ball(values: Array, weights: Array | None, p: float, size: Array) -> Array:
    """Project non-negative values of p-norm ``size`` above 1 on the unit ball of order p, 1 < p < inf."""
    xp = namespace(values)
    power = max(p, p / (p - 1)) - 1
    if abs(power - round(power)) < 1e-15:  # p = 4/3 means the cube
        power = float(round(power))
    radial = xp.sum(_weighted(values * values, weights), axis=1, keepdims=True) / size**2
    values = xp.clip(values, min=math.sqrt(xp.finfo(values.dtype).smallest_normal))  # avoids division by zero
    start = radial * xp.clip(size - 1, min=eps(values))  # the multiplier <x, g - x>, at the radial point x = g / size
    state = _Multipliers(
        p=p,
        power=power,
        values=values,
        roots=_power(values, 1 / power),
        weights=weights,
        unknowns=values,
        mu=start,
        low=xp.zeros_like(start),
        high=xp.full_like(start, math.inf),
    )
    unknowns = _iterate(replace(state, unknowns=state.bound(start)))
    powers = _power(unknowns, power)
    total = xp.sum(_weighted(unknowns * powers, weights), axis=1, keepdims=True)
    return (powers if p < 2 else unknowns) / xp.clip(total, min=1.0) ** (1 / p)


def _iterate(state: _Multipliers, count: int = 0) -> Array:
    """Iterate to the solution; continue with the unfinished rows alone once they are a minority."""
    xp = namespace(state.mu)
    while count < _MAX_ITER:
        state, busy = state.step(careful=count >= _PATIENCE)
        count += 1
        left = int(xp.sum(xp.astype(busy, xp.int64)))
        if left == 0:
            break
        if 2 * left <= busy.shape[0]:
            unknowns = state.unknowns
            unknowns[busy] = _iterate(state.take(busy), count)
            return unknowns
    return state.unknowns
