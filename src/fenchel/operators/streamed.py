"""Gram matrix of a kernel on a sample, computed in tiles or stored in float32."""

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from fenchel._array import Array, is_numpy, namespace
from fenchel._check import check_memory, free_memory
from fenchel.exceptions import IncompatibleError
from fenchel.operators.conjugate import ConjugateGradients
from fenchel.operators.eigenbasis import KroneckerBasis
from fenchel.operators.operator import Index, Operator, ScalarOperator, scaled, taken
from fenchel.operators.products import CheckedProduct, PointKernel, fused_products, kernel_product, tiles
from fenchel.operators.thin import Thin, orthogonal_features

__all__ = ["Streamed", "error_in_single", "fits_in_single", "streamed"]

_PART = 0.5  # largest part of the free memory for a matrix in float32
_STRIP = 512  # rows of the matrix that are computed at once
_SUM = 4096  # columns whose products are added in float32


class Streamed(ScalarOperator):
    """The matrix k(X, Z), computed in tiles during each product; in float32 it is stored if it fits.

    Parameters
    ----------
    kernel : callable
        A resolved scalar kernel.
    X, Z : array
        Points of the rows and of the columns; ``Z=None`` means ``Z = X``.
    features : callable or None, default=None
        Returns features (n, D) whose products approximate the matrix, for the preconditioner of ``solver``.
    roots : tuple of array or None, default=(None, None)
        Scale factors of the rows and of the columns, (n, 1) and (m, 1).
    is_single : bool, default=False
        Whether to compute tiles in float32; vectors and sums keep their dtype.
    tile : int or None, default=None
        Number of rows and columns of a tile.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.operators import Streamed
    >>> X = np.array([[0.0], [1.0]])
    >>> bool(np.allclose(Streamed(Gaussian(1.0), X).matmul(np.eye(2)), Gaussian(1.0)(X)))
    True
    """

    why_not_factorize = "the Gram matrix is not stored. Use solver='krylov' or 'auto', or an approximation."

    def __init__(
        self,
        kernel: PointKernel,
        X: Array,
        Z: Array | None = None,
        features: Callable[[], Array] | None = None,
        roots: tuple[Array | None, Array | None] = (None, None),
        is_single: bool = False,
        tile: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.Z = Z
        self.n_passes = 0  # products computed so far
        self.is_single = is_single
        self.tile = tile
        self.features = features
        self.roots = roots
        self.shape = (X.shape[0], (X if Z is None else Z).shape[0])
        self.width = self.shape[1]

    @property
    def matrix(self) -> Array:
        """The matrix, if it fits in memory."""
        check_memory(16 * self.shape[0] * self.shape[1], f"A matrix of shape {self.shape}", "Use solver='krylov'")
        matrix = self._rooted(self.kernel(self.X, self.Z), 0)
        return matrix if self.roots[1] is None else matrix * self.roots[1].T

    @cached_property
    def basis(self) -> KroneckerBasis:
        """The eigenbasis of the products of the features, from their D × D moments."""
        if self.features is None:
            raise IncompatibleError("This operator has no features to build a preconditioner from.")
        features, values, _ = orthogonal_features(self._rooted(self.features(), 0))
        return KroneckerBasis(features, values, left_squares=values)

    @cached_property
    def thin(self) -> Thin:
        """The operator with the products of the features in place of the matrix."""
        return Thin(self.basis.left, None, self.basis.left_values)

    @cached_property
    def rounded(self) -> "Streamed":
        """The operator with a matrix in float32, which is stored if it fits in memory."""
        other = Streamed(self.kernel, self.X, self.Z, self.features, self.roots, True, self.tile)
        if "basis" in self.__dict__:
            other.__dict__.update(basis=self.basis)
        return other

    def matmul(self, A: Array) -> Array:
        """Return K A: one pass over the kernel."""
        self.n_passes += 1
        xp = namespace(A)
        flat = A if A.ndim == 2 else xp.reshape(A, (A.shape[0], -1))
        product = self._rooted(self._product(self._rooted(flat, 1)), 0)
        return product if A.ndim == 2 else xp.reshape(product, (-1, *A.shape[1:]))

    def diag(self) -> Array:
        """Return k(x_i, x_i), scaled."""
        values = self.kernel.diag(self.X)
        return values if self.roots[0] is None else values * self.roots[0][:, 0] ** 2

    def block(self, rows: Index, columns: Index | None = None) -> "Streamed":
        """Return the matrix between the selected row and column samples, which is not stored either."""
        X, (left, right) = taken(self.X, rows), self.roots
        root = None if left is None else taken(left, rows)
        if columns is None and self.Z is None:
            features = self.features
            some = None if features is None else lambda: taken(features(), rows)
            return Streamed(self.kernel, X, None, some, (root, root), self.is_single, self.tile)
        columns = rows if columns is None else columns
        Z = taken(self.X if self.Z is None else self.Z, columns)
        other = None if right is None else taken(right, columns)
        return Streamed(self.kernel, X, Z, None, (root, other), self.is_single, self.tile)

    def factorize(self) -> KroneckerBasis:
        """Raise ``IncompatibleError``: there is no matrix to factorise."""
        raise IncompatibleError(self.why_not_factorize)

    def solver(self, scale: float, shift: float | Array) -> Callable[[Array], Array]:
        """Use conjugate gradients, preconditioned by the features."""
        if isinstance(shift, float | int):
            return ConjugateGradients(self, scale, shift)
        root = shift[:, None] ** -0.5
        inner = scaled(self, root).solver(scale, 1.0)
        return lambda B: root * inner(root * B)

    @cached_property
    def _product(self) -> Callable[[Array], Array]:
        """The product: of the stored matrix, fused on a GPU if this is supported, otherwise tile by tile."""
        if (stored := self._stored) is not None:
            return lambda A: _summed(stored, A)
        ways = fused_products(self.kernel, self.X, self.Z, self.is_single)
        return CheckedProduct([*ways, self._by_tiles], self.kernel, self.X, self.Z, self.is_single)

    def _by_tiles(self, A: Array) -> Array:
        return kernel_product(self.kernel, *self._points, A, self.tile)

    @cached_property
    def _stored(self) -> np.ndarray | None:
        """The matrix in float32, if tiles are and it fits; computed in the dtype of the points."""
        n, m = self.shape
        if not (self.is_single and self.Z is None and is_numpy(self.X) and fits_in_single(n, self.X)):
            return None
        matrix = np.empty((n, m), dtype=np.float32)
        for k, here in enumerate(strips := tiles(n, _STRIP)):
            for there in strips[k:]:
                block = self.kernel(self.X[here, ...], self.X[there, ...]).astype(np.float32)
                matrix[here, there] = block
                matrix[there, here] = np.ascontiguousarray(block.T)  # n = 8000: 0.19 s, without a copy 0.57 s
        return matrix

    @cached_property
    def _points(self) -> tuple[Array, Array | None]:
        """The points, in the dtype of the tiles."""
        if not self.is_single:
            return self.X, self.Z
        xp = namespace(self.X)
        return xp.astype(self.X, xp.float32), None if self.Z is None else xp.astype(self.Z, xp.float32)

    def _rooted(self, rows: Array, side: int) -> Array:
        root = self.roots[side]
        return rows if root is None else rows * root


def fits_in_single(n: int, like: Array) -> bool:
    """Whether a Gram matrix of n samples in float32 takes at most half of the free memory.

    Parameters
    ----------
    n : int
        Number of samples.
    like : array
        An array on the device in question.

    Returns
    -------
    is_small : bool
        ``True`` if it does, or if the free memory is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import fits_in_single
    >>> fits_in_single(10, np.ones(1)), fits_in_single(10**9, np.ones(1))
    (True, False)
    """
    free = free_memory(like)
    return free is None or 4 * n**2 <= _PART * free


def error_in_single(n: int, size: float) -> float:
    """Return about the norm of the round-off of a Gram matrix in float32, which hides smaller ridges.

    Parameters
    ----------
    n : int
        Number of samples.
    size : float
        Mean of its diagonal.

    Returns
    -------
    error : float
        The norm of a matrix whose entries are as far off as those of the diagonal may be, with random signs.

    Examples
    --------
    >>> from fenchel.operators import error_in_single
    >>> float(f"{error_in_single(10_000, 1.0):.1e}")
    1.2e-05
    """
    return float(np.finfo(np.float32).eps) * math.sqrt(n) * size


def _summed(matrix: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix in float32 times A; sums of many terms are in the dtype of A.

    With the few rows of A' on the left, BLAS packs less than with the few columns of A on the right.
    """
    rows, total = np.ascontiguousarray(A.T, dtype=np.float32), np.zeros((A.shape[1], matrix.shape[0]), A.dtype)
    for part in tiles(matrix.shape[0], _SUM):
        total += rows[:, part] @ matrix[part]
    return np.ascontiguousarray(total.T)


@scaled.register
def _scaled(operator: Streamed, root: Array) -> Streamed:
    old = operator.roots[0]
    new = root if old is None else old * root
    return Streamed(operator.kernel, operator.X, None, operator.features, (new, new), operator.is_single, operator.tile)


def streamed(operator: Operator) -> Streamed | None:
    """Return the scalar part of an operator whose matrix is not stored.

    Parameters
    ----------
    operator : Operator
        A Gram operator.

    Returns
    -------
    scalar : Streamed or None
        ``None`` if the matrix is stored.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.operators import Dense, streamed
    >>> streamed(Dense(np.array([[2.0, 1.0], [1.0, 2.0]]))) is None  # the matrix is stored
    True
    """
    scalar = operator.terms[0][0] if len(operator.terms) == 1 else None
    return scalar if isinstance(scalar, Streamed) else None
