"""Losses of angles."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from fenchel._array import Outputs
from fenchel._check import Interval, Options
from fenchel.decoders import CircleMinimum, Decoder
from fenchel.decoders.circle import wrap
from fenchel.kernels import ScalarKernel
from fenchel.task_losses.heat import Diffusion, circle_heat
from fenchel.task_losses.task_loss import TaskLoss, numbers

__all__ = ["CircleDiffusion", "CircleGeodesic", "CircleLoss"]


class CircleLoss(TaskLoss, ABC):
    """Loss of angles in radians, modulo 2 pi; predictions are in [-pi, pi)."""

    @abstractmethod
    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the losses of predictions y against z, elementwise, with broadcasting."""

    @abstractmethod
    def slope(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the derivatives with respect to y."""

    @abstractmethod
    def bend(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the second derivatives with respect to y."""

    @abstractmethod
    def sag(self, left: np.ndarray, width: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds on how far the loss lies below, and above, its chord on arcs without kinks."""

    @abstractmethod
    def cuts(self, z: np.ndarray) -> np.ndarray:
        """Return angles in [-pi, pi): all kinks of the loss, and others at which arcs should end."""

    def check(self, Z: Outputs) -> Outputs:
        """Return the angles wrapped to [-pi, pi)."""
        return wrap(numbers(Z, type(self).__name__, (1,)))

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the losses of all pairs."""
        return self.value(np.asarray(Y, dtype=np.float64)[:, None], np.asarray(Z, dtype=np.float64))

    def decoder(self) -> Decoder:
        """Return the decoder that searches the whole circle."""
        return CircleMinimum()


class CircleGeodesic(CircleLoss):
    r"""Power of the geodesic distance between angles, the shorter arc, :math:`\Delta(y, z) = d(y, z)^p`.

    Parameters
    ----------
    power : float, default=2.0
        The exponent p, from 1 to 2: 2 predicts a weighted mean on the circle, 1 a median, which is robust to outliers.

    Examples
    --------
    >>> from fenchel.task_losses import CircleGeodesic
    >>> CircleGeodesic()([0.1, 3.0], [0.3, -3.0]).round(4)
    array([0.04  , 0.0802])
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"power": Interval(1, 2, "both")}

    def __init__(self, power: float = 2.0) -> None:
        self.power = power

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return powers of the arc lengths."""
        return np.asarray(np.abs(wrap(y - z)) ** self.power)

    def slope(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return their derivatives."""
        arc = wrap(y - z)
        return np.asarray(np.sign(arc) * self.power * np.abs(arc) ** (self.power - 1))

    def bend(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return their second derivatives, with 0 at z itself, where powers below 2 have none."""
        arc = np.abs(wrap(y - z))
        p = self.power
        return np.asarray(p * (p - 1) * np.where(arc > 0, arc, 1.0) ** (p - 2) * ((arc > 0) | (p == 2)))

    def sag(self, left: np.ndarray, width: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Return bounds for convex pieces, which never lie above their chord.

        They lie below it by at most :math:`p (p - 1) d^{p - 2} h^2 / 8`, where d is the distance of the nearer end, and
        by at most :math:`h^p \max_u (u - u^p)`, the case d = 0, since the second derivative decreases with d.
        """
        p, none = self.power, np.zeros(np.broadcast_shapes(left.shape, z.shape))
        if p == 1:
            return none, none
        near = np.minimum(np.abs(wrap(left - z)), np.abs(wrap(left + width - z)))
        top = (p - 1) * p ** (-p / (p - 1)) * width**p
        curved = p * (p - 1) * np.maximum(near, np.finfo(np.float64).tiny) ** (p - 2) * width**2 / 8
        return np.minimum(top, curved), none

    def cuts(self, z: np.ndarray) -> np.ndarray:
        """Return the antipodes of the outputs, and the outputs themselves for powers below 2."""
        return wrap(z + np.pi) if self.power == 2 else np.concatenate([wrap(z + np.pi), wrap(z)])

    def output_kernel(self) -> ScalarKernel:
        """Return the heat kernel at its default time."""
        return CircleDiffusion().output_kernel()


class CircleDiffusion(Diffusion, CircleLoss):
    r"""Diffusion distance of the heat kernel between angles, :math:`\Delta(y, z) = 1 - k_t(y, z) / k_t(y, y)`.

    It grows like :math:`d^2 / 4t` for short arcs d and is nearly 1 beyond a few :math:`\sqrt{2t}`: an outlier costs the
    same wherever it is.

    Parameters
    ----------
    time : float, default=0.1
        The diffusion time t, at least 1e-4; :math:`\sqrt{2t}` is the width of the kernel in radians.

    Notes
    -----
    See ``SphereDiffusion`` for the definition in [Ciliberto2016]_, which gives the same predictions.

    References
    ----------
    [Ciliberto2016]_, Example 1 and appendix C.

    Examples
    --------
    >>> from fenchel.task_losses import CircleDiffusion
    >>> CircleDiffusion(0.1)([0.1, 3.0], [0.3, -3.0]).round(4)
    array([0.0952, 0.1817])
    """

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the losses at the arc lengths."""
        return 1 - circle_heat(wrap(y - z), self.time)

    def slope(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return their derivatives."""
        return -circle_heat(wrap(y - z), self.time, 1)

    def bend(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return their second derivatives."""
        return -circle_heat(wrap(y - z), self.time, 2)

    def sag(self, left: np.ndarray, width: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bound on the second derivative, which is largest at zero, as for every sum of cosines."""
        most = -circle_heat(np.zeros(1), self.time, 2)[0]
        bound = np.broadcast_to(most * width**2 / 8, np.broadcast_shapes(left.shape, z.shape))
        return bound, bound

    def cuts(self, z: np.ndarray) -> np.ndarray:
        """Return a grid fine enough for a narrow kernel, so that few arcs must be cut again."""
        return np.arange(-np.pi, np.pi, np.sqrt(self.time) / 2)

    def _kernel(self, Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return 1 - self.matrix(np.ravel(Y), np.ravel(Z))
