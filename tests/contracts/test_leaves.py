"""The kernel of trees against scikit-learn's own leaves, and what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor

from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Gaussian, Leaves, Standardized
from fenchel.kernels.derivatives import weighted_gradient


def data(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, :2] > 0).astype(float)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_places_are_the_leaves_of_the_forest(bootstrap):
    X, Y = data()
    forest = ExtraTreesRegressor(7, min_samples_leaf=3, bootstrap=bootstrap, random_state=0).fit(X, Y)
    new = data(40, seed=1)[0]
    kernel = Leaves.of(forest.estimators_)
    assert_array_equal(kernel.places(new) - kernel.roots, forest.apply(new))
    same = forest.apply(new)[:, None] == forest.apply(X)[None]
    assert_allclose(kernel(new, X), same.mean(axis=2), rtol=0, atol=1e-15)
    assert_array_equal(kernel.diag(new), 1.0)


def test_trees_of_boosting_are_taken_too():
    X, Y = data()
    model = GradientBoostingRegressor(n_estimators=4, random_state=0).fit(X, Y[:, 0])
    same = model.apply(X)[:, None] == model.apply(X)[None]
    assert_allclose(Leaves.of(model.estimators_)(X), same.mean(axis=2), rtol=0, atol=1e-15)


def test_new_inputs_need_the_columns_of_the_trees():
    X, Y = data()
    kernel = Leaves.of(ExtraTreesRegressor(3, random_state=0).fit(X, Y).estimators_)
    with pytest.raises(ValueError, match="X must have at least 3 columns"):
        kernel(X[:, :2])


def test_arrays_that_are_no_trees_are_refused():
    with pytest.raises(ValueError, match=r"with places of nodes. Got shapes \(1,\), \(1,\), \(1, 2\), \(1,\)"):
        Leaves([0], [0.5], [[1, 2]], [0])(np.zeros((2, 1)))


def test_the_tag_passes_to_kernels_made_of_it():
    (leaves,) = Leaves.examples()
    assert Standardized(Gaussian() + 0.5 * leaves).tags.sees_outputs
    assert (leaves * Gaussian()).tags.sees_outputs
    assert not Standardized(Gaussian() + Gaussian()).tags.sees_outputs


def test_the_derivative_is_zero_almost_everywhere():
    X = data()[0][:, :1]
    (leaves,) = Leaves.examples()
    weights = np.ones((60, 60))
    assert_array_equal(weighted_gradient(leaves, X, X, weights, almost_everywhere=True), 0 * X)
    with pytest.raises(IncompatibleError, match="is not smooth"):
        weighted_gradient(leaves, X, X, weights)
