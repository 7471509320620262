"""What StructuredPredictorCV finds by itself for label sets: the decoder, its threshold, the kernel of outputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

from fenchel import StructuredPredictor, StructuredPredictorCV
from fenchel.decoders import Threshold, TrainingSet
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian
from fenchel.metrics import f1_scores

KERNEL = Gaussian(0.5)


@pytest.fixture
def rare(rng):
    """Return inputs and label sets with few labels, for which one half is too high a threshold."""
    X = rng.standard_normal((150, 2))
    sides = np.array([[1.0, 0.0], [0.0, 1.0], [-0.7, 0.7], [0.7, 0.7], [-1.0, 0.3]])
    return X, (X @ sides.T + 0.5 * rng.standard_normal((150, 5)) > 1.3).astype(np.int8)


def held_out(X, Y, lam, folds):
    """Return predictions before decoding of models that have not seen a sample, around the mean of all samples."""
    predicted, mean = np.zeros(Y.shape), Y.mean(axis=0)
    for train, test in folds.split(X):
        part = StructuredPredictor(KERNEL, lam=lam, decoder="clamp").fit(X[train], Y[train] - mean)
        predicted[test] = part.embed(X[test]) + mean
    return predicted


def test_the_threshold_is_the_best_of_held_out_samples(rare):
    X, Y = rare
    folds = KFold(3, shuffle=True, random_state=1)
    model = StructuredPredictorCV(KERNEL, lams=[0.1], decoder=Threshold("auto"), center=True, cv=folds).fit(X, Y)
    predicted = held_out(X, Y, 0.1, folds)
    thresholds = np.round(np.arange(0.1, 0.91, 0.04), 2)
    losses = np.array([np.mean((predicted > threshold) != Y, axis=1) for threshold in thresholds])
    gain = losses[10] - losses  # over one half
    assert thresholds[10] == 0.5
    best = np.mean(gain, axis=1).argmax()
    assert np.mean(gain[best]) > np.std(gain[best]) / len(X) ** 0.5
    equal = thresholds[np.isclose(np.mean(gain, axis=1), np.mean(gain[best]))]
    assert model.decoder_.threshold == pytest.approx(max(equal[equal < 0.5]))  # the nearest to one half


def test_a_threshold_that_is_hardly_better_is_not_taken(rng):
    """Labels that are noise have no best threshold, and one half stays."""
    X, Y = rng.standard_normal((60, 2)), rng.integers(0, 2, (60, 3))
    assert StructuredPredictorCV(KERNEL, lams=[1e-2], decoder=Threshold("auto")).fit(X, Y).decoder_.threshold == 0.5


def test_the_threshold_of_a_task_loss(rare):
    """Each pair is measured with the threshold that is best for it."""
    X, Y = rare

    def missed(truth, decoded):
        return 1 - f1_scores(truth, decoded)

    settings = {"lams": [0.1, 10.0], "cv": KFold(3), "output_kernel": "linear", "decoder": Threshold("auto")}
    model = StructuredPredictorCV(KERNEL, center=True, task_loss=missed, **settings).fit(X, Y)
    for lam, found in zip((0.1, 10.0), model.cv_errors_[0], strict=True):
        predicted = held_out(X, Y, lam, KFold(3))
        losses = [np.mean(missed(Y, (predicted > k / 50).astype(int))) for k in range(5, 46, 2)]
        assert_allclose(found, min(losses))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, bool, np.float32])
@pytest.mark.parametrize("decoder", ["threshold", "training_set"])
def test_labels_keep_their_dtype(rare, dtype, decoder):
    X, Y = rare
    model = StructuredPredictor(KERNEL, decoder=decoder).fit(X, Y.astype(dtype))
    wanted = StructuredPredictor(KERNEL, decoder=decoder).fit(X, Y.astype(float))
    found = model.predict(X[:9])
    assert found.dtype == (np.float64 if dtype is np.float32 else dtype)  # floats are in the dtype of the inputs
    assert_array_equal(found, wanted.predict(X[:9]))
    assert model.score(X, Y.astype(dtype)) == wanted.score(X, Y.astype(float))


def test_real_predictions_are_not_rounded(rare):
    X, Y = rare
    assert StructuredPredictor(KERNEL, decoder="clamp").fit(X, Y).predict(X).dtype == np.float64


def test_decoders_where_none_is_named(rare):
    X, Y = rare
    assert isinstance(StructuredPredictorCV(KERNEL, lams=[1e-2]).fit(X, Y).decoder_, Threshold)
    classes = np.eye(3, dtype=int)[np.digitize(X[:, 0], [-0.4, 0.4])]
    model = StructuredPredictorCV(KERNEL, lams=[1.0], center=False, cv=3).fit(X, classes)
    assert isinstance(model.decoder_, TrainingSet)  # the nearest class where no value is above a half
    assert_array_equal(model.predict(X).sum(axis=1), 1)
    assert isinstance(StructuredPredictorCV(KERNEL, lams=[1e-2]).fit(X, 2 * Y).decoder_, TrainingSet)


def test_the_width_of_the_output_kernel(rare):
    """The best of the models with one output kernel each."""
    X, Y = rare
    settings = {"lams": [1e-2], "cv": KFold(3)}
    kernels = [Gaussian(gamma) for gamma in (100.0, 1.0, 0.01)]
    alone = [
        StructuredPredictorCV(KERNEL, kernel, task_loss=lambda A, B: np.mean(A != B, axis=1), **settings).fit(X, Y)
        for kernel in kernels
    ]
    errors = [model.cv_errors_.min() for model in alone]
    model = StructuredPredictorCV(KERNEL, kernels, **settings).fit(X, Y)
    assert len(set(errors)) > 1
    assert repr(model.best_output_kernel_) == repr(kernels[int(np.argmin(errors))])
    assert model.cv_errors_.min() == min(errors)
    found = StructuredPredictorCV(KERNEL, task_loss=lambda A, B: np.any(A != B, axis=1), **settings).fit(X, Y)
    median = Gaussian("median").resolve(Y.astype(float)).gamma
    assert repr(found.best_output_kernel_) in {repr("linear"), *(repr(Gaussian(median * f)) for f in (1.0, 4.0, 0.25))}


def test_a_choice_needs_a_task_loss(rare):
    X, Y = rare
    kernels = ["linear", Gaussian(1.0)]
    with pytest.raises(ValueError, match="choice among output kernels or thresholds needs a task loss"):
        StructuredPredictorCV(KERNEL, kernels, lams=[1e-2]).fit(X, 2 * Y)
    with pytest.raises(ValueError, match="must hold at least one kernel"):
        StructuredPredictorCV(KERNEL, [], lams=[1e-2]).fit(X, Y)
    with pytest.raises(IncompatibleError, match="requires output_kernel='linear'"):
        StructuredPredictorCV(KERNEL, Gaussian(1.0), lams=[1e-2], decoder=Threshold("auto")).fit(X, Y)


def test_units_do_not_matter(rare):
    X, Y = rare
    found = StructuredPredictorCV().fit(X, Y)
    other = StructuredPredictorCV().fit(X * [1e3, 1e-4] + 5, Y)
    assert repr(found.decoder_) == repr(other.decoder_)
    assert_allclose(found.embed(X[:20]), other.embed(X[:20] * [1e3, 1e-4] + 5), rtol=0, atol=1e-6)
