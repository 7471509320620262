"""General operator-valued kernels, given by their blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

from fenchel._array import Array, as_like, namespace
from fenchel._check import Interval, Options, check_psd
from fenchel.kernels.scalar import Gaussian
from fenchel.kernels.scalar_kernel import OperatorKernel, OutputSpace
from fenchel.operators import Operator
from fenchel.operators.blocks import Blocks as BlockOperator
from fenchel.operators.blocks import as_matrix

__all__ = ["Blocks"]


class Blocks(OperatorKernel):
    r"""General operator-valued kernel, given by a function that returns its blocks.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` returns the operators :math:`\mathcal K(x_i, z_j)`, shape (n, m, p, p). With
        ``tensor=True`` it returns the products :math:`\langle y_k, \mathcal K(x_i, z_j) y_l \rangle` with the n
        training outputs, shape (n, m, n_train, n_train).
    tensor : bool, default=False
        Whether the function returns the fourth-order tensor rather than the operators.

    Notes
    -----
    The fourth-order tensor of the double representer theorem takes :math:`n^4` numbers. Use it for small samples, or
    to check the special cases.

    References
    ----------
    [Laforgue2020]_, Thm 4.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Blocks, Gaussian
    >>> coupling = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> X = np.linspace(0, 3, 10)[:, None]
    >>> kernel = Blocks(lambda X, Z: Gaussian(1.0)(X, Z)[:, :, None, None] * coupling)
    >>> OperatorKernelRegressor(kernel, lam=1e-3).fit(X, np.hstack([np.sin(X), np.cos(X)])).predict(X).shape
    (10, 2)
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"tensor": Options((False, True))}

    def __init__(self, function: Callable[[Array, Array], Array] | None = None, tensor: bool = False) -> None:
        self.function = function
        self.tensor = tensor

    def bind(self, X: Array, representation: OutputSpace) -> "BoundBlocks":
        """Return the kernel with its blocks expressed in coordinates."""
        if not callable(self.function):
            raise TypeError(
                f"The 'function' parameter of Blocks must be a callable (X, Z) -> blocks. Got {self.function!r}."
            )
        return BoundBlocks(self.function, representation.targets, self.tensor)

    @property
    def is_pairwise(self) -> bool:
        """Return False: the function takes points."""
        return False

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a kernel whose operator depends on the inputs."""
        return [cls(_transformed_gaussian)]


@dataclass(frozen=True)
class BoundBlocks:
    """Operator-valued kernel whose blocks are expressed in coordinates."""

    function: Callable[[Array, Array], Array]
    targets: Array
    tensor: bool

    def gram(self, X: Array, Z: Array | None = None) -> Operator:
        """Return the Gram operator made of the blocks."""
        is_sample = Z is None
        Z = X if Z is None else Z
        targets = self.targets
        blocks = as_like(self.function(X, Z), targets)
        size = targets.shape[0] if self.tensor else targets.shape[1]
        wanted = (X.shape[0], Z.shape[0], size, size)
        if tuple(blocks.shape) != wanted:
            raise ValueError(f"The blocks must have shape {wanted}. The function returned {tuple(blocks.shape)}.")
        if self.tensor:
            inverse = namespace(targets).linalg.pinv(targets)  # (p, n): outputs are y = V e, so e' K e = V^+ M V^+'
            blocks = inverse @ blocks @ inverse.T
        gram = BlockOperator(blocks)
        if is_sample and gram.why_not_factorize is None:
            check_psd(as_matrix(blocks), "The matrix of all blocks")
        return gram


def _transformed_gaussian(X: Array, Z: Array) -> Array:
    """Return exp(-|x - z|^2 / 2) B(x) B(z)', where the 3 × 3 matrix B(x) depends on x."""
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
