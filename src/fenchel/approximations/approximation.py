"""What an approximation of a kernel is."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from fenchel._array import Array
from fenchel._component import Component
from fenchel.kernels import ScalarKernel

__all__ = ["LAM", "Approximation"]

LAM = 1e-3  # weight of the squared norm that estimators have by default


class Approximation(Component, ABC):
    """Replaces a kernel by one with few features."""

    n_components: int | str
    is_projection: ClassVar[bool] = False  # features span a part of the kernel's space: the exact gap can be computed

    @abstractmethod
    def approximate(
        self, kernel: ScalarKernel, X: Array, weights: Array | None = None, lam: float = LAM
    ) -> ScalarKernel:
        """Return a kernel with at most ``n_components`` features, from a resolved kernel and the training sample.

        ``weights`` (n,) count the samples; ``lam`` is the weight of the squared norm in the problem.
        """

    def rows(self, n: int, most: int) -> np.ndarray:
        """Return the places of the samples that are enough to make the features, at most ``most`` of n."""
        return np.linspace(0, n - 1, min(n, most)).astype(np.int64)

    def count(self, n: int) -> int:
        """Return the number of features for n samples, as far as it is known before they are made."""
        return min(n, int(self.n_components))
