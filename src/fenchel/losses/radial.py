"""Losses of the norm of the residual, each given by a scalar profile."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from fenchel._array import Array, namespace, row_norms
from fenchel._check import Interval, Options
from fenchel.losses import profile as profiles
from fenchel.losses.loss import Loss
from fenchel.losses.profile import Step

__all__ = ["Ball", "Exponential", "Norm", "NormLog", "Power", "Square"]

_POSITIVE = Interval(0, math.inf)  # a factor of the loss, which 0 would remove, or a radius in units of the residuals


class RadialLoss(Loss, ABC):
    """A loss of the Euclidean norm of the residual, given by its scalar profile."""

    @property
    @abstractmethod
    def profile(self) -> profiles.Profile:
        """The scalar profile."""

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """Return the weight of the squared norm in the conjugate."""
        return self.profile.curvature

    def value(self, residuals: Array) -> Array:
        """Return f(|r_i|), shape (n,)."""
        return self.profile.value(row_norms(residuals)[:, 0])

    def conjugate(self, duals: Array) -> Array:
        """Return f*(|a_i|), shape (n,)."""
        return self.profile.conjugate(row_norms(duals)[:, 0])

    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Return the prox of step * f*(|.|): rows keep their direction."""
        norms = row_norms(duals)
        return _rescale(duals, norms, self.profile.prox(norms, step))

    def prox_remainder(self, duals: Array, step: Step) -> Array:
        """Return the prox of the conjugate without its quadratic part."""
        norms = row_norms(duals)
        return _rescale(duals, norms, self.profile.remainder().prox(norms, step))

    def saturation(self, duals: Array) -> Array | None:
        """Return |a_i| divided by the bound of the dual domain, or ``None`` if it is unbounded."""
        bound = self.profile.bound
        if not math.isfinite(bound):
            return None
        return row_norms(duals)[:, 0] / bound


class ProfileLoss(RadialLoss):
    """The loss of a given profile."""

    def __init__(self, profile: profiles.Profile) -> None:
        self._profile = profile

    @property
    def profile(self) -> profiles.Profile:
        """The profile."""
        return self._profile


class _ScaledLoss(RadialLoss, ABC):
    """A function of the norm times ``scale``."""

    _limits: ClassVar[dict[str, Interval | Options]] = {"scale": _POSITIVE}

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale


class Square(RadialLoss):
    r"""Square loss, as in ridge regression.

    .. math:: \ell(r) = \tfrac12 \|r\|^2, \qquad \ell^*(a) = \tfrac12 \|a\|^2.

    References
    ----------
    [Laforgue2020]_, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Square
    >>> Square().value(np.array([[3.0, 4.0]]))
    array([12.5])
    """

    @property
    def profile(self) -> profiles.Profile:
        """The function t**2 / 2."""
        return profiles.Quadratic()

    @property
    def is_unit_free(self) -> bool:
        """Return True: in another unit the loss is multiplied by a constant."""
        return True


class Norm(_ScaledLoss):
    r"""Norm of the residual, the loss of the spatial median.

    .. math:: \ell(r) = \lambda \|r\|, \qquad \ell^*(a) = \chi_{\|a\| \le \lambda}.

    Parameters
    ----------
    scale : float, default=1.0
        The factor :math:`\lambda`; must be positive.

    References
    ----------
    [Laforgue2020]_, Prop. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Norm
    >>> Norm().value(np.array([[3.0, 4.0], [0.3, 0.4]])).round(4).tolist()
    [5.0, 0.5]
    """

    @property
    def profile(self) -> profiles.Profile:
        """The function scale * t."""
        return profiles.Linear(self.scale)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a few scales."""
        return [cls(), cls(scale=0.3)]


class Power(RadialLoss):
    r"""Power of the norm.

    .. math:: \ell(r) = \tfrac{\lambda}{\eta} \|r\|^\eta, \qquad
        \ell^*(a) = \tfrac{\lambda}{\eta'} \bigl(\|a\| / \lambda\bigr)^{\eta'}, \quad
        \tfrac1\eta + \tfrac1{\eta'} = 1.

    Parameters
    ----------
    eta : float, default=1.5
        The exponent; must be greater than 1 (``Norm`` is the limit 1, ``Square`` the case 2).
    scale : float, default=1.0
        The factor :math:`\lambda`; must be positive.

    References
    ----------
    [Laforgue2020]_, Prop. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Power
    >>> Power(eta=2.0).value(np.array([[3.0, 4.0], [0.3, 0.4]])).round(4).tolist()
    [12.5, 0.125]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"eta": Interval(1, math.inf), "scale": _POSITIVE}

    def __init__(self, eta: float = 1.5, scale: float = 1.0) -> None:
        self.eta = eta
        self.scale = scale

    @property
    def profile(self) -> profiles.Profile:
        """The function scale / eta * t**eta."""
        return profiles.Power(self.eta, self.scale)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return exponents on both sides of 2."""
        return [cls(), cls(eta=2.0, scale=0.5), cls(eta=3.0, scale=2.0)]


class Exponential(_ScaledLoss):
    r"""Exponential of the norm, which penalises errors beyond one unit very strongly.

    .. math:: \ell(r) = \lambda (e^{\|r\|} - 1), \qquad
        \ell^*(a) = \mathbb 1\{\|a\| \ge \lambda\} \bigl(\|a\| \log(\|a\| / \lambda e) + \lambda\bigr).

    Parameters
    ----------
    scale : float, default=1.0
        The factor :math:`\lambda`; must be positive.

    References
    ----------
    [Laforgue2020]_, Prop. 1; conjugate in [Laforgue2019]_, App. A.3.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Exponential
    >>> Exponential().value(np.array([[3.0, 4.0], [0.3, 0.4]])).round(4).tolist()
    [147.4132, 0.6487]
    """

    @property
    def profile(self) -> profiles.Profile:
        """The function scale * (exp(t) - 1)."""
        return profiles.Exponential(self.scale)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a few scales."""
        return [cls(), cls(scale=0.2)]


class NormLog(_ScaledLoss):
    r"""Convexified product of the norm and its logarithm.

    .. math:: \ell(r) = \lambda \max(\|r\|, 1/e) \log \max(\|r\|, 1/e), \qquad
        \ell^*(a) = \lambda e^{\|a\| / \lambda - 1}.

    Parameters
    ----------
    scale : float, default=1.0
        The factor :math:`\lambda`; must be positive.

    Notes
    -----
    The function :math:`\lambda \|r\| \log \|r\|` of the papers falls from 0 to :math:`-\lambda / e` between
    :math:`\|r\| = 0` and :math:`1 / e`, so it is not convex. The printed conjugate is that of its convex envelope,
    which is constant up to :math:`1 / e`; this class is that envelope (see ``test_norm_log_is_the_convex_envelope``).

    References
    ----------
    [Laforgue2020]_, Prop. 1; conjugate in [Laforgue2019]_, App. A.3.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import NormLog
    >>> NormLog().value(np.array([[3.0, 4.0], [0.3, 0.4]])).round(4).tolist()
    [8.0472, -0.3466]
    """

    @property
    def profile(self) -> profiles.Profile:
        """The convex envelope of scale * t log t."""
        return profiles.NormLog(self.scale)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a few scales."""
        return [cls(), cls(scale=0.4)]


class Ball(RadialLoss):
    r"""Hard constraint: every residual must lie in a ball.

    .. math:: \ell(r) = \chi_{\|r\| \le \rho}, \qquad \ell^*(a) = \rho \|a\|.

    Parameters
    ----------
    radius : float, default=0.1
        The radius :math:`\rho`; must be positive.

    Notes
    -----
    The solution is the smoothest function that passes within ``radius`` of every sample. There may be none (two samples
    with the same input and outputs further apart than twice the radius): the primal objective is then infinite, and
    the fit reports it.

    References
    ----------
    [Laforgue2020]_, Prop. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Ball
    >>> Ball(radius=1.0).value(np.array([[3.0, 4.0], [0.3, 0.4]])).round(4).tolist()
    [inf, 0.0]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"radius": _POSITIVE}

    def __init__(self, radius: float = 0.1) -> None:
        self.radius = radius

    @property
    def profile(self) -> profiles.Profile:
        """The indicator of [0, radius]."""
        return profiles.Ball(self.radius)

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a small and a large radius."""
        return [cls(), cls(radius=0.7)]


def _rescale(rows: Array, norms: Array, new_norms: Array) -> Array:
    """Rescale the rows to the given norms; zero rows stay zero."""
    xp = namespace(rows)
    safe = xp.where(norms > 0, norms, xp.ones_like(norms))
    return rows * (new_norms / safe)
