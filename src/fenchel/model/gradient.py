"""Derivatives of predictions with respect to the inputs."""

from collections.abc import Sequence
from typing import cast

from fenchel._array import Array, as_like, device, is_sparse, joined, namespace
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import ScalarKernel
from fenchel.kernels._distances import row_blocks
from fenchel.kernels.derivatives import feature_gradient, weighted_gradient
from fenchel.kernels.separable import BoundTerms
from fenchel.model.expansion import KernelExpansion

__all__ = ["expansion_gradient"]

_BLOCK_BYTES = 2**26  # size of a block of kernel gradients times the coefficients of every output


def expansion_gradient(
    expansion: KernelExpansion, X: Array, matrices: Sequence[Array] | None = None, almost_everywhere: bool = False
) -> Array:
    """Return the derivatives of an expansion at checked inputs, (n, p, d), in blocks of inputs.

    ``matrices`` (p, points) include the output operators of the terms, as for ``KernelExpansion.evaluate``.
    """
    terms = expansion.kernel.terms if isinstance(expansion.kernel, BoundTerms) else None
    if terms is None or is_sparse(X) or X.ndim != 2:
        raise IncompatibleError(
            f"Gradients need a scalar kernel of dense vectors, shape (n, d), times an operator. Got X of shape "
            f"{tuple(X.shape)} and {type(expansion.kernel).__name__}."
        )
    xp = namespace(X)
    X = xp.astype(X, expansion.coef.dtype, copy=False)
    has_features = expansion.features_coef is not None
    coef = as_like(expansion.features_coef if has_features else expansion.coef, X)
    Z = None if has_features else as_like(expansion.X, X)
    parts = []
    for (kernel, operator), matrix in zip(terms, matrices or [None] * len(terms), strict=True):
        own = _applied(operator, coef, matrix)
        if Z is not None and kernel.tags.has_features and coef.shape[0] > 0:  # there are fewer features than points
            own = cast(Array, kernel.features(Z)).T @ own
        parts.append((kernel, own))
    if coef.shape[0] == 0:
        return xp.zeros((X.shape[0], parts[0][1].shape[1], X.shape[1]), dtype=X.dtype, device=device(X))
    width = parts[0][1].shape[1] * max(coef.shape[0], X.shape[1])
    blocks = [
        sum(_gradient(kernel, X[rows, :], Z, own, almost_everywhere) for kernel, own in parts)
        for rows in row_blocks((X.shape[0], width), 8, _BLOCK_BYTES)
    ]
    return blocks[0] if len(blocks) == 1 else joined(blocks)


def _gradient(kernel: ScalarKernel, X: Array, Z: Array | None, coef: Array, almost_everywhere: bool) -> Array:
    """Return the derivatives of features times coefficients, or of a sum over the points Z, (n, p, d)."""
    if Z is None or kernel.tags.has_features:
        found = feature_gradient(kernel, X, coef, almost_everywhere)
    else:
        found = weighted_gradient(kernel, X, Z, coef.T[:, None, :], almost_everywhere)
    return namespace(X).permute_dims(found, (1, 0, 2))


def _applied(operator: Array | None, coef: Array, matrix: Array | None) -> Array:
    """Apply an output operator (``None``, a diagonal or a matrix) to coefficients."""
    if matrix is not None:
        return coef @ as_like(matrix, coef)
    if operator is None:
        return coef
    operator = as_like(operator, coef)
    return coef * operator if operator.ndim == 1 else coef @ operator
