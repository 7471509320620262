"""Loss of several angles at once, a point of a torus."""

from collections.abc import Callable

import numpy as np

from fenchel._array import Outputs
from fenchel.decoders import Decoder, RiemannianDescent
from fenchel.decoders.circle import wrap
from fenchel.task_losses.heat import Diffusion, circle_heat
from fenchel.task_losses.manifold import NEAR, Manifold
from fenchel.task_losses.task_loss import columns, numbers

__all__ = ["Torus", "TorusDiffusion"]


class Torus(Manifold):
    """Torus of d angles in radians, each modulo 2 pi, with the Euclidean length of the shorter arcs.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Torus
    >>> Torus().distance(np.array([[3.0, 0.0]]), np.array([[-3.0, 0.0]])).round(4).tolist()
    [0.2832]
    """

    def check(self, Z: Outputs, name: str) -> np.ndarray:
        """Return angles wrapped to [-pi, pi), one row each."""
        return wrap(columns(numbers(Z, name)))

    def distance(self, Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the lengths of the shortest paths."""
        return np.asarray(np.linalg.norm(wrap(Y - Z), axis=-1))

    def view(self, Y: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Return distances, and a function that sums unit vectors along the shortest paths."""
        arcs = wrap(Z[None] - Y[:, None])
        distances = np.linalg.norm(arcs, axis=-1)
        safe = np.where(distances > NEAR, distances, np.inf)
        return distances, lambda coefficients: np.einsum("mn,mnd->md", coefficients / safe, arcs)

    def exp(self, Y: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return points on straight lines, which wind around the torus."""
        return wrap(Y + V)

    def guess(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the angles of the weighted sums of points on circles."""
        return wrap(np.angle(weights @ np.exp(1j * Z)))


class TorusDiffusion(Diffusion):
    r"""Diffusion distance of the heat kernel between points of a torus, angles (n, d) in radians modulo 2 pi.

    .. math:: \Delta(y, z) = 1 - \prod_j \frac{k_t(y_j, z_j)}{k_t(y_j, y_j)},

    with the heat kernel :math:`k_t` of the circle, whose spectrum is :math:`e^{-k^2 t}`: heat spreads along each angle
    by itself. A point that is far in one angle is far.

    Parameters
    ----------
    time : float, default=0.1
        The diffusion time t, at least 1e-4; :math:`\sqrt{2t}` is the width of the kernel in radians.

    References
    ----------
    [Ciliberto2016]_, Example 1 and appendix C.

    Examples
    --------
    >>> from fenchel.task_losses import TorusDiffusion
    >>> TorusDiffusion(0.1)([[0.1, 3.0]], [[0.3, -3.0]]).round(4)
    array([0.2595])
    """

    manifold = Torus()

    def check(self, Z: Outputs) -> Outputs:
        """Return angles wrapped to [-pi, pi), one row each."""
        return self.manifold.check(Z, type(self).__name__)

    def matrix(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        """Return the losses of all pairs."""
        return np.asarray(1 - np.prod(self._heats(self._arcs(Y, Z)), axis=-1))

    def descent(
        self, weights: np.ndarray, Y: np.ndarray, Z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return values, gradients, initial steps and sizes for a descent, as for ``ManifoldLoss``."""
        arcs = self._arcs(Y, Z)
        heats, slopes = self._heats(arcs), self._heats(arcs, 1)
        losses = 1 - np.prod(heats, axis=-1)
        gradients = np.empty(Y.shape)
        for j in range(Y.shape[1]):
            others = np.prod(np.delete(heats, j, axis=-1), axis=-1)
            gradients[:, j] = -np.sum(weights * slopes[..., j] * others, axis=1)
        total = np.sum(np.abs(weights), axis=1)
        bend = -circle_heat(np.zeros(1), self.time, 2)[0]  # the largest second derivative, at distance zero
        values = np.sum(weights * losses, axis=1)
        return values, gradients, 1 / np.where(total > 0, bend * total, 1.0), np.sum(np.abs(weights) * losses, axis=1)

    def decoder(self) -> Decoder:
        """Return a descent on the torus from several starts."""
        return RiemannianDescent()

    def _arcs(self, Y: Outputs, Z: Outputs) -> np.ndarray:
        Y, Z = (columns(np.asarray(part, dtype=np.float64)) for part in (Y, Z))
        return np.asarray(wrap(Y[:, None] - Z[None]))

    def _heats(self, arcs: np.ndarray, order: int = 0) -> np.ndarray:
        return circle_heat(arcs, self.time, order)
