"""scikit-learn's own checks, for every loss and representation, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import FunctionalRegressor, FunctionalRegressorCV, LossTrickPredictor, OperatorKernelRegressor
from fenchel.kernels import Gaussian
from fenchel.losses import NormLog
from tests.parts import LOSSES

FIRST_OF_EACH = list({type(loss).__name__: type(loss).examples()[0] for loss in LOSSES}.values())
PLAIN = [
    # a check compares nine digits, which a gap of 1e-6 leaves open for a loss that is flat around its minimum
    OperatorKernelRegressor(loss=loss, solver="row_newton" if isinstance(loss, NormLog) else "auto")
    for loss in FIRST_OF_EACH
]
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.apart("estimator", "check")
@parametrize_with_checks(PLAIN + MORE)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::fenchel.exceptions.DataWarning")
@pytest.mark.apart("estimator", "check")
@parametrize_with_checks(CURVES)
def test_scikit_learn_on_curves(estimator, check):
    check(estimator)


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
