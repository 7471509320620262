"""Sums, products and functions of task losses, and losses of some columns of the outputs."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Outputs
from fenchel.decoders import Candidates, Decoder, TrainingSet
from fenchel.decoders.decoder import Space
from fenchel.task_losses.embedding import Embedding
from fenchel.task_losses.finite import Hamming
from fenchel.task_losses.interval import Absolute
from fenchel.task_losses.squared import LeastSquares
from fenchel.task_losses.task_loss import TaskLoss, TaskSpace, as_outputs, columns

__all__ = ["LossColumns", "LossFunction", "LossProduct", "LossSum", "PartsDecoder"]

_Part = tuple[TaskLoss, np.ndarray | None]  # a loss, and the columns of the outputs that it takes; None: all


class _Combined(TaskLoss, ABC):
    """A task loss made of others on the same outputs."""

    losses: Sequence[TaskLoss]

    @abstractmethod
    def _combine(self, matrices: list[np.ndarray]) -> np.ndarray:
        """Return the losses from those of the parts, each (m, n)."""

    def validate(self) -> Self:
        """Raise unless the parts are task losses with valid parameters."""
        if not self.losses or not all(isinstance(loss, TaskLoss) for loss in self.losses):
            raise TypeError(
                f"The 'losses' parameter of {type(self).__name__} must be a list of at least one TaskLoss. "
                f"Got {self.losses!r} instead."
            )
        return super().validate()

    def check(self, Z: Outputs) -> Outputs:
        """Return true outputs in the form that all parts take, or raise."""
        for loss in self.losses:
            Z = loss.check(Z)
        return Z

    def resolve(self, Z: Outputs) -> "TaskLoss":
        """Return the loss with every data-dependent parameter of its parts replaced."""
        resolved = copy(self)
        resolved.losses = [loss.resolve(Z) for loss in self.losses]
        return resolved

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the combined losses of all pairs."""
        return self._combine([loss.matrix(Y, Z) for loss in self.losses])

    def decoder(self) -> Decoder:
        """Return the search of the parts if all search the same finite set, else one among the training outputs."""
        decoders = [loss.decoder() for loss in self.losses]
        sets = [decoder.candidates for decoder in decoders if isinstance(decoder, Candidates)]
        if len(sets) == len(decoders) and all(np.array_equal(sets[0], other) for other in sets):
            return decoders[0]
        return TrainingSet()


class LossSum(_Combined):
    r"""Weighted sum of task losses, also written ``first + second`` and ``2.0 * loss``.

    .. math:: \Delta(y, z) = \sum_k c_k \, \Delta_k(y, z).

    Parameters
    ----------
    losses : list of TaskLoss
        The terms.
    weights : array of shape (k,) or None, default=None
        The factors :math:`c_k`, of any sign; ``None`` means 1.

    Notes
    -----
    Terms of separate columns (``LossColumns``) with positive factors are decoded one by one, each by its own decoder:
    the result is the exact minimum if theirs is. Other sums are decoded among candidates.

    References
    ----------
    [Ciliberto2016]_, Thm 19.

    Examples
    --------
    >>> from fenchel.task_losses import F1, Hamming
    >>> loss = Hamming() + 0.5 * F1()
    >>> loss([[1, 0, 1, 0]], [[1, 0, 0, 0]]).round(4)
    array([0.4167])
    """

    def __init__(self, losses: Sequence[TaskLoss], weights: ArrayLike | None = None) -> None:
        self.losses = losses
        self.weights = weights

    def validate(self) -> Self:
        """Raise unless there is one finite factor for each loss."""
        super().validate()
        if self._factors().shape != (len(self.losses),) or not np.all(np.isfinite(self._factors())):
            raise ValueError(
                f"The 'weights' parameter of LossSum must hold {len(self.losses)} finite numbers, one for each loss. "
                f"Got {self.weights!r} instead."
            )
        return self

    def decoder(self) -> Decoder:
        """Return the decoders of the parts if these are decoded one by one, else a search among candidates."""
        return super().decoder() if self.parts() is None else PartsDecoder()

    def parts(self) -> list[_Part] | None:
        """Return the losses that can be minimised one by one, with their columns, or ``None`` if they cannot."""
        terms = self.terms()
        if any(factor <= 0 for factor, _ in terms):
            return None
        if len(terms) == 1:
            return [(terms[0][1], None)]
        of_columns = [loss for _, loss in terms if isinstance(loss, LossColumns)]
        every = [place for loss in of_columns for place in loss.columns]
        if len(of_columns) < len(terms) or sorted(every) != list(range(len(every))):
            return None
        return [(loss.loss, np.asarray(loss.columns)) for loss in of_columns]

    def terms(self) -> list[tuple[float, TaskLoss]]:
        """Return the factors and the losses, with those of sums among the losses in their place."""
        found: list[tuple[float, TaskLoss]] = []
        for factor, loss in zip(self._factors().tolist(), self.losses, strict=True):
            inner = loss.terms() if isinstance(loss, LossSum) else [(1.0, loss)]
            found += [(factor * other, term) for other, term in inner]
        return found

    def embedding(self, Z: Outputs) -> Embedding:
        """Return sizes for the features of all parts side by side."""
        parts = [loss.embedding(Z) for loss in self.losses]
        largest = max(abs(float(c)) * part.operator_norm for c, part in zip(self._factors(), parts, strict=True))
        return Embedding(largest, math.hypot(*(part.feature_bound for part in parts)))

    def _combine(self, matrices: list[np.ndarray]) -> np.ndarray:
        return np.asarray(sum(c * matrix for c, matrix in zip(self._factors(), matrices, strict=True)))

    def _factors(self) -> np.ndarray:
        return np.ones(len(self.losses)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances for the contract tests."""
        separate = [LossColumns(Absolute(), [0]), LossColumns(LeastSquares(), [1, 2])]
        return [cls([LeastSquares()], [2.0]), cls(separate, [1.0, 3.0])]


class LossProduct(_Combined):
    r"""Product of task losses, also written ``first * second``.

    .. math:: \Delta(y, z) = \prod_k \Delta_k(y, z).

    Parameters
    ----------
    losses : list of TaskLoss
        The factors.

    References
    ----------
    [Ciliberto2016]_, Thm 19.

    Examples
    --------
    >>> from fenchel.task_losses import F1, Hamming
    >>> (Hamming() * F1())([[1, 0, 1, 0]], [[1, 0, 0, 0]]).round(4)
    array([0.0833])
    """

    def __init__(self, losses: Sequence[TaskLoss]) -> None:
        self.losses = losses

    def embedding(self, Z: Outputs) -> Embedding:
        """Return sizes for the tensor products of the features of all parts."""
        parts = [loss.embedding(Z) for loss in self.losses]
        return Embedding(math.prod(p.operator_norm for p in parts), math.prod(p.feature_bound for p in parts))

    def _combine(self, matrices: list[np.ndarray]) -> np.ndarray:
        return np.asarray(np.prod(matrices, axis=0))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances for the contract tests."""
        return [cls([Hamming(), Hamming()])]


class LossFunction(_Combined):
    r"""Analytic function of task losses.

    .. math:: \Delta(y, z) = f\bigl(\Delta_1(y, z), \dots, \Delta_k(y, z)\bigr).

    Parameters
    ----------
    function : callable
        Takes one array for each loss, of the same shape, and returns an array of this shape.
    losses : list of TaskLoss
        The arguments.

    Notes
    -----
    The theory asks for an analytic function, such as ``np.expm1`` or a polynomial. A ratio that is unbounded, or a root
    at zero, is not.

    References
    ----------
    [Ciliberto2016]_, Thm 19.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Hamming, LossFunction
    >>> LossFunction(np.expm1, [Hamming()])([[1, 0, 1, 0]], [[1, 0, 0, 0]]).round(4)
    array([0.284])
    """

    def __init__(self, function: Callable[..., np.ndarray], losses: Sequence[TaskLoss]) -> None:
        self.function = function
        self.losses = losses

    def _combine(self, matrices: list[np.ndarray]) -> np.ndarray:
        values = np.asarray(self.function(*matrices), dtype=np.float64)
        if values.shape != matrices[0].shape or not np.all(np.isfinite(values)):
            raise ValueError(
                f"The function of LossFunction must return finite numbers of shape {matrices[0].shape}. Got shape "
                f"{values.shape}, or numbers that are not finite."
            )
        return values

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances for the contract tests."""
        return [cls(np.expm1, [Hamming()])]


class LossColumns(TaskLoss):
    r"""Task loss of some columns of the outputs: one part of an output that is a pair, or a longer tuple.

    Parameters
    ----------
    loss : TaskLoss
        The loss of these columns.
    columns : list of int
        Their positions.

    References
    ----------
    [Ciliberto2016]_, Thm 19.

    Examples
    --------
    A number and an angle, predicted together:

    >>> from fenchel.task_losses import Absolute, CircleGeodesic, LossColumns
    >>> loss = LossColumns(Absolute(), [0]) + 2.0 * LossColumns(CircleGeodesic(), [1])
    >>> loss([[1.0, 3.0]], [[1.5, -3.0]]).round(4)
    array([0.6604])
    """

    def __init__(self, loss: TaskLoss, columns: Sequence[int]) -> None:
        self.loss = loss
        self.columns = columns

    def validate(self) -> Self:
        """Raise unless the columns are distinct positions."""
        places = np.asarray(self.columns)
        if places.ndim != 1 or places.dtype.kind not in "iu" or np.any(places < 0) or len(set(places)) != len(places):
            raise ValueError(
                f"The 'columns' parameter of LossColumns must be a list of distinct positions. Got {self.columns!r}."
            )
        return super().validate()

    def check(self, Z: Outputs) -> Outputs:
        """Return true outputs with these columns in the form that the loss takes, or raise."""
        Z = as_outputs(Z)
        if Z.ndim != 2 or max(self.columns) >= Z.shape[1]:
            raise ValueError(
                f"LossColumns takes outputs with a column {max(self.columns)}. Got an array of shape {Z.shape}."
            )
        taken = columns(self.loss.check(_taken(Z, self.columns)))
        changed = np.array(Z, dtype=np.result_type(Z, taken))
        changed[:, np.asarray(self.columns)] = taken
        return changed

    def resolve(self, Z: Outputs) -> "LossColumns":
        """Return the loss with every data-dependent parameter replaced."""
        return LossColumns(self.loss.resolve(_taken(Z, self.columns)), self.columns)

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the losses of the columns."""
        return self.loss.matrix(_taken(Y, self.columns), _taken(Z, self.columns))

    def embedding(self, Z: Outputs) -> Embedding:
        """Return the sizes of the loss of the columns."""
        return self.loss.embedding(_taken(Z, self.columns))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances for the contract tests."""
        return [cls(Absolute(), [1])]


class PartsDecoder(Decoder):
    """Decoder of a weighted sum of losses of separate columns: each part by the decoder of its loss.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import LossTrickPredictor
    >>> from fenchel.task_losses import Absolute, CircleGeodesic, LossColumns
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> loss = LossColumns(Absolute(), [0]) + LossColumns(CircleGeodesic(), [1])
    >>> model = LossTrickPredictor(task_loss=loss).fit(X, np.hstack([X**2, 3 * X]))
    >>> type(model.decoder_).__name__, model.predict(X[:2]).shape
    ('PartsDecoder', (2, 2))
    """

    def fit(self, Y: Outputs, representation: Space) -> Self:
        """Fit the decoder of each part on its columns of the training outputs."""
        parts = self._task_loss(representation, "parts", what="a sum of losses of separate columns").parts()
        outputs = representation.outputs_
        self._columns = [places for _, places in parts]
        self._decoders = [
            loss.decoder().fit(_taken(Y, places), TaskSpace(loss, _taken(outputs, places))) for loss, places in parts
        ]
        return super().fit(Y, representation)

    def decode(self, coordinates: np.ndarray) -> Outputs:
        """Return the parts side by side."""
        decoded = [decoder.decode(coordinates) for decoder in self._decoders]
        if self._columns[0] is None:
            return decoded[0]
        whole = np.concatenate([columns(part) for part in decoded], axis=1)
        return whole[:, np.argsort(np.concatenate(self._columns))]


def _taken(Z: Outputs, places: Sequence[int] | np.ndarray | None) -> Outputs:
    """Return some columns of outputs, as a vector if there is one; all outputs if ``None``."""
    if places is None:
        return Z
    found = np.asarray(Z)[:, np.asarray(places)]
    return found[:, 0] if found.shape[1] == 1 else found


TaskLoss._sum, TaskLoss._product = LossSum, LossProduct
