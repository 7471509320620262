"""Losses of inner products of predictions with given elements, such as the targets."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, as_like, eps, is_array, namespace, row_norms
from fenchel._component import Component
from fenchel.losses.loss import Loss, bound_to
from fenchel.losses.profile import Step

__all__ = ["Hinge", "InnerProduct", "MaxMargin", "ScalarFunction", "SquaredHinge"]


class ScalarFunction(Component, ABC):
    """A convex function f of one number, given by its conjugate. Arguments are arrays of shape (n, 1)."""

    _has_short_name = False  # a part of a loss, not a loss
    bound: float | None = None  # largest size of a number in the domain of the conjugate

    @abstractmethod
    def value(self, t: Array) -> Array:
        """Return f(t)."""

    @abstractmethod
    def conjugate(self, s: Array) -> Array:
        """Return f*(s), infinity outside its domain."""

    @abstractmethod
    def prox_conjugate(self, s: Array, step: Step) -> Array:
        """Return the prox of ``step`` times f*; ``step`` is a float or an (n, 1) array."""


class Hinge(ScalarFunction):
    r"""Hinge function, :math:`f(t) = \max(0, 1 - t)`, with :math:`f^*(s) = s` on [-1, 0].

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Hinge
    >>> Hinge().value(np.array([[-1.0], [2.0]])).tolist()
    [[2.0], [0.0]]
    """

    bound = 1.0

    def value(self, t: Array) -> Array:
        """Return max(0, 1 - t)."""
        return namespace(t).clip(1 - t, min=0.0)

    def conjugate(self, s: Array) -> Array:
        """Return s on [-1, 0], infinity elsewhere."""
        xp, slack = namespace(s), 64 * eps(s)
        return xp.where((s > slack) | (s < -1 - slack), xp.zeros_like(s) + float("inf"), s)

    def prox_conjugate(self, s: Array, step: Step) -> Array:
        """Shift by the step, then project on [-1, 0]."""
        return namespace(s).clip(s - step, min=-1.0, max=0.0)


class SquaredHinge(ScalarFunction):
    r"""Half the squared hinge, :math:`f(t) = \tfrac12 \max(0, 1 - t)^2`, with :math:`f^*(s) = s + s^2 / 2` for s <= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import SquaredHinge
    >>> SquaredHinge().value(np.array([[-1.0], [2.0]])).tolist()
    [[2.0], [0.0]]
    """

    def value(self, t: Array) -> Array:
        """Return half the square of max(0, 1 - t)."""
        return namespace(t).clip(1 - t, min=0.0) ** 2 / 2

    def conjugate(self, s: Array) -> Array:
        """Return s + s**2 / 2 for s <= 0, infinity elsewhere."""
        xp = namespace(s)
        return xp.where(s > 64 * eps(s), xp.zeros_like(s) + float("inf"), s + s**2 / 2)

    def prox_conjugate(self, s: Array, step: Step) -> Array:
        """Return the shrunk and shifted number, at most 0."""
        return namespace(s).clip((s - step) / (1 + step), max=0.0)


class _OfProducts(Loss, ABC):
    """A convex function of the inner product of each prediction with one element."""

    fits_targets = False
    _directions: Array | None = None  # (n, p), the elements in coordinates; None: the targets

    @property
    @abstractmethod
    def _function(self) -> ScalarFunction:
        """The function f."""

    def bind(self, targets: Array, point_scale: Array | None = None) -> Self:
        """Return the loss bound to the targets."""
        return bound_to(self, targets, None)

    def value(self, residuals: Array) -> Array:
        """Return f(<y - r, z>), shape (n,)."""
        xp, (targets, z) = namespace(residuals), self._bound()
        return self._function.value(xp.sum((targets - residuals) * z, axis=1, keepdims=True))[:, 0]

    def conjugate(self, duals: Array) -> Array:
        """Return t <y, z> + f*(-t) at t z, infinity off the line."""
        xp, (targets, z) = namespace(duals), self._bound()
        t, squared = self._position(duals)
        slack = 64 * eps(duals)
        off = row_norms(duals - t * z) > slack * (row_norms(duals) + row_norms(z))
        value = t * xp.sum(targets * z, axis=1, keepdims=True) + self._function.conjugate(-t)
        value = xp.where(squared > 0, value, -self._function.value(xp.zeros_like(t)))
        return xp.where(off, xp.zeros_like(value) + float("inf"), value)[:, 0]

    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Return the prox along the line of z."""
        xp, (targets, z) = namespace(duals), self._bound()
        t, squared = self._position(duals)
        safe = xp.where(squared > 0, squared, xp.ones_like(squared))
        shift = step * (xp.sum(targets * z, axis=1, keepdims=True) / safe)
        return -self._function.prox_conjugate(shift - t, step / safe) * z

    def saturation(self, duals: Array) -> Array | None:
        """Return the size of t over that of the domain of f*, shape (n,), or ``None`` if it is unbounded."""
        bound = self._function.bound
        return None if bound is None else namespace(duals).abs(self._position(duals)[0][:, 0]) / bound

    def _position(self, duals: Array) -> tuple[Array, Array]:
        """Return t = <a, z> / |z|^2 and |z|^2, shape (n, 1); t = 1 where z = 0, whose loss is the constant f(0)."""
        xp, (_, z) = namespace(duals), self._bound()
        squared = xp.sum(z**2, axis=1, keepdims=True)
        t = xp.sum(duals * z, axis=1, keepdims=True) / xp.where(squared > 0, squared, xp.ones_like(squared))
        return xp.where(squared > 0, t, xp.ones_like(t)), squared

    def _bound(self) -> tuple[Array, Array]:
        """Return targets and elements."""
        if self._targets is None:
            name = type(self).__name__
            raise ValueError(f"{name} depends on the targets: call bind(targets) first, as the estimators do.")
        return self._targets, self._targets if self._directions is None else self._directions


class MaxMargin(_OfProducts):
    r"""Maximum-margin loss: the inner product of prediction and target should be at least 1.

    .. math:: \ell_i(h) = \max(0, 1 - \langle h, y_i \rangle), \qquad
        \text{duals: } a_i = t_i y_i, \; t_i \in [0, 1].

    Notes
    -----
    In terms of the residual :math:`r = y - h`, the conjugate at :math:`t y` is :math:`t (\|y\|^2 - 1)`, and infinite
    off the segment. The loss determines the direction of the prediction, not its size: it suits structured outputs,
    where a decoder compares inner products. On targets -1 and 1 it is the hinge loss of the support vector machine
    without intercept.

    References
    ----------
    [Laforgue2020]_, Prop. 1; [Brouard2016]_.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import MaxMargin
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = OperatorKernelRegressor(loss=MaxMargin(), lam=1e-2).fit(X, np.sign(X))
    >>> np.sign(model.predict(X)).ravel().tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """

    compares_products = True

    @property
    def _function(self) -> ScalarFunction:
        return Hinge()


class InnerProduct(_OfProducts):
    r"""Convex function of the inner product of each prediction with an element of the output space.

    .. math:: \ell_i(h) = f(\langle h, z_i \rangle), \qquad
        \text{duals: } a_i = t_i z_i, \quad \ell_i^* = t_i \langle y_i, z_i \rangle + f^*(-t_i).

    Parameters
    ----------
    f : ScalarFunction or None, default=None
        The function, with its conjugate and the prox of its conjugate; ``None`` means ``Hinge()``. A function of your
        own is one class with these three methods.
    directions : array of shape (n, p), callable or None, default=None
        The elements :math:`z_i`, one row for each training sample of positive weight: vectors, or curves at the points
        of the training curves. A function takes the training outputs in coordinates (n, p) and returns the elements in
        coordinates, zero where an output is missing. ``None`` means the outputs themselves, as for ``MaxMargin``, the
        case of ``Hinge()``.

    Notes
    -----
    Only the products with the elements enter the loss: a prediction lies in the span of the operator's images of the
    elements. ``h`` is the prediction without the centre of the outputs.

    References
    ----------
    [Laforgue2020]_, Prop. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import OperatorKernelRegressor
    >>> from fenchel.losses import InnerProduct, SquaredHinge
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = OperatorKernelRegressor(loss=InnerProduct(SquaredHinge()), lam=1e-2).fit(X, np.sign(X))
    >>> np.sign(model.predict(X)).ravel().tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """

    def __init__(
        self, f: ScalarFunction | None = None, directions: ArrayLike | Callable[[Array], Array] | None = None
    ) -> None:
        self.f = f
        self.directions = directions

    def validate(self) -> Self:
        """Raise unless f is a function of one number, and directions are numbers or a function."""
        if not (self.f is None or isinstance(self.f, ScalarFunction)):
            raise TypeError(f"The 'f' parameter of InnerProduct must be a ScalarFunction or None. Got {self.f!r}.")
        return super().validate()

    @property
    def compares_products(self) -> bool:  # type: ignore[override]
        """Whether it decreases in the product with the target."""
        return self.directions is None

    def bind(self, targets: Array, point_scale: Array | None = None) -> Self:
        """Return the loss bound to the targets and to the elements in coordinates."""
        bound = super().bind(targets)
        if self.directions is not None:
            bound._directions = self._in_coordinates(targets, point_scale)
        return bound

    def _in_coordinates(self, targets: Array, point_scale: Array | None) -> Array:
        """Return the elements in coordinates, of the shape of the targets; raise if they have another one."""
        given = self.directions(targets) if callable(self.directions) else self.directions
        rows = as_like(given if is_array(given) else np.asarray(given, dtype=float), targets)
        if rows.ndim != 2 or rows.shape != targets.shape:
            raise ValueError(
                f"The 'directions' parameter of InnerProduct must have one row for each of the {targets.shape[0]} "
                f"training samples, and {targets.shape[1]} columns. Got shape {tuple(rows.shape)}."
            )
        if not bool(namespace(rows).all(namespace(rows).isfinite(rows))):
            raise ValueError("The 'directions' parameter of InnerProduct must be finite. It contains NaN or infinity.")
        return rows if point_scale is None or callable(self.directions) else rows * point_scale

    @property
    def _function(self) -> ScalarFunction:
        return Hinge() if self.f is None else self.f

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(SquaredHinge())]
