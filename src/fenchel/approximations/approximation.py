"""Base class of kernel approximations."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from fenchel._array import Array
from fenchel._component import Component
from fenchel.kernels import ScalarKernel

__all__ = ["LAM", "Approximation"]

LAM = 1e-3  # default weight of the squared norm in estimators


class Approximation(Component, ABC):
    """Approximation of a kernel by one with few features."""

    n_components: int | str
    is_projection: ClassVar[bool] = False  # whether features lie in the kernel's space, so the exact gap is computable

    @abstractmethod
    def approximate(
        self, kernel: ScalarKernel, X: Array, weights: Array | None = None, lam: float = LAM
    ) -> ScalarKernel:
        """Return a kernel with at most ``n_components`` features, from a resolved kernel and the training sample.

        ``weights`` (n,) are sample weights; ``lam`` is the weight of the squared norm in the problem.
        """

    def rows(self, n: int, most: int) -> np.ndarray:
        """Return the indices of the samples from which the features are built, at most ``most`` of n."""
        return np.linspace(0, n - 1, min(n, most)).astype(np.int64)

    def count(self, n: int) -> int:
        """Return the number of features for n samples, as far as it is known in advance."""
        return min(n, int(self.n_components))
