"""Losses of the inner product of prediction and target."""

from typing import Self

from fenchel._array import Array, eps, namespace, row_norms
from fenchel.losses.loss import Loss, bound_to
from fenchel.losses.profile import Step

__all__ = ["MaxMargin"]


class MaxMargin(Loss):
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

    fits_targets = False
    compares_products = True

    def bind(self, targets: Array, point_scale: Array | None = None) -> Self:
        """Return the loss bound to the targets."""
        return bound_to(self, targets, None)

    def value(self, residuals: Array) -> Array:
        """Return max(0, 1 - <y - r, y>), shape (n,)."""
        xp, targets = namespace(residuals), self._bound()
        return xp.clip(1 - xp.sum((targets - residuals) * targets, axis=1), min=0.0)

    def conjugate(self, duals: Array) -> Array:
        """Return t (|y|^2 - 1) on the segment [0, 1] y, infinity elsewhere."""
        xp, targets = namespace(duals), self._bound()
        t, squared = self._position(duals)
        slack = 64 * eps(duals)
        off = row_norms(duals - t * targets) > slack * (row_norms(duals) + row_norms(targets))
        outside = off | (t < -slack) | (t > 1 + slack)
        value = t * (squared - 1)
        return xp.where(outside, xp.zeros_like(value) + float("inf"), value)[:, 0]

    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Shift by the linear term, then project on the segment."""
        xp, targets = namespace(duals), self._bound()
        t, squared = self._position(duals)
        safe = xp.where(squared > 0, squared, xp.ones_like(squared))
        shift = xp.where(squared > 0, step * (squared - 1) / safe, xp.zeros_like(squared))
        return xp.clip(t - shift, min=0.0, max=1.0) * targets

    def saturation(self, duals: Array) -> Array:
        """Return t, shape (n,)."""
        return namespace(duals).abs(self._position(duals)[0][:, 0])

    def _position(self, duals: Array) -> tuple[Array, Array]:
        """Return t = <a, y> / |y|^2 and |y|^2, shape (n, 1); t = 1 where y = 0, whose loss is the constant 1."""
        xp, targets = namespace(duals), self._bound()
        squared = xp.sum(targets**2, axis=1, keepdims=True)
        safe = xp.where(squared > 0, squared, xp.ones_like(squared))
        t = xp.sum(duals * targets, axis=1, keepdims=True) / safe
        return xp.where(squared > 0, t, xp.ones_like(t)), squared

    def _bound(self) -> Array:
        if self._targets is None:
            raise ValueError("MaxMargin depends on the targets: call bind(targets) first, as the estimators do.")
        return self._targets
