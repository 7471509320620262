"""The same numbers from every array library, in its own arrays and in the dtype that came in."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import LossTrickPredictor, OperatorKernelRegressor, kernels
from fenchel.kernels import Aligned, Blocks, Covariance, Gaussian, Linear, Matrix, Separable, SeparableSum
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, MaxMargin, Pinball, Square
from fenchel.losses._balls import PNorm
from fenchel.operators import Dense, scaled
from fenchel.problem import DualProblem
from fenchel.representations import Euclidean, GramFactor
from fenchel.solvers import APGD, BCD, Auto, ClosedForm, DouglasRachford, Status
from tests.parts import LOSSES, OPERATOR_KERNELS, SOLVERS, examples, space

AGREEMENT = 1e-10  # with NumPy, in float64
SINGLE = 1e-4
N, P, LAM = 10, 3, 0.05
# Kernels that are made for arrays: those that wrap functions of scikit-learn answer in NumPy.
SCALAR_KERNELS = [k for k in examples(kernels, kernels.ScalarKernel) if "Wrapped" not in repr(k)]
STEPS = (0.3, 2.0)

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def arrays(dtype="float64"):
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in ((N, 2), (N, P), (N, P)))


def native(xp, array):
    """A copy in another library."""
    return xp.asarray(np.array(array))


def is_native(xp, array, dtype="float64"):
    assert isinstance(array, type(xp.asarray([0.0]))), type(array)
    assert array.dtype == getattr(xp, dtype)
    return np.asarray(array)


def check(xp, found, wanted, dtype="float64"):
    found = is_native(xp, found, dtype)
    tol = AGREEMENT if dtype == "float64" else SINGLE
    finite = np.isfinite(wanted)
    assert found.shape == wanted.shape
    assert np.array_equal(np.isfinite(found), finite)
    assert_allclose(found[finite], wanted[finite], rtol=tol, atol=tol * np.max(np.abs(wanted[finite]), initial=0.0))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestLosses:
    @every_loss
    def test_value_conjugate_prox(self, xp, loss, dtype):
        _, rows, targets = arrays(dtype)
        rows[0] = 0.0
        rows[1] *= 20
        plain, bound = loss.bind(targets), loss.bind(native(xp, targets))
        given = native(xp, rows)
        for step in STEPS:
            check(xp, bound.prox_conjugate(given, step), plain.prox_conjugate(rows, step), dtype)
            check(xp, bound.prox_remainder(given, step), plain.prox_remainder(rows, step), dtype)
        inside = plain.prox_conjugate(rows, 1.0)
        check(xp, bound.conjugate(native(xp, inside)), plain.conjugate(inside), dtype)
        check(xp, bound.value(given), plain.value(rows), dtype)
        saturation = plain.saturation(rows)
        if saturation is None:
            assert bound.saturation(given) is None
        else:
            check(xp, bound.saturation(given), saturation, dtype)
        assert np.array_equal(np.asarray(given), rows)  # arguments are not written to

    @pytest.mark.parametrize("p", [1, 1.3, 2, 3, math.inf])
    @pytest.mark.parametrize("scaled", [False, True])
    def test_projections(self, xp, p, scaled, dtype):
        _, rows, _ = arrays(dtype)
        rows[0] = 0.0
        scale = np.array([0.5, 1.0, 2.0], dtype=dtype) if scaled else None
        plain, other = PNorm(p, scale), PNorm(p, None if scale is None else native(xp, scale))
        given = native(xp, rows)
        check(xp, other.norm(given), plain.norm(rows), dtype)
        check(xp, other.dual().norm(given), plain.dual().norm(rows), dtype)
        for radius in (0.0, 0.3, 100.0):
            check(xp, other.project(given, radius), plain.project(rows, radius), dtype)
        radii = np.linspace(0.1, 2, N, dtype=dtype)[:, None]
        check(xp, other.project(given, native(xp, radii)), plain.project(rows, radii), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestKernels:
    @pytest.mark.parametrize("kernel", SCALAR_KERNELS, ids=repr)
    def test_scalar(self, xp, kernel, dtype):
        X = np.abs(arrays(dtype)[0])
        if kernel.tags.is_pairwise:
            X = X @ X.T
        Z = X if kernel.tags.is_pairwise else X[:4] + 0.5
        given, other = native(xp, X), native(xp, Z)
        resolved = kernel.resolve(given)
        check(xp, resolved(given), kernel.resolve(X)(X), dtype)
        kernel = kernel.resolve(X)
        check(xp, kernel(given), kernel(X), dtype)
        check(xp, kernel(given, other), kernel(X, Z), dtype)
        check(xp, kernel.diag(given), kernel.diag(X), dtype)

    @pytest.mark.parametrize("kernel", OPERATOR_KERNELS, ids=lambda kernel: type(kernel).__name__)
    def test_operator_valued(self, xp, kernel, dtype):
        X, Y, A = arrays(dtype)
        X = np.concatenate([X, X[:, :1] * X[:, 1:]], axis=1)  # as many columns as outputs, which signals need
        plain = kernel.bind(X, space(Euclidean(), Y))
        other = kernel.bind(native(xp, X), space(Euclidean(), native(xp, Y)))
        gram, given = plain.gram(X), other.gram(native(xp, X))
        check(xp, given.matmul(native(xp, A)), gram.matmul(A), dtype)
        check(xp, given.diag(), gram.diag(), dtype)
        rows, some = np.array([3, 1, 4]), slice(3, 4)
        index = xp.asarray(rows)
        check(xp, given.block(index).matmul(native(xp, A[rows])), gram.block(rows).matmul(A[rows]), dtype)
        column = given.block(slice(None), some).matmul(native(xp, A[some]))
        check(xp, column, gram.block(slice(None), some).matmul(A[some]), dtype)
        root = np.linspace(0.5, 2, N, dtype=dtype)[:, None]
        check(xp, scaled(given, native(xp, root)).matmul(native(xp, A)), scaled(gram, root).matmul(A), dtype)
        assert_allclose(given.norm(), gram.norm(), rtol=SINGLE if dtype == "float32" else AGREEMENT)
        shifts = np.linspace(1, 2, N, dtype=dtype)
        for one, other_one in ((1.0, 1.0), (shifts, native(xp, shifts))):
            check(xp, given.solver(0.5, other_one)(native(xp, A)), gram.solver(0.5, one)(A), dtype)
        check(xp, given.apply(lambda v: 1 / (1 + v), native(xp, A)), gram.apply(lambda v: 1 / (1 + v), A), dtype)
        cross = other.gram(native(xp, X[:4]), native(xp, X))
        check(xp, cross.matmul(native(xp, A)), plain.gram(X[:4], X).matmul(A), dtype)

    def test_operators_that_come_as_numpy(self, xp, dtype):
        """An operator written down in NumPy serves arrays of any library."""
        X, Y, A = arrays(dtype)
        kernel = SeparableSum(
            [Separable(Gaussian(0.5), Matrix(np.diag([1.0, 2.0, 3.0]))), Separable(Linear(), [1.0, 0.5, 0])]
        )
        found = kernel.bind(native(xp, X), space(Euclidean(), native(xp, Y))).gram(native(xp, X)).matmul(native(xp, A))
        check(xp, found, kernel.bind(X, space(Euclidean(), Y)).gram(X).matmul(A), dtype)

    def test_merged_terms(self, xp, dtype):
        X, Y, A = arrays(dtype)
        terms = [
            Separable(Gaussian(0.5), np.eye(3)),
            Separable(Gaussian(0.5), np.ones(3)),
            Separable(Linear(), np.eye(3)),
        ]
        kernel = SeparableSum(terms)
        found = kernel.bind(native(xp, X), space(Euclidean(), native(xp, Y))).gram(native(xp, X)).matmul(native(xp, A))
        check(xp, found, kernel.bind(X, space(Euclidean(), Y)).gram(X).matmul(A), dtype)

    def test_aligned_with_weights_and_a_list(self, xp, dtype):
        X, Y, A = arrays(dtype)
        many = [Gaussian(gamma) for gamma in np.linspace(0.1, 1, N)]
        weights = np.linspace(0, 1, N)
        for kernel in (Aligned(many, weights), Aligned(Gaussian(0.5), weights, anchored=True)):
            found = (
                kernel.bind(native(xp, X), space(Euclidean(), native(xp, Y))).gram(native(xp, X)).matmul(native(xp, A))
            )
            check(xp, found, kernel.bind(X, space(Euclidean(), Y)).gram(X).matmul(A), dtype)

    def test_gram_factor(self, xp, dtype):
        _, Y, _ = arrays(dtype)
        K = Y @ Y.T
        plain, other = GramFactor().fit(K), GramFactor().fit(native(xp, K))
        found = is_native(xp, other.targets_, dtype)
        assert_allclose(found @ found.T, K, atol=(AGREEMENT if dtype == "float64" else SINGLE) * np.max(np.abs(K)))
        check(xp, other.decode(other.encode(native(xp, K[:3])).rows), plain.decode(plain.encode(K[:3]).rows), dtype)
        is_native(xp, space(GramFactor(), native(xp, K)).covariance(), dtype)

    def test_gram_matrix(self, xp, dtype):
        X, A, _ = arrays(dtype)
        K = X @ X.T
        plain, other = Dense(K), Dense(native(xp, K))
        check(xp, other.diag(), plain.diag(), dtype)
        check(xp, other.matmul(native(xp, A)), plain.matmul(A), dtype)
        check(xp, other.factorize().values, plain.factorize().values, dtype)


def problems(xp, kernel, loss, dtype, weights=None):
    """The same problem in NumPy and in the library."""
    X, Y, _ = arrays(dtype)
    built = []
    for convert in (lambda a: a, lambda a: native(xp, a)):
        bound = space(Euclidean(), convert(Y))
        gram = kernel.bind(convert(X), bound).gram(convert(X))
        s = None if weights is None else convert(weights.astype(dtype))
        built.append(DualProblem.build(gram, bound.targets, loss, LAM, s))
    return built


KERNELS = [
    Separable(Gaussian(0.5)),
    Separable(Gaussian(0.5), np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])),
    Gaussian(0.5) * Covariance(),
    SeparableSum([Separable(Gaussian(0.5)), Separable(Linear(), np.array([1.0, 0.5, 0.2]))]),
    Aligned(Gaussian(0.5), anchored=True),
    Blocks.examples()[0],
]
SOLVES = [
    (ClosedForm(), Square()),
    (APGD(), Huber(0.5)),
    (DouglasRachford(), Huber(0.5)),
    (DouglasRachford(), EpsilonSVR(0.2)),
    (BCD(), EpsilonRidge(0.3)),
    (Auto(), Square()),
    (Auto(), EpsilonRidge(0.3, p=math.inf)),
    (Auto(), Huber(0.5, p=1.3)),
    (Auto(), MaxMargin()),
    (Auto(), EpsilonSVR(20.0)),
]
every_solve = pytest.mark.parametrize(("solver", "loss"), SOLVES, ids=repr)


class TestSolves:
    @every_solve
    @pytest.mark.parametrize("kernel", KERNELS[:4:3], ids=["separable", "sum"])
    def test_float64(self, xp, kernel, solver, loss):
        plain, other = problems(xp, kernel, loss, "float64")
        wanted, found = solver.solve(plain, tol=1e-12), solver.solve(other, tol=1e-12)
        assert found.status is wanted.status
        for array, reference in ((found.predictions, wanted.predictions), (found.duals, wanted.duals)):
            values = is_native(xp, array)
            if loss.curvature:  # else the duals need not be unique
                assert_allclose(values, reference, rtol=0, atol=1e-5 * max(1.0, np.max(np.abs(reference))))
        assert_allclose(found.certificate.primal, wanted.certificate.primal, rtol=AGREEMENT, atol=1e-14)
        assert_allclose(found.certificate.dual, wanted.certificate.dual, rtol=AGREEMENT, atol=1e-14)

    @every_solve
    def test_first_steps_are_the_same_numbers(self, xp, solver, loss):
        """Before errors can grow, iterates agree to round-off, not only their limits."""
        params = {"max_iter": 2} if "max_iter" in solver.get_params() else {}
        solver = type(solver)(**{**solver.get_params(), **params})
        plain, other = problems(xp, KERNELS[1], loss, "float64")
        wanted, found = solver.solve(plain, tol=1e-15), solver.solve(other, tol=1e-15)
        check(xp, found.duals, wanted.duals)
        check(xp, found.predictions, wanted.predictions)

    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
    def test_every_kind_of_kernel(self, xp, kernel):
        plain, other = problems(xp, kernel, Huber(0.5), "float64")
        wanted, found = Auto().solve(plain, tol=1e-11), Auto().solve(other, tol=1e-11)
        assert found.status is Status.CONVERGED
        is_native(xp, found.duals)
        assert_allclose(found.certificate.primal, wanted.certificate.primal, rtol=AGREEMENT)

    @every_solve
    def test_float32_stays_float32(self, xp, solver, loss):
        _, other = problems(xp, KERNELS[1], loss, "float32")
        solution = solver.solve(other, tol=1e-3)
        assert solution.status is Status.CONVERGED
        is_native(xp, solution.duals, "float32")
        is_native(xp, solution.predictions, "float32")
        assert isinstance(solution.certificate.gap, float)

    @every_solve
    def test_weights(self, xp, solver, loss):
        weights = np.linspace(0.5, 3, N)
        plain, other = problems(xp, KERNELS[0], loss, "float64", weights)
        wanted, found = solver.solve(plain, tol=1e-10), solver.solve(other, tol=1e-10)
        is_native(xp, other.unscale(found.duals))
        assert_allclose(found.certificate.primal, wanted.certificate.primal, rtol=1e-9, atol=1e-14)

    @pytest.mark.parametrize("solver", [each for each in SOLVERS if not each.streams], ids=repr)
    def test_start(self, xp, solver):
        plain, other = problems(xp, KERNELS[0], Square(), "float64")
        start = native(xp, ClosedForm().solve(plain).duals)
        if solver.why_not(plain) is not None:  # it is for duals in a box
            _, other = problems(xp, KERNELS[0], Pinball(), "float64")
        found = solver.solve(other, tol=1e-6, start=start)
        assert found.status is Status.CONVERGED
        is_native(xp, found.duals)


LIBRARIES_FIT = [
    {"loss": Huber(0.5)},
    {"loss": EpsilonRidge(0.5)},
    {"loss": "square", "operator": "covariance"},
    {"loss": "epsilon_svr", "kernel": "laplacian"},
    {"loss": "huber", "kernel": Aligned(Gaussian(0.5), anchored=True)},
]


class TestRegressor:
    @pytest.mark.parametrize("params", LIBRARIES_FIT, ids=str)
    @pytest.mark.parametrize("flat", [False, True], ids=["matrix", "flat"])
    def test_fit_and_predict(self, xp, params, flat):
        X, Y, _ = arrays()
        y = Y[:, 0] if flat else Y
        Z = X[:4] + 0.1
        params = {"kernel": Gaussian(0.5), "lam": LAM, "tol": 1e-11, **params}
        wanted = OperatorKernelRegressor(**params).fit(X, y)
        model = OperatorKernelRegressor(**params).fit(native(xp, X), native(xp, y))
        predicted = is_native(xp, model.predict(native(xp, Z)))
        assert predicted.shape == wanted.predict(Z).shape
        assert_allclose(predicted, wanted.predict(Z), atol=1e-5)
        assert is_native(xp, model.dual_coef_).shape == wanted.dual_coef_.shape
        assert_allclose(model.primal_objective_, wanted.primal_objective_, rtol=AGREEMENT)
        assert np.array_equal(model.support_, wanted.support_)
        if hasattr(wanted, "outlier_score_"):
            assert_allclose(is_native(xp, model.outlier_score_), wanted.outlier_score_, atol=1e-4)

    def test_float32(self, xp):
        X, Y, _ = arrays("float32")
        model = OperatorKernelRegressor(Gaussian(0.5), loss=Huber(0.5), lam=LAM, tol=1e-3)
        model.fit(native(xp, X), native(xp, Y))
        is_native(xp, model.dual_coef_, "float32")
        is_native(xp, model.predict(native(xp, X)), "float32")
        is_native(xp, model.outlier_score_, "float32")

    def test_default_parameters(self, xp):
        X, Y, _ = arrays()
        wanted = OperatorKernelRegressor().fit(X, Y).predict(X)
        found = OperatorKernelRegressor().fit(native(xp, X), native(xp, Y)).predict(native(xp, X))
        check(xp, found, wanted)

    def test_zero_weights_drop_samples(self, xp):
        X, Y, _ = arrays()
        weights = np.array([1.0, 0, 2, 1, 0, 1, 1, 3, 1, 1])
        params = {"kernel": Gaussian(0.5), "loss": Huber(0.5), "lam": LAM, "tol": 1e-10}
        wanted = OperatorKernelRegressor(**params).fit(X, Y, weights)
        model = OperatorKernelRegressor(**params).fit(native(xp, X), native(xp, Y), native(xp, weights))
        assert_allclose(is_native(xp, model.dual_coef_), wanted.dual_coef_, atol=1e-4)
        assert not np.any(np.asarray(model.dual_coef_)[[1, 4]])
        assert_allclose(is_native(xp, model.predict(native(xp, X))), wanted.predict(X), atol=1e-4)

    def test_precomputed(self, xp):
        X, Y, _ = arrays()
        K = Gaussian(0.5)(X)
        params = {"kernel": "precomputed", "loss": EpsilonRidge(1.2), "lam": LAM}
        wanted = OperatorKernelRegressor(**params).fit(K, Y)
        assert 0 < len(wanted.support_) < N
        model = OperatorKernelRegressor(**params).fit(native(xp, K), native(xp, Y))
        assert_allclose(is_native(xp, model.predict(native(xp, K[:3]))), wanted.predict(K[:3]), atol=1e-3)

    def test_nothing_is_learned_when_all_is_insensitive(self, xp):
        X, Y, _ = arrays()
        model = OperatorKernelRegressor(loss=EpsilonRidge(20.0)).fit(native(xp, X), native(xp, Y))
        assert len(model.support_) == 0
        assert not np.any(is_native(xp, model.predict(native(xp, X))))

    def test_gram_matrix_of_the_outputs(self, xp):
        X, Y, _ = arrays()
        params = {"kernel": Gaussian(0.5), "loss": Huber(0.5), "lam": LAM, "tol": 1e-10, "representation": GramFactor()}
        wanted = OperatorKernelRegressor(**params).fit(X, Y @ Y.T).predict(X)
        model = OperatorKernelRegressor(**params).fit(native(xp, X), native(xp, Y @ Y.T))
        assert_allclose(is_native(xp, model.predict(native(xp, X))), wanted, atol=1e-4)

    def test_bad_input(self, xp):
        X, Y, _ = arrays()
        X[2, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            OperatorKernelRegressor().fit(native(xp, X), native(xp, Y))
        with pytest.raises(ValueError, match="sample"):
            OperatorKernelRegressor().fit(native(xp, arrays()[0]), native(xp, Y[:4]))
        model = OperatorKernelRegressor().fit(native(xp, arrays()[0]), native(xp, Y))
        with pytest.raises(ValueError, match="features"):
            model.predict(native(xp, np.ones((3, 5))))


class TestLossTrick:
    @pytest.mark.parametrize("surrogate", ["square", Huber(0.5), EpsilonRidge(0.3), MaxMargin()], ids=repr)
    @pytest.mark.parametrize("lams", [None, [0.1, 1.0]])
    def test_weights_and_predictions(self, xp, surrogate, lams):
        X, Y, _ = arrays()
        Z, weights = X[:4] + 0.1, 1.0 + np.arange(N) % 3
        params = {"surrogate": surrogate, "output_kernel": Linear(), "lams": lams, "cv": 3, "tol": 1e-11}
        wanted = LossTrickPredictor(Gaussian(0.5), "cauchy", LAM, **params).fit(X, Y, weights)
        model = LossTrickPredictor(Gaussian(0.5), "cauchy", LAM, **params)
        model.fit(native(xp, X), native(xp, Y), native(xp, weights))
        assert_allclose(is_native(xp, model.weights(native(xp, Z))), wanted.weights(Z), atol=1e-4)
        assert_allclose(is_native(xp, model.predict(native(xp, Z))), wanted.predict(Z), atol=1e-3)
