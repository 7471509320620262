"""Several kernels at once: against sums of parts, with groups that are missing for some samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel import FunctionalRegressor, OperatorKernelRegressor, OperatorKernelRegressorCV, learn_kernel_weights
from fenchel.approximations import Nystrom
from fenchel.kernels import Gaussian, Laplacian, Linear, MultipleKernel, Part, Standardized
from fenchel.kernels.derivatives import feature_gradient, weighted_gradient

GROUPS = [
    ("place", Gaussian(0.7), slice(0, 2)),
    ("size", Linear(), [2]),
    ("shape", Standardized(Gaussian("median")), [3, 4]),
]


@pytest.fixture
def complete(rng):
    return rng.standard_normal((20, 5))


@pytest.fixture
def incomplete(complete):
    """The first sample has nothing, the second has one group, others lack one group or none."""
    X = complete.copy()
    X[0] = X[1, :3] = X[2:6, 2] = X[5:9, 3:] = np.nan
    return X


def test_complete_samples_have_the_weighted_sum(complete):
    """Each part is divided by its mean diagonal."""
    X = complete
    weights = [0.5, 0.2, 1.3]
    parts = [Part(kernel, columns).resolve(X) for _, kernel, columns in GROUPS]
    expected = sum(w / np.mean(part.diag(X)) * part(X) for w, part in zip(weights, parts, strict=True))
    assert_allclose(MultipleKernel(GROUPS, weights)(X), expected, rtol=1e-13)


def test_a_zero_weight_is_a_smaller_sum(complete):
    X = complete
    kernel = MultipleKernel(GROUPS, [0.5, 0.0, 0.5]).resolve(X)
    assert_allclose(kernel(X), MultipleKernel([GROUPS[0], GROUPS[2]])(X), rtol=1e-13)


@pytest.mark.parametrize("normalize", [False, True])
def test_missing_groups_leave_it_positive_semidefinite(incomplete, normalize):
    kernel = MultipleKernel(GROUPS, [0.5, 0.2, 0.3], normalize=normalize).resolve(incomplete)
    K = kernel(incomplete)
    assert np.linalg.eigvalsh(K)[0] >= -1e-14 * np.trace(K)
    assert_array_equal(K[0], 0)
    assert K[1, 5] == 0  # they have no group in common
    assert_allclose(kernel.diag(incomplete), np.diag(K), rtol=1e-13)
    assert_allclose(kernel(incomplete[:7], incomplete[7:]), K[:7, 7:], rtol=1e-13)


def test_what_a_missing_group_leaves(incomplete):
    """A sample with one group has the term of that group; normalised, the root of its weight for the weight."""
    groups, weights = [GROUPS[0], GROUPS[2]], [0.7, 0.3]
    plain, normalized = (MultipleKernel(groups, weights, None, flag).resolve(incomplete) for flag in (False, True))
    inner = GROUPS[2][1].resolve(incomplete[~np.isnan(incomplete[:, 3])][:, 3:])
    term = inner(incomplete[1:2, 3:], incomplete[10:, 3:]) / plain.scales[1]
    assert_allclose(plain(incomplete[1:2], incomplete[10:]), 0.3 * term, rtol=1e-13)
    assert_allclose(normalized(incomplete[1:2], incomplete[10:]), 0.3**0.5 * term, rtol=1e-13)


def test_numbers_come_from_samples_that_have_the_group(incomplete):
    resolved = MultipleKernel(GROUPS).resolve(incomplete)
    some = incomplete[~np.isnan(incomplete[:, 3])][:, 3:]
    inner = resolved.groups[2][1]
    assert_allclose(inner.mean, some.mean(axis=0))
    assert inner.kernel.gamma == GROUPS[2][1].resolve(some).kernel.gamma


def test_features_and_gradients(incomplete, rng):
    kernel = MultipleKernel([("a", Linear(), [0, 1]), ("b", Linear(), [2, 3, 4])], [0.4, 0.6])
    X = np.where(np.isnan(incomplete[:, 3:4]), np.nan, incomplete)[9:]
    X[:3, :2] = np.nan
    resolved = kernel.resolve(X)
    features = resolved.features(X)
    assert_allclose(features @ features.T, resolved(X), rtol=1e-12, atol=1e-14)
    points, weights = rng.standard_normal((3, 5)), rng.standard_normal((3, len(X)))
    for smooth in (resolved, MultipleKernel(GROUPS, [0.5, 0.2, 0.3], normalize=True).resolve(X)):
        found = weighted_gradient(smooth, points, X, weights)
        for column in range(5):
            step = 1e-6 * np.eye(5)[column]
            rise = smooth(points + step, X) - smooth(points - step, X)
            assert_allclose(found[:, column], np.sum(weights * rise, axis=1) / 2e-6, atol=1e-8)
    coef = rng.standard_normal((5, 2))
    steps = [(resolved.features(points + s) - resolved.features(points - s)) @ coef / 2e-6 for s in 1e-6 * np.eye(5)]
    assert_allclose(feature_gradient(resolved, points, coef), np.stack(steps, axis=2).transpose(1, 0, 2), atol=1e-8)


@pytest.mark.parametrize("loss", ["square", "huber", "epsilon_svr"])
def test_estimators_take_missing_groups(incomplete, loss):
    """Fits are certified; the prediction for a sample without any group is the mean of the outputs."""
    Y = np.stack([np.nan_to_num(incomplete[:, 2]), np.arange(20.0)], axis=1)
    model = OperatorKernelRegressor(MultipleKernel(GROUPS), loss=loss, lam=0.01, center=True).fit(incomplete, Y)
    assert model.duality_gap_ <= 1e-6
    predicted = model.predict(incomplete)
    assert_allclose(predicted[0], model.predict(np.full((1, 5), np.nan))[0])
    assert np.all(np.isfinite(predicted))
    assert not np.allclose(predicted[1], predicted[0])


def test_other_estimators_take_missing_groups(incomplete, rng):
    y = rng.standard_normal(20)
    kernel = MultipleKernel(GROUPS)
    searched = OperatorKernelRegressorCV(kernel, losses=["square"], lams=[0.1, 1.0], cv=3).fit(incomplete, y)
    assert searched.predict(incomplete).shape == (20,)
    curves = FunctionalRegressor(kernel, loss="square", lam=0.1).fit(incomplete, rng.standard_normal((20, 8)))
    assert curves.predict(incomplete).shape == (20, 8)
    thin = OperatorKernelRegressor(kernel, approximation=Nystrom(5), lam=0.1).fit(incomplete, y)
    assert np.all(np.isfinite(thin.predict(incomplete)))


def test_bad_values(incomplete, rng):
    y, model = rng.standard_normal(20), OperatorKernelRegressor(MultipleKernel(GROUPS))
    incomplete[9, 0] = np.inf
    with pytest.raises(ValueError, match=r"infinity, the first at index \[9, 0\]"):
        model.fit(incomplete, y)
    incomplete[9, 0] = np.nan
    with pytest.raises(ValueError, match="group 'place' has NaN in some of its columns, first at sample 9"):
        model.fit(incomplete, y)
    incomplete[:, :2] = np.nan
    with pytest.raises(ValueError, match="group 'place' of MultipleKernel is missing for all samples"):
        model.fit(incomplete, y)
    with pytest.raises(ValueError, match="NaN"):
        OperatorKernelRegressor(Gaussian()).fit(incomplete, y)


def test_names_of_columns(complete):
    X = complete
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcde"))
    kernel = MultipleKernel([("first", Gaussian(1.0), ["b", "a"]), ("second", Laplacian(1.0), ["e"])])
    model = OperatorKernelRegressor(kernel, lam=0.1).fit(table, X[:, 0])
    places = MultipleKernel([("first", Gaussian(1.0), [1, 0]), ("second", Laplacian(1.0), [4])])
    other = OperatorKernelRegressor(places, lam=0.1).fit(X, X[:, 0])
    assert_allclose(model.predict(table), other.predict(X))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Gaussian(),), TypeError, "must be a list of"),
        (([(1, Gaussian(), None)],), TypeError, "must begin with a name"),
        (([("a", Gaussian(), None), ("a", Linear(), None)],), ValueError, "distinct names"),
        (([("a", "gaussian", None)],), TypeError, "must be a ScalarKernel on points"),
        ((GROUPS, [1.0, 2.0]), ValueError, "must hold 3 finite non-negative numbers"),
        ((GROUPS, [0.0, 0.0, 0.0]), ValueError, "must not be zero for all groups"),
        ((GROUPS, None, [1.0, 0.0, 1.0]), ValueError, "'scales' parameter of MultipleKernel must be positive"),
    ],
)
def test_wrong_parameters(complete, arguments, error, message):
    with pytest.raises(error, match=message):
        MultipleKernel(*arguments)(complete)


def test_scales_of_the_training_sample_are_needed(complete):
    X = complete
    with pytest.raises(ValueError, match="depend on the training sample"):
        MultipleKernel(GROUPS)(X, X)


def test_the_first_sample_may_lack_a_group(rng):
    """With kernels that have features, whose number is asked for before the fit."""
    X = rng.standard_normal((40, 4))
    y = X[:, 0].copy()
    X[::4, 2:] = np.nan
    kernel = MultipleKernel([("one", Linear(), [0, 1]), ("two", Linear(), [2, 3])])
    model = OperatorKernelRegressor(kernel, lam=1e-3).fit(X, y)
    order = np.roll(np.arange(40), -1)
    other = OperatorKernelRegressor(kernel, lam=1e-3).fit(X[order], y[order])
    assert_allclose(model.predict(X), other.predict(X), atol=1e-8)


def test_weights_from_a_data_frame(rng):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rng.uniform(-1, 1, (60, 3)), columns=["a", "b", "c"])
    Y = pd.DataFrame({"y": np.sin(3 * X["b"])})
    kernel = MultipleKernel([(name, Gaussian("median"), [name]) for name in X.columns])
    found = learn_kernel_weights(kernel, X, Y, n_draws=5)
    places = MultipleKernel([(name, Gaussian("median"), [k]) for k, name in enumerate(X.columns)])
    assert_allclose(found.weights_, learn_kernel_weights(places, X.to_numpy(), Y.to_numpy(), n_draws=5).weights_)
    assert OperatorKernelRegressor(found.kernel, lam=found.lam).fit(X, Y).duality_gap_ <= 1e-6
