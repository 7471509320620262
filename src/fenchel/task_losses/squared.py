"""Squared distances in a feature space: least squares, and losses induced by a kernel."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders import Decoder, TrainingSet, WeightedMean
from fenchel.kernels import Constant, Linear, ScalarKernel, as_scalar_kernel
from fenchel.task_losses.embedding import Embedding
from fenchel.task_losses.task_loss import TaskLoss, as_outputs, columns, numbers

__all__ = ["KernelInduced", "LeastSquares", "SquaredDistance"]


class SquaredDistance(TaskLoss, ABC):
    r"""Squared distance in a feature space.

    .. math:: \Delta(y, z) = \|\psi(y)\|^2 - 2 \langle\psi(y), \psi(z)\rangle + \|\psi(z)\|^2 .

    With ``rule="weighted_loss"`` the loss trick minimises :math:`\sum_i \alpha_i(x) \Delta(y, y_i)`, as for every task
    loss ([Ciliberto2016]_, Alg. 1). With ``rule="nearest"`` it minimises :math:`\|\psi(y) - \sum_i \alpha_i(x)
    \psi(y_i)\|^2` (eq. 7): the first term counts once, not :math:`\sum_i \alpha_i(x)` times. That is input-output
    kernel regression for every kernel ([Brouard2016]_), and kernel ridge regression for the linear one. The two agree
    for a normalised kernel; for others only the first is consistent.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"rule": Options(("weighted_loss", "nearest"))}

    rule: str = "weighted_loss"

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
        """Return the weighted squared distances, or those to the weighted sum of features up to a constant per row."""
        if self.rule == "weighted_loss":
            return super().scores(weights, Y, Z)
        constant = weights @ self.norms(Z)
        return np.asarray(self.norms(Y) + constant[:, None] - 2 * weights @ self.products(Y, Z).T)

    def embedding(self, Z: Outputs) -> Embedding:
        r"""Return sizes for features in the ball that contains those of Z, of squared radius N.

        With :math:`(\phi(y), \|\phi(y)\|^2 / \sqrt{2N}, \sqrt{N/2})`, of squared norm at most 2N, V is -2 on the first
        part and exchanges the others, times 2.
        """
        return Embedding(2.0, math.sqrt(2 * float(np.max(self.norms(self.check(Z))))))


class LeastSquares(SquaredDistance):
    r"""Squared error of numbers and vectors, :math:`\|y - z\|^2`.

    Parameters
    ----------
    rule : {"weighted_loss", "nearest"}, default="weighted_loss"
        ``"weighted_loss"`` predicts the vector with the smallest weighted loss in the box of the training outputs:
        :math:`\sum_i \alpha_i(x) y_i / \sum_i \alpha_i(x)`, clipped to the box. ``"nearest"`` predicts
        :math:`\sum_i \alpha_i(x) y_i`, which is kernel ridge regression.

    Notes
    -----
    Without the box, weights with a negative sum would have no best vector. The theory of [Ciliberto2016]_ is for
    compact sets of outputs. With a surrogate other than the square loss, features of the outputs include a constant:
    the sum of the weights is only known where features are not zero, and those of an output of zero would be.

    Examples
    --------
    >>> from fenchel.task_losses import LeastSquares
    >>> LeastSquares()([[0.0, 1.0]], [[3.0, 5.0]])
    array([25.])
    """

    def __init__(self, rule: str = "weighted_loss") -> None:
        self.rule = rule

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
        """Return the closed form."""
        return WeightedMean()

    def combine(self, weights: np.ndarray, Z: Outputs, seen: Outputs) -> np.ndarray:
        """Return the optimal predictions; those of smallest weighted loss lie in the box of the outputs seen."""
        if self.rule == "nearest":
            return np.asarray(weights @ Z)
        low, high = np.min(seen, axis=0) / 2, np.max(seen, axis=0) / 2
        middle, total = low + high, np.sum(weights, axis=1).reshape((-1,) + (1,) * (np.ndim(Z) - 1))
        return np.asarray(middle + least_in_interval(total, weights @ (Z - middle), high - low))

    def output_kernel(self) -> ScalarKernel:
        """Return the linear kernel; the smallest weighted loss also needs the sum of the weights, from a constant."""
        return Linear() if self.rule == "nearest" else Linear() + Constant()


class KernelInduced(SquaredDistance):
    r"""Squared distance induced by a kernel on the outputs, :math:`\Delta(y, z) = h(y, y) - 2 h(y, z) + h(z, z)`.

    Parameters
    ----------
    kernel : str, kernel or callable, default="gaussian"
        The kernel h.
    rule : {"weighted_loss", "nearest"}, default="weighted_loss"
        ``"weighted_loss"`` predicts the output with the smallest weighted loss, ``"nearest"`` the one whose features
        are nearest to the weighted sum of the features of the training outputs, which is input-output kernel
        regression. The two agree for a kernel with h(y, y) = 1.

    Notes
    -----
    The decoder may be ``"training_set"`` (the default), ``"candidates"``, or ``"preimage"`` for a Gaussian kernel.

    References
    ----------
    [Ciliberto2016]_, eq. 3 and 7, and section 5; [Weston2003]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.task_losses import KernelInduced
    >>> KernelInduced(Gaussian(0.5))(np.array([[0.0]]), np.array([[1.0]])).round(4)
    array([0.7869])
    """

    def __init__(self, kernel: ScalarKernel | str = "gaussian", rule: str = "weighted_loss") -> None:
        self.kernel = kernel
        self.rule = rule

    def resolve(self, Z: Outputs) -> "KernelInduced":
        """Return the loss with a median bandwidth replaced by its value."""
        return KernelInduced(self.output_kernel().resolve(_points(Z)), self.rule)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances for the contract tests."""
        return [cls(), cls("linear", "nearest")]

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


def least_in_interval(total: np.ndarray, pull: np.ndarray, half: np.ndarray | float) -> np.ndarray:
    """Return the numbers y in [-half, half] with the smallest ``total * y**2 - 2 * pull * y``, entry by entry."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = np.clip(pull / total, -half, half)
    end = np.where(pull > 0, half, np.where((pull < 0) | (total < 0), -half, 0.0))  # convexity is lost: at an end
    return np.asarray(np.where(total > 0, inner, end))


def _vectors(Y: Outputs) -> np.ndarray:
    return columns(Y).astype(np.float64)  # small integers would overflow


def _points(Y: Outputs) -> Outputs:
    """Return outputs in the form that a kernel takes: numbers as rows, other objects unchanged."""
    Y = as_outputs(Y)
    return Y if Y.dtype.kind not in "biuf" else _vectors(Y)
