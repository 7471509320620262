"""Predictions as data frames: ``set_output(predict=...)``, bands and outlier tables; tables of other libraries in."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import (
    ConformalRegressor,
    CostSensitiveClassifier,
    FunctionalRegressor,
    KernelAutoencoder,
    LearnedMetricRegressor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    OutlierReport,
    QuantileFunctionRegressor,
    RobustRefit,
    StructuredPredictor,
    exceptions,
    load,
    save,
)
from fenchel.app.tables import TableRegressor

NAMES = ["price", "rent"]


@pytest.fixture
def frames():
    rng = np.random.default_rng(0)
    index = pd.Index([f"house {i}" for i in range(40)], name="house")
    X = pd.DataFrame(rng.normal(size=(40, 2)), index, ["size", "age"])
    return X, pd.DataFrame(np.c_[np.sin(X["size"]), X["age"]], index, NAMES)


def ridge():
    return OperatorKernelRegressor(lam=1e-2)


def robust():
    return OperatorKernelRegressor(loss="huber", lam=1e-3)


ESTIMATORS = [
    ridge(),
    OperatorKernelRegressorCV("gaussian", lams=[1e-2], cv=2),
    FunctionalRegressor(lam=1e-2),
    QuantileFunctionRegressor(lam=1e-2, tol=1e-2),
    LearnedMetricRegressor(max_rounds=0),
    RobustRefit(ridge(), trim=None),
    ConformalRegressor(ridge(), coverage=0.8),
    StructuredPredictor(output_kernel="linear", lam=1e-2),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_predictions_are_frames_with_the_names_of_y_and_the_index_of_x(estimator, frames, tmp_path):
    X, Y = frames
    plain = clone(estimator).fit(X, Y)
    model = clone(clone(estimator).set_output(predict="pandas")).fit(X, Y)
    found = model.predict(X[5:9])
    assert list(found.columns) == NAMES
    pd.testing.assert_index_equal(found.index, X.index[5:9])
    np.testing.assert_array_equal(found.to_numpy(), plain.predict(X[5:9]))
    assert isinstance(model.set_output(predict="default").predict(X), np.ndarray)
    assert model.set_output(predict="pandas").set_output().score(X, Y) == plain.score(X, Y)


def test_numbers_are_a_series(frames):
    X, Y = frames
    found = ridge().set_output(predict="pandas").fit(X, Y["rent"]).predict(X)
    assert found.name == "rent"
    pd.testing.assert_index_equal(found.index, X.index)
    labels = CostSensitiveClassifier(lam=1e-2).fit(X, Y["rent"] > 0).set_output(predict="pandas").predict(X, [0.3, 0.7])
    assert list(labels.columns) == [0.3, 0.7]


def test_names_where_outputs_have_none(frames):
    X, Y = frames
    model = ridge().set_output(predict="pandas").fit(X.to_numpy(), Y.to_numpy())
    assert list(model.predict(X.to_numpy()).columns) == ["y0", "y1"]
    curves = FunctionalRegressor(lam=1e-2).fit(X, Y.to_numpy(), grid=[0.0, 2.0]).set_output(predict="pandas")
    assert list(curves.predict(X).columns) == [0.0, 2.0]
    assert list(curves.predict(X, grid=[0.5, 1.0, 1.5]).columns) == [0.5, 1.0, 1.5]
    levels = QuantileFunctionRegressor(lam=1e-2, tol=1e-2).fit(X, Y["rent"]).set_output(predict="pandas")
    assert list(levels.predict(X, [0.1, 0.9]).columns) == [0.1, 0.9]
    assert isinstance(levels.predict_interval(X), np.ndarray)


def test_frames_in_pipelines_searches_and_files(frames, tmp_path):
    X, Y = frames
    pipeline = make_pipeline(StandardScaler(), ridge().set_output(predict="pandas")).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"operatorkernelregressor__lam": [1e-3, 1e-1]}, cv=2).fit(X, Y)
    pd.testing.assert_index_equal(search.predict(X).index, X.index)
    assert list(search.predict(X).columns) == NAMES
    assert cross_val_predict(pipeline, X, Y, cv=2).shape == (40, 2)
    save(ridge().set_output(predict="pandas").fit(X, Y), tmp_path / "model.skops")
    assert list(load(tmp_path / "model.skops").predict(X).columns) == NAMES


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("container", ["default", "pandas", "polars"])
def test_predictors_have_no_transform(estimator, container, frames):
    with pytest.raises(ValueError, match=f"has no transform. Got .*transform='{container}'.*predict='pandas'"):
        clone(estimator).set_output(transform=container)
    assert estimator.set_output(transform=None) is estimator
    make_pipeline(StandardScaler(), make_pipeline(estimator)).set_output(transform=container)  # not for the last step


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_codes_are_frames(container, frames):
    library, X = pytest.importorskip(container), frames[0]
    plain = KernelAutoencoder(lam=1e-2, max_inner_iter=2)
    codes = plain.fit_transform(X)
    model = clone(clone(plain).set_output(transform=container))
    pipeline = clone(make_pipeline(StandardScaler(), plain).set_output(transform=container))
    for found in (model.fit_transform(X), model.transform(X), load_of(model).transform(X)):
        assert isinstance(found, library.DataFrame)
        assert list(found.columns) == ["kernelautoencoder0", "kernelautoencoder1"]
        np.testing.assert_allclose(found.to_numpy(), codes, atol=1e-12)
    search = GridSearchCV(pipeline, {"kernelautoencoder__lam": [1e-2, 1e-1]}, cv=2).fit(X)
    assert isinstance(search.transform(X), library.DataFrame)
    if container == "pandas":
        pd.testing.assert_index_equal(search.transform(X).index, X.index)


def test_codes_as_frames_are_inputs_of_a_predictor(frames):
    X, Y = frames
    steps = make_pipeline(KernelAutoencoder(lam=1e-2, max_inner_iter=2), ridge().set_output(predict="pandas"))
    found = clone(steps).set_output(transform="pandas").fit(X, Y)
    pd.testing.assert_index_equal(found.predict(X).index, X.index)
    np.testing.assert_allclose(found.predict(X), steps.fit(X, Y).predict(X).to_numpy(), atol=1e-9)


def load_of(model):
    return pickle.loads(pickle.dumps(model))


def test_what_has_no_rows_of_numbers_is_refused(frames):
    X, _ = frames
    fields = FunctionalRegressor(lam=1e-2).fit(X, np.ones((40, 5, 2)))
    with pytest.raises(ValueError, match=r"Got shape \(40, 5, 2\)"):
        fields.set_output(predict="pandas").predict(X)
    assert np.isfinite(fields.score(X, np.arange(400.0).reshape(40, 5, 2)))
    with pytest.raises(ValueError, match="one of 'default', 'pandas', 'polars'"):
        ridge().set_output(predict="arrow")


def test_bands_as_frames(frames):
    X, Y = frames
    inner = ridge().set_output(predict="pandas")
    band = ConformalRegressor(inner, coverage=0.8).fit(X, Y).predict_interval(X)
    frame = band.to_frame()
    assert list(frame.columns) == [f"{name}{end}" for name in NAMES for end in ("", "_lower", "_upper")]
    pd.testing.assert_index_equal(frame.index, X.index)
    np.testing.assert_array_equal(frame["rent_upper"], band.upper[:, 1])
    np.testing.assert_array_equal(frame["price"], band.prediction[:, 0])
    flat = ConformalRegressor(ridge(), coverage=0.8).fit(X.to_numpy(), Y["rent"].to_numpy())
    assert list(flat.predict_interval(X.to_numpy()).to_frame().columns) == ["y", "y_lower", "y_upper"]


def test_outlier_tables_have_the_index_of_the_samples(frames):
    X, Y = frames
    Y.iloc[7, 1] += 9
    table = OutlierReport.of(robust().fit(X, Y), X, Y).table(as_frame=True)
    assert (table.index[0], table["sample"].iloc[0], table["outputs"].iloc[0]) == ("house 7", 7, "rent")
    assert RobustRefit(robust(), trim=None).fit(X, Y).report_.table(as_frame=True).index[0] == "house 7"


INDICES = [
    pd.Index([f"house {i // 2}" for i in range(40)], name="house"),
    pd.RangeIndex(3, 43),
    pd.date_range("2024-01-01", periods=40, name="day"),
    pd.date_range("2024-01-01", periods=40, tz="UTC").map(str),
    pd.MultiIndex.from_product([["a", "b"], range(20)], names=["street", None]),
]


@pytest.mark.parametrize("index", INDICES, ids=lambda index: f"{type(index).__name__} {index.names[0]}")
def test_files_hold_the_index_of_a_report(frames, tmp_path, index):
    X, Y = (frame.set_axis(index) for frame in frames)
    model = RobustRefit(ridge(), trim=None).fit(X, Y)
    save(model, tmp_path / "model")
    wanted = model.report_.table(as_frame=True)
    for same in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        pd.testing.assert_frame_equal(same.report_.table(as_frame=True), wanted)
    assert wanted.sort_values("sample").index.equals(index)


def test_tables_of_rows(frames):
    X, Y = frames
    model = TableRegressor(ridge(), targets=NAMES).set_output(predict="pandas").fit(X.join(Y))
    found = clone(model).fit(X.join(Y)).predict(X[:3])
    assert list(found.columns) == NAMES
    pd.testing.assert_index_equal(found.index, X.index[:3])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries(library, frames):
    X, Y = frames
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    make = module.DataFrame if library == "polars" else module.table
    tables = [make({name: part[name].to_numpy() for name in part}) for part in (X, Y)]
    for estimator in [ridge(), RobustRefit(ridge(), trim=None), ConformalRegressor(ridge(), coverage=0.8)]:
        model = clone(estimator).fit(*tables)
        expected = clone(estimator).fit(X, Y).predict(X)
        np.testing.assert_allclose(model.predict(tables[0]), expected, rtol=0, atol=1e-12)  # columns lie otherwise
        assert list(model.set_output(predict="pandas").predict(tables[0]).columns) == NAMES
    report = OutlierReport.of(ridge().fit(*tables), *tables)
    np.testing.assert_allclose(report.scores, OutlierReport.of(ridge().fit(X, Y), X, Y).scores, rtol=1e-9)
    both = make({name: part[name].to_numpy() for part in (X, Y) for name in part})
    model = TableRegressor(ridge(), targets=NAMES).fit(both)
    np.testing.assert_array_equal(model.predict(both), TableRegressor(ridge(), NAMES).fit(X.join(Y)).predict(X))


def test_frames_of_polars(frames):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, Y = frames
    model = ridge().set_output(predict="polars").fit(X, Y)
    assert isinstance(model.predict(X), polars.DataFrame)
    assert model.predict(X).columns == NAMES
    assert model.score(X, Y) == ridge().fit(X, Y).score(X, Y)
    assert ridge().set_output(predict="polars").fit(X, Y["rent"]).predict(X).name == "rent"
    band = ConformalRegressor(ridge(), coverage=0.8).fit(X, Y).predict_interval(X)
    assert band.to_frame("polars").columns[:3] == ["price", "price_lower", "price_upper"]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_the_html_box_links_to_the_page_of_the_class(estimator, monkeypatch):
    address = f"https://docs.example/api/generated/fenchel.{type(estimator).__name__}.html"
    assert "docs.example" not in estimator._repr_html_()
    monkeypatch.setattr(exceptions, "_documentation", lambda: "https://docs.example")
    assert f'href="{address}"' in estimator._repr_html_()
