"""The contract of every loss; a new class in ``fenchel.losses.__all__`` is picked up by itself."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from fenchel.losses import (
    Ball,
    EpsilonRidge,
    EpsilonSVR,
    Exponential,
    Huber,
    InfimalConvolution,
    MaxMargin,
    Norm,
    NormLog,
    Power,
    Square,
)
from tests.parts import LOSSES

EPS = np.finfo(float).eps
ROUND_OFF = 1e4 * EPS
BISECTION = 1e5 * EPS

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
seeds = st.integers(0, 2**32 - 1)


def rows(seed, n=7, p=3):
    """Rows of very different sizes, one of them zero."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, p)) * 10 ** rng.uniform(-3, 0.7, (n, 1))
    values[0] = 0
    return values


def bound(loss, seed=0, n=7, p=3):
    """The loss bound to some targets (only margin losses look at them)."""
    return loss.bind(np.random.default_rng(seed + 1).standard_normal((n, p)))


def feasible(loss, seed):
    """Duals in the domain of the conjugate."""
    return loss.prox_conjugate(rows(seed), 0.7)


@each_loss
@given(seed=seeds)
def test_fenchel_young_gap_is_never_negative(loss, seed):
    loss = bound(loss)
    residuals, duals = rows(seed), feasible(loss, seed + 1)
    values, conjugates = loss.value(residuals), loss.conjugate(duals)
    products = np.sum(residuals * duals, axis=1)
    size = 1 + np.abs(np.where(np.isfinite(values), values, 0)) + np.abs(products)
    assert np.all(np.isfinite(conjugates))
    assert np.all(values + conjugates - products >= -ROUND_OFF * size)


@each_loss
@given(seed=seeds)
def test_fenchel_young_is_tight_at_the_gradient(loss, seed):
    loss = bound(loss)
    if not loss.smooth:
        with pytest.raises(AttributeError, match="not smooth"):
            loss.gradient(rows(seed))
        return
    residuals = rows(seed)
    duals = loss.gradient(residuals)
    gap = loss.value(residuals) + loss.conjugate(duals) - np.sum(residuals * duals, axis=1)
    size = 1 + np.abs(loss.value(residuals)) + np.sum(np.abs(residuals * duals), axis=1)
    assert np.all(np.abs(gap) <= BISECTION * size)


@each_loss
def test_gradient_is_the_finite_difference(loss):
    loss = bound(loss)
    if not loss.smooth:
        return
    rng, h = np.random.default_rng(5), 1e-6
    residuals = rng.standard_normal((7, 3))
    for k in range(3):
        shift = h * np.eye(3)[k]
        slope = (loss.value(residuals + shift) - loss.value(residuals - shift)) / (2 * h)
        np.testing.assert_allclose(loss.gradient(residuals)[:, k], slope, rtol=1e-5, atol=2e-7)


@each_loss
@given(seed=seeds, step=st.sampled_from([1e-3, 0.1, 1.0, 30.0]))
def test_prox_beats_every_other_feasible_point(loss, seed, step):
    """The objective of the prox is strongly convex: any other point is worse by half its squared distance."""
    loss = bound(loss)
    point = rows(seed)
    best = loss.prox_conjugate(point, step)
    objective = step * loss.conjugate(best) + np.sum((best - point) ** 2, axis=1) / 2
    assert np.all(np.isfinite(objective))
    rng = np.random.default_rng(seed)
    for scale in (1e-4, 1e-2, 1.0):
        nearby = best + scale * rng.standard_normal(best.shape)
        for other in (loss.prox_conjugate(nearby, 0.01), best * (1 - scale / 2), best * (1 + scale)):
            value = step * loss.conjugate(other) + np.sum((other - point) ** 2, axis=1) / 2
            distance = np.sum((other - best) ** 2, axis=1) / 2
            value = np.where(np.isfinite(value), value, math.inf)
            assert np.all(value >= objective + distance - BISECTION * (1 + np.abs(objective)))


@each_loss
@given(seed=seeds)
def test_prox_is_firmly_non_expansive(loss, seed):
    loss = bound(loss)
    for prox in (loss.prox_conjugate, loss.prox_remainder):
        u, v = rows(seed), rows(seed + 1)
        a, b = prox(u, 0.5), prox(v, 0.5)
        left, right = np.sum((a - b) ** 2, axis=1), np.sum((a - b) * (u - v), axis=1)
        assert np.all(left <= right + BISECTION * (1 + np.abs(right)))


@each_loss
def test_prox_remainder_is_the_prox_without_the_quadratic(loss):
    """prox of step (sigma/2 |.|^2 + g) at u is the prox of step/(1 + step sigma) g at u/(1 + step sigma)."""
    loss = bound(loss)
    point, step, sigma = rows(3), 0.7, loss.curvature
    direct = loss.prox_conjugate(point, step)
    through = loss.prox_remainder(point / (1 + step * sigma), step / (1 + step * sigma))
    np.testing.assert_allclose(direct, through, rtol=1e-10, atol=1e-12)


@each_loss
def test_steps_may_differ_from_row_to_row(loss):
    loss = bound(loss)
    point, steps = rows(4), np.linspace(0.1, 3, 7)[:, None]
    together = loss.prox_conjugate(point, steps)
    for i, step in enumerate(steps[:, 0]):
        alone = loss.rows(slice(i, i + 1)).prox_conjugate(point[i : i + 1], float(step))
        np.testing.assert_allclose(together[i : i + 1], alone, rtol=1e-9, atol=1e-12)


@each_loss
def test_arguments_are_unchanged_and_dtype_is_kept(loss):
    for dtype in (np.float64, np.float32):
        bound_loss = loss.bind(np.random.default_rng(1).standard_normal((7, 3)).astype(dtype))
        point = rows(6).astype(dtype)
        copy = point.copy()
        results = [
            bound_loss.value(point),
            bound_loss.prox_conjugate(point, 0.3),
            bound_loss.prox_remainder(point, 0.3),
            bound_loss.conjugate(bound_loss.prox_conjugate(point, 0.3)),
        ]
        assert np.array_equal(point, copy)
        assert [result.dtype for result in results] == [dtype] * 4
        assert np.all(np.isfinite(results[3]))  # the domain test allows for the round-off of the dtype


@each_loss
def test_saturation_is_a_share(loss):
    loss = bound(loss)
    scores = loss.saturation(loss.prox_conjugate(1e6 * rows(8), 0.5))
    if scores is not None:
        assert scores.shape == (7,)
        assert np.all((scores >= 0) & (scores <= 1 + 16 * EPS))
        assert scores.max() > 0.99


@each_loss
def test_clone_and_repr(loss):
    assert repr(clone(loss)) == repr(loss)


def test_the_same_loss_through_another_door():
    """Classical losses are infimal convolutions of simpler ones ([Laforgue2020]_, section 3)."""
    pairs = [
        (Huber(0.4), InfimalConvolution(Square(), Norm(0.4))),
        (EpsilonRidge(0.3), InfimalConvolution(Ball(0.3), Square())),
        (EpsilonSVR(0.3), InfimalConvolution(Norm(1.0), Ball(0.3))),
        (Power(2.0, scale=1.0), Square()),
        (Ball(0.5), InfimalConvolution(Ball(0.2), Ball(0.3))),
        (Norm(0.5), InfimalConvolution(Norm(0.5), Norm(2.0))),
    ]
    residuals = rows(2, n=40)
    for direct, convolved in pairs:
        np.testing.assert_allclose(direct.value(residuals), convolved.value(residuals), rtol=1e-9, atol=1e-12)
        duals = direct.prox_conjugate(residuals, 0.5)
        np.testing.assert_allclose(duals, convolved.prox_conjugate(residuals, 0.5), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(direct.conjugate(duals), convolved.conjugate(duals), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "loss",
    [Norm(0.7), Power(1.5), Power(3.0, 2.0), Exponential(0.4), NormLog(0.6), *InfimalConvolution.examples()],
    ids=repr,
)
def test_conjugate_is_the_supremum(loss):
    """f*(s) = sup_t s t - f(t), found by a scalar search that knows only the values."""
    bound_at = loss.profile().bound
    for s in (0.05, 0.2, 0.6, 1.1, 2.0):
        if s >= bound_at:
            continue
        found = minimize_scalar(
            lambda t, s=s: loss.value(np.array([[t, 0.0]]))[0] - s * t, bounds=(0, 40), options={"xatol": 1e-12}
        )
        assert loss.conjugate(np.array([[0.0, s]]))[0] == pytest.approx(-found.fun, abs=1e-7)


@pytest.mark.parametrize("loss", InfimalConvolution.examples(), ids=repr)
def test_convolution_is_the_infimum(loss):
    """(f □ g)(t) = inf_u f(u) + g(t - u), found by a fine grid that knows only the two parts."""
    for t in (0.0, 0.1, 0.5, 1.0, 3.0):
        parts = np.linspace(0, t, 20001)
        columns = np.stack([parts, 0 * parts], axis=1)
        rest = np.stack([t - parts, 0 * parts], axis=1)
        infimum = np.min(loss.f.value(columns) + loss.g.value(rest))
        assert loss.value(np.array([[0.0, t]]))[0] == pytest.approx(infimum, abs=2e-4 * (1 + infimum))


def test_norm_log_is_the_convex_envelope():
    loss, t = NormLog(0.8), np.linspace(1e-6, 4, 4001)
    values = loss.value(t[:, None])
    raw = 0.8 * t * np.log(t)
    assert np.all(values <= raw + 1e-12)  # below the function of the papers
    assert np.all(np.diff(values, 2) >= -1e-12)  # convex
    beyond = t >= 1 / math.e
    np.testing.assert_allclose(values[beyond], raw[beyond], rtol=1e-12)  # equal where that one is convex
    np.testing.assert_allclose(values[~beyond], -0.8 / math.e)  # and constant before


def test_hand_computed_values():
    r = np.array([[3.0, 4.0]])
    assert Square().value(r)[0] == 12.5
    assert Norm(2.0).value(r)[0] == 10.0
    assert Power(3.0, 6.0).value(r)[0] == pytest.approx(250.0)
    assert Exponential(2.0).value(r)[0] == pytest.approx(2 * (math.e**5 - 1))
    assert NormLog(1.0).value(r)[0] == pytest.approx(5 * math.log(5))
    assert Ball(5.0).value(r)[0] == 0.0
    assert Ball(4.9).value(r)[0] == math.inf
    assert Huber(1.0).value(r)[0] == pytest.approx(4.5)
    assert EpsilonRidge(1.0).value(r)[0] == pytest.approx(8.0)
    assert EpsilonSVR(1.0).value(r)[0] == pytest.approx(4.0)
    hinge = MaxMargin().bind(np.array([[1.0, 0.0], [0.0, 0.0]]))  # h = y - r = (-2, -4): 1 - <h, y> = 3
    assert hinge.value(np.array([[3.0, 4.0], [1.0, 1.0]])).tolist() == [3.0, 1.0]


def test_exact_zeros():
    """Sparsity is counted: a row inside the threshold is zero, not nearly zero."""
    small = 0.3 * np.array([[0.6, 0.8], [-0.8, 0.6]])
    for loss in (EpsilonRidge(0.3001), EpsilonSVR(0.3001), InfimalConvolution(Norm(1.0), Ball(0.3001))):
        assert np.all(loss.prox_conjugate(small, 1.0) == 0)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_branch_boundaries(p):
    for t in (0.999999, 1.0, 1.000001):
        r = np.array([[t]])
        assert Huber(1.0, p=p).value(r)[0] == pytest.approx(t**2 / 2 if t <= 1 else t - 0.5, rel=1e-12)
        assert EpsilonRidge(1.0, p=p).value(r)[0] == pytest.approx(max(t - 1, 0) ** 2 / 2, abs=1e-15)
        assert EpsilonSVR(1.0, p=p).value(r)[0] == pytest.approx(max(t - 1, 0), abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Huber(-1.0), r"'kappa' parameter of Huber must be a float in \(0, inf\). Got -1.0"),
        (Huber(1.0, p=0.5), r"'p' parameter of Huber must be a float in \[1, inf\]. Got 0.5"),
        (EpsilonRidge(-0.1), r"'epsilon' parameter of EpsilonRidge"),
        (EpsilonSVR(float("nan")), r"'epsilon' parameter of EpsilonSVR"),
        (Power(1.0), r"'eta' parameter of Power must be a float in \(1, inf\). Got 1.0"),
        (Norm("a"), r"'scale' parameter of Norm"),
        (InfimalConvolution(Square(), Norm(0.0)), r"'scale' parameter of Norm"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(loss, message):
    with pytest.raises(ValueError, match=message):
        loss.validate()


def test_convolution_takes_radial_losses_only():
    for part in (MaxMargin(), Huber(1.0, p=1), "square"):
        with pytest.raises(TypeError, match="'g' parameter of InfimalConvolution must be a loss of the Euclidean norm"):
            InfimalConvolution(Square(), part).validate()


def test_max_margin_must_be_bound():
    with pytest.raises(ValueError, match="bind"):
        MaxMargin().value(np.ones((2, 2)))
