"""Newton in the rows: its optimum against the splitting's, its direction against the dense linear system."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.losses import Ball, EpsilonRidge, EpsilonSVR, Huber, InfimalConvolution, Norm, Power, Square
from fenchel.operators import Dense, kronecker
from fenchel.problem import DualProblem
from fenchel.problem.derived import holding_out
from fenchel.solvers import DouglasRachford, RowNewton, Status
from fenchel.solvers.smoothed import sparse_predictions

TOL = 1e-9
N = 20
LAMS = [1.0, 1e-2, 1e-4, 1e-6]
CURVED = [
    Square(),
    Huber(0.5),
    Huber(0.02),
    EpsilonRidge(0.4),
    EpsilonRidge(0.05),
    InfimalConvolution(Power(1.5), Square()),
    InfimalConvolution(InfimalConvolution(Square(), Ball(0.1)), Norm(0.7)),
]
NESTED = InfimalConvolution(InfimalConvolution(Square(), Ball(1.0)), Norm(0.7))  # null, curved and saturated rows
FLAT = [Norm(0.5), EpsilonSVR(0.2), EpsilonSVR(0.0), Power(1.5), Power(3.0, 0.5)]
ROOT_EPS = math.sqrt(np.finfo(np.float64).eps)  # damping d changes the system by d, and costs eps / d in round-off
BACKWARD_ERROR = 32 * ROOT_EPS  # of a direction, as a share of the system's size: whatever its condition is
WEIGHTS = np.linspace(0.3, 2.5, N)[np.random.default_rng(5).permutation(N)]

every_curved = pytest.mark.parametrize("loss", CURVED, ids=repr)
every_quick = pytest.mark.parametrize("loss", CURVED[:-1], ids=repr)
every_lam = pytest.mark.parametrize("lam", LAMS)
weighted = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])


def sample(p, kind="plain", n=N):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, 2)), rng.standard_normal((n, p))
    if kind == "rank":  # five different inputs only
        X = X[rng.integers(0, 5, n)]
    elif kind == "twice":  # each sample twice
        X[n // 2 :], Y[n // 2 :] = X[: n // 2], Y[: n // 2]
    elif kind == "zero":  # some outputs are zero
        Y[::4] = 0
    return X, Y


def kernel_matrix(X, kind="plain"):
    return np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2)) if kind != "linear" else X @ X.T


def build(loss, lam, p=3, weights=None, kind="plain", n=N, native=np.asarray):
    X, Y = sample(p, kind, n)
    s = None if weights is None else native(weights)
    return DualProblem.build(Dense(native(kernel_matrix(X, kind))), native(Y), loss, lam, s)


def arrives(problem, tol=TOL, steps=100):
    """Solve by both; the gap of the rows' answer is recomputed by the problem from its duals alone."""
    solution = RowNewton().solve(problem, tol=tol)
    assert solution.status is Status.CONVERGED, solution.certificate
    assert solution.n_iter <= steps
    again = problem.certificate(solution.duals, problem.predictions(solution.duals))
    assert again.relative_gap <= 2 * tol
    other = DouglasRachford().solve(problem, tol=tol)
    assert other.status is Status.CONVERGED
    size = max(abs(other.certificate.primal), 1e-10 * problem.value_at_zero)
    assert abs(solution.certificate.primal - other.certificate.primal) <= 2 * tol * size
    # predictions are rounded at eps / lam: there the certificates of two points may cross
    assert solution.certificate.dual <= other.certificate.primal + 0.1 * tol * size
    return solution


class TestOptimum:
    @every_curved
    @every_lam
    @pytest.mark.parametrize("p", [1, 4])
    def test_same_as_the_splitting(self, loss, lam, p):
        arrives(build(loss, lam, p))

    @every_quick
    @every_lam
    def test_weights(self, loss, lam):
        arrives(build(loss, lam, 2, WEIGHTS))

    @every_quick
    @pytest.mark.parametrize("lam", [1e-2, 1e-6])
    @pytest.mark.parametrize("kind", ["rank", "twice", "zero", "linear"])
    def test_singular_problems(self, loss, lam, kind):
        problem = build(loss, lam, 2, None, kind)
        if kind in ("rank", "twice", "linear"):
            assert np.linalg.matrix_rank(problem.gram.matrix) <= N // 2
        arrives(problem)

    @pytest.mark.parametrize("loss", FLAT, ids=repr)
    @pytest.mark.parametrize("lam", [1.0, 1e-1, 1e-2])
    @pytest.mark.parametrize("p", [1, 3])
    def test_losses_without_curvature(self, loss, lam, p):
        arrives(build(loss, lam, p), tol=1e-6, steps=200)

    @pytest.mark.parametrize("loss", FLAT, ids=repr)
    def test_losses_without_curvature_and_weights(self, loss):
        arrives(build(loss, 0.1, 2, WEIGHTS), tol=1e-6, steps=200)

    def test_the_square_loss_is_one_system(self):
        problem = build(Square(), 1e-4)
        solution = RowNewton().solve(problem, tol=TOL)
        assert solution.n_iter <= 2
        wanted = np.linalg.solve(np.eye(N) + problem.gram.matrix / (1e-4 * N), problem.targets)
        assert_allclose(solution.duals, wanted, rtol=0, atol=1e-8 * np.max(np.abs(wanted)))

    @every_quick
    def test_steps_hardly_depend_on_lam(self, loss):
        """A dozen or two, where the papers' solvers need 1 / lam."""
        counts = [RowNewton().solve(build(loss, lam), tol=TOL).n_iter for lam in LAMS]
        assert max(counts) <= 40, counts


class TestBranches:
    @every_lam
    def test_all_rows_null(self, lam):
        solution = RowNewton().solve(build(EpsilonRidge(50.0), lam), tol=TOL)
        assert solution.status is Status.CONVERGED
        assert_array_equal(solution.duals, np.zeros((N, 3)))
        assert solution.certificate.gap == 0

    @every_lam
    @pytest.mark.parametrize("p", [1, 3])
    def test_all_rows_saturated(self, lam, p):
        """A bound so small that the optimum is on it in every row: there the duals are known."""
        kappa = 1e-3 * lam
        problem = build(Huber(kappa), lam, p)
        solution = arrives(problem)
        norms = np.linalg.norm(solution.duals, axis=1)
        assert_allclose(norms, kappa, rtol=1e-9)
        residuals = problem.targets - problem.predictions(solution.duals)
        wanted = kappa * residuals / np.linalg.norm(residuals, axis=1, keepdims=True)
        assert_allclose(solution.duals, wanted, rtol=0, atol=1e-4 * kappa)

    @pytest.mark.parametrize("loss", [EpsilonRidge(0.8), EpsilonSVR(0.8)], ids=repr)
    def test_null_rows_are_exactly_zero(self, loss):
        problem = build(loss, 1e-2, 2)
        solution = RowNewton().solve(problem, tol=1e-7)
        assert solution.status is Status.CONVERGED
        null = np.all(solution.duals == 0, axis=1)
        assert 3 <= np.sum(null) < N
        residuals = np.linalg.norm(problem.targets - solution.predictions, axis=1)
        assert np.all(residuals[null] <= 0.8 + 1e-3)
        assert np.all(residuals[~null] >= 0.8 - 1e-3)

    @pytest.mark.parametrize("p", [1, 3])
    @every_lam
    def test_one_sample(self, p, lam):
        """n = 1, K = 1: the dual is kappa y / |y|, or y / (1 + 1 / lam) where that is inside the ball."""
        problem = build(Huber(0.3), lam, p, n=1)
        y = problem.targets[0]
        free = y / (1 + 1 / lam)
        wanted = free * min(1, 0.3 / np.linalg.norm(free))
        solution = RowNewton().solve(problem, tol=TOL)
        assert solution.status is Status.CONVERGED
        assert_allclose(solution.duals[0], wanted, rtol=1e-7)

    @pytest.mark.parametrize("loss", CURVED + FLAT, ids=repr)
    def test_one_sample_every_loss(self, loss):
        arrives(build(loss, 0.1, 3, n=1), tol=1e-6, steps=200)

    @pytest.mark.parametrize("loss", [Square(), Huber(0.3), EpsilonRidge(0.1), Norm(0.5)], ids=repr)
    def test_zero_targets(self, loss):
        X, Y = sample(2)
        problem = DualProblem.build(Dense(kernel_matrix(X)), 0 * Y, loss, 0.1)
        solution = RowNewton().solve(problem, tol=TOL)
        assert solution.status is Status.CONVERGED
        assert_array_equal(solution.duals, np.zeros((N, 2)))

    @every_curved
    def test_held_out_samples(self, loss):
        """Their duals are zero, and the rest is the problem without them."""
        held = np.array([0, 3, 11])
        problem = holding_out(build(loss, 1e-2), held)
        solution = RowNewton().solve(problem, tol=TOL)
        assert solution.status is Status.CONVERGED
        assert_array_equal(solution.duals[held], 0)
        X, Y = sample(3)
        kept = np.delete(np.arange(N), held)
        sub = DualProblem.build(Dense(kernel_matrix(X[kept])), Y[kept], loss, 1e-2)
        own = DouglasRachford().solve(sub, tol=TOL)
        assert_allclose(solution.certificate.primal, own.certificate.primal, rtol=2 * TOL)


class TestDirection:
    """(I + D H) X = B - C, with D found by differences of the gradient map."""

    def jacobian(self, solver, problem, state):
        """D as an (n p × n p) matrix, column by column, from minus the derivative along the predictions."""
        n, p = state.fitted.shape
        step = 1e-6
        columns = []
        for k in range(n * p):
            change = np.zeros(n * p)
            change[k] = step
            change = change.reshape(n, p)
            above, below = (
                solver._at(problem, replace(state, fitted=state.fitted + sign * change)).duals for sign in (1, -1)
            )
            columns.append((below - above).ravel() / (2 * step))
        return np.array(columns).T

    def system(self, solver, problem, state):
        p = state.fitted.shape[1]
        H = np.kron(problem.gram.matrix * problem.scale, np.eye(p))
        return np.eye(len(H)) + self.jacobian(solver, problem, state) @ H

    def states(self, solver, problem):
        """Some states away from the kinks, undamped: far from the solution, and two steps nearer."""
        start = 0.2 * np.random.default_rng(7).standard_normal(problem.targets.shape)
        state = solver.first_state(problem, start)
        yield state
        yield solver.next_state(problem, solver.next_state(problem, state))

    @pytest.mark.parametrize(
        "loss",
        [
            Square(),
            Huber(0.6),
            EpsilonRidge(0.5),
            InfimalConvolution(Power(1.5), Square()),
            NESTED,
            Power(1.5),
            EpsilonSVR(0.3),
            Norm(0.5),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("p", [1, 3])
    @weighted
    def test_solves_the_linear_system(self, loss, p, weights):
        solver = RowNewton()
        problem = build(loss, 0.1, p, weights)
        for state in self.states(solver, problem):
            nearly_undamped = replace(state, damping=ROOT_EPS)
            right = (state.duals - state.coef).ravel()
            system = self.system(solver, problem, nearly_undamped)
            found = solver._direction(problem, nearly_undamped).ravel()
            size = np.linalg.norm(system, 2) * np.linalg.norm(found) + np.linalg.norm(right)
            assert np.linalg.norm(system @ found - right) <= BACKWARD_ERROR * size

    def test_all_branches_are_seen(self):
        """The states above have null, curved and saturated rows."""
        solver, problem = RowNewton(), build(NESTED, 0.1)
        norms = np.concatenate([np.linalg.norm(s.duals, axis=1) for s in self.states(solver, problem)])
        assert np.any(norms == 0)
        assert np.any((norms > 0) & (norms < 0.69))
        assert np.any(norms > 0.7 - 1e-9)

    @pytest.mark.parametrize("loss", [Huber(0.6), EpsilonRidge(0.5), Norm(0.5)], ids=repr)
    @pytest.mark.parametrize("damping", [1e-10, 1e-3, 1.0])
    def test_is_a_descent_direction(self, loss, damping):
        """Damped or not, the smoothed primal objective falls along it."""
        solver = RowNewton()
        problem = build(loss, 0.1)
        for state in self.states(solver, problem):
            change = solver._direction(problem, replace(state, damping=damping))
            moved = solver._moved(problem, state, 1e-4 * change, 1e-4 * problem.predictions(change))
            assert solver._value(problem, moved) < solver._value(problem, state)

    @pytest.mark.parametrize("loss", [Huber(0.6), EpsilonRidge(0.5), Power(1.5), Norm(0.5)], ids=repr)
    @weighted
    def test_value_and_gradient_belong_together(self, loss, weights):
        """The objective that the step is measured by has the derivative <C - B, H dC>."""
        solver = RowNewton()
        problem = build(loss, 0.1, weights=weights)
        rng = np.random.default_rng(1)
        for state in self.states(solver, problem):
            change = rng.standard_normal(state.coef.shape)
            step = 1e-5
            values = []
            for sign in (1, -1):
                length = sign * step
                other = solver._moved(problem, state, length * change, length * problem.predictions(change))
                values.append(solver._value(problem, other))
            slope = np.sum((state.coef - state.duals) * problem.predictions(change))
            size = 1e-5 * abs(solver._value(problem, state))
            assert_allclose((values[0] - values[1]) / (2 * step), slope, rtol=1e-5, atol=size)

    @pytest.mark.parametrize("loss", [EpsilonSVR(0.3), Norm(0.5)], ids=repr)
    @pytest.mark.parametrize("p", [1, 3])
    def test_search_ends_near_the_least_value(self, loss, p):
        """No point of a fine grid along the direction is much below the point that the search returns."""
        solver = RowNewton()
        problem = build(loss, 1e-3, p)
        for state in self.states(solver, problem):
            change = solver._direction(problem, state)
            found, _ = solver._searched(problem, state, change)
            fitted = problem.predictions(change)
            grid = np.linspace(0, 4, 401)
            values = [solver._value(problem, solver._moved(problem, state, t * change, t * fitted)) for t in grid]
            best, reached = min(values), solver._value(problem, found)
            assert reached - best <= 0.1 * (values[0] - best)


@weighted
@pytest.mark.parametrize("rows", [[], [3], [0, 7, 8], range(N)])
def test_predictions_of_few_duals(rows, weights):
    problem = build(Huber(0.5), 1e-3, 2, weights)
    duals = np.zeros((N, 2))
    duals[list(rows)] = np.random.default_rng(3).standard_normal((len(rows), 2))
    wanted = problem.predictions(duals)
    assert_allclose(sparse_predictions(problem, duals), wanted, rtol=0, atol=1e-12 * (1 + np.abs(wanted).max()))


class TestArrays:
    @pytest.mark.parametrize("loss", [Huber(0.5), EpsilonRidge(0.4), Norm(0.5)], ids=repr)
    @weighted
    def test_other_libraries(self, xp, loss, weights):
        problem = build(loss, 1e-2, 2, weights, native=lambda array: xp.asarray(np.array(array)))
        found = RowNewton().solve(problem, tol=1e-6)
        wanted = RowNewton().solve(build(loss, 1e-2, 2, weights), tol=1e-6)
        assert isinstance(found.duals, type(problem.targets))
        assert found.status is Status.CONVERGED
        assert_allclose(found.certificate.primal, wanted.certificate.primal, rtol=2e-6)
        assert_allclose(np.asarray(found.predictions), wanted.predictions, rtol=0, atol=1e-2)

    @pytest.mark.parametrize("loss", [Square(), Huber(0.5), EpsilonRidge(0.4)], ids=repr)
    @pytest.mark.parametrize("lam", [1.0, 1e-2])
    def test_float32(self, loss, lam):
        problem = build(loss, lam, native=lambda array: np.asarray(array, dtype=np.float32))
        solution = RowNewton().solve(problem, tol=1e-4)
        assert solution.status is Status.CONVERGED
        assert solution.duals.dtype == np.float32
        wanted = DouglasRachford().solve(build(loss, lam), tol=TOL).certificate.primal
        assert_allclose(solution.certificate.primal, wanted, rtol=3e-4)


def test_reports_the_best_of_its_steps():
    problem = build(Huber(0.5), 1e-4)
    for limit in (1, 2, 4):
        solution = RowNewton(max_iter=limit).solve(problem, tol=1e-15)
        assert solution.n_iter == limit
        assert solution.status is Status.MAX_ITER
        again = problem.certificate(solution.duals, problem.predictions(solution.duals))
        assert math.isclose(again.primal, solution.certificate.primal, rel_tol=1e-12)
        assert solution.certificate.relative_gap == min(found.relative_gap for _, found in solution.history)


@pytest.mark.parametrize("lam", [1e-2, 1e-6])
@pytest.mark.parametrize("loss", [Huber(0.3), EpsilonRidge(0.5)], ids=repr)
@pytest.mark.parametrize("operator", ["diagonal", "matrix", "singular"])
def test_operators_are_diagonalised(operator, loss, lam):
    """Each distinct eigenvalue has a factor of its own, the null space is one column: same optimum as the splitting."""
    rng = np.random.default_rng(0)
    n, p = 40, 4
    X, root = rng.standard_normal((n, 3)), rng.standard_normal((p, p))
    K = np.exp(-0.3 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    Y = np.sin(X @ rng.standard_normal((3, p))) + 0.3 * rng.standard_t(2, (n, p))
    part = root[:, :2]
    M = {"diagonal": np.array([1.0, 1.0, 0.5, 0.0]), "matrix": root @ root.T, "singular": part @ part.T}[operator]
    problem = DualProblem.build(kronecker(Dense(K), M), Y, loss, lam, rng.uniform(0.5, 2, n))
    newton, splitting = (solver.solve(problem, tol=1e-9) for solver in (RowNewton(), DouglasRachford()))
    assert newton.status is splitting.status is Status.CONVERGED
    assert newton.certificate.primal == pytest.approx(splitting.certificate.primal, rel=2e-9)
    np.testing.assert_allclose(newton.predictions, problem.predictions(newton.duals), rtol=1e-9, atol=1e-12)
