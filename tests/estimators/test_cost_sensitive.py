"""Classifiers for every cost: against scikit-learn's support vector machines and cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC

import fenchel
from fenchel import CostSensitiveClassifier
from fenchel.kernels import Gaussian

COSTS = [0.2, 0.5, 0.8]
SEPARATE = Gaussian(1e9)  # 1 on the diagonal and 0 elsewhere: the identity


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0.3, 1, -1)


def gram(X, gamma=0.5):
    return np.exp(-gamma * np.sum((X[:, None] - X[None]) ** 2, axis=2))


class TestSupportVectorMachines:
    def test_class_weights_and_a_free_intercept(self):
        """At each cost the model is SVC with class weights; its intercept is free in the limit of a large constant."""
        X, y = data()
        lam, new = 1e-2, np.random.default_rng(1).standard_normal((30, 2))
        model = CostSensitiveClassifier(Gaussian(0.5), SEPARATE, lam, COSTS, intercept=1e4, tol=1e-9).fit(X, y)
        for cost in COSTS:
            C = 1 / 3 / (lam * len(y))  # the weight of a level over lam n
            machine = SVC(C=C, gamma=0.5, class_weight={1: cost, -1: 1 - cost}, tol=1e-8).fit(X, y)
            found = model.decision_function(new, cost)
            np.testing.assert_allclose(found, machine.decision_function(new), atol=2e-4)
            np.testing.assert_array_equal(model.predict(new, cost), np.where(found > 0, 1, -1))

    def test_without_intercept(self):
        """A sample and its mirror image make the intercept of SVC vanish."""
        X, y = data(40)
        model = CostSensitiveClassifier(Gaussian(0.5), SEPARATE, 1e-2, COSTS, intercept=0.0, tol=1e-10).fit(X, y)
        K = gram(X)
        mirrored = np.block([[K, -K], [-K, K]])
        for cost in COSTS:
            weights = np.where(y > 0, cost, 1 - cost)
            machine = SVC(C=1 / 3 / (1e-2 * 40) / 2, kernel="precomputed", tol=1e-10)
            machine.fit(mirrored, np.concatenate([y, -y]), np.concatenate([weights, weights]))
            values = machine.decision_function(np.hstack([K, -K]))
            np.testing.assert_allclose(model.decision_function(X, cost), values, atol=1e-5)

    def test_objective_is_that_of_cvxpy(self):
        X, y = data(25)
        model = CostSensitiveClassifier(Gaussian(0.5), Gaussian(4.0), 1e-2, 4, intercept=0.5, tol=1e-9).fit(X, y)
        costs, weights = model.levels_, model.level_weights_
        values, vectors = np.linalg.eigh(gram(X) + 0.5)
        left = vectors * np.sqrt(np.clip(values, 0, None))
        values, vectors = np.linalg.eigh(np.exp(-4 * (costs[:, None] - costs) ** 2))
        right = vectors * np.sqrt(np.clip(values, 0, None))
        W = cp.Variable((25, 4))
        margins = cp.pos(1 - cp.multiply(y[:, None] * np.ones((1, 4)), left @ W @ right.T))
        price = np.where(y[:, None] > 0, costs[None, :], 1 - costs[None, :])
        loss = cp.sum(cp.multiply(price, margins) @ weights) / 25
        problem = cp.Problem(cp.Minimize(loss + 1e-2 / 2 * cp.sum_squares(W)))
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert model.primal_objective_ == pytest.approx(problem.value, rel=1e-6)
        assert model.duality_gap_ <= 1e-9


class TestCurve:
    def test_rates_and_costs_by_hand(self):
        X, y = data(200)
        model = CostSensitiveClassifier(lam=1e-2, levels=10).fit(X, y)
        curve = model.cost_curve(X, y, COSTS)
        for k, cost in enumerate(COSTS):
            called = model.predict(X, cost)
            assert curve.true_positive_rate[k] == pytest.approx(np.mean(called[y == 1] == 1))
            assert curve.false_positive_rate[k] == pytest.approx(np.mean(called[y == -1] == 1))
            price = np.where(y == 1, cost, 1 - cost)
            assert curve.expected_cost[k] == pytest.approx(np.mean(price * (called != y)))

    def test_a_dearer_miss_calls_more_positives(self):
        X, y = data(300)
        curve = CostSensitiveClassifier(lam=1e-2).fit(X, y).cost_curve(X, y)
        assert len(curve.costs) == 99
        assert np.mean(np.diff(curve.true_positive_rate) >= 0) > 0.95
        assert curve.true_positive_rate[-1] - curve.true_positive_rate[0] > 0.5
        # no cost is worse than the better of the two constant answers, up to the fit
        constant = np.minimum(curve.costs * np.mean(y == 1), (1 - curve.costs) * np.mean(y == -1))
        assert np.all(curve.expected_cost <= constant + 0.02)

    def test_bad_labels(self):
        X, y = data()
        model = CostSensitiveClassifier(levels=3).fit(X, y)
        for wrong in (y[:5], np.ones(60), np.arange(60)):
            with pytest.raises(ValueError, match=r"y must hold both labels \[-1, 1\]"):
                model.cost_curve(X, wrong)


class TestInterface:
    def test_labels_of_any_kind(self):
        X, y = data()
        words = np.where(y > 0, "yes", "no")
        model = CostSensitiveClassifier(levels=4).fit(X, words)
        assert model.classes_.tolist() == ["no", "yes"]
        plain = CostSensitiveClassifier(levels=4).fit(X, y)
        np.testing.assert_array_equal(model.predict(X, 0.3) == "yes", plain.predict(X, 0.3) == 1)

    def test_several_costs_at_once(self):
        X, y = data()
        model = CostSensitiveClassifier(levels=4).fit(X, y)
        together = model.predict(X, COSTS)
        assert together.shape == (60, 3)
        for k, cost in enumerate(COSTS):
            np.testing.assert_array_equal(together[:, k], model.predict(X, cost))

    def test_weights_count_samples(self):
        X, y = data(40)
        weights = np.arange(40) % 3
        weighted = CostSensitiveClassifier(lam=1e-2, levels=4, tol=1e-9).fit(X, y, weights)
        repeated = clone(weighted).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        np.testing.assert_allclose(weighted.decision_function(X, 0.3), repeated.decision_function(X, 0.3), atol=1e-4)

    def test_path(self):
        X, y = data()
        found = fenchel.path(CostSensitiveClassifier(levels=4), X, y, [1e-2, 1e-1])
        assert found.gaps.max() <= 1e-6
        np.testing.assert_array_equal(
            found.model(0, 1).predict(X), CostSensitiveClassifier(levels=4, lam=1e-1).fit(X, y).predict(X)
        )

    def test_torch_and_float32(self):
        torch = pytest.importorskip("torch")
        X, y = data()
        model = CostSensitiveClassifier(levels=4, lam=1e-2)
        plain = clone(model).fit(X, y).decision_function(X, 0.3)
        other = clone(model).fit(torch.asarray(X), torch.asarray(y))
        np.testing.assert_allclose(other.decision_function(torch.asarray(X), 0.3).numpy(), plain, atol=1e-4)
        assert set(other.predict(torch.asarray(X)).tolist()) == {-1, 1}
        single = model.fit(X.astype(np.float32), y).decision_function(X.astype(np.float32), 0.3)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, plain, atol=1e-2)

    def test_bad_input(self):
        X, y = data()
        with pytest.raises(ValueError, match="Only binary classification is supported"):
            CostSensitiveClassifier().fit(X, np.arange(60) % 3)
        with pytest.raises(ValueError, match="Got one class only"):
            CostSensitiveClassifier().fit(X, np.ones(60))
        model = CostSensitiveClassifier(levels=3).fit(X, y)
        with pytest.raises(ValueError, match=r"cost must hold numbers in \(0, 1\)"):
            model.predict(X, 1.0)
