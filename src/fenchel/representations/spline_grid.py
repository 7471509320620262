"""Representation of curves as linear splines on a grid, with point values as coordinates."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, as_like
from fenchel.data.functional import Curves
from fenchel.kernels import IntegralOperator
from fenchel.representations.coordinates import Coordinates
from fenchel.representations.curves import CurveRepresentation

__all__ = ["Spline"]


class Spline(CurveRepresentation):
    r"""Values at the points of a grid, times the square roots of the quadrature weights.

    .. math:: c_j = \sqrt{w_j} \, f(\theta_j), \qquad \langle f, g \rangle = \sum_j w_j f(\theta_j) g(\theta_j).

    The coordinates are point values, so every loss applies, with the true p-norm of the curves.

    Parameters
    ----------
    quadrature : {"trapezoid", "mean", "average", "monte_carlo"} or array of shape (m,), default="trapezoid"
        Weights :math:`w_j`: those of the trapezoid rule; the same divided by the length of the domain, so that
        integrals are means and the unit of the grid does not matter; ``"average"``, :math:`1/m` for each of the m
        points, wherever they lie, as in [Lambert2022]_; equal weights with the length of the domain as their sum, for
        points drawn at random; or explicit weights, for the points of a quadrature rule.

    Attributes
    ----------
    representation_error_ : float
        Always 0: point values are represented exactly.

    Notes
    -----
    A curve observed at some of the points has the weights of those points, times the factor that makes their sum the
    sum of all weights: an average over its observed points. Nothing is interpolated; there are no dual variables for
    the other points.

    References
    ----------
    [Lambert2022]_, section 3.1. In these coordinates no power of the number of points appears in a threshold; the
    powers in the printed algorithm are wrong.

    Examples
    --------
    >>> from fenchel import FunctionalRegressor
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.representations import Spline
    >>> data = make_functional(20, 15, random_state=0)
    >>> FunctionalRegressor(representation=Spline(quadrature="mean")).fit(data.X, data.Y).dual_coef_.shape
    (20, 15)
    """

    has_points = True

    def __init__(self, quadrature: str | ArrayLike = "trapezoid") -> None:
        self.quadrature = quadrature

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls("mean"), cls("monte_carlo"), cls("average")]

    def encode(self, Y: Curves) -> Coordinates:
        """Return the values times the square roots of the weights, zero where a curve was not observed."""
        return Coordinates.of(self._flat(Y), self._scale)

    def _lost(self, curves: Curves, coordinates: Coordinates) -> float:
        return 0.0  # points that were not observed are not lost

    def decode(self, rows: Array) -> Array:
        """Return the values at the points of the grid."""
        return self.shaped(rows / self._scale)

    def integral(self, operator: IntegralOperator) -> Array:
        """Return the kernel at pairs of points, multiplied on both sides by the square roots of the weights."""
        values = as_like(operator.values(self.grid_, self.grid_, self.n_channels_), self._scale)
        return self._scale[:, None] * values * self._scale

    def interpolation(self, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return linear interpolation between the points of the grid."""
        return self._between_points(grid, derivative) / self._scale[:, None]

    def evaluation(self, operator: IntegralOperator, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return the kernel between the grid points and the given points, times the square roots of the weights."""
        values = operator.values(self.grid_, grid, self.n_channels_, derivative)
        return self._scale[:, None] * as_like(values, self._scale)
