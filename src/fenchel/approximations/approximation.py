"""What an approximation of a kernel is."""

from abc import ABC, abstractmethod

from fenchel._array import Array
from fenchel._component import Component
from fenchel.kernels import ScalarKernel

__all__ = ["LAM", "Approximation"]

LAM = 1e-3  # weight of the squared norm that estimators have by default


class Approximation(Component, ABC):
    """Replaces a kernel by one that has few features."""

    n_components: int | str

    @abstractmethod
    def approximate(
        self, kernel: ScalarKernel, X: Array, weights: Array | None = None, lam: float = LAM
    ) -> ScalarKernel:
        """Return a kernel with at most ``n_components`` features, from a resolved kernel and the training sample.

        ``weights`` (n,) count the samples; ``lam`` is the weight of the squared norm in the problem.
        """

    def count(self, n: int) -> int:
        """Return the number of features for n samples, as far as it is known before they are made."""
        return min(n, int(self.n_components))
