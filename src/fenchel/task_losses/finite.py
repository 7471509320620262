"""Losses of labels and label sets."""

from collections.abc import Hashable
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Outputs
from fenchel.decoders import Candidates, Decoder, LabelVote
from fenchel.kernels import Gaussian, ScalarKernel, as_scalar_kernel
from fenchel.task_losses.embedding import Embedding
from fenchel.task_losses.task_loss import TaskLoss, as_outputs, columns, numbers

__all__ = ["F1", "Hamming", "LossMatrix", "ZeroOne"]


class ZeroOne(TaskLoss):
    r"""Zero-one loss for labels of any kind: 1 if y differs from z, else 0. It gives the least-squares classifier.

    Examples
    --------
    >>> from fenchel.task_losses import ZeroOne
    >>> ZeroOne()(["cat", "dog"], ["cat", "cat"])
    array([0., 1.])
    """

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return 1.0 for outputs that differ, else 0.0."""
        return 1.0 - equal(Y, Z)

    def output_kernel(self) -> ScalarKernel:
        """Return the kernel that is 1 for equal outputs and 0 otherwise."""
        return as_scalar_kernel(equal)

    def embedding(self, Z: Outputs) -> Embedding:
        """Return sizes for any number of labels; with unit vectors alone the norm is their number minus one."""
        return Embedding.of_similarity(1.0)


class LossMatrix(TaskLoss):
    r"""Loss matrix on a finite set: :math:`\Delta(y, z)` is the entry in the row of decision y and column of class z.

    Parameters
    ----------
    costs : array of shape (D, T)
        ``costs[a, b]`` is the cost of decision a if the class is b. There may be more decisions than classes.
    classes : array of shape (T,) or None, default=None
        Names of the classes; ``None`` means 0, ..., T - 1.
    decisions : array of shape (D,) or None, default=None
        Names of the decisions; ``None`` means the classes, or 0, ..., D - 1 if there are more decisions.

    Examples
    --------
    Missing an illness costs more than a false alarm, and a doctor may be asked:

    >>> from fenchel.task_losses import LossMatrix
    >>> loss = LossMatrix([[0, 10], [1, 0], [0.5, 0.5]], classes=["well", "ill"], decisions=["well", "ill", "ask"])
    >>> loss(["ill", "ill", "well"], ["well", "ask", "ill"])
    array([10. ,  0.5,  1. ])
    """

    def __init__(self, costs: ArrayLike, classes: ArrayLike | None = None, decisions: ArrayLike | None = None) -> None:
        self.costs = costs
        self.classes = classes
        self.decisions = decisions

    def validate(self) -> "LossMatrix":
        """Validate the matrix and the names."""
        costs = self._costs()
        for name, labels, axis in (("classes", self._classes(), 1), ("decisions", self._decisions(), 0)):
            if len(labels) != costs.shape[axis] or len(np.unique(labels)) != len(labels):
                raise ValueError(
                    f"The {name!r} parameter of LossMatrix must hold {costs.shape[axis]} distinct names, one for "
                    f"each {'column' if axis else 'row'} of costs. Got {labels!r} instead."
                )
        return self

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the entries of the matrix."""
        decided = places(Y, self._decisions(), "LossMatrix", "decisions")
        return np.asarray(self._costs()[decided][:, places(Z, self._classes(), "LossMatrix", "classes")])

    def check(self, Z: Outputs) -> Outputs:
        """Check that every label is a class."""
        Z = as_outputs(Z)
        places(Z, self._classes(), "LossMatrix", "classes")
        return Z

    def decoder(self) -> Decoder:
        """Return a search among all decisions, including those that do not occur in the training outputs."""
        return Candidates(self._decisions())

    def output_kernel(self) -> ScalarKernel:
        """Return the kernel that is 1 for equal outputs and 0 otherwise."""
        return as_scalar_kernel(equal)

    def embedding(self, Z: Outputs) -> Embedding:
        """Return the spectral norm of the matrix, with unit vectors as features."""
        return Embedding(float(np.linalg.norm(self._costs(), 2)), 1.0)

    def _costs(self) -> np.ndarray:
        costs = numbers(self.costs, "The 'costs' parameter of LossMatrix", (2,))
        if costs.size == 0:
            raise ValueError(f"The 'costs' parameter of LossMatrix must not be empty. Got shape {costs.shape} instead.")
        return costs

    def _classes(self) -> np.ndarray:
        return np.arange(self._costs().shape[1]) if self.classes is None else np.asarray(self.classes)

    def _decisions(self) -> np.ndarray:
        if self.decisions is not None:
            return np.asarray(self.decisions)
        shape = self._costs().shape
        return self._classes() if shape[0] == shape[1] else np.arange(shape[0])

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances for the contract tests."""
        return [cls([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [1.0, 1.0, 0.0]])]


class Hamming(TaskLoss):
    r"""Hamming loss of 0/1 label vectors, the share of wrong labels :math:`\tfrac1d \#\{j : y_j \ne z_j\}`.

    Examples
    --------
    >>> from fenchel.task_losses import Hamming
    >>> Hamming()([[1, 0, 1, 0]], [[1, 0, 0, 0]])
    array([0.25])
    """

    labelwise: ClassVar[bool] = True

    def check(self, Z: Outputs) -> Outputs:
        """Check that every entry is 0 or 1."""
        return _label_sets(Z, "Hamming")

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the shares of labels that differ."""
        Y, Z = np.asarray(Y, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        return np.asarray((Y @ (1 - Z).T + (1 - Y) @ Z.T) / Z.shape[1])

    def decoder(self) -> Decoder:
        """Return the weighted vote, label by label."""
        return LabelVote()

    def embedding(self, Z: Outputs) -> Embedding:
        """Return sizes for any number of labels: the loss is 1/2 minus half the mean product of labels -1 and 1."""
        return Embedding.of_similarity(0.5)


class F1(TaskLoss):
    r"""F1 loss of 0/1 label vectors, :math:`1 - 2 |y \cap z| / (|y| + |z|)`; 0 for two empty sets.

    Examples
    --------
    >>> from fenchel.task_losses import F1
    >>> F1()([[1, 1, 1, 0], [0, 0, 0, 0]], [[1, 0, 0, 0], [0, 0, 0, 0]])
    array([0.5, 0. ])
    """

    def check(self, Z: Outputs) -> Outputs:
        """Check that every entry is 0 or 1."""
        return _label_sets(Z, "F1")

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return 1 minus the F1 scores."""
        Y, Z = np.asarray(Y, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        sizes = Y.sum(axis=1)[:, None] + Z.sum(axis=1)
        return np.where(sizes > 0, 1 - 2 * (Y @ Z.T) / np.maximum(sizes, 1), 0.0)

    def output_kernel(self) -> ScalarKernel:
        """Return a Gaussian kernel of the number of differing labels."""
        return Gaussian("median")

    def embedding(self, Z: Outputs) -> Embedding:
        r"""Return sizes for any number of labels: the F1 score is a normalised kernel.

        It is the product of the kernels :math:`2 |y \cap z|` and
        :math:`1 / (|y| + |z|) = \int_0^\infty e^{-s|y|} e^{-s|z|} ds`.
        """
        return Embedding.of_similarity(1.0)


def equal(Y: Outputs, Z: Outputs) -> np.ndarray:
    """Return 1.0 for equal outputs, else 0.0, shape (len(Y), len(Z))."""
    Y, Z = as_outputs(Y), as_outputs(Z)
    if Y.dtype == object or Z.dtype == object:
        return np.array([[float(np.all(y == z)) for z in Z] for y in Y]).reshape(len(Y), len(Z))
    same = columns(Y)[:, None] == columns(Z)[None]
    return np.all(same, axis=tuple(range(2, same.ndim))).astype(np.float64)


def _label_sets(Z: Outputs, name: str) -> np.ndarray:
    sets = numbers(Z, name, (2,))
    if not np.all((sets == 0) | (sets == 1)):
        raise ValueError(f"{name} takes 0/1 label vectors. Got other values; binarise the labels.")
    return sets


def places(labels: Outputs, known: np.ndarray, name: str, what: str) -> np.ndarray:
    """Return the index of each label among the known labels."""
    labels = np.asarray(labels)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"{name} takes one label for each sample. Got an array of shape {labels.shape} instead.")
    place = {label: k for k, label in enumerate(known.tolist())}
    found = [place.get(label, -1) if isinstance(label, Hashable) else -1 for label in labels.tolist()]
    if -1 in found:
        raise ValueError(f"The {what} of {name} are {known.tolist()}. Got {labels.tolist()[found.index(-1)]!r}.")
    return np.array(found, dtype=int)
