"""Warnings about data that a model can say little of."""

import warnings

import numpy as np
import pytest

from fenchel import FunctionalRegressor, FunctionalRegressorCV, OperatorKernelRegressor, QuantileFunctionRegressor
from fenchel.datasets import make_functional
from fenchel.exceptions import DataWarning
from fenchel.kernels import Gaussian, Linear
from fenchel.losses import EpsilonRidge

pytestmark = pytest.mark.filterwarnings("error::fenchel.exceptions.DataWarning")


@pytest.fixture
def table(rng):
    X = rng.standard_normal((60, 2))
    return X, np.sin(X[:, 0]) + X[:, 1]


class TestRepeatedInputs:
    def test_outputs_that_no_function_explains(self, rng):
        X, y = rng.integers(0, 3, (60, 1)).astype(float), rng.standard_normal(60)
        groups = [y[X[:, 0] == value] for value in np.unique(X)]
        share = sum(len(group) * np.var(group) for group in groups) / (60 * np.var(y))
        message = f"100% of the samples share.*make up {share:.0%} of the variance.*Add columns to X"
        with pytest.warns(DataWarning, match=message):
            OperatorKernelRegressor("auto").fit(X, y)

    def test_weights_count(self, rng):
        """A sample that counts ten times is ten samples with one output."""
        X, y = np.repeat(np.arange(20.0), 2)[:, None], np.tile([1.0, -1.0], 20)
        with pytest.warns(DataWarning, match="100% of the variance"):
            OperatorKernelRegressor("auto").fit(X, y)
        y[::2] = np.arange(20)
        OperatorKernelRegressor("auto").fit(X, y, np.tile([1e3, 1e-3], 20))

    def test_ordinary_tables(self, table, rng):
        """Repeated measurements of a function, and inputs that occur once, are no reason to warn."""
        X, y = table
        OperatorKernelRegressor("auto").fit(X, rng.standard_normal(60))
        OperatorKernelRegressor("auto").fit(np.repeat(X, 2, axis=0), np.repeat(y, 2) + 0.1 * rng.standard_normal(120))

    def test_quantiles_of_one_input_differ(self, rng):
        X, y = rng.integers(0, 3, (60, 1)).astype(float), rng.standard_normal(60)
        QuantileFunctionRegressor(Gaussian(1.0)).fit(X, y)


class TestFarInputs:
    def test_what_is_far_is_counted(self, table):
        X, y = table
        model = OperatorKernelRegressor("auto", center=True).fit(X, y)
        new = np.vstack([X[:5], [[1e3, 0.0], [0.0, -1e3]]])
        with pytest.warns(DataWarning, match=r"2 of 7 samples .* \(index 5, 6\): .*Check the units of X"):
            predicted = model.predict(new)
        np.testing.assert_allclose(predicted[5:], np.mean(y))

    def test_ordinary_inputs(self, table):
        """Inputs beyond the sample, a kernel without an end, and inputs near samples that a sparse model dropped."""
        X, y = table
        OperatorKernelRegressor("auto").fit(X, y).predict(1.5 * X)
        OperatorKernelRegressor(Gaussian(1.0) + 1e-3 * Linear()).fit(X, y).predict(1e3 * X)
        OperatorKernelRegressor(Linear()).fit(X, y).predict(0 * X)
        sparse = OperatorKernelRegressor(Gaussian(1e4), loss=EpsilonRidge(1.0)).fit(X, y)
        assert len(sparse.support_) < 60
        sparse.predict(X)


class TestDomain:
    @pytest.mark.parametrize("search", [False, True])
    def test_points_outside(self, search):
        data = make_functional(12, 10, random_state=0)
        model = FunctionalRegressorCV(None, lams=[1e-3], cv=2) if search else FunctionalRegressor(lam=1e-3)
        model.fit(data.X, data.Y, np.linspace(0, 1, 10))
        with pytest.warns(DataWarning, match=r"from 0 to 24.*known only from 0 to 1.*Check the unit of the grid"):
            model.predict(data.X, np.linspace(0, 24, 5))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(data.X, np.linspace(0, 1 + 1e-12, 7))


class TestErrorsSayWhatToDo:
    def test_gaps_in_outputs(self, table):
        X, y = table
        y = np.where(np.isin(np.arange(len(y)), [3, 7]), np.nan, y)
        with pytest.warns(DataWarning, match=rf"2 of {len(y)} samples have no output, and are left out"):
            QuantileFunctionRegressor().fit(X, y)

    def test_gaps_in_inputs(self, table):
        X, y = table
        with pytest.raises(ValueError, match=r"Impute missing values, .* MultipleKernel takes"):
            OperatorKernelRegressor().fit(np.where(X[0, 0] == X, np.nan, X), y)

    def test_text_in_a_column(self, table):
        pandas = pytest.importorskip("pandas")
        X, y = table
        frame = pandas.DataFrame(X, columns=["a", "b"]).assign(colour="red")
        with pytest.raises(ValueError, match=r"^X must hold .* do not: 'colour' \(such as 'red'\)\. Encode text"):
            OperatorKernelRegressor().fit(frame, y)
        with pytest.raises(ValueError, match=r"^y must hold .* do not: 'colour' \(such as 'red'\)\. Convert"):
            OperatorKernelRegressor().fit(X, frame[["a", "colour"]])

    def test_curves_and_fields(self, table):
        X, y = table
        with pytest.raises(ValueError, match=r"^Found array with dim 3[^.]*\.$"):  # advice on X is no help here
            OperatorKernelRegressor().fit(np.zeros((10, 3)), np.zeros((10, 2, 2)))
        with pytest.raises(ValueError, match=r"Found array with dim 4.*arrays \(n, m, c\)\. .*FieldRegressor"):
            OperatorKernelRegressor().fit(X[:, :, None, None], y)
        curves = np.stack([X, X**2], axis=-1)
        wide = OperatorKernelRegressor().fit(curves.reshape(len(X), -1), y).predict(curves.reshape(len(X), -1))
        assert np.array_equal(OperatorKernelRegressor().fit(curves, y).predict(curves), wide)
        with pytest.raises(ValueError, match=r"shape \(\d+,\) instead\. For one number .* OperatorKernelRegressorCV"):
            FunctionalRegressor().fit(curves, y[:, 0] if y.ndim == 2 else y)
