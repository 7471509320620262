"""Every solver × every loss × two representations, on a problem where all of them must arrive.

The certificate is recomputed from the definitions of ``tests/oracles/definitions.py``, which share no code with the
library.
"""

import math
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Separable
from fenchel.losses import Ball, EpsilonRidge, EpsilonSVR, Huber, Norm, Pinball, Square
from fenchel.operators import Dense, Sum, kronecker
from fenchel.problem import DualProblem
from fenchel.problem.derived import bound_loss
from fenchel.representations import Euclidean, GramFactor
from fenchel.solvers import APGD, BCD, PGD, Auto, BoxNewton, ClosedForm, DouglasRachford, RowNewton, Status
from tests.oracles.definitions import conjugate, value
from tests.parts import LOSSES, SOLVERS, space

EPS = np.finfo(np.float64).eps
TOL = 1e-6
NOT_NEGATIVE = 64 * EPS  # a gap may be below zero by this share of the objective
AGREEMENT = 1e-11  # of our objectives with the library's, as a share of their size
N, LAM, GAMMA = 12, 0.1, 0.5
MATRIX = np.array([[1.0, 0.4, 0.0], [0.4, 0.8, -0.2], [0.0, -0.2, 0.6]])


def objectives(case, loss, duals, weights=None):
    """P(h_a) and D(a) of SPEC section 1, from the duals of the samples alone; weights count samples."""
    weights = np.ones(len(duals)) if weights is None else weights
    total = weights.sum()
    weighted = weights[:, None] * duals
    predictions = (case.full @ weighted.ravel()).reshape(duals.shape) / (LAM * total)
    losses = value(loss, case.targets - predictions, case.targets)
    quadratic = np.sum(weighted * predictions) / (2 * total)
    primal = np.sum(weights * losses) / total + quadratic
    terms = np.sum(duals * case.targets, axis=1) - conjugate(loss, duals, case.targets)
    return primal, np.sum(weights * terms) / total - quadratic


class Case:
    """Twelve samples, three output coordinates, and the full Gram matrix computed here."""

    def __init__(self, name):
        self.name = name
        rng = np.random.default_rng(0)
        self.X, self.Y = 1.3 * rng.standard_normal((N, 3)), rng.standard_normal((N, 3))
        K = np.exp(-GAMMA * np.sum((self.X[:, None] - self.X[None]) ** 2, axis=2))
        if name == "euclidean":
            self.representation, self.kernel = space(Euclidean(), self.Y), Separable(Gaussian(GAMMA), MATRIX)
            self.full = np.kron(K, MATRIX)
        else:
            self.representation = space(GramFactor(), self.Y @ self.Y.T)
            self.kernel, self.full = Separable(Gaussian(GAMMA)), np.kron(K, np.eye(3))
        self.targets = self.representation.targets

    def problem(self, loss, dtype=np.float64, weights=None):
        X, representation = self.X.astype(dtype), self.representation
        if dtype != np.float64:
            given = self.targets.astype(dtype) if self.is_plain else self.products(dtype)
            representation = space(type(representation.representation)(), given)
        gram = self.kernel.bind(X, representation).gram(X)
        return DualProblem.build(gram, representation.targets, loss, LAM, weights)

    @property
    def is_plain(self):
        return isinstance(self.representation.representation, Euclidean)

    def products(self, dtype):
        return (self.Y @ self.Y.T).astype(dtype)


@pytest.fixture(params=["euclidean", "gram_factor"])
def case(request):
    return Case(request.param)


@cache
def least(name, loss):
    """The certificate of the optimum, which every solver must reach."""
    return Auto().solve(Case(name).problem(loss), tol=1e-9).certificate


FEW = [Square(), Huber(0.3), EpsilonRidge(0.4), EpsilonSVR(0.2), Norm(0.5)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
STORED = [solver for solver in SOLVERS if not solver.streams]  # the others are in test_streamed.py
every_solver = pytest.mark.parametrize("solver", STORED, ids=repr)
ITERATIVE = [solver for solver in STORED if "check_every" in solver.get_params()]
every_iterative = pytest.mark.parametrize("solver", ITERATIVE, ids=repr)


def is_smooth(loss):
    """Whether the loss has no kink along a line, by second differences."""
    line, h = np.arange(-3, 3, 1e-3)[:, None], 1e-3
    values = loss.bind(np.ones_like(line)).value(line)
    return bool(np.all(np.isfinite(values)) and np.max(np.diff(values, 2)) < 0.1 * h)


def size_of(problem, certificate):
    zero = problem.value_at_zero
    return max(abs(certificate.primal), abs(certificate.dual), abs(zero) if math.isfinite(zero) else 0.0)


def is_true(case, loss, problem, solution, weights=None):
    """The certificate of a solution is that of its duals, by our own formulas."""
    primal, dual = objectives(case, loss, problem.unscale(solution.duals), weights)
    found, slack = solution.certificate, AGREEMENT * size_of(problem, solution.certificate)
    assert abs(found.primal - primal) <= slack, (found, primal)
    assert abs(found.dual - dual) <= slack, (found, dual)
    assert abs(found.gap - (primal - dual)) <= 2 * slack, (found, primal - dual)
    zero = np.average(value(loss, case.targets, case.targets), weights=weights)
    guard = max(abs(primal), 1e-10 * zero) if math.isfinite(zero) else abs(primal)
    if guard > 0:
        assert_allclose(found.relative_gap, found.gap / guard, rtol=1e-9, atol=1e-11)


def with_params(solver, **params):
    return type(solver)(**{**solver.get_params(), **params})


def refuses(solver, problem):
    """Whether a solver does not take a problem; it must then say so, with advice, before it does anything."""
    reason = solver.why_not(problem)
    if reason is None:
        return False
    assert "Use " in reason
    with pytest.raises(IncompatibleError, match=f"{type(solver).__name__} cannot solve this problem"):
        solver.solve(problem)
    return True


def case_for(solver):
    """A case that the solver takes, with an output operator where it can."""
    return Case("gram_factor" if isinstance(solver, RowNewton) else "euclidean")


def loss_for(solver):
    """A loss that the solver takes."""
    return Pinball(0.3) if isinstance(solver, BoxNewton) else Huber(0.3)


class TestConvergence:
    def test_every_solver_is_here(self):
        names = {type(solver).__name__ for solver in SOLVERS}
        assert names >= {"Auto", "ClosedForm", "DouglasRachford", "RowNewton", "BoxNewton", "PGD", "APGD", "BCD"}

    @every_solver
    @every_loss
    def test_converges_to_a_true_certificate(self, case, loss, solver):
        problem = case.problem(loss)
        if refuses(solver, problem):
            return
        seen = []
        solution = solver.solve(problem, tol=TOL, callback=lambda n_iter, found: seen.append((n_iter, found)))
        assert solution.status is Status.CONVERGED
        assert solution.certificate.relative_gap <= TOL
        # a solver may work in turned coordinates and certify its answer anew in the problem's own
        assert solution.history[-1][0] == solution.n_iter
        assert solution.history[-1][1].primal == pytest.approx(solution.certificate.primal, rel=1e-12, abs=1e-14)
        assert set(seen) <= set(solution.history)
        for n_iter, found in solution.history:
            assert found.gap >= -NOT_NEGATIVE * size_of(problem, found), (n_iter, found)
        assert_allclose(solution.predictions, problem.predictions(solution.duals), rtol=0, atol=AGREEMENT)
        is_true(case, loss, problem, solution)

    @every_iterative
    @every_loss
    def test_interrupted_certificates_are_true(self, loss, solver):
        case = case_for(solver)
        problem = case.problem(loss)
        if refuses(solver, problem):
            return
        seen, stop = [], 4

        def callback(n_iter, found):
            seen.append((n_iter, found))
            return n_iter == stop

        solution = with_params(solver, check_every=1).solve(problem, tol=1e-13, callback=callback)
        if solution.status is not Status.CONVERGED:
            assert solution.status is Status.INTERRUPTED
            assert solution.n_iter == stop
            assert seen == solution.history
        assert [n_iter for n_iter, _ in seen] == list(range(len(seen)))
        least = min(found.relative_gap for _, found in solution.history)
        assert solution.certificate.relative_gap == pytest.approx(least, rel=1e-6, abs=1e-13)
        is_true(case, loss, problem, solution)


class TestDescent:
    @pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
    @pytest.mark.parametrize("loss", FEW, ids=repr)
    @pytest.mark.parametrize("solver", [PGD(max_iter=20), BCD(max_iter=20)], ids=repr)
    def test_no_step_lowers_the_dual_objective(self, solver, loss, lam):
        """Each step, and each sweep over the samples, maximises a model of it that is exact or lies below."""
        problem = case_for(solver).problem(loss).with_(lam=lam)
        history = with_params(solver, check_every=1).solve(problem, tol=1e-12).history
        duals = np.array([found.dual for _, found in history])
        assert len(duals) > 2
        assert duals[-1] > duals[0]
        assert np.all(np.diff(duals) >= -NOT_NEGATIVE * np.max(np.abs(duals)))

    @pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, N)], ids=["equal", "weighted"])
    def test_accelerated_descent_starts_at_the_closed_form(self, case, weights):
        """Where the linear zone of the loss is never reached, that is the solution."""
        problem = case.problem(Huber(1e6), weights=weights).with_(lam=1e-6)
        solution = APGD().solve(problem, tol=1e-9)
        roots = np.ones(N) if weights is None else np.sqrt(weights)
        scaled = np.kron(np.outer(roots, roots), np.ones((3, 3))) * case.full
        system = np.eye(3 * N) + scaled / (1e-6 * np.sum(roots**2))
        wanted = np.linalg.solve(system, (roots[:, None] * case.targets).ravel()).reshape(N, 3)
        assert solution.n_iter <= 1
        assert_allclose(solution.duals, wanted, rtol=0, atol=1e6 * EPS * np.max(np.abs(wanted)))

    def test_accelerated_descent_starts_at_zero_where_a_factorisation_costs_more(self):
        X = np.random.default_rng(0).standard_normal((1000, 2))
        problem = DualProblem.build(Dense(Gaussian(1.0)(X)), np.sin(X[:, :1]), Huber(1e6), lam=10.0)
        step = 1 / problem.lipschitz
        wanted = problem.prox(step * problem.targets, step)
        assert_array_equal(APGD().first_state(problem, None).current.duals, wanted)

    def test_extrapolated_predictions_are_those_of_the_extrapolated_duals(self):
        problem, solver = Case("euclidean").problem(Huber(0.3)), APGD()
        state = solver.first_state(problem, np.zeros((N, 3)))
        for _ in range(5):
            state = solver.next_state(problem, state)
            assert_allclose(state.ahead.predictions, problem.predictions(state.ahead.duals), rtol=0, atol=AGREEMENT)
        assert np.max(np.abs(state.ahead.duals - state.current.duals)) > 1e-6  # it is another point


class TestRuns:
    @every_solver
    @pytest.mark.parametrize("loss", FEW, ids=repr)
    def test_warm_start_from_the_solution(self, case, loss, solver):
        problem = case.problem(loss)
        if refuses(solver, problem):
            return
        solution = solver.solve(problem, tol=TOL / 100)
        again = solver.solve(problem, tol=TOL, start=solution.duals)
        assert again.status is Status.CONVERGED
        assert again.n_iter <= 5  # a solution is a fixed point: at most the round-off has to settle

    @pytest.mark.parametrize("loss", FEW, ids=repr)
    def test_splitting_goes_on_from_its_state(self, case, loss):
        problem, solver = case.problem(loss), DouglasRachford()
        solution = solver.solve(problem, tol=TOL)
        again = solver.solve(problem, tol=TOL, start=solution.state)
        assert again.status is Status.CONVERGED
        assert again.n_iter <= solver.check_every
        # the state of a run cut short is worth the iterations that it took: going on beats starting anew
        cut = with_params(solver, max_iter=10).solve(problem, tol=1e-10)
        on = solver.solve(problem, tol=1e-10, start=cut.state)
        assert on.status is Status.CONVERGED
        assert on.history[0][1].relative_gap <= max(2 * cut.history[-1][1].relative_gap, 1e-10)
        assert_allclose(on.certificate.primal, solver.solve(problem, tol=1e-10).certificate.primal, rtol=1e-9)

    @every_solver
    def test_same_bits_twice(self, case, solver):
        loss = Square() if isinstance(solver, ClosedForm) else Huber(0.5)
        if refuses(solver, case.problem(loss)):
            return
        one, two = (solver.solve(case.problem(loss)) for _ in range(2))
        assert_array_equal(one.duals, two.duals)
        assert_array_equal(one.predictions, two.predictions)
        assert one.certificate == two.certificate
        assert one.history == two.history

    @every_solver
    def test_arguments_are_not_changed(self, case, solver):
        loss = Square() if isinstance(solver, ClosedForm) else Huber(0.5)
        problem = case.problem(loss)
        if refuses(solver, problem):
            return
        K, targets = problem.gram.terms[0][0].matrix.copy(), problem.targets.copy()
        start = np.random.default_rng(3).standard_normal(targets.shape)
        before = start.copy()
        solver.solve(problem, start=start)
        assert_array_equal(problem.gram.terms[0][0].matrix, K)
        assert_array_equal(problem.targets, targets)
        assert_array_equal(start, before)

    @every_solver
    @pytest.mark.parametrize("loss", [loss for loss in LOSSES if is_smooth(loss)], ids=repr)
    def test_float32(self, case, loss, solver):
        problem = case.problem(loss, np.float32)
        if refuses(solver, problem):
            return
        solution = solver.solve(problem, tol=1e-4)
        assert solution.status is Status.CONVERGED
        assert solution.duals.dtype == np.float32
        assert solution.predictions.dtype == np.float32
        double = least(case.name, loss)
        assert abs(solution.certificate.primal - double.primal) <= 3e-4 * max(
            abs(double.primal), 1e-3 * abs(double.gap)
        )

    @every_solver
    @pytest.mark.parametrize("loss", FEW, ids=repr)
    def test_any_start_leads_to_the_optimum(self, loss, solver):
        case = case_for(solver)
        problem = case.problem(loss)
        if refuses(solver, problem):
            return
        start = 50 * np.random.default_rng(3).standard_normal((N, 3))  # far outside of any domain
        solution = solver.solve(problem, tol=TOL, start=start)
        assert solution.status is Status.CONVERGED
        assert_allclose(solution.certificate.primal, least(case.name, loss).primal, rtol=2 * TOL)


class TestWeights:
    WEIGHTS = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1, 4, 1, 1])

    def repeated(self, case, loss):
        X, Y = np.repeat(case.X, self.WEIGHTS, axis=0), np.repeat(case.Y, self.WEIGHTS, axis=0)
        bound = space(Euclidean(), Y)
        return DualProblem.build(case.kernel.bind(X, bound).gram(X), Y, loss, LAM), X

    @every_loss
    def test_weights_are_repetitions(self, loss):
        case, weights = Case("euclidean"), self.WEIGHTS.astype(float)
        problem = case.problem(loss, weights=weights)
        solution = Auto().solve(problem, tol=1e-9)
        assert solution.status is Status.CONVERGED
        is_true(case, loss, problem, solution, weights)
        longer, _ = self.repeated(case, loss)
        other = Auto().solve(longer, tol=1e-9)
        assert other.status is Status.CONVERGED
        assert_allclose(problem.value_at_zero, longer.value_at_zero, rtol=64 * EPS)
        size = size_of(problem, solution.certificate)
        assert abs(solution.certificate.primal - other.certificate.primal) <= 2e-9 * size
        # the primal is strongly convex: predictions are as near as the root of the gaps allows
        predictions = problem.unscale(solution.predictions)
        distance = np.max(np.abs(np.repeat(predictions, self.WEIGHTS, axis=0) - other.predictions))
        assert distance <= 2 * math.sqrt(max(size, 1) * 2e-9 / LAM)

    @every_solver
    @pytest.mark.parametrize("loss", [Square(), Huber(0.3), EpsilonRidge(0.4, p=math.inf), EpsilonSVR(0.2)], ids=repr)
    def test_every_solver_sees_them(self, loss, solver):
        case, weights = Case("euclidean"), self.WEIGHTS.astype(float)
        problem = case.problem(loss, weights=weights)
        if refuses(solver, problem):
            return
        solution = solver.solve(problem, tol=TOL)
        assert solution.status is Status.CONVERGED
        is_true(case, loss, problem, solution, weights)
        best = Auto().solve(self.repeated(case, loss)[0], tol=1e-9).certificate
        assert_allclose(solution.certificate.primal, best.primal, rtol=2 * TOL)

    def test_equal_weights_change_nothing(self, case):
        plain = Auto().solve(case.problem(Huber(0.3)), tol=1e-10).certificate
        heavy = Auto().solve(case.problem(Huber(0.3), weights=np.full(N, 7.0)), tol=1e-10).certificate
        assert_allclose(heavy.primal, plain.primal, rtol=1e-9)


class TestLimits:
    @every_iterative
    @every_loss
    def test_one_iteration(self, loss, solver):
        case = Case("gram_factor")
        problem = case.problem(loss)
        if refuses(solver, problem):
            return
        solution = with_params(solver, max_iter=1).solve(problem, tol=1e-12)
        found = solution.certificate
        assert math.isfinite(found.primal) and math.isfinite(found.dual) and math.isfinite(found.gap)
        if found.relative_gap > 1e-12:
            assert solution.status is Status.MAX_ITER
            assert solution.n_iter == 1
        is_true(case, loss, problem, solution)

    @every_iterative
    def test_one_iteration_is_not_enough(self, solver):
        solution = with_params(solver, max_iter=1).solve(case_for(solver).problem(loss_for(solver)), tol=1e-12)
        assert solution.status is Status.MAX_ITER
        assert solution.solver == type(solver).__name__
        assert [n_iter for n_iter, _ in solution.history] == [0, 1]

    def test_auto_hands_max_iter_on(self):
        solution = Auto(max_iter=1).solve(Case("euclidean").problem(Huber(0.3)), tol=1e-12)
        assert solution.status is Status.MAX_ITER
        assert solution.n_iter == 1

    @every_iterative
    @pytest.mark.parametrize("name", ["max_iter", "check_every"])
    def test_parameters_are_checked(self, solver, name):
        problem = Case("euclidean").problem(Huber(0.3))
        message = rf"The '{name}' parameter of {type(solver).__name__} must be an int in \[1, inf\)\. Got 0 instead"
        with pytest.raises(ValueError, match=message):
            with_params(solver, **{name: 0}).solve(problem)

    @pytest.mark.parametrize(("name", "bad"), [("relaxation", 2.0), ("relaxation", 0.0), ("memory", -1)])
    def test_parameters_of_the_splitting(self, name, bad):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of DouglasRachford must be"):
            DouglasRachford(**{name: bad}).solve(Case("euclidean").problem(Huber(0.3)))

    def test_splitting_without_acceleration(self):
        problem = Case("euclidean").problem(Huber(0.3))
        plain = DouglasRachford(memory=0).solve(problem, tol=1e-9)
        assert plain.status is Status.CONVERGED
        assert plain.n_iter > DouglasRachford().solve(problem, tol=1e-9).n_iter

    @every_iterative
    def test_hard_constraint_that_cannot_be_met(self, solver):
        """Two samples at one input, with outputs further apart than twice the radius."""
        X, Y = np.zeros((2, 1)), np.array([[0.0], [10.0]])
        bound = space(Euclidean(), Y)
        problem = DualProblem.build(Separable(Gaussian(1.0)).bind(X, bound).gram(X), Y, Ball(0.1), LAM)
        if refuses(solver, problem):
            return
        solution = with_params(solver, max_iter=50).solve(problem)
        assert solution.status is Status.INFEASIBLE
        assert solution.certificate.primal == math.inf


class TestIncompatible:
    def test_closed_form_takes_the_square_loss_only(self):
        message = (
            r"^ClosedForm cannot solve this problem: Huber\(.*\) is not the square loss\. Use APGD\(\) or Auto\(\)\.\n"
        )
        with pytest.raises(IncompatibleError, match=message):
            ClosedForm().solve(Case("euclidean").problem(Huber(0.5)))

    def test_newton_takes_losses_of_the_euclidean_norm_only(self):
        message = (
            r"^RowNewton cannot solve this problem: Huber\(p=1\) is not a loss of the Euclidean norm\. "
            r"Use DouglasRachford\(\) or Auto\(\)\.\n"
        )
        with pytest.raises(IncompatibleError, match=message):
            RowNewton().solve(Case("gram_factor").problem(Huber(p=1)))

    def test_newton_takes_separable_kernels_only(self):
        message = r"^RowNewton cannot solve this problem: the kernel is not separable\. Use DouglasRachford"
        with pytest.raises(IncompatibleError, match=message):
            RowNewton().solve(self.large(Huber(0.5)))

    def test_newton_wants_few_distinct_eigenvalues(self):
        gram = kronecker(Dense(np.eye(3)), np.linspace(1, 2, 33))
        with pytest.raises(IncompatibleError, match=r"more than 32 distinct eigenvalues"):
            RowNewton().solve(DualProblem.build(gram, np.ones((3, 33)), Huber(0.5), 1.0))

    def test_closed_form_knows_the_square_loss_by_its_profile(self):
        problem = Case("euclidean").problem(EpsilonRidge(0.0))
        assert ClosedForm().why_not(problem) is None
        exact = ClosedForm().solve(Case("euclidean").problem(Square())).duals
        assert_allclose(ClosedForm().solve(problem).duals, exact, rtol=0, atol=64 * EPS)

    def test_closed_form_is_the_linear_system(self, case):
        solution = ClosedForm().solve(case.problem(Square()))
        system = np.eye(3 * N) + case.full / (LAM * N)
        wanted = np.linalg.solve(system, case.targets.ravel()).reshape(N, 3)
        assert_allclose(solution.duals, wanted, rtol=0, atol=1e3 * EPS * np.max(np.abs(wanted)))

    def large(self, loss):
        """A sum of two separable terms on 4001 coordinates, just beyond the limit."""
        targets, K = np.zeros((4001, 1)), np.broadcast_to(np.eye(1), (4001, 4001))
        terms = [Dense(K), kronecker(Dense(K), np.ones(1))]
        return DualProblem.build(Sum(terms), targets, loss, LAM)

    @pytest.mark.parametrize(("solver", "loss"), [(ClosedForm(), Square()), (DouglasRachford(), Huber(1.0))], ids=repr)
    def test_large_sums_of_kernels(self, solver, loss):
        name = type(solver).__name__
        message = f"{name} cannot solve this problem: the eigendecomposition .* 4001 × 4001 .*solver='apgd'"
        with pytest.raises(IncompatibleError, match=message):
            solver.solve(self.large(loss))

    def test_auto_says_what_it_chose(self):
        chosen, reason = Auto(max_iter=7).choose(self.large(Huber(1.0)))
        assert isinstance(chosen, APGD)
        assert chosen.max_iter == 7
        assert "4001 × 4001" in reason
        assert reason.startswith("the only solver for this problem.")
        assert isinstance(Auto().choose(Case("euclidean").problem(Square()))[0], ClosedForm)

    def relay_problem(self):
        """Few samples outside the insensitive zone of the zero model, and a tiny lam."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 2))
        targets = rng.standard_normal((60, 2)) / 4
        return DualProblem.build(Dense(Gaussian(0.3)(X)), targets, EpsilonSVR(0.5), 1e-6)

    def test_an_interrupted_relay_says_so(self):
        seen = []
        solution = Auto().solve(
            self.relay_problem(), tol=1e-12, callback=lambda n, found: seen.append(n) or len(seen) > 2
        )
        assert len(seen) == 3
        assert solution.status is Status.INTERRUPTED

    @every_solver
    def test_many_problems_as_each_alone(self, solver):
        """``solve_all`` of every solver, on problems that differ in loss and lam."""
        base = case_for(solver).problem(loss_for(solver))
        losses = [Square()] if isinstance(solver, ClosedForm) else [loss_for(solver)]
        problems = [base.with_(loss=bound_loss(base, loss), lam=lam) for loss in losses for lam in (1.0, 0.1, 0.03)]
        solutions = solver.solve_all(problems, TOL)
        for problem, solution in zip(problems, solutions, strict=True):
            alone = solver.solve(problem, TOL)
            assert solution.status is Status.CONVERGED
            assert abs(solution.n_iter - alone.n_iter) <= 5
            assert_allclose(solution.certificate.primal, alone.certificate.primal, rtol=2 * TOL)
        assert solver.solve_all([], TOL) == []

    @pytest.mark.parametrize("solver", [PGD(), APGD(), BCD(), Auto()], ids=repr)
    def test_iterative_solvers_take_everything(self, solver):
        assert solver.why_not(self.large(EpsilonSVR(0.1))) is None

    def test_zero_is_answered_at_once(self, case):
        problem = case.problem(EpsilonSVR(20.0))
        solution = Auto().solve(problem)
        assert solution.solver == "Auto"  # no other solver was asked, and nothing was factorised
        assert not problem.shared.is_factorized
        assert solution.status is Status.CONVERGED
        assert solution.n_iter == 0
        assert_array_equal(solution.duals, np.zeros((N, 3)))
        assert solution.certificate.relative_gap == 0.0
