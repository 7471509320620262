"""The protocols of kernels: scalar kernels, output operators, operator-valued kernels."""

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
    """A positive semidefinite function of two inputs, computed for whole samples at once.

    ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are kernels; ``k * operator`` is an operator-valued kernel.
    """

    _sum: ClassVar[type["ScalarKernel"]]  # combined.py defines these three kernels, which stand on this class
    _product: ClassVar[type["ScalarKernel"]]
    _scaled: ClassVar[type["ScalarKernel"]]
    diag_bound: float = math.inf  # the least upper bound of k(x, x) over all inputs
    __array_ufunc__ = None  # an array times a kernel is an error, not an array of kernels

    def __add__(self, other: object) -> "ScalarKernel":
        """Return the sum of two kernels."""
        return self._sum(self, other) if isinstance(other, ScalarKernel) else NotImplemented

    def __mul__(self, other: object) -> "ScalarKernel":
        """Return the product with a kernel or a positive number; an output operator answers for itself."""
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
        """Return the kernel with every parameter that depends on the sample replaced by its number.

        ``weights`` (n,) count the samples; ``None`` counts each once.
        """
        return self

    def named(self, names: Sequence[str]) -> "ScalarKernel":
        """Return the kernel with every column that it knows by name replaced by its place in ``names``."""
        return self

    @property
    def has_features(self) -> bool:
        """Whether ``features`` gives some."""
        return False

    def features(self, X: Array) -> Array | None:
        """Return finitely many features whose products are the kernel, (n, d), or ``None`` where there are none."""
        return None

    def mapped(self, change: Callable[["ScalarKernel", Array], "ScalarKernel"], X: Array) -> "ScalarKernel":
        """Return the kernel with its additive parts changed; ``change`` gets each part and what that sees of X."""
        return change(self, X)

    def spectral_frequencies(self, normals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        r"""Return frequencies (m, d), each with the law whose characteristic function is k(x, 0), from normal rows.

        The rows of ``normals`` (m, d) are standard normal, and may depend on each other; ``rng`` draws what else is
        needed.
        """
        raise IncompatibleError(
            f"{self!r} has no spectral density to draw random features from. Use Gaussian, Laplacian or Matern, or "
            "approximation=Nystrom(500)."
        )

    def product(self, X: Array, Z: Array | None, A: Array) -> Array | None:
        """Return k(X, Z) A with the kernel in float32, by a program of the device, ``None`` where there is none."""
        from fenchel.kernels.fused import fused_product  # which knows the kernels

        return fused_product(self, X, Z, A)

    def slope(self, X: Array, Z: Array) -> Array:
        """Return the derivatives of k(x_i, z_j) in x_i, shape (n, m), for points of the line: (n, 1) and (m, 1)."""
        raise self._no_derivative()

    def weighted_gradient(self, X: Array, Z: Array, weights: Array) -> Array:
        r"""Return :math:`\sum_j w_{ij} \nabla_{x_i} k(x_i, z_j)`, shape (n, d), for vectors and weights (n, m).

        Weights (p, n, m), or (p, 1, m) where all points have the same, give p such sums, (p, n, d).
        """
        raise self._no_derivative()

    def feature_gradient(self, X: Array, coef: Array) -> Array:
        """Return the gradients of ``features(X) @ coef``, shape (p, n, d), for vectors and coefficients (D, p)."""
        raise self._no_derivative()

    def _no_derivative(self) -> IncompatibleError:
        return IncompatibleError(
            f"{self!r} is not smooth, or its derivative is not written. Use Gaussian() or Matern(nu=1.5) or smoother."
        )

    @property
    def is_pairwise(self) -> bool:
        """Whether inputs are Gram matrices rather than points."""
        return False

    @property
    def takes_objects(self) -> bool:
        """Whether inputs may be anything, not only arrays of numbers."""
        return False

    @property
    def takes_missing(self) -> bool:
        """Whether inputs may hold NaN."""
        return False

    @property
    def is_trusted(self) -> bool:
        """Whether the kernel is positive semidefinite by construction; others are checked on the sample."""
        return True


class OutputSpace(Protocol):
    """What an operator or a kernel asks of the representation of the outputs."""

    targets_: Array
    weights_: Array | None
    is_functional: ClassVar[bool]

    def congruence(self, matrix: Array) -> Array:
        """Return an operator, given by its matrix on the raw outputs, in coordinates (p, p)."""

    def congruence_diagonal(self, values: Array) -> Array:
        """Return a diagonal operator on the raw outputs in coordinates, (p,) or (p, p)."""

    def covariance(self) -> Array:
        """Return the second moment of the training outputs in coordinates, (p, p)."""


class OutputOperator(Component, ABC):
    """A positive semidefinite operator of the output space; ``k * operator`` is an operator-valued kernel."""

    _separable: ClassVar[type["OperatorKernel"]]  # separable.py defines it

    def __rmul__(self, other: object) -> "OperatorKernel":
        """Return the separable kernel of a scalar kernel and this operator."""
        return self._separable(other, self) if isinstance(other, ScalarKernel) else NotImplemented

    @abstractmethod
    def matrix(self, representation: OutputSpace) -> Array | None:
        """Return the operator in the representation's coordinates.

        Shape (p, p), or (p,) when it is diagonal, or ``None`` for the identity.
        """


class OperatorKernel(Component, ABC):
    """A kernel whose values are operators of the output space."""

    @abstractmethod
    def bind(self, X: Array, representation: OutputSpace) -> Any:
        """Return the kernel bound to a sample, in the coordinates of the representation.

        The result has ``gram(X, Z=None)``, an ``Operator``; parameters that depend on the sample (a median
        bandwidth, the covariance of the outputs) are numbers in it.
        """

    def named(self, names: Sequence[str]) -> "OperatorKernel":
        """Return the kernel with every column that it knows by name replaced by its place in ``names``."""
        return self

    def width(self, X: Array) -> int:
        """Return the numbers that a Gram operator stores for each sample: one for each sample, or its features."""
        return int(X.shape[0])

    @property
    def has_points_only(self) -> bool:
        """Whether it is one scalar kernel on points times an operator, whose Gram matrix need not be stored."""
        return False

    @property
    @abstractmethod
    def is_pairwise(self) -> bool:
        """Whether inputs are Gram matrices rather than points."""
