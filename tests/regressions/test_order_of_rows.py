"""Shuffled rows give the same model: folds, subsamples and landmarks are drawn from what samples contain."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from fenchel import (
    ConformalPredictor,
    ConformalRegressor,
    FunctionalRegressorCV,
    LearnedMetricRegressor,
    LossTrickPredictor,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    OutlierReport,
    QuantileFunctionRegressorCV,
    RobustRefit,
    StructuredPredictorCV,
)
from fenchel.approximations import Nystrom, PSparsified
from fenchel.datasets import make_functional
from fenchel.kernels import Gaussian

_ROUND_OFF = 1e-7  # of predictions, in deviations of the outputs: fits end at a gap of 1e-10, whose root this is


def sample(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 3)) * [1, 1000, 0.01]
    Y = np.column_stack([np.sin(6 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.standard_normal((n, 2))
    Y[::17] += 3
    return X, Y


def curves(n):
    data = make_functional(n, 12, random_state=0)
    return data.X, data.Y


def labels(n):
    X, Y = sample(n)
    return X, (Y > 0.5).astype(int)


def one_output(n):
    X, Y = sample(n)
    return X, Y[:, 0]


def with_gaps(n):
    X, Y = sample(n)
    return X, np.where(np.random.default_rng(1).random(Y.shape) < 0.3, np.nan, Y)


def gram(n):
    X, Y = sample(n)
    return Gaussian(1.0)(X * [1, 1e-3, 100]), np.round(Y)  # equal outputs: the matrix itself tells samples apart


CASES = {
    "vectors": (OperatorKernelRegressorCV(tol=1e-10), sample, 60),
    "a race on parts of the sample": (OperatorKernelRegressorCV(tol=1e-10), sample, 230),
    "missing outputs": (OperatorKernelRegressorCV(tol=1e-10), with_gaps, 50),
    "a Gram matrix": (OperatorKernelRegressorCV("precomputed", tol=1e-10), gram, 50),
    "curves": (FunctionalRegressorCV(tol=1e-10), curves, 40),
    "labels": (StructuredPredictorCV(), labels, 60),
    "quantiles": (QuantileFunctionRegressorCV(tol=1e-10), one_output, 50),
    "loss trick": (LossTrickPredictor(), sample, 60),
    "bands": (ConformalRegressor(OperatorKernelRegressorCV(tol=1e-10)), sample, 60),
    "bands of folds": (ConformalRegressor(OperatorKernelRegressor("auto"), method="cv+"), sample, 50),
    "sets": (ConformalPredictor(), labels, 60),
    "outliers left out": (RobustRefit(OperatorKernelRegressorCV(tol=1e-10)), sample, 50),
    "a learned metric": (LearnedMetricRegressor(OperatorKernelRegressorCV(tol=1e-10), max_rounds=1), sample, 40),
    "a median of distances of more than 1000": (OperatorKernelRegressor("auto"), sample, 1100),
    "landmarks": (OperatorKernelRegressor("auto", approximation=Nystrom(20)), sample, 120),
    "landmarks of large leverage": (
        OperatorKernelRegressor("auto", approximation=Nystrom(20, "leverage")),
        sample,
        120,
    ),
    "a sampled certificate": (
        OperatorKernelRegressor("auto", approximation=Nystrom("auto"), certificate="sampled"),
        sample,
        120,
    ),
    "a sketch": (OperatorKernelRegressor("auto", approximation=PSparsified(20)), sample, 120),
}


def predicted(estimator, X, Y, new):
    """Return all that a fitted estimator predicts, as rows of numbers."""
    model = estimator.fit(X, Y)
    found = [np.asarray(model.predict(new), dtype=float).reshape(len(new), -1)]
    if isinstance(estimator, ConformalRegressor):
        band = model.predict_interval(new)
        found += [band.lower, band.upper]
    if isinstance(estimator, ConformalPredictor):
        found.append(np.array(model.predict_set(new).size)[:, None])
    return np.hstack(found)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_shuffled_rows(name):
    estimator, make, n = CASES[name]
    X, Y = make(n)
    order = np.random.default_rng(5).permutation(n)
    is_gram = estimator.__sklearn_tags__().input_tags.pairwise
    new, moved = X[:20], X[order]
    wanted = predicted(estimator, X, Y, new)
    if is_gram:
        new, moved = new[:, order], moved[:, order]
    scale = np.nanstd(np.asarray(Y, dtype=float))
    assert_allclose(predicted(estimator, moved, Y[order], new), wanted, rtol=0, atol=_ROUND_OFF * scale)


def test_shuffled_rows_of_a_report():
    X, Y = sample(60)
    order, model = np.random.default_rng(5).permutation(60), OperatorKernelRegressorCV(tol=1e-11)
    first = OutlierReport.of(model.fit(X, Y), X, Y)
    second = OutlierReport.of(model.fit(X[order], Y[order]), X[order], Y[order])
    assert_allclose(second.scores, first.scores[order], rtol=1e-3)  # duals are accurate to the root of the gap


def test_groups_of_any_order_and_name():
    X, Y = sample(60)
    groups, order = np.arange(60) // 3, np.random.default_rng(5).permutation(60)
    names = np.random.default_rng(6).permutation(20)[groups]
    search = OperatorKernelRegressorCV(losses="square")
    for model in (search, ConformalRegressor(search)):
        wanted = model.fit(X, Y, groups=groups).predict(X[:10])
        found = model.fit(X[order], Y[order], groups=names[order]).predict(X[:10])
        assert_allclose(found, wanted, rtol=0, atol=_ROUND_OFF)


def test_a_splitter_that_is_given_sees_rows_as_given():
    X, Y = sample(60)
    order = np.random.default_rng(5).permutation(60)
    model = OperatorKernelRegressorCV(cv=KFold(5), losses="square")
    first, second = model.fit(X, Y).fold_errors_, model.fit(X[order], Y[order]).fold_errors_
    assert np.max(np.abs(first / second - 1)) > 0.01
