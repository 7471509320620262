"""Derivatives of kernels and of their features with respect to the inputs, by the type of the kernel."""

import math
from functools import singledispatch

import numpy as np

from fenchel._array import Array, as_like, namespace
from fenchel.exceptions import IncompatibleError
from fenchel.kernels._distances import distances, gaussian, inverse_width
from fenchel.kernels.combined import Constant, Product, Scaled, Sum
from fenchel.kernels.functional import CurveKernel, FunctionalLinear
from fenchel.kernels.images import OfImages
from fenchel.kernels.invariant import Invariant
from fenchel.kernels.multiple import MultipleKernel
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear, Matern, Polynomial, RationalQuadratic
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.standardized import Standardized
from fenchel.kernels.tags import former, former_method
from fenchel.kernels.vectors import VectorKernel

__all__ = ["feature_gradient", "no_derivative", "slope", "weighted_gradient"]

Factors = tuple[Array | float, Array | float]


def no_derivative(kernel: ScalarKernel) -> IncompatibleError:
    """Return the error of a kernel without a derivative."""
    return IncompatibleError(
        f"{kernel!r} is not smooth, or has no derivative implemented. Use Gaussian(), or Matern with nu=1.5 or more."
    )


@former
@singledispatch
def slope(kernel: ScalarKernel, X: Array, Z: Array) -> Array:
    """Return the derivatives of k(x_i, z_j) with respect to x_i, shape (n, m), for inputs (n, 1) and (m, 1)."""
    method = former_method(kernel, "slope")
    if method is None:
        raise no_derivative(kernel)
    return method(X, Z)


@former
@singledispatch
def weighted_gradient(
    kernel: ScalarKernel, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False
) -> Array:
    r"""Return :math:`\sum_j w_{ij} \nabla_{x_i} k(x_i, z_j)`, shape (n, d), for vectors and weights (n, m).

    Weights (p, n, m), or (p, 1, m) if they are the same for all points, give p such sums, (p, n, d). At a kink the
    gradient is an error, or zero with ``almost_everywhere=True``, the mean of the one-sided derivatives. ``Laplacian``
    has kinks where two points agree in one column, ``Matern(nu=0.5)`` where they agree in all columns.
    """
    method = former_method(kernel, "weighted_gradient")
    if method is None:
        raise no_derivative(kernel)
    return method(X, Z, weights)


@former
@singledispatch
def feature_gradient(kernel: ScalarKernel, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    """Return the gradients of ``kernel.features(X) @ coef``, shape (p, n, d), for vectors and coefficients (D, p)."""
    method = former_method(kernel, "feature_gradient")
    if method is None:
        raise no_derivative(kernel)
    return method(X, coef)


@singledispatch
def factors(kernel: VectorKernel, X: Array, Z: Array, almost_everywhere: bool = False) -> Factors:
    """Return c and e such that the gradient of k(x_i, z_j) in x_i is c_ij (x_i - z_j) + e_ij z_j."""
    raise no_derivative(kernel)


@factors.register
def _(kernel: Linear, X: Array, Z: Array, almost_everywhere: bool = False) -> Factors:
    return 0.0, 1.0


@factors.register
def _(kernel: Polynomial, X: Array, Z: Array, almost_everywhere: bool = False) -> Factors:
    degree = int(kernel.degree)
    return 0.0, (degree * inverse_width(kernel.gamma, X)) * kernel.power(X @ Z.T, X, degree - 1)


@factors.register
def _(kernel: Gaussian, X: Array, Z: Array, almost_everywhere: bool = False) -> Factors:
    gamma = kernel.inverse_width(X, Z)
    return gaussian(X, Z, gamma) * (-2 * gamma), 0.0


@factors.register
def _(kernel: Matern, X: Array, Z: Array, almost_everywhere: bool = False) -> Factors:
    scale, nu = float(kernel.length_scale), float(kernel.nu)
    if nu == 0.5 and almost_everywhere:
        xp, lengths = namespace(X), distances(X, Z, "euclidean")
        inverse = xp.where(lengths > 0, 1 / xp.where(lengths > 0, lengths, 1 + lengths), 0 * lengths)
        return -kernel(X, Z) * inverse / scale, 0.0
    if nu <= 1:
        raise no_derivative(kernel)
    if nu == math.inf:
        return gaussian(X, Z, 1 / (2 * scale**2)) / -(scale**2), 0.0
    t = distances(X, Z, "euclidean") * (math.sqrt(2 * nu) / scale)
    return kernel.profile(t, nu - 1) * (-nu / ((nu - 1) * scale**2)), 0.0


@factors.register
def _(kernel: RationalQuadratic, X: Array, Z: Array, almost_everywhere: bool = False) -> Factors:
    base = kernel.base(distances(X, Z, "euclidean") ** 2)
    return base ** -(float(kernel.alpha) + 1) / -(float(kernel.length_scale) ** 2), 0.0


@slope.register
def _(kernel: VectorKernel, X: Array, Z: Array) -> Array:
    kernel.check()
    X, Z = kernel.pair(kernel.points(X, "X"), Z)
    if X.shape[1] != 1:
        raise ValueError(f"X must have one column for a derivative. Got shape {tuple(X.shape)} instead.")
    along, across = factors(kernel, X, Z)
    return along * (X - Z.T) + across * Z.T


@slope.register
def _(kernel: Constant, X: Array, Z: Array) -> Array:
    return 0 * kernel(X, Z)


@slope.register
def _(kernel: Sum, X: Array, Z: Array) -> Array:
    return slope(kernel.left, X, Z) + slope(kernel.right, X, Z)


@slope.register
def _(kernel: Product, X: Array, Z: Array) -> Array:
    return slope(kernel.left, X, Z) * kernel.right(X, Z) + kernel.left(X, Z) * slope(kernel.right, X, Z)


@slope.register
def _(kernel: Scaled, X: Array, Z: Array) -> Array:
    return float(kernel.scale) * slope(kernel.kernel, X, Z)


@slope.register
def _(kernel: Standardized, X: Array, Z: Array) -> Array:
    known = kernel.known(None)
    inner = slope(known.kernel, known.image(X), known.image(Z, "Z"))
    return inner / as_like(np.reshape(known.scale, -1)[:1], inner)


@weighted_gradient.register
def _of_vectors(kernel: VectorKernel, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    kernel.check()
    X, Z = kernel.pair(kernel.points(X, "X"), Z)
    along, across = factors(kernel, X, Z, almost_everywhere)
    xp = namespace(X)
    moved = xp.mean(X, axis=0, keepdims=True)  # differences lose fewer digits near the origin
    along, across = weights * along, weights * across
    return xp.sum(along, axis=-1, keepdims=True) * (X - moved) - along @ (Z - moved) + across @ Z


@weighted_gradient.register
def _(kernel: Laplacian, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    if not almost_everywhere:
        return _of_vectors(kernel, X, Z, weights)
    xp = namespace(X)
    values = kernel(X, Z) * -kernel.inverse_width(X, Z)

    def derivatives(k: int) -> Array:
        slopes = values * xp.sign(X[:, k, None] - Z[None, :, k])
        if weights.shape[-2] != 1:
            return xp.sum(weights * slopes, axis=-1)
        return (slopes @ weights[..., 0, :].T).T  # weights shared by all points: one matrix product

    return xp.stack([derivatives(k) for k in range(X.shape[1])], axis=-1)


@weighted_gradient.register
def _(kernel: Constant, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    return namespace(X).sum(0 * weights, axis=-1, keepdims=True) + 0 * X


@weighted_gradient.register
def _(kernel: Sum, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    kernel.check()
    first = weighted_gradient(kernel.left, X, Z, weights, almost_everywhere)
    return first + weighted_gradient(kernel.right, X, Z, weights, almost_everywhere)


@weighted_gradient.register
def _(kernel: Product, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    kernel.check()
    first = weighted_gradient(kernel.left, X, Z, weights * kernel.right(X, Z), almost_everywhere)
    return first + weighted_gradient(kernel.right, X, Z, weights * kernel.left(X, Z), almost_everywhere)


@weighted_gradient.register
def _(kernel: Scaled, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    kernel.check()
    return float(kernel.scale) * weighted_gradient(kernel.kernel, X, Z, weights, almost_everywhere)


@weighted_gradient.register
def _(kernel: OfImages, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    known = kernel.known(None)
    inner = weighted_gradient(known.kernel, _rows(known, X), known.image(Z, "Z"), weights, almost_everywhere)
    return known.pulled_back(inner, X)


def _rows(kernel: OfImages, X: Array) -> Array:
    """Return the images of rows; raise if they are no rows."""
    images = kernel.image(X)
    if images.ndim > X.ndim:
        raise no_derivative(kernel)
    return images


@weighted_gradient.register
def _(kernel: Invariant, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    images = list(kernel.images(Z))
    return sum(weighted_gradient(kernel.kernel, X, one, weights, almost_everywhere) for one in images) / len(images)


@weighted_gradient.register
def _(kernel: CurveKernel, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    inner = kernel.on_coordinates()
    if inner is None or X.ndim != 2:
        raise no_derivative(kernel)
    X, Z = kernel.pair(X, Z)
    found = weighted_gradient(inner, kernel.coordinates(X), kernel.coordinates(Z), weights)
    return found * as_like(np.sqrt(kernel.weights(X)), found)


@weighted_gradient.register
def _(kernel: MultipleKernel, X: Array, Z: Array, weights: Array, almost_everywhere: bool = False) -> Array:
    known, total = kernel.known(None), 0.0
    for part, (x, a), (z, b) in zip(known.parts(), known.seen(X, "X"), known.seen(Z, "Z"), strict=True):
        inner = weighted_gradient(part.kernel, x, z, weights * b, almost_everywhere)
        total = total + part.pulled_back(a[:, None] * inner, X)
    return total


@feature_gradient.register
def _(kernel: Linear, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    return as_like(coef, X).T[:, None, :] + 0 * X


@feature_gradient.register
def _(kernel: Constant, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    return 0 * as_like(coef, X).T[:, :1, None] + 0 * X


@feature_gradient.register
def _(kernel: FunctionalLinear, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    if X.ndim != 2:
        raise no_derivative(kernel)
    return as_like(coef, X).T[:, None, :] * as_like(np.sqrt(kernel.weights(X)), X) + 0 * X


@feature_gradient.register
def _(kernel: Sum, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    count = _count(kernel.left, X)  # each part has its own coefficients
    first = feature_gradient(kernel.left, X, coef[:count, :], almost_everywhere)
    return first + feature_gradient(kernel.right, X, coef[count:, :], almost_everywhere)


def _count(kernel: ScalarKernel, X: Array) -> int:
    """Return the number of features; raise if there are none."""
    features = kernel.features(X[:1, ...])
    if features is None:
        raise no_derivative(kernel)
    return int(features.shape[1])


@feature_gradient.register
def _(kernel: Scaled, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    return math.sqrt(kernel.scale) * feature_gradient(kernel.kernel, X, coef, almost_everywhere)


@feature_gradient.register
def _(kernel: OfImages, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    known = kernel.known(None)
    return known.pulled_back(feature_gradient(known.kernel, _rows(known, X), coef, almost_everywhere), X)


@feature_gradient.register
def _(kernel: MultipleKernel, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    known, total, begin = kernel.known(None), 0.0, 0
    for part, (x, a) in zip(known.parts(), known.seen(X, "X"), strict=True):
        end = begin + _count(part.kernel, x)
        inner = feature_gradient(part.kernel, x, coef[begin:end, :], almost_everywhere)
        total, begin = total + part.pulled_back(a[:, None] * inner, X), end
    return total
