"""The kernel of trees in a search: chosen where targets jump, honest about what is held out, like any other kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import fenchel
from fenchel import ConformalRegressor, OperatorKernelRegressorCV
from fenchel.exceptions import IncompatibleError
from fenchel.model.machine import training_set_of
from fenchel.outliers.held_out_residuals import held_out_residuals
from fenchel.resample.folds import whole_folds
from fenchel.resample.jackknife import left_out_models
from fenchel.search import leaves


def steps(n=160, seed=0, noise=0.1):
    """Return inputs, targets that jump, and the targets without noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    truth = np.column_stack([(X[:, 0] > 0.1) + 2.0 * (X[:, 1] > 0.3), 1.0 * (X[:, 0] * X[:, 1] > 0)])
    return X, truth + noise * rng.standard_normal(truth.shape), truth


@pytest.fixture(scope="module")
def fitted():
    X, Y, _ = steps()
    return OperatorKernelRegressorCV().fit(X, Y)


def weights_of(model):
    """Return the weights of the trees that were compared."""
    return model.search_.get("leaves")


def test_jumps_are_learned_better():
    X, Y, _ = steps(240)
    new, _, truth = steps(400, seed=1)
    model, smooth = (OperatorKernelRegressorCV(leaves=value).fit(X, Y) for value in (True, False))
    errors = [np.mean((one.predict(new) - truth) ** 2) for one in (model, smooth)]
    assert model.best_kernel_.tags.sees_outputs
    assert not smooth.best_kernel_.tags.sees_outputs
    assert errors[0] < 0.8 * errors[1]
    assert model.cv_errors_.min() < smooth.cv_errors_.min()
    assert model.duality_gap_ <= model.tol


def test_a_smooth_target_gives_the_bits_of_a_search_without_trees():
    X = steps()[0]
    Y = np.sin(3 * X[:, :1]) + X[:, 1:2]
    model, smooth = (OperatorKernelRegressorCV(leaves=value).fit(X, Y) for value in (True, False))
    assert 2.0 in weights_of(model)
    assert weights_of(smooth) is None
    assert_array_equal(model.predict(X), smooth.predict(X))


def test_trees_of_a_fold_do_not_depend_on_its_outputs():
    X, Y, _ = steps()
    labels = np.arange(len(X)) % 5
    hidden = leaves._hidden(5)
    changed = Y.copy()
    changed[labels == 2] = Y[labels == 2][::-1]  # trees are grown on standardised targets, whose scale stays
    first, second = (leaves._grown(X, y, np.ones(len(X)), labels, hidden) for y in (Y, changed))
    same = np.mean(first.places(X) - first.roots == second.places(X) - second.roots, axis=0) == 1
    assert same[hidden[:, 2]].all()
    assert not same[~hidden[:, 2]].any()
    assert_array_equal(hidden.sum(axis=0), [20] * 5)


def test_held_out_errors_of_noise_are_honest():
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((120, 5)), rng.standard_normal((120, 2))
    model = OperatorKernelRegressorCV(losses=["square"]).fit(X, Y)
    told = dict(zip(model.search_["leaves"], model.search_["error"], strict=True))
    assert min(told[weight] for weight in (0.3, 2.0)) > 0.97 * 2  # the variance of two standardised outputs


@pytest.mark.parametrize("change", ["units", "order"])
def test_units_and_order_do_not_matter(fitted, change):
    X, Y, _ = steps()
    new = steps(50, seed=1)[0]
    units, sizes, order = np.ones(4), np.ones(2), np.arange(len(X))
    if change == "units":
        units, sizes = np.array([1e3, 0.037, 7.1, 1e-4]), np.array([1e4, 0.013])
    else:
        order = np.random.default_rng(5).permutation(len(X))
    other = OperatorKernelRegressorCV().fit(X[order] * units, Y[order] * sizes)
    assert_allclose(other.predict(new * units) / sizes, fitted.predict(new), atol=2e-6)


def test_a_weight_of_two_is_a_sample_given_twice():
    X, Y, _ = steps()
    weights = 1.0 + (np.arange(len(X)) % 4 == 0)
    rows = np.repeat(np.arange(len(X)), weights.astype(int))
    weighted = OperatorKernelRegressorCV().fit(X, Y, sample_weight=weights)
    repeated = OperatorKernelRegressorCV().fit(X[rows], Y[rows])
    assert weighted.best_kernel_.tags.sees_outputs
    assert_allclose(weighted.best_lam_, repeated.best_lam_, rtol=1e-6)
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=2e-6)


def test_groups_are_whole_in_the_folds_of_the_trees():
    X, Y, _ = steps(80)
    rng = np.random.default_rng(0)
    X, Y = np.repeat(X, 3, axis=0) + 1e-3 * rng.standard_normal((240, 4)), np.repeat(Y, 3, axis=0)
    groups = np.repeat(np.arange(80), 3)
    model = OperatorKernelRegressorCV().fit(X, Y, groups=groups)
    alone = OperatorKernelRegressorCV().fit(X, Y)
    assert model.cv_errors_.min() > 2 * alone.cv_errors_.min()  # replicates of a held-out sample are not seen


def test_saved_models_predict_the_same(fitted, tmp_path):
    X = steps()[0]
    fenchel.save(fitted, tmp_path / "model.skops")
    assert_array_equal(fenchel.load(tmp_path / "model.skops").predict(X), fitted.predict(X))
    again = clone(fitted).fit(*steps()[:2])
    assert_array_equal(again.predict(X), fitted.predict(X))


def test_held_out_residuals_are_those_of_searches_without_the_fold(fitted):
    X, Y, _ = steps()
    found = held_out_residuals(fitted, X, Y, cv=2).values
    for inside, outside in whole_folds(training_set_of(fitted.best_estimator_, X, Y).sample.contents(), 2):
        alone = OperatorKernelRegressorCV().fit(X[inside], Y[inside])
        assert_allclose(found[outside], Y[outside] - alone.predict(X[outside]), atol=1e-12)


def test_leave_one_out_bands_have_a_smooth_kernel(fitted):
    X, Y, _ = steps()
    model = ConformalRegressor(method="jackknife+").fit(X, Y)
    assert not model.estimator_.best_kernel_.tags.sees_outputs
    with pytest.raises(IncompatibleError, match="leaves=False"):
        left_out_models(fitted, X, Y)


@pytest.mark.parametrize("change", [{"cv": "loo"}, {"metric": np.ones(4)}, {"kernel": "gaussian"}])
def test_trees_are_not_compared_where_folds_or_the_kernel_are_given(change):
    X, Y, _ = steps(60)
    model = OperatorKernelRegressorCV(**change).fit(X, Y)
    assert model.search_ is None or weights_of(model) is None
