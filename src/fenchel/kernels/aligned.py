"""Operator-valued kernels aligned with the sample."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, as_like, namespace
from fenchel._check import Interval, Options
from fenchel.kernels.scalar import Gaussian
from fenchel.kernels.scalar_kernel import BoundKernel, OperatorKernel, OutputSpace, ScalarKernel
from fenchel.kernels.separable import BoundTerms, gram_matrix
from fenchel.kernels.wrapped import as_scalar_kernel
from fenchel.operators import Anchored, Directional, Operator

__all__ = ["Aligned"]


class Aligned(OperatorKernel):
    r"""Kernel aligned with the sample: a sum over directions spanned by the training outputs.

    With directions :math:`z_d = y_i`, or :math:`z_d = y_i + y_j` for all pairs,

    .. math:: \mathcal K(s, t) = \sum_d \mu_d \, k_d(s, t) \; z_d \otimes z_d \quad\text{or}\quad
        \sum_d \mu_d \, k(s, x_d) \, k(t, x_d) \; z_d \otimes z_d .

    Parameters
    ----------
    kernel : ScalarKernel, str, callable or list of them, default="gaussian"
        One kernel for all directions, or a list with one kernel per direction.
    weights : array of shape (n_directions,) or None, default=None
        The factors :math:`\mu_d \ge 0`; ``None`` means 1 / n_directions.
    pairs : bool, default=False
        Whether to use the directions :math:`y_i + y_j` (all i, j, row by row) instead of :math:`y_i`.
    anchored : bool, default=False
        Whether to use the second form, in which each direction has the feature :math:`k(s, x_i)`, or
        :math:`k(s, x_i) k(s, x_j)` for pairs.

    Notes
    -----
    These kernels leave the span of the outputs invariant for any outputs, so the double representer theorem holds.
    With a single kernel and no anchors the kernel is separable and is solved as such.

    References
    ----------
    [Laforgue2020]_, Assumption 3 and App. A.8 (list of admissible kernels).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Aligned, Gaussian
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = OperatorKernelRegressor(Aligned(Gaussian(1.0)), lam=1e-3).fit(X, np.hstack([np.sin(X), np.cos(X)]))
    >>> model.predict(X).shape
    (20, 2)
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "pairs": Options((False, True)),
        "anchored": Options((False, True)),
    }

    def __init__(
        self,
        kernel: ScalarKernel | str | Sequence[ScalarKernel | str] = "gaussian",
        weights: ArrayLike | None = None,
        pairs: bool = False,
        anchored: bool = False,
    ) -> None:
        self.kernel = kernel
        self.weights = weights
        self.pairs = pairs
        self.anchored = anchored

    def mapped(self, change: Callable[[ScalarKernel], ScalarKernel]) -> "Aligned":
        """Return the kernel with ``change`` applied to its scalar kernels."""
        kernels = [change(kernel) for kernel in self._kernels]
        several = isinstance(self.kernel, list | tuple)
        return Aligned(kernels if several else kernels[0], self.weights, self.pairs, self.anchored)

    def bind(self, X: Array, representation: OutputSpace) -> BoundKernel:
        """Return the kernel bound to the sample's directions."""
        directions = representation.targets
        n, p = directions.shape
        if self.pairs:
            directions = namespace(directions).reshape(directions[:, None, :] + directions[None, :, :], (n * n, p))
        directions = directions * self._root_weights(directions)
        resolved = [kernel.resolve(X, representation.weights) for kernel in self._kernels]
        if self.anchored:
            if len(resolved) > 1:
                raise ValueError("An anchored Aligned kernel takes a single scalar kernel. Got a list of several.")
            if resolved[0].tags.is_pairwise:
                raise ValueError("An anchored Aligned kernel takes a kernel on points. Got a precomputed kernel.")
            return BoundAnchors(resolved[0], X, directions, self.pairs)
        if len(resolved) == 1:
            return BoundTerms(((resolved[0], directions.T @ directions),))
        if len(resolved) != directions.shape[0]:
            raise ValueError(
                f"The 'kernel' parameter of Aligned must be one kernel or a list of {directions.shape[0]}, one per "
                f"direction. Got a list of {len(resolved)}."
            )
        return BoundDirections(tuple(resolved), directions)

    def _root_weights(self, directions: Array) -> Array:
        count = directions.shape[0]
        if self.weights is None:
            return (1 / count) ** 0.5
        weights = np.asarray(self.weights, dtype=float)
        if weights.shape != (count,) or not np.all((weights >= 0) & (weights < np.inf)):
            raise ValueError(
                f"The 'weights' parameter of Aligned must be {count} non-negative numbers, one per direction. "
                f"Got {self.weights!r} instead."
            )
        return as_like(np.sqrt(weights)[:, None], directions)

    @property
    def is_pairwise(self) -> bool:
        """Whether one of the scalar kernels takes Gram matrices."""
        return any(kernel.tags.is_pairwise for kernel in self._kernels)

    @property
    def _kernels(self) -> list[ScalarKernel]:
        kernels = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel]
        return [as_scalar_kernel(kernel) for kernel in kernels]

    @classmethod
    def examples(cls) -> list[Self]:
        """Return examples that do not need a list as long as the sample."""
        return [cls(Gaussian(0.5)), cls(Gaussian(0.5), pairs=True), cls(anchored=True), cls(pairs=True, anchored=True)]


@dataclass(frozen=True)
class BoundDirections:
    """Directions with one scalar kernel each."""

    kernels: tuple[ScalarKernel, ...]
    directions: Array

    def gram(self, X: Array, Z: Array | None = None) -> Operator:
        """Return the Gram operator from the stack of Gram matrices."""
        stack = namespace(self.directions).stack([gram_matrix(kernel, X, Z) for kernel in self.kernels])
        return Directional(stack, self.directions)


@dataclass(frozen=True)
class BoundAnchors:
    """Directions with one feature each, k(., x_i) or k(., x_i) k(., x_j)."""

    kernel: ScalarKernel
    anchors: Array
    directions: Array
    pairs: bool

    def gram(self, X: Array, Z: Array | None = None) -> Operator:
        """Return the Gram operator from the features of both samples."""
        left = self._features(X)
        return Anchored(left, left if Z is None else self._features(Z), self.directions)

    def _features(self, X: Array) -> Array:
        columns = self.kernel(X, self.anchors)
        if not self.pairs:
            return columns
        products = columns[:, :, None] * columns[:, None, :]
        return namespace(columns).reshape(products, (columns.shape[0], -1))
