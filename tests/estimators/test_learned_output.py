"""The learned output operator: each block against a direct minimisation, the descent, what it finds."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import sqrtm
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import FunctionalRegressorCV, LearnedOutputRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.approximations import Nystrom
from fenchel.estimators.output_blocks import OperatorSet
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, EpsilonSVR, Huber, Square
from tests.oracles.forms import FORMS

LOSSES = [Square(), Huber(0.3), EpsilonRidge(0.1), EpsilonSVR(0.1), Huber(0.2, p=1)]
PLAIN = OperatorKernelRegressor(Gaussian(0.5), lam=0.02)


def sample(n=40, p=4, seed=0, noise=0.4):
    """Return inputs, noisy outputs that are multiples of one function, those multiples, and the noise-free outputs."""
    random = np.random.default_rng(seed)
    X, direction = random.uniform(-2, 2, (n, 2)), np.array([1.0, -1.0, 2.0, 0.5, 1.0, 1.0, -2.0, 1.0])[:p]
    truth = np.sin(X @ [1.0, 1.5])[:, None] * direction
    return X, truth + noise * random.normal(size=truth.shape), direction, truth


@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
def test_the_block_of_the_operator_is_the_minimum(share):
    B = np.random.default_rng(0).normal(size=(4, 3))
    S = B @ B.T
    operator, value = OperatorSet(share).best(S)
    A = cp.Variable((4, 4), PSD=True)
    root = np.linalg.cholesky(S + 1e-12 * np.eye(4))
    expected = cp.Problem(cp.Minimize(cp.matrix_frac(root, A)), [A - share * np.eye(4) >> 0, cp.trace(A) == 4]).solve(
        solver=cp.CLARABEL
    )
    assert_allclose(value, expected, rtol=1e-5)
    assert_allclose(np.trace(np.linalg.solve(operator, S)), value, rtol=1e-9)
    assert_allclose(np.trace(operator), 4.0, rtol=1e-12)
    assert np.linalg.eigvalsh(operator)[0] >= share - 1e-12


def test_the_block_of_the_operator_with_a_rank_is_the_minimum():
    B = np.random.default_rng(1).normal(size=(3, 3))
    S, share = B @ B.T, 0.2

    def objective(u):
        u = u * np.sqrt(3 * (1 - share) / (u @ u))  # of the trace that is left
        return np.trace(np.linalg.solve(share * np.eye(3) + np.outer(u, u), S))

    starts = np.random.default_rng(2).normal(size=(5, 3))
    expected = min(minimize(objective, start).fun for start in starts)
    operator, value = OperatorSet(share, rank=1).best(S)
    assert_allclose(value, expected, rtol=1e-6)
    assert np.sum(np.linalg.eigvalsh(operator) > share + 1e-9) == 1


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_whole_is_the_minimum_over_model_and_operator(loss):
    X, Y, _, _ = sample(8, 3)
    lam, share = 0.05, 0.1
    model = LearnedOutputRegressor(OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=lam), [share], tol=1e-5)
    model.fit(X, Y)
    A, C = cp.Variable((3, 3), PSD=True), cp.Variable((8, 3))
    K = Gaussian(0.5)(X)
    energy = cp.matrix_frac((np.real(sqrtm(K)) @ C).T, A)
    values, constraints = FORMS[type(loss)](loss, Y - K @ C, Y)
    constraints += [A - share * np.eye(3) >> 0, cp.trace(A) == 3]
    objective = cp.sum(values) / 8 + lam / 2 * energy
    expected = cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
    assert_allclose(model.objectives_[-1], expected, rtol=2e-5)
    assert_allclose(model.output_operator_, A.value, rtol=0, atol=0.02)
    assert model.operator_gap_ <= 1e-5


@pytest.mark.parametrize("rank", [None, 1])
@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
def test_every_block_is_certified_and_lowers_the_objective(loss, rank):
    X, Y, _, _ = sample()
    base = OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=0.02)
    model = LearnedOutputRegressor(base, [0.1], rank=rank, tol=1e-4).fit(X, Y)
    assert len(model.objectives_) == 2 * model.n_iter_ - 1 > 2 and len(model.gaps_) == model.n_iter_
    assert np.all(np.diff(model.objectives_) <= 0) and np.all(np.diff(model.objectives_[::2]) < 0)
    assert max(np.abs(model.gaps_)) <= 1e-6
    assert model.operator_gap_ >= 0 and (rank == 1 or model.operator_gap_ <= 1e-4)
    assert model.objectives_[-1] < base.fit(X, Y).primal_objective_
    # the last objective is that of a fit by itself with the operator
    other = base.set_params(operator=model.output_operator_).fit(X, Y)
    assert_allclose(model.objectives_[-1], other.primal_objective_, rtol=2e-6)
    assert_allclose(model.predict(X), other.predict(X), rtol=0, atol=1e-2 if loss.curvature == 0 else 1e-3)
    rest = model.output_operator_ - model.factor_ @ model.factor_.T
    assert_allclose(rest, 0.1 * np.eye(4), atol=1e-8)
    assert rank is None or model.factor_.shape == (4, 1)


def test_a_common_direction_is_found_and_helps():
    X, Y, direction, _ = sample(p=8, noise=0.8)
    default = OperatorKernelRegressorCV(losses=["square"])
    model = LearnedOutputRegressor(default).fit(X, Y)
    assert model.share_ < 1 and model.cv_errors_.shape == (4, 3)
    scaled = direction / np.std(Y, axis=0)  # the operator is that of outputs of unit variance
    main = model.factor_[:, 0] / np.linalg.norm(model.factor_[:, 0])
    assert abs(main @ scaled) > 0.95 * np.linalg.norm(scaled)
    X_new, _, _, truth = sample(300, p=8, seed=1)
    errors = [np.mean((one.predict(X_new) - truth) ** 2) for one in (model, default.fit(X, Y))]
    assert errors[0] < 0.8 * errors[1]


def test_the_identity_is_kept_where_outputs_have_nothing_in_common():
    X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    Y = np.stack([np.sin(2 * X[:, 0]), np.cos(2 * X[:, 1])], axis=1)
    default = OperatorKernelRegressorCV(losses=["square"])
    model, default = LearnedOutputRegressor(default).fit(X, Y), default.fit(X, Y)
    assert model.share_ == 1 and model.factor_.shape == (2, 0) and model.n_iter_ == 1
    assert_allclose(model.output_operator_, np.eye(2), atol=1e-12)
    assert_allclose(model.predict(X), default.predict(X), rtol=1e-12)
    assert LearnedOutputRegressor(PLAIN).fit(X, Y[:, 0]).output_operator_.tolist() == [[1.0]]


def test_gross_errors_and_thin_problems():
    X, Y, _, _ = sample(60)
    Y[::10] += 20.0
    robust, square = (
        LearnedOutputRegressor(OperatorKernelRegressorCV(losses=[loss], cv=3), shares=[0.2], cv=3).fit(X, Y)
        for loss in (Huber("auto"), "square")
    )
    X_new, _, _, truth = sample(200, seed=1)
    assert np.mean((robust.predict(X_new) - truth) ** 2) < 0.3 * np.mean((square.predict(X_new) - truth) ** 2)
    thin = OperatorKernelRegressor(Gaussian(0.5), lam=0.02, approximation=Nystrom(60))
    exact = LearnedOutputRegressor(PLAIN, [0.2]).fit(X, Y)
    assert_allclose(LearnedOutputRegressor(thin, [0.2]).fit(X, Y).output_operator_, exact.output_operator_, atol=1e-2)


def test_other_libraries(xp):
    X, Y, _, _ = sample(30)
    model = LearnedOutputRegressor(PLAIN, [0.1]).fit(xp.asarray(X), xp.asarray(Y))
    assert type(model.predict(xp.asarray(X))) is type(xp.asarray(X))
    expected = LearnedOutputRegressor(PLAIN, [0.1]).fit(X, Y).output_operator_
    assert_allclose(model.output_operator_, expected, rtol=0, atol=1e-8)


def test_arguments():
    X, Y, _, _ = sample(20)
    for parameters, name in [({"shares": [0.0]}, "shares"), ({"shares": []}, "shares"), ({"rank": 0}, "rank")]:
        with pytest.raises(ValueError, match=f"'{name}' parameter of LearnedOutputRegressor"):
            LearnedOutputRegressor(PLAIN, **parameters).fit(X, Y)
    with pytest.raises(IncompatibleError, match="must be an OperatorKernelRegressor"):
        LearnedOutputRegressor(FunctionalRegressorCV(cv=2, losses=["square"])).fit(X, Y)
    with pytest.raises(IncompatibleError, match="scalar kernel and vector outputs"):
        LearnedOutputRegressor(OperatorKernelRegressor(operator="covariance")).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        LearnedOutputRegressor(PLAIN, [0.05], max_iter=2, tol=1e-9).fit(X, Y)


@pytest.mark.apart("estimator", "check")
@parametrize_with_checks([LearnedOutputRegressor(OperatorKernelRegressorCV(losses=["square"], cv=2), [1.0, 0.2], cv=2)])
def test_scikit_learn(estimator, check):
    check(estimator)
