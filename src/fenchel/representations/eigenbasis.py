"""Representation of curves by their coefficients on the leading eigenfunctions of the output operator."""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, as_like, device, eps, host, namespace, symmetric_eigh
from fenchel._check import Interval, Options
from fenchel.data.functional import Curves
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import IntegralOperator
from fenchel.representations.coordinates import Coordinates
from fenchel.representations.curves import CurveRepresentation

__all__ = ["Eigen"]


class Eigen(CurveRepresentation):
    r"""Coefficients on the leading eigenfunctions of the output operator, approximated on the grid.

    .. math:: c_k = \langle f, \psi_k \rangle, \qquad T_k \psi_k = \mu_k \psi_k .

    The operator is diagonal in these coordinates. They are not point values, so only losses of the 2-norm apply.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of eigenfunctions; a number in (0, 1) is the share of the operator's trace to explain; ``None`` keeps all
        whose eigenvalue is above round-off.
    quadrature : {"trapezoid", "mean", "average", "monte_carlo"} or array of shape (m,), default="trapezoid"
        Quadrature weights of the grid points, as for ``Spline``.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates, p.
    eigenvalues_ : array of shape (p,)
        Eigenvalues in decreasing order.
    representation_error_ : float
        Share of the squared norm of the training curves that lies outside the span. The certified problem does not
        include it.

    References
    ----------
    [Lambert2022]_, section 3.2.

    Examples
    --------
    >>> from fenchel import FunctionalRegressor
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.representations import Eigen
    >>> data = make_functional(20, 15, random_state=0)
    >>> FunctionalRegressor(representation=Eigen(5)).fit(data.X, data.Y).dual_coef_.shape
    (20, 5)
    """

    takes_basis_of_operator = True

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_components": Interval(0, float("inf"), also=(None,)),
    }

    def __init__(self, n_components: float | None = None, quadrature: str | ArrayLike = "trapezoid") -> None:
        self.n_components = n_components
        self.quadrature = quadrature

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(3), cls(0.9, "monte_carlo"), cls(4, "average")]

    def _learn(self, operator: IntegralOperator | None) -> None:
        if operator is None:
            raise IncompatibleError("Eigen takes its basis from the output operator. Give an output_kernel.")
        xp = namespace(self._scale)
        values = as_like(operator.values(self.grid_, self.grid_, self.n_channels_), self._scale)
        spectrum, vectors = symmetric_eigh(self._scale[:, None] * values * self._scale)
        spectrum, vectors = xp.flip(spectrum), xp.flip(vectors, axis=1)
        self.n_components_ = self._count(host(spectrum))
        self.eigenvalues_ = spectrum[: self.n_components_]
        self._vectors = vectors[:, : self.n_components_]

    def _count(self, spectrum: np.ndarray) -> int:
        """Return the number of eigenvalues to keep."""
        above = int(np.sum(spectrum > len(spectrum) * np.finfo(spectrum.dtype).eps * spectrum[0]))
        if self.n_components is None:
            return max(1, above)
        if self.n_components < 1:
            shares = np.cumsum(spectrum) / np.sum(spectrum)
            return int(np.searchsorted(shares, self.n_components)) + 1
        if self.n_components > len(spectrum) or int(self.n_components) != self.n_components:
            raise ValueError(
                f"n_components must be an int of at most {len(spectrum)}, the number of coordinates of the grid, or a "
                f"share in (0, 1). Got {self.n_components!r} instead."
            )
        return int(self.n_components)

    def encode(self, Y: Curves) -> Coordinates:
        """Return the coefficients."""
        return Coordinates((self._complete(Y) * self._scale) @ self._vectors)

    def decode(self, rows: Array) -> Array:
        """Return the values at the points of the grid."""
        return self.shaped(rows @ self._vectors.T / self._scale)

    def integral(self, operator: IntegralOperator) -> Array:
        """Return the eigenvalues if the basis is that of the operator, else the operator restricted to the span."""
        values = as_like(operator.values(self.grid_, self.grid_, self.n_channels_), self._scale)
        part = self._scale[:, None] * self._vectors
        matrix, xp = part.T @ values @ part, namespace(part)
        diagonal = xp.eye(matrix.shape[0], dtype=matrix.dtype, device=device(matrix)) * self.eigenvalues_
        round_off = 64 * values.shape[0] * eps(matrix) * float(self.eigenvalues_[0])
        return self.eigenvalues_ if float(xp.max(xp.abs(matrix - diagonal))) <= round_off else matrix

    def interpolation(self, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return linear interpolation of the eigenfunctions between the points of the grid."""
        return self._vectors.T @ (self._between_points(grid, derivative) / self._scale[:, None])

    def evaluation(self, operator: IntegralOperator, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return the images of the eigenfunctions at the given points, by the operator's own formula."""
        values = as_like(operator.values(self.grid_, grid, self.n_channels_, derivative), self._scale)
        return self._vectors.T @ (self._scale[:, None] * values)
