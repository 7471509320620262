import pickle

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, hamming_loss, top_k_accuracy_score
from sklearn.model_selection import GridSearchCV

from fenchel import StructuredPredictor
from fenchel.metrics import (
    f1_scores,
    hamming_losses,
    label_scorer,
    ranks_of,
    subset_accuracies,
    top_k_accuracies,
)

ROUND_OFF = 16 * np.finfo(float).eps


@pytest.fixture
def labels():
    rng = np.random.default_rng(0)
    return (rng.random((60, 7)) < 0.4).astype(float), (rng.random((60, 7)) < 0.4).astype(float)


class TestLabels:
    def test_by_hand(self):
        Y = np.array([[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]])
        guess = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]])
        np.testing.assert_allclose(hamming_losses(Y, guess), [0.75, 0, 0.25, 0])
        np.testing.assert_allclose(f1_scores(Y, guess), [2 / 5, 1, 0, 1])
        np.testing.assert_allclose(subset_accuracies(Y, guess), [0, 1, 0, 1])

    def test_against_scikit_learn(self, labels):
        Y, guess = labels
        assert np.mean(hamming_losses(Y, guess)) == pytest.approx(hamming_loss(Y, guess), rel=ROUND_OFF)
        expected = f1_score(Y, guess, average="samples", zero_division=1.0)
        assert np.mean(f1_scores(Y, guess)) == pytest.approx(expected, rel=ROUND_OFF)
        guess[:5] = Y[:5]
        assert np.mean(subset_accuracies(Y, guess)) == pytest.approx(accuracy_score(Y, guess), rel=ROUND_OFF)

    def test_any_number_type(self, labels):
        Y, guess = labels
        for kind in (bool, np.uint8, np.float32):
            np.testing.assert_array_equal(f1_scores(Y.astype(kind), guess.astype(kind).tolist()), f1_scores(Y, guess))

    @pytest.mark.parametrize("function", [hamming_losses, f1_scores, subset_accuracies])
    def test_errors(self, function):
        with pytest.raises(ValueError, match="predicted must hold labels that are 0 or 1"):
            function([[1, 0]], [[0.7, 0]])
        with pytest.raises(ValueError, match="Y must hold labels that are 0 or 1"):
            function([[np.nan, 0]], [[1, 0]])
        with pytest.raises(ValueError, match=r"predicted must have the shape of Y, \(1, 2\)"):
            function([[1, 0]], [[1, 0, 1]])
        with pytest.raises(ValueError, match="one row of labels for each sample"):
            function([1, 0], [1, 0])


class TestRanks:
    def test_by_hand(self):
        ranks = ranks_of([np.array([0.1, 0.5, 0.3]), np.array([0.2, 0.2]), np.array([3.0])], [2, 0, 0])
        np.testing.assert_array_equal(ranks, [1, 1, 0])
        np.testing.assert_array_equal(top_k_accuracies(ranks, 1), [0, 0, 1])
        np.testing.assert_array_equal(top_k_accuracies(ranks, 2), [1, 1, 1])

    @pytest.mark.parametrize("k", [1, 3, 5])
    def test_against_scikit_learn(self, k):
        rng = np.random.default_rng(1)
        scores, true = rng.normal(size=(50, 8)), rng.integers(8, size=50)
        found = np.mean(top_k_accuracies(ranks_of(scores, true), k))
        assert found == pytest.approx(top_k_accuracy_score(true, -scores, k=k, labels=np.arange(8)), rel=ROUND_OFF)

    def test_errors(self):
        with pytest.raises(ValueError, match="Sample 0 has 2, got 2"):
            ranks_of([[0.1, 0.2]], [2])
        with pytest.raises(ValueError, match="Got 1 and 2"):
            ranks_of([[0.1, 0.2]], [0, 1])
        with pytest.raises(ValueError, match="as integers"):
            ranks_of([[0.1, 0.2]], [0.0])
        with pytest.raises(ValueError, match="must not be NaN"):
            ranks_of([[np.nan, 0.2]], [1])
        with pytest.raises(ValueError, match="'k' parameter of top_k_accuracies must be an int in"):
            top_k_accuracies([0, 1], 0)
        with pytest.raises(ValueError, match="of non-negative integers"):
            top_k_accuracies([-1], 1)


class TestScorer:
    def test_values_and_pickle(self, labels):
        Y, guess = labels

        class Model:
            def predict(self, X):
                return guess

        for name, expected in (("hamming", -hamming_loss(Y, guess)), ("subset", accuracy_score(Y, guess))):
            scorer = pickle.loads(pickle.dumps(label_scorer(name)))
            assert scorer(Model(), None, Y) == pytest.approx(expected, rel=ROUND_OFF)
        assert label_scorer("f1")(Model(), None, guess) == 1.0

    def test_search_prefers_the_better_model(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        Y = (np.hstack([X, X @ [[1.0], [1.0]]]) > 0).astype(float)
        search = GridSearchCV(
            StructuredPredictor(decoder="threshold"), {"lam": [1e-3, 10.0]}, scoring=label_scorer("hamming"), cv=3
        ).fit(X, Y)
        assert search.best_params_ == {"lam": 1e-3} and -0.25 < search.best_score_ < 0

    def test_errors(self):
        with pytest.raises(ValueError, match="one of 'hamming', 'f1', 'subset'"):
            label_scorer("accuracy")
