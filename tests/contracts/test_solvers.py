"""Every solver × every loss × two representations, on a problem where all of them must arrive.

The certificate is recomputed from the definitions: the functions of the first part are plain NumPy and share nothing
with the library.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Separable
from fenchel.kernels.gram import DenseGram, SeparableGram, SumGram
from fenchel.losses import Ball, EpsilonRidge, EpsilonSVR, Huber, Norm, Pinball, Square
from fenchel.problem import DualProblem
from fenchel.representations import Euclidean, GramFactor
from fenchel.solvers import APGD, BCD, PGD, Auto, BoxNewton, ClosedForm, DouglasRachford, RowNewton, Status
from tests.parts import LOSSES, SOLVERS

EPS = np.finfo(np.float64).eps
TOL = 1e-6
NOT_NEGATIVE = 64 * EPS  # a gap may be below zero by this share of the objective
AGREEMENT = 1e-11  # of our objectives with the library's, as a share of their size
FEASIBLE = 1e-12  # slack of the domain of a conjugate
N, LAM, GAMMA = 12, 0.1, 0.5
MATRIX = np.array([[1.0, 0.4, 0.0], [0.4, 0.8, -0.2], [0.0, -0.2, 0.6]])


# Losses and conjugates by their definitions, as functions of rows.


def p_norm(rows, p):
    magnitudes = np.abs(rows)
    return np.max(magnitudes, axis=1) if math.isinf(p) else np.sum(magnitudes**p, axis=1) ** (1 / p)


def conjugate_order(p):
    return math.inf if p == 1 else 1.0 if math.isinf(p) else p / (p - 1)


def shrink(values, mu, p):
    """The x >= 0 with x + mu x^(p-1) = values, by a bisection."""
    low, high = np.zeros_like(values), values
    for _ in range(55):
        middle = (low + high) / 2
        above = middle + mu * middle ** (p - 1) > values
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def project(rows, radius, p):
    """The Euclidean projection of rows on the ball of a p-norm."""
    if math.isinf(p):
        return np.clip(rows, -radius, radius)
    norms = p_norm(rows, p)
    outside = norms > radius
    if p == 2:
        return np.where(outside, radius / np.where(outside, norms, 1), 1)[:, None] * rows
    if radius == 0 or not np.any(outside):
        return np.where(outside[:, None], 0 * rows, rows)
    values = np.abs(rows[outside])
    low, high = np.zeros((len(values), 1)), np.full((len(values), 1), 1e-3)

    def inner(mu):
        return np.clip(values - mu, 0, None) if p == 1 else shrink(values, mu, p)

    while np.any(p_norm(inner(high), p) > radius):
        high = high * 8
    for _ in range(60):
        middle = (low + high) / 2
        far = (p_norm(inner(middle), p) > radius)[:, None]
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    out = rows.copy()
    out[outside] = np.sign(rows[outside]) * inner(high)
    return out


def scalar_value(loss, t):
    """f(t) for a loss of the Euclidean norm."""
    name = type(loss).__name__
    if name == "Square":
        return t**2 / 2
    if name == "Norm":
        return loss.scale * t
    if name == "Power":
        return loss.scale / loss.eta * t**loss.eta
    if name == "Exponential":
        return loss.scale * np.expm1(t)
    if name == "NormLog":
        return loss.scale * np.maximum(t, 1 / np.e) * np.log(np.maximum(t, 1 / np.e))
    if name == "Ball":
        return np.where(t <= loss.radius * (1 + FEASIBLE), 0.0, np.inf)
    assert name == "InfimalConvolution"
    return convolved(loss.f, loss.g, t)


def radius_of(loss):
    name = type(loss).__name__
    if name == "InfimalConvolution":
        return radius_of(loss.f) + radius_of(loss.g)
    return loss.radius if name == "Ball" else math.inf


def convolved(f, g, t):
    """min over s of f(s) + g(t - s), by golden section between the ends of the domain and at them."""
    low = np.clip(t - radius_of(g), 0, None)
    high = np.maximum(np.minimum(t, radius_of(f)), low)
    best = np.minimum(
        scalar_value(f, low) + scalar_value(g, t - low), scalar_value(f, high) + scalar_value(g, t - high)
    )
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        one = scalar_value(f, left) + scalar_value(g, t - left)
        two = scalar_value(f, right) + scalar_value(g, t - right)
        best = np.minimum(best, np.minimum(one, two))
        low, high = np.where(one <= two, low, left), np.where(one <= two, right, high)
    return best


def scalar_conjugate(loss, s):
    """f*(s) for a loss of the Euclidean norm."""
    name = type(loss).__name__
    if name == "Square":
        return s**2 / 2
    if name == "Norm":
        return np.where(s <= loss.scale * (1 + FEASIBLE), 0.0, np.inf)
    if name == "Power":
        order = conjugate_order(loss.eta)
        return loss.scale / order * (s / loss.scale) ** order
    if name == "Exponential":
        ratio = np.maximum(s / loss.scale, 1)
        return loss.scale * (ratio * np.log(ratio) - ratio + 1)
    if name == "NormLog":
        return loss.scale * np.exp(s / loss.scale - 1)
    if name == "Ball":
        return loss.radius * s
    assert name == "InfimalConvolution"
    return scalar_conjugate(loss.f, s) + scalar_conjugate(loss.g, s)


def cost(loss, targets):
    """The weight of an error on each target."""
    return np.abs(loss.levels - (targets < 0))


def value(loss, residuals, targets):
    name = type(loss).__name__
    if name == "Huber":
        inner = project(residuals, loss.kappa, conjugate_order(loss.p))
        return np.sum(inner**2, axis=1) / 2 + loss.kappa * p_norm(residuals - inner, loss.p)
    if name == "EpsilonRidge":
        return np.sum((residuals - project(residuals, loss.epsilon, loss.p)) ** 2, axis=1) / 2
    if name == "EpsilonSVR":
        return np.clip(p_norm(residuals, loss.p) - loss.epsilon, 0, None)
    if name == "MaxMargin":
        return np.clip(1 - np.sum((targets - residuals) * targets, axis=1), 0, None)
    if name == "Pinball":
        return np.sum(np.where(residuals > 0, loss.levels, loss.levels - 1) * residuals, axis=1)
    if name == "CostSensitiveHinge":
        margins = np.clip(1 - targets * (targets - residuals), 0, None)
        return np.sum(cost(loss, targets) * margins, axis=1)
    if name == "IntegralLoss":
        assert type(loss.point).__name__ == "AsymmetricSquare"
        return np.sum(np.where(residuals > 0, loss.levels, 1 - loss.levels) * residuals**2, axis=1)
    return scalar_value(loss, p_norm(residuals, 2))


def conjugate(loss, duals, targets):
    name = type(loss).__name__
    if name == "Huber":
        inside = p_norm(duals, conjugate_order(loss.p)) <= loss.kappa * (1 + FEASIBLE)
        return np.where(inside, np.sum(duals**2, axis=1) / 2, np.inf)
    if name == "EpsilonRidge":
        return np.sum(duals**2, axis=1) / 2 + loss.epsilon * p_norm(duals, conjugate_order(loss.p))
    if name == "EpsilonSVR":
        norms = p_norm(duals, conjugate_order(loss.p))
        return np.where(norms <= 1 + FEASIBLE, loss.epsilon * norms, np.inf)
    if name == "MaxMargin":
        squared = np.sum(targets**2, axis=1)
        t = np.sum(duals * targets, axis=1) / squared
        off = p_norm(duals - t[:, None] * targets, 2) > FEASIBLE * np.sqrt(squared)
        return np.where(off | (t < -FEASIBLE) | (t > 1 + FEASIBLE), np.inf, t * (squared - 1))
    if name == "Pinball":
        inside = (duals >= loss.levels - 1 - FEASIBLE) & (duals <= loss.levels + FEASIBLE)
        return np.where(np.all(inside, axis=1), 0.0, np.inf)
    if name == "CostSensitiveHinge":
        t = duals / targets
        inside = (t >= -FEASIBLE) & (t <= cost(loss, targets) + FEASIBLE)
        return np.where(np.all(inside, axis=1), np.sum(t * (targets**2 - 1), axis=1), np.inf)
    if name == "IntegralLoss":
        return np.sum(duals**2 / (4 * np.where(duals > 0, loss.levels, 1 - loss.levels)), axis=1)
    return scalar_conjugate(loss, p_norm(duals, 2))


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
        rng = np.random.default_rng(0)
        self.X, self.Y = 1.3 * rng.standard_normal((N, 3)), rng.standard_normal((N, 3))
        K = np.exp(-GAMMA * np.sum((self.X[:, None] - self.X[None]) ** 2, axis=2))
        if name == "euclidean":
            self.representation, self.kernel = Euclidean().fit(self.Y), Separable(Gaussian(GAMMA), MATRIX)
            self.full = np.kron(K, MATRIX)
        else:
            self.representation = GramFactor().fit(self.Y @ self.Y.T)
            self.kernel, self.full = Separable(Gaussian(GAMMA)), np.kron(K, np.eye(3))
        self.targets = self.representation.targets_

    def problem(self, loss, dtype=np.float64, weights=None):
        X, representation = self.X.astype(dtype), self.representation
        if dtype != np.float64:
            representation = type(representation)().fit(
                self.targets.astype(dtype) if self.is_plain else self.products(dtype)
            )
        gram = self.kernel.bind(X, representation).gram(X)
        return DualProblem.build(gram, representation.targets_, loss, LAM, weights)

    @property
    def is_plain(self):
        return isinstance(self.representation, Euclidean)

    def products(self, dtype):
        return (self.Y @ self.Y.T).astype(dtype)


@pytest.fixture(params=["euclidean", "gram_factor"])
def case(request):
    return Case(request.param)


FEW = [Square(), Huber(0.3), EpsilonRidge(0.4), EpsilonSVR(0.2), Norm(0.5)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)
ITERATIVE = [solver for solver in SOLVERS if "check_every" in solver.get_params()]
every_iterative = pytest.mark.parametrize("solver", ITERATIVE, ids=repr)


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
        solver = with_params(solver, check_every=1)
        for stop in (1, 3, 7):
            seen = []

            def callback(n_iter, found, stop=stop, seen=seen):
                seen.append((n_iter, found))
                return n_iter == stop

            solution = solver.solve(problem, tol=1e-13, callback=callback)
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

    def test_extrapolated_predictions_are_those_of_the_extrapolated_duals(self):
        problem, solver = Case("euclidean").problem(Huber(0.3)), APGD()
        state = solver.first_state(problem, None)
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
        K, targets = problem.gram.gram.matrix.copy(), problem.targets.copy()
        start = np.random.default_rng(3).standard_normal(targets.shape)
        before = start.copy()
        solver.solve(problem, start=start)
        assert_array_equal(problem.gram.gram.matrix, K)
        assert_array_equal(problem.targets, targets)
        assert_array_equal(start, before)

    @every_solver
    @pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.smooth], ids=repr)
    def test_float32(self, case, loss, solver):
        problem = case.problem(loss, np.float32)
        if refuses(solver, problem):
            return
        solution = solver.solve(problem, tol=1e-4)
        assert solution.status is Status.CONVERGED
        assert solution.duals.dtype == np.float32
        assert solution.predictions.dtype == np.float32
        double = Auto().solve(case.problem(loss), tol=1e-9).certificate
        assert abs(solution.certificate.primal - double.primal) <= 3e-4 * max(
            abs(double.primal), 1e-3 * abs(double.gap)
        )

    @every_solver
    @pytest.mark.parametrize("loss", FEW, ids=repr)
    def test_any_start_leads_to_the_optimum(self, loss, solver):
        problem = case_for(solver).problem(loss)
        if refuses(solver, problem):
            return
        start = 50 * np.random.default_rng(3).standard_normal((N, 3))  # far outside of any domain
        solution = solver.solve(problem, tol=TOL, start=start)
        assert solution.status is Status.CONVERGED
        best = Auto().solve(problem, tol=1e-9).certificate
        assert_allclose(solution.certificate.primal, best.primal, rtol=2 * TOL)


class TestWeights:
    WEIGHTS = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1, 4, 1, 1])

    def repeated(self, case, loss):
        X, Y = np.repeat(case.X, self.WEIGHTS, axis=0), np.repeat(case.Y, self.WEIGHTS, axis=0)
        bound = Euclidean().fit(Y)
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
        bound = Euclidean().fit(Y)
        problem = DualProblem.build(Separable(Gaussian(1.0)).bind(X, bound).gram(X), Y, Ball(0.1), LAM)
        if refuses(solver, problem):
            return
        solution = with_params(solver, max_iter=50).solve(problem)
        assert solution.status is Status.INFEASIBLE
        assert solution.certificate.primal == math.inf


class TestIncompatible:
    def test_closed_form_takes_the_square_loss_only(self):
        message = (
            r"^ClosedForm cannot solve this problem: Huber\(.*\) is not the square loss\. Use APGD\(\) or Auto\(\)\.$"
        )
        with pytest.raises(IncompatibleError, match=message):
            ClosedForm().solve(Case("euclidean").problem(Huber(0.5)))

    def test_newton_takes_losses_of_the_euclidean_norm_only(self):
        message = (
            r"^RowNewton cannot solve this problem: Huber\(p=1\) is not a loss of the Euclidean norm\. "
            r"Use DouglasRachford\(\) or Auto\(\)\.$"
        )
        with pytest.raises(IncompatibleError, match=message):
            RowNewton().solve(Case("gram_factor").problem(Huber(p=1)))

    def test_newton_takes_separable_kernels_only(self):
        message = r"^RowNewton cannot solve this problem: the kernel is not separable\. Use DouglasRachford"
        with pytest.raises(IncompatibleError, match=message):
            RowNewton().solve(self.large(Huber(0.5)))

    def test_newton_wants_few_distinct_eigenvalues(self):
        gram = SeparableGram(DenseGram(np.eye(3)), np.linspace(1, 2, 33))
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
        terms = [SeparableGram(DenseGram(K)), SeparableGram(DenseGram(K), np.ones(1))]
        return DualProblem.build(SumGram(terms), targets, loss, LAM)

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
        return DualProblem.build(SeparableGram(DenseGram(Gaussian(0.3)(X))), targets, EpsilonSVR(0.5), 1e-6)

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
        problems = [base.with_(loss=base.bind(loss), lam=lam) for loss in losses for lam in (1.0, 0.1, 0.03)]
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
        assert not problem.has_spectrum
        assert solution.status is Status.CONVERGED
        assert solution.n_iter == 0
        assert_array_equal(solution.duals, np.zeros((N, 3)))
        assert solution.certificate.relative_gap == 0.0
