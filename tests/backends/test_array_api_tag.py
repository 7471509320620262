"""Estimators that say they support the array API pass scikit-learn's own checks of it."""

import os
import subprocess
import sys
from importlib.util import find_spec

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
for library in {libraries!r}:
    for name in {names!r}:
        check_array_api_input(name, getattr(fenchel, name)(), library, dtype_name="float64", check_values=True)
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


def test_scikit_learns_checks():
    libraries = [library for library in ("array_api_strict", "torch") if find_spec(library)]
    if not libraries:
        pytest.skip("neither array_api_strict nor torch is installed")
    code = CODE.format(names=[kind.__name__ for kind in TAGGED], libraries=libraries)
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}  # read when SciPy is imported
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
