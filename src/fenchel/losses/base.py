"""The protocol of a loss, and of the scalar profile behind a loss of the norm."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from fenchel._array import Array, Index
from fenchel._component import Component
from fenchel.losses.profile import Profile, Step

__all__: list[str] = []


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

        In the domain of the conjugate this is in [0, 1]; dividing duals by a larger number brings them back to it.
        """
        return None

    @property
    def sparse(self) -> bool:
        """Whether small residuals have a null dual variable, so that solutions are sparse."""
        profile = self.profile()
        return profile is not None and float(profile.slope(np.zeros(1))[0]) > 0

    def point_saturation(self, duals: Array) -> Array | None:
        """Return each dual value over its bound, shape (n, p), or ``None`` when single values have no bound."""
        return None

    def profile(self) -> Profile | None:
        """Return the scalar ``Profile`` of a loss of the Euclidean norm, else ``None``."""
        return None

    def box(self) -> tuple[Array, Array, Array] | None:
        """Return the ends of the box that is the domain of the conjugate and the slopes of the conjugate in it.

        Arrays (p,) or (n, p); ``None`` for a loss whose conjugate is not a linear function on a box.
        """
        return None

    def bind(self, targets: Array, point_scale: Array | None = None) -> "Loss":
        """Return the loss bound to the targets and, where coordinates are point values, to their scale."""
        return self

    @property
    def is_relative(self) -> bool:
        """Whether a parameter is relative to the size of residuals: ``resolve`` must come before any value."""
        return False

    @property
    def is_unit_free(self) -> bool:
        """Whether outputs in another unit give the same model: no parameter is a size of residuals."""
        return self.is_relative

    def resolve(self, residuals: Array, weights: Array | None = None, point_scale: Array | None = None) -> "Loss":
        """Return the loss with every parameter that depends on the size of residuals replaced by its number.

        ``residuals`` (n, p) are those of a pilot model, or their norms (n,); ``weights`` (n,) count the samples.
        """
        return self

    def rows(self, index: Index) -> Self:
        """Return the loss of some samples; losses that are bound to the targets override this."""
        return self
