"""Contract checks for approximations of kernels."""

import numpy as np
from numpy.testing import assert_array_equal
from numpy.typing import ArrayLike
from sklearn.base import clone

from fenchel._component import state_of
from fenchel.approximations import Approximation
from fenchel.kernels import Gaussian, ScalarKernel
from fenchel.testing._checks import expect, register, run
from fenchel.testing.kernels import check_kernel

__all__ = ["check_approximation"]

_MANY = 200  # number of features considered large


def check_approximation(
    approximation: Approximation, kernel: ScalarKernel | None = None, X: ArrayLike | None = None
) -> None:
    """Raise ``AssertionError`` if an approximation breaks the contract of approximations.

    Parameters
    ----------
    approximation : Approximation
        An instance.
    kernel : ScalarKernel, default=None
        A resolved kernel that it supports; a Gaussian kernel by default.
    X : array of shape (n, d), default=None
        Inputs for the kernel, in float64; thirty vectors with non-negative entries by default.

    Examples
    --------
    >>> from fenchel.approximations import Nystrom
    >>> from fenchel.testing import check_approximation
    >>> check_approximation(Nystrom(5))
    """
    run(approximation, Approximation, kernel=kernel, X=X)


def _sample(kernel: ScalarKernel | None, X: ArrayLike | None) -> tuple[ScalarKernel, np.ndarray]:
    X = np.random.default_rng(0).uniform(0, 2, size=(30, 4)) if X is None else np.array(X, dtype=np.float64)
    return Gaussian(0.4) if kernel is None else kernel, X


def check_approximation_is_kernel(
    approximation: Approximation, kernel: ScalarKernel | None = None, X: ArrayLike | None = None
) -> None:
    """The result is a valid kernel with at most ``n_components`` features, and equals their inner products."""
    kernel, X = _sample(kernel, X)
    thin = approximation.approximate(kernel, X)
    check_kernel(thin, X)
    expect(thin.tags.has_features, f"{approximation!r}: the kernel has no features.")
    features = np.asarray(thin.features(X))
    count = approximation.n_components
    most = len(X) if count == "auto" else count
    expect(features.shape[1] <= most, f"{approximation!r}: there are {features.shape[1]} features.")
    error = np.max(np.abs(features @ features.T - thin(X)))
    expect(error <= 1e-12 * np.max(thin.diag(X)), f"{approximation!r}: products of features differ by {error:.1e}.")


def check_approximation_is_repeatable(
    approximation: Approximation, kernel: ScalarKernel | None = None, X: ArrayLike | None = None
) -> None:
    """The same seed gives the same kernel bit for bit; inputs and parameters are not modified."""
    kernel, X = _sample(kernel, X)
    before, text, weights = X.copy(), repr(approximation), np.linspace(0.5, 2, len(X))
    state = state_of(approximation)
    first, second = (one.approximate(kernel, X, weights, 1e-2)(X) for one in (approximation, clone(approximation)))
    assert_array_equal(first, second, err_msg=f"{approximation!r}: two draws.")
    assert_array_equal(X, before, err_msg=f"{approximation!r}: inputs are modified.")
    expect(state_of(approximation) == state, f"{approximation!r}: a parameter is changed; it was {text}.")


def check_approximation_gets_better(
    approximation: Approximation, kernel: ScalarKernel | None = None, X: ArrayLike | None = None
) -> None:
    """Many features approximate the kernel better than few."""
    kernel, X = _sample(kernel, X)
    K = kernel(X)

    def error(count: int) -> float:
        thin = clone(approximation).set_params(n_components=count).approximate(kernel, X)
        return float(np.linalg.norm(thin(X) - K) / np.linalg.norm(K))

    few, many = error(2), error(_MANY)
    expect(many < 0.5 * few, f"{approximation!r}: the error is {few:.1e} with 2 features, {many:.1e} with {_MANY}.")


register(
    Approximation, check_approximation_is_kernel, check_approximation_is_repeatable, check_approximation_gets_better
)
