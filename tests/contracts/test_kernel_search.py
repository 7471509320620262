"""The search over kernels, against refits without each sample and against rescaled data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ortho_group
from sklearn.model_selection import LeaveOneGroupOut

from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.model.target_scale import standardized_targets
from fenchel.search.race import Candidate, Ridge, dictionary, search, search_kernel
from fenchel.search.race.race import _rungs
from fenchel.search.race.ridge import compressed

FEW = [Candidate(family, 1.0, linear) for family in ("gaussian", "exponential", "laplacian") for linear in (0.0, 1.0)]


def sample(n=60, d=3, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 1] * X[:, 2]]) + noise * rng.normal(size=(n, 2))
    return X * [1.0, 1e3, 1e-3][:d], Y - Y.mean(axis=0)


@pytest.mark.parametrize("candidate", [*FEW, Candidate("gaussian", 0.25, 10.0)], ids=str)
def test_error_is_that_of_exact_leave_one_out(candidate):
    X, Y = sample(30, noise=1.0)
    search = search_kernel(X, Y, candidates=[candidate])
    model = OperatorKernelRegressorCV(search.kernel, lams=[search.lam], cv="loo").fit(X, Y)
    assert search.error == pytest.approx(float(model.cv_errors_[0, 0]), rel=1e-8)
    fitted = OperatorKernelRegressor(search.kernel, lam=search.lam, tol=1e-12).fit(X, Y)
    assert_allclose(search.residuals, Y - fitted.predict(X), atol=1e-9)


def test_groups_are_left_out_together():
    X, Y = sample(30, noise=1.0)
    groups = np.arange(30) % 10
    search = search_kernel(X, Y, candidates=[Candidate("gaussian", 1.0, 1.0)], groups=groups)
    model = OperatorKernelRegressorCV(search.kernel, lams=[search.lam], cv=LeaveOneGroupOut())
    assert search.error == pytest.approx(float(model.fit(X, Y, groups=groups).cv_errors_[0, 0]), rel=1e-8)


def test_left_out_residuals_are_those_of_refits():
    X, Y = sample(20)
    search = search_kernel(X, Y, candidates=FEW)
    for i in range(0, 20, 5):
        rest = np.arange(20) != i
        K = search.kernel(X)
        duals = np.linalg.solve(K[np.ix_(rest, rest)] + search.lam * 19 * np.eye(19), Y[rest])
        assert_allclose(search.left_out[i], Y[i] - K[i, rest] @ duals, atol=1e-9)


def test_units_do_not_matter():
    X, Y = sample()
    search, other = search_kernel(X, Y), search_kernel(X * [1e-3, 7.0, 1e3] + 2.0, Y)
    assert other.candidate == search.candidate
    assert other.lam == pytest.approx(search.lam, rel=1e-6)
    assert other.error == pytest.approx(search.error, rel=1e-6)
    K, L = search.kernel(X), other.kernel(X * [1e-3, 7.0, 1e3] + 2.0)
    assert_allclose(L, K, atol=1e-9)


def test_the_whole_dictionary_is_tried_on_small_samples_and_pruned_on_large_ones():
    search = search_kernel(*sample(60))
    tried = [trial.candidate for trial in search.trials]
    assert set(dictionary()) <= set(tried)
    assert min(trial.error for trial in search.trials) == pytest.approx(search.error, rel=1e-6)
    sizes = [trial.n_samples for trial in search_kernel(*sample(480)).trials]
    assert sizes.count(120) == len(dictionary())
    assert sizes.count(240) == 8
    assert 3 < sizes.count(480) <= 5


def test_a_second_search_shares_the_factorisations():
    """Its targets may have another order of contents, as curves with gaps have that are completed otherwise."""
    X, Y = sample(40)
    first, alone = search_kernel(X, -Y, candidates=FEW), search_kernel(X, Y, candidates=FEW)
    second = search_kernel(X, Y, candidates=FEW, ridges=first.ridges)
    assert second.candidate == alone.candidate
    assert_allclose(second.left_out, alone.left_out, rtol=1e-6, atol=1e-9)
    assert_allclose(second.left_out, -first.left_out, atol=1e-9)


def test_large_samples_are_cut():
    X, Y = sample(300)
    search = search_kernel(X, Y, candidates=FEW, max_samples=100)
    assert search.left_out.shape == (100, 2)
    assert_allclose(np.unique(search.index), np.sort(search.index))
    assert_allclose(search.kernel.mean, X.mean(axis=0))  # the units are those of all samples
    K, part = search.kernel(X[search.index]), Y[search.index]
    duals = np.linalg.solve(K + search.lam * 300 * np.eye(100), part)  # the ridge n lam is that of the part
    assert_allclose(search.residuals, part - K @ duals, atol=1e-8)


def test_search_tells_on_how_many_samples_kernels_were_compared(monkeypatch):
    X, Y = sample(180)
    monkeypatch.setattr(OperatorKernelRegressorCV, "most_raced", 120)
    model = OperatorKernelRegressorCV().fit(X, Y)
    assert max(model.search_["n_samples"]) == 120
    assert model.dual_coef_.shape == (180, 2)


def test_weights_count_samples():
    X, Y = sample(40)
    counts = np.random.default_rng(1).integers(1, 4, 40)
    Y = Y - np.average(Y, axis=0, weights=counts)
    search = search_kernel(X, Y, counts.astype(float), candidates=[Candidate("gaussian", 1.0, 0.1)])
    K = search.kernel(X)
    total = counts.sum()
    for i in (0, 7):  # all copies of a sample are left out together
        rest = np.arange(40) != i
        ridge = search.lam * total * 39 / 40 * np.diag(1 / counts[rest])
        duals = np.linalg.solve(K[np.ix_(rest, rest)] + ridge, Y[rest])
        assert_allclose(search.left_out[i], Y[i] - K[i, rest] @ duals, atol=1e-9)
    fitted = OperatorKernelRegressor(search.kernel, lam=search.lam, tol=1e-12).fit(X, Y, sample_weight=counts)
    assert_allclose(search.residuals, Y - fitted.predict(X), atol=1e-8)


def test_lam_goes_beyond_the_ends_of_its_grid():
    X, _ = sample(40)
    noise = np.random.default_rng(3).normal(size=(40, 2))
    assert search_kernel(X, noise - noise.mean(axis=0), candidates=[Candidate("gaussian", 0.25, 0.0)]).lam > 1e2
    exact = X[:, :1] / X[:, 0].std()
    assert search_kernel(X, exact - exact.mean(), candidates=[Candidate("gaussian", 4.0, 10.0)]).lam < 1e-9


def test_gross_errors_do_not_move_a_robust_search():
    X, Y = sample(150, noise=0.05)
    dirty = Y.copy()
    dirty[::10] += np.random.default_rng(2).choice([-15, 15], (15, 1))
    errors = {}
    for robust in (False, True):
        search = search_kernel(X, dirty, robust=robust)
        rest = np.linalg.norm(search.left_out, axis=1)[np.arange(150) % 10 != 0]
        errors[robust] = float(np.mean(rest**2))
    clean = search_kernel(X, Y)
    assert errors[False] > 5 * clean.error
    assert errors[True] < 2 * clean.error


def test_curves_have_one_scale_for_each_channel_and_no_unit_of_time():
    t = np.linspace(0, 1, 20)
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=(40, 1)) * np.sin(3 * t), 1e3 * rng.normal(size=(40, 1)) * t], axis=2)
    Y = X[:, :5, 0] + X[:, -5:, 1] / 1e3
    Y = Y - Y.mean(axis=0)
    search, other = (search_kernel(X * unit, Y, grid=grid) for unit, grid in ((1.0, t), ([1e-4, 1e3], 365 * t)))
    assert search.candidate == other.candidate
    assert search.error == pytest.approx(other.error, rel=1e-6)
    assert search.lam == pytest.approx(other.lam, rel=1e-6)
    assert_allclose(other.kernel(X * [1e-4, 1e3]), search.kernel(X), atol=1e-9)
    flat = search_kernel(X[..., 0], Y, curves=True)
    assert np.size(flat.kernel.scale) == 1


def test_constant_inputs_and_one_output():
    X, Y = np.ones((20, 2)), np.arange(20.0)[:, None] - 9.5
    search = search_kernel(X, Y)
    assert np.isfinite(search.error)
    assert OperatorKernelRegressor(search.kernel, lam=search.lam).fit(X, Y).predict(X) == pytest.approx(0, abs=1e-6)


def test_scales_of_targets():
    Y = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 100.0, 0.0] + [0.0, 5.0, 2.0]
    plain, robust = standardized_targets(Y), standardized_targets(Y, robust=True)
    assert_allclose(plain.center, Y.mean(axis=0))
    assert_allclose(plain.scale[:2], Y.std(axis=0)[:2])
    assert plain.scale[2] == robust.scale[2] == 1.0
    assert_allclose(robust.scale[:2], plain.scale[:2], rtol=0.1)
    assert_allclose(plain.decode(plain.encode(Y)), Y)
    dirty = Y.copy()
    dirty[::10] += 1e6
    assert_allclose(standardized_targets(dirty, robust=True).scale[:2], plain.scale[:2], rtol=0.3)
    assert len(set(standardized_targets(Y, by="all").scale)) == 1
    counts = np.random.default_rng(1).integers(1, 4, 500)
    for is_robust in (False, True):
        one = standardized_targets(Y, counts, robust=is_robust)
        other = standardized_targets(np.repeat(Y, counts, axis=0), robust=is_robust)
        assert_allclose(one.center, other.center, atol=1e-12)
        assert_allclose(one.scale, other.scale)


@pytest.mark.parametrize("linear", [0.0, 1.0])
def test_means_over_the_points_of_curves(linear):
    rng = np.random.default_rng(0)
    X = 1e3 * (rng.normal(size=(25, 2)) @ rng.normal(size=(2, 12)))[..., None]
    Y = np.sin(X[:, ::4, 0] / 1e3) + 0.1 * rng.normal(size=(25, 3))
    Y = Y - Y.mean(axis=0)
    search = search_kernel(X, Y, candidates=[Candidate("integral", 1.0, linear)])
    K, rest = search.kernel(X), np.arange(25) != 4
    duals = np.linalg.solve(K[np.ix_(rest, rest)] + search.lam * 24 * np.eye(24), Y[rest])
    assert_allclose(search.left_out[4], Y[4] - K[4, rest] @ duals, atol=1e-9)
    assert any(candidate.family == "integral" for candidate in dictionary(curves=True))
    assert not any(candidate.family == "integral" for candidate in dictionary())


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_many_outputs_are_compared_in_few_sums_with_random_signs(noise):
    """Brute force: every sample is left out, and all outputs are predicted without it."""
    rng = np.random.default_rng(4)
    X, n = rng.normal(size=(60, 2)), 60
    waves = np.sin(X @ rng.normal(size=(2, 5))) @ rng.normal(size=(5, 120))
    Y = waves + noise * rng.normal(size=(n, 120))
    few = compressed(Y)
    assert few.shape == (n, 32)
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 2)
    lams = np.logspace(-4, 1, 6)

    def error(lam, targets):
        total = 0.0
        for i in range(n):
            rest = np.arange(n) != i
            ridge = lam * (n - 1) * np.eye(n - 1)
            found = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + ridge, targets[rest])
            total += float(np.sum((targets[i] - found) ** 2)) / n
        return total

    exact = np.array([error(lam, Y) for lam in lams])
    assert_allclose([error(lam, few) for lam in lams], exact, rtol=0.06)
    without = np.array([error(lam, few[:, :16]) for lam in lams])  # noise that no coordinate shows counts too
    assert np.min(without / exact) < 0.75
    found, least = Ridge.of(K.copy(), np.ones(n)).best_lam(Y)
    assert least == pytest.approx(error(found, Y), rel=0.06)
    assert error(found, Y) <= 1.02 * min(exact)
    assert_allclose(compressed(Y @ ortho_group.rvs(120, random_state=0)), few, atol=1e-9 * np.abs(few).max())


def test_the_width_of_the_winner_is_refined_on_more_samples(monkeypatch):
    monkeypatch.setattr(search, "MOST_SAMPLES", 60)
    X, Y = sample(200)
    found = search_kernel(X, Y, max_samples=150)
    sizes = [trial.n_samples for trial in found.trials]
    assert set(sizes) == {60, 150}
    assert max(trial.n_samples for trial in found.finals) == 60
    refined = [trial for trial in found.trials if trial.n_samples == 150]
    assert refined[0].candidate == found.finals[0].candidate
    assert min(refined, key=lambda trial: trial.error).candidate == found.candidate
    assert found.left_out.shape == (150, 2)
    monkeypatch.setattr(search, "MOST_SAMPLES", 150)
    alone = search_kernel(X, Y, candidates=[found.candidate], max_samples=150)
    (same,) = (trial for trial in alone.trials if trial.candidate == found.candidate)
    assert found.error == pytest.approx(same.error, rel=1e-9)


def test_more_candidates_remain_in_a_race_on_a_part():
    assert _rungs(1000, 60, True) == [(125, 60), (500, 24), (1000, 8)]
    assert _rungs(1000, 60, False) == [(125, 60), (250, 24), (500, 8), (1000, 3)]
