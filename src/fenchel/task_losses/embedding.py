"""The bilinear form of a task loss, whose size bounds what a surrogate's error costs."""

import math
from dataclasses import dataclass
from typing import Self

__all__ = ["Embedding"]


@dataclass(frozen=True)
class Embedding:
    r"""Sizes of a form :math:`\Delta(y, z) = \langle \psi(y), V \psi(z) \rangle` of a task loss.

    Attributes
    ----------
    operator_norm : float
        :math:`\|V\|`, or a bound on it.
    feature_bound : float
        :math:`\max_y \|\psi(y)\|`, or a bound on it.

    References
    ----------
    [Ciliberto2016]_, Assumption 1 and Thm 2.

    Examples
    --------
    >>> from fenchel.task_losses import LossMatrix
    >>> LossMatrix([[0, 3], [4, 0]]).embedding([0, 1]).constant
    4.0
    """

    operator_norm: float
    feature_bound: float

    @property
    def constant(self) -> float:
        r"""Return :math:`c_\Delta = \|V\| \max_y \|\psi(y)\|` of the comparison inequality."""
        return self.operator_norm * self.feature_bound

    @classmethod
    def of_similarity(cls, factor: float) -> Self:
        """Return the sizes for ``factor * (1 - k)``, where k is a kernel with k(y, y) = 1: features of k, and a one."""
        return cls(factor, math.sqrt(2))
