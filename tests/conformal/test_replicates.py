"""Bands of samples that were measured several times cover new samples, not only new measurements of known ones."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneGroupOut, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.conformal.test_conformal import exact_coverage

from fenchel import ConformalPredictor, ConformalRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.conformal.calibration import Calibration, Given
from fenchel.conformal.widths import constant, without_each
from fenchel.exceptions import DataWarning
from fenchel.kernels import Gaussian
from fenchel.resample.folds import groups_argument, label_codes, split_whole
from fenchel.resample.residuals import Residuals


def scans(n: int, rng: np.random.Generator, n_scans: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scans of n samples, whose reference value they share with its error, and the label of each."""
    sample = np.repeat(np.arange(n), n_scans)
    latent, error = rng.uniform(-2, 2, (n, 3)), 0.3 * rng.standard_normal(n)
    y = np.sin(latent[:, 0]) + 0.5 * latent[:, 1] + error
    return latent[sample] + 0.03 * rng.standard_normal((len(sample), 3)), y[sample], sample


@pytest.mark.parametrize(("method", "modulation"), [("split", "std"), ("cv+", "std")])
def test_scans_of_new_samples_are_covered(method, modulation):
    """Without groups the mean coverage is .23 (split) and .17 (cv+)."""
    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        (X, y, sample), (X_new, y_new, _) = scans(40, rng), scans(50, rng)
        inner = OperatorKernelRegressor(Gaussian(0.5), lam=1e-4)
        model = ConformalRegressor(inner, method=method, modulation=modulation).fit(X, y, groups=sample)
        shares.append(model.predict_interval(X_new).contains(y_new).mean())
    assert np.mean(shares) > 0.85


def test_a_split_covers_as_often_as_it_says_for_any_number_of_scans():
    shares = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, y, sample = scans(38, rng)
        kept = rng.permutation(len(X))[:100]  # from no to four scans of a sample, in any order
        X_new, y_new, _ = scans(50, rng, 1)
        model = ConformalRegressor(Ridge(), calibration_size=0.5, modulation="constant")
        model.fit(X[kept], y[kept], groups=sample[kept])
        shares.append(model.predict_interval(X_new).contains(y_new).mean())
    error = np.std(shares) / np.sqrt(len(shares))
    assert exact_coverage(19, 0.9) - 3 * error < np.mean(shares) < 0.93


def test_the_quantile_counts_labels():
    """Nine labels of one, two and more scans: each has mass 1/10, and so has infinity."""
    sizes = np.arange(1, 10)
    labels = np.repeat(np.arange(9), sizes)
    scores = np.random.default_rng(0).permutation(len(labels)).astype(float)
    calibration = Calibration.of(scores[:, None], Given(scores, scores, None, None, labels), 0.0)
    mass = 1 / (10 * sizes[labels])
    for coverage in (0.25, 0.5, 0.77):
        reached = [value for value in np.sort(scores) if mass[scores <= value].sum() >= coverage]
        assert calibration.quantiles(coverage, np.zeros(1, dtype=int)).item() == reached[0]
    assert calibration.shortage(0.9, np.zeros(1, dtype=int)) is None
    assert "19 calibration samples of different groups" in calibration.shortage(0.95, np.zeros(1, dtype=int))


def test_labels_are_never_torn_apart():
    labels = np.random.default_rng(0).integers(0, 12, 60)
    codes = label_codes([f"sample {k}" for k in labels], 60, "groups")
    assert [codes[labels == k].std() for k in np.unique(labels)] == [0.0] * len(np.unique(labels))
    train, rest = split_whole(np.arange(len(codes)), codes, 4, 0)
    assert len(np.unique(codes[rest])) == 4 and not np.isin(codes[train], codes[rest]).any()
    assert sorted(np.concatenate([train, rest])) == list(range(60))


class Recorder(RegressorMixin, BaseEstimator):
    """Constant that stores the groups that its fits were given."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, y, groups=None):
        self.fits.append((X[:, 0].astype(int), groups))
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize(
    ("method", "cv"),
    [
        ("split", 3),
        ("cv+", 3),
        ("cv+", GroupKFold(4)),
        ("cv+", LeaveOneGroupOut()),
        ("cv+", PredefinedSplit(np.arange(60) % 3)),
    ],
)
def test_every_fit_has_whole_labels_and_is_told_them(method, cv):
    labels = np.arange(60) % 15
    X, y = np.stack([labels, np.arange(60)], axis=1).astype(float), np.arange(60.0)
    Recorder.fits.clear()
    ConformalRegressor(Recorder(), method=method, cv=cv).fit(X, y, groups=labels)
    assert len(Recorder.fits) >= 4
    for seen, groups in Recorder.fits:
        assert set(np.bincount(seen)) <= {0, 4}  # all scans of a sample, or none
        assert len(set(zip(seen, groups, strict=True))) == len(set(seen)) == len(set(groups))


def test_the_search_of_a_pipeline_is_told_the_labels():
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=GroupKFold(3))
    assert groups_argument(make_pipeline(StandardScaler(), OperatorKernelRegressorCV())) == (
        "operatorkernelregressorcv__groups"
    )
    assert groups_argument(search) == "groups"
    assert groups_argument(search.set_params(cv=3)) is groups_argument(Ridge()) is None
    X, y, sample = scans(30, np.random.default_rng(0))
    model = ConformalRegressor(make_pipeline(StandardScaler(), search.set_params(cv=GroupKFold(3))))
    assert model.fit(X, y, groups=sample).predict_interval(X).lower.shape == y.shape


def test_widths_without_a_sample_are_without_its_replicates():
    rng = np.random.default_rng(0)
    X, y, sample = scans(6, rng, 3)
    model = LinearRegression().fit(X, y)
    residuals = Residuals.of(model, X, y)
    ratios = without_each(constant(residuals), residuals, X, sample)
    values = residuals.values[:, 0]
    for i, label in enumerate(sample):
        left = np.mean(values[sample != label] ** 2) / np.mean(values**2)
        assert ratios[i, 0] == pytest.approx(np.sqrt(left))


def test_a_fitted_model_is_calibrated_by_labels():
    rng = np.random.default_rng(0)
    X, y, sample = scans(8, rng)
    model = ConformalRegressor(Ridge().fit(X, y), modulation="constant").conformalize(X, y, groups=sample)
    with pytest.warns(DataWarning, match="at least 9 calibration samples of different groups, and .* 8"):
        model.predict_interval(X)


def test_labels_that_cannot_be_are_named():
    X, y, sample = scans(10, np.random.default_rng(0))
    model, missing = ConformalRegressor(Ridge()), sample.astype(object)
    missing[3] = None
    with pytest.raises(ValueError, match=r"groups must have shape \(40,\), one label for each sample. Got \(10,\)"):
        model.fit(X, y, groups=sample[:10])
    with pytest.raises(ValueError, match="That of sample 3 is missing"):
        model.fit(X, y, groups=missing)
    with pytest.raises(ValueError, match="at least 2 different labels"):
        model.fit(X, y, groups=np.zeros(40))
    with pytest.raises(ValueError, match=r"leaves out single samples.* Use method='cv\+'"):
        ConformalRegressor(OperatorKernelRegressor(), method="jackknife+").fit(X, y, groups=sample)
    with pytest.raises(ValueError, match=r"separate samples of a group.*GroupKFold"):
        ConformalRegressor(Ridge(), method="cv+", cv=KFold(3, shuffle=True, random_state=0)).fit(X, y, groups=sample)


@pytest.mark.filterwarnings("error::fenchel.exceptions.ScaleWarning")
@pytest.mark.parametrize("is_replicated", [False, True])
def test_the_model_of_the_widths_has_no_warnings_of_its_own(is_replicated):
    """Where the size of the noise does not depend on the input, the largest lam of its grid is the best."""
    X, y, sample = scans(30, np.random.default_rng(0))
    model = ConformalRegressor(Ridge(), modulation="local")
    model.fit(X, y, groups=sample if is_replicated else None)
    assert np.isfinite(model.predict_interval(X).width).all()


def test_groups_and_strata_together():
    X, y, sample = scans(60, np.random.default_rng(0))
    model = ConformalRegressor(Ridge(), method="cv+").fit(X, y, strata=sample % 2, groups=sample)
    alone = ConformalRegressor(Ridge(), method="cv+").fit(X, y, groups=sample)
    assert model._calibration.weights.sum() == alone._calibration.weights.sum() == pytest.approx(60)
    assert not np.allclose(model.predict_interval(X, strata=sample % 2).upper, alone.predict_interval(X).upper)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_former_names_keep_their_meaning_with_a_warning(method):
    """Up to 0.2 groups were called replicates, and strata were called groups."""
    X, y, sample = scans(60, np.random.default_rng(0))
    model, part = ConformalRegressor(Ridge(), method=method), sample % 2
    known = model.fit(X, y, groups=sample).predict_interval(X).upper
    with pytest.warns(FutureWarning, match="replicates= is now groups="):
        np.testing.assert_array_equal(model.fit(X, y, replicates=sample).predict_interval(X).upper, known)
    known = model.fit(X, y, groups=sample, strata=part).predict_interval(X, strata=part).upper
    with pytest.warns(FutureWarning, match="groups= beside replicates= is now strata="):
        model.fit(X, y, groups=part, replicates=sample)
    with pytest.warns(FutureWarning, match="groups= of new samples is now strata="):
        np.testing.assert_array_equal(model.predict_interval(X, groups=part).upper, known)
    with pytest.raises(ValueError, match="Pass groups= and strata="):
        model.fit(X, y, groups=sample, strata=part, replicates=sample)


def test_groups_of_new_samples_are_never_taken_for_strata():
    """The call of 0.2 that asked for coverage in each group does not give other bands, it says what to write."""
    X, y, sample = scans(40, np.random.default_rng(0))
    model = ConformalRegressor(Ridge()).fit(X, y, groups=sample)
    with pytest.raises(ValueError, match=r"New samples have no groups.*pass strata= to fit"):
        model.predict_interval(X, groups=sample)
    sets = ConformalPredictor(measure="distance").fit(X, (y[:, None] > 0).astype(int), groups=sample)
    with pytest.raises(ValueError, match=r"New samples have no groups.*pass strata= to fit"):
        sets.predict_set(X, groups=sample)
