"""Surfaces of scikit-fda in and out of the regression between fields: values, points, names, and other grids."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fenchel
from fenchel import FieldRegressor, OperatorKernelRegressor

POINTS = np.linspace(2, 3, 6), np.linspace(-1, 1, 5)
NAMES = {"argument_names": ("height", "width"), "coordinate_names": ("warmth",)}


@pytest.fixture(scope="module")
def values():
    X = np.random.default_rng(0).standard_normal((20, 6, 5))
    return X, X + np.roll(X, 1, axis=1) ** 2


def model(**options):
    return FieldRegressor(OperatorKernelRegressor("gaussian", lam=1e-3), **options)


def test_surfaces_in_surfaces_out(values, skfda, tmp_path):
    X, Y = values
    fX, fY = skfda.FDataGrid(X, POINTS), skfda.FDataGrid(Y, POINTS, **NAMES)
    plain, fitted = model().fit(X, Y), model().fit(fX, fY)
    fenchel.save(fitted, tmp_path / "model")
    new = skfda.FDataGrid(X[:3], POINTS, sample_names=("a", "b", "c"))
    for one in (fitted, fenchel.load(tmp_path / "model")):
        found = one.predict(new)
        assert isinstance(found, skfda.FDataGrid)
        assert_array_equal(found.data_matrix[..., 0], plain.predict(X[:3]))
        for own, wanted in zip(found.grid_points, POINTS, strict=True):
            assert_array_equal(own, wanted)
        assert found.argument_names == NAMES["argument_names"]
        assert found.coordinate_names == NAMES["coordinate_names"]
        assert found.sample_names == ("a", "b", "c")
    assert_array_equal(fitted.rollout(new, 2), plain.rollout(X[:3], 2))
    assert fitted.score(fX, fY) == plain.score(X, Y)
    assert_array_equal(fitted.predict(X[:3]).data_matrix[..., 0], plain.predict(X[:3]))
    assert_array_equal(model().fit(fX, Y).predict(new), plain.predict(X[:3]))


def test_the_number_of_variables_is_that_of_the_functions(skfda):
    X = np.random.default_rng(0).standard_normal((12, 7, 3))  # curves of three channels, not images
    curves = skfda.FDataGrid(X, np.arange(7.0))
    fitted = model(scale=True).fit(curves, curves)
    assert_allclose(fitted.predict(curves).data_matrix, model(n_axes=1).fit(X, X).predict(X), rtol=1e-12)
    volumes = skfda.FDataGrid(X.reshape(12, 7, 3, 1), [np.arange(7.0), np.arange(3.0), np.zeros(1)])
    assert model().fit(volumes, volumes).predict(volumes).dim_domain == 3
    with pytest.raises(ValueError, match=r"agree on the number of variables. Got \[1, 2\]"):
        model(n_axes=2).fit(curves, curves)
    with pytest.raises(ValueError, match=r"agree on the number of variables. Got \[1, 3\]"):
        model().fit(curves, volumes)


@pytest.mark.parametrize("interpolation", ["linear", "fourier"])
def test_other_grids_have_their_points(skfda, interpolation):
    """Predictions at other points are those of the interpolated functions there."""
    is_periodic = interpolation == "fourier"
    grids = [[np.linspace(2, 4, size, endpoint=not is_periodic) for size in shape] for shape in ((6, 4), (12, 8))]
    rng = np.random.default_rng(0)

    def surfaces(scales, points):
        first, second = np.meshgrid(*points, indexing="ij")
        wave = np.sin(np.pi * first) + np.cos(np.pi * second) if is_periodic else first - 2 * second
        return skfda.FDataGrid(scales[:, None, None] * wave, points)

    scales = rng.uniform(1, 2, 15)
    X, new = surfaces(scales, grids[0]), surfaces(scales[:2], grids[1])
    fitted = FieldRegressor(OperatorKernelRegressor("linear", lam=1e-10), interpolation=interpolation).fit(X, X)
    found = fitted.predict(new, shape=(12, 8))
    assert_allclose(found.data_matrix, new.data_matrix, atol=1e-6)
    for own, wanted in zip(found.grid_points, grids[1], strict=True):
        assert_allclose(own, wanted)


def test_grids_that_cannot_be(values, skfda):
    X = values[0]
    uneven = np.array([0.0, 1, 2, 3, 4, 6])
    with pytest.raises(ValueError, match=r"equally spaced points. Those of axis 0 are not: steps are from 1 to 2"):
        model().fit(skfda.FDataGrid(X, [uneven, POINTS[1]]), X)
    with pytest.raises(TypeError, match=r"y must hold functions on a grid: an array or an FDataGrid\. Got a "):
        curves = skfda.FDataGrid(X[:, :, 0]).to_basis(skfda.representation.basis.MonomialBasis(n_basis=3))
        model().fit(X[:, :, 0], curves)
    fitted = model().fit(skfda.FDataGrid(X, POINTS), X)
    with pytest.raises(ValueError, match=r"along axis 0 from 2 to 3\. Got 6 points from 0 to 1"):
        fitted.predict(skfda.FDataGrid(X, [POINTS[0] - 2, POINTS[1]]))
    with pytest.raises(ValueError, match=r"functions of 2 variables. Got functions of 1"):
        fitted.predict(skfda.FDataGrid(X[:, :, 0], POINTS[0]))
    with pytest.raises(ValueError, match="X has 11 features, but FieldRegressor is expecting 6"):
        fitted.predict(skfda.FDataGrid(np.repeat(X, 2, axis=1)[:, :11], [np.linspace(2, 3, 11), POINTS[1]]))
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert model().fit(X, skfda.FDataGrid(holes, POINTS)).predict(X[:2]).data_matrix.shape == (2, 6, 5, 1)
