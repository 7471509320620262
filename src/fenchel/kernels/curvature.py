"""Second derivatives of kernels on the line, by the type of the kernel."""

import math
from functools import singledispatch

import numpy as np

from fenchel._array import Array, as_like
from fenchel.kernels._distances import distances, gaussian, inverse_width
from fenchel.kernels.combined import Constant, Product, Scaled, Sum
from fenchel.kernels.derivatives import no_derivative, slope
from fenchel.kernels.scalar import Gaussian, Linear, Matern, Polynomial, RationalQuadratic
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.standardized import Standardized

__all__ = ["curvature"]


@singledispatch
def curvature(kernel: ScalarKernel, X: Array, Z: Array) -> Array:
    """Return the second derivatives of k(x_i, z_j) in x_i, shape (n, m), for inputs (n, 1) and (m, 1)."""
    raise no_derivative(kernel)


@curvature.register
def _(kernel: Gaussian, X: Array, Z: Array) -> Array:
    return _of_gaussian(X, Z, kernel.inverse_width(X, Z))


@curvature.register
def _(kernel: Matern, X: Array, Z: Array) -> Array:
    scale, nu = float(kernel.length_scale), float(kernel.nu)
    if nu <= 1:
        raise no_derivative(kernel)
    if nu == math.inf:
        return _of_gaussian(X, Z, 1 / (2 * scale**2))
    t = distances(X, Z, "euclidean") * (math.sqrt(2 * nu) / scale)
    # Bessel's equation for t^nu K_nu: k'' = k + (2 nu - 1) k' / t
    first = kernel.profile(t + 0.0, nu - 1) / (2 - 2 * nu)  # k' / t
    return (2 * nu / scale**2) * (kernel.profile(t, nu) + (2 * nu - 1) * first)


@curvature.register
def _(kernel: RationalQuadratic, X: Array, Z: Array) -> Array:
    squares, alpha, scale = (X - Z.T) ** 2, float(kernel.alpha), float(kernel.length_scale)
    base = kernel.base(squares)
    return base ** -(alpha + 2) * ((alpha + 1) / alpha * squares / scale**2 - base) / scale**2


@curvature.register
def _(kernel: Linear, X: Array, Z: Array) -> Array:
    return 0 * kernel(X, Z)


@curvature.register
def _(kernel: Polynomial, X: Array, Z: Array) -> Array:
    degree, width = int(kernel.degree), inverse_width(kernel.gamma, X)
    powers = kernel.power(X @ Z.T, X, max(degree - 2, 0))
    return degree * (degree - 1) * width**2 * Z.T**2 * powers


@curvature.register
def _(kernel: Constant, X: Array, Z: Array) -> Array:
    return 0 * kernel(X, Z)


@curvature.register
def _(kernel: Sum, X: Array, Z: Array) -> Array:
    return curvature(kernel.left, X, Z) + curvature(kernel.right, X, Z)


@curvature.register
def _(kernel: Product, X: Array, Z: Array) -> Array:
    first, second = kernel.left, kernel.right
    crossed = 2 * slope(first, X, Z) * slope(second, X, Z)
    return curvature(first, X, Z) * second(X, Z) + crossed + first(X, Z) * curvature(second, X, Z)


@curvature.register
def _(kernel: Scaled, X: Array, Z: Array) -> Array:
    return float(kernel.scale) * curvature(kernel.kernel, X, Z)


@curvature.register
def _(kernel: Standardized, X: Array, Z: Array) -> Array:
    known = kernel.known(None)
    inner = curvature(known.kernel, known.image(X), known.image(Z, "Z"))
    return inner / as_like(np.reshape(known.scale, -1)[:1] ** 2, inner)


def _of_gaussian(X: Array, Z: Array, gamma: float) -> Array:
    """Return the second derivatives of exp(-gamma (x - z)^2)."""
    return gaussian(X, Z, gamma) * (4 * gamma**2 * (X - Z.T) ** 2 - 2 * gamma)
