"""Scores of scikit-learn in the searches: names, scorers and functions of outputs and predictions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import f1_score, make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import KFold, cross_val_score

from fenchel import (
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    StructuredPredictor,
    StructuredPredictorCV,
)
from fenchel.datasets import make_functional
from fenchel.kernels import FunctionalGaussian, Gaussian
from fenchel.metrics import curve_scorer, label_scorer

KERNEL = Gaussian(0.4)
FOLDS = KFold(3, shuffle=True, random_state=2)
GRID = {"lams": [1e-2], "losses": ["square"], "cv": FOLDS}


@pytest.fixture
def table(rng):
    X = rng.standard_normal((40, 2))
    return X, np.column_stack([X[:, 0] + X[:, 1] ** 2, np.sin(2 * X[:, 0])]) + 0.1 * rng.standard_normal((40, 2))


@pytest.mark.parametrize(
    "scoring", ["neg_mean_absolute_error", "r2", make_scorer(mean_absolute_error, greater_is_better=False)], ids=str
)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_scores_of_vectors_are_those_of_explicit_folds(table, scoring, n_outputs):
    X, Y = table
    Y = Y[:, 0] if n_outputs == 1 else Y
    model = OperatorKernelRegressorCV(KERNEL, scoring=scoring, **GRID).fit(X, Y)
    wanted = cross_val_score(OperatorKernelRegressor(KERNEL, lam=1e-2), X, Y, cv=FOLDS, scoring=scoring)
    assert_allclose(-model.fold_errors_[0, 0], wanted, rtol=1e-6)
    assert_allclose(-model.cv_errors_[0, 0], np.mean(wanted), rtol=1e-6)


def test_scores_by_name_without_any_scale(table):
    """Scores are of outputs in their own units, and the best is the greatest; the grid ends where it is inside."""
    X, Y = table
    model = OperatorKernelRegressorCV(scoring="neg_mean_absolute_error").fit(X, Y * [1.0, 1e3])
    assert_allclose(-model.cv_errors_.min(), -0.5e3 * model_error(X, Y, model), rtol=0.1)
    by_r2 = OperatorKernelRegressorCV(scoring="r2").fit(X, Y)
    assert 0.3 < -by_r2.cv_errors_.min() <= 1
    assert len(by_r2.lams_) < 10


def model_error(X, Y, model):
    """Return the mean absolute error of the second output by five explicit folds, with the kernel that was chosen."""
    errors = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        part = OperatorKernelRegressor(model.best_kernel_, loss="square", lam=model.best_lam_, center=True, scale=True)
        errors.append(np.mean(np.abs(part.fit(X[train], Y[train]).predict(X[test]) - Y[test])[:, 1]))
    return np.mean(errors)


def test_leave_one_out_has_one_score(table):
    """A coefficient of determination takes more than one sample: it is that of all held-out predictions."""
    X, Y = table
    model = OperatorKernelRegressorCV(KERNEL, scoring="r2", lams=[1e-2], losses=["square"], cv="loo").fit(X, Y)
    predicted = np.zeros_like(Y)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        predicted[i] = OperatorKernelRegressor(KERNEL, lam=1e-2).fit(X[rest], Y[rest]).predict(X[i : i + 1])[0]
    assert_allclose(-model.cv_errors_[0, 0], r2_score(Y, predicted), rtol=1e-6)


def test_weights_count_in_scores(table, rng):
    X, Y = table
    counts = rng.integers(1, 4, len(X)).astype(float)
    model = OperatorKernelRegressorCV(KERNEL, scoring="neg_mean_absolute_error", **GRID).fit(X, Y, counts)
    errors = []
    for train, test in FOLDS.split(X):
        part = OperatorKernelRegressor(KERNEL, lam=1e-2).fit(X[train], Y[train], counts[train])
        errors.append(mean_absolute_error(Y[test], part.predict(X[test]), sample_weight=counts[test]))
    assert_allclose(model.fold_errors_[0, 0], errors, rtol=1e-6)


class TestCurves:
    @pytest.fixture
    def curves(self):
        return make_functional(24, 12, random_state=0)

    def test_a_name(self, curves):
        kernel = FunctionalGaussian(2.0)
        search = FunctionalRegressorCV(kernel, scoring="neg_mean_absolute_error", center=False, **GRID)
        model = search.fit(curves.X, curves.Y)
        plain = FunctionalRegressor(kernel, lam=1e-2, center=False)
        wanted = cross_val_score(plain, curves.X, curves.Y, cv=FOLDS, scoring="neg_mean_absolute_error")
        assert_allclose(-model.fold_errors_[0, 0], wanted, rtol=1e-6)

    def test_curves_with_gaps(self, curves, rng):
        """A scorer of curves looks where they are observed: it is the error by default."""
        Y = curves.Y.copy()
        Y[rng.random(Y.shape) < 0.2] = np.nan
        with pytest.raises(
            ValueError, match=r"the outputs have some\. Use scoring=None, or fenchel\.metrics\.curve_scorer"
        ):
            FunctionalRegressorCV(None, scoring="r2", **GRID).fit(curves.X, Y)
        by_scorer = FunctionalRegressorCV(None, scoring=curve_scorer(), **GRID).fit(curves.X, Y)
        by_default = FunctionalRegressorCV(None, **GRID).fit(curves.X, Y)
        length = by_default.grid_[-1] - by_default.grid_[0]
        assert_allclose(by_scorer.fold_errors_ * length, by_default.fold_errors_, rtol=1e-6)

    def test_by_default_the_error_is_that_of_the_scorer(self, curves):
        """Scales and the centre are undone: scores are in the units of the curves."""
        model = FunctionalRegressorCV(scoring=curve_scorer(), losses=["square"], cv=3).fit(curves.X, 1e3 * curves.Y)
        other = FunctionalRegressorCV(scoring=curve_scorer(), losses=["square"], cv=3).fit(curves.X, curves.Y)
        assert_allclose(model.cv_errors_.min(), 1e6 * other.cv_errors_.min(), rtol=1e-4)


class TestLabelSets:
    @pytest.fixture
    def labels(self, rng):
        X = rng.standard_normal((60, 2))
        return X, (X @ np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]) > 0.3).astype(int)

    @pytest.mark.parametrize("scoring", ["f1_micro", label_scorer("hamming")], ids=repr)
    def test_decoded_outputs_are_scored(self, labels, scoring):
        X, Y = labels
        model = StructuredPredictorCV(KERNEL, "linear", decoder="threshold", center=False, scoring=scoring, **GRID)
        model.fit(X, Y)
        plain = StructuredPredictor(KERNEL, lam=1e-2, decoder="threshold")
        scores = []
        for train, test in FOLDS.split(X):
            fitted = plain.fit(X[train], Y[train])
            is_name = isinstance(scoring, str)
            scores.append(
                f1_score(Y[test], fitted.predict(X[test]), average="micro")
                if is_name
                else scoring(fitted, X[test], Y[test])
            )
        assert_allclose(-model.fold_errors_[0, 0], scores)

    def test_either_a_task_loss_or_a_score(self, labels):
        X, Y = labels
        with pytest.raises(ValueError, match="task_loss or scoring, not both"):
            StructuredPredictorCV(task_loss=lambda A, B: np.zeros(len(A)), scoring="accuracy").fit(X, Y)


def test_bad_values(table):
    X, Y = table
    with pytest.raises(TypeError, match=r"must be a name such as 'r2', a scorer.*Got 3 instead"):
        OperatorKernelRegressorCV(scoring=3).fit(X, Y)
    with pytest.raises(ValueError, match="'no_such_score' is not a valid scoring value"):
        OperatorKernelRegressorCV(scoring="no_such_score").fit(X, Y)
    with pytest.raises(
        ValueError, match="scoring=roc_auc does not accept the predictions of OperatorKernelRegressorCV"
    ):
        OperatorKernelRegressorCV(KERNEL, scoring="roc_auc", **GRID).fit(X, Y)
    with pytest.raises(ValueError, match=r"is (nan|-?inf) for a fold of \d+ samples. Use fewer folds"):
        OperatorKernelRegressorCV(KERNEL, scoring=lambda estimator, X, y: np.nan, **GRID).fit(X, Y)
