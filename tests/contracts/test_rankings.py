"""Preferences and orders of several samples at once, and insertions."""

from itertools import permutations

import numpy as np
import pytest

from fenchel.decoders import FeedbackArcSet, insert_items, order_items
from fenchel.task_losses import RankLoss, TaskSpace

EPS = np.finfo(float).eps


def ratings(n, M, seed=0, share=0.6):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, M)) < share, rng.integers(1, 6, (n, M)), np.nan)


def graph(M, seed=0):
    A = np.random.default_rng(seed).integers(-9, 10, (M, M)).astype(float)
    return np.triu(A, 1) - np.triu(A, 1).T


def against(preferences, order):
    """The preference that an order goes against, arc by arc."""
    return sum(max(preferences[j, i], 0) for k, i in enumerate(order) for j in order[k + 1 :])


@pytest.mark.parametrize("normalize", [False, True, 0.5])
def test_preferences_are_differences_of_losses(normalize):
    """What putting i before j wins, of two rankings that differ in these alone."""
    loss, Z, M = RankLoss(normalize), ratings(7, 5), 5
    weights = np.random.default_rng(1).standard_normal((3, 7))
    found = loss.preferences(weights, Z)
    assert found.shape == (3, M, M)
    for i in range(M):
        for j in set(range(M)) - {i}:
            rest = [k for k in range(M) if k not in (i, j)]
            above, below = np.zeros((2, 1, M))
            above[0, [*rest, j, i]] = below[0, [*rest, i, j]] = np.arange(M)
            won = (weights @ (loss.matrix(below, Z) - loss.matrix(above, Z)).T)[:, 0]
            np.testing.assert_allclose(found[:, i, j], won, atol=64 * EPS * np.abs(weights).sum() * 5)
    np.testing.assert_array_equal(found, -found.transpose(0, 2, 1))
    np.testing.assert_allclose(found[1], loss.preferences(weights[1], Z), atol=64 * EPS * 35)


def test_preferences_of_more_items_than_a_tile():
    loss, Z = RankLoss(normalize=False), ratings(6, 300, share=0.3)
    weights = np.random.default_rng(1).standard_normal((2, 6))
    differences = np.nan_to_num(Z[:, :, None] - Z[:, None, :])
    expected = np.einsum("mk,kij->mij", weights, differences)
    np.testing.assert_allclose(loss.preferences(weights, Z), expected, atol=1e-13)


def test_samples_without_weight_have_no_part():
    loss, Z = RankLoss(), ratings(5, 8)
    np.testing.assert_array_equal(loss.preferences(np.zeros((2, 5)), Z), np.zeros((2, 8, 8)))


def test_orders_side_by_side():
    graphs = np.stack([graph(9, seed) for seed in range(20)])
    np.testing.assert_array_equal(order_items(graphs), [order_items(one) for one in graphs])


class TestInsertions:
    @pytest.mark.parametrize("seed", range(10))
    def test_no_single_move_wins_more(self, seed):
        """Every move of one item, tried in turn."""
        A = graph(12, seed)
        start = np.random.default_rng(seed).permutation(12)
        order = insert_items(A, start, 50)
        assert sorted(order) == list(range(12))
        least = against(A, order)
        assert least < against(A, start)
        for item in range(12):
            rest = [k for k in order if k != item]
            for place in range(12):
                assert against(A, [*rest[:place], item, *rest[place:]]) >= least

    def test_a_sweep_moves_each_item_to_its_best_place(self):
        """By the definition, one item after the other."""
        A, start = graph(10, 3), np.random.default_rng(3).permutation(10)
        order = list(start)
        for item in start:
            rest = [k for k in order if k != item]
            tried = [[*rest[:place], item, *rest[place:]] for place in range(10)]
            values = [against(A, one) for one in tried]
            if min(values) < against(A, order):
                order = tried[int(np.argmin(values))]
        assert against(A, insert_items(A, start, 1)) == against(A, order)

    def test_to_both_ends(self):
        A = np.zeros((4, 4))
        A[3, :3], A[:3, 3] = 1.0, -1.0
        assert insert_items(A, np.arange(4), 1)[0] == 3
        assert insert_items(-A, np.array([3, 0, 1, 2]), 1)[-1] == 3

    def test_an_order_that_loses_nothing_stays(self):
        A = np.triu(np.ones((6, 6)), 1)
        order = np.arange(6)
        np.testing.assert_array_equal(insert_items(A - A.T, order, 3), order)
        np.testing.assert_array_equal(insert_items(np.zeros((6, 6)), order[::-1], 3), order[::-1])

    def test_near_the_optimum(self):
        """The optimum of most graphs of six items is found, and none is missed by much."""
        shares = []
        for seed in range(40):
            A = graph(6, seed)
            least = min(against(A, order) for order in permutations(range(6)))
            greedy = order_items(A)
            found = against(A, insert_items(A, greedy, 20))
            assert found <= against(A, greedy)
            shares.append(found == least)
        assert np.mean(shares) >= 0.7


class TestFeedbackArcSet:
    def decode(self, weights, Z, sweeps):
        space = TaskSpace(RankLoss(), Z)
        return FeedbackArcSet(sweeps=sweeps).fit(Z, space).decode(weights)

    def test_sweeps_lower_the_weighted_loss(self):
        Z, weights = ratings(30, 20, share=0.3), np.random.default_rng(2).random((8, 30))
        losses = []
        for sweeps in (0, 1, 9):
            ranks = self.decode(weights, Z, sweeps)
            np.testing.assert_array_equal(np.sort(ranks, axis=1), np.tile(np.arange(1, 21), (8, 1)))
            losses.append(np.sum(weights * RankLoss().matrix(ranks, Z), axis=1))
        assert np.all(losses[1] < losses[0]) and np.all(losses[2] <= losses[1] + 64 * EPS * weights.sum())

    def test_blocks(self, monkeypatch):
        Z, weights = ratings(30, 20), np.random.default_rng(2).integers(1, 9, (7, 30)).astype(float)
        expected = self.decode(weights, Z, 1)
        monkeypatch.setattr("fenchel.decoders.ranking._BLOCK", 2 * 20**2)
        np.testing.assert_array_equal(self.decode(weights, Z, 1), expected)

    @pytest.mark.parametrize("sweeps", [-1, 1.5])
    def test_bad_sweeps(self, sweeps):
        with pytest.raises(ValueError, match="The 'sweeps' parameter of FeedbackArcSet must be an int in"):
            FeedbackArcSet(sweeps=sweeps).validate()
