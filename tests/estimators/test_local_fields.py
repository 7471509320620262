"""Local maps between fields: patches, the search that finds them, volumes and rollouts."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fenchel
from fenchel import FieldRegressor, OperatorKernelRegressor
from fenchel.estimators.field_maps import LocalPlan, Neighbourhood
from fenchel.exceptions import DataWarning


def waves(n, *grid, seed=0):
    """Return smooth periodic fields."""
    rng, axes = np.random.default_rng(seed), tuple(range(1, len(grid) + 1))
    squares = sum(np.meshgrid(*[np.fft.fftfreq(size, 1 / size) ** 2 for size in grid], indexing="ij"))
    fields = np.fft.ifftn(np.fft.fftn(rng.standard_normal((n, *grid)), axes=axes) / (1 + squares), axes=axes).real
    return fields / fields.std()


def local_operator(X):
    """Return a nonlinear function of each value and of the one after it."""
    return X * np.roll(X, -1, axis=1) + np.tanh(2 * X)


def error(predicted, truth):
    return np.sqrt(np.mean((predicted - truth) ** 2) / np.mean(truth**2))


@pytest.mark.parametrize("is_periodic", [False, True])
@pytest.mark.parametrize("grid", [(5,), (4, 3), (3, 4, 5)])
def test_patches_hold_the_values_around_each_point(grid, is_periodic):
    fields = np.random.default_rng(0).standard_normal((2, *grid, 2))
    found = Neighbourhood(1, is_periodic, is_cross=False).patches(fields)
    cross = Neighbourhood(1, is_periodic).patches(fields)
    assert cross.shape[-1] == 2 * (2 * len(grid) + 1)
    for row, place in enumerate(np.ndindex(*grid)):
        expected = []
        for step in itertools.product((-1, 0, 1), repeat=len(grid)):
            moved = np.add(place, step)
            moved = moved % grid if is_periodic else np.clip(moved, 0, np.array(grid) - 1)
            expected.append(fields[:, *moved])
            if np.count_nonzero(step) <= 1:
                assert np.all(np.isin(expected[-1], cross[:, row]))
        assert_array_equal(np.sort(found[:, row]), np.sort(np.concatenate(expected, axis=1)))


@pytest.fixture(scope="module")
def fitted():
    X = waves(40, 8, 8)
    return FieldRegressor().fit(X[:30], local_operator(X[:30])), X


def test_the_default_finds_a_local_map(fitted):
    model, X = fitted
    truth = local_operator(X[30:])
    whole = FieldRegressor(local=False).fit(X[:30], local_operator(X[:30]))
    assert whole.neighbourhood_ is None
    assert model.neighbourhood_.is_periodic
    assert error(model.predict(X[30:]), truth) < 0.1 * error(whole.predict(X[30:]), truth)
    assert model.estimator_.duality_gap_ <= 1e-6


def test_a_periodic_local_map_commutes_with_shifts(fitted):
    model, X = fitted
    moved = np.roll(X[30:], (3, 5), axis=(1, 2))
    assert_allclose(model.predict(moved), np.roll(model.predict(X[30:]), (3, 5), axis=(1, 2)), rtol=1e-9, atol=1e-9)


def test_a_local_map_is_kernel_ridge_regression_of_patches():
    X = waves(6, 16)[..., None]
    Y = local_operator(X)
    found = LocalPlan(Neighbourhood(1, True)).fit(X, Y, None)
    patches = np.stack([np.roll(X, step, axis=1) for step in (1, 0, -1)], axis=-1).reshape(-1, 3) / found.unit
    gram = found.estimator.kernel(patches)
    n, center = len(patches), Y.mean()
    duals = np.linalg.solve(gram + n * found.estimator.lam * np.eye(n), Y.ravel() - center)
    assert_allclose(found.predict(X).ravel(), center + gram @ duals, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_few_fields_are_enough_for_a_local_map(n, caplog):
    X = waves(12, 6, 6)
    Y = X + 0.3 * np.roll(X, 1, axis=1)
    with caplog.at_level("INFO", logger="fenchel"):
        model = FieldRegressor().fit(X[:n], Y[:n])
    assert caplog.text.count("of 5 of maps between fields") == 5
    assert model.neighbourhood_ is not None
    assert error(model.predict(X[8:]), Y[8:]) < 0.1


def test_a_field_without_outputs_is_left_out(fitted):
    _, X = fitted
    X, Y = X[:10], local_operator(X[:10])
    Y[4] = np.nan
    with pytest.warns(DataWarning, match="1 of 10 samples have no output"):
        found = FieldRegressor(local=False).fit(X, Y).predict(X)
    assert_array_equal(found, FieldRegressor(local=False).fit(np.delete(X, 4, 0), np.delete(Y, 4, 0)).predict(X))


def test_fields_that_depend_on_the_whole_domain_stay_global():
    X = waves(40, 8, 8)
    Y = X * X.mean(axis=(1, 2), keepdims=True) + X[:, ::-1]
    assert FieldRegressor().fit(X, Y).neighbourhood_ is None


def test_order_of_fields_repeats_gaps_and_saving(fitted, tmp_path):
    _, X = fitted
    X, Y = X[:24, :, 0], local_operator(X[:24, :, 0])
    Y[3, 2] = np.nan
    model = FieldRegressor().fit(X, Y)
    assert model.neighbourhood_ is not None
    assert error(model.predict(X[:3]), Y[:3]) < 0.05
    turned = FieldRegressor().fit(X[::-1], Y[::-1])
    assert_allclose(turned.predict(X), model.predict(X), rtol=1e-6, atol=1e-8)
    fenchel.save(model, tmp_path / "fields.skops")
    assert_array_equal(fenchel.load(tmp_path / "fields.skops").predict(X), model.predict(X))
    Y[3, 2] = 0.0
    repeated = FieldRegressor().fit(np.vstack([X, X[:4]]), np.vstack([Y, Y[:4]]))
    weighted = FieldRegressor().fit(X, Y, sample_weight=np.repeat([2.0, 1.0], [4, 20]))
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6, atol=1e-8)


def test_volumes_with_and_without_channels():
    X = waves(24, 4, 3, 4)
    Y = local_operator(X)
    with pytest.warns(DataWarning, match="n_axes=3"):
        FieldRegressor(local=False).fit(X[:3], Y[:3])
    model = FieldRegressor(n_axes=3).fit(X[:20], Y[:20])
    assert model.neighbourhood_ is not None
    assert error(model.predict(X[20:]), Y[20:]) < 0.2
    whole = FieldRegressor(OperatorKernelRegressor(lam=1e-3), n_axes=3).fit(X, Y)
    channels = FieldRegressor(OperatorKernelRegressor(lam=1e-3)).fit(X[..., None], Y[..., None])
    assert_allclose(channels.predict(X[..., None])[..., 0], whole.predict(X), rtol=1e-9, atol=1e-12)


def test_a_rollout_that_leaves_the_data_says_so():
    X = waves(20, 8)
    model = FieldRegressor(OperatorKernelRegressor("linear", lam=1e-8)).fit(X, 1.5 * X)
    model.rollout(X[:2], 1)
    with pytest.warns(DataWarning, match="training outputs are below"):
        model.rollout(X[:2], 5)


def test_a_rollout_predicts_from_predictions(fitted):
    model, X = fitted
    found = model.rollout(X[:2], 3)
    assert found.shape == (2, 3, 8, 8)
    assert_array_equal(found[:, 2], model.predict(model.predict(model.predict(X[:2]))))
    with pytest.raises(ValueError, match=r"outputs of the shape of the inputs. Got \(4,\) and \(8,\)"):
        FieldRegressor(OperatorKernelRegressor()).fit(X[:, 0], X[:, 0, :4]).rollout(X[:, 0], 2)
    with pytest.raises(ValueError, match="steps == 0, must be >= 1"):
        model.rollout(X[:2], 0)
