"""Ties are decided by order, not by round-off: 3 * 0.1 is 0.3 here, whichever comes first."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fenchel import StructuredPredictor
from fenchel.decoders import (
    Candidates,
    CircleMinimum,
    FeedbackArcSet,
    LabelVote,
    Preimage,
    RiemannianDescent,
    ScalarMinimum,
    TrainingSet,
    insert_items,
    order_items,
)
from fenchel.decoders._ties import first_least, first_of_each_row, least_first, round_off
from fenchel.kernels import Gaussian
from fenchel.representations import KernelOutputs
from fenchel.task_losses import (
    Absolute,
    Cauchy,
    CircleGeodesic,
    Hamming,
    KernelInduced,
    LossMatrix,
    RankLoss,
    SphereDiffusion,
    TaskSpace,
)

EPS = np.finfo(np.float64).eps
HEAVY, LIGHT = [0.3], [0.1, 0.1, 0.1]  # equal in sum; in floating point the light ones are heavier
BOTH_WAYS = pytest.mark.parametrize("heavy_first", [True, False])


def two_groups(heavy_first, one, other):
    """Return weights and outputs of two groups of equal weight, and the output that comes first."""
    weights, outputs = (HEAVY + LIGHT, [one] + [other] * 3) if heavy_first else (LIGHT + HEAVY, [one] * 3 + [other])
    return np.array([weights]), np.array(outputs)


def test_round_off_follows_the_dtype():
    assert round_off(np.ones(1)) == [64 * EPS]
    assert round_off(np.ones(1, dtype=np.float32)) == [64 * np.finfo(np.float32).eps]


def test_first_least():
    values = np.array([[3.0, 1.0 + EPS, 1.0], [1.0, 1.0 + EPS, 3.0], [1.1, 1.0, 1.0]])
    assert_array_equal(first_least(values, np.full(3, 4 * EPS)), [1, 0, 1])
    assert_array_equal(first_least(values, np.zeros(3)), [2, 0, 1])


def test_first_of_each_row():
    rows, values = np.array([0, 0, 1, 1, 1]), np.array([1.0 + EPS, 1.0, 2.0, 1.0, 1.0 - EPS])
    assert_array_equal(first_of_each_row(rows, values, np.full(5, 4 * EPS)), [0, 3])
    assert_array_equal(first_of_each_row(rows, values, np.zeros(5)), [1, 4])


def test_least_first():
    """Equal ones in the order of their places, and all of them before greater ones."""
    values = np.array([[2.0, 1.0 + EPS, 0.5, 1.0, 1.0 - EPS, 0.5 - EPS]])
    for k, order in ((1, [2]), (2, [2, 5]), (3, [2, 5, 1]), (5, [2, 5, 1, 3, 4]), (9, [2, 5, 1, 3, 4, 0])):
        assert_array_equal(least_first(values, k, np.full(1, 4 * EPS)), [order])
    places = np.array([[9, 8, 7, 6, 5, 4]])
    for k, order in ((1, [5]), (3, [5, 2, 4])):
        assert_array_equal(least_first(values, k, np.full(1, 4 * EPS), places), [order])


class TestCandidates:
    LOSS = LossMatrix(np.array([[3.0, 0.0], [0.0, 1.0], [9.0, 9.0]]), classes=[0, 1], decisions=[0, 1, 2])
    WEIGHTS = np.array([[0.1, 0.3]])  # the first two decisions cost 3 * 0.1 and 0.3

    def decoder(self, candidates=None):
        return Candidates(candidates).fit(np.arange(2), TaskSpace(self.LOSS, np.arange(2)))

    @pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0], [2, 0, 1]])
    def test_the_first(self, order):
        order = np.array(order)
        assert self.decoder(order).decode(self.WEIGHTS) == order[order < 2][0]
        assert self.decoder().decode(self.WEIGHTS, [order]) == order[order < 2][0]
        assert_array_equal(self.decoder(order).top_k(self.WEIGHTS, 3)[0], [*order[order < 2], 2])

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_in_any_block(self, monkeypatch, k):
        monkeypatch.setattr("fenchel.task_losses.task_loss._BLOCK", 1)
        candidates = np.array([2, 0, 1, 0, 1, 2])
        assert_array_equal(self.decoder(candidates).nearest(self.WEIGHTS, k), [[1, 2, 3][:k]])

    def test_a_difference_counts(self):
        """One part in 1e12 is no round-off."""
        assert self.decoder(np.arange(3)).decode(np.array([[0.1, 0.3 * (1 - 1e-12)]])) == [1]

    def test_a_far_candidate_widens_no_tie(self):
        Y = np.array([[0.0], [1e-3], [1e8]])
        model = StructuredPredictor(decoder=Candidates(Y), lam=1e-8).fit(np.eye(2), np.array([[0.0], [1e-3]]))
        assert_array_equal(model.predict(np.eye(2)), Y[:2])

    @pytest.mark.parametrize("single", [False, True])
    def test_distances_of_a_kernel(self, single):
        """Vectors whose entries are in another order are as far from a multiple of (1, 1, 1)."""
        rng = np.random.default_rng(0)
        for _ in range(50):
            first = rng.standard_normal(3)
            candidates = np.array([first, first[[2, 0, 1]], first[[1, 2, 0]]])
            space = KernelOutputs("linear").fit(candidates)
            decoder = Candidates(candidates, single=single).fit(candidates, space)
            assert_array_equal(decoder.nearest(np.full((1, 3), 0.1), 3), [[0, 1, 2]])

    @BOTH_WAYS
    def test_training_set(self, heavy_first):
        weights, outputs = two_groups(heavy_first, "a", "b")
        loss = LossMatrix(1 - np.eye(2), classes=["a", "b"])
        assert TrainingSet().fit(outputs, TaskSpace(loss, outputs)).decode(weights) == ["a"]


class TestSearches:
    @BOTH_WAYS
    @pytest.mark.parametrize(("one", "other"), [(-1.0, 1.0), (1.0, -1.0)])
    @pytest.mark.parametrize("loss", [Absolute(), Cauchy(0.1)], ids=repr)
    def test_scalar_minimum_takes_the_smaller_number(self, loss, one, other, heavy_first):
        weights, outputs = two_groups(heavy_first, one, other)
        found = ScalarMinimum().fit(outputs, TaskSpace(loss, outputs)).decode(weights)
        assert -1 <= found[0] < -0.9

    @BOTH_WAYS
    @pytest.mark.parametrize(("one", "other"), [(-1.0, 1.0), (1.0, -1.0)])
    def test_circle_takes_the_first_angle(self, one, other, heavy_first):
        weights, outputs = two_groups(heavy_first, one, other)
        loss = CircleGeodesic(1.0)
        found = CircleMinimum().fit(outputs, TaskSpace(loss, outputs)).decode(weights)
        assert found == pytest.approx([-1.0], abs=1e-9)

    @BOTH_WAYS
    def test_label_vote_takes_zero(self, heavy_first):
        for one in (0.0, 1.0):
            weights, outputs = two_groups(heavy_first, [one], [1 - one])
            decoder = LabelVote().fit(outputs, TaskSpace(Hamming(), outputs))
            assert_array_equal(decoder.decode(np.vstack([weights, 0 * weights])), [[0.0], [0.0]])

    @BOTH_WAYS
    def test_preimage_takes_the_first_hill(self, heavy_first):
        weights, outputs = two_groups(heavy_first, [9.0], [0.0])
        space = TaskSpace(KernelInduced(Gaussian(0.5)), outputs)
        assert Preimage().fit(outputs, space).decode(weights)[0, 0] == pytest.approx(9.0)

    @BOTH_WAYS
    def test_descent_takes_the_first_end(self, heavy_first):
        """Each group is a well of the diffusion distance, at a right angle to the other one."""
        weights, outputs = two_groups(heavy_first, [0.0, 1.0, 0.0], [1.0, 0.0, 0.0])
        found = RiemannianDescent().fit(outputs, TaskSpace(SphereDiffusion(0.05), outputs)).decode(weights)
        assert found[0, 1] > 0.99


class TestRankings:
    @BOTH_WAYS
    def test_round_off_is_no_preference(self, heavy_first):
        weights, outputs = two_groups(heavy_first, [1.0, 2.0, 0.0], [2.0, 1.0, 0.0])
        preferences = RankLoss().preferences(weights[0], outputs)
        assert preferences[0, 1] == preferences[1, 0] == 0
        assert preferences[0, 2] > 0

    def test_equal_sums(self):
        """A cycle of equal preferences: no source, no sink, and the sums are equal but for round-off."""
        for noise in (-1e-16, 0.0, 1e-16):
            P = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0 + noise], [1.0, -1.0 - noise, 0.0]])
            assert_array_equal(order_items(P), [0, 1, 2])

    def test_insertion_moves_for_a_gain_only(self):
        for noise in (-1e-16, 0.0, 1e-16):
            P = np.array([[0.0, noise, 1.0], [-noise, 0.0, 1.0], [-1.0, -1.0, 0.0]])
            assert_array_equal(insert_items(P, np.array([1, 0, 2]), 3), [1, 0, 2])

    @BOTH_WAYS
    def test_raters_who_cancel(self, heavy_first):
        weights, outputs = two_groups(heavy_first, [1.0, 2.0], [2.0, 1.0])
        found = FeedbackArcSet().fit(outputs, TaskSpace(RankLoss(), outputs)).decode(weights)
        none = FeedbackArcSet().fit(outputs, TaskSpace(RankLoss(), outputs)).decode(0 * weights)
        assert_array_equal(found, none)
