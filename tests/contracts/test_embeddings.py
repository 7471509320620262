"""Constants of the comparison inequality: explicit features and operators, written again, reproduce each loss."""

import math

import numpy as np
import pytest

from fenchel.kernels import Gaussian, Linear
from fenchel.task_losses import (
    F1,
    L2L1,
    Absolute,
    Cauchy,
    ChiSquare,
    CircleDiffusion,
    Delta,
    EpsilonInsensitive,
    Fair,
    GemanMcClure,
    Hamming,
    Hellinger,
    Hinge,
    Huber,
    KernelInduced,
    LeastSquares,
    Logistic,
    LossMatrix,
    Pinball,
    RankLoss,
    SphereDiffusion,
    SphereGeodesic,
    TorusDiffusion,
    ZeroOne,
)


def holds(embedding, left, operator, right, losses):
    """Whether explicit features and an operator give the losses, within the stated sizes."""
    assert left @ operator @ right.T == pytest.approx(losses, abs=1e-9)
    assert np.linalg.norm(operator, 2) <= embedding.operator_norm * (1 + 1e-9)
    for features in (left, right):
        assert np.max(np.linalg.norm(features, axis=1)) <= embedding.feature_bound * (1 + 1e-9)
    assert embedding.constant == pytest.approx(embedding.operator_norm * embedding.feature_bound)


def test_finite_sets_have_the_norm_of_their_matrix():
    costs = np.array([[0.0, 2.0, 1.0], [5.0, 0.0, 3.0], [1.0, 1.5, 0.0]])
    for loss, outputs in (
        (LossMatrix(costs), [0, 1, 2]),
        (Delta(lambda y, z: costs[y, z]), [2, 0, 0, 1, 2]),  # repeated outputs count once
    ):
        found = loss.embedding(outputs)
        assert found.constant == pytest.approx(math.sqrt(np.max(np.linalg.eigvalsh(costs.T @ costs))))
        assert found.feature_bound == 1
    assert LossMatrix([[0, 3], [4, 0], [0, 0]]).embedding([0, 1]).constant == 4  # more decisions than classes
    words = Delta(lambda y, z: float(y != z)).embedding(["a", "b", "c", "b", "d"])
    assert words.constant == pytest.approx(3)  # 4 labels: the matrix of ones minus the identity


def test_labels():
    labels = np.arange(5)
    unit = np.hstack([np.eye(5), np.ones((5, 1))])
    operator = np.diag([-1.0] * 5 + [1.0])
    holds(ZeroOne().embedding(labels), unit, operator, unit, ZeroOne().matrix(labels, labels))


def test_label_sets():
    rng = np.random.default_rng(0)
    Z = (rng.random((20, 6)) > 0.5).astype(float)
    Z[0] = 0
    signs = np.hstack([(2 * Z - 1) / math.sqrt(6), np.ones((20, 1))])
    holds(Hamming().embedding(Z), signs, np.diag([-0.5] * 6 + [0.5]), signs, Hamming().matrix(Z, Z))
    similar(F1(), Z, 1.0)


def similar(loss, Z, factor):
    """Check that 1 - loss / factor is a normalised kernel, and build its features."""
    losses = loss.matrix(Z, Z)
    values, vectors = np.linalg.eigh(1 - losses / factor)
    assert values[0] > -1e-7
    features = np.hstack([vectors * np.sqrt(np.maximum(values, 0)), np.ones((len(Z), 1))])
    assert np.linalg.norm(features, axis=1) == pytest.approx(math.sqrt(2))
    operator = np.diag([-factor] * len(Z) + [factor])
    found = loss.embedding(Z)
    assert features @ operator @ features.T == pytest.approx(losses, abs=1e-6)
    assert (found.operator_norm, found.feature_bound) == (factor, math.sqrt(2))


def test_normalised_kernels():
    rng = np.random.default_rng(1)
    histograms = rng.dirichlet(np.full(4, 0.5), size=25)
    histograms[:5, 0] = 0
    histograms /= histograms.sum(axis=1, keepdims=True)
    similar(Hellinger(), histograms, 2.0)
    similar(ChiSquare(), histograms, 2.0)
    similar(CircleDiffusion(0.2), rng.uniform(-3, 3, 25), 1.0)
    similar(TorusDiffusion(0.2), rng.uniform(-3, 3, (25, 2)), 1.0)
    directions = rng.normal(size=(25, 3))
    similar(SphereDiffusion(0.2), directions / np.linalg.norm(directions, axis=1, keepdims=True), 1.0)
    found = KernelInduced(Gaussian(0.5)).embedding(directions)
    assert (found.operator_norm, found.feature_bound) == pytest.approx((2.0, math.sqrt(2)))


@pytest.mark.parametrize("loss", [LeastSquares(), KernelInduced(Linear())], ids=repr)
def test_squared_distances(loss):
    Z = np.random.default_rng(2).normal(size=(15, 3))
    norms = np.sum(Z**2, axis=1)
    bound = norms.max()
    features = np.column_stack([Z, norms / math.sqrt(2 * bound), np.full(15, math.sqrt(bound / 2))])
    operator = np.zeros((5, 5))
    operator[[0, 1, 2], [0, 1, 2]], operator[[3, 4], [4, 3]] = -2, 2
    holds(loss.embedding(Z), features, operator, features, loss.matrix(Z, Z))


@pytest.mark.parametrize("normalize", [True, False, 0.5])
def test_rankings(normalize):
    rng = np.random.default_rng(3)
    Z = rng.integers(1, 6, size=(12, 5)).astype(float)
    Z[rng.random((12, 5)) > 0.8] = np.nan
    Y, loss = rng.permuted(np.tile(np.arange(5.0), (9, 1)), axis=1), RankLoss(normalize)
    pairs = [(i, j) for i in range(5) for j in range(i)]
    signs = np.array([[np.sign(y[i] - y[j]) for i, j in pairs] for y in Y])
    differences = np.nan_to_num(np.array([[z[i] - z[j] for i, j in pairs] for z in Z]))
    totals = np.abs(differences).sum(axis=1)
    differences /= np.where(totals > 0, totals, 1.0)[:, None] ** float(normalize)
    worst = np.abs(differences).sum(axis=1).max()
    scale, one = math.sqrt(worst / math.sqrt(10)), math.sqrt(worst)
    left = np.hstack([scale * signs, np.full((9, 1), one)])
    right = np.hstack([-differences / scale, np.abs(differences).sum(axis=1, keepdims=True) / one])
    found = loss.embedding(Z)
    assert left @ right.T / 2 == pytest.approx(loss.matrix(Y, Z), abs=1e-9)
    assert found.operator_norm == 0.5
    both = np.max(np.sum(left**2, axis=1)) + np.max(np.sum(right**2, axis=1))
    assert both <= found.feature_bound**2 * (1 + 1e-9)


INTERVAL = [
    (Absolute(), 1.0),
    (EpsilonInsensitive(0.3), 1.0),
    (Pinball(0.8), 0.8),
    (Huber(0.5), 0.5),
    (Cauchy(0.2), math.sqrt(0.2)),
    (GemanMcClure(), 9 / (8 * math.sqrt(3))),
    (Fair(0.5), None),
    (L2L1(), None),
    (Hinge(), 1.0),
    (Logistic(), None),
]


@pytest.mark.parametrize(("loss", "slope"), INTERVAL, ids=repr)
def test_losses_on_an_interval(loss, slope):
    """The integral of the slope as a sum over a fine grid, with the largest slopes known by hand or by differences."""
    low, high = -1.0, 1.0
    Z = np.array([low, high]) if isinstance(loss, Hinge | Logistic) else np.linspace(low, high, 9)
    grid = np.linspace(low, high, 4001)
    step = grid[1] - grid[0]
    slopes = np.diff(loss.matrix(grid, Z), axis=0) / step  # mean slopes of the cells
    steepest = loss.steepest(low, high, Z)
    assert np.max(np.abs(slopes)) <= steepest * (1 + 1e-9) <= 1.01 * np.max(np.abs(slopes))
    if slope is not None:
        assert slope - 1e-9 <= steepest <= slope + 2.001e-3  # curvature 2 on half a cell of the grid, 2 / 2000
    middle = loss.matrix(np.zeros(1), Z)[0]
    unit = math.sqrt(np.max(np.abs(middle)) / (steepest * math.sqrt(2)))
    right = np.hstack([(middle / unit)[:, None], slopes.T * math.sqrt(step)])
    Y = grid[::500]
    cells = (grid[:-1] + grid[1:]) / 2
    inside = np.sign(Y)[:, None] * (np.abs(cells) < np.abs(Y)[:, None]) * (np.sign(cells) == np.sign(Y)[:, None])
    left = np.hstack([np.full((len(Y), 1), unit), inside * math.sqrt(step)])
    assert left @ right.T == pytest.approx(loss.matrix(Y, Z), abs=1e-9)
    product = math.sqrt(np.max(np.sum(left**2, axis=1)) * np.max(np.sum(right**2, axis=1)))
    found = loss.embedding(Z)
    assert found.operator_norm == 1
    assert 0.5 * found.feature_bound**2 >= product * (1 - 1e-9)
    assert found.feature_bound**2 <= 8 * product  # not far from what the slopes need
    two = loss.embedding(np.column_stack([Z, Z]))
    assert two.feature_bound**2 == pytest.approx(2 * found.feature_bound**2)


def test_a_loss_without_a_form_takes_its_outputs_as_a_finite_set():
    points = np.eye(3)
    found = SphereGeodesic().embedding(points)
    assert found.constant == pytest.approx(2 * (math.pi / 2) ** 2)  # right angles: ones minus the identity
