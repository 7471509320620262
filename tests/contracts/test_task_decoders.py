"""Decoders of the loss trick against brute force: dense grids, all permutations, all label vectors, cvxpy."""

from itertools import permutations, product

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.decoders import (
    Candidates,
    FeedbackArcSet,
    LabelVote,
    Preimage,
    ScalarMinimum,
    Simplex,
    TrainingSet,
    WeightedMean,
    order_items,
)
from fenchel.decoders.simplex import newton_on_simplex
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian
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
    Pinball,
    RankLoss,
    TaskSpace,
    ZeroOne,
)

TINY = 1e-12  # of the sum of the sizes of the weighted losses: round-off
INTERVAL = [
    *(Huber(0.3), Huber(5.0), Cauchy(0.01), Cauchy(1.0), GemanMcClure(), Fair(0.2), L2L1(), Logistic()),
    *(Absolute(), EpsilonInsensitive(0.3), Pinball(0.2), Hinge()),
]
SIGNS = {
    "any": lambda W: W,
    "mostly positive": lambda W: W + 1.0,
    "positive": np.abs,
    "negative": lambda W: -np.abs(W),
    "equal": lambda W: np.ones_like(W),
}
every_sign = pytest.mark.parametrize("sign", SIGNS)


def drawn_weights(sign, shape, seed=1):
    return SIGNS[sign](np.random.default_rng(seed).standard_normal(shape))


def decoded(decoder, loss, Z, weights):
    return decoder.fit(Z, TaskSpace(loss, Z)).decode(weights)


def plain_scores(loss, weights, C, Z):
    """Return the weighted losses of candidates, pair by pair."""
    return np.array(
        [[sum(w * float(loss([z], [c])[0]) for w, z in zip(row, Z, strict=True)) for c in C] for row in weights]
    )


class TestScalarMinimum:
    def check(self, loss, Z, weights, found, low, high):
        line = np.linspace(low, high, 100_001)
        values = loss.value(line[:, None], Z)
        size = np.sum(np.abs(weights), axis=1) * values.max()
        ends = np.sum(weights * loss.value(found[:, None], Z), axis=1)
        assert np.all(found >= low)
        assert np.all(found <= high)
        assert np.all(ends <= np.min(weights @ values.T, axis=1) + TINY * size)

    @every_sign
    @pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
    @pytest.mark.parametrize("loss", INTERVAL, ids=repr)
    def test_no_worse_than_a_dense_grid(self, loss, scale, sign):
        """With the scale of 100 a narrow loss has a minimum at every output, far narrower than a cell."""
        Z = scale * np.random.default_rng(0).standard_normal(25)
        weights = drawn_weights(sign, (12, 25))
        self.check(loss, Z, weights, decoded(ScalarMinimum(), loss, Z, weights), Z.min(), Z.max())

    @pytest.mark.parametrize("n_grid", [2, 3, 40])
    def test_a_coarse_grid_is_global_too(self, n_grid):
        Z = 3 * np.random.default_rng(0).standard_normal(25)
        weights = drawn_weights("any", (12, 25))
        found = decoded(ScalarMinimum(n_grid=n_grid), Cauchy(0.1), Z, weights)
        self.check(Cauchy(0.1), Z, weights, found, Z.min(), Z.max())

    @pytest.mark.parametrize("loss", INTERVAL, ids=repr)
    @pytest.mark.parametrize(("low", "high"), [(-0.5, 0.7), (-9.0, 9.0), (None, 0.2), (0.3, None), (0.4, 0.4)])
    def test_an_interval_of_ones_own(self, loss, low, high):
        Z = np.random.default_rng(0).standard_normal(15)
        weights = drawn_weights("any", (8, 15))
        found = decoded(ScalarMinimum(low, high), loss, Z, weights)
        self.check(loss, Z, weights, found, Z.min() if low is None else low, Z.max() if high is None else high)

    @pytest.mark.parametrize("loss", [Cauchy(0.1), Absolute()], ids=repr)
    def test_columns(self, loss):
        """Each on the interval of its own outputs."""
        Z = np.random.default_rng(0).standard_normal((15, 3)) * [1.0, 100.0, 0.01]
        weights = drawn_weights("any", (8, 15))
        found = decoded(ScalarMinimum(), loss, Z, weights)
        assert found.shape == (8, 3)
        for column, z in zip(found.T, Z.T, strict=True):
            assert_array_equal(column, decoded(ScalarMinimum(), loss, z, weights))
            self.check(loss, z, weights, column, z.min(), z.max())

    def test_small_blocks(self, monkeypatch):
        Z = np.random.default_rng(0).standard_normal(15)
        weights = drawn_weights("any", (8, 15))
        wanted = [decoded(ScalarMinimum(), loss, Z, weights) for loss in INTERVAL]
        monkeypatch.setattr("fenchel.decoders.scalar._BLOCK", 100)
        for loss, right in zip(INTERVAL, wanted, strict=True):
            assert_allclose(decoded(ScalarMinimum(), loss, Z, weights), right, rtol=1e-6, atol=1e-6)

    def test_the_slope_vanishes(self):
        """Newton's steps end at the minimum itself, not at a point of the grid."""
        Z = np.random.default_rng(0).standard_normal(25)
        weights = drawn_weights("positive", (12, 25))
        for loss in (Cauchy(1.0), L2L1(), Fair(0.2)):
            found = decoded(ScalarMinimum(), loss, Z, weights)
            slope = np.sum(weights * loss.slope(found[:, None], Z), axis=1)
            assert np.all(np.abs(slope) <= 1e-7 * weights.sum(axis=1))

    def test_by_hand(self):
        Z = np.array([0.0, 1.0, 10.0])
        one = np.ones((1, 3))
        assert decoded(ScalarMinimum(), Absolute(), Z, one) == [1.0]
        assert decoded(ScalarMinimum(), Pinball(0.9), Z, one) == [10.0]
        assert decoded(ScalarMinimum(), Pinball(0.1), Z, one) == [0.0]
        assert decoded(ScalarMinimum(), Huber(100.0), Z, one) == pytest.approx([11 / 3])
        assert decoded(ScalarMinimum(), Absolute(), Z, np.array([[1.0, -3.0, 1.0]])) == [10.0]
        assert decoded(ScalarMinimum(), GemanMcClure(), Z, np.array([[1.0, 1.0, 1.5]])) == pytest.approx(
            [0.5], abs=0.02
        )

    def test_a_narrow_well(self):
        """Far narrower than a cell of the grid, and than a part of it: the heavier of two is found."""
        Z = np.array([0.0, 5011.37, 10_000.0])
        found = decoded(ScalarMinimum(), Cauchy(1e-6), Z, np.array([[1.0, 1.2, 0.01]]))
        assert found == pytest.approx([5011.37], abs=1e-6)

    def test_no_weight(self):
        Z = np.array([2.0, 3.0])
        for loss in INTERVAL:
            found = decoded(ScalarMinimum(), loss, Z, np.zeros((2, 2)))
            assert np.all((found >= 2) & (found <= 3))

    def test_one_output(self):
        for loss in INTERVAL:
            assert_array_equal(
                decoded(ScalarMinimum(), loss, np.full(4, 0.1), drawn_weights("any", (3, 4))), np.full(3, 0.1)
            )

    def test_the_interval_of_the_outputs_seen(self):
        Z = np.array([0.0, 1.0, 50.0])
        decoder = ScalarMinimum().fit(Z[:2], TaskSpace(Absolute(), Z))
        assert decoder.decode(np.array([[0.1, 0.1, 1.0]])) == [1.0]

    def test_bounds_in_order(self):
        with pytest.raises(ValueError, match=r"ScalarMinimum needs low <= high\. Got 1 and 0\.5\."):
            decoded(ScalarMinimum(1.0, 0.5), Absolute(), np.zeros(3), np.ones((1, 3)))
        with pytest.raises(ValueError, match=r"ScalarMinimum needs low <= high\. Got 7 and 2\."):
            decoded(ScalarMinimum(low=7.0), Absolute(), np.array([0.0, 2.0]), np.ones((1, 2)))

    @pytest.mark.parametrize(("name", "bad"), [("n_grid", 1), ("low", np.inf), ("high", np.nan), ("n_grid", 2.5)])
    def test_parameters(self, name, bad):
        with pytest.raises(ValueError, match=rf"'{name}' parameter of ScalarMinimum"):
            ScalarMinimum(**{name: bad}).validate()


def grid_of_histograms(parts):
    return np.array([(i, j, parts - i - j) for i in range(parts + 1) for j in range(parts + 1 - i)]) / parts


def drawn_histograms(n=12, d=3, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.dirichlet(np.full(d, 0.5), size=n)
    Z[: n // 3][Z[: n // 3] < 0.6 / d] = 0
    return Z / Z.sum(axis=1, keepdims=True)


def excess(loss, Z, weights, found, grid):
    """Return how much higher the loss is than on a grid, as a share of the sum of the weights' sizes."""
    ends = np.sum(weights * loss.matrix(found, Z), axis=1)
    return (ends - np.min(weights @ loss.matrix(grid, Z).T, axis=1)) / np.sum(np.abs(weights), axis=1)


class TestSimplex:
    @every_sign
    def test_hellinger(self, sign):
        Z, weights = drawn_histograms(), drawn_weights(sign, (30, 12))
        found = decoded(Simplex(), Hellinger(), Z, weights)
        assert_allclose(found.sum(axis=1), 1, rtol=1e-14)
        assert np.all(found >= 0)
        assert np.all(excess(Hellinger(), Z, weights, found, grid_of_histograms(200)) <= TINY)

    def test_hellinger_where_all_sums_are_negative(self):
        """The vertex of the greatest of them."""
        Z = np.array([[0.2, 0.5, 0.3]])
        assert_array_equal(decoded(Simplex(), Hellinger(), Z, np.array([[-1.0]])), [[1.0, 0.0, 0.0]])

    def test_hellinger_of_tiny_weights(self):
        Z = drawn_histograms()
        weights = drawn_weights("any", (5, 12))
        assert_allclose(
            decoded(Simplex(), Hellinger(), Z, 1e-200 * weights),
            decoded(Simplex(), Hellinger(), Z, weights),
            atol=1e-12,
        )

    @pytest.mark.parametrize("d", [3, 10])
    @pytest.mark.parametrize("sign", ["positive", "equal"])
    def test_chi_square_of_positive_weights(self, sign, d):
        """The problem is convex: cvxpy gives its value."""
        Z, weights = drawn_histograms(d=d), drawn_weights(sign, (6, 12))
        found = decoded(Simplex(), ChiSquare(), Z, weights)
        for y, w in zip(found, weights, strict=True):
            v = cp.Variable(d)
            parts = [
                4 * w[i] * Z[i, j] ** 2 * cp.inv_pos(v[j] + Z[i, j]) for i in range(12) for j in range(d) if Z[i, j] > 0
            ]
            constant = float(np.sum(w)) - 3 * float(np.sum(w[:, None] * Z))
            best = cp.Problem(cp.Minimize(sum(parts)), [v >= 0, cp.sum(v) == 1]).solve(solver=cp.CLARABEL) + constant
            assert float(ChiSquare().matrix(y[None], Z)[0] @ w) <= best + 1e-7 * np.sum(w)
            assert abs(y.sum() - 1) <= 1e-14
            assert y.min() >= 0

    def test_chi_square_of_negative_weights(self):
        """The loss is concave: the minimum is at a vertex, and it is found."""
        for seed in range(20):
            Z, weights = drawn_histograms(seed=seed), drawn_weights("negative", (20, 12), seed)
            found = decoded(Simplex(), ChiSquare(), Z, weights)
            assert np.all(excess(ChiSquare(), Z, weights, found, np.eye(3)) <= TINY)

    @pytest.mark.parametrize("sign", ["any", "mostly positive"])
    def test_chi_square_of_any_weights(self, sign):
        """Local minima only are promised. Random signs: 5 of 600 are not global, by 0.0009 at most; else all are."""
        found = []
        for seed in range(30):
            Z, weights = drawn_histograms(seed=seed), drawn_weights(sign, (20, 12), seed)
            ends = decoded(Simplex(), ChiSquare(), Z, weights)
            found.append(excess(ChiSquare(), Z, weights, ends, grid_of_histograms(60)))
            assert np.all(excess(ChiSquare(), Z, weights, ends, np.vstack([Z, np.eye(3)])) <= TINY)
        found = np.concatenate(found)
        assert np.mean(found > 1e-6) <= (0.02 if sign == "any" else 0)
        assert found.max() <= (0.005 if sign == "any" else 1e-6)

    def test_value_and_slope(self):
        Z, weights, h = drawn_histograms(), drawn_weights("any", (5, 12)), 1e-6
        Y = drawn_histograms(5, seed=3) + 0.1
        value, slope, bend = ChiSquare().derivatives(weights, Y, Z)
        plain = np.sum(weights * ChiSquare().matrix(Y, Z), axis=1)
        rest = np.sum(weights, axis=1) * Y.sum(axis=1) - 3 * np.sum(weights, axis=1)
        assert_allclose(value + rest, plain, atol=1e-12)
        for j in range(3):
            step = h * np.eye(3)[j]
            ahead, behind = (ChiSquare().derivatives(weights, Y + s, Z) for s in (step, -step))
            assert_allclose(slope[:, j], (ahead[0] - behind[0]) / (2 * h), atol=1e-6)
            second = (ahead[1] - behind[1])[:, j] / (2 * h)
            assert_allclose(bend[second > 0.2 * bend[:, j], j], second[second > 0.2 * bend[:, j]], rtol=1e-5)
            assert np.all(bend[:, j] >= second * (1 - 1e-5))
            assert np.all(bend > 0)

    def test_starts_are_outputs_that_were_seen(self):
        Z, weights = drawn_histograms(), drawn_weights("any", (5, 12))
        weights[:, 6:] = 0
        space = TaskSpace(ChiSquare(), Z)
        alone = Simplex().fit(Z[:6], TaskSpace(ChiSquare(), Z[:6])).decode(weights[:, :6])
        assert_allclose(Simplex().fit(Z[:6], space).decode(weights), alone, atol=1e-9)

    def test_steps_that_go_too_far_are_cut(self):
        """A square whose second derivatives are told ten times too small: full steps would swing around it."""

        class Steep(ChiSquare):
            def matrix(self, Y, Z):
                return np.sum((np.asarray(Y)[:, None] - Z[None]) ** 2, axis=2)

            def first_guesses(self, weights, Z):
                return [np.eye(3)[: len(weights)]]

            def derivatives(self, weights, Y, Z):
                gaps = Y - weights @ Z
                return np.sum(gaps**2, axis=1), 2 * gaps, np.full_like(Y, 0.2)

        Z = drawn_histograms()
        weights = np.abs(drawn_weights("any", (3, 12)))
        weights /= weights.sum(axis=1, keepdims=True)
        assert_allclose(decoded(Simplex(), Steep(), Z, weights), weights @ Z, atol=1e-4)

    def test_newton_step(self):
        """At the minimum of a convex function on the simplex the slope towards every vertex is not negative."""
        rng = np.random.default_rng(0)
        y, slope, bend = (
            rng.dirichlet(np.ones(5), size=50),
            rng.standard_normal((50, 5)),
            10 ** rng.uniform(-3, 3, (50, 5)),
        )
        found = newton_on_simplex(y, slope, bend)
        assert_allclose(found.sum(axis=1), 1, rtol=1e-13)
        assert np.all(found >= 0)
        gradient = slope + bend * (found - y)
        for vertex in np.eye(5):
            assert np.all(np.sum(gradient * (vertex - found), axis=1) >= -1e-10)

    @pytest.mark.parametrize(("name", "bad"), [("n_starts", 0), ("max_iter", 0), ("tol", 0.0)])
    def test_parameters(self, name, bad):
        with pytest.raises(ValueError, match=rf"'{name}' parameter of Simplex"):
            Simplex(**{name: bad}).validate()


def violated(preferences, order):
    """Return how much preference goes against an order of the items, the best first."""
    return sum(max(preferences[order[b], order[a]], 0.0) for a in range(len(order)) for b in range(a + 1, len(order)))


def antisymmetric(rng, M, share=1.0):
    P = np.triu(rng.standard_normal((M, M)) * (rng.random((M, M)) < share), 1)
    return P - P.T


class TestFeedbackArcSet:
    @pytest.mark.parametrize("share", [1.0, 0.5])
    @pytest.mark.parametrize("M", [1, 2, 3, 5, 6])
    def test_against_all_orders(self, M, share):
        """Half of the preference at most is violated; on average little more than by the best order."""
        rng, mine, best = np.random.default_rng(M), 0.0, 0.0
        for _ in range(40):
            P = antisymmetric(rng, M, share)
            order = order_items(P)
            assert sorted(order) == list(range(M))
            found = violated(P, order)
            least = min(violated(P, one) for one in permutations(range(M)))
            assert least - 1e-12 <= found <= np.sum(np.maximum(P, 0)) / 2 + 1e-12
            mine, best = mine + found, best + least
        assert mine <= 1.45 * best  # 1.40 was measured, with six items

    def test_seven_items(self):
        """All orders at once, pair by pair of their places."""
        rng = np.random.default_rng(7)
        every = np.array(list(permutations(range(7))))
        mine = best = 0.0
        for _ in range(40):
            P = antisymmetric(rng, 7)
            costs = sum(np.maximum(P[every[:, b], every[:, a]], 0) for a in range(7) for b in range(a + 1, 7))
            mine, best = mine + violated(P, order_items(P)), best + costs.min()
        assert best <= mine <= 1.45 * best  # 1.37 was measured

    @pytest.mark.parametrize("M", [2, 7, 40])
    def test_without_cycles_nothing_is_violated(self, M):
        rng = np.random.default_rng(M)
        for share in (1.0, 0.3):
            place = rng.permutation(M)
            P = np.abs(rng.standard_normal((M, M))) * (rng.random((M, M)) < share)
            P = np.where(place[:, None] < place[None, :], P, 0.0)
            assert violated(P - P.T, order_items(P - P.T)) == 0

    def test_a_cycle_by_hand(self):
        """0 before 1 by 3, 1 before 2 by 2, 2 before 0 by 1: only the last is violated."""
        P = np.array([[0.0, 3.0, -1.0], [-3.0, 0.0, 2.0], [1.0, -2.0, 0.0]])
        assert_array_equal(order_items(P), [0, 1, 2])

    def test_the_heuristic_itself(self):
        """Sinks last, sources first, else the greatest sum first: written with lists."""

        def plain(P):
            items, left, right = list(range(len(P))), [], []
            while items:
                sinks = [i for i in items if all(P[i, j] <= 0 for j in items)]
                sources = [i for i in items if all(P[i, j] >= 0 for j in items)]
                if sinks:
                    right.insert(0, sinks[0])
                elif sources:
                    left.append(sources[0])
                else:
                    left.append(max(items, key=lambda i: sum(P[i, j] for j in items)))
                items.remove([*left, *right][len(left) - 1 if not sinks else len(left)])
            return left + right

        rng = np.random.default_rng(0)
        for M in (2, 5, 12, 30):
            for share in (1.0, 0.4):
                P = antisymmetric(rng, M, share)
                assert_array_equal(order_items(P), plain(P))

    def test_rankings(self):
        """The greatest number is for the best; the matrix of preferences is that of the task loss."""
        rng = np.random.default_rng(0)
        Z = rng.integers(1, 6, size=(12, 5)).astype(float)
        Z[rng.random((12, 5)) > 0.8] = np.nan
        weights = rng.standard_normal((6, 12))
        found = decoded(FeedbackArcSet(), RankLoss(), Z, weights)
        assert found.shape == (6, 5)
        every = np.array(list(permutations(range(1, 6))))
        losses = weights @ RankLoss().matrix(every, Z).T
        for row, w, least, most in zip(found, weights, losses.min(axis=1), losses.max(axis=1), strict=True):
            assert sorted(row) == [1, 2, 3, 4, 5]
            assert RankLoss().matrix(row[None], Z)[0] @ w <= least + 0.2 * (most - least)

    def test_one_rater_is_followed(self):
        Z = np.array([[1.0, 5.0, 3.0, 2.0, np.nan]])
        found = decoded(FeedbackArcSet(), RankLoss(), Z, np.array([[1.0], [-1.0]]))
        assert_array_equal(found[0, :4].argsort(), [0, 3, 2, 1])
        assert_array_equal(found[1, :4].argsort(), [1, 2, 3, 0])


class TestClosedForms:
    @every_sign
    def test_label_vote(self, sign):
        rng = np.random.default_rng(0)
        Z, weights = (rng.random((9, 5)) > 0.5).astype(float), drawn_weights(sign, (10, 9))
        every = np.array(list(product([0.0, 1.0], repeat=5)))
        scores = np.array([[w @ np.mean(y != Z, axis=1) for y in every] for w in weights])
        assert_array_equal(decoded(LabelVote(), Hamming(), Z, weights), every[np.argmin(scores, axis=1)])

    def test_label_vote_of_halves(self):
        Z = np.array([[1.0, 0.0], [0.0, 1.0]])
        assert_array_equal(decoded(LabelVote(), Hamming(), Z, np.ones((1, 2))), [[0.0, 0.0]])

    def test_weighted_mean(self):
        """With the rule of eq. 7 the sum is not divided by that of the weights."""
        Z = np.random.default_rng(0).standard_normal((9, 2))
        weights = drawn_weights("any", (4, 9))
        wanted = [[sum(w[i] * Z[i, j] for i in range(9)) for j in range(2)] for w in weights]
        assert_allclose(decoded(WeightedMean(), LeastSquares("nearest"), Z, weights), wanted)
        assert_allclose(decoded(WeightedMean(), LeastSquares("nearest"), Z[:, 0], weights), np.array(wanted)[:, 0])

    def test_least_weighted_squares(self):
        """The best point of a fine grid of the box, for weights of any sign, and for a sum of zero."""
        rng = np.random.default_rng(0)
        Z = 100 + rng.standard_normal((9, 2))
        weights = np.vstack([drawn_weights("any", (12, 9)), np.ones((1, 9)), -np.ones((1, 9)), np.zeros((1, 9))])
        weights[4] -= weights[4].mean()
        assert {-1.0, 1.0} <= set(np.sign(weights.sum(axis=1).round(9)))
        found = decoded(WeightedMean(), LeastSquares(), Z, weights)
        for j, column in enumerate(Z.T):
            line = np.linspace(column.min(), column.max(), 4001)
            losses = weights @ (column[:, None] - line) ** 2
            reached = np.sum(weights * (column - found[:, j, None]) ** 2, axis=1)
            assert np.all(reached <= losses.min(axis=1) + 1e-12)
            assert np.all((found[:, j] >= column.min()) & (found[:, j] <= column.max()))
        assert_allclose(decoded(WeightedMean(), LeastSquares(), Z[:, 0], weights), found[:, 0])
        assert_allclose(found[-3], Z.mean(axis=0), rtol=1e-14)

    def test_the_box_is_of_outputs_that_were_seen(self):
        Z = np.array([0.0, 1.0, 9.0])
        decoder = WeightedMean().fit(Z[:2], TaskSpace(LeastSquares(), Z))
        assert_array_equal(decoder.decode(np.array([[-1.0, -2.0, 0.0], [-1.0, 2.0, 0.0]])), [0.0, 1.0])

    @pytest.mark.parametrize("flat", [False, True])
    def test_preimage(self, flat):
        """No worse than a dense line, in the shape of the outputs."""
        Z = np.random.default_rng(0).standard_normal(8)
        weights = drawn_weights("positive", (6, 8))
        found = decoded(Preimage(), KernelInduced(Gaussian(0.5)), Z if flat else Z[:, None], weights)
        assert found.shape == ((6,) if flat else (6, 1))
        line = np.linspace(Z.min(), Z.max(), 20_001)
        best = np.max(weights @ np.exp(-0.5 * (Z[:, None] - line) ** 2), axis=1)
        ends = np.sum(weights * np.exp(-0.5 * (found.reshape(-1, 1) - Z) ** 2), axis=1)
        assert_allclose(ends, best, rtol=1e-6)

    def test_preimage_starts_from_outputs_that_were_seen(self):
        """The far hill is that of an output that was held out: its weight is null, and so is its hill."""
        Z = np.array([[0.0], [0.5], [9.0]])
        decoder = Preimage(max_iter=1, n_starts=3).fit(Z[:2], TaskSpace(KernelInduced(Gaussian(0.5)), Z))
        found = decoder.decode(np.array([[-1.0, -1.0, 0.0]]))
        assert found[0, 0] < 8.9

    def test_preimage_takes_a_gaussian(self):
        with pytest.raises(IncompatibleError, match=r"Preimage is for .*the task loss KernelInduced\(Gaussian"):
            decoded(Preimage(), KernelInduced("laplacian"), np.eye(2), np.eye(2))


class TestFiniteSets:
    CASES = (
        (Cauchy(0.3), lambda rng, n: rng.standard_normal(n)),
        (LeastSquares(), lambda rng, n: rng.standard_normal((n, 2))),
        (LeastSquares("nearest"), lambda rng, n: rng.standard_normal((n, 2))),
        (F1(), lambda rng, n: (rng.random((n, 4)) > 0.5).astype(float)),
        (ZeroOne(), lambda rng, n: np.array(["tree", "root", "leaf"])[rng.integers(3, size=n)]),
        (Hellinger(), lambda rng, n: rng.dirichlet(np.ones(4), size=n)),
        (
            Delta(lambda y, z: float(len(set(y) ^ set(z)))),
            lambda rng, n: np.array(["ab", "abc", "cd", "e"], dtype=object)[rng.integers(4, size=n)],
        ),
        (RankLoss(), lambda rng, n: rng.random((n, 4))),
    )
    every_case = pytest.mark.parametrize(("loss", "draw"), CASES, ids=lambda value: type(value).__name__)

    def case(self, loss, draw, C=7):
        rng = np.random.default_rng(0)
        Z, C, weights = draw(rng, 10), draw(rng, C), rng.standard_normal((5, 10))
        scores = plain_scores(loss, weights, C, Z)
        if getattr(loss, "rule", None) == "nearest":
            scores = np.array([[c @ c - 2 * c @ (w @ Z) + w @ np.sum(Z**2, axis=1) for c in C] for w in weights])
        return Z, C, weights, scores

    @every_case
    def test_candidates(self, loss, draw):
        Z, C, weights, scores = self.case(loss, draw)
        decoder = Candidates(C).fit(Z, TaskSpace(loss, Z))
        assert_allclose(decoder.distances(weights), scores, atol=1e-12)
        assert_array_equal(decoder.decode(weights), C[np.argmin(scores.round(9), axis=1)])
        order = np.argsort(scores.round(9), axis=1, kind="stable")
        assert_array_equal(np.array(decoder.nearest(weights, 3))[:, 0], order[:, 0])
        given = Candidates().fit(Z, TaskSpace(loss, Z))
        assert_array_equal(given.decode(weights, C), decoder.decode(weights))

    @every_case
    def test_a_set_for_each(self, loss, draw):
        Z, C, weights, scores = self.case(loss, draw)
        parts = [slice(0, 3), slice(2, 7), slice(0, 1), slice(4, 7), slice(1, 5)]
        decoder = Candidates().fit(Z, TaskSpace(loss, Z))
        sets = [C[part] for part in parts]
        for found, row, part in zip(decoder.distances(weights, sets), scores, parts, strict=True):
            assert_allclose(found, row[part], atol=1e-12)
        wanted = [C[part][np.argmin(row[part].round(9))] for row, part in zip(scores, parts, strict=True)]
        assert_array_equal(decoder.decode(weights, sets), np.stack(wanted) if C.ndim > 1 else wanted)

    @every_case
    def test_training_set(self, loss, draw):
        Z, _, weights, _ = self.case(loss, draw)
        scores = TaskSpace(loss, Z).distances(weights, Z)
        found = decoded(TrainingSet(), loss, Z, weights)
        assert_array_equal(found, Z[np.argmin(scores.round(9), axis=1)])

    def test_training_set_keeps_distinct_outputs(self):
        Z = np.array(["b", "a", "b", "c", "a"])
        for outputs in (Z, Z.astype(object)):
            decoder = TrainingSet().fit(outputs, TaskSpace(ZeroOne(), outputs))
            assert list(decoder.inner_.candidates) == ["b", "a", "c"]
        mixed = np.array(["b", 1, "b", (2,)], dtype=object)
        assert list(TrainingSet().fit(mixed, TaskSpace(ZeroOne(), mixed)).inner_.candidates) == ["b", 1, "b", (2,)]

    def test_a_decision_that_is_no_class(self):
        """Asking costs little whatever is true: it is chosen in doubt, although no training output asks."""
        costs = np.array([[0.0, 10.0], [4.0, 0.0], [1.0, 1.0]])
        loss = LossMatrix(costs, classes=["well", "ill"], decisions=["well", "ill", "ask"])
        Z = np.array(["well", "ill"])
        shares = np.linspace(0, 1, 101)
        weights = np.stack([1 - shares, shares], axis=1)
        found = decoded(loss.decoder(), loss, Z, weights)
        assert_array_equal(found, np.array(["well", "ill", "ask"])[np.argmin(weights @ costs.T, axis=1)])
        assert set(found) == {"well", "ill", "ask"}
        assert found[5] == "well"
        assert found[20] == "ask"
        assert found[90] == "ill"

    def test_rows_are_decisions(self):
        """The transposed matrix decides otherwise."""
        costs = np.array([[0.0, 10.0], [1.0, 0.0]])
        weights, Z = np.array([[0.7, 0.3]]), np.array([0, 1])
        assert decoded(LossMatrix(costs).decoder(), LossMatrix(costs), Z, weights) == [1]
        assert decoded(LossMatrix(costs.T).decoder(), LossMatrix(costs.T), Z, weights) == [0]
