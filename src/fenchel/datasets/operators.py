"""Operators between functions: solutions of differential equations, for operator learning."""

import math

import numpy as np
from sklearn.utils import Bunch, check_random_state

from fenchel._check import Interval, check_parameter

__all__ = ["make_advection", "make_burgers"]

_STEPS = 400  # time steps for Burgers' equation


def make_burgers(n_samples: int = 1000, n_points: int = 128, random_state: int | None = 0) -> Bunch:
    r"""Make initial states of Burgers' equation and the states at time 1.

    .. math:: u_t + \frac{1}{2\pi} u u_x = \frac{0.1}{4 \pi^2} u_{xx} \quad \text{on } [0, 1], \text{ periodic}, \qquad
        u_0 \sim \mathcal N\bigl(0, 625 (-\Delta + 25)^{-2}\bigr) \text{ without its mean.}

    Parameters
    ----------
    n_samples : int, default=1000
        Number of pairs.
    n_points : int, default=128
        Number of grid points, a divisor of 256; the equation is solved on 256 points.
    random_state : int or None, default=0
        Seed of the initial states.

    Returns
    -------
    data : Bunch
        ``X`` and ``Y`` of shape (n_samples, n_points), ``grid``, and ``DESCR``.

    Notes
    -----
    Solved in Fourier space by exponential Runge–Kutta steps of fourth order, with products dealiased by the two-thirds
    rule. The setting is that of [Batlle2024]_, as in its published data.

    Examples
    --------
    >>> from fenchel.datasets import make_burgers
    >>> data = make_burgers(3, n_points=64)
    >>> data.X.shape, data.Y.shape
    ((3, 64), (3, 64))
    """
    m = 256
    _check_grid(n_samples, n_points, m)
    frequency = np.fft.rfftfreq(m, 1 / m)
    start = _states(n_samples, m, random_state)
    linear = -0.1 * frequency**2
    nonlinear = -0.5j * frequency * (frequency <= m / 3)
    state = _integrated(np.fft.rfft(start), linear, lambda v: nonlinear * np.fft.rfft(np.fft.irfft(v, m) ** 2))
    step = m // n_points
    return Bunch(
        X=start[:, ::step],
        Y=np.fft.irfft(state, m)[:, ::step],
        grid=np.arange(n_points) / n_points,
        DESCR="Burgers' equation: periodic initial states and the states at time 1.",
    )


def make_advection(
    n_samples: int = 1000, n_points: int = 64, speed: float = 0.5, random_state: int | None = 0
) -> Bunch:
    r"""Make discontinuous initial states of the advection equation and the states at time 1.

    .. math:: u_t + c u_x = 0 \quad \text{on } [0, 1], \text{ periodic}, \qquad
        u_0 = \operatorname{sign} g, \quad g \sim \mathcal N\bigl(0, 625 (-\Delta + 25)^{-2}\bigr) .

    Parameters
    ----------
    n_samples : int, default=1000
        Number of pairs.
    n_points : int, default=64
        Number of grid points, a divisor of 256.
    speed : float, default=0.5
        Speed c, rounded to whole points of a grid of 256.
    random_state : int or None, default=0
        Seed of the initial states.

    Returns
    -------
    data : Bunch
        ``X`` and ``Y`` of shape (n_samples, n_points), ``grid``, and ``DESCR``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.datasets import make_advection
    >>> data = make_advection(3, n_points=64)
    >>> bool(np.all(data.Y == np.roll(data.X, 32, axis=1)))
    True
    """
    m = 256
    _check_grid(n_samples, n_points, m)
    start = np.sign(_states(n_samples, m, random_state))
    step = m // n_points
    return Bunch(
        X=start[:, ::step],
        Y=np.roll(start, round(speed * m), axis=1)[:, ::step],
        grid=np.arange(n_points) / n_points,
        DESCR="The advection equation: discontinuous periodic states, and the states at time 1.",
    )


def _check_grid(n_samples: int, n_points: int, m: int) -> None:
    for name, value in (("n_samples", n_samples), ("n_points", n_points)):
        check_parameter("", name, value, Interval(1, math.inf, "left", integer=True))
    if m % n_points:
        raise ValueError(f"The 'n_points' parameter must be a divisor of {m}. Got {n_points!r} instead.")


def _states(n_samples: int, m: int, random_state: int | None) -> np.ndarray:
    """Return centred periodic Gaussian functions with covariance 625 (25 - Laplacian)^-2."""
    rng = check_random_state(random_state)
    frequency = np.fft.rfftfreq(m, 1 / m)
    deviations = 25 / ((2 * np.pi * frequency) ** 2 + 25)
    deviations[[0, -1]] = 0
    parts = rng.standard_normal((2, n_samples, len(frequency)))
    states: np.ndarray = np.fft.irfft(deviations * (parts[0] + 1j * parts[1]) * m / np.sqrt(2), m)
    return states


def _integrated(state: np.ndarray, linear: np.ndarray, nonlinear) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Return the state at time 1 of v' = L v + N(v), by exponential Runge–Kutta steps of order 4 [Kassam2005]_."""
    h, count = 1 / _STEPS, 32
    whole, half = np.exp(h * linear), np.exp(h * linear / 2)
    circle = h * linear[:, None] + np.exp(1j * np.pi * (np.arange(1, count + 1) - 0.5) / count)
    power = np.exp(circle)
    q = h * ((np.exp(circle / 2) - 1) / circle).mean(1).real
    first = h * ((-4 - circle + power * (4 - 3 * circle + circle**2)) / circle**3).mean(1).real
    middle = h * ((2 + circle + power * (circle - 2)) / circle**3).mean(1).real
    last = h * ((-4 - 3 * circle - circle**2 + power * (4 - circle)) / circle**3).mean(1).real
    for _ in range(_STEPS):
        at = nonlinear(state)
        a = half * state + q * at
        at_a = nonlinear(a)
        at_b = nonlinear(half * state + q * at_a)
        at_c = nonlinear(half * a + q * (2 * at_b - at))
        state = whole * state + first * at + 2 * middle * (at_a + at_b) + last * at_c
    return state
