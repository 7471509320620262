"""Base class of curve representations: grid, quadrature weights, channels, and evaluation at any point."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, Index, Outputs, as_like, namespace
from fenchel._check import Options, check_parameter
from fenchel.data.functional import Curves, as_curves
from fenchel.data.quadrature import interpolation, trapezoid_weights
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import IntegralOperator
from fenchel.representations.coordinates import Coordinates
from fenchel.representations.representation import Representation

__all__ = ["CurveRepresentation"]

QUADRATURES = Options(("trapezoid", "mean", "average", "monte_carlo"))


class CurveRepresentation(Representation, ABC):
    r"""Curves in orthonormal coordinates of :math:`L^2`, where integrals are sums over the points of a grid.

    The point values of a curve are flattened into a row, channel by channel within each point. ``fit`` also takes the
    output operator, which may determine the basis.
    """

    is_functional: ClassVar[bool] = True
    has_eigenvalues: ClassVar[bool] = False  # has its own operator, so it does not need an output kernel
    takes_basis_of_operator: ClassVar[bool] = False  # whether coordinates depend on the output operator

    quadrature: str | ArrayLike

    grid_: np.ndarray
    n_channels_: int
    representation_error_: float

    def validate(self) -> Self:
        """Raise if a parameter is invalid; the quadrature is a name or positive weights."""
        if isinstance(self.quadrature, str) or self.quadrature is None:
            check_parameter(type(self).__name__, "quadrature", self.quadrature, QUADRATURES)
        else:
            weights = np.asarray(self.quadrature)
            if weights.ndim != 1 or weights.dtype.kind not in "fiu" or not np.all((weights > 0) & np.isfinite(weights)):
                raise ValueError(
                    f"The 'quadrature' parameter of {type(self).__name__} must be {QUADRATURES}, or a vector of "
                    f"positive weights. Got {self.quadrature!r} instead."
                )
        return super().validate()

    def learn(self, Y: Outputs, weights: Array | None = None, operator: IntegralOperator | None = None) -> Coordinates:
        """Learn grid and basis from the training curves, and return them in coordinates."""
        curves = as_curves(Y)
        self.grid_ = curves.grid
        self.n_channels_ = 1 if curves.values.ndim == 2 else int(curves.values.shape[2])
        self._has_channels = curves.values.ndim == 3
        self._scale = as_like(np.repeat(np.sqrt(self._quadrature_weights()), self.n_channels_), curves.values)
        self._learn(operator)
        coordinates = self.encode(curves)
        self.representation_error_ = self._lost(curves, coordinates)
        return coordinates

    @abstractmethod
    def integral(self, operator: IntegralOperator) -> Array:
        """Return an integral operator in these coordinates, (p, p), or (p,) if it is diagonal."""

    @abstractmethod
    def evaluation(self, operator: IntegralOperator, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return the matrix (p, points × channels) that maps coordinates a to values of the operator applied to a.

        With ``derivative``, 1 or 2, to values of its first or second derivative.
        """

    @abstractmethod
    def interpolation(self, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return the matrix (p, points × channels) that maps coordinates to values at the given points.

        With ``derivative``, 1 or 2, to values of the first or second derivative.
        """

    def _between_points(self, grid: np.ndarray, derivative: int) -> Array:
        """Return the matrix (points × channels of the grid, points × channels) of linear interpolation."""
        if derivative:
            raise IncompatibleError(
                "Predictions have no derivative: curves between the points are linear. Use kernels times "
                "IntegralOperator(Gaussian()), or representation='fourier'."
            )
        return as_like(np.kron(interpolation(self.grid_, grid), np.eye(self.n_channels_)), self._scale)

    def _learn(self, operator: IntegralOperator | None) -> None:
        """Learn what the coordinates need besides the grid."""

    def _lost(self, curves: Curves, coordinates: Coordinates) -> float:
        """Return the share of the squared norm of the training curves that their coordinates miss."""
        whole = self._flat(curves) * self._scale
        total = float(namespace(whole).sum(whole**2))
        kept = float(namespace(whole).sum(coordinates.rows**2))
        return max(0.0, 1 - kept / total) if total > 0 else 0.0

    def _complete(self, curves: Curves) -> Array:
        """Return the values as rows (n, points × channels); raise if some are missing."""
        if not curves.is_complete:
            raise IncompatibleError(
                f"{type(self).__name__} needs curves that are observed at every point of the grid; these have gaps. "
                "Use representation='spline', which needs no interpolation."
            )
        return self._flat(curves)

    def take(self, Y: Curves, index: Index) -> Curves:
        """Return the selected curves."""
        return Y.take(index)

    def _flat(self, curves: Curves) -> Array:
        """Return the values as rows (n, points × channels)."""
        return namespace(curves.values).reshape(curves.values, (len(curves), -1))

    def shaped(self, values: Array) -> Array:
        """Reshape rows (n, points × channels) to curves."""
        if not self._has_channels:
            return values
        return namespace(values).reshape(values, (values.shape[0], -1, self.n_channels_))

    def _quadrature_weights(self) -> np.ndarray:
        if not isinstance(self.quadrature, str):
            weights = np.asarray(self.quadrature, dtype=np.float64)
            if weights.shape != self.grid_.shape:
                raise ValueError(
                    f"The 'quadrature' parameter of {type(self).__name__} must have one weight for each of the "
                    f"{len(self.grid_)} points of the grid. Got {weights.size}."
                )
            return weights
        if self.quadrature in ("trapezoid", "mean"):
            weights = trapezoid_weights(self.grid_)
            return weights / np.sum(weights) if self.quadrature == "mean" else weights
        length = float(self.grid_[-1] - self.grid_[0]) if len(self.grid_) > 1 else 1.0
        total = 1.0 if self.quadrature == "average" else length
        return np.full(len(self.grid_), total / len(self.grid_))
