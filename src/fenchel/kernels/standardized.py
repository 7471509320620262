"""Kernels on standardised inputs, which do not depend on the units of the columns."""

import math
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_like, device, eps, host, namespace
from fenchel._check import Interval, Options, check_array
from fenchel.kernels.columns import Part
from fenchel.kernels.functional import FunctionalGaussian, FunctionalLinear
from fenchel.kernels.images import OfImages
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear
from fenchel.kernels.scalar_kernel import ScalarKernel

__all__ = ["Standardized"]

_CONSTANT = 64  # a deviation below this many eps of the largest entry is round-off
_MOST = 1e150  # largest entry whose square is finite in float64


class Standardized(OfImages):
    r"""Kernel on inputs that are centred and divided by their standard deviations in the training sample.

    .. math:: k(x, z) = k_1\bigl((x - \mu) / \sigma, \; (z - \mu) / \sigma\bigr).

    Parameters
    ----------
    kernel : ScalarKernel
        The kernel :math:`k_1`.
    mean : array or None, default=None
        The centre :math:`\mu`, with the shape of one sample; ``None`` means the mean of the training sample.
    scale : array or None, default=None
        Positive scales :math:`\sigma`, with the shape of one sample, or one per channel; ``None`` means the standard
        deviations of the training sample. Columns with infinite scale, such as those constant there, are ignored.
    by : {"auto", "column", "channel"}, default="auto"
        What has its own scale: every column, or every channel of curves, (n, m) or (n, m, c), whose variances are
        averaged over the points. ``"auto"`` scales by column for two dimensions and by channel for three.

    Notes
    -----
    Scaling by channel preserves the relative sizes of the points. A constant column carries no information: it is
    ignored in new inputs too, whatever its values there.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian, Standardized
    >>> X = np.array([[0.0, 5.0], [1.0, 1.0], [2.0, 0.0]])
    >>> kernel = Standardized(Gaussian("median"))
    >>> bool(np.allclose(kernel(X), kernel(X * [1000.0, 0.01])))
    True
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"by": Options(("auto", "column", "channel"))}

    def __init__(self, kernel: ScalarKernel, mean: Array = None, scale: Array = None, by: str = "auto") -> None:
        self.kernel = kernel
        self.mean = mean
        self.scale = scale
        self.by = by

    def validate(self) -> Self:
        """Raise if the kernel does not take points or a scale is not positive."""
        super().validate()
        if self.scale is not None and not np.all(np.asarray(self.scale) > 0):
            raise ValueError(f"The 'scale' parameter of Standardized must be positive. Got {self.scale!r} instead.")
        return self

    def named(self, names: Sequence[str]) -> "Standardized":
        """Return the kernel with the column names of its kernel replaced by their positions in ``names``."""
        self.check()
        return self.ready(kernel=self.kernel.named(names))

    def known(self, X: Array | None, weights: Array | None = None) -> Self:
        """Return the kernel with its centre and scales, computed from the sample if they were not given."""
        self.check()
        if self.mean is not None and self.scale is not None:
            return self
        if X is None:
            raise ValueError(
                "The scales of Standardized depend on the training sample: call kernel.resolve(X_train) first, then "
                "the kernel it returns on (X, Z)."
            )
        X = check_array(X, "X", ndim=(2, 3))
        mean, scale = moments(X, weights, self.by == "channel" or (self.by == "auto" and X.ndim == 3))
        return self.ready(
            mean=mean if self.mean is None else self.mean, scale=scale if self.scale is None else self.scale
        )

    def image(self, X: Array, name: str = "X") -> Array:
        """Return the inputs in units of their scales; integers become floats."""
        X = check_array(X, "X", ndim=(2, 3))
        expected = tuple(np.shape(self.mean))
        if tuple(X.shape[1:]) != expected:
            raise ValueError(
                f"Each input of Standardized must have shape {expected}, as its 'mean' has. "
                f"Got shape {tuple(X.shape[1:])} instead."
            )
        return (X - as_like(self.mean, X)) / as_like(self.scale, X)

    def pulled_back(self, gradient: Array, X: Array) -> Array:
        """Return derivatives with respect to the inputs from those with respect to standardised ones."""
        return gradient / as_like(self.scale, gradient)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [
            cls(Gaussian("median")),
            cls(Laplacian(0.3) + 0.5 * Linear(), scale=2.0),
            cls(FunctionalGaussian("median") + FunctionalLinear(), by="channel"),
            cls(Part(Gaussian(), [0, -1])),
        ]


def moments(X: Array, weights: Array | None, by_channel: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of a sample, with the shape of one input, and the corresponding scales."""
    xp, n = namespace(X), X.shape[0]
    wide = xp.astype(X, xp.float64)
    counts = xp.ones(n, dtype=xp.float64, device=device(X)) if weights is None else xp.astype(weights, xp.float64)
    shares = xp.reshape(counts / xp.sum(counts), (n, *([1] * (X.ndim - 1))))
    mean = xp.sum(shares * wide, axis=0)
    largest = host(xp.max(xp.abs(wide), axis=0))
    if np.max(largest, initial=0.0) > _MOST:
        raise ValueError(
            f"The entries of X must be at most {_MOST:g} in absolute value to be standardised. Got {largest.max():.1e}."
        )
    if by_channel:  # all points of a channel share one scale, and a curve (m,) has one channel
        largest = np.max(largest, axis=0, keepdims=True)
    unit = np.exp2(np.frexp(largest)[1])  # squares of tiny numbers are not numbers
    variance = host(xp.sum(shares * ((wide - mean) / as_like(unit, wide)) ** 2, axis=0))
    deviation = unit * np.sqrt(np.mean(variance, axis=0, keepdims=True) if by_channel else variance)
    return host(mean), np.where(deviation > _CONSTANT * eps(X) * largest, deviation, math.inf)
