"""The protocol of a loss."""

from abc import ABC, abstractmethod
from copy import copy
from typing import ClassVar, TypeVar

import numpy as np

from fenchel._array import Array, Index, namespace
from fenchel._component import Component
from fenchel.losses._balls import take_rows
from fenchel.losses.profile import Profile, Step

__all__: list[str] = []


L = TypeVar("L", bound="Loss")
Box = tuple[Array, Array, Array]  # lower ends, upper ends, slopes of the conjugate between them: (p,) or (n, p)


class Loss(Component, ABC):
    r"""A convex loss of the residual :math:`r = y - h(x)`, known by its value and its Fenchel conjugate.

    Rows are samples, in orthonormal coordinates of the output space. A new loss writes ``value``, ``conjugate`` and
    ``prox_conjugate``; the rest has defaults.

    A conjugate that contains :math:`\tfrac{\sigma}{2}\|a\|^2` says so by ``curvature`` :math:`= \sigma` and writes
    ``prox_remainder``, the prox of what is left, which lets solvers treat the quadratic part exactly.
    """

    curvature: float = 0.0
    fits_targets: ClassVar[bool] = True
    pointwise: bool = False  # depends on the values themselves, not only on products: coordinates may not be turned
    is_relative: bool = False  # a parameter is relative to the size of residuals: ``resolve`` comes before any value
    _targets: Array | None = None  # (n, p), of a loss that is bound to them
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
        """Return each dual norm over its bound, shape (n,), or ``None`` when the duals are not bounded.

        Where every value has a bound of its own, each value over its bound, shape (n, p). In the domain of the
        conjugate this is in [0, 1]; dividing duals by a larger number brings them back to it.
        """
        return None

    def bind(self, targets: Array, point_scale: Array | None = None) -> "Loss":
        """Return the loss bound to the targets and, where coordinates are point values, to their scale.

        A loss that depends on them returns a copy with ``_targets`` and ``_scale``.
        """
        return self

    @property
    def is_unit_free(self) -> bool:
        """Whether outputs in another unit give the same model: no parameter is a size of residuals."""
        return self.is_relative

    def resolve(self, residuals: Array, weights: Array | None = None, point_scale: Array | None = None) -> "Loss":
        """Return the loss with every parameter that depends on the size of residuals replaced by its number.

        ``residuals`` (n, p) are those of a pilot model, or their norms (n,); ``weights`` (n,) count the samples.
        """
        return self

    @property
    def profile(self) -> Profile | None:
        """The scalar ``Profile`` of a loss of the Euclidean norm, else ``None``."""
        return None

    @property
    def box(self) -> Box | None:
        """The box that is the domain of the conjugate, where that is a linear function on a box, else ``None``."""
        return None

    @property
    def sparse(self) -> bool:
        """Whether small residuals have a null dual variable, so that solutions are sparse."""
        return self.profile is not None and float(self.profile.slope(np.zeros(1))[0]) > 0


def rows_of(loss: L, index: Index) -> L:
    """Return the loss of some samples: what it is bound to sample by sample is cut to them."""
    parts = {name: getattr(loss, name) for name in ("_targets", "_scale")}
    parts = {name: part for name, part in parts.items() if part is not None and part.ndim == 2}
    if not parts:
        return loss
    cut = copy(loss)
    for name, part in parts.items():
        setattr(cut, name, take_rows(part, index))
    return cut


def row_saturation(loss: Loss, duals: Array) -> Array | None:
    """Return the ``saturation`` of whole rows, shape (n,): the largest of their values'."""
    ratios = loss.saturation(duals)
    return ratios if ratios is None or ratios.ndim == 1 else namespace(ratios).max(ratios, axis=1)
