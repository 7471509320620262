"""Features of a kernel at landmark points of the sample."""

import math

from fenchel._array import Array, as_index, as_like, device, eps, namespace
from fenchel.kernels import KernelTags, ScalarKernel
from fenchel.kernels._distances import row_blocks
from fenchel.kernels.derivatives import feature_gradient, weighted_gradient

__all__ = ["LandmarkFeatures", "inverse_root", "kernel_product", "rows_of"]

_BLOCK_BYTES = 2**27  # of a block of the sample, or of its kernel with the landmarks


class LandmarkFeatures(ScalarKernel):
    """Kernel of the features k(x, Z) T, with T such that they are orthonormal in the space of the kernel k."""

    def __init__(self, kernel: ScalarKernel, points: Array, transform: Array) -> None:
        self.kernel = kernel
        self.points = points
        self.transform = transform

    @classmethod
    def of(cls, kernel: ScalarKernel, points: Array, sketch: Array | None = None) -> "LandmarkFeatures":
        """Return the features of landmarks, or of their combinations by the columns of a sketch (m, D).

        Directions at the level of round-off are dropped.
        """
        if sketch is None:
            return cls(kernel, points, inverse_root(kernel(points)))
        gram = sketch.T @ kernel_product(kernel, points, points, sketch)
        return cls(kernel, points, sketch @ inverse_root((gram + gram.T) / 2))

    tags = KernelTags(has_features=True)

    def features(self, X: Array) -> Array:
        """Return the features, (n, D), computed in blocks of rows."""
        return kernel_product(self.kernel, X, as_like(self.points, X), self.transform)

    def turned(self, turn: Array) -> "LandmarkFeatures":
        """Return the kernel with its features rotated by the columns of an orthogonal matrix (D, r)."""
        return LandmarkFeatures(self.kernel, self.points, self.transform @ turn)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the inner products of the features."""
        left = self.features(X)
        return left @ (left if Z is None else self.features(Z)).T

    def diag(self, X: Array) -> Array:
        """Return the squared norms of the features."""
        features = self.features(X)
        return namespace(features).sum(features**2, axis=1)


@feature_gradient.register
def _(kernel: LandmarkFeatures, X: Array, coef: Array, almost_everywhere: bool = False) -> Array:
    weights = as_like(kernel.transform, X) @ as_like(coef, X)
    return weighted_gradient(kernel.kernel, X, as_like(kernel.points, X), weights.T[:, None, :], almost_everywhere)


def kernel_product(kernel: ScalarKernel, X: Array, points: Array, matrix: Array) -> Array:
    """Return k(X, points) times a matrix, in blocks of rows of X."""
    width = max(points.shape[0], math.prod(X.shape[1:]))  # a kernel may copy the inputs of a block
    product = None
    for rows in row_blocks((X.shape[0], width), 8, _BLOCK_BYTES):
        values = kernel(X[rows, ...], points)
        part = values @ as_like(matrix, values)
        if rows.stop == X.shape[0] and rows.start == 0:
            return part
        if product is None:
            product = namespace(part).empty((X.shape[0], part.shape[1]), dtype=part.dtype, device=device(part))
        product[rows, :] = part
    return product


def inverse_root(matrix: Array, size: float | None = None) -> Array:
    """Return T (m, r) with T T' the pseudo-inverse of a positive semidefinite matrix.

    Eigenvalues below the round-off of ``size``, by default the largest one, are set to zero; one direction is kept.
    """
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix)
    size = float(values[-1]) if size is None else size
    least = max(size * eps(values) * values.shape[0], float(xp.finfo(values.dtype).smallest_normal))
    first = min(int(xp.sum(xp.astype(values <= least, xp.int64))), values.shape[0] - 1)
    return vectors[:, first:] / xp.sqrt(xp.clip(values[first:], min=least))


def rows_of(X: Array, index: Array) -> Array:
    """Return the selected samples."""
    return namespace(X).take(X, as_index(index, X), axis=0)
