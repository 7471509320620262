"""Facts about kernels combine in one value; parameters are checked once; the attributes of before still count."""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fenchel import OperatorKernelRegressor
from fenchel.approximations import RandomFeatures
from fenchel.kernels import (
    Constant,
    Gaussian,
    KernelTags,
    Laplacian,
    Linear,
    MultipleKernel,
    Part,
    Precomputed,
    ScalarKernel,
    Standardized,
    Wrapped,
)
from fenchel.kernels.derivatives import slope, weighted_gradient
from fenchel.testing import check_kernel

X = np.random.default_rng(0).normal(size=(12, 3))


@pytest.mark.parametrize(
    ("kernel", "tags"),
    [
        (Gaussian() + Constant(2.0), KernelTags(diag_bound=3.0)),
        (Linear() + Constant(2.0), KernelTags(has_features=True)),
        (Gaussian() * Constant(2.0), KernelTags(diag_bound=2.0)),
        (Linear() * Constant(2.0), KernelTags()),
        (0.5 * Constant(3.0), KernelTags(has_features=True, diag_bound=1.5)),
        (Precomputed() + Gaussian(), KernelTags(is_pairwise=True, is_trusted=False)),
        (Standardized(Wrapped("rbf")), KernelTags(is_trusted=False)),
        (2.0 * MultipleKernel([("a", Gaussian(), [0])], scales=[1.0]), KernelTags(takes_missing=True, diag_bound=2.0)),
    ],
    ids=str,
)
def test_tags_combine(kernel, tags):
    assert kernel.tags == tags


def test_a_resolved_kernel_checks_no_parameter_again(monkeypatch):
    kernel = (Standardized(0.5 * Gaussian("median") + Part(Laplacian(), [0])) + Constant()).resolve(X)
    monkeypatch.setattr("fenchel._component.check_parameters", lambda *args: pytest.fail("checked again"))
    kernel(X, X[:3])
    kernel.diag(X)


def test_a_parameter_that_changes_after_resolve_is_checked():
    kernel = Gaussian("median").resolve(X)
    kernel.gamma = -1.0
    with pytest.raises(ValueError, match=re.escape("The 'gamma' parameter of Gaussian must be a float in (0, inf)")):
        kernel(X)


class Old(ScalarKernel):
    """A kernel as users wrote it for 0.2: facts as attributes, derivatives as methods."""

    is_trusted = False
    diag_bound = 1.0

    def __call__(self, X, Z=None):
        return Gaussian(0.5)(X, Z)

    def diag(self, X):
        return np.ones(len(X), X.dtype)

    def weighted_gradient(self, X, Z, weights):
        return weighted_gradient(Gaussian(0.5), X, Z, weights)

    def spectral_frequencies(self, normals, rng):
        return normals


@pytest.mark.filterwarnings("ignore:.*the old way ends with the next release:FutureWarning")
def test_kernels_with_the_attributes_of_before_still_work():
    check_kernel(Old())
    assert Old().tags == KernelTags(is_trusted=False, diag_bound=1.0)
    models = [OperatorKernelRegressor(kernel, lam=1e-2).fit(X, X[:, :1]) for kernel in (Old(), Gaussian(0.5))]
    assert_array_equal(*(model.predict(X) for model in models))
    assert_array_equal(*(model.gradient(X) for model in models))
    found = [RandomFeatures(6).approximate(kernel, X)(X) for kernel in (Old(), Gaussian(0.5))]
    assert_array_equal(*found)
    assert Old().is_trusted is False


def test_what_was_an_attribute_is_read_with_a_warning():
    with pytest.warns(FutureWarning, match="Old states is_trusted, diag_bound. Define tags"):
        assert not Old().tags.is_trusted
    with pytest.warns(FutureWarning, match="Old defines weighted_gradient. Register it"):
        weighted_gradient(Old(), X, X, np.ones((12, 12)))
    with pytest.warns(FutureWarning, match=re.escape("Read kernel.tags.diag_bound instead")):
        assert Gaussian().diag_bound == 1.0 and Linear().tags.diag_bound == math.inf
    with pytest.warns(FutureWarning, match=re.escape("Call fenchel.kernels.derivatives.slope(kernel, ...) instead")):
        found = Gaussian().slope(X[:, :1], X[:4, :1])
    assert_array_equal(found, slope(Gaussian(), X[:, :1], X[:4, :1]))
    with pytest.raises(AttributeError, match="'Gaussian' object has no attribute 'sigma'"):
        _ = Gaussian().sigma


@pytest.mark.parametrize("tags", [KernelTags(diag_bound=0.5), KernelTags(has_features=True)], ids=["bound", "features"])
def test_tags_that_do_not_hold_are_found(tags):
    kernel = type("Wrong", (Old,), {"tags": tags})()
    with pytest.raises(AssertionError, match=r"Wrong\(\): .*tags\.(diag_bound|has_features is True)"):
        check_kernel(kernel)
