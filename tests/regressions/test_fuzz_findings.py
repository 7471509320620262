"""What the fuzz run found: each of these was an uncaught error, a warning of NumPy or a wrong status."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from fenchel import (
    ConformalRegressor,
    CostSensitiveClassifier,
    FunctionalRegressor,
    KernelAutoencoder,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    StructuredPredictor,
    StructuredPredictorCV,
)
from fenchel.approximations import Nystrom, PSparsified
from fenchel.datasets import as_curves
from fenchel.estimators.quantile_pilot import Scores
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Tanimoto
from fenchel.losses import EpsilonRidge, Exponential, Huber, InfimalConvolution, Norm, NormLog, Power, Square
from fenchel.losses.profile import _solve_increasing
from fenchel.model.curve_center import CurveCenter
from fenchel.operators import Dense
from fenchel.operators.thin import orthogonal_features
from fenchel.problem import Certificate, DualProblem
from fenchel.search.race import best_lam
from fenchel.search.result import SearchResult
from fenchel.solvers.loop import Run

REGRESSORS = [
    OperatorKernelRegressor(),
    FunctionalRegressor(),
    StructuredPredictor(),
    QuantileFunctionRegressor(levels=2),
]


def test_a_negative_gap_is_no_certificate():
    """Round-off had made the primal value negative: the status was "converged" with a gap of -1."""
    problem = DualProblem.build(Dense(np.eye(2)), np.ones((2, 1)), Huber(), 1.0)
    run, point = Run(problem, 1e-6, np.inf), np.zeros((2, 1))
    run.add(0, (point, point, Certificate(-1e28, -2e12, -1e28, -1.0)))
    assert not run.is_done(None)
    run.add(1, (point, point, Certificate(1.0, 0.9, 0.1, 0.1)))
    assert run.solution("a solver").certificate.relative_gap == 0.1
    run.add(2, (point, point, Certificate(1.0, 1.0, -1e-9, -1e-9)))
    assert run.is_done(None)


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(("dtype", "most"), [(np.float32, r"3\.4e\+38"), (np.float64, r"1\.0e\+150")])
def test_outputs_beyond_the_dtype(rng, model, dtype, most):
    """Their squares, or the numbers themselves, overflowed: predictions were NaN."""
    X, Y = rng.standard_normal((6, 2)).astype(dtype), rng.standard_normal((6, 3))
    Y[2, 1] = 1e300
    with pytest.raises(ValueError, match=rf"The entries of y must be at most {most} .* Got 1\.0e\+300"):
        model.fit(X, Y)


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_text_is_named(rng, model):
    X, Y = rng.standard_normal((6, 2)), rng.standard_normal((6, 3))
    with pytest.raises(ValueError, match=r"X.* must hold numbers: could not convert"):
        model.fit(np.full((6, 2), "a"), Y)
    with pytest.raises(ValueError, match="sample_weight must hold finite non-negative numbers: could not convert"):
        model.fit(X, Y, sample_weight=["a"] * 6)


def test_text_outputs_are_named(rng):
    with pytest.raises(ValueError, match="y must hold numbers: could not convert"):
        OperatorKernelRegressor().fit(rng.standard_normal((6, 2)), np.full(6, "a"))
    with pytest.raises(ValueError, match=r"LeastSquares takes numeric values.* for outputs"):
        LossTrickPredictor("gaussian").fit(rng.standard_normal((6, 2)), np.full(6, "a"))


def test_labels_of_any_size(rng):
    """scikit-learn's check casts them to integers."""
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        CostSensitiveClassifier().fit(rng.standard_normal((4, 2)), [1e300, 0.0, 0.5, 1.0])


@pytest.mark.parametrize("kernel", [Gaussian("median"), Laplacian("median"), "auto"], ids=str)
def test_inputs_whose_squares_overflow(rng, kernel):
    X = 1e200 * rng.standard_normal((6, 2))
    with pytest.raises(ValueError, match=r"X must be in \(1e-150, 1e150\)|The entries of X must be at most 1e\+150"):
        OperatorKernelRegressor(kernel).fit(X, X[:, 0] / 1e200)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_matern_far_away(nu):
    """The kernel of a distance that overflows was infinity times zero."""
    assert np.array_equal(Matern(1.0, nu)(np.array([[0.0], [1e300]])), np.eye(2))


def test_the_gram_matrix_of_an_autoencoder_is_named(rng):
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match=r"The Gram matrix of Polynomial\(.*must be finite"),
    ):
        KernelAutoencoder(1, "polynomial").fit(1e120 * rng.standard_normal((6, 2)))


def test_left_out_errors_that_are_no_numbers():
    """A pilot of quantiles had them: the search for lam raised about an empty sequence."""
    assert best_lam(lambda lams: np.full(len(lams), np.nan))[1] == np.inf
    lam, error = best_lam(lambda lams: np.where(lams < 1e-3, np.nan, lams))
    assert 1e-3 <= lam <= 1e-2 and error == lam


def test_a_grid_of_infinite_errors():
    """The difference of two infinite errors is no number, and NumPy warned about it."""
    errors = np.full((1, 5), np.inf)
    result = SearchResult([Square()], [1e-3, 1e-2, 0.1, 1.0, 10.0], errors, errors[:, :, None], errors)
    assert result.beyond() is None and result.best == (0, 0)
    X = np.array([[1e13], [1.0], [2.0], [3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        OperatorKernelRegressorCV("polynomial", lams=[1e-3, 1e-1], losses=["square"], cv=2).fit(X, [1.0, 1e8, 0.0, 1.0])


def test_a_pilot_beside_krylov(rng):
    """The pilot needs the Gram matrix; the error said to use the solver that was in use."""
    X = rng.uniform(-1, 1, (20, 1))
    model = QuantileFunctionRegressor(levels=2, pilot=True, solver="krylov").fit(X, X[:, 0])
    assert model.pilot_ is not None and model.duality_gap_ <= 1e-6


def test_duals_whose_norm_underflows(rng):
    """A dual of 1e-30 is not null, but its square is in float32: the weights of the loss trick had a row too few."""
    X = 100 * rng.standard_normal((12, 3)).astype(np.float32)
    y = np.array([0.0, 1.0, 2.0, -1.0] * 3)
    settings = {"lam": 1e-12, "surrogate": "huber", "solver": "apgd", "max_iter": 300, "tol": 1e-3}
    model = LossTrickPredictor(Matern(1.0, 0.5), **settings).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)


def test_a_root_many_decades_below_its_bracket():
    """It took as many steps as the bracket has binary digits: more than half of the time of a slow fit."""
    calls = []

    def cube(u):
        calls.append(1)
        return u**3

    roots = _solve_increasing(cube, np.array([1e-30, 8.0, 0.0]), np.full(3, 1e20))
    np.testing.assert_allclose(roots, [1e-10, 2.0, 0.0], rtol=1e-12)
    assert len(calls) <= 40


@pytest.mark.parametrize("loss", [NormLog(), NormLog(1e-3), Power(1.5), Power(3.0), Exponential()], ids=str)
@pytest.mark.parametrize("step", [1e-12, 1.0, 1e6])
def test_proximal_operators_in_float32(loss, step):
    """Case 4715: what exceeds the fourth root of the largest number, 4e9, was cut off: a prox of 24 came out as 1e10.

    Every solver stalled in float32, which took a minute; the refinement in float64 took no iteration.
    """
    points = np.array([[1e-3], [1.0], [1e4], [1e10], [1e15]])
    found = loss.prox_conjugate(points.astype(np.float32), step)
    low, high = np.zeros_like(points), points.copy()
    for _ in range(400):  # a bisection of u + step f*'(u) = point
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            is_high = middle + step * loss.profile.slope(middle) > points
        low, high = np.where(is_high, low, middle), np.where(is_high, middle, high)
    np.testing.assert_allclose(found, low, rtol=2e-6)


@pytest.mark.parametrize("other", [Norm(0.5), Power(1.5)], ids=str)
def test_the_value_of_a_convolution_with_the_square(rng, other):
    residuals = 10.0 ** rng.uniform(-6, 6, (20, 1))
    values = InfimalConvolution(Square(), other).value(residuals)
    parts = np.linspace(0, 1, 200001)[None, :] * residuals  # the part of the residual that the square takes
    others = 0.5 * (residuals - parts) if isinstance(other, Norm) else (residuals - parts) ** 1.5 / 1.5
    expected = np.min(parts**2 / 2 + others, axis=1)
    np.testing.assert_allclose(values, expected, rtol=1e-4)
    assert np.all(values <= expected * (1 + 1e-12))


def test_a_norm_that_overflows_float32():
    """Lanczos gave LAPACK a matrix of NaN."""
    huge = np.full((8, 8), 3e38, dtype=np.float32)
    with np.errstate(all="ignore"):
        assert Dense(huge).norm() == np.inf


def test_a_kernel_near_the_end_of_float32(rng):
    """The product of two diagonal entries overflowed where predictions look for inputs far from the sample."""
    X = (1e6 + rng.standard_normal((4, 3))).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = OperatorKernelRegressor(Polynomial(3, 1.0, 0.0), loss="huber").fit(X, np.arange(4.0))
        assert np.isfinite(model.predict(X)).all()
        weights = np.array([1e-5, 1.0, 1e3, 1e5])
        CostSensitiveClassifier(Polynomial(3, 1.0, 0.0), levels=2, solver="box_newton").fit(X, [0, 1, 0, 1], weights)


def test_a_pilot_of_duplicated_inputs(rng):
    """Left-out residuals are 0 / 0 at a tiny lam, and NumPy warned about it."""
    X = np.repeat(rng.standard_normal((2, 2)), 4, axis=0).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = QuantileFunctionRegressor("auto", levels=1, pilot=True, lam=1e-9, tol=1e-9).fit(X, np.arange(8.0) / 100)
    assert np.isfinite(model.predict(X)).all()


def test_features_that_are_all_null():
    """Case 2366: a Cholesky factor of nothing."""
    X, y = np.zeros((5, 1)), np.zeros(5)
    model = OperatorKernelRegressor(Linear(), loss="huber", solver="krylov").fit(X, y)
    assert_array_equal(model.predict(X), 0)
    basis = orthogonal_features(np.zeros((5, 3)))
    assert basis[0].shape == (5, 1) and np.all(basis[1] > 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", [0, 1, 4, 5])
def test_features_of_rows_of_very_different_weight(seed, dtype):
    """Case 5835: moments in float32 have no digits of the small directions, and no Cholesky factor."""
    sizes = 10.0 ** -np.array([0, 1, 2, 3, 4, 9, 9, 9])
    features = (sizes[:, None] * np.random.default_rng(seed).standard_normal((8, 8))).astype(dtype)
    turned, squares, rotation = orthogonal_features(features)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(turned.T @ turned, np.diag(squares), atol=100 * eps * squares.max())
    np.testing.assert_allclose(features @ rotation, turned, atol=100 * eps**0.5 * np.abs(features).max())


def test_distances_of_sparse_rows_beyond_float32():
    """Case 3172: a square that overflows is a kernel value of zero, and no warning."""
    X = scipy.sparse.csr_array(np.array([[1e25, 0.0], [0.0, 1.0], [0.0, 2.0]], dtype=np.float32))
    assert_array_equal(Gaussian(1.0)(X)[0], [1, 0, 0])


def test_a_product_that_overflows_is_refused():
    """Case 4361: the autoencoder names the Gram matrix."""
    X = np.array([[1e200], [2e200], [3e200], [1.0]])
    with pytest.raises(ValueError, match=r"The Gram matrix of Product\(.*must be finite"):
        KernelAutoencoder(kernel=Gaussian(1.0) * Linear(), lam=1e-3).fit(X)


def test_a_sketch_of_a_kernel_that_overflows_is_refused():
    """Case 5683: its eigenvalues did not converge."""
    X = np.array([[1e200], [2e200], [3e200], [1.0]])
    with pytest.raises(ValueError, match=r"The Gram matrix of Linear\(\) must be finite"):
        PSparsified(2).approximate(Linear(), X)


def test_output_products_near_the_end_of_float32():
    """Case 5504: the norm of what a factor leaves overflowed."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)).astype(np.float32), rng.integers(-3, 4, (20, 4)) * 1e12
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = LossTrickPredictor(Laplacian(1.0), lam=1e-12, surrogate="huber").fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))


def test_an_autoencoder_of_huge_data_is_refused():
    """Case 6045: reconstructions were not finite."""
    X = 1e5 * np.random.default_rng(0).integers(-3, 4, (12, 3)).astype(float)
    X[0, 0] = 1e300
    with pytest.raises(ValueError, match=r"X must be below 1e\+70 .* scale the inputs"):
        KernelAutoencoder(kernel=Linear(), lam=1e-9, max_inner_iter=3, random_state=0).fit(X)


def test_a_pilot_that_round_off_leaves_nothing_of_is_the_mean():
    """Case 7131: three samples, one of them far off, in float32."""
    X = np.array([[-0.2678016, -1.2639378], [0.3074147, 1.903539], [0.7184766, 1.2449197]], dtype=np.float32)
    y = np.array([[16992454.5, 67009221.7, -58341608.4], [0.58, 3.07, 0.55], [-0.78, -0.32, -0.19]])
    model = QuantileFunctionRegressor("rbf", pilot=True, intercept=0.0, levels=5, level_kernel=Gaussian(4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert np.all(np.isfinite(model.fit(X, y).predict(X, [0.5])))


@pytest.mark.parametrize("loss", [EpsilonRidge(0.1), Huber()], ids=str)
def test_weights_for_which_a_gram_matrix_overflows_float32(rng, loss):
    """Case 10511: costs of solvers were estimated as infinity less infinity, and factorisations of infinity failed."""
    X = (1e6 + rng.standard_normal((20, 3))).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = OperatorKernelRegressor(Polynomial(3, 1.0, 0.0), loss=loss, lam=1e-9)
        model.fit(X, rng.standard_normal(20), sample_weight=10.0 ** np.linspace(-6, 6, 20))
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize("others", [0.0, 1e-118])
@pytest.mark.parametrize(
    "model",
    [
        ConformalRegressor(OperatorKernelRegressor(), method="jackknife+"),
        ConformalRegressor(OperatorKernelRegressor(loss=Huber(0.5)), method="jackknife+"),
        OperatorKernelRegressorCV("gaussian", losses=["square"], cv="loo"),
        StructuredPredictorCV("gaussian", losses=["square"], cv="loo"),
    ],
    ids=["closed", "solved", "search", "structured"],
)
def test_a_fold_that_holds_all_of_the_weight(rng, model, others):
    """Without the heavy sample nothing was left: division by zero, or predictions of NaN with a warning of NumPy."""
    X, y, weights = rng.standard_normal((5, 2)), rng.standard_normal((5, 2)), np.r_[1.0, np.full(4, others)]
    with pytest.raises(ValueError, match="Each fold must leave samples to fit on"):
        model.fit(X, y, sample_weight=weights)


def test_landmarks_of_a_kernel_that_overflows(rng):
    """NumPy's "Probabilities contain NaN"."""
    X = np.abs(rng.standard_normal((8, 2)))
    X[3, 0] = 1e300
    with pytest.raises(ValueError, match="kernel must be finite on X"):
        OperatorKernelRegressor(Tanimoto(), approximation=Nystrom("auto")).fit(X, X / X)


def test_the_centre_of_curves_with_weights_over_many_decades():
    """SciPy's "Seems like the problem is ill-posed", for curves of one point each and weights of 1 to 1e-100."""
    values = np.sin(9.0 * np.arange(8))
    center = CurveCenter.of(
        as_curves(np.ones((1, 8))), np.where(np.eye(8), values, np.nan)[:, :, None], np.logspace(0, -100, 8), "mean"
    )
    assert np.all(np.abs(center.values) < 2)


def test_normal_scores_of_a_weight_that_rounds_to_nothing():
    """A rank of 1 after round-off had an infinite score, and the pilot quantiles were NaN."""
    scores = Scores.of(np.arange(4.0), np.array([1e-40, 1.0, 1.0, 1e-40]))
    assert np.all(np.isfinite(scores.scores)) and np.all(np.diff(scores.scores) > 0)
