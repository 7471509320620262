"""What Auto estimates and chooses, when it changes its mind, and the starts that its choices rest on."""

import itertools
import re

import numpy as np
import pytest

from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Pinball
from fenchel.operators import Dense
from fenchel.problem import DualProblem
from fenchel.solvers import APGD, BCD, PGD, Auto, BoxNewton, ClosedForm, DouglasRachford, RowNewton, Status
from fenchel.solvers.costs import Cost, Known, Shares, trace
from fenchel.solvers.splitting import shortening

N = 80


def build(loss, lam, p=4, n=N, weights=None):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 4))
    K = np.exp(-0.1 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    Y = np.tanh(X @ rng.standard_normal((4, p))) + 0.3 * rng.standard_normal((n, p))
    Y[: n // 10] += 3 * rng.standard_normal((n // 10, p))
    return DualProblem.build(Dense(K), Y, loss(np.linalg.norm(Y, axis=1)), lam, weights)


def zone(share):
    """Return an epsilon-ridge loss whose insensitive zone holds all but a share of the samples."""
    return lambda norms: EpsilonRidge(float(np.quantile(norms, 1 - share)))


def clipped(share):
    """Return a Huber loss that a share of the samples saturates in the zero model."""
    return lambda norms: Huber(float(np.quantile(norms, 1 - share)))


def tube(share):
    return lambda norms: EpsilonSVR(float(np.quantile(norms, 1 - share)))


class Wrong(RowNewton):
    """Newton's method with a cost that it does not keep."""

    def cost(self, problem, known=None):
        return Cost(0.0, 1e-9, 1.0)


def offered(monkeypatch, *solvers):
    """Let Auto choose among these."""
    monkeypatch.setattr(Auto, "_candidates", lambda self: list(solvers))


SPREAD = [
    pytest.param(kind, share, lam, p, id=f"{kind.__name__}-{share}-{lam:g}-p{p}")
    for kind in (zone, clipped, tube)
    for share in (0.1, 0.9, 0.99)
    for lam in (1e-1, 1e-3, 1e-8)
    for p in (1, 4)
]


class TestChoice:
    @pytest.mark.parametrize(("kind", "share", "lam", "p"), SPREAD)
    def test_arrives_and_tells_the_truth(self, kind, share, lam, p):
        """The first solver has the least estimate of those that take the problem, and the reason says so."""
        problem = build(kind(share), lam, p=p)
        chosen, reason = Auto().choose(problem)
        solution = Auto().solve(problem, tol=1e-7)
        assert solution.status is Status.CONVERGED
        assert solution.stages[0].solver == type(chosen).__name__
        assert solution.stages[0].reason == reason
        number, name, other = re.fullmatch(r"cheapest estimate: (\S+) s, next (\w+) (\S+) s", reason).groups()
        assert float(number) <= float(other)
        able = [each for each in Auto()._candidates() if each.why_not(problem) is None]
        assert {type(chosen).__name__, name} <= {type(each).__name__ for each in able}
        # the norm in the estimate is between its bounds
        size = trace(problem)
        seconds = [chosen.cost(problem, Known(Shares(problem), norm)).seconds for norm in (size / N**0.5, size)]
        assert 0.9 * seconds[0] <= float(number) <= 1.1 * seconds[1]

    def test_the_eigenbasis_is_named_only_where_it_is(self):
        problem = build(clipped(0.5), 1e-6, n=200)
        assert "eigenbasis" not in Auto().choose(problem)[1]
        before = DouglasRachford().cost(problem).setup
        problem.shared.factorize()
        assert "with the available eigenbasis" in Auto().choose(problem)[1]
        assert DouglasRachford().cost(problem).setup < before  # no factorisation is left to do

    def test_gradient_steps_are_cheap_where_the_zero_model_is_near(self):
        """All rows saturated: lam is small, and yet the duals hardly depend on the model."""
        near, far = build(lambda norms: Huber(1e-6 * norms.max()), 1e-6), build(clipped(0.5), 1e-6)
        assert near.lipschitz > 1e5
        assert APGD().cost(near).seconds < 0.05 * APGD().cost(far).seconds
        solution = Auto().solve(near)
        assert solution.status is Status.CONVERGED
        assert solution.n_iter <= 50

    def test_limits_are_kept(self):
        """With max_iter there is nobody to hand over to: the chosen solver goes to its end."""
        problem = build(zone(0.04), 1e-5)
        chosen, _ = Auto(max_iter=1).choose(problem)
        assert chosen.max_iter == 1
        solution = Auto(max_iter=1).solve(problem, tol=1e-14)
        assert solution.n_iter == 1
        assert len(solution.stages) == 1


class TestKnown:
    @pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 300)], ids=["plain", "weighted"])
    def test_shares(self, weights):
        for share in (0.3, 0.96, 0.99):
            problem = build(clipped(share), 1e-8, p=1, n=300, weights=weights)
            assert Shares(problem).at_bound == pytest.approx(share, abs=0.01)
            assert Shares(build(zone(share), 1e-8, n=300)).outside == pytest.approx(share, abs=0.01)
        assert Shares(build(zone(0.6), 1e-8, p=1)).at_bound == 0  # no bound

    def test_float32_at_the_bound(self):
        """Duals that were brought to their bound are a rounding error away from it."""
        problem = build(clipped(0.99), 1e-8, p=1, n=300)
        K, Y = problem.gram.matrix.astype(np.float32), problem.targets.astype(np.float32)
        short = DualProblem.build(Dense(K), Y, problem.loss, 1e-8)
        assert Shares(short).at_bound == pytest.approx(0.99, abs=0.01)

    def test_trace_bounds_the_norm(self):
        problem = build(clipped(0.5), 1e-3)
        exact = np.linalg.eigvalsh(problem.gram.matrix) * problem.scale
        assert trace(problem) == pytest.approx(exact.sum())
        assert exact[-1] <= trace(problem)

    @pytest.mark.parametrize("solver", [ClosedForm(), RowNewton(), DouglasRachford(), APGD(), PGD(), BCD()], ids=repr)
    def test_costs_grow_with_the_sample(self, solver):
        costs = [solver.cost(build(clipped(0.5), 1e-3, n=n)) for n in (40, 160)]
        assert 0 < costs[0].seconds < costs[1].seconds
        assert costs[0].seconds == pytest.approx(costs[0].setup + costs[0].n_steps * costs[0].step)


class TestRelay:
    def test_hands_over_when_the_cost_exceeds_the_next_estimate(self, monkeypatch):
        """A solver that is not as cheap as it says is cut short, and the next goes on from its point."""
        offered(monkeypatch, Wrong(), DouglasRachford())
        problem = build(tube(0.9), 1e-6, p=14)
        monkeypatch.setattr(Wrong, "cost", lambda self, problem, known=None: Cost(0.0, 1e-3, 1e-3))
        monkeypatch.setattr(DouglasRachford, "cost", lambda self, problem, known=None: Cost(0.0, 1e-3, 1.0))
        solution = Auto().solve(problem, tol=1e-9)
        assert solution.status is Status.CONVERGED
        first, second = solution.stages[:2]
        assert (first.solver, first.n_iter, first.status) == ("Wrong", 3, Status.MAX_ITER.value)  # three times 1e-3 s
        assert second.reason == f"Wrong handed over at gap {first.gap:.1e}"
        assert sum(stage.n_iter for stage in solution.stages) == solution.n_iter == solution.history[-1][0]

    def test_everyone_comes_again_with_a_larger_allowance(self, monkeypatch):
        offered(monkeypatch, APGD(), DouglasRachford())
        for kind in (APGD, DouglasRachford):
            monkeypatch.setattr(kind, "cost", lambda self, problem, known=None: Cost(0.0, 1e-3, 1.0))
        solution = Auto().solve(build(tube(0.9), 1e-4), tol=1e-9)
        assert solution.status is Status.CONVERGED
        names, counts = zip(*((stage.solver, stage.n_iter) for stage in solution.stages), strict=True)
        assert len(names) > 3
        assert all(before != after for before, after in itertools.pairwise(names))
        assert all(later > earlier for earlier, later in itertools.pairwise(counts[:-1]))

    def test_hands_over_when_a_solver_stalls(self, monkeypatch):
        offered(monkeypatch, Wrong(patience=1), DouglasRachford())
        monkeypatch.setattr(Wrong, "_direction", lambda self, problem, state: np.zeros_like(state.coef))
        solution = Auto().solve(build(clipped(0.5), 1e-3), tol=1e-9)
        assert [stage.solver for stage in solution.stages] == ["Wrong", "DouglasRachford"]
        assert solution.stages[0].status == Status.STALLED.value
        assert solution.status is Status.CONVERGED

    def test_newton_ends_when_its_systems_grow(self):
        """A tenth of the samples is outside the zone of the zero model, most are outside that of the solution."""
        problem = build(zone(0.1), 1e-6, p=14)
        known = Known.of(problem)
        price = RowNewton().cost(problem, known).seconds
        limited = RowNewton().within(problem, known, price, 100.0)
        assert limited.most_active == pytest.approx(0.1, abs=0.03)
        ended = limited.solve(problem, tol=1e-9)
        assert ended.status is Status.MAX_ITER
        assert ended.n_iter <= 5
        assert RowNewton().within(problem, known, 1e3 * price, 100.0).most_active == 1
        assert np.mean(np.any(Auto().solve(problem, tol=1e-9).duals != 0, axis=1)) > 0.4

    def test_a_local_solver_waits_for_a_near_point(self):
        problem = DualProblem.build(build(zone(0.5), 1e-3).gram, build(zone(0.5), 1e-3).targets, Pinball(0.3), 1e-3)
        solution = Auto().solve(problem, tol=1e-9)
        assert solution.status is Status.CONVERGED
        assert solution.stages[0].solver != "BoxNewton"
        for before, stage in itertools.pairwise(solution.stages):
            if stage.solver == "BoxNewton":
                assert before.gap <= BoxNewton.start_gap


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
        ridge = np.linalg.solve(problem.gram.matrix * problem.scale + np.eye(N), problem.targets)
        fitted = problem.predictions(ridge)
        found = shortening(problem, ridge, fitted)
        ray = np.linspace(0, 1, 2001)
        values = [problem.certificate(t * ridge, t * fitted).dual for t in ray]
        assert abs(found - ray[np.argmax(values)]) <= 1e-3

    def test_the_start_is_in_the_domain(self):
        problem = build(lambda norms: EpsilonSVR(0.05), 1e-4)
        ridge = np.linalg.solve(problem.gram.matrix * problem.scale + np.eye(N), problem.targets)
        assert np.linalg.norm(ridge, axis=1).max() > 1
        found = shortening(problem, ridge, problem.predictions(ridge))
        assert 0 < found * np.linalg.norm(ridge, axis=1).max() <= 1 + 1e-12

    def test_other_losses_start_from_the_ridge_solution(self):
        problem = build(lambda norms: Huber(1.01 * norms.max()), 1e-6)
        assert DouglasRachford().solve(problem).n_iter == 0

    def test_a_wide_zone_is_reached_from_zero(self):
        """Half the iterations that the ridge solution takes."""
        problem = build(zone(0.1), 1e-8)
        ridge = np.linalg.solve(problem.gram.matrix * problem.scale + np.eye(N), problem.targets)
        assert shortening(problem, ridge, problem.predictions(ridge)) == 0
        cold, warm = DouglasRachford().solve(problem), DouglasRachford().solve(problem, start=ridge)
        assert cold.status is Status.CONVERGED
        assert cold.n_iter <= 0.75 * warm.n_iter
