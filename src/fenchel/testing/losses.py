"""Contract checks for losses: value, conjugate and prox of the conjugate must be consistent."""

import math

import numpy as np
from numpy.typing import DTypeLike

from fenchel.estimators import OperatorKernelRegressor
from fenchel.losses import Loss
from fenchel.losses.loss import row_saturation, rows_of
from fenchel.testing._checks import SEEDS, expect, register, run

__all__ = ["check_loss"]

_EPS = float(np.finfo(np.float64).eps)
_ROUND_OFF = 1e4 * _EPS  # proxes are found by iterations that stop at some hundred eps
_ITERATIVE = 1e5 * _EPS  # tolerance for a prox or a value computed by iteration
_N, _P = 7, 3


def check_loss(loss: Loss) -> None:
    """Raise ``AssertionError`` if a loss breaks the contract of losses.

    Value, conjugate and prox are compared through properties that hold only if all three are right: the Fenchel-Young
    inequality, its equality at the pairs given by the prox, the value as the supremum over the duals, and the prox as
    the minimiser of its objective. A fit with the loss must reach a relative gap of 1e-6.

    Parameters
    ----------
    loss : Loss
        An instance, not bound to targets.

    Examples
    --------
    >>> from fenchel.losses import Huber
    >>> from fenchel.testing import check_loss
    >>> check_loss(Huber(0.5))
    """
    run(loss, Loss)


def _rows(seed: int) -> np.ndarray:
    """Return rows of very different sizes, of which the first is zero."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((_N, _P)) * 10 ** rng.uniform(-3, 0.7, (_N, 1))
    values[0] = 0
    return values


def _many_rows(first: int = 0) -> np.ndarray:
    """Return the rows of every seed, from the first one on."""
    return np.vstack([_rows(first + seed) for seed in SEEDS])


def _bound(loss: Loss, dtype: DTypeLike = np.float64, repeats: int = 1) -> Loss:
    """Return the loss bound to some targets, which most losses ignore."""
    return loss.bind(np.tile(np.random.default_rng(1).standard_normal((_N, _P)), (repeats, 1)).astype(dtype))


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(left * right, axis=1))


def check_fenchel_young(loss: Loss) -> None:
    """l(r) + l*(a) >= <a, r> for every residual and every dual in the domain."""
    bound, residuals = _bound(loss, repeats=len(SEEDS)), _many_rows()
    duals = bound.prox_conjugate(_many_rows(1000), 0.7)
    values, conjugates, products = bound.value(residuals), bound.conjugate(duals), _products(residuals, duals)
    size = 1 + np.abs(np.where(np.isfinite(values), values, 0)) + np.abs(products)
    expect(np.isfinite(conjugates), f"{loss!r}: the conjugate is infinite at a proximal point.")
    expect(values + conjugates - products >= -_ROUND_OFF * size, f"{loss!r}: value + conjugate < <dual, residual>.")


def check_value_and_conjugate_meet(loss: Loss) -> None:
    """l(r) + l*(a) = <a, r> if a is the prox of step l* at u and r = (u - a) / step, which is a subgradient."""
    bound, point = _bound(loss, repeats=len(SEEDS)), _many_rows()
    for step in (0.1, 1.0, 10.0):
        duals = bound.prox_conjugate(point, step)
        residuals = (point - duals) / step
        values, products = bound.value(residuals), _products(residuals, duals)
        is_sharp = np.isfinite(values)  # round-off may violate a hard constraint
        size = 1 + np.abs(values[is_sharp]) + np.abs(products[is_sharp])
        gap = np.abs(values + bound.conjugate(duals) - products)[is_sharp]
        expect(np.mean(is_sharp) > 0.3, f"{loss!r}: the value is infinite at a subgradient of the conjugate.")
        expect(gap <= _ITERATIVE * size / min(step, 1.0), f"{loss!r}: the conjugate is not that of the value.")


def check_value_is_the_supremum(loss: Loss) -> None:
    """l(r) = sup <a, r> - l*(a), computed by the proximal point method, which uses only the conjugate."""
    bound, step = _bound(loss), 1e3
    residuals = np.random.default_rng(0).standard_normal((_N, _P))
    residuals[0], duals = 0, np.zeros((_N, _P))
    for _ in range(200):
        duals = bound.prox_conjugate(duals + step * residuals, step)
    supremum, values = _products(duals, residuals) - bound.conjugate(duals), bound.value(residuals)
    is_infinite = ~np.isfinite(values)
    finite = np.where(is_infinite, 0.0, values)
    is_attained = supremum >= finite - 1e-5 * (1 + np.abs(finite))
    expect(is_attained | is_infinite, f"{loss!r}: no dual attains the value.")
    expect(supremum[is_infinite] > 10.0, f"{loss!r}: an infinite value has a finite supremum over the duals.")


def check_prox_is_the_minimiser(loss: Loss) -> None:
    """The objective of the prox is strongly convex: any other point is worse by half its squared distance."""
    bound, rng, point = _bound(loss, repeats=len(SEEDS)), np.random.default_rng(0), _many_rows()

    def objective(duals: np.ndarray, step: float) -> np.ndarray:
        value = step * bound.conjugate(duals) + _products(duals - point, duals - point) / 2
        return np.where(np.isfinite(value), value, math.inf)

    for step in (1e-3, 0.1, 1.0, 30.0):
        best = bound.prox_conjugate(point, step)
        least = objective(best, step)
        expect(np.isfinite(least), f"{loss!r}: the conjugate is infinite at a proximal point.")
        for scale in (1e-4, 1e-2, 1.0):
            nearby = best + scale * rng.standard_normal(best.shape)
            for other in (bound.prox_conjugate(nearby, 0.01), best * (1 - scale / 2), best * (1 + scale)):
                excess = objective(other, step) - least - _products(other - best, other - best) / 2
                expect(excess >= -_ITERATIVE * (1 + np.abs(least)), f"{loss!r}: prox_conjugate is not a minimiser.")


def check_prox_is_firmly_non_expansive(loss: Loss) -> None:
    """|prox(u) - prox(v)|^2 <= <prox(u) - prox(v), u - v>, for both proximal operators."""
    bound, u, v = _bound(loss, repeats=len(SEEDS)), _many_rows(), _many_rows(1000)
    for prox in (bound.prox_conjugate, bound.prox_remainder):
        moved = prox(u, 0.5) - prox(v, 0.5)
        left, right = _products(moved, moved), _products(moved, u - v)
        expect(left <= right + _ITERATIVE * (1 + np.abs(right)), f"{loss!r}: a prox is not firmly non-expansive.")


def check_prox_remainder(loss: Loss) -> None:
    """The prox of step (sigma/2 |.|^2 + g) at u is that of step/(1 + step sigma) g at u/(1 + step sigma)."""
    bound, point, step = _bound(loss), _rows(3), 0.7
    shrink = 1 + step * loss.curvature
    direct, through = bound.prox_conjugate(point, step), bound.prox_remainder(point / shrink, step / shrink)
    message = f"{loss!r}: prox_remainder is not consistent with prox_conjugate and curvature={loss.curvature}."
    np.testing.assert_allclose(direct, through, rtol=1e-10, atol=1e-12, err_msg=message)


def check_rows(loss: Loss) -> None:
    """The loss restricted to some samples agrees with the whole loss, and steps may differ between rows."""
    bound, point, steps = _bound(loss), _rows(4), np.linspace(0.1, 3, _N)[:, None]
    together, values = bound.prox_conjugate(point, steps), bound.value(point)
    for i in range(_N):
        alone, row = rows_of(bound, slice(i, i + 1)), point[i : i + 1]
        found = alone.prox_conjugate(row, float(steps[i, 0]))
        np.testing.assert_allclose(found, together[i : i + 1], rtol=1e-9, atol=1e-12, err_msg=f"{loss!r}: row {i}.")
        np.testing.assert_allclose(alone.value(row), values[i : i + 1], rtol=1e-9, atol=1e-12, err_msg=f"{loss!r}.")


def check_dtype_and_arguments(loss: Loss) -> None:
    """Arguments are not modified, float32 stays float32, and in both the conjugate is finite at a proximal point."""
    for dtype in (np.float64, np.float32):
        bound, point = _bound(loss, dtype), _rows(6).astype(dtype)
        before = point.copy()
        duals = bound.prox_conjugate(point, 0.3)
        conjugates = bound.conjugate(duals)
        for result in (bound.value(point), duals, bound.prox_remainder(point, 0.3), conjugates):
            expect(result.dtype == dtype, f"{loss!r}: {np.dtype(dtype)} becomes {result.dtype}.")
        expect(np.array_equal(point, before), f"{loss!r}: an argument is modified.")
        expect(np.isfinite(conjugates), f"{loss!r}: the domain test is too narrow for {np.dtype(dtype)}.")


def check_saturation(loss: Loss) -> None:
    """``saturation`` is in [0, 1] on the domain, and near 1 for the duals of very large residuals."""
    bound = _bound(loss)
    scores = row_saturation(bound, bound.prox_conjugate(1e6 * _rows(8), 0.5))
    if scores is not None:
        expect(scores.shape == (_N,), f"{loss!r}: saturation has shape {scores.shape}, not ({_N},).")
        expect((scores >= 0) & (scores <= 1 + 16 * _EPS), f"{loss!r}: saturation is not in [0, 1].")
        expect(np.max(scores) > 0.99, f"{loss!r}: no dual of a large residual is at its bound.")


def check_fit(loss: Loss) -> None:
    """A fit with the loss reaches a relative gap of 1e-6."""
    rng = np.random.default_rng(0)
    X, Y = 1.3 * rng.standard_normal((12, _P)), rng.standard_normal((12, _P))
    model = OperatorKernelRegressor("gaussian", loss=loss, lam=0.1).fit(X, Y)
    expect(model.duality_gap_ <= 1e-6, f"{loss!r}: the gap of a fit is {model.duality_gap_:.1e}.")


register(
    Loss,
    check_fenchel_young,
    check_value_and_conjugate_meet,
    check_value_is_the_supremum,
    check_prox_is_the_minimiser,
    check_prox_is_firmly_non_expansive,
    check_prox_remainder,
    check_rows,
    check_dtype_and_arguments,
    check_saturation,
    check_fit,
)
