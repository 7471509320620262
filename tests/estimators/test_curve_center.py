"""The centre of curves: by hand where nothing is missing, against the truth where points are scattered."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel import FunctionalRegressor
from fenchel.datasets import Curves, as_curves
from fenchel.kernels import Gaussian
from fenchel.model.curve_center import CurveCenter

NAN = np.nan
GRID = np.array([0.0, 0.5, 2.0])


def centre(Y, weights=None, kind="mean", grid=GRID):
    Y = np.asarray(Y, dtype=float)
    values = Y.reshape(*Y.shape[:2], -1)
    return CurveCenter.of(
        Curves(grid, Y), values, np.ones(len(Y)) if weights is None else np.asarray(weights, float), kind
    )


class TestComplete:
    def test_mean_by_hand(self):
        Y = [[1.0, 2.0, 3.0], [3.0, 0.0, 5.0], [5.0, 1.0, 1.0]]
        assert_allclose(centre(Y).values, [[3.0], [1.0], [3.0]], rtol=1e-15)
        assert_allclose(centre(Y, [2, 1, 1]).values, [[10 / 4], [5 / 4], [12 / 4]], rtol=1e-15)

    def test_median_by_hand(self):
        Y = [[1.0, 2.0, 3.0], [3.0, 0.0, 5.0], [5.0, 1.0, 1.0]]
        assert_array_equal(centre(Y, kind="median").values, [[3.0], [1.0], [3.0]])
        assert_array_equal(centre(Y[:2], kind="median").values, [[2.0], [1.0], [4.0]])  # the middle of two
        assert_array_equal(centre(Y, [2, 1, 1], "median").values, [[2.0], [1.5], [3.0]])  # 1 1 3 5, 0 1 2 2, 1 3 3 5
        assert_array_equal(centre(Y, [5, 1, 1], "median").values, [[1.0], [2.0], [3.0]])

    @pytest.mark.parametrize("kind", ["mean", "median"])
    def test_weights_count_curves(self, kind, rng):
        Y, counts = rng.standard_normal((9, 3)), rng.integers(1, 5, 9)
        repeated = np.repeat(Y, counts, axis=0)
        wanted = np.mean(repeated, axis=0) if kind == "mean" else np.median(repeated, axis=0)
        assert_allclose(centre(Y, counts, kind).values[:, 0], wanted, rtol=0, atol=1e-14)
        assert_allclose(centre(Y, 0.1 * counts, kind).values[:, 0], wanted, rtol=0, atol=1e-14)

    def test_channels(self, rng):
        Y = rng.standard_normal((4, 3, 2))
        assert_allclose(centre(Y).values, Y.mean(axis=0), rtol=0, atol=1e-15)
        assert_allclose(centre(Y, kind="median").values, np.median(Y, axis=0), rtol=0, atol=1e-15)

    def test_an_outlier_moves_the_mean_only(self):
        Y = [[0.0, 0.0, 0.0]] * 8 + [[1e6, -1e6, 1e6]]
        assert_array_equal(centre(Y, kind="median").values, np.zeros((3, 1)))
        assert np.all(np.abs(centre(Y).values) > 1e5)


class TestBetweenThePoints:
    def test_exact_at_the_points_monotone_between_constant_beyond(self):
        found = centre([[1.0, 2.0, 10.0]])
        assert_array_equal(found(GRID)[:, 0], [1.0, 2.0, 10.0])
        inside = found(np.linspace(0, 2, 101))[:, 0]
        assert np.all(np.diff(inside) > 0)
        assert_array_equal(found(np.array([-3.0, 7.0]))[:, 0], [1.0, 10.0])

    def test_derivative(self):
        found, step = centre([[1.0, 2.0, -1.0]]), 1e-6
        points = np.array([0.1, 0.3, 0.7, 1.9])
        wanted = (found(points + step) - found(points - step)) / (2 * step)
        assert_allclose(found(points, derivative=True), wanted, rtol=0, atol=1e-6)
        assert_array_equal(found(np.array([-1.0, 3.0]), derivative=True), [[0.0], [0.0]])

    def test_one_point(self):
        found = centre([[4.0], [6.0]], grid=np.array([0.3]))
        assert_array_equal(found(np.array([0.0, 1.0])), [[5.0], [5.0]])
        assert_array_equal(found(np.array([0.0, 1.0]), derivative=True), [[0.0], [0.0]])


class TestMissing:
    GRID = np.linspace(0, 1, 60)

    def scattered(self, rng, n=40, seen=5):
        """Curves near one smooth function, each with a level of its own, seen at a few points each."""
        truth = np.sin(2 * np.pi * self.GRID)
        Y = truth + 0.3 * rng.standard_normal((n, 1)) + 0.05 * rng.standard_normal((n, 60))
        for row in Y:
            row[rng.permutation(60)[seen:]] = NAN
        return truth, Y

    @pytest.mark.parametrize("kind", ["mean", "median"])
    def test_constants_are_recovered(self, kind, rng):
        Y = np.where(rng.random((12, 60)) < 0.8, NAN, 2.5)
        assert_allclose(centre(Y, kind=kind, grid=self.GRID).values, 2.5, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("kind", ["mean", "median"])
    def test_straight_lines_are_recovered(self, kind, rng):
        """A smoothing spline leaves them alone, however much it smooths."""
        Y = np.where(rng.random((12, 60)) < 0.8, NAN, 3 * self.GRID - 1)
        some = ~np.isnan(Y).all(axis=0)
        found = centre(Y, kind=kind, grid=self.GRID).values[:, 0]
        assert_allclose(found[some], (3 * self.GRID - 1)[some], rtol=0, atol=1e-6)

    @pytest.mark.parametrize("kind", ["mean", "median"])
    def test_a_smooth_function_is_better_recovered_than_point_by_point(self, kind, rng):
        truth, Y = self.scattered(rng)
        pointwise = (np.nanmean if kind == "mean" else np.nanmedian)(Y[:, ~np.isnan(Y).all(axis=0)], axis=0)
        rough = np.mean((pointwise - truth[~np.isnan(Y).all(axis=0)]) ** 2)
        smooth = np.mean((centre(Y, kind=kind, grid=self.GRID).values[:, 0] - truth) ** 2)
        assert smooth < rough / 2
        assert smooth < 0.02

    @pytest.mark.parametrize("kind", ["mean", "median"])
    @pytest.mark.parametrize("seed", range(3))
    def test_points_drawn_at_random(self, kind, seed):
        """Fifty curves, each at ten points of its own: 500 points, some of them 1e-6 apart; the noise is 0.1."""
        rng = np.random.default_rng(seed)
        points = [np.sort(rng.random(10)) for _ in range(50)]
        curves = as_curves([(t, np.sin(6 * t) + 0.1 * rng.standard_normal(10)) for t in points])
        errors = centre(curves.values, kind=kind, grid=curves.grid).values[:, 0] - np.sin(6 * curves.grid)
        assert np.sqrt(np.mean(errors**2)) < 0.05

    @pytest.mark.parametrize("distance", [1e-8, 1e-10, 3e-12])
    def test_points_that_nearly_meet(self, distance, rng):
        grid = np.linspace(0, 1, 61)[:-1]
        grid = np.sort(np.concatenate([grid, grid + distance]))
        Y = np.sin(6 * grid) + 0.1 * rng.standard_normal((10, 120))
        Y[0, 0] = NAN
        errors = centre(Y, grid=grid).values[:, 0] - np.sin(6 * grid)
        assert np.sqrt(np.mean(errors**2)) < 0.05

    def test_weights_count_curves(self, rng):
        _, Y = self.scattered(rng)
        counts = rng.integers(1, 4, len(Y))
        weighted = centre(Y, counts, grid=self.GRID).values
        assert_allclose(weighted, centre(np.repeat(Y, counts, axis=0), grid=self.GRID).values, rtol=0, atol=1e-8)
        assert np.max(np.abs(weighted - centre(Y, grid=self.GRID).values)) > 1e-3

    def test_a_point_that_nobody_saw_is_filled(self):
        Y = np.tile(np.array([[1.0, 2.0, NAN, 4.0]]), (3, 1))
        grid = np.array([0.0, 1.0, 2.0, 3.0])
        assert_allclose(centre(Y, grid=grid).values[:, 0], [1, 2, 3, 4], rtol=0, atol=1e-12)

    def test_a_channel_that_nobody_saw_is_zero(self):
        Y = np.stack([np.ones((3, 4)), np.full((3, 4), NAN)], axis=2)
        found = centre(Y, grid=np.linspace(0, 1, 4)).values
        assert_allclose(found, [[1.0, 0.0]] * 4, rtol=0, atol=1e-12)

    def test_large_units_do_not_matter(self, rng):
        _, Y = self.scattered(rng)
        one = centre(Y, grid=self.GRID).values
        other = centre(1e8 * Y, grid=1e5 * self.GRID).values
        assert_allclose(other, 1e8 * one, rtol=0, atol=1e-5 * 1e8)


class TestInTheEstimator:
    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    @pytest.mark.parametrize(("center", "kind"), [(True, "mean"), ("median", "median")])
    def test_it_is_taken_away_and_put_back(self, center, kind, gaps, rng):
        """The model of centred curves plus the centre, with weights, zeros among them."""
        X, Y, weights = rng.standard_normal((15, 2)), 5 + rng.standard_normal((15, 8)), rng.integers(0, 3, 15)
        grid = np.linspace(0, 1, 8)
        if gaps:
            Y[rng.random(Y.shape) < 0.3] = NAN
        used = centre(Y[weights > 0], weights[weights > 0], kind, grid)
        model = FunctionalRegressor(Gaussian(0.5), lam=1e-2, center=center, tol=1e-9).fit(X, Y, sample_weight=weights)
        plain = FunctionalRegressor(Gaussian(0.5), lam=1e-2, center=False, tol=1e-9)
        plain.fit(X, Y - used.values[:, 0], sample_weight=weights)
        points = np.array([0.0, 0.33, 1.0, 1.2])
        wanted = plain.predict(X, points) + used(points)[:, 0]
        assert_allclose(model.predict(X, points), wanted, rtol=0, atol=1e-10)
        assert_allclose(model.center_.values, used.values, rtol=0, atol=1e-12)
        assert plain.center_ is None

    def test_far_from_the_sample_the_prediction_is_the_centre(self, rng):
        X, Y = rng.standard_normal((15, 2)), 5 + rng.standard_normal((15, 8))
        far = np.full((1, 2), 1e3)
        assert_allclose(FunctionalRegressor(Gaussian(0.5)).fit(X, Y).predict(far)[0], Y.mean(axis=0), rtol=1e-12)
        median = FunctionalRegressor(Gaussian(0.5), center="median").fit(X, Y)
        assert_allclose(median.predict(far)[0], np.median(Y, axis=0), rtol=1e-12)
        assert_array_equal(FunctionalRegressor(Gaussian(0.5), center=False).fit(X, Y).predict(far), np.zeros((1, 8)))
