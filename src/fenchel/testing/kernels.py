"""Contract checks for scalar kernels and output operators."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import ArrayLike
from sklearn.base import clone

from fenchel._array import Outputs
from fenchel._component import state_of
from fenchel.datasets import Curves
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import OutputOperator, ScalarKernel
from fenchel.representations import CoordinateSpace, Euclidean, Representation, Spline
from fenchel.testing._checks import expect, register, run

__all__ = ["check_kernel", "check_output_operator"]


def check_kernel(kernel: ScalarKernel, X: ArrayLike | None = None) -> None:
    """Raise ``AssertionError`` if a scalar kernel breaks the contract of kernels.

    Parameters
    ----------
    kernel : ScalarKernel
        An instance.
    X : array of shape (n, ...), default=None
        Inputs for the kernel, in float64; twelve vectors with non-negative entries by default.

    Examples
    --------
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.testing import check_kernel
    >>> check_kernel(Gaussian(0.5))
    """
    run(kernel, ScalarKernel, X=X)


def _sample(kernel: ScalarKernel, X: ArrayLike | None) -> np.ndarray:
    """Return inputs whose last row equals the first, or their Gram matrix for a kernel that takes one."""
    if X is None:
        X = np.random.default_rng(0).uniform(0, 2, size=(12, 4))
    X = np.array(X, dtype=np.float64)
    X[-1] = X[0]
    return X @ X.T if kernel.tags.is_pairwise else X


def _tolerance(K: np.ndarray) -> float:
    return 64 * float(np.finfo(K.dtype).eps) * float(np.max(np.abs(K)))


def check_matrix_is_positive(kernel: ScalarKernel, X: ArrayLike | None = None) -> None:
    """The matrix of a sample is symmetric to the last bit and positive semidefinite up to round-off."""
    for dtype in (np.float64, np.float32):
        K = kernel(_sample(kernel, X).astype(dtype))
        expect(np.array_equal(K, K.T), f"{kernel!r}: the matrix of a sample is not symmetric.")
        values = np.linalg.eigvalsh(K.astype(np.float64))
        expect(values[0] >= -16 * np.finfo(dtype).eps * np.trace(K), f"{kernel!r}: eigenvalue {values[0]:.1e}.")
        expect(values[-1] > 0, f"{kernel!r}: the matrix of a sample is zero.")


def check_diag(kernel: ScalarKernel, X: ArrayLike | None = None) -> None:
    """``diag`` is the diagonal of the matrix, also for a single sample."""
    X = _sample(kernel, X)
    K, diagonal = kernel(X), kernel.diag(X)
    expect(diagonal.shape == (len(X),), f"{kernel!r}: diag has shape {diagonal.shape}.")
    assert_allclose(diagonal, np.diagonal(K), rtol=0, atol=_tolerance(K), err_msg=f"{kernel!r}: diag.")
    first = X[:1, :1] if kernel.tags.is_pairwise else X[:1]
    assert_allclose(kernel(first)[0], kernel.diag(first), rtol=1e-14, err_msg=f"{kernel!r}: one sample.")


def check_rectangular_matrix(kernel: ScalarKernel, X: ArrayLike | None = None) -> None:
    """``kernel(X, Z)`` is a block of the matrix of both samples, and equal inputs have equal rows."""
    if kernel.tags.is_pairwise:
        return
    X = _sample(kernel, X)
    kernel, half = kernel.resolve(X), len(X) // 2
    K = kernel(X)
    for rows, columns in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        block = kernel(X[rows], X[columns])
        assert_allclose(block, K[rows, columns], rtol=0, atol=_tolerance(K), err_msg=f"{kernel!r}: a block.")
    assert_allclose(K[0], K[-1], rtol=0, atol=_tolerance(K), err_msg=f"{kernel!r}: rows of equal inputs.")


def check_kernel_dtype_and_arguments(kernel: ScalarKernel, X: ArrayLike | None = None) -> None:
    """Inputs are not modified and may be read-only views; float32 stays float32."""
    for dtype in (np.float64, np.float32):
        points = _sample(kernel, X).astype(dtype)
        before, resolved = points.copy(), kernel.resolve(points)
        for result in (resolved(points), resolved(points, points), resolved.diag(points)):
            expect(result.dtype == dtype, f"{kernel!r}: {np.dtype(dtype)} becomes {result.dtype}.")
        assert_array_equal(points, before, err_msg=f"{kernel!r}: an argument is modified.")
        wide = np.repeat(points, 2, axis=1)
        wide.flags.writeable = False
        K = kernel(points)
        assert_allclose(kernel(wide[:, ::2]), K, rtol=0, atol=_tolerance(K), err_msg=f"{kernel!r}: a read-only view.")


def check_clone_and_resolve(kernel: ScalarKernel, X: ArrayLike | None = None) -> None:
    """A clone and a resolved kernel have the same values; ``resolve`` changes no parameter."""
    X, before, state = _sample(kernel, X), repr(kernel), state_of(kernel)
    K, resolved = kernel(X), kernel.resolve(X)
    expect(type(resolved) is type(kernel), f"{kernel!r}: resolve returns a {type(resolved).__name__}.")
    assert_array_equal(clone(kernel)(X), K, err_msg=f"{kernel!r}: clone.")
    assert_array_equal(resolved(X), K, err_msg=f"{kernel!r}: resolve.")
    expect(state_of(kernel) == state, f"{kernel!r}: resolve changes a parameter; it was {before}.")


def check_tags(kernel: ScalarKernel, X: ArrayLike | None = None) -> None:
    """What ``tags`` states holds on the sample: features give the matrix, and the diagonal is within its bound."""
    X = _sample(kernel, X)
    kernel = kernel.resolve(X)
    tags, features, K = kernel.tags, kernel.features(X), kernel(X)
    expect(tags.has_features == (features is not None), f"{kernel!r}: tags.has_features is {tags.has_features}.")
    if features is not None:
        assert_allclose(features @ features.T, K, rtol=0, atol=_tolerance(K), err_msg=f"{kernel!r}: features.")
    largest = float(np.max(kernel.diag(X)))
    expect(largest <= tags.diag_bound + _tolerance(K), f"{kernel!r}: k(x, x) is {largest:.3g} > tags.diag_bound.")


def check_output_operator(operator: OutputOperator, space: CoordinateSpace | None = None) -> None:
    """Raise ``AssertionError`` if an output operator breaks the contract of operators.

    Parameters
    ----------
    operator : OutputOperator
        An instance.
    space : CoordinateSpace, default=None
        Outputs that the operator supports, in coordinates; by default vectors of dimension 3, or curves with two
        channels for an operator that rejects vectors.

    Examples
    --------
    >>> from fenchel.kernels import Covariance
    >>> from fenchel.testing import check_output_operator
    >>> check_output_operator(Covariance())
    """
    run(operator, OutputOperator, space=space)


def check_operator_is_positive(operator: OutputOperator, space: CoordinateSpace | None = None) -> None:
    """The operator in coordinates is symmetric and positive: (p, p), (p,), or ``None`` for the identity."""
    space = space or _fitting(operator)
    matrix, p = operator.matrix(space), space.targets.shape[1]
    if matrix is not None:
        expect(matrix.shape in ((p,), (p, p)), f"{operator!r}: shape {matrix.shape} in {p} coordinates.")
        matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
        assert_allclose(matrix, matrix.T, rtol=0, atol=1e-14 * np.max(np.abs(matrix)), err_msg=f"{operator!r}.")
        least = np.linalg.eigvalsh(matrix)[0]
        expect(least >= -1e-14 * np.trace(matrix), f"{operator!r}: eigenvalue {least:.1e}.")


def check_operator_is_unchanged(operator: OutputOperator, space: CoordinateSpace | None = None) -> None:
    """A clone gives the same matrix, and parameters are not modified."""
    space, before = space or _fitting(operator), repr(operator)
    state = state_of(operator)
    first, second = operator.matrix(space), clone(operator).matrix(space)
    if first is not None:
        assert_array_equal(first, second, err_msg=f"{operator!r}: clone.")
    expect(state_of(operator) == state, f"{operator!r}: a parameter is changed; it was {before}.")


def _fitting(operator: OutputOperator) -> CoordinateSpace:
    """Return outputs in coordinates that the operator supports."""
    rng = np.random.default_rng(0)
    vectors = _space(Euclidean(), rng.standard_normal((20, 3)))
    try:
        operator.matrix(vectors)
    except IncompatibleError:
        return _space(Spline(), Curves(np.array([0.0, 0.2, 0.3, 0.7, 1.5]), rng.standard_normal((6, 5, 2))))
    return vectors


def _space(representation: Representation, Y: Outputs) -> CoordinateSpace:
    return CoordinateSpace(representation, representation.learn(Y).rows)


register(
    ScalarKernel,
    check_matrix_is_positive,
    check_diag,
    check_rectangular_matrix,
    check_kernel_dtype_and_arguments,
    check_clone_and_resolve,
    check_tags,
)
register(OutputOperator, check_operator_is_positive, check_operator_is_unchanged)
