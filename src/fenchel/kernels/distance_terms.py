"""Kernels as weighted sums of functions of one distance, for matrix products that evaluate them on the fly."""

import math
from dataclasses import dataclass
from functools import singledispatch

from fenchel._array import Array
from fenchel.kernels._values import inverse_width
from fenchel.kernels.base import ScalarKernel
from fenchel.kernels.scalar import Gaussian, Laplacian, Linear, Matern

__all__ = ["DistanceTerm", "distance_terms"]

_MATERN = {0.5: "exponential", 1.5: "matern32", 2.5: "matern52", math.inf: "gaussian"}


@dataclass(frozen=True)
class DistanceTerm:
    """The kernel weight * f(x, z), with points scaled to the units of f.

    With r the Euclidean distance, f is ``"gaussian"`` exp(-r²), ``"exponential"`` exp(-r), ``"matern32"``
    (1 + r) exp(-r), ``"matern52"`` (1 + r + r²/3) exp(-r), ``"laplacian"`` exp(-r) with the sum of absolute
    differences, or ``"linear"``, the inner product.
    """

    profile: str
    points: Array  # (n, d)
    weight: float = 1.0


@singledispatch
def distance_terms(kernel: ScalarKernel, X: Array) -> list[DistanceTerm] | None:
    """Return the terms of a resolved kernel on a sample, or ``None`` if the kernel is not such a sum."""
    return None


@distance_terms.register
def _gaussian(kernel: Gaussian, X: Array) -> list[DistanceTerm] | None:
    return [DistanceTerm("gaussian", math.sqrt(inverse_width(kernel.gamma, X)) * X)]


@distance_terms.register
def _laplacian(kernel: Laplacian, X: Array) -> list[DistanceTerm] | None:
    return [DistanceTerm("laplacian", inverse_width(kernel.gamma, X) * X)]


@distance_terms.register
def _matern(kernel: Matern, X: Array) -> list[DistanceTerm] | None:
    nu = float(kernel.nu)
    if nu not in _MATERN:
        return None
    factor = math.sqrt(0.5 if nu == math.inf else 2 * nu) / float(kernel.length_scale)
    return [DistanceTerm(_MATERN[nu], factor * X)]


@distance_terms.register
def _linear(kernel: Linear, X: Array) -> list[DistanceTerm] | None:
    return [DistanceTerm("linear", X)]
