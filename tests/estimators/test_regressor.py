import itertools
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

from fenchel import (
    LossTrickPredictor,
    OperatorKernelRegressor,
    QuantileFunctionRegressor,
    _check,
)
from fenchel.exceptions import IncompatibleError, NotFeasibleError
from fenchel.kernels import Gaussian, IntegralOperator, Matrix, Precomputed, Separable
from fenchel.losses import Ball, EpsilonRidge, EpsilonSVR, Huber, InfimalConvolution, Norm, Square
from fenchel.representations import GramFactor
from fenchel.solvers import PGD
from tests.parts import LOSSES

LIMIT = 1e-8


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((40, 3))
    return X, np.sin(X @ rng.standard_normal((3, 4))) + 0.1 * rng.standard_normal((40, 4))


def kernel_ridge(X, Y, lam):
    return KernelRidge(alpha=lam * len(X), kernel="rbf", gamma=0.5).fit(X, Y)


def objectives(model, X, Y, loss):
    """P and D of SPEC section 1 from the dual coefficients alone, for the kernel exp(-|x - z|^2 / 2) I."""
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    a, n, lam = model.dual_coef_.reshape(len(X), -1), len(X), model.lam
    Y = Y.reshape(n, -1)
    predictions = K @ a / (lam * n)
    norm = np.sum(a * (K @ a)) / (lam * n) ** 2
    bound = loss.bind(Y)
    primal = np.mean(bound.value(Y - predictions)) + lam / 2 * norm
    dual = np.mean(np.sum(a * Y, axis=1) - bound.conjugate(a)) - lam / 2 * norm
    return primal, dual, predictions


@pytest.mark.parametrize("lam", [1e-5, 1e-2, 1.0])
@pytest.mark.parametrize(
    "loss",
    [
        Square(),
        EpsilonRidge(0.0),
        EpsilonRidge(1e-12),
        EpsilonRidge(0.0, p=1),
        Huber(1e10),
        Huber(1e10, p=1.3),
        Huber(1e300),
        InfimalConvolution(Square(), Ball(1e-13)),
        InfimalConvolution(Norm(1e9), Square()),
    ],
    ids=repr,
)
def test_limits_are_kernel_ridge(sample, loss, lam):
    X, Y = sample
    model = OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=lam, tol=1e-12).fit(X, Y)
    Z = X + 0.1
    np.testing.assert_allclose(model.predict(Z), kernel_ridge(X, Y, lam).predict(Z), rtol=LIMIT, atol=LIMIT)


def test_large_epsilon_is_the_zero_model(sample):
    X, Y = sample
    for loss in (EpsilonRidge(100.0), EpsilonSVR(100.0, p=1), Ball(100.0)):
        model = OperatorKernelRegressor(loss=loss).fit(X, Y)
        assert np.all(model.predict(X) == 0)
        assert (model.duality_gap_, model.sparsity_, len(model.support_)) == (0.0, 1.0, 0)


def test_small_kappa_is_the_norm_loss(sample):
    """(1 / kappa) Huber(kappa) tends to the norm: with lam scaled alike, predictions agree."""
    X, Y = sample
    kappa = 1e-6
    small = OperatorKernelRegressor(Gaussian(0.5), loss=Huber(kappa), lam=1e-2 * kappa, tol=1e-9).fit(X, Y)
    norm = OperatorKernelRegressor(Gaussian(0.5), loss=Norm(), lam=1e-2, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(small.predict(X), norm.predict(X), atol=1e-3)
    tiny = OperatorKernelRegressor(loss=Huber(1e-200), lam=1e-2).fit(X, Y)
    assert np.all(np.isfinite(tiny.predict(X)))


def test_one_output_is_the_support_vector_regression_without_intercept(rng):
    """scikit-learn's SVR has an intercept; on data symmetric about zero it is zero."""
    half = rng.standard_normal((25, 2))
    y_half = np.tanh(half[:, 0]) + 0.3 * half[:, 1]
    X, y = np.vstack([half, -half]), np.concatenate([y_half, -y_half])
    kernel = "linear"
    lam, epsilon = 1e-2, 0.1
    ours = OperatorKernelRegressor(kernel, loss=EpsilonSVR(epsilon), lam=lam, tol=1e-10).fit(X, y)
    theirs = SVR(kernel=kernel, C=1 / (lam * len(X)), epsilon=epsilon, tol=1e-10).fit(X, y)
    assert abs(theirs.intercept_[0]) < 1e-6
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_attributes_are_the_certificate(sample, loss):
    X, Y = sample
    model = OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=1e-2).fit(X, Y)
    primal, dual, predictions = objectives(model, X, Y, loss)
    bound = loss.bind(Y)
    at_zero = np.mean(bound.value(Y))
    assert model.status_.startswith("converged")
    assert model.primal_objective_ == pytest.approx(primal, rel=1e-9, abs=1e-12)
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-8, abs=1e-10)
    size = max(abs(primal), 1e-10 * at_zero if np.isfinite(at_zero) else 0.0)
    assert model.duality_gap_ == pytest.approx((primal - dual) / size if size else 0.0, abs=1e-9)
    assert -1e-12 <= model.duality_gap_ <= 1e-6
    np.testing.assert_allclose(model.predict(X), predictions, rtol=1e-8, atol=1e-10)
    assert np.array_equal(model.support_, np.flatnonzero(np.any(model.dual_coef_ != 0, axis=1)))
    assert model.sparsity_ == pytest.approx(1 - len(model.support_) / len(X))
    if hasattr(model, "outlier_score_"):
        assert model.outlier_score_.shape == (40,)
        assert np.all((model.outlier_score_ >= 0) & (model.outlier_score_ <= 1))


def test_outliers_have_score_one(sample):
    X, Y = sample
    Y[[3, 17]] += 20
    model = OperatorKernelRegressor(Gaussian(0.5), loss=Huber(0.5), lam=1e-2).fit(X, Y)
    assert np.all(model.outlier_score_[[3, 17]] == 1)
    assert np.mean(model.outlier_score_ == 1) < 0.3
    assert not hasattr(model.set_params(loss="square").fit(X, Y), "outlier_score_")


def test_only_the_support_is_kept(sample):
    X, Y = sample
    model = OperatorKernelRegressor(Gaussian(0.5), loss=EpsilonRidge(0.6), lam=1e-2).fit(X, Y)
    assert 0 < len(model.support_) < len(X)
    assert model.X_fit_.shape == (len(model.support_), 3)
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    precomputed = OperatorKernelRegressor("precomputed", loss=EpsilonRidge(0.6), lam=1e-2).fit(K, Y)
    np.testing.assert_allclose(precomputed.predict(K), model.predict(X), atol=1e-10)
    assert precomputed.X_fit_.shape[0] == len(precomputed.support_)


def test_float32(sample):
    X, Y = (array.astype(np.float32) for array in sample)
    for loss in (Square(), Huber(0.3), EpsilonRidge(0.3), EpsilonSVR(0.3), Huber(0.3, p=1)):
        model = OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=1e-2, tol=1e-4).fit(X, Y)
        assert model.duality_gap_ <= 1e-4
        assert model.dual_coef_.dtype == model.predict(X).dtype == np.float32


@pytest.mark.parametrize(("loss", "lam"), [(Square(), 1e-8), (Huber(0.3), 1e-7)], ids=repr)
def test_float32_is_refined_in_float64_when_needed(sample, loss, lam):
    """No run in float32 gets to 1e-6 with so small a lam; the fit does, without a warning, and gives float32 back."""
    X, Y = (array.astype(np.float32) for array in sample)
    model = OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=lam).fit(X, Y)
    assert model.duality_gap_ <= 1e-6
    assert model.dual_coef_.dtype == np.float64
    assert model.predict(X).dtype == np.float32
    exact = OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=lam).fit(X.astype(float), Y.astype(float))
    assert model.primal_objective_ == pytest.approx(exact.primal_objective_, rel=1e-5)
    np.testing.assert_allclose(model.predict(X), exact.predict(X.astype(float)), rtol=0, atol=1e-2)


def test_a_gap_that_rounded_predictions_cannot_reach_is_said(sample):
    """The loss has kinks at which round-off of float32 counts: the gap is that of the numbers that predict returns."""
    X, Y = (array.astype(np.float32) for array in sample)
    model = OperatorKernelRegressor(Gaussian(0.5), loss=EpsilonSVR(0.2), lam=1e-4)
    with pytest.warns(ConvergenceWarning, match="Limited by round-off: scale the inputs, use float64"):
        model.fit(X, Y)
    assert 1e-6 < model.duality_gap_ < 1e-4
    residuals = Y.astype(float) - model.predict(X).astype(float)
    loss = np.mean(np.maximum(np.linalg.norm(residuals, axis=1) - 0.2, 0.0))
    quadratic = np.mean(np.sum(model.dual_coef_ * model.predict(X), axis=1)) / 2
    assert loss + quadratic == pytest.approx(model.primal_objective_, rel=1e-12)


def test_an_output_gram_matrix_of_float32_is_refined_with_its_own_tolerance(rng):
    A = rng.standard_normal((30, 5)).astype(np.float32)
    K = A @ A.T  # of rank 5: its other eigenvalues are round-off of float32
    model = OperatorKernelRegressor(loss="huber", lam=1e-9, representation=GramFactor(rtol=1e-5)).fit(A, K)
    assert model.duality_gap_ <= 1e-6


def test_an_input_gram_matrix_of_float32_is_solved_as_it_is(rng):
    """Its negative eigenvalues are round-off: there is no better matrix to refine with, and the warning says so."""
    A, Y = (rng.standard_normal((30, d)).astype(np.float32) for d in (5, 4))
    with pytest.warns(ConvergenceWarning, match="use float64"):
        model = OperatorKernelRegressor("precomputed", loss="huber", lam=1e-6).fit(A @ A.T, Y)
    assert model.dual_coef_.dtype == np.float32


def test_float32_with_a_tiny_lam(rng):
    A, Y = (rng.standard_normal((30, d)).astype(np.float32) for d in (5, 4))
    assert OperatorKernelRegressor("linear", loss="huber", lam=1e-8).fit(A, Y).duality_gap_ <= 1e-6


@pytest.mark.parametrize("loss", [Huber(0.3, p=1), EpsilonRidge(0.1, p=np.inf), EpsilonSVR(0.1, p=1.5)], ids=repr)
def test_orders_other_than_2_need_values(sample, loss):
    """The coordinates of outputs that are known by their products may be turned: only the norm of order 2 is one."""
    X, Y = sample
    with pytest.raises(IncompatibleError, match=r"needs point values, which GramFactor does not provide\. Use p=2"):
        OperatorKernelRegressor(loss=loss, representation=GramFactor()).fit(X, Y @ Y.T)


def test_curves_are_for_the_functional_regressor(sample):
    X, Y = sample
    with pytest.raises(IncompatibleError, match=r"Spline\(\) is for curves\. Use FunctionalRegressor"):
        OperatorKernelRegressor(representation="spline").fit(X, Y)
    with pytest.raises(IncompatibleError, match=r"IntegralOperator acts on curves; Euclidean does not"):
        OperatorKernelRegressor(operator=IntegralOperator("laplacian")).fit(X, Y)


@pytest.mark.parametrize("loss", [Square(), Huber(0.3), EpsilonSVR(0.2), Huber(0.3, p=1)], ids=repr)
def test_weights_count_samples(sample, loss, rng):
    X, Y = sample
    counts = rng.integers(0, 4, len(X))
    weighted = OperatorKernelRegressor(loss=loss, lam=1e-2, tol=1e-11).fit(X, Y, sample_weight=counts)
    index = np.repeat(np.arange(len(X)), counts)
    repeated = OperatorKernelRegressor(loss=loss, lam=1e-2, tol=1e-11).fit(X[index], Y[index])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-5)
    assert weighted.primal_objective_ == pytest.approx(repeated.primal_objective_, rel=1e-10)
    assert np.all(weighted.dual_coef_[counts == 0] == 0)
    assert not np.any(np.isin(weighted.support_, np.flatnonzero(counts == 0)))


def test_gram_outputs_are_euclidean_outputs_in_disguise(sample):
    X, Y = sample
    plain = OperatorKernelRegressor(loss=Huber(0.3), lam=1e-2, tol=1e-9).fit(X, Y)
    gram = OperatorKernelRegressor(loss=Huber(0.3), lam=1e-2, tol=1e-9, representation=GramFactor()).fit(X, Y @ Y.T)
    assert gram.dual_coef_.shape == (40, 4)
    np.testing.assert_allclose(gram.predict(X), plain.predict(X) @ Y.T, atol=1e-6)
    assert gram.primal_objective_ == pytest.approx(plain.primal_objective_, rel=1e-8)


def test_gram_outputs_of_weight_zero_are_left_out(sample):
    X, Y = sample
    counts = np.where(np.arange(len(X)) % 4, 1.0, 0.0)
    rows = np.flatnonzero(counts)
    weighted = OperatorKernelRegressor(representation=GramFactor()).fit(X, Y @ Y.T, counts)
    alone = OperatorKernelRegressor(representation=GramFactor()).fit(X[rows], (Y @ Y.T)[np.ix_(rows, rows)])
    np.testing.assert_allclose(weighted.predict(X), alone.predict(X), atol=1e-10)


def test_representations_by_name(sample):
    X, Y = sample
    by_name = OperatorKernelRegressor(loss="huber", representation="gram_factor").fit(X, Y @ Y.T)
    instance = OperatorKernelRegressor(loss="huber", representation=GramFactor()).fit(X, Y @ Y.T)
    assert np.array_equal(by_name.dual_coef_, instance.dual_coef_)
    with pytest.raises(ValueError, match="Unknown representation 'fourrier'"):
        OperatorKernelRegressor(representation="fourrier").fit(X, Y)


def test_kernels_by_every_door(sample):
    X, Y = sample
    reference = OperatorKernelRegressor(Gaussian(0.5), lam=1e-2).fit(X, Y).predict(X)
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    for kernel in (
        RBF(1.0),
        lambda A, B: Gaussian(0.5)(A, B),
        Separable(Gaussian(0.5)),
        Gaussian(0.5) * Matrix(np.eye(4)),
    ):
        np.testing.assert_allclose(
            OperatorKernelRegressor(kernel, lam=1e-2).fit(X, Y).predict(X), reference, atol=1e-10
        )
    for kernel in ("precomputed", Precomputed()):
        np.testing.assert_allclose(
            OperatorKernelRegressor(kernel, lam=1e-2).fit(K, Y).predict(K), reference, atol=1e-10
        )
    by_name = OperatorKernelRegressor("rbf", lam=1e-2).fit(X, Y).predict(X)
    np.testing.assert_allclose(by_name, OperatorKernelRegressor(lam=1e-2).fit(X, Y).predict(X), atol=1e-10)


def test_operators_by_every_door(sample):
    X, Y = sample
    root = np.random.default_rng(3).standard_normal((4, 4))
    B = root @ root.T
    matrix = OperatorKernelRegressor(operator=B, lam=1e-2).fit(X, Y).predict(X)
    np.testing.assert_allclose(OperatorKernelRegressor(operator=Matrix(B), lam=1e-2).fit(X, Y).predict(X), matrix)
    # the square loss with K ⊗ B, solved by brute force
    K = Gaussian()(X)
    system = np.kron(K, B) / (1e-2 * 40) + np.eye(160)
    duals = np.linalg.solve(system, Y.ravel())
    np.testing.assert_allclose(matrix, (np.kron(K, B) @ duals / (1e-2 * 40)).reshape(40, 4), atol=1e-8)
    covariance = OperatorKernelRegressor(operator="covariance", lam=1e-2).fit(X, Y).predict(X)
    by_hand = OperatorKernelRegressor(operator=Y.T @ Y / 40, lam=1e-2).fit(X, Y).predict(X)
    np.testing.assert_allclose(covariance, by_hand, atol=1e-10)


def test_grid_search_over_nested_parameters(sample):
    X, Y = sample
    grid = {"loss__kappa": [0.1, 1.0], "lam": [1e-3, 1e-1], "kernel__gamma": [0.1, 1.0]}
    search = GridSearchCV(OperatorKernelRegressor(Gaussian(0.5), loss=Huber()), grid, cv=2).fit(X, Y)
    assert set(search.best_params_) == set(grid)
    assert OperatorKernelRegressor(loss=Huber(2.0)).get_params()["loss__kappa"] == 2.0


def test_not_converged_says_so(sample):
    X, Y = sample
    model = OperatorKernelRegressor(loss=Huber(0.1), lam=1e-6, solver=PGD(max_iter=30))
    with pytest.warns(
        ConvergenceWarning, match=r"PGD stopped after 30 iterations with gap .* > tol 1e-06. Raise max_iter"
    ):
        model.fit(X, Y)
    assert model.status_.startswith("not converged")
    assert model.duality_gap_ > 1e-6
    assert np.all(np.isfinite(model.predict(X)))
    infeasible = OperatorKernelRegressor(loss=Ball(0.1))
    with pytest.warns(ConvergenceWarning, match="may admit no solution"):
        infeasible.fit([[0.0], [0.0]], [0.0, 1.0])
    assert infeasible.primal_objective_ == np.inf


def test_max_iter_overrides_the_solver(sample):
    X, Y = sample
    model = OperatorKernelRegressor(loss=Huber(0.1), lam=1e-6, solver="pgd", max_iter=7)
    with pytest.warns(ConvergenceWarning, match="after 7 iterations"):
        model.fit(X, Y)
    assert model.n_iter_ == 7


def test_same_input_same_bits_and_pickle(sample):
    X, Y = sample
    model = OperatorKernelRegressor(loss=Huber(0.3, p=1.3), lam=1e-3).fit(X, Y)
    again = clone(model).fit(X, Y)
    assert np.array_equal(model.dual_coef_, again.dual_coef_)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_inputs_are_not_modified(sample):
    X, Y = sample
    weights = np.linspace(0, 2, 40)
    copies = X.copy(), Y.copy(), weights.copy()
    OperatorKernelRegressor(loss=Huber(0.3)).fit(X, Y, sample_weight=weights).predict(X)
    for array, copy in zip((X, Y, weights), copies, strict=True):
        assert np.array_equal(array, copy)


def test_huge_tiny_and_degenerate_data(rng):
    X = rng.standard_normal((20, 2))
    for scale in (1e-100, 1e-8, 1e8, 1e100):
        Y = scale * rng.standard_normal((20, 2))
        for loss in (Square(), Huber(0.3 * scale), EpsilonRidge(0.3 * scale)):
            model = OperatorKernelRegressor(loss=loss).fit(X, Y)
            assert model.duality_gap_ <= 1e-6
            assert model.score(X, Y) > 0.3
    for Y in (np.zeros((20, 2)), np.full((20, 2), 3.0)):
        for loss in ("square", "huber", "epsilon_ridge", "epsilon_svr"):
            assert OperatorKernelRegressor(loss=loss).fit(X, Y).duality_gap_ <= 1e-6
    one = OperatorKernelRegressor(loss="huber").fit([[1.0]], [2.0])
    assert one.predict([[1.0]]).shape == (1,)
    same = OperatorKernelRegressor(loss="huber", lam=1e-10).fit(np.ones((10, 2)), rng.standard_normal((10, 3)))
    assert same.duality_gap_ <= 1e-6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0}, r"'lam' parameter of OperatorKernelRegressor must be a float in \(0, inf\). Got 0"),
        ({"lam": -1e-3}, "'lam' parameter"),
        ({"lam": float("nan")}, "'lam' parameter"),
        ({"tol": 0.0}, "'tol' parameter"),
        (
            {"max_iter": 0},
            r"'max_iter' parameter of OperatorKernelRegressor must be an int in \[1, inf\) or None. Got 0",
        ),
        ({"loss": "hubber"}, "Unknown loss 'hubber'. Known names: .*'huber'"),
        ({"loss": Huber(-1.0)}, "'kappa' parameter of Huber"),
        ({"solver": "newtn"}, "Unknown solver 'newtn'"),
        ({"kernel": "gausian"}, "Unknown kernel 'gausian'"),
        ({"kernel": Gaussian(-1.0)}, "'gamma' parameter of Gaussian"),
        ({"operator": np.eye(3)}, "operator must act on the 4 output columns of Y. Got one of shape"),
        ({"operator": np.diag([1.0, 1, 1, -1])}, "positive semidefinite. Its most negative eigenvalue is -1.000e"),
        ({"operator": np.array([1.0, 1, 1, -1])}, "non-negative"),
        ({"kernel": Separable(), "operator": "identity"}, "'operator' parameter must be None"),
        ({"kernel": "precomputed"}, "X must be a square Gram matrix"),
    ],
    ids=str,
)
def test_bad_parameters(sample, parameters, message):
    X, Y = sample
    with pytest.raises(ValueError, match=message):
        OperatorKernelRegressor(**parameters).fit(X, Y)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"loss": 3}, "'loss' parameter must be a Loss instance or a short name. Got 3"),
    ({"solver": Huber()}, "'solver' parameter must be a Solver instance"),
    ({"kernel": 3.0}, "must be a ScalarKernel"),
    ({"kernel": Matrix(np.eye(2))}, "Got the output operator"),
    ({"lam": "a lot"}, "'lam' parameter"),
    ({"lam": [1.0]}, "'lam' parameter"),
], ids=str)  # fmt: skip
def test_bad_types(sample, parameters, message):
    X, Y = sample
    with pytest.raises((TypeError, ValueError), match=message):
        OperatorKernelRegressor(**parameters).fit(X, Y)


def test_bad_data(sample):
    X, Y = sample
    model = OperatorKernelRegressor()
    bad = X.copy()
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"X must be finite\. It contains NaN"):
        model.fit(bad, Y)
    with pytest.raises(ValueError, match="y contains infinity"):
        model.fit(X, np.where(np.arange(160).reshape(40, 4) == 3, np.inf, Y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, Y[:-1])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        model.fit(X, Y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="negative, NaN or infinite"):
        model.fit(X, Y, sample_weight=-np.ones(40))
    with pytest.raises(ValueError, match="at least one positive entry"):
        model.fit(X, Y, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.fit(X, Y).predict(X[:, :2])
    with pytest.raises(ValueError, match="most negative eigenvalue"):
        OperatorKernelRegressor("precomputed").fit(np.diag([1.0, 1.0, -0.5]), Y[:3])
    with pytest.raises(ValueError, match="most negative eigenvalue"):
        OperatorKernelRegressor("sigmoid").fit(10 * X, Y)
    with pytest.raises(ValueError, match="The output Gram matrix must be positive semidefinite"):
        OperatorKernelRegressor(representation=GramFactor()).fit(X[:2], np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(IncompatibleError, match="GramFactor has no raw coordinates"):
        OperatorKernelRegressor(operator=np.eye(40), representation=GramFactor()).fit(X, Y @ Y.T)
    with pytest.raises(
        IncompatibleError, match=r"ClosedForm cannot solve this problem: Huber\(\) is not the square loss"
    ):
        OperatorKernelRegressor(loss="huber", solver="closed_form").fit(X, Y)


FEW, MANY = "approximation=Nystrom(1110)", "approximation=Nystrom(2000)"  # as many as the memory can hold, up to 2000
KRYLOV_NAME, APGD_NAME = "solver='krylov'", "solver='apgd'"


@pytest.mark.parametrize(
    ("model", "free", "ways"),
    [
        (OperatorKernelRegressor(), 0.01, []),
        (OperatorKernelRegressor(solver="douglas_rachford"), 1.5, [FEW, KRYLOV_NAME]),
        (OperatorKernelRegressor(solver="closed_form"), 3, [MANY, KRYLOV_NAME, APGD_NAME]),
        (OperatorKernelRegressor(solver="apgd"), 1.5, [FEW, KRYLOV_NAME]),
        (OperatorKernelRegressor("precomputed"), 3, [APGD_NAME]),
        (LossTrickPredictor("gaussian", "zero_one", surrogate="huber"), 1.5, []),
        (LossTrickPredictor("gaussian", "zero_one", surrogate="huber"), 3, []),
    ],
)
def test_a_fit_that_does_not_fit_in_memory_names_the_ways_that_do(model, free, ways, monkeypatch):
    """Ways that the estimator has and the memory, counted in Gram matrices, can hold."""
    n = 3000
    monkeypatch.setattr(_check, "_free_memory", lambda: int(free * 8 * n**2))
    X = np.ones((n, n if model.kernel == "precomputed" else 1))
    with pytest.raises(
        MemoryError, match=rf"^A fit of {n} samples needs about .* Fit on a part of the sample"
    ) as error:
        model.fit(X, np.arange(n) % 2)
    assert re.findall(r"or use (\S+), which needs", str(error.value)) == ways


def test_the_number_of_outputs_is_named_where_it_counts(sample, monkeypatch):
    X, Y = sample
    monkeypatch.setattr(_check, "_free_memory", lambda: 8 * (7 * 40**2 + 24 * 40))
    with pytest.raises(MemoryError, match="A fit of 40 samples and 4 outputs needs"):
        OperatorKernelRegressor(solver="closed_form").fit(X, Y)


def test_the_memory_of_a_factorisation_counts_before_the_gram_matrix_is_made(sample, monkeypatch):
    """Room for three Gram matrices is not enough for a factorisation; gradient steps do with it."""
    X, Y = sample
    monkeypatch.setattr(_check, "_free_memory", lambda: 3 * 8 * 40**2 + 24 * 8 * Y.size)
    made = []

    def kernel(x, z):
        made.append(1)
        return float(x @ z)

    with pytest.raises(NotFeasibleError, match="A fit of 40 samples"):
        OperatorKernelRegressor(kernel, lam=1.0).fit(X, Y)
    assert not made
    assert OperatorKernelRegressor("linear", lam=1.0, solver="apgd").fit(X, Y).duality_gap_ <= 1e-6


def test_the_memory_of_a_container_counts(tmp_path):
    for name, text in (("max", "5000\n"), ("current", "3000\n"), ("stat", "anon 2000\ninactive_file 500\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    assert _check._free_of_group(str(tmp_path)) == 2500
    (tmp_path / "memory.max").write_text("max\n")
    assert _check._free_of_group(str(tmp_path)) is None


def test_solver_info(sample):
    X, Y = sample
    assert OperatorKernelRegressor().fit(X, Y).solver_info_["solver"] == "ClosedForm"
    for outputs in (Y, Y[:, 0]):
        info = OperatorKernelRegressor(loss="huber", lam=1e-5).fit(X, outputs).solver_info_
        assert info["solver"] == info["stages"][0]["solver"]
        assert info["reason"].startswith("cheapest estimate: ")  # and no eigenbasis on a cold fit
    info = OperatorKernelRegressor(loss="huber", solver="apgd").fit(X, Y).solver_info_
    assert info == {"solver": "APGD", "reason": "chosen by the user", "stages": []}


def test_solver_info_tells_every_stage_of_a_relay(sample):
    """Quantiles are handed from the splitting to Newton's method; nothing is factorised before a cold fit."""
    X, Y = sample
    model = QuantileFunctionRegressor(lam=1e-3).fit(X, Y[:, 0])
    stages = model.solver_info_["stages"]
    assert [stage["solver"] for stage in stages] == ["DouglasRachford", "BoxNewton"]
    assert sum(stage["n_iter"] for stage in stages) == model.n_iter_
    assert stages[0]["reason"].startswith("cheapest estimate: ")
    for before, after in itertools.pairwise(stages):
        assert after["reason"] == f"{before['solver']} handed over at gap {before['gap']:.1e}"
        assert before["gap"] > 1e-6
    assert model.solver_info_["solver"] == "BoxNewton"
    assert min(stage["gap"] for stage in stages) == pytest.approx(model.duality_gap_, rel=1e-6)


def test_html_repr(sample):
    assert "OperatorKernelRegressor" in OperatorKernelRegressor(loss=Huber())._repr_html_()


def test_prediction_in_blocks(sample, monkeypatch):
    from fenchel.model import expansion

    X, Y = sample
    model = OperatorKernelRegressor(loss="huber").fit(X, Y)
    whole = model.predict(X)
    monkeypatch.setattr(expansion, "_BLOCK_BYTES", 8 * 40 * 7)  # seven rows at a time
    np.testing.assert_allclose(model.predict(X), whole, rtol=1e-12)


def test_import_is_quick_and_loads_no_optional_library():
    code = (
        "import sys, fenchel; print([m for m in ('torch', 'dask', 'matplotlib', 'skops', 'click') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert loaded == "[]"


def test_no_warning_on_an_ordinary_fit(sample):
    X, Y = sample
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loss in ("square", "huber", "epsilon_ridge", "epsilon_svr", "norm", "exponential", "norm_log"):
            OperatorKernelRegressor(loss=loss).fit(X, Y)
