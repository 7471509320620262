"""What Auto chooses, when it changes its mind, and the starts that its choices rest on."""

import numpy as np
import pytest

from fenchel.kernels.gram import DenseGram, SeparableGram
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber
from fenchel.problem import DualProblem
from fenchel.solvers import APGD, Auto, DouglasRachford, RowNewton, Status
from fenchel.solvers.splitting import _shortening

N = 80


def build(loss, lam, p=4, n=N, weights=None):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 4))
    K = np.exp(-0.1 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    Y = np.tanh(X @ rng.standard_normal((4, p))) + 0.3 * rng.standard_normal((n, p))
    Y[: n // 10] += 3 * rng.standard_normal((n // 10, p))
    return DualProblem.build(SeparableGram(DenseGram(K)), Y, loss(np.linalg.norm(Y, axis=1)), lam, weights)


def relay(problem):
    return Auto()._relay(problem, Auto().choose(problem)[0])


def zone(share):
    """Return an epsilon-ridge loss whose insensitive zone holds all but a share of the samples."""
    return lambda norms: EpsilonRidge(float(np.quantile(norms, 1 - share)))


def clipped(share):
    """Return a Huber loss that a share of the samples saturates in the zero model."""
    return lambda norms: Huber(float(np.quantile(norms, 1 - share)))


def tube(share):
    return lambda norms: EpsilonSVR(float(np.quantile(norms, 1 - share)))


class TestChoice:
    def test_gradient_steps_where_the_zero_model_is_near(self):
        """All rows saturated: lam is small, and yet the duals hardly depend on the model."""
        problem = build(lambda norms: Huber(1e-6 * norms.max()), 1e-6)
        assert problem.lipschitz > 1e5
        chosen, reason = Auto().choose(problem)
        assert isinstance(chosen, APGD)
        assert reason.startswith("the zero model is near")
        solution = Auto().solve(problem)
        assert (solution.solver, solution.status) == ("APGD", Status.CONVERGED)
        assert solution.n_iter <= 50
        assert isinstance(Auto().choose(build(lambda norms: Huber(np.median(norms)), 1e-6))[0], DouglasRachford)

    @pytest.mark.parametrize("lam", [1e-5, 1e-8])
    def test_newton_for_one_output_with_a_zone(self, lam):
        """Whatever lam, unless the factorisation is cheap."""
        problem = build(zone(0.6), lam, p=1, n=300)
        assert isinstance(Auto().choose(problem)[0], RowNewton)
        assert Auto().solve(problem).status is Status.CONVERGED
        assert isinstance(Auto().choose(build(zone(0.6), 1e-8, p=1))[0], DouglasRachford)

    @pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 300)], ids=["plain", "weighted"])
    def test_newton_for_one_output_without_a_zone(self, weights):
        """Unless nearly all samples are at their bound in the zero model: then it takes many steps."""
        for share, solver in ((0.3, RowNewton), (0.96, RowNewton), (0.99, DouglasRachford)):
            problem = build(clipped(share), 1e-8, p=1, n=300, weights=weights)
            assert Auto()._share_at_bound(problem) == pytest.approx(share, abs=0.01)
            assert isinstance(Auto().choose(problem)[0], solver)
            assert Auto().solve(problem).status is Status.CONVERGED
        assert Auto()._share_at_bound(build(zone(0.6), 1e-8, p=1)) == 0  # no bound

    def test_short_numbers_at_their_bound(self):
        """Duals that were brought to their bound are a rounding error away from it."""
        problem = build(clipped(0.99), 1e-8, p=1, n=300)
        K, Y = problem.gram.dense(1).astype(np.float32), problem.targets.astype(np.float32)
        short = DualProblem.build(SeparableGram(DenseGram(K)), Y, problem.loss, 1e-8)
        assert Auto()._share_at_bound(short) == pytest.approx(0.99, abs=0.01)

    def test_newton_for_few_samples_of_one_output_without_a_zone(self):
        """A few of its steps are cheap then, but not the many that a small lam asks for."""
        assert isinstance(Auto().choose(build(clipped(0.99), 1e-5, p=1))[0], RowNewton)
        assert isinstance(Auto().choose(build(clipped(0.99), 1e-9, p=1))[0], DouglasRachford)

    def test_newton_for_one_output_without_curvature(self):
        """Where lam is large and about half of the samples are outside, at most."""
        for share, lam, solver in (
            (0.55, 1e-3, RowNewton),
            (0.7, 1e-3, DouglasRachford),
            (0.55, 1e-5, DouglasRachford),
        ):
            problem = build(tube(share), lam, p=1)
            assert isinstance(Auto().choose(problem)[0], solver)
            assert Auto().solve(problem).status is Status.CONVERGED
        assert isinstance(Auto().choose(build(tube(0.55), 1e-3))[0], DouglasRachford)  # four outputs
        assert isinstance(Auto().choose(build(zone(0.55), 1e-5))[0], DouglasRachford)  # curvature

    def test_the_splitting_stays_where_newton_is_slow(self):
        """A loss without curvature, most samples active: Newton's systems are large, and its steps many."""
        assert [solver.max_iter for solver, _ in relay(build(tube(0.95), 1e-5, p=1))] == [2000, 200, 20000]
        assert [solver.max_iter for solver, _ in relay(build(zone(0.9), 1e-5))] == [400, 200, 20000]

    def test_the_splitting_where_products_have_many_columns(self):
        """lam is large, so that gradient steps are few: they beat the factorisation unless each is dear."""
        assert isinstance(Auto().choose(build(clipped(0.5), 1e-2, p=6, n=700))[0], APGD)
        assert isinstance(Auto().choose(build(clipped(0.5), 1e-2, p=30, n=700))[0], DouglasRachford)

    def test_newton_or_gradient_steps_for_one_output(self):
        """Gradient steps are many at a small lam, where n is large enough for each to wait for memory."""
        assert isinstance(Auto().choose(build(zone(0.6), 3e-4, p=1, n=1400))[0], RowNewton)
        assert isinstance(Auto().choose(build(zone(0.95), 1e-2, p=1, n=1400))[0], APGD)
        assert isinstance(Auto().choose(build(zone(0.5), 1e-2, p=1, n=1400))[0], RowNewton)  # systems half as large

    def test_few_samples_outside(self):
        assert isinstance(Auto().choose(build(zone(0.1), 1e-5))[0], RowNewton)
        assert isinstance(Auto().choose(build(zone(0.9), 1e-5))[0], DouglasRachford)
        assert isinstance(Auto().choose(build(zone(0.1), 1e-9))[0], DouglasRachford)  # too hard from afar

    def test_newton_ends_when_its_systems_grow(self):
        """A tenth of the samples is outside the zone of the zero model, most are outside that of the solution."""
        problem = build(zone(0.1), 1e-6, p=14)
        chosen, _ = Auto().choose(problem)
        assert isinstance(chosen, RowNewton)
        assert chosen.most_active == 0.4
        solution = Auto().solve(problem, tol=1e-9)
        active = np.mean(np.any(solution.duals != 0, axis=1))
        assert active > 0.4
        assert (solution.solver, solution.status) == ("DouglasRachford", Status.CONVERGED)
        ended = chosen.solve(problem, tol=1e-9)
        assert ended.status is Status.MAX_ITER
        assert ended.n_iter <= 5

    def test_systems_may_grow_where_few_steps_are_to_come(self):
        for lam, most in ((1e-4, 0.6), (1e-6, 0.4)):
            problem = build(zone(0.15), lam, p=14)
            assert (problem.lipschitz <= 1e4) == (lam == 1e-4)
            assert Auto().choose(problem)[0].most_active == pytest.approx(most)

    def test_limits_are_kept(self):
        """With max_iter there is nobody to hand over to: the chosen solver goes to its end."""
        chosen, _ = Auto(max_iter=7).choose(build(zone(0.04), 1e-5))
        assert (chosen.max_iter, chosen.most_active) == (7, 1.0)


class TestStart:
    def test_newton_starts_from_the_zero_model(self):
        """Few samples are active: from the duals that the zero model asks for, where all move, it takes longer."""
        problem = build(zone(0.04), 1e-5)
        assert np.all(RowNewton().first_state(problem, None).coef == 0)
        solution = RowNewton().solve(problem)
        assert solution.status is Status.CONVERGED
        assert np.mean(np.any(solution.duals != 0, axis=1)) < 0.5
        far = problem.prox_remainder(problem.targets, 1.0)
        assert solution.n_iter <= RowNewton().solve(problem, start=far).n_iter / 2

    @pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, N)], ids=["plain", "weighted"])
    @pytest.mark.parametrize("share", [1.0, 0.9, 0.5, 0.1])
    def test_the_best_multiple_of_the_ridge_solution(self, share, weights):
        """Against a search on the ray for the largest dual value."""
        problem = build(zone(share), 1e-4, weights=weights)
        ridge = np.linalg.solve(problem.gram.dense(1) * problem.scale + np.eye(N), problem.targets)
        fitted = problem.predictions(ridge)
        found = _shortening(problem, ridge, fitted)
        ray = np.linspace(0, 1, 2001)
        values = [problem.certificate(t * ridge, t * fitted).dual for t in ray]
        assert abs(found - ray[np.argmax(values)]) <= 1e-3

    def test_the_start_is_in_the_domain(self):
        problem = build(lambda norms: EpsilonSVR(0.05), 1e-4)
        ridge = np.linalg.solve(problem.gram.dense(1) * problem.scale + np.eye(N), problem.targets)
        assert np.linalg.norm(ridge, axis=1).max() > 1
        found = _shortening(problem, ridge, problem.predictions(ridge))
        assert 0 < found * np.linalg.norm(ridge, axis=1).max() <= 1 + 1e-12

    def test_other_losses_start_from_the_ridge_solution(self):
        problem = build(lambda norms: Huber(1.01 * norms.max()), 1e-6)
        assert DouglasRachford().solve(problem).n_iter == 0

    def test_a_wide_zone_is_reached_from_zero(self):
        """Half the iterations that the ridge solution takes."""
        problem = build(zone(0.1), 1e-8)
        ridge = np.linalg.solve(problem.gram.dense(1) * problem.scale + np.eye(N), problem.targets)
        assert _shortening(problem, ridge, problem.predictions(ridge)) == 0
        cold, warm = DouglasRachford().solve(problem), DouglasRachford().solve(problem, start=ridge)
        assert cold.status is Status.CONVERGED
        assert cold.n_iter <= 0.75 * warm.n_iter
