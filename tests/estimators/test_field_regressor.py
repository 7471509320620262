"""Operator learning on grids: bases, other resolutions, gaps, and the regression on coordinates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge

from fenchel import FieldRegressor, OperatorKernelRegressor
from fenchel.datasets import make_burgers, make_darcy
from fenchel.estimators.field_bases import _conditional_means, basis_of, completed, resampled
from fenchel.kernels import Gaussian, Matern
from fenchel.losses import Huber


@pytest.fixture(scope="module")
def darcy():
    return make_darcy(120, n_points=9, refinement=2)


def relative(predicted, truth):
    axes = tuple(range(1, truth.ndim))
    return float(np.mean(np.sqrt(np.sum((predicted - truth) ** 2, axes) / np.sum(truth**2, axes))))


def test_principal_components_on_both_sides_against_scikit_learn(darcy):
    X, Y = (each[:80].reshape(80, -1) for each in (darcy.X, darcy.Y))
    estimator = OperatorKernelRegressor(Gaussian(0.7), lam=1e-5)
    found = FieldRegressor(estimator, "pca", 12, "pca", 7).fit(darcy.X[:80], darcy.Y[:80]).predict(darcy.X[80:])
    inputs, outputs = PCA(12).fit(X), PCA(7).fit(Y)
    unit = np.sqrt(np.mean(np.sum(inputs.transform(X) ** 2, axis=1)))
    ridge = KernelRidge(kernel="rbf", gamma=0.7 / unit**2, alpha=80 * 1e-5)
    ridge.fit(inputs.transform(X), outputs.transform(Y))
    new = darcy.X[80:].reshape(40, -1)
    expected = outputs.inverse_transform(ridge.predict(inputs.transform(new)))
    assert_allclose(found.reshape(40, -1), expected, atol=1e-8 * np.abs(Y).max())


def test_the_default_search_and_robust_losses(darcy):
    plain = FieldRegressor(input_components=0.95, local=False).fit(darcy.X[:90], darcy.Y[:90])
    error = relative(plain.predict(darcy.X[90:]), darcy.Y[90:])
    assert error < 0.5 * relative(darcy.Y[:90].mean(axis=0)[None], darcy.Y[90:])
    assert plain.estimator_.duality_gap_ <= 1e-6
    squares = [np.sum((each - darcy.Y[90:]) ** 2) for each in (plain.predict(darcy.X[90:]), darcy.Y[90:].mean(axis=0))]
    assert plain.score(darcy.X[90:], darcy.Y[90:]) == pytest.approx(1 - squares[0] / squares[1])
    Y = darcy.Y[:90].copy()
    Y[:9] = -20 * Y[9:18]
    fits = {
        loss: FieldRegressor(OperatorKernelRegressor(Matern(2.0, nu=2.5), loss=loss, lam=1e-5), "pca", 0.95).fit(
            darcy.X[:90], Y
        )
        for loss in ("square", Huber(1e-3))
    }
    square, huber = (relative(fit.predict(darcy.X[90:]), darcy.Y[90:]) for fit in fits.values())
    assert huber < 0.3 * square


@pytest.mark.parametrize("kind", ["cosine", "fourier"])
def test_bases_are_orthonormal_and_hold_low_frequencies(kind):
    """The first functions are the constant and the slowest waves along each axis; channels stand apart."""
    rows = np.zeros((2, 7 * 6 * 2))
    whole = basis_of(rows, np.ones(2), (7, 6, 2), kind, None).functions
    assert_allclose(whole.T @ whole, np.eye(84), atol=1e-12)
    count = 3 if kind == "cosine" else 5
    slow = basis_of(rows, np.ones(2), (7, 6, 2), kind, count)
    assert slow.functions.shape == (84, 2 * count)
    if kind == "cosine":
        points = [(np.arange(size) + 0.5) / size for size in (7, 6)]
        waves = [np.cos(np.pi * each) for each in points]
    else:
        points = [2 * np.pi * np.arange(size) / size for size in (7, 6)]
        waves = [np.cos(each) + 2 * np.sin(each) for each in points]
    field = np.stack([1 + waves[0][:, None] - waves[1], 3 - 2 * waves[1] + 0 * waves[0][:, None]], axis=-1)
    row = field.reshape(1, -1)
    assert_allclose(slow.decode(slow.encode(row)), row, atol=1e-12)


def test_other_resolutions():
    """Splines are exact for polynomials, trigonometric interpolation for waves; channels and one point pass."""
    x, y = np.linspace(0, 1, 7), np.linspace(0, 1, 6)
    fine = np.linspace(0, 1, 13)

    def surface(x, y, degree):
        return (1 + x[:, None] ** degree * (2 - y**degree))[None, :, :, None]

    for kind, degree in (("linear", 1), ("cubic", 3)):
        found = resampled(surface(x, y, degree), (13, 4), kind)
        assert_allclose(found, surface(fine, np.linspace(0, 1, 4), degree), atol=1e-12)
    for old, new in ((8, 20), (9, 12)):
        wave = [np.cos(2 * np.pi * 3 * np.arange(m) / m + 0.4)[None, :, None] for m in (old, new)]
        assert_allclose(resampled(wave[0], (new,), "fourier"), wave[1], atol=1e-12)
    assert_allclose(resampled(np.ones((2, 1, 3, 1)), (4, 3), "cubic"), 1)


def test_predictions_at_another_resolution():
    coarse, fine = make_darcy(60, 9, refinement=4), make_darcy(60, 17, refinement=2)
    model = FieldRegressor(OperatorKernelRegressor(Matern(2.0, nu=2.5), lam=1e-8), interpolation="cubic")
    model.fit(coarse.X[:50], coarse.Y[:50])
    at_fine = model.predict(fine.X[50:], shape=(17, 17))  # the coarse points are among the fine ones
    assert_allclose(at_fine[:, ::2, ::2], model.predict(coarse.X[50:]), atol=1e-12)
    assert relative(at_fine, fine.Y[50:]) < 1.2 * relative(model.predict(coarse.X[50:]), coarse.Y[50:])
    with pytest.raises(ValueError, match="interpolation='cubic'"):
        FieldRegressor(model.estimator).fit(coarse.X, coarse.Y).predict(coarse.X, shape=(5, 5))
    with pytest.raises(ValueError, match="each of the 2 axes"):
        model.predict(coarse.X, shape=(5,))
    with pytest.raises(ValueError, match=r"shape \(9, 9\)"):
        model.predict(coarse.X[:, :, :, None])


def test_curves_channels_and_numbers():
    data = make_burgers(30, n_points=32)
    estimator = OperatorKernelRegressor(Matern(2.0, nu=2.5), lam=1e-6)
    curves = FieldRegressor(estimator, "fourier", 9, "fourier", 9, interpolation="fourier").fit(data.X, data.Y)
    assert curves.predict(data.X, shape=(64,)).shape == (30, 64)
    stacked = np.stack([data.X, data.Y], axis=-1)[:, :, None, :]
    assert FieldRegressor(estimator).fit(data.X, stacked).predict(data.X).shape == (30, 32, 1, 2)
    assert FieldRegressor(estimator).fit(stacked, data.Y[:, 0]).predict(stacked).shape == (30,)


def test_gaps_by_the_conditional_mean_of_a_gaussian():
    """One round, against the formula with the covariance matrix of the model."""
    rng = np.random.default_rng(0)
    filled, seen = rng.standard_normal((12, 5)) @ rng.standard_normal((5, 5)), rng.random((12, 5)) < 0.7
    center = filled.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(filled.T, bias=True))
    noise = values[0]  # four of five components
    covariance = (vectors[:, 1:] * values[1:]) @ vectors[:, 1:].T
    found = _conditional_means(filled, seen.astype(float), np.ones(12), 4)
    for row, mask, means in zip(filled, seen, found, strict=True):
        inner = covariance[np.ix_(mask, mask)] + noise * np.eye(mask.sum())
        assert_allclose(means, center + covariance[:, mask] @ np.linalg.solve(inner, (row - center)[mask]), atol=1e-10)


def test_gaps_in_the_outputs(darcy):
    rng = np.random.default_rng(0)
    holes = np.where(rng.random(darcy.Y.shape) < 0.3, np.nan, darcy.Y)
    model = FieldRegressor(OperatorKernelRegressor(Matern(2.0, nu=2.5), lam=1e-8), "pca", 0.95)
    by_means = np.where(np.isnan(holes), np.nanmean(holes[:90], axis=0), holes)
    whole, partial, crude = (
        relative(model.fit(darcy.X[:90], Y[:90]).predict(darcy.X[90:]), darcy.Y[90:])
        for Y in (darcy.Y, holes, by_means)
    )
    assert whole < partial < 1.25 * whole < crude
    low_rank = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 15))
    filled = completed(np.where(rng.random((40, 15)) < 0.3, np.nan, low_rank), np.ones(40))
    assert np.linalg.norm(filled - low_rank) < 0.05 * np.linalg.norm(low_rank)
    with pytest.raises(ValueError, match="1 of 2 are NaN in all samples, the first at place 1"):
        completed(np.array([[2.0, np.nan], [0.0, np.nan]]), np.ones(2))


def test_torch(darcy):
    torch = pytest.importorskip("torch")
    X, Y = darcy.X[:30], np.where(np.random.default_rng(0).random((30, 9, 9)) < 0.1, np.nan, darcy.Y[:30])
    model = FieldRegressor(OperatorKernelRegressor(Matern(2.0, nu=2.5), lam=1e-6), interpolation="cubic")
    expected = model.fit(X, Y).predict(X, shape=(17, 17))
    found = model.fit(torch.as_tensor(X), torch.as_tensor(Y)).predict(torch.as_tensor(X), shape=(17, 17))
    assert isinstance(found, torch.Tensor)
    assert_allclose(found.numpy(), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("parameters", "match"),
    [({"input_basis": "wavelets"}, "input_basis"), ({"output_components": 0}, "output_components"),
     ({"interpolation": "nearest"}, "interpolation")],
)  # fmt: skip
def test_wrong_parameters(parameters, match, darcy):
    with pytest.raises(ValueError, match=match):
        FieldRegressor(**parameters).fit(darcy.X, darcy.Y)
