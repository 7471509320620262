"""Squared distances in a feature space: least squares, and losses induced by a kernel."""

from abc import ABC, abstractmethod

import numpy as np

from fenchel._array import Outputs
from fenchel.decoders import Decoder, TrainingSet, WeightedMean
from fenchel.kernels import ScalarKernel, as_scalar_kernel
from fenchel.task_losses.task_loss import TaskLoss, as_outputs, columns, numbers

__all__ = ["KernelInduced", "LeastSquares", "SquaredDistance"]


class SquaredDistance(TaskLoss, ABC):
    r"""Squared distance in a feature space.

    .. math:: \Delta(y, z) = \|\psi(y)\|^2 - 2 \langle\psi(y), \psi(z)\rangle + \|\psi(z)\|^2 .

    The term that does not depend on z is known: it counts once, not :math:`\sum_i \alpha_i(x)` times. This does not
    change the decisions for a normalised kernel, and makes the loss trick that of [Brouard2016]_ for every kernel, and
    kernel ridge regression for the linear one.
    """

    @abstractmethod
    def products(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the inner products of features, shape (len(Y), len(Z))."""

    @abstractmethod
    def norms(self, Y: Outputs) -> np.ndarray:
        """Return the squared norms of features, shape (len(Y),)."""

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return squared distances."""
        return np.maximum(self.norms(Y)[:, None] + self.norms(Z) - 2 * self.products(Y, Z), 0.0)

    def scores(self, weights: np.ndarray, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the squared distances to the weighted sum of features, up to a constant per row."""
        constant = weights @ self.norms(Z)
        return np.asarray(self.norms(Y) + constant[:, None] - 2 * weights @ self.products(Y, Z).T)


class LeastSquares(SquaredDistance):
    r"""Squared error of numbers and vectors, :math:`\|y - z\|^2`. Its loss trick is kernel ridge regression.

    Examples
    --------
    >>> from fenchel.task_losses import LeastSquares
    >>> LeastSquares()([[0.0, 1.0]], [[3.0, 5.0]])
    array([25.])
    """

    def check(self, Z: Outputs) -> Outputs:
        """Check that outputs are numbers."""
        return numbers(Z, "LeastSquares")

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return squared distances, computed from differences to avoid cancellation far from zero."""
        Y, Z = _vectors(Y), _vectors(Z)
        squares = np.zeros((len(Y), len(Z)))
        for y, z in zip(Y.T, Z.T, strict=True):
            squares += (y[:, None] - z[None, :]) ** 2
        return squares

    def products(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the inner products of the vectors."""
        return np.asarray(_vectors(Y) @ _vectors(Z).T)

    def norms(self, Y: Outputs) -> np.ndarray:
        """Return the squared lengths of the vectors."""
        return np.sum(_vectors(Y) ** 2, axis=1)

    def decoder(self) -> Decoder:
        """Return the weighted sum of the training outputs."""
        return WeightedMean()

    def combine(self, weights: np.ndarray, Z: Outputs) -> np.ndarray:
        """Return the weighted sums of outputs, which are the optimal predictions."""
        return np.asarray(weights @ Z)

    def output_kernel(self) -> ScalarKernel:
        """Return the linear kernel."""
        return as_scalar_kernel("linear")


class KernelInduced(SquaredDistance):
    r"""Squared distance induced by a kernel on the outputs, :math:`\Delta(y, z) = h(y, y) - 2 h(y, z) + h(z, z)`.

    Parameters
    ----------
    kernel : str, kernel or callable, default="gaussian"
        The kernel h.

    Notes
    -----
    The decoder may be ``"training_set"`` (the default), ``"candidates"``, or ``"preimage"`` for a Gaussian kernel.

    References
    ----------
    [Ciliberto2016]_, eq. 3; [Weston2003]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.task_losses import KernelInduced
    >>> KernelInduced(Gaussian(0.5))(np.array([[0.0]]), np.array([[1.0]])).round(4)
    array([0.7869])
    """

    def __init__(self, kernel: ScalarKernel | str = "gaussian") -> None:
        self.kernel = kernel

    def resolve(self, Z: Outputs) -> "KernelInduced":
        """Return the loss with a median bandwidth replaced by its value."""
        return KernelInduced(self.output_kernel().resolve(_points(Z)))

    def products(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the kernel values."""
        return np.asarray(self.output_kernel()(_points(Y), _points(Z)))

    def norms(self, Y: Outputs) -> np.ndarray:
        """Return the kernel value of each output with itself."""
        return np.asarray(self.output_kernel().diag(_points(Y)))

    def decoder(self) -> Decoder:
        """Return a search among the training outputs."""
        return TrainingSet()

    def output_kernel(self) -> ScalarKernel:
        """Return the kernel itself."""
        return as_scalar_kernel(self.kernel)


def _vectors(Y: Outputs) -> np.ndarray:
    return columns(Y).astype(np.float64)  # small integers would overflow


def _points(Y: Outputs) -> Outputs:
    """Return outputs in the form that a kernel takes: numbers as rows, other objects unchanged."""
    Y = as_outputs(Y)
    return Y if Y.dtype.kind not in "biuf" else _vectors(Y)
