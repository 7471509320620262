"""Integral losses by brute force: conjugates and proxes on grids, quadrature weights, levels, bad parameters."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fenchel import OperatorKernelRegressor
from fenchel.losses import AsymmetricSquare, CostSensitiveHinge, IntegralLoss, Pinball
from fenchel.operators import Dense, kronecker
from fenchel.problem import DualProblem
from fenchel.problem.derived import holding_out
from fenchel.solvers import Auto, BoxNewton, DouglasRachford, Status

EPS = np.finfo(float).eps
LEVELS = np.array([0.2, 0.5, 0.9])
WEIGHTS = np.array([0.3, 0.5, 0.2])
LOSSES = [Pinball(LEVELS), CostSensitiveHinge(LEVELS), IntegralLoss(AsymmetricSquare(), LEVELS)]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


def plain(loss, r, y, level):
    """The loss of one number, from its definition in the paper."""
    name = type(loss).__name__
    if name == "Pinball":
        return max(level * r, (level - 1) * r)
    if name == "CostSensitiveHinge":
        return abs(level - (y < 0)) * max(0.0, 1 - y * (y - r))
    return (level if r > 0 else 1 - level) * r**2


def sample(seed=0, n=6):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), np.sign(rng.standard_normal((n, 3)))


@each_loss
def test_value_is_the_weighted_sum_over_the_levels(loss):
    values, signs = sample()
    scale = np.sqrt(WEIGHTS)
    found = loss.bind(signs * scale, scale).value(values * scale)
    wanted = [
        sum(w * plain(loss, r, y, t) for r, y, t, w in zip(row, sign, LEVELS, WEIGHTS, strict=True))
        for row, sign in zip(values, signs, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


@each_loss
def test_conjugate_is_the_supremum(loss):
    """sup over curves of the product less the loss, found number by number on a fine grid."""
    values, signs = sample(1)
    scale = np.sqrt(WEIGHTS)
    bound = loss.bind(signs * scale, scale)
    duals = 0.9 * bound.prox_conjugate(values * scale, 0.4)
    grid = np.linspace(-20, 20, 40001)
    wanted = []
    for a, sign in zip(duals / scale, signs, strict=True):
        tops = [max(b * r - plain(loss, r, y, t) for r in grid) for b, y, t in zip(a, sign, LEVELS, strict=True)]
        wanted.append(WEIGHTS @ tops)
    np.testing.assert_allclose(bound.conjugate(duals), wanted, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES[:2], ids=["pinball", "hinge"])
def test_conjugate_is_infinite_outside_the_box(loss):
    _, signs = sample(2)
    bound = loss.bind(signs)
    low, high, _ = bound.box
    low, high = low + 0 * signs, high + 0 * signs
    for end, step in ((low, -1e-6), (high, 1e-6)):
        assert np.all(np.isfinite(bound.conjugate(end)))
        for j in range(3):
            outside = end.copy()
            outside[:, j] += step
            assert np.all(np.isinf(bound.conjugate(outside)))


def test_boxes_by_hand():
    """theta - 1 <= a <= theta (the paper's Remark 3 has the sign reversed), and 0 <= y a <= the weight of the error."""
    low, high, slope = Pinball(LEVELS).bind(np.ones((1, 3))).box
    np.testing.assert_allclose([low, high, slope], [[-0.8, -0.5, -0.1], [0.2, 0.5, 0.9], [0, 0, 0]], atol=EPS)
    low, high, slope = CostSensitiveHinge(LEVELS).bind(np.array([[1.0] * 3, [-1.0] * 3])).box
    np.testing.assert_allclose(low, [[0, 0, 0], [-0.8, -0.5, -0.1]], atol=EPS)
    np.testing.assert_allclose(high, [[0.2, 0.5, 0.9], [0, 0, 0]], atol=EPS)
    np.testing.assert_allclose(slope, 0)


@each_loss
def test_prox_by_a_scalar_search(loss):
    values, signs = sample(3)
    scale, step = np.sqrt(WEIGHTS), 0.7
    bound = loss.bind(signs * scale, scale)
    found = bound.prox_conjugate(values, step)
    box = bound.box
    for i, j in np.ndindex(*values.shape):
        ends = (-20.0, 20.0) if box is None else ((box[0] + 0 * values)[i, j], (box[1] + 0 * values)[i, j])

        def objective(a, i=i, j=j):
            row = np.zeros((6, 3)) if box is None else found.copy()
            row[i, j] = a
            return (a - values[i, j]) ** 2 / 2 + step * bound.conjugate(row)[i]

        best = minimize_scalar(objective, bounds=ends, method="bounded", options={"xatol": 1e-10})
        assert found[i, j] == pytest.approx(best.x, abs=2e-6)


@each_loss
def test_points_without_weight_do_not_count(loss):
    values, signs = sample(4)
    scale = np.array([1.0, 0.0, 0.5])
    bound = loss.bind(signs * scale, scale)
    seen = values * scale
    half = loss.set_params(levels=LEVELS[[0, 2]]).bind(signs[:, ::2] * scale[::2], scale[::2])
    np.testing.assert_allclose(bound.value(seen), half.value(seen[:, ::2]), rtol=1e-14)
    loss.set_params(levels=LEVELS)


def test_saturation_brings_duals_into_the_box():
    values, signs = sample(5)
    for loss in LOSSES[:2]:
        bound = loss.bind(signs)
        duals = 3 * bound.prox_conjugate(values, 1.0)
        scaled = duals / np.max(bound.saturation(duals))
        assert np.all(np.isfinite(bound.conjugate(scaled)))
        assert np.max(bound.saturation(scaled)) == pytest.approx(1)
    signs[0] = 1
    assert np.all(np.isinf(CostSensitiveHinge(0.5).bind(signs).saturation(-np.ones((6, 3)))[0]))


def test_one_level_serves_every_coordinate():
    values, signs = sample(6)
    np.testing.assert_array_equal(
        Pinball(0.3).bind(signs).value(values), Pinball([0.3, 0.3, 0.3]).bind(signs).value(values)
    )


@pytest.mark.parametrize("levels", [0.0, 1.0, [0.2, 1.5], [], [[0.1]], float("nan")])
def test_levels_are_checked(levels):
    with pytest.raises(ValueError, match=r"'levels' parameter of Pinball must be a number in \(0, 1\)"):
        Pinball(levels).validate()


def test_bad_parts_are_named():
    with pytest.raises(TypeError, match="'levels' parameter of Pinball"):
        Pinball("half").validate()
    with pytest.raises(TypeError, match="'point' parameter of IntegralLoss must be a PointLoss"):
        IntegralLoss(Pinball()).validate()
    with pytest.raises(
        ValueError, match=r"one for each of the 3 output coordinates \(or points, of curves with channels\)\. Got 2"
    ):
        Pinball([0.1, 0.2]).bind(np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"call bind\(targets\) first"):
        Pinball().value(np.ones((2, 2)))


class TestBoxNewton:
    def problem(self, lam=1e-3, n=60, weights=None):
        rng = np.random.default_rng(7)
        X = rng.uniform(-1, 1, (n, 2))
        y = X[:, 0] + 0.3 * rng.standard_normal(n)
        K = np.exp(-2 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
        M = np.exp(-3 * (LEVELS[:, None] - LEVELS) ** 2)
        targets = np.repeat(y[:, None], 3, axis=1)
        return DualProblem.build(kronecker(Dense(K), M), targets, Pinball(LEVELS), lam, weights)

    @pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-5])
    def test_it_gives_the_splitting_its_last_digits(self, lam):
        problem = self.problem(lam)
        near = DouglasRachford().solve(problem, 1e-2)
        found = BoxNewton(tau=0.1 * near.state.rho).solve(problem, 1e-8, near.duals)
        assert found.status is Status.CONVERGED and found.n_iter < 80
        slow = DouglasRachford().solve(problem, 1e-7)
        assert found.certificate.primal == pytest.approx(slow.certificate.primal, rel=2e-7)

    def test_conjugate_gradients_do_the_same(self, monkeypatch):
        """More free duals than a factorisation takes."""
        problem = self.problem()
        start = DouglasRachford().solve(problem, 1e-2)
        monkeypatch.setattr("fenchel.solvers.box._MOST_FREE", 0)
        found = BoxNewton(tau=0.1 * start.state.rho).solve(problem, 1e-8, start.duals)
        assert found.status is Status.CONVERGED

    def test_sample_weights_and_held_out_samples(self):
        weights = np.random.default_rng(8).uniform(0.2, 2, 60)
        problem = holding_out(self.problem(weights=weights), np.arange(5))
        found = Auto().solve(problem, 1e-8)
        assert found.status is Status.CONVERGED and found.solver == "BoxNewton"
        assert np.all(found.duals[:5] == 0)

    def test_auto_counts_the_iterations_of_both(self):
        problem = self.problem(1e-4)
        found = Auto().solve(problem, 1e-9)
        counts = [n_iter for n_iter, _ in found.history]
        assert counts == sorted(counts) and counts[-1] == found.n_iter
        assert found.certificate.relative_gap <= 1e-9

    def test_it_takes_losses_with_a_box_only(self):
        problem = self.problem().with_(loss=IntegralLoss(AsymmetricSquare()).bind(self.problem().targets))
        assert "are not in a box" in BoxNewton().why_not(problem)
        assert Auto().solve(problem, 1e-8).status is Status.CONVERGED


def test_quantiles_of_a_scalar():
    """With one output the loss is that of kernel quantile regression: a share theta of the residuals is negative."""
    rng = np.random.default_rng(9)
    X, y = rng.uniform(-1, 1, (200, 1)), rng.standard_normal(200)
    for level in (0.1, 0.5, 0.9):
        model = OperatorKernelRegressor(loss=Pinball(level), lam=1e-2).fit(X, y)
        assert np.mean(y < model.predict(X)) == pytest.approx(level, abs=0.1)
