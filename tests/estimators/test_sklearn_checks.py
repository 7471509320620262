"""scikit-learn's own checks, for every loss, with no expected failure for vectors and two for curves."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import FunctionalRegressor, FunctionalRegressorCV, LossTrickPredictor, OperatorKernelRegressor
from fenchel.kernels import Gaussian
from tests.parts import LOSSES

FIRST_OF_EACH = list({type(loss).__name__: type(loss).examples()[0] for loss in LOSSES}.values())
MORE = [
    OperatorKernelRegressor(kernel="laplacian", operator="covariance", loss="huber"),
    OperatorKernelRegressor(solver="apgd", loss="epsilon_ridge", lam=1e-2, tol=1e-13),
]
CURVES = [
    FunctionalRegressor(),
    FunctionalRegressor(Gaussian(0.5), loss="huber", center="median", representation="eigen"),
    FunctionalRegressor(Gaussian(0.5), loss="epsilon_ridge"),
    FunctionalRegressorCV(tol=1e-10),
    FunctionalRegressorCV(cv=2, representation="eigen", tol=1e-10),
    FunctionalRegressorCV(None, cv=2, lams=[1e-2], losses=["square"], representation="eigen"),
]
SETS_A_NUMBER = (
    "check_dont_overwrite_parameters",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.apart("estimator", "check")
@parametrize_with_checks([OperatorKernelRegressor(loss=loss) for loss in FIRST_OF_EACH] + MORE)
def test_scikit_learn(estimator, check):
    check(estimator)


def expected_failed_checks(estimator):
    """Return the checks that do not apply to an estimator of curves, and why."""
    failing: dict[str, str] = {}
    if estimator.representation == "spline":
        reason = "sets n_components, which has no meaning for the spline: its coordinates are the points of the grid"
        failing |= dict.fromkeys(SETS_A_NUMBER, reason)
    return failing


@pytest.mark.apart("estimator", "check")
@parametrize_with_checks(CURVES, expected_failed_checks=expected_failed_checks)
def test_scikit_learn_on_curves(estimator, check):
    check(estimator)


def test_every_check_runs_on_some_estimator_of_curves():
    """What one of them leaves out, another has."""
    left_out = set.intersection(*(set(expected_failed_checks(estimator)) for estimator in CURVES))
    assert not left_out


@pytest.mark.apart("estimator", "check")
@parametrize_with_checks(
    [
        LossTrickPredictor(Gaussian(0.5)),
        LossTrickPredictor(Gaussian(0.5), "cauchy", lams=[1e-3, 1e-2], cv=2),
        LossTrickPredictor(Gaussian(0.5), "absolute", surrogate="huber", output_kernel=Gaussian(0.5)),
        LossTrickPredictor(Gaussian(0.5), "zero_one"),
    ]
)
def test_scikit_learn_on_the_loss_trick(estimator, check):
    check(estimator)
