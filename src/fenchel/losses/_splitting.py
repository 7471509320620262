r"""The sum of two conjugates, by a splitting: its prox, and the infimal convolution whose conjugate it is.

Both minimise :math:`c f^*(a) + c g^*(a) + \tfrac m2 \|a\|^2 - \langle a, b \rangle` row by row, with the proxes of
the two conjugates only (Douglas-Rachford). What is returned does not rest on convergence: a prox lies in both domains,
and a value is attained, hence an upper bound of the infimum. An inner iteration that stops early makes a duality gap
larger, never smaller.
"""

from dataclasses import dataclass

from fenchel._array import Array, eps, namespace, row_norms
from fenchel.losses.loss import Loss, row_saturation
from fenchel.losses.profile import Step

__all__ = ["convolution_prox", "convolution_value"]

_MAX_ITER = 1000  # safeguard: 20 to 100 steps are usual; for some losses, one row in a hundred takes more
_ROUND_OFF = 8  # multiples of the precision at which the two halves of a step count as equal


@dataclass(frozen=True)
class _Halves:
    """The two halves of the last step: points ``a`` of each conjugate, and subgradients ``u`` of it there."""

    a_f: Array
    a_g: Array
    u_f: Array
    u_g: Array


def _split(f: Loss, g: Loss, b: Array, c: Step, m: float) -> _Halves:
    """Return the last step of the splitting, with the conjugates without their quadratic parts if ``m`` is 1."""
    prox_f, prox_g = (part.prox_remainder if m else part.prox_conjugate for part in (f, g))
    xp, sizes = namespace(b), row_norms(b)
    one, two = row_norms(prox_f(b, c)), row_norms(prox_g(b, c))
    duals = xp.where((one > 0) & (two > 0), xp.sqrt(one) * xp.sqrt(two), xp.maximum(one, two))
    is_moved = (sizes > 0) & (duals > 0)
    gamma = xp.where(is_moved, duals / xp.where(is_moved, sizes, xp.ones_like(sizes)), xp.ones_like(sizes))
    gamma = xp.clip(gamma, max=1.0) if m else gamma  # the size of a over that of b
    z, shrink = gamma * b, 1 + gamma * m
    for _ in range(_MAX_ITER):
        at_f = (z + gamma * b) / shrink
        a_f = prox_f(at_f, c * gamma / shrink)
        at_g = 2 * a_f - z
        a_g = prox_g(at_g, c * gamma)
        z = z + a_g - a_f
        if bool(xp.all(row_norms(a_g - a_f) <= _ROUND_OFF * eps(b) * (row_norms(gamma * b) + row_norms(z)))):
            break
    return _Halves(a_f, a_g, (at_f - a_f) * shrink / gamma, (at_g - a_g) / gamma)


def convolution_prox(f: Loss, g: Loss, point: Array, step: Step) -> Array:
    """Return the prox of ``step`` times the two conjugates without their quadratic parts, in the domain of both."""
    xp, halves = namespace(point), _split(f, g, point, step, 1.0)
    first, second = _inside(g, halves.a_f), _inside(f, halves.a_g)
    is_in_both = xp.isfinite(f.conjugate(first) + g.conjugate(first))[:, None]
    is_zero = (halves.a_f == 0) | (halves.a_g == 0)  # what one prox finds to be zero is round-off in the other
    return xp.where(is_zero, xp.zeros_like(point), xp.where(is_in_both, first, second))


def convolution_value(f: Loss, g: Loss, residuals: Array) -> Array:
    """Return the infimum of f(u) + g(r - u) for each row, shape (n,): the least of the values found."""
    halves = _split(f, g, residuals, 1.0, 0.0)
    by_f = f.value(halves.u_f) + g.value(residuals - halves.u_f)
    return namespace(residuals).minimum(by_f, f.value(residuals - halves.u_g) + g.value(halves.u_g))


def _inside(loss: Loss, duals: Array) -> Array:
    """Return duals that leave the domain of a conjugate by round-off, divided by the ratio to its bound."""
    ratios = row_saturation(loss, duals)
    return duals if ratios is None else duals / namespace(duals).clip(ratios, min=1.0)[:, None]
