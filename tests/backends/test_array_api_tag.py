"""Estimators that say they support the array API pass scikit-learn's own checks of it."""

import os
import subprocess
import sys

import pytest
from sklearn.utils import get_tags

from fenchel import (
    CostSensitiveClassifier,
    FunctionalRegressor,
    FunctionalRegressorCV,
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    StructuredPredictor,
)

CODE = """
import warnings
warnings.simplefilter("ignore")
from sklearn.utils.estimator_checks import check_array_api_input
import fenchel
for name in {names!r}:
    check_array_api_input(name, getattr(fenchel, name)(), {library!r}, dtype_name="float64", check_values=True)
"""
TAGGED = [
    OperatorKernelRegressor,
    OperatorKernelRegressorCV,
    FunctionalRegressor,
    FunctionalRegressorCV,
    CostSensitiveClassifier,
]


def test_who_says_so():
    assert all(get_tags(kind()).array_api_support for kind in TAGGED)
    assert not get_tags(StructuredPredictor()).array_api_support  # its decoders count objects


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_scikit_learns_checks(library):
    pytest.importorskip(library)
    code = CODE.format(names=[kind.__name__ for kind in TAGGED], library=library)
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}  # read when SciPy is imported
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
