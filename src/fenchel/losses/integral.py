"""Losses that integrate a loss of each value, for quantile functions and cost-sensitive classifiers."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, as_like, eps, host, namespace
from fenchel._check import Interval, Options
from fenchel._component import Component
from fenchel.losses.loss import Box, Loss, bound_to
from fenchel.losses.profile import Linear, Profile, Step

__all__ = ["AsymmetricSquare", "CostSensitiveHinge", "IntegralLoss", "Pinball", "PointLoss"]

_ROUND_OFF = 16  # multiples of the dtype's precision by which a dual may leave its box


class PointLoss(Component, ABC):
    r"""A convex loss :math:`\ell_\theta(r, y)` of one number, for each :math:`\theta`, given by its conjugate in r.

    Arguments are arrays that broadcast: residuals or duals (n, p), ``levels`` (p,) the values of :math:`\theta`,
    ``targets`` (n, p).
    """

    _has_short_name = False  # a part of a loss, not a loss

    @abstractmethod
    def value(self, residuals: Array, levels: Array, targets: Array) -> Array:
        """Return the loss of each residual, shape (n, p)."""

    @abstractmethod
    def conjugate(self, duals: Array, levels: Array, targets: Array) -> Array:
        """Return the conjugate at each dual, shape (n, p); infinity outside its domain."""

    @abstractmethod
    def prox_conjugate(self, duals: Array, step: Step, levels: Array, targets: Array) -> Array:
        """Return the prox of ``step`` times the conjugate, shape (n, p); ``step`` is a float or an (n, 1) array."""


class _BoxLoss(PointLoss, ABC):
    r"""A maximum of two linear functions: its conjugate is linear on an interval that contains zero."""

    @abstractmethod
    def box(self, levels: Array, targets: Array) -> Box:
        """Return the lower and upper ends of the interval, and the slope of the conjugate on it."""

    def value(self, residuals: Array, levels: Array, targets: Array) -> Array:
        """Return the maximum over the interval of dual times (residual - slope)."""
        low, high, slope = self.box(levels, targets)
        shifted = residuals - slope
        return namespace(residuals).maximum(low * shifted, high * shifted)

    def conjugate(self, duals: Array, levels: Array, targets: Array) -> Array:
        """Return dual times slope on the interval, infinity elsewhere."""
        xp, (low, high, slope) = namespace(duals), self.box(levels, targets)
        slack = _ROUND_OFF * eps(duals)
        outside = (duals < low - slack * (1 - low)) | (duals > high + slack * (1 + high))
        value = duals * slope
        return xp.where(outside, xp.zeros_like(value) + math.inf, value)

    def prox_conjugate(self, duals: Array, step: Step, levels: Array, targets: Array) -> Array:
        """Shift by the slope, then project on the interval."""
        xp, (low, high, slope) = namespace(duals), self.box(levels, targets)
        return xp.minimum(xp.maximum(duals - step * slope, low), high)


class _Check(_BoxLoss):
    """The check function of quantile regression."""

    def box(self, levels: Array, targets: Array) -> Box:
        """Return theta - 1, theta and 0."""
        return levels - 1, levels, 0 * levels


class _Hinge(_BoxLoss):
    """The hinge loss with weight theta for positive targets and 1 - theta for negative ones."""

    def box(self, levels: Array, targets: Array) -> Box:
        """Return the interval between 0 and the weight times the target."""
        xp = namespace(targets)
        weight = xp.where(targets < 0, 1 - levels, levels)
        end, safe = weight * targets, xp.where(targets == 0, xp.ones_like(targets), targets)
        return xp.clip(end, max=0.0), xp.clip(end, min=0.0), targets - xp.where(targets == 0, 0 * targets, 1 / safe)


class AsymmetricSquare(PointLoss):
    r"""Asymmetric squared loss, with weight :math:`\theta` above and :math:`1 - \theta` below: the loss of expectiles.

    .. math:: \ell_\theta(r) = |\theta - \mathbb 1_{r < 0}| \, r^2, \qquad
        \ell_\theta^*(a) = \frac{a^2}{4 |\theta - \mathbb 1_{a < 0}|}.

    References
    ----------
    W. K. Newey and J. L. Powell, "Asymmetric least squares estimation and testing", Econometrica 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import AsymmetricSquare, IntegralLoss
    >>> X, rng = np.linspace(0, 3, 40)[:, None], np.random.default_rng(0)
    >>> y = np.sin(X) + 0.3 * rng.standard_normal(X.shape)
    >>> losses = [IntegralLoss(AsymmetricSquare(), [level]) for level in (0.1, 0.9)]
    >>> low, high = (OperatorKernelRegressor(loss=loss, lam=1e-3).fit(X, y) for loss in losses)
    >>> bool(np.mean(low.predict(X)) < np.mean(high.predict(X)))
    True
    """

    def value(self, residuals: Array, levels: Array, targets: Array) -> Array:
        """Return the weighted squares."""
        return self._weights(residuals, levels) * residuals**2

    def conjugate(self, duals: Array, levels: Array, targets: Array) -> Array:
        """Return the squares divided by four times the weights."""
        return duals**2 / (4 * self._weights(duals, levels))

    def prox_conjugate(self, duals: Array, step: Step, levels: Array, targets: Array) -> Array:
        """Return the shrunk duals."""
        weights = self._weights(duals, levels)
        return duals * (2 * weights / (2 * weights + step))

    def _weights(self, values: Array, levels: Array) -> Array:
        return namespace(values).where(values < 0, 1 - levels, levels)


class _Integral(Loss, ABC):
    """The integral of a point loss over the coordinates; a point scale defines the quadrature."""

    _limits: ClassVar[dict[str, Interval | Options]] = {}
    pointwise = True
    levels: float | Array

    @property
    @abstractmethod
    def _point(self) -> PointLoss:
        """The loss of each value."""

    def validate(self) -> Self:
        """Raise if a level is not in (0, 1)."""
        super().validate()
        values = np.asarray(self.levels)
        requirement = (
            f"The 'levels' parameter of {type(self).__name__} must be a number in (0, 1), or a vector of these."
        )
        if values.dtype.kind not in "fiu":
            raise TypeError(f"{requirement} Got {self.levels!r} instead.")
        if values.ndim > 1 or values.size == 0 or not np.all((values > 0) & (values < 1)):
            raise ValueError(f"{requirement} Got {self.levels!r} instead.")
        return self

    def bind(self, targets: Array, point_scale: Array | None = None) -> Self:
        """Return the loss bound to the targets and to the square roots of the quadrature weights."""
        count = np.asarray(self.levels).size
        if targets.shape[1] % count:
            raise ValueError(
                f"The 'levels' parameter of {type(self).__name__} must be one number, or one for each of the "
                f"{targets.shape[1]} output coordinates (or points, of curves with channels). Got {count}."
            )
        return bound_to(self, targets, point_scale)

    def value(self, residuals: Array) -> Array:
        """Return the integral of the loss of each row, shape (n,)."""
        scale, at = self._at(residuals)
        return self._sum(self._point.value(residuals / scale, *at), residuals)

    def conjugate(self, duals: Array) -> Array:
        """Return the integral of the conjugate at each row, shape (n,); infinity outside its domain."""
        scale, at = self._at(duals)
        return self._sum(self._point.conjugate(duals / scale, *at), duals)

    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Return the prox at each value; the weights cancel."""
        scale, at = self._at(duals)
        return scale * self._point.prox_conjugate(duals / scale, step, *at)

    def _sum(self, values: Array, like: Array) -> Array:
        xp = namespace(values)
        if self._scale is None:
            return xp.sum(values, axis=1)
        # not a product: a point of weight zero may have an infinite value
        weights = self._scale**2 + xp.zeros_like(values)
        return xp.sum(xp.where(weights > 0, values * weights, 0 * weights), axis=1)

    def _at(self, rows: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return the square roots of the weights (1 if unweighted), and levels and targets as point values."""
        xp, targets = namespace(rows), self._bound()
        levels = np.atleast_1d(np.asarray(self.levels, dtype=float))
        levels = as_like(np.repeat(levels, rows.shape[1] // len(levels)), rows)  # channels share the level of a point
        if self._scale is None:
            return xp.ones_like(levels), (levels, targets)
        scale = xp.where(self._scale > 0, self._scale, xp.ones_like(self._scale))
        return scale, (levels, targets / scale)

    def _bound(self) -> Array:
        if self._targets is None:
            name = type(self).__name__
            raise ValueError(f"{name} depends on the targets: call bind(targets) first, as the estimators do.")
        return self._targets


class _BoxIntegral(_Integral, ABC):
    """The integral of a maximum of two linear functions: the duals lie in a box."""

    @property
    @abstractmethod
    def _point(self) -> _BoxLoss:
        """The loss of each value."""

    @property
    def box(self) -> Box:
        """The lower and upper ends of the box and the slopes of the conjugate, (p,) or (n, p)."""
        scale, at = self._at(self._bound())
        low, high, slope = self._point.box(*at)
        return low * scale, high * scale, slope * scale

    def saturation(self, duals: Array) -> Array:
        """Return each dual value divided by its bound, shape (n, p)."""
        xp, (low, high, _) = namespace(duals), self.box
        bound = xp.where(duals < 0, -low, high + xp.zeros_like(duals))
        safe = xp.where(bound > 0, bound, xp.ones_like(bound))
        return xp.where(bound > 0, xp.abs(duals) / safe, xp.where(duals == 0, 0 * duals, 0 * duals + math.inf))


class Pinball(_BoxIntegral):
    r"""Pinball loss of each value, integrated over the coordinates: its minimisers are quantiles.

    .. math:: \ell(r) = \int \max(\theta \, r(\theta), (\theta - 1) \, r(\theta)) \, d\mu(\theta), \qquad
        \ell^* = \chi_{\theta - 1 \le a(\theta) \le \theta \text{ for all } \theta}.

    Parameters
    ----------
    levels : float or array of shape (p,), default=0.5
        The level :math:`\theta` of each coordinate, in (0, 1); a single number applies to all. For curves with several
        channels, the level of each point.

    Notes
    -----
    ``OperatorKernelRegressor(loss=Pinball(0.9))`` is kernel quantile regression at one level. For the whole quantile
    function see ``QuantileFunctionRegressor``, which repeats the target at every level.

    References
    ----------
    [Laforgue2019]_, section 4; its Remark 3 has the sign of the dual variable reversed.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import Pinball
    >>> X, rng = np.linspace(0, 3, 40)[:, None], np.random.default_rng(0)
    >>> y = np.sin(X) + 0.3 * rng.standard_normal(X.shape)
    >>> model = OperatorKernelRegressor(loss=Pinball(0.9), lam=1e-3, center=False).fit(X, y)
    >>> bool(np.mean(y <= model.predict(X)) > 0.7)
    True
    """

    def __init__(self, levels: float | Array = 0.5) -> None:
        self.levels = levels

    @property
    def _point(self) -> _BoxLoss:
        return _Check()

    def envelope(self, n_coordinates: int) -> Profile:
        """Return the norm times the longest dual."""
        low, high, _ = self.box
        return Linear(math.sqrt(float(np.sum(np.maximum(host(-low), host(high)) ** 2))))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(0.9)]


class CostSensitiveHinge(_BoxIntegral):
    r"""Hinge loss of each value, weighted by the cost of an error and integrated over the costs.

    .. math:: \ell_y(h) = \int |\theta - \mathbb 1_{y < 0}| \max(0, 1 - y \, h(\theta)) \, d\mu(\theta), \qquad
        0 \le y \, a(\theta) \le |\theta - \mathbb 1_{y < 0}| \text{ for all } \theta,

    for targets :math:`y = \pm 1`.

    Parameters
    ----------
    levels : float or array of shape (p,), default=0.5
        The cost :math:`\theta` of an error on a positive sample at each coordinate, in (0, 1); an error on a negative
        sample costs :math:`1 - \theta`.

    Notes
    -----
    In terms of the residual :math:`r = y - h`, the loss of a target :math:`\pm 1` is the weight times
    :math:`\max(0, y r)`, and the conjugate is zero on its box. For any other target :math:`y` the box lies between 0
    and the weight times :math:`y`, and the conjugate is :math:`(y - 1 / y) \, a` on it. A target of 0, whose loss
    would be constant, has loss 0.

    References
    ----------
    [Laforgue2019]_, section 4 and Remark 3.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import CostSensitiveHinge
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = OperatorKernelRegressor(loss=CostSensitiveHinge(0.5), lam=1e-2).fit(X, np.sign(X))
    >>> np.sign(model.predict(X)).ravel().tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """

    fits_targets = False

    def __init__(self, levels: float | Array = 0.5) -> None:
        self.levels = levels

    @property
    def _point(self) -> _BoxLoss:
        return _Hinge()

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(0.8)]


class IntegralLoss(_Integral):
    r"""Integral of any convex loss of one number, which may vary with the level.

    .. math:: \ell(r) = \int \ell_\theta(r(\theta)) \, d\mu(\theta), \qquad
        \ell^*(a) = \int \ell_\theta^*(a(\theta)) \, d\mu(\theta).

    Parameters
    ----------
    point : PointLoss
        The loss of one number, with its conjugate and the prox of its conjugate.
    levels : float or array of shape (p,), default=0.5
        The level :math:`\theta` of each coordinate, in (0, 1); a single number applies to all. For curves with several
        channels, the level of each point.

    References
    ----------
    [Laforgue2019]_, Thm 6.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import AsymmetricSquare, IntegralLoss
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.3 * (-1) ** np.arange(40)
    >>> loss = IntegralLoss(AsymmetricSquare(), levels=0.9)
    >>> model = OperatorKernelRegressor(loss=loss, lam=1e-2).fit(X, y)
    >>> bool(np.mean(model.predict(X) > np.sin(X[:, 0])) > 0.9)
    True
    """

    def __init__(self, point: PointLoss, levels: float | Array = 0.5) -> None:
        self.point = point
        self.levels = levels

    def validate(self) -> Self:
        """Raise if ``point`` is not a loss of one number, or a level is not in (0, 1)."""
        if not isinstance(self.point, PointLoss):
            raise TypeError(f"The 'point' parameter of IntegralLoss must be a PointLoss. Got {self.point!r} instead.")
        return super().validate()

    @property
    def _point(self) -> PointLoss:
        return self.point

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(AsymmetricSquare()), cls(AsymmetricSquare(), 0.8)]
