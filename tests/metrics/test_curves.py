import pickle

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from fenchel import FunctionalRegressor, FunctionalRegressorCV
from fenchel.datasets import as_curves, make_functional
from fenchel.kernels import FunctionalGaussian
from fenchel.losses import Huber
from fenchel.metrics import curve_errors, curve_scorer

GRID = np.array([0.0, 1.0, 3.0])  # trapezoid weights 1/2, 3/2, 1


def test_a_value_by_hand():
    Y = np.array([[1.0, 1.0, 1.0], [0.0, np.nan, 5.0]])
    found = curve_errors(Y, [[0.0, 3.0, 1.0], [2.0, 100.0, 4.0]], GRID)
    assert found == pytest.approx([(0.5 * 1 + 1.5 * 4) / 3, (0.5 * 4 + 1.0 * 1) / 1.5])


def test_it_is_the_integral_over_the_length(rng):
    grid = np.sort(rng.uniform(-2, 5, 40))
    Y, guess = rng.standard_normal((2, 7, 40))
    integrals = np.trapezoid((Y - guess) ** 2, grid, axis=1)
    assert curve_errors(Y, guess, grid) == pytest.approx(integrals / np.ptp(grid))


def test_channels_add_up(rng):
    Y, guess = rng.standard_normal((2, 5, 8, 3))
    parts = [curve_errors(Y[:, :, c], guess[:, :, c]) for c in range(3)]
    assert curve_errors(Y, guess) == pytest.approx(np.sum(parts, axis=0))


def test_channels_with_gaps_by_hand():
    Y = np.array([[[1.0, 0.0], [1.0, np.nan], [np.nan, np.nan]]])
    found = curve_errors(Y, np.full((1, 3, 2), 3.0), GRID)
    assert found == pytest.approx([2 * (0.5 * (4 + 9) + 1.5 * 4) / (0.5 + 0.5 + 1.5)])


def test_every_form_gives_the_same_errors(rng, xp):
    Y, guess = rng.standard_normal((2, 4, 6))
    Y[0, 2] = Y[3, 5] = np.nan
    wanted = curve_errors(Y, guess)
    assert isinstance(wanted, np.ndarray)
    assert curve_errors(xp.asarray(Y), xp.asarray(guess)) == pytest.approx(wanted)
    grid = np.linspace(0, 1, 6)
    pairs = [(grid[~np.isnan(row)], row[~np.isnan(row)]) for row in Y]
    assert curve_errors(pairs, guess) == pytest.approx(wanted)
    assert curve_errors(as_curves(Y), as_curves(guess)) == pytest.approx(wanted)


def test_functions_of_scikit_fda(rng):
    skfda = pytest.importorskip("skfda")
    Y, guess = rng.standard_normal((2, 4, 3))
    found = curve_errors(skfda.FDataGrid(Y, GRID), skfda.FDataGrid(guess, GRID))
    assert found == pytest.approx(curve_errors(Y, guess, GRID))


def test_arguments_stay_as_they_were(rng):
    Y, guess = rng.standard_normal((2, 4, 6))
    Y[0, 0] = np.nan
    copies = Y.copy(), guess.copy()
    curve_errors(Y, guess)
    np.testing.assert_array_equal(Y, copies[0])
    np.testing.assert_array_equal(guess, copies[1])


def test_wrong_predictions_are_named():
    Y = np.zeros((3, 4))
    with pytest.raises(ValueError, match=r"predicted must have the shape of the curves, \(3, 4\)"):
        curve_errors(Y, np.zeros((2, 4)))
    with pytest.raises(ValueError, match="1 of them are NaN"):
        curve_errors(Y, np.array([[np.nan, 0, 0, 0], [0] * 4, [0] * 4]))
    with pytest.raises(ValueError, match="grid must be the grid that predicted comes with"):
        curve_errors(Y, as_curves(Y, [0.0, 1.0, 2.0, 4.0]))


def test_a_prediction_may_be_anything_where_nothing_was_observed():
    assert curve_errors([[1.0, np.nan]], [[1.0, np.nan]]) == pytest.approx([0.0])


def test_unknown_aggregate_is_named():
    with pytest.raises(ValueError, match="'aggregate' parameter of curve_scorer must be one of 'mean', 'median'"):
        curve_scorer("max")


@pytest.fixture
def data():
    return make_functional(30, 20, random_state=0)


@pytest.fixture
def model():
    """A model that takes nothing from the sample: no bandwidth, no centre."""
    return FunctionalRegressor(FunctionalGaussian(1.0), loss=Huber(0.1, p=1), lam=1e-4, center=False, tol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_it_is_the_error_of_our_own_selection(data, model, rng, missing):
    # nothing here comes from the whole sample, so the two ways to cross-validate are one
    Y = np.where(rng.uniform(size=data.Y.shape) < missing, np.nan, data.Y)
    own = FunctionalRegressorCV(
        model.kernel, lams=[model.lam], losses=[model.loss], center=False, tol=model.tol, cv=KFold(3)
    ).fit(data.X, Y)
    scores = cross_val_score(model, data.X, Y, cv=KFold(3), scoring=curve_scorer())
    np.testing.assert_allclose(-scores, own.fold_errors_[0, 0], rtol=1e-3)


def test_the_median_does_not_follow_a_minority(data, model):
    Y = data.Y.copy()
    Y[:3] += 1e3
    fitted = model.fit(data.X[10:], Y[10:])
    mean, median = (curve_scorer(kind)(fitted, data.X, Y) for kind in ("mean", "median"))
    errors = curve_errors(Y, fitted.predict(data.X))
    assert mean == pytest.approx(-np.mean(errors))
    assert median == pytest.approx(-np.median(errors))
    assert mean < -1e4
    assert -1 < median < 0


def test_ragged_curves_are_predicted_at_their_own_points(data, model, rng):
    chosen = [np.sort(rng.permutation(20)[:8]) for _ in data.Y]
    pairs = [(data.t[at], row[at]) for at, row in zip(chosen, data.Y, strict=True)]
    fitted = model.fit(data.X[2:], pairs[2:])
    union = as_curves(pairs[:2]).grid
    assert len(union) < len(fitted.grid_) == 20
    predicted = fitted.predict(data.X[:2])
    by_hand = []
    for (_, values), at, row in zip(pairs, chosen, predicted, strict=False):
        weights = np.gradient(union) * np.where(np.isin(union, union[[0, -1]]), 0.5, 1.0)  # of the trapezoid rule
        seen = weights[np.searchsorted(union, data.t[at])]
        by_hand.append(np.sum(seen * (values - row[at]) ** 2) / np.sum(seen))
    assert curve_scorer()(fitted, data.X[:2], pairs[:2]) == pytest.approx(-np.mean(by_hand))
    scores = cross_val_score(model, data.X, pairs, cv=KFold(15), scoring=curve_scorer("median"))
    assert scores[0] == pytest.approx(-np.median(by_hand))


def test_the_grid_is_that_of_the_model(data, model):
    uneven = np.linspace(0, 1, 20) ** 2 * 10
    fitted = model.fit(data.X, data.Y, grid=uneven)
    wanted = -np.mean(curve_errors(data.Y, fitted.predict(data.X), uneven))
    assert curve_scorer()(fitted, data.X, data.Y) == pytest.approx(wanted)
    assert curve_scorer(grid=uneven)(fitted, data.X, data.Y) == pytest.approx(wanted)
    assert curve_scorer(grid=np.linspace(0, 1, 20))(fitted, data.X, data.Y) != pytest.approx(wanted)


def test_a_search_over_nested_parameters_with_gaps(data, model, rng):
    Y = np.where(rng.uniform(size=data.Y.shape) < 0.3, np.nan, data.Y)
    search = GridSearchCV(model, {"lam": [1e-4, 1e2], "loss__kappa": [0.1, 1.0]}, cv=3, scoring=curve_scorer("median"))
    assert search.fit(data.X, Y).best_params_["lam"] == 1e-4
    assert np.all(search.cv_results_["mean_test_score"] < 0)


def test_models_of_others(data):
    scores = cross_val_score(KernelRidge(kernel="rbf", alpha=1e-3), data.X, data.Y, scoring=curve_scorer())
    assert np.all((scores < 0) & (scores > -1))


def test_functions_of_scikit_fda_as_outputs(data, model):
    skfda = pytest.importorskip("skfda")
    Y = skfda.FDataGrid(data.Y, data.t)
    by_functions = cross_val_score(model, data.X, Y, cv=KFold(3), scoring=curve_scorer())
    by_arrays = cross_val_score(model, data.X, data.Y, cv=KFold(3), scoring=curve_scorer())
    np.testing.assert_allclose(by_functions, by_arrays, rtol=1e-9)


def test_a_scorer_can_be_sent_to_another_process(data, model):
    fitted = model.fit(data.X, data.Y)
    scorer = curve_scorer("median", grid=data.t)
    assert pickle.loads(pickle.dumps(scorer))(fitted, data.X, data.Y) == scorer(fitted, data.X, data.Y)
