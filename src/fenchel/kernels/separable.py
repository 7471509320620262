"""Operator-valued kernels: separable, sums of separable terms, aligned with the sample, and given by blocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from fenchel._array import Array, as_like, namespace
from fenchel._check import Interval, Options
from fenchel.kernels.base import OperatorKernel, OutputOperator, ScalarKernel
from fenchel.kernels.gram import BlockGram, DenseGram, DirectionalGram, OperatorGram, SeparableGram, SumGram
from fenchel.kernels.operators import as_operator
from fenchel.kernels.scalar import Gaussian, as_scalar_kernel

__all__ = ["Aligned", "Blocks", "Separable", "SeparableSum", "as_operator_kernel"]


@dataclass(frozen=True)
class BoundTerms:
    """Resolved terms k_t M_t of a sum of separable kernels."""

    terms: tuple[tuple[ScalarKernel, Array | None], ...]

    def gram(self, X: Array, Z: Array | None = None) -> OperatorGram:
        """Return the Gram operator; terms that share an operator share one matrix."""
        grams = [SeparableGram(DenseGram(kernel(X, Z)), operator) for kernel, operator in self.terms]
        return grams[0] if len(grams) == 1 else SumGram(grams)


class Separable(OperatorKernel):
    r"""Separable kernel: a scalar kernel times one output operator.

    .. math:: \mathcal K(x, z) = k(x, z) \, A.

    Parameters
    ----------
    kernel : ScalarKernel, str or callable, default="gaussian"
        The scalar kernel, as an estimator takes it.
    operator : OutputOperator, str, array or None, default=None
        The operator A; ``None`` is the identity.

    References
    ----------
    [Laforgue2020]_, Def. 2.

    Examples
    --------
    >>> from fenchel.kernels import Diagonal, Gaussian
    >>> Gaussian(gamma=0.5) * Diagonal([1.0, 2.0])
    Separable(kernel=Gaussian(gamma=0.5), operator=Diagonal(values=[1.0, 2.0]))
    """

    def __init__(self, kernel: Any = "gaussian", operator: Any = None) -> None:
        self.kernel = kernel
        self.operator = operator

    def bind(self, X: Array, representation: Any) -> BoundTerms:
        """Return the kernel with its numbers filled in."""
        return SeparableSum([self]).bind(X, representation)

    @property
    def is_pairwise(self) -> bool:
        """Tell whether the scalar kernel takes Gram matrices."""
        return as_scalar_kernel(self.kernel).is_pairwise

    def __add__(self, other: Any) -> "SeparableSum":
        return SeparableSum([self]) + other

    @classmethod
    def examples(cls) -> list[Self]:
        """Return one kernel for each kind of operator."""
        matrix = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
        return [
            cls(Gaussian(0.5)),
            cls("laplacian", matrix),
            cls(Gaussian(0.5), np.array([1.0, 0.3, 0.0])),
            cls("linear", "covariance"),
        ]


class SeparableSum(OperatorKernel):
    r"""Sum of separable kernels, with different scalar kernels and different operators.

    .. math:: \mathcal K(x, z) = \sum_t k_t(x, z) \, A_t.

    Parameters
    ----------
    terms : list of Separable
        The terms.

    Notes
    -----
    Terms with the same operator are added into one, and so are terms with the same scalar kernel: a sum that is
    separable after all is solved as such.

    References
    ----------
    [Laforgue2020]_, Assumption 4 and eq. (5); [Laforgue2019]_, App. B.1 and B.3.
    """

    def __init__(self, terms: Sequence[Separable] = ()) -> None:
        self.terms = terms

    def bind(self, X: Array, representation: Any) -> BoundTerms:
        """Return the terms with their numbers filled in, merged where they can be."""
        if not self.terms:
            raise ValueError("The 'terms' parameter of SeparableSum must hold at least one Separable kernel. Got none.")
        terms: list[tuple[ScalarKernel, Array | None]] = []
        for term in self.terms:
            kernel = as_scalar_kernel(term.kernel).resolve(X)
            terms = _merge(terms, kernel, as_operator(term.operator).matrix(representation))
        return BoundTerms(tuple(terms))

    @property
    def is_pairwise(self) -> bool:
        """Tell whether a scalar kernel takes Gram matrices."""
        return any(term.is_pairwise for term in self.terms)

    def __add__(self, other: Any) -> "SeparableSum":
        if isinstance(other, Separable):
            return SeparableSum([*self.terms, other])
        if isinstance(other, SeparableSum):
            return SeparableSum([*self.terms, *other.terms])
        return NotImplemented

    @classmethod
    def examples(cls) -> list[Self]:
        """Return sums that merge and a sum that does not."""
        matrix = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
        return [
            cls([Separable(Gaussian(0.5), matrix), Separable("linear", np.array([1.0, 0.3, 0.1]))]),
            cls([Separable(Gaussian(0.5)), Separable("laplacian")]),
            cls([Separable(Gaussian(0.3)), Separable(Gaussian(0.3), "covariance"), Separable("linear", matrix)]),
        ]


class Aligned(OperatorKernel):
    r"""Kernels aligned with the sample: sums over directions spanned by the training outputs.

    With directions :math:`z_d = y_i`, or :math:`z_d = y_i + y_j` for all pairs,

    .. math:: \mathcal K(s, t) = \sum_d \mu_d \, k_d(s, t) \; z_d \otimes z_d \quad\text{or}\quad
        \sum_d \mu_d \, k(s, x_d) \, k(t, x_d) \; z_d \otimes z_d .

    Parameters
    ----------
    kernel : ScalarKernel, str, callable or list of them, default="gaussian"
        One kernel for every direction, or a list with one for each.
    weights : array of shape (n_directions,) or None, default=None
        The factors :math:`\mu_d \ge 0`; ``None`` is 1 / n_directions.
    pairs : bool, default=False
        Directions :math:`y_i + y_j` (all i, j, row by row) instead of :math:`y_i`.
    anchored : bool, default=False
        The second form: each direction has the feature :math:`k(s, x_i)`, or :math:`k(s, x_i) k(s, x_j)` for pairs.

    Notes
    -----
    The span of the outputs is invariant under these kernels whatever the outputs are, so the double representer theorem
    holds. With one kernel and no anchors the kernel is separable and is solved as such.

    References
    ----------
    [Laforgue2020]_, Assumption 3 and App. A.8 (list of admissible kernels).
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "pairs": Options((False, True)),
        "anchored": Options((False, True)),
    }

    def __init__(
        self, kernel: Any = "gaussian", weights: Any = None, pairs: bool = False, anchored: bool = False
    ) -> None:
        self.kernel = kernel
        self.weights = weights
        self.pairs = pairs
        self.anchored = anchored

    def bind(self, X: Array, representation: Any) -> Any:
        """Return the kernel bound to the sample's directions."""
        directions = representation.targets_
        n, p = directions.shape
        if self.pairs:
            directions = namespace(directions).reshape(directions[:, None, :] + directions[None, :, :], (n * n, p))
        directions = directions * self._root_weights(directions)
        kernels = list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel]
        resolved = [as_scalar_kernel(kernel).resolve(X) for kernel in kernels]
        if self.anchored:
            if len(resolved) > 1:
                raise ValueError("An anchored Aligned kernel takes one scalar kernel. Got a list of several.")
            return BoundAnchors(resolved[0], X, directions, self.pairs)
        if len(resolved) == 1:
            return BoundTerms(((resolved[0], directions.T @ directions),))
        if len(resolved) != directions.shape[0]:
            raise ValueError(
                f"The 'kernel' parameter of Aligned must be one kernel or a list of {directions.shape[0]}, one for "
                f"each direction. Got a list of {len(resolved)}."
            )
        return BoundDirections(tuple(resolved), directions)

    def _root_weights(self, directions: Array) -> Array:
        count = directions.shape[0]
        if self.weights is None:
            return (1 / count) ** 0.5
        weights = np.asarray(self.weights, dtype=float)
        if weights.shape != (count,) or not np.all(weights >= 0):
            raise ValueError(
                f"The 'weights' parameter of Aligned must be {count} non-negative numbers, one for each direction. "
                f"Got {self.weights!r} instead."
            )
        return as_like(np.sqrt(weights)[:, None], directions)

    @property
    def is_pairwise(self) -> bool:
        """Tell whether a scalar kernel takes Gram matrices."""
        kernels = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel]
        return any(as_scalar_kernel(kernel).is_pairwise for kernel in kernels)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return the forms that need no list as long as the sample."""
        return [cls(Gaussian(0.5)), cls(Gaussian(0.5), pairs=True), cls(anchored=True), cls(pairs=True, anchored=True)]


@dataclass(frozen=True)
class BoundDirections:
    """One scalar kernel for each direction."""

    kernels: tuple[ScalarKernel, ...]
    directions: Array

    def gram(self, X: Array, Z: Array | None = None) -> OperatorGram:
        """Return the Gram operator from the stack of Gram matrices."""
        stack = namespace(self.directions).stack([kernel(X, Z) for kernel in self.kernels])
        return DirectionalGram(stack, self.directions)


@dataclass(frozen=True)
class BoundAnchors:
    """One feature k(., x_i), or k(., x_i) k(., x_j), for each direction."""

    kernel: ScalarKernel
    anchors: Array
    directions: Array
    pairs: bool

    def gram(self, X: Array, Z: Array | None = None) -> OperatorGram:
        """Return the Gram operator from the features of both samples."""
        left = self._features(X)
        return DirectionalGram((left, left if Z is None else self._features(Z)), self.directions)

    def _features(self, X: Array) -> Array:
        columns = self.kernel(X, self.anchors)
        if not self.pairs:
            return columns
        products = columns[:, :, None] * columns[:, None, :]
        return namespace(columns).reshape(products, (columns.shape[0], -1))


class Blocks(OperatorKernel):
    r"""A general operator-valued kernel, given by a function that returns its blocks.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` returns the operators :math:`\mathcal K(x_i, z_j)`, shape (n, m, p, p). With
        ``tensor=True``: the products :math:`\langle y_k, \mathcal K(x_i, z_j) y_l \rangle` with the n training
        outputs, shape (n, m, n_train, n_train).
    tensor : bool, default=False
        What the function returns.

    Notes
    -----
    The fourth-order tensor of the double representer theorem costs :math:`n^4` numbers: for small samples, and to check
    the special cases against.

    References
    ----------
    [Laforgue2020]_, Thm 4.
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"tensor": Options((False, True))}

    def __init__(self, function: Callable[[Array, Array], Array] | None = None, tensor: bool = False) -> None:
        self.function = function
        self.tensor = tensor

    def bind(self, X: Array, representation: Any) -> "BoundBlocks":
        """Return the kernel with its blocks in coordinates."""
        if not callable(self.function):
            raise TypeError(
                f"The 'function' parameter of Blocks must be a callable (X, Z) -> blocks. Got {self.function!r}."
            )
        return BoundBlocks(self.function, representation, self.tensor)

    @property
    def is_pairwise(self) -> bool:
        """Return False: the function sees points."""
        return False

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a kernel whose operator depends on the inputs."""
        return [cls(_transformed_gaussian)]


@dataclass(frozen=True)
class BoundBlocks:
    """The blocks in coordinates."""

    function: Callable[[Array, Array], Array]
    representation: Any
    tensor: bool

    def gram(self, X: Array, Z: Array | None = None) -> OperatorGram:
        """Return the Gram operator from the blocks."""
        Z = X if Z is None else Z
        targets = self.representation.targets_
        blocks = as_like(self.function(X, Z), targets)
        size = targets.shape[0] if self.tensor else targets.shape[1]
        wanted = (X.shape[0], Z.shape[0], size, size)
        if tuple(blocks.shape) != wanted:
            raise ValueError(f"The blocks must have shape {wanted}. The function returned {tuple(blocks.shape)}.")
        if not self.tensor:
            return BlockGram(blocks)
        factor = namespace(targets).linalg.pinv(targets).T  # (n, p): y = V e, so e'Ke = V^+ M V^+'
        return BlockGram(factor.T @ blocks @ factor)


def as_operator_kernel(kernel: Any, operator: Any = None) -> OperatorKernel:
    """Return the operator-valued kernel that an estimator's ``kernel`` and ``operator`` mean."""
    if isinstance(kernel, OperatorKernel):
        if operator is not None:
            raise ValueError(
                f"The 'operator' parameter must be None when 'kernel' is operator-valued already. Got {operator!r}."
            )
        return kernel
    if isinstance(kernel, OutputOperator):
        raise TypeError(f"The 'kernel' parameter must be a kernel on inputs. Got the output operator {kernel!r}.")
    return Separable(as_scalar_kernel(kernel), as_operator(operator))


def _merge(
    terms: list[tuple[ScalarKernel, Array | None]], kernel: ScalarKernel, operator: Array | None
) -> list[tuple[ScalarKernel, Array | None]]:
    """Return the terms with one more, added into one that has the same kernel or the same operator."""
    for k, (other, matrix) in enumerate(terms):
        merged = None
        if _same_operator(matrix, operator):
            merged = (other + kernel, matrix)
        elif _same_kernel(other, kernel) and matrix is not None and operator is not None:
            merged = (other, _full(matrix) + _full(operator))
        if merged is not None:
            return [*terms[:k], merged, *terms[k + 1 :]]
    return [*terms, (kernel, operator)]


def _full(operator: Array) -> Array:
    """Return a diagonal operator as a matrix."""
    xp = namespace(operator)
    return operator if operator.ndim == 2 else operator[:, None] * xp.eye(operator.shape[0], dtype=operator.dtype)


def _same_operator(A: Array | None, B: Array | None) -> bool:
    if A is None or B is None:
        return A is B
    return A.shape == B.shape and bool(namespace(A).all(A == B))


def _same_kernel(a: ScalarKernel, b: ScalarKernel) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    p, q = a.get_params(), b.get_params()
    return all(type(p[name]) is type(q[name]) and _equal(p[name], q[name]) for name in p)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, ScalarKernel):
        return _same_kernel(a, b)
    return a is b or (isinstance(a, float | int | str) and a == b)


def _transformed_gaussian(X: Array, Z: Array) -> Array:
    """Return exp(-|x - z|^2 / 2) B(x) B(z)' with B(x) a 3 × 3 matrix that depends on x."""
    xp = namespace(X)

    def maps(points: Array) -> Array:
        first = xp.tanh(points[:, :1])
        one = xp.ones_like(first)
        rows = [xp.concat([one, first, 0 * one], axis=1), xp.concat([0 * one, one, first], axis=1)]
        return xp.stack([*rows, xp.concat([first, 0 * one, one], axis=1)], axis=1)

    scalar = Gaussian(0.5)(X, Z)
    left, right = maps(X), maps(Z)
    products = left[:, None, :, :] @ xp.permute_dims(right, (0, 2, 1))[None, :, :, :]
    return scalar[:, :, None, None] * products
