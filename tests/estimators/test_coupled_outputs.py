"""The search without arguments where outputs are missing: observed values alone count, and outputs help each other."""

import numpy as np
import pytest

from fenchel import OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.kernels import Gaussian, Matrix
from fenchel.search.race import GappedRidge, search_kernel

LAM = 0.03


@pytest.fixture
def gaps(rng):
    """Targets with gaps, as zeros and a mask."""
    X, Y = rng.standard_normal((24, 2)), rng.standard_normal((24, 3))
    seen = (rng.uniform(size=Y.shape) < 0.6).astype(float)
    seen[:, 2] = seen[:, 0]  # two outputs share their gaps
    return X, seen * Y, seen


def alike(rng, n=60, noise=0.3, missing=0.5):
    """Four outputs of one signal, half of them missing, and the same without gaps."""
    X = rng.uniform(-2, 2, (n, 2))
    signal = np.sin(2 * X[:, :1]) + X[:, 1:]
    Y = signal * [1, -2, 100, 0.5] + noise * rng.standard_normal((n, 4)) * [1, 2, 100, 0.5]
    lost = rng.uniform(size=Y.shape) < missing
    lost[lost.all(axis=1), 0] = False
    return X, np.where(lost, np.nan, Y), Y


class TestRidgeOfGaps:
    def test_left_out_residuals_are_those_of_refits(self, gaps, rng):
        X, Y, seen = gaps
        K, weights = Gaussian(0.5)(X), rng.uniform(0.5, 2, len(X))
        ridge = GappedRidge(K, weights, None, seen)
        left_out, fitted = ridge.left_out(LAM, Y), ridge.fitted_residuals(LAM, Y)
        expected, own, mu = np.zeros_like(Y), np.zeros_like(Y), LAM * np.sum(weights)
        for k in range(3):
            rows = np.flatnonzero(seen[:, k])
            for i in rows:
                train = np.setdiff1d(rows, i)
                share = (len(rows) - 1) / len(rows)
                A = K[np.ix_(train, train)] + np.diag(mu * share / weights[train])
                expected[i, k] = Y[i, k] - K[i, train] @ np.linalg.solve(A, Y[train, k])
            A = K[np.ix_(rows, rows)] + np.diag(mu / weights[rows])
            own[rows, k] = Y[rows, k] - K[np.ix_(rows, rows)] @ np.linalg.solve(A, Y[rows, k])
        np.testing.assert_allclose(left_out, expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(fitted, own, rtol=0, atol=1e-10)
        lam, error = ridge.best_lam(Y, seen)
        squares = np.sum(ridge.left_out(lam, Y) ** 2, axis=1)
        assert error == pytest.approx(np.average(squares, weights=weights), rel=1e-9)

    def test_without_gaps_it_is_the_ridge(self, gaps):
        X, Y, _ = gaps
        plain, other = (search_kernel(X, Y, observed=np.ones_like(Y), imputed=imputed) for imputed in (True, False))
        assert plain.candidate == other.candidate
        np.testing.assert_allclose(plain.left_out, other.left_out, rtol=0, atol=1e-10)

    def test_groups_are_left_out_together(self, gaps):
        X, Y, seen = gaps
        groups, K = np.arange(24) // 2, Gaussian(0.5)(X)
        left_out = GappedRidge(K, np.ones(24), groups, seen).left_out(LAM, Y)
        rows = np.flatnonzero(seen[:, 1])
        kinds = len(np.unique(groups[rows]))
        for g in np.unique(groups[rows]):
            train, test = rows[groups[rows] != g], rows[groups[rows] == g]
            A = K[np.ix_(train, train)] + LAM * 24 * (kinds - 1) / kinds * np.eye(len(train))
            predicted = K[np.ix_(test, train)] @ np.linalg.solve(A, Y[train, 1])
            np.testing.assert_allclose(left_out[test, 1], Y[test, 1] - predicted, rtol=0, atol=1e-10)


class TestSearch:
    def test_outputs_help_each_other(self, rng):
        X, Y, _ = alike(rng)
        new, _, truth = alike(rng, n=400, noise=0.0)
        joint, apart = (
            OperatorKernelRegressorCV(losses=["square"], operator=operator).fit(X, Y) for operator in (None, np.eye(4))
        )
        assert isinstance(joint.best_estimator_.operator, Matrix)
        errors = [np.mean((model.predict(new) - truth) ** 2 / np.var(truth, axis=0)) for model in (joint, apart)]
        assert errors[0] < 0.8 * errors[1]
        assert joint.duality_gap_ <= joint.tol

    def test_unrelated_outputs_stay_apart(self, rng):
        X = rng.uniform(-2, 2, (80, 4))
        Y = np.sin(2 * X) + 0.2 * rng.standard_normal((80, 4))
        model = OperatorKernelRegressorCV(losses=["square"]).fit(
            X, np.where(rng.uniform(size=Y.shape) < 0.3, np.nan, Y)
        )
        assert model.best_estimator_.operator is None
        assert set(model.search_["share"]) == {0.0, 0.3, 0.6, 0.9}

    def test_complete_outputs_are_never_coupled(self, rng):
        X, _, full = alike(rng)
        model = OperatorKernelRegressorCV(losses=["square"]).fit(X, full)
        assert model.best_estimator_.operator is None
        assert "share" not in model.search_

    def test_reported_error_is_that_of_refits(self, rng):
        X, Y, _ = alike(rng, n=30)
        weights = rng.uniform(0.5, 2, 30)
        model = OperatorKernelRegressorCV(losses=["square"]).fit(X, Y, weights)
        assert isinstance(model.best_estimator_.operator, Matrix)
        found = zip(model.search_["error"], model.search_["share"], model.search_["lam"], strict=True)
        error, _, lam = min(trial for trial in found if trial[1] > 0)
        seen = ~np.isnan(Y)
        lam *= np.average(np.diag(model.best_kernel_(X)), weights=weights * np.sum(seen, axis=1))
        Z, errors = (Y - model.center_) / model.scale_, []
        for i in range(30):
            rest = np.arange(30) != i
            same = (
                lam * np.sum(weights) / np.sum(weights[rest]) * 29 / 30
            )  # the weight of 29 of 30 samples of mean weight
            operator = model.best_estimator_.operator
            one = OperatorKernelRegressor(model.best_kernel_, operator, lam=same, tol=1e-10)
            prediction = one.fit(X[rest], Z[rest], weights[rest]).predict(X[i : i + 1])[0]
            errors.append(np.nansum((Z[i] - prediction) ** 2))
        assert error == pytest.approx(np.average(errors, weights=weights), rel=1e-6)

    def test_units_do_not_matter(self, rng):
        X, Y, _ = alike(rng)
        units = np.array([1e-3, 7.0, 1e4, 1.0])
        one = OperatorKernelRegressorCV().fit(X, Y).predict(X)
        other = OperatorKernelRegressorCV().fit(X * [1e3, 1e-2] + 5, Y * units).predict(X * [1e3, 1e-2] + 5)
        np.testing.assert_allclose(other / units, one, rtol=0, atol=2e-4 * np.nanstd(Y, axis=0).min())

    def test_a_sample_given_twice_has_weight_two(self, rng):
        X, Y, _ = alike(rng, n=40)
        twice = np.concatenate([np.arange(40), np.arange(10)])
        weights = np.where(np.arange(40) < 10, 2.0, 1.0)
        one = OperatorKernelRegressorCV(losses=["square"], cv=2).fit(X, Y, weights)
        other = OperatorKernelRegressorCV(losses=["square"], cv=2).fit(X[twice], Y[twice])
        np.testing.assert_allclose(one.search_["error"], other.search_["error"], rtol=1e-6)

    def test_wrong_cells_do_not_couple(self, rng):
        X, Y, _ = alike(rng, n=80, noise=0.1)
        wrong = np.where((rng.uniform(size=Y.shape) < 0.04) & ~np.isnan(Y), Y + 30 * np.nanstd(Y, axis=0), Y)
        model = OperatorKernelRegressorCV().fit(X, wrong)
        operator = np.asarray(model.best_estimator_.operator.B)
        assert np.all(operator[0, 1] < -0.2) and operator[0, 2] > 0.2  # as the outputs are correlated

    def test_groups_are_left_out_together(self, rng):
        X, Y, _ = alike(rng, n=30)
        pairs = np.repeat(np.arange(30), 2)
        near = Y[pairs] * (1 + 1e-3 * rng.standard_normal((60, 1)))  # each predicts the other
        grouped, apart, alone = (
            OperatorKernelRegressorCV(losses=["square"], cv=2).fit(*data, groups=groups).search_["error"][-12:]
            for data, groups in (((X[pairs], near), pairs), ((X[pairs], near), None), ((X, Y), None))
        )
        assert max(apart) < 0.1 * min(alone)
        np.testing.assert_allclose(grouped, alone, rtol=0.2)
