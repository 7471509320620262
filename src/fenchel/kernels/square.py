"""Kernels with the symmetries of a square: predictions turn and flip with their inputs."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_index, as_like, namespace
from fenchel._check import Interval, Options
from fenchel.kernels.images import check_on_points
from fenchel.kernels.invariant import check_invariance
from fenchel.kernels.scalar import Gaussian, Matern
from fenchel.kernels.scalar_kernel import OperatorKernel, OutputSpace, ScalarKernel
from fenchel.operators import Operator
from fenchel.operators.isotypic import Isotypic

__all__ = ["SquareEquivariant"]


class SquareEquivariant(OperatorKernel):
    r"""Kernel for fields on a square whose model commutes with its eight symmetries, rotations and reflections.

    .. math:: \mathcal K(x, z) = \frac18 \sum_{g \in D_4} k(x, g z) \, \rho(g) .

    Training with this kernel is equivalent to training on all eight images of every pair. The outputs split into the
    four one-dimensional representations of the group and the two-dimensional one: four n × n matrices and one of twice
    that size replace one matrix of eight times the size.

    Parameters
    ----------
    kernel : ScalarKernel, default=Matern(nu=2.5)
        Kernel k on rows of values that is invariant to turning or flipping both fields, such as any kernel of their
        distance or inner product.
    n_channels, n_output_channels : int, default=1
        Number of channels of inputs and outputs, on which the symmetries do not act. Rows are fields (s, s, channels),
        flattened with the last axis fastest; inputs and outputs may have different s.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Gaussian, SquareEquivariant
    >>> fields = np.random.default_rng(0).standard_normal((30, 4, 4))
    >>> X, Y = fields.reshape(30, 16), np.cumsum(fields**2, axis=1).reshape(30, 16)
    >>> model = OperatorKernelRegressor(SquareEquivariant(Gaussian(0.05)), lam=1e-3).fit(X, Y)
    >>> turned = model.predict(np.rot90(fields, axes=(1, 2)).reshape(30, 16)).reshape(30, 4, 4)
    >>> bool(np.allclose(turned, np.rot90(model.predict(X).reshape(30, 4, 4), axes=(1, 2))))
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_channels": Interval(1, math.inf, "left", integer=True),
        "n_output_channels": Interval(1, math.inf, "left", integer=True),
    }

    def __init__(self, kernel: ScalarKernel | None = None, n_channels: int = 1, n_output_channels: int = 1) -> None:
        self.kernel = kernel
        self.n_channels = n_channels
        self.n_output_channels = n_output_channels

    def bind(self, X: Array, representation: OutputSpace) -> "BoundSquare":
        """Return the kernel with its data-dependent parameters resolved; raise if it is not invariant."""
        self.validate()
        kernel = Matern(nu=2.5) if self.kernel is None else self.kernel
        check_on_points(kernel, "SquareEquivariant")
        p = representation.targets.shape[1]
        if X.ndim != 2 or not (_is_square(X.shape[1], self.n_channels) and _is_square(p, self.n_output_channels)):
            raise ValueError(
                f"SquareEquivariant needs fields on squares, inputs with n_channels={self.n_channels} and outputs with "
                f"n_output_channels={self.n_output_channels}. Got inputs of shape {tuple(X.shape)} and outputs of {p} "
                "values."
            )
        bound = BoundSquare(kernel.resolve(X), self.n_channels, p, self.n_output_channels)
        bound.check(X)
        return bound

    def width(self, X: Array) -> int:
        """Return how many numbers are stored per sample: a row of four matrices and two rows of one twice as large."""
        return int(8 * X.shape[0])

    @property
    def is_pairwise(self) -> bool:
        """Return False: the symmetries act on points."""
        return False

    @classmethod
    def examples(cls) -> list[Self]:
        """Return kernels on three channels."""
        return [cls(Gaussian(0.1), 3, 3), cls(Matern(2.0, nu=1.5), 3, 3)]


@dataclass(frozen=True)
class BoundSquare:
    """Resolved kernel for outputs of a given size."""

    kernel: ScalarKernel
    n_channels: int
    n_outputs: int
    n_output_channels: int

    @property
    def size(self) -> int:
        """Numbers that a Gram operator stores per pair of samples."""
        return 2 * self.n_outputs

    def gram(self, X: Array, Z: Array | None = None) -> Operator:
        """Return the averages of k(x_i, g z_j) times each representation of the group."""
        others = X if Z is None else Z
        values = [self.kernel(X, self._image(others, g)) / 8 for g in range(8)]
        basis, counts = _basis(math.isqrt(self.n_outputs // self.n_output_channels))
        pairs = [pair for pair in zip(_representations(), counts, strict=True) if pair[1]]
        matrices = tuple(_averaged(values, representation) for representation, _ in pairs)
        multiplicities = tuple(count * self.n_output_channels for _, count in pairs)
        return Isotypic(matrices, multiplicities, as_like(np.kron(basis, np.eye(self.n_output_channels)), X))

    def check(self, X: Array) -> None:
        """Raise if the kernel changes when both of its arguments are turned or flipped."""
        some = X[: min(3, X.shape[0]), :]
        for g in (1, 4):
            moved = self._image(some, g)
            check_invariance(self.kernel, some, moved, "SquareEquivariant", "fields are turned or flipped")

    def _image(self, X: Array, g: int) -> Array:
        side = math.isqrt(X.shape[1] // self.n_channels)
        places = np.arange(X.shape[1]).reshape(1, side, side, self.n_channels)
        return namespace(X).take(X, as_index(_turned(places, g).ravel(), X), axis=1)


def _is_square(size: int, n_channels: int) -> bool:
    """Whether rows of this size are fields on a square with ``n_channels`` channels."""
    return math.isqrt(size // n_channels) ** 2 * n_channels == size


def _turned(fields: np.ndarray, g: int) -> np.ndarray:
    """Return fields (n, s, s, ...) after the g-th symmetry: quarter turns, the last four after a transposition."""
    return np.rot90(np.swapaxes(fields, 1, 2) if g >= 4 else fields, g % 4, axes=(1, 2))


def _representations() -> list[np.ndarray]:
    """Return the matrices (8, d, d) of the five representations, from the action of the group on polynomials."""
    x, y = np.meshgrid([-2.0, -1.0, 1.0, 2.0], [-2.0, -1.0, 1.0, 2.0], indexing="ij")
    found = []
    for functions in ([np.ones((4, 4))], [x**2 - y**2], [x * y], [x * y * (x**2 - y**2)], [x, y]):
        rows = np.stack(functions)
        images = np.stack([_turned(rows, g) for g in range(8)])
        found.append(np.einsum("bxy,gaxy->gba", rows, images) / np.sum(rows[0] ** 2))
    return found


def _averaged(values: list[Array], representation: np.ndarray) -> Array:
    """Return the sum of k(x_i, g z_j) times the matrices of a representation, (d, n, d, m)."""
    xp, d = namespace(values[0]), representation.shape[1]
    rows = []
    for a in range(d):
        entries = [sum(float(round(representation[g, a, b])) * values[g] for g in range(8)) for b in range(d)]
        rows.append(xp.stack(entries, axis=1))  # (n, d, m)
    return xp.stack(rows)


def _basis(side: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return orthonormal fields (p, p) in the order of the representations, and the multiplicity of each."""
    half = side // 2
    even, odd = np.zeros((side, side - half)), np.zeros((side, half))
    for k in range(half):
        even[[k, -1 - k], k] = math.sqrt(0.5)
        odd[[k, -1 - k], k] = math.sqrt(0.5), -math.sqrt(0.5)
    if side % 2:
        even[half, half] = 1.0
    parts = [*_split(even), *_split(odd)]
    parts.append(np.einsum("xi,yj->xyij", odd, even).reshape(side, side, -1))
    parts.append(np.swapaxes(parts[-1], 0, 1))
    counts = tuple(part.shape[2] for part in parts[:5])
    return np.concatenate(parts, axis=2).reshape(side * side, -1), counts


def _split(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the products of functions of the two variables that are symmetric, and those that are antisymmetric."""
    products = np.einsum("xi,yj->xyij", functions, functions)
    first, second = np.triu_indices(functions.shape[1], 1)
    here, there = products[:, :, first, second], products[:, :, second, first]
    diagonal = np.einsum("xyii->xyi", products)
    return np.concatenate([diagonal, (here + there) / math.sqrt(2)], axis=2), (here - there) / math.sqrt(2)
