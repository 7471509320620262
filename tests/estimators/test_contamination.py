"""The choice between the square and the robust loss: wrong targets, skewed ones, and large ones that inputs explain."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri
from scipy.stats import pareto

from fenchel import FunctionalRegressorCV, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.datasets import contaminate, make_functional
from fenchel.losses import Huber, Square
from fenchel.search import choice
from fenchel.search.contamination import has_gap, is_contaminated
from fenchel.search.race import FLAT, Candidate, search_kernel
from fenchel.search.robustness import is_robust_better

BULK = np.abs(np.random.default_rng(0).standard_normal(200))


def verdict(sizes, weights=None):
    return is_contaminated(sizes, np.ones(len(sizes)) if weights is None else weights)


class TestWrong:
    @pytest.mark.parametrize("n_wrong", [1, 10, 40, 80])
    def test_a_group_beyond_a_gap_is_wrong(self, n_wrong):
        assert not verdict(BULK)
        assert verdict(np.append(BULK, np.full(n_wrong, 30.0)))

    @pytest.mark.parametrize(("index", "is_group"), [(1.2, False), (2.0, False), (3.0, False), (0.3, True)])
    def test_a_tail_with_a_mean_is_none(self, index, is_group):
        """Of the sizes above t, the share 1.8 ** -index is above 1.8 t: two thirds for an index of .69."""
        assert verdict(pareto(index).ppf((np.arange(400) + 0.5) / 400)) == is_group

    def test_weights_count_samples_and_units_do_not_matter(self):
        sizes = np.append(BULK, [9.0, 9.0, 4.0])
        for last in (1.0, 2.0):
            weights = np.append(np.ones(202), last)
            wanted = verdict(np.repeat(sizes, weights.astype(int)))
            assert verdict(sizes, weights) == verdict(1e9 * sizes, 1e-9 * weights) == wanted
        assert not wanted  # two of four are far

    def test_equal_residuals_are_right(self):
        assert not verdict(np.zeros(20))
        assert not verdict(np.append(np.zeros(20), 1.0))  # their scale is zero: nothing is known


class TestSizes:
    def test_are_relative_to_what_other_samples_lead_to_expect(self, rng):
        """Kernel ridge regression of the logarithms, without each sample, at the best lam."""
        X = rng.uniform(-1, 1, (40, 1))
        Y = np.exp(2 * X) * rng.standard_normal((40, 2))
        search = search_kernel(X, Y, candidates=[Candidate("gaussian", 1.0, 0.0)], robust=True)
        sizes = np.sqrt(np.mean(search.left_out**2, axis=1))
        logs = np.log(np.maximum(sizes / np.median(sizes), 0.1))
        K, errors, predictions = search.kernel(X), [], []
        for lam in np.logspace(-9, 2, 34):
            system = [np.eye(39) * lam * 39 + np.delete(np.delete(K, i, 0), i, 1) for i in range(40)]
            found = [
                np.delete(K[i], i) @ np.linalg.solve(system[i], np.delete(logs - logs.mean(), i)) for i in range(40)
            ]
            predictions.append(np.array(found) + logs.mean())
            errors.append(np.mean((predictions[-1] - logs) ** 2))
        best = int(np.flatnonzero(errors <= (1 + FLAT) * np.min(errors))[-1])
        assert_allclose(search.sizes, sizes / np.median(sizes) / np.exp(predictions[best]), rtol=1e-6)
        assert np.corrcoef(predictions[best], X[:, 0])[0, 1] > 0.8


def table(n, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, f, f + noise * rng.standard_normal(n), rng


class TestChoice:
    def test_normal_noise_is_met_by_the_square_loss_and_heavy_tails_by_the_robust_one(self):
        """A robust loss is 1 to 3 % worse for normal noise, which a race with moved targets does not show."""
        chosen = []
        for heavy in (False, True):
            for seed in range(6):
                X, f, y, rng = table(250, seed)
                y = f + 0.3 * rng.standard_t(2, 250) if heavy else y
                chosen.append(isinstance(OperatorKernelRegressorCV(leaves=False).fit(X, y).best_loss_, Huber))
        assert sum(chosen[:6]) <= 2 < 4 <= sum(chosen[6:])

    @pytest.mark.parametrize("seed", range(3))
    def test_without_wrong_targets_held_out_errors_decide(self, monkeypatch, seed):
        """Each model is fitted without each fold, with the kernel, the lam and the threshold of its race."""
        taken = []

        def compared(candidates, searches, places, weights, folds):
            taken.append((candidates, searches, folds, is_robust_better(candidates, searches, places, weights, folds)))
            return taken[0][-1]

        monkeypatch.setattr(choice, "is_robust_better", compared)
        X, f, _, rng = table(120, seed)
        Y = np.column_stack([f, 3 * X[:, 0]]) + 0.3 * rng.standard_t(4, (120, 2))
        weights = rng.integers(1, 3, 120).astype(float)
        OperatorKernelRegressorCV(leaves=False).fit(X, Y, sample_weight=weights)
        ((candidates, searches, folds, found),) = taken
        errors, size = {}, candidates[False].codec.units
        for robust, search in searches.items():
            one, predicted = candidates[robust], np.empty_like(Y)
            loss = Huber("auto").resolve(search.residuals, weights, one.targets.point_scale) if robust else Square()
            for fold in folds(one):
                rest = np.setdiff1d(np.arange(120), fold)
                model = OperatorKernelRegressor(search.kernel, loss=loss, lam=search.lam, tol=1e-8)
                model.fit(X[rest], one.targets.rows[rest], sample_weight=weights[rest])
                predicted[fold] = one.codec.decode(model.predict(X[fold]))
            errors[robust] = np.average(np.sum(((Y - predicted) / size) ** 2, axis=1), weights=weights)
        races = {robust: np.sum(search.left_out**2 * weights[:, None]) for robust, search in searches.items()}
        assert abs(errors[True] / errors[False] - 1) > 1e-3  # not within the gap of the comparison
        assert found == (errors[True] < errors[False]) or races[True] > races[False]

    @pytest.mark.parametrize("seed", range(3))
    def test_skewed_targets_are_met_by_the_square_loss(self, seed):
        X, f, _, rng = table(400, seed)
        y = np.exp(f) * rng.exponential(size=400)
        assert isinstance(OperatorKernelRegressorCV().fit(X, y).best_loss_, Square)

    @pytest.mark.parametrize("seed", range(3))
    def test_wrong_targets_of_one_sign_are_met_by_the_robust_loss(self, seed):
        """Held-out means prefer the square loss here: ten times the output is larger where the output is."""
        X, _, y, rng = table(400, seed)
        wrong = rng.permutation(400)[:40]
        y = y + 2
        y[wrong] *= 10
        assert isinstance(OperatorKernelRegressorCV().fit(X, y).best_loss_, Huber)

    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize("gaps", [0.0, 0.5])
    def test_wrong_curves(self, seed, gaps):
        data = make_functional(60, 20, noise=0.05, random_state=seed)
        Y = contaminate(data.Y, "label", 0.1, random_state=seed).Y
        Y[np.random.default_rng(seed).uniform(size=Y.shape) < gaps] = np.nan
        model = FunctionalRegressorCV().fit(data.X[:, :, None], Y, grid=data.t)
        assert isinstance(model.best_loss_, Huber)
        assert np.mean((model.predict(data.X[:, :, None]) - data.truth) ** 2) < 0.05 * np.var(data.truth)


class TestOneGrossTarget:
    """A single wrong target among as large residuals of the noise as a normal sample has."""

    @pytest.mark.parametrize("value", [20.0, -999.0, 1e4])
    @pytest.mark.parametrize("seed", [0, 2, 3])
    def test_is_met_by_the_robust_loss(self, seed, value):
        random = np.random.default_rng(seed)
        X = random.uniform(0, 5, (200, 2))
        truth = np.cos(X[:, 0]) + X[:, 1] / 2
        y = truth + 0.1 * random.standard_normal(200)
        y[3] = value
        model = OperatorKernelRegressorCV(leaves=False).fit(X, y)
        assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.06

    @pytest.mark.parametrize(("count", "ratio"), [(1, 12.0), (2, 4.2), (3, 2.9)])
    def test_is_beyond_a_gap(self, count, ratio):
        normal = np.abs(ndtri((np.arange(400) + 0.5) / 400))  # the largest is 3.02 deviations
        normal[:20] = np.linspace(3.2, 4.5, 20)  # so many large residuals that a few wrong ones are lost among them
        weights, is_gross = np.ones(400 + count), np.arange(400 + count) >= 400
        far, nearer = (np.append(normal, np.full(count, 4.5 * step)) for step in (ratio, ratio**0.5))
        assert not is_contaminated(far, weights) and has_gap(far, is_gross, weights)
        assert not has_gap(nearer, is_gross, weights) and not has_gap(far, ~is_gross, weights)
