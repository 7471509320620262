"""A sample given twice is one of weight 2, also where the kernel is chosen by leaving samples out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.utils import estimator_checks

from fenchel import (
    FunctionalRegressorCV,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressor,
    QuantileFunctionRegressorCV,
)
from fenchel._statistics import repeats_of
from fenchel.kernels import Gaussian, Laplacian


@pytest.fixture
def repeated(rng):
    X = rng.standard_normal((30, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.2 * rng.standard_normal((30, 2))
    weights = np.where(np.arange(30) % 2, 1, 2)
    return X, Y, weights, np.repeat(np.arange(30), weights)


@pytest.mark.parametrize("losses", ["auto", "square", "huber"])
def test_the_race_of_kernels(repeated, losses):
    X, Y, weights, index = repeated
    model = OperatorKernelRegressorCV(kernel="auto", losses=losses, lams=[1e-2], tol=1e-12)
    wanted = model.fit(X, Y, sample_weight=weights).predict(X)
    kernel = repr(model.best_estimator_.kernel)
    assert_allclose(model.fit(X[index], Y[index]).predict(X), wanted, rtol=0, atol=1e-6)
    assert repr(model.best_estimator_.kernel) == kernel


def test_repeats_of_two_groups_are_left_out_with_their_groups(repeated):
    X, Y, _, _ = repeated
    groups = np.concatenate([np.arange(30) // 3, 10 + np.arange(30) // 3])
    model = OperatorKernelRegressorCV(kernel="auto", losses="square", lams=[1e-2], cv=2)
    model.fit(np.vstack([X, X]), np.vstack([Y, Y]), groups=groups)
    shuffled = model.best_estimator_.kernel
    model.fit(np.vstack([X, X]), np.vstack([Y, Y]), groups=np.tile(np.arange(30) // 3, 2))
    assert repr(shuffled) != repr(model.best_estimator_.kernel)


def test_the_race_of_kernels_for_curves_with_holes(repeated):
    X, _, weights, index = repeated
    curves = np.sin(X[:, :1] + np.linspace(0, 1, 8))
    curves[3, 2] = curves[4, 5] = np.nan
    model = FunctionalRegressorCV(kernel="auto", losses="auto", lams=[1e-2], tol=1e-10)
    wanted = model.fit(X, curves, sample_weight=weights).predict(X)
    assert_allclose(model.fit(X[index], curves[index]).predict(X), wanted, rtol=0, atol=1e-4)


def test_the_kernels_that_are_compared_on_curves_with_points_of_their_own(repeated, rng):
    """The rivals of the winner are those of the distinct samples; with none, gamma was a quarter of the best."""
    X, _, weights, index = repeated
    points = [np.sort(rng.uniform(0, 1, 6)) for _ in X]
    pairs = [(t, np.sin(3 * t + row[0]) * (1 + row[1])) for t, row in zip(points, X, strict=True)]
    model = FunctionalRegressorCV(output_kernel=Laplacian(10.0), losses="square", lams=[1e-6], cv=KFold(2))
    wanted = model.fit(X, pairs, sample_weight=weights).best_kernel_
    start = int(np.sum(weights[:15]))  # the same folds
    model.cv = PredefinedSplit(np.arange(len(index)) < start)
    assert repr(model.fit(X[index], [pairs[i] for i in index]).best_kernel_) == repr(wanted)


def three_folds(index):
    """Three folds, the same ones whether samples are given twice or not."""
    return PredefinedSplit(index % 3)


@pytest.mark.parametrize("is_gram", [False, True])
def test_the_pilot_of_quantiles(repeated, is_gram):
    """Its regressions leave samples out: a copy gave away the output."""
    X, Y, weights, index = repeated
    inputs, again = (X @ X.T, X[index] @ X[index].T) if is_gram else (X, X[index])
    model = QuantileFunctionRegressor("precomputed" if is_gram else Gaussian(0.5), levels=5, pilot=True, tol=1e-9)
    wanted = model.fit(inputs, Y, sample_weight=weights).predict(inputs)
    found = model.fit(again, Y[index]).predict(X @ X[index].T if is_gram else X)
    assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_the_search_for_quantiles(repeated):
    X, Y, weights, index = repeated
    one = QuantileFunctionRegressorCV(levels=5, cv=three_folds(np.arange(30))).fit(X, Y[:, 0], sample_weight=weights)
    other = QuantileFunctionRegressorCV(levels=5, cv=three_folds(index)).fit(X[index], Y[index, 0])
    assert repr(one.best_kernel_) == repr(other.best_kernel_)
    assert_allclose(other.cv_errors_, one.cv_errors_, rtol=1e-3)


def test_the_check_of_scikit_learn():
    model = OperatorKernelRegressorCV(kernel="auto", lams=[1e-2], tol=1e-12)
    estimator_checks.check_sample_weight_equivalence_on_dense_data("OperatorKernelRegressorCV", model)


def test_repeats():
    assert repeats_of(np.arange(6.0).reshape(3, 2)) is None
    first, which = repeats_of(np.array([[3.0], [np.nan], [3.0], [1.0], [np.nan]]))
    assert first.tolist() == [0, 1, 3] and which.tolist() == [0, 1, 0, 2, 1]
