"""Frames as inputs: what is no number is refused by the name of its column, sparse indicators are read."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return {"size": rng.normal(size=30), "side": ["left", "right", "far"] * 10}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_text_is_refused_by_the_name_of_its_column(columns, library):
    frames = pytest.importorskip(library)
    frame = (frames.table if library == "pyarrow" else frames.DataFrame)(columns)
    with pytest.raises(ValueError, match=r"These columns do not: 'side' \(such as 'left'\)"):
        OperatorKernelRegressorCV().fit(frame, columns["size"])


def test_categories_are_refused_by_the_name_of_their_column(columns):
    frame = pd.DataFrame(columns).astype({"side": "category"})
    with pytest.raises(ValueError, match=r"These columns do not: 'side' .*OneHotEncoder"):
        OperatorKernelRegressorCV().fit(frame, columns["size"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_dates_are_refused_by_the_names_of_their_columns(columns, library):
    frames = pytest.importorskip(library)
    days = pd.date_range("2026-01-01", periods=30).to_pydatetime().tolist()
    frame = frames.DataFrame({"size": columns["size"], "day": days, "later": days})
    with pytest.raises(TypeError, match=r"durations: 'day', 'later'\. Convert them.*TableRegressor"):
        OperatorKernelRegressorCV().fit(frame, columns["size"])
    model = OperatorKernelRegressor().fit(np.ones((30, 3)) * columns["size"][:, None], columns["size"])
    with pytest.raises(TypeError, match="durations: 'day', 'later'"):
        model.predict(frame)


@pytest.mark.parametrize("kernel", ["auto", "gaussian", "linear"])
def test_sparse_indicators_of_a_frame_are_numbers(columns, kernel):
    sparse = pd.get_dummies(pd.Series(columns["side"]), sparse=True)
    full = sparse.sparse.to_dense().to_numpy(dtype=float)
    models = [OperatorKernelRegressorCV(kernel, lams=[1e-2], cv=2).fit(X, columns["size"]) for X in (sparse, full)]
    np.testing.assert_allclose(models[0].predict(sparse), models[1].predict(full), rtol=1e-9, atol=1e-12)
    mixed = sparse.assign(size=columns["size"])
    again = OperatorKernelRegressorCV(kernel, lams=[1e-2], cv=2).fit(mixed, columns["size"])
    assert_array_equal(again.predict(mixed), again.predict(mixed.astype(float)))
