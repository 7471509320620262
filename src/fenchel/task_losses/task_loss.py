"""Base class of task losses, losses from a function, and the space in which decoders search."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from numbers import Real
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, Outputs, as_objects, is_numpy
from fenchel._check import unmasked
from fenchel._component import Component
from fenchel.decoders import Decoder, TrainingSet
from fenchel.kernels import ScalarKernel, as_scalar_kernel
from fenchel.task_losses.embedding import Embedding

__all__ = ["Delta", "TaskLoss", "TaskSpace"]

_BLOCK = 2**23  # entries of a block of the loss matrix
_TYPICAL = 8  # number of candidates from which the size of the losses is estimated


class TaskLoss(Component, ABC):
    r"""Cost :math:`\Delta(y, z)` of predicting y when z is true.

    A new loss implements ``matrix``; the rest has defaults. ``first + second``, ``2.0 * loss`` and ``first * second``
    are losses. Calling a task loss with true and predicted outputs returns the loss of each sample, so it is also a
    valid ``task_loss`` of ``StructuredPredictorCV``.
    """

    _together: ClassVar[int] = 16  # samples per matrix whose diagonal a call computes; 1 if pairs are expensive

    _sum: ClassVar[Callable[..., "TaskLoss"]]  # set in algebra.py, whose classes derive from this one
    _product: ClassVar[Callable[..., "TaskLoss"]]

    def __add__(self, other: object) -> "TaskLoss":
        """Return the sum of two losses."""
        return self._sum([self, other]) if isinstance(other, TaskLoss) else NotImplemented

    def __mul__(self, other: object) -> "TaskLoss":
        """Return the product with another loss, or a multiple."""
        if isinstance(other, TaskLoss):
            return self._product([self, other])
        return self._sum([self], [float(other)]) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__

    @abstractmethod
    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the losses of predicted outputs Y against true outputs Z, shape (len(Y), len(Z))."""

    def check(self, Z: Outputs) -> Outputs:
        """Return true outputs in the form that the loss takes, or raise."""
        Z = as_outputs(Z)
        if Z.dtype.kind == "f":
            numbers(Z, type(self).__name__, tuple(range(1, Z.ndim + 1)))
        return Z

    def resolve(self, Z: Outputs) -> "TaskLoss":
        """Return the loss with every data-dependent parameter replaced by its value on the training outputs."""
        return self

    def scores(self, weights: np.ndarray, Y: Outputs, Z: Outputs) -> np.ndarray:
        r"""Return :math:`\sum_i w_i \Delta(y, z_i)` for every row of weights (m, n) and every y, shape (m, len(Y))."""
        return np.asarray(weights @ self.matrix(Y, Z).T)

    def decoder(self) -> Decoder:
        """Return the decoder used for ``decoder="auto"``."""
        return TrainingSet()

    def output_kernel(self) -> ScalarKernel:
        """Return the output kernel with which surrogates other than the square loss compute weights."""
        return as_scalar_kernel("gaussian")

    def embedding(self, Z: Outputs) -> Embedding:
        """Return the sizes of a bilinear form of the loss on the set of all possible outputs Z.

        A loss without a form of its own has that of a finite set: the matrix of losses of the distinct outputs, with
        unit vectors as features.
        """
        Z = self.check(Z)
        costs = self.matrix(Z, Z)
        _, first = np.unique(np.hstack([costs, costs.T]), axis=0, return_index=True)  # equal costs share a vector
        return Embedding(float(np.linalg.norm(costs[np.ix_(first, first)], 2)), 1.0)

    def __call__(self, truth: Outputs, predicted: Outputs) -> np.ndarray:
        """Return the loss of each prediction, shape (n,); the true outputs come first."""
        truth = self.check(truth)
        if len(truth) != len(predicted):
            raise ValueError(
                f"truth and predicted must have the same number of samples. Got {len(truth)} and {len(predicted)}."
            )
        predicted, loss, step = as_outputs(predicted), self.resolve(truth), self._together
        parts = [slice(first, first + step) for first in range(0, len(truth), step)]
        return np.concatenate([np.diagonal(loss.matrix(predicted[part], truth[part])) for part in parts])


class Delta(TaskLoss):
    """Task loss given by a function of two outputs.

    Parameters
    ----------
    function : callable
        ``function(y, z)`` returns the cost, a number, of predicting y when z is true.

    Notes
    -----
    The function is called for every pair of a candidate and a training output. For large sets write a class that
    implements ``matrix``.

    Examples
    --------
    >>> from fenchel.task_losses import Delta
    >>> Delta(lambda y, z: abs(len(y) - len(z)))(["ab", "c"], ["abc", "d"])
    array([1., 0.])
    """

    _together = 1

    def __init__(self, function: Callable[[Outputs, Outputs], float]) -> None:
        self.function = function

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the value of the function for every pair."""
        losses = np.array([[self.function(y, z) for z in Z] for y in Y], dtype=np.float64)
        if not np.all(np.isfinite(losses)):
            raise ValueError(f"The task loss {self.function!r} must return finite numbers. Got NaN or infinity.")
        return losses.reshape(len(Y), len(Z))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return an instance for the contract tests."""
        return [cls(lambda y, z: float(np.any(y != z)))]


class TaskSpace:
    """Output space for the decoders of the loss trick, in which coordinates are weights of the training outputs.

    Parameters
    ----------
    task_loss : TaskLoss
        The loss, which takes the place of a distance.
    outputs : sequence or array
        The training outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import LeastSquares, TaskSpace
    >>> space = TaskSpace(LeastSquares(), np.array([[0.0], [1.0]]))
    >>> space.distances(np.array([[0.5, 0.5]]), np.array([[0.0], [0.5]])).tolist()
    [[0.5, 0.25]]
    """

    is_pairwise = False
    has_points = False

    def __init__(self, task_loss: TaskLoss, outputs: Outputs) -> None:
        self.task_loss = task_loss
        self.outputs_ = outputs

    @property
    def kernel_(self) -> ScalarKernel | None:
        """Return the kernel of a loss that is induced by a kernel."""
        return getattr(self.task_loss, "kernel", None)

    def weights(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the weights of the training outputs."""
        return coordinates

    def distances(self, weights: np.ndarray, outputs: Outputs, norms: Array | None = None) -> np.ndarray:
        """Return the weighted losses of candidates, shape (m, C)."""
        return np.hstack(list(self.distance_blocks(weights, outputs, norms)))

    def distance_blocks(
        self, weights: np.ndarray, outputs: Outputs, norms: Array | None = None
    ) -> Iterator[np.ndarray]:
        """Yield the same for consecutive blocks of candidates, so that only a part of the matrix is in memory."""
        step = max(1, _BLOCK // max(weights.shape))
        for first in range(0, len(outputs), step):
            yield self.task_loss.scores(weights, outputs[first : first + step], self.outputs_)

    def magnitudes(self, weights: np.ndarray, outputs: Outputs) -> np.ndarray:
        """Return the size of the terms of the weighted losses, (m,), averaged over the first candidates."""
        losses = np.abs(self.task_loss.matrix(outputs[:_TYPICAL], self.outputs_))
        return np.asarray(np.abs(weights) @ np.mean(losses, axis=0))

    def paired_distances(
        self, weights: np.ndarray, sets: Sequence[Outputs], norms: Sequence[Array | None] = ()
    ) -> list[np.ndarray]:
        """Return the weighted losses of each row of weights on its own set of candidates."""
        return [self.distances(row[None, :], candidates)[0] for row, candidates in zip(weights, sets, strict=True)]


def as_outputs(Y: Outputs) -> Outputs:
    """Return outputs as an array that can be indexed; irregular outputs become an array of objects."""
    if is_array(Y):
        return np.asarray(Y)
    with suppress(ValueError):
        regular = np.asarray(Y)
        if regular.dtype.kind in "biuf" or all(isinstance(label, str) for label in Y):
            return regular
    return as_objects(Y)


def is_array(Y: Outputs) -> bool:
    """Whether outputs are a NumPy array or a pandas table."""
    try:
        return hasattr(Y, "dtype") or hasattr(Y, "iloc") or is_numpy(Y)
    except TypeError:
        return False


def numbers(Z: Outputs, name: str, ndim: tuple[int, ...] = (1, 2), nan: bool = False) -> np.ndarray:
    """Return outputs as finite floating-point numbers, or raise with the name of the loss."""
    try:
        values = np.asarray(unmasked(Z, "outputs"), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        given = type(Z).__name__
        raise ValueError(f"{name} takes numeric values. Got {given} of something else for outputs.") from error
    if values.ndim not in ndim:
        dimensions = " or ".join(f"{d}-dimensional" for d in ndim)
        raise ValueError(f"{name} takes {dimensions} arrays. Got an array of shape {values.shape} instead.")
    if not np.all(np.isfinite(values) | (np.isnan(values) if nan else False)):
        raise ValueError(f"{name} takes finite outputs. They contain NaN or infinity; drop those samples.")
    return values


def columns(Y: Outputs) -> np.ndarray:
    """Return outputs with one row each; plain numbers become a single column."""
    Y = np.asarray(Y)
    return Y[:, None] if Y.ndim == 1 else Y
