"""Scalar profiles: the convex function of the norm behind a radial loss, and its conjugate.

A radial loss is ``l(r) = f(|r|)`` with f convex and non-decreasing on [0, inf). Then ``l*(a) = f*(|a|)`` and the prox
of ``l*`` moves along the row: everything is one-dimensional, for all rows at once.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from fenchel._array import Array, Namespace, eps, indicator, namespace

__all__ = ["Ball", "Convolution", "Exponential", "Linear", "NormLog", "Power", "Profile", "Quadratic"]

Step = float | Array  # step of a prox: one number, or an array with one per row
Prox = Callable[[Array, Step], Array]

_HALVINGS = 120  # more than bisection needs to narrow a bracket to the last bit of float64
_FEW, _DECADES = 6, 1e3  # after this many steps, a bracket whose ends have this ratio is halved on a log scale


class Profile(ABC):
    """A convex non-decreasing f on [0, ``radius``], with its conjugate on [0, ``bound``].

    A new profile implements ``value``, ``conjugate`` and ``slope``; the rest follows by bisection unless overridden.
    """

    curvature: float = 0.0  # the conjugate contains curvature / 2 * s**2
    bound: float = math.inf
    radius: float = math.inf

    @abstractmethod
    def value(self, t: Array) -> Array:
        """Return f(t)."""

    @abstractmethod
    def conjugate(self, s: Array) -> Array:
        """Return f*(s), infinity beyond ``bound``."""

    @abstractmethod
    def slope(self, s: Array) -> Array:
        """Return the right derivative of f* at s, infinity at ``bound`` and beyond."""

    def prox(self, s: Array, step: Step) -> Array:
        """Return the prox of ``step * f*`` at s >= 0."""
        # u + step * slope(u) = s has its root in [0, s]; the root is zero where the slope at zero is already too large
        xp = namespace(s)
        most = float(xp.finfo(s.dtype).max) / (1 + step)  # infinity times a zero step would be NaN
        return _solve_increasing(lambda u: u + step * xp.clip(self.slope(u), max=most), s, high=s)

    def remainder(self) -> "Profile":
        """Return the profile whose conjugate is f* without its quadratic part."""
        return self

    def absorb(self, prox: Prox, s: Array, step: Step) -> Array | None:
        """Return the prox of (this conjugate + another) given the other's prox, or ``None`` if there is no formula."""
        return None


@dataclass(frozen=True)
class Quadratic(Profile):
    """f(t) = t**2 / 2."""

    curvature = 1.0

    def value(self, t: Array) -> Array:
        """Return t**2 / 2."""
        return t**2 / 2

    def conjugate(self, s: Array) -> Array:
        """Return s**2 / 2."""
        return s**2 / 2

    def slope(self, s: Array) -> Array:
        """Return s."""
        return s

    def prox(self, s: Array, step: Step) -> Array:
        """Return s / (1 + step)."""
        return s / (1 + step)

    def remainder(self) -> Profile:
        """Return the profile whose conjugate is zero."""
        return Ball(0.0)

    def absorb(self, prox: Prox, s: Array, step: Step) -> Array:
        """Scale, then apply the other prox with the shortened step."""
        return prox(s / (1 + step), step / (1 + step))


@dataclass(frozen=True)
class Linear(Profile):
    """f(t) = scale * t."""

    scale: float

    @property
    def bound(self) -> float:  # type: ignore[override]
        """Return the largest dual norm."""
        return self.scale

    def value(self, t: Array) -> Array:
        """Return scale * t."""
        return self.scale * t

    def conjugate(self, s: Array) -> Array:
        """Return the indicator of [0, scale]."""
        return indicator(s / self.scale)

    def slope(self, s: Array) -> Array:
        """Return 0 below ``scale``, infinity from there on."""
        xp = namespace(s)
        zero = xp.zeros_like(s)
        return xp.where(s < self.scale, zero, zero + math.inf)

    def prox(self, s: Array, step: Step) -> Array:
        """Return the projection on [0, scale]."""
        return namespace(s).clip(s, max=self.scale)

    def absorb(self, prox: Prox, s: Array, step: Step) -> Array:
        """Clip the other prox: in one dimension a bound is enforced by clipping."""
        return namespace(s).clip(prox(s, step), max=self.scale)


@dataclass(frozen=True)
class Ball(Profile):
    """f = indicator of [0, limit]."""

    limit: float

    @property
    def radius(self) -> float:  # type: ignore[override]
        """Return the largest residual norm."""
        return self.limit

    def value(self, t: Array) -> Array:
        """Return 0 in the ball, infinity outside."""
        xp = namespace(t)
        zero = xp.zeros_like(t)
        return xp.where(t <= self.limit * (1 + 16 * eps(t)), zero, zero + math.inf)

    def conjugate(self, s: Array) -> Array:
        """Return limit * s."""
        return self.limit * s

    def slope(self, s: Array) -> Array:
        """Return limit."""
        return namespace(s).zeros_like(s) + self.limit

    def prox(self, s: Array, step: Step) -> Array:
        """Return the soft threshold."""
        return namespace(s).clip(s - step * self.limit, min=0.0)

    def absorb(self, prox: Prox, s: Array, step: Step) -> Array:
        """Shift the argument of the other prox by the linear term."""
        return prox(self.prox(s, step), step)


@dataclass(frozen=True)
class Power(Profile):
    """f(t) = scale / eta * t**eta, eta > 1."""

    eta: float
    scale: float

    @property
    def _conjugate_exponent(self) -> float:
        return self.eta / (self.eta - 1)

    def value(self, t: Array) -> Array:
        """Return scale / eta * t**eta."""
        return self.scale / self.eta * t**self.eta

    def conjugate(self, s: Array) -> Array:
        """Return scale / eta' * (s / scale)**eta', where eta' is the conjugate exponent."""
        exponent = self._conjugate_exponent
        return self.scale / exponent * (s / self.scale) ** exponent

    def slope(self, s: Array) -> Array:
        """Return (s / scale)**(eta' - 1)."""
        return (s / self.scale) ** (self._conjugate_exponent - 1)


@dataclass(frozen=True)
class Exponential(Profile):
    """f(t) = scale * (exp(t) - 1)."""

    scale: float

    def value(self, t: Array) -> Array:
        """Return scale * (exp(t) - 1)."""
        return self.scale * _exp(t, minus_one=True)

    def conjugate(self, s: Array) -> Array:
        """Return s log(s / scale) - s + scale where s >= scale, 0 below."""
        xp = namespace(s)
        ratio = xp.clip(s / self.scale, min=1.0)
        return self.scale * (ratio * xp.log(ratio) - ratio + 1)

    def slope(self, s: Array) -> Array:
        """Return log(s / scale) where positive."""
        xp = namespace(s)
        return xp.log(xp.clip(s / self.scale, min=1.0))


@dataclass(frozen=True)
class NormLog(Profile):
    """f = convex envelope of scale * t log t, constant up to 1 / e."""

    scale: float

    def value(self, t: Array) -> Array:
        """Return scale * t log t beyond 1 / e, -scale / e below."""
        xp = namespace(t)
        clipped = xp.clip(t, min=1 / math.e)
        return self.scale * clipped * xp.log(clipped)

    def conjugate(self, s: Array) -> Array:
        """Return scale * exp(s / scale - 1)."""
        return self.scale * _exp(s / self.scale - 1)

    def slope(self, s: Array) -> Array:
        """Return exp(s / scale - 1)."""
        return _exp(s / self.scale - 1)


@dataclass(frozen=True)
class Convolution(Profile):
    """f = first □ second: the conjugates add."""

    first: Profile
    second: Profile

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """Return the sum of the two."""
        return self.first.curvature + self.second.curvature

    @property
    def bound(self) -> float:  # type: ignore[override]
        """Return the smaller of the two."""
        return min(self.first.bound, self.second.bound)

    @property
    def radius(self) -> float:  # type: ignore[override]
        """Return the sum of the two."""
        return self.first.radius + self.second.radius

    def value(self, t: Array) -> Array:
        """Return the supremum of s t - f*(s), infinity beyond ``radius``."""
        s = self._maximiser(t)
        inside = s * t - self.conjugate(s)
        if not math.isfinite(self.radius):
            return inside
        return namespace(t).where(t <= self.radius * (1 + 16 * eps(t)), inside, namespace(t).zeros_like(t) + math.inf)

    def _maximiser(self, t: Array) -> Array:
        """Return the s that attains f(t) = s t - f*(s), which is a prox if the conjugate has a quadratic part."""
        if self.curvature > 0:
            return self.remainder().prox(t / self.curvature, 1 / self.curvature)
        is_bounded = math.isfinite(self.bound)
        high = namespace(t).zeros_like(t) + self.bound if is_bounded else _grow(self.slope, t)
        return _solve_increasing(self.slope, t, high)

    def conjugate(self, s: Array) -> Array:
        """Return the sum of the two conjugates."""
        return self.first.conjugate(s) + self.second.conjugate(s)

    def slope(self, s: Array) -> Array:
        """Return the sum of the two slopes."""
        return self.first.slope(s) + self.second.slope(s)

    def prox(self, s: Array, step: Step) -> Array:
        """Return the prox of the sum, by formula if one part can absorb the other, else by bisection."""
        for part, other in ((self.first, self.second), (self.second, self.first)):
            absorbed = part.absorb(other.prox, s, step)
            if absorbed is not None:
                return absorbed
        return Profile.prox(self, s, step)

    def remainder(self) -> Profile:
        """Return the convolution of the two remainders."""
        return Convolution(self.first.remainder(), self.second.remainder())


def _solve_increasing(function: Callable[[Array], Array], level: Array, high: Array) -> Array:
    """Return the u in [0, high] with function(u) = level; 0 where function(0) >= level.

    Chandrupatla's method on all entries at once: inverse quadratic interpolation where it is safe, bisection elsewhere,
    so that a jump of the function costs no more than a bisection. If the bracket still spans several decades after a
    few steps, it is halved on a logarithmic scale.
    """
    xp = namespace(level)
    limit = xp.clip(level, min=float(xp.finfo(level.dtype).max) ** 0.25)  # of an excess; at least the level

    def excess(u: Array) -> Array:
        return xp.minimum(function(u) - level, limit)

    a, b = xp.zeros_like(level), high
    fa, fb = excess(a), excess(b)
    is_zero = fa >= 0
    half = xp.zeros_like(level) + 0.5
    share = half
    for step in range(_HALVINGS):
        x = a + share * (b - a)
        x = x if step < _FEW else _decades_halved(xp, x, a, b)
        fx = excess(x)
        same = (fx < 0) == (fa < 0)
        c, fc = xp.where(same, a, b), xp.where(same, fa, fb)
        b, fb = xp.where(same, b, a), xp.where(same, fb, fa)
        a, fa = x, fx
        width = xp.abs(b - a)
        tolerance = 2 * eps(level) * xp.maximum(xp.abs(a), xp.abs(b))
        if not bool(xp.any(~is_zero & (width > tolerance) & (fa != 0))):  # NaN entries count as done
            break
        share = xp.where(is_zero | (fa == 0), half, _next_share(xp, (a, b, c), (fa, fb, fc), half))
        safe = xp.where(width > 0, width, xp.ones_like(width))
        margin = xp.clip(tolerance / safe, max=0.5)
        share = xp.minimum(xp.maximum(share, margin), 1 - margin)
    best = xp.where(xp.abs(fa) <= xp.abs(fb), a, b)
    return xp.where(is_zero, xp.zeros_like(best), best)


def _decades_halved(xp: Namespace, x: Array, a: Array, b: Array) -> Array:
    """Return x, or the geometric mean of the bracket's ends if they are decades apart."""
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    return xp.where(high > _DECADES * low, xp.sqrt(xp.maximum(low, eps(x) ** 2 * high)) * xp.sqrt(high), x)


def _next_share(xp: Namespace, points: tuple[Array, ...], values: tuple[Array, ...], half: Array) -> Array:
    """Return the next relative position between the first two points, by inverse quadratic interpolation if safe."""
    a, b, c = points
    fa, fb, fc = values
    ones = xp.ones_like(a)

    def ratio(top: Array, bottom: Array) -> Array:
        return top / xp.where(bottom != 0, bottom, ones)

    xi, phi = ratio(a - b, c - b), ratio(fa - fb, fc - fb)
    is_safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi) & (fb != fa) & (fc != fa) & (fc != fb) & (b != a)
    first = ratio(fa, fb - fa) * ratio(fc, fb - fc)
    second = ratio(c - a, b - a) * ratio(fa, fc - fa) * ratio(fb, fc - fb)
    return xp.where(is_safe, first + second, half)


def _exp(exponent: Array, minus_one: bool = False) -> Array:
    """Return exp (or expm1), infinity on overflow, without a warning."""
    xp = namespace(exponent)
    limit = math.log(float(xp.finfo(exponent.dtype).max)) - 1
    clipped = xp.clip(exponent, max=limit)
    values = xp.expm1(clipped) if minus_one else xp.exp(clipped)
    return xp.where(exponent > limit, xp.zeros_like(values) + math.inf, values)


def _grow(function: Callable[[Array], Array], level: Array) -> Array:
    """Return points where an increasing function exceeds ``level``, by squaring steps up to 1e150."""
    xp = namespace(level)
    high = xp.ones_like(level)
    for power in range(1, 10):
        high = xp.where(function(high) < level, xp.zeros_like(high) + 2.0 ** (2**power), high)
        if bool(xp.all(function(high) >= level)):
            break
    return high
