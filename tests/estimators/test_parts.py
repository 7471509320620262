"""Inputs in parts: curves, numbers and categories of each sample, in one fit."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score

import fenchel
from fenchel import (
    ConformalRegressor,
    FunctionalRegressor,
    FunctionalRegressorCV,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressorCV,
    StructuredPredictorCV,
)
from fenchel.exceptions import DataWarning, IncompatibleError
from fenchel.kernels import FunctionalGaussian, Gaussian, Part
from fenchel.model.parts import PartForm, blocks_of_parts, encoded, learned_parts
from fenchel.outliers import OutlierReport
from fenchel.search.race import Candidate
from fenchel.search.race.parts import PartInputs

POINTS = np.linspace(0, 2, 15)
QUICK = {"losses": ["square"], "cv": 3}


@pytest.fixture
def sample(rng):
    n = 60
    shapes = np.stack([np.sin(np.pi * POINTS), np.cos(np.pi * POINTS)])
    scores, place = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) * [1000.0, 1.0]
    region = rng.choice(["north", "south", "west"], n)
    X = {"curve": (scores @ shapes)[:, :, None], "place": place, "region": region}
    y = scores[:, 0] + np.sin(place[:, 1]) + (region == "north") + 0.05 * rng.normal(size=n)
    return X, y


def rows(X, index):
    return {name: part[index] for name, part in X.items()}


def test_all_parts_are_used(sample):
    X, y = sample
    train, test = np.arange(45), np.arange(45, 60)
    model = OperatorKernelRegressorCV(**QUICK).fit(rows(X, train), y[train])
    assert model.score(rows(X, test), y[test]) > 0.8
    alone = [OperatorKernelRegressorCV(**QUICK).fit({name: X[name][train]}, y[train]) for name in X]
    assert max(one.score({name: X[name][test]}, y[test]) for one, name in zip(alone, X, strict=True)) < 0.7
    assert model.duality_gap_ <= model.tol
    assert {len(weights) for weights in model.search_["weights"]} == {3}


def test_distances_are_those_of_the_parts_by_quadrature(sample):
    X, _ = sample
    array, forms = learned_parts(X)
    image, blocks, of_inputs = encoded(array, blocks_of_parts(forms))
    counts = np.linspace(1, 2, 60)
    inputs = PartInputs.of(image, counts, np.arange(60), blocks)
    curves, place = X["curve"][:, :, 0], X["place"]
    mean = np.average(curves, axis=0, weights=counts)
    variance = np.trapezoid(np.average((curves - mean) ** 2, axis=0, weights=counts), POINTS / 2)  # on [0, 1]
    by_hand = np.trapezoid((curves[0] - curves[1]) ** 2, POINTS / 2) / variance
    assert_allclose(inputs.squares[0][0, 1], by_hand)
    spread = np.average((place - np.average(place, axis=0, weights=counts)) ** 2, axis=0, weights=counts)
    assert_allclose(inputs.squares[1][0, 1], np.sum((place[0] - place[1]) ** 2 / spread) / 2)
    assert set(np.unique(np.round(inputs.squares[2], 9))) == {0.0, np.round(inputs.squares[2].max(), 9)}
    assert_allclose(inputs.sizes, 1)  # each part has a mean square of 1
    for candidate in (
        Candidate("gaussian", 0.5, 0.1, (1.0, 0.25, 0.5)),
        Candidate("exponential", 2.0, 0.0, (0.0, 0.25, 1.0)),
        Candidate("exponential", 1.0, 1.0, (1.0, 0.25, 0.5), is_sum=True),
        Candidate("gaussian", 1.0, 10.0, (0.0, 1.0, 0.5), is_sum=True),
    ):
        assert_allclose(of_inputs(inputs.kernel(candidate))(array), inputs.matrix(candidate, 60), atol=1e-10)


def test_a_frame_gives_the_same_as_a_mapping(sample):
    skfda = pytest.importorskip("skfda")
    X, y = sample
    table = pd.DataFrame({"km": X["place"][:, 0], "height": X["place"][:, 1], "region": X["region"]})
    curves = skfda.FDataGrid(X["curve"], POINTS / 2)
    frame = table.copy()
    frame["curve"] = curves
    model = OperatorKernelRegressorCV(**QUICK).fit(frame, y)
    by_name = {"curve": curves, "columns": table}
    other = OperatorKernelRegressorCV(**QUICK).fit(by_name, y)
    assert_allclose(model.predict(frame[::-1]), other.predict(by_name)[::-1], atol=1e-9)
    assert_allclose(model.predict(frame[["curve", "region", "height", "km"]]), model.predict(frame))
    assert np.all(cross_val_score(OperatorKernelRegressorCV(**QUICK), frame, y, cv=3) > 0.5)
    cells = table.assign(curve=list(X["curve"][:, :, 0]))  # arrays in cells, at equally spaced points
    assert_allclose(OperatorKernelRegressorCV(**QUICK).fit(cells, y).predict(cells), model.predict(frame), atol=1e-9)


def test_curves_as_outputs_with_weights_groups_and_time(sample):
    X, y = sample
    Y = y[:, None] * np.sin(POINTS)
    weights = np.ones(60)
    weights[:10] = 0
    wrong = {**X, "place": X["place"].copy()}
    wrong["place"][:10] = 1e6
    model = FunctionalRegressorCV(**QUICK).fit(wrong, Y, POINTS, weights)
    kept = FunctionalRegressorCV(**QUICK).fit(rows(X, slice(10, None)), Y[10:], POINTS)
    assert_allclose(model.predict(X), kept.predict(X), atol=1e-6)
    labels = np.repeat(np.arange(30), 2)
    grouped = FunctionalRegressorCV(**QUICK).fit(X, Y, groups=labels)
    assert grouped.score(X, Y) > 0.8
    assert FunctionalRegressorCV(**QUICK).fit(X, Y, order=np.arange(60)).score(X, Y) > 0.8


def test_files_bands_and_outliers(sample, tmp_path):
    X, y = sample
    y = y.copy()
    y[7] += 8
    model = OperatorKernelRegressorCV().fit(X, y)
    fenchel.save(model, tmp_path / "model.skops")
    assert_array_equal(fenchel.load(tmp_path / "model.skops").predict(X), model.predict(X))
    report = OutlierReport.of(model, X, y)
    assert np.flatnonzero(report.flagged(0.05)).tolist() == [7]
    for method in ("split", "cv+"):
        band = ConformalRegressor(OperatorKernelRegressorCV(**QUICK), coverage=0.8, method=method).fit(X, y)
        assert np.mean(band.predict_interval(X).contains(y)) > 0.7


def test_missing_numbers_and_categories(sample):
    X, y = sample
    X = {**X, "place": X["place"].copy(), "region": X["region"].astype(object)}
    X["place"][::7, 1] = np.nan
    X["region"][::11] = None
    for kind, outputs in ((OperatorKernelRegressorCV, y), (FunctionalRegressorCV, y[:, None] * np.ones(5))):
        model = kind(**QUICK).fit(X, outputs)
        assert model.score(X, outputs) > 0.7
    plain = OperatorKernelRegressor("auto", lam=1e-3).fit(X, y)
    assert plain.score(X, y) > 0.7
    assert FunctionalRegressor(lam=1e-4).fit(X, y[:, None] * np.ones(5)).score(X, y[:, None] * np.ones(5)) > 0.7


def test_kernels_of_parts_by_name(sample):
    X, y = sample
    X = {name: X[name] for name in ("curve", "place")}
    kernel = Part(FunctionalGaussian(2.0, POINTS), ["curve"]) + Part(Gaussian(1e-6), ["place"])
    model = OperatorKernelRegressor(kernel, lam=1e-3).fit(X, y)
    joined = np.hstack([X["curve"][:, :, 0], X["place"]])
    by_hand = Part(FunctionalGaussian(2.0, POINTS), slice(0, 15)) + Part(Gaussian(1e-6), [15, 16])
    assert_allclose(model.predict(X), OperatorKernelRegressor(by_hand, lam=1e-3).fit(joined, y).predict(joined))
    with pytest.raises(IncompatibleError, match=r"Inputs in parts need kernel='auto'.*'curve', 'place'"):
        OperatorKernelRegressor().fit(X, y)


def test_new_inputs_are_checked_by_name(sample):
    X, y = sample
    model = OperatorKernelRegressor("auto").fit(X, y)
    first = rows(X, slice(3))
    for wrong, message in (
        ({**first, "wind": np.ones(3)}, r"Missing: \[\]; not known: \['wind'\]"),
        ({"curve": first["curve"]}, r"Missing: \['place', 'region'\]"),
        (first["place"], r"X must have the parts \['curve', 'place', 'region'\].*Got a ndarray of shape \(3, 2\)"),
        ({**first, "place": np.ones((3, 3))}, r"X\['place'\] must have shape \(n, 2\)"),
        ({**first, "place": np.ones((2, 2))}, r"same number of samples. Got {'curve': 3, 'place': 2"),
        ({**first, "region": np.arange(3.0)}, r"X\['region'\] must hold names of categories"),
        ({**first, "place": first["region"]}, r"X\['place'\] must hold numbers"),
        ({**first, "curve": first["place"]}, r"X\['curve'\] must hold curves"),
        ({**first, "place": np.full((3, 2), np.inf)}, r"X\['place'\] must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(wrong)
    reordered = dict(reversed(first.items()))
    assert_array_equal(model.predict(reordered), model.predict(first))
    with pytest.warns(DataWarning, match=r"X\['region'\] has 1 categories that no training sample has, such as 'east'"):
        model.predict({**first, "region": np.array(["north", "east", "south"])})


def test_hostile_parts(sample):
    X, y = sample
    for wrong, message in (
        ({}, "X must have at least one part"),
        ({**X, "place": X["place"][:9]}, "same number of samples"),
        ({**X, "place": np.empty((60, 0))}, r"X\['place'\] must have shape"),
        ({**X, "day": np.arange(60).astype("datetime64[D]")}, "dates"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            OperatorKernelRegressorCV(**QUICK).fit(wrong, y)
    with pytest.raises(ValueError, match="X must be complete with a metric"):
        OperatorKernelRegressorCV(metric=np.ones(18)).fit(X, y)
    constant = {**X, "place": np.ones((60, 2)), "one": np.array(["a"] * 60)}
    assert OperatorKernelRegressorCV(**QUICK).fit(constant, y).score(constant, y) > 0.5


def test_codes_name_categories_whatever_their_number():
    form, codes = PartForm.learn("region", np.array(["b", "a", "b", None], dtype=object))
    assert codes[0] == codes[2] != codes[1]
    assert len(form.levels) == 3
    assert_array_equal(form.read(pd.Series(["a", "b"], dtype="category")), codes[[1, 0]])


def test_quantiles_labels_and_the_loss_trick(rng):
    shift, t = rng.normal(size=40), np.linspace(0, 1, 12)
    X = {
        "curve": np.sin(2 * np.pi * t + shift[:, None])[:, :, None],
        "place": rng.normal(size=(40, 2)),
        "kind": np.array(["a", "b"])[rng.integers(0, 2, 40)],
    }
    X["place"][3, 1] = np.nan
    y = 2 * shift + X["place"][:, 0]
    labels = np.column_stack([y > 0, shift > 0]).astype(int)
    for model, outputs in [
        (QuantileFunctionRegressorCV(), y),
        (StructuredPredictorCV(), labels),
        (LossTrickPredictor(task_loss="hamming"), labels),
    ]:
        predictions = model.fit(X, outputs).predict(dict(reversed(X.items())))
        assert_array_equal(predictions, model.predict(X))
        assert np.mean((predictions > 0) == (outputs > 0)) > 0.8
        with pytest.raises(ValueError, match="parts"):
            model.predict({"curve": X["curve"]})
