"""Flow through a porous square: Darcy's equation with two-valued coefficients."""

import math

import numpy as np
from scipy.fft import dctn, dstn, idstn
from sklearn.utils import Bunch, check_random_state

from fenchel._check import Interval, check_parameter

__all__ = ["make_darcy"]

_BLOCK = 32  # samples solved side by side
_TOLERANCE = 1e-10  # relative tolerance of the residuals
_STEPS = 200  # maximum number of iterations; about 25 are needed


def make_darcy(
    n_samples: int = 1000,
    n_points: int = 29,
    refinement: int = 3,
    values: tuple[float, float] = (3.0, 12.0),
    random_state: int | None = 0,
) -> Bunch:
    r"""Make two-valued coefficients of Darcy's equation and the pressures that solve it.

    .. math:: -\nabla \cdot (a \nabla u) = 1 \quad \text{on } [0, 1]^2, \qquad u = 0 \text{ on the boundary}, \qquad
        a = \begin{cases} 12 & g \ge 0 \\ 3 & g < 0 \end{cases}, \qquad
        g \sim \mathcal N\bigl(0, (-\Delta + 9)^{-2}\bigr) \text{ without its mean,}

    with the Neumann Laplacian, whose functions have zero normal derivative at the boundary.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of pairs.
    n_points : int, default=29
        Number of grid points in each direction, including the boundary.
    refinement : int, default=3
        Number of steps of the solver's grid within a step of the returned grid. Equal products of ``refinement`` and
        ``n_points - 1`` give the same functions.
    values : pair of float, default=(3.0, 12.0)
        The coefficient where g is negative, and where it is not; both positive.
    random_state : int or None, default=0
        Seed of the coefficients.

    Returns
    -------
    data : Bunch
        ``X`` and ``Y`` of shape (n_samples, n_points, n_points), ``grid`` with the n_points coordinates, and ``DESCR``.

    Notes
    -----
    Finite differences, with the flux between two points given by the mean of their coefficients, solved by conjugate
    gradients. The preconditioner is the inverse Laplacian, so the number of iterations does not grow with the grid. The
    setting is that of [Li2021]_ and [Batlle2024]_, who solve on 421 points in each direction (``refinement=15``).

    Examples
    --------
    >>> from fenchel.datasets import make_darcy
    >>> data = make_darcy(2, n_points=15)
    >>> data.X.shape, data.Y.shape, sorted(set(data.X.ravel().tolist()))
    ((2, 15, 15), (2, 15, 15), [3.0, 12.0])
    """
    for name, value, least in (("n_samples", n_samples, 1), ("n_points", n_points, 3), ("refinement", refinement, 1)):
        check_parameter("", name, value, Interval(least, math.inf, "left", integer=True))
    for coefficient in values:
        check_parameter("", "values", coefficient, Interval(0, math.inf))
    rng, fine = check_random_state(random_state), (n_points - 1) * refinement + 1
    X, Y = np.empty((2, n_samples, n_points, n_points))
    for first in range(0, n_samples, _BLOCK):
        some = slice(first, min(first + _BLOCK, n_samples))
        field = _fields(some.stop - some.start, fine, rng)
        coefficients = np.where(field >= 0, values[1], values[0])
        X[some] = coefficients[:, ::refinement, ::refinement]
        Y[some] = _pressures(coefficients, np.ones((fine, fine)))[:, ::refinement, ::refinement]
    return Bunch(
        X=X,
        Y=Y,
        grid=np.linspace(0, 1, n_points),
        DESCR="Darcy's equation on a square: two-valued coefficients, and the pressures.",
    )


def _fields(count: int, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Return centred Gaussian fields with covariance (9 - Laplacian)^-2, by their cosine series."""
    frequency = np.pi * np.arange(size)
    deviations = 1 / (frequency[:, None] ** 2 + frequency[None, :] ** 2 + 9)
    deviations[0, 0] = 0
    deviations[1:, :] *= math.sqrt(2)
    deviations[:, 1:] *= math.sqrt(2)
    parts = deviations * rng.standard_normal((count, size, size))
    parts[:, 1:-1, :] /= 2  # the transform counts the inner terms twice
    parts[:, :, 1:-1] /= 2
    fields: np.ndarray = dctn(parts, type=1, axes=(1, 2))
    return fields


def _pressures(coefficients: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Return the solutions of -div(a grad u) = f with u = 0 on the boundary, for coefficients (n, m, m)."""
    m = coefficients.shape[1]
    down = (coefficients[:, 1:, 1:-1] + coefficients[:, :-1, 1:-1]) / 2
    across = (coefficients[:, 1:-1, 1:] + coefficients[:, 1:-1, :-1]) / 2
    rates = 2 - 2 * np.cos(np.pi * np.arange(1, m - 1) / (m - 1))
    spectrum = rates[:, None] + rates[None, :]

    def flux(u: np.ndarray) -> np.ndarray:
        whole = np.pad(u, ((0, 0), (1, 1), (1, 1)))
        first, second = down * np.diff(whole[:, :, 1:-1], axis=1), across * np.diff(whole[:, 1:-1, :], axis=2)
        result: np.ndarray = -np.diff(first, axis=1) - np.diff(second, axis=2)
        return result

    def preconditioned(r: np.ndarray) -> np.ndarray:
        result: np.ndarray = idstn(dstn(r, type=1, axes=(1, 2)) / spectrum, type=1, axes=(1, 2))
        return result

    right = np.broadcast_to(source[1:-1, 1:-1] / (m - 1) ** 2, (len(coefficients), m - 2, m - 2))
    inner = _conjugate_gradients(flux, preconditioned, right)
    return np.pad(inner, ((0, 0), (1, 1), (1, 1)))


def _conjugate_gradients(operator, preconditioned, right: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Solve linear systems side by side by preconditioned conjugate gradients."""
    x, r = np.zeros_like(right), right.copy()
    z = preconditioned(r)
    p, rho = z, _products(r, z)
    goal = _TOLERANCE**2 * rho
    for _ in range(_STEPS):
        image = operator(p)
        step = rho / _products(p, image)
        x, r = x + step * p, r - step * image
        z = preconditioned(r)
        after = _products(r, z)
        if np.all(after <= goal):
            break
        p, rho = z + after / rho * p, after
    return x


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.sum(a * b, axis=(1, 2), keepdims=True)
    return result
