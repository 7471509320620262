"""Base classes of kernels: scalar kernels, output operators and operator-valued kernels."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from fenchel._array import Array, as_like
from fenchel._component import Component
from fenchel.kernels.tags import KernelTags, former_attribute, former_flags
from fenchel.operators import Operator

__all__ = ["BoundKernel", "OperatorKernel", "OutputOperator", "ScalarKernel"]


class ScalarKernel(Component, ABC):
    """A positive semidefinite function of two inputs, evaluated on whole samples.

    ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are kernels; ``k * operator`` is an operator-valued kernel.
    """

    # sum, product and multiple, which are set in combined.py: their classes derive from this one
    _algebra: ClassVar[tuple[Callable[..., "ScalarKernel"], ...]]
    _is_checked = False  # whether these very parameters were checked
    __array_ufunc__ = None  # array * kernel raises instead of returning an array of kernels

    def __add__(self, other: object) -> "ScalarKernel":
        """Return the sum of two kernels."""
        return self._algebra[0](self, other) if isinstance(other, ScalarKernel) else NotImplemented

    def __mul__(self, other: object) -> "ScalarKernel":
        """Return the product with a kernel or a positive number; products with output operators are defined there."""
        if isinstance(other, Real):
            return self._algebra[2](self, other)
        return self._algebra[1](self, other) if isinstance(other, ScalarKernel) else NotImplemented

    def __rmul__(self, other: object) -> "ScalarKernel":
        """Return the product with a positive number."""
        return self._algebra[2](self, other) if isinstance(other, Real) else NotImplemented

    @abstractmethod
    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""

    def resolve(self, X: Array, weights: Array | None = None) -> "ScalarKernel":
        """Return the kernel with every data-dependent parameter replaced by its value on the sample.

        Parameters are checked here, once: the kernel that is returned only computes. ``weights`` (n,) are sample
        weights; ``None`` weighs all samples equally.
        """
        self.check()
        return self.ready()

    def named(self, names: Sequence[str]) -> "ScalarKernel":
        """Return the kernel with every column name replaced by its position in ``names``."""
        return self

    def features(self, X: Array) -> Array | None:
        """Return a finite feature map (n, d) whose inner products are the kernel, or ``None`` if there is none."""
        return None

    @property
    def tags(self) -> KernelTags:
        """Facts about the kernel that do not depend on the inputs."""
        return former_flags(self)

    def check(self) -> None:
        """Raise if a parameter is invalid; a kernel that ``ready`` returned is not checked again."""
        if not self._is_checked:
            self.validate()

    def ready(self, **values: object) -> Self:
        """Return the kernel with these values of parameters, which are valid and need no check."""
        if self._is_checked and not values:
            return self
        found = copy(self)
        found.__dict__.update(values, _is_checked=True)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        self.__dict__.pop("_is_checked", None)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return former_attribute(self, name)


class OutputSpace(Protocol):
    """The interface that operators and kernels need from the space of the outputs, as in ``CoordinateSpace``."""

    @property
    def targets(self) -> Array:
        """Coordinates of the training outputs, (n, p)."""

    @property
    def weights(self) -> Array | None:
        """Sample weights, (n,)."""

    @property
    def is_functional(self) -> bool:
        """Whether outputs are curves."""

    @property
    def name(self) -> str:
        """Name of the representation, for messages."""

    def congruence(self, matrix: Array) -> Array:
        """Return the operator with this matrix on the raw outputs in coordinates, (p, p)."""

    def congruence_diagonal(self, values: Array) -> Array:
        """Return the operator with this diagonal on the raw outputs in coordinates, (p,) or (p, p)."""

    def covariance(self) -> Array:
        """Return the second moment of the training outputs in coordinates, (p, p)."""


class CurveSpace(Protocol):
    """The interface that operators on curves need from their representation."""

    def integral(self, operator: "OutputOperator") -> Array:
        """Return an integral operator in these coordinates."""

    def evaluation(self, operator: "OutputOperator", grid: np.ndarray, derivative: int = 0) -> Array:
        """Return the map from coordinates to values of the image of an integral operator, (p, points × channels)."""

    def interpolation(self, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return the map from coordinates to values at points, (p, points × channels)."""


class OutputOperator(Component, ABC):
    """A positive semidefinite operator on the output space; ``k * operator`` is an operator-valued kernel."""

    _separable: ClassVar[type["OperatorKernel"]]  # set in separable.py

    def __rmul__(self, other: object) -> "OperatorKernel":
        """Return the separable kernel of a scalar kernel and this operator."""
        return self._separable(other, self) if isinstance(other, ScalarKernel) else NotImplemented

    @abstractmethod
    def matrix(self, representation: OutputSpace) -> Array | None:
        """Return the operator in the representation's coordinates.

        Shape (p, p), or (p,) when it is diagonal, or ``None`` for the identity.
        """

    def evaluation(self, matrix: Array | None, curves: CurveSpace, points: np.ndarray, derivative: int) -> Array:
        """Return the map (p, points × channels) from coordinates of curves to values of their images at points.

        ``matrix`` is that of ``matrix()``. The images lie in the span of the coordinates, unless overridden.
        """
        values = curves.interpolation(points, derivative)
        if matrix is None:
            return values
        matrix = as_like(matrix, values)
        return matrix @ values if matrix.ndim == 2 else matrix[:, None] * values


class BoundKernel(Protocol):
    """A kernel bound to a sample and to the coordinates of a representation."""

    def gram(self, X: Array, Z: Array | None = None) -> Operator:
        """Return the Gram operator between two samples."""


class OperatorKernel(Component, ABC):
    """A kernel whose values are operators on the output space."""

    @abstractmethod
    def bind(self, X: Array, representation: OutputSpace) -> BoundKernel:
        """Return the kernel bound to a sample, in the coordinates of the representation.

        Data-dependent parameters (a median bandwidth, the covariance of the outputs) are replaced by their values.
        """

    def mapped(self, change: Callable[[ScalarKernel], ScalarKernel]) -> "OperatorKernel":
        """Return the kernel with ``change`` applied to its scalar kernels."""
        return self

    def named(self, names: Sequence[str]) -> "OperatorKernel":
        """Return the kernel with every column name replaced by its position in ``names``."""
        return self.mapped(lambda kernel: kernel.named(names))

    def width(self, X: Array) -> int:
        """Return how many numbers a Gram operator stores per sample: the number of samples, or of features."""
        return int(X.shape[0])

    @property
    def has_points_only(self) -> bool:
        """Whether the kernel is one scalar kernel on points times an operator, so that no Gram matrix is needed."""
        return False

    @property
    @abstractmethod
    def is_pairwise(self) -> bool:
        """Whether inputs are Gram matrices rather than points."""
