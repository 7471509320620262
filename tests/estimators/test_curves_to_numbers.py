"""Numbers, labels and quantiles from complete input curves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import fenchel
from fenchel import (
    ConformalRegressor,
    FunctionalRegressorCV,
    LossTrickPredictor,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressorCV,
    StructuredPredictorCV,
)
from fenchel.kernels import FunctionalGaussian

POINTS = np.linspace(0, 1, 25) ** 2
QUICK = {"losses": ["square"], "cv": 3}


@pytest.fixture
def sample(rng):
    scores = rng.standard_normal((60, 2))
    first, second = (np.sin(k * np.pi * POINTS) for k in (1, 2))
    X = np.stack([scores[:, :1] * first, 1000 * scores[:, 1:] * second], axis=2)
    return X, scores[:, 0] + scores[:, 1] + 0.05 * rng.standard_normal(60)


def gram(X, Z, family, width, linear, points=POINTS):
    """Return a kernel of L2 distances between curves whose channels have a mean square of one, by trapezoids."""
    mean, scale = X.mean(axis=0), np.sqrt(np.trapezoid(X.var(axis=0), points, axis=0))
    X, Z = (np.sqrt(0.5) * (one - mean) / scale for one in (X, Z))  # two channels

    def products(A, B):
        return np.trapezoid(np.einsum("imc,jmc->ijm", A, B), points, axis=2)

    def distances(A, B):
        squares = [np.trapezoid(np.sum(one**2, axis=2), points, axis=1) for one in (A, B)]
        return np.sqrt(np.maximum(squares[0][:, None] + squares[1] - 2 * products(A, B), 0))

    unit = width * np.median(distances(X, X)[np.triu_indices(len(X), 1)])
    profile = {"gaussian": lambda t: np.exp(-(t**2) / 2), "exponential": lambda t: np.exp(-t)}[family]
    return (profile(distances(X, Z) / unit) + linear * products(X, Z)) / (1 + linear)


def test_a_search_on_curves_has_their_distances(sample):
    X, y = sample
    pairs = [(POINTS, row) for row in X]
    model = OperatorKernelRegressorCV(**QUICK, leaves=False).fit(pairs, y)
    trials = model.search_
    best = int(np.argmin(np.where(np.array(trials["n_samples"]) == 60, trials["error"], np.inf)))
    family, width, linear = (trials[name][best] for name in ("family", "width", "linear"))
    K = gram(X, X, family, width, linear)
    flat = X.reshape(60, -1)
    assert_allclose(model.best_kernel_(flat, flat), K, atol=1e-6)
    centred = y - y.mean()
    wanted = y.mean() + K @ np.linalg.solve(K + 60 * model.best_lam_ * np.eye(60), centred)
    assert_allclose(model.predict(pairs), wanted, atol=1e-5)


def test_one_answer_in_all_forms(sample):
    skfda = pytest.importorskip("skfda")
    X, y = sample
    named = OperatorKernelRegressorCV(**QUICK).fit({"curves": X}, y)
    equally = np.linspace(0, 1, 25)
    for form in (X, X.astype(object), [(equally, row) for row in X], skfda.FDataGrid(X, equally)):
        model = OperatorKernelRegressorCV(**QUICK).fit(form, y)
        assert_allclose(model.predict(form[:5]), named.predict({"curves": X[:5]}), rtol=1e-8)
        assert_allclose(model.predict(X[:5]), model.predict(form[:5]), rtol=1e-8)
    scores = cross_val_score(OperatorKernelRegressorCV(**QUICK), X, y, cv=3)
    assert min(scores) > 0.9
    single = X.astype(np.float32)
    assert OperatorKernelRegressorCV(**QUICK).fit(single, y).predict(single).dtype == np.float32


def test_units_of_channels_and_points_do_not_matter(sample):
    X, y = sample
    model = OperatorKernelRegressorCV(**QUICK).fit([(POINTS, row) for row in X], y)
    other = [(24 * POINTS, [1e-3, 1e3] * row) for row in X]
    found = OperatorKernelRegressorCV(**QUICK).fit(other, y).predict(other)
    assert_allclose(found, model.predict([(POINTS, row) for row in X]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("machine", "of_numbers"),
    [
        (QuantileFunctionRegressorCV(cv=3), lambda y: y),
        (StructuredPredictorCV(cv=3), lambda y: y[:, None]),
        (LossTrickPredictor(task_loss="hamming"), lambda y: np.column_stack([y > 0, y > 1]).astype(int)),
        (ConformalRegressor(OperatorKernelRegressorCV(**QUICK), method="split"), lambda y: y),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_search_takes_curves(machine, of_numbers, sample):
    X, y = sample
    levels = (np.array([0.5]),) if isinstance(machine, QuantileFunctionRegressorCV) else ()
    outputs = of_numbers(y)
    found = machine.fit(X, outputs).predict(X[:8], *levels)
    assert_array_equal(machine.fit({"curves": X}, outputs).predict({"curves": X[:8]}, *levels), found)


def test_saved_models_weights_and_wrong_curves(sample, tmp_path):
    X, y = sample
    model = OperatorKernelRegressorCV(**QUICK).fit(X, y, sample_weight=np.arange(60) % 3)
    fenchel.save(model, tmp_path / "model.skops")
    assert_array_equal(fenchel.load(tmp_path / "model.skops").predict(X), model.predict(X))
    for wrong, said in (
        (X[:2, :, :1], "must have 2 channels"),
        (X[:2, :20], "must have shape"),
        (X[:2, :, 0], "must hold curves"),
        (np.where(X[:2] == X[0, 3, 0], np.nan, X[:2]), "must be complete"),
    ):
        with pytest.raises(ValueError, match=said):
            model.predict(wrong)


def test_a_given_kernel_has_curves_as_vectors(sample):
    X, y = sample
    for kernel in ("gaussian", FunctionalGaussian(1.0)):
        model = OperatorKernelRegressorCV(kernel, cv=3).fit(X, y)
        vectors = X.reshape(60, -1)
        assert_allclose(model.predict(X), OperatorKernelRegressorCV(kernel, cv=3).fit(vectors, y).predict(vectors))


def test_a_search_for_curves_names_the_call_for_numbers(sample):
    X, y = sample
    with pytest.raises(ValueError, match=r"use OperatorKernelRegressorCV\(\).fit\(X, y\).*X\[:, :, None\]"):
        FunctionalRegressorCV().fit(X[:, :, 0], y)
    assert OperatorKernelRegressorCV(**QUICK).fit(X[:, :, 0][:, :, None], y).search_["weights"][0] == (1.0,)


def test_missing_numbers_as_inputs_of_curves(sample, rng):
    _, y = sample
    numbers = np.column_stack([y, rng.standard_normal((60, 2))])
    numbers[rng.random((60, 3)) < 0.15] = np.nan
    Y = y[:, None] * np.sin(np.pi * POINTS)
    model = FunctionalRegressorCV(**QUICK).fit(numbers, Y)
    seen = ~np.isnan(numbers[:, 0])
    assert model.score(numbers[seen], Y[seen]) > 0.8
    medians = np.where(np.isnan(numbers), np.nanmedian(numbers, axis=0), numbers)
    image = np.hstack([medians, np.isnan(numbers)])
    assert_allclose(FunctionalRegressorCV(**QUICK).fit(image, Y).predict(image), model.predict(numbers), atol=1e-6)


@pytest.mark.filterwarnings("ignore:FinDiff is deprecated:DeprecationWarning")  # by scikit-fda
def test_a_registration_is_a_step_of_a_pipeline(rng):
    skfda = pytest.importorskip("skfda")
    registration = pytest.importorskip("skfda.preprocessing.registration")
    t, heights, rates = np.linspace(0, 1, 41), rng.uniform(0.5, 1.5, (40, 2)), rng.normal(size=(40, 1))
    clocks = np.expm1(rates * t) / np.expm1(rates)
    values = sum(heights[:, [k]] * np.exp(-(((clocks - at) / 0.08) ** 2)) for k, at in enumerate((0.3, 0.7)))
    X, y = skfda.FDataGrid(values, t), heights[:, 0] - heights[:, 1]
    aligned = make_pipeline(registration.FisherRaoElasticRegistration(), OperatorKernelRegressorCV(**QUICK))
    found = aligned.fit(X[:30], y[:30]).predict(X[30:])
    by_hand = registration.FisherRaoElasticRegistration().fit(X[:30])
    model = OperatorKernelRegressorCV(**QUICK).fit(by_hand.transform(X[:30]), y[:30])
    assert_allclose(found, model.predict(by_hand.transform(X[30:])), rtol=1e-6, atol=1e-9)
    assert aligned.score(X[30:], y[30:]) > 0.9
