"""FunctionalRegressor on every form that inputs and outputs come in, and what it says of those that it cannot use."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fenchel import (
    ConformalRegressor,
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
)
from fenchel.datasets import as_curves, make_functional
from fenchel.estimators import functional_cv
from fenchel.exceptions import DataWarning, IncompatibleError, SlowFitWarning
from fenchel.kernels import FunctionalGaussian, Gaussian, IntegralLaplacian, Laplacian, Matrix, Part
from fenchel.losses import EpsilonRidge, Huber
from fenchel.representations import Eigen
from fenchel.resample import surface as surfaces
from tests.estimators.curves import GRID, blanked

SAME = 1e-10  # predictions of one fit by two ways


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((12, 3))
    return X, np.sin(X @ rng.standard_normal((3, len(GRID)))) + 0.1 * rng.standard_normal((12, len(GRID)))


def model(**settings):
    return FunctionalRegressor(**{"kernel": Gaussian(0.5), "loss": Huber(0.2, p=1), **settings})


def pairs(Y, grid=GRID):
    """Ragged data: of each curve what was seen, in an order of its own."""
    seen = [np.flatnonzero(~np.isnan(row))[:: (-1) ** i] for i, row in enumerate(Y)]
    return [(grid[at], row[at]) for row, at in zip(Y, seen, strict=True)]


class TestOutputs:
    def test_missing_values_ragged_lists_and_irregular_functions(self, sample, skfda):
        X, Y = sample
        Y = blanked(Y)
        wanted = model().fit(X, Y, GRID).predict(X)
        for grid in (None, GRID):  # the union of the points is the grid
            assert_allclose(model().fit(X, pairs(Y), grid).predict(X), wanted, rtol=0, atol=SAME)
        starts = np.cumsum([0, *(np.sum(~np.isnan(row)) for row in Y)])[:-1]
        row, column = np.nonzero(~np.isnan(Y))
        irregular = skfda.FDataIrregular(starts, GRID[column], Y[row, column])
        found = model().fit(X, irregular).predict(X)
        assert isinstance(found, skfda.FDataGrid)
        assert_allclose(found.data_matrix[:, :, 0], wanted, rtol=0, atol=SAME)
        assert_array_equal(found.grid_points[0], GRID)

    def test_functions_in_functions_out(self, sample, skfda):
        X, Y = sample
        fitted = model().fit(X, skfda.FDataGrid(Y, GRID))
        plain = model().fit(X, Y, GRID)
        found = fitted.predict(X)
        assert isinstance(found, skfda.FDataGrid)
        assert_allclose(found.data_matrix[:, :, 0], plain.predict(X), rtol=0, atol=SAME)
        points = np.array([0.1, 0.5])
        assert_allclose(fitted.predict(X, points).data_matrix[:, :, 0], plain.predict(X, points), rtol=0, atol=SAME)
        assert fitted.score(X, skfda.FDataGrid(Y, GRID)) == pytest.approx(plain.score(X, Y, grid=GRID), rel=1e-10)

    def test_functions_as_inputs(self, skfda):
        """Kernels of curves take the grid of the functions."""
        data = make_functional(20, 15, random_state=0)
        t = np.linspace(0, 1, 15) ** 2
        for kernel in (FunctionalGaussian(2.0), IntegralLaplacian(2.0) + FunctionalGaussian(0.1)):
            curves = FunctionalRegressor(kernel).fit(skfda.FDataGrid(data.X, t), data.Y)
            explicit = FunctionalRegressor(
                FunctionalGaussian(2.0, t) if isinstance(kernel, FunctionalGaussian)
                else IntegralLaplacian(2.0, t) + FunctionalGaussian(0.1, t)
            ).fit(data.X, data.Y)  # fmt: skip
            found = curves.predict(skfda.FDataGrid(data.X[:4], t))
            assert_allclose(found, explicit.predict(data.X[:4]), rtol=0, atol=SAME)
            plain = FunctionalRegressor(kernel).fit(data.X, data.Y).predict(data.X[:4])
            assert np.max(np.abs(found - plain)) > 1e-4  # the uneven grid does count
        assert kernel.left.grid is None  # the user's kernel is left as it was

    def test_new_inputs_on_another_grid(self, skfda):
        """They are interpolated at the points of the training inputs if they are known there."""
        data = make_functional(20, 15, random_state=0)
        fitted = FunctionalRegressor(lam=1e-2).fit(skfda.FDataGrid(data.X, data.t), data.Y)
        t = np.linspace(-0.1, 1.1, 9)
        coarse = np.stack([np.interp(t, data.t, row) for row in data.X[:4]])
        wanted = fitted.predict(np.stack([np.interp(data.t, t, row) for row in coarse]))
        assert_allclose(fitted.predict(skfda.FDataGrid(coarse, t)), wanted, rtol=0, atol=SAME)
        with pytest.raises(ValueError, match=r"X must be defined on \[0, 1\].*Got functions on \[0\.2, 1\]. Observe"):
            fitted.predict(skfda.FDataGrid(coarse, np.linspace(0.2, 1, 9)))

    def test_names_of_functions(self, sample, skfda):
        X, Y = sample
        names = {"argument_names": ("hour",), "coordinate_names": ("flow",)}
        inputs = skfda.FDataGrid(X, sample_names=[f"day {i}" for i in range(12)], coordinate_names=("rain",))
        fitted = model(kernel=FunctionalGaussian(1.0)).fit(inputs, skfda.FDataGrid(Y, GRID, **names))
        found = fitted.predict(inputs[:2])
        assert {name: getattr(found, name) for name in names} == names
        assert found.sample_names == ("day 0", "day 1")

    def test_functions_in_a_basis(self, sample, skfda):
        X, Y = sample
        smooth = skfda.FDataGrid(Y, GRID).to_basis(skfda.representation.basis.FourierBasis(n_basis=3))
        points = np.linspace(GRID[0], GRID[-1], 101)
        found = model(loss="square").fit(X, smooth).predict(X)
        wanted = model(loss="square").fit(X, smooth(points)[:, :, 0], points).predict(X)
        assert_allclose(found.data_matrix[:, :, 0], wanted, rtol=0, atol=SAME)

    def test_data_frames(self, sample):
        X, Y = sample
        wanted = model().fit(X, Y, GRID).predict(X)
        frame = pd.DataFrame(Y, columns=[str(t) for t in GRID])
        table = pd.DataFrame(X, columns=["a", "b", "c"])
        fitted = model().fit(table, frame)
        assert_array_equal(fitted.grid_, GRID)
        assert_allclose(fitted.predict(table), wanted, rtol=0, atol=SAME)
        assert_array_equal(fitted.feature_names_in_, ["a", "b", "c"])
        named = model().fit(X, pd.DataFrame(Y).add_prefix("at_"))  # no numbers: equal steps of [0, 1]
        assert_array_equal(named.grid_, np.linspace(0, 1, len(GRID)))

    def test_lists(self, sample):
        X, Y = sample
        assert_array_equal(model().fit(X.tolist(), Y.tolist()).predict(X.tolist()), model().fit(X, Y).predict(X))

    def test_several_channels(self, rng):
        """Two channels that are not coupled are two problems of the square loss."""
        X, Y = rng.standard_normal((10, 2)), rng.standard_normal((10, len(GRID), 2))
        kernels = [Laplacian(2.0), Gaussian(3.0)]
        both = model(loss="square", output_kernel=kernels, tol=1e-12).fit(X, Y, GRID)
        points = np.array([0.1, 0.9, 1.25])
        assert both.predict(X).shape == Y.shape
        assert both.predict(X, points).shape == (10, 3, 2)
        for c, kernel in enumerate(kernels):
            one = model(loss="square", output_kernel=kernel, tol=1e-12).fit(X, Y[:, :, c], GRID)
            assert_allclose(both.predict(X, points)[:, :, c], one.predict(X, points), rtol=0, atol=1e-8)

    def test_ragged_channels(self, rng):
        X, Y = rng.standard_normal((10, 2)), rng.standard_normal((10, len(GRID), 2))
        Y[2, 3:6], Y[4, 1] = np.nan, np.nan
        ragged = [(GRID[~np.isnan(row[:, 0])], row[~np.isnan(row[:, 0])]) for row in Y]
        assert_allclose(model().fit(X, ragged).predict(X), model().fit(X, Y, GRID).predict(X), rtol=0, atol=SAME)

    def test_one_curve_one_point(self, sample):
        X, Y = sample
        assert_allclose(FunctionalRegressor().fit(X[:1], Y[:1]).predict(X), np.tile(Y[:1], (12, 1)), rtol=1e-12)
        one = model(loss="square", center=False, output_kernel=Laplacian(1.0)).fit(X, Y[:, :1], [0.3])
        K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
        wanted = K @ np.linalg.solve(K + 12e-3 * np.eye(12), Y[:, 0])  # kernel ridge
        assert_allclose(one.predict(X)[:, 0], wanted, rtol=0, atol=1e-9)

    def test_all_the_same(self, sample):
        X, _ = sample
        for loss in ("square", "huber", "epsilon_ridge", "epsilon_svr"):
            fitted = model(loss=loss).fit(X, np.full((12, 5), 3.0))
            assert fitted.duality_gap_ <= 1e-6
            assert_allclose(fitted.predict(X), 3.0, rtol=1e-12)


class TestInputs:
    def test_channels(self, rng):
        X, Y = rng.standard_normal((12, 9, 2)), rng.standard_normal((12, len(GRID)))
        kernel = IntegralLaplacian(0.5)
        fitted = model(kernel=kernel).fit(X, Y)
        by_gram = model(kernel="precomputed").fit(kernel(X), Y)
        assert_allclose(fitted.predict(X[:3]), by_gram.predict(kernel(X[:3], X)), rtol=0, atol=SAME)
        with pytest.raises(ValueError, match=r"rows of shape \(9, 3\), but the model was fitted with \(9, 2\)"):
            fitted.predict(rng.standard_normal((3, 9, 3)))
        with pytest.raises(ValueError, match=r"X must have shape \(n, d\) or \(n, m, c\)\. Got \(12, 9, 2, 1\)"):
            model(kernel=kernel).fit(X[..., None], Y)

    def test_gram_matrix(self, sample):
        X, Y = sample
        K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
        wanted = model(loss=EpsilonRidge(0.7)).fit(X, Y).predict(X[:5])
        fitted = model(kernel="precomputed", loss=EpsilonRidge(0.7)).fit(K, Y)
        assert 0 < len(fitted.support_) < 12
        assert_allclose(fitted.predict(K[:5]), wanted, rtol=0, atol=SAME)
        weights = np.arange(12) % 3
        both = [
            model(kernel=kernel, tol=1e-10).fit(inputs, Y, sample_weight=weights).predict(inputs)
            for kernel, inputs in ((Gaussian(0.5), X), ("precomputed", K))
        ]
        assert_allclose(*both, rtol=0, atol=1e-6)
        with pytest.raises(ValueError, match="X must be a square Gram matrix with a precomputed kernel"):
            model(kernel="precomputed").fit(X, Y)
        with pytest.raises(ValueError, match="most negative eigenvalue"):
            model(kernel="precomputed").fit(-K, Y)

    def test_parts_of_a_table(self, sample, rng):
        """A curve in eight columns and two numbers, by the names of a DataFrame."""
        _, Y = sample
        curves, numbers = rng.standard_normal((12, 8)), rng.standard_normal((12, 2))
        names = [f"c{j}" for j in range(8)]
        frame = pd.concat([pd.DataFrame(numbers, columns=["u", "v"]), pd.DataFrame(curves, columns=names)], axis=1)
        kernel = Part(FunctionalGaussian(0.5), names) * Part(Gaussian(0.3), ["v", "u"])
        fitted = model(kernel=kernel).fit(frame, Y)
        K = np.exp(-0.5 * np.mean((curves[:, None] - curves[None]) ** 2, axis=2))
        K *= np.exp(-0.3 * np.sum((numbers[:, None] - numbers[None]) ** 2, axis=2))
        wanted = model(kernel="precomputed").fit(K, Y).predict(K[:4])
        assert_allclose(fitted.predict(frame.iloc[:4]), wanted, rtol=0, atol=SAME)
        with pytest.raises(ValueError, match="The feature names should match"):
            fitted.predict(frame[frame.columns[::-1]])
        with pytest.raises(ValueError, match="must hold names that occur once in X"):
            model(kernel=Part(Gaussian(), ["w"])).fit(frame, Y)


class TestScalarOutputs:
    """With a given kernel functions are vectors: the values at the points of the training functions."""

    def test_functions_are_vectors(self, rng, skfda):
        X, y = rng.standard_normal((30, len(GRID))).cumsum(axis=1), rng.standard_normal(30)
        functions = skfda.FDataGrid(X, GRID)
        for estimator in (
            OperatorKernelRegressor(FunctionalGaussian("median"), lam=1e-2),
            OperatorKernelRegressorCV(FunctionalGaussian("median")),
            QuantileFunctionRegressor(lam=1e-1, tol=1e-3),
            ConformalRegressor(OperatorKernelRegressor(lam=1e-2), cv=3),
        ):
            wanted = clone(estimator).fit(X, y).predict(X[:5])
            fitted = clone(estimator).fit(functions, y)
            assert_allclose(fitted.predict(functions[:5]), wanted, rtol=1e-9, atol=SAME)

    def test_other_points_and_bases(self, rng, skfda):
        X, y = rng.standard_normal((20, len(GRID))), rng.standard_normal(20)
        fitted = OperatorKernelRegressor(lam=1e-2).fit(skfda.FDataGrid(X, GRID), y)
        middle = (GRID[1:] + GRID[:-1]) / 2
        points = np.sort(np.concatenate([GRID, middle]))
        finer = skfda.FDataGrid(skfda.FDataGrid(X, GRID)(points)[..., 0], points)
        assert_allclose(fitted.predict(finer), fitted.predict(X), rtol=0, atol=SAME)
        basis = skfda.FDataGrid(X, GRID).to_basis(skfda.representation.basis.BSplineBasis(n_basis=4))
        assert OperatorKernelRegressor(lam=1e-2).fit(basis, y).predict(basis).shape == (20,)

    def test_points_of_their_own(self, rng, skfda):
        points = rng.uniform(size=(8, 3))
        scattered = skfda.FDataIrregular(3 * np.arange(8), points.reshape(-1, 1), rng.standard_normal((24, 1)))
        y = rng.standard_normal((8, 4))
        for inputs in (scattered, [(at, at**2) for at in points]):
            assert FunctionalRegressor().fit(inputs, y).predict(inputs).shape == (8, 4)
            with pytest.raises(ValueError, match=r"Inputs in parts need kernel='auto'"):
                OperatorKernelRegressor().fit(inputs, y)


class TestTorch:
    @pytest.mark.parametrize("loss", ["square", Huber(0.2, p=1), Huber(0.2), Huber(0.2, p=1.5)], ids=repr)
    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    def test_in_and_out(self, sample, torch, loss, gaps):
        X, Y = sample
        Y = blanked(Y) if gaps else Y
        fitted = model(loss=loss).fit(torch.asarray(X), torch.asarray(Y), torch.asarray(GRID))
        plain = model(loss=loss).fit(X, Y, GRID)
        points = np.array([0.1, 0.7])
        for grid in (None, points, torch.asarray(points)):
            found = fitted.predict(torch.asarray(X), grid)
            assert isinstance(found, torch.Tensor)
            assert found.dtype == torch.float64
            assert_allclose(found.numpy(), plain.predict(X, None if grid is None else points), rtol=0, atol=1e-8)
        assert isinstance(fitted.dual_coef_, torch.Tensor)
        assert fitted.duality_gap_ <= 1e-6
        assert fitted.score(torch.asarray(X), torch.asarray(Y), grid=GRID) == pytest.approx(
            plain.score(X, Y, grid=GRID), rel=1e-8
        )

    @pytest.mark.parametrize("representation", ["spline", "eigen", "fourier"])
    def test_single_precision_and_weights(self, torch, representation):
        data = make_functional(15, 20, random_state=0)
        X, Y = (torch.asarray(array.astype(np.float32)) for array in (data.X, data.Y))
        weights = torch.asarray([0.0, 2.0, *[1.0] * 13])
        fitted = FunctionalRegressor(representation=representation, lam=1e-2, tol=1e-4).fit(X, Y, sample_weight=weights)
        found = fitted.predict(X)
        assert found.dtype == torch.float32
        plain = FunctionalRegressor(representation=representation, lam=1e-2, tol=1e-4)
        wanted = plain.fit(data.X, data.Y, sample_weight=weights.numpy()).predict(data.X)
        assert_allclose(found.numpy(), wanted, rtol=0, atol=1e-2 * np.max(np.abs(data.Y)))

    def test_channels_and_scores(self, torch, rng):
        X, Y = rng.standard_normal((10, 2)), rng.standard_normal((10, len(GRID), 2))
        Y[3, 2, 1] = np.nan
        fitted = model().fit(torch.asarray(X), torch.asarray(Y))
        assert tuple(fitted.predict(torch.asarray(X)).shape) == Y.shape
        assert_array_equal(np.isnan(fitted.point_outlier_score_.numpy()), np.isnan(Y))
        assert_allclose(fitted.outlier_score_.numpy(), model().fit(X, Y).outlier_score_, rtol=0, atol=1e-4)

    def test_without_support(self, sample, torch):
        X, Y = sample
        fitted = model(loss=EpsilonRidge(100.0)).fit(torch.asarray(X), torch.asarray(Y))
        assert_allclose(fitted.predict(torch.asarray(X)).numpy(), np.tile(Y.mean(axis=0), (12, 1)), rtol=1e-12)

    def test_nan_in_the_inputs(self, sample, torch):
        X, Y = sample
        X = torch.asarray(np.where(np.arange(36).reshape(12, 3) == 4, np.nan, X))
        with pytest.raises(ValueError, match="NaN"):
            model().fit(X, Y)

    def test_integers(self, sample, torch):
        _, Y = sample
        X = np.arange(12)[:, None]
        found = model().fit(torch.asarray(X), torch.asarray(Y)).predict(torch.asarray(X))
        assert_allclose(found.numpy(), model().fit(X, Y).predict(X), rtol=0, atol=1e-8)

    def test_vectors_of_inputs(self, sample, torch):
        with pytest.raises(ValueError, match="X must"):
            model().fit(torch.ones(12), sample[1])

    @pytest.mark.parametrize("first", ["numpy", "torch"])
    def test_two_libraries(self, sample, torch, first):
        """Inputs of predict are brought to the library of the model, or refused with a message; no other error."""
        X, Y = sample
        known, other = (X, torch.asarray(X)) if first == "numpy" else (torch.asarray(X), X)
        fitted = model().fit(known, Y)
        try:
            found = fitted.predict(other)
        except ValueError as error:
            assert "library" in str(error)
        else:
            assert_allclose(np.asarray(found), np.asarray(fitted.predict(known)), rtol=0, atol=SAME)

    def test_names_are_forgotten(self, sample, torch):
        X, Y = sample
        fitted = model().fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
        assert not hasattr(fitted.fit(torch.asarray(X), Y), "feature_names_in_")


class TestErrors:
    @pytest.mark.parametrize("loss", [Huber(p=1), EpsilonRidge(p=np.inf)], ids=repr)
    @pytest.mark.parametrize("representation", ["eigen", "fourier", Eigen(2)], ids=str)
    def test_point_by_point_needs_points(self, sample, loss, representation):
        X, Y = sample
        with pytest.raises(
            IncompatibleError, match=r"needs point values, which .* does not provide.*representation='spline'"
        ):
            FunctionalRegressor(loss=loss, representation=representation).fit(X, Y)

    @pytest.mark.parametrize("representation", ["eigen", "fourier"])
    def test_gaps_need_the_spline(self, sample, representation):
        X, Y = sample
        with pytest.raises(IncompatibleError, match=r"observed at every point.*Use representation='spline'"):
            FunctionalRegressor(representation=representation, n_components=3).fit(X, blanked(Y))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"lam": 0.0}, r"'lam' parameter of FunctionalRegressor must be a float in \(0, inf\)\. Got 0\.0"),
            ({"tol": -1.0}, "'tol' parameter of FunctionalRegressor"),
            ({"loss": "hubber"}, "Unknown loss 'hubber'"),
            ({"solver": "newtn"}, "Unknown solver 'newtn'"),
            ({"kernel": "gausian"}, "Unknown kernel 'gausian'"),
            ({"output_kernel": "laplacien"}, "Unknown kernel 'laplacien'"),
            ({"output_kernel": Gaussian(-1.0)}, "'gamma' parameter of Gaussian"),
            ({"representation": "wavelet"}, "Unknown representation 'wavelet'. Known names: .*'spline'"),
            (
                {"center": "mean"},
                r"'center' parameter of FunctionalRegressor must be one of True, False, 'median'\. Got",
            ),
            ({"center": None}, "'center' parameter"),
            ({"center": 1}, "'center' parameter"),
            ({"n_components": 99, "representation": "eigen"}, "n_components must be an int of at most 8"),
            ({"n_components": 0, "representation": "fourier"}, "'n_components' parameter of Fourier"),
            ({"n_components": 9, "representation": "fourier"}, "9 functions .* must be linearly independent"),
            ({"channels": np.eye(2)}, r"'channels' .* must have shape \(1, 1\)\. Got \(2, 2\)"),
            ({"output_kernel": ["laplacian", "laplacian"]}, "one for each of the 1 channels"),
            ({"kernel": "precomputed"}, "X must be a square Gram matrix"),
        ],
        ids=str,
    )
    def test_bad_parameters(self, sample, parameters, message):
        X, Y = sample
        with pytest.raises(ValueError, match=message):
            FunctionalRegressor(**parameters).fit(X, Y)

    def test_components_of_a_spline(self, sample):
        """A number set on any estimator that has ``n_components`` stops no fit; it is said that nothing comes of it."""
        X, Y = sample
        plain = FunctionalRegressor().fit(X, Y)
        with pytest.warns(DataWarning, match="n_components has no effect on Spline.*use representation='eigen'"):
            numbered = FunctionalRegressor(n_components=3).fit(X, Y)
        np.testing.assert_array_equal(numbered.predict(X), plain.predict(X))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"kernel": Matrix(np.eye(2))}, "must be a ScalarKernel"),
            ({"kernel": 3.0}, "must be a ScalarKernel"),
            ({"output_kernel": 3.0}, "must be a ScalarKernel"),
            ({"representation": "euclidean"}, "'representation' parameter must be a CurveRepresentation instance or a"),
            ({"representation": 3}, "'representation' parameter must be a CurveRepresentation"),
            ({"loss": 3}, "'loss' parameter must be a Loss instance"),
        ],
        ids=["operator", "number", "output", "vectors", "representation", "loss"],
    )
    def test_bad_types(self, sample, parameters, message):
        X, Y = sample
        with pytest.raises(TypeError, match=message):
            FunctionalRegressor(**parameters).fit(X, Y)

    def test_grids(self, sample):
        X, Y = sample
        with pytest.raises(ValueError, match=r"grid must be increasing\. Got 0\.0 after 0\.05 at position 1"):
            model().fit(X, Y, GRID[[1, 0, *range(2, 8)]])
        with pytest.raises(ValueError, match=r"grid must be increasing.*after 0\.2"):
            model().fit(X, Y, GRID[[0, 1, 2, 2, 4, 5, 6, 7]])
        with pytest.raises(
            ValueError, match=r"grid must be of shape \(8,\), one point for each column.*Got shape \(7,\)"
        ):
            model().fit(X, Y, GRID[:-1])
        with pytest.raises(ValueError, match="grid must hold finite points"):
            model().fit(X, Y, np.where(GRID > 1.2, np.inf, GRID))
        fitted = model().fit(X, Y, GRID)
        with pytest.raises(ValueError, match=r"grid must hold increasing points\. Got 0\.1 at index 1 after 0\.3"):
            fitted.predict(X, [0.3, 0.1])
        with pytest.raises(ValueError, match="finite points"):
            fitted.predict(X, [0.3, np.nan])
        with pytest.raises(ValueError, match="at least one point"):
            fitted.predict(X, [])
        with pytest.raises(ValueError, match="must be a vector"):
            fitted.predict(X, 0.5)

    def test_curves(self, sample):
        X, Y = sample
        with pytest.raises(ValueError, match=r"X and y must have the same number of samples\. Got 12 and 11"):
            model().fit(X, Y[:-1])
        with pytest.raises(ValueError, match=r"y must hold finite values, or NaN.*Curve 4 contains infinity"):
            model().fit(X, np.where(np.arange(12)[:, None] == 4, np.inf, Y))
        with pytest.raises(ValueError, match=r"Every curve of y must be observed somewhere\. Curve 4 has no"):
            model().fit(X, np.where(np.arange(12)[:, None] == 4, np.nan, Y))
        with pytest.raises(ValueError, match=r"y must be an array of shape \(n, m\).*Got an array of shape \(12,\)"):
            model().fit(X, Y[:, 0])
        with pytest.raises(ValueError, match=r"\(12, 8, 1, 1\)"):
            model().fit(X, Y[:, :, None, None])
        with pytest.raises(ValueError, match=r"Curve 3 has points of shape \(2,\) and values of shape \(3,\)"):
            model().fit(X, [([0.0, 1.0], [1.0, 2.0, 3.0] if i == 3 else [1.0, 2.0]) for i in range(12)])
        with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
            model().fit(X, None)
        with pytest.raises((TypeError, ValueError), match="real numbers"):
            model().fit(X, np.array([["a"] * 3] * 12))

    def test_inputs(self, sample):
        X, Y = sample
        with pytest.raises(ValueError, match=r"X must be finite\. It contains NaN"):
            model().fit(np.where(np.arange(36).reshape(12, 3) == 4, np.nan, X), Y)
        with pytest.raises(ValueError, match=r"X must be finite\. It contains infinity"):
            model().fit(np.where(np.arange(36).reshape(12, 3) == 4, np.inf, X), Y)
        with pytest.raises(ValueError, match="expecting 3 features"):
            model().fit(X, Y).predict(X[:, :2])
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            model().fit(X[:0], Y[:0])
        with pytest.raises(ValueError, match="must have shape"):
            model().fit(X, Y, sample_weight=np.ones(5))
        with pytest.raises(ValueError, match="negative, NaN or infinite"):
            model().fit(X, Y, sample_weight=-np.ones(12))

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("representation", ["spline", "eigen"])
    def test_an_output_kernel_that_is_none(self, sample, representation):
        X, Y = sample
        with pytest.raises(ValueError, match="positive semidefinite"):
            model(loss="square", output_kernel=lambda s, t: -((s - t.T) ** 2), representation=representation).fit(X, Y)

    def test_a_name_that_needs_parameters(self, sample):
        with pytest.raises(ValueError, match="pass an instance"):
            FunctionalRegressor(representation="basis").fit(*sample)

    def test_memory(self, sample, monkeypatch):
        from fenchel import _check

        X, Y = sample
        monkeypatch.setattr(_check, "_free_memory", lambda: 1000)
        with pytest.raises(MemoryError, match="The output operator on 8 points needs about"):
            model().fit(X, Y)


class TestScattered:
    """Each curve at points of its own: the union is long, and points come close to each other."""

    def ragged(self, n, m, rng):
        X = rng.standard_normal((n, 2))
        points = [np.sort(rng.random(m)) for _ in range(n)]
        return X, [(t, np.sin(6 * t) + x[0]) for x, t in zip(X, points, strict=True)]

    def test_a_smooth_map_is_recovered(self, rng):
        X, Y = self.ragged(30, 8, rng)
        fitted = FunctionalRegressor(Gaussian(0.3), Gaussian(20.0), lam=1e-4).fit(X, Y)
        assert len(fitted.grid_) == len(as_curves(Y).grid) == 240
        t = np.linspace(0.05, 0.95, 50)
        error = fitted.predict(X, t) - (np.sin(6 * t) + X[:, :1])
        assert np.sqrt(np.mean(error**2)) < 0.1

    @pytest.mark.parametrize("loss", ["square", Huber(0.2)], ids=str)
    def test_solved_on_the_values_alone(self, rng, loss):
        """The same as the splitting on the union of the points, with curves of unequal length and weights."""
        X, Y = self.ragged(12, 5, rng)
        Y[3] = tuple(part[:2] for part in Y[3])
        weights = 1.0 + np.arange(12) % 2
        own, union = (
            model(loss=loss, lam=1e-3, solver=solver, tol=1e-10).fit(X, Y, sample_weight=weights)
            for solver in ("auto", "douglas_rachford")
        )
        assert own.n_iter_ < union.n_iter_
        assert own.duality_gap_ <= 1e-10
        assert_allclose(own.predict(X), union.predict(X), rtol=0, atol=1e-5)

    def test_cross_validated_on_the_values_alone(self, rng, monkeypatch):
        X, Y = self.ragged(12, 4, rng)
        search = FunctionalRegressorCV(Gaussian(0.3), lams=[1e-3, 0.1], losses=["square", Huber(0.2)], cv=3, tol=1e-8)
        compact, used = surfaces.compact, []
        monkeypatch.setattr(surfaces, "compact", lambda problem: used.append(compact(problem)) or used[-1])
        own = search.fit(X, Y).cv_errors_
        assert any(one is not None for one in used)
        monkeypatch.setattr(surfaces, "compact", lambda problem: None)
        assert_allclose(own, search.fit(X, Y).cv_errors_, rtol=1e-4)

    def test_a_long_search_is_announced(self, rng, monkeypatch):
        monkeypatch.setattr(functional_cv, "_SECONDS", 1e9)
        with pytest.warns(SlowFitWarning, match=r"observed at 30 points in all.*minutes or more\. Give output_kernel"):
            FunctionalRegressorCV(lams=[1e-2, 1e-1, 1.0], losses=["square"], cv=2).fit(*self.ragged(10, 3, rng))

    def test_a_search_without_output_kernels_is_not(self, rng, monkeypatch):
        monkeypatch.setattr(functional_cv, "_SECONDS", 1e9)
        search = FunctionalRegressorCV(output_kernel=Laplacian(5.0), lams=[1e-2, 0.1], losses=["square"], cv=2)
        search.fit(*self.ragged(10, 3, rng))
