"""Task losses against their formulas written plainly, finite differences and dense samples."""

import math
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fenchel import LossTrickPredictor, task_losses
from fenchel._component import from_name
from fenchel.kernels import Gaussian, Polynomial
from fenchel.task_losses import (
    F1,
    L2L1,
    Absolute,
    Cauchy,
    ChiSquare,
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
    PiecewiseLinear,
    Pinball,
    RankLoss,
    SmoothLoss,
    TaskLoss,
    TaskSpace,
    ZeroOne,
    finite,
    interval,
    ranking,
    squared,
)
from fenchel.task_losses import histograms as histograms_room
from fenchel.task_losses import task_loss as base
from fenchel.task_losses.task_loss import as_outputs
from tests.parts import TASK_LOSSES

EPS = np.finfo(float).eps
CLOSE = 64 * EPS
COSTS = np.array([[0.0, 2.0, 1.0], [5.0, 0.0, 3.0], [1.0, 1.5, 0.0], [0.5, 0.5, 0.5]])


def numbers(rng, n):
    return 3 * rng.standard_normal(n)


def signs(rng, n):
    return np.where(rng.random(n) > 0.5, 1.0, -1.0)


def label_sets(rng, n):
    found = (rng.random((n, 5)) > 0.6).astype(float)
    found[0] = 0
    return found


def histograms(rng, n):
    found = rng.dirichlet(np.full(4, 0.5), size=n)
    found[: n // 2, 0] = 0
    return found / found.sum(axis=1, keepdims=True)


def ratings(rng, n):
    found = rng.integers(1, 6, size=(n, 6)).astype(float)
    found[rng.random((n, 6)) > 0.7] = np.nan
    found[0] = 3.0  # all equal
    found[1] = np.nan  # none
    return found


def rankings(rng, n):
    return np.argsort(rng.random((n, 6)), axis=1) + 1


def rank_loss(y, z, normalize=True):
    found = total = 0.0
    for i in range(len(z)):
        for j in range(len(z)):
            if z[i] > z[j]:  # false where one is NaN
                total += z[i] - z[j]
                found += (z[i] - z[j]) * (1 - np.sign(y[i] - y[j])) / 2
    return found / total ** float(normalize) if total > 0 else found


def f1_loss(y, z):
    common = sum(a * b for a, b in zip(y, z, strict=True))
    return 0.0 if sum(y) + sum(z) == 0 else 1 - 2 * common / (sum(y) + sum(z))


def chi_square(y, z):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(y, z, strict=True) if a + b > 0)


def huber(r, kappa):
    return r**2 / 2 if abs(r) <= kappa else kappa * abs(r) - kappa**2 / 2


FORMULAS = [
    (ZeroOne(), lambda y, z: float(y != z), lambda rng, n: rng.integers(4, size=n), None),
    (
        LossMatrix(COSTS),
        lambda y, z: COSTS[y, z],
        lambda rng, n: rng.integers(3, size=n),
        lambda rng, n: np.arange(n) % 4,
    ),
    (Hamming(), lambda y, z: np.mean([a != b for a, b in zip(y, z, strict=True)]), label_sets, None),
    (F1(), f1_loss, label_sets, None),
    (LeastSquares(), lambda y, z: (y - z) ** 2, numbers, None),
    (LeastSquares(), lambda y, z: sum((y - z) ** 2), lambda rng, n: rng.standard_normal((n, 3)), None),
    (LeastSquares("nearest"), lambda y, z: (y - z) ** 2, numbers, None),
    (LeastSquares("nearest"), lambda y, z: sum((y - z) ** 2), lambda rng, n: rng.standard_normal((n, 3)), None),
    (
        KernelInduced(Gaussian(0.7)),
        lambda y, z: 2 - 2 * math.exp(-0.7 * sum((y - z) ** 2)),
        lambda rng, n: rng.standard_normal((n, 2)),
        None,
    ),
    (
        KernelInduced(Polynomial(degree=2, gamma=1.0, coef0=1.0)),
        lambda y, z: (1 + y * y) ** 2 - 2 * (1 + y * z) ** 2 + (1 + z * z) ** 2,
        numbers,
        None,
    ),
    (
        KernelInduced(Polynomial(degree=2, gamma=1.0, coef0=1.0), "nearest"),
        lambda y, z: (1 + y * y) ** 2 - 2 * (1 + y * z) ** 2 + (1 + z * z) ** 2,
        numbers,
        None,
    ),
    (Huber(0.8), lambda y, z: huber(y - z, 0.8), numbers, None),
    (Cauchy(0.3), lambda y, z: 0.3 * math.log(1 + abs(y - z) ** 2 / 0.3), numbers, None),
    (GemanMcClure(), lambda y, z: abs(y - z) ** 2 / (1 + abs(y - z) ** 2), numbers, None),
    (Fair(0.4), lambda y, z: 0.4 * abs(y - z) - 0.4**2 * math.log(1 + abs(y - z) / 0.4), numbers, None),
    (L2L1(), lambda y, z: math.sqrt(1 + abs(y - z) ** 2) - 1, numbers, None),
    (Logistic(), lambda y, z: math.log(1 + math.exp(-y * z)), signs, numbers),
    (Hinge(), lambda y, z: max(0.0, 1 - y * z), signs, numbers),
    (Absolute(), lambda y, z: abs(y - z), numbers, None),
    (EpsilonInsensitive(0.5), lambda y, z: max(0.0, abs(y - z) - 0.5), numbers, None),
    (Pinball(0.2), lambda y, z: 0.2 * (z - y) if z > y else 0.8 * (y - z), numbers, None),
    (Hellinger(), lambda y, z: sum((np.sqrt(y) - np.sqrt(z)) ** 2), histograms, None),
    (ChiSquare(), chi_square, histograms, None),
    (RankLoss(), rank_loss, ratings, rankings),
    (RankLoss(normalize=False), lambda y, z: rank_loss(y, z, False), ratings, rankings),
    (RankLoss(normalize=0.25), lambda y, z: rank_loss(y, z, 0.25), ratings, rankings),
    (Delta(lambda y, z: max(0.0, y - z)), lambda y, z: max(0.0, y - z), numbers, None),
]
every_formula = pytest.mark.parametrize(
    ("loss", "formula", "truths", "guesses"),
    FORMULAS,
    ids=[f"{type(loss).__name__}-{k}" for k, (loss, *_) in enumerate(FORMULAS)],
)


def drawn(truths, guesses, n=20, m=20):
    rng = np.random.default_rng(0)
    return (guesses or truths)(rng, m), truths(rng, n)


def test_no_loss_is_forgotten():
    rooms = (base, finite, histograms_room, interval, ranking, squared)
    names = {name for room in rooms for name in room.__all__}
    assert {type(loss).__name__ for loss in TASK_LOSSES} & names == {type(loss).__name__ for loss, *_ in FORMULAS}


class TestEvery:
    @every_formula
    def test_matrix(self, loss, formula, truths, guesses):
        Y, Z = drawn(truths, guesses, m=8)
        wanted = [[formula(y, z) for z in Z] for y in Y]
        found = loss.validate().matrix(Y, Z)
        assert_allclose(found, wanted, rtol=CLOSE, atol=CLOSE * max(1.0, np.max(wanted)))
        assert found.shape == (8, 20)

    @every_formula
    def test_pairs(self, loss, formula, truths, guesses):
        Y, Z = drawn(truths, guesses, 37, 37)  # more than are taken at a time, and not a multiple
        wanted = [formula(y, z) for y, z in zip(Y, Z, strict=True)]
        found = loss(Z, Y)  # the true outputs come first
        assert_allclose(found, wanted, rtol=CLOSE, atol=CLOSE * max(1.0, np.max(wanted)))
        assert found.shape == (37,)

    @every_formula
    def test_scores_are_weighted_losses(self, loss, formula, truths, guesses):
        Y, Z = drawn(truths, guesses, m=8)
        weights = np.random.default_rng(1).standard_normal((3, 20))
        matrix = np.array([[formula(y, z) for z in Z] for y in Y])
        found, wanted = loss.scores(weights, Y, Z), weights @ matrix.T
        if getattr(loss, "rule", None) == "nearest":  # the part of the prediction alone counts once
            own = [formula(y, 0 * y) for y in Y] if isinstance(loss, LeastSquares) else np.diag(loss.products(Y, Y))
            wanted = wanted + (1 - weights.sum(axis=1))[:, None] * own
        assert_allclose(found, wanted, rtol=0, atol=1e3 * EPS * max(1.0, np.abs(matrix).max()) * 20)

    @every_formula
    def test_arguments_are_not_changed(self, loss, formula, truths, guesses):
        Y, Z = drawn(truths, guesses)
        before = Y.copy(), Z.copy()
        loss.check(Z)
        loss.matrix(Y, Z)
        loss(Z, Y)
        assert_array_equal(Y, before[0])
        assert_array_equal(Z, before[1])

    @every_formula
    def test_component(self, loss, formula, truths, guesses):
        other = clone(loss)
        assert other is not loss
        assert type(other) is type(loss)
        assert list(other.get_params()) == list(loss.get_params())
        for name, value in loss.get_params(deep=False).items():
            assert_array_equal(
                np.asarray(other.get_params()[name] == value) | isinstance(value, Gaussian | Polynomial), True
            )
        assert other.validate() is other
        assert isinstance(other.decoder(), task_losses.task_loss.Decoder)

    @every_formula
    def test_output_kernel(self, loss, formula, truths, guesses):
        """Its Gram matrix of the true outputs is symmetric and positive semidefinite."""
        _, Z = drawn(truths, guesses)
        points = Z[:, None].astype(float) if Z.ndim == 1 else Z
        K = loss.output_kernel().resolve(points)(points)
        assert_allclose(K, K.T, atol=CLOSE * np.abs(K).max())
        assert np.linalg.eigvalsh(K)[0] >= -1e-10 * np.abs(K).max()

    @every_formula
    def test_lengths_differ(self, loss, formula, truths, guesses):
        Y, Z = drawn(truths, guesses)
        with pytest.raises(
            ValueError, match=r"truth and predicted must have the same number of samples\. Got 20 and 19\."
        ):
            loss(Z, Y[:19])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("zero_one", ZeroOne),
        ("hamming", Hamming),
        ("f1", F1),
        ("least_squares", LeastSquares),
        ("kernel_induced", KernelInduced),
        ("huber", Huber),
        ("cauchy", Cauchy),
        ("geman_mc_clure", GemanMcClure),
        ("fair", Fair),
        ("l2l1", L2L1),
        ("logistic", Logistic),
        ("hinge", Hinge),
        ("absolute", Absolute),
        ("epsilon_insensitive", EpsilonInsensitive),
        ("pinball", Pinball),
        ("hellinger", Hellinger),
        ("chi_square", ChiSquare),
        ("rank_loss", RankLoss),
    ],
)
def test_short_names(name, kind):
    assert type(from_name(name, task_losses, "task_loss")) is kind


@pytest.mark.parametrize("name", ["loss_matrix", "delta"])
def test_names_without_a_default(name):
    with pytest.raises(ValueError, match=rf"The task_loss '{name}' has parameters without a default"):
        from_name(name, task_losses, "task_loss")


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (Huber(0.0), "kappa"),
        (Cauchy(-1.0), "gamma"),
        (Fair(0), "gamma"),
        (EpsilonInsensitive(-0.1), "epsilon"),
        (Pinball(0.0), "tau"),
        (Pinball(1.0), "tau"),
        (RankLoss("yes"), "normalize"),
    ],
    ids=repr,
)
def test_parameters_are_looked_at(loss, name):
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of {type(loss).__name__} must be"):
        loss.validate()


class TestChecks:
    @pytest.mark.parametrize(
        "loss",
        [loss for loss, *_ in FORMULAS if not isinstance(loss, Delta | ZeroOne | LossMatrix | KernelInduced)],
        ids=repr,
    )
    def test_numbers(self, loss):
        with pytest.raises(ValueError, match=rf"{type(loss).__name__} takes numeric values\. Got list"):
            loss.check([["a", "b"]])
        with pytest.raises(ValueError, match=rf"{type(loss).__name__} takes finite outputs\. They contain NaN or inf"):
            loss.check([[np.inf, 0.0]])
        with pytest.raises(ValueError, match=rf"{type(loss).__name__} takes .*-dimensional arrays\. Got an"):
            loss.check(np.zeros((2, 2, 2)))

    @pytest.mark.parametrize("loss", [ZeroOne(), KernelInduced(), Delta(max)], ids=repr)
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_floats_are_finite(self, loss, bad):
        with pytest.raises(
            ValueError, match=r"takes finite outputs\. They contain NaN or infinity; drop those samples"
        ):
            loss.check([1.0, bad])

    @pytest.mark.parametrize("loss", [Hamming(), F1()], ids=repr)
    def test_label_sets(self, loss):
        with pytest.raises(ValueError, match=r"takes 0/1 label vectors\. Got other values; binarise the labels"):
            loss.check([[0, 1], [2, 0]])
        with pytest.raises(ValueError, match=r"takes 2-dimensional arrays\. Got an array of shape \(2,\)"):
            loss.check([0, 1])

    @pytest.mark.parametrize("loss", [Hellinger(), ChiSquare()], ids=repr)
    def test_histograms(self, loss):
        with pytest.raises(ValueError, match=r"takes histograms\. Got a negative entry, -0\.5"):
            loss.check([[1.5, -0.5]])
        with pytest.raises(ValueError, match=r"sum to 1\. Row 1 sums to 0\.9; divide each by its sum"):
            loss.check([[1.0, 0.0], [0.5, 0.4]])
        Z = np.random.default_rng(0).dirichlet(np.ones(256), size=20).astype(np.float32)
        assert loss.check(Z).dtype == np.float64

    def test_ratings_may_be_missing(self):
        assert np.isnan(RankLoss().check([[1.0, np.nan]])[0, 1])
        with pytest.raises(ValueError, match=r"takes 2-dimensional arrays\. Got an array of shape \(2,\)"):
            RankLoss().check([1.0, 2.0])

    def test_labels_of_a_matrix(self):
        loss = LossMatrix([[0, 1], [2, 0]], classes=["well", "ill"])
        assert_array_equal(loss.check(["ill", "well"]), ["ill", "well"])
        with pytest.raises(ValueError, match=r"The classes of LossMatrix are \['well', 'ill'\]\. Got 'dead'"):
            loss.check(["ill", "dead"])
        with pytest.raises(ValueError, match=r"The classes of LossMatrix are \['well', 'ill'\]\. Got 3"):
            loss.check([3])
        with pytest.raises(ValueError, match=r"The decisions of LossMatrix are \['well', 'ill'\]\. Got 'ask'"):
            loss(["ill"], ["ask"])
        with pytest.raises(ValueError, match=r"LossMatrix takes one label for each sample\. Got .* \(1, 2\)"):
            loss.check(np.array([["well", "ill"]]))
        with pytest.raises(
            ValueError, match=r"The classes of LossMatrix are \['well', 'ill'\]\. Got \['well', 'ill'\]"
        ):
            loss.check([["well", "ill"], "ill"])
        with pytest.raises(ValueError, match=r"The classes of LossMatrix are \[0, 1\]\. Got 'well'"):
            LossMatrix(np.eye(2)).check(["well"])

    def test_costs(self):
        with pytest.raises(ValueError, match=r"'costs' parameter of LossMatrix .*2-dimensional arrays\. Got .* \(2,\)"):
            LossMatrix([1.0, 2.0]).validate()
        with pytest.raises(ValueError, match=r"'costs' parameter of LossMatrix must not be empty"):
            LossMatrix(np.zeros((0, 2))).validate()
        with pytest.raises(ValueError, match=r"'costs' parameter of LossMatrix takes finite"):
            LossMatrix([[0.0, np.nan], [1.0, 0.0]]).validate()
        with pytest.raises(ValueError, match=r"'classes' parameter .* must hold 2 distinct names, one for each column"):
            LossMatrix(np.eye(2), classes=["a", "b", "c"]).validate()
        with pytest.raises(ValueError, match=r"'classes' parameter .* must hold 2 distinct names"):
            LossMatrix(np.eye(2), classes=["a", "a"]).validate()
        with pytest.raises(ValueError, match=r"'decisions' parameter .* must hold 3 distinct names, one for each row"):
            LossMatrix(np.ones((3, 2)), classes=["a", "b"], decisions=["a", "b"]).validate()

    def test_a_function_that_is_not_finite(self):
        with pytest.raises(ValueError, match=r"must return finite numbers\. Got NaN or infinity"):
            Delta(lambda y, z: float("nan"))([1.0], [2.0])


class TestIntervals:
    SMOOTH: ClassVar = [loss for loss, *_ in FORMULAS if isinstance(loss, SmoothLoss)]
    LINES: ClassVar = [loss for loss, *_ in FORMULAS if isinstance(loss, PiecewiseLinear)]

    def points(self):
        return np.linspace(-4.013, 4.017, 997)[:, None], np.array([-2.5, -1.0, 0.3, 1.0, 2.0])

    @pytest.mark.parametrize("loss", SMOOTH, ids=repr)
    def test_slope(self, loss):
        (y, z), h = self.points(), 1e-5
        wanted = (loss.value(y + h, z) - loss.value(y - h, z)) / (2 * h)
        assert_allclose(loss.slope(y, z), wanted, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("loss", SMOOTH, ids=repr)
    def test_bend(self, loss):
        (y, z), h = self.points(), 1e-5
        kink = np.abs(np.abs(y - z) - 0.8) < 2 * h if isinstance(loss, Huber) else np.zeros((997, 5), dtype=bool)
        wanted = (loss.slope(y + h, z) - loss.slope(y - h, z)) / (2 * h)
        near = 1e-3 if isinstance(loss, Fair) else 1e-7  # the third derivative of Fair jumps at zero
        assert_allclose(np.where(kink, 0, loss.bend(y, z)), np.where(kink, 0, wanted), rtol=0, atol=near)

    @pytest.mark.parametrize("loss", SMOOTH, ids=repr)
    def test_bounds_hold_and_are_tight(self, loss):
        z = self.points()[1]
        found = loss.bend(np.linspace(-60, 60, 120_001)[:, None], z)
        low, high = loss.bend_bounds(z)
        assert low.shape == high.shape == z.shape
        assert np.all(found >= low - CLOSE)
        assert np.all(found <= high + CLOSE)
        assert_allclose(found.min(axis=0), low, atol=2e-3)
        assert_allclose(found.max(axis=0), high, atol=2e-3)

    @pytest.mark.parametrize("loss", LINES, ids=repr)
    def test_knots(self, loss):
        """The second difference vanishes in every cell without a knot, and in none with one."""
        z = np.array([-2.5, -1.0, 0.3, 1.0, 2.0])
        for one in z:
            line = np.linspace(-4.013, 4.017, 997)
            bends = np.abs(np.diff(loss.value(line, one), 2)) > 1e-12
            knots = loss.knots(np.array([one]))
            has = np.array([np.any((knots > a) & (knots < b)) for a, b in zip(line[:-2], line[2:], strict=True)])
            assert_array_equal(bends, has)
            assert bends.any()

    def test_hinge_has_no_knot_at_zero(self):
        assert_array_equal(Hinge().knots(np.array([0.0, -1.0, 2.0])), [-1.0, 0.5])

    def test_columns_are_summed(self):
        Y, Z = np.random.default_rng(0).standard_normal((2, 6, 3))
        assert_allclose(Cauchy().matrix(Y, Z), sum(Cauchy().matrix(Y[:, j], Z[:, j]) for j in range(3)))

    def test_large_scores_do_not_overflow(self):
        assert_allclose(Logistic()([1.0, -1.0], [-1e4, -1e4]), [1e4, 0.0])

    def test_small_distances_keep_their_digits(self):
        assert_allclose(L2L1()([0.0], [1e-9]), [5e-19], rtol=1e-12)
        assert_allclose(Cauchy()([0.0], [1e-9]), [1e-18], rtol=1e-12)


class TestSquares:
    def test_small_integers_do_not_overflow(self):
        Y = np.array([200, 100], dtype=np.uint8)
        assert_array_equal(LeastSquares()(np.zeros(2), Y), [40_000.0, 10_000.0])
        assert_array_equal(LeastSquares().norms(Y), [40_000.0, 10_000.0])
        assert_array_equal(LeastSquares().products(Y, Y), [[40_000.0, 20_000.0], [20_000.0, 10_000.0]])

    def test_far_from_zero(self):
        assert_array_equal(LeastSquares()([1e9, 1e9], [1e9 + 1, 1e9 + 3]), [1.0, 9.0])

    def test_median_bandwidth_is_resolved(self):
        Z = np.random.default_rng(0).standard_normal((12, 2))
        loss = KernelInduced(Gaussian("median")).resolve(Z)
        gamma = Gaussian("median").resolve(Z).gamma
        assert loss.kernel.gamma == pytest.approx(gamma)
        gamma = Gaussian("median").resolve(Z[:5]).gamma  # a loss that is called takes it from the true outputs
        assert_allclose(
            KernelInduced(Gaussian("median"))(Z[:5], Z[5:10]), KernelInduced(Gaussian(gamma))(Z[:5], Z[5:10])
        )

    def test_words(self):
        loss = KernelInduced(lambda A, B: np.array([[float(a[0] == b[0]) for b in B] for a in A]))
        assert_array_equal(loss(["ab", "cd"], ["ax", "ef"]), [0.0, 2.0])


class TestLabels:
    def test_of_any_kind(self):
        assert_array_equal(ZeroOne()(["a", "b"], ["a", "c"]), [0, 1])
        assert_array_equal(ZeroOne()([(1, "a"), (2, "b")], [(1, "a"), (2, "c")]), [0, 1])
        assert_array_equal(ZeroOne()([{"a"}, {"b"}], [{"a"}, {"a"}]), [0, 1])
        assert_array_equal(ZeroOne()([[1, 2], [3, 4]], [[1, 2], [3, 5]]), [0, 1])
        assert_array_equal(ZeroOne()(np.array(["a", "b"], dtype=object), ["a", "c"]), [0, 1])

    def test_names_of_a_matrix(self):
        loss = LossMatrix(COSTS, classes=["c", "a", "b"], decisions=["x", "c", "a", "b"]).validate()
        for i, decision in enumerate(["x", "c", "a", "b"]):
            for j, label in enumerate(["c", "a", "b"]):
                assert loss([label], [decision]) == [COSTS[i, j]]
                assert loss(np.array([label], dtype=object), [decision]) == [COSTS[i, j]]

    def test_decisions_are_the_classes_unless_there_are_more(self):
        assert_array_equal(LossMatrix(np.eye(2), classes=["a", "b"]).decoder().candidates, ["a", "b"])
        assert_array_equal(LossMatrix(COSTS).decoder().candidates, [0, 1, 2, 3])


class TestRatings:
    @pytest.mark.parametrize("normalize", [False, True, 0.25])
    def test_preferences(self, normalize):
        rng = np.random.default_rng(0)
        Z, weights = ratings(rng, 15), rng.standard_normal(15)
        weights[4] = 0
        wanted = np.zeros((6, 6))
        for z, w in zip(Z, weights, strict=True):
            pairs = [(i, j) for i in range(6) for j in range(6) if not np.isnan(z[i] - z[j])]
            total = sum(max(z[i] - z[j], 0.0) for i, j in pairs)
            for i, j in pairs:
                wanted[i, j] += w * (z[i] - z[j]) / (total ** float(normalize) if total > 0 else 1.0)
        found = RankLoss(normalize).preferences(weights, Z)
        assert_allclose(found, wanted, rtol=0, atol=CLOSE * 10)
        assert_array_equal(found, -found.T)

    def test_preferences_are_differences_of_the_loss(self):
        """Swapping two neighbours changes the weighted loss by the preference between them."""
        rng = np.random.default_rng(1)
        Z, weights = ratings(rng, 9), rng.standard_normal(9)
        ranking = rankings(rng, 1)[0]
        P = RankLoss().preferences(weights, Z)
        for high in range(2, 7):
            i, j = int(np.flatnonzero(ranking == high)[0]), int(np.flatnonzero(ranking == high - 1)[0])
            other = ranking.copy()
            other[[i, j]] = ranking[[j, i]]
            before, after = RankLoss().matrix(np.stack([ranking, other]), Z) @ weights
            assert after - before == pytest.approx(P[i, j], abs=1e-12)

    def test_totals(self):
        Z = ratings(np.random.default_rng(0), 15)
        wanted = [sum(max(a - b, 0.0) for a in z for b in z if not np.isnan(a - b)) for z in Z]
        wanted = [total if total > 0 else 1.0 for total in wanted]
        assert_allclose(RankLoss()._totals(Z), wanted, rtol=CLOSE)
        assert_array_equal(RankLoss(False)._totals(Z), np.ones(15))

    @pytest.mark.parametrize("value", [0.1, 0.7, 1e6 + 0.1])
    def test_equal_ratings_say_nothing(self, value):
        """Round-off of their sum is no total to divide by."""
        Z = np.vstack([np.full(11, value), np.arange(11.0)])
        assert_array_equal(RankLoss()._totals(Z[:1]), [1.0])
        both = RankLoss().preferences(np.ones(2), Z)
        assert_allclose(both, RankLoss().preferences(np.array([0.0, 1.0]), Z), rtol=0, atol=1e-8)

    def test_the_worst_costs_one_and_chance_a_half(self):
        z = np.array([[4.0, 1.0, 3.0, 5.0]])
        assert RankLoss()(z, -z) == [1.0]
        assert RankLoss()(z, z) == [0.0]
        assert RankLoss()(z, 0 * z) == [0.5]

    def test_items_without_a_rank_are_ties(self):
        z = np.array([[2.0, 1.0, 3.0]])
        found = RankLoss()(z, np.array([[np.nan, 1.0, 2.0]]))  # pairs 1 + 1 of 4 are ties, 2 of 4 right
        assert found == [0.25]


class TestOutputs:
    """What is taken for a table of numbers, for labels and for objects."""

    def test_numbers_and_words(self):
        assert as_outputs([1, 2]).dtype.kind == "i"
        assert as_outputs([[1.0, 2.0], [3.0, 4.0]]).shape == (2, 2)
        assert as_outputs(["a", "bc"]).dtype.kind == "U"

    @pytest.mark.parametrize(
        "objects", [[("a", 1), ("b", 2)], [1, "a"], [[1], [2, 3]], [{"a": 1}, {}], [None, 1], [("a", "b"), ("c", "d")]]
    )
    def test_objects_stay_what_they_are(self, objects):
        found = as_outputs(objects)
        assert found.shape == (2,)
        assert found.dtype == object
        assert list(found) == objects

    def test_a_table_of_pandas(self):
        pd = pytest.importorskip("pandas")
        assert as_outputs(pd.Series(["a", "b"])).tolist() == ["a", "b"]
        assert as_outputs(pd.DataFrame({"a": [1, 2], "b": [3, 4]})).shape == (2, 2)


class TestSpace:
    @pytest.mark.parametrize("block", [None, 1, 70])
    def test_blocks(self, block, monkeypatch):
        if block is not None:
            monkeypatch.setattr(task_losses.task_loss, "_BLOCK", block)
        rng = np.random.default_rng(0)
        Z, C, weights = numbers(rng, 20), numbers(rng, 9), rng.standard_normal((4, 20))
        space = TaskSpace(Cauchy(), Z)
        wanted = np.array(
            [[sum(w * np.log1p((c - z) ** 2) for w, z in zip(row, Z, strict=True)) for c in C] for row in weights]
        )
        assert_allclose(space.distances(weights, C), wanted, atol=1e-12)
        for found, row, one in zip(
            space.paired_distances(weights, [C[:2], C[:1], C, C[3:]]), wanted, [C[:2], C[:1], C, C[3:]], strict=True
        ):
            assert_allclose(found, [row[list(C).index(c)] for c in one], atol=1e-12)

    def test_a_loss_of_ones_own(self):
        """One method makes a task loss, with a decoder and a kernel of outputs."""

        class Distance(TaskLoss):
            def matrix(self, Y, Z):
                return np.abs(np.asarray(Y)[:, None] - np.asarray(Z)[None, :])

        X = np.linspace(0, 1, 20)[:, None]
        for surrogate in ("square", "huber"):
            model = LossTrickPredictor(task_loss=Distance(), surrogate=surrogate).fit(X, X[:, 0])
            assert -model.score(X, X[:, 0]) < 0.05
