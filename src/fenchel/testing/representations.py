"""Contract checks for representations: coordinates must be orthonormal."""

from contextlib import suppress
from typing import NamedTuple, cast

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fenchel._array import Outputs
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import Covariance, Diagonal, Matrix
from fenchel.representations import CoordinateSpace, Representation
from fenchel.testing._checks import expect, register, run
from fenchel.testing.kernels import check_operator_is_positive

__all__ = ["check_representation"]

_EPS = float(np.finfo(np.float64).eps)
_ROUND_OFF = 256 * _EPS  # of sums over some tens of points, relative to the largest product


class _Outputs(NamedTuple):
    """Raw outputs, and their inner products if known."""

    Y: Outputs
    products: np.ndarray


def check_representation(representation: Representation, Y: Outputs = None, products: np.ndarray | None = None) -> None:
    """Raise ``AssertionError`` if a representation breaks the contract of representations.

    Parameters
    ----------
    representation : Representation
        An instance.
    Y : array of shape (n, ...), default=None
        Raw outputs that the representation supports; by default seven vectors, or their Gram matrix for a
        representation that rejects vectors.
    products : array of shape (n, n), default=None
        The inner products of these outputs, which the coordinates must reproduce; ``Y @ Y.T`` by default.

    Examples
    --------
    >>> from fenchel.representations import Euclidean
    >>> from fenchel.testing import check_representation
    >>> check_representation(Euclidean())
    """
    outputs = None if Y is None else _Outputs(Y, Y @ Y.T if products is None else products)
    run(representation, Representation, outputs=outputs)


def _outputs(representation: Representation) -> _Outputs:
    """Return outputs that the representation supports: vectors, or else their Gram matrix."""
    Y = np.random.default_rng(0).standard_normal((7, 3))
    try:
        clone(representation).fit(Y)
    except ValueError:
        return _Outputs(Y @ Y.T, Y @ Y.T)
    return _Outputs(Y, Y @ Y.T)


def _learned(
    representation: Representation, Y: Outputs, weights: np.ndarray | None = None
) -> tuple[np.ndarray, CoordinateSpace]:
    """Return outputs in coordinates, and the space that output operators act on."""
    fitted = clone(representation)
    rows = fitted.learn(Y, weights).rows
    return rows, CoordinateSpace(fitted, rows, weights)


def check_inner_products(representation: Representation, outputs: _Outputs | None = None) -> None:
    """The coordinates of training outputs and of encoded outputs reproduce their inner products."""
    Y, products = outputs or _outputs(representation)
    fitted, size = clone(representation), float(np.max(np.abs(products)))
    targets, encoded = fitted.learn(Y).rows, fitted.encode(Y).rows
    message = f"{representation!r}: inner products."
    expect(targets.ndim == 2, f"{representation!r}: coordinates have {targets.ndim} dimensions.")
    assert_allclose(targets @ targets.T, products, rtol=0, atol=_ROUND_OFF * size, err_msg=message)
    assert_allclose(encoded @ encoded.T, products, rtol=0, atol=64 * _ROUND_OFF * size, err_msg=message)
    assert_allclose(encoded, targets, rtol=0, atol=64 * _ROUND_OFF * np.sqrt(size), err_msg=message)


def check_decode(representation: Representation, outputs: _Outputs | None = None) -> None:
    """``decode`` recovers the training outputs; after ``encode`` it is an orthogonal projection."""
    Y, _ = outputs or _outputs(representation)
    fitted, other = clone(representation), np.random.default_rng(5).standard_normal(Y.shape)
    back, once = fitted.decode(fitted.learn(Y).rows), fitted.decode(fitted.encode(other).rows)
    twice, size = fitted.decode(fitted.encode(once).rows), np.max(np.sum(other**2, axis=1))
    assert_allclose(back, Y, rtol=0, atol=_ROUND_OFF * np.max(np.abs(Y)), err_msg=f"{representation!r}: decode.")
    assert_allclose(twice, once, rtol=0, atol=1e4 * _EPS * np.max(np.abs(other)), err_msg=f"{representation!r}.")
    lost = np.sum((other - once) * once, axis=1)
    assert_allclose(lost, 0, atol=1e4 * _EPS * size, err_msg=f"{representation!r}: the projection is not orthogonal.")


def check_covariance(representation: Representation, outputs: _Outputs | None = None) -> None:
    """``CoordinateSpace.covariance`` is the weighted second moment of the training outputs."""
    Y, products = outputs or _outputs(representation)
    for weights in (None, np.linspace(0.5, 3.0, len(Y))):
        targets, space = _learned(representation, Y, weights)
        counts = np.ones(len(Y)) if weights is None else weights
        # <y_k, C y_l> = (1 / sum w) sum_i w_i <y_k, y_i> <y_i, y_l>: the definition without coordinates
        expected = products * counts @ products / np.sum(counts)
        found = targets @ space.covariance() @ targets.T
        tolerance = _ROUND_OFF * np.max(np.abs(expected))
        assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=f"{representation!r}: covariance.")


def check_operators(representation: Representation, outputs: _Outputs | None = None) -> None:
    """Output operators in coordinates are positive; a matrix may be rejected by ``IncompatibleError``."""
    Y, _ = outputs or _outputs(representation)
    (_, space), d = _learned(representation, Y), Y.shape[1]
    for operator in (Matrix(np.diag(np.arange(d))), Diagonal(np.arange(d)[::-1])):
        with suppress(IncompatibleError):
            check_operator_is_positive(operator, space)
    check_operator_is_positive(Covariance(), space)


def check_take(representation: Representation, outputs: _Outputs | None = None) -> None:
    """``take`` returns raw outputs from which a fit reproduces the inner products of these samples."""
    Y, products = outputs or _outputs(representation)
    index = np.array([4, 0, 2])
    part = clone(representation).learn(clone(representation).fit(Y).take(Y, index)).rows
    expected, tolerance = products[np.ix_(index, index)], _ROUND_OFF * np.max(np.abs(products))
    assert_allclose(part @ part.T, expected, rtol=0, atol=tolerance, err_msg=f"{representation!r}: take.")


def check_representation_dtype_and_arguments(representation: Representation, outputs: _Outputs | None = None) -> None:
    """Outputs are not modified, float32 stays float32, and a second fit gives the same bits."""
    raw, _ = outputs or _outputs(representation)
    for dtype in (np.float64, np.float32):
        Y = raw.astype(dtype)
        before, (targets, space) = Y.copy(), _learned(representation, Y)
        fitted = cast(Representation, space.representation)
        for result in (targets, fitted.encode(Y).rows, fitted.decode(targets), space.covariance()):
            expect(result.dtype == dtype, f"{representation!r}: {np.dtype(dtype)} becomes {result.dtype}.")
        assert_array_equal(Y, before, err_msg=f"{representation!r}: an argument is modified.")
        assert_array_equal(clone(representation).learn(Y).rows, targets, err_msg=f"{representation!r}.")


register(
    Representation,
    check_inner_products,
    check_decode,
    check_covariance,
    check_operators,
    check_take,
    check_representation_dtype_and_arguments,
)
