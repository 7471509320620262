"""scikit-learn's own checks, for every loss, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import OperatorKernelRegressor
from tests.parts import LOSSES

FIRST_OF_EACH = list({type(loss).__name__: type(loss).examples()[0] for loss in LOSSES}.values())
MORE = [
    OperatorKernelRegressor(kernel="laplacian", operator="covariance", loss="huber"),
    OperatorKernelRegressor(solver="apgd", loss="epsilon_ridge", lam=1e-2, tol=1e-13),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([OperatorKernelRegressor(loss=loss) for loss in FIRST_OF_EACH] + MORE)
def test_scikit_learn(estimator, check):
    check(estimator)
