"""The models of outlying curves have the moments that their formulas say."""

import numpy as np
import pytest
from benchmarks.outlying_curves import make_functional_outliers


def parts(model, n=4000, m=11):
    data = make_functional_outliers(model, n, m, share=0.5, random_state=0)
    return data.t, data.Y[~data.is_outlier], data.Y[data.is_outlier]


@pytest.mark.parametrize("model", range(1, 20))
def test_shapes_and_shares(model):
    data = make_functional_outliers(model, 50, 12, random_state=0)
    assert data.Y.shape == (50, 12) and data.is_outlier.sum() == 5 and np.isfinite(data.Y).all()
    assert np.array_equal(data.Y, make_functional_outliers(model, 50, 12, random_state=0).Y)
    assert not make_functional_outliers(model, 10, 5, share=0.0, random_state=0).is_outlier.any()


def test_covariances_and_means():
    t, correct, rougher = parts(5)
    np.testing.assert_allclose(correct.mean(axis=0), 4 * t, atol=0.1)
    np.testing.assert_allclose(np.cov(correct.T), np.exp(-np.abs(t[:, None] - t)), atol=0.1)
    np.testing.assert_allclose(np.cov(rougher.T), 5 * np.exp(-2 * np.abs(t[:, None] - t) ** 0.5), atol=0.5)
    t, correct, reversed_ones = parts(4)
    np.testing.assert_allclose(correct.mean(axis=0), reversed_ones.mean(axis=0)[::-1], atol=0.1)
    t, correct, shifted = parts(13)
    np.testing.assert_allclose(correct.mean(axis=0), 2 * np.sin(15 * np.pi * t), atol=0.1)
    np.testing.assert_allclose(shifted.mean(axis=0), 2 * np.sin(15 * np.pi * t + 4), atol=0.1)
    t, correct, jumping = parts(18)
    np.testing.assert_allclose(correct.mean(axis=0), np.arctan(t), atol=0.15)
    np.testing.assert_allclose(np.diff(jumping.mean(axis=0))[5], -1 + np.log(2) * np.diff(np.arctan(t))[5], atol=0.05)


def test_circles_lie_in_different_planes():
    _, correct, outliers = parts(19, m=40)
    values = [np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) for rows in (correct, outliers)]
    assert all(one[1] > 2 * one[2] for one in values)
    axes = [np.linalg.svd(rows - rows.mean(axis=0))[2][:2] for rows in (correct[:300], outliers[:300])]
    assert np.linalg.svd(axes[0] @ axes[1].T)[1].min() < 0.9
