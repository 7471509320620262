"""Base class of losses."""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, TypeVar

import numpy as np

from fenchel._array import Array, Index, namespace
from fenchel._component import Component
from fenchel.losses._balls import take_rows
from fenchel.losses.profile import Profile, Step

__all__: list[str] = []


L = TypeVar("L", bound="Loss")
_OF_ROWS = ("_targets", "_scale", "_directions")  # attributes of a bound loss that may have a row for each sample
Box = tuple[Array, Array, Array]  # lower ends, upper ends, slopes of the conjugate between them: (p,) or (n, p)


class Loss(Component, ABC):
    r"""A convex loss of the residual :math:`r = y - h(x)`, given by its value and its Fenchel conjugate.

    Rows are samples, in orthonormal coordinates of the output space. A new loss implements ``value``, ``conjugate`` and
    ``prox_conjugate``; the rest has defaults.

    If the conjugate contains :math:`\tfrac{\sigma}{2}\|a\|^2`, the loss sets ``curvature`` :math:`= \sigma` and
    implements ``prox_remainder``, the prox of the rest, which lets solvers treat the quadratic part exactly.
    """

    curvature: float = 0.0
    fits_targets: ClassVar[bool] = True
    pointwise: bool = False  # depends on the values, not only on inner products: coordinates must not be rotated
    compares_products: ClassVar[bool] = False  # decreases in <h, y>: decoders compare inner products, not distances
    is_relative: bool = False  # a parameter is relative to the residuals: call ``resolve`` before any value
    _targets: Array | None = None  # (n, p), for a loss bound to targets
    _scale: Array | None = None  # (p,) or (n, p)

    @abstractmethod
    def value(self, residuals: Array) -> Array:
        """Return the loss of each row, shape (n,)."""

    @abstractmethod
    def conjugate(self, duals: Array) -> Array:
        """Return the conjugate at each row, shape (n,); infinity outside its domain."""

    @abstractmethod
    def prox_conjugate(self, duals: Array, step: Step) -> Array:
        """Return the prox of ``step`` times the conjugate, row by row; ``step`` is a float or an (n, 1) array."""

    def prox_remainder(self, duals: Array, step: Step) -> Array:
        """Return the prox of ``step`` times (conjugate minus ``curvature / 2`` times the squared norm)."""
        return self.prox_conjugate(duals, step)

    def saturation(self, duals: Array) -> Array | None:
        """Return each dual norm divided by its bound, shape (n,), or ``None`` if the duals are not bounded.

        If every value has its own bound, return each value divided by its bound, shape (n, p). This is in [0, 1] on
        the domain of the conjugate; dividing duals by a larger number brings them back to it.
        """
        return None

    def bind(self, targets: Array, point_scale: Array | None = None) -> "Loss":
        """Return the loss bound to the targets and, if coordinates are point values, to their scale.

        A loss that depends on them returns a copy with ``_targets`` and ``_scale`` set.
        """
        return self

    @property
    def is_unit_free(self) -> bool:
        """Whether changing the unit of the outputs leaves the model unchanged: no parameter is a size of residuals."""
        return self.is_relative

    def resolve(self, residuals: Array, weights: Array | None = None, point_scale: Array | None = None) -> "Loss":
        """Return the loss with every parameter that is relative to the residuals replaced by its value.

        ``residuals`` (n, p) are those of a pilot model, or their norms (n,); ``weights`` (n,) are sample weights.
        """
        return self

    @property
    def profile(self) -> Profile | None:
        """The scalar ``Profile`` if the loss is a function of the Euclidean norm, else ``None``."""
        return None

    def envelope(self, n_coordinates: int) -> Profile | None:
        """Return a profile f with loss <= f(|r|) and a slope that bounds the norm of the gradient, if one is known."""
        return self.profile

    @property
    def box(self) -> Box | None:
        """The domain of the conjugate if the conjugate is linear on a box, else ``None``."""
        return None

    @property
    def sparse(self) -> bool:
        """Whether small residuals have a zero dual variable, so that solutions are sparse."""
        return self.profile is not None and float(self.profile.slope(np.zeros(1))[0]) > 0


def bound_to(loss: L, targets: Array | None, point_scale: Array | None) -> L:
    """Return a copy of the loss with its row-wise targets and the scale of its points."""
    bound = copy(loss)
    bound.__dict__.update(_targets=targets, _scale=point_scale)
    return bound


def rows_of(loss: L, index: Index) -> L:
    """Return the loss restricted to some samples, with its row-wise targets and scale."""
    arrays = {name: part for name, part in vars(loss).items() if name in _OF_ROWS and part is not None}
    parts: dict[str, Any] = {name: take_rows(part, index) for name, part in arrays.items() if part.ndim == 2}
    losses = {name: part for name, part in vars(loss).items() if isinstance(part, Loss)}  # of a convolution
    parts |= {name: cut for name, part in losses.items() if (cut := rows_of(part, index)) is not part}
    if not parts:
        return loss
    cut = copy(loss)
    cut.__dict__.update(parts)
    return cut


def row_saturation(loss: Loss, duals: Array) -> Array | None:
    """Return the ``saturation`` of whole rows, shape (n,): the maximum over their values."""
    ratios = loss.saturation(duals)
    return ratios if ratios is None or ratios.ndim == 1 else namespace(ratios).max(ratios, axis=1)


def is_square(loss: Loss) -> bool:
    """Whether a loss is half the squared norm."""
    profile = loss.profile
    return profile is not None and profile.curvature == 1 and profile.remainder().radius == 0
