"""Losses of numbers: regression and classification losses, and robust non-convex losses."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import expit

from fenchel._check import Interval, Options
from fenchel.task_losses.interval_loss import PiecewiseLinear, SmoothLoss

__all__ = [
    "L2L1",
    "Absolute",
    "Cauchy",
    "EpsilonInsensitive",
    "Fair",
    "GemanMcClure",
    "Hinge",
    "Huber",
    "Logistic",
    "Pinball",
]

_POSITIVE = Interval(0, float("inf"))  # a size of errors in units of the outputs, by which they are divided


class _Residual(SmoothLoss, ABC):
    """Smooth loss of the distance r = |y - z| alone."""

    _bounds: ClassVar[tuple[float, float]]

    @abstractmethod
    def _of(self, r: np.ndarray) -> np.ndarray:
        """Return the losses at signed distances."""

    @abstractmethod
    def _slope(self, r: np.ndarray) -> np.ndarray:
        """Return their derivatives."""

    @abstractmethod
    def _bend(self, r: np.ndarray) -> np.ndarray:
        """Return their second derivatives."""

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the losses of y - z."""
        return self._of(y - z)

    def slope(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the derivatives in y."""
        return self._slope(y - z)

    def bend(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the second derivatives in y."""
        return self._bend(y - z)

    def bend_bounds(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same two bounds for every z."""
        return np.full(z.shape, self._bounds[0]), np.full(z.shape, self._bounds[1])


class Huber(_Residual):
    r"""Huber loss, half the square up to a threshold and linear beyond.

    .. math:: \ell(r) = \tfrac12 r^2 \text{ for } |r| \le \kappa, \text{ else } \kappa |r| - \tfrac12 \kappa^2 .

    Parameters
    ----------
    kappa : float, default=1.0
        The threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Huber
    >>> Huber(kappa=1.0).matrix(np.array([0.0, 2.0]), np.array([0.0])).round(4).tolist()
    [[0.0], [1.5]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"kappa": _POSITIVE}
    _bounds = (0.0, 1.0)

    def __init__(self, kappa: float = 1.0) -> None:
        self.kappa = kappa

    def _of(self, r: np.ndarray) -> np.ndarray:
        inner = np.minimum(np.abs(r), self.kappa)
        return np.asarray(inner * (np.abs(r) - inner / 2))

    def _slope(self, r: np.ndarray) -> np.ndarray:
        return np.clip(r, -self.kappa, self.kappa)

    def _bend(self, r: np.ndarray) -> np.ndarray:
        return (np.abs(r) <= self.kappa).astype(np.float64)


class Cauchy(_Residual):
    r"""Cauchy loss, :math:`\gamma \log(1 + r^2 / \gamma)`, which grows so slowly that far outliers hardly matter.

    Parameters
    ----------
    gamma : float, default=1.0
        Square of the scale beyond which a distance counts as far.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Cauchy
    >>> Cauchy().matrix(np.array([0.0, 2.0]), np.array([0.0])).round(4).tolist()
    [[0.0], [1.6094]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": _POSITIVE}
    _bounds = (-0.25, 2.0)

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _of(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(self.gamma * np.log1p(r**2 / self.gamma))

    def _slope(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(2 * r / (1 + r**2 / self.gamma))

    def _bend(self, r: np.ndarray) -> np.ndarray:
        square = r**2 / self.gamma
        return np.asarray(2 * (1 - square) / (1 + square) ** 2)


class GemanMcClure(_Residual):
    r"""Geman-McClure loss, :math:`r^2 / (1 + r^2)`, bounded by 1: an outlier costs the same wherever it is.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import GemanMcClure
    >>> GemanMcClure().matrix(np.array([0.0, 2.0]), np.array([0.0])).round(4).tolist()
    [[0.0], [0.8]]
    """

    _bounds = (-0.5, 2.0)

    def _of(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(r**2 / (1 + r**2))

    def _slope(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(2 * r / (1 + r**2) ** 2)

    def _bend(self, r: np.ndarray) -> np.ndarray:
        return np.asarray((2 - 6 * r**2) / (1 + r**2) ** 3)


class Fair(_Residual):
    r"""Fair loss, :math:`\gamma |r| - \gamma^2 \log(1 + |r| / \gamma)`, convex with slope at most :math:`\gamma`.

    Parameters
    ----------
    gamma : float, default=1.0
        The scale.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Fair
    >>> Fair().matrix(np.array([0.0, 2.0]), np.array([0.0])).round(4).tolist()
    [[0.0], [0.9014]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"gamma": _POSITIVE}
    _bounds = (0.0, 1.0)

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _of(self, r: np.ndarray) -> np.ndarray:
        r = np.abs(r)
        return np.asarray(self.gamma * r - self.gamma**2 * np.log1p(r / self.gamma))

    def _slope(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(r / (1 + np.abs(r) / self.gamma))

    def _bend(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.abs(r) / self.gamma) ** 2)


class L2L1(_Residual):
    r"""L2-L1 loss, :math:`\sqrt{1 + r^2} - 1`, quadratic near zero and linear far from it.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import L2L1
    >>> L2L1().matrix(np.array([0.0, 2.0]), np.array([0.0])).round(4).tolist()
    [[0.0], [1.2361]]
    """

    _bounds = (0.0, 1.0)

    def _of(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(r**2 / (np.sqrt(1 + r**2) + 1))

    def _slope(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(r / np.sqrt(1 + r**2))

    def _bend(self, r: np.ndarray) -> np.ndarray:
        return np.asarray((1 + r**2) ** -1.5)


class Logistic(SmoothLoss):
    r"""Logistic loss for labels -1 and 1, :math:`\log(1 + e^{-yz})`; predictions are scores.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Logistic
    >>> Logistic().matrix(np.array([0.5, -2.0]), np.array([1.0])).round(4).tolist()
    [[0.4741], [2.1269]]
    """

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the losses of scores."""
        return np.logaddexp(0.0, -y * z)

    def slope(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the derivatives in y."""
        return np.asarray(-z * expit(-y * z))

    def bend(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the second derivatives in y."""
        return np.asarray(z**2 * expit(y * z) * expit(-y * z))

    def bend_bounds(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return zero and the second derivative at zero."""
        return np.zeros(z.shape), z**2 / 4


class Absolute(PiecewiseLinear):
    r"""Absolute loss, :math:`|y - z|`, whose loss trick gives a weighted median.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Absolute
    >>> Absolute().matrix(np.array([0.0, 2.0]), np.array([0.0])).round(4).tolist()
    [[0.0], [2.0]]
    """

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the distances."""
        return np.abs(y - z)

    def knots(self, z: np.ndarray) -> np.ndarray:
        """Return the outputs."""
        return z


class EpsilonInsensitive(PiecewiseLinear):
    r"""Epsilon-insensitive loss, :math:`\max(0, |y - z| - \epsilon)`.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half the width of the zone without loss.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import EpsilonInsensitive
    >>> EpsilonInsensitive(0.5).matrix(np.array([0.0, 2.0]), np.array([0.0])).round(4).tolist()
    [[0.0], [1.5]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"epsilon": Interval(0, float("inf"), "left")}

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the distances beyond the zone."""
        return np.maximum(np.abs(y - z) - self.epsilon, 0.0)

    def knots(self, z: np.ndarray) -> np.ndarray:
        """Return both ends of the zone."""
        return np.concatenate([z - self.epsilon, z + self.epsilon])


class Pinball(PiecewiseLinear):
    r"""Pinball loss, :math:`\tau (z - y)` below z and :math:`(1 - \tau) (y - z)` above: its loss trick is a quantile.

    Parameters
    ----------
    tau : float, default=0.5
        The level of the quantile.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Pinball
    >>> Pinball(0.9).matrix(np.array([0.0, 2.0]), np.array([0.0])).round(4).tolist()
    [[0.0], [0.2]]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"tau": Interval(0, 1)}

    def __init__(self, tau: float = 0.5) -> None:
        self.tau = tau

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the tilted distances."""
        return np.maximum(self.tau * (z - y), (self.tau - 1) * (z - y))

    def knots(self, z: np.ndarray) -> np.ndarray:
        """Return the outputs."""
        return z


class Hinge(PiecewiseLinear):
    r"""Hinge loss for labels -1 and 1, :math:`\max(0, 1 - yz)`; predictions are scores.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.task_losses import Hinge
    >>> Hinge().matrix(np.array([0.5, -2.0]), np.array([1.0])).round(4).tolist()
    [[0.5], [3.0]]
    """

    def value(self, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return the losses of scores."""
        return np.maximum(1 - y * z, 0.0)

    def knots(self, z: np.ndarray) -> np.ndarray:
        """Return the scores with margin one."""
        return 1 / z[z != 0]
