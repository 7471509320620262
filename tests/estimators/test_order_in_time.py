"""Samples in time: searches hold out blocks of them."""

import numpy as np
import pytest

from fenchel import (
    ConformalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressorCV,
    QuantileFunctionRegressorCV,
    StructuredPredictorCV,
)
from fenchel.resample.folds import blocks_of


def series(n, seed):
    """Return a slow function of a slow input, with errors that wander."""
    rng = np.random.default_rng(seed)
    times = np.datetime64("2026-01-01") + np.arange(n)
    X = np.stack([np.sin(np.arange(n) / 30), np.arange(n) / n], axis=1)
    drift = np.zeros(n)
    for k in range(1, n):
        drift[k] = 0.8 * drift[k - 1] + rng.normal(0, 0.5)
    return times, X, X[:, 0], X[:, 0] + drift


@pytest.mark.parametrize(("n", "count"), [(30, 10), (400, 20), (5000, 100)])
def test_blocks_follow_one_another_and_keep_equal_times_together(n, count):
    blocks = blocks_of(np.arange(n)[::-1] / 7, None, np.zeros(n))
    assert np.all(np.diff(blocks) <= 0)
    assert len(np.unique(blocks)) == count
    sizes = np.bincount(blocks)
    assert sizes.max() - sizes.min() <= 1
    assert len(np.unique(blocks_of(np.repeat([0, 1, 2], n // 3), None, np.zeros(n // 3 * 3)))) == 3


def test_blocks_give_smoother_models_of_wandering_errors():
    errors = []
    for seed in range(4):
        times, X, truth, y = series(200, seed)
        shuffled = np.random.default_rng(seed).permutation(200)
        model = OperatorKernelRegressorCV(losses="square")
        plain, ordered = model.fit(X, y).predict(X), model.fit(X[shuffled], y[shuffled], order=times[shuffled])
        errors.append([np.mean((each - truth) ** 2) for each in (plain, ordered.predict(X))])
    plain, ordered = np.mean(errors, axis=0)
    assert ordered < 0.8 * plain


@pytest.mark.parametrize(
    ("search", "outputs"),
    [
        (OperatorKernelRegressorCV(losses="square"), lambda y: y),
        (FunctionalRegressorCV("gaussian", lams=[1e-3, 1e-1], losses="square"), lambda y: np.outer(y, [1.0, 2.0, 3.0])),
        (StructuredPredictorCV("gaussian", lams=[1e-3, 1e-1]), lambda y: np.stack([y > 0, y > 1], axis=1).astype(int)),
        (QuantileFunctionRegressorCV("gaussian", lams=[1e-2, 1.0], levels=3), lambda y: y),
    ],
    ids=lambda value: type(value).__name__,
)
def test_order_is_that_of_groups_of_blocks(search, outputs):
    times, X, _, y = series(60, 0)
    ordered = search.fit(X, outputs(y), order=times).predict(X)
    blocks = search.fit(X, outputs(y), groups=np.arange(60) // 6).predict(X)
    assert np.array_equal(ordered, blocks)


def test_what_order_must_be():
    times, X, _, y = series(40, 0)
    with pytest.raises(ValueError, match="either groups or order"):
        OperatorKernelRegressorCV().fit(X, y, groups=np.arange(40), order=times)
    with pytest.raises(ValueError, match=r"order has 1 different time, and 1 block .*; 5 folds need at least 5"):
        OperatorKernelRegressorCV().fit(X, y, order=np.zeros(40))


@pytest.mark.parametrize(
    "model", [OperatorKernelRegressorCV(), ConformalRegressor()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda times: np.where(np.arange(40) % 2, times, np.datetime64("NaT")), "20 of 40 are missing, .* at index 0"),
        (lambda times: pytest.importorskip("pandas").Series(times).where(np.arange(40) != 3), "1 of 40 .* index 3"),
        (lambda times: [None, *range(39)], "1 of 40 are missing, the first at index 0"),
        (lambda times: [0.5, np.nan, *range(38)], "1 of 40 are missing, the first at index 1"),
        (lambda times: np.append(np.arange(39), np.inf), "1 of 40 are infinite, the first at index 39"),
        (lambda times: [f"{k % 12 + 1}/1/2020" for k in range(40)], r"text, such as '1/1/2020'.*pandas\.to_datetime"),
        (lambda times: [times[0].item(), *range(39)], "cannot be compared"),
        (lambda times: times[:30], r"Its shape must be \(40,\). Got \(30,\)"),
    ],
    ids=["NaT", "pandas", "None", "NaN", "infinite", "text", "mixed", "short"],
)
def test_times_are_neither_missing_nor_infinite_nor_text(model, change, said):
    times, X, _, y = series(40, 0)
    with pytest.raises(ValueError, match=f"order must have one time or number for each sample.*{said}"):
        model.fit(X, y, order=change(times))
