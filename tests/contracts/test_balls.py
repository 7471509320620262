"""Norms of any order and the projections on their balls, against oracles that share no code with them."""

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fenchel.losses import _balls
from fenchel.losses._balls import PNorm

EPS = float(np.finfo(np.float64).eps)
CONIC = 1e-6  # what the conic solver reaches
BISECTION = 1e-11  # what nested bisection in double precision reaches, for values near one
KKT = 450 * EPS  # 1e-13
ON_SPHERE = 8 * EPS
ROUND_OFF = 64 * EPS

ORDERS = [1, 1.02, 1.3, 4 / 3, 1.5, 2, 3, 13 / 3, 7.5, 100, math.inf]
WEIGHTS = ["none", "shared", "by_row"]
seeds = st.integers(0, 2**32 - 1)
each_order = pytest.mark.parametrize("p", ORDERS)
each_weight = pytest.mark.parametrize("weight", WEIGHTS)


def make(weight, n, m, seed=0):
    """Return (scale, rows): rows of different sizes, with zero columns where a point is not observed."""
    rng = np.random.default_rng(seed)
    scale = None
    if weight == "shared":
        scale = np.sqrt(rng.uniform(0.05, 1.5, m))
    if weight == "by_row":
        scale = np.sqrt(rng.uniform(0.05, 1.5, (n, m))) * (rng.random((n, m)) < 0.8)
    rows = rng.standard_normal((n, m)) * 10 ** rng.uniform(-1, 1, (n, 1))
    return scale, rows if scale is None else rows * scale


def exact_norm(rows, p, scale=None):
    """The definition of the norm, in extended precision."""
    scale = np.ones_like(rows) if scale is None else np.broadcast_to(scale, rows.shape)
    wide = np.where(scale > 0, scale, 1).astype(np.longdouble)
    values, weights = np.abs(rows.astype(np.longdouble)) / wide, np.where(scale > 0, wide**2, 0)
    top = values.max(axis=1, keepdims=True)
    if p == math.inf:
        return top
    ratios = values / np.where(top > 0, top, 1)
    return top * np.sum(weights * ratios ** np.longdouble(p), axis=1, keepdims=True) ** (1 / np.longdouble(p))


def by_bisection(rows, p, radius, scale=None):
    """Project rows that are outside by two nested bisections on logarithms: of the entries, and of the multiplier."""
    scale = np.ones_like(rows) if scale is None else np.broadcast_to(scale, rows.shape)
    with np.errstate(divide="ignore"):
        goal = np.log(np.abs(rows) / scale / radius)

    def entries(log_mu):
        low, high = np.full_like(goal, -745.0), np.maximum(goal, -745.0)
        for _ in range(64):
            middle = (low + high) / 2
            too_big = np.logaddexp(middle, log_mu + (p - 1) * middle) > goal
            low, high = np.where(too_big, low, middle), np.where(too_big, middle, high)
        return low

    low, high = np.full((len(rows), 1), -60.0), np.full((len(rows), 1), 60.0)
    for _ in range(64):
        middle = (low + high) / 2
        outside = np.sum(scale**2 * np.exp(p * entries(middle)), axis=1, keepdims=True) > 1
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return np.sign(rows) * scale * radius * np.exp(entries(low))


def kkt_residual(rows, projected, p, radius, scale=None):
    """|x + mu x^(p-1) - g| over max g in extended precision, with mu from the inner product with x."""
    scale = np.ones_like(rows) if scale is None else np.broadcast_to(scale, rows.shape)
    goal = np.abs(rows.astype(np.longdouble)) / scale / radius
    x = np.abs(projected.astype(np.longdouble)) / scale / radius
    mu = np.sum(scale**2 * x * (goal - x), axis=1, keepdims=True)
    residual = np.abs(goal - x - mu * x ** np.longdouble(p - 1))
    residual = np.where(x < 1e-290, 0, residual)  # nothing can be said of what underflows
    return np.max(residual / np.max(goal, axis=1, keepdims=True))


@each_order
@each_weight
def test_norm_is_its_definition(p, weight):
    scale, rows = make(weight, 9, 6)
    rows[0] = 0
    norms = PNorm(p, scale).norm(rows)
    assert norms.shape == (9, 1)
    np.testing.assert_allclose(norms, exact_norm(rows, p, scale).astype(float), rtol=ROUND_OFF)


@each_order
@each_weight
def test_dual_norm_is_the_largest_product(p, weight):
    """|a|_q bounds <a, c> / |c|_p, and the values sign(a) |a|^(q-1) (the largest one alone for q = inf) reach it."""
    scale, a = make(weight, 5, 6, seed=1)
    norm, dual = PNorm(p, scale), PNorm(p, scale).dual()
    others = make(weight, 5, 6, seed=2)[1] if scale is None else make("none", 5, 6, seed=2)[1] * scale
    assert np.all(np.sum(a * others, axis=1)[:, None] <= dual.norm(a) * norm.norm(others) * (1 + ROUND_OFF))
    spread = np.ones_like(a) if scale is None else np.broadcast_to(scale, a.shape)
    values = np.abs(a) / np.where(spread > 0, spread, math.inf)
    top = values.max(axis=1, keepdims=True)
    best = np.where(values == top, 1.0, 0.0) if dual.p == math.inf else (values / top) ** (dual.p - 1)
    best = np.where(values > 0, np.sign(a) * spread * best, 0.0)
    reached = np.sum(a * best, axis=1)[:, None] / norm.norm(best)
    np.testing.assert_allclose(reached, dual.norm(a), rtol=ROUND_OFF)


def test_conjugate_exponents():
    pairs = [(1, math.inf), (math.inf, 1), (2, 2), (3, 1.5), (1.5, 3), (4, 4 / 3)]
    assert [PNorm(p).dual().p for p, _ in pairs] == [q for _, q in pairs]


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, math.inf])
@each_weight
def test_projection_against_cvxpy(p, weight):
    scale, rows = make(weight, 4, 5, seed=3)
    norm = PNorm(p, scale)
    radius = norm.norm(rows) * np.array([[0.05], [0.5], [0.95], [1.3]])
    projected = norm.project(rows, radius)
    spread = np.ones_like(rows) if scale is None else np.broadcast_to(scale, rows.shape)
    for i in range(4):
        seen = spread[i] > 0
        to_values = spread[i, seen] ** (-1 if p == math.inf else 2 / p - 1)
        x = cp.Variable(int(seen.sum()))
        size = float(np.linalg.norm(rows[i]))
        ball = [cp.norm(cp.multiply(to_values, x), "inf" if p == math.inf else p) <= radius[i, 0] / size]
        cp.Problem(cp.Minimize(cp.sum_squares(x - rows[i, seen] / size)), ball).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(projected[i, seen], x.value * size, atol=20 * CONIC * size)


@pytest.mark.parametrize("p", [1.02, 1.3, 7.5, 100])
@pytest.mark.parametrize("weight", ["none", "shared"])
def test_projection_against_bisection(p, weight):
    scale, rows = make(weight, 6, 8, seed=4)
    norm = PNorm(p, scale)
    radius = norm.norm(rows) / np.array([[1.0001], [1.01], [1.3], [3.0], [30.0], [1000.0]])
    projected = norm.project(rows, radius)
    expected = by_bisection(rows, p, radius, scale)
    # for p near 1 an entry is the power 1/(p-1) of what bisection finds: its relative error grows likewise
    np.testing.assert_allclose(projected / radius, expected / radius, rtol=0, atol=BISECTION)


@pytest.mark.parametrize("p", [1.02, 1.1, 1.3, 4 / 3, 1.5, 1.9, 2.1, 3, 13 / 3, 7.5, 30, 100])
@pytest.mark.parametrize("ratio", [1 + 1e-12, 1 + 1e-6, 1.01, 1.2, 2, 10, 100, 1e4, 1e8, 1e12])
def test_optimality_at_any_distance(p, ratio):
    rng = np.random.default_rng(5)
    rows = np.concatenate(
        [
            rng.standard_normal((8, 40)),
            np.exp(4 * rng.standard_normal((8, 40))),
            rng.standard_normal((8, 40)) * (rng.random((8, 40)) < 0.1) + 1e-9,
            np.ones((1, 40)),
        ]
    )
    norm = PNorm(p)
    radius = norm.norm(rows) / ratio
    projected = norm.project(rows, radius)
    assert kkt_residual(rows, projected, p, radius) <= KKT
    sizes = exact_norm(projected, p) / radius
    assert np.all(sizes <= 1 + ON_SPHERE)
    assert np.all(sizes >= 1 - 100 * ON_SPHERE)
    assert np.all(np.abs(projected) <= np.abs(rows))


@pytest.mark.parametrize("p", [1.01, 1.02, 1.1, 30, 100, 1000])
def test_rows_that_need_the_bracket(p):
    """Weights over four decades: Newton's method alone runs in circles on some of these rows."""
    rng = np.random.default_rng(6)
    scale = np.sqrt(10 ** rng.uniform(-4, 0, 30))
    for ratio in (1.2, 10, 100, 1e4):
        rows = np.exp(3 * rng.standard_normal((60, 30))) * scale
        radius = PNorm(p, scale).norm(rows) / ratio
        projected = PNorm(p, scale).project(rows, radius)
        # an entry of weight w has x^(p-1) up to 1/w, and p - 1 times its relative rounding
        assert kkt_residual(rows, projected, p, radius, scale) <= (1 + p) * 1e4 * EPS
        assert np.all(exact_norm(projected, p, scale) / radius <= 1 + ON_SPHERE)


def test_large_and_small_orders_tend_to_the_limits():
    rows = make("none", 20, 9, seed=7)[1]
    np.testing.assert_allclose(PNorm(1e7).project(rows, 0.4), PNorm(math.inf).project(rows, 0.4), atol=1e-5)
    np.testing.assert_allclose(PNorm(1 + 1e-6).project(rows, 0.9), PNorm(1).project(rows, 0.9), atol=1e-4)
    np.testing.assert_allclose(PNorm(2 + 1e-9).project(rows, 0.9), PNorm(2).project(rows, 0.9), atol=1e-8)
    np.testing.assert_allclose(PNorm(2 - 1e-9).project(rows, 0.9), PNorm(2).project(rows, 0.9), atol=1e-8)


def test_soft_threshold_by_hand():
    """|f| = (5, 3, 1), weights (1, 2, 4), radius 4: (5 - t) + 2 (3 - t) = 4 at t = 7/3, and 1 < t is cut."""
    scale = np.sqrt([1.0, 2.0, 4.0])
    projected = PNorm(1, scale).project(np.array([[5.0, -3.0, 1.0]]) * scale, 4.0)
    np.testing.assert_allclose(projected / scale, [[8 / 3, -2 / 3, 0]], rtol=ROUND_OFF)
    assert projected[0, 2] == 0


def test_projection_on_the_three_ball_by_hand():
    """x = (1, 2), mu = 0.5: x + mu x^2 = (1.5, 4) projects on the ball of radius 9^(1/3)."""
    projected = PNorm(3).project(np.array([[1.5, -4.0]]), 9 ** (1 / 3))
    np.testing.assert_allclose(projected, [[1.0, -2.0]], rtol=ROUND_OFF)


@each_order
@each_weight
@given(seed=seeds)
def test_firmly_non_expansive_and_idempotent(p, weight, seed):
    scale, u = make(weight, 6, 5, seed)
    v = make(weight, 6, 5, seed)[1][::-1] if weight != "by_row" else 0.3 * u + 0.1 * scale
    norm = PNorm(p, scale)
    radius = np.random.default_rng(seed).uniform(0, 2, (6, 1))
    a, b = norm.project(u, radius), norm.project(v, radius)
    left, right = np.sum((a - b) ** 2, axis=1), np.sum((a - b) * (u - v), axis=1)
    assert np.all(left <= right + 1e3 * EPS * (1 + np.abs(right)))
    # the entries of a 1.02-ball are 50th powers: their rounding is 50 times larger
    again = 16 * EPS * max(1, 1 / (p - 1) if p > 1 else 1)
    np.testing.assert_allclose(norm.project(a, radius), a, rtol=0, atol=again * (1 + np.max(radius)) * 4)


@each_order
@each_weight
def test_just_inside_and_just_outside(p, weight):
    scale, rows = make(weight, 30, 12, seed=8)
    norm = PNorm(p, scale)
    sizes = norm.norm(rows)
    inside = norm.project(rows, sizes * (1 + 4 * EPS))
    assert np.array_equal(inside, rows)
    assert np.array_equal(norm.project(rows, sizes), rows) or p == math.inf  # there, entries are cut at radius * scale
    outside = norm.project(rows, sizes * (1 - 4 * EPS))
    assert np.all(exact_norm(outside, p, scale) <= sizes * (1 - 4 * EPS) * (1 + ON_SPHERE))
    np.testing.assert_allclose(outside, rows, rtol=0, atol=ROUND_OFF * np.max(np.abs(rows)))


@each_order
def test_zero_rows_zero_radii_and_zero_entries(p):
    rows = np.array([[0.0, 0.0, 0.0], [3.5, 0.0, -4.0], [1.0, 2.0, 3.0], [1e-3, 0.0, 0.0]])
    radius = np.array([[1.0], [1.0], [0.0], [0.5]])
    projected = PNorm(p).project(rows, radius)
    assert np.array_equal(projected[[0, 2]], np.zeros((2, 3)))
    assert projected[1, 1] == 0
    assert projected[1, 0] > 0 > projected[1, 2]
    assert np.array_equal(projected[3], rows[3])
    assert np.array_equal(PNorm(p).project(rows, 0.0), np.zeros((4, 3)))
    assert np.array_equal(PNorm(p).project(rows, np.zeros((4, 1))), np.zeros((4, 3)))


@each_order
def test_one_column(p):
    """|f|_p = w^(1/p) |f|: the projection cuts at radius / w^(1/p)."""
    values, weight, radius = np.array([[-7.0], [0.1], [1e9], [0.0]]), 0.3, 2.0
    scale = np.sqrt([weight])
    cut = radius / weight ** (1 / p)
    projected = PNorm(p, scale).project(values * scale, radius) / scale
    np.testing.assert_allclose(projected, np.clip(values, -cut, cut), rtol=ROUND_OFF * max(1, 1 / p))


@each_order
def test_unobserved_points_count_for_nothing(p):
    scale, rows = make("by_row", 5, 8, seed=9)
    projected = PNorm(p, scale).project(rows, 0.7)
    assert np.all(projected[scale == 0] == 0)
    for i in range(5):
        seen = scale[i] > 0
        alone = PNorm(p, scale[i, seen]).project(rows[i : i + 1, seen], 0.7)
        np.testing.assert_allclose(projected[i : i + 1, seen], alone, rtol=0, atol=50 * ROUND_OFF)


@each_order
def test_huge_dynamic_range(p):
    rng = np.random.default_rng(10)
    rows = 10.0 ** rng.uniform(-250, 5, (20, 15)) * rng.choice([-1, 1], (20, 15))
    rows[:, 0] = 10.0 ** rng.uniform(0, 12, 20)
    norm = PNorm(p)
    projected = norm.project(rows, 1.0)
    assert np.all(np.isfinite(projected))
    assert np.all(exact_norm(projected, p) <= 1 + ON_SPHERE)
    assert np.all(np.abs(projected) <= np.abs(rows))
    if 1 < p < math.inf:
        assert kkt_residual(rows, projected, p, 1.0) <= KKT
    if p >= 2:  # small entries hardly move
        assert np.count_nonzero(projected) == rows.size


@each_order
@each_weight
def test_float32(p, weight):
    scale, rows = make(weight, 10, 6, seed=11)
    small = rows.astype(np.float32)
    projected = PNorm(p, scale).project(small, 0.6)  # a scale of another dtype does not change that of the result
    assert projected.dtype == np.float32
    assert PNorm(p, scale).norm(small).dtype == np.float32
    expected = PNorm(p, scale).project(small.astype(float), 0.6)
    eps = float(np.finfo(np.float32).eps)
    np.testing.assert_allclose(projected, expected, rtol=0, atol=64 * eps * max(1, 1 / (p - 1) if p > 1 else 1))
    assert np.all(exact_norm(projected, p, None if scale is None else scale.astype(np.float32)) <= 0.6 * (1 + 8 * eps))


@each_order
@each_weight
def test_array_libraries_agree(xp, p, weight):
    scale, rows = make(weight, 10, 6, seed=12)
    radius = np.abs(np.random.default_rng(13).standard_normal((10, 1)))
    radius[2] = 0
    expected = PNorm(p, scale).project(rows, radius)
    norm = PNorm(p, None if scale is None else xp.asarray(scale))
    there = xp.asarray(rows)
    projected = norm.project(there, xp.asarray(radius))
    assert isinstance(projected, type(there))
    np.testing.assert_allclose(np.asarray(projected), expected, rtol=0, atol=50 * ROUND_OFF)
    np.testing.assert_allclose(np.asarray(norm.norm(there)), PNorm(p, scale).norm(rows), rtol=ROUND_OFF)
    assert np.array_equal(np.asarray(there), rows)


@each_order
@each_weight
def test_arguments_are_unchanged(p, weight):
    scale, rows = make(weight, 8, 5, seed=14)
    radius = np.linspace(0, 3, 8)[:, None]
    copies = [None if a is None else a.copy() for a in (rows, radius, scale)]
    norm = PNorm(p, scale)
    norm.project(rows, radius)
    norm.norm(rows)
    for now, before in zip((rows, radius, scale), copies, strict=True):
        assert now is None or np.array_equal(now, before)


@pytest.mark.parametrize("p", [1, 1.3, 3])
@pytest.mark.parametrize("weight", ["none", "by_row"])
def test_large_arrays_are_cut_into_blocks(p, weight, monkeypatch):
    scale, rows = make(weight, 50, 8, seed=15)
    radius = np.linspace(0.1, 2, 50)[:, None]
    whole = PNorm(p, scale).project(rows, radius)
    monkeypatch.setattr(_balls, "_BLOCK", 24)
    np.testing.assert_allclose(PNorm(p, scale).project(rows, radius), whole, rtol=0, atol=ROUND_OFF)


@pytest.mark.parametrize("index", [slice(1, 3), np.array([1, 2]), np.array([False, True, True, False])], ids=str)
def test_take_rows(index):
    array = np.arange(8.0).reshape(4, 2)
    assert np.array_equal(_balls.take_rows(array, index), array[1:3])
    assert np.array_equal(_balls.take_rows(array[0], index), array[0])
    assert _balls.take_rows(None, index) is None
