"""Equivariant kernels: predictions shift, or are reflected, with their inputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from numbers import Real
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_like, host, namespace
from fenchel._check import Interval, Options, check_array
from fenchel.kernels._distances import row_blocks
from fenchel.kernels.combined import Sum
from fenchel.kernels.images import OfImages, check_on_points
from fenchel.kernels.invariant import check_invariance
from fenchel.kernels.scalar import Gaussian, Linear, Matern, RationalQuadratic
from fenchel.kernels.scalar_kernel import OperatorKernel, OutputSpace, ScalarKernel
from fenchel.kernels.tags import KernelTags
from fenchel.operators import Operator
from fenchel.operators.cyclic import Cyclic, Mirrored, Turn

__all__ = ["Equivariant", "Filtered"]

GROUPS = {"shifts": 0, "reflections": 1, "odd reflections": -1}  # sign of a reflected signal; 0 means no reflections

_BLOCK_BYTES = 2**27  # limit on the kernel values of all shifts of one block of rows


class Equivariant(OperatorKernel):
    r"""Kernel for periodic signals whose models commute with shifts of the signal.

    .. math:: \mathcal K(x, z) = \frac1p \sum_{g=0}^{p-1} k(x, T_g z) \, T_g, \qquad (T_g y)_t = y_{t-g} .

    Training with this kernel is equivalent to training on all shifts of every pair, at the cost of one n × n system per
    frequency: the blocks are circulant, and the Fourier transform diagonalises them. With reflections, it is equivalent
    to training on all shifts of every pair and of its mirror image.

    Parameters
    ----------
    kernel : ScalarKernel, default=Matern(nu=2.5)
        Kernel k on signals (n, m) or (n, m, c) that is invariant to shifting both of its arguments, such as any
        kernel of their distance or inner product. m is the number p of points of an output, or a multiple of it.
    n_frequencies : int or None, default=None
        Number of predicted output frequencies, starting with the constant; the other frequencies are those of the
        centre, or zero. ``None`` means all p // 2 + 1.
    gains : array of shape (frequencies,) or None, default=None
        Positive weights of the output frequencies: lam is divided by them. ``None`` weighs all equally.
    group : {"shifts", "reflections", "odd reflections"}, default="shifts"
        The symmetry with which the model commutes. A reflection is :math:`x_t \mapsto x_{-t}`, an odd one
        :math:`x_t \mapsto -x_{-t}`, of inputs and outputs; both include the shifts. Equations without a preferred
        direction, such as the heat equation, have the first symmetry; transport by the state itself, such as Burgers'
        equation, has the second.

    Notes
    -----
    Memory is :math:`16 n^2` bytes per frequency, twice: 1.5 GB with 1000 samples and 48 frequencies. Reflections
    double it.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.kernels import Equivariant, Gaussian
    >>> X = np.random.default_rng(0).standard_normal((30, 16))
    >>> model = OperatorKernelRegressor(Equivariant(Gaussian(0.05)), lam=1e-3).fit(X, X**2)
    >>> shifted = model.predict(np.roll(X, 3, axis=1))
    >>> bool(np.allclose(shifted, np.roll(model.predict(X), 3, axis=1)))
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_frequencies": Interval(1, math.inf, "left", integer=True, also=(None,)),
        "group": Options(tuple(GROUPS)),
    }

    def __init__(
        self,
        kernel: ScalarKernel | None = None,
        n_frequencies: int | None = None,
        gains: Array = None,
        group: str = "shifts",
    ) -> None:
        self.kernel = kernel
        self.n_frequencies = n_frequencies
        self.gains = gains
        self.group = group

    def bind(self, X: Array, representation: OutputSpace) -> "BoundEquivariant":
        """Return the kernel with its data-dependent parameters resolved; raise if it is not invariant."""
        self.validate()
        kernel = Matern(nu=2.5) if self.kernel is None else self.kernel
        check_on_points(kernel, "Equivariant")
        p = representation.targets.shape[1]
        if X.ndim not in (2, 3) or X.shape[1] % p:
            raise ValueError(
                f"Equivariant needs signals with as many points as the outputs, or a multiple. Got inputs of shape "
                f"{tuple(X.shape)} and outputs of {p} points."
            )
        sign = GROUPS[self.group]
        turn = Mirrored(p, sign) if sign else Turn(p)
        bound = BoundEquivariant(kernel.resolve(X), turn, self._count(p), self._gains(self._count(p)))
        bound.check(X)
        return bound

    def width(self, X: Array) -> int:
        """Return how many numbers are stored per sample: a complex row for each frequency."""
        count, numbers = X.shape[1] // 2 + 1, 4 if GROUPS.get(self.group) else 2
        return int(numbers * X.shape[0] * (count if self.n_frequencies is None else min(count, self.n_frequencies)))

    @property
    def is_pairwise(self) -> bool:
        """Return False: shifts act on points."""
        return False

    @classmethod
    def examples(cls) -> list[Self]:
        """Return kernels with all frequencies, with some frequencies, and with reflections."""
        return [cls(Gaussian(0.1)), cls(Matern(2.0, nu=1.5), 1), cls(Gaussian(0.1), group="odd reflections")]

    def _gains(self, count: int) -> np.ndarray | None:
        if self.gains is None:
            return None
        gains = np.asarray(self.gains, dtype=float)
        if gains.shape != (count,) or not np.all((gains > 0) & np.isfinite(gains)):
            raise ValueError(f"The 'gains' parameter of Equivariant must be {count} positive numbers. Got {gains!r}.")
        return gains

    def _count(self, p: int) -> int:
        return p // 2 + 1 if self.n_frequencies is None else min(self.n_frequencies, p // 2 + 1)


@dataclass(frozen=True)
class BoundEquivariant:
    """Resolved kernel for outputs of p points."""

    kernel: ScalarKernel
    turn: Turn
    n_frequencies: int
    gains: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Numbers that a Gram operator stores per pair of samples."""
        return 2 * self.turn.copies * self.turn.n_outputs

    def gram(self, X: Array, Z: Array | None = None) -> Operator:
        """Return the transforms over the shifts of k(x_i, T_g z_j) and, with reflections, of k(x_i, T_g R z_j)."""
        others = X if Z is None else Z
        matrices = self._transforms(X, others)
        if isinstance(self.turn, Mirrored):
            matrices = self.turn.matrix(matrices, self._transforms(X, reflected(others, self.turn.sign)))
        if self.gains is not None:
            matrices = matrices * as_like(self.gains, X)[:, None, None]
        return Cyclic(matrices, self.turn)

    def check(self, X: Array) -> None:
        """Raise if the kernel changes when both of its arguments are shifted or reflected."""
        xp, some = namespace(X), X[: min(3, X.shape[0]), ...]
        moved = {"shifted": xp.roll(some, X.shape[1] // self.turn.n_outputs, axis=1)}
        if isinstance(self.turn, Mirrored):
            moved["reflected"] = reflected(some, self.turn.sign)
        for how, after in moved.items():
            check_invariance(self.kernel, some, after, "Equivariant", f"signals are {how}")

    def _transforms(self, X: Array, Z: Array) -> Array:
        """Return the transform over the shifts, (frequencies, n, m), in blocks of rows."""
        xp, p, blocks = namespace(X), self.turn.n_outputs, []
        for rows in row_blocks((X.shape[0], X.shape[1] * Z.shape[0]), 8, _BLOCK_BYTES):
            values = shifted_values(self.kernel, X[rows, ...], Z, p)
            blocks.append(xp.permute_dims(xp.fft.rfft(values)[:, :, : self.n_frequencies] / p, (2, 0, 1)))
        return blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=1)


def reflected(X: Array, sign: int) -> Array:
    """Reflect the signals, x_t -> sign * x_{-t}."""
    xp = namespace(X)
    return sign * xp.roll(xp.flip(X, axis=1), 1, axis=1)


@singledispatch
def shifted_values(kernel: ScalarKernel, X: Array, Z: Array, p: int) -> Array:
    """Return k(x_i, T_g z_j) for p shifts g by whole points, (n, m, p)."""
    xp, step = namespace(X), X.shape[1] // p
    return xp.stack([kernel(X, xp.roll(Z, g * step, axis=1)) for g in range(p)], axis=2)


@shifted_values.register
def _of_a_sum(kernel: Sum, X: Array, Z: Array, p: int) -> Array:
    return shifted_values(kernel.left, X, Z, p) + shifted_values(kernel.right, X, Z, p)


@shifted_values.register
def _of_squared_distances(kernel: RationalQuadratic, X: Array, Z: Array, p: int) -> Array:
    xp = namespace(X)
    sizes = xp.sum(X**2, axis=1)[:, None, None] + xp.sum(Z**2, axis=1)[None, :, None]
    return kernel.profile(xp.clip(sizes - 2 * correlations(X, Z, p), min=0.0))


@shifted_values.register
def _of_products(kernel: Linear, X: Array, Z: Array, p: int) -> Array:
    return correlations(X, Z, p)


def correlations(X: Array, Z: Array, p: int) -> Array:
    """Return the inner products of x_i with p shifts of z_j, (n, m, p), by Fourier transforms."""
    xp, m = namespace(X), X.shape[1]
    spectra = xp.fft.rfft(X)[:, None, :] * xp.conj(xp.fft.rfft(Z))[None, :, :]
    return xp.fft.irfft(spectra, n=m)[:, :, :: m // p]


class Filtered(OfImages):
    r"""Kernel on periodic signals with weighted frequencies.

    .. math:: k(x, z) = k_1(w * x, \; w * z) .

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel :math:`k_1`.
    decay : float or array of shape (m // 2 + 1,), default=1.0
        The weights :math:`\hat w_f` of the frequencies f = 0, 1, ..., or the exponent s of
        :math:`\hat w_f = (1 + f)^{-s}`: a positive exponent emphasises slow variation, a negative one fast
        variation.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Filtered, Linear
    >>> wave = np.cos(2 * np.pi * 3 * np.arange(16) / 16)[None]
    >>> float(np.round(Filtered(Linear(), decay=1.0)(wave)[0, 0] / Linear()(wave)[0, 0], 6))  # 1 / 4 squared
    0.0625
    """

    def __init__(self, kernel: ScalarKernel, decay: float | Array = 1.0) -> None:
        self.kernel = kernel
        self.decay = decay

    @property
    def tags(self) -> KernelTags:
        """Those of the inner kernel; features are not filtered."""
        return replace(super().tags, has_features=False)

    def pulled_back(self, gradient: Array, X: Array) -> Array:
        """Return derivatives with respect to the signals: the filter is symmetric."""
        xp = namespace(gradient)
        return xp.reshape(self.image(xp.reshape(gradient, (-1, X.shape[1]))), gradient.shape)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a kernel that emphasises slow variation and one that emphasises fast variation."""
        return [cls(Gaussian(0.5), 1.0), cls(Matern(nu=1.5), -0.5)]

    def image(self, X: Array, name: str = "X") -> Array:
        """Return the filtered signals."""
        X = check_array(X, "X", ndim=(2, 3))
        xp, m = namespace(X), X.shape[1]
        decay = np.asarray(self.decay if isinstance(self.decay, Real | Sequence) else host(self.decay), dtype=float)
        weights = decay if decay.ndim else (1.0 + np.arange(m // 2 + 1)) ** -decay
        if weights.shape != (m // 2 + 1,) or not np.all(np.isfinite(weights)):
            raise ValueError(
                f"The 'decay' parameter of Filtered must be a number, or {m // 2 + 1} weights for {m} points. "
                f"Got {self.decay!r}."
            )
        weights = as_like(weights, X)
        weights = weights if X.ndim == 2 else weights[:, None]
        return xp.fft.irfft(xp.fft.rfft(X, axis=1) * weights, n=m, axis=1)


@shifted_values.register
def _of_filtered_signals(kernel: Filtered, X: Array, Z: Array, p: int) -> Array:
    return shifted_values(kernel.kernel, kernel.image(X), kernel.image(Z), p)
