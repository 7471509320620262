"""Losses of directions, unit vectors with three or more coordinates."""

from collections.abc import Callable

import numpy as np

from fenchel._array import Outputs
from fenchel.task_losses.heat import Diffusion, sphere_heat
from fenchel.task_losses.manifold import NEAR, Manifold, ManifoldLoss, PowerLoss
from fenchel.task_losses.task_loss import numbers

__all__ = ["Sphere", "SphereDiffusion", "SphereGeodesic"]

_UNIT_TOL = 1e-5  # allowed deviation of a length from 1; in float32 it is about 1e-7


class Sphere(Manifold):
    """Unit sphere, with the angle between two unit vectors as their distance.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Sphere
    >>> Sphere().distance(np.eye(3)[:1], np.eye(3)).round(4).tolist()
    [0.0, 1.5708, 1.5708]
    """

    def check(self, Z: Outputs, name: str) -> np.ndarray:
        """Check that outputs are unit vectors, and normalise them to full precision."""
        points = numbers(Z, name, (2,))
        if points.shape[1] < 3:
            raise ValueError(
                f"{name} takes unit vectors of 3 or more coordinates. Got shape {points.shape}; for the circle use "
                "CircleGeodesic or CircleDiffusion, with angles."
            )
        lengths = np.linalg.norm(points, axis=1)
        worst = int(np.argmax(np.abs(lengths - 1)))
        if abs(lengths[worst] - 1) > _UNIT_TOL:
            raise ValueError(
                f"{name} takes unit vectors. Row {worst} has length {lengths[worst]:g}; divide each by its length."
            )
        return points / lengths[:, None]

    def distance(self, Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return angles in [0, pi], accurate near 0 and pi, where a cosine would lose digits."""
        shape = np.broadcast_shapes(Y.shape[:-1], Z.shape[:-1])
        apart, across = np.zeros(shape), np.zeros(shape)
        for j in range(Z.shape[-1]):
            apart += (Y[..., j] - Z[..., j]) ** 2
            across += (Y[..., j] + Z[..., j]) ** 2
        return np.asarray(2 * np.arctan2(np.sqrt(apart), np.sqrt(across)))

    def view(self, Y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Return angles, and a function that sums unit tangent vectors, zero towards y itself and towards -y."""
        angles = self.distance(Y[:, None], Z[None])
        sines = np.sin(angles)

        def pull(coefficients: np.ndarray) -> np.ndarray:
            shares = np.where(sines > NEAR, coefficients, 0.0) / np.where(sines > NEAR, sines, 1.0)
            return _tangent(Y, shares @ Z)

        return angles, pull

    def exp(self, Y: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return points on great circles."""
        lengths = np.linalg.norm(V, axis=1, keepdims=True)
        points = np.cos(lengths) * Y + np.sinc(lengths / np.pi) * V
        return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))

    def guess(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the direction of the weighted sum of vectors, or the first vector if the sum is zero."""
        sums = weights @ Z
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1.0), Z[0])

    def landmarks(self, Z: np.ndarray) -> np.ndarray:
        """Return the points and their antipodes, at which a negatively weighted geodesic distance has a minimum."""
        return np.concatenate([Z, -Z])


def _tangent(Y: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Project vectors on the tangent spaces at the points."""
    return np.asarray(V - np.sum(V * Y, axis=1, keepdims=True) * Y)


class SphereGeodesic(PowerLoss):
    r"""Power of the angle between unit vectors, :math:`\Delta(y, z) = \arccos(\langle y, z \rangle)^p`.

    Parameters
    ----------
    power : float, default=2.0
        The exponent p, from 1 to 2: 2 predicts a weighted mean on the sphere, 1 a median, which is robust to outliers.

    Examples
    --------
    >>> from fenchel.task_losses import SphereGeodesic
    >>> SphereGeodesic()([[0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0]]).round(4)
    array([2.4674])
    """

    manifold = Sphere()

    def __init__(self, power: float = 2.0) -> None:
        self.power = power


class SphereDiffusion(Diffusion, ManifoldLoss):
    r"""Diffusion distance of the heat kernel between unit vectors, :math:`1 - k_t(y, z) / k_t(y, y)`.

    It grows like :math:`\theta^2 / 4t` for small angles and is nearly 1 beyond a few :math:`\sqrt{2t}`: an outlier
    costs the same wherever it is.

    Parameters
    ----------
    time : float, default=0.1
        The diffusion time t, at least 1e-4; :math:`\sqrt{2t}` is the width of the kernel in radians.

    Notes
    -----
    [Ciliberto2016]_ uses :math:`1 - k_t(y, z)`, which is not zero at y = z and may be negative, since
    :math:`k_t(y, y)` is not 1. On a sphere :math:`k_t(y, y)` is constant, so both give the same predictions for all
    weights. The loss is half the squared distance between features of the normalised kernel and, in units of
    :math:`2 k_t(y, y)`, the squared distance between the heat that spreads from y and from z in the time t/2.

    The series of the kernel is summed once for each ``time`` and number of coordinates, into a table accurate to about
    1e-12.

    References
    ----------
    [Ciliberto2016]_, Example 1 and appendix C.

    Examples
    --------
    >>> from fenchel.task_losses import SphereDiffusion
    >>> SphereDiffusion(0.1)([[0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0]]).round(4)
    array([0.9974])
    """

    manifold = Sphere()

    def value(self, distances: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the losses at the angles."""
        return np.asarray(1 - sphere_heat(Z.shape[-1], float(self.time))(distances))

    def slope(self, distances: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return their derivatives."""
        return np.asarray(-sphere_heat(Z.shape[-1], float(self.time))(distances, 1))
