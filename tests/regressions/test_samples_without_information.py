"""Samples that are equal, tiny or nowhere alike: what they say, or an error that tells what is missing."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from fenchel import (
    ConformalRegressor,
    FunctionalRegressor,
    KernelAutoencoder,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    OutlierReport,
    QuantileFunctionRegressor,
)
from fenchel.estimators import TableRegressor
from fenchel.exceptions import IncompatibleError


@pytest.mark.parametrize(
    "model", [OperatorKernelRegressor(), QuantileFunctionRegressor(), FunctionalRegressor()], ids=repr
)
def test_outputs_whose_squares_underflow_are_refused(model, rng):
    X = rng.normal(size=(20, 2))
    Y = np.column_stack([X[:, 0], X[:, 1]]) if isinstance(model, FunctionalRegressor) else X[:, 0]
    with pytest.raises(ValueError, match=r"y must have entries above 1e-150 .* Multiply y by a constant"):
        model.fit(X, 1e-200 * Y)
    if isinstance(model, QuantileFunctionRegressor):
        return  # lam has the unit of the outputs
    scaled = model.fit(X, 1e-140 * Y).predict(X) * 1e140
    assert_allclose(scaled, model.fit(X, Y).predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore::fenchel.exceptions.DataWarning")
def test_a_search_on_equal_samples_predicts_their_output():
    model = OperatorKernelRegressorCV().fit(np.ones((80, 2)), np.full((80, 1), 3.0))
    assert_allclose(model.predict([[1.0, 1.0], [2.0, 0.0]]), 3.0, rtol=1e-12)


def test_codes_of_equal_samples_are_zero():
    assert_allclose(KernelAutoencoder(2).fit_transform(np.ones((30, 3))), 0.0, atol=1e-12)


def test_curves_that_share_no_points_are_not_compared_point_by_point(rng):
    points = [np.sort(rng.uniform(size=20)) for _ in range(30)]
    curves = [np.sin(6 * t) + 0.1 * rng.normal(size=20) + 100 * (i < 2) for i, t in enumerate(points)]
    with pytest.raises(ValueError, match=r"at least 3 of them share.*OutlierReport\.of"):
        OutlierReport.of_curves(list(zip(points, curves, strict=True)))
    shared = OutlierReport.of_curves(np.array(curves))
    assert set(shared.ranking[:2]) == {0, 1}


def test_bands_are_put_into_a_table_not_around_it(rng):
    table = pd.DataFrame({"a": rng.normal(size=30), "y": rng.normal(size=30)})
    around = ConformalRegressor(TableRegressor(OperatorKernelRegressor(), ["y"]))
    with pytest.raises(IncompatibleError, match=r"TableRegressor\(ConformalRegressor\(\)"):
        around.fit(table, table[["y"]])
