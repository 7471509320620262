"""Heat-kernel distances on graphs and on the torus, against exponentials of matrices, sums and fine grids."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm
from sklearn.base import clone

import fenchel
from fenchel import LossTrickPredictor
from fenchel.kernels import Gaussian
from fenchel.losses import Huber
from fenchel.task_losses import CircleDiffusion, GraphDiffusion, TaskSpace, Torus, TorusDiffusion, ZeroOne


def graph(seed=0, size=7):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((size, size)) * (rng.random((size, size)) > 0.4), 1)
    return weights + weights.T


class TestGraph:
    @pytest.mark.parametrize("time", [0.0, 0.3, 2.0, 50.0])
    def test_half_the_squared_distance_of_heat(self, time):
        weights = graph()
        heat = expm(-time / 2 * (np.diag(weights.sum(axis=1)) - weights))
        expected = [[np.sum((heat[:, i] - heat[:, j]) ** 2) / 2 for j in range(7)] for i in range(7)]
        assert_allclose(GraphDiffusion(weights, time).matrix(np.arange(7), np.arange(7)), expected, atol=1e-13)

    def test_no_time_is_the_zero_one_loss(self):
        vertices = np.arange(7)
        expected = ZeroOne().matrix(vertices, vertices)
        assert_allclose(GraphDiffusion(graph(), 0).matrix(vertices, vertices), expected, atol=1e-14)

    def test_after_a_long_time_components_are_points(self):
        weights = np.zeros((5, 5))
        weights[[0, 1, 2, 3, 4, 3], [1, 0, 3, 2, 3, 4]] = 1.0
        found = GraphDiffusion(weights, 1e3).matrix(np.arange(5), np.arange(5))
        assert_allclose(found[:2, :2], 0, atol=1e-12)
        assert_allclose(found[:2, 2:], (1 / 2 + 1 / 3) / 2, atol=1e-12)

    def test_every_vertex_may_be_predicted(self):
        """Between two outputs on a path, the vertex in the middle has the smallest weighted loss."""
        path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
        names = np.array(["a", "b", "c", "d", "e"])
        loss = GraphDiffusion(path, 3.0, names)
        X, y = np.zeros((20, 1)), np.array(["b", "d"] * 10)
        model = LossTrickPredictor(Gaussian(1.0), loss, lam=1e-6).fit(X, y)
        heat = expm(-3.0 * (np.diag(path.sum(axis=1)) - path))
        losses = [(heat[v, v] - heat[v, 1] + heat[v, v] - heat[v, 3]) / 2 for v in range(5)]
        assert model.predict(X[:1])[0] == names[np.argmin(losses)] == "c"

    def test_robust_surrogate_and_files(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((30, 2))
        y = np.where(X[:, 0] > 0, 3, 1)
        model = LossTrickPredictor(Gaussian(1.0), GraphDiffusion(graph()), lam=1e-3, surrogate=Huber(0.3)).fit(X, y)
        assert np.mean(model.predict(X) == y) > 0.8
        plain = LossTrickPredictor(Gaussian(1.0), GraphDiffusion(graph()), lam=1e-3).fit(X, y)
        fenchel.save(plain, tmp_path / "model.fenchel")
        assert np.array_equal(fenchel.load(tmp_path / "model.fenchel").predict(X), plain.predict(X))
        assert np.array_equal(clone(plain).fit(X, y).predict(X), plain.predict(X))

    @pytest.mark.parametrize(
        ("loss", "message"),
        [
            (GraphDiffusion([[0, 1], [2, 0]]), "'adjacency' parameter of GraphDiffusion must be a symmetric matrix"),
            (GraphDiffusion([[0, -1], [-1, 0]]), "must hold non-negative weights. Its smallest entry is -1"),
            (GraphDiffusion([[0, 1], [1, 0]], vertices=["a"]), "must hold 2 distinct names"),
            (GraphDiffusion([[0, 1], [1, 0]], time=-1.0), "'time' parameter of GraphDiffusion"),
        ],
    )
    def test_errors(self, loss, message):
        with pytest.raises(ValueError, match=message):
            loss.validate()
        with pytest.raises(ValueError, match="The vertices of GraphDiffusion are"):
            GraphDiffusion([[0, 1], [1, 0]]).check([0, 2])


def points(n, d=2, seed=0):
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, (n, d))


class TestTorus:
    @pytest.mark.parametrize("time", [0.05, 0.4, 3.0])
    def test_sum_over_the_spectrum(self, time):
        """The eigenfunctions are waves with integer frequencies in each angle."""
        Y, Z = points(6), points(5, seed=1)
        frequencies = np.array(list(product(range(-25, 26), repeat=2)))
        decay = np.exp(-time * np.sum(frequencies**2, axis=1))
        waves = np.cos((Y[:, None] - Z[None]) @ frequencies.T)
        expected = 1 - waves @ decay / np.sum(decay)
        assert_allclose(TorusDiffusion(time).matrix(Y, Z), expected, atol=1e-12)

    def test_one_angle_is_the_circle(self):
        y, z = points(8, 1), points(6, 1, seed=1)
        expected = CircleDiffusion(0.2).matrix(y[:, 0], z[:, 0])
        assert_allclose(TorusDiffusion(0.2).matrix(y, z), expected, atol=1e-14)
        assert_allclose(TorusDiffusion(0.2).matrix(y[:, 0], z[:, 0]), expected, atol=1e-14)

    def test_lengths_of_the_shortest_paths(self):
        turns = 2 * np.pi * np.array(list(product((-1, 0, 1), repeat=3)))
        Y, Z = points(7, 3), points(5, 3, seed=1)
        lengths = np.min(np.linalg.norm(Y[:, None, None] - Z[None, :, None] + turns, axis=-1), axis=-1)
        distances, pull = Torus().view(Y, Z)
        assert_allclose(distances, lengths, atol=1e-12)
        assert_allclose(Torus().distance(Y[:, None], Z), lengths, atol=1e-12)
        towards = Torus().exp(Y, lengths[:, :1] * pull(np.eye(5)[:1].repeat(7, axis=0)))
        assert_allclose(np.exp(1j * towards), np.exp(1j * Z[:1].repeat(7, axis=0)), atol=1e-12)

    @pytest.mark.parametrize("loss", [TorusDiffusion(0.1), TorusDiffusion(2.0)])
    def test_gradients_are_finite_differences(self, loss):
        weights, Y, Z = np.random.default_rng(2).standard_normal((4, 9)), points(4, 3), points(9, 3, seed=1)
        values, gradients, _, sizes = loss.descent(weights, Y, Z)
        assert_allclose(values, np.sum(weights * loss.matrix(Y, Z), axis=1), atol=1e-12)
        assert_allclose(sizes, np.sum(np.abs(weights) * loss.matrix(Y, Z), axis=1), atol=1e-12)
        for j in range(3):
            step = 1e-6 * np.eye(3)[j]
            ends = [np.sum(weights * loss.matrix(Y + s, Z), axis=1) for s in (step, -step)]
            assert_allclose(gradients[:, j], (ends[0] - ends[1]) / 2e-6, atol=1e-7)

    @pytest.mark.parametrize("loss", [TorusDiffusion(0.3), TorusDiffusion(1.5)])
    def test_decoded_points_are_as_good_as_a_fine_grid(self, loss):
        axis = np.linspace(-np.pi, np.pi, 121)[:-1]
        grid = np.array(list(product(axis, repeat=2)))
        Z, weights = points(12), np.random.default_rng(3).random((15, 12))
        found = loss.decoder().fit(Z, TaskSpace(loss, Z)).decode(weights)
        reached = np.sum(weights * loss.matrix(found, Z), axis=1)
        assert np.all(reached <= np.min(weights @ loss.matrix(grid, Z).T, axis=1) + 1e-9)

    def test_predictions_across_the_border(self):
        X = np.linspace(0, 1, 40)[:, None]
        Y = np.hstack([3.0 + X, -3.0 - 2 * X])
        model = LossTrickPredictor(Gaussian(10.0), TorusDiffusion(0.3), lam=1e-4).fit(X, Y)
        apart = np.abs(np.exp(1j * model.predict(X)) - np.exp(1j * Y))
        assert np.max(apart) < 0.1
        robust = LossTrickPredictor(Gaussian(10.0), TorusDiffusion(0.3), lam=1e-3, surrogate=Huber(0.5)).fit(X, Y)
        assert np.max(np.abs(np.exp(1j * robust.predict(X)) - np.exp(1j * Y))) < 0.3
