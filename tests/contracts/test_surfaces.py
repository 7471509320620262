"""Surfaces, folds and leave-one-out against models that are fitted from scratch, one by one."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.exceptions import IncompatibleError
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, MaxMargin, Norm, Square
from fenchel.operators import Dense, Sum, kronecker
from fenchel.problem import DualProblem
from fenchel.problem.derived import restricted, rotated
from fenchel.resample import held_out as fold_room
from fenchel.resample import surface as surfaces
from fenchel.resample.held_out import held_out
from fenchel.resample.ridge import approximate_loo
from fenchel.resample.surface import Trail, solve_grid
from fenchel.solvers import APGD, Auto, ClosedForm, DouglasRachford, RowNewton, Status
from fenchel.solvers.splitting import Warm

TOL = 1e-8
EXACT = 1e-9  # of the spread of the targets, for the square loss: two ways to solve one linear system
N = 16
LAMS = [1e-2, 1.0, 1e-4, 0.1]  # in no order
GRID_LOSSES = [Huber(0.6), Square(), EpsilonSVR(0.3), Huber(0.4, p=1), EpsilonRidge(0.4), MaxMargin(), Norm(0.5)]
WEIGHTS = np.linspace(0.3, 2.5, N)[np.random.default_rng(5).permutation(N)]
MATRIX = np.array([[1.0, 0.4, 0.0], [0.4, 0.8, -0.2], [0.0, -0.2, 0.6]])
DIAGONAL = np.array([1.5, 0.5, 0.1])
OPERATORS = ("identity", "diagonal", "matrix", "sum")
UNEQUAL = [np.array([0, 7, 3]), np.array([1]), np.array([15, 2, 9, 4, 5]), np.array([6, 8, 10, 11, 12, 13, 14])]
SINGLES = [np.array([i]) for i in range(N)]


def recorded(monkeypatch, what):
    """Return a list that takes something of what each call of ``solve_all`` finds."""
    seen, solve_all = [], DouglasRachford.solve_all

    def recording(solver, *args):
        found = solve_all(solver, *args)
        seen.append(what(found))
        return found

    monkeypatch.setattr(DouglasRachford, "solve_all", recording)
    return seen


weighted = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
every_operator = pytest.mark.parametrize("operator", OPERATORS)
every_split = pytest.mark.parametrize("folds", [UNEQUAL, SINGLES], ids=["unequal", "leave-one-out"])


def sample(p=3, n=N):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (n, 2))
    signal = np.column_stack([np.sin((k + 1) * X[:, 0] / 2 + X[:, 1]) for k in range(p)])
    return X, signal + 0.3 * rng.standard_normal((n, p))


def scalar_kernels(X, Z):
    return np.exp(-0.5 * np.sum((X[:, None] - Z[None]) ** 2, axis=2)), X @ Z.T + 0.1


def gram_of(operator, X):
    K, L = scalar_kernels(X, X)
    if operator == "sum":
        return Sum([kronecker(Dense(K), MATRIX), kronecker(Dense(L), DIAGONAL)])
    return kronecker(Dense(K), {"identity": None, "diagonal": DIAGONAL, "matrix": MATRIX}[operator])


def evaluated(operator, X, Z, duals):
    """sum_j K(x, z_j) duals_j by its definition."""
    K, L = scalar_kernels(X, Z)
    if operator == "sum":
        return K @ duals @ MATRIX + L @ duals @ np.diag(DIAGONAL)
    M = {"identity": np.eye(duals.shape[1]), "diagonal": np.diag(DIAGONAL), "matrix": MATRIX}[operator]
    return K @ duals @ M


def build(operator="identity", loss=None, lam=1.0, weights=None, p=3):
    X, Y = sample(p)
    return DualProblem.build(gram_of(operator, X), Y, Square() if loss is None else loss, lam, weights)


def refitted(operator, loss, lam, folds, weights=None, p=3, tol=1e-11, data=None):
    """Out-of-sample predictions of models fitted from scratch on what each fold leaves."""
    X, Y = sample(p) if data is None else data
    out = np.full(Y.shape, np.nan)
    for fold in folds:
        kept = np.setdiff1d(np.arange(len(Y)), fold)
        s = np.ones(len(kept)) if weights is None else weights[kept]
        given = None if weights is None else s
        problem = DualProblem.build(gram_of(operator, X[kept]), Y[kept], loss, lam, given)
        solution = Auto().solve(problem, tol=tol)
        assert solution.status is Status.CONVERGED
        duals = s[:, None] * problem.unscale(solution.duals)
        out[fold] = evaluated(operator, X[fold], X[kept], duals) / (lam * s.sum())
    return out


class TestGrid:
    @pytest.mark.parametrize("p", [1, 3, 6])  # at most four columns are solved side by side, more along a path
    @weighted
    def test_every_pair_once(self, p, weights):
        problem = build(p=p, weights=weights)
        found = {}
        for i, j, solution in solve_grid(problem, GRID_LOSSES, LAMS, TOL):
            assert (i, j) not in found
            found[i, j] = solution
        assert set(found) == {(i, j) for i in range(len(GRID_LOSSES)) for j in range(len(LAMS))}
        for (i, j), solution in found.items():
            assert solution.certificate.relative_gap <= TOL, (GRID_LOSSES[i], LAMS[j])
            assert solution.status is Status.CONVERGED
            fresh = build("identity", GRID_LOSSES[i], LAMS[j], weights, p)
            # the certificate of these duals, in a problem that knows nothing of the sweep
            again = fresh.certificate(solution.duals, fresh.predictions(solution.duals))
            assert_allclose(again.primal, solution.certificate.primal, rtol=1e-9)
            assert again.relative_gap <= 2 * TOL
            own = Auto().solve(fresh, tol=TOL)
            assert_allclose(solution.certificate.primal, own.certificate.primal, rtol=2 * TOL)

    @every_operator
    def test_operators(self, operator):
        losses = [Huber(0.5), EpsilonRidge(0.3)]
        for i, j, solution in solve_grid(build(operator), losses, LAMS, TOL):
            own = DouglasRachford().solve(build(operator, losses[i], LAMS[j]), TOL)
            assert solution.certificate.relative_gap <= TOL
            assert_allclose(solution.certificate.primal, own.certificate.primal, rtol=2 * TOL)

    @every_operator
    @weighted
    @pytest.mark.parametrize("loss", [Square(), EpsilonRidge(0.0)], ids=repr)
    def test_square_loss(self, operator, weights, loss):
        """The eigenbasis gives what the factorisation gives."""
        seen = []
        for _, j, solution in solve_grid(build(operator, weights=weights), [loss], LAMS):
            own = ClosedForm().solve(build(operator, Square(), LAMS[j], weights), tol=0.0)
            scale = np.max(np.abs(own.duals))
            assert_allclose(solution.duals, own.duals, rtol=0, atol=EXACT * scale)
            assert solution.certificate.relative_gap <= 1e-12
            assert solution.n_iter == 1
            seen.append(LAMS[j])
        assert seen == sorted(LAMS, reverse=True)

    def test_batches_are_cut(self, monkeypatch):
        """With room for two problems at a time the answers are the same."""
        wanted = [(i, j, s.certificate.primal) for i, j, s in solve_grid(build(), GRID_LOSSES[:3], LAMS, TOL)]
        monkeypatch.setattr(surfaces, "_BATCH_NUMBERS", 2 * N * 3)
        found = [(i, j, s.certificate.primal) for i, j, s in solve_grid(build(), GRID_LOSSES[:3], LAMS, TOL)]
        assert [key[:2] for key in found] == [key[:2] for key in wanted]
        assert_allclose([key[2] for key in found], [key[2] for key in wanted], rtol=2 * TOL)

    @pytest.mark.parametrize(("columns", "wanted"), [(128, [12]), (18, [6, 6]), (15, [5, 5, 2]), (2, [1] * 12)])
    def test_losses_are_solved_together(self, monkeypatch, columns, wanted):
        """Three losses and four lam of three outputs, in as many batches as the columns fill."""
        sizes = recorded(monkeypatch, len)
        monkeypatch.setattr(surfaces, "_COLUMNS", columns)
        losses = [Huber(0.6), EpsilonSVR(0.3), Huber(0.4)]
        found = list(solve_grid(build(), losses, LAMS, TOL))
        assert sizes == wanted
        order = np.argsort(LAMS)[::-1]
        assert [key[:2] for key in found] == [(i, j) for i in range(3) for j in order]
        for i, j, solution in found:
            own = Auto().solve(build("identity", losses[i], LAMS[j]), tol=TOL)
            assert_allclose(solution.certificate.primal, own.certificate.primal, rtol=2 * TOL)

    def test_an_inverse_takes_one_problem_at_a_time(self, monkeypatch):
        sizes = recorded(monkeypatch, len)
        solver = DouglasRachford(factorization="inverse")
        found = list(solve_grid(build(), [Huber(0.6), EpsilonSVR(0.3)], LAMS, TOL, solver))
        assert sizes == [1] * 8
        assert max(solution.certificate.relative_gap for _, _, solution in found) <= TOL

    @pytest.mark.parametrize("loss", [Huber(0.6), Square()], ids=repr)
    def test_no_lam(self, loss):
        assert list(solve_grid(build(), [loss], [])) == []

    @pytest.mark.parametrize("solver", [APGD(), RowNewton(), Auto(), DouglasRachford(check_every=3)], ids=repr)
    def test_named_solver(self, solver):
        losses, lams = [Huber(0.5), EpsilonRidge(0.3)], [0.1, 1.0]
        for i, j, solution in solve_grid(build(), losses, lams, 1e-6, solver):
            if not isinstance(solver, Auto):
                assert solution.solver == type(solver).__name__
            if isinstance(solver, DouglasRachford):
                assert solution.n_iter % 3 == 0
            own = DouglasRachford().solve(build("identity", losses[i], lams[j]), TOL)
            assert_allclose(solution.certificate.primal, own.certificate.primal, rtol=2e-6)

    def test_point_scale_of_the_problem(self):
        """A loss of point values stays one: the sweep binds it as the problem's own loss is bound."""
        X, Y = sample()
        scale = np.array([2.0, 0.5, 1.0])
        problem = DualProblem.build(gram_of("matrix", X), Y, Huber(0.4, p=1), 0.1, None, scale)
        wanted = DouglasRachford().solve(problem, TOL).certificate.primal
        ((_, _, solution),) = solve_grid(problem, [Huber(0.4, p=1)], [0.1], TOL)
        assert_allclose(solution.certificate.primal, wanted, rtol=2 * TOL)


@pytest.fixture(params=["a surface for each", "side by side"])
def kind_of_folds(request, monkeypatch):
    if request.param == "side by side":
        monkeypatch.setattr(fold_room, "_FEW_FOLDS", 0)
    kind = fold_room._folds_solver(build(), UNEQUAL)
    assert isinstance(kind, fold_room._Masked if request.param == "side by side" else fold_room._Cut)


@pytest.mark.usefixtures("kind_of_folds")
class TestHeldOut:
    @every_operator
    @every_split
    @weighted
    def test_square_loss(self, operator, folds, weights):
        problem = build(operator, weights=weights)
        spread = np.ptp(problem.targets)
        results = list(held_out(problem, [Square()], LAMS, folds))
        assert sorted(result.lam for result in results) == [0, 1, 2, 3]
        for result in results:
            wanted = refitted(operator, Square(), LAMS[result.lam], folds, weights)
            assert_allclose(np.asarray(result.predictions), wanted, rtol=0, atol=EXACT * spread)
            assert result.gap == 0.0

    @pytest.mark.parametrize("loss", [Huber(0.4), EpsilonSVR(0.3), Huber(0.3, p=1)], ids=repr)
    @every_split
    def test_other_losses(self, loss, folds):
        self.compare("matrix", loss, folds, None)

    @pytest.mark.parametrize("operator", OPERATORS)
    def test_operators(self, operator):
        self.compare(operator, Huber(0.4), UNEQUAL, WEIGHTS)

    @pytest.mark.parametrize("loss", [EpsilonRidge(0.3), MaxMargin(), Norm(0.4)], ids=repr)
    def test_weights(self, loss):
        self.compare("identity", loss, UNEQUAL, WEIGHTS)

    def compare(self, operator, loss, folds, weights, lams=(1e-2, 1.0)):
        """At a gap g both functions are within sqrt(2 g P / lam) of the optimum in the norm of the space."""
        tol = 1e-10
        problem = build(operator, weights=weights)
        seen = set()
        for result in held_out(problem, [loss], list(lams), folds, tol):
            lam = lams[result.lam]
            wanted = refitted(operator, loss, lam, folds, weights, tol=tol)
            top = np.max(gram_of(operator, sample()[0]).diag())
            bound = 2 * math.sqrt(2 * tol * problem.with_(loss=loss.bind(sample()[1])).value_at_zero / lam * top)
            assert bound <= 2e-3 * np.ptp(problem.targets)
            assert_allclose(np.asarray(result.predictions), wanted, rtol=0, atol=bound)
            assert 0 <= result.gap <= tol
            seen.add((result.loss, result.lam))
        assert seen == {(0, j) for j in range(len(lams))}

    def test_every_pair_once(self):
        losses = [Huber(0.4), Square(), EpsilonSVR(0.3)]
        found = [(result.loss, result.lam) for result in held_out(build(), losses, LAMS, UNEQUAL)]
        assert sorted(found) == [(i, j) for i in range(3) for j in range(4)]
        for i in range(3):  # from large to small
            order = [LAMS[j] for loss, j in found if loss == i]
            assert order == sorted(LAMS, reverse=True)

    @pytest.mark.parametrize("loss", [Square(), Huber(0.4)], ids=repr)
    @pytest.mark.parametrize("folds", [UNEQUAL[:1] + UNEQUAL[2:3], SINGLES[3:5]], ids=["many", "single"])
    def test_samples_in_no_fold(self, loss, folds):
        (result,) = held_out(build("matrix", weights=WEIGHTS), [loss], [0.1], folds)
        predictions = np.asarray(result.predictions)
        outside = np.setdiff1d(np.arange(N), np.concatenate(folds))
        assert np.all(np.isnan(predictions[outside]))
        assert not np.any(np.isnan(predictions[np.concatenate(folds)]))

    @pytest.mark.parametrize("loss", [Square(), Huber(0.4)], ids=repr)
    def test_order_does_not_matter(self, loss):
        """A fold is a set: its order, and that of the folds, change nothing."""
        (one,) = held_out(build(), [loss], [0.1], UNEQUAL, TOL)
        (two,) = held_out(build(), [loss], [0.1], [fold[::-1] for fold in UNEQUAL[::-1]], TOL)
        assert_allclose(np.asarray(two.predictions), np.asarray(one.predictions), rtol=0, atol=1e-3)

    @every_split
    def test_a_huge_zone(self, folds):
        (result,) = held_out(build(), [EpsilonRidge(100.0)], [0.1], folds)
        assert_array_equal(np.asarray(result.predictions), np.zeros((N, 3)))

    @weighted
    def test_order_and_places(self, weights):
        """Every pair once, whatever the losses beside it: those of few outputs are solved together."""
        losses = [Huber(0.6), Square(), EpsilonSVR(0.3)]
        found = list(held_out(build(weights=weights), losses, LAMS, UNEQUAL, TOL))
        assert sorted((one.loss, one.lam) for one in found) == [(i, j) for i in range(3) for j in range(4)]
        for one in found:
            (alone,) = held_out(build(weights=weights), [losses[one.loss]], [LAMS[one.lam]], UNEQUAL, TOL)
            assert_allclose(one.predictions, alone.predictions, rtol=0, atol=1e-3)

    def test_batches_are_cut(self, monkeypatch):
        (wanted,) = held_out(build(), [Huber(0.4)], [0.1], SINGLES, TOL)
        monkeypatch.setattr(surfaces, "_BATCH_NUMBERS", 3 * N * 3)
        sizes = recorded(monkeypatch, len)
        (found,) = held_out(build(), [Huber(0.4)], [0.1], SINGLES, TOL)
        assert max(sizes) <= 3
        assert sum(sizes) == N
        assert_allclose(found.predictions, wanted.predictions, rtol=0, atol=1e-3)
        assert found.gap <= TOL

    def test_gap_is_the_largest(self, monkeypatch):
        gaps = recorded(monkeypatch, lambda found: max(one.certificate.distance for one in found))
        (found,) = held_out(build(), [Huber(0.4)], [1e-3], UNEQUAL, 1e-2)
        assert 0 < found.gap == max(gaps)

    def test_no_lam(self):
        assert list(held_out(build(), [Huber(0.4), Square()], [], UNEQUAL)) == []


class TestStarts:
    """Each solve of a surface starts where those at the last two lam point to."""

    def test_another_rho_keeps_the_prox_point(self):
        problem = build("identity", Huber(0.4), 1e-2)
        state = DouglasRachford(max_iter=7).solve(problem, tol=1e-15).state
        assert_allclose(problem.prox_remainder(state.z, 1 / state.rho), state.prox, rtol=0, atol=1e-12)
        for rho in (0.1 * state.rho, 7 * state.rho):
            assert_allclose(problem.prox_remainder(state.at(rho), 1 / rho), state.prox, rtol=0, atol=1e-12)

    def test_surfaces_take_fewer_iterations(self):
        """Than starting where the last lam stood."""
        problem, losses = build(lam=1.0, p=6), [Huber(kappa) for kappa in (0.3, 0.33, 0.36)]
        lams = np.logspace(0, -4, 33)
        found = sum(solution.n_iter for _, _, solution in solve_grid(problem, losses, lams, 1e-8))
        alone = 0
        for loss in losses:
            state = None
            for lam in lams:
                solution = DouglasRachford().solve(problem.with_(loss=loss, lam=float(lam)), 1e-8, state)
                state, alone = solution.state, alone + solution.n_iter
        assert found < 0.95 * alone

    def test_the_last_change_goes_on(self):
        """Over the logarithm of lam, and never farther than it was."""
        rng = np.random.default_rng(0)
        z, change = rng.standard_normal((2, 4, 3))
        trail = Trail()
        assert trail.start(1.0) is None
        trail.add(1.0, first := Warm(z, 2.0, z / 3))
        assert trail.start(0.1) is first
        trail.add(0.1, Warm(z + change, 2.0, z))
        for lam, share in ((0.01, 1.0), (10**-1.5, 0.5), (1e-4, 1.0), (0.1, 0.0)):
            assert_allclose(trail.start(lam).z, z + (1 + share) * change, rtol=1e-12)
            assert trail.start(lam).rho == 2.0
        trail.add(0.1, same := Warm(z, 2.0, z))
        assert trail.start(0.05) is same  # the same lam twice has no direction

    def test_starts_of_another_rho(self):
        """The change is that of the prox point and of the subgradient at it."""
        rng = np.random.default_rng(0)
        prox, pull, moved, pulled = rng.standard_normal((4, 5, 2))
        before, last = Warm(prox + pull / 3.0, 3.0, prox), Warm(moved + pulled / 0.5, 0.5, moved)
        found = last.beyond(before, 1.0)
        assert_allclose(found.z, 2 * moved - prox + (2 * pulled - pull) / 0.5, rtol=1e-12)

    def test_only_a_guess_is_not_looked_at_first(self):
        """Where an earlier solve stood may be within tol at once."""
        problem = build("identity", Huber(0.4), 1e-2)
        state = DouglasRachford().solve(problem, TOL).state
        again = DouglasRachford().solve(problem, TOL, state)
        assert (again.n_iter, again.history[0][0]) == (0, 0)
        guessed = DouglasRachford().solve(problem, TOL, state.beyond(state, 1.0))
        assert (guessed.n_iter, guessed.history[0][0]) == (5, 5)
        assert guessed.certificate.relative_gap <= TOL

    @pytest.mark.usefixtures("kind_of_folds")
    def test_held_out_surfaces_take_fewer_iterations(self, monkeypatch):
        """Leave-one-out, along lam: less than from where the last lam stood, and less than from afar."""
        counts = recorded(monkeypatch, lambda found: sum(solution.n_iter for solution in found))
        lams, totals = np.logspace(0, -2, 17), []
        for start in (Warm.beyond, lambda last, before, share: last, lambda last, before, share: None):
            counts.clear()
            monkeypatch.setattr(Warm, "beyond", start)
            assert max(found.gap for found in held_out(build(p=6), [Huber(0.3)], lams, SINGLES, TOL)) <= TOL
            totals.append(sum(counts))
        assert totals[0] < 0.95 * min(totals[1:])

    def test_folds_share_turned_coordinates(self, monkeypatch):
        """An operator of rank two leaves three columns of six, in a batch of folds too."""
        X, Y = sample(6)
        root = np.random.default_rng(0).standard_normal((6, 2))
        gram = kronecker(Dense(scalar_kernels(X, X)[0]), root @ root.T)
        problem = DualProblem.build(gram, Y, Huber(0.4), 1.0)
        monkeypatch.setattr(fold_room, "_FEW_FOLDS", 0)
        widths, begin = [], DouglasRachford.init

        def seen(solver, problems, starts):
            widths.append(problems[0].targets.shape[1])
            return begin(solver, problems, starts)

        monkeypatch.setattr(DouglasRachford, "init", seen)
        (found,) = held_out(problem, [Huber(0.4)], [0.1], UNEQUAL, TOL)
        assert widths == [3]
        parts = [restricted(problem, np.setdiff1d(np.arange(N), fold)) for fold in UNEQUAL]
        wanted = [Auto().solve(part.with_(lam=0.1), TOL) for part in parts]
        for fold, solution in zip(UNEQUAL, wanted, strict=True):
            train = np.setdiff1d(np.arange(N), fold)
            cross = problem.gram.block(fold, train).matmul(solution.duals) / (0.1 * len(train))
            assert_allclose(found.predictions[fold], cross, rtol=0, atol=1e-3)

    def test_losses_of_other_coordinates(self):
        """A loss of the row norm is solved in turned coordinates, fewer than those of a pointwise one beside it."""
        losses, lams = [Huber(0.4), Huber(0.4, p=1), Huber(0.3, p=1), Huber(0.3)], [1.0, 0.1, 0.01]
        X, Y = sample(6)
        root = np.random.default_rng(0).standard_normal((6, 2))
        gram = kronecker(Dense(scalar_kernels(X, X)[0]), root @ root.T)
        problem = DualProblem.build(gram, Y, losses[0], 1.0)
        assert rotated(problem).targets.shape[1] == 3
        solutions = [solution for _, _, solution in solve_grid(problem, losses, lams, TOL)]
        assert len(solutions) == 12
        assert all(solution.certificate.relative_gap <= TOL for solution in solutions)


class TestApproximateLeaveOneOut:
    """Robust leave-one-out from one system."""

    @pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
    @weighted
    def test_exact_for_the_square_loss_at_lam_n_fixed(self, lam, weights):
        """It keeps the factor 1 / (lam S): models without sample i at lam S / (S - s_i) are its answer exactly."""
        problem = build(lam=lam, weights=weights)
        found = approximate_loo(problem, ClosedForm().solve(problem))
        s = np.ones(N) if weights is None else weights
        for i in range(N):
            same = lam * s.sum() / (s.sum() - s[i])
            wanted = refitted("identity", Square(), same, [SINGLES[i]], weights)[i]
            assert_allclose(found[i], wanted, rtol=0, atol=EXACT * np.ptp(problem.targets))

    @pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
    def test_change_of_n(self, lam):
        """At the same lam it is off by what n / (n - 1) in lam changes: seen .3, .5, 2.2 % of the spread, n = 16."""
        problem = build(lam=lam)
        found = approximate_loo(problem, ClosedForm().solve(problem))
        wanted = refitted("identity", Square(), lam, SINGLES)
        error = np.max(np.abs(found - wanted)) / np.ptp(problem.targets)
        assert 1e-6 < error <= 0.5 / (N - 1)

    @pytest.mark.parametrize("loss", [EpsilonRidge(0.6), EpsilonSVR(0.6)], ids=repr)
    def test_null_samples_change_nothing(self, loss):
        """A sample with a null dual is not used: without it, at lam n fixed, the model is the same."""
        problem = build("identity", loss, 0.01)
        solution = DouglasRachford().solve(problem, tol=1e-10)
        null = np.flatnonzero(np.all(solution.duals == 0, axis=1))
        assert 2 <= len(null) <= N - 2
        found = approximate_loo(problem, solution)
        assert_allclose(found[null], solution.predictions[null], rtol=0, atol=1e-14)
        wanted = refitted("identity", loss, 0.01 * N / (N - 1), [SINGLES[i] for i in null])
        assert_allclose(found[null], wanted[null], rtol=0, atol=1e-4)

    def outliers(self, n=40):
        X, Y = sample(2, n)
        rng = np.random.default_rng(4)
        rows = rng.choice(n, 6, replace=False)
        dirty = Y.copy()
        dirty[rows] += 8 * rng.standard_normal((6, 2))
        return X, dirty, np.ptp(Y)

    @pytest.mark.parametrize(("lam", "bound"), [(1e-1, 0.01), (1e-2, 0.03), (1e-3, 0.16)])
    def test_error_with_outliers(self, lam, bound):
        """Huber, 15 % of outliers: the worst error over the samples, as a share of the spread of the clean outputs.

        Seen: .5, 2.1 and 13 %, at samples that cross the kink when they are left out; the median is below .3 %.
        """
        X, Y, spread = self.outliers()
        singles = [np.array([i]) for i in range(len(Y))]
        problem = DualProblem.build(gram_of("identity", X), Y, Huber(0.3), lam)
        solution = DouglasRachford().solve(problem, tol=1e-10)
        saturated = np.linalg.norm(solution.duals, axis=1) >= 0.3 * (1 - 1e-9)
        assert 6 <= saturated.sum() < len(Y)
        found = approximate_loo(problem, solution)
        wanted = refitted("identity", Huber(0.3), lam, singles, data=(X, Y), tol=1e-9)
        error = np.max(np.abs(found - wanted)) / spread
        assert error <= bound
        # it is worth more than the fit itself, which is the other guess at hand
        median = np.median(np.abs(found - wanted))
        assert median <= 3e-3 * spread
        assert median <= 0.2 * np.median(np.abs(solution.predictions - wanted))

    def test_all_null(self):
        problem = build("identity", EpsilonRidge(50.0), 0.1)
        found = approximate_loo(problem, DouglasRachford().solve(problem))
        assert_array_equal(found, np.zeros((N, 3)))

    @pytest.mark.parametrize(("operator", "loss"), [("matrix", Huber(0.4)), ("identity", Huber(0.4, p=1))])
    def test_refuses(self, operator, loss):
        problem = build(operator, loss, 0.1)
        solution = DouglasRachford().solve(problem)
        message = r"^Approximate leave-one-out needs a loss of the Euclidean norm and the identity operator\. Got Huber"
        with pytest.raises(IncompatibleError, match=message):
            approximate_loo(problem, solution)

    def test_does_not_change_the_solution(self):
        problem = build("identity", Huber(0.4), 0.1)
        solution = DouglasRachford().solve(problem)
        before = solution.predictions.copy(), solution.duals.copy()
        approximate_loo(problem, solution)
        assert_array_equal(solution.predictions, before[0])
        assert_array_equal(solution.duals, before[1])


class TestArrays:
    def test_other_libraries(self, xp):
        X, Y = sample()

        def made(native):
            gram = Dense(native(scalar_kernels(X, X)[0]))
            return DualProblem.build(gram, native(Y), Square(), 1.0, native(WEIGHTS))

        one, two = made(lambda array: xp.asarray(np.array(array))), made(np.asarray)
        losses, lams = [Square(), Huber(0.4)], [0.1, 1.0]
        pairs = zip(solve_grid(one, losses, lams, TOL), solve_grid(two, losses, lams, TOL), strict=True)
        for (i, j, found), (k, m, wanted) in pairs:
            assert (i, j) == (k, m)
            assert isinstance(found.duals, type(one.targets))
            assert_allclose(found.certificate.primal, wanted.certificate.primal, rtol=2 * TOL)
        for folds in (UNEQUAL, SINGLES):
            pairs = zip(held_out(one, losses, lams, folds, TOL), held_out(two, losses, lams, folds, TOL), strict=True)
            for found, wanted in pairs:
                assert_allclose(np.asarray(found.predictions), wanted.predictions, rtol=0, atol=1e-3)
        robust = [problem.with_(loss=Huber(0.4), lam=0.1) for problem in (one, two)]
        found, wanted = (approximate_loo(problem, DouglasRachford().solve(problem, TOL)) for problem in robust)
        assert isinstance(found, type(one.targets))
        assert_allclose(np.asarray(found), wanted, rtol=0, atol=1e-3)


class TestLargeFolds:
    """Folds that are solved on the Gram matrix of their training part."""

    @weighted
    @every_operator
    @pytest.mark.parametrize(
        "loss", [Huber(0.6), EpsilonRidge(0.4), Huber(0.4, p=1), EpsilonSVR(0.3), MaxMargin()], ids=repr
    )
    def test_refits(self, operator, loss, weights, monkeypatch):
        monkeypatch.setattr("fenchel.resample.surface._SIDE_BY_SIDE", 0)
        problem = build(operator, weights=weights)
        kind = type(fold_room._folds_solver(problem, UNEQUAL)).__name__
        assert kind == ("_Masked" if operator == "sum" else "_Cut")
        for result in held_out(problem, [loss], [0.1, 1e-2], UNEQUAL, 1e-10):
            wanted = refitted(operator, loss, [0.1, 1e-2][result.lam], UNEQUAL, weights)
            np.testing.assert_allclose(result.predictions, wanted, rtol=0, atol=2e-4)
            assert result.gap <= 1e-10

    def test_absent_coordinates(self, monkeypatch):
        """The same predictions as with the test parts held out on the whole sample."""
        X, Y = sample(3)
        seen = (np.random.default_rng(2).random(Y.shape) > 0.4).astype(float)
        seen[:, 0] = 1
        scale = seen * np.array([1.0, 0.5, 0.7])
        problem = DualProblem.build(gram_of("matrix", X), Y * scale, Square(), 1.0, WEIGHTS, scale, seen)
        for loss in (Huber(0.3), Huber(0.3, p=1), Square()):
            (found,) = held_out(problem, [loss], [0.05], UNEQUAL, 1e-11)
            with monkeypatch.context() as patch:
                patch.setattr(fold_room, "_FEW_FOLDS", 0)
                assert isinstance(fold_room._folds_solver(problem, UNEQUAL), fold_room._Masked)
                (wanted,) = held_out(problem, [loss], [0.05], UNEQUAL, 1e-11)
            np.testing.assert_allclose(found.predictions, wanted.predictions, rtol=0, atol=1e-4)

    def test_a_loss_does_not_depend_on_those_before(self, monkeypatch):
        monkeypatch.setattr("fenchel.resample.surface._SIDE_BY_SIDE", 0)
        alone = list(held_out(build("matrix"), [Huber(0.4)], LAMS, UNEQUAL))
        after = [one for one in held_out(build("matrix"), [Norm(0.5), Huber(0.4)], LAMS, UNEQUAL) if one.loss == 1]
        for one, two in zip(alone, after, strict=True):
            np.testing.assert_array_equal(one.predictions, two.predictions)

    @weighted
    @pytest.mark.parametrize("loss", [MaxMargin(), Huber(0.4)], ids=repr)
    def test_the_problem_of_some_samples(self, loss, weights):
        """The same certificate as the problem that is built from those samples alone."""
        X, Y = sample()
        kept = np.array([1, 2, 5, 9, 14])
        s = None if weights is None else weights[kept]
        part = restricted(DualProblem.build(gram_of("matrix", X), Y, loss, 0.1, weights), kept)
        fresh = DualProblem.build(gram_of("matrix", X[kept]), Y[kept], loss, 0.1, s)
        duals = 0.3 * fresh.targets
        found, wanted = (one.certificate(duals, one.predictions(duals)) for one in (part, fresh))
        assert found.primal == pytest.approx(wanted.primal, rel=1e-12)
        assert found.dual == pytest.approx(wanted.dual, rel=1e-12)
