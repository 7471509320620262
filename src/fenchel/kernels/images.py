"""Kernels of images of the inputs: standardised, projected, filtered or selected."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Self

from fenchel._array import Array
from fenchel.kernels.fused import DistanceTerm, distance_terms
from fenchel.kernels.scalar_kernel import ScalarKernel
from fenchel.kernels.tags import KernelTags

__all__ = ["OfImages", "check_on_points"]


class OfImages(ScalarKernel, ABC):
    r"""Kernel of images of the inputs under a linear or affine map, :math:`k(x, z) = k_1(T x, T z)`."""

    kernel: ScalarKernel

    @abstractmethod
    def image(self, X: Array, name: str = "X") -> Array:
        """Return the images of the inputs, which the inner kernel takes."""

    @abstractmethod
    def pulled_back(self, gradient: Array, X: Array) -> Array:
        """Return derivatives with respect to the inputs X from those with respect to their images, (..., n, d)."""

    def known(self, X: Array | None, weights: Array | None = None) -> Self:
        """Return the kernel with its map known, from the training sample if it depends on it; ``None`` is no sample."""
        self.check()
        return self

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""
        known = self.known(X if Z is None else None)
        return known.kernel(known.image(X), None if Z is None else known.image(Z, "Z"))

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""
        known = self.known(X)
        return known.kernel.diag(known.image(X))

    def resolve(self, X: Array, weights: Array | None = None) -> Self:
        """Return the kernel with its map and the parameters of its kernel set from the sample."""
        known = self.known(X, weights)
        return known.ready(kernel=known.kernel.resolve(known.image(X), weights))

    def features(self, X: Array) -> Array | None:
        """Return the features of the images."""
        if not self.tags.has_features:
            return None
        known = self.known(X)
        return known.kernel.features(known.image(X))

    @property
    def tags(self) -> KernelTags:
        """Those of the inner kernel, but inputs are complete points."""
        return replace(self.kernel.tags, is_pairwise=False, takes_objects=False, takes_missing=False)

    def validate(self) -> Self:
        """Raise if the inner kernel does not take points, or a parameter is invalid."""
        check_on_points(self.kernel, type(self).__name__)
        return super().validate()


def check_on_points(kernel: object, owner: str) -> None:
    """Raise if the ``kernel`` parameter of an owner is not a kernel on points."""
    if not isinstance(kernel, ScalarKernel) or kernel.tags.is_pairwise:
        raise TypeError(f"The 'kernel' parameter of {owner} must be a ScalarKernel on points. Got {kernel!r} instead.")


@distance_terms.register
def _(kernel: OfImages, X: Array) -> list[DistanceTerm] | None:
    return distance_terms(kernel.kernel, kernel.image(X))
