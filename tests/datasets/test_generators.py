import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV

from fenchel.datasets import contaminate, gaussian_processes, make_functional, make_multioutput

NAN = np.nan
KINDS = ("label", "global", "local")
RARE = 1e-3  # a right law is refused this often; the seeds are fixed


def span_residual(rows, basis):
    """Return what is left of the rows outside the span of a basis, relative to their size."""
    inside = rows @ np.linalg.pinv(basis) @ basis
    return np.linalg.norm(rows - inside) / np.linalg.norm(rows)


@pytest.fixture
def clean(rng):
    return rng.standard_normal((40, 25))


class TestGaussianProcesses:
    @pytest.mark.parametrize("scale", [0.01, 0.1, 0.7, 4.0])
    def test_covariance(self, scale):
        """Covariances of 4000 draws, within five standard errors of the Gaussian kernel's."""
        t = np.array([0.0, 0.01, 0.3, 0.5, 0.52, 1.0])
        drawn = gaussian_processes(t, [scale] * 4000, random_state=0)
        np.testing.assert_allclose(drawn.T @ drawn / 4000, RBF(scale)(t[:, None]), atol=5 * np.sqrt(2 / 4000))

    def test_values_are_normal(self):
        drawn = gaussian_processes(np.array([0.0, 0.8]), [0.1] * 500, random_state=1)
        assert all(kstest(column, "norm").pvalue > RARE for column in drawn.T)

    def test_the_functions_do_not_depend_on_the_points(self):
        scales = (0.01, 0.1, 4.0)
        coarse, fine = (gaussian_processes(np.linspace(0, 1, m), scales, random_state=3) for m in (11, 101))
        np.testing.assert_allclose(fine[:, ::10], coarse, rtol=1e-9, atol=1e-9)

    def test_smoothness(self):
        """The mean square of the derivative of a process is 1 / scale**2."""
        t = np.array([0.4, 0.4001])
        drawn = gaussian_processes(t, [0.2] * 4000, random_state=4)
        assert np.mean((np.diff(drawn) / 1e-4) ** 2) == pytest.approx(25, rel=5 * np.sqrt(2 / 4000))

    @pytest.mark.parametrize("t", [[[0.0, 1.0]], [0.0, 1.1], [-0.1, 1.0], [0.0, NAN]])
    def test_bad_points(self, t):
        with pytest.raises(ValueError, match=r"t must be a one-dimensional array of points in \[0, 1\]"):
            gaussian_processes(t, [0.1])

    @pytest.mark.parametrize("scales", [[0.1, 0.0], [0.004], [NAN]])
    def test_bad_scales(self, scales):
        with pytest.raises(
            ValueError, match=r"'length_scales' parameter of gaussian_processes must be .*\[0\.005, inf\)"
        ):
            gaussian_processes([0.0, 1.0], scales)

    def test_no_scales(self):
        with pytest.raises(ValueError, match="at least one length scale"):
            gaussian_processes([0.0, 1.0], [])


class TestMakeFunctional:
    def test_shapes(self):
        data = make_functional(7, 30, n_components=3, random_state=0)
        assert data.X.shape == data.Y.shape == data.truth.shape == (7, 30)
        assert data.coefficients.shape == (7, 3)
        np.testing.assert_allclose(data.t, np.arange(30) / 29)

    def test_the_published_generator(self):
        """Curves are coefficients times processes of the four scales, inputs drawn before outputs."""
        data = make_functional(50, 100, basis_state=5, random_state=1)
        processes = gaussian_processes(data.t, (0.05, 0.1, 0.5, 0.7) * 2, random_state=5)
        np.testing.assert_allclose(data.X, data.coefficients @ processes[:4], atol=1e-12)
        np.testing.assert_allclose(data.Y, data.coefficients @ processes[4:], atol=1e-12)
        np.testing.assert_array_equal(data.Y, data.truth)

    def test_coefficients_are_uniform(self):
        u = make_functional(500, 2, random_state=0).coefficients
        assert all(kstest(column, "uniform", args=(-0.5, 1)).pvalue > RARE for column in u.T)
        assert np.abs(np.corrcoef(u.T) - np.eye(4)).max() < 5 / np.sqrt(500)

    @pytest.mark.parametrize("link", ["linear", "nonlinear"])
    def test_seeds_belong_to_one_problem(self, link):
        """Another sample lies in the span of the same processes; another basis does not."""
        first, second = (make_functional(20, link=link, random_state=seed) for seed in (0, 1))
        other = make_functional(20, link=link, basis_state=1, random_state=0)
        assert not np.allclose(first.coefficients, second.coefficients)
        np.testing.assert_array_equal(first.coefficients, other.coefficients)
        for name in ("X", "truth"):
            assert span_residual(second[name], first[name]) < 1e-8
            assert span_residual(other[name], first[name]) > 0.05

    def test_finer_points_of_the_same_curves(self):
        coarse, fine = (make_functional(5, m, random_state=0) for m in (11, 101))
        np.testing.assert_allclose(fine.X[:, ::10], coarse.X, atol=1e-9)
        np.testing.assert_allclose(fine.truth[:, ::10], coarse.truth, atol=1e-9)

    def test_more_processes_take_the_scales_in_turn(self):
        data = make_functional(20, 50, n_components=3, length_scales=(0.1, 0.5), random_state=0)
        processes = gaussian_processes(data.t, (0.1, 0.5, 0.1, 0.1, 0.5, 0.1), random_state=0)
        np.testing.assert_allclose(data.Y, data.coefficients @ processes[3:], atol=1e-12)

    def test_noise(self):
        clean, noisy = (make_functional(100, 100, noise=noise, random_state=2) for noise in (0.0, 0.5))
        np.testing.assert_array_equal(clean.truth, noisy.truth)
        np.testing.assert_array_equal(clean.X, noisy.X)
        noise = (noisy.Y - noisy.truth).ravel()
        assert kstest(noise / 0.5, "norm").pvalue > RARE
        assert np.abs(np.corrcoef(noisy.Y.T - noisy.truth.T) - np.eye(100)).max() < 6 / np.sqrt(100)

    def test_same_seed_same_bits(self):
        first, second = (make_functional(5, 10, noise=0.1, random_state=9) for _ in range(2))
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])

    def test_nonlinear_coefficients(self):
        """By hand, for two components: sin(pi a) b and sin(pi b) a."""
        data = make_functional(30, 40, "nonlinear", n_components=2, random_state=0)
        a, b = data.coefficients.T
        processes = gaussian_processes(data.t, (0.05, 0.1, 0.05, 0.1), random_state=0)
        expected = np.outer(np.sin(np.pi * a) * b, processes[2]) + np.outer(np.sin(np.pi * b) * a, processes[3])
        np.testing.assert_allclose(data.Y, expected, atol=1e-12)

    @pytest.mark.parametrize("basis_state", [0, 1])
    def test_a_linear_model_loses_on_the_nonlinear_link(self, basis_state):
        train, test = (
            make_functional(n, link="nonlinear", noise=0.05, basis_state=basis_state, random_state=seed)
            for n, seed in ((100, 0), (300, 1))
        )
        alphas = np.logspace(-6, 4, 11)
        linear = RidgeCV(alphas).fit(train.X, train.Y).predict(test.X)
        models = [KernelRidge(alpha=a, kernel="rbf", gamma=g) for a in alphas for g in (1e-3, 1e-2)]
        curved = min(np.mean((model.fit(train.X, train.Y).predict(test.X) - test.truth) ** 2) for model in models)
        assert np.mean((linear - test.truth) ** 2) > 3 * curved
        # the linear model does no better than the mean curve: it is the link, not the choice of alpha
        assert np.mean((linear - test.truth) ** 2) > 0.95 * test.truth.var(axis=0).mean()

    def test_a_linear_model_wins_on_the_linear_link(self):
        train, test = (make_functional(100, random_state=seed) for seed in (0, 1))
        predicted = RidgeCV(np.logspace(-8, 0, 9)).fit(train.X, train.Y).predict(test.X)
        assert np.mean((predicted - test.truth) ** 2) < 1e-6 * test.truth.var(axis=0).mean()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"n_samples": 0}, "'n_samples' parameter of make_functional must be an int"),
            ({"n_points": 0}, "'n_points' parameter"),
            ({"n_components": 1.5}, "'n_components' parameter"),
            ({"link": "square"}, "'link' parameter of make_functional must be one of 'linear', 'nonlinear'"),
            ({"noise": -1.0}, "'noise' parameter"),
            ({"length_scales": ()}, "length_scales must hold at least one"),
        ],
    )
    def test_bad_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            make_functional(**arguments)


class TestContaminate:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.1, 4), (0.29, 11), (0.7, 28), (1.0, 40)])
    def test_rows(self, clean, kind, share, count):
        found = contaminate(clean, kind, share, random_state=0)
        assert found.is_outlier.shape == (40,) and found.is_outlier.sum() == count
        np.testing.assert_array_equal(found.is_outlier, found.is_outlier_point.any(axis=1))
        np.testing.assert_array_equal(clean != found.Y, found.is_outlier_point)

    def test_floor_of_the_share(self):
        """0.29 * 100 is 28.999999999999996 in floating point; 0.299 of 100 are 29 as well."""
        for share in (0.29, 0.299):
            assert contaminate(np.ones((100, 2)), "label", share, random_state=0).is_outlier.sum() == 29

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_curve_may_be_drawn(self, clean, kind):
        drawn = [contaminate(clean, kind, 0.25, random_state=seed).is_outlier for seed in range(60)]
        assert np.all(np.sum(drawn, axis=0) > 0) and np.all(np.sum(drawn, axis=0) < 60)

    @pytest.mark.parametrize("kind", KINDS)
    def test_same_seed_same_bits(self, clean, kind):
        first, second, other = (contaminate(clean, kind, 0.3, random_state=seed) for seed in (1, 1, 2))
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])
        assert not np.array_equal(first.Y, other.Y)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_argument_and_dtype(self, clean, kind, dtype):
        clean = clean.astype(dtype)
        before = clean.copy()
        assert contaminate(clean, kind, 0.5, random_state=0).Y.dtype == dtype
        np.testing.assert_array_equal(clean, before)

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_library(self, xp, kind):
        Y = xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=xp.float32)
        found = contaminate(Y, kind, 1.0, random_state=0).Y
        assert type(found) is type(Y) and found.dtype == xp.float32

    def test_label_is_minus_a_cyclic_shift(self, clean):
        """Each outlier is minus the clean curve of another one, and following these links visits them all."""
        for seed in range(5):
            found = contaminate(clean, "label", 0.25, random_state=seed)
            rows = np.flatnonzero(found.is_outlier)
            source = {i: int(np.flatnonzero((clean == -found.Y[i]).all(axis=1))[0]) for i in rows}
            visited, row = [], rows[0]
            for _ in rows:
                visited.append(row)
                row = source[row]
            assert sorted(visited) == list(rows) and row == rows[0]

    def test_label_is_no_reversal(self, clean):
        """The public code reverses the order of the outliers: a cycle of length two or less for each."""
        found = contaminate(clean, "label", 0.25, random_state=0)
        rows = np.flatnonzero(found.is_outlier)
        source = {i: int(np.flatnonzero((clean == -found.Y[i]).all(axis=1))[0]) for i in rows}
        assert all(source[source[i]] != i for i in rows)

    def test_label_by_hand(self):
        assert contaminate([[1.0, 2.0]], "label", 1.0).Y.tolist() == [[-1, -2]]
        swapped = contaminate([[1.0, 2.0], [3.0, 4.0]], "label", 1.0, intensity=1.5)
        assert swapped.Y.tolist() == [[-4.5, -6], [-1.5, -3]]

    def test_label_moves_missing_values_with_their_curve(self):
        Y = np.array([[1.0, NAN], [3.0, 4.0]])
        found = contaminate(Y, "label", 1.0)
        np.testing.assert_array_equal(found.Y, [[-3, -4], [-1, NAN]])
        np.testing.assert_array_equal(found.is_outlier_point, [[True, True], [True, False]])

    def test_global_curves_are_mixtures_of_processes(self, clean):
        scales = (0.05, 0.1, 0.5)
        found = contaminate(clean, "global", 0.5, intensity=3.0, length_scales=scales, basis_state=7, random_state=0)
        processes = gaussian_processes(np.linspace(0, 1, 25), scales, random_state=7)
        assert span_residual(found.Y[found.is_outlier], processes) < 1e-10

    def test_global_coefficients_are_uniform(self):
        """Coefficients between minus and plus half of the intensity."""
        found = contaminate(
            np.zeros((600, 30)), "global", 1.0, intensity=3.0, length_scales=(0.05, 0.5), basis_state=7, random_state=0
        )
        processes = gaussian_processes(np.linspace(0, 1, 30), (0.05, 0.5), random_state=7)
        coefficients = found.Y @ np.linalg.pinv(processes)
        assert all(kstest(column, "uniform", args=(-1.5, 3)).pvalue > RARE for column in coefficients.T)
        assert abs(np.corrcoef(coefficients.T)[0, 1]) < 5 / np.sqrt(600)

    def test_global_default_scales(self, clean):
        """The scales of the paper's figure: four processes, of which the first is rough."""
        found = contaminate(clean, "global", 1.0, basis_state=7, random_state=0)
        processes = gaussian_processes(np.linspace(0, 1, 25), (0.01, 0.05, 1.0, 4.0), random_state=7)
        assert span_residual(found.Y, processes) < 1e-8
        assert span_residual(found.Y, processes[1:]) > 0.01

    def test_global_outliers_added(self, clean):
        replaced, added = (
            contaminate(clean, "global", 0.5, is_added=is_added, random_state=3) for is_added in (False, True)
        )
        rows = replaced.is_outlier
        np.testing.assert_allclose(added.Y[rows], clean[rows] + replaced.Y[rows], rtol=1e-13)
        np.testing.assert_array_equal(added.is_outlier_point, replaced.is_outlier_point)

    def test_global_processes_have_their_own_seed(self, clean):
        """With one basis, curves of two contaminations share a span of the four processes; else they do not."""
        for basis_state, is_same in ((1, True), (None, False)):
            first, second = (
                contaminate(clean, "global", 1.0, basis_state=basis_state, random_state=seed).Y for seed in (0, 1)
            )
            assert (span_residual(second, first[:4]) < 1e-6) == is_same

    def test_global_scales_are_shares_of_the_grid(self, clean):
        plain = contaminate(clean, "global", 0.5, random_state=0)
        stretched = contaminate(clean, "global", 0.5, grid=np.linspace(10, 210, 25), random_state=0)
        np.testing.assert_allclose(stretched.Y, plain.Y, rtol=1e-9, atol=1e-9)

    def test_global_outliers_of_curves_with_one_point(self):
        found = contaminate(np.zeros((3, 1)), "global", 1.0, random_state=0)
        assert np.all(np.isfinite(found.Y)) and np.all(found.Y != 0)

    def test_local_points(self, clean):
        found = contaminate(clean, "local", 0.5, point_share=0.3, random_state=0)
        assert set(found.is_outlier_point.sum(axis=1)) == {0, 7}  # the floor of 7.5
        hits = contaminate(np.ones((400, 10)), "local", 1.0, point_share=0.3, random_state=0).is_outlier_point.sum(0)
        assert np.all(np.abs(hits - 120) < 5 * np.sqrt(400 * 0.3 * 0.7))

    @pytest.mark.parametrize("intensity", [1.0, 0.5])
    def test_local_values_are_uniform(self, clean, intensity):
        """Between minus and plus the largest absolute value of all curves, contaminated or not."""
        clean[0, 0] = -7.0
        found = contaminate(clean, "local", 1.0, point_share=0.8, intensity=intensity, random_state=0)
        values = found.Y[found.is_outlier_point] / (7 * intensity)
        assert kstest(values, "uniform", args=(-1, 2)).pvalue > RARE and np.abs(values).max() > 0.97

    def test_local_share_of_the_observed_points(self, clean):
        clean[:, 5:] = NAN
        clean[0, 1:] = NAN
        found = contaminate(clean, "local", 1.0, point_share=0.4, random_state=0)
        assert found.is_outlier_point.sum(axis=1).tolist() == [0] + [2] * 39
        assert not found.is_outlier[0]  # nothing was replaced there

    @pytest.mark.parametrize("kind", ["global", "local"])
    @pytest.mark.parametrize("is_added", [False, True])
    def test_missing_values_stay_missing(self, clean, rng, kind, is_added):
        clean[rng.uniform(size=clean.shape) < 0.3] = NAN
        found = contaminate(clean, kind, 0.5, is_added=is_added, random_state=0)
        np.testing.assert_array_equal(np.isnan(found.Y), np.isnan(clean))
        assert not np.any(found.is_outlier_point & np.isnan(clean))
        np.testing.assert_array_equal((clean != found.Y) & ~np.isnan(clean), found.is_outlier_point)

    @pytest.mark.parametrize("kind", KINDS)
    def test_channels(self, rng, kind):
        clean = rng.standard_normal((10, 20, 3))
        found = contaminate(clean, kind, 0.5, random_state=0)
        assert found.is_outlier.sum() == 5
        np.testing.assert_array_equal(clean != found.Y, found.is_outlier_point)
        if kind == "local":
            assert set(found.is_outlier_point.sum(axis=(1, 2))) == {0, 6}
        if kind == "global":  # each channel has its own coefficients
            rows = found.Y[found.is_outlier]
            assert not np.allclose(rows[:, :, 0], rows[:, :, 1])
            assert np.linalg.matrix_rank(np.moveaxis(rows, 2, 1).reshape(15, 20), tol=1e-8) == 4

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"kind": "magnitude"}, "'kind' parameter of contaminate must be one of 'label', 'global', 'local'"),
            ({"share": 1.2}, r"'share' parameter of contaminate must be a float in \[0, 1\]\. Got 1\.2"),
            ({"share": -0.1}, "'share' parameter"),
            ({"point_share": 2}, "'point_share' parameter"),
            ({"intensity": 0.0}, "'intensity' parameter"),
            ({"Y": [[1.0, np.inf]]}, "Curve 0 contains infinity"),
            ({"grid": [1.0, 0.0]}, "grid must be increasing"),
            ({"kind": "global", "length_scales": (0.0,)}, "'length_scales' parameter"),
        ],
    )
    def test_bad_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            contaminate(**({"Y": [[1.0, 2.0]], "kind": "local", "share": 0.5} | arguments))


def test_multioutput_is_as_before():
    """Rows that are no outliers are the truth and noise of the right size; as many outliers as asked."""
    data = make_multioutput(400, n_outputs=3, noise=0.2, outliers=0.1, random_state=0)
    assert data.is_outlier.sum() == 40
    noise = (data.Y - data.truth)[~data.is_outlier]
    assert kstest(noise.ravel() / 0.2, "norm").pvalue > RARE
    assert data.Y[data.is_outlier].mean() == pytest.approx(10, abs=5 * 5 / np.sqrt(120))
