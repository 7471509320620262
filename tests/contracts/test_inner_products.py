"""Functions of inner products with given elements ([Laforgue2020]_, Prop. 1) against cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import fenchel
from fenchel import FunctionalRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV, StructuredPredictor
from fenchel.kernels import Gaussian
from fenchel.losses import Hinge, InnerProduct, MaxMargin, ScalarFunction, SquaredHinge
from fenchel.testing import check_loss

N, P, LAM = 10, 3, 5e-2


class FarFrom(ScalarFunction):
    """A user's function: f(t) = |t - 2|, with f*(s) = 2 s on [-1, 1]."""

    bound = 1.0

    def value(self, t):
        return np.abs(t - 2)

    def conjugate(self, s):
        return np.where(np.abs(s) > 1 + 1e-6, np.inf, 2 * s)

    def prox_conjugate(self, s, step):
        return np.clip(s - 2 * step, -1, 1)


def sample(seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((N, 2)), rng.standard_normal((N, P)), rng.standard_normal((N, P))


def gauss(S, T, gamma=0.5):
    return np.exp(-gamma * np.sum((S[:, None] - T[None]) ** 2, axis=-1))


def optimum(gram, elements, f, weights):
    """The least primal value, with predictions K^(1/2) W: a linear model in the features of the kernel."""
    root = np.linalg.cholesky(gram + 1e-13 * np.eye(len(gram)))
    coef = cp.Variable((len(gram), elements.shape[1]))
    products = cp.sum(cp.multiply(root @ coef, elements), axis=1)
    data = cp.sum(cp.multiply(weights, f(products))) / np.sum(weights)
    return cp.Problem(cp.Minimize(data + LAM / 2 * cp.sum_squares(coef))).solve(solver=cp.CLARABEL)


FUNCTIONS = [
    (Hinge(), lambda t: cp.pos(1 - t)),
    (SquaredHinge(), lambda t: cp.square(cp.pos(1 - t)) / 2),
    (FarFrom(), lambda t: cp.abs(t - 2)),
]


@pytest.mark.parametrize(("f", "form"), FUNCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_any_function_and_any_elements(f, form, weighted):
    X, Y, Z = sample()
    weights = np.arange(1.0, N + 1) if weighted else np.ones(N)
    model = OperatorKernelRegressor(Gaussian(0.5), loss=InnerProduct(f, Z), lam=LAM, tol=1e-9)
    model.fit(X, Y, sample_weight=weights)
    assert model.duality_gap_ <= 1e-9
    assert_allclose(model.primal_objective_, optimum(gauss(X, X), Z, form, weights), rtol=1e-5)
    along = np.sum(model.dual_coef_ * Z, axis=1, keepdims=True) / np.sum(Z**2, axis=1, keepdims=True) * Z
    assert_allclose(model.dual_coef_, along, atol=1e-9)


@pytest.mark.parametrize("f", [Hinge(), SquaredHinge(), FarFrom()])
def test_contract(f):
    check_loss(InnerProduct(f))
    check_loss(InnerProduct(f, np.tanh))


def test_conjugates_are_suprema():
    t = np.linspace(-30, 30, 600001)[:, None]
    for f, _ in FUNCTIONS:
        values = f.value(t)
        for s in (-0.9, -0.4, 0.0):
            assert_allclose(f.conjugate(np.array([[s]]))[0, 0], np.max(s * t - values), atol=1e-7)


def test_maximum_margin_is_the_hinge_of_the_product_with_the_target():
    X, Y, _ = sample()
    losses = [MaxMargin(), InnerProduct()]
    models = [OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=LAM).fit(X, Y) for loss in losses]
    assert np.array_equal(models[0].predict(X), models[1].predict(X))
    labels = np.eye(P)[np.argmax(Y, axis=1)]
    decoded = [StructuredPredictor(loss=loss, lam=LAM).fit(X, labels).predict(X) for loss in losses]
    assert np.array_equal(*decoded)


def test_curves_have_elements_at_their_points():
    """Products are integrals: the elements are given as values, like the curves."""
    X, _, _ = sample()
    grid = np.array([0.0, 0.2, 0.5, 0.6, 1.0])
    weights, Z = np.trapezoid(np.eye(5), grid), np.cos(3 * grid + X[:, :1])
    model = FunctionalRegressor(
        Gaussian(0.5), Gaussian(2.0), InnerProduct(SquaredHinge(), Z), lam=LAM, center=False, tol=1e-9
    ).fit(X, np.sin(grid + X[:, 1:]), grid=grid)
    products = np.sum(weights * model.predict(X) * Z, axis=1)
    root = np.sqrt(weights)
    operator = root[:, None] * gauss(grid[:, None], grid[:, None], 2.0) * root
    gram = np.einsum("ij,is,st,jt->ij", gauss(X, X), Z * root, operator, Z * root)
    factor, coef = np.linalg.cholesky(gram + 1e-12 * np.eye(N)), cp.Variable(N)
    loss = cp.sum_squares(cp.pos(1 - factor @ coef)) / (2 * N) + LAM / 2 * cp.sum_squares(coef)
    assert_allclose(model.primal_objective_, cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL), rtol=1e-6)
    assert_allclose(products, factor @ coef.value, atol=1e-4)


def test_a_function_of_the_outputs():
    X, Y, _ = sample()
    turn = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    by_function = InnerProduct(SquaredHinge(), lambda targets: targets @ turn)
    models = [
        OperatorKernelRegressor(Gaussian(0.5), loss=loss, lam=LAM).fit(X, Y)
        for loss in (by_function, InnerProduct(SquaredHinge(), Y @ turn))
    ]
    assert np.array_equal(models[0].predict(X), models[1].predict(X))


def test_folds_take_their_own_elements():
    """Held-out predictions are those of a fit on the other samples and their elements."""
    X, Y, Z = sample()
    train = np.arange(4, N)
    loss = InnerProduct(SquaredHinge(), Z)
    search = OperatorKernelRegressorCV(
        Gaussian(0.5), losses=[loss], lams=[LAM], cv=[(train, np.arange(4))], center=False, scale=False, tol=1e-9
    ).fit(X, Y)
    part = OperatorKernelRegressor(Gaussian(0.5), loss=InnerProduct(SquaredHinge(), Z[train]), lam=LAM, tol=1e-9)
    errors = np.sum((Y[:4] - part.fit(X[train], Y[train]).predict(X[:4])) ** 2, axis=1)
    assert_allclose(search.fold_errors_[0, 0, 0], np.mean(errors), rtol=1e-5)


def test_saved_and_cloned(tmp_path):
    X, Y, Z = sample()
    model = OperatorKernelRegressor(Gaussian(0.5), loss=InnerProduct(SquaredHinge(), Z), lam=LAM).fit(X, Y)
    fenchel.save(model, tmp_path / "model.fenchel")
    assert np.array_equal(fenchel.load(tmp_path / "model.fenchel").predict(X), model.predict(X))
    assert np.array_equal(clone(model).fit(X, Y).predict(X), model.predict(X))


def test_an_element_of_zero_has_a_constant_loss():
    X, Y, Z = sample()
    Z[2] = 0
    model = OperatorKernelRegressor(Gaussian(0.5), loss=InnerProduct(SquaredHinge(), Z), lam=LAM, tol=1e-9).fit(X, Y)
    rest = np.arange(N) != 2
    alone = OperatorKernelRegressor(
        Gaussian(0.5), loss=InnerProduct(SquaredHinge(), Z[rest]), lam=LAM * N / (N - 1), tol=1e-9
    ).fit(X[rest], Y[rest])
    assert_allclose(model.predict(X), alone.predict(X), atol=1e-5)
    assert_allclose(model.primal_objective_ * N, alone.primal_objective_ * (N - 1) + 0.5, rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (
            InnerProduct("hinge"),
            TypeError,
            "'f' parameter of InnerProduct must be a ScalarFunction",
        ),
        (
            InnerProduct(None, np.ones((N, 2))),
            ValueError,
            r"the 10 training .* 3 columns. Got shape \(10, 2\)",
        ),
        (InnerProduct(None, np.full((N, P), np.nan)), ValueError, "must be finite"),
    ],
)
def test_errors(loss, error, message):
    X, Y, _ = sample()
    with pytest.raises(error, match=message):
        OperatorKernelRegressor(loss=loss).fit(X, Y)
