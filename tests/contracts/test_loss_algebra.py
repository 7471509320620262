"""Sums, products and functions of task losses ([Ciliberto2016]_, Thm 19) against loops over pairs, and exact minima."""

import math
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import fenchel
from fenchel import LossTrickPredictor
from fenchel.decoders import Candidates, TrainingSet
from fenchel.kernels import Gaussian
from fenchel.losses import Huber
from fenchel.task_losses import (
    F1,
    Absolute,
    CircleGeodesic,
    Hamming,
    LeastSquares,
    LossColumns,
    LossFunction,
    LossMatrix,
    LossProduct,
    LossSum,
    PartsDecoder,
    TaskSpace,
)
from tests.parts import named

MIXED = LossColumns(Absolute(), [1]) + 2.0 * LossColumns(CircleGeodesic(), [0]) + LossColumns(LeastSquares(), [3, 2])


def label_sets(n, seed=0):
    return (np.random.default_rng(seed).random((n, 4)) > 0.5).astype(float)


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-math.pi, math.pi, n), rng.standard_normal((n, 3))])


def loop(function, Y, Z):
    return [[function(y, z) for z in Z] for y in Y]


def hamming(y, z):
    return sum(a != b for a, b in zip(y, z, strict=True)) / len(z)


def f1(y, z):
    return 1 - 2 * sum(y * z) / max(sum(y) + sum(z), 1) if sum(y) + sum(z) else 0.0


def mixed_loss(y, z):
    turn = abs(y[0] - z[0])
    turn = min(turn, 2 * math.pi - turn)
    return abs(y[1] - z[1]) + 2 * turn**2 + (y[2] - z[2]) ** 2 + (y[3] - z[3]) ** 2


@pytest.mark.parametrize(
    ("loss", "function"),
    [
        (Hamming() + F1(), lambda y, z: hamming(y, z) + f1(y, z)),
        (3 * Hamming(), lambda y, z: 3 * hamming(y, z)),
        (Hamming() * 0.5 + F1() * F1() + 2.0 * F1(), lambda y, z: hamming(y, z) / 2 + f1(y, z) ** 2 + 2 * f1(y, z)),
        (LossSum([Hamming(), F1()], [2.0, -1.0]), lambda y, z: 2 * hamming(y, z) - f1(y, z)),
        (LossProduct([Hamming(), F1(), F1()]), lambda y, z: hamming(y, z) * f1(y, z) ** 2),
        (LossFunction(np.expm1, [F1()]), lambda y, z: math.exp(f1(y, z)) - 1),
        (
            LossFunction(lambda a, b: a**2 + a * b, [Hamming(), F1()]),
            lambda y, z: hamming(y, z) * (hamming(y, z) + f1(y, z)),
        ),
        (LossColumns(Hamming(), [3, 1]), lambda y, z: hamming(y[[3, 1]], z[[3, 1]])),
    ],
    ids=named,
)
def test_every_pair(loss, function):
    Y, Z = label_sets(9), label_sets(6, seed=1)
    assert_allclose(loss.validate().matrix(Y, Z), loop(function, Y, Z), atol=1e-14)
    assert_allclose(loss(Z, Y[:6]), [function(y, z) for y, z in zip(Y[:6], Z, strict=True)], atol=1e-14)


def test_tuples():
    Y, Z = mixed(7), mixed(5, seed=1)
    assert_allclose(MIXED.matrix(Y, Z), loop(mixed_loss, Y, Z), atol=1e-12)


class TestDecoders:
    def test_separate_columns_are_minimised_one_by_one(self):
        """Part by part: a weighted median, the weighted minimum on the circle, a weighted mean."""
        Z, weights = mixed(15), np.random.default_rng(2).random((12, 15))
        found = MIXED.decoder().fit(Z, TaskSpace(MIXED, Z)).decode(weights)
        circle = CircleGeodesic()
        angles = circle.decoder().fit(Z[:, 0], TaskSpace(circle, Z[:, 0])).decode(weights)
        means = weights @ Z[:, 2:] / weights.sum(axis=1, keepdims=True)
        order = np.argsort(Z[:, 1])
        half = np.cumsum(weights[:, order], axis=1) >= weights.sum(axis=1, keepdims=True) / 2
        medians = Z[order, 1][np.argmax(half, axis=1)]
        assert_allclose(found, np.column_stack([angles, medians, means]), atol=1e-6)

    def test_no_grid_point_is_better(self):
        loss = LossColumns(Absolute(), [1]) + 2.0 * LossColumns(CircleGeodesic(), [0])
        Z, weights = mixed(9)[:, :2], np.random.default_rng(3).random((8, 9))
        found = loss.decoder().fit(Z, TaskSpace(loss, Z)).decode(weights)
        grid = np.array(list(product(np.linspace(-math.pi, math.pi, 80), np.linspace(-2, 2, 80))))
        reached = np.sum(weights * loss.matrix(found, Z), axis=1)
        assert np.all(reached <= np.min(weights @ loss.matrix(grid, Z).T, axis=1) + 1e-9)

    def test_a_multiple_is_decoded_as_the_loss(self):
        Z, weights = label_sets(10), np.random.default_rng(4).standard_normal((7, 10))
        scaled = (0.25 * Hamming()).decoder().fit(Z, TaskSpace(0.25 * Hamming(), Z)).decode(weights)
        plain = Hamming().decoder().fit(Z, TaskSpace(Hamming(), Z)).decode(weights)
        assert np.array_equal(scaled, plain)

    def test_the_same_decisions_are_searched(self):
        costs = np.array([[0.0, 2.0], [1.0, 0.0], [0.4, 0.4]])
        loss = LossMatrix(costs) + LossMatrix(costs**2)
        decoder = loss.decoder()
        assert isinstance(decoder, Candidates)
        decoded = decoder.fit(np.array([0, 1]), TaskSpace(loss, np.array([0, 1]))).decode(np.array([[0.5, 0.5]]))
        assert decoded.tolist() == [int(np.argmin((costs + costs**2).sum(axis=1)))] == [2]

    @pytest.mark.parametrize(
        "loss",
        [
            Hamming() + F1(),
            Hamming() * F1(),
            -1.0 * Hamming(),
            LossColumns(Hamming(), [0, 1]) + LossColumns(Hamming(), [1, 2, 3]),  # they share a column
            LossColumns(Hamming(), [0, 1]) + LossColumns(Hamming(), [3]),  # one is missing
        ],
        ids=repr,
    )
    def test_others_search_among_the_training_outputs(self, loss):
        assert isinstance(loss.decoder(), TrainingSet)


class TestConstants:
    @pytest.mark.parametrize("loss", [Hamming() + 2.0 * F1(), Hamming() * F1(), LossColumns(F1(), [0, 2])], ids=repr)
    def test_no_loss_exceeds_the_size_of_its_form(self, loss):
        """|<psi(y), V psi(z)>| is at most |V| times the squared bound on the features."""
        every = np.array(list(product((0.0, 1.0), repeat=4)))
        sizes = loss.embedding(every)
        assert np.max(np.abs(loss.matrix(every, every))) <= sizes.operator_norm * sizes.feature_bound**2

    def test_a_multiple_costs_as_many_times(self):
        Z = label_sets(5)
        assert (3.0 * F1()).embedding(Z).constant == pytest.approx(3 * F1().embedding(Z).constant)


def test_predictions_weights_and_files(tmp_path):
    rng = np.random.default_rng(0)
    X = np.linspace(0, 1, 40)[:, None]
    Y = np.column_stack([3 * np.sin(2 * X[:, 0]), X[:, 0] ** 2])
    loss = LossColumns(CircleGeodesic(), [0]) + LossColumns(Absolute(), [1])
    model = LossTrickPredictor(Gaussian(10.0), loss, lam=1e-5).fit(X, Y, sample_weight=rng.uniform(1, 2, 40))
    assert isinstance(model.decoder_, PartsDecoder)
    assert np.max(np.abs(model.predict(X) - Y)) < 0.1
    fenchel.save(model, tmp_path / "model.fenchel")
    assert np.array_equal(fenchel.load(tmp_path / "model.fenchel").predict(X), model.predict(X))
    assert np.array_equal(
        clone(model).fit(X, Y).predict(X), LossTrickPredictor(Gaussian(10.0), loss, lam=1e-5).fit(X, Y).predict(X)
    )
    robust = LossTrickPredictor(Gaussian(10.0), loss, lam=1e-3, surrogate=Huber(0.5)).fit(X, Y)
    assert np.max(np.abs(robust.predict(X) - Y)) < 0.5


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (LossSum([]), TypeError, "'losses' parameter of LossSum must be a list of at least one TaskLoss"),
        (LossProduct([Hamming(), "f1"]), TypeError, "'losses' parameter of LossProduct"),
        (LossSum([Hamming()], [1.0, 2.0]), ValueError, "'weights' parameter of LossSum must hold 1 finite numbers"),
        (LossColumns(Hamming(), [0, 0]), ValueError, "list of distinct positions"),
    ],
)
def test_errors(loss, error, message):
    with pytest.raises(error, match=message):
        loss.validate()


def test_errors_of_outputs():
    with pytest.raises(ValueError, match=r"a column 5. Got an array of shape \(3, 4\)"):
        LossColumns(Hamming(), [5]).check(label_sets(3))
    with pytest.raises(ValueError, match="must return finite numbers of shape"):
        LossFunction(lambda a: a[:1], [Hamming()]).matrix(label_sets(3), label_sets(2))
    with pytest.raises(TypeError, match="unsupported operand"):
        Hamming() + 1
