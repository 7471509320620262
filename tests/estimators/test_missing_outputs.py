"""Outputs that are NaN were not observed: the loss is that of the observed part of each sample."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from fenchel import OperatorKernelRegressor, load, save
from fenchel.exceptions import DataWarning
from fenchel.kernels import Gaussian
from fenchel.losses import Ball, Huber, MaxMargin
from fenchel.model.target_scale import standardized_targets
from fenchel.representations import GramFactor
from tests.parts import LOSSES

LAM = 1e-2
B = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])


@pytest.fixture
def table(rng):
    """Three outputs of which two fifths are missing; each sample has at least one."""
    X = rng.standard_normal((40, 2))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1], X[:, 1]]) + 0.1 * rng.standard_normal((40, 3))
    Y[rng.uniform(size=Y.shape) < 0.4] = np.nan
    lacking = np.isnan(Y).all(axis=1)
    Y[lacking, 0] = np.sin(X[lacking, 0])
    return X, Y


def regressor(**parameters):
    return OperatorKernelRegressor(**({"kernel": Gaussian(0.5), "lam": LAM, "tol": 1e-9} | parameters))


class TestOracles:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_identity_means_one_fit_for_each_output(self, table, rng, weighted):
        X, Y = table
        weights = rng.uniform(0.5, 2, len(X)) if weighted else np.ones(len(X))
        joint = regressor().fit(X, Y, weights).predict(X)
        for k in range(3):
            rows = ~np.isnan(Y[:, k])
            lam = LAM * np.sum(weights) / np.sum(weights[rows])  # lam times the total weight is the same
            alone = regressor(lam=lam).fit(X[rows], Y[rows, k], weights[rows])
            np.testing.assert_allclose(joint[:, k], alone.predict(X), rtol=0, atol=1e-9)

    @pytest.mark.parametrize("p", [1, 2])
    @pytest.mark.parametrize("operator", [None, B], ids=["identity", "coupled"])
    def test_optimum_of_cvxpy(self, table, rng, p, operator):
        cvxpy = pytest.importorskip("cvxpy")
        X, Y = table
        weights, kappa = rng.uniform(0.5, 2, len(X)), 0.1
        model = regressor(operator=operator, loss=Huber(kappa, p=p)).fit(X, Y, weights)
        seen = ~np.isnan(Y)
        left = np.linalg.cholesky(Gaussian(0.5)(X) + 1e-12 * np.eye(len(X)))
        right = np.linalg.cholesky(np.eye(3) if operator is None else operator)
        W, small = cvxpy.Variable(Y.shape), cvxpy.Variable(Y.shape)
        rest = cvxpy.multiply(np.where(seen, Y, 0.0) - left @ W @ right.T, seen) - small
        norms = cvxpy.norm(rest, p, axis=1)
        loss = weights @ (cvxpy.sum(cvxpy.square(small), axis=1) / 2 + kappa * norms) / np.sum(weights)
        value = cvxpy.Problem(cvxpy.Minimize(loss + LAM / 2 * cvxpy.sum_squares(W))).solve(solver="CLARABEL")
        assert model.duality_gap_ <= 1e-9
        assert model.primal_objective_ == pytest.approx(value, rel=1e-6)
        assert model.dual_objective_ == pytest.approx(value, rel=1e-6)

    @pytest.mark.parametrize("loss", [loss for loss in LOSSES if type(loss) not in (Ball, MaxMargin)], ids=repr)
    def test_every_loss_is_certified(self, table, loss):
        X, Y = table
        model = regressor(loss=loss, operator=B, tol=1e-6).fit(X, Y)
        assert model.duality_gap_ <= 1e-6
        assert not np.any(model.dual_coef_[np.isnan(Y)])

    def test_margin_of_the_observed_part(self, table):
        X, Y = table
        signs = np.sign(Y)
        model = regressor(loss=MaxMargin(), tol=1e-7).fit(X, signs)
        products = np.nansum(signs * model.predict(X), axis=1)
        duals = np.nan_to_num(model.dual_coef_)
        norm = np.sum(duals * (Gaussian(0.5)(X) @ duals)) / (LAM * len(X)) ** 2
        primal = np.mean(np.maximum(0, 1 - products)) + LAM / 2 * norm
        assert model.primal_objective_ == pytest.approx(primal, rel=1e-9)
        assert model.duality_gap_ <= 1e-7


class TestSamples:
    def test_a_sample_without_outputs_has_weight_zero(self, table):
        X, Y = table
        weights = np.ones(len(X))
        weights[[3, 17]] = 0
        expected = regressor(loss=Huber(0.1)).fit(X, Y, weights)
        Y[[3, 17]] = np.nan
        with pytest.warns(DataWarning, match="2 of 40 samples have no output, and are left out"):
            model = regressor(loss=Huber(0.1)).fit(X, Y)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(model.dual_coef_[[3, 17]], 0)
        assert model.dual_coef_.shape == Y.shape

    def test_gram_matrices_of_inputs_lose_rows_and_columns(self, table):
        X, Y = table
        Y[5] = np.nan
        with pytest.warns(DataWarning, match="1 of 40"):
            one = regressor(kernel="precomputed").fit(Gaussian(0.5)(X), Y)
        with pytest.warns(DataWarning, match="1 of 40"):
            other = regressor().fit(X, Y)
        np.testing.assert_allclose(one.predict(Gaussian(0.5)(X)), other.predict(X), rtol=0, atol=1e-10)

    def test_numbers(self, table):
        X, Y = table
        y = Y[:, 0]
        rows = ~np.isnan(y)
        with pytest.warns(DataWarning, match="samples have no output"):
            model = regressor().fit(X, y)
        assert model.predict(X).shape == (40,)
        np.testing.assert_allclose(model.predict(X), regressor().fit(X[rows], y[rows]).predict(X), rtol=0, atol=1e-10)

    def test_repeated_inputs_with_different_outputs_observed(self, rng):
        X = np.repeat(rng.standard_normal((30, 2)), 2, axis=0)
        Y = np.column_stack([5 + X[:, 0], X[:, 1] - 5])
        Y[::2, 0], Y[1::2, 1] = np.nan, np.nan
        regressor(center=True).fit(X, Y)  # no warning of contradictory outputs

    @pytest.mark.parametrize("form", [np.ma.masked_invalid, "frame", "objects"])
    def test_forms(self, table, form):
        X, Y = table
        if form == "frame":
            given = pytest.importorskip("pandas").DataFrame(Y)
        else:
            given = np.where(np.isnan(Y), None, Y) if form == "objects" else form(Y)
        np.testing.assert_array_equal(regressor().fit(X, given).predict(X), regressor().fit(X, Y).predict(X))

    def test_torch(self, table):
        torch = pytest.importorskip("torch")
        X, Y = table
        model = regressor(operator="covariance").fit(torch.from_numpy(X), torch.from_numpy(Y))
        expected = regressor(operator="covariance").fit(X, Y)
        np.testing.assert_allclose(model.predict(torch.from_numpy(X)).numpy(), expected.predict(X), rtol=0, atol=1e-8)


class TestEstimator:
    def test_outlier_scores_of_cells(self, table):
        X, Y = table
        Y[8, 1] = 30
        model = regressor(loss=Huber(0.1, p=1), center=True, scale=True).fit(X, Y)
        scores = model.point_outlier_score_
        np.testing.assert_array_equal(np.isnan(scores), np.isnan(Y))
        assert scores[8, 1] == 1

    def test_score(self, table):
        X, Y = table
        model = regressor().fit(X, Y)
        columns = [(Y[:, k][rows], model.predict(X)[rows, k]) for k, rows in enumerate(~np.isnan(Y).T)]
        assert model.score(X, Y) == pytest.approx(np.mean([r2_score(*pair) for pair in columns]))
        with pytest.raises(ValueError, match="at least two values"):
            model.score(X, np.full_like(Y, np.nan))

    def test_saved_model(self, table, tmp_path):
        X, Y = table
        model = regressor(operator="covariance", loss="huber", center=True, scale=True).fit(X, Y)
        save(model, tmp_path / "model.skops")
        np.testing.assert_array_equal(load(tmp_path / "model.skops").predict(X), model.predict(X))

    def test_nystrom_with_every_landmark(self, table):
        from fenchel.approximations import Nystrom

        X, Y = table
        near = regressor(approximation=Nystrom(40), operator=B, tol=1e-10).fit(X, Y).predict(X)
        np.testing.assert_allclose(near, regressor(operator=B).fit(X, Y).predict(X), rtol=0, atol=1e-5)


class TestStatistics:
    def test_covariance_of_pairs(self, table, rng):
        X, Y = table
        weights = rng.uniform(0.5, 2, len(X))
        model = regressor(operator="covariance").fit(X, Y, weights)
        C = np.empty((3, 3))
        for j in range(3):
            for k in range(3):
                both = ~np.isnan(Y[:, j] + Y[:, k])
                C[j, k] = np.average(Y[both, j] * Y[both, k], weights=weights[both])
        assert np.linalg.eigvalsh(C).min() > 0  # so that nothing is clipped
        np.testing.assert_allclose(model.predict(X), regressor(operator=C).fit(X, Y, weights).predict(X), atol=1e-8)

    @pytest.mark.parametrize("robust", [False, True])
    def test_scales_are_those_of_the_observed_values(self, table, rng, robust):
        _, Y = table
        weights = rng.uniform(0.5, 2, len(Y))
        found = standardized_targets(Y, weights, robust=robust)
        for k, rows in enumerate(~np.isnan(Y).T):
            alone = standardized_targets(Y[rows, k, None], weights[rows], robust=robust)
            assert (found.center[k], found.scale[k]) == (alone.center[0], alone.scale[0])


class TestRefusals:
    def test_an_output_without_values(self, table):
        X, Y = table
        Y[:, 1] = np.nan
        with pytest.raises(ValueError, match=r"NaN only in column 1\. Drop this output"):
            regressor().fit(X, Y)
        with pytest.raises(ValueError, match=r"NaN only\. Drop"):
            regressor().fit(X, Y[:, 1])

    def test_infinity(self, table):
        X, Y = table
        with pytest.raises(ValueError, match="infinity"):
            regressor().fit(X, np.nan_to_num(Y, nan=np.inf))

    def test_gram_matrix_of_outputs(self, table):
        X, _ = table
        outputs = Gaussian(1.0)(X)
        outputs[2, 3] = np.nan
        with pytest.raises(ValueError, match=r"y must be finite\. It contains NaN, the first at index \[2, 3\]"):
            regressor(representation=GramFactor()).fit(X, outputs)
