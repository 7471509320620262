"""Base classes of kernels: scalar kernels, output operators and operator-valued kernels."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np

from fenchel._array import Array
from fenchel._component import Component
from fenchel.exceptions import IncompatibleError

__all__ = ["OperatorKernel", "OutputOperator", "ScalarKernel"]


class ScalarKernel(Component, ABC):
    """A positive semidefinite function of two inputs, evaluated on whole samples.

    ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are kernels; ``k * operator`` is an operator-valued kernel.
    """

    _sum: ClassVar[type["ScalarKernel"]]  # set in combined.py, whose classes derive from this one
    _product: ClassVar[type["ScalarKernel"]]
    _scaled: ClassVar[type["ScalarKernel"]]
    diag_bound: float = math.inf  # supremum of k(x, x) over all inputs
    __array_ufunc__ = None  # array * kernel raises instead of returning an array of kernels

    def __add__(self, other: object) -> "ScalarKernel":
        """Return the sum of two kernels."""
        return self._sum(self, other) if isinstance(other, ScalarKernel) else NotImplemented

    def __mul__(self, other: object) -> "ScalarKernel":
        """Return the product with a kernel or a positive number; products with output operators are defined there."""
        if isinstance(other, Real):
            return self._scaled(self, other)
        return self._product(self, other) if isinstance(other, ScalarKernel) else NotImplemented

    def __rmul__(self, other: object) -> "ScalarKernel":
        """Return the product with a positive number."""
        return self._scaled(self, other) if isinstance(other, Real) else NotImplemented

    @abstractmethod
    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix of k(x_i, z_j), shape (n, m); ``Z=None`` means ``Z = X``."""

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i), shape (n,)."""

    def resolve(self, X: Array, weights: Array | None = None) -> "ScalarKernel":
        """Return the kernel with every data-dependent parameter replaced by its value on the sample.

        ``weights`` (n,) are sample weights; ``None`` weighs all samples equally.
        """
        return self

    def named(self, names: Sequence[str]) -> "ScalarKernel":
        """Return the kernel with every column name replaced by its position in ``names``."""
        return self

    @property
    def has_features(self) -> bool:
        """Whether ``features`` returns an array."""
        return False

    def features(self, X: Array) -> Array | None:
        """Return a finite feature map (n, d) whose inner products are the kernel, or ``None`` if there is none."""
        return None

    def mapped(self, change: Callable[["ScalarKernel", Array], "ScalarKernel"], X: Array) -> "ScalarKernel":
        """Return the kernel with ``change`` applied to its additive parts; it gets each part and the inputs it sees."""
        return change(self, X)

    def spectral_frequencies(self, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        r"""Map standard normal rows to frequencies (m, d) distributed as the spectral density of the kernel.

        The characteristic function of each frequency is k(x, 0). The rows of ``normals`` (m, d) are standard normal
        and may be dependent; ``rng`` supplies any further random numbers.
        """
        raise IncompatibleError(
            f"{self!r} has no spectral density to draw random features from. Use Gaussian, Laplacian or Matern, or "
            "approximation=Nystrom(500)."
        )

    def product(self, X: Array, Z: Array | None, A: Array) -> Array | None:
        """Return k(X, Z) A with the kernel in float32 by a fused GPU kernel, or ``None`` if there is none for it."""
        from fenchel.kernels.fused import fused_product  # imports the kernels

        return fused_product(self, X, Z, A)

    def slope(self, X: Array, Z: Array) -> Array:
        """Return the derivatives of k(x_i, z_j) with respect to x_i, shape (n, m), for inputs (n, 1) and (m, 1)."""
        raise self._no_derivative()

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        r"""Return :math:`\sum_j w_{ij} \nabla_{x_i} k(x_i, z_j)`, shape (n, d), for vectors and weights (n, m).

        Weights (p, n, m), or (p, 1, m) if they are the same for all points, give p such sums, (p, n, d).
        """
        raise self._no_derivative()

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of ``features(X) @ coef``, shape (p, n, d), for vectors and coefficients (D, p)."""
        raise self._no_derivative()

    def _no_derivative(self) -> IncompatibleError:
        return IncompatibleError(
            f"{self!r} is not smooth, or has no derivative implemented. Use Gaussian(), or Matern with nu=1.5 or more."
        )

    @property
    def is_pairwise(self) -> bool:
        """Whether inputs are Gram matrices rather than points."""
        return False

    @property
    def takes_objects(self) -> bool:
        """Whether inputs may be arbitrary objects, not only numeric arrays."""
        return False

    @property
    def takes_missing(self) -> bool:
        """Whether inputs may contain NaN."""
        return False

    @property
    def is_trusted(self) -> bool:
        """Whether the kernel is positive semidefinite by construction; other kernels are checked on the sample."""
        return True


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

    def congruence(self, matrix: Array) -> Array:
        """Return the operator with this matrix on the raw outputs in coordinates, (p, p)."""

    def congruence_diagonal(self, values: Array) -> Array:
        """Return the operator with this diagonal on the raw outputs in coordinates, (p,) or (p, p)."""

    def covariance(self) -> Array:
        """Return the second moment of the training outputs in coordinates, (p, p)."""


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


class OperatorKernel(Component, ABC):
    """A kernel whose values are operators on the output space."""

    @abstractmethod
    def bind(self, X: Array, representation: OutputSpace) -> Any:
        """Return the kernel bound to a sample, in the coordinates of the representation.

        The result has a method ``gram(X, Z=None)`` that returns an ``Operator``. Data-dependent parameters (a median
        bandwidth, the covariance of the outputs) are replaced by their values.
        """

    def named(self, names: Sequence[str]) -> "OperatorKernel":
        """Return the kernel with every column name replaced by its position in ``names``."""
        return self

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
