"""Groups of fields, and blocks of time, that are held out together wherever maps are compared."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_ridge import KernelRidge

from fenchel import ConformalRegressor, FieldRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV
from fenchel.estimators import field_maps, field_search
from fenchel.estimators.field_maps import GlobalPlan, LocalPlan, Neighbourhood, Storey
from fenchel.estimators.field_rollouts import HeldOut
from fenchel.exceptions import DataWarning
from fenchel.resample.folds import blocks_of

LABELS = np.arange(24) % 6
NAMES = np.array(["north", "A", "z", "middle", "0", "south"])


@pytest.fixture(scope="module")
def pairs():
    """Return states of six simulations, each near a state of its own, and smooth images of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 9))[LABELS] + 0.1 * rng.standard_normal((24, 9))
    return X, np.tanh(X) + 0.3 * np.roll(X, 1, axis=1) ** 2 + 0.01 * rng.standard_normal((24, 9))


@pytest.fixture(scope="module")
def grouped(pairs):
    return FieldRegressor().fit(*pairs, groups=LABELS)


def test_names_and_places_of_groups_change_nothing(pairs, grouped):
    X, Y = pairs
    assert_array_equal(FieldRegressor().fit(X, Y, groups=NAMES[LABELS]).predict(X), grouped.predict(X))
    order = np.random.default_rng(1).permutation(24)
    moved = FieldRegressor().fit(X[order], Y[order], groups=LABELS[order])
    assert_allclose(moved.predict(X), grouped.predict(X), rtol=1e-6, atol=1e-8)


def test_copies_of_one_group_and_weights(pairs):
    X, Y = pairs
    weights = np.where(np.arange(24) < 5, 2.0, 1.0)
    weights[7] = 0
    rows = np.repeat(np.arange(24), weights.astype(int))
    weighted = FieldRegressor().fit(X, Y, weights, groups=LABELS)
    copied = FieldRegressor().fit(X[rows], Y[rows], groups=LABELS[rows])
    assert weighted.neighbourhood_ == copied.neighbourhood_
    assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("steps", [1, 3])
def test_maps_are_compared_on_groups_that_they_have_not_seen(pairs, steps, monkeypatch):
    X, Y = pairs
    seen, learned = [], []

    class Recorded(HeldOut):
        @classmethod
        def of(cls, X_out, Y_out, Y_in):
            seen.append(X_out[:, 0, 0])
            learned.append(Y_in[:, 0, 0])
            return HeldOut.of(X_out, Y_out, Y_in)

    monkeypatch.setattr(field_search, "HeldOut", Recorded)
    FieldRegressor(steps=steps).fit(X, Y, groups=LABELS)
    outside = {LABELS[np.flatnonzero(X[:, 0] == value)[0]] for value in seen[0]}
    inside = {LABELS[np.flatnonzero(Y[:, 0] == value)[0]] for value in learned[0]}
    assert outside
    assert inside
    assert not outside & inside
    assert len(seen[0]) + len(learned[0]) == 24


def test_large_groups_are_compared_as_a_whole(monkeypatch):
    monkeypatch.setattr(field_search, "_COMPARED", 6)  # one group is larger
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    model = FieldRegressor().fit(X, X**2, groups=np.arange(40) // 10)
    assert model.neighbourhood_ is not None


def test_the_kernel_of_whole_fields_leaves_out_one_group_at_a_time(pairs):
    X, Y = (each[..., None] for each in pairs)
    weights = np.linspace(0.5, 2, 24)
    plan = GlobalPlan("points", None, "points", None, True, None)
    fitted = plan.fit(X, Y, weights, LABELS)
    search = fitted.estimator
    gram = search.best_estimator_.kernel(X[..., 0] / fitted.unit)
    errors = []
    for lam in search.lams_:
        ridge = KernelRidge(kernel="precomputed", alpha=lam * np.sum(weights))
        total = 0.0
        for group in range(6):
            inside, outside = group != LABELS, group == LABELS
            fit = ridge.fit(gram[np.ix_(inside, inside)], Y[inside, :, 0], weights[inside])
            residuals = fit.predict(gram[np.ix_(outside, inside)]) - Y[outside, :, 0]
            total += weights[outside] @ np.sum(residuals**2, axis=1)
        errors.append(total / np.sum(weights))
    assert search.lams_[int(np.argmin(errors))] == search.best_lam_


def test_held_out_images_are_those_of_maps_without_the_group(pairs):
    X, Y = (each[..., None] for each in pairs)
    labels = LABELS % 4  # fewer than the folds: each is left out alone
    plan = GlobalPlan("pca", None, "pca", None, True, OperatorKernelRegressor("gaussian", lam=1e-3))
    fitted, ranks = plan.fit(X, Y, None, labels), np.argsort(np.argsort(Y[:, 0, 0]))
    images = field_maps._held_out_images(plan, fitted, X, Y, None, ranks, labels)
    for group in range(4):
        inside, outside = labels != group, labels == group
        assert_allclose(images[outside], plan.fit(X[inside], Y[inside], None).predict(X[outside]), atol=1e-10)


def test_patches_have_the_group_of_their_field(monkeypatch):
    given = []

    class Recorded(OperatorKernelRegressorCV):
        def fit(self, X, y, sample_weight=None, groups=None, order=None):
            given.append((X, groups, self.cv))
            return super().fit(X, y, sample_weight, groups, order)

    monkeypatch.setattr(field_maps, "OperatorKernelRegressorCV", Recorded)
    codes = np.array([2, 0, 1, 0, 2, 1])
    X = (1.0 + codes)[:, None, None] + 0.01 * np.random.default_rng(0).standard_normal((6, 8, 1))
    found = LocalPlan(Neighbourhood(1, True), (Storey(30, 40, 1),)).fit(X, X**2, None, codes)
    for patches, groups, cv in given:
        assert cv == 3
        assert_array_equal(np.round(patches[:, 0] * found.unit - 1), groups)


def test_order_means_blocks_of_time(pairs):
    times = np.random.default_rng(0).permutation(24) // 2
    ordered = FieldRegressor().fit(*pairs, order=times)
    blocks = FieldRegressor().fit(*pairs, groups=blocks_of(times, None, pairs[0]))
    assert_array_equal(ordered.predict(pairs[0]), blocks.predict(pairs[0]))


def test_an_estimator_that_takes_groups_is_given_them(pairs):
    search = OperatorKernelRegressorCV("gaussian", losses=["square"], cv=3)
    model = FieldRegressor(search, "points", None, "points").fit(*pairs, groups=LABELS)
    unit = np.sqrt(np.mean(np.sum(pairs[0] ** 2, axis=1)))
    alone = OperatorKernelRegressorCV("gaussian", losses=["square"], cv=3).fit(pairs[0] / unit, pairs[1], groups=LABELS)
    assert_allclose(model.estimator_.cv_errors_, alone.cv_errors_, rtol=1e-9)


def test_bands_hand_groups_to_the_model(pairs, monkeypatch):
    given = []
    fit = FieldRegressor.fit

    def recorded(self, X, y, sample_weight=None, groups=None, order=None):
        given.append(groups)
        return fit(self, X, y, sample_weight, groups, order)

    monkeypatch.setattr(FieldRegressor, "fit", recorded)
    bands = ConformalRegressor(FieldRegressor(local=False), coverage=0.6, method="cv+", cv=3)
    band = bands.fit(*pairs, groups=LABELS).predict_interval(pairs[0][:2])
    assert band.lower.shape == (2, 9)
    assert all(groups is not None for groups in given)


def test_groups_that_cannot_be(pairs):
    X, Y = pairs
    with pytest.raises(ValueError, match=r"groups must have shape \(24,\)"):
        FieldRegressor().fit(X, Y, groups=LABELS[:5])
    with pytest.raises(ValueError, match="at least 2 different labels"):
        FieldRegressor().fit(X, Y, groups=np.zeros(24))
    with pytest.raises(ValueError, match=r"label for each sample\. That of sample 1 is missing"):
        FieldRegressor().fit(X, Y, groups=[0.0, np.nan, *LABELS[2:]])
    with pytest.raises(ValueError, match="either groups or order"):
        FieldRegressor().fit(X, Y, groups=LABELS, order=LABELS)
    with pytest.raises(ValueError, match="order has 1 different time"):
        FieldRegressor().fit(X, Y, order=np.zeros(24))
    with pytest.raises(ValueError, match="positive weight and observed outputs must be of at least 2 groups"):
        FieldRegressor().fit(X, Y, (LABELS == 3).astype(float), groups=LABELS)
    holes = np.where(LABELS[:, None] == 3, Y, np.nan)
    with pytest.raises(ValueError, match="observed outputs must be of at least 2 groups"), pytest.warns(DataWarning):
        FieldRegressor().fit(X, holes, groups=LABELS)
    with pytest.warns(DataWarning, match="at least 4 groups, of which .* Got 3"):
        model = FieldRegressor().fit(X, Y, groups=LABELS % 3)
    assert model.neighbourhood_ is None
