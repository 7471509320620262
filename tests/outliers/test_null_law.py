"""P-values of outlyingness are those of samples in which nothing is wrong."""

import numpy as np
import pytest
from scipy.stats import binom, norm, rankdata

from fenchel import OperatorKernelRegressor, OutlierReport
from fenchel.kernels import Gaussian
from fenchel.outliers.null_law import NullLaw, NullTable
from fenchel.outliers.sizes import Sizes
from fenchel.resample.residuals import Residuals


def report_of(rows):
    return OutlierReport.of_residuals(Residuals(rows, None, rows.shape[1:]), is_marginal=False)


@pytest.mark.parametrize("n, freedom", [(12, np.inf), (12, 5), (30, np.inf), (30, 5)])
def test_nothing_is_flagged_more_often_than_the_rate_in_the_smallest_samples_of_one_output(n, freedom):
    """With tails as heavy as any that are covered, too; the fitted tails flag something far more often."""
    flags, raw, shares = [], [], []
    levels = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9])
    for seed in range(100):
        rng = np.random.default_rng([seed, n])
        report = report_of(rng.standard_normal((n, 1)) if np.isinf(freedom) else rng.standard_t(freedom, (n, 1)))
        flags.append(report.flagged(0.1).any())
        raw.append(report.suspects(0.1).any())
        shares.append(np.mean(report.p_values[:, None] <= levels, axis=0))
    assert np.mean(flags) <= 0.1 + 2 * np.sqrt(0.09 / 100)
    assert np.mean(raw) > np.mean(flags) + 0.05
    errors = np.std(shares, axis=0, ddof=1) / 10
    excess = (np.mean(shares, axis=0) - levels) / errors  # of small p-values, over all samples of each draw
    most = norm.isf(0.001 / len(levels))  # normal noise may have fewer: lighter tails are not known to be so
    assert np.all(excess <= most) and (np.isinf(freedom) or np.all(excess >= -most))


def test_nothing_is_flagged_more_often_than_the_rate_in_few_curves():
    draws = [np.random.default_rng(seed).standard_normal((15, 100)) for seed in range(8)]
    reports = [OutlierReport.of_curves(Y) for Y in draws]
    flags = sum(report.flagged(0.1).any() for report in reports)  # 5 of the seeds 0 to 47, and 3 of these
    assert flags <= binom.ppf(0.99, 8, 0.1)  # a normal bound on so few draws has a level of four per cent
    assert np.mean([report.suspects(0.1).any() for report in reports]) > 0.3
    Y = draws[0].copy()
    Y[3] += 4.0
    assert np.flatnonzero(OutlierReport.of_curves(Y).flagged(0.1)).tolist() == [3]


def test_a_p_value_is_a_rank_and_beyond_the_simulated_ones_a_line():
    simulated = np.sort(-np.random.default_rng(0).exponential(size=2000))
    table, asked = NullTable(simulated), np.sort(-np.random.default_rng(1).exponential(size=50))
    ranks = (rankdata(np.append(asked, simulated), "max")[:50] - np.arange(50)) / 2001  # without the others asked for
    is_inside = asked >= simulated[9]
    np.testing.assert_allclose(np.exp(table.log_p_values(asked))[is_inside], ranks[is_inside], rtol=1e-12)
    far = table.log_p_values(np.array([-20.0, -30.0]))  # exponential tails: log p is the tail itself
    np.testing.assert_allclose(far, [-20, -30], rtol=0.2)
    assert np.all(np.diff(table.log_p_values(np.linspace(-30, 0, 500))) >= 0)


def test_the_law_has_the_covariance_of_the_rows_and_tails_that_they_do_not_exclude():
    rng = np.random.default_rng(0)
    mixing = np.tril(rng.standard_normal((12, 12))) + 3 * np.eye(12)
    law = NullLaw.of(rng.standard_normal((1500, 12)) @ mixing.T)
    assert np.isinf(law.row_freedom) and np.isinf(law.value_freedom)
    drawn = np.cov(law.draw(40_000, rng), rowvar=False)
    np.testing.assert_allclose(drawn, mixing @ mixing.T, atol=0.12 * np.abs(mixing @ mixing.T).max())
    rows = rng.standard_normal((1500, 12)) / np.sqrt(rng.chisquare(4, (1500, 1)) / 4)
    assert NullLaw.of(rows).row_freedom == 5
    assert NullLaw.of(rng.standard_t(4, (1500, 12))).value_freedom == 5
    assert NullLaw.of(rng.standard_normal((12, 1))).row_freedom == 5  # twelve numbers exclude nothing


def test_noise_passes_through_leave_one_out_and_the_model_of_the_sizes():
    """Residuals of noise are those of one refit for each sample, over sizes that are near one for even noise."""
    rng = np.random.default_rng(0)
    X = np.linspace(-1, 1, 25)[:, None]
    model = OperatorKernelRegressor(Gaussian(1.0), lam=1e-2).fit(X, np.sin(3 * X[:, 0]) + rng.standard_normal(25))
    sizes = OutlierReport.of(model, X, np.sin(3 * X[:, 0]) + rng.standard_normal(25)).sizes
    assert isinstance(sizes, Sizes)
    noise = rng.standard_normal((4, 25, 2))
    found = sizes.residuals_of(noise)
    assert found.shape == noise.shape
    for k, i in ((0, 3), (2, 20)):
        rest = np.arange(25) != i
        refit = OperatorKernelRegressor(Gaussian(1.0), lam=1e-2).fit(X[rest], noise[k][rest])
        residual = noise[k, i] - refit.predict(X[i : i + 1])[0]
        np.testing.assert_allclose(found[k, i] / np.linalg.norm(found[k, i]), residual / np.linalg.norm(residual))
        assert 0.3 < np.linalg.norm(residual) / np.linalg.norm(found[k, i]) < 3
