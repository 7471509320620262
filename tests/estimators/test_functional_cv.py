"""Paths and cross-validation of curves, against models that are fitted one by one."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import KFold

import fenchel
from fenchel import FunctionalRegressor, FunctionalRegressorCV
from fenchel.datasets import contaminate, make_functional
from fenchel.kernels import Gaussian, Laplacian
from fenchel.losses import EpsilonRidge, Huber, Square
from fenchel.search.checkpoint import Checkpoint
from tests.estimators.curves import GRID, blanked, full_weights

TIGHT = 1e-9
PARTS = {"kernel": Gaussian(0.5), "output_kernel": Laplacian(3.0)}
LAMS, LOSSES = [1e-1, 1e-3], [Square(), Huber(0.2), Huber(0.2, p=1), EpsilonRidge(0.2, p=np.inf)]


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((15, 2))
    return X, np.sin(X @ rng.standard_normal((2, len(GRID)))) + 0.3 * rng.standard_normal((15, len(GRID)))


class TestPath:
    def test_objectives(self, sample):
        X, Y = sample
        found = fenchel.path(FunctionalRegressor(**PARTS, tol=TIGHT), X, blanked(Y), LAMS, LOSSES, grid=GRID)
        assert found.gaps.shape == (4, 2)
        assert np.all(found.gaps <= TIGHT)
        for i, loss in enumerate(LOSSES):
            for j, lam in enumerate(LAMS):
                alone = FunctionalRegressor(**PARTS, loss=loss, lam=lam, tol=TIGHT).fit(X, blanked(Y), GRID)
                assert found.primal_objectives[i, j] == pytest.approx(alone.primal_objective_, rel=1e-7)
                assert found.dual_objectives[i, j] == pytest.approx(alone.dual_objective_, rel=1e-7)

    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    def test_models(self, sample, gaps):
        X, Y = sample
        Y = blanked(Y) if gaps else Y
        found = fenchel.path(FunctionalRegressor(**PARTS, tol=TIGHT), X, Y, LAMS, LOSSES, grid=GRID)
        predictions = found.predict(X)
        assert predictions.shape == (4, 2, *Y.shape)
        for i, loss in enumerate(LOSSES):
            for j, lam in enumerate(LAMS):
                alone = FunctionalRegressor(**PARTS, loss=loss, lam=lam, tol=TIGHT).fit(X, Y, GRID)
                one = found.model(i, j)
                assert (one.lam, repr(one.loss)) == (lam, repr(loss))
                assert_allclose(predictions[i, j], alone.predict(X), rtol=0, atol=1e-3)
                points = np.array([0.1, 0.77])
                assert_allclose(one.predict(X, points), alone.predict(X, points), rtol=0, atol=1e-3)

    def test_tables(self):
        """What a model checks at prediction is handed on."""
        data = make_functional(12, 9, random_state=0)
        frame = pd.DataFrame(data.X).add_prefix("at_")
        one = fenchel.path(FunctionalRegressor(), frame, data.Y, [1e-2]).model(0, 0)
        assert_allclose(one.predict(frame), FunctionalRegressor(lam=1e-2).fit(frame, data.Y).predict(frame), atol=1e-8)
        with pytest.raises(ValueError, match="feature names should match"):
            one.predict(frame.iloc[:, :3])

    def test_vectors_have_no_grid(self, rng):
        X, Y = rng.standard_normal((5, 2)), rng.standard_normal((5, 3))
        with pytest.raises(TypeError, match=r"does not take a grid.*Use FunctionalRegressor"):
            fenchel.path(fenchel.OperatorKernelRegressor(), X, Y, [1.0], grid=[0.0, 0.5, 1.0])


def held_out_errors(X, Y, loss, lam, folds, weights=None):
    """Squared distances over the observed points, each curve predicted by a model that was fitted without it."""
    errors = np.full(len(Y), np.nan)
    counts = np.ones(len(Y)) if weights is None else weights
    for test in folds:
        train = np.setdiff1d(np.arange(len(Y)), test)
        alone = FunctionalRegressor(**PARTS, loss=clone(loss), lam=lam, center=False, tol=TIGHT)
        found = alone.fit(X[train], Y[train], GRID, counts[train]).predict(X[test])
        errors[test] = np.nansum(full_weights(Y)[test] * (Y[test] - found) ** 2, axis=1)
    return errors


class TestCrossValidation:
    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_errors_are_those_of_refits(self, sample, gaps, weighted, rng):
        X, Y = sample
        Y = blanked(Y) if gaps else Y
        weights = rng.uniform(0.5, 2, 15) if weighted else None
        settings = {"lams": LAMS, "losses": LOSSES, "cv": 3, "center": False, "tol": TIGHT}
        model = FunctionalRegressorCV(**PARTS, **settings).fit(X, Y, GRID, weights)
        order = np.lexsort(Y.T[::-1])  # folds are drawn from the sorted outputs
        folds = [order[test] for _, test in KFold(3, shuffle=True, random_state=0).split(X)]
        counts = np.ones(15) if weights is None else weights
        for i, loss in enumerate(LOSSES):
            for j, lam in enumerate(LAMS):
                errors = held_out_errors(X, Y, loss, lam, folds, weights)
                wanted = [np.average(errors[test], weights=counts[test]) for test in folds]
                assert_allclose(model.fold_errors_[i, j], wanted, rtol=1e-3)
        assert_allclose(model.cv_errors_, model.fold_errors_.mean(axis=2), rtol=1e-12)
        assert np.all(model.cv_gaps_ <= TIGHT)

    @pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
    @pytest.mark.parametrize("loss", [Square(), Huber(0.2, p=1)], ids=repr)
    def test_leave_one_out_and_robust_aggregates(self, sample, gaps, loss):
        X, Y = sample
        Y = blanked(Y) if gaps else Y
        errors = held_out_errors(X, Y, loss, 1e-2, [[i] for i in range(15)])
        settings = {"lams": [1e-2], "losses": [loss], "cv": "loo", "center": False, "tol": TIGHT}
        fits = {
            name: FunctionalRegressorCV(**PARTS, **settings, aggregate=name).fit(X, Y, GRID).cv_errors_[0, 0]
            for name in ("mean", "median", "trimmed_mean", "fold_median")
        }
        assert fits["mean"] == pytest.approx(np.mean(errors), rel=1e-4)
        assert fits["median"] == pytest.approx(np.median(errors), rel=1e-4)
        assert fits["fold_median"] == pytest.approx(np.median(errors), rel=1e-4)
        assert fits["trimmed_mean"] == pytest.approx(np.mean(np.sort(errors)[:12]), rel=1e-4)  # four fifths of 15

    def test_the_best_pair_is_fitted_on_all(self, sample):
        X, Y = sample
        model = FunctionalRegressorCV(**PARTS, lams=LAMS, losses=LOSSES, cv=3, tol=TIGHT).fit(X, blanked(Y), GRID)
        i, j = np.unravel_index(np.argmin(model.cv_errors_), (4, 2))
        assert (repr(model.best_loss_), model.best_lam_) == (repr(LOSSES[i]), LAMS[j])
        alone = FunctionalRegressor(**PARTS, loss=LOSSES[i], lam=LAMS[j], tol=TIGHT).fit(X, blanked(Y), GRID)
        points = np.array([0.1, 0.77, 1.2])
        assert_allclose(model.predict(X, points), alone.predict(X, points), rtol=0, atol=1e-4)
        assert model.primal_objective_ == pytest.approx(alone.primal_objective_, rel=1e-7)
        assert model.score(X, Y, grid=GRID) == pytest.approx(alone.score(X, Y, grid=GRID), abs=1e-4)
        assert model.duality_gap_ <= TIGHT
        assert_array_equal(model.grid_, GRID)
        assert model.n_features_in_ == 2
        assert_array_equal(model.dual_coef_, model.best_estimator_.dual_coef_)

    def test_outliers_do_not_choose(self):
        """With a fifth of the curves replaced, the median finds the robust loss and the clean curves."""
        clean = make_functional(40, 15, random_state=0)
        Y = contaminate(clean.Y, "global", 0.15, intensity=20.0, random_state=0).Y
        settings = {"lams": np.logspace(-6, -1, 4), "losses": [Square(), Huber(0.02)], "center": "median"}
        model = FunctionalRegressorCV(**settings, aggregate="median").fit(clean.X, Y)
        assert repr(model.best_loss_) == "Huber(kappa=0.02)"
        test = make_functional(40, 15, random_state=1)
        assert model.score(test.X, test.Y) > 0.7

    def test_checkpoint(self, sample, tmp_path, monkeypatch):
        X, Y = sample
        file = tmp_path / "errors.npz"
        settings = {**PARTS, "lams": LAMS, "losses": [Huber(0.1, p=1), Huber(0.3, p=1), Huber(1.0, p=1)], "cv": 3}
        whole = FunctionalRegressorCV(**settings).fit(X, blanked(Y), GRID)

        record, seen = Checkpoint.record, []

        def stop(store, *pair):
            record(store, *pair)
            seen.append(pair[0])
            if len(seen) == 3:
                raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Checkpoint, "record", stop)
            FunctionalRegressorCV(**settings, checkpoint=file).fit(X, blanked(Y), GRID)
        monkeypatch.setattr(Checkpoint, "record", stop)
        resumed = FunctionalRegressorCV(**settings, checkpoint=file).fit(X, blanked(Y), GRID)
        assert_array_equal(resumed.cv_errors_, whole.cv_errors_)
        assert seen[3:] == [1, 1, 2, 2]  # the first loss came from the file
        for other in (blanked(Y, seed=5), Y):
            with pytest.raises(ValueError, match="belongs to other data or another grid"):
                FunctionalRegressorCV(**settings, checkpoint=file).fit(X, other, GRID)
        for change in ({"output_kernel": Laplacian(3.1)}, {"kernel": Gaussian(0.51)}, {"center": False}, {"tol": 1e-5}):
            with pytest.raises(ValueError, match="belongs to other data or another grid"):
                FunctionalRegressorCV(**{**settings, **change}, checkpoint=file).fit(X, blanked(Y), GRID)
        with pytest.raises(ValueError, match="belongs to other data or another grid"):
            FunctionalRegressorCV(**settings, checkpoint=file).fit(X, blanked(Y), GRID, np.arange(1, 16))

    def test_checkpoint_of_many_points(self, tmp_path):
        """Two operators that differ in the middle of a large matrix only."""
        data = make_functional(6, 40, random_state=0)
        grid = np.linspace(0, 1, 40)

        def bump(height):
            def kernel(s, t):
                inside = np.exp(-1e4 * (s - 0.5) ** 2) * np.exp(-1e4 * (t.T - 0.5) ** 2)
                return np.exp(-10 * np.abs(s - t.T)) + height * inside

            return kernel

        settings = {"kernel": Gaussian(0.5), "lams": [1e-2], "cv": 2, "checkpoint": tmp_path / "errors.npz"}
        FunctionalRegressorCV(**settings, output_kernel=bump(1.0)).fit(data.X, data.Y, grid)
        with pytest.raises(ValueError, match="belongs to other data or another grid"):
            FunctionalRegressorCV(**settings, output_kernel=bump(2.0)).fit(data.X, data.Y, grid)

    def test_checkpoint_with_a_function_as_kernel(self, sample, tmp_path):
        """A new process defines the same function again, at another address."""
        X, Y = sample

        def defined():
            return lambda A, B: np.exp(-0.5 * np.sum((A[:, None] - B) ** 2, axis=2))

        settings = {"lams": [1e-2], "cv": 2, "checkpoint": tmp_path / "errors.npz"}
        one, other = (
            FunctionalRegressorCV(kernel, **settings).fit(X, Y).cv_errors_ for kernel in [defined(), defined()]
        )
        assert_array_equal(one, other)

    def test_representations(self):
        data = make_functional(20, 15, random_state=0)
        for settings in ({"representation": "eigen", "n_components": 4}, {"representation": "fourier"}):
            model = FunctionalRegressorCV(lams=[1e-3], losses=[Huber(0.2)], cv=2, center=False, **settings)
            assert model.fit(data.X, data.Y).cv_gaps_[0, 0] <= 1e-6
            assert model.predict(data.X).shape == (20, 15)

    def test_float32(self, sample):
        X, Y = (array.astype(np.float32) for array in sample)
        model = FunctionalRegressorCV(**PARTS, lams=[1e-6], cv=2).fit(X, Y)
        assert model.predict(X).dtype == np.float32
        assert model.duality_gap_ <= 1e-6

    def test_torch(self, sample, torch):
        X, Y = sample
        settings = {**PARTS, "lams": LAMS, "losses": LOSSES[:3], "cv": 2}
        one = FunctionalRegressorCV(**settings).fit(X, blanked(Y))
        other = FunctionalRegressorCV(**settings).fit(torch.asarray(X), torch.asarray(blanked(Y)))
        assert_allclose(other.cv_errors_, one.cv_errors_, rtol=1e-3)
        assert isinstance(other.predict(torch.asarray(X)), torch.Tensor)

    def test_absent_curves(self, sample):
        """Folds count all curves, and those of weight zero are in none: as if they were not there."""
        X, Y = sample
        weights = np.ones(15)
        weights[[3, 9]] = 0
        settings = {**PARTS, "lams": LAMS, "losses": LOSSES[:2], "cv": "loo", "tol": TIGHT}
        zeros = FunctionalRegressorCV(**settings).fit(X, blanked(Y), GRID, weights)
        kept = weights > 0
        without = FunctionalRegressorCV(**settings).fit(X[kept], blanked(Y)[kept], GRID)
        assert_allclose(zeros.cv_errors_, without.cv_errors_, rtol=1e-6)
        assert_allclose(zeros.predict(X), without.predict(X), rtol=0, atol=1e-5)

    def test_clone_pickle_and_parameters(self, sample):
        X, Y = sample
        model = FunctionalRegressorCV(**PARTS, lams=LAMS, losses=[Huber(0.3)], cv=2, aggregate="median")
        copy = clone(model)
        assert repr(copy) == repr(model)
        assert copy.get_params()["output_kernel__gamma"] == 3.0
        fitted = copy.fit(X, Y, GRID)
        assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
        assert_array_equal(clone(model).fit(X, Y, GRID).cv_errors_, fitted.cv_errors_)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"lams": []}, r"'lams' parameter must hold at least one number"),
            ({"losses": ["hubber"]}, r"Unknown loss 'hubber'"),
            ({"aggregate": "max"}, r"'aggregate' parameter of FunctionalRegressorCV must be one of 'mean', 'median'"),
            ({"cv": 1}, r"'cv' parameter of FunctionalRegressorCV must be an int in \[2, inf\)"),
            ({"cv": 50}, r"cv=50 needs at least 50 samples\. Got n_samples = 15"),
            ({"center": "mode"}, "'center' parameter"),
            ({"representation": "wavelet"}, "Unknown representation 'wavelet'"),
        ],
        ids=str,
    )
    def test_bad_parameters(self, sample, parameters, message):
        with pytest.raises(ValueError, match=message):
            FunctionalRegressorCV(**parameters).fit(*sample)
