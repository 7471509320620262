"""The contract of every loss; a new class in ``fenchel.losses.__all__`` is picked up by itself."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

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
    Pinball,
    Power,
    Square,
)
from tests.parts import LOSSES

GRID = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 13)]), axis=-1).reshape(-1, 2)

EPS = np.finfo(float).eps
ROUND_OFF = 1e4 * EPS
BISECTION = 1e5 * EPS

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
RADIAL_CONVOLUTIONS = [loss for loss in InfimalConvolution.examples() if loss.profile is not None]
seeds = st.integers(0, 2**32 - 1)


def rows(seed, n=7, p=3):
    """Rows of very different sizes, one of them zero."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, p)) * 10 ** rng.uniform(-3, 0.7, (n, 1))
    values[0] = 0
    return values


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
    "loss", [Norm(0.7), Power(1.5), Power(3.0, 2.0), Exponential(0.4), NormLog(0.6), *RADIAL_CONVOLUTIONS], ids=repr
)
def test_conjugate_is_the_supremum(loss):
    """f*(s) = sup_t s t - f(t), found by a scalar search that knows only the values."""
    bound_at = loss.profile.bound
    for s in (0.05, 0.2, 0.6, 1.1, 2.0):
        if s >= bound_at:
            continue
        found = minimize_scalar(
            lambda t, s=s: loss.value(np.array([[t, 0.0]]))[0] - s * t, bounds=(0, 40), options={"xatol": 1e-12}
        )
        assert loss.conjugate(np.array([[0.0, s]]))[0] == pytest.approx(-found.fun, abs=1e-7)


@pytest.mark.parametrize("loss", RADIAL_CONVOLUTIONS, ids=repr)
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


def test_convolution_takes_losses_only():
    with pytest.raises(TypeError, match=r"'g' parameter of InfimalConvolution must be a Loss\. Got 'square'"):
        InfimalConvolution(Square(), "square").validate()


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (Huber(0.5, p=1), Norm(0.4)),
        (EpsilonSVR(0.1, p=1), EpsilonSVR(0.2, p=math.inf)),
        (Pinball(0.3), Square()),
        (Pinball(0.3), Ball(0.4)),
        (MaxMargin(), Norm(0.5)),
        (EpsilonSVR(0.1, p=1.5), Power(1.5)),
        (InfimalConvolution(Huber(0.5, p=1), Norm(0.4)), Pinball(0.3)),
    ],
    ids=repr,
)
def test_convolution_of_any_losses_is_the_infimum(f, g):
    """(f □ g)(r) = inf_u f(u) + g(r - u), found by finer and finer grids of the plane, from the two values alone."""
    targets = np.array([[0.8, -0.6], [1.5, 0.4], [-0.2, 0.9]])
    residuals = np.array([[0.9, -0.2], [-2.0, 1.3], [0.05, 0.1]])
    values = InfimalConvolution(f, g).bind(targets).value(residuals)
    for k, residual in enumerate(residuals):
        at = np.repeat(targets[k : k + 1], len(GRID), axis=0)
        f_at, g_at = f.bind(at), g.bind(at)
        best, width = np.zeros(2), 4.0
        for angle in range(110):  # the sum is convex; an edge of its domain may be oblique to a grid
            points = best + width * GRID @ np.array(
                [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
            )
            totals = f_at.value(points) + g_at.value(residual - points)
            best, width = points[np.argmin(totals)], 0.85 * width
        found = np.min(totals)
        assert values[k] <= found + 1e-9  # the infimum is no larger than any value
        assert values[k] >= found - 1e-5 * (1 + abs(found))


def test_convolution_of_thresholds_relative_to_residuals():
    loss = InfimalConvolution(Huber("scale:1", p=1), Norm(0.4))
    residuals = np.random.default_rng(0).standard_normal((50, 2))
    assert loss.is_relative
    assert loss.resolve(residuals).f.kappa == Huber("scale:1", p=1).resolve(residuals).kappa


def test_max_margin_must_be_bound():
    with pytest.raises(ValueError, match="bind"):
        MaxMargin().value(np.ones((2, 2)))
