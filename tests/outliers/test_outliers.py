"""Outliers are found by what a model of the other samples says of them, at the rate that is asked for."""

import matplotlib.figure
import numpy as np
import pytest
from benchmarks.outlying_curves import make_functional_outliers
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import false_discovery_control, median_abs_deviation, rankdata
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from fenchel import (
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    OutlierReport,
    RobustRefit,
    load,
    save,
)
from fenchel.datasets import make_functional, make_multioutput
from fenchel.exceptions import DataWarning
from fenchel.kernels import Gaussian
from fenchel.losses import EpsilonRidge, Huber
from fenchel.outliers.held_out_residuals import held_out_residuals
from fenchel.outliers.robust_refit import _last_that_is_better
from fenchel.outliers.scatter import Bulk, Form
from fenchel.outliers.tails import adjusted, conformal_p_values, log_tails, log_two_sided
from fenchel.resample.residuals import Residuals


def wrong_pairs(n=80, m=20, share=0.1, seed=0, noise=0.02):
    """Return curves and curves that depend on them, some of these exchanged, and which."""
    data = make_functional(n, m, noise=noise, random_state=seed)
    wrong = np.random.RandomState(seed).permutation(n)[: int(share * n)]
    Y = data.Y.copy()
    Y[wrong] = data.Y[np.roll(wrong, 1)]
    return data.X, Y, np.isin(np.arange(n), wrong)


def test_adjusted_p_values_are_those_of_benjamini_and_hochberg():
    p_values = np.random.default_rng(0).uniform(size=50) ** 3
    p_values[7] = p_values[3]
    np.testing.assert_allclose(adjusted(p_values), false_discovery_control(p_values))


def test_conformal_p_values_are_ranks():
    scores = np.random.default_rng(0).standard_normal(30)
    np.testing.assert_allclose(conformal_p_values(scores), rankdata(-scores) / 30)
    new = conformal_p_values(np.array([-9.0, scores[4], 9.0]), scores)
    np.testing.assert_allclose(new, [1.0, (1 + np.sum(scores >= scores[4])) / 31, 1 / 31])


def test_tails_are_those_of_the_distributions_that_are_named():
    np.testing.assert_allclose(np.exp(log_two_sided(np.array([0.0, 2.228138852]))), [1.0, 0.05])  # a table of t, 10
    deviates = np.array([[1.0, 1.644853627], [0.0, -1.0]])
    np.testing.assert_allclose(np.exp(log_tails(deviates, 2, is_heavy=False)), [0.1, 1.0])
    np.testing.assert_allclose(np.exp(log_tails(deviates + 0.167607496, 2, is_heavy=True))[0], 0.1)


@pytest.mark.parametrize("loss", ["square", Huber(0.2)])
def test_scores_and_p_values_are_those_of_one_refit_for_each_fold(loss):
    data = make_multioutput(24, 3, random_state=0)
    model = OperatorKernelRegressor(loss=loss, lam=1e-2, tol=1e-10).fit(data.X, data.Y)
    report = OutlierReport.of(model, data.X, data.Y, cv=24)
    rows = np.empty_like(data.Y)
    for i in range(24):
        rest = np.arange(24) != i
        kernel = model.model_.expansion.kernel.terms[0][0]  # the bandwidth is that of the whole sample
        refit = clone(model).set_params(kernel=kernel).fit(data.X[rest], data.Y[rest])
        rows[i] = data.Y[i] - refit.predict(data.X[i : i + 1])[0]
    np.testing.assert_allclose(report.residuals, rows, atol=1e-4)
    brute = OutlierReport.of_residuals(Residuals(rows, None, (3,)), False, report.sizes)
    np.testing.assert_allclose(report.conformal_p_values, brute.conformal_p_values)
    np.testing.assert_allclose(report.p_values, brute.p_values, rtol=1e-2, atol=1e-12)


def test_one_at_a_time_is_the_default_of_the_square_loss():
    data = make_multioutput(20, 2, random_state=0)
    model = OperatorKernelRegressor(lam=1e-2).fit(data.X, data.Y)
    np.testing.assert_allclose(
        OutlierReport.of(model, data.X, data.Y).residuals, OutlierReport.of(model, data.X, data.Y, cv=20).residuals
    )


def test_curves_are_compared_in_their_own_units_and_where_they_were_observed():
    data = make_functional(30, 15, random_state=0)
    Y = 100 + 1000 * data.Y
    Y[2, 3:6] = np.nan
    model = FunctionalRegressor(lam=1e-3, center="median", scale="robust").fit(data.X, Y)
    held = held_out_residuals(model, data.X, Y, 5)
    others = held_out_residuals(_Plain(model), data.X, Y, 5)
    assert np.array_equal(np.isnan(held.values), np.isnan(Y))
    assert np.nanmax(np.abs(held.values - others.values)) < 0.3 * np.nanstd(Y)  # centre and bandwidth differ a little
    report = OutlierReport.of(model, data.X, Y)
    assert report.flagged_points().shape == Y.shape and not report.flagged_points()[2, 3:6].any()


class _Plain:
    """A regressor of which nothing is known but fit and predict."""

    def __init__(self, inner):
        self.inner = inner

    def get_params(self, deep=True):
        return {"inner": self.inner}

    def fit(self, X, y):
        self.fitted_ = clone(self.inner).fit(X, y)
        self.grid_ = self.fitted_.grid_
        return self

    def predict(self, X, grid=None):
        return self.fitted_.predict(X, grid)

    def __sklearn_tags__(self):
        return self.inner.__sklearn_tags__()


def test_wrong_pairs_are_seen_by_residuals_and_not_by_the_curves_alone():
    X, Y, is_wrong = wrong_pairs()
    report = OutlierReport.of(FunctionalRegressor(loss=Huber("auto"), lam=1e-4).fit(X, Y), X, Y)
    assert roc_auc_score(is_wrong, report.scores) >= 0.99
    assert report.flagged()[is_wrong].all()
    assert 0.3 < roc_auc_score(is_wrong, OutlierReport.of_curves(Y).scores) < 0.7


def test_points_of_a_curve_are_found():
    """The curve is the first of 80 for most places of the wrong value; the value is always flagged."""
    ranks = []
    for row in range(0, 80, 8):
        X, Y, _ = wrong_pairs(share=0.0)
        Y[row, 7] += 1.0
        report = OutlierReport.of(FunctionalRegressor(loss=Huber("auto"), lam=1e-4).fit(X, Y), X, Y)
        ranks.append(int(np.flatnonzero(report.ranking == row)[0]))
        assert np.unravel_index(np.nanargmax(np.abs(report.residuals)), Y.shape) == (row, 7)
        assert report.flagged_points(0.05)[row, 7]
    assert sorted(ranks)[:7] == [0] * 7


def test_the_false_discovery_rate_of_gaussian_residuals():
    rng = np.random.default_rng(0)
    false, found = [], []
    for _ in range(10):
        rows = rng.standard_normal((100, 3)) @ np.diag([1.0, 10.0, 100.0])
        rows[:10] += np.array([8.0, 80.0, -800.0])
        flags = OutlierReport.of_residuals(Residuals(rows, None, (3,)), is_marginal=False).flagged(0.1)
        false.append(flags[10:].sum() / max(1, flags.sum()))
        found.append(flags[:10].mean())
    assert np.mean(false) <= 0.1 + 2 * np.std(false) / np.sqrt(10)
    assert np.mean(found) > 0.95


@pytest.mark.parametrize("model, least", [(1, 0.99), (2, 0.99), (5, 0.99), (7, 0.99), (19, 0.99)])
def test_curves_that_are_unlike_the_others_are_found(model, least):
    data = make_functional_outliers(model, 100, 40, random_state=0)
    assert roc_auc_score(data.is_outlier, OutlierReport.of_curves(data.Y, data.t).scores) >= least


def test_curves_just_outside_of_the_others_are_seen_by_their_size():
    data = make_functional_outliers(9, 200, 40, random_state=0)
    found = OutlierReport.of_curves(data.Y, data.t).outlyingness
    assert roc_auc_score(data.is_outlier, found.deviates[:, found.names.index("size")]) >= 0.99
    scale = median_abs_deviation(data.Y, axis=0, scale="normal")
    squares = ((data.Y - np.median(data.Y, axis=0)) / scale) ** 2
    statistics = Bulk.of(data.Y, Form((40,), True, True), 10).statistics(data.Y)
    np.testing.assert_allclose(statistics["size"] ** 3, squares.mean(axis=1))
    assert "size" not in Bulk.of(data.Y, Form((40,), True, False), 10).statistics(data.Y)


def test_scores_do_not_depend_on_units():
    data = make_functional_outliers(7, 60, 20, random_state=0)
    scores = [
        OutlierReport.of_curves(factor * data.Y + shift).scores for factor, shift in ((1, 0), (1e6, 3), (1e-6, 0))
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-5)
    np.testing.assert_allclose(scores[2], scores[0], rtol=1e-5)


def test_curves_that_are_nearly_all_the_same_give_numbers():
    Y = np.zeros((30, 10))
    Y[4] = 1.0
    report = OutlierReport.of_curves(Y)
    assert np.isfinite(report.scores).all() and report.ranking[0] == 4
    assert np.flatnonzero(report.flagged()).tolist() == [4]


def test_new_samples_are_compared_with_those_of_the_fit():
    X, Y, _ = wrong_pairs(share=0.0)
    model = FunctionalRegressor(loss=Huber("auto"), lam=1e-4).fit(X[:60], Y[:60])
    report = OutlierReport.of(model, X[:60], Y[:60])
    new = Y[60:].copy()
    new[3] = Y[60]
    found = report.of_new(X[60:], new)
    assert found.ranking[0] == 3 and found.conformal_p_values[3] == 1 / 61
    with pytest.raises(ValueError, match="has no model"):
        OutlierReport.of_curves(Y).of_new(X, Y)


def test_the_report_in_words_tables_and_pictures():
    X, Y, _ = wrong_pairs()
    report = OutlierReport.of(FunctionalRegressor(loss=Huber("auto"), lam=1e-4).fit(X, Y), X, Y)
    table = report.table()
    assert table["score"][0] == report.scores.max() and set(table["sample"]) == set(range(80))
    assert table["flagged"].sum() == report.flagged().sum()
    assert {"dual_norm", "saturation"} <= set(table.dtype.names)
    assert repr(report).startswith(f"OutlierReport: {report.flagged().sum()} of 80 samples flagged")
    for draw in (report.plot, report.plot_curves):
        assert draw() is not None
        ax = matplotlib.figure.Figure().subplots()
        assert draw(ax, fdr=0.05) is ax and "flagged" in ax.get_title()
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(report.table(as_frame=True), pandas.DataFrame(table))


def test_the_output_that_is_wrong_is_named():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = np.linspace(-2, 2, 60)[:, None]
    Y = np.hstack([np.sin(X), 1000 * np.cos(X)]) + rng.standard_normal((60, 2)) * [0.05, 50.0]
    Y[15, 0] += 1.0
    Y[30, 1] -= 1000.0
    Y[45] += [1.0, 1000.0]
    model = OperatorKernelRegressor(loss="huber", lam=1e-4, center=True, scale=True).fit(X, Y)
    report = OutlierReport.of(model, X, pandas.DataFrame(Y, columns=["temperature", "pressure"]))
    table = report.table()
    named = dict(zip(table["sample"].tolist(), table["outputs"].tolist(), strict=True))
    assert (named[15], named[30], named[45]) == ("temperature", "pressure", "temperature, pressure")
    assert "temperature, pressure" in repr(report)
    assert OutlierReport.of(model, X, Y).wrong_outputs()[15] == "output 0"
    assert OutlierReport.of_residuals(Residuals(Y[:, :1], None, ()), False).wrong_outputs() is None


def test_single_wrong_values_are_listed():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = np.linspace(-2, 2, 60)[:, None]
    Y = np.hstack([np.sin(X), 1000 * np.cos(X), X**2]) + rng.standard_normal((60, 3)) * [0.05, 50.0, 0.05]
    Y[15, 0] += 1.0
    Y[30, 1] -= 2000.0
    Y[40, 0] = np.nan
    model = OperatorKernelRegressor(loss=Huber("auto"), lam=1e-4, center=True, scale=True).fit(X, Y)
    index = pandas.Index([f"day {k}" for k in range(60)])
    report = OutlierReport.of(model, X, pandas.DataFrame(Y, index, columns=["a", "b", "c"]))
    table = report.cells(as_frame=True)
    assert list(zip(table.index, table["output"], strict=True))[:2] == [("day 30", "b"), ("day 15", "a")]
    assert table["p_value"].is_monotonic_increasing and len(table) == np.sum(report.flagged_points())
    deviates = report.outlyingness.at_points(report.residuals / report.expected_sizes[:, None])
    assert_allclose(table["p_value"].iloc[0], 2 * student.sf(np.abs(deviates[30, 1]), 10), rtol=1e-9)
    assert np.isnan(report.value_p_values[40, 0]) and np.isnan(report.value_p_values).sum() == 1
    assert_allclose(report.cells()["residual"][0], report.residuals[30, 1])


def test_of_many_wrong_outputs_the_most_deviating_are_named():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 1))
    Y = np.sin(X + np.linspace(0, 1, 200)) + 0.1 * rng.standard_normal((60, 200))
    Y[5] += 3
    Y[5, [7, 70]] += 30
    report = OutlierReport.of(OperatorKernelRegressor(Gaussian(1.0)).fit(X, Y), X, Y)
    named = report.wrong_outputs()[5]
    assert "output 7, " in named and "output 70" in named and named.endswith(" and 195 more")
    assert max(map(len, repr(report).splitlines())) < 300


def test_sparse_inputs_of_a_model_without_support():
    X = sparse.random_array((30, 4), density=0.5, random_state=0).tocsr()
    y = np.asarray(X.sum(axis=1)).ravel()
    model = OperatorKernelRegressor(Gaussian(0.3), loss=EpsilonRidge(100.0)).fit(X, y)
    assert not len(model.support_)
    assert len(OutlierReport.of(model, X, y)) == 30


def test_what_is_wrong_is_named():
    X, Y, _ = wrong_pairs(20)
    model = FunctionalRegressor().fit(X, Y)
    with pytest.raises(ValueError, match="the same number of samples"):
        OutlierReport.of(model, X, Y[:-1])
    with pytest.raises(ValueError, match="'cv' parameter"):
        OutlierReport.of(model, X, Y, cv=1)
    with pytest.raises(ValueError, match="mask of 20 samples"):
        OutlierReport.of(model, X, Y, fitted=[True])
    with pytest.raises(ValueError, match="'fdr' parameter"):
        OutlierReport.of(model, X, Y).flagged(0.0)
    for other, mask in ((X[::-1], None), (X, [True] * 19 + [False])):
        with pytest.raises(ValueError, match="fitted to, in their order"):
            OutlierReport.of(model, other, Y, fitted=mask)
    with pytest.raises(ValueError, match="at least 10 samples"):
        OutlierReport.of_curves(Y[:5])
    with pytest.raises(ValueError, match="no curves"):
        OutlierReport.of_residuals(Residuals(Y, None, (20,)), False).plot_curves()
    for name in ("fdr", "trim"):
        with pytest.raises(ValueError, match=f"'{name}' parameter of RobustRefit"):
            RobustRefit(**{name: 2.0}).fit(X, Y)


def test_a_second_fit_undoes_most_of_what_wrong_samples_did():
    X, Y, is_wrong = wrong_pairs(120, noise=0.1)
    clean, test = (make_functional(120, 20, noise=0.1, random_state=seed) for seed in (0, 1))

    def error(model):
        return np.mean((model.predict(test.X) - test.truth) ** 2)

    machine = FunctionalRegressorCV(None, losses=[Huber("auto")], lams=[1e-5, 1e-4, 1e-3], center="median")
    model = RobustRefit(machine, max_rounds=2).fit(X, Y)
    assert model.is_outlier_[is_wrong].mean() > 0.9 and model.is_outlier_[~is_wrong].sum() <= 2
    assert error(model) <= 1.15 * error(clone(machine).fit(clean.X, clean.Y))
    assert max(model.first_estimator_.duality_gap_, model.estimator_.duality_gap_) <= 1e-6
    assert clone(model).get_params()["fdr"] == 0.1 and model.score(test.X, test.Y) > 0.9


def test_a_fit_takes_the_place_of_another_if_it_is_clearly_better():
    start = np.array([1.0, 3.0, 1.0, 3.0])
    clear = start - np.array([0.4, 0.6, 0.4, 0.6])  # .5 less, with a standard error of .05
    unclear = start - np.array([0.5, -0.3, 0.5, -0.3])  # .1 less, with a standard error of .2
    assert _last_that_is_better({"all": start, "unflagged": start, "trimmed": start}) == "all"
    assert _last_that_is_better({"all": start, "unflagged": unclear}) == "all"
    assert _last_that_is_better({"all": start, "unflagged": clear, "trimmed": clear + 0.1}) == "unflagged"
    assert _last_that_is_better({"all": start, "unflagged": start + 1, "trimmed": clear}) == "trimmed"
    start = np.tile(start, 10)
    hard = start + np.tile([-0.5, 0.2], 20)  # less in the mean, and more in the mean square
    assert _last_that_is_better({"all": start, "unflagged": hard}) == "unflagged"
    assert _last_that_is_better({"all": start, "trimmed": hard}) == "all"
    wrong = np.append(start, 20.0), np.append(start - 0.1, 30.0)  # a scale of 2 * 1.48: both are certainly wrong
    assert _last_that_is_better(dict(zip(("all", "trimmed"), wrong, strict=True))) == "trimmed"


def test_a_second_fit_that_is_not_better_is_not_kept():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.standard_normal(60)
    model = RobustRefit(Ridge(1e-3), cv=5).fit(X, y)
    assert model.kept_fit_ == "all" and set(model.errors_) >= {"all", "trimmed"}
    assert model.estimator_ is model.first_estimator_ and not model.left_out_.any()
    y[:4] += 5
    model = RobustRefit(Ridge(1e-3), cv=5, trim=None).fit(X, y)
    assert model.kept_fit_ == "unflagged" and set(model.errors_) == {"all", "unflagged"}
    assert np.array_equal(model.left_out_, model.is_outlier_)
    rest = [i for i in range(60) if not model.left_out_[i]]
    held = [Ridge(1e-3).fit(X[train], y[train]).predict(X[test]) - y[test] for train, test in _parts(rest, y)]
    outside = Ridge(1e-3).fit(X[rest], y[rest]).predict(X[model.left_out_]) - y[model.left_out_]
    np.testing.assert_allclose(model.errors_["unflagged"], np.mean(np.abs(np.concatenate([*held, outside]))))
    other = RobustRefit(Ridge(1e-3), Ridge(1e-2), cv=5).fit(X[4:], y[4:])
    assert other.kept_fit_ == "all" and other.estimator_.alpha == 1e-2


def _parts(rest, y):
    """Return the places of the training and the test part of each of five folds of the samples sorted by output."""
    index = np.array(rest)[np.argsort(y[rest])]
    return [(index[a], index[b]) for a, b in KFold(5, shuffle=True, random_state=0).split(index)]


def test_a_share_of_the_samples_is_left_out_where_no_flag_sees_them():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (100, 1))
    y = X[:, 0] + 0.1 * rng.standard_normal(100)
    wrong = np.arange(100) < 10
    y[wrong] += 3
    model = RobustRefit(Ridge(), fdr=1e-9, cv=5).fit(X, y)
    assert not model.is_outlier_.any() and model.kept_fit_ == "trimmed"
    assert np.array_equal(model.left_out_, wrong)


def test_curves_with_a_grid_of_their_own():
    X, Y, _ = wrong_pairs(60, 12)
    grid = np.linspace(2, 5, 12)
    machine = FunctionalRegressor(loss=Huber("auto"), lam=1e-4)
    model = RobustRefit(machine).fit(X, Y, grid=grid)
    assert np.array_equal(model.report_.grid, grid) and np.array_equal(model.estimator_.grid_, grid)
    plain = clone(machine).fit(X[~model.left_out_], Y[~model.left_out_], grid=grid)
    np.testing.assert_allclose(model.predict(X[:3], grid=grid[:4]), plain.predict(X[:3], grid[:4]))


def test_a_second_fit_of_any_regressor_and_of_a_gram_matrix():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.standard_normal(60)
    y[:4] += 5
    model = RobustRefit(Ridge(1e-3), cv=5).fit(X, y)
    np.testing.assert_allclose(model.estimator_.coef_, [1.0, -2.0], atol=0.1)
    assert model.is_outlier_[:4].all() and model.report_.saturation is None
    gram = RobustRefit(OperatorKernelRegressor("precomputed", loss="huber", lam=1e-4), max_rounds=2).fit(X @ X.T, y)
    assert gram.is_outlier_[:4].all()
    np.testing.assert_allclose(gram.predict(X @ X.T), X @ [1.0, -2.0], atol=0.3)


def test_a_second_fit_is_saved_with_its_report(tmp_path):
    pytest.importorskip("skops.io")
    X = np.random.default_rng(0).uniform(-2, 2, (30, 1))
    model = RobustRefit(OperatorKernelRegressor(lam=1e-2)).fit(X, np.sin(X))
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert np.array_equal(loaded.report_.of_new(X, np.sin(X)).scores, model.report_.of_new(X, np.sin(X)).scores)


def scans_of_samples(seed, n_samples=40, n_scans=3):
    """Return scans of samples, two with a wrong reference value, the label of each scan, and which are wrong."""
    rng = np.random.default_rng(seed)
    latent, sample = rng.uniform(-2, 2, (n_samples, 3)), np.repeat(np.arange(n_samples), n_scans)
    y = latent[:, 0] + 0.5 * latent[:, 1] + 0.05 * rng.standard_normal(n_samples)
    y[[5, 20]] += [1.5, -1.5]
    return latent[sample] + 0.01 * rng.standard_normal((len(sample), 3)), y[sample], sample, np.isin(sample, [5, 20])


def test_replicates_do_not_vouch_for_each_other():
    X, y, sample, is_wrong = scans_of_samples(0)
    order = np.random.default_rng(0).permutation(len(y))  # replicates need not be neighbours
    X, y, is_wrong, names = X[order], y[order], is_wrong[order], np.array([f"sample {k}" for k in sample[order]])
    plain, grouped = OperatorKernelRegressorCV().fit(X, y), OperatorKernelRegressorCV().fit(X, y, groups=names)
    assert OutlierReport.of(plain, X, y).flagged(0.1)[is_wrong].sum() <= 1
    flagged = OutlierReport.of(grouped, X, y, groups=names).flagged(0.1)
    assert flagged[is_wrong].all() and flagged[~is_wrong].mean() < 0.05
    local = OperatorKernelRegressorCV(Gaussian(0.05), losses=["square"]).fit(X, y, groups=names)
    assert OutlierReport.of(local, X, y).flagged(0.1)[is_wrong].sum() <= 3  # groups in the search are not enough
    assert OutlierReport.of(local, X, y, groups=names).flagged(0.1)[is_wrong].all()


def test_residuals_of_groups_are_those_of_refits_without_them():
    X, y, sample, _ = scans_of_samples(1)
    model = OperatorKernelRegressor(Gaussian(0.05), lam=1e-3, center=False).fit(X, y)
    report = OutlierReport.of(model, X, y, groups=sample)
    for label in (0, 5, 39):
        is_in, count = sample == label, np.sum(sample != label)
        other = OperatorKernelRegressor(Gaussian(0.05), lam=1e-3, center=False).fit(X[~is_in], y[~is_in])
        assert len(other.dual_coef_) == count
        np.testing.assert_allclose(report.residuals[is_in].ravel(), y[is_in] - other.predict(X[is_in]), atol=1e-8)
    plain = OutlierReport.of(Ridge(1e-3).fit(X, y), X, y, cv=4, groups=sample)  # refitted without whole groups
    assert np.isfinite(plain.residuals).all()
    with pytest.raises(ValueError, match=r"groups must have shape \(120,\), one label for each sample. Got \(40,\)"):
        OutlierReport.of(model, X, y, groups=sample[:40])


def test_a_second_fit_leaves_out_wrong_replicates():
    X, y, sample, is_wrong = scans_of_samples(0)
    search = OperatorKernelRegressorCV(Gaussian(0.05), losses=["square"])
    model = RobustRefit(search, trim=None).fit(X, y, groups=sample)
    assert model.is_outlier_[is_wrong].all()
    assert not RobustRefit(search, trim=None).fit(X, y).is_outlier_[is_wrong].any()


@pytest.mark.filterwarnings("ignore:.*have no output:fenchel.exceptions.DataWarning")
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_samples_without_outputs_are_not_ranked(rng, n_outputs):
    """A model leaves them out; their held-out residuals are NaN, at their places."""
    X = rng.standard_normal((30, 2))
    y = X[:, :n_outputs] + 0.1 * rng.standard_normal((30, n_outputs))
    y[[5, 9]] = np.nan
    model, kept = OperatorKernelRegressor(loss=Huber(0.1)).fit(X, y), np.delete(np.arange(30), [5, 9])
    groups = np.arange(30) // 3
    residuals = held_out_residuals(model, X, y, 4, groups).values
    assert np.isnan(residuals[[5, 9]]).all()
    alone = OperatorKernelRegressor(loss=Huber(0.1)).fit(X[kept], y[kept])
    wanted = held_out_residuals(alone, X[kept], y[kept], 4, groups[kept]).values
    np.testing.assert_allclose(residuals[kept], wanted, atol=1e-6)
    for rank in (OutlierReport.of(alone, X[kept], y[kept]).of_new, RobustRefit(model).fit):
        with pytest.raises(ValueError, match=r"y is NaN in 2 of 30, the first at index 5\. Drop them"):
            rank(X, y)
    with pytest.raises(ValueError, match="y is NaN in 1 of 3, the first at index 2"):
        OutlierReport.of(alone, X[kept], y[kept]).of_new(X[3:6], y[3:6])


@pytest.mark.parametrize("loss", ["square", "huber"])
def test_samples_without_outputs_are_not_judged_and_change_nothing(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (62, 1))
    Y = np.sin(np.hstack([X, X + 1])) + 0.1 * rng.standard_normal((62, 2))
    Y[30] += 3.0
    Y[[3, 7]] = np.nan
    rest = np.delete(np.arange(62), [3, 7])
    with pytest.warns(DataWarning):
        model = OperatorKernelRegressor(loss=loss, lam=1e-3, scale=False).fit(X, Y)
    report = OutlierReport.of(model, X, Y)
    alone = OutlierReport.of(
        OperatorKernelRegressor(loss=loss, lam=1e-3, scale=False).fit(X[rest], Y[rest]), X[rest], Y[rest]
    )
    assert np.isnan(report.scores[[3, 7]]).all() and (report.kinds[[3, 7]] == "not judged").all()
    assert (report.p_values[[3, 7]] == 1).all() and (report.conformal_p_values[[3, 7]] == 1).all()
    assert np.flatnonzero(report.flagged()).tolist() == np.flatnonzero(report.suspects()).tolist() == [30]
    assert_allclose(report.scores[rest], alone.scores, rtol=1e-4)
    assert_allclose(report.p_values[rest], alone.p_values, rtol=1e-2)
    table = report.table()
    assert set(table["sample"][-2:]) == {3, 7} and set(table["outputs"][-2:]) == {""}
    assert_allclose(report.of_new(X[:3], Y[:3]).conformal_p_values, alone.of_new(X[:3], Y[:3]).conformal_p_values)
    report.plot()


def test_values_are_compared_with_those_that_were_observed():
    """Missing values are filled in for the rows; were they counted, the scale of single values would be too small."""
    counts = np.zeros((2, 3), dtype=int)  # without and with gaps: flagged, correct among them, and listed in other rows
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Y = rng.standard_normal((300, 5))
        wrong = rng.random(Y.shape) < 0.04
        Y[wrong] += 10.0
        gaps = rng.random(Y.shape) < 0.4
        for counted, rows in zip(counts, (Y, np.where(gaps, np.nan, Y)), strict=True):
            report = OutlierReport.of_residuals(Residuals(rows, None, (5,)), is_marginal=False)
            flagged, listed = report.flagged_points(), report.cells()
            counted += [flagged.sum(), (flagged & ~wrong).sum(), (~report.flagged()[listed["sample"]]).sum()]
            assert np.all(flagged[wrong & ~np.isnan(rows)])
    assert np.all(counts[:, 1] <= 0.1 * counts[:, 0]) and np.all(counts[:, 2] == 0)
    assert np.all(report.outlyingness.observed[1] * report.outlyingness.units > 0.75)  # of a noise of scale one


def test_values_of_samples_that_are_not_flagged_are_not_listed():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 4)) * np.where(np.arange(200) < 60, 3.0, 1.0)[:, None]  # sizes nobody explains
    rows[100, 1] = 40.0
    report = OutlierReport.of_residuals(Residuals(rows, None, (4,)), is_marginal=False)
    listed = report.cells()
    assert (listed["sample"][0], listed["output"][0]) == (100, 1) and report.flagged()[listed["sample"]].all()
    assert len(listed) < report.flagged_points().sum()
