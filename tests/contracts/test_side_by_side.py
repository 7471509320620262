"""Problems solved side by side, each against itself solved alone on the Gram matrix of the samples it keeps."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, MaxMargin, Norm, Square
from fenchel.operators import Blocks, Dense, Sum, kronecker
from fenchel.problem import DualProblem
from fenchel.problem.batch import Batch
from fenchel.problem.derived import holding_out
from fenchel.solvers import DouglasRachford, Status

EPS = np.finfo(np.float64).eps
TOL = 1e-9
OBJECTIVE = 1e-7  # relative difference of two objectives that are both within TOL
EXACT = 1e-11  # relative, of the same sum in two orders
N, P = 14, 3
HELD_OUT = (np.array([], dtype=int), np.array([0, 5, 6]), np.array([13]), np.arange(1, 14, 2))
MATRIX = np.array([[1.0, 0.4, 0.0], [0.4, 0.8, -0.2], [0.0, -0.2, 0.6]])
DIAGONAL = np.array([1.5, 0.5, 0.1])
SINGULAR = np.outer([1.0, -0.5, 0.3], [1.0, -0.5, 0.3])  # of rank one: a null space of two dimensions
SEPARABLE = {
    "identity": None,
    "diagonal": DIAGONAL,
    "matrix": MATRIX,
    "singular": SINGULAR,
    "zeros": np.array([0.0, 1.5, 0.0]),
}
OPERATORS = (*SEPARABLE, "sum", "blocks")
RADIAL = [Huber(0.6), EpsilonRidge(0.5), EpsilonSVR(0.3), Norm(0.5), Square()]  # a solver may turn their outputs
LOSSES = [Huber(0.6), Huber(0.5, p=1.3), EpsilonRidge(0.5), EpsilonSVR(0.3), MaxMargin(), Norm(0.5)]
WEIGHTS = np.linspace(0.3, 2.5, N)[np.random.default_rng(5).permutation(N)]

every_operator = pytest.mark.parametrize("operator", OPERATORS)
every_group = pytest.mark.parametrize(
    ("losses", "operator"),
    [(LOSSES, operator) for operator in OPERATORS]
    + [(RADIAL, operator) for operator in ("diagonal", "singular", "zeros")],
    ids=[f"mixed-{operator}" for operator in OPERATORS] + ["radial-diagonal", "radial-singular", "radial-zeros"],
)
weighted = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])


def sample():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 2)), 1.5 * rng.standard_normal((N, P))


def gaussian(X, gamma):
    return np.exp(-gamma * np.sum((X[:, None] - X[None]) ** 2, axis=2))


def blocks(X):
    """exp(-|x - z|^2 / 2) B(x) B(z)' with B(x) = I + tanh(x_1) N: neither separable nor a short sum."""
    root = np.eye(P) + np.tanh(X[:, :1])[:, :, None] * np.eye(P, k=1)
    return gaussian(X, 0.5)[:, :, None, None] * np.einsum("iab,jcb->ijac", root, root)


def gram_of(operator, X, like=None):
    """The Gram operator of some inputs, in the array library and dtype of ``like``."""

    def native(array):
        return array if like is None else like(array)

    K, L = gaussian(X, 0.5), X @ X.T + 0.1
    if operator in SEPARABLE:
        M = SEPARABLE[operator]
        return kronecker(Dense(native(K)), None if M is None else native(M))
    if operator == "sum":
        terms = ((K, MATRIX), (L, DIAGONAL))
        return Sum([kronecker(Dense(native(part)), native(M)) for part, M in terms])
    return Blocks(native(blocks(X)))


def full_matrix(operator, X):
    """The same as a matrix on n p numbers, by its definition."""
    K, L = gaussian(X, 0.5), X @ X.T + 0.1
    if operator == "blocks":
        return blocks(X).transpose(0, 2, 1, 3).reshape(N * P, N * P)
    if operator == "sum":
        return np.kron(K, MATRIX) + np.kron(L, np.diag(DIAGONAL))
    M = np.eye(P) if operator == "identity" else SEPARABLE[operator]
    return np.kron(K, np.diag(M) if M.ndim == 1 else M)


class Member:
    """One problem of a batch: what it is, and the same on the kept samples alone."""

    def __init__(self, base, loss, lam, held, operator, weights):
        self.loss, self.lam, self.held, self.operator, self.weights = loss, lam, held, operator, weights
        bound = loss.bind(base.unscale(base.targets))
        self.problem = base.with_(loss=bound, lam=lam)
        if len(held):
            self.problem = holding_out(self.problem, held)
        self.kept = np.setdiff1d(np.arange(N), held)

    def alone(self):
        X, Y = sample()
        weights = None if self.weights is None else self.weights[self.kept]
        return DualProblem.build(gram_of(self.operator, X[self.kept]), Y[self.kept], self.loss, self.lam, weights)

    def total(self):
        return len(self.kept) if self.weights is None else self.weights[self.kept].sum()


def members(operator, weights, losses=LOSSES, lams=(1.0, 1e-3)):
    X, Y = sample()
    base = DualProblem.build(gram_of(operator, X), Y, losses[0], 1.0, weights)
    return [
        Member(base, loss, lam, HELD_OUT[(i + 2 * j) % len(HELD_OUT)], operator, weights)
        for i, loss in enumerate(losses)
        for j, lam in enumerate(lams)
    ]


def solve_all(batch, tol=TOL, solver=None):
    return (solver or DouglasRachford()).solve_all([member.problem for member in batch], tol)


class TestAgainstItself:
    """Each problem of a batch is the one of the samples that it keeps."""

    @weighted
    @every_group
    def test_same_as_alone(self, operator, weights, losses):
        batch = members(operator, weights, losses)
        solutions = solve_all(batch)
        matrix = full_matrix(operator, sample()[0])
        top, full = np.max(np.diag(matrix)), matrix.reshape(N, P, N, P)
        for member, solution in zip(batch, solutions, strict=True):
            label = (member.loss, member.lam, member.held)
            assert solution.status is Status.CONVERGED, label
            own = DouglasRachford().solve(member.alone(), tol=TOL)
            assert own.status is Status.CONVERGED, label
            assert_allclose(solution.certificate.primal, own.certificate.primal, rtol=OBJECTIVE, err_msg=str(label))
            assert_array_equal(solution.duals[member.held], np.zeros((len(member.held), P)))
            # the objective is strongly convex: the two functions are as near as the root of the gaps allows
            size = max(own.certificate.primal, 1e-3)
            near = 3 * math.sqrt(top * 4 * TOL * size / member.lam)
            roots = 1 if weights is None else np.sqrt(weights)[:, None]
            found = solution.predictions / roots
            kept_roots = roots if weights is None else roots[member.kept]
            assert np.max(np.abs(found[member.kept] - own.predictions / kept_roots)) <= near, label
            # everywhere, h(x) of the duals of the sub-problem, summed up here
            duals = own.duals * kept_roots
            h = np.einsum("iakb,kb->ia", full[:, :, member.kept, :], duals) / (member.lam * member.total())
            assert np.max(np.abs(found - h)) <= near, label
            assert near <= 0.05 * np.ptp(sample()[1]), "the bound says nothing"

    @weighted
    @every_group
    def test_certificates_are_true(self, operator, weights, losses):
        """Recomputed on the kept samples: predictions from the full matrix, then the loss and its conjugate."""
        batch = members(operator, weights, losses)
        full = full_matrix(operator, sample()[0])
        targets = sample()[1]
        for tol in (1e-2, TOL):
            for member, solution in zip(batch, solve_all(batch, tol), strict=True):
                s = np.ones(N) if weights is None else weights.copy()
                s[member.held] = 0
                duals = solution.duals / np.sqrt(np.where(s > 0, s, 1))[:, None]
                h = (full @ (s[:, None] * duals).ravel()).reshape(N, P) / (member.lam * s.sum())
                sub = member.loss.bind(targets[member.kept])
                s, h, duals, y = s[member.kept], h[member.kept], duals[member.kept], targets[member.kept]
                quadratic = np.sum(s[:, None] * duals * h) / (2 * s.sum())
                primal = np.average(sub.value(y - h), weights=s) + quadratic
                terms = np.sum(duals * y, axis=1) - sub.conjugate(duals)
                dual = np.average(terms, weights=s) - quadratic
                found = solution.certificate
                size = max(abs(primal), np.average(sub.value(y), weights=s))
                slack = EXACT * size * max(1, np.max(np.abs(h)) / np.max(np.abs(y)))
                assert abs(found.primal - primal) <= slack, (member.loss, member.lam, found, primal)
                assert abs(found.dual - dual) <= slack, (member.loss, member.lam, found, dual)
                assert abs(found.gap - (primal - dual)) <= 2 * slack
                assert found.relative_gap <= tol
                assert found.gap >= -64 * EPS * size


class TestSideBySide:
    def test_nobody_is_disturbed(self):
        """A problem that is solved at once, among others that take long, in any order."""
        X, Y = sample()
        base = DualProblem.build(gram_of("matrix", X), Y, Square(), 1e-4)
        easy = Member(base, EpsilonRidge(1e3), 1.0, HELD_OUT[1], "matrix", None)
        hard = [
            Member(base, loss, 1e-4, held, "matrix", None)
            for loss in (Huber(0.3), EpsilonSVR(0.2))
            for held in HELD_OUT
        ]
        alone = [DouglasRachford().solve(member.problem, TOL) for member in hard]
        for place in (0, 3, len(hard)):
            mixed = [*hard[:place], easy, *hard[place:]]
            solutions = solve_all(mixed)
            quick = solutions.pop(place)
            assert quick.n_iter < min(one.n_iter for one in solutions)
            assert_array_equal(quick.duals, np.zeros((N, P)))
            for one, own in zip(solutions, alone, strict=True):
                assert one.status is Status.CONVERGED
                assert_allclose(one.certificate.primal, own.certificate.primal, rtol=OBJECTIVE)
                assert one.n_iter <= 3 * own.n_iter + 50

    def test_histories_are_separate(self):
        batch = members("identity", None)
        solutions = solve_all(batch)
        assert len({solution.n_iter for solution in solutions}) > 3
        for solution in solutions:
            steps = [n_iter for n_iter, _ in solution.history]
            assert steps == list(range(0, solution.n_iter + 1, 5))
            assert solution.certificate.relative_gap == min(found.relative_gap for _, found in solution.history)
            assert all(found.relative_gap > TOL for _, found in solution.history[:-1])

    @pytest.mark.parametrize("loss", LOSSES, ids=repr)
    @weighted
    def test_batch_of_one(self, loss, weights):
        """The same numbers as ``solve``, and as a batch of twins."""
        for member in members("matrix", weights, [loss], (1.0, 1e-2)):
            one = DouglasRachford().solve(member.problem, TOL)
            (other,) = solve_all([member])
            assert_array_equal(one.duals, other.duals)
            assert one.history == other.history
            # twins take the code of several problems
            twins = solve_all([member, member])
            assert_array_equal(twins[0].duals, twins[1].duals)
            assert_allclose(twins[0].certificate.primal, one.certificate.primal, rtol=2 * TOL)
            for step, (alone, paired) in enumerate(zip(one.history[:4], twins[0].history[:4], strict=False)):
                assert_allclose(paired[1].primal, alone[1].primal, rtol=1e-6, err_msg=f"certificate {step}")

    def test_limit_is_for_each(self):
        for solution in solve_all(members("identity", None, LOSSES[:2]), 1e-14, DouglasRachford(max_iter=7)):
            assert solution.status is Status.MAX_ITER
            assert [n_iter for n_iter, _ in solution.history] == [0, 5, 7]

    def test_starts(self):
        """A state for one, duals for another, nothing for the third."""
        batch = members("diagonal", WEIGHTS, [Huber(0.6), Norm(0.5), EpsilonRidge(0.5)], (1e-2,))
        problems = [member.problem for member in batch]
        cold = DouglasRachford().solve_all(problems, TOL)
        warm = DouglasRachford().solve_all(problems, TOL, [cold[0].state, cold[1].duals, None])
        assert [one.status for one in warm] == [Status.CONVERGED] * 3
        assert warm[0].n_iter <= 5
        assert warm[1].n_iter < cold[1].n_iter
        for one, two in zip(cold, warm, strict=True):
            assert_allclose(one.certificate.primal, two.certificate.primal, rtol=OBJECTIVE)

    def test_starts_of_another_number(self):
        batch = members("identity", None, [Huber(0.6)])
        with pytest.raises(ValueError, match=r"zip\(\) argument"):
            DouglasRachford().solve_all([member.problem for member in batch], TOL, [None])


class TestBatch:
    def test_one_gram_operator(self):
        X, Y = sample()
        one, other = (DualProblem.build(gram_of("identity", X), Y, Square(), 1.0) for _ in range(2))
        message = r"^The problems of a batch must share their Gram operator and targets\.$"
        with pytest.raises(ValueError, match=message):
            Batch((one, other))
        with pytest.raises(ValueError, match=message):
            DouglasRachford().solve_all([one, other])

    def test_one_sample(self):
        X, Y = sample()
        gram = gram_of("identity", X)
        one, other = (DualProblem.build(gram, targets, Square(), 1.0) for targets in (Y, 2 * Y))
        with pytest.raises(ValueError, match=r"must share their Gram operator and targets"):
            Batch((one, other))

    def test_weights_belong_to_the_gram_operator(self):
        X, Y = sample()
        gram = gram_of("identity", X)
        one, other = (DualProblem.build(gram, Y, Square(), 1.0, weights) for weights in (None, WEIGHTS))
        with pytest.raises(ValueError, match=r"must share their Gram operator and targets"):
            Batch((one, other))

    @weighted
    @every_operator
    def test_each_piece_is_that_of_the_problems(self, operator, weights):
        """Prox, predictions and certificates of a batch are those of its problems, stacked."""
        batch = members(operator, weights)
        together = Batch(tuple(member.problem for member in batch))
        rng = np.random.default_rng(2)
        z = rng.standard_normal((N, len(batch), P))
        rhos = rng.uniform(0.2, 3, len(batch))
        duals = together.prox_remainder(z, rhos)
        predictions = together.predictions(duals)
        certificates = together.certificates(duals, predictions)
        for k, member in enumerate(batch):
            own = member.problem.prox_remainder(z[:, k], 1 / rhos[k])
            assert_allclose(duals[:, k], own, rtol=0, atol=1e-12 * np.max(np.abs(z)))
            fitted = member.problem.predictions(own)
            assert_allclose(predictions[:, k], fitted, rtol=0, atol=1e-11 * np.max(np.abs(fitted)))
            wanted = member.problem.certificate(own, fitted)
            assert_allclose(certificates[k].primal, wanted.primal, rtol=1e-10)
            assert_allclose(certificates[k].dual, wanted.dual, rtol=1e-10, atol=1e-10 * wanted.primal)
        some = together.take([4, 1])
        assert some.problems == (together.problems[4], together.problems[1])
        assert_array_equal(some.scales, together.scales[:, [4, 1]])


class TestWith:
    def test_changes_one_thing(self):
        X, Y = sample()
        problem = DualProblem.build(gram_of("matrix", X), Y, Huber(0.6), 0.1, WEIGHTS)
        other = problem.with_(lam=0.3)
        assert (other.lam, other.loss) == (0.3, problem.loss)
        assert other.scale == pytest.approx(1 / (0.3 * WEIGHTS.sum()), rel=4 * EPS)
        loss = EpsilonSVR(0.2)
        assert problem.with_(loss=loss).loss is loss
        assert problem.with_(loss=loss).lam == 0.1
        assert problem.lam == 0.1
        assert isinstance(problem.loss, Huber)

    def test_keeps_the_samples_held_out(self):
        X, Y = sample()
        problem = holding_out(DualProblem.build(gram_of("matrix", X), Y, Huber(0.6), 0.1, WEIGHTS), HELD_OUT[1])
        other = problem.with_(loss=EpsilonRidge(0.5), lam=0.02)
        assert other.total == pytest.approx(np.delete(WEIGHTS, HELD_OUT[1]).sum(), rel=8 * EPS)
        solution = DouglasRachford().solve(other, TOL)
        kept = np.delete(np.arange(N), HELD_OUT[1])
        sub = DualProblem.build(gram_of("matrix", X[kept]), Y[kept], EpsilonRidge(0.5), 0.02, WEIGHTS[kept])
        own = DouglasRachford().solve(sub, TOL)
        assert_allclose(solution.certificate.primal, own.certificate.primal, rtol=OBJECTIVE)
        assert_allclose(other.value_at_zero, sub.value_at_zero, rtol=64 * EPS)

    def test_nothing_is_remembered_wrongly(self):
        """What was computed for one lam or loss is not taken over, but the eigenbasis is."""
        X, Y = sample()
        problem = DualProblem.build(gram_of("matrix", X), Y, Huber(0.6), 0.1)
        before = problem.lipschitz, problem.value_at_zero, problem.shared.factorize()
        other = problem.with_(loss=EpsilonSVR(0.2), lam=0.2)
        assert other.lipschitz == pytest.approx(before[0] / 2, rel=1e-12)
        norms = np.linalg.norm(Y, axis=1)
        assert other.value_at_zero == pytest.approx(np.mean(np.clip(norms - 0.2, 0, None)), rel=64 * EPS)
        assert before[1] != pytest.approx(other.value_at_zero, rel=1e-3)
        assert other.shared.factorize() is before[2]
        cut = holding_out(problem, HELD_OUT[3])
        assert cut.shared.factorize() is before[2]
        kept = np.delete(norms, HELD_OUT[3])
        inner = np.minimum(kept, 0.6)
        assert cut.value_at_zero == pytest.approx(np.mean(inner**2 / 2 + 0.6 * (kept - inner)), rel=64 * EPS)

    def test_holding_out_again_replaces(self):
        X, Y = sample()
        problem = DualProblem.build(gram_of("identity", X), Y, Huber(0.6), 0.1)
        twice = holding_out(holding_out(problem, HELD_OUT[1]), HELD_OUT[2])
        assert_array_equal(np.flatnonzero(twice.mask[:, 0] == 0), HELD_OUT[2])
        assert twice.total == N - len(HELD_OUT[2])


class TestArrays:
    def problems(self, native, losses, weights=None):
        X, Y = sample()
        targets = native(Y)
        s = None if weights is None else native(weights)
        base = DualProblem.build(gram_of("matrix", X, native), targets, losses[0], 1.0, s)
        bound = [loss.bind(base.unscale(base.targets)) for loss in losses]
        made = [base.with_(loss=loss, lam=lam) for loss in bound for lam in (1.0, 1e-2)]
        return [one if k % 2 else holding_out(one, HELD_OUT[1]) for k, one in enumerate(made)]

    @pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
    def test_float32(self, weights):
        losses = [Huber(0.6), Huber(0.5, p=1.3), EpsilonRidge(0.5), Norm(0.5)]
        single = self.problems(lambda array: array.astype(np.float32), losses, weights)
        double = self.problems(lambda array: array, losses, weights)
        pairs = zip(DouglasRachford().solve_all(single, 1e-4), DouglasRachford().solve_all(double, TOL), strict=True)
        for k, (one, two) in enumerate(pairs):
            assert one.status is Status.CONVERGED, k
            assert one.duals.dtype == np.float32
            assert one.predictions.dtype == np.float32
            assert_allclose(one.certificate.primal, two.certificate.primal, rtol=3e-4)
            if k % 2 == 0:
                assert_array_equal(one.duals[HELD_OUT[1]], 0)

    @pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
    def test_other_libraries(self, xp, weights):
        found = DouglasRachford().solve_all(
            self.problems(lambda array: xp.asarray(np.array(array)), LOSSES, weights), 1e-8
        )
        wanted = DouglasRachford().solve_all(self.problems(lambda array: array, LOSSES, weights), 1e-8)
        for one, two in zip(found, wanted, strict=True):
            assert isinstance(one.duals, type(xp.asarray([0.0])))
            assert one.duals.dtype == xp.float64
            assert one.status is Status.CONVERGED
            assert_allclose(one.certificate.primal, two.certificate.primal, rtol=1e-7)
            assert_allclose(np.asarray(one.predictions), np.asarray(two.predictions), rtol=0, atol=1e-2)
            assert_array_equal(np.asarray(one.duals)[np.all(two.duals == 0, axis=1)], 0)
            for early, other in zip(one.history[:3], two.history[:3], strict=False):
                assert_allclose(early[1].primal, other[1].primal, rtol=1e-7)
