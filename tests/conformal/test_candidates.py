"""Sets of candidates contain the true output as often as they say."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from fenchel import ConformalPredictor, CostSensitiveClassifier, StructuredPredictor, load, save
from fenchel.exceptions import DataWarning, IncompatibleError
from fenchel.kernels import Gaussian

LABEL_SETS = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])


def label_sets(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X + 0.4 * rng.standard_normal(X.shape) > 0).astype(int)


def classes(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, 2))
    return X, np.array(["no", "yes"])[(X[:, 0] + rng.standard_normal(n) > 0).astype(int)]


@pytest.mark.parametrize("measure", ["margin", "distance"])
def test_label_sets_are_covered_as_often_as_stated(measure):
    shares, sizes = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        (X, Y), (X_new, Y_new) = label_sets(116, rng), label_sets(50, rng)
        inner = StructuredPredictor(Gaussian(0.5), lam=1e-2)
        sets = ConformalPredictor(inner, measure=measure).fit(X, Y, candidates=LABEL_SETS).predict_set(X_new)
        shares.append(sets.contains(Y_new).mean())
        sizes.append(sets.size.mean())
    assert abs(np.mean(shares) - 0.9) <= 4 * np.std(shares) / np.sqrt(40)  # 29 of 116 samples: exactly 0.9
    assert np.mean(sizes) < 6


def test_a_set_is_what_its_definition_says():
    rng = np.random.default_rng(0)
    (X, Y), (X_new, _) = label_sets(100, rng), label_sets(5, rng)
    inner = StructuredPredictor(Gaussian(0.5), lam=1e-2).fit(X[:50], Y[:50])
    model = ConformalPredictor(inner, measure="distance").conformalize(X[50:], Y[50:], candidates=LABEL_SETS)
    own = np.sum((inner.embed(X[50:]) - Y[50:]) ** 2, axis=1)
    np.testing.assert_allclose(model.scores_, own, rtol=1e-8, atol=1e-12)
    threshold = np.sort(own)[int(np.ceil(51 * 0.8)) - 1]
    sets = model.predict_set(X_new, coverage=0.8)
    for i, coordinates in enumerate(inner.embed(X_new)):
        distances = np.sum((LABEL_SETS - coordinates) ** 2, axis=1)
        inside = np.flatnonzero(distances <= threshold)
        np.testing.assert_array_equal(sets.places[i], inside[np.argsort(distances[inside])])
        np.testing.assert_array_equal(sets.outputs[i], LABEL_SETS[sets.places[i]])


@pytest.mark.parametrize("inner", [LogisticRegression(), LinearSVC(), CostSensitiveClassifier(lam=1e-2)])
def test_classes_are_covered(inner):
    rng = np.random.default_rng(0)
    (X, y), (X_new, y_new) = classes(400, rng), classes(1000, rng)
    model = ConformalPredictor(inner).fit(X, y)
    sets = model.predict_set(X_new)
    assert abs(sets.contains(y_new).mean() - 0.9) < 0.06
    assert set(sets.size) <= {1, 2}
    assert model.predict(X_new).shape == (1000,)


def test_training_outputs_are_the_candidates_unless_others_are_given(tmp_path):
    pytest.importorskip("skops")
    rng = np.random.default_rng(0)
    X, Y = label_sets(80, rng)
    model = ConformalPredictor(StructuredPredictor(Gaussian(0.5), lam=1e-2)).fit(X, Y)
    sets = model.predict_set(X[:4])
    assert all(len(inside) >= 1 for inside in sets.outputs)  # a margin leaves no set empty
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_set(X[:4]).size, sets.size)
    with pytest.warns(DataWarning, match="Sets hold all candidates: a coverage of 0.99 requires at least 99"):
        assert np.all(model.predict_set(X[:4], coverage=0.99).size == len(np.unique(Y, axis=0)))


def test_numbers_are_referred_to_the_regressor():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    with pytest.raises(IncompatibleError, match="use ConformalRegressor"):
        ConformalPredictor(Ridge()).fit(X, X[:, 0])
    sets = ConformalPredictor(LogisticRegression()).fit(X, X[:, 0] > 0).predict_set(X)
    with pytest.raises(ValueError, match="one output for each of the 40 sets"):
        sets.contains([True])


def test_each_sample_may_have_its_own_candidates():
    rng = np.random.default_rng(0)
    (X, Y), (X_new, Y_new) = label_sets(116, rng), label_sets(6, rng)
    own, new = ([LABEL_SETS[LABEL_SETS[:, 0] == y[0]] for y in outputs] for outputs in (Y, Y_new))
    model = ConformalPredictor(StructuredPredictor(Gaussian(0.5), lam=1e-2)).fit(X, Y, candidates=own)
    sets, threshold = model.predict_set(X_new, candidates=new), np.sort(model.scores_)[26]  # the 27th of 29
    for i, coordinates in enumerate(model.estimator_.embed(X_new)):
        distances = np.sum((new[i] - coordinates) ** 2, axis=1)
        inside = np.flatnonzero(distances - distances.min() <= threshold)
        np.testing.assert_array_equal(sets.places[i], inside[np.argsort(distances[inside])])
        np.testing.assert_array_equal(sets.outputs[i], new[i][sets.places[i]])
    whole = ConformalPredictor(StructuredPredictor(Gaussian(0.5), lam=1e-2)).fit(X, Y, candidates=LABEL_SETS)
    assert np.all(model.scores_ <= whole.scores_ + 1e-12)  # the nearest of fewer candidates is not nearer
    with pytest.raises(ValueError, match="Pass a list with a set for each new sample"):
        model.predict_set(X_new)
    with pytest.raises(ValueError, match=r"a list of 6 sets, one for each sample. Got 5"):
        model.predict_set(X_new, candidates=new[:5])
    with pytest.raises(TypeError, match=r"must be a float in \(0, 1\). Got .{1,120} instead") as error:
        model.predict_set(X_new, new)  # the second argument is the coverage
    assert "\n" not in str(error.value)


def test_sets_of_replicates_are_calibrated_by_labels():
    rng = np.random.default_rng(0)
    X, Y = label_sets(40, rng)
    sample = np.repeat(np.arange(40), 3)
    model = ConformalPredictor(StructuredPredictor(Gaussian(0.5), lam=1e-2)).fit(X[sample], Y[sample], groups=sample)
    assert model._calibration.weights.sum() == pytest.approx(10)
    assert set(np.unique(model.scores_, return_counts=True)[1] % 3) == {0}


def test_numbers_stored_as_objects_are_numbers(rng):
    X, Y = label_sets(80, rng)
    model = ConformalPredictor(random_state=1)
    wanted = model.fit(X, Y).scores_
    np.testing.assert_array_equal(model.fit(X, Y.astype(object)).scores_, wanted)


def test_a_given_calibration_part(rng):
    X, Y = label_sets(40, rng)
    splits = [(np.arange(25), np.arange(25, 40))]
    one = ConformalPredictor(cv=splits).fit(X, Y)
    inner = StructuredPredictor().fit(X[:25], Y[:25])
    np.testing.assert_array_equal(one.scores_, ConformalPredictor(inner).conformalize(X[25:], Y[25:]).scores_)
