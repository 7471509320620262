"""What every representation of curves keeps, against sums written as loops, and each one's own numbers by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from sklearn.base import clone

from fenchel import FunctionalRegressor
from fenchel.datasets import Curves
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, IntegralOperator, Laplacian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from fenchel.representations import Basis, Eigen, Fourier, Spline
from tests.parts import CURVE_REPRESENTATIONS, space

EPS = np.finfo(np.float64).eps
ROUNDING = 1e4 * EPS  # relative to the largest entry
GRID = np.array([0.0, 0.1, 0.15, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.95, 1.0, 1.1, 1.2, 1.25, 1.4])
M = len(GRID)
COUPLING = np.array([[2.0, 0.5], [0.5, 1.0]])


def label(part):
    """Names, not reprs: that of a Basis holds the address of its functions."""
    return type(part).__name__


every_representation = pytest.mark.parametrize("representation", CURVE_REPRESENTATIONS, ids=label)


def weights_of(representation, grid=GRID):
    """Quadrature weights, one at a time."""
    if representation.quadrature == "monte_carlo":
        return np.full(len(grid), (grid[-1] - grid[0]) / len(grid))
    if representation.quadrature == "average":
        return np.full(len(grid), 1 / len(grid))
    weights = np.array([np.trapezoid(row, grid) for row in np.eye(len(grid))])
    return weights / (grid[-1] - grid[0]) if representation.quadrature == "mean" else weights


def values(n=7, channels=None, seed=0):
    shape = (n, M) if channels is None else (n, M, channels)
    return np.random.default_rng(seed).standard_normal(shape)


def fitted(representation, Y=None, operator=None, grid=GRID):
    operator = IntegralOperator(Gaussian(8.0)) if operator is None else operator
    return space(clone(representation), Curves(grid, values() if Y is None else Y), operator=operator)


def gaussian(left, right, gamma=8.0):
    return np.array([[np.exp(-gamma * (t - s) ** 2) for s in right] for t in left])


def span(representation):
    """Functions (points, k) that span what a representation can hold, from the definition of its class."""
    name, weights = label(representation), weights_of(representation)
    if name == "Spline":
        return np.eye(M)
    if name == "Basis":
        return np.stack([np.ones(M), GRID, GRID**2], axis=1)
    if name == "Fourier":
        u, k = (GRID - GRID[0]) / (GRID[-1] - GRID[0]), representation.n_components
        pairs = [part(2 * np.pi * order * u) for order in range(1, k) for part in (np.cos, np.sin)]
        return np.stack([np.ones(M), *pairs], axis=1)[:, :k]
    assert name == "Eigen"
    W = np.diag(weights)
    mu, functions = eigh(W @ gaussian(GRID, GRID) @ W, W)  # K W f = mu f
    mu, functions = mu[::-1], functions[:, ::-1]
    count = representation.n_components
    if count is None:
        count = int(np.sum(mu > M * EPS * mu[0]))
    elif count < 1:
        count = next(k for k in range(1, M + 1) if mu[:k].sum() >= count * mu.sum())
    return functions[:, :count]


def projected(representation, Y):
    """Curves projected on the span, in the norm of the quadrature."""
    roots, functions = np.sqrt(weights_of(representation)), span(representation)
    found = np.linalg.lstsq(roots[:, None] * functions, (Y * roots).T, rcond=None)[0]
    return (functions @ found).T


class TestContract:
    @every_representation
    def test_inner_products_are_those_of_the_projections(self, representation):
        Y, other = values(), values(4, seed=1)
        bound = fitted(representation)
        weights = weights_of(representation)
        inside = projected(representation, Y)
        wanted = np.array([[sum(weights * f * g) for g in other] for f in inside])
        assert bound.targets.shape == (7, span(representation).shape[1])
        assert_allclose(bound.representation.encode(Curves(GRID, Y)).rows, bound.targets, rtol=0, atol=ROUNDING)
        found = bound.targets @ bound.representation.encode(Curves(GRID, other)).rows.T
        assert_allclose(found, wanted, rtol=0, atol=ROUNDING * np.max(np.abs(Y)))

    @every_representation
    def test_decode_after_encode_is_the_projection(self, representation):
        Y = values()
        once = fitted(representation).representation.decode(fitted(representation).targets)
        assert_allclose(once, projected(representation, Y), rtol=0, atol=ROUNDING * np.max(np.abs(Y)))
        twice = fitted(representation, once)
        assert_allclose(twice.representation.decode(twice.targets), once, rtol=0, atol=ROUNDING * np.max(np.abs(Y)))
        assert twice.representation.representation_error_ == pytest.approx(0.0, abs=ROUNDING)

    @every_representation
    def test_operator_is_positive(self, representation):
        for operator in (IntegralOperator(Gaussian(8.0)), IntegralOperator(Laplacian(3.0))):
            bound = fitted(representation, operator=operator)
            matrix = operator.matrix(bound)
            p = bound.targets.shape[1]
            assert matrix.shape in ((p, p), (p,))
            spectrum = matrix if matrix.ndim == 1 else np.linalg.eigvalsh(matrix)
            assert np.min(spectrum) >= -64 * EPS * np.sum(spectrum)
            assert np.max(spectrum) > 0

    @every_representation
    def test_operator_is_the_double_integral(self, representation):
        """<f, A g> for elements f, g of the span, as a sum over pairs of points."""
        operator, weights = IntegralOperator(Gaussian(8.0)), weights_of(representation)
        bound = fitted(representation, operator=operator)
        matrix = dense(operator.matrix(bound))
        a, b = np.random.default_rng(3).standard_normal((2, 1, len(matrix)))
        f, g = bound.representation.decode(a)[0], bound.representation.decode(b)[0]
        wanted = 0.0
        for j, t in enumerate(GRID):
            for row, s in enumerate(GRID):
                wanted += weights[j] * weights[row] * f[j] * np.exp(-8.0 * (t - s) ** 2) * g[row]
        assert (a @ matrix @ b.T).item() == pytest.approx(wanted, rel=1e-9)

    @every_representation
    def test_evaluation_is_the_integral_at_any_point(self, representation):
        operator, weights = IntegralOperator(Gaussian(8.0)), weights_of(representation)
        bound = fitted(representation, operator=operator)
        points = np.array([-0.2, 0.0, 0.31, 0.65, 1.7])
        a = np.random.default_rng(3).standard_normal((1, bound.targets.shape[1]))
        f = bound.representation.decode(a)[0]
        wanted = [sum(weights[j] * np.exp(-8.0 * (t - s) ** 2) * f[j] for j, s in enumerate(GRID)) for t in points]
        assert_allclose(
            (a @ bound.representation.evaluation(operator, points))[0],
            wanted,
            rtol=0,
            atol=ROUNDING * np.max(np.abs(f)),
        )

    @every_representation
    def test_evaluation_on_the_training_grid_is_the_route_through_coordinates(self, representation):
        """What the operator gives on the grid has the coordinates that its matrix says; within the span, it is that."""
        operator = IntegralOperator(Gaussian(8.0))
        bound = fitted(representation, operator=operator)
        a = np.random.default_rng(3).standard_normal((5, bound.targets.shape[1]))
        on_grid = a @ bound.representation.evaluation(operator, bound.representation.grid_)
        route = a @ dense(operator.matrix(bound))
        size = np.max(np.abs(on_grid))
        assert_allclose(bound.representation.encode(Curves(GRID, on_grid)).rows, route, rtol=0, atol=ROUNDING * size)
        if label(representation) in ("Spline", "Eigen"):  # whose span the operator does not leave
            assert_allclose(bound.representation.decode(route), on_grid, rtol=0, atol=10 * ROUNDING * size)

    @every_representation
    def test_derivative_of_the_evaluation(self, representation):
        operator, step = IntegralOperator(Gaussian(8.0)), 1e-5
        bound = fitted(representation, operator=operator)
        points = np.array([-0.2, 0.0, 0.31, 0.65, 1.7])
        found = bound.representation.evaluation(operator, points, derivative=True)
        ends = [bound.representation.evaluation(operator, points + sign * step) for sign in (1, -1)]
        assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=0, atol=1e-6)
        assert np.max(np.abs(found)) > 0.1

    @every_representation
    def test_channels_do_not_meet(self, representation):
        """Two channels with one kernel are two curves, interleaved point by point."""
        Y, operator = values(channels=2), IntegralOperator(Gaussian(8.0))
        bound = fitted(representation, Y, operator)
        apart = [fitted(representation, Y[:, :, c], operator) for c in range(2)]
        assert bound.representation.n_channels_ == 2
        if label(representation) != "Eigen":  # whose two channels have each eigenvalue twice, in any order
            joined = np.stack([one.targets for one in apart], axis=2).reshape(7, -1)
            assert_allclose(bound.targets, joined, rtol=0, atol=ROUNDING)
            single = dense(operator.matrix(apart[0]))
            assert_allclose(dense(operator.matrix(bound)), np.kron(single, np.eye(2)), rtol=0, atol=ROUNDING)
        if label(representation) != "Eigen" or representation.n_components is None:
            back = bound.representation.decode(bound.targets)
            assert back.shape == (7, M, 2)
            for c, one in enumerate(apart):
                assert_allclose(back[:, :, c], one.representation.decode(one.targets), rtol=0, atol=10 * ROUNDING)

    @every_representation
    def test_second_moment(self, representation):
        weights = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 0.5])
        inside = projected(representation, values())
        products = (inside * weights_of(representation)) @ inside.T
        for counts in (None, weights):
            bound = space(clone(representation), Curves(GRID, values()), counts, IntegralOperator(Gaussian(8.0)))
            counts = np.ones(7) if counts is None else counts
            wanted = products @ np.diag(counts) @ products / counts.sum()
            found = bound.targets @ bound.covariance() @ bound.targets.T
            assert_allclose(found, wanted, rtol=0, atol=ROUNDING * np.max(np.abs(wanted)))

    @every_representation
    def test_take(self, representation):
        curves = Curves(GRID, values())
        bound = fitted(representation)
        part = bound.representation.take(curves, np.array([4, 0, 2]))
        assert_array_equal(part.values, values()[[4, 0, 2]])
        assert_array_equal(part.grid, GRID)
        assert_allclose(bound.representation.encode(part).rows, bound.targets[[4, 0, 2]], rtol=0, atol=ROUNDING)

    @every_representation
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_arguments_are_not_changed_and_dtype_is_kept(self, representation, dtype):
        Y, grid = values().astype(dtype), GRID.copy()
        before, operator = Y.copy(), IntegralOperator(Gaussian(8.0))
        bound = fitted(representation, Y, operator, grid)
        curves = Curves(grid, Y)
        found = [
            bound.targets,
            bound.representation.encode(curves).rows,
            bound.representation.decode(bound.targets),
            bound.covariance(),
            operator.matrix(bound),
            bound.representation.evaluation(operator, GRID),
        ]
        assert {array.dtype for array in found} == {np.dtype(dtype)}
        assert_array_equal(Y, before)
        assert_array_equal(grid, GRID)

    @every_representation
    def test_same_bits_twice(self, representation):
        assert_array_equal(fitted(representation).targets, fitted(representation).targets)

    @every_representation
    def test_other_array_libraries_agree(self, representation, xp):
        operator, kind = IntegralOperator(Gaussian(8.0)), type(xp.asarray([1.0]))
        one, other = fitted(representation, operator=operator), fitted(representation, xp.asarray(values()), operator)
        # eigenvectors have no sign: what is compared does not depend on it
        pairs = [
            (one.targets @ one.targets.T, other.targets @ other.targets.T),
            (one.representation.decode(one.targets), other.representation.decode(other.targets)),
            (
                one.targets @ one.representation.evaluation(operator, GRID),
                other.targets @ other.representation.evaluation(operator, GRID),
            ),
        ]
        for wanted, found in pairs:
            assert type(found) is kind
            assert_allclose(np.asarray(found), wanted, rtol=0, atol=10 * ROUNDING * np.max(np.abs(wanted)))
        assert type(operator.matrix(other)) is kind

    @every_representation
    def test_quadrature_is_one_of_the_names(self, representation):
        with pytest.raises(ValueError, match=f"'quadrature' parameter of {label(representation)} must be one of 'trap"):
            clone(representation).set_params(quadrature="simpson").validate()


def dense(matrix):
    return np.diag(matrix) if matrix.ndim == 1 else matrix


class TestQuadrature:
    @pytest.mark.parametrize("grid", [GRID, np.array([2.0, 5.0]), np.linspace(-1, 3, 9)], ids=len)
    def test_trapezoid(self, grid):
        rng = np.random.default_rng(0)
        f, g = rng.standard_normal((2, len(grid)))
        bound = space(Spline(), Curves(grid, np.stack([f, g])))
        products = bound.targets @ bound.targets.T
        assert_allclose(products, [[np.trapezoid(a * b, grid) for b in (f, g)] for a in (f, g)], rtol=1e-12)

    def test_monte_carlo_is_the_length_times_the_mean(self):
        f = values(1)[0]
        bound = space(Spline("monte_carlo"), Curves(GRID, f[None]))
        assert np.sum(bound.targets**2) == pytest.approx(1.4 * np.mean(f**2), rel=1e-13)

    @pytest.mark.parametrize("grid", [GRID, np.linspace(-3, 9, M)], ids=["uneven", "even"])
    def test_average_is_the_mean_over_the_points_wherever_they_lie(self, grid):
        f = values(1)[0]
        assert np.sum(Spline("average").learn(Curves(grid, f[None])).rows ** 2) == pytest.approx(
            np.mean(f**2), rel=1e-13
        )

    def test_average_of_a_curve_with_gaps_is_over_its_own_points(self):
        Y = np.array([[1.0, np.nan, 3.0, np.nan], [1.0, 2.0, 3.0, 4.0]])
        rows = Spline("average").learn(Curves(np.array([0.0, 1.0, 7.0, 9.0]), Y)).rows
        assert_allclose(np.sum(rows**2, axis=1), [10 / 2, 30 / 4], rtol=1e-14)

    def test_ridge_with_the_average_is_the_linear_system_of_the_paper(self):
        """(K x G/m + lam n) a = y at uneven points, and h(x)(t) = 1/(lam n m) sum k(x, x_i) g(t, t_j) a_ij."""
        X, Y, points = np.random.default_rng(1).standard_normal((7, 2)), values(), np.array([-0.1, 0.33, 1.4])
        model = FunctionalRegressor(
            Gaussian(0.5), Gaussian(8.0), lam=0.1, representation=Spline("average"), center=False
        ).fit(X, Y, grid=GRID)
        K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
        a = np.linalg.solve(np.kron(K, gaussian(GRID, GRID) / M) + 0.7 * np.eye(7 * M), 0.7 * Y.ravel()).reshape(7, M)
        assert_allclose(model.predict(X, points), K @ a @ gaussian(GRID, points) / (0.7 * M), rtol=0, atol=1e-8)

    @every_representation
    def test_weights_as_an_array_are_those_of_the_rule(self, representation):
        by_name, by_array = (
            fitted(representation),
            clone(representation).set_params(quadrature=weights_of(representation)),
        )
        found = fitted(by_array)
        assert_allclose(found.targets, by_name.targets, rtol=0, atol=ROUNDING * np.max(np.abs(by_name.targets)))
        with pytest.raises(ValueError, match=r"one weight for each of the 15 points of the grid. Got 3\."):
            fitted(clone(representation).set_params(quadrature=[1.0, 2.0, 1.0]))
        with pytest.raises(ValueError, match="or a vector of positive weights"):
            clone(representation).set_params(quadrature=np.array([1.0, -1.0])).validate()

    @pytest.mark.parametrize("quadrature", ["trapezoid", "monte_carlo", "average"])
    def test_a_single_point_has_weight_one(self, quadrature):
        bound = space(Spline(quadrature), Curves(np.array([3.0]), np.array([[2.0], [5.0]])))
        assert_array_equal(bound.targets, [[2.0], [5.0]])


class TestSpline:
    def test_true_norms_of_order_p(self):
        """The bound loss sees the norm of order p of the curve: one with a kink that the trapezoid rule integrates."""
        grid = np.array([0.0, 0.5, 2.0])
        bound = Spline().learn(Curves(grid, np.array([[1.0, -2.0, 4.0]])))
        weights = [0.25, 1.0, 0.75]
        for p in (1, 1.5, 3):
            loss = EpsilonSVR(0.0, p=p).bind(bound.rows, bound.point_scale)
            wanted = (weights[0] + weights[1] * 2**p + weights[2] * 4**p) ** (1 / p)
            assert loss.value(bound.rows)[0] == pytest.approx(wanted, rel=1e-13)
        loss = EpsilonSVR(0.0, p=np.inf).bind(bound.rows, bound.point_scale)
        assert loss.value(bound.rows)[0] == pytest.approx(4.0, rel=1e-14)

    def test_masks_by_hand(self):
        grid, nan = np.array([0.0, 1.0, 3.0, 4.0]), np.nan  # weights 0.5, 1.5, 1.5, 0.5: the length is 4
        Y = np.array([[1.0, nan, 2.0, nan], [3.0, 4.0, 5.0, 6.0], [nan, nan, nan, 7.0]])
        bound = Spline().learn(Curves(grid, Y))
        roots = np.sqrt([0.5, 1.5, 1.5, 0.5])
        assert_array_equal(bound.observed, [[1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]])
        factors = np.sqrt([[4 / 2.0], [1.0], [4 / 0.5]])
        assert_allclose(bound.row_scale, factors, rtol=1e-14)
        wanted = np.array([[roots[0], 0, roots[2], 0], roots, [0, 0, 0, roots[3]]]) * factors
        assert_allclose(bound.point_scale, wanted, rtol=1e-14)
        assert_allclose(bound.rows, np.where(np.isnan(Y), 0, Y) * wanted, rtol=1e-14)
        # squared norms are the length times the mean over what was seen
        assert_allclose(
            np.sum(bound.rows**2, axis=1), [4 * (0.5 + 1.5 * 4) / 2, 0.5 * 45 + 1.5 * 41, 4 * 49], rtol=1e-14
        )
        assert Spline().fit(Curves(grid, Y)).representation_error_ == 0

    def test_a_curve_without_gaps_has_its_own_coordinates_among_others_with_gaps(self):
        Y = values()
        gaps = Y.copy()
        gaps[1:, 3] = np.nan
        assert_allclose(fitted(Spline(), gaps).targets[0], fitted(Spline(), Y).targets[0], rtol=1e-14)

    def test_masks_of_channels(self):
        grid, nan = np.array([0.0, 1.0, 3.0]), np.nan  # weights 0.5, 1.5, 1 in each channel: 6 in all
        Y = np.array([[[1.0, nan], [2.0, nan], [3.0, nan]], [[1.0, 2.0], [nan, 3.0], [4.0, 5.0]]])
        bound = Spline().learn(Curves(grid, Y))
        assert_array_equal(bound.observed, [[1, 0, 1, 0, 1, 0], [1, 1, 0, 1, 1, 1]])
        assert_allclose(bound.row_scale**2, [[6 / 3], [6 / 4.5]], rtol=1e-14)
        assert_allclose(
            bound.point_scale[1] ** 2, np.array([0.5, 0.5, 0, 1.5, 1, 1]) * 6 / 4.5, rtol=1e-14, atol=1e-300
        )

    def test_nothing_missing_has_no_masks(self):
        representation = Spline()
        bound = representation.learn(Curves(GRID, values()))
        assert bound.observed is None
        assert bound.row_scale is None
        assert_allclose(bound.point_scale**2, weights_of(Spline()), rtol=1e-13)
        assert representation.learn(Curves(GRID, np.where(values() > 1, np.nan, values()))).observed is not None
        assert representation.learn(Curves(GRID, values())).observed is None  # nothing is left of those before


class TestEigen:
    def test_the_operator_is_its_eigenvalues(self):
        bound = fitted(Eigen())
        W = np.sqrt(weights_of(Eigen()))
        wanted = np.linalg.eigvalsh(W[:, None] * gaussian(GRID, GRID) * W)[::-1]
        assert_allclose(
            bound.representation.eigenvalues_, wanted[: bound.representation.n_components_], rtol=0, atol=64 * EPS
        )
        assert_array_equal(IntegralOperator(Gaussian(8.0)).matrix(bound), bound.representation.eigenvalues_)

    @pytest.mark.parametrize("n_components", [1, 4, 15, np.int64(2)])
    def test_number_of_components(self, n_components):
        bound = fitted(Eigen(n_components), operator=IntegralOperator(Laplacian(3.0)))
        assert (
            bound.representation.n_components_
            == bound.targets.shape[1]
            == len(bound.representation.eigenvalues_)
            == n_components
        )

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
    def test_share_of_the_trace(self, share):
        operator = IntegralOperator(Laplacian(3.0))
        every = fitted(Eigen(15), operator=operator).representation.eigenvalues_
        count = fitted(Eigen(share), operator=operator).representation.n_components_
        assert np.sum(every[:count]) >= share * np.sum(every)
        assert np.sum(every[: count - 1]) < share * np.sum(every)
        assert np.sum(every) == pytest.approx(1.4, rel=1e-12)  # the trace of the kernel: k(t, t) = 1 over the length

    @pytest.mark.parametrize("bad", [16, 2.5])
    def test_impossible_numbers(self, bad):
        with pytest.raises(
            ValueError, match=rf"n_components must be an int of at most 15.*share in \(0, 1\).*Got {bad}"
        ):
            fitted(Eigen(bad))

    @pytest.mark.parametrize("bad", [0, -1, "all", True])
    def test_bad_numbers(self, bad):
        with pytest.raises(ValueError, match="'n_components' parameter of Eigen must be"):
            Eigen(bad).validate()

    def test_error_by_hand(self):
        """3 times the second eigenfunction and 4 times the fifth: the first four leave 16 of 25 out."""
        W = np.diag(weights_of(Eigen()))
        functions = eigh(W @ gaussian(GRID, GRID) @ W, W)[1][:, ::-1]
        Y = (3 * functions[:, 1] + 4 * functions[:, 4])[None]
        assert fitted(Eigen(4), Y).representation.representation_error_ == pytest.approx(16 / 25, rel=1e-9)
        assert fitted(Eigen(5), Y).representation.representation_error_ == pytest.approx(0, abs=1e-12)
        assert fitted(Eigen(1), Y).representation.representation_error_ == pytest.approx(1, rel=1e-12)
        assert fitted(Eigen(1), 0 * Y).representation.representation_error_ == 0

    @pytest.mark.parametrize("loss", [Square(), Huber(0.1), EpsilonRidge(0.2), EpsilonSVR(0.2)], ids=repr)
    @pytest.mark.parametrize("channels", [None, 2])
    def test_all_components_are_the_spline(self, loss, channels):
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((12, 2)), values(12, channels)
        settings = {"kernel": Gaussian(0.5), "output_kernel": Laplacian(3.0), "lam": 1e-2, "tol": 1e-9}
        spline, eigen = (
            FunctionalRegressor(loss=loss, representation=name, **settings).fit(X, Y, GRID)
            for name in ("spline", "eigen")
        )
        assert eigen.representation_.n_components_ == M * (channels or 1)
        assert eigen.primal_objective_ == pytest.approx(spline.primal_objective_, rel=1e-6)
        points = np.linspace(-0.1, 1.5, 23)
        assert_allclose(eigen.predict(X, points), spline.predict(X, points), rtol=0, atol=1e-3)
        assert np.max(np.ptp(spline.predict(X, points), axis=0)) > 0.1  # they learn something

    def test_it_needs_an_operator(self):
        with pytest.raises(IncompatibleError, match="Eigen takes its basis from the output operator"):
            Eigen().fit(Curves(GRID, values()))


class TestFourier:
    GRID = np.linspace(2.0, 4.0, 401)

    def test_functions_are_orthonormal_and_in_order(self):
        bound = fitted(Fourier(7), np.ones((1, 401)), IntegralOperator(), self.GRID)
        basis = bound.representation.decode(np.eye(7))
        products = [[np.trapezoid(f * g, self.GRID) for g in basis] for f in basis]
        assert_allclose(products, np.eye(7), rtol=0, atol=1e-12)
        u = (self.GRID - 2) / 2
        wanted = [np.full(401, np.sqrt(0.5))]
        wanted += [part(2 * np.pi * k * u) for k in (1, 2, 3) for part in (np.cos, np.sin)]
        assert_allclose(basis, wanted, rtol=0, atol=1e-10)

    def test_hand_values(self):
        """On [2, 4] the functions are 1/sqrt 2, cos pi(t - 2), sin pi(t - 2), ...; at 2.5 the phase is a quarter."""
        bound = fitted(Fourier(5, decay=3.0), np.ones((1, 401)), IntegralOperator(), self.GRID)
        mu = [1, 1 / 8, 1 / 8, 1 / 27, 1 / 27]
        assert_allclose(dense(bound.representation.integral(None)), np.diag(mu), rtol=0, atol=1e-12)
        at = np.array([2.0, 2.5, 3.0, 4.5])
        functions = np.array(
            [[np.sqrt(0.5)] * 4, [1, 0, -1, 0], [0, 1, 0, 1], [1, -1, 1, -1], [0, 0, 0, 0]]
        )  # the last column is beyond the end: functions go on with their period
        assert_allclose(
            bound.representation.evaluation(None, at), np.array(mu)[:, None] * functions, rtol=0, atol=1e-12
        )
        slopes = np.pi * np.array([[0] * 4, [0, -1, 0, -1], [1, 0, -1, 0], [0, 0, 0, 0], [2, -2, 2, -2]])
        assert_allclose(
            bound.representation.evaluation(None, at, True), np.array(mu)[:, None] * slopes, rtol=0, atol=1e-12
        )

    def test_derivative_of_its_own_operator(self):
        """On a grid where the functions are not orthonormal."""
        bound, step = fitted(Fourier(7), operator=IntegralOperator()), 1e-6
        at = np.array([0.1, 0.77, 1.3])
        found = bound.representation.evaluation(None, at, derivative=True)
        wanted = (
            bound.representation.evaluation(None, at + step) - bound.representation.evaluation(None, at - step)
        ) / (2 * step)
        assert_allclose(found, wanted, rtol=0, atol=1e-7)

    def test_error_by_hand(self):
        u = (self.GRID - 2) / 2
        Y = np.stack([3 / np.sqrt(2) + 4 * np.sin(4 * np.pi * u), np.cos(2 * np.pi * u)])
        bound = fitted(Fourier(3), Y, IntegralOperator(), self.GRID)
        assert bound.representation.representation_error_ == pytest.approx(16 / 26, rel=1e-10)
        assert_allclose(bound.targets, [[3, 0, 0], [0, 1, 0]], rtol=0, atol=1e-10)

    def test_too_few_points(self):
        with pytest.raises(ValueError, match=r"11 functions of the basis must be linearly independent.* of 5 points"):
            Fourier().fit(Curves(np.linspace(0, 1, 5), np.ones((1, 5))))

    @pytest.mark.parametrize("bad", [{"n_components": 0}, {"n_components": 2.5}, {"decay": -1.0}], ids=str)
    def test_bad_parameters(self, bad):
        with pytest.raises(ValueError, match="parameter of Fourier must be"):
            Fourier(**bad).validate()


class TestOwnOperator:
    """Representations with eigenvalues of their own: A f = sum_k mu_k <f, phi_k> phi_k."""

    CASES = [  # noqa: RUF012
        (Basis(lambda t: np.stack([np.ones_like(t), t, t**2], axis=1), [1.0, 0.5, 0.25]), [1.0, 0.5, 0.25]),
        (Basis(lambda t: np.stack([np.exp(t), np.ones_like(t)], axis=1), [0.0, 2.0], "monte_carlo"), [0.0, 2.0]),
        (Fourier(4, decay=1.0), [1, 1 / 2, 1 / 2, 1 / 3]),
        (Fourier(4, decay=1.0, quadrature="average"), [1, 1 / 2, 1 / 2, 1 / 3]),
    ]

    @staticmethod
    def functions(representation, t):
        if isinstance(representation, Basis):
            return representation.functions(t)
        u = (t - GRID[0]) / 1.4
        waves = [np.ones_like(u), *(np.sqrt(2) * part(2 * np.pi * u) for part in (np.cos, np.sin))]
        return np.stack([*waves, np.sqrt(2) * np.cos(4 * np.pi * u)], axis=1) / np.sqrt(sum(weights_of(representation)))

    def image(self, representation, mu, f, points):
        """The operator at a curve, by its formula."""
        weights, on_grid = weights_of(representation), self.functions(representation, GRID)
        out = np.zeros(len(points))
        for k, value in enumerate(mu):
            out += value * sum(weights * f * on_grid[:, k]) * self.functions(representation, points)[:, k]
        return out

    @pytest.mark.parametrize(("representation", "mu"), CASES, ids=label)
    def test_operator_by_brute_force(self, representation, mu):
        operator = IntegralOperator()
        bound = fitted(representation, operator=operator)
        matrix, weights = operator.matrix(bound), weights_of(representation)
        a, b = np.random.default_rng(1).standard_normal((2, 1, len(mu)))
        f, g = bound.representation.decode(a)[0], bound.representation.decode(b)[0]
        wanted = sum(weights * g * self.image(representation, mu, f, GRID))
        assert (b @ matrix @ a.T).item() == pytest.approx(wanted, rel=1e-9)
        assert_allclose(matrix, matrix.T, rtol=0, atol=64 * EPS)
        points = np.array([0.05, 0.5, 1.33])
        assert_allclose(
            (a @ bound.representation.evaluation(operator, points))[0],
            self.image(representation, mu, f, points),
            rtol=0,
            atol=ROUNDING * np.max(np.abs(f)),
        )
        # on the grid: the route through coordinates
        assert_allclose(
            a @ bound.representation.evaluation(operator, GRID),
            bound.representation.decode(a @ matrix),
            rtol=0,
            atol=1e-10,
        )

    @pytest.mark.parametrize(("representation", "mu"), CASES, ids=label)
    def test_a_fit_by_brute_force(self, representation, mu):
        """The square loss on curves of the span is a linear system in K ⊗ A, whatever the basis is."""
        rng = np.random.default_rng(0)
        X, lam, n = rng.standard_normal((6, 2)), 0.1, 6
        Y = rng.standard_normal((6, len(mu))) @ self.functions(representation, GRID).T
        model = FunctionalRegressor(Gaussian(0.5), representation=representation, lam=lam, center=False, tol=1e-12)
        found = model.fit(X, Y, GRID).predict(X)
        K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
        A = np.stack([self.image(representation, mu, row, GRID) for row in np.eye(M)], axis=1)  # A @ values
        system = np.eye(n * M) + np.kron(K, A) / (lam * n)
        duals = np.linalg.solve(system, Y.ravel())
        assert_allclose(found, (np.kron(K, A) @ duals / (lam * n)).reshape(n, M), rtol=0, atol=1e-8)
        assert model.representation_error_ == pytest.approx(0, abs=1e-12)

    @pytest.mark.parametrize(("representation", "mu"), CASES, ids=label)
    def test_channels_are_coupled(self, representation, mu):
        alone, operator = fitted(representation, operator=IntegralOperator()), IntegralOperator(None, COUPLING)
        bound = fitted(representation, values(channels=2), operator)
        matrix = IntegralOperator().matrix(alone)
        assert_allclose(operator.matrix(bound), np.kron(matrix, COUPLING), rtol=0, atol=ROUNDING)
        at = np.array([0.3, 0.9])
        wanted = np.kron(alone.representation.evaluation(None, at), COUPLING)
        assert_allclose(bound.representation.evaluation(operator, at), wanted, rtol=0, atol=ROUNDING)


class TestBasis:
    def test_derivatives(self):
        functions, slopes = lambda t: np.stack([t, t**3], axis=1), lambda t: np.stack([1 + 0 * t, 3 * t**2], axis=1)
        plain, smooth = Basis(functions, [1.0, 2.0]), Basis(functions, [1.0, 2.0], derivatives=slopes)
        at, step = np.array([0.2, 1.0]), 1e-6
        bound = fitted(smooth, operator=IntegralOperator())
        wanted = (
            bound.representation.evaluation(None, at + step) - bound.representation.evaluation(None, at - step)
        ) / (2 * step)
        assert_allclose(bound.representation.evaluation(None, at, derivative=True), wanted, rtol=0, atol=1e-7)
        with pytest.raises(IncompatibleError, match=r"Basis has no derivatives\. Give them as Basis"):
            fitted(plain, operator=IntegralOperator()).representation.evaluation(None, at, derivative=True)

    @pytest.mark.parametrize(
        ("basis", "message"),
        [
            (Basis(np.sin, [1.0]), r"finite values of shape \(15, 1\), one column for each.*Got shape \(15,\)"),
            (Basis(lambda t: t[:, None], [1.0, 2.0]), r"of shape \(15, 2\).*Got shape \(15, 1\)"),
            (Basis(lambda t: np.log(t - 10)[:, None], [1.0]), "finite values of shape"),
            (Basis(lambda t: np.stack([t, 2 * t], axis=1), [1.0, 2.0]), "2 functions .* must be linearly independent"),
            (Basis(lambda t: t[:, None], [-1.0]), r"'eigenvalues' .* finite non-negative numbers\. Got \[-1\.0\]"),
            (Basis(lambda t: t[:, None], [np.inf]), "'eigenvalues' parameter of Basis"),
            (Basis(lambda t: t[:, None], 1.0), "'eigenvalues' parameter of Basis"),
        ],
        ids=["flat", "columns", "nan", "dependent", "negative", "infinite", "number"],
    )
    @pytest.mark.filterwarnings("ignore:invalid value encountered in log")
    def test_bad_parameters(self, basis, message):
        with pytest.raises(ValueError, match=message):
            bound = fitted(basis, operator=IntegralOperator())
            bound.representation.integral(None)


@pytest.mark.parametrize("representation", [part for part in CURVE_REPRESENTATIONS if not part.has_points], ids=label)
def test_gaps_need_the_spline(representation):
    Y = values()
    Y[2, 3] = np.nan
    message = f"{label(representation)} needs curves that are observed at every point of the grid.*Use rep.*'spline'"
    with pytest.raises(IncompatibleError, match=message):
        fitted(representation, Y)


class TestChannels:
    POINTS = np.array([0.05, 0.7])

    def test_matrix(self):
        operator, Y = IntegralOperator(Gaussian(8.0), COUPLING), values(channels=2)
        bound = fitted(Spline(), Y, operator)
        roots = np.sqrt(weights_of(Spline()))
        wanted = np.kron(roots[:, None] * gaussian(GRID, GRID) * roots, COUPLING)
        assert_allclose(operator.matrix(bound), wanted, rtol=0, atol=64 * EPS)
        at = np.kron(roots[:, None] * gaussian(GRID, self.POINTS), COUPLING)
        assert_allclose(bound.representation.evaluation(operator, self.POINTS), at, rtol=0, atol=64 * EPS)
        eigen = fitted(Eigen(), Y, operator)
        spectrum = np.sort(np.outer(np.linalg.eigvalsh(roots[:, None] * gaussian(GRID, GRID) * roots),
                                    np.linalg.eigvalsh(COUPLING)).ravel())[::-1]  # fmt: skip
        assert_allclose(
            eigen.representation.eigenvalues_, spectrum[: eigen.representation.n_components_], rtol=0, atol=1e-13
        )

    def test_one_kernel_for_each(self):
        operator = IntegralOperator([Gaussian(8.0), Laplacian(3.0)])
        bound = fitted(Spline(), values(channels=2), operator)
        roots = np.sqrt(weights_of(Spline()))
        parts = [gaussian(GRID, GRID), np.exp(-3 * np.abs(GRID[:, None] - GRID))]
        wanted = sum(
            np.kron(roots[:, None] * part * roots, np.diag(unit)) for part, unit in zip(parts, np.eye(2), strict=True)
        )
        assert_allclose(operator.matrix(bound), wanted, rtol=0, atol=64 * EPS)
        right = [gaussian(GRID, self.POINTS), np.exp(-3 * np.abs(GRID[:, None] - self.POINTS))]
        at = sum(np.kron(roots[:, None] * part, np.diag(unit)) for part, unit in zip(right, np.eye(2), strict=True))
        assert_allclose(bound.representation.evaluation(operator, self.POINTS), at, rtol=0, atol=64 * EPS)

    def test_basis_with_a_kernel(self):
        operator = IntegralOperator(Gaussian(8.0), COUPLING)
        single, bound = fitted(Fourier(3)), fitted(Fourier(3), values(channels=2), operator)
        wanted = np.kron(IntegralOperator(Gaussian(8.0)).matrix(single), COUPLING)
        assert_allclose(operator.matrix(bound), wanted, rtol=0, atol=ROUNDING)

    def test_coordinates_are_the_channels_of_each_point_in_turn(self):
        Y = values(2, channels=3)
        bound = fitted(Spline(), Y)
        roots = np.sqrt(weights_of(Spline()))
        for j in (0, 4):
            for c in range(3):
                assert_allclose(bound.targets[:, 3 * j + c], roots[j] * Y[:, j, c], rtol=1e-13)
        assert_allclose(bound.representation.decode(bound.targets), Y, rtol=1e-13)

    def test_one_channel_keeps_its_axis(self):
        bound = fitted(Spline(), values(channels=1))
        assert bound.representation.decode(bound.targets).shape == (7, M, 1)
        assert_array_equal(bound.targets, fitted(Spline(), values(channels=1)[:, :, 0]).targets)


@pytest.mark.parametrize("representation", [Spline("mean"), Eigen(quadrature="mean")], ids=repr)
@pytest.mark.parametrize("loss", ["square", Huber(0.2), EpsilonSVR(0.1)], ids=repr)
def test_the_unit_of_the_grid_does_not_matter_for_means(representation, loss):
    rng = np.random.default_rng(0)
    t, X = np.sort(rng.uniform(0, 1, 15)), rng.normal(size=(20, 3))
    Y = np.sin(X[:, :1] + 3 * t) + 0.1 * rng.normal(size=(20, 15))
    predictions = []
    for unit in (1.0, 365.0):
        model = FunctionalRegressor("gaussian", loss=loss, lam=1e-2, representation=representation, tol=1e-10)
        predictions.append(model.fit(X, Y, grid=unit * t).predict(X))
    assert_allclose(predictions[1], predictions[0], atol=1e-5)
