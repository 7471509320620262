"""Derivatives of kernels with kinks, defined almost everywhere."""

from functools import singledispatch
from typing import Any

from fenchel._array import Array, namespace
from fenchel.kernels._values import distances
from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.scalar import Laplacian, Matern

__all__ = ["almost_everywhere"]


def almost_everywhere(kernel: ScalarKernel) -> ScalarKernel:
    """Return a kernel with the same values whose gradient at a kink is zero, the mean of the one-sided derivatives.

    ``Laplacian`` has kinks where two points agree in one column, ``Matern(nu=0.5)`` where they agree in all columns.
    Other kernels without a derivative are returned unchanged.
    """
    if isinstance(kernel, Laplacian) or (isinstance(kernel, Matern) and kernel.nu == 0.5):
        return WithoutKinks(kernel)
    params = kernel.get_params(deep=False)
    return type(kernel)(**{name: _smoothed(part) for name, part in params.items()}) if params else kernel


def _smoothed(part: Any) -> Any:
    """Apply ``almost_everywhere`` to the kernels in a parameter, including lists."""
    if isinstance(part, list | tuple):
        return type(part)(_smoothed(each) for each in part)
    return almost_everywhere(part) if isinstance(part, ScalarKernel) else part


class WithoutKinks(ScalarKernel):
    """Kernel with kinks, at which its gradient is taken to be zero."""

    def __init__(self, kernel: ScalarKernel) -> None:
        self.kernel = kernel

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        return self.kernel(X, Z)

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        return self.kernel.diag(X)

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        """Return the sum over j of w_ij times the gradient of k(x_i, z_j) in x_i, shape (n, d) or (p, n, d)."""
        return _weighted_gradient(self.kernel, X, Z, weights)


@singledispatch
def _weighted_gradient(kernel: ScalarKernel, X: Array, Z: Array, weights: Array) -> Array:
    """Return the weighted gradients, by type of kernel."""
    return kernel.weighted_gradient(X, Z, weights)


@_weighted_gradient.register
def _(kernel: Matern, X: Array, Z: Array, weights: Array) -> Array:
    xp, scale, lengths = namespace(X), float(kernel.length_scale), distances(X, Z, "euclidean")
    inverse = xp.where(lengths > 0, 1 / xp.where(lengths > 0, lengths, 1 + lengths), 0 * lengths)
    along = weights * (-kernel(X, Z) * inverse / scale)
    moved = xp.mean(X, axis=0, keepdims=True)
    return xp.sum(along, axis=-1, keepdims=True) * (X - moved) - along @ (Z - moved)


@_weighted_gradient.register
def _(kernel: Laplacian, X: Array, Z: Array, weights: Array) -> Array:
    xp = namespace(X)
    gamma = float(kernel.resolve(X).gamma)  # type: ignore[arg-type]
    values = kernel(X, Z) * -gamma

    def derivatives(k: int) -> Array:
        slopes = values * xp.sign(X[:, k, None] - Z[None, :, k])
        if weights.shape[-2] != 1:
            return xp.sum(weights * slopes, axis=-1)
        return (slopes @ weights[..., 0, :].T).T  # weights shared by all points: one matrix product

    return xp.stack([derivatives(k) for k in range(X.shape[1])], axis=-1)
