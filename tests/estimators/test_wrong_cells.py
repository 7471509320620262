"""Single wrong values of several outputs: cleaned, clipped and compared by value where rows would lose too much."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fenchel
from fenchel import ConformalRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV, OutlierReport
from fenchel.losses import Huber
from fenchel.model.training_set import TrainingSet
from fenchel.search.race import Candidate, search_kernel
from fenchel.search.race.ridge import Ridge
from fenchel.search.race.robust import cleaned_targets
from fenchel.search.search import squared_distance


def sample(n=150, p=5, seed=0, share=0.06):
    """Return inputs, outputs of which some values are wrong, the right ones, and new inputs with their truth."""
    rng = np.random.default_rng(seed)
    X, V = rng.uniform(0, 1, (2 * n, 3)), rng.standard_normal((3, p))
    F = np.sin(3 * X @ V) + X @ V
    Y = F + 0.2 * rng.standard_normal(F.shape)
    wrong = rng.random((n, p)) < share
    dirty = Y[:n] + np.where(wrong, 10 * rng.choice([-1, 1], wrong.shape), 0.0) * Y.std(axis=0)
    center = np.mean(Y, axis=0)
    return X[:n], dirty - center, Y[:n] - center, wrong, X[n:], F[n:] - center


def error(model, X, F):
    return np.sqrt(np.mean((model.predict(X) - F) ** 2 / F.var(axis=0)))


class TestCleaning:
    def test_of_one_output_is_that_of_rows(self):
        X, dirty, *_ = sample(p=1)
        ridge = Ridge.of(np.exp(-np.sum((X[:, None] - X) ** 2, axis=2)), np.ones(len(X)))
        for by_rows, by_value in zip(
            cleaned_targets(ridge, dirty, None), cleaned_targets(ridge, dirty, None, True), strict=True
        ):
            assert_allclose(by_value, by_rows, rtol=1e-12)

    def test_only_the_wrong_values_are_replaced(self):
        X, dirty, Y, wrong, *_ = sample()
        search = search_kernel(X, dirty, robust=True, by_value=True)
        moved = np.abs(search.cleaned - dirty) > 5 * Y.std(axis=0)
        assert np.array_equal(moved, wrong)
        assert np.max(np.abs(search.cleaned - Y)) < 1.5

    def test_missing_values_are_left_alone(self):
        X, dirty, Y, wrong, *_ = sample()
        seen = np.ones_like(dirty)
        seen[::3, 0] = 0
        rows = np.where(seen > 0, dirty, 0.0)
        candidates = [Candidate("gaussian", 1.0, 1.0)]
        search = search_kernel(X, rows, candidates=candidates, robust=True, by_value=True, observed=seen, imputed=False)
        assert not search.left_out[::3, 0].any()
        moved = np.abs(search.cleaned - rows) > 5 * Y.std(axis=0)
        assert np.array_equal(moved[seen > 0], wrong[seen > 0])


class TestChoice:
    @pytest.mark.parametrize("seed", range(3))
    def test_wrong_values_cost_little(self, seed):
        X, dirty, Y, _, X_new, F = sample(250, 7, seed, 0.05)
        clean, model = OperatorKernelRegressorCV().fit(X, Y), OperatorKernelRegressorCV().fit(X, dirty)
        assert model.best_loss_.p == 1
        noise = 0.2**2 * np.mean(1 / F.var(axis=0))
        assert np.hypot(error(model, X_new, F), noise**0.5) < 1.12 * np.hypot(error(clean, X_new, F), noise**0.5)
        rows = OperatorKernelRegressorCV(losses=[Huber("auto")]).fit(X, dirty)
        assert error(model, X_new, F) < 0.8 * error(rows, X_new, F)
        assert model.duality_gap_ <= 1e-6

    @pytest.mark.parametrize("seed", range(2))
    def test_wrong_rows_are_met_by_the_loss_of_rows(self, seed):
        X, _, Y, *_ = sample(200, 4, seed)
        Y[::9] += 10 * Y.std(axis=0)
        assert repr(OperatorKernelRegressorCV().fit(X, Y).best_loss_).endswith(")")
        assert OperatorKernelRegressorCV().fit(X, Y).best_loss_.p == 2

    def test_the_threshold_is_twice_the_scale_of_single_residuals(self):
        X, dirty, *_ = sample()
        model = OperatorKernelRegressorCV().fit(X, dirty)
        lam = model.lams_[len(model.lams_) // 2] if len(model.lams_) == 5 else None
        scaled = (dirty - model.center_) / model.scale_
        search = search_kernel(X, scaled, robust=True, by_value=True)
        assert_allclose(model.best_loss_.kappa, 2 * 1.482602218505602 * np.median(np.abs(search.residuals)), rtol=1e-6)
        assert lam is None or lam == pytest.approx(search.lam, rel=1e-6)

    def test_units_do_not_matter(self):
        X, dirty, *_, X_new, _ = sample(100)
        one, other = (
            OperatorKernelRegressorCV().fit(X, dirty * unit).predict(X_new) for unit in (1.0, 10.0 ** np.arange(5))
        )
        assert_allclose(other / 10.0 ** np.arange(5), one, rtol=1e-6, atol=1e-6)


class TestTogether:
    """With missing values, weights, groups, bands and files."""

    def test_missing_values(self):
        X, dirty, Y, _, X_new, F = sample(200, 5)
        gaps = np.random.default_rng(1).random(Y.shape) < 0.2
        model = OperatorKernelRegressorCV().fit(X, np.where(gaps, np.nan, dirty))
        clean = OperatorKernelRegressorCV(losses=[model.best_loss_]).fit(X, np.where(gaps, np.nan, Y))
        assert isinstance(model.best_loss_, Huber)
        assert error(model, X_new, F) < 1.25 * error(clean, X_new, F)

    @pytest.mark.parametrize("gaps", [0.0, 0.1])
    def test_a_sample_given_twice_is_one_of_weight_two(self, gaps):
        X, dirty, *_, X_new, _ = sample(60)
        dirty[np.random.default_rng(1).random(dirty.shape) < gaps] = np.nan
        weights = np.where(np.arange(60) % 2, 1, 2)
        index = np.repeat(np.arange(60), weights)
        model = OperatorKernelRegressorCV(lams=[1e-3], tol=1e-12)
        wanted = model.fit(X, dirty, sample_weight=weights)
        loss, predicted = repr(wanted.best_loss_)[:8], wanted.predict(X_new)
        assert_allclose(model.fit(X[index], dirty[index]).predict(X_new), predicted, rtol=0, atol=1e-5)
        assert repr(model.best_loss_)[:8] == loss

    def test_groups_bands_and_files(self, tmp_path):
        X, dirty, _, wrong, X_new, F = sample(90, 3)
        model = OperatorKernelRegressorCV().fit(X, dirty, groups=np.arange(90) // 2)
        assert model.best_loss_.p == 1
        fenchel.save(model, tmp_path / "model.fenchel")
        assert_allclose(fenchel.load(tmp_path / "model.fenchel").predict(X_new), model.predict(X_new))
        report = OutlierReport.of(model, X, dirty)
        found, listed = report.flagged_points(), report.cells()
        assert found[wrong].all()
        is_wrong = [wrong[row["sample"], int(row["output"].split()[1])] for row in listed]
        assert np.sum(is_wrong) > 0.8 * np.sum(wrong) and np.mean(is_wrong) > 0.9 > np.mean(wrong[found])
        bands = ConformalRegressor(OperatorKernelRegressorCV(), method="cv+", coverage=0.8).fit(X, dirty)
        band = bands.predict_interval(X_new)
        assert np.mean((band.lower <= F) & (band.upper >= F)) > 0.7

    def test_an_output_operator(self):
        X, dirty, Y, _, X_new, F = sample(100, 3)
        model = OperatorKernelRegressorCV(operator="covariance").fit(X, dirty)
        assert model.best_loss_.p == 1 and model.duality_gap_ <= 1e-6
        assert error(model, X_new, F) < 1.3 * error(
            OperatorKernelRegressorCV(operator="covariance").fit(X, Y), X_new, F
        )


def test_errors_are_clipped_by_output():
    X, dirty, *_ = sample(40, 3)
    model = OperatorKernelRegressor("gaussian")
    task = model._task()
    dirty[3, 1] = np.nan
    training_set = TrainingSet.learn(task, task.sample(model, X, dirty), model._spec())
    ceilings, predictions = np.array([0.5, 2.0, 1e9]), np.full(dirty.shape, 0.1)
    wanted = [
        sum(min((y - 0.1) ** 2, c) for y, c in zip(row, ceilings, strict=True) if y == y) for row in dirty.tolist()
    ]
    assert_allclose(squared_distance(training_set, ceilings)(predictions), wanted)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_values_are_not_cleaned_where_none_is_wrong(seed):
    """Residuals of a function that is hard to learn differ in size, without a group beyond a gap."""
    rng = np.random.default_rng(seed)
    X, A, B = rng.standard_normal((300, 10)), rng.standard_normal((10, 20)), rng.standard_normal((20, 5))
    Y = np.sin(X @ A / 10**0.5) @ B / 20**0.5 + 0.3 * X[:, :5] * X[:, 5:] + 0.1 * rng.standard_normal((300, 5))
    assert getattr(OperatorKernelRegressorCV(leaves=False).fit(X, Y).best_loss_, "p", 2) == 2
