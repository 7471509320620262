"""Separable operator-valued kernels and their sums."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from fenchel._array import Array, as_like, device, namespace
from fenchel._check import check_no_overflow, check_psd
from fenchel.kernels.operators import Identity, as_operator
from fenchel.kernels.scalar import Gaussian
from fenchel.kernels.scalar_kernel import CurveSpace, OperatorKernel, OutputOperator, OutputSpace, ScalarKernel
from fenchel.kernels.wrapped import as_scalar_kernel
from fenchel.operators import Dense, Operator, ScalarOperator, Streamed, Sum, Thin, kronecker

__all__ = ["Separable", "SeparableSum", "as_operator_kernel"]

Source = tuple[OutputOperator, Array | None]  # an operator, and its matrix in coordinates
Term = tuple[ScalarKernel, Array | None, tuple[Source, ...]]  # k, M, and the operators whose sum is M


def gram_matrix(kernel: ScalarKernel, X: Array, Z: Array | None = None) -> Array:
    """Return k(X, Z); a Gram matrix that is not positive semidefinite by construction is checked."""
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = kernel(X, Z)
    check_no_overflow(matrix, f"The Gram matrix of {kernel!r}")
    return matrix if kernel.tags.is_trusted or Z is not None else check_psd(matrix, f"The Gram matrix of {kernel!r}")


def scalar_gram(kernel: ScalarKernel, X: Array, Z: Array | None = None) -> ScalarOperator:
    """Return k(X, Z) as an operator: a product of features if these are few, otherwise the matrix."""
    size = X.shape[0] if Z is None else Z.shape[0]
    if features_of(kernel, X) >= size:
        return Dense(gram_matrix(kernel, X, Z))
    with np.errstate(over="ignore", invalid="ignore"):
        gram = Thin(kernel.features(X), None if Z is None else kernel.features(Z))
        diagonal = namespace(gram.left).linalg.vecdot(gram.left, gram.left)
    check_no_overflow(diagonal, f"The Gram matrix of {kernel!r}")
    return gram


def features_of(kernel: ScalarKernel, X: Array) -> float:
    """Return the number of features of a kernel, infinity if it has no finite feature map."""
    features = kernel.features(X[:1, ...])
    return math.inf if features is None else int(features.shape[1])


@dataclass(frozen=True)
class BoundTerms:
    """Resolved terms k_t M_t of a sum of separable kernels."""

    terms: tuple[tuple[ScalarKernel, Array | None], ...]
    sources: tuple[tuple[Source, ...], ...] = ()  # of curves: the operators whose sum is that of each term

    def gram(self, X: Array, Z: Array | None = None) -> Operator:
        """Return the Gram operator; terms with the same operator share one matrix."""
        grams = [kronecker(scalar_gram(kernel, X, Z), operator) for kernel, operator in self.terms]
        return grams[0] if len(grams) == 1 else Sum(grams)

    def streamed(self, X: Array, approximate: Callable[[ScalarKernel], ScalarKernel] | None = None) -> Operator:
        """Return the Gram operator without storing its matrix; ``approximate`` returns a kernel with features."""

        def features(kernel: ScalarKernel) -> Callable[[], Array] | None:
            return None if approximate is None else lambda: approximate(kernel).features(X)

        grams = [kronecker(Streamed(kernel, X, features=features(kernel)), operator) for kernel, operator in self.terms]
        return grams[0] if len(grams) == 1 else Sum(grams)

    def like(self, reference: Array) -> "BoundTerms":
        """Return the sum with operators in the dtype of an array."""
        terms = tuple((kernel, None if M is None else as_like(M, reference)) for kernel, M in self.terms)
        return replace(self, terms=terms)

    def mapped(self, change: Callable[[ScalarKernel], ScalarKernel]) -> "BoundTerms":
        """Return the sum with ``change`` applied to the scalar kernels."""
        return replace(self, terms=tuple((change(kernel), operator) for kernel, operator in self.terms))

    def evaluations(self, curves: CurveSpace, points: np.ndarray, derivative: int = 0) -> tuple[Array, ...]:
        """Return the map from coordinates of curves to values at points, (p, points × channels), of each term."""
        sources = self.sources or tuple(((Identity(), M),) for _, M in self.terms)
        return tuple(
            sum(operator.evaluation(M, curves, points, derivative) for operator, M in parts) for parts in sources
        )


class Separable(OperatorKernel):
    r"""Separable kernel: a scalar kernel times one output operator.

    .. math:: \mathcal K(x, z) = k(x, z) \, A.

    Parameters
    ----------
    kernel : ScalarKernel, str or callable, default="gaussian"
        The scalar kernel, in any form that an estimator accepts.
    operator : OutputOperator, str, array or None, default=None
        The operator A; ``None`` means the identity.

    References
    ----------
    [Laforgue2020]_, Def. 2.

    Examples
    --------
    >>> from fenchel.kernels import Diagonal, Gaussian
    >>> Gaussian(gamma=0.5) * Diagonal([1.0, 2.0])
    Separable(kernel=Gaussian(gamma=0.5), operator=Diagonal(values=[1.0, 2.0]))
    """

    def __init__(self, kernel: ScalarKernel | str = "gaussian", operator: OutputOperator | Array | None = None) -> None:
        self.kernel = kernel
        self.operator = operator

    def bind(self, X: Array, representation: OutputSpace) -> BoundTerms:
        """Return the kernel with its data-dependent parameters resolved."""
        return SeparableSum([self]).bind(X, representation)

    def mapped(self, change: Callable[[ScalarKernel], ScalarKernel]) -> "Separable":
        """Return the kernel with ``change`` applied to its scalar kernel."""
        return Separable(change(as_scalar_kernel(self.kernel)), self.operator)

    def width(self, X: Array) -> int:
        """Return how many numbers a Gram operator stores per sample."""
        kernel = as_scalar_kernel(self.kernel)
        kernel = kernel.resolve(X) if kernel.tags.takes_missing else kernel  # the first sample may lack a group
        return int(min(features_of(kernel, X), X.shape[0]))

    @property
    def has_points_only(self) -> bool:
        """Whether the scalar kernel takes points and is positive semidefinite by construction."""
        tags = as_scalar_kernel(self.kernel).tags
        return tags.is_trusted and not tags.is_pairwise

    @property
    def is_pairwise(self) -> bool:
        """Whether the scalar kernel takes Gram matrices."""
        return as_scalar_kernel(self.kernel).tags.is_pairwise

    def __add__(self, other: object) -> "SeparableSum":
        return SeparableSum([self]) + other

    @classmethod
    def examples(cls) -> list[Self]:
        """Return one kernel for each type of operator."""
        matrix = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
        return [
            cls(Gaussian(0.5)),
            cls("laplacian", matrix),
            cls(Gaussian(0.5), np.array([1.0, 0.3, 0.0])),
            cls("linear", "covariance"),
        ]


class SeparableSum(OperatorKernel):
    r"""Sum of separable kernels with different scalar kernels and operators.

    .. math:: \mathcal K(x, z) = \sum_t k_t(x, z) \, A_t.

    Parameters
    ----------
    terms : list of Separable
        The terms.

    Notes
    -----
    Terms with the same operator are merged, and so are terms with the same scalar kernel: a sum that turns out to be
    separable is solved as such.

    References
    ----------
    [Laforgue2020]_, Assumption 4 and eq. (5); [Laforgue2019]_, App. B.1 and B.3.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Gaussian, Identity, Linear, Matrix
    >>> kernel = Gaussian(1.0) * Identity() + Linear() * Matrix([[1.0, 1.0], [1.0, 1.0]])
    >>> type(kernel).__name__
    'SeparableSum'
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> OperatorKernelRegressor(kernel, lam=1e-3).fit(X, np.hstack([np.sin(X), np.cos(X)])).predict(X).shape
    (20, 2)

    Of curves, with the smoothness of each term in the inputs and along the curve:

    >>> from fenchel import FunctionalRegressor
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.kernels import FunctionalGaussian, IntegralOperator, Laplacian
    >>> data = make_functional(20, 15, random_state=0)
    >>> smooth = FunctionalGaussian(1.0) * IntegralOperator(Gaussian(20.0))
    >>> rough = FunctionalGaussian(0.1) * IntegralOperator(Laplacian(5.0))
    >>> FunctionalRegressor(smooth + rough).fit(data.X, data.Y).predict(data.X[:2], grid=[0.25, 0.75]).shape
    (2, 2)
    """

    def __init__(self, terms: Sequence[Separable] = ()) -> None:
        self.terms = terms

    def bind(self, X: Array, representation: OutputSpace) -> BoundTerms:
        """Return the resolved terms, merged where possible."""
        if not self.terms:
            raise ValueError("The 'terms' parameter of SeparableSum must hold at least one Separable kernel. Got none.")
        terms: list[Term] = []
        for term in self.terms:
            kernel = as_scalar_kernel(term.kernel).resolve(X, representation.weights)
            operator = as_operator(term.operator)
            terms = _merge(terms, kernel, (operator, operator.matrix(representation)))
        sources = tuple(sources for _, _, sources in terms) if representation.is_functional else ()
        return BoundTerms(tuple((kernel, matrix) for kernel, matrix, _ in terms), sources)

    def mapped(self, change: Callable[[ScalarKernel], ScalarKernel]) -> "SeparableSum":
        """Return the sum with ``change`` applied to the scalar kernels of its terms."""
        return SeparableSum([term.mapped(change) for term in self.terms])

    @property
    def is_pairwise(self) -> bool:
        """Whether one of the scalar kernels takes Gram matrices."""
        return any(term.is_pairwise for term in self.terms)

    def __add__(self, other: object) -> "SeparableSum":
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


OutputOperator._separable = Separable


def as_operator_kernel(kernel: object, operator: object = None) -> OperatorKernel:
    """Return the operator-valued kernel given by the parameters ``kernel`` and ``operator`` of an estimator.

    Parameters
    ----------
    kernel : OperatorKernel, ScalarKernel, str or callable
        An operator-valued kernel, or a kernel on the inputs.
    operator : OutputOperator, array or None, default=None
        Operator on the outputs; ``None`` means the identity. Must be ``None`` if the kernel is operator-valued.

    Returns
    -------
    kernel : OperatorKernel
        The kernel itself, or its product with the operator.

    Examples
    --------
    >>> from fenchel.kernels import as_operator_kernel
    >>> as_operator_kernel("linear")
    Separable(kernel=Linear(), operator=Identity())
    """
    if isinstance(kernel, OperatorKernel):
        if operator is not None:
            raise ValueError(
                f"The 'operator' parameter must be None when 'kernel' is operator-valued already. Got {operator!r}."
            )
        return kernel
    if isinstance(kernel, OutputOperator):
        raise TypeError(f"The 'kernel' parameter must be a kernel on inputs. Got the output operator {kernel!r}.")
    return Separable(as_scalar_kernel(kernel), as_operator(operator))


def takes_missing(kernel: object) -> bool:
    """Whether a kernel, in any form that an estimator accepts, takes inputs with NaN."""
    scalar = kernel.kernel if isinstance(kernel, Separable) else kernel
    return isinstance(scalar, ScalarKernel) and scalar.tags.takes_missing


def _merge(terms: list[Term], kernel: ScalarKernel, source: Source) -> list[Term]:
    """Append a term, merging it with a term that has the same kernel or the same operator."""
    operator = source[1]
    for k, (other, matrix, sources) in enumerate(terms):
        merged: Term | None = None
        if _same_operator(matrix, operator):
            merged = ((other + kernel).ready(), matrix, sources)
        elif _same_kernel(other, kernel) and matrix is not None and operator is not None:
            merged = (other, _full(matrix) + _full(operator), (*sources, source))
        if merged is not None:
            return [*terms[:k], merged, *terms[k + 1 :]]
    return [*terms, (kernel, operator, (source,))]


def _full(operator: Array) -> Array:
    """Return a diagonal operator as a matrix."""
    xp = namespace(operator)
    return (
        operator
        if operator.ndim == 2
        else operator[:, None] * xp.eye(operator.shape[0], dtype=operator.dtype, device=device(operator))
    )


def _same_operator(A: Array | None, B: Array | None) -> bool:
    if A is None or B is None:
        return A is B
    return A.shape == B.shape and bool(namespace(A).all(A == B))


def _same_kernel(a: ScalarKernel, b: ScalarKernel) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    p, q = a.get_params(deep=False), b.get_params(deep=False)
    return all(type(p[name]) is type(q[name]) and _equal(p[name], q[name]) for name in p)


def _equal(a: object, b: object) -> bool:
    if isinstance(a, ScalarKernel) and isinstance(b, ScalarKernel):
        return _same_kernel(a, b)
    return a is b or (isinstance(a, float | int | str) and a == b)
