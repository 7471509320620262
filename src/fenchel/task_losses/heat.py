"""Heat kernels of the circle and of spheres, divided by their value at distance zero."""

import math
from abc import ABC
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import gammaln

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.kernels import ScalarKernel, as_scalar_kernel
from fenchel.task_losses.embedding import Embedding
from fenchel.task_losses.task_loss import TaskLoss

__all__ = ["Diffusion", "circle_heat", "sphere_heat"]

_SMALL = 40.0  # terms below exp(-40) of the largest are dropped
_NODES = 300  # nodes of the table per width of the kernel; the error is below 1e-12


class Diffusion(TaskLoss, ABC):
    """A loss that is one minus a heat kernel, divided by its value at distance zero."""

    # at the shortest time the kernel is 0.8 degrees wide
    _limits: ClassVar[dict[str, Interval | Options]] = {"time": Interval(1e-4, math.inf, "left")}

    def __init__(self, time: float = 0.1) -> None:
        self.time = time

    def output_kernel(self) -> ScalarKernel:
        """Return the heat kernel."""
        return as_scalar_kernel(self._kernel)

    def embedding(self, Z: Outputs) -> Embedding:
        """Return sizes for all points: the loss is one minus the normalised heat kernel."""
        return Embedding.of_similarity(1.0)

    def _kernel(self, Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return 1 - self.matrix(Y, Z)


def circle_heat(theta: np.ndarray, time: float, order: int = 0) -> np.ndarray:
    r"""Return :math:`k_t(\theta) / k_t(0)` on the circle, or its first or second derivative.

    Heat spreads as :math:`k_t(\theta) \propto \sum_m e^{-(\theta + 2 \pi m)^2 / 4t}`, which by Poisson summation is
    :math:`\propto 1 + 2 \sum_k e^{-k^2 t} \cos k \theta`. The first sum has few terms for short times, the second for
    long times.

    Parameters
    ----------
    theta : array
        Angles between two points, of any shape, in [-pi, pi].
    time : float
        The time t.
    order : int, default=0
        Order of the derivative: 0, 1 or 2.

    Returns
    -------
    values : array
        With the shape of ``theta``.
    """
    of = _wrapped if time <= 1 else _fourier
    return np.asarray(of(theta, time, order) / of(np.zeros(1), time, 0)[0])


def _wrapped(theta: np.ndarray, time: float, order: int) -> np.ndarray:
    """Return the sum of Gaussians; the dropped terms are below 1e-26 for times up to 1."""
    values = np.zeros(np.shape(theta))
    for turn in range(-2, 3):
        u = theta + 2 * np.pi * turn
        factor = (1.0, -u / (2 * time), u**2 / (4 * time**2) - 1 / (2 * time))[order]
        values += factor * np.exp(-(u**2) / (4 * time))
    return values


def _fourier(theta: np.ndarray, time: float, order: int) -> np.ndarray:
    """Return the sum of cosines."""
    values = np.full(np.shape(theta), 1.0 if order == 0 else 0.0)
    for k in range(1, math.ceil(math.sqrt(_SMALL / time)) + 1):
        wave = (np.cos(k * theta), -k * np.sin(k * theta), -(k**2) * np.cos(k * theta))[order]
        values += 2 * math.exp(-(k**2) * time) * wave
    return values


@lru_cache(maxsize=64)
def sphere_heat(dim: int, time: float) -> CubicHermiteSpline:
    r"""Return :math:`k_t(\theta) / k_t(0)` on the unit sphere of :math:`R^d`, as a smooth table on [0, pi].

    .. math:: k_t(\theta) \propto \sum_{l \ge 0} N_l \, e^{-l (l + d - 2) t} P_l(\cos \theta),

    where :math:`N_l` counts the harmonics of degree l and :math:`P_l` is the Gegenbauer polynomial with
    :math:`P_l(1) = 1` (Legendre's for d = 3). Since :math:`|P_l| \le 1`, the truncation error is known.

    Parameters
    ----------
    dim : int
        The number d of coordinates, at least 3.
    time : float
        The time t.

    Returns
    -------
    kernel : CubicHermiteSpline
        A function of the angle; ``kernel(theta, 1)`` is its derivative.
    """
    shares = _shares(dim, time)
    theta = np.linspace(0.0, np.pi, math.ceil(_NODES * np.pi / math.sqrt(min(time, 1.0))))
    value, slope = _gegenbauer_sum(shares, np.cos(theta), dim)
    return CubicHermiteSpline(theta, value, -np.sin(theta) * slope)


def _shares(dim: int, time: float) -> np.ndarray:
    """Return the share of each degree in the kernel at angle zero; the shares are positive and sum to one."""
    degrees = 16
    while True:
        l = np.arange(1, degrees + 1)  # noqa: E741  # the usual name of the degree
        count = np.log(2 * l + dim - 2) + gammaln(l + dim - 2) - gammaln(l + 1) - gammaln(dim - 1)
        logs = np.concatenate([[0.0], count - l * (l + dim - 2) * time])
        # terms that decrease do so ever faster: the truncation error, of the slope too, is below twice the last term
        last = logs[-1] + 2 * math.log(degrees)
        if logs[-1] < logs[-2] - math.log(2) and last < logs.max() - _SMALL:
            shares = np.exp(logs - logs.max())
            return np.asarray(shares / shares.sum())
        degrees *= 2


def _gegenbauer_sum(shares: np.ndarray, x: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of Gegenbauer polynomials normalised to 1 at x = 1, and its derivative, by recurrence."""
    before, now = np.zeros_like(x), np.ones_like(x)
    slope_before, slope = np.zeros_like(x), np.zeros_like(x)
    value, total = np.full_like(x, shares[0]), np.zeros_like(x)
    for degree, share in enumerate(shares[1:]):
        up, down, by = 2 * degree + dim - 2, degree, degree + dim - 2
        slope_before, slope = slope, (up * (now + x * slope) - down * slope_before) / by
        before, now = now, (up * x * now - down * before) / by
        value += share * now
        total += share * slope
    return value, total
