"""Decoders against brute force: all candidates, all 0/1 vectors, points of the box, finite differences."""

import re
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fenchel.decoders import (
    Candidates,
    CircleMinimum,
    Clamp,
    FeedbackArcSet,
    LabelVote,
    Preimage,
    RiemannianDescent,
    ScalarMinimum,
    Simplex,
    Threshold,
    TrainingSet,
    WeightedMean,
)
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, GaussianTanimoto, Laplacian, Linear
from fenchel.representations import KernelOutputs, kernel_outputs
from fenchel.task_losses import (
    LeastSquares,
    TaskSpace,
)
from fenchel.testing.decoders import decoding_spaces

GAMMA = 0.4
CLOSE = 1e-9  # distances after a triangular solve


def gaussian(A, B):
    return np.exp(-GAMMA * ((A[:, None] - B[None]) ** 2).sum(-1))


def linear(A, B):
    return A @ B.T


KERNELS = {"gaussian": (Gaussian(GAMMA), gaussian), "linear": (Linear(), linear)}
every_kernel = pytest.mark.parametrize("name", KERNELS)


def points(n, d=4, seed=0):
    return np.random.default_rng(seed).random((n, d))


def fitted(name="gaussian", n=10, m=6):
    """Return a representation, weights of some elements on the training outputs, and their coordinates."""
    bound = KernelOutputs(KERNELS[name][0]).fit(points(n))
    weights = np.random.default_rng(1).standard_normal((m, n)) / 2
    return bound, weights, weights @ bound.targets_


def brute(name, weights, C, n=10):
    """Return the squared distances to candidates, from kernel values alone."""
    k, Y = KERNELS[name][1], points(n)
    squares = np.sum((weights @ k(Y, Y)) * weights, axis=1)[:, None]
    return squares - 2 * weights @ k(Y, C) + np.diag(k(C, C))


@pytest.mark.parametrize(
    ("decoder", "wanted"),
    [
        (WeightedMean(), {"LeastSquares": "squared distances of vectors"}),
        (ScalarMinimum(), {"Cauchy": "numbers"}),
        (FeedbackArcSet(), {"RankLoss": "rankings"}),
        (CircleMinimum(), {"CircleGeodesic": "angles"}),
        (RiemannianDescent(), {"SphereGeodesic": "points of a manifold"}),
        (LabelVote(), {"Hamming": "0/1 label vectors, label by label"}),
        (Simplex(), {"Hellinger": "histograms", "ChiSquare": "histograms"}),
    ],
    ids=repr,
)
def test_decoders_of_one_kind_of_task_loss(decoder, wanted):
    name, what = type(decoder).__name__, next(iter(wanted.values()))
    for Y, space in decoding_spaces():
        loss = getattr(space, "task_loss", None)
        if type(loss).__name__ in wanted:
            assert clone(decoder).fit(Y, space).representation_ is space
            continue
        came = "no task loss" if loss is None else re.escape(repr(loss))
        with pytest.raises(
            IncompatibleError,
            match=rf"(?m)^{name} is for LossTrickPredictor with a task loss of {what}\. Got {came}\.$",
        ):
            clone(decoder).fit(Y, space)


@pytest.mark.parametrize("decoder", [Threshold(), Clamp()], ids=repr)
def test_decoders_of_features_are_not_for_task_losses(decoder):
    Y = points(5)
    with pytest.raises(IncompatibleError, match=r"coordinate by coordinate, which requires output_kernel='linear'"):
        clone(decoder).fit(Y, TaskSpace(LeastSquares(), Y))


class TestCandidates:
    @every_kernel
    @pytest.mark.parametrize("block", [None, 1, 64])
    def test_nearest_of_all(self, name, block, monkeypatch):
        if block is not None:
            monkeypatch.setattr(kernel_outputs, "_BLOCK", block)
        bound, weights, codes = fitted(name)
        C = points(25, seed=2)  # none of them was seen
        wanted = brute(name, weights, C)
        own = Candidates(C).fit(None, bound)
        assert_allclose(own.distances(codes), wanted, rtol=0, atol=CLOSE)
        assert_array_equal(own.decode(codes), C[np.argmin(wanted, axis=1)])
        given = Candidates().fit(None, bound)
        assert_array_equal(given.decode(codes, C), C[np.argmin(wanted, axis=1)])
        assert len(set(np.argmin(wanted, axis=1))) > 1

    @every_kernel
    @pytest.mark.parametrize("block", [None, 1, 64])
    def test_one_set_for_each(self, name, block, monkeypatch):
        if block is not None:
            monkeypatch.setattr(kernel_outputs, "_BLOCK", block)
        bound, weights, codes = fitted(name)
        sets = [points(size, seed=10 + size) for size in (3, 1, 7, 2, 12, 5)]
        wanted = [brute(name, weights[i : i + 1], sets[i])[0] for i in range(6)]
        decoder = Candidates().fit(None, bound)
        for found, right in zip(decoder.distances(codes, sets), wanted, strict=True):
            assert_allclose(found, right, rtol=0, atol=CLOSE)
        best = np.stack([one[np.argmin(right)] for one, right in zip(sets, wanted, strict=True)])
        assert_array_equal(decoder.decode(codes, sets), best)
        for one, right, top in zip(sets, wanted, decoder.top_k(codes, 3, sets), strict=True):
            assert_array_equal(top, one[np.argsort(right)[:3]])

    def test_given_sets_come_before_its_own(self):
        bound, weights, codes = fitted()
        decoder = Candidates(points(3, seed=2)).fit(None, bound)
        other = points(8, seed=3)
        assert_array_equal(decoder.decode(codes, other), other[np.argmin(brute("gaussian", weights, other), axis=1)])

    def test_the_norm_of_the_candidate_counts(self):
        """h = (1, 0): the long candidate has the larger product, the short one is nearer."""
        bound = KernelOutputs().fit(np.eye(2))
        C = np.array([[3.0, 3.0], [1.0, 0.1]])
        h = np.array([[1.0, 0.0]])
        assert np.argmax(h @ C.T) == 0
        assert_array_equal(Candidates(C).fit(None, bound).decode(h), C[[1]])
        assert_array_equal(Candidates().fit(None, bound).decode(h, [C]), C[[1]])
        assert_allclose(Candidates(C).fit(None, bound).distances(h), [[13.0, 0.01]])

    def test_ties_are_decided_for_the_first(self):
        bound = KernelOutputs().fit(np.eye(2))
        C = np.array([[5.0, 5.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        h = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
        decoder = Candidates(C).fit(None, bound)
        assert [list(order) for order in decoder.nearest(h, 3)] == [[1, 2, 3], [1, 2, 3], [1, 3, 2]]
        assert [list(order) for order in decoder.nearest(h, 1)] == [[1], [1], [1]]
        assert [list(order) for order in decoder.nearest(h, 2, [C, C[::-1], C])] == [[1, 2], [0, 1], [1, 3]]

    @pytest.mark.parametrize("size", [1, 7, 33, 50])
    def test_duplicated_candidates(self, size):
        bound, weights, codes = fitted()
        C = points(size, seed=2)
        best = np.argmin(brute("gaussian", weights, C), axis=1)
        decoder = Candidates(np.concatenate([C, C, C])).fit(None, bound)
        assert [order[0] for order in decoder.nearest(codes, 1)] == list(best)
        assert_array_equal(decoder.nearest(codes, 3), best[:, None] + size * np.arange(3))

    @every_kernel
    @pytest.mark.parametrize("k", [1, 2, 9, 24, 25, 100])
    def test_top_k(self, name, k):
        bound, weights, codes = fitted(name)
        C = points(25, seed=2)
        order = np.argsort(brute(name, weights, C), axis=1)[:, :k]
        decoder = Candidates(C).fit(None, bound)
        assert_array_equal(decoder.nearest(codes, k), order)
        assert_array_equal(decoder.top_k(codes, k), C[order])
        assert decoder.top_k(codes, k).shape == (6, min(k, 25), 4)

    @pytest.mark.parametrize("k", [0, -1])
    def test_k_is_at_least_one(self, k):
        bound, _, codes = fitted()
        with pytest.raises(ValueError, match="'k' parameter of top_k"):
            Candidates(points(5)).fit(None, bound).nearest(codes, k)

    def test_sets_of_one(self):
        bound, _, codes = fitted()
        sets = [points(1, seed=i) for i in range(6)]
        assert_array_equal(Candidates().fit(None, bound).decode(codes, sets), np.concatenate(sets))
        assert_array_equal(Candidates(sets[0]).fit(None, bound).decode(codes), np.repeat(sets[0], 6, axis=0))

    def test_empty_sets(self):
        bound, _, codes = fitted()
        with pytest.raises(ValueError, match=r"must hold at least one\. Got an empty set"):
            Candidates(np.empty((0, 4))).fit(None, bound)
        with pytest.raises(ValueError, match=r"must hold at least one\. Got an empty set"):
            Candidates().fit(None, bound).decode(codes, [])
        sets = [points(2)] * 6
        sets[3] = np.empty((0, 4))
        with pytest.raises(ValueError, match=r"at least one\. The set of sample 3 is empty"):
            Candidates().fit(None, bound).decode(codes, sets)

    @pytest.mark.parametrize("number", [1, 5, 7])
    def test_wrong_number_of_sets(self, number):
        bound, _, codes = fitted()
        with pytest.raises(ValueError, match=rf"one set for each of the 6 samples\. Got {number}"):
            Candidates().fit(None, bound).decode(codes, [points(2)] * number)

    @pytest.mark.parametrize("name", ["linear", "gaussian"])
    def test_single_precision(self, name):
        bound, weights, codes = fitted(name)
        C = points(25, seed=2)
        found = Candidates(C, single=True).fit(None, bound).distances(codes)
        assert_allclose(found, brute(name, weights, C), rtol=0, atol=1e-2)
        assert found.dtype == np.float32

    def test_sets_for_each_are_for_predict(self):
        with pytest.raises(ValueError, match="Separate sets of candidates for each sample are passed to predict"):
            Candidates([points(2), points(3)]).fit(None, fitted()[0])

    def test_no_candidates(self):
        bound, _, codes = fitted()
        with pytest.raises(ValueError, match=r"There are no candidates\. Pass them to predict"):
            Candidates().fit(None, bound).decode(codes)

    @pytest.mark.parametrize("each", [False, True])
    def test_wrong_width(self, each):
        bound, _, codes = fitted("linear")
        C = points(3, d=7)
        with pytest.raises(ValueError, match=r"4 columns"):
            Candidates().fit(None, bound).decode(codes[:1], [C] if each else C)

    def test_precomputed_pairs(self):
        Y, C = points(10), points(25, seed=2)
        bound = KernelOutputs("precomputed").fit(gaussian(Y, Y))
        weights = np.random.default_rng(1).standard_normal((6, 10)) / 2
        codes, wanted = weights @ bound.targets_, brute("gaussian", weights, C)
        decoder = Candidates().fit(None, bound)
        pair = (gaussian(C, Y), np.ones(25))
        assert_allclose(decoder.distances(codes, pair), wanted, rtol=0, atol=CLOSE)
        assert_array_equal(decoder.nearest(codes, 4, pair), np.argsort(wanted, axis=1)[:, :4])
        sets = [(gaussian(C[: i + 1], Y), np.ones(i + 1)) for i in range(6)]
        for i, found in enumerate(decoder.distances(codes, sets)):
            assert_allclose(found, wanted[i, : i + 1], rtol=0, atol=CLOSE)
        own = Candidates(pair).fit(None, bound)
        assert_allclose(own.distances(codes), wanted, rtol=0, atol=CLOSE)
        assert_allclose(own.decode(codes), gaussian(C, Y)[np.argmin(wanted, axis=1)])

    @pytest.mark.parametrize("bad", [np.eye(3), (np.eye(3), np.ones(2)), (np.eye(3),)])
    def test_precomputed_candidates_are_pairs(self, bad):
        bound = KernelOutputs("precomputed").fit(np.eye(3))
        with pytest.raises(ValueError, match=r"must be a pair \(products with the training outputs of shape \(C, n\)"):
            Candidates(bad).fit(None, bound)

    def test_the_norms_of_a_pair_count(self):
        bound = KernelOutputs("precomputed").fit(np.eye(2))
        products = np.array([[3.0, 3.0], [1.0, 0.1]])
        h = bound.encode(np.array([[1.0, 0.0]])).rows
        assert Candidates().fit(None, bound).nearest(h, 1, (products, np.array([18.0, 1.01])))[0] == [1]
        assert Candidates().fit(None, bound).nearest(h, 1, (products, np.array([2.0, 1.01])))[0] == [0]

    @pytest.mark.parametrize("each", [False, True])
    def test_many_fingerprints_in_small_blocks(self, each, monkeypatch):
        """200 samples, 20 000 candidates of 256 bits, never more than 300 000 kernel values at once."""
        rng = np.random.default_rng(0)
        Y = (rng.random((60, 256)) > 0.8).astype(np.float64)
        C = (rng.random((20_000, 256)) > 0.8).astype(np.float64)
        C[:60] = Y
        weights = np.eye(60)[rng.integers(60, size=200)] + 0.05 * rng.standard_normal((200, 60))
        bound = KernelOutputs(GaussianTanimoto(2.0)).fit(Y)
        monkeypatch.setattr(kernel_outputs, "_BLOCK", 300_000)

        def direct(A):
            common = A @ Y.T
            return np.exp(-4.0 * (1 - common / (A.sum(1)[:, None] + Y.sum(1) - common)))

        scores = np.sum((weights @ direct(Y)) * weights, axis=1)[:, None] + 1 - 2 * weights @ direct(C).T
        decoder = Candidates().fit(None, bound)
        if each:  # a hundred candidates for each sample
            parts = [slice(100 * i, 100 * i + 100) for i in range(200)]
            found = np.stack(decoder.distances(weights @ bound.targets_, [C[part] for part in parts]))
            scores = np.stack([scores[i, part] for i, part in enumerate(parts)])
        else:
            found = decoder.distances(weights @ bound.targets_, C)
            best = decoder.decode(weights @ bound.targets_, C)
            assert_array_equal(best, C[np.argmin(scores, axis=1)])
        assert_allclose(found, scores, rtol=0, atol=CLOSE)


class TestTrainingSet:
    def test_distinct_outputs_in_order(self):
        Y = points(4)[[2, 0, 2, 1, 0, 0, 3]]
        for kernel in (Gaussian(GAMMA), Linear()):
            bound = KernelOutputs(kernel).fit(Y)
            decoder = TrainingSet().fit(Y, bound)
            assert_array_equal(decoder.inner_.candidates, points(4)[[2, 0, 1, 3]])
            assert_array_equal(decoder.decode(bound.targets_), Y)

    @every_kernel
    def test_nearest(self, name):
        bound, weights, codes = fitted(name)
        Y = points(10)
        wanted = Y[np.argmin(brute(name, weights, Y), axis=1)]
        assert_array_equal(TrainingSet().fit(Y, bound).decode(codes), wanted)

    def test_places_for_a_gram_matrix(self):
        _, weights, _ = fitted()
        Y = points(10)
        bound = KernelOutputs("precomputed").fit(gaussian(Y, Y))
        found = TrainingSet().fit(gaussian(Y, Y), bound).decode(weights @ bound.targets_)
        assert_array_equal(found, np.argmin(brute("gaussian", weights, Y), axis=1))

    def test_words(self):
        words = np.array(["tree", "root", "tree", "leaf"], dtype=object)
        bound = KernelOutputs(lambda A, B: (A[:, None] == B[None]).astype(float)).fit(words)
        assert_array_equal(TrainingSet().fit(words, bound).decode(bound.targets_), words)

    def test_objects_without_an_order(self):
        graphs = np.array([{"a": 1}, {"b": 2}, {"a": 1}], dtype=object)
        bound = KernelOutputs(lambda A, B: np.array([[float(a == b) for b in B] for a in A])).fit(graphs)
        assert_array_equal(TrainingSet().fit(graphs, bound).decode(bound.targets_), graphs)


class TestThreshold:
    def test_nearest_of_all_label_vectors(self):
        h = 2 * np.random.default_rng(0).random((40, 6)) - 0.5
        every = np.array(list(product([0.0, 1.0], repeat=6)))
        wanted = every[np.argmin(((h[:, None] - every[None]) ** 2).sum(-1), axis=1)]
        decoder = Threshold().fit(h, KernelOutputs().fit(h))
        assert_array_equal(decoder.decode(h), wanted)
        assert decoder.decode(h.astype(np.float32)).dtype == np.float32

    def test_another_threshold(self):
        h = np.array([[0.2, 0.3, 0.31, -1.0]])
        assert_array_equal(Threshold(0.3).fit(h, KernelOutputs().fit(h)).decode(h), [[0.0, 0.0, 1.0, 0.0]])

    @pytest.mark.parametrize("decoder", [Threshold(), Clamp()], ids=repr)
    @pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), "precomputed"], ids=repr)
    def test_linear_kernel_only(self, decoder, kernel):
        with pytest.raises(
            IncompatibleError, match=rf"{type(decoder).__name__} decodes .*requires output_kernel='linear'"
        ):
            clone(decoder).fit(np.eye(3), KernelOutputs(kernel).fit(np.eye(3)))


class TestClamp:
    @pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 0.5), (0.3, 0.3)])
    def test_nearest_point_of_the_box(self, low, high):
        h = 6 * np.random.default_rng(0).random((30, 3)) - 3
        found = Clamp(low, high).fit(h, KernelOutputs().fit(h)).decode(h)
        assert found.min() >= low
        assert found.max() <= high
        distances = ((h - found) ** 2).sum(1)
        axis = np.linspace(low, high, 9)
        box = np.array(list(product(axis, repeat=3)))
        others = ((h[:, None] - box[None]) ** 2).sum(-1)
        assert np.all(distances <= others.min(axis=1) + 1e-12)
        # the angle at the projection is obtuse for every point of the box
        assert np.all(np.sum((h - found)[:, None] * (box[None] - found[:, None]), axis=-1) <= 1e-12)

    def test_bounds_in_order(self):
        with pytest.raises(ValueError, match=r"Clamp needs low <= high\. Got 1\.0 and 0\.0"):
            Clamp(1.0, 0.0).fit(None, KernelOutputs().fit(np.eye(2)))


class TestPreimage:
    def objective(self, weights, Y, y):
        return np.sum(weights * gaussian(y, Y), axis=1)

    def decoded(self, weights, n=10, **settings):
        bound = KernelOutputs(Gaussian(GAMMA)).fit(points(n))
        return Preimage(**settings).fit(points(n), bound).decode(weights @ bound.targets_)

    @pytest.mark.parametrize("sign", ["positive", "any"])
    def test_no_worse_than_any_training_output(self, sign):
        weights = np.random.default_rng(1).standard_normal((8, 10))
        weights = np.abs(weights) if sign == "positive" else weights
        for settings in ({}, {"max_iter": 1}, {"n_starts": 1}, {"n_starts": 50}):
            found = self.objective(weights, points(10), self.decoded(weights, **settings))
            assert np.all(found >= np.max(weights @ gaussian(points(10), points(10)), axis=1) - 1e-8)

    @pytest.mark.parametrize("sign", ["positive", "any"])
    def test_gradient_vanishes(self, sign):
        weights = np.random.default_rng(1).standard_normal((8, 10))
        weights = np.abs(weights) if sign == "positive" else weights
        found = self.decoded(weights, tol=1e-15, max_iter=2000)
        step = 1e-5
        for axis in np.eye(4) * step:
            ahead = self.objective(weights, points(10), found + axis)
            behind = self.objective(weights, points(10), found - axis)
            slope = (ahead - behind) / (2 * step)
            size = np.sum(np.abs(weights), axis=1)
            inside = np.max(np.abs(found), axis=1) < 10  # with negative weights the best may be at infinity
            assert np.all(np.abs(slope[inside]) <= 1e-5 * size[inside])

    def test_no_worse_than_a_fine_grid(self):
        Y = points(6, 1)
        bound = KernelOutputs(Gaussian(GAMMA)).fit(Y)
        weights = np.random.default_rng(2).random((10, 6))
        found = Preimage().fit(Y, bound).decode(weights @ bound.targets_)
        line = np.linspace(-1, 2, 3001)[:, None]
        best = np.max(weights @ gaussian(Y, line), axis=1)
        assert_allclose(self.objective(weights, Y, found), best, rtol=1e-6)

    def test_gives_the_output_back(self):
        assert_allclose(self.decoded(np.eye(10)), points(10), rtol=0, atol=1e-6)

    def test_more_starts_are_no_worse(self):
        weights = np.random.default_rng(3).standard_normal((8, 10))
        values = [self.objective(weights, points(10), self.decoded(weights, n_starts=k)) for k in (1, 3, 10)]
        for fewer, more in pairwise(values):
            assert np.all(more >= fewer - 1e-9)

    def test_a_second_start_helps(self):
        """The nearest output sits on the lower of two hills: one alone, against many that add up between them."""
        Y = np.array([[0.0], [10.0], [11.0], [12.0], [13.0]])
        bound = KernelOutputs(Gaussian(GAMMA)).fit(Y)
        weights = np.array([[2.4, 1.0, 0.9, 0.9, 1.0]])
        ends = [
            float(self.objective(weights, Y, Preimage(n_starts=k).fit(Y, bound).decode(weights @ bound.targets_))[0])
            for k in (1, 2, 5)
        ]
        line = np.linspace(-2, 15, 17_001)[:, None]
        assert ends[0] == pytest.approx(2.4, rel=1e-6)
        assert ends[2] == pytest.approx(np.max(weights @ gaussian(Y, line)), rel=1e-6)
        assert ends[0] < ends[1] <= ends[2] + 1e-9

    @pytest.mark.parametrize("kernel", [Linear(), Laplacian(1.0), "precomputed", 2.0 * Gaussian(1.0)], ids=repr)
    def test_gaussian_kernel_only(self, kernel):
        with pytest.raises(IncompatibleError, match=r"Preimage is for output_kernel=Gaussian"):
            Preimage().fit(np.eye(3), KernelOutputs(kernel).fit(np.eye(3)))

    def test_parameters(self):
        for name, bad in (("n_starts", 0), ("max_iter", 0), ("tol", 0.0), ("n_starts", 1.5)):
            with pytest.raises(ValueError, match=rf"'{name}' parameter of Preimage"):
                Preimage(**{name: bad}).validate()

    def test_single_precision(self):
        Y = points(10).astype(np.float32)
        bound = KernelOutputs(Gaussian(GAMMA)).fit(Y)
        found = Preimage().fit(Y, bound).decode(bound.targets_)
        assert found.dtype == np.float32
        assert_allclose(found, Y, atol=1e-2)
