"""Robust and sparse losses built on a norm of any order: Huber, epsilon-ridge and epsilon-SVR."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from sklearn.base import clone

from fenchel._array import Array, host, indicator, namespace, row_norms
from fenchel._check import Interval, Options
from fenchel.losses import profile as profiles
from fenchel.losses._balls import PNorm
from fenchel.losses.loss import Loss, bound_to
from fenchel.losses.profile import Step
from fenchel.losses.relative import FORMS, RelativeSize

__all__ = ["EpsilonRidge", "EpsilonSVR", "Huber"]

_ORDER = Interval(1, math.inf, "both")  # p of a norm: below 1 the loss is not convex


class PNormLoss(Loss, ABC):
    """A loss built on the norm of order ``p``; if bound to a point scale, on the norm of the point values."""

    p: float
    _size: ClassVar[tuple[str, str]]  # the parameter that may be relative to the residuals, and the meaning of "auto"

    @property
    @abstractmethod
    def _threshold(self) -> float | str:
        """That parameter."""

    def validate(self) -> Self:
        """Raise if a parameter is invalid; a threshold may be relative to the residuals."""
        if not self.is_relative:
            return super().validate()
        self._with_number()
        return self

    def _with_number(self) -> Self:
        """Return a copy with a number as its relative threshold; raise if a parameter is invalid."""
        name, auto = self._size
        if RelativeSize.parse(str(self._threshold), auto) is None:
            raise ValueError(
                f"The {name!r} parameter of {type(self).__name__} must be {self._limits[name]}, or {FORMS}. "
                f"Got {self._threshold!r} instead."
            )
        return clone(self).set_params(**{name: 1.0}).validate()

    @property
    def is_relative(self) -> bool:  # type: ignore[override]
        """Whether the threshold is relative to the size of residuals."""
        return isinstance(self._threshold, str)

    def resolve(self, residuals: Array, weights: Array | None = None, point_scale: Array | None = None) -> Self:
        """Return the loss with its threshold as a number, computed from the norms that it bounds."""
        if not self.is_relative:
            return clone(self.validate())
        resolved, (name, auto) = self._with_number(), self._size
        size = RelativeSize.parse(str(self._threshold), auto)
        assert size is not None  # it is checked already
        counts = None if weights is None else host(weights).astype(np.float64)
        return resolved.set_params(**{name: size.of(self.bounded_norms(residuals, point_scale), counts)})

    def bounded_norms(self, residuals: Array, point_scale: Array | None = None) -> np.ndarray:
        """Return the norms that the threshold is compared with, (n,)."""
        if residuals.ndim == 1:
            return np.abs(host(residuals).astype(np.float64))
        return host(PNorm(float(self.p), point_scale).norm(residuals)[:, 0]).astype(np.float64)

    def bind(self, targets: Array, point_scale: Array | None = None) -> Self:
        """Return a copy whose norm is that of point values if coordinates are values times ``point_scale``."""
        if self.is_relative:
            raise ValueError(
                f"The threshold of {self!r} is relative to the residuals of a pilot model: call "
                "loss.resolve(residuals) first, or use an estimator that searches over losses."
            )
        return bound_to(self, None, point_scale)

    @abstractmethod
    def _above(self, ratio: float) -> profiles.Profile:
        """Return the profile of an upper bound if the norm is at most ``ratio`` times the Euclidean one."""

    @property
    def profile(self) -> profiles.Profile | None:
        """The scalar profile if ``p`` is 2."""
        return self._above(1.0) if self.p == 2 else None

    def envelope(self, n_coordinates: int) -> profiles.Profile:
        """Return the profile of the loss of order 2 above this one: balls of one norm contain balls of the other."""
        return self._above(self._primal.per_euclidean(n_coordinates))

    @property
    def pointwise(self) -> bool:  # type: ignore[override]
        """Whether the norm is not Euclidean."""
        return self.p != 2

    @property
    def _primal(self) -> PNorm:
        """The norm of the residuals."""
        return PNorm(float(self.p), self._scale)

    @property
    def _dual(self) -> PNorm:
        """The norm of the dual variables, of the conjugate order."""
        return self._primal.dual()

    def _sizes(self, duals: Array) -> Array:
        """Return the dual norms (n,), or the sizes of the values (n, p) if the norm is their maximum."""
        return self._dual.magnitudes(duals) if self.p == 1 else self._dual.norm(duals)[:, 0]


class Huber(PNormLoss):
    r"""Huber loss: quadratic near zero, a multiple of the p-norm far away.

    .. math:: \ell = \tfrac12 \|\cdot\|^2 \,\square\, \kappa \|\cdot\|_p,
        \qquad \ell^* = \tfrac12 \|\cdot\|^2 + \chi_{\|\cdot\|_q \le \kappa},
        \qquad \tfrac1p + \tfrac1q = 1.

    Its gradient is the projection of the residual on the ball :math:`\|\cdot\|_q \le \kappa`.

    Parameters
    ----------
    kappa : float or str, default=1.0
        Bound on the dual norm of the gradient, in (0, inf); a residual inside that ball costs half its square.
        ``"scale:1.5"`` is 1.5 times a robust scale of the residuals of a pilot model (1.4826 times the median of their
        dual norms), ``"quantile:0.9"`` is the 0.9-quantile of these norms, and ``"auto"`` means ``"scale:1"``.
    p : float, default=2
        Order of the norm, in [1, inf]. With 2 outliers are whole samples, with 1 they are single values.

    References
    ----------
    [Laforgue2020]_, Def. 5; [Lambert2022]_, Def. 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Huber
    >>> Huber(kappa=1.0).value(np.array([[3.0, 4.0], [0.3, 0.4]])).round(4).tolist()
    [4.5, 0.125]
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {"kappa": Interval(0, math.inf), "p": _ORDER}
    _size = ("kappa", "scale:1")
    curvature = 1.0

    def __init__(self, kappa: float | str = 1.0, p: float = 2) -> None:
        self.kappa: float = kappa  # type: ignore[assignment]  # resolve replaces a string by a number
        self.p = p

    @property
    def _threshold(self) -> float | str:
        return self.kappa

    @property
    def sparse(self) -> bool:
        """Return False: small residuals have a cost too."""
        return False

    def _above(self, ratio: float) -> profiles.Profile:
        return profiles.Convolution(profiles.Quadratic(), profiles.Linear(self.kappa * ratio))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        orders = [cls(p=1), cls(p=1.3), cls(), cls(p=3), cls(p=math.inf)]
        return [*orders, cls(kappa=0.05), cls(kappa=20.0), cls(kappa=0.05, p=1.3), cls(kappa=20.0, p=3)]

    def value(self, residuals: Array) -> Array:
        """Return the loss of each row, shape (n,)."""
        if self.p == 2:
            norms = row_norms(residuals)[:, 0]
            inside = namespace(norms).clip(norms, max=self.kappa)
            return inside * (norms - inside / 2)
        inner = self.prox_remainder(residuals, 1.0)
        return row_norms(inner)[:, 0] ** 2 / 2 + self.kappa * self._primal.norm(residuals - inner)[:, 0]

    def conjugate(self, duals: Array) -> Array:
        """Return the conjugate at each row, shape (n,); infinity outside the ball."""
        return row_norms(duals)[:, 0] ** 2 / 2 + indicator(self._dual.norm(duals)[:, 0] / self.kappa)

    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Return the prox of ``step`` times the conjugate, row by row."""
        return self.prox_remainder(duals / (1 + step), step / (1 + step))

    def prox_remainder(self, duals: Array, step: Step) -> Array:
        """Return the projection on the domain of the conjugate, a ball, for any step."""
        return self._dual.project(duals, self.kappa)

    def saturation(self, duals: Array) -> Array:
        """Return each dual norm divided by ``kappa``, shape (n,); if ``p`` is 1, each dual value."""
        return self._sizes(duals) / self.kappa

    def bounded_norms(self, residuals: Array, point_scale: Array | None = None) -> np.ndarray:
        """Return the norms that the threshold is compared with, (n,): the dual norms of the gradient."""
        if residuals.ndim == 1:
            return super().bounded_norms(residuals, point_scale)
        return host(PNorm(float(self.p), point_scale).dual().norm(residuals)[:, 0]).astype(np.float64)


class _Insensitive(PNormLoss, ABC):
    """A loss that vanishes on the ball of radius epsilon."""

    _limits: ClassVar[dict[str, Interval | Options]] = {"epsilon": Interval(0, math.inf, "left"), "p": _ORDER}
    _size = ("epsilon", "scale:0.6")

    def __init__(self, epsilon: float | str = 0.1, p: float = 2) -> None:
        self.epsilon: float = epsilon  # type: ignore[assignment]  # resolve replaces a string by a number
        self.p = p

    @property
    def _threshold(self) -> float | str:
        return self.epsilon

    @property
    def sparse(self) -> bool:
        """Whether there is an insensitive zone."""
        return self.is_relative or bool(self.epsilon > 0)


class EpsilonRidge(_Insensitive):
    r"""Half the squared distance to the ball of radius epsilon in the p-norm.

    .. math:: \ell = \tfrac12 \|\cdot\|^2 \,\square\, \chi_{\|\cdot\|_p \le \varepsilon},
        \qquad \ell^* = \tfrac12 \|\cdot\|^2 + \varepsilon \|\cdot\|_q,
        \qquad \tfrac1p + \tfrac1q = 1.

    Residuals inside the ball cost nothing and have a zero dual variable.

    Parameters
    ----------
    epsilon : float or str, default=0.1
        Radius of the ball, in [0, inf); 0 gives the square loss. ``"scale:0.6"`` is 0.6 times a robust scale of the
        residuals of a pilot model (1.4826 times the median of their norms), ``"quantile:0.2"`` is the 0.2-quantile of
        these norms, and ``"auto"`` means ``"scale:0.6"``.
    p : float, default=2
        Order of the norm, in [1, inf]. With 2 whole samples have a zero dual variable, with inf single values do.

    References
    ----------
    [Laforgue2020]_, Def. 4, times one half as in its problem (P1); [Lambert2022]_, Def. 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import EpsilonRidge
    >>> EpsilonRidge(epsilon=1.0).value(np.array([[3.0, 4.0], [0.3, 0.4]])).round(4).tolist()
    [8.0, 0.0]
    """

    curvature = 1.0

    def _above(self, ratio: float) -> profiles.Profile:
        return profiles.Convolution(profiles.Quadratic(), profiles.Ball(self.epsilon / ratio))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        orders = [cls(p=1), cls(p=1.3), cls(), cls(p=3), cls(p=math.inf)]
        return [*orders, cls(epsilon=0.0), cls(epsilon=0.0, p=3), cls(epsilon=20.0), cls(epsilon=2.0, p=1.3)]

    def value(self, residuals: Array) -> Array:
        """Return the loss of each row, shape (n,)."""
        return row_norms(self.prox_remainder(residuals, 1.0))[:, 0] ** 2 / 2

    def conjugate(self, duals: Array) -> Array:
        """Return the conjugate at each row, shape (n,)."""
        return row_norms(duals)[:, 0] ** 2 / 2 + self.epsilon * self._dual.norm(duals)[:, 0]

    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Return the prox of ``step`` times the conjugate, row by row."""
        return self.prox_remainder(duals / (1 + step), step / (1 + step))

    def prox_remainder(self, duals: Array, step: Step) -> Array:
        """Return the prox of ``step * epsilon`` times the dual norm; exactly zero where the p-norm is below that."""
        return duals - self._primal.project(duals, step * self.epsilon)


class EpsilonSVR(_Insensitive):
    r"""Epsilon-insensitive p-norm, as in support vector regression.

    .. math:: \ell = \max(\|\cdot\|_p - \varepsilon, 0)
        = \|\cdot\|_p \,\square\, \chi_{\|\cdot\|_p \le \varepsilon},
        \qquad \ell^* = \chi_{\|\cdot\|_q \le 1} + \varepsilon \|\cdot\|_q,
        \qquad \tfrac1p + \tfrac1q = 1.

    Parameters
    ----------
    epsilon : float or str, default=0.1
        Norm below which a residual costs nothing, in [0, inf). ``"scale:0.6"`` is 0.6 times a robust scale of the
        residuals of a pilot model (1.4826 times the median of their norms), ``"quantile:0.2"`` is the 0.2-quantile of
        these norms, and ``"auto"`` means ``"scale:0.6"``.
    p : float, default=2
        Order of the norm, in [1, inf].

    Notes
    -----
    The prox of ``step`` times the conjugate is shrinkage with threshold ``step * epsilon`` if the result lies inside
    the unit ball, and the projection on the unit ball otherwise: a multiplier of the constraint only adds to the
    threshold, and the projection is the shrinkage whose threshold leads to the sphere.

    References
    ----------
    [Laforgue2020]_, Def. 4 and its problem (P3).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import EpsilonSVR
    >>> EpsilonSVR(epsilon=1.0).value(np.array([[3.0, 4.0], [0.3, 0.4]])).round(4).tolist()
    [4.0, 0.0]
    """

    def _above(self, ratio: float) -> profiles.Profile:
        return profiles.Convolution(profiles.Linear(ratio), profiles.Ball(self.epsilon / ratio))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        orders = [cls(p=1), cls(p=1.3), cls(), cls(p=3), cls(p=math.inf)]
        return [*orders, cls(epsilon=0.0), cls(epsilon=0.0, p=1.3), cls(epsilon=20.0), cls(epsilon=2.0, p=3)]

    def value(self, residuals: Array) -> Array:
        """Return the loss of each row, shape (n,)."""
        return namespace(residuals).clip(self._primal.norm(residuals)[:, 0] - self.epsilon, min=0.0)

    def conjugate(self, duals: Array) -> Array:
        """Return the conjugate at each row, shape (n,); infinity outside the unit ball."""
        norm = self._dual.norm(duals)[:, 0]
        return indicator(norm) + self.epsilon * norm

    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Return the prox of ``step`` times the conjugate, row by row; exactly zero where the p-norm is small."""
        xp = namespace(duals)
        if self.p == 2:  # shorten each row, in few passes
            norms = row_norms(duals)
            return duals * (xp.clip(norms - step * self.epsilon, 0.0, 1.0) / xp.where(norms > 0, norms, 1.0))
        shrunk = duals - self._primal.project(duals, step * self.epsilon)
        beyond = self._dual.norm(shrunk) > 1
        if not bool(xp.any(beyond)):
            return shrunk
        clipped = self._dual.project(xp.where(beyond, duals, xp.zeros_like(duals)), 1.0)
        return xp.where(beyond, clipped, shrunk)

    def saturation(self, duals: Array) -> Array:
        """Return the dual norms, shape (n,); if ``p`` is 1, the sizes of the dual values."""
        return self._sizes(duals)
