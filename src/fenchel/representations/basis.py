"""Representation of curves by their coefficients in a chosen basis, with chosen eigenvalues."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fenchel._array import Array, as_like
from fenchel._check import Interval, Options
from fenchel.data.functional import Curves
from fenchel.exceptions import IncompatibleError
from fenchel.kernels import IntegralOperator
from fenchel.representations.coordinates import Coordinates
from fenchel.representations.curves import CurveRepresentation

__all__ = ["Basis", "Fourier"]


class _OnBasis(CurveRepresentation, ABC):
    """Coefficients on functions that are made orthonormal for the quadrature; only their span matters."""

    has_eigenvalues = True

    @abstractmethod
    def _functions(self, grid: np.ndarray, derivative: int = 0) -> np.ndarray:
        """Return the functions at the points, (points, k)."""

    @abstractmethod
    def _eigenvalues(self) -> np.ndarray:
        """Return the eigenvalues, (k,)."""

    def _learn(self, operator: IntegralOperator | None) -> None:
        functions, weights = self._functions(self.grid_), self._quadrature_weights()
        products = functions.T @ (weights[:, None] * functions)
        values, vectors = np.linalg.eigh(products)
        if values[0] <= 1e-10 * values[-1]:
            raise ValueError(
                f"The {len(values)} functions of the basis must be linearly independent on the grid of "
                f"{len(self.grid_)} points. Use fewer functions or more points."
            )
        self._root = (vectors * np.sqrt(values)) @ vectors.T
        self._inverse_root = (vectors / np.sqrt(values)) @ vectors.T
        self._basis = self._with_channels(functions @ self._inverse_root)
        self.n_components_ = self._basis.shape[1]

    def _with_channels(self, matrix: np.ndarray) -> Array:
        """Return the matrix that acts in the same way on every channel."""
        return as_like(np.kron(matrix, np.eye(self.n_channels_)), self._scale)

    def _coupled(self, operator: IntegralOperator | None, matrix: np.ndarray) -> Array:
        """Return the Kronecker product of a matrix with the matrix that couples the channels."""
        coupling = np.eye(self.n_channels_) if operator is None else operator.coupling(self.n_channels_)
        return as_like(np.kron(matrix, coupling), self._scale)

    def encode(self, Y: Curves) -> Coordinates:
        """Return the coefficients in the orthonormal basis."""
        return Coordinates((self._complete(Y) * self._scale**2) @ self._basis)

    def decode(self, rows: Array) -> Array:
        """Return the values at the points of the grid."""
        return self.shaped(rows @ self._basis.T)

    def integral(self, operator: IntegralOperator | None) -> Array:
        """Return the operator with the chosen eigenvalues, or an integral operator restricted to the span."""
        if operator is None or operator.kernel is None:
            return self._coupled(operator, (self._root * self._eigenvalues()) @ self._root)
        values = as_like(operator.values(self.grid_, self.grid_, self.n_channels_), self._scale)
        part = self._scale[:, None] ** 2 * self._basis
        return part.T @ values @ part

    def interpolation(self, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return the orthonormal basis at the given points."""
        return self._with_channels((self._functions(grid, derivative) @ self._inverse_root).T)

    def evaluation(self, operator: IntegralOperator | None, grid: np.ndarray, derivative: int = 0) -> Array:
        """Return the images of the orthonormal basis at the given points."""
        if operator is None or operator.kernel is None:
            functions = self._functions(grid, derivative)
            return self._coupled(operator, (self._root * self._eigenvalues()) @ functions.T)
        values = as_like(operator.values(self.grid_, grid, self.n_channels_, derivative), self._scale)
        return (self._scale[:, None] ** 2 * self._basis).T @ values


class Fourier(_OnBasis):
    r"""Coefficients on the first trigonometric functions of the domain, with decaying eigenvalues.

    .. math:: 1, \; \sqrt2 \cos 2\pi k t, \; \sqrt2 \sin 2\pi k t, \qquad
        \mu_k = (1 + k)^{-s}, \qquad t = \frac{\theta - \theta_1}{\theta_m - \theta_1},

    divided by the square root of the total weight of the grid points, which is the length of the domain for the rules
    of integration and 1 for means.

    Parameters
    ----------
    n_components : int, default=11
        Number of functions: the constant, then pairs of a cosine and a sine.
    decay : float, default=2.0
        The exponent :math:`s` of the eigenvalues, used if there is no output kernel.
    quadrature : {"trapezoid", "mean", "average", "monte_carlo"} or array of shape (m,), default="trapezoid"
        Quadrature weights of the grid points, as for ``Spline``.

    Attributes
    ----------
    representation_error_ : float
        Share of the squared norm of the training curves that lies outside the span.

    References
    ----------
    [Laforgue2020]_, section 3.2 and the lip experiment, which uses :math:`\sqrt2` for the constant function.

    Examples
    --------
    >>> from fenchel import FunctionalRegressor
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.representations import Fourier
    >>> data = make_functional(20, 15, random_state=0)
    >>> FunctionalRegressor(representation=Fourier(5)).fit(data.X, data.Y).dual_coef_.shape
    (20, 5)
    """

    _limits: ClassVar[dict[str, Interval | Options]] = {
        "n_components": Interval(1, math.inf, "left", integer=True),
        "decay": Interval(0, math.inf, "left"),
    }

    def __init__(self, n_components: int = 11, decay: float = 2.0, quadrature: str | ArrayLike = "trapezoid") -> None:
        self.n_components = n_components
        self.decay = decay
        self.quadrature = quadrature

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(), cls(4, decay=1.0, quadrature="monte_carlo"), cls(3, quadrature="average")]

    def _functions(self, grid: np.ndarray, derivative: int = 0) -> np.ndarray:
        length = float(self.grid_[-1] - self.grid_[0]) if len(self.grid_) > 1 else 1.0
        order = (np.arange(self.n_components) + 1) // 2
        is_sine = np.arange(self.n_components) % 2 == 0  # the first function is the constant
        phase = 2 * np.pi * np.outer((grid - self.grid_[0]) / length, order)
        size = np.where(order == 0, 1.0, math.sqrt(2)) / math.sqrt(float(np.sum(self._quadrature_weights())))
        if derivative:
            rate = 2 * np.pi * order / length
            size = size * rate**derivative
        is_sine &= order > 0
        waves = [np.where(is_sine, np.sin(phase), np.cos(phase)), np.where(is_sine, np.cos(phase), -np.sin(phase))]
        return size * (-waves[0] if derivative == 2 else waves[derivative])

    def _eigenvalues(self) -> np.ndarray:
        return (1.0 + (np.arange(self.n_components) + 1) // 2) ** -self.decay


class Basis(_OnBasis):
    r"""Coefficients on given functions, with given eigenvalues.

    .. math:: A f = \sum_k \mu_k \langle f, \varphi_k \rangle \varphi_k .

    Parameters
    ----------
    functions : callable
        Takes points (m,) and returns the values of the functions, (m, k). They need not be orthonormal.
    eigenvalues : array of shape (k,)
        Non-negative numbers :math:`\mu_k`, used if there is no output kernel.
    quadrature : {"trapezoid", "mean", "average", "monte_carlo"} or array of shape (m,), default="trapezoid"
        Quadrature weights of the grid points, as for ``Spline``.
    derivatives : callable or None, default=None
        Derivatives of the functions, in the same form.

    Attributes
    ----------
    representation_error_ : float
        Share of the squared norm of the training curves that lies outside the span.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import FunctionalRegressor
    >>> from fenchel.datasets import make_functional
    >>> from fenchel.representations import Basis
    >>> data = make_functional(20, 15, random_state=0)
    >>> polynomials = Basis(lambda t: np.stack([np.ones_like(t), t, t**2], axis=1), [1.0, 0.5, 0.25])
    >>> FunctionalRegressor(representation=polynomials).fit(data.X, data.Y).dual_coef_.shape
    (20, 3)
    """

    def __init__(
        self,
        functions: Callable[[np.ndarray], np.ndarray],
        eigenvalues: ArrayLike,
        quadrature: str | ArrayLike = "trapezoid",
        derivatives: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.functions = functions
        self.eigenvalues = eigenvalues
        self.quadrature = quadrature
        self.derivatives = derivatives

    def _functions(self, grid: np.ndarray, derivative: int = 0) -> np.ndarray:
        chosen = self.derivatives if derivative else self.functions
        if derivative == 2:
            raise IncompatibleError("Basis has first derivatives only. Use Fourier(), or a smooth output_kernel.")
        if chosen is None:
            raise IncompatibleError("Basis has no derivatives. Give them as Basis(..., derivatives=...).")
        values = np.asarray(chosen(grid), dtype=np.float64)
        shape = (len(grid), len(self._eigenvalues()))
        if values.shape != shape or not np.all(np.isfinite(values)):
            raise ValueError(
                f"The functions of a Basis must return finite values of shape {shape}, one column for each eigenvalue. "
                f"Got shape {values.shape}."
            )
        return values

    def _eigenvalues(self) -> np.ndarray:
        values = np.asarray(self.eigenvalues, dtype=np.float64)
        if values.ndim != 1 or len(values) == 0 or not np.all(values >= 0) or not np.all(np.isfinite(values)):
            raise ValueError(
                f"The 'eigenvalues' parameter of Basis must hold finite non-negative numbers. Got {self.eigenvalues!r}."
            )
        return values

    @classmethod
    def examples(cls) -> list[Self]:
        """Return instances that the contract tests run on."""
        return [cls(_parabolas, [1.0, 0.5, 0.25])]


def _parabolas(grid: np.ndarray) -> np.ndarray:
    return np.stack([np.ones_like(grid), grid, grid**2], axis=1)
