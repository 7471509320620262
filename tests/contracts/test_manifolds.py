"""Losses and decoders of manifolds: closed forms, scipy, finite differences, grids, invariances."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigvalsh, expm, fractional_matrix_power, logm
from scipy.special import eval_gegenbauer, eval_legendre, gammaln
from scipy.stats import special_ortho_group

from fenchel import LossTrickPredictor, StructuredPredictor
from fenchel.decoders import CircleMinimum, RiemannianDescent, riemannian, scalar
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian
from fenchel.losses import Huber
from fenchel.task_losses import (
    AffineInvariant,
    CircleDiffusion,
    CircleGeodesic,
    LeastSquares,
    LogEuclidean,
    PositiveDefinite,
    Sphere,
    SphereDiffusion,
    SphereGeodesic,
    TaskSpace,
)
from fenchel.task_losses.heat import circle_heat, sphere_heat

CLOSE = 1e-10  # a few digits less than round-off, after eigenvalues or a table of the heat kernel
CIRCLE = [CircleGeodesic(2.0), CircleGeodesic(1.0), CircleGeodesic(1.5), CircleDiffusion(0.1), CircleDiffusion(2.0)]
SPHERE = [SphereGeodesic(2.0), SphereGeodesic(1.0), SphereGeodesic(1.5), SphereDiffusion(0.1), SphereDiffusion(2.0)]
MATRICES = [AffineInvariant(2.0), AffineInvariant(1.0), AffineInvariant(1.5)]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def directions(n, d=3, seed=0):
    return unit(np.random.default_rng(seed).standard_normal((n, d)))


def angles(n, seed=0):
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, n)


def matrices(n, d=3, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, d, d + 2))
    return A @ np.swapaxes(A, 1, 2) / d + 0.05 * np.eye(d)


def weighted(loss, weights, Y, Z):
    """Return the weighted loss of one point for each row of weights."""
    return np.sum(weights * loss.matrix(Y, Z), axis=1)


def decoded(loss, weights, Z, decoder=None):
    return (decoder or loss.decoder()).fit(Z, TaskSpace(loss, Z)).decode(weights)


def ridge_weights(n, m, lam=1e-3, seed=0):
    """Return the weights that kernel ridge regression gives to n samples of [0, 1], of both signs."""
    rng = np.random.default_rng(seed)
    X, T = rng.uniform(size=(n, 1)), np.linspace(0, 1, m)[:, None]
    return np.linalg.solve(Gaussian(20.0)(X) + n * lam * np.eye(n), Gaussian(20.0)(X, T)).T


def weights_of_sign(sign, m, n, seed=0):
    rng = np.random.default_rng(seed)
    return {"any": rng.standard_normal, "positive": rng.random}[sign]((m, n))


class TestHeat:
    theta = np.linspace(0, np.pi, 41)

    @pytest.mark.parametrize("time", [0.02, 0.3, 1.0, 1.0001, 5.0])
    def test_circle_is_both_of_its_series(self, time):
        """The code takes one series for short times and the other for long ones; here both are summed far."""
        k = np.arange(1, 400)[:, None]
        cosines = 1 + 2 * np.sum(np.exp(-(k**2) * time) * np.cos(k * self.theta), axis=0)
        turns = 2 * np.pi * np.arange(-30, 31)[:, None]
        gaussians = np.sum(np.exp(-((self.theta + turns) ** 2) / (4 * time)), axis=0)
        for wanted in (cosines, gaussians):
            assert_allclose(circle_heat(self.theta, time), wanted / wanted[0], rtol=0, atol=1e-14)

    @pytest.mark.parametrize("time", [0.05, 3.0])
    def test_circle_derivatives(self, time):
        step = 1e-5
        for order in (1, 2):
            ends = [circle_heat(self.theta + s, time, order - 1) for s in (step, -step)]
            assert_allclose(circle_heat(self.theta, time, order), (ends[0] - ends[1]) / (2 * step), atol=1e-8)

    @pytest.mark.parametrize("time", [0.01, 0.3, 4.0])
    def test_two_sphere_is_a_sum_of_legendre_polynomials(self, time):
        l = np.arange(200)[:, None]  # noqa: E741
        wanted = np.sum((2 * l + 1) * np.exp(-l * (l + 1) * time) * eval_legendre(l, np.cos(self.theta)), axis=0)
        assert_allclose(sphere_heat(3, time)(self.theta), wanted / wanted[0], rtol=0, atol=CLOSE)

    @pytest.mark.parametrize(("dim", "time"), [(5, 0.05), (12, 0.2), (40, 0.05)])
    def test_spheres_are_sums_of_gegenbauer_polynomials(self, dim, time):
        l, a = np.arange(1, 120)[:, None], (dim - 2) / 2  # noqa: E741
        terms = (l / a + 1) * np.exp(-l * (l + dim - 2) * time) * eval_gegenbauer(l, a, np.cos(self.theta))
        wanted = 1 + np.sum(terms, axis=0)
        assert_allclose(sphere_heat(dim, time)(self.theta), wanted / wanted[0], rtol=0, atol=CLOSE)

    @pytest.mark.parametrize("time", [1e-4, 0.003, 0.2])
    def test_three_sphere_has_a_closed_form(self, time):
        """On the unit sphere of R^4 heat is a wrapped Gaussian times an angle over its sine."""
        theta = np.concatenate([np.geomspace(1e-3, 0.1, 30), self.theta[1:-1]])
        u = theta + 2 * np.pi * np.arange(-3, 4)[:, None]
        terms = u / np.sin(theta) * np.exp(-(u**2) / (4 * time))
        turns = (2 * np.pi * np.arange(-3, 4)) ** 2
        at_zero = np.sum((1 - turns / (2 * time)) * np.exp(-turns / (4 * time)))
        assert_allclose(sphere_heat(4, time)(theta), np.sum(terms, axis=0) / at_zero, rtol=0, atol=CLOSE)

    def test_heat_spreads_by_the_equation(self):
        """Flows between 400 rings of the sphere, solved by a matrix exponential; the first ring starts hot."""
        edges = np.linspace(0, np.pi, 401)
        area, gap = np.diff(-np.cos(edges)), edges[1]
        flow = np.sin(edges[1:-1]) / gap
        L = np.diag(flow, 1) + np.diag(flow, -1)
        L = (L - np.diag(L.sum(axis=1))) / area[:, None]
        heat = expm(0.1 * L)[:, 0]
        middle = (edges[1:] + edges[:-1]) / 2
        assert_allclose(sphere_heat(3, 0.1)(middle), heat / heat[0], rtol=0, atol=2e-4)

    @pytest.mark.parametrize(("dim", "time"), [(3, 0.05), (7, 0.5)])
    def test_slope(self, dim, time):
        inner, step = self.theta[1:-1], 1e-5
        kernel = sphere_heat(dim, time)
        ends = (kernel(inner + step) - kernel(inner - step)) / (2 * step)
        assert_allclose(kernel(inner, 1), ends, rtol=0, atol=1e-7)

    def test_many_coordinates_do_not_overflow(self):
        kernel = sphere_heat(2000, 0.01)
        assert np.all(np.isfinite(kernel(self.theta))) and kernel(0.0) == pytest.approx(1.0)
        assert 2 * 300 + gammaln(2300) > 709  # the counts of harmonics would


class TestCircleLosses:
    def test_geodesic_is_the_argument_of_a_quotient(self):
        y, z = angles(30), 20 * angles(20, seed=1)
        arcs = np.abs(np.angle(np.exp(1j * (y[:, None] - z))))
        for power in (1.0, 1.3, 2.0):
            assert_allclose(CircleGeodesic(power).matrix(y, z), arcs**power, atol=1e-12)

    @pytest.mark.parametrize("loss", CIRCLE, ids=repr)
    def test_turns_do_not_matter(self, loss):
        y, z = angles(5), angles(7, seed=1)
        turned = loss.matrix(y + 6 * np.pi, z - 2 * np.pi)
        assert_allclose(turned, loss.matrix(y, z), atol=1e-12)
        assert_allclose(loss.matrix(y + 0.7, z + 0.7), loss.matrix(y, z), atol=1e-12)
        assert_allclose(np.diag(loss.matrix(z, z)), 0, atol=1e-12)
        assert np.all((loss.check(z + 4 * np.pi) >= -np.pi) & (loss.check(z + 4 * np.pi) < np.pi))

    @pytest.mark.parametrize("loss", CIRCLE, ids=repr)
    def test_slope_and_bend(self, loss):
        y, z, step = angles(8)[:, None], angles(9, seed=1), 1e-6
        assert_allclose(loss.slope(y, z), (loss.value(y + step, z) - loss.value(y - step, z)) / (2 * step), atol=1e-7)
        assert_allclose(loss.bend(y, z), (loss.slope(y + step, z) - loss.slope(y - step, z)) / (2 * step), atol=1e-5)

    @pytest.mark.parametrize("loss", [*CIRCLE, CircleGeodesic(1.05), CircleDiffusion(0.003)], ids=repr)
    def test_no_arc_sags_more_than_the_bound(self, loss):
        """Arcs that end at kinks: the loss there, less its chord, at 200 points of each."""
        z = angles(4)
        cuts = np.unique(np.concatenate([np.linspace(-np.pi, np.pi, 20), loss.cuts(z)]))
        left, width = cuts[:-1, None], np.diff(cuts)[:, None]
        share = np.linspace(0, 1, 200)[:, None, None]
        chord = (1 - share) * loss.value(left, z) + share * loss.value(left + width, z)
        apart = loss.value(left + share * width, z) - chord
        below, above = loss.sag(left, width, z)
        assert np.all(-apart.min(axis=0) <= below + 1e-12) and np.all(apart.max(axis=0) <= above + 1e-12)
        if np.any(below > 0):
            assert np.max(-apart.min(axis=0) / np.maximum(below, 1e-300)) > 0.9  # and somewhere it is nearly reached


class TestCircleMinimum:
    @pytest.mark.parametrize("sign", ["any", "positive"])
    @pytest.mark.parametrize("loss", [*CIRCLE, CircleGeodesic(1.05), CircleDiffusion(0.001)], ids=repr)
    @pytest.mark.parametrize("n", [1, 6, 40])
    def test_below_a_grid(self, loss, sign, n):
        z, weights = angles(n), weights_of_sign(sign, 15, n, seed=2)
        found = decoded(loss, weights, z)
        assert found.shape == (15,) and np.all((found >= -np.pi) & (found < np.pi))
        grid = np.concatenate([np.linspace(-np.pi, np.pi, 20_000), z])
        least = np.min(TaskSpace(loss, z).distances(weights, grid), axis=1)
        assert np.all(weighted(loss, weights, found, z) <= least + 1e-12)

    @pytest.mark.parametrize("loss", [CircleDiffusion(0.1), CircleGeodesic(2.0)], ids=repr)
    def test_small_grid_and_small_blocks(self, loss, monkeypatch):
        z, weights = angles(12), weights_of_sign("any", 9, 12)
        wanted = decoded(loss, weights, z)
        monkeypatch.setattr(scalar, "_BLOCK", 50)
        assert_allclose(decoded(loss, weights, z, CircleMinimum(n_grid=2)), wanted, atol=1e-8)

    def test_mean_of_two_is_in_the_middle_of_the_shorter_arc(self):
        found = decoded(CircleGeodesic(2.0), np.array([[0.5, 0.5], [0.75, 0.25]]), np.array([3.0, -3.0]))
        arc = 2 * np.pi - 6
        assert_allclose(found, [-np.pi, 3 + arc / 4], atol=1e-9)

    def test_median_is_one_of_the_outputs(self):
        z = np.array([0.0, 0.1, 0.2, 2.0, 2.1])
        assert_array_equal(decoded(CircleGeodesic(1.0), np.ones((1, 5)), z), [0.2])

    def test_negative_weight_drives_to_the_other_side(self):
        for loss in CIRCLE:
            assert_allclose(decoded(loss, np.array([[-1.0]]), np.array([0.5])), [0.5 - np.pi], atol=1e-6)

    def test_predictions_do_not_reach_pi(self):
        assert_array_equal(decoded(CircleGeodesic(2.0), np.ones((1, 1)), np.array([-np.pi])), [-np.pi])
        assert_array_equal(CircleGeodesic().check([np.pi, 3 * np.pi, -np.pi, -1e-17]), [-np.pi, -np.pi, -np.pi, -1e-17])


class TestSphere:
    @pytest.mark.parametrize("d", [3, 4, 9])
    def test_distances(self, d):
        Y, Z = directions(6, d), directions(7, d, seed=1)
        assert_allclose(SphereGeodesic(1.0).matrix(Y, Z), np.arccos(np.clip(Y @ Z.T, -1, 1)), atol=1e-7)
        assert_allclose(SphereGeodesic(1.0)(Y, Y), 0.0, atol=1e-15)
        assert_allclose(SphereGeodesic(1.5)(Y, -Y), np.pi**1.5)

    def test_small_and_large_angles_keep_their_digits(self):
        y = np.array([[1.0, 0.0, 0.0]])
        z = np.array([[np.cos(1e-9), np.sin(1e-9), 0.0]])
        assert_allclose(SphereGeodesic(1.0).matrix(y, z), 1e-9, rtol=1e-12)
        assert_allclose(np.pi - SphereGeodesic(1.0).matrix(y, -z), 1e-9, rtol=1e-6)

    @pytest.mark.parametrize("loss", SPHERE, ids=repr)
    def test_rotations_do_not_matter(self, loss):
        Y, Z, R = directions(4), directions(5, seed=1), special_ortho_group.rvs(3, random_state=0)
        assert_allclose(loss.matrix(Y @ R, Z @ R), loss.matrix(Y, Z), atol=1e-10)

    def test_geodesics_arrive(self):
        """From y along the direction towards z for the distance to z."""
        Y, Z = directions(6, 5), directions(6, 5, seed=1)
        distances, pull = Sphere().view(Y, Z)
        ends = Sphere().exp(Y, pull(np.eye(6) * distances))
        assert_allclose(ends, Z, atol=1e-12)
        assert_allclose(np.linalg.norm(Sphere().exp(Y, 30 * ends), axis=1), 1, atol=1e-15)

    def test_no_direction_to_itself_and_to_the_antipode(self):
        y = directions(1)
        _, pull = Sphere().view(y, np.concatenate([y, -y]))
        assert_array_equal(pull(np.ones((1, 2))), 0.0)

    def test_diffusion_is_half_the_squared_distance_of_heat(self):
        """Of the heat that has spread for half the time, in units of its norm: by quadrature along latitudes."""
        time, angle = 0.1, 0.7
        x, w = np.polynomial.legendre.leggauss(60)
        lon = np.linspace(0, 2 * np.pi, 121)[:-1]
        points = np.stack(
            [np.outer(np.sqrt(1 - x**2), np.cos(lon)), np.outer(np.sqrt(1 - x**2), np.sin(lon)), np.outer(x, lon**0)],
            -1,
        )
        heats = [
            sphere_heat(3, time / 2)(np.arccos(np.clip(points @ pole, -1, 1)))
            for pole in (np.array([0, 0, 1.0]), np.array([np.sin(angle), 0, np.cos(angle)]))
        ]
        norm = np.sum(w[:, None] * heats[0] ** 2)
        found = np.sum(w[:, None] * (heats[0] - heats[1]) ** 2) / norm / 2
        assert_allclose(1 - sphere_heat(3, time)(angle), found, rtol=1e-6)


class TestMatrices:
    def test_distances(self):
        Y, Z = matrices(4), matrices(5, seed=1)
        affine = [[np.sqrt(np.sum(np.log(eigvalsh(z, y)) ** 2)) for z in Z] for y in Y]
        roots = [fractional_matrix_power(y, -0.5) for y in Y]
        logs = [[np.linalg.norm(logm(r @ z @ r)) for z in Z] for r in roots]
        flat = [[np.linalg.norm(logm(y) - logm(z)) ** 2 for z in Z] for y in Y]
        for power in (1.0, 1.5, 2.0):
            assert_allclose(AffineInvariant(power).matrix(Y, Z), np.power(affine, power), rtol=CLOSE)
        assert_allclose(affine, logs, rtol=CLOSE)
        assert_allclose(LogEuclidean().matrix(Y, Z), flat, rtol=CLOSE)

    @pytest.mark.parametrize("loss", MATRICES, ids=repr)
    def test_congruences_do_not_matter(self, loss):
        Y, Z, A = matrices(4), matrices(5, seed=1), np.random.default_rng(2).standard_normal((3, 3))
        assert_allclose(loss.matrix(A @ Y @ A.T, A @ Z @ A.T), loss.matrix(Y, Z), rtol=1e-8)
        assert_allclose(loss.matrix(np.linalg.inv(Y), np.linalg.inv(Z)), loss.matrix(Y, Z), rtol=1e-8)
        assert_allclose(np.diag(loss.matrix(Z, Z)), 0, atol=1e-12)

    def test_rotations_do_not_matter_to_the_log_euclidean_distance(self):
        Y, Z, R = matrices(4), matrices(5, seed=1), special_ortho_group.rvs(3, random_state=0)
        assert_allclose(LogEuclidean().matrix(R @ Y @ R.T, R @ Z @ R.T), LogEuclidean().matrix(Y, Z), rtol=1e-8)

    def test_geodesics_arrive(self):
        Y, Z = matrices(6), matrices(6, seed=1)
        distances, pull = PositiveDefinite().view(Y, Z)
        assert_allclose(PositiveDefinite().exp(Y, pull(np.eye(6) * distances)), Z, rtol=1e-9, atol=1e-12)

    def test_region_is_a_ball(self):
        """Points inside stay; those outside come to the boundary along the geodesic from the centre."""
        Z = matrices(8)
        manifold, project = PositiveDefinite(), PositiveDefinite().region(Z)
        centre = decoded(AffineInvariant(), np.ones((1, 8)), Z, RiemannianDescent(tol=1e-16))
        radius = manifold.distance(centre, Z).max()
        assert_array_equal(project(Z), Z)
        far = matrices(5, seed=3) * np.array([1e3, 1e-3, 1e4, 1e2, 1e-5])[:, None, None]
        near = project(far)
        assert_allclose(manifold.distance(centre, near), radius, rtol=1e-6)
        rest = manifold.distance(centre, far) - radius
        assert np.all(rest > 0)
        assert_allclose(manifold.distance(near, far), rest, rtol=1e-6)

    def test_mean_of_matrices_that_are_far_apart(self):
        """Eigenvalues of exp(-5) to exp(5) in all directions: the undamped iteration does not arrive."""
        R = special_ortho_group.rvs(3, size=6, random_state=0)
        Z = R @ np.diag(np.exp([5.0, 0.0, -5.0])) @ np.swapaxes(R, 1, 2)
        distances, pull = PositiveDefinite().view(PositiveDefinite()._mean(Z), Z)
        assert_allclose(pull(distances), 0, atol=1e-7)

    def test_log_euclidean_closed_form(self):
        Z, weights = matrices(5), weights_of_sign("any", 3, 5)
        wanted = [expm(sum(w * logm(z) for w, z in zip(row, Z, strict=True))) for row in weights]
        assert_allclose(decoded(LogEuclidean("nearest"), weights, Z), wanted, rtol=1e-8)

    def test_log_euclidean_with_the_smallest_weighted_loss(self):
        """No matrix whose eigenvalues are in the range of the outputs' is better; the mean for weights of one sign."""
        rng, Z = np.random.default_rng(0), matrices(5)
        weights = np.vstack([rng.standard_normal((6, 5)), rng.random((1, 5)), -rng.random((1, 5))])
        assert min(weights[:6].sum(axis=1)) < 0 < max(weights[:6].sum(axis=1))
        loss, found = LogEuclidean(), decoded(LogEuclidean(), weights, Z)
        spectrum = np.log(np.linalg.eigvalsh(Z))
        low, high = spectrum.min(), spectrum.max()
        assert np.all(np.abs(np.log(np.linalg.eigvalsh(found)) - (low + high) / 2) <= (high - low) / 2 * (1 + 1e-9))
        turns = np.linalg.qr(rng.standard_normal((4000, *Z.shape[1:])))[0]
        levels = np.clip(rng.uniform(1.5 * low, 1.5 * high, (4000, Z.shape[1])), low, high)
        others = turns @ (np.exp(levels)[:, :, None] * np.swapaxes(turns, 1, 2))
        reached = np.array([row @ loss.matrix(one[None], Z)[0] for row, one in zip(weights, found, strict=True)])
        assert np.all(reached <= np.min(weights @ loss.matrix(others, Z).T, axis=1) + 1e-9)
        mean = expm(sum(w * logm(z) for w, z in zip(weights[6] / weights[6].sum(), Z, strict=True)))
        assert_allclose(found[6], mean, rtol=1e-8)


@pytest.mark.parametrize(
    ("loss", "Y", "Z"),
    [(loss, directions(7, 4, seed=5), directions(9, 4)) for loss in SPHERE]
    + [(loss, matrices(7, seed=5), matrices(9)) for loss in MATRICES],
    ids=repr,
)
def test_gradients_are_those_along_geodesics(loss, Y, Z):
    weights = weights_of_sign("any", 7, 9)
    values, gradients, steps, sizes = loss.descent(weights, Y, Z)
    assert_allclose(values, weighted(loss, weights, Y, Z), rtol=1e-9, atol=1e-12)
    assert_allclose(sizes, weighted(loss, np.abs(weights), Y, Z), rtol=1e-9)
    assert np.all(steps > 0)
    rng = np.random.default_rng(1)
    for _ in range(3):
        V = rng.standard_normal(Y.shape)
        V = (V + np.swapaxes(V, 1, 2)) / 2 if Y.ndim == 3 else V - np.sum(V * Y, axis=1, keepdims=True) * Y
        ends = [weighted(loss, weights, loss.manifold.exp(Y, s * V), Z) for s in (1e-5, -1e-5)]
        product = np.sum((gradients * V).reshape(len(Y), -1), axis=1)
        assert_allclose((ends[0] - ends[1]) / 2e-5, product, rtol=1e-6, atol=1e-6)


class TestRiemannianDescent:
    @pytest.mark.parametrize("kind", ["any", "positive", "ridge"])
    @pytest.mark.parametrize("loss", [*SPHERE, SphereDiffusion(0.02)], ids=repr)
    def test_below_a_grid_of_the_sphere(self, loss, kind):
        """20000 points of a Fibonacci spiral, 1.4 degrees apart."""
        n, m = 25, 200
        weights = ridge_weights(n, m) if kind == "ridge" else weights_of_sign(kind, m, n)
        Z = directions(n)
        i = np.arange(20_000) + 0.5
        height, turn = 1 - i / 10_000, np.pi * (1 + np.sqrt(5)) * i
        grid = np.stack([np.sqrt(1 - height**2) * np.cos(turn), np.sqrt(1 - height**2) * np.sin(turn), height], axis=1)
        found = decoded(loss, weights, Z)
        assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-14)
        least = np.min(TaskSpace(loss, Z).distances(weights, grid), axis=1)
        assert np.all(weighted(loss, weights, found, Z) <= least + 1e-9)

    @pytest.mark.parametrize("loss", [*SPHERE, *MATRICES], ids=repr)
    @pytest.mark.parametrize("start", range(3))
    def test_never_worse_than_the_best_training_output(self, loss, start):
        Z = directions(15, 5, seed=start) if loss in SPHERE else matrices(15, 2, seed=start)
        weights = weights_of_sign("any", 10, 15, seed=start)
        found = decoded(loss, weights, Z, RiemannianDescent(n_starts=1, max_iter=2))
        best = np.min(weights @ loss.matrix(Z, Z).T, axis=1)
        assert np.all(weighted(loss, weights, found, Z) <= best + 1e-12)

    @pytest.mark.parametrize("loss", [SPHERE[0], SPHERE[3], MATRICES[0]], ids=repr)
    def test_the_gradient_vanishes(self, loss):
        Z = unit(directions(15) + np.array([2.0, 0.0, 0.0])) if loss in SPHERE else matrices(15)
        weights = weights_of_sign("positive", 8, 15)
        gradients = loss.descent(weights, decoded(loss, weights, Z), Z)[1]
        assert_allclose(gradients, 0, atol=1e-4)

    @pytest.mark.parametrize("share", [0.5, 0.2])
    def test_mean_of_two_is_on_the_geodesic(self, share):
        weights = np.array([[1 - share, share]])
        y, z = directions(2)
        angle = np.arccos(y @ z)
        wanted = (np.sin((1 - share) * angle) * y + np.sin(share * angle) * z) / np.sin(angle)
        assert_allclose(decoded(SphereGeodesic(), weights, np.stack([y, z]))[0], wanted, atol=1e-6)
        a, b = matrices(2)
        root, inverse = fractional_matrix_power(a, 0.5), fractional_matrix_power(a, -0.5)
        wanted = root @ fractional_matrix_power(inverse @ b @ inverse, share) @ root
        assert_allclose(decoded(AffineInvariant(), weights, np.stack([a, b]))[0], wanted, atol=1e-5)

    def test_mean_of_commuting_matrices_is_geometric(self):
        rng = np.random.default_rng(0)
        R, values = special_ortho_group.rvs(3, random_state=0), rng.uniform(0.1, 5, (6, 3))
        weights = rng.dirichlet(np.ones(6), 4)
        wanted = [R @ np.diag(np.prod(values ** row[:, None], axis=0)) @ R.T for row in weights]
        Z = R @ (values[:, :, None] * np.eye(3)) @ R.T
        assert_allclose(decoded(AffineInvariant(), 3 * weights, Z), wanted, rtol=1e-5, atol=1e-6)

    def test_median_resists_the_mean_does_not(self):
        Z = np.concatenate([np.tile([[1.0, 0.0, 0.0]], (7, 1)), np.tile([[0.0, 1.0, 0.0]], (3, 1))])
        weights = np.full((1, 10), 0.1)
        assert_allclose(decoded(SphereGeodesic(1.0), weights, Z), Z[:1], atol=1e-12)
        mean = decoded(SphereGeodesic(2.0), weights, Z)
        assert_allclose(mean, [[np.cos(0.15 * np.pi), np.sin(0.15 * np.pi), 0.0]], atol=1e-6)

    def test_negative_weight_drives_to_the_antipode(self):
        z = directions(1)
        for loss in SPHERE:
            assert_allclose(decoded(loss, np.array([[-1.0]]), z), -z, atol=1e-5)

    def test_extrapolation_ends_at_the_ball(self):
        """Between two matrices that commute, with a weight above one: the ball ends at the first."""
        Z = np.stack([np.diag([3.0, 2.0]), np.diag([1.0, 0.2])])
        assert_allclose(decoded(AffineInvariant(), np.array([[1.4, -0.4]]), Z), Z[:1], rtol=1e-6)

    def test_weights_with_a_small_sum(self):
        """Divided by their sum they would ask for the exponential of thousands."""
        Z, weights = matrices(6), weights_of_sign("any", 5, 6)
        weights[:, 0] += 1e-4 - weights.sum(axis=1)
        found = decoded(AffineInvariant(), weights, Z)
        best = np.min(weights @ AffineInvariant().matrix(Z, Z).T, axis=1)
        assert np.all(weighted(AffineInvariant(), weights, found, Z) <= best)

    def test_negative_weights_of_matrices_stay_in_the_ball(self):
        """Their sum of squared distances has no minimum; in the ball it has one, at its boundary."""
        Z = matrices(6)
        weights = -weights_of_sign("positive", 4, 6)
        found = decoded(AffineInvariant(), weights, Z)
        assert_allclose(PositiveDefinite().region(Z)(1.001 * found), found, rtol=0.01)
        inside = PositiveDefinite().region(Z)(matrices(2000, seed=4))
        least = np.min(weights @ AffineInvariant().matrix(inside, Z).T, axis=1)
        assert np.all(weighted(AffineInvariant(), weights, found, Z) <= least)

    @pytest.mark.parametrize("loss", [SPHERE[0], SPHERE[3], MATRICES[1]], ids=repr)
    def test_null_weights_give_a_point(self, loss):
        Z = directions(4) if loss in SPHERE else matrices(4)
        assert np.all(np.isfinite(decoded(loss, np.zeros((2, 4)), Z)))
        assert_allclose(loss.check(decoded(loss, np.zeros((2, 4)), Z)), decoded(loss, np.zeros((2, 4)), Z))

    @pytest.mark.parametrize("loss", [SPHERE[3], MATRICES[0]], ids=repr)
    def test_equivariance(self, loss):
        n, R = 12, special_ortho_group.rvs(3, random_state=0)
        weights = ridge_weights(n, 6)
        if loss in SPHERE:
            Z = directions(n)
            assert_allclose(decoded(loss, weights, Z @ R), decoded(loss, weights, Z) @ R, atol=1e-5)
        else:
            Z, A = matrices(n), R @ np.diag([0.3, 1.0, 5.0])
            values = [
                weighted(loss, weights, A @ decoded(loss, weights, Z) @ A.T, A @ Z @ A.T),
                weighted(loss, weights, decoded(loss, weights, A @ Z @ A.T), A @ Z @ A.T),
            ]
            inside = np.sum(weights, axis=1) > 0.5
            assert inside.any()
            assert_allclose(values[0][inside], values[1][inside], rtol=1e-6)

    @pytest.mark.parametrize("loss", [*SPHERE, *MATRICES], ids=repr)
    def test_outputs_held_out_do_not_matter(self, loss):
        """In a fold they have no weight, and the decoder has not seen them; far ones would widen the ball."""
        Z = directions(14) if loss in SPHERE else matrices(14) * np.geomspace(1, 1e4, 14)[:, None, None]
        weights = weights_of_sign("any", 9, 10)
        padded = np.hstack([weights, np.zeros((9, 4))])
        found = loss.decoder().fit(Z[:10], TaskSpace(loss, Z)).decode(padded)
        assert_allclose(found, decoded(loss, weights, Z[:10]), rtol=1e-3, atol=1e-3)

    def test_small_blocks(self, monkeypatch):
        Z, weights = directions(9), weights_of_sign("any", 7, 9)
        wanted = decoded(SphereGeodesic(), weights, Z)
        monkeypatch.setattr(riemannian, "_BLOCK", 1)
        assert_allclose(decoded(SphereGeodesic(), weights, Z), wanted, atol=1e-12)


def made(loss, n=50):
    """Return inputs and outputs along a curve of the manifold."""
    x = np.random.default_rng(0).uniform(size=n)
    if loss in CIRCLE:
        return x[:, None], loss.check(2 + 4 * x)
    if loss in SPHERE:
        return x[:, None], unit(np.stack([np.cos(3 * x), np.sin(3 * x), x], axis=1))
    turn = np.stack([np.cos(x), -np.sin(x), np.sin(x), np.cos(x)], axis=1).reshape(n, 2, 2)
    return x[:, None], turn @ (np.stack([1 + x, 0.3 + x * 0], axis=1)[:, :, None] * np.swapaxes(turn, 1, 2))


EVERY = [*CIRCLE, *SPHERE, *MATRICES, LogEuclidean()]


class TestEndToEnd:
    @pytest.mark.parametrize("loss", EVERY, ids=repr)
    def test_follows_a_curve(self, loss):
        X, Y = made(loss)
        before = Y.copy()
        model = LossTrickPredictor(Gaussian(20.0), loss, lams=[1e-3, 10.0]).fit(X[::2], Y[::2])
        assert model.lam_ == 1e-3
        found = model.predict(X[1::2])
        assert found.shape == Y[1::2].shape
        assert_allclose(loss.check(found), found, atol=1e-12)  # on the manifold
        assert np.median(loss(Y[1::2], found)) < np.median(loss(Y[1::2], Y[::2])) / 5  # outputs of other inputs
        assert model.score(X[1::2], Y[1::2]) == pytest.approx(-np.mean(loss(Y[1::2], found)))
        assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X[1::2]), found)
        assert_array_equal(Y, before)

    @pytest.mark.parametrize("loss", EVERY, ids=repr)
    def test_other_surrogates_and_the_training_set(self, loss):
        X, Y = made(loss)
        model = LossTrickPredictor(Gaussian(20.0), loss, lam=1e-4, surrogate=Huber(0.5)).fit(X[::2], Y[::2])
        assert model.duality_gap_ <= 1e-6
        assert np.median(loss(Y[1::2], model.predict(X[1::2]))) < 0.1
        model = LossTrickPredictor(Gaussian(20.0), loss, lam=1e-4, decoder="training_set").fit(X[::2], Y[::2])
        found = model.predict(X[1::2])
        assert np.all(np.min(loss.matrix(found, Y[::2]), axis=1) < 1e-12)

    @pytest.mark.parametrize("loss", [CIRCLE[3], SPHERE[3], LogEuclidean()], ids=repr)
    def test_losses_of_a_kernel_are_input_output_kernel_regression(self, loss):
        X, Y = made(loss)
        kernel = loss.output_kernel()
        loss = LogEuclidean("nearest") if isinstance(loss, LogEuclidean) else loss
        trick = LossTrickPredictor(Gaussian(20.0), loss, lam=1e-3, decoder="training_set").fit(X[::2], Y[::2])
        points = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim < 3:
            other = StructuredPredictor(Gaussian(20.0), kernel, lam=1e-3).fit(X[::2], points[::2]).predict(X[1::2])
            assert_allclose(trick.predict(X[1::2]), other.reshape(-1, *Y.shape[1:]), atol=1e-12)
        else:
            gram = kernel(points[::2])
            other = StructuredPredictor(Gaussian(20.0), "precomputed", lam=1e-3).fit(X[::2], gram).predict(X[1::2])
            assert_allclose(trick.predict(X[1::2]), Y[::2][other], atol=1e-12)

    def test_log_euclidean_is_ridge_regression_of_logarithms(self):
        X, Y = made(LogEuclidean())
        logs = np.stack([logm(y) for y in Y]).reshape(len(Y), -1)
        ridge = LossTrickPredictor(Gaussian(20.0), LeastSquares("nearest"), lam=1e-3).fit(X, logs).predict(X)
        found = LossTrickPredictor(Gaussian(20.0), LogEuclidean("nearest"), lam=1e-3).fit(X, Y).predict(X)
        assert_allclose([logm(one).ravel() for one in found], ridge, atol=1e-8)

    def test_short_names(self):
        X, Y = made(SPHERE[0])
        assert LossTrickPredictor(task_loss="sphere_diffusion").fit(X, Y).task_loss_.time == 0.1


class TestBadInput:
    @pytest.mark.parametrize(
        ("loss", "outputs", "message"),
        [
            (SphereGeodesic(), [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], "takes unit vectors. Row 1 has length 1.41421"),
            (SphereDiffusion(), [[1.0, 0.0]], r"3 or more coordinates. Got shape \(1, 2\); .*CircleDiffusion"),
            (SphereGeodesic(), [1.0, 0.0], "2-dimensional"),
            (SphereGeodesic(), [[1.0, np.nan, 0.0]], "finite"),
            (CircleGeodesic(), [[1.0], [2.0]], "1-dimensional"),
            (CircleDiffusion(), ["north"], "takes numeric values"),
            (AffineInvariant(), np.ones((2, 3)), "3-dimensional"),
            (AffineInvariant(), np.ones((2, 3, 2)), r"square matrices, .* Got shape \(2, 3, 2\)"),
            (LogEuclidean(), [np.eye(2), [[1.0, 0.5], [0.0, 1.0]]], "Matrix 1 differs from its transpose"),
            (LogEuclidean(), [np.eye(2), np.diag([1.0, -0.5])], "Matrix 1 has the eigenvalue -5.000e-01"),
            (AffineInvariant(), [np.ones((2, 2))], "add a small multiple of the identity"),
        ],
    )
    def test_outputs(self, loss, outputs, message):
        with pytest.raises(ValueError, match=message):
            LossTrickPredictor(task_loss=loss).fit(np.zeros((len(outputs), 1)), outputs)

    @pytest.mark.parametrize(
        "loss",
        [CircleGeodesic(2.5), SphereGeodesic(0.5), AffineInvariant(-1.0), CircleDiffusion(0.0), SphereDiffusion(1e-9)],
        ids=repr,
    )
    def test_parameters(self, loss):
        with pytest.raises(ValueError, match=r"parameter of .* must be a float in"):
            loss.validate()

    def test_vectors_in_float32_are_unit_vectors(self):
        found = SphereGeodesic().check(directions(20).astype(np.float32))
        assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-15)

    @pytest.mark.parametrize("decoder", [RiemannianDescent(), CircleMinimum()], ids=repr)
    def test_decoders_want_their_losses(self, decoder):
        with pytest.raises(IncompatibleError, match="Got LeastSquares"):
            decoder.fit(np.zeros(3), TaskSpace(LeastSquares(), np.zeros(3)))
