"""Huber, epsilon-ridge and epsilon-SVR of any order, against their definitions as infimal convolutions."""

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from fenchel.losses.loss import row_saturation, rows_of
from fenchel.losses.pnorm import EpsilonRidge, EpsilonSVR, Huber

EPS = float(np.finfo(np.float64).eps)
CONIC = 1e-6  # what the conic solver reaches
ROUND_OFF = 64 * EPS
PROX = 1e4 * EPS

ORDERS = [1, 1.3, 2, 3, math.inf]
EXAMPLES = [*Huber.examples(), *EpsilonRidge.examples(), *EpsilonSVR.examples()]
SMOOTH = [loss for loss in EXAMPLES if loss.curvature > 0]
MEDIUM = [kind(size, p) for kind, size in ((Huber, 0.8), (EpsilonRidge, 0.5), (EpsilonSVR, 0.5)) for p in ORDERS]
each_order = pytest.mark.parametrize("p", ORDERS)
each_example = pytest.mark.parametrize("loss", EXAMPLES, ids=repr)
each_medium = pytest.mark.parametrize("loss", MEDIUM, ids=repr)
each_weight = pytest.mark.parametrize("weight", ["none", "shared", "by_row"])
seeds = st.integers(0, 2**32 - 1)


def make(weight, n, m, seed=0):
    """Return (scale, rows): rows of sizes below and above the thresholds."""
    rng = np.random.default_rng(seed)
    scale = None
    if weight == "shared":
        scale = np.sqrt(rng.uniform(0.2, 1.5, m))
    if weight == "by_row":
        scale = np.sqrt(rng.uniform(0.2, 1.5, (n, m))) * (rng.random((n, m)) < 0.8)
    rows = rng.standard_normal((n, m)) * np.geomspace(0.1, 4, n)[:, None]
    return scale, rows if scale is None else rows * scale


def norm_of(vector, order, scale=None):
    """The norm of order ``order`` of a cvxpy expression or an array of coordinates, with one row's scale."""
    if scale is not None:
        vector = cp.multiply(scale ** (-1 if order == math.inf else 2 / order - 1), vector)
    if order in (1, 2, math.inf):
        return cp.norm(vector, "inf" if order == math.inf else order)
    return cp.pnorm(vector, order, approx=False)


def value_of(loss, r, scale=None):
    """(expression, constraints) whose minimum is the loss at the expression ``r``: its infimal convolution."""
    u = cp.Variable(r.shape)
    if isinstance(loss, Huber):
        return cp.sum_squares(r - u) / 2 + loss.kappa * norm_of(u, loss.p, scale), []
    ball = [norm_of(u, loss.p, scale) <= loss.epsilon]
    if isinstance(loss, EpsilonRidge):
        return cp.sum_squares(r - u) / 2, ball
    return norm_of(r - u, loss.p, scale), ball


def dual_order(loss):
    return math.inf if loss.p == 1 else 1 if loss.p == math.inf else loss.p / (loss.p - 1)


def conjugate_of(loss, a, scale=None):
    """(expression, constraints) of the conjugate, as printed in the class docstrings."""
    q = dual_order(loss)
    if isinstance(loss, Huber):
        return cp.sum_squares(a) / 2, [norm_of(a, q, scale) <= loss.kappa]
    if isinstance(loss, EpsilonRidge):
        return cp.sum_squares(a) / 2 + loss.epsilon * norm_of(a, q, scale), []
    return loss.epsilon * norm_of(a, q, scale), [norm_of(a, q, scale) <= 1]


def solve(objective, constraints):
    problem = cp.Problem(objective, constraints)
    problem.solve(solver=cp.CLARABEL)
    return problem.value


def each_row(rows, scale):
    """Yield (index, coordinates, scale) of each row, with the unobserved points left out."""
    for i, row in enumerate(rows):
        spread = None if scale is None else np.broadcast_to(scale, rows.shape)[i]
        seen = np.ones(len(row), bool) if spread is None else spread > 0
        yield i, seen, None if spread is None else spread[seen]


@each_medium
@each_weight
def test_value_is_the_infimal_convolution(loss, weight):
    scale, residuals = make(weight, 4, 5)
    values = loss.bind(residuals, scale).value(residuals)
    assert values.shape == (4,)
    for i, seen, spread in each_row(residuals, scale):
        objective, constraints = value_of(loss, cp.Constant(residuals[i, seen]), spread)
        assert values[i] == pytest.approx(solve(cp.Minimize(objective), constraints), abs=CONIC)


@each_medium
def test_conjugate_is_the_supremum(loss):
    """sup <a, r> - l(r), with l as its infimal convolution; infinity where a is out of the domain."""
    scale, point = make("shared", 4, 4, seed=1)
    bound = loss.bind(point, scale)
    duals = 0.9 * bound.prox_conjugate(point, 1.0)  # off the boundary of the domain, where r would be unbounded
    conjugates = bound.conjugate(duals)
    for i in range(4):
        r = cp.Variable(4)
        objective, constraints = value_of(loss, r, scale)
        supremum = solve(cp.Maximize(duals[i] @ r - objective), constraints)
        assert conjugates[i] == pytest.approx(supremum, abs=20 * CONIC)
    if not isinstance(loss, EpsilonRidge):
        limit = loss.kappa if isinstance(loss, Huber) else 1.0
        directions = point / row_saturation(bound, point)[:, None]  # on the boundary
        assert np.all(np.isfinite(bound.conjugate(directions)))
        assert np.all(bound.conjugate(directions * (1 + 1e-9)) == math.inf)
        expected = float(norm_of(point[0], dual_order(loss), scale).value)
        assert limit * row_saturation(bound, point)[0] == pytest.approx(expected, rel=PROX)


@each_medium
@each_weight
@pytest.mark.parametrize("step", [0.2, 3.0])
def test_prox_against_cvxpy(loss, weight, step):
    scale, point = make(weight, 3, 4, seed=2)
    found = loss.bind(point, scale).prox_conjugate(point, step)
    for i, seen, spread in each_row(point, scale):
        a = cp.Variable(int(seen.sum()))
        objective, constraints = conjugate_of(loss, a, spread)
        solve(cp.Minimize(step * objective + cp.sum_squares(a - point[i, seen]) / 2), constraints)
        np.testing.assert_allclose(found[i, seen], a.value, atol=100 * CONIC)
        assert np.all(found[i, ~seen] == 0)


@each_example
@each_weight
@given(seed=seeds, step=st.sampled_from([1e-3, 0.3, 5.0]))
def test_prox_beats_feasible_perturbations(loss, weight, seed, step):
    """By strong convexity any other point is worse by at least half its squared distance."""
    scale, point = make(weight, 6, 4, seed)
    bound, rng = loss.bind(point, scale), np.random.default_rng(seed)
    best = bound.prox_conjugate(point, step)
    objective = step * bound.conjugate(best) + np.sum((best - point) ** 2, axis=1) / 2
    assert np.all(np.isfinite(objective))
    for size in (1e-5, 1e-2, 1.0):
        other = best + size * rng.standard_normal(best.shape) * (1 if scale is None else scale)
        excess = np.ones(6) if row_saturation(bound, other) is None else np.maximum(row_saturation(bound, other), 1)
        other = other / excess[:, None]
        value = step * bound.conjugate(other) + np.sum((other - point) ** 2, axis=1) / 2
        distance = np.sum((other - best) ** 2, axis=1) / 2
        assert np.all(np.isfinite(value))
        assert np.all(value >= objective + distance - PROX * (1 + objective))


@each_example
def test_prox_remainder_leaves_out_the_quadratic(loss):
    """prox of step (l* - curvature/2 |.|^2): its objective is l*'s, less the quadratic."""
    scale, point = make("shared", 6, 4, seed=3)
    bound, rng, step = loss.bind(point, scale), np.random.default_rng(3), 0.6

    def objective(a):
        remainder = bound.conjugate(a) - loss.curvature * np.sum(a**2, axis=1) / 2
        return step * remainder + np.sum((a - point) ** 2, axis=1) / 2

    best = bound.prox_remainder(point, step)
    for size in (1e-5, 1e-2, 1.0):
        other = best + size * rng.standard_normal(best.shape)
        if row_saturation(bound, other) is not None:
            other = other / np.maximum(row_saturation(bound, other), 1)[:, None]
        distance = np.sum((other - best) ** 2, axis=1) / 2
        assert np.all(objective(other) >= objective(best) + distance - PROX * (1 + np.abs(objective(best))))


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
@each_weight
def test_gradient_is_the_prox_of_the_remainder(loss, weight):
    """Moreau: the gradient of (1/2)|.|^2 □ g is the prox of g*; the finite difference knows only the values."""
    scale, residuals = make(weight, 6, 4, seed=4)
    bound, h = loss.bind(residuals, scale), 1e-5
    gradient = bound.prox_remainder(residuals, 1.0)
    for k in range(4):
        shift = h * np.eye(4)[k] * (1 if scale is None else np.broadcast_to(scale > 0, residuals.shape))
        slope = (bound.value(residuals + shift) - bound.value(residuals - shift)) / (2 * h)
        np.testing.assert_allclose(gradient[:, k], slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("t", [0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0])
def test_textbook_formulas_for_the_euclidean_norm(t):
    """Rows of norm just below and above the thresholds kappa = epsilon = 1, in three coordinates."""
    unit = np.array([[2.0, -3.0, 6.0]]) / 7
    r = t * unit
    excess = max(t - 1, 0.0)
    close = {"rel": 1e-13, "abs": 4 * EPS}
    assert Huber(1.0).value(r)[0] == pytest.approx(t**2 / 2 if t <= 1 else t - 0.5, **close)
    assert EpsilonRidge(1.0).value(r)[0] == pytest.approx(excess**2 / 2, **close)
    assert EpsilonSVR(1.0).value(r)[0] == pytest.approx(excess, **close)
    np.testing.assert_allclose(Huber(1.0).prox_remainder(r, 1.0), min(t, 1.0) * unit, rtol=ROUND_OFF)
    np.testing.assert_allclose(EpsilonRidge(1.0).prox_remainder(r, 1.0), excess * unit, rtol=0, atol=4 * EPS)
    step = 0.5
    np.testing.assert_allclose(Huber(1.0).prox_conjugate(r, step), min(t / 1.5, 1.0) * unit, rtol=ROUND_OFF)
    shrunk = max(t - step, 0.0)
    np.testing.assert_allclose(EpsilonRidge(1.0).prox_conjugate(r, step), shrunk / 1.5 * unit, rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(EpsilonSVR(1.0).prox_conjugate(r, step), min(shrunk, 1.0) * unit, rtol=0, atol=4 * EPS)


@pytest.mark.parametrize("t", [1.5 - 1e-9, 1.5, 1.5 + 1e-9])
def test_prox_where_the_constraint_becomes_active(t):
    """|u| = kappa (1 + step) for Huber, 1 + step * epsilon for epsilon-SVR."""
    unit = np.array([[0.6, 0.8]])
    capped = min(t, 1.5)
    np.testing.assert_allclose(Huber(1.0).prox_conjugate(t * unit, 0.5), capped / 1.5 * unit, rtol=ROUND_OFF)
    np.testing.assert_allclose(EpsilonSVR(1.0).prox_conjugate(t * unit, 0.5), (capped - 0.5) * unit, rtol=ROUND_OFF)


@each_order
def test_one_output_is_the_classical_scalar_loss(p):
    """On the line all norms are |r|."""
    r = np.linspace(-3, 3, 61)[:, None]
    size = np.abs(r[:, 0])
    huber = np.where(size <= 0.7, size**2 / 2, 0.7 * (size - 0.35))
    np.testing.assert_allclose(Huber(0.7, p).value(r), huber, atol=ROUND_OFF)
    np.testing.assert_allclose(EpsilonRidge(0.4, p).value(r), np.maximum(size - 0.4, 0) ** 2 / 2, atol=ROUND_OFF)
    np.testing.assert_allclose(EpsilonSVR(0.4, p).value(r), np.maximum(size - 0.4, 0), atol=ROUND_OFF)


def test_separable_orders():
    """The 1-norm Huber loss and the inf-norm insensitive loss are sums over the coordinates."""
    r = make("none", 9, 5, seed=5)[1]
    size = np.abs(r)
    pointwise = np.where(size <= 0.6, size**2 / 2, 0.6 * (size - 0.3))
    np.testing.assert_allclose(Huber(0.6, p=1).value(r), pointwise.sum(axis=1), rtol=ROUND_OFF)
    pointwise = np.maximum(size - 0.6, 0) ** 2 / 2
    np.testing.assert_allclose(EpsilonRidge(0.6, p=math.inf).value(r), pointwise.sum(axis=1), rtol=ROUND_OFF)
    np.testing.assert_allclose(EpsilonSVR(0.6, p=math.inf).value(r), np.maximum(size.max(axis=1) - 0.6, 0))


@each_order
def test_square_loss_at_the_limits(p):
    r = make("none", 9, 5, seed=6)[1]
    for loss in (Huber(1e6, p), EpsilonRidge(0.0, p)):
        assert np.array_equal(loss.prox_remainder(r, 1.0), r)
        np.testing.assert_allclose(loss.value(r), np.sum(r**2, axis=1) / 2, rtol=ROUND_OFF)
        np.testing.assert_allclose(loss.prox_conjugate(r, 0.5), r / 1.5, rtol=ROUND_OFF)


@each_order
def test_exact_zeros(p):
    """Sparsity is counted: what is below the threshold is zero, not nearly zero."""
    scale, point = make("shared", 40, 7, seed=7)
    sizes = np.array([float(norm_of(row, p, scale).value) for row in point])
    for threshold in np.quantile(sizes, [0.3, 0.8]):
        zero, far = sizes < threshold * (1 - 1e-9), sizes > threshold * (1 + 1e-9)
        ridge, svr = EpsilonRidge(threshold, p).bind(point, scale), EpsilonSVR(threshold, p).bind(point, scale)
        proxes = [ridge.prox_remainder(point, 1.0), ridge.prox_conjugate(point, 1.0), svr.prox_conjugate(point, 1.0)]
        for result in [*proxes]:
            assert np.all(result[zero] == 0)
            assert np.all(np.any(result[far] != 0, axis=1))
        assert np.all(ridge.value(point)[zero] == 0)


def test_inf_norm_ridge_has_zero_entries_and_one_norm_huber_caps_entries():
    point = np.array([[0.2, -1.0, 0.05, 3.0]])
    assert np.array_equal(EpsilonRidge(0.5, p=math.inf).prox_remainder(point, 1.0), [[0.0, -0.5, 0.0, 2.5]])
    assert np.array_equal(Huber(0.5, p=1).prox_remainder(point, 1.0), [[0.2, -0.5, 0.05, 0.5]])


@each_order
def test_svr_prox_meets_all_three_regimes(p):
    """Zero below step * epsilon, shrunk inside the ball, on the sphere beyond."""
    point = np.array([[1.0, -2.0, 0.5]]) * np.array([[1e-3], [0.3], [50.0]])
    loss = EpsilonSVR(0.5, p)
    found = loss.prox_conjugate(point, 0.4)
    assert np.all(found[0] == 0)
    assert 0 < row_saturation(loss, found)[1] < 1
    assert row_saturation(loss, found)[2] == pytest.approx(1, abs=ROUND_OFF)


@each_example
def test_steps_by_row(loss):
    scale, point = make("by_row", 5, 4, seed=8)
    bound, steps = loss.bind(point, scale), np.geomspace(0.05, 5, 5)[:, None]
    for name in ("prox_conjugate", "prox_remainder"):
        together = getattr(bound, name)(point, steps)
        for i in range(5):
            part = slice(i, i + 1)
            alone = getattr(rows_of(bound, part), name)(point[part], float(steps[i, 0]))
            np.testing.assert_allclose(together[part], alone, rtol=0, atol=PROX)


@each_example
def test_rows_follow_the_scale(loss):
    scale, point = make("by_row", 6, 4, seed=9)
    bound, picked = loss.bind(point, scale), np.array([4, 1])
    np.testing.assert_allclose(rows_of(bound, picked).value(point[picked]), bound.value(point)[picked], rtol=PROX)
    shared = loss.bind(point, scale[0])
    assert rows_of(shared, picked) is shared
    assert rows_of(loss, picked) is loss


@each_example
def test_binding_changes_no_parameter(loss):
    scale, point = make("shared", 6, 4, seed=10)
    before = loss.value(point)
    bound = loss.bind(point, scale)
    assert type(bound) is type(loss)
    assert bound.get_params() == loss.get_params()
    assert np.array_equal(loss.value(point), before)
    assert np.array_equal(clone(bound).value(point), before)


@pytest.mark.parametrize("p", [1.3, 3, math.inf])
def test_point_scale_gives_the_norm_of_the_curve(p):
    """f(t) = t on [0, 1] has |f|_p = (p + 1)^(-1/p), whatever the grid."""
    exact = 1.0 if p == math.inf else (p + 1) ** (-1 / p)
    for m in (200, 800):
        middle = (np.arange(m) + 0.5) / m
        scale = np.full(m, math.sqrt(1 / m))
        loss = EpsilonSVR(0.25, p).bind(None, scale)
        assert loss.value(middle[None, :] * scale)[0] == pytest.approx(exact - 0.25, abs=1 / m)


@each_example
def test_arguments_are_unchanged_and_dtype_is_kept(loss):
    for dtype in (np.float32, np.float64):
        scale, point = make("by_row", 6, 4, seed=11)
        point = point.astype(dtype)
        copy, bound = point.copy(), loss.bind(point, scale.astype(dtype))
        duals = bound.prox_conjugate(point, 0.4)
        results = [bound.value(point), bound.conjugate(duals), duals, bound.prox_remainder(point, 0.4)]
        results += [] if row_saturation(bound, duals) is None else [row_saturation(bound, duals)]
        assert {result.dtype for result in results} == {np.dtype(dtype)}
        assert np.array_equal(point, copy)
        assert np.all(np.isfinite(bound.conjugate(duals)))  # the domain test allows for the rounding of the dtype


@each_medium
def test_array_libraries_agree(xp, loss):
    scale, point = make("by_row", 6, 4, seed=12)
    here, there = loss.bind(point, scale), loss.bind(xp.asarray(point), xp.asarray(scale))
    np.testing.assert_allclose(np.asarray(there.value(xp.asarray(point))), here.value(point), rtol=0, atol=PROX)
    duals = here.prox_conjugate(point, 0.4)
    np.testing.assert_allclose(np.asarray(there.prox_conjugate(xp.asarray(point), 0.4)), duals, rtol=0, atol=PROX)
    np.testing.assert_allclose(
        np.asarray(there.conjugate(xp.asarray(duals))), here.conjugate(duals), rtol=PROX, atol=PROX
    )


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Huber(0.0), r"'kappa' parameter of Huber must be a float in \(0, inf\). Got 0.0 instead"),
        (Huber(math.inf), r"'kappa' parameter of Huber must be a float in \(0, inf\). Got inf instead"),
        (Huber(p=0.99), r"'p' parameter of Huber must be a float in \[1, inf\]. Got 0.99 instead"),
        (EpsilonRidge(-1e-3), r"'epsilon' parameter of EpsilonRidge must be a float in \[0, inf\). Got -0.001"),
        (EpsilonSVR(p=math.nan), r"'p' parameter of EpsilonSVR must be a float in \[1, inf\]. Got nan"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(loss, message):
    with pytest.raises(ValueError, match=message):
        loss.validate()


@each_example
def test_examples_are_valid(loss):
    assert loss.validate() is loss


def test_examples_cover_the_orders():
    for kind in (Huber, EpsilonRidge, EpsilonSVR):
        assert {1, 1.3, 2, 3, math.inf} <= {loss.p for loss in kind.examples()}
    assert 0 in {loss.epsilon for loss in EpsilonRidge.examples()}
