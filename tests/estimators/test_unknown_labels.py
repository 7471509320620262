"""Outputs of classifiers and of quantile regression that are not known: the samples are left out, and counted."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fenchel import CostSensitiveClassifier, QuantileFunctionRegressor, QuantileFunctionRegressorCV
from fenchel.exceptions import DataWarning


@pytest.fixture
def table(rng):
    X = rng.normal(size=(60, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=60), np.isin(np.arange(60), [0, 7, 31])


@pytest.mark.parametrize("model", [QuantileFunctionRegressor(lam=1e-2), QuantileFunctionRegressorCV()], ids=repr)
@pytest.mark.parametrize("n_outputs", [0, 2])
def test_quantiles(table, model, n_outputs):
    X, y, lacks = table
    y = np.column_stack([y, -y]) if n_outputs else y
    with pytest.warns(DataWarning, match="3 of 60 samples have no output"):
        fitted = model.fit(X, np.where(lacks[:, None] if n_outputs else lacks, np.nan, y))
    predictions = fitted.predict(X, [0.1, 0.5, 0.9])
    assert fitted.dual_coef_.shape[0] == 60 and not np.any(fitted.dual_coef_[lacks])
    assert_array_equal(predictions, model.fit(X[~lacks], y[~lacks]).predict(X, [0.1, 0.5, 0.9]))


def test_quantiles_of_some_outputs_of_a_sample(table):
    X, y, _ = table
    Y = np.column_stack([y, y])
    Y[5, 1] = Y[3] = np.nan
    with (
        pytest.warns(DataWarning, match="1 of 60"),
        pytest.raises(ValueError, match=r"or none\. Some are missing in 1 of 59 .*index 5\."),
    ):
        QuantileFunctionRegressor().fit(X, Y)


@pytest.mark.parametrize("classes", [(1.0, -1.0), (0.0, 3.0), ("no", "yes")])
def test_labels(table, classes):
    X, y, lacks = table
    labels = np.where(y > 0, *classes)
    unknown = labels.astype(object)
    unknown[lacks] = None
    given = unknown.astype(float) if labels.dtype.kind == "f" else unknown
    model = CostSensitiveClassifier(lam=1e-2)
    with pytest.warns(DataWarning, match="3 of 60 samples have no output"):
        predictions = model.fit(X, given).predict(X, 0.5)
    assert_array_equal(model.classes_, np.unique(labels))
    assert_array_equal(predictions, model.fit(X[~lacks], labels[~lacks]).predict(X, 0.5))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.full(60, np.nan))
