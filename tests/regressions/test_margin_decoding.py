"""MaxMargin is a loss of inner products: the best output has the largest product, not the smallest distance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel import KernelAutoencoder, StructuredPredictor, StructuredPredictorCV
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Polynomial
from fenchel.losses import MaxMargin
from fenchel.metrics import hamming_losses

DIRECTIONS = np.array([[4.0, 0.0, 0.0], [0.0, 0.5, 0.0]])  # of very different length


@pytest.fixture
def classes(rng):
    X = rng.standard_normal((60, 2))
    return X, DIRECTIONS[(X[:, 0] > 0).astype(int)]


def model(**settings):
    return StructuredPredictor(**{"kernel": Gaussian(1.0), "loss": MaxMargin(), "lam": 1e-4, **settings})


def differences(Y, Z):
    return np.sum(np.abs(Y - Z), axis=1)


def test_training_outputs_are_found_again(classes):
    """argmin over z of max(0, 1 - <h, z>) has no error on a sample that a margin separates."""
    X, Y = classes
    assert_array_equal(model().fit(X, Y).predict(X), Y)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("output_kernel", ["linear", Polynomial(2, coef0=1.0)], ids=repr)
def test_scores_are_the_products_of_the_loss(classes, rng, output_kernel, center):
    """A candidate's score is that of -<h, phi(c)>, with h as in the loss, also in sets of their own."""
    X, Y = classes
    fitted = model(output_kernel=output_kernel, center=center).fit(X, Y)
    candidates = rng.standard_normal((7, 3))
    centred = fitted.embed(X) - fitted.representation_.mean_
    products = centred @ fitted.representation_.encode(Y).rows.T
    assert_allclose(fitted.decision_scores(X, Y), -products, rtol=0, atol=1e-9 * np.abs(products).max())
    scores = fitted.decision_scores(X, candidates)
    each = fitted.decision_scores(X, [candidates] * len(X))
    assert_allclose(np.stack(each), scores, rtol=0, atol=1e-12 * np.abs(scores).max())
    assert_array_equal(fitted.predict(X, candidates), candidates[np.argmin(scores, axis=1)])
    assert_array_equal(fitted.top_k(X, 3, candidates, indices=True), np.argsort(scores, axis=1)[:, :3])


def test_outputs_known_by_their_gram_matrix(classes):
    X, Y = classes
    same = model(output_kernel="precomputed").fit(X, Y @ Y.T)
    assert_array_equal(Y[same.predict(X)], Y)
    assert_array_equal(same.predict(X, (DIRECTIONS @ Y.T, np.sum(DIRECTIONS**2, axis=1))), (X[:, 0] > 0).astype(int))


@pytest.mark.parametrize("decoder", ["threshold", "clamp", "preimage"])
def test_decoders_of_the_nearest_object_say_so(classes, decoder):
    X, Y = classes
    kernel = Gaussian(1.0) if decoder == "preimage" else "linear"
    with pytest.raises(IncompatibleError, match=r"finds the nearest object.*Use TrainingSet\(\) or Candidates\(\)"):
        model(output_kernel=kernel, decoder=decoder).fit(X, Y)


def test_search_decodes_by_products(classes):
    X, Y = classes
    settings = {"kernel": Gaussian(1.0), "lams": [1e-4, 1e-3], "center": False, "task_loss": differences, "cv": 3}
    found = StructuredPredictorCV(**settings, losses=[MaxMargin()], output_kernel="linear").fit(X, Y)
    assert found.cv_errors_.min() < 1  # by distances, no sample with the short output is found: error 2.2
    assert_array_equal(found.predict(X), Y)


@pytest.mark.parametrize(
    "settings", [{"losses": [MaxMargin()]}, {"losses": ["square", MaxMargin()], "task_loss": hamming_losses}]
)
def test_search_refuses_what_it_cannot_compare(classes, settings):
    X, Y = classes
    with pytest.raises(IncompatibleError, match="can be compared only after decoding"):
        StructuredPredictorCV(kernel=Gaussian(1.0), lams=[1e-3], cv=3, **settings).fit(X, Y)


def test_autoencoder(classes):
    """Codes are decoded by the loss too."""
    _, Y = classes
    fitted = KernelAutoencoder(2, "linear", hidden_kernel="linear", loss=MaxMargin(), lam=1e-4, random_state=0).fit(Y)
    assert_array_equal(fitted.inverse_transform(fitted.transform(Y), DIRECTIONS), Y)
